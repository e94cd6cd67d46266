"""TRACE=FILE: what goes to devices, one record a line, as docs/trace.md describes it.

    with recording("run.trace"):
        ...                                  # every open, ioctl, mapping, packet and doorbell is in the file

The recorder stands in front of hcq's provider, which makes the system calls, and listens to hcq's events,
which tell what lies in a ring when a doorbell is rung. Each record is written at once: what a process did
before it was killed is in the file, and nothing is kept in memory.
"""
import contextlib
import errno
import hashlib
import os
import platform
from collections.abc import Callable, Iterator
from importlib import metadata

from tiny.hcq import events, io
from tiny.trace import ioctls
from tiny.trace.output import Output
from tiny.trace.packets import Decoder, named
from tiny.trace.reach import Reach

FORMAT = 1
OPEN_FLAGS = {os.O_WRONLY: "WRONLY", os.O_RDWR: "RDWR", os.O_CREAT: "CREAT", os.O_TRUNC: "TRUNC",
              os.O_NONBLOCK: "NONBLOCK", os.O_CLOEXEC: "CLOEXEC"}
PROTECTIONS = {io.READ: "READ", io.WRITE: "WRITE", io.EXECUTE: "EXECUTE"}
MAP_FLAGS = {io.SHARED: "SHARED", io.PRIVATE: "PRIVATE", io.FIXED: "FIXED", io.ANONYMOUS: "ANONYMOUS",
             0x4000: "NORESERVE"}                           # mman.h


def header() -> list[str]:
    """The first lines of a file: what it is, and what it was made with."""
    system = platform.uname()
    return [f"# tiny trace {FORMAT}",
            f"# tiny {metadata.version('tiny')}, Python {platform.python_version()}",
            f"# {system.system} {system.release} {system.machine}, which holds the drivers of AMD cards"]


def start(path: str) -> Callable[[], None]:
    """Record into the file from now on, in place of what it held; call what is returned to end it.

    ConfigError if it cannot be written. If another process records there, it is `path` with the number of
    this process behind it.
    """
    recorder = Recorder(Output(path, "TRACE", header()))
    undo = io.watch(recorder), events.subscribe(recorder.heard)

    def stop() -> None:
        for each in undo:
            each()
        recorder.file.close()
    return stop


@contextlib.contextmanager
def recording(path: str) -> Iterator[None]:
    """Record what happens inside a block; see `start`."""
    stop = start(path)
    try:
        yield
    finally:
        stop()


class Recorder:
    """Sees the calls of providers (`io.watch`) and hcq's events, and writes them down."""

    def __init__(self, file: Output):
        self.file = file
        self._reach = Reach()

    # -- calls of a provider, see io.watch ---------------------------------------------------------------
    def open(self, call: Callable, path: str, flags: int = os.O_RDWR) -> int:
        return self._called(f'open "{path}" flags={_bits(flags, OPEN_FLAGS, "RDONLY")}',
                            lambda: call(path, flags), lambda fd: f"fd={fd}")

    def close(self, call: Callable, fd: int) -> None:
        self._called(f"close fd={fd}", lambda: call(fd))

    def ioctl(self, call: Callable, fd: int, request: int, argument: bytearray) -> None:
        name, before = ioctls.call_text(request, argument, self._reach.read)

        def changed(_) -> str:
            _, after = ioctls.call_text(request, argument, self._reach.read)
            return _fields({field: text for field, text in after.items() if text != before[field]})
        self._called(f"ioctl fd={fd} {name} {_fields(before)}", lambda: call(fd, request, argument), changed)

    def mmap(self, call: Callable, size: int, protection: int = io.READ | io.WRITE,
             flags: int = io.PRIVATE | io.ANONYMOUS, fd: int = -1, offset: int = 0, address: int = 0) -> int:
        text = f"mmap size={size:#x} {_mapping(protection, flags)}"
        text += f" fd={fd} offset={offset:#x}" if fd >= 0 else ""
        text += f" at={address:#x}" if address else ""
        return self._called(text, lambda: call(size, protection, flags, fd, offset, address),
                            lambda place: f"address={place:#x}")

    def mmap_aligned(self, call: Callable, size: int, alignment: int, protection: int = io.READ | io.WRITE,
                     flags: int = io.PRIVATE | io.ANONYMOUS) -> int:
        return self._called(f"mmap size={size:#x} {_mapping(protection, flags)} alignment={alignment:#x}",
                            lambda: call(size, alignment, protection, flags),
                            lambda place: f"address={place:#x}")

    def munmap(self, call: Callable, address: int, size: int) -> None:
        self._reach.forget()
        self._called(f"munmap address={address:#x} size={size:#x}", lambda: call(address, size))

    def protect(self, call: Callable, address: int, size: int, protection: int) -> None:
        self._reach.forget()
        self._called(f"protect address={address:#x} size={size:#x} "
                     f"protection={_bits(protection, PROTECTIONS)}", lambda: call(address, size, protection))

    def doorbell(self, call: Callable, ring: Callable[[int], None], position: int) -> None:
        """Its record comes from an event, which knows the queue; what an emulator does here is not seen."""
        call(ring, position)

    def _called(self, text: str, call: Callable, result: Callable[[object], str] | None = None):
        """Make a call and write it down, with what it gave or how it failed."""
        try:
            given = call()
        except OSError as error:
            self.file.write([f"{text} -> {errno.errorcode.get(error.errno, error.errno)}"])
            raise
        except BaseException as error:
            self.file.write([f"{text} -> {type(error).__name__}"])
            raise
        self.file.write([text if result is None else f"{text} -> {result(given)}"])
        return given

    # -- events of hcq -----------------------------------------------------------------------------------
    def heard(self, event: object) -> None:
        """Write down the events that are records: devices, programs, what a doorbell tells, failures."""
        if isinstance(event, events.Ringing):
            decoder = Decoder(self._reach.read, named(event.programs))
            lines = [f"packet {event.device} {event.queue} {line}"
                     for line in decoder.lines(event.kind, event.gfx, event.commands, event.at)]
            self.file.write([*lines, f"doorbell {event.device} {event.queue} value={event.value:#x}"])
        elif isinstance(event, events.Loaded):
            self.file.write([f"program {event.device} {event.name} address={event.address:#x} "
                             f"size={event.size:#x} code={_digest(event.object_code)}"])
        elif isinstance(event, events.Failed):
            self.file.write([f"failed {event.queue} {' '.join(event.text.split())}"])
        elif isinstance(event, events.Opened):
            facts = "".join(f" {name}={value}" for name, value in event.facts.items())
            self.file.write([f'device {event.device} arch={event.arch} compiler="{event.compiler}" '
                             f'detail="{event.detail}"{facts}'])


def _bits(value: int, names: dict[int, str], nothing: str = "NONE") -> str:
    """Flags by their names."""
    found = [name for bit, name in names.items() if bit and value & bit == bit]
    rest = value & ~sum(bit for bit in names if value & bit == bit)
    return "|".join([*found, *([hex(rest)] if rest else [])]) or nothing


def _digest(code: bytes) -> str:
    """What tells object code from other code: the beginning of its SHA-256."""
    return f"sha256:{hashlib.sha256(code).hexdigest()[:16]}"


def _mapping(protection: int, flags: int) -> str:
    return f"protection={_bits(protection, PROTECTIONS)} flags={_bits(flags, MAP_FLAGS)}"


def _fields(fields: dict[str, str]) -> str:
    return "{" + ", ".join(f"{name}={text}" for name, text in fields.items()) + "}"
