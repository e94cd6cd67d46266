"""Record what a function submits: the ground that TinyJit stands on. `replay` submits it again.

    with recording(inputs) as capture:       # inputs: the storages of the function's tensor arguments
        ...                                  # whatever is realized here is recorded
"""
import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence

from tiny import config
from tiny.ir.node import Node
from tiny.realize.storage import Storage, serial


class JitError(RuntimeError):
    """A function cannot be captured or replayed as it was called;
    the text names the argument or the operation.
    """


class GraphException(JitError):
    """A captured graph cannot be submitted on this device."""


class Capture:
    """What was submitted while recording.

    inputs  the arguments' storages                   began  serial of the first newer holder
    nodes   all that was computed or read             homes  written holders from outside, and their memory
    made    those of them whose values were left      runs   each submission, an execute.Run
    viewed  id of the tensor that an argument is a view of -> the argument's name
    """

    def __init__(self, inputs: Sequence[Storage]):
        self.inputs = list(inputs)
        self.runs: list = []
        self.began = serial()
        self.refilled: list[Storage] = []
        self.nodes: set[Node] = set()
        self.made: set[Node] = set()
        self.homes: dict[int, tuple[object, Storage]] = {}
        self.viewed: dict[int, str] = {}
        self.paused = False


_state = threading.local()


def active() -> Capture | None:
    """The capture that this thread records, None outside one."""
    capture = getattr(_state, "capture", None)
    return None if capture is None or capture.paused else capture


@contextlib.contextmanager
def recording(inputs: Sequence[Storage]) -> Iterator[Capture]:
    """Record every submission of this thread. JitError when it records already."""
    if active() is not None:
        raise JitError(
            "a captured function calls another TinyJit while it is captured; call the plain function inside"
        )
    _state.capture = Capture(inputs)
    try:
        yield _state.capture
    finally:
        _state.capture = None


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """What is computed inside is not recorded."""
    capture = active()
    if capture is not None:
        capture.paused = True
    try:
        yield
    finally:
        if capture is not None:
            capture.paused = False


def ran(run, made: Iterable[Node], nodes: Iterable[Node]) -> None:
    """Add an execute.Run, the nodes whose values it left and all that it computed or read, to the capture, if
    there is one.
    """
    capture = active()
    if capture is not None:
        capture.runs.append(run)
        capture.made.update(made)
        capture.nodes.update(nodes)


def refilled(storage: Storage) -> None:
    """Note a storage whose bytes are given anew on each replay."""
    capture = active()
    if capture is not None:
        capture.refilled.append(storage)


def forbid_reading() -> None:
    """A value read while capturing would be the same on every replay: JitError."""
    if active() is not None:
        raise JitError(
            "a value is read (item, tolist, numpy, bool, ...) inside a captured function; its replays would "
            "all see the same one. Return the tensor and read it outside, or keep the decision on the device "
            "with where()"
        )


def enabled() -> int:
    """The JIT setting: 0 off, 1 on, 2 captured but submitted kernel by kernel."""
    return config.current().jit
