"""Kernels become loaded programs: schedule, lower, render, compile, load. Each distinct kernel is made once.
"""
import dataclasses
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tiny import config
from tiny.hcq import device as devices
from tiny.hcq.queue import Program
from tiny.ir import ops
from tiny.ir.algebra import algebra
from tiny.ir.dtype import DType, dtypes
from tiny.ir.integer import Integer, expression
from tiny.ir.node import Node, toposort
from tiny.ir.rewrite import rewrite
from tiny.ir.verify import KERNEL, verify, verify_instructions
from tiny.realize.counters import GlobalCounters
from tiny.render import dialects
from tiny.render.decompose import decompose
from tiny.render.lower import lower
from tiny.schedule import gpu, heuristic, work
from tiny.schedule.axes import merge_axes
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import BLOCK, LOOP, Loop, Schedule, accumulation, reduced_axes
from tiny.target import Target
from tiny.toolchain import Source


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


_compiled: dict[tuple[Kernel, int, str, bool], Compiled] = {}
_lock = threading.RLock()


def compile_kernels(kernels: Sequence[tuple[Kernel, int]], device_name: str) -> list[Compiled]:
    """Programs for (kernel, number of pointers) on a device; what is not known yet is compiled together."""
    plain = bool(config.current().noopt)
    keys = [(kernel, pointers, device_name, plain) for kernel, pointers in kernels]
    missing = list(dict.fromkeys(key for key in keys if key not in _compiled))
    if missing:
        with _lock:
            _compile_missing([key for key in missing if key not in _compiled], device_name)
    return [_compiled[key] for key in keys]


def _compile_missing(keys: list[tuple], device_name: str) -> None:
    device = devices.open(device_name)
    made = [prepare(kernel, pointers, device.target, plain) for kernel, pointers, _, plain in keys]
    start = time.perf_counter()
    prelude = dialects.named(device.target.dialect).prelude
    objects = device.compile([Source(one.name, one.source, prelude) for one in made])
    GlobalCounters.compile_time_s += time.perf_counter() - start
    for key, one, code in zip(keys, made, objects, strict=True):
        program = device.load(code, one.name, *(() if one.threads == 1 else (one.threads,)))
        merged = one.kernel
        _compiled[key] = Compiled(one.name, program, one.variables, one.groups, work.operations(merged),
                                  work.traffic(merged), one.source, merged, one.schedule)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A kernel as source text, before the compiler has seen it. kernel: with neighbouring axes merged."""
    name: str
    source: str
    kernel: Kernel
    schedule: Schedule
    variables: tuple[Node, ...]
    groups: Integer
    threads: int


def prepare(kernel: Kernel, pointers: int, target: Target, plain: bool = False) -> Prepared:
    """Schedule, lower and render one kernel. plain: loops as they come, without the heuristics."""
    merged = merge_axes(dataclasses.replace(kernel, value=_simplified(kernel.value)))
    schedule = plain_schedule(merged) if plain else _choose(merged, target)
    lowered = lower(merged, schedule, decompose)
    if config.current().check:
        verify([part for part in (merged.value, merged.gate) if part is not None], KERNEL)
        verify_instructions(lowered.instructions)
    variables = tuple(sorted(variables_in(lowered.instructions, lowered.groups), key=lambda v: v.arg))
    name = kernel_name(merged)
    render = dialects.named(target.dialect).render
    threads = () if lowered.threads == 1 else (lowered.threads,)
    source = render(name, lowered.instructions, pointer_types(kernel, pointers), variables, *threads)
    return Prepared(name, source, merged, schedule, variables, lowered.groups, lowered.threads)


def _simplified(value: Node) -> Node:
    """The value by the rules of algebra; positions keep the form that ir.integer gave them."""
    positions = {node: node for node in toposort(value) if node.dtype is dtypes.index}
    return rewrite(value, algebra, positions)


def instructions(one: Compiled) -> list[Node]:
    """The flat instructions of a kernel, made again."""
    return lower(one.kernel, one.schedule, decompose).instructions


def object_code(one: Compiled, device: devices.Device) -> bytes:
    """The object that a kernel was loaded from, compiled again or found in the cache."""
    return device.compile([Source(one.name, one.source, dialects.named(device.target.dialect).prelude)])[0]


def _choose(kernel: Kernel, target: Target) -> Schedule:
    return gpu.choose(kernel, target) if target.work_items > 1 else heuristic.choose(kernel, target)


def plain_schedule(kernel: Kernel) -> Schedule:
    """Every axis one loop, in order, for NOOPT=1. Sums of floats are taken apart, or they would stick."""
    outer = [Loop(axis, 1, LOOP) for axis in kernel.axes if axis is not kernel.sequential]
    last = [Loop(axis, 1, LOOP) for axis in (kernel.sequential,) if axis is not None]
    total, reduced = accumulation(kernel), reduced_axes(kernel)
    inner = [Loop(axis, 1, LOOP) for axis in reduced]
    if reduced and total.arg is ops.ADD and total.dtype.is_float:
        inner = [Loop(axis, 1, BLOCK) for axis in reduced[:-1]]
        inner += [Loop(reduced[-1], 1024, BLOCK), Loop(reduced[-1], 1, LOOP)]
    return Schedule((*outer, *last, *inner))


def pointer_types(kernel: Kernel, count: int) -> list[DType]:
    """The element type behind each POINTER."""
    types = [kernel.dtype] * count
    roots = [kernel.value] + [part for part in (kernel.gate, kernel.index) if isinstance(part, Node)]
    for node in toposort(*roots):
        if node.op is ops.POINTER:
            types[node.arg] = node.dtype
    return types


def variables_in(instructions: Sequence[Node], groups: Integer) -> set[Node]:
    """The VARIABLEs a flat kernel or its launch needs."""
    found = {node for node in instructions if node.op is ops.VARIABLE}
    return found | {node for node in (toposort(groups) if isinstance(groups, Node) else ())
                    if node.op is ops.VARIABLE}


def kernel_name(kernel: Kernel) -> str:
    """A C name that says what it is: kind, then sizes, `r` before reduced ones."""
    kind = "scan" if kernel.carried else "scatter" if kernel.sequential is not None else \
        "reduce" if reduced_axes(kernel) else "map"
    free = [_size_name(axis) for axis in kernel.axes]
    reduced = ["r" + _size_name(axis) for axis in reduced_axes(kernel)]
    return "_".join([kind, *free, *reduced, kernel.dtype.name])


def _size_name(axis: Node) -> str:
    size = axis.src[0]
    return str(size.arg) if size.op is ops.CONST else "".join(ch for ch in expression(size) if ch.isalnum())
