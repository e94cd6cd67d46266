"""Time kernels in a process of its own, where a crash or a kernel that never ends costs one candidate.

The parent sends a `Job` for each kernel through the child's standard input and reads seconds, or why there
are none, from its standard output; both are length-prefixed pickles.
"""
import atexit
import contextlib
import os
import pickle
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tiny import config
from tiny.hcq import device as devices
from tiny.realize import observe

FEW, MANY = 3, 50            # repeats of a measurement
ENOUGH_S = 0.05              # spent on one kernel, launches included
FIRST_S = 60                 # limit of a kernel's first launch: the device is opened, an emulator translates
LIMIT_S = 10                 # of the launches after it. A kernel beyond a limit is hung, its child is ended
TOO_SLOW = 3.0               # times the best so far: measured twice, no more
SHORT_S = 200e-6             # kernels shorter than this are measured several in one submission

QUIET = {"DEBUG": 0, "BEAM": 0, "TRACE": "", "PROFILE": ""}   # settings of the child

_length = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class Job:
    """A kernel to time. sizes: bytes of each pointer's memory; floats: which of them hold floats.

    best_s: the fastest so far, so that no time is lost on what is much slower.
    """
    object_code: bytes
    name: str
    threads: int
    sizes: tuple[int, ...]
    floats: tuple[bool, ...]
    variables: tuple[int, ...]
    groups: int
    best_s: float = float("inf")


class Worker:
    """A child process that measures on one device; started when it is first asked, and again after a hang.
    """
    def __init__(self, device: str, first_s: float = FIRST_S, limit_s: float = LIMIT_S):
        self._device, self._limits_s = device, (first_s, limit_s)
        self._process: subprocess.Popen | None = None
        atexit.register(self.close)

    def measure(self, job: Job) -> float:
        """Seconds of one launch, the least of several; infinite if the kernel crashes, hangs or is refused.
        """
        try:
            if self._process is None:
                self._start()
            _send(self._process.stdin.fileno(), job)
            return min([_receive(self._process.stdout.fileno(), limit_s) for limit_s in self._limits_s])
        except (OSError, EOFError, TimeoutError):
            self.close()
            return float("inf")

    def close(self) -> None:
        """End the child."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> None:
        command = [sys.executable, "-c", "from tiny.realize.measure import main; main()"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.DEVNULL)
        settings = {name.upper(): getattr(config.current(), name) for name in config.Config.__slots__}
        _send(self._process.stdin.fileno(), (self._device, settings | QUIET))


def _send(fd: int, thing) -> None:
    data = pickle.dumps(thing)
    view = memoryview(_length.pack(len(data)) + data)
    while view:
        view = view[os.write(fd, view):]


def _receive(fd: int, limit_s: float | None = None):
    """The next thing from a pipe. EOFError when the other side is gone, TimeoutError when it takes longer."""
    end = None if limit_s is None else time.monotonic() + limit_s
    size, = _length.unpack(_read(fd, _length.size, end))
    return pickle.loads(_read(fd, size, end))


def _read(fd: int, size: int, end: float | None) -> bytes:
    data = b""
    while len(data) < size:
        if end is not None and not select.select([fd], [], [], max(end - time.monotonic(), 0))[0]:
            raise TimeoutError
        piece = os.read(fd, size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


# -- in the child --------------------------------------------------------------------------------------------
def main() -> None:
    """Answer jobs until the parent is gone."""
    observe.forgo()
    jobs, answers = os.dup(0), os.dup(1)
    os.dup2(2, 1)                                           # whatever prints must not get into the answers
    with contextlib.suppress(EOFError, BrokenPipeError):
        name, settings = _receive(jobs)
        with config.Context(**settings):
            device = devices.open(name)
            while True:
                for seconds in _times(device, _receive(jobs)):
                    _send(answers, seconds)


def _times(device: devices.Device, job: Job) -> Iterator[float]:
    """Seconds of a kernel's first launch, then the least of those after it; it has memory of its own."""
    program = device.load(job.object_code, job.name, *(() if job.threads == 1 else (job.threads,)))
    buffers = [device.allocate(size) for size in job.sizes]
    for buffer, is_float in zip(buffers, job.floats, strict=True):
        buffer.copyin((b"\x3c" if is_float else b"\0") * buffer.size)       # about 0.01 in any float type
    arguments = [*(buffer.address for buffer in buffers), *job.variables]
    once = _launches(device, program, arguments, job.groups, 1)
    yield once()
    again = once()
    if again <= TOO_SLOW * job.best_s:
        count = max(1, min(20, int(SHORT_S / max(again, 1e-6))))
        several = _launches(device, program, arguments, job.groups, count) if count > 1 else once
        repeats = max(FEW, min(MANY, int(ENOUGH_S / max(again * count, 1e-6))))
        again = min(several() for _ in range(repeats)) / count
    yield again


def _launches(device: devices.Device, program, arguments: Sequence[int], groups: int, count: int):
    """A function that launches a kernel `count` times in one submission and says how long that took."""
    queue = device.queue()
    for _ in range(count):
        queue.execute(program, arguments, groups)
    template = queue.finish()

    def run() -> float:
        start = time.perf_counter()
        device.synchronize(template.submit([]))
        return time.perf_counter() - start
    return run
