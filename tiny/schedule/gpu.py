"""A loop schedule for devices whose groups have many work-items, chosen without trying any.

Products of matrices use matrix instructions where the target has one for their types. Sums that are long, and
of which there are few, are shared by the items of a group. Otherwise each item computes a small tile of the
result by itself, and neighbours in memory go to neighbouring items.
"""
from math import prod

from tiny.ir.integer import bounds
from tiny.ir.node import Node
from tiny.schedule import gpu_matrix
from tiny.schedule.axes import NEIGHBOURS, NONE, along, divisor, loads
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import (
    BLOCK,
    GROUP,
    LONGEST_SUM,
    LOOP,
    THREAD,
    UNROLL,
    Loop,
    Schedule,
    accumulation,
    check,
    rounds,
    static_size,
)
from tiny.target import Target

GROUP_WAVES = 4              # waves of a group where the result is large enough
ROWS = 4                     # points of an axis that a work-item computes, to load shared operands once
UNROLLED = 4                 # steps of the innermost sum that are written out
BUSY_WAVES = 4               # waves a compute unit needs to have something to do while others wait
SHORTEST_SHARED = 64         # points of a sum that several items share


def choose(kernel: Kernel, target: Target) -> Schedule:
    """The schedule of a kernel for a target with work-items; always one that `check` accepts."""
    schedule = gpu_matrix.choose(kernel, target) or _shared(kernel, target) or _alone(kernel, target)
    check(kernel, schedule)
    return schedule


# -- sums shared by the items of a group ---------------------------------------------------------------------
def _shared(kernel: Kernel, target: Target) -> Schedule | None:
    """Several items for each sum; None where there is no long sum, or results enough to keep all busy."""
    total = accumulation(kernel)
    if total is None or kernel.sequential is not None:
        return None
    axis = max(total.src[1:], key=lambda axis: static_size(axis) or 0)
    size = static_size(axis)
    if size is None or size < SHORTEST_SHARED:
        return None
    results = max(prod(bounds(free.src[0])[1] for free in kernel.axes), 1)
    wanted = target.threads * target.lanes * BUSY_WAVES
    read = loads(total.src[0])
    rows = bool(read) and all(along(load.src[1], axis, 2) in (NEIGHBOURS, NONE) for load in read)
    reused = any(count > 1 for count in _rows(total, list(kernel.axes)).values())
    if results >= wanted and (reused or not rows):
        return None
    items = target.lanes if rows else 4
    most = min(target.work_items, 256 if results > 1 else target.work_items, size // 4)
    while items < most and items * results < wanted:
        items *= 2
    if items > size:
        return None
    return _row_sums(kernel, total, axis, items, target) if rows else \
        _column_sums(kernel, total, axis, items, target)


def _row_sums(kernel: Kernel, total: Node, axis: Node, items: int, target: Target) -> Schedule:
    """Neighbouring items take neighbouring points of the sum."""
    size = static_size(axis)
    width = next(n for n in (UNROLLED, 2, 1) if n == 1 or (size % (items * n) == 0 or size >= 8 * items * n))
    groups, threads = _grid(kernel.axes, dict.fromkeys(kernel.axes, 1),
                            max(target.lanes * GROUP_WAVES // items, 1))
    step = items * width
    loops = [Loop(other, 1, LOOP) for other in total.src[1:] if other is not axis]
    if size // items > LONGEST_SUM and rounds(total):
        loops.append(Loop(axis, step * (LONGEST_SUM // width), BLOCK))
    if size > step:
        loops.append(Loop(axis, step, LOOP))
    loops.append(Loop(axis, width, THREAD))
    inner = [Loop(axis, 1, UNROLL)] if width > 1 else []
    return Schedule((*groups, *threads, *loops, *inner))


def _column_sums(kernel: Kernel, total: Node, axis: Node, items: int, target: Target) -> Schedule:
    """Neighbouring items take neighbouring results; each sum is cut into as many pieces as items share it."""
    size = static_size(axis)
    width = divisor(size, UNROLLED)
    piece = -(-size // (items * width)) * width
    groups, threads = _grid(kernel.axes, dict.fromkeys(kernel.axes, 1),
                            max(min(target.work_items // items, target.lanes), 1))
    loops = [Loop(axis, piece, THREAD), *threads]
    loops += [Loop(other, 1, LOOP) for other in total.src[1:] if other is not axis]
    if piece > LONGEST_SUM and rounds(total):
        blocks = next(n for n in range(LONGEST_SUM // width, 0, -1) if piece % (n * width) == 0)
        loops.append(Loop(axis, blocks * width, BLOCK))
    loops.append(Loop(axis, width, LOOP))
    inner = [Loop(axis, 1, UNROLL)] if width > 1 else []
    return Schedule((*groups, *loops, *inner))


# -- each item by itself -------------------------------------------------------------------------------------
def _alone(kernel: Kernel, target: Target) -> Schedule:
    """A tile of the result for each item, and whole sums inside it."""
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
        width = divisor(size, UNROLLED) if size and number == len(reduced) - 1 else 1
        if size and size // width > LONGEST_SUM and rounds(total):
            loops.append(Loop(axis, width * 1024, BLOCK))
        loops.append(Loop(axis, width, LOOP))
        if width > 1:
            inner.append(Loop(axis, 1, UNROLL))
    return Schedule((*loops, *inner))


def _rows(total: Node | None, free: list[Node]) -> dict[Node, int]:
    """How many points of each axis a work-item computes:
    more where an operand of the sum does not depend on it.
    """
    unroll = dict.fromkeys(free, 1)
    if total is None:
        return unroll
    read = loads(total.src[0])
    reuse = [
        axis
        for axis in free
        if static_size(axis) and len(read) > 1 and any(along(load.src[1], axis, 2) == NONE for load in read)
    ]
    for axis in sorted(reuse, key=static_size)[-2:]:
        rows = divisor(static_size(axis), ROWS)
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
