"""What all devices have in common, and the table of the kinds there are.

    device = open("CPU")            # one object per name, opened at first use
    for status in describe(): ...   # every kind: does it open, why not, what to do
"""
import abc
import difflib
import importlib
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tiny import config
from tiny.hcq import events, io
from tiny.hcq.errors import DeviceError, DeviceUnavailable, ForkedError
from tiny.hcq.layout import Packet
from tiny.hcq.memory import Allocator, Buffer, lend
from tiny.hcq.queue import Program, Recorder, Template
from tiny.hcq.timeline import Timeline
from tiny.target import Target
from tiny.toolchain import Source


class Device(abc.ABC):
    """An opened device; a subclass gives the parts that differ. Safe between threads.

    name       canonical: CPU, or CPU:1 for the second       target     what it can do
    io         the provider its system calls go through      allocator  its memory
    lost       why it cannot be used any more, else None
    packets    the family of packets in its queues, for whoever reads them; stream: their kind and graphics
               generation, as events.Ringing names them
    timeline   how far it has come                   clock_hz   ticks of its timestamps a second
    detail     more about it, for people; facts: numbers that the driver tells of it, by their names
    """
    name: str
    target: Target
    io: io.Provider
    allocator: Allocator
    timeline: Timeline
    clock_hz: int = 1_000_000_000
    lost: DeviceError | None = None
    detail: str = ""
    facts: Mapping[str, int] = MappingProxyType({})
    packets: type[Packet] | None = None
    stream: tuple[str, int] | None = None

    def allocate(self, nbytes: int) -> Buffer:
        """A buffer of `nbytes`, not cleared, aligned to 64 bytes. OutOfMemory if there is no room."""
        self.check_usable()
        address, block, ready = self.allocator.take(nbytes)
        return Buffer(self, address, nbytes, block, ready)

    def from_host(self, source) -> Buffer:
        """A buffer that is the memory of a bytes-like object, kept alive and not copied."""
        self.check_usable()
        return lend(self, source)

    def view(self, buffer: Buffer) -> memoryview:
        """A buffer's bytes: in place, or a read-only copy.
        The caller has waited for the commands that write it.
        """
        return self.io.view(buffer.address, buffer.size, buffer)

    def store(self, buffer: Buffer, data: memoryview) -> None:
        """Write bytes to the start of a buffer that no command uses now."""
        self.io.view(buffer.address, len(data))[:] = data

    def receive(self, source: Buffer) -> Buffer:
        """A buffer of this device with the bytes of another device's, after all that was submitted there."""
        return self.allocate(source.size).initialize(source.host())

    @abc.abstractmethod
    def compile(self, sources: Sequence[Source]) -> list[bytes]:
        """Object code for each source, from the disk cache or the compiler. CompileError for a bad one."""

    @abc.abstractmethod
    def load(self, object_code: bytes, entry: str) -> Program:
        """The function `entry` of the object code, in the device's memory;
        unmapped with the last reference.
        """

    @abc.abstractmethod
    def queue(self) -> Recorder:
        """A recorder of commands for this device."""

    @abc.abstractmethod
    def submit(self, template: Template, values: Sequence[int]) -> int:
        """See Template.submit."""

    @abc.abstractmethod
    def synchronize(self, point: int | None = None, timeout_ms: int | None = None) -> None:
        """Wait until the timeline reaches `point`, by default until everything submitted has finished.

        timeout_ms: None for TIMEOUT_MS. WaitTimeout when it passes, CommandError when a command failed.
        """

    @abc.abstractmethod
    def settle(self, point: int) -> None:
        """Wait until the commands up to `point` have finished or were dropped; their memory is free then."""

    def reset(self) -> None:
        """Drop what was submitted and has not finished,
        also a kernel that never ends; who waits gets an error.

        Buffers and programs stay. DeviceError if the device could not be brought back, or has no reset.
        """
        raise DeviceError(f"{self.name} has no reset; end this process and start again")

    def clock(self) -> tuple[int, int]:
        """(what a timestamp would be, time.monotonic_ns()), now."""
        now = time.monotonic_ns()
        return now, now

    def close(self) -> None:  # noqa: B027 - a device may have nothing to stop
        """Stop the device's threads; it must not be used any more."""

    def check_usable(self) -> None:
        """ForkedError in a child of the process that opened the device, DeviceError after a failed reset."""
        if self.lost is not None:
            raise self.lost


class QueueDevice(Device):
    """A device whose compute queue moves `timeline` on. A subclass gives the two methods that wait and drop.

    _lock  held while commands are put into rings
    """
    timeline: Timeline
    _lock: "threading.Lock | threading.RLock"

    @abc.abstractmethod
    def _wait_for_point(self, point: int, timeout_ms: int | None) -> None:
        """Wait until the timeline reaches a point that was submitted; errors as those of synchronize."""

    @abc.abstractmethod
    def _give_up(self, error: DeviceError) -> None:
        """Drop what was submitted; whoever waits for it gets `error`. The caller holds the lock."""

    def synchronize(self, point: int | None = None, timeout_ms: int | None = None) -> None:
        self.check_usable()
        value = self.timeline.submitted if point is None else point
        if self.timeline.completed < value:
            self._block(value, timeout_ms)
        elif point is None:
            return                                          # whoever waited for it got its error
        self.timeline.check(value)

    def settle(self, point: int) -> None:
        if self.timeline.completed < point:
            self._block(point, None)

    def _block(self, point: int, timeout_ms: int | None) -> None:
        last = self.timeline.submitted
        if point > last:
            raise ValueError(f"{self.name}: point {point} was never submitted, the last is {last}")
        start = time.monotonic_ns()
        self._wait_for_point(point, timeout_ms)
        if events.listeners:
            events.emit(events.Waited(self.name, "compute", point, start, time.monotonic_ns()))

    def reset(self) -> None:
        with self._lock:
            self.check_usable()
            if self.timeline.completed < self.timeline.submitted:
                self._give_up(DeviceError(f"{self.name}: the submission was dropped by reset()"))
        self.check_usable()


