"""Switches for the whole suite: `--oracle` runs every tensor through numpy, not on a device;
`--update-golden` writes the texts in tests/golden anew; `--other-schedules SEED` gives each kernel not the
loops that the heuristics choose but some that a search might come upon; `--optimized` compiles what emulated
cards run as always, see tests/translations.py. AMD=1 EMULATE=... runs the tests of
tensors on an emulated card, as `make test-emulated` does: all but those about the CPU, and those of
tests/emulated.py.
"""
from pathlib import Path

import pytest
from hypothesis import settings

from tests import emulated, evaluate, other_schedules, translations
from tiny import config
from tiny.devices import Device

# A test case may have to compile kernels first, so how long it takes says nothing. `make test` tries the same
# examples each time; `make test-all` looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("new", deadline=None, print_blob=True)
settings.load_profile("same")


def pytest_addoption(parser):
    parser.addoption("--oracle", action="store_true", help="evaluate tensors with numpy, not on a device")
    parser.addoption("--other-schedules", type=int, help="kernels with loops drawn by this seed")
    parser.addoption("--optimized", action="store_true", help="optimize what emulated cards run")
    parser.addoption("--update-golden", action="store_true", help="write the golden texts anew")


@pytest.fixture(scope="session", autouse=True)
def plain_translations(request):
    """Where the tensors of all tests are on an emulated card, running takes longer than compiling."""
    optimized = request.config.getoption("--optimized") or Device.DEFAULT != "CPU"
    with translations.compiled(optimized):
        yield


@pytest.fixture(scope="module")
def optimized_translations():
    """What emulated cards run is compiled as always."""
    with translations.compiled(optimized=True):
        yield


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
    if config.getoption("--other-schedules") is not None:
        other_schedules.install(config.getoption("--other-schedules"))


def pytest_collection_modifyitems(items):
    if Device.DEFAULT == "CPU":
        return
    excluded = emulated.EXCLUDED.get(config.current().emulate, {})
    for item in items:
        about_cpu = item.get_closest_marker("cpu_only")
        name = item.nodeid.partition("[")[0]
        reason = about_cpu.args[0] if about_cpu else excluded.get(item.nodeid) or excluded.get(name)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
