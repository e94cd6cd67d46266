"""The CPU as a device of a GPU's shape: a ring of commands, read by native threads."""
import atexit
import os
import signal
import threading
import time
import weakref
from collections.abc import Sequence

from tiny import config
from tiny.hcq import events, io
from tiny.hcq.cpu import host
from tiny.hcq.cpu.engine import RING_BYTES, Engine, ErrorCode, WaitResult
from tiny.hcq.cpu.loader import MACHINES, Image
from tiny.hcq.cpu.packets import Command, Execute, ProgramRecord, c_header
from tiny.hcq.cpu.recorder import CpuRecorder
from tiny.hcq.device import QueueDevice
from tiny.hcq.errors import CommandError, DeviceError, DeviceUnavailable, KernelFault, WaitTimeout
from tiny.hcq.memory import Allocator
from tiny.hcq.queue import Program, Template
from tiny.hcq.timeline import Timeline
from tiny.target import Target
from tiny.toolchain import Cache, Source, compile_objects, find_compiler

SLICE_NS = 50_000_000                                       # how often a waiting thread looks for Ctrl-C
LONGEST_TEXT = 160                                          # of a command in an error
LARGEST_PIECE = RING_BYTES // 2
WORKER_PREAMBLE = "typedef unsigned int u32; typedef unsigned long long u64;\n"


