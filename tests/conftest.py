"""One switch for the whole suite: `--oracle` runs every tensor through numpy, not on a device."""
from tests import evaluate


def pytest_addoption(parser):
    parser.addoption("--oracle", action="store_true", help="evaluate tensors with numpy, not on a device")


def pytest_configure(config):
    if config.getoption("--oracle"):
        evaluate.install()
