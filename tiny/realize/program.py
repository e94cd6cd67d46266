"""Kernels become loaded programs: prepared, compiled, loaded. Each distinct kernel is made once."""
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tiny import config
from tiny.hcq import device as devices
from tiny.hcq import events
from tiny.hcq.queue import Program
from tiny.ir.integer import Integer
from tiny.ir.node import Node
from tiny.lazy import Lazy
from tiny.realize import observe
from tiny.realize.counters import GlobalCounters
from tiny.realize.prepare import Prepared, prepare, scheduled
from tiny.render import dialects
from tiny.render.decompose import decompose
from tiny.render.lower import lower
from tiny.schedule import work
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import Schedule
from tiny.toolchain import Source

tune = Lazy("tiny.realize.tune")                            # only where BEAM asks for a search


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel ready to run.

    variables: VARIABLEs passed after the pointers; groups: how many to launch; operations, memory: what it
    does; kernel: as scheduled, with neighbouring axes merged.
    """
    name: str
    program: Program
    variables: tuple[Node, ...]
    groups: Integer
    operations: Integer
    memory: Integer
    source: str
    kernel: Kernel
    schedule: Schedule


_compiled: dict[tuple[Kernel, int, str, int, int], Compiled] = {}
_lock = threading.RLock()


def compile_kernels(kernels: Sequence[tuple[Kernel, int]], device_name: str) -> list[Compiled]:
    """Programs for (kernel, number of pointers) on a device; what is not known yet is compiled together."""
    settings = config.current()
    keys = [(kernel, pointers, device_name, settings.noopt, settings.beam) for kernel, pointers in kernels]
    missing = list(dict.fromkeys(key for key in keys if key not in _compiled))
    if missing:
        with _lock:
            _compile_missing([key for key in missing if key not in _compiled], device_name)
    return [_compiled[key] for key in keys]


def _compile_missing(keys: list[tuple], device_name: str) -> None:
    device = devices.open(device_name)
    made = [_told(kernel, pointers, device) for kernel, pointers, *_ in keys]
    start = time.perf_counter()
    prelude = dialects.named(device.target.dialect).prelude
    objects = device.compile([Source(one.name, one.source, prelude) for one in made])
    GlobalCounters.compile_time_s += time.perf_counter() - start
    for key, one, code in zip(keys, made, objects, strict=True):
        program = device.load(code, one.name, *(() if one.threads == 1 else (one.threads,)))
        merged = one.kernel
        _compiled[key] = Compiled(one.name, program, one.variables, one.groups, work.operations(merged),
                                  work.traffic(merged), one.source, merged, one.schedule)


def _told(kernel: Kernel, pointers: int, device: devices.Device) -> Prepared:
    """As _scheduled; profiles hear how long it took."""
    start = time.monotonic_ns()
    made = _scheduled(kernel, pointers, device)
    if events.listeners:
        observe.took(f"schedule {made.name}", "schedule", start)
    return made


def _scheduled(kernel: Kernel, pointers: int, device: devices.Device) -> Prepared:
    """A kernel under the schedule that the settings ask for: NOOPT's, the heuristics', or one BEAM finds."""
    settings = config.current()
    made = prepare(kernel, pointers, device.target, bool(settings.noopt))
    if settings.noopt or not settings.beam:
        return made
    plain = prepare(kernel, pointers, device.target, plain=True)
    found = tune.tuned(plain, made.schedule, device, settings.beam)
    return scheduled(made.kernel, found, pointers, device.target)


def instructions(one: Compiled) -> list[Node]:
    """The flat instructions of a kernel, made again."""
    return lower(one.kernel, one.schedule, decompose).instructions


def object_code(one: Compiled, device: devices.Device) -> bytes:
    """The object that a kernel was loaded from, compiled again or found in the cache."""
    return device.compile([Source(one.name, one.source, dialects.named(device.target.dialect).prelude)])[0]
