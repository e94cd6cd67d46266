"""Run dispatches: translated kernels on the host's threads, the interpreter where a translation has no
answer.
"""

import ctypes
import functools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tiny import config
from tiny.emulator.amd.isa import checked, interpreter
from tiny.emulator.amd.isa.errors import UnsupportedError
from tiny.emulator.amd.isa.memory import MemoryFault, Range
from tiny.emulator.amd.isa.state import SCRATCH, Dispatch, Group, Kernel, Wave, WaveHeader, iter_groups
from tiny.emulator.amd.isa.translate import translate
from tiny.hcq import io
from tiny.hcq.cpu import host
from tiny.hcq.cpu.loader import MACHINES, Image
from tiny.hcq.layout import Struct, repeated, u32, u64
from tiny.toolchain import Cache, Source, compile_objects, find_compiler

DONE, STEP, FAULT, NEW_PLACE, PAUSE = range(5)  # runtime.c
FUEL = 1 << 20  # backward branches of a thread until it asks whether it is to stop
SHORT_NS = 100_000  # what runs no longer is not worth waking a second thread
ACTIONS = ("read", "write", "read of LDS", "write of LDS", "read of scratch", "write of scratch")
LOCAL_ACTIONS = 2  # from this one on: not a fault of the page table


class Run(Struct, dwords=136):
    """`struct run` of runtime.c."""

    ranges = u64(0)
    range_count = u64(2)
    waves = u64(4)
    lds = u64(6)
    lds_bytes = u64(8)
    scratch = u64(10)
    scratch_bytes = u64(12)
    next_group = u64(14)
    last_group = u64(16)
    fuel = u64(18)
    groups = repeated(3, u32(20), 32)
    size = repeated(3, u32(23), 32)
    grid = repeated(3, u32(26), 32)
    wave_count = u32(29)
    started = u32(30)
    current = u32(31)
    user_count = u32(32)
    id_place = u32(33)
    id_enable = u32(34)
    ids_in_ttmp = u32(35)
    entry = u32(36)
    mode = u32(37)
    vgprs = u32(38)
    user_data = repeated(32, u32(39), 32)
    hints = repeated(64, u32(71), 32)


class Program:
    """A translated kernel in memory. It is translated again when it turns out to jump to more places.

    entry: the function that executes workgroups, `run_groups` in runtime.c
    group_ns: what a workgroup took last time
    """

    group_ns: float = SHORT_NS

    def __init__(self, kernel: Kernel, source: Source, image: Image):
        self.kernel = kernel
        self._places: frozenset[int] = frozenset()
        self._lock = threading.Lock()
        self._use(source, image)

    def _use(self, source: Source, image: Image) -> None:
        self._image = image
        self.entry = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)(image.symbol(source.name))

    def learn(self, pc: int) -> None:
        """Make `pc` a place that jumps may lead to."""
        with self._lock:
            if pc not in self._places:
                self._places |= {pc}
                source = translate(self.kernel, self._places)
                self._use(source, *_built([source]))


def _built(sources: list[Source]) -> list[Image]:
    """The sources compiled and loaded; some of them share an image."""
    settings, machine = config.current(), MACHINES[host.architecture()]
    cache = Cache(settings.cache_folder) if settings.cache_folder else None
    compiler, flags = find_compiler(settings.cc, cache), compiler_flags()
    objects = compile_objects(sources, compiler, flags, cache, settings.parallel or settings.core_count)
    system = io.Provider()                                  # not the devices' own: nobody watches this one
    images = {data: Image(data, machine, system) for data in dict.fromkeys(objects)}
    return [images[data] for data in objects]


def compiler_flags() -> list[str]:
    """How translations are compiled for this machine."""
    arch = host.architecture()
    return [*host.flags(arch, host_features(arch)), "-fvisibility=default"]


def host_features(arch: str) -> frozenset[str]:
    """Features of this machine that translated code may use: all but AVX-512.

    clang 22.1.8 gives a masked vpternlogd with an operand in memory the wrong operand order (seen on
    v_bfi_b32 under EXEC, 2026-11; tests/emulator/amd/test_translate.py, copysign), and for these loops AVX2
    is as fast.
    """
    return frozenset(
        name for name in host.features(host.read_cpuinfo(), arch) if not name.startswith(("avx512", "amx"))
    )


# by Kernel.identity; None for a kernel that only the interpreter can run
_programs: dict[bytes, Program | None] = {}


def translated(kernel: Kernel) -> bool:
    """Whether the kernel can be run without translating it first."""
    return kernel.identity in _programs


