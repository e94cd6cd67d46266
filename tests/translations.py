"""How the kernels of emulated cards are compiled for this machine: in `make test` plainly, in a third of the
time; as always in `make test-all`, wherever a test takes the fixture `optimized_translations`, and in other
processes that a test starts.
"""
import contextlib
from collections.abc import Iterator
from unittest import mock

from tiny.emulator.amd.isa import run

_as_always = run.compiler_flags


def _plain_flags() -> list[str]:
    return [*_as_always(), "-O0"]


@contextlib.contextmanager
def compiled(optimized: bool) -> Iterator[None]:
    """A context in which kernels are translated anew, and compiled so."""
    flags = _as_always if optimized else _plain_flags
    with mock.patch.object(run, "compiler_flags", flags), mock.patch.dict(run._programs, clear=True):
        yield
