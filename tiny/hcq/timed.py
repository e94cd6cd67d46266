"""Queues that note when each of their commands ran, by the device's own clock: for profiles.

    queue = TimedQueue(device.queue())
    queue.execute(program, [buffer.address], 16)
    template = queue.finish()                # used like any template
    template.submit()                        # later an events.Ran tells when the kernel ran
    events.flush()                           # or at once: waits for what was submitted

Between the commands stand timestamps, whose memory each submission has for itself: the clock is read when all
before has finished, so commands of one queue that could overlap do not.
"""
import atexit
import mmap
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tiny.hcq import events
from tiny.hcq.errors import DeviceError
from tiny.hcq.memory import Buffer
from tiny.hcq.queue import Program, Recorder, Slot, Template

STAMP_BYTES = 8
CLOCK_AGE_NS = 1_000_000_000                                # how long a reading of both clocks serves

Details = Callable[[object], dict[str, int]]                # what submit was told -> numbers of a command


class _Command(NamedTuple):
    """What lies between two timestamps. queue: that does it, "compute" or "copy"."""
    name: str
    queue: str
    details: Details | None


class _Flight(NamedTuple):
    """A submission whose times are not told yet."""
    template: "TimedTemplate"
    point: int
    area: "_Area"
    about: object


class _Area:
    """Host memory that a device writes timestamps to. The pages are this object's alone."""

    def __init__(self, device, size: int):
        self.pages = mmap.mmap(-1, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
        self.buffer: Buffer = device.from_host(self.pages)
        self.stamps = memoryview(self.pages).cast("Q")


class _Clock(NamedTuple):
    """One moment by both clocks: ticks of the device's, CLOCK_MONOTONIC in ns."""
    ticks: int
    ns: int


_flights: deque[_Flight] = deque()
_clocks: "weakref.WeakKeyDictionary[object, _Clock]" = weakref.WeakKeyDictionary()
_lock = threading.RLock()


class TimedQueue:
    """A recorder with timestamps between its commands. Slots of `queue` are counted from 1: 0 is the stamps'.
    """
    timed = True

    def __init__(self, queue: Recorder):
        self._queue, self._commands = queue, []
        self._stamp()

    def _stamp(self) -> None:
        self._queue.timestamp(Slot(0, STAMP_BYTES * len(self._commands)))

    def _note(self, name: str, queue: str = "compute", details: Details | None = None) -> None:
        self._commands.append(_Command(name, queue, details))
        self._stamp()

    def execute(self, program: Program, arguments: Sequence[int | Slot], groups: int | Slot = 1,
                details: Details | None = None, **options) -> None:
        """As the device's. details: gives numbers for the profile from what `submit` is told."""
        self._queue.execute(program, [*map(_behind, arguments)], _behind(groups), **options)
        self._note(program.name, details=details)

    def copy(self, destination: int | Slot, source: int | Slot, nbytes: int | Slot) -> None:
        """As the device's."""
        self._queue.copy(_behind(destination), _behind(source), _behind(nbytes))
        size = None if type(nbytes) is Slot else {"bytes": nbytes}
        self._note("copy", "copy", size and (lambda _: size))

    def signal(self, address: int | Slot, value: int | Slot) -> None:
        """As the device's."""
        self._queue.signal(_behind(address), _behind(value))
        self._note("signal")

    def wait(self, address: int | Slot, value: int | Slot) -> None:
        """As the device's."""
        self._queue.wait(_behind(address), _behind(value))
        self._note("wait")

    def timestamp(self, address: int | Slot) -> None:
        """As the device's."""
        self._queue.timestamp(_behind(address))

    def barrier(self) -> None:
        """As the device's."""
        self._queue.barrier()

    def finish(self) -> "TimedTemplate":
        """What was recorded, ready to submit."""
        atexit.unregister(_bring_all)
        atexit.register(_bring_all)                         # runs before the close of any device so far
        return TimedTemplate(self._queue.finish(), self._commands)


def _behind(value: int | Slot) -> int | Slot:
    return Slot(value.number + 1, value.offset) if type(value) is Slot else value


class TimedTemplate:
    """A template whose submissions tell when their commands ran. May be submitted from several threads."""
    timed = True

    def __init__(self, template: Template, commands: list[_Command]):
        self.template, self.commands, self.device = template, commands, template.device
        self._free: list[_Area] = []                        # that no submission uses

    @property
    def slot_count(self) -> int:
        """How many values `submit` needs."""
        return max(self.template.slot_count - 1, 0)

    @property
    def programs(self) -> list[Program]:
        """Those that the commands name."""
        return self.template.programs

    def packets(self):
        """The commands, with the values submitted last."""
        return self.template.packets()

    def streams(self):
        """See Template.streams."""
        return self.template.streams()

    def submit(self, values: Sequence[int] = (), about: object = None) -> int:
        """See Template.submit. about: goes to the details of the commands."""
        with _lock:
            _bring(wait=False)
            size = STAMP_BYTES * (len(self.commands) + 1)
            area = self._free.pop() if self._free else _Area(self.device, size)
            area.pages[:size] = bytes(size)
            point = self.template.submit([area.buffer.address, *values])
            _flights.append(_Flight(self, point, area, about))
        return point

    def give_back(self, area: _Area) -> None:
        """Use it again in a later submission. The caller holds the lock."""
        self._free.append(area)


def _bring(wait: bool) -> None:
    """Tell the times of submissions that have finished. wait: for all others too. Holds the lock.

    What failed, or did not end in TIMEOUT_MS, has no times; whoever waits for it gets the error.
    """
    failed = set()
    for _ in range(len(_flights)):
        flight = _flights.popleft()
        device = flight.template.device
        if wait and device not in failed:
            try:
                device.synchronize(flight.point)
            except DeviceError:
                failed.add(device)
        if device.timeline.completed >= flight.point:
            _tell(flight)
            flight.template.give_back(flight.area)
        elif not wait:
            _flights.append(flight)


def _tell(flight: _Flight) -> None:
    device, commands = flight.template.device, flight.template.commands
    ticks = flight.area.stamps[:len(commands) + 1].tolist()
    if not events.listeners or 0 in ticks:                  # a submission that was dropped wrote no times
        return
    clock = _clock(device)
    times = [clock.ns + (tick - clock.ticks) * 1_000_000_000 // device.clock_hz for tick in ticks]
    spans = [events.Span(command.name, command.queue, start, end,
                         command.details(flight.about) if command.details else {})
             for command, start, end in zip(commands, times, times[1:], strict=False)]
    events.emit(events.Ran(device.name, flight.point, times[0], times[-1], tuple(spans)))


def _clock(device) -> _Clock:
    known = _clocks.get(device)
    if known is None or time.monotonic_ns() - known.ns > CLOCK_AGE_NS:
        known = _clocks[device] = _Clock(*device.clock())
    return known


def _bring_all() -> None:
    with _lock:
        _bring(wait=True)


events.late.append(_bring_all)