class CpuDevice(QueueDevice):
    """One ring, one timeline, worker threads for every core. See Device for the methods."""
    packets = Command
    stream = "cpu", 0

    def __init__(self, number: int = 0):
        settings = config.current()
        self.name = f"CPU:{number}" if number else "CPU"
        self.io = io.installed()
        arch = host.architecture()
        if arch not in MACHINES:
            raise DeviceUnavailable(f"CPU: {arch} is not supported; there is {' and '.join(MACHINES)}")
        self._machine = MACHINES[arch]
        features = host.features(host.read_cpuinfo(), arch)
        if any(name.startswith("amx") for name in features) and not host.request_amx():
            features = frozenset(name for name in features if not name.startswith("amx"))
        self._cache = Cache(settings.cache_folder) if settings.cache_folder else None
        self._compiler = find_compiler(settings.cc, self._cache)
        self._flags = host.flags(arch, features)
        self._processes = settings.parallel or settings.core_count
        threads = settings.threads or settings.core_count
        self.target = Target("CPU", arch, "c", host.vector_bytes(arch, features), threads, features=features,
                             compiler=str(self._compiler), cache_bytes=host.cache_bytes())
        self._images: weakref.WeakValueDictionary[bytes, Image] = weakref.WeakValueDictionary()
        self._programs: weakref.WeakValueDictionary[int, Program] = weakref.WeakValueDictionary()
        self._lock = threading.Lock()                       # held while commands are put into the ring
        worker = Source("worker", worker_source(), WORKER_PREAMBLE)
        self._engine = Engine(self._image(self.compile([worker])[0]), threads, self.io)
        timeline = self.timeline = Timeline(f"{self.name} compute", self._engine.completed_address, self.io)
        self.allocator = Allocator(self.name, self._map, self.io.munmap, lambda: timeline.submitted,
                                   lambda: timeline.completed, settings.memory_limit)
        atexit.register(self.close)

    # -- programs --------------------------------------------------------------------------------------
    def compile(self, sources: Sequence[Source]) -> list[bytes]:
        start = time.perf_counter()
        missing: list[Source] = []
        objects = compile_objects(sources, self._compiler, self._flags, self._cache, self._processes,
                                  missing.extend)
        if events.listeners:
            names, compiled = (tuple(source.name for source in some) for some in (sources, missing))
            events.emit(events.Compiled(self.name, names, compiled, time.perf_counter() - start))
        return objects

    def load(self, object_code: bytes, entry: str) -> Program:
        image = self._image(object_code)
        record = self.allocate(ProgramRecord.size_bytes)
        record.initialize(bytes(ProgramRecord(entry=image.symbol(entry))))
        program = Program(entry, record.address, self, (image, record))
        self._programs[record.address] = program
        if events.listeners:
            events.emit(events.Loaded(self.name, entry, image.address, image.size, object_code))
        return program

    def _image(self, object_code: bytes) -> Image:
        image = self._images.get(object_code)
        if image is None:
            image = self._images[object_code] = Image(object_code, self._machine, self.io)
        return image

    def _map(self, size: int) -> int:
        """Pages for the allocator; large ones start on a huge page and ask for huge pages."""
        if size < 2 * io.HUGE_PAGE:
            return self.io.mmap(size)
        address = self.io.mmap_aligned(size, io.HUGE_PAGE)
        self.io.advise_huge_pages(address, size)
        return address

    # -- commands --------------------------------------------------------------------------------------
    def queue(self) -> CpuRecorder:
        self.check_usable()
        return CpuRecorder(self, self.timeline.address)

    def submit(self, template: Template, values: Sequence[int] = ()) -> int:
        engine = self._engine
        with self._lock:
            self.check_usable()
            if engine.failed:
                self._raise_failure()
            template.fill(values)
            point = self.timeline.submitted + 1
            template.words[-1] = point                      # Signal.value, the last word of every template
            size = len(template.image)
            if size <= engine.room():
                if events.listeners:
                    self._tell(template.image, template.programs)
                engine.put(template.image, template.urgent)
            else:
                self._put_in_pieces(template)
            self.timeline.submitted = point
            commands = bytes(template.image) if events.listeners else b""
        if commands:
            events.emit(events.Submitted(self.name, "compute", commands, point, time.monotonic_ns()))
        return point

    def _put_in_pieces(self, template: Template) -> None:
        """Put a template into a ring that has no room for it yet, whole packets at a time. Holds the lock."""
        image, start = memoryview(template.image), 0
        ends = [*template.starts[1:], len(image)]
        for end, following in zip(ends, [*ends[1:], None], strict=True):
            if following is not None and following - start <= LARGEST_PIECE:
                continue
            position = self._engine.position_with_room(end - start)
            point = self.timeline.submitted
            if self._wait_for(self._engine.consumed_address, position, point) == WaitResult.ERROR:
                self._raise_failure()
            if events.listeners:
                self._tell(image[start:end], template.programs)
            self._engine.put(image[start:end], True)
            start = end

    def _tell(self, commands, programs: Sequence[Program]) -> None:
        """Tell who listens of commands that are about to be put."""
        at, end = self._engine.written % RING_BYTES, self._engine.written + len(commands)
        events.emit(events.Ringing(self.name, "compute", *self.stream, at, bytes(commands), end, programs))

    # -- waiting ---------------------------------------------------------------------------------------
    def _wait_for_point(self, point: int, timeout_ms: int | None) -> None:
        while self._wait_for(self.timeline.address, point, point, timeout_ms) == WaitResult.ERROR:
            with self._lock:
                if self._engine.failed:                     # else another thread has dealt with it
                    self._raise_failure()

    def _wait_for(self, address: int, value: int, point: int, timeout_ms: int | None = None) -> WaitResult:
        """REACHED when the 64-bit word is at least `value`, or ERROR. Looks for Ctrl-C from time to time.

        WaitTimeout, which names `point`, when the time has passed.
        """
        limit_ns = (config.current().timeout_ms if timeout_ms is None else timeout_ms) * 1_000_000
        end = time.monotonic_ns() + limit_ns
        left = limit_ns
        while True:
            result = self._engine.wait(address, value, min(left, SLICE_NS))
            if result != WaitResult.TIME_PASSED:
                return result
            left = end - time.monotonic_ns()
            if left <= 0:
                raise self._timeout(point, limit_ns)

    # -- what went wrong -------------------------------------------------------------------------------
    def _kernel_name(self, command) -> str | None:
        if type(command) is not Execute:
            return None
        program = self._programs.get(command.program)
        return program.name if program is not None else None

    def _timeout(self, point: int, limit_ns: int) -> WaitTimeout:
        state = self._engine.snapshot()
        command = self._engine.command_at(state.consumed)
        kernel = self._kernel_name(command)
        short = _shorten(command)
        doing = f"in kernel {kernel}, command {short}" if kernel else f"at command {short}"
        text = (f"{self.name}: the compute queue did not reach point {point} in {limit_ns // 1_000_000} ms; "
                f"its signal is {state.completed} and it is {doing}. Raise TIMEOUT_MS if that is only slow; "
                "if it never ends, find its loop with CHECK=1 and its submission with JIT=2; "
                "reset() of the device drops it")
        return WaitTimeout(text, self.timeline.name, str(command), kernel, state.completed, point)

    def _raise_failure(self) -> None:
        """Turn the engine's error into an exception, drop the commands that depend on it, and go on."""
        state = self._engine.snapshot()
        command = self._engine.command_at(state.error_at)
        kernel = self._kernel_name(command)
        queue = self.timeline.name
        if state.error == ErrorCode.KERNEL_FAULT:
            details = (state.fault_0, state.fault_1, state.fault_2)
            text = (f"{queue}: kernel {kernel} reported code {state.fault_code}, details {details}; it "
                    "and the submissions behind it were dropped")
            error = KernelFault(text, queue, str(command), kernel, state.fault_code, details)
        elif state.error == ErrorCode.CRASHED:
            name = signal.Signals(state.fault_0).name
            text = (f"{queue}: kernel {kernel} crashed with {name} at address {state.fault_1:#x}, in command "
                    f"{_shorten(command)}; look for an index out of bounds with CHECK=1")
            error = CommandError(text, queue, str(command), kernel)
        else:
            text = (f"{queue}: the ring holds no known command at {state.error_at:#x}; a kernel or the "
                    "program wrote over it: look for an index out of bounds with CHECK=1")
            error = CommandError(text, queue, str(command), kernel)
        self._give_up(error)
        raise error

    def _give_up(self, error: DeviceError) -> None:
        self.timeline.drop(error)
        if not self._engine.abort(self.timeline.submitted):
            self.lost = DeviceError(f"{self.name}: a thread does not come back from its command, and the "
                                    f"device is of no use any more; start the process again ({error})")

    @property
    def fault_address(self) -> int:
        """Where a kernel in checked mode writes its code, not 0, and three details, 64 bits each."""
        return self._engine.fault_address

    def close(self) -> None:
        atexit.unregister(self.close)
        if self.name and os.getpid() == self._engine.pid:
            self._engine.stop()


def worker_source() -> str:
    """The C source of the command processor, with the declarations of the packets in front."""
    folder, parts = os.path.dirname(__file__), [c_header()]
    for name in ("worker.c", "recovery.c", "threads.c"):
        with open(os.path.join(folder, name)) as file:
            parts.append(f'#line 1 "{name}"\n{file.read()}')
    return "\n".join(parts)


def _shorten(command: Command | None) -> str:
    text = "none, the ring is empty" if command is None else str(command)
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "...)"
