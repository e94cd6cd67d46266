"""A loop schedule for devices whose groups have many work-items:
neighbours in memory go to neighbouring items.

Each work-item computes a small tile of the result by itself; sums run inside an item.
"""
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.integer import bounds
from tiny.ir.node import Node, toposort
from tiny.schedule.axes import NONE, along
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import (
    BLOCK,
    GROUP,
    LOOP,
    THREAD,
    UNROLL,
    Loop,
    Schedule,
    accumulation,
    check,
    static_size,
)
from tiny.target import Target

GROUP_WAVES = 4              # waves of a group where the result is large enough
LONGEST_SUM = 4096           # steps of one float accumulator before its sum is set aside
ROWS = 4  # points of an axis that a work-item computes together, to load shared operands once
UNROLLED = 4                 # steps of the innermost sum that are written out


def choose(kernel: Kernel, target: Target) -> Schedule:
    """The schedule of a kernel for a target with work-items; always one that `check` accepts."""
    total = accumulation(kernel)
    reduced = total.src[1:] if total is not None else ()
    free = [axis for axis in kernel.axes if axis is not kernel.sequential]
    unroll = _rows(total, free)
    groups, threads = _grid(free, unroll, min(target.lanes * GROUP_WAVES, target.work_items))
    inner = [Loop(axis, 1, UNROLL) for axis in free if unroll[axis] > 1]
    loops = [*groups, *threads]
    if kernel.sequential is not None:
        loops.append(Loop(kernel.sequential, 1, LOOP))
    for number, axis in enumerate(reduced):
        size = static_size(axis)
        width = _divisor(size, UNROLLED) if size and number == len(reduced) - 1 else 1
        if size and size // width > LONGEST_SUM and total.arg is ops.ADD and total.dtype.is_float:
            loops.append(Loop(axis, width * 1024, BLOCK))
        loops.append(Loop(axis, width, LOOP))
        if width > 1:
            inner.append(Loop(axis, 1, UNROLL))
    schedule = Schedule((*loops, *inner))
    check(kernel, schedule)
    return schedule


def _rows(total: Node | None, free: list[Node]) -> dict[Node, int]:
    """How many points of each axis a work-item computes:
    more where an operand of the sum does not depend on it.
    """
    unroll = dict.fromkeys(free, 1)
    if total is None:
        return unroll
    loads = [
        node for node in toposort(total.src[0]) if node.op is ops.LOAD and node.dtype is not dtypes.index
    ]
    reuse = [
        axis
        for axis in free
        if static_size(axis) and len(loads) > 1 and any(along(load.src[1], axis, 2) == NONE for load in loads)
    ]
    for axis in sorted(reuse, key=static_size)[-2:]:
        rows = _divisor(static_size(axis), ROWS)
        if static_size(axis) // rows >= 8:
            unroll[axis] = rows
    return unroll


def _grid(free: list[Node], unroll: dict[Node, int], items: int) -> tuple[list[Loop], list[Loop]]:
    """Group loops and thread loops that share out the axes; the last axis gets work-items first."""
    width: dict[Node, int] = {}
    for axis in reversed(free):
        tiles = -(-bounds(axis.src[0])[1] // unroll[axis])
        width[axis] = min(items, 1 << max(tiles - 1, 0).bit_length()) if static_size(axis) else 1
        items //= width[axis]
    groups, threads = [], []
    for axis in free:
        size = static_size(axis)
        step = width[axis] * unroll[axis]
        if size is None or size > step:
            groups.append(Loop(axis, step, GROUP))
        if width[axis] > 1:
            threads.append(Loop(axis, unroll[axis], THREAD))
        elif not groups or groups[-1].axis is not axis:
            groups.append(Loop(axis, unroll[axis], GROUP))
    return groups, threads


def _divisor(size: int, most: int) -> int:
    """The largest number up to `most` that divides `size`."""
    return next(n for n in range(max(min(size, most), 1), 0, -1) if size % n == 0)
