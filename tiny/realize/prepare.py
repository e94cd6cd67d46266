"""From a kernel to source text: simplified, given a loop schedule, lowered, rendered. No compiler runs here.
"""
import dataclasses
from collections.abc import Sequence

from tiny import config
from tiny.ir import ops
from tiny.ir.algebra import algebra
from tiny.ir.dtype import DType, dtypes
from tiny.ir.integer import Integer, expression
from tiny.ir.node import Node, toposort
from tiny.ir.rewrite import rewrite
from tiny.ir.verify import KERNEL, verify, verify_instructions
from tiny.realize.program import Rendered
from tiny.render import dialects
from tiny.render.decompose import decompose
from tiny.render.lower import lower
from tiny.schedule import gpu, heuristic, work
from tiny.schedule.axes import merge_axes
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import BLOCK, LOOP, Loop, Schedule, accumulation, reduced_axes, rounds
from tiny.target import Target
from tiny.toolchain import Source


def prepare(kernel: Kernel, pointers: int, target: Target, plain: bool = False) -> Rendered:
    """Schedule, lower and render one kernel. plain: loops as they come, without the heuristics."""
    merged = merge_axes(dataclasses.replace(kernel, value=_simplified(kernel.value)))
    schedule = plain_schedule(merged) if plain else choose(merged, target)
    return scheduled(merged, schedule, pointers, target)


def scheduled(merged: Kernel, schedule: Schedule, pointers: int, target: Target) -> Rendered:
    """Lower and render a kernel, its axes merged already, under a schedule."""
    lowered = lower(merged, schedule, decompose)
    if config.current().check:
        verify([part for part in (merged.value, merged.gate) if part is not None], KERNEL)
        verify_instructions(lowered.instructions)
    variables = tuple(sorted(variables_in(lowered.instructions, lowered.groups), key=lambda v: v.arg))
    name, types = kernel_name(merged), pointer_types(merged, pointers)
    threads = () if lowered.threads == 1 else (lowered.threads,)
    dialect = dialects.named(target.dialect)
    text = dialect.render(name, lowered.instructions, types, variables, *threads)
    return Rendered(Source(name, text, dialect.prelude), merged, schedule, tuple(types), variables,
                    lowered.groups, lowered.threads, work.operations(merged), work.traffic(merged))


def _simplified(value: Node) -> Node:
    """The value by the rules of algebra; positions keep the form that ir.integer gave them."""
    positions = {node: node for node in toposort(value) if node.dtype is dtypes.index}
    return rewrite(value, algebra, positions)


def choose(kernel: Kernel, target: Target) -> Schedule:
    """The schedule that the heuristics of the target's kind give a kernel."""
    return gpu.choose(kernel, target) if target.work_items > 1 else heuristic.choose(kernel, target)


def plain_schedule(kernel: Kernel) -> Schedule:
    """Every axis one loop, in order, for NOOPT=1. Sums of floats are taken apart, or they would stick."""
    outer = [Loop(axis, 1, LOOP) for axis in kernel.axes if axis is not kernel.sequential]
    last = [Loop(axis, 1, LOOP) for axis in (kernel.sequential,) if axis is not None]
    total, reduced = accumulation(kernel), reduced_axes(kernel)
    inner = [Loop(axis, 1, LOOP) for axis in reduced]
    if reduced and rounds(total):
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


def instructions(merged: Kernel, schedule: Schedule) -> list[Node]:
    """The flat instructions of a kernel under its schedule."""
    return lower(merged, schedule, decompose).instructions