def prepare(kernels: Sequence[Kernel]) -> None:
    """Translate kernels that are about to run: together it takes less time than one by one."""
    found: dict[bytes, tuple[Kernel, Source]] = {}
    for kernel in kernels:
        key = kernel.identity
        if key not in _programs and key not in found:
            try:
                found[key] = kernel, translate(kernel)
            except UnsupportedError:
                _programs[key] = None
    images = _built([source for _, source in found.values()])
    for (key, (kernel, source)), image in zip(found.items(), images, strict=True):
        _programs[key] = Program(kernel, source, image)


def program_of(kernel: Kernel) -> Program | None:
    """The kernel's translation, made at its first use in this process; None if it has none."""
    key = kernel.identity
    if key not in _programs:
        prepare([kernel])
    return _programs[key]


def run_checked(
    dispatch: Dispatch, threads: int, cancelled: Callable[[], bool] | None, seconds: float | None
) -> None:
    """As `run`, with what `checked` looks for; after so many seconds what is left runs translated."""
    end = None if seconds is None else time.monotonic() + seconds

    def late() -> bool:
        return end is not None and time.monotonic() > end

    for number, place in enumerate(iter_groups(dispatch.groups)):
        group = Group(dispatch, place)
        if not checked.Checked(group).run_for(late, cancelled):
            _finish(group, number, cancelled)
        if late():
            return run(dispatch, threads, cancelled, number + 1)
    return None


def _finish(group: Group, number: int, cancelled: Callable[[], bool] | None) -> None:
    """Run a workgroup that the interpreter has left on to its end, translated where that can be done."""
    dispatch = group.dispatch
    program = program_of(dispatch.kernel)
    if program is None:
        return interpreter.Interpreter(group).run(cancelled)
    part = Part(dispatch, program, _rows(dispatch.memory.ranges()), number, number + 1, cancelled)
    part.adopt(group)
    part.run()
    if part.error is not None:
        raise part.error
    return None


