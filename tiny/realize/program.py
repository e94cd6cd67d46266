"""Kernels become loaded programs: prepared, compiled, loaded. Each distinct kernel is made once."""
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tiny import config
from tiny.hcq import device as devices
from tiny.hcq import events
from tiny.hcq.queue import Program
from tiny.ir.dtype import DType
from tiny.ir.integer import Integer
from tiny.ir.node import Node
from tiny.lazy import Lazy
from tiny.realize import observe
from tiny.realize.counters import GlobalCounters
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import Schedule
from tiny.toolchain import Source

preparing = Lazy("tiny.realize.prepare")                    # not where all kernels are known from the disk
tune = Lazy("tiny.realize.tune")                            # only where BEAM asks for a search


@dataclass(frozen=True, slots=True)
class Rendered:
    """A kernel as source text, before the compiler has seen it.

    kernel: as scheduled, with neighbouring axes merged; pointers: the type of the elements behind each;
    variables: VARIABLEs passed after the pointers; groups: how many to launch; threads: work-items of each;
    operations, memory: what one run does.
    """
    source: Source
    kernel: Kernel
    schedule: Schedule
    pointers: tuple[DType, ...]
    variables: tuple[Node, ...]
    groups: Integer
    threads: int
    operations: Integer
    memory: Integer

    @property
    def name(self) -> str:
        return self.source.name


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel ready to run: its text, and the program in the device's memory."""
    rendered: Rendered
    program: Program

    @property
    def name(self) -> str:
        return self.rendered.source.name


Kernels = Sequence[tuple[Kernel, int]]                      # each with its number of pointers
_compiled: dict[tuple[Kernel, int, str, int, int], Compiled] = {}
_lock = threading.RLock()


def compile_kernels(kernels: Kernels, device_name: str,
                    known: Mapping[tuple[Kernel, int], Rendered]) -> list[Compiled]:
    """Programs for kernels on a device. What is not compiled yet is compiled together, prepared now unless it
    is among the `known`.
    """
    settings = config.current()
    keys = [(kernel, pointers, device_name, settings.noopt, settings.beam) for kernel, pointers in kernels]
    if any(key not in _compiled for key in keys):
        with _lock:
            missing = [key for key in dict.fromkeys(keys) if key not in _compiled]
            _compile(missing, devices.open(device_name), known)
    return [_compiled[key] for key in keys]


def _compile(keys: list[tuple], device: devices.Device,
             known: Mapping[tuple[Kernel, int], Rendered]) -> None:
    made = [known.get(key[:2]) or _observed(*key[:2], device) for key in keys]
    start = time.perf_counter()
    objects = device.compile([one.source for one in made])
    GlobalCounters.compile_time_s += time.perf_counter() - start
    for key, one, code in zip(keys, made, objects, strict=True):
        program = device.load(code, one.name, *(() if one.threads == 1 else (one.threads,)))
        _compiled[key] = Compiled(one, program)


def _observed(kernel: Kernel, pointers: int, device: devices.Device) -> Rendered:
    """As _scheduled; a profile hears how long it took."""
    start = time.monotonic_ns()
    made = _scheduled(kernel, pointers, device)
    if events.listeners:
        observe.took(f"schedule {made.name}", "schedule", start)
    return made


def _scheduled(kernel: Kernel, pointers: int, device: devices.Device) -> Rendered:
    """A kernel under the schedule that the settings ask for: NOOPT's, the heuristics', or one BEAM finds."""
    settings = config.current()
    made = preparing.prepare(kernel, pointers, device.target, bool(settings.noopt))
    if settings.noopt or not settings.beam:
        return made
    plain = preparing.prepare(kernel, pointers, device.target, plain=True)
    found = tune.tuned(plain, made.schedule, device, settings.beam)
    return preparing.scheduled(made.kernel, found, pointers, device.target)


def object_code(one: Compiled, device: devices.Device) -> bytes:
    """The object that a kernel was loaded from, compiled again or found in the cache."""
    return device.compile([one.rendered.source])[0]
