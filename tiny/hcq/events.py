"""What devices do, told to whoever asks: trace, profilers and DEBUG output subscribe here.

An event costs nothing while nobody listens: the places that make one look at `listeners` first.
"""
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Opened(NamedTuple):
    """A device opened. arch, compiler: of its target; detail: for people; facts: numbers the driver tells."""
    device: str
    arch: str
    compiler: str
    detail: str
    facts: dict[str, int]


class Compiled(NamedTuple):
    """Sources became object code. names: all of them; missing: those not in the cache; seconds: wall time."""
    device: str
    names: tuple[str, ...]
    missing: tuple[str, ...]
    seconds: float


class Loaded(NamedTuple):
    """A program is in a device's memory. address, size: its image.

    object_code: what it was loaded from.
    """
    device: str
    name: str
    address: int
    size: int
    object_code: bytes


class Ringing(NamedTuple):
    """A doorbell is about to be rung. commands: what the ring holds since the last time, from byte `at` on.

    kind: of packets, "pm4", "aql", "sdma" or "cpu"; gfx: the graphics generation, 0 for none; value: what is
    written to the doorbell; programs: those that the commands may name, each with `name`, `entries` and
    `argument_bytes`.
    """
    device: str
    queue: str
    kind: str
    gfx: int
    at: int
    commands: bytes
    value: int
    programs: Sequence = ()


class Submitted(NamedTuple):
    """A template went into a queue. commands: its bytes as submitted;
    point: the timeline value it ends with.
    """
    device: str
    queue: str
    commands: bytes
    point: int
    time_ns: int


class Waited(NamedTuple):
    """Someone waited for a point of a queue."""
    device: str
    queue: str
    point: int
    start_ns: int
    end_ns: int


class Failed(NamedTuple):
    """What was submitted to a queue and had not finished was dropped. queue: "AMD compute", say."""
    queue: str
    text: str


class Allocated(NamedTuple):
    """Memory was handed out (size > 0) or came back (size < 0). held: bytes handed out now."""
    device: str
    address: int
    size: int
    held: int


class Span(NamedTuple):
    """Something took from start_ns to end_ns, CLOCK_MONOTONIC. where: the queue that ran it, else a kind of
    work of the thread that tells: "plan", "schedule", "transfer". details: numbers about it, by their names.
    """
    name: str
    where: str
    start_ns: int
    end_ns: int
    details: dict[str, int]


class Ran(NamedTuple):
    """A submission has run, from start_ns to end_ns by the device's clock, which is given as CLOCK_MONOTONIC;
    commands: in order. Only timed queues tell it, see `timed`.
    """
    device: str
    point: int
    start_ns: int
    end_ns: int
    commands: tuple[Span, ...]


listeners: list[Callable[[object], None]] = []


def subscribe(listener: Callable[[object], None]) -> Callable[[], None]:
    """Call `listener` with each event, in the thread that caused it; call what is returned to stop."""
    listeners.append(listener)
    return lambda: listeners.remove(listener)


def emit(event: object) -> None:
    for listener in list(listeners):
        listener(event)


late: list[Callable[[], None]] = []                         # each tells what it has not told yet


def flush() -> None:
    """Let all be told that happened so far; waits for devices where that is needed."""
    for tell in list(late):
        tell()
