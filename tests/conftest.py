"""One switch for the whole suite: `--oracle` runs every tensor through numpy, not on a device."""
from hypothesis import settings

from tests import evaluate

# A test case may have to compile kernels first, so how long it takes says nothing. `make test` tries the same
# examples each time; `make test-all` looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("new", deadline=None, print_blob=True)
settings.load_profile("same")


def pytest_addoption(parser):
    parser.addoption("--oracle", action="store_true", help="evaluate tensors with numpy, not on a device")


def pytest_configure(config):
    if config.getoption("--oracle"):
        evaluate.install()