@dataclass(frozen=True, slots=True)
class DeviceKind:
    """A kind of device.

    device: number of the card -> Device, raising DeviceUnavailable with the way out; or where that is, as
    "module:name", so that a kind's module is loaded when a device of the kind is first opened.
    """
    name: str
    device: Callable[[int], Device] | str
    doc: str

    def open(self, number: int) -> Device:
        """The card with that number; a new Device each time."""
        if not isinstance(self.device, str):
            return self.device(number)
        module, _, name = self.device.partition(":")
        return getattr(importlib.import_module(module), name)(number)


@dataclass(frozen=True, slots=True)
class DeviceStatus:
    """A kind as `python -m tiny devices` shows it.
    reason: why it does not open, and what to do; else its facts.
    """
    name: str
    opens: bool
    reason: str
    target: Target | None = None


NOT_BUILT = {"NV": "NVIDIA cards through /dev/nvidiactl", "METAL": "Apple's GPUs"}
OTHER_NAMES = {"CUDA": "NV", "NVIDIA": "NV", "HIP": "AMD", "ROCM": "AMD", "MPS": "METAL", "CLANG": "CPU",
               "LLVM": "CPU", "GPU": "NV or AMD", "HOST": "CPU"}
_kinds: dict[str, DeviceKind] = {}
_opened: dict[str, Device] = {}
_lock = threading.Lock()
_preparations: list[Callable[[str], None]] = []


def before_opening(prepare: Callable[[str], None]) -> None:
    """Call `prepare` with a kind's name before a device of it is opened; it may install a provider in `io`.
    """
    _preparations.append(prepare)


def register(kind: DeviceKind) -> None:
    """Add a kind of device to those that `open` knows."""
    _kinds[kind.name] = kind
    NOT_BUILT.pop(kind.name, None)


def canonical(name: str | None = None) -> str:
    """The one spelling of a device's name, by default of the selected device: CPU, AMD:1.

    DeviceUnavailable, with what there is and the nearest name, if no such kind is known or built; TypeError
    for what is no name.
    """
    asked = config.current().device_name if name is None else name
    if not isinstance(asked, str):
        raise TypeError(f"a device is named by a string such as 'CPU' or 'AMD:1', not by {asked!r}")
    kind, _, rest = asked.strip().upper().partition(":")
    if kind not in _kinds:
        raise DeviceUnavailable(_unknown(asked, kind))
    if rest and not re.fullmatch(r"\d+|[A-Z]+_?\d\w*", rest):
        raise DeviceUnavailable(f"device {asked}: behind the colon stands the card's number or architecture: "
                                "AMD:1, AMD:gfx1201")
    return kind if not rest.isdigit() or int(rest) == 0 else f"{kind}:{int(rest)}"


def _unknown(asked: str, kind: str) -> str:
    here = f"available here: {', '.join(_kinds)}"
    if kind in NOT_BUILT:
        return f"device {asked}: {NOT_BUILT[kind]} are not built yet; {here}"
    close = OTHER_NAMES.get(kind) or next(iter(difflib.get_close_matches(kind, [*_kinds, *NOT_BUILT,
                                                                                *OTHER_NAMES], n=1)), None)
    close = OTHER_NAMES.get(close, close)
    hint = f"; did you mean {close}?" if close else ""
    return f"unknown device {asked}; {here}; not built yet: {', '.join(NOT_BUILT)}{hint}"


def open(name: str | None = None) -> Device:
    """The device of that name, by default the selected one; the same object each time.

    DeviceUnavailable if it is unknown, not built or does not open; ForkedError in a child of who opened it.
    """
    key = canonical(name)
    device = _opened.get(key)
    if device is None:
        with _lock:
            device = _opened.get(key)
            if device is None:
                kind, _, number = key.partition(":")
                for prepare in _preparations:
                    prepare(kind)
                device = _opened[key] = _kinds[kind].open(int(number or 0))
                if events.listeners:
                    tell_opened(device)
    device.check_usable()
    return device


def tell_opened(device: Device) -> None:
    """Tell listeners of a device that is open."""
    events.emit(events.Opened(device.name, device.target.arch, device.target.compiler, device.detail,
                              dict(device.facts)))


def opened() -> list[Device]:
    """The devices that are open."""
    return list(_opened.values())


def describe() -> list[DeviceStatus]:
    """Every kind, built or not, after trying to open it."""
    found = []
    for kind in _kinds.values():
        try:
            opened = open(kind.name)
            target = opened.target
            text = ", ".join(filter(None, (f"{kind.doc}: {target.arch}", opened.detail,
                                           f"{target.threads} threads", target.compiler)))
            found.append(DeviceStatus(kind.name, True, text, target))
        except (DeviceError, RuntimeError, OSError) as error:
            found.append(DeviceStatus(kind.name, False, str(error)))
    found += [DeviceStatus(name, False, f"{what} are not built yet") for name, what in NOT_BUILT.items()]
    return found


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()
    for name, device in _opened.items():
        device.lost = ForkedError(f"{name}: the device was opened before this process was forked, and its "
                                  "queues stay with the parent; start children with the `spawn` method, or "
                                  "use the device only after forking")


os.register_at_fork(after_in_child=_after_fork_in_child)