def run(
    dispatch: Dispatch, threads: int = 1, cancelled: Callable[[], bool] | None = None, first: int = 0
) -> None:
    """Execute workgroups, from number `first` on. Raises MemoryFault or EmulationError, which name kernel,
    wave, place and instruction. cancelled: asked now and then by a kernel with loops; True stops it with an
    EmulationError.
    """
    program = None if dispatch.checked else program_of(dispatch.kernel)
    if program is None:
        return interpreter.run(dispatch, cancelled, first)
    total = dispatch.groups[0] * dispatch.groups[1] * dispatch.groups[2] - first
    if total < 1:
        return None
    threads = max(1, min(threads, total)) if program.group_ns * total > SHORT_NS else 1
    rows = _rows(dispatch.memory.ranges())
    ends = [first + total * n // threads for n in range(threads + 1)]
    parts = [Part(dispatch, program, rows, *pair, cancelled) for pair in zip(ends, ends[1:], strict=False)]
    workers = [_pool().submit(part.run) for part in parts[1:]]
    began = time.perf_counter_ns()
    parts[0].run()
    program.group_ns = (time.perf_counter_ns() - began) / max(ends[1] - first, 1)
    for worker in workers:
        worker.result()
    for part in parts:
        if part.error is not None:
            raise part.error
    return None


@functools.cache
def _pool() -> ThreadPoolExecutor:
    """Threads for the second and further parts of dispatches: starting one costs more than a kernel."""
    return ThreadPoolExecutor(config.current().core_count, "emulated-gpu")


def _rows(ranges: Sequence[Range]) -> np.ndarray:
    """Mapped ranges as the C looks them up, uint64 (ranges, 4); made once for each list."""
    global _last_rows
    if _last_rows[0] is not ranges:
        rows = [
            (each.address, each.address + each.size, each.host - each.address & (1 << 64) - 1, each.writable)
            for each in ranges
        ]
        _last_rows = ranges, np.array(rows or [(0, 0, 0, 0)], dtype=np.uint64)
    return _last_rows[1]


_last_rows: tuple[Sequence[Range] | None, np.ndarray] = (None, np.zeros((1, 4), np.uint64))


class Part:
    """Some of a dispatch's workgroups, one after another in one thread. rows: the memory they may reach."""

    def __init__(
        self,
        dispatch: Dispatch,
        program: Program,
        rows: np.ndarray,
        first: int,
        last: int,
        cancelled: Callable[[], bool] | None = None,
    ):
        kernel = dispatch.kernel
        self.dispatch, self.program, self.cancelled = dispatch, program, cancelled
        self.error: Exception | None = None
        lanes = kernel.wave_size
        self._wave_dwords = WaveHeader.dwords + 512 * lanes
        self._waves = aligned(dispatch.waves * self._wave_dwords)
        self._lds = np.zeros(max(kernel.lds_bytes, 16), dtype=np.uint8)
        self._scratch = np.full(max(dispatch.waves * lanes * kernel.scratch_bytes, 16), 0xA5, dtype=np.uint8)
        self._ranges = rows
        self._run = self._filled(first, last)

    def _filled(self, first: int, last: int) -> np.ndarray:
        dispatch, kernel = self.dispatch, self.dispatch.kernel
        rsrc2 = kernel.rsrc2
        enable = rsrc2.workgroup_id_x | rsrc2.workgroup_id_y << 1 | rsrc2.workgroup_id_z << 2
        fields = dict(
            ranges=self._ranges.ctypes.data,
            range_count=len(self._ranges),
            waves=self._waves.ctypes.data,
            lds=self._lds.ctypes.data,
            lds_bytes=kernel.lds_bytes,
            scratch=self._scratch.ctypes.data,
            scratch_bytes=kernel.scratch_bytes,
            next_group=first,
            last_group=last,
            fuel=FUEL,
            user_count=len(dispatch.user_data),
            id_place=rsrc2.user_sgprs,
            id_enable=enable,
            ids_in_ttmp=kernel.family.name == "gfx12",
            entry=kernel.entry,
            mode=kernel.mode,
            vgprs=kernel.vgprs,
        )
        for name, values in (
            ("groups", dispatch.groups),
            ("size", dispatch.size),
            ("grid", dispatch.grid_items),
            ("user_data", dispatch.user_data),
        ):
            fields |= {f"{name}_{n}": value for n, value in enumerate(values)}
        words = np.zeros(Run.dwords, dtype=np.uint32)
        Run.encode(words.data.cast("B"), 0, **fields)
        return words

    def adopt(self, group: Group) -> None:
        """Take over a workgroup that the interpreter has begun, each wave at the start of a block."""
        lanes, size = self.dispatch.kernel.wave_size, self.dispatch.kernel.scratch_bytes
        for wave in group.waves:
            start, first = wave.number * self._wave_dwords, wave.number * lanes * size
            memory = self._waves[start : start + self._wave_dwords]
            memory[:] = wave.memory
            scratch = self._scratch[first : first + lanes * size]
            scratch[:] = wave.scratch.reshape(-1)
            memory[SCRATCH : SCRATCH + 2].view(np.uint64)[0] = self._scratch.ctypes.data + first
        self._lds[: len(group.lds)] = group.lds
        self._run[[Run.started.dword, Run.wave_count.dword]] = 1, len(group.waves)

    def run(self) -> None:
        """Until all is done or an error is found, which is kept for the caller's thread."""
        try:
            while (why := self.program.entry(self._run.ctypes.data)) != DONE:
                self._answer(why)
        except Exception as error:
            self.error = error

    def _answer(self, why: int) -> None:
        state = Run.decode(self._run.data.cast("B"))
        wave = self._wave(state)
        if why == STEP:
            group = Group.__new__(Group)
            group.dispatch, group.group, group.waves = self.dispatch, wave.group, [wave]
            group.lds = self._lds[: self.dispatch.kernel.lds_bytes]
            interpreter.Interpreter(group).step(wave)
        elif why == NEW_PLACE:
            if wave.pc >= len(self.dispatch.kernel.code):
                raise wave.error("a jump out of the kernel's code")
            self.program.learn(wave.pc)
        elif why == FAULT:
            header = WaveHeader.decode(wave.memory[: WaveHeader.dwords].data.cast("B"))
            fault = MemoryFault(header.fault_address, header.fault_size, ACTIONS[header.fault_action])
            if header.fault_action >= LOCAL_ACTIONS:
                raise wave.error(fault)
            fault.args = (str(wave.error(fault)),)
            raise fault
        elif self.cancelled is not None and self.cancelled():
            raise wave.error("stopped")
        else:
            self._run.view(np.uint64)[Run.fuel.dword // 2] = FUEL

    def _wave(self, state: Run) -> Wave:
        """The wave that the C stopped at, on the same registers."""
        number, groups = state.next_group, self.dispatch.groups
        place = (number % groups[0], number // groups[0] % groups[1], number // groups[0] // groups[1])
        start = state.current * self._wave_dwords
        lanes, scratch_bytes = self.dispatch.kernel.wave_size, self.dispatch.kernel.scratch_bytes
        first = state.current * lanes * scratch_bytes
        return Wave.over(
            self.dispatch,
            place,
            state.current,
            self._waves[start : start + self._wave_dwords],
            self._scratch[first : first + lanes * scratch_bytes].reshape(lanes, scratch_bytes),
        )


def aligned(dwords: int, to: int = 64) -> np.ndarray:
    """An array of u32 that starts at a multiple of `to` bytes."""
    memory = np.empty(dwords + to // 4, dtype=np.uint32)
    skip = -memory.ctypes.data % to // 4
    return memory[skip : skip + dwords]
