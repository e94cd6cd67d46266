"""Whoever wants to run dispatches himself, as a debugger does, says so here."""

import contextlib
import contextvars
from collections.abc import Callable, Iterator

from tiny.emulator.amd.isa.state import Dispatch

_intercepting: contextvars.ContextVar[Callable[[Dispatch], bool] | None] = contextvars.ContextVar(
    "tiny.emulator.amd.intercepting", default=None
)


@contextlib.contextmanager
def intercepted(function: Callable[[Dispatch], bool]) -> Iterator[None]:
    """Ask `function` first about every dispatch of this thread; True: it has run it. What it raises is
    handled like an error of the kernel.
    """
    token = _intercepting.set(function)
    try:
        yield
    finally:
        _intercepting.reset(token)


def intercept(dispatch: Dispatch) -> bool:
    """Whether somebody has run the dispatch."""
    function = _intercepting.get()
    return function is not None and function(dispatch)
