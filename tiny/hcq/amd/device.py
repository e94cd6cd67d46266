"""AMD cards as devices: opened through /dev/kfd, programs, memory, and what is submitted to their queues."""
import atexit
import contextlib
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence

from tiny import config
from tiny.hcq import events, io
from tiny.hcq.amd import compiler, topology
from tiny.hcq.amd.failures import Failures
from tiny.hcq.amd.generation import generation_of
from tiny.hcq.amd.interrupts import Fault, Interrupts
from tiny.hcq.amd.kfd import KfdError
from tiny.hcq.amd.memory import HOST, CardMemory, address_space
from tiny.hcq.amd.pinned import PinnedMemory
from tiny.hcq.amd.program import CODE_ALIGNMENT, AmdProgram, CodeImage
from tiny.hcq.amd.queues import CopyQueue
from tiny.hcq.amd.recorder import AmdRecorder, AmdTemplate, Instance
from tiny.hcq.amd.transfers import Transfers
from tiny.hcq.device import QueueDevice
from tiny.hcq.errors import DeviceError
from tiny.hcq.memory import Allocator, Buffer
from tiny.target import Target
from tiny.toolchain import Cache, CompileError, Source, compile_objects, find_compiler

CLOCK_HZ = 100_000_000              # of timestamps: DRM's gpu_counter_freq of these cards, amdgpu_drm.h
SPIN_NS = 200_000                                           # before a waiting thread sleeps
SLICE_MS = 50                                               # of sleep, so that Ctrl-C is seen
MOST_INSTANCES = 16                                         # submissions of one template in flight
MOST_ARGUMENTS = 256
SCRATCH_ALIGNMENT = 256                                     # COMPUTE_DISPATCH_SCRATCH_BASE counts in it
PROBE_MS = 1000
PRIVATE_FACTS = ("unique_id", "hive_id")                    # they tell one card from another of its kind
COPY_MASK = (1 << 32) - 1                                   # fences write 32 bits


