"""Programs and libraries that tests need besides Python packages. `make test` installs every one of them.

A test that needs one fails without it, and says which command brings it: what is skipped shows nothing.
"""
import ctypes
import shutil
from pathlib import Path

import pytest

SETUP = "scripts/setup.sh test"


def tool(*names: str) -> str:
    """The path of the first of these programs that is on PATH."""
    found = next(filter(None, map(shutil.which, names)), None)
    return found or pytest.fail(f"this test needs {' or '.join(names)}, on PATH; {SETUP} installs it")


def library(*names: str) -> ctypes.CDLL:
    """The first of these shared libraries that loads."""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return pytest.fail(f"this test needs the library {' or '.join(names)}; {SETUP} installs it")


def data(path: Path) -> Path:
    """A file or folder that a system package brings."""
    return path if path.exists() else pytest.fail(f"this test needs {path}; {SETUP} installs it")
