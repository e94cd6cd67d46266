"""How long each generated module takes to import on a warm disk: the minimum of 7 fresh processes, cffi's own
part apart."""
import subprocess
import sys
from pathlib import Path

import pytest

import tiny.autogen

MODULES = sorted(path.stem for path in Path(tiny.autogen.__file__).parent.glob("*.py")
                 if not path.stem.startswith("__"))
LIMIT_MS = 10
_TIME = ("import time, _cffi_backend, tiny.autogen, importlib; start = time.perf_counter(); "
         "importlib.import_module('tiny.autogen.{}'); print((time.perf_counter() - start) * 1e3)")


@pytest.mark.parametrize("module", MODULES)
def test_import(benchmark, module):
    command = [sys.executable, "-c", _TIME.format(module)]

    def imported() -> float:
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    times = [benchmark.pedantic(imported, rounds=1)] + [imported() for _ in range(6)]
    print(f"{module}: {min(times):.2f} ms")
    assert min(times) < LIMIT_MS
