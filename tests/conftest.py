"""Switches for the whole suite: `--oracle` runs every tensor through numpy, not on a device;
`--update-golden` writes the texts in tests/golden anew.
"""
from pathlib import Path

import pytest
from hypothesis import settings

from tests import evaluate

# A test case may have to compile kernels first, so how long it takes says nothing. `make test` tries the same
# examples each time; `make test-all` looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("new", deadline=None, print_blob=True)
settings.load_profile("same")


def pytest_addoption(parser):
    parser.addoption("--oracle", action="store_true", help="evaluate tensors with numpy, not on a device")
    parser.addoption("--update-golden", action="store_true", help="write the golden texts anew")


@pytest.fixture
def golden(request):
    """golden(name, text): the text is that of the file of that name in tests/golden."""
    def compare(name: str, text: str) -> None:
        path = Path(__file__).parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"there is no {path}; make it with pytest --update-golden"
        assert text == path.read_text(), "the text differs; if it should, run pytest --update-golden"
    return compare


def pytest_configure(config):
    if config.getoption("--oracle"):
        evaluate.install()