class AmdDevice(QueueDevice):
    """One card: a compute queue, a copy queue, one timeline. See Device for the methods.

    card        what the topology says         generation  packets and registers of its kind
    compute, copies  its queues                clock_hz    ticks of a timestamp a second
    """
    clock_hz = CLOCK_HZ

    def __init__(self, number: int = 0):
        settings = config.current()
        self.name = f"AMD:{number}" if number else "AMD"
        self.io = io.installed()
        cards = topology.find_cards(self.io, settings.visible_devices)
        self.card = topology.pick(cards, number)
        self.generation = generation_of(self.card)
        self._cache = Cache(settings.cache_folder) if settings.cache_folder else None
        self._compiler = find_compiler(settings.cc, self._cache)
        self._flags = compiler.flags(self.card.arch, self._compiler)
        self._processes = settings.parallel or settings.core_count
        self.target = Target("AMD", self.card.arch, "amdgcn", lanes=self.card.wave_size,
                             threads=self.card.compute_units * self.card.xccs, work_items=1024,
                             local_bytes=self.card.local_bytes, max_buffers=MOST_ARGUMENTS,
                             compiler=str(self._compiler))
        others = f"one of the cards {topology.listed(cards)}" if len(cards) > 1 else ""
        memory = f"{self.card.vram >> 30} GiB"
        self.detail = ", ".join(filter(None, (f"{self.io.about} {memory}".strip(), others)))
        self.packets = self.generation.packets
        self.facts = {name: value for name, value in self.card.properties.items()
                      if name not in PRIVATE_FACTS}
        self._pid = os.getpid()
        self._lock = threading.RLock()                      # held while commands are put into rings
        self._images: weakref.WeakValueDictionary[bytes, _Image] = weakref.WeakValueDictionary()
        self._scratch: tuple[int, Buffer, int] | None = None
        self._open(settings.memory_limit)
        self._failures = Failures(self)
        atexit.register(self.close)

    def _open(self, memory_limit: int) -> None:
        """Memory, events and queues, in the order that the driver needs; all given back if one fails."""
        self.memory = CardMemory(address_space(self.io), self.card)
        with contextlib.ExitStack() as undo:
            undo.callback(self.memory.close)
            self.interrupts = Interrupts(self.memory)
            undo.callback(self.interrupts.close)
            self.compute = self.generation.compute_queue(self.memory, self.generation, self.name,
                                                         self.interrupts)
            undo.callback(self.compute.close)
            self.copies = CopyQueue(self.memory, self.generation, self.name)
            undo.callback(self.copies.close)
            self._start(memory_limit)
            self._undo = undo.pop_all()

    def _start(self, memory_limit: int) -> None:
        timeline = self.timeline = self.compute.timeline
        self._copies_address = self.memory.allocate(topology.PAGE, HOST).address
        self._copies_done = self.io.view(self._copies_address, 8).cast("Q")
        self._copy_count = 0                                # copies of `_transfers` ever put
        self._interrupt_point = 0                           # an interrupt follows this point
        self._flying: deque[tuple[int, int, AmdTemplate]] = deque()    # point, end in the ring, what
        ends = (lambda: timeline.submitted, lambda: timeline.completed)
        self.allocator = Allocator(self.name, self.memory.video_pages, self.memory.free_at, *ends,
                                   memory_limit)
        self.command_memory = Allocator(f"{self.name} commands", self.memory.host_pages, self.memory.free_at,
                                        *ends)
        self._transfers = Transfers(self.memory, self._put_copy, self._wait_for_copy)

    # -- programs --------------------------------------------------------------------------------------
    def compile(self, sources: Sequence[Source]) -> list[bytes]:
        start = time.perf_counter()
        missing: list[Source] = []
        try:
            objects = compile_objects(sources, self._compiler, self._flags, self._cache, self._processes,
                                      missing.extend)
        except CompileError as error:
            raise compiler.without_target(str(error), self._compiler) or error from None
        if events.listeners:
            names, compiled = (tuple(source.name for source in some) for some in (sources, missing))
            events.emit(events.Compiled(self.name, names, compiled, time.perf_counter() - start))
        return objects

    def load(self, object_code: bytes, entry: str, threads: int = 1) -> AmdProgram:
        """The kernel `entry`, started with `threads` work-items a workgroup; see Device.load."""
        image = self._images.get(object_code)
        if image is None:
            image = self._images[object_code] = _Image(object_code, self)
        kernel = image.code.kernel(entry, image.content)
        program = AmdProgram(kernel, image.base, threads, self, image)
        self.io.name_code(program.address, entry)
        if events.listeners:
            events.emit(events.Loaded(self.name, entry, image.base, image.code.size, object_code))
        return program

    def scratch_for(self, lane_bytes: int, lanes: int) -> tuple[Buffer, int, int]:
        """(memory, where it starts, COMPUTE_TMPRING_SIZE word) for kernels with so much scratch memory.

        It grows and never shrinks; templates keep what they were recorded with.
        """
        with self._lock:
            wave = lane_bytes * lanes
            if self._scratch is None or self._scratch[0] < wave:
                word, size = self.generation.scratch(lane_bytes, lanes)
                memory = self.allocate(size + SCRATCH_ALIGNMENT)
                base = topology.rounded(memory.address, SCRATCH_ALIGNMENT)
                self.synchronize()
                self.compute.use_scratch(base, size, word, lane_bytes)
                self._scratch = wave, memory, base, word
            return self._scratch[1:]

    # -- memory ----------------------------------------------------------------------------------------
    def from_host(self, source) -> Buffer:
        """A buffer that is the memory of a bytes-like object: its pages are pinned for the card.

        KfdError where they cannot be, as for a file that is mapped read-only: allocate and copy then.
        """
        self.check_usable()
        pinned = PinnedMemory(source, self.memory)
        return Buffer(self, pinned.address, pinned.size, owner=pinned)

    def reach(self, buffer: Buffer) -> None:
        """Let this card's commands use a buffer of another card of this process."""
        self.memory.reach(buffer.address, buffer.size)

    def receive(self, source: Buffer) -> Buffer:
        """As Device.receive; between cards the copy engine reads the other card's memory."""
        other = source.device
        if not isinstance(other, AmdDevice) or source.in_host_memory:
            return super().receive(source)
        other.synchronize()
        self.reach(source)
        made = self.allocate(source.size)
        self.settle(made.ready)
        most, number = self.generation.copy_bytes, 0
        for done in range(0, source.size, most):
            size = min(most, source.size - done)
            number = self._put_copy(made.address + done, source.address + done, size)
        self._wait_for_copy(number)
        return made

    def view(self, buffer: Buffer) -> memoryview:
        if buffer.in_host_memory:
            return super().view(buffer)
        start = time.monotonic_ns()
        data = self._transfers.read(buffer.address, buffer.size)
        if events.listeners and buffer.size:
            events.emit(events.Span(f"from {self.name}", "transfer", start, time.monotonic_ns(),
                                    {"bytes": buffer.size}))
        return data

    def store(self, buffer: Buffer, data: memoryview) -> None:
        if buffer.in_host_memory:
            super().store(buffer, data)
        else:
            self._transfers.write(buffer.address, data)

    def clock(self) -> tuple[int, int]:
        """The driver's reading of the counter, between two of the host's clock."""
        begin = time.monotonic_ns()
        ticks, _, _ = self.memory.kfd.clock_counters(self.card.gpu_id)
        return ticks, (begin + time.monotonic_ns()) // 2

    # -- commands --------------------------------------------------------------------------------------
    def queue(self) -> AmdRecorder:
        self.check_usable()
        return self.generation.recorder(self)

    def submit(self, template: AmdTemplate, values: Sequence[int] = ()) -> int:
        if len(values) < template.values_needed:
            raise ValueError(f"Template.submit: {len(values)} values given, {template.values_needed} slots "
                             "recorded")
        with self._lock:
            self.check_usable()
            instance = self._instance(template)
            template.fill_all(values, instance.address)
            instance.view[:] = template.image
            point = instance.point = self.timeline.submitted + 1
            self.compute.programs = template.programs
            self._put_commands(self.compute.pieces(template, instance), self.compute.end(point))
            self.timeline.submitted = point
            self._flying.append((point, self.compute.position, template))
            self._ring(self.compute)
            if template.copies is not None:
                self._put_copies(template.copies)
        if events.listeners:
            self._tell(template, point)
        return point

    def _tell(self, template: AmdTemplate, point: int) -> None:
        now = time.monotonic_ns()
        commands = bytes(template.image[:template.commands_bytes])
        events.emit(events.Submitted(self.name, self.compute.name, commands, point, now))
        if template.copies is not None:
            commands = bytes(template.copies.image)
            events.emit(events.Submitted(self.name, self.copies.name, commands, point, now))

    def _ring(self, queue) -> None:
        try:
            queue.ring_doorbell()
        except RuntimeError as error:                       # an emulated engine met what it does not know
            failure = self._failures.stopped(str(error), queue.name)
            self._give_up(failure)
            raise failure from error

    def _put_commands(self, pieces: list, end) -> None:
        """Put a submission into the compute ring; what does not fit at once is started before. Holds the
        lock.
        """
        for number, piece in enumerate(pieces):
            if number:
                self._ring(self.compute)
            size = len(piece) + len(end)
            if not self._has_room(size):
                self._wait_until(lambda size=size: self._has_room(size))
            self.compute.put(piece)
        self.compute.put(end)

    def _has_room(self, size: int) -> bool:
        """Whether the compute ring takes so many bytes; forgets submissions that have finished."""
        completed = self.timeline.completed
        while self._flying and self._flying[0][0] <= completed:
            self.compute.released = self._flying.popleft()[1]
        return self.compute.room() >= size

    def _instance(self, template: AmdTemplate) -> Instance:
        """A copy of the template's image that no submission uses any more. Holds the lock."""
        completed = self.timeline.completed
        for instance in template.instances:
            if instance.point <= completed:
                return instance
        if len(template.instances) >= MOST_INSTANCES:
            oldest = min(template.instances, key=lambda one: one.point)
            self._block(oldest.point, None)
            return oldest
        address, block, ready = self.command_memory.take(len(template.image))
        if ready > completed:
            self._block(ready, None)
        view = self.io.view(address, len(template.image))
        instance = Instance(address, block, view, self.compute.prepare(template, address))
        template.instances.append(instance)
        return instance

    def _put_copies(self, copies) -> None:
        """Put packets into the copy ring, in pieces if they are many. Holds the lock."""
        image, begin = memoryview(copies.image), 0
        most = self.copies.ring_bytes // 4
        ends = [*copies.starts[1:], len(image)]
        for end, following in zip(ends, [*ends[1:], None], strict=True):
            if following is not None and following - begin <= most:
                continue
            self._put_in_copy_ring(image[begin:end])
            begin = end

    def _put_in_copy_ring(self, packets) -> None:
        padding = self.copies.padding(len(packets))
        if self.copies.room() < padding + len(packets):
            self._wait_until(lambda: self.copies.room() >= padding + len(packets))
        self.copies.put(bytes(padding))
        self.copies.put(packets)
        self._ring(self.copies)

    def _put_copy(self, destination: int, source: int, size: int) -> int:
        """Let the copy engine move bytes that no submission uses; the number `_wait_for_copy` takes."""
        generation = self.generation
        with self._lock:
            self.check_usable()
            number = self._copy_count = self._copy_count + 1
            packets = bytes(generation.copy(source=source, destination=destination, nbytes=size))
            packets += bytes(generation.fence(address=self._copies_address, value=number & COPY_MASK))
            self._put_in_copy_ring(packets)
        return number

    def _wait_for_copy(self, number: int) -> None:
        """Wait for a copy; fences count in 32 bits, so what is less than half of them behind is done."""
        self._wait_until(lambda: (self._copies_done[0] - number) & COPY_MASK < 1 << 31)

    # -- waiting ---------------------------------------------------------------------------------------
    def _wait_for_point(self, point: int, timeout_ms: int | None) -> None:
        self._wait_until(lambda: self.timeline.completed >= point, timeout_ms, point)

    def _wait_until(self, done: Callable[[], bool], timeout_ms: int | None = None,
                    point: int | None = None) -> None:
        """Wait for a word that a queue writes: look at it for a moment, then sleep until an interrupt.

        point: of the timeline that comes no earlier, None for the last submitted. Looks for Ctrl-C from time
        to time. CommandError for what the driver reports, WaitTimeout.
        """
        point = self.timeline.submitted if point is None else point
        limit_ms = config.current().timeout_ms if timeout_ms is None else timeout_ms
        start = time.monotonic_ns()
        spinning, end = start + SPIN_NS, start + limit_ms * 1_000_000
        while not done():
            now = time.monotonic_ns()
            if now >= end:
                raise self._failures.timeout(point, limit_ms)
            if now < spinning:
                continue
            self._request_interrupt(point)
            fault = self._sleep(min(SLICE_MS, max((end - now) // 1_000_000, 1)))
            if fault is not None:
                with self._lock:
                    failure = self._failures.fault(fault)
                    self._give_up(failure)
                raise failure

    def _sleep(self, limit_ms: int) -> Fault | None:
        """Until an interrupt; what went wrong. CommandError if the driver refuses, as for a removed card."""
        try:
            return self.interrupts.wait(limit_ms)
        except KfdError as error:
            with self._lock:
                failure = self._failures.refused(error)
                self._give_up(failure)
            raise failure from error

    def _request_interrupt(self, point: int) -> None:
        """Let the compute queue interrupt once it is behind what was submitted; once for each point."""
        if self._interrupt_point >= point:
            return
        with self._lock:
            if self._interrupt_point < point:
                self._interrupt_point = self.timeline.submitted
                commands = self.compute.wake()
                if commands:
                    self.compute.put(commands)
                    self._ring(self.compute)

    # -- what went wrong -------------------------------------------------------------------------------
    def in_flight(self) -> tuple[AmdTemplate | None, int]:
        """(the oldest submission that has not finished, number of the command it is at)."""
        completed = self.timeline.completed
        for point, end, template in list(self._flying):     # a copy: others may submit meanwhile
            if point > completed:
                return template, self.compute.command_number(template, end)
        return None, 0

    def _give_up(self, error: DeviceError) -> None:
        """Drop what was submitted, whoever waits for it gets `error`; make new queues. Holds the lock."""
        self.timeline.drop(error)
        try:
            for queue in (self.compute, self.copies):
                queue.destroy()
                queue.create()
        except DeviceError as problem:
            self.lost = self._failures.lost(error, str(problem))
            return
        self.compute.set_timeline(self.timeline.submitted)
        self._copies_done[0] = self._copy_count & COPY_MASK
        self._flying.clear()
        self._interrupt_point = 0
        if not self._answers():
            self.lost = self._failures.lost(error, "its new queues do not answer")

    def _answers(self) -> bool:
        """Whether the queues work: one point of the timeline, without commands."""
        point = self.timeline.submitted = self.timeline.submitted + 1
        self.compute.put(self.compute.end(point))
        self.compute.ring_doorbell()
        end = time.monotonic_ns() + PROBE_MS * 1_000_000
        while self.timeline.completed < point and time.monotonic_ns() < end:
            time.sleep(0)
        return self.timeline.completed >= point

    def close(self) -> None:
        atexit.unregister(self.close)
        if self._pid != os.getpid() or self.lost is not None:
            return
        self.lost = DeviceError(f"{self.name}: the device was closed")
        self._undo.close()


class _Image:
    """A code object in video memory at `base`. content: its bytes, relocated."""
    __slots__ = ("code", "content", "buffer", "base", "__weakref__")

    def __init__(self, object_code: bytes, device: AmdDevice):
        self.code = CodeImage(object_code, device.generation.code_padding)
        self.buffer = device.allocate(self.code.size + CODE_ALIGNMENT)
        self.base = topology.rounded(self.buffer.address, CODE_ALIGNMENT)
        self.content = self.code.link(self.base)
        self.buffer.initialize(bytes(self.base - self.buffer.address) + self.content)
