"""A kernel's loop schedule as data: which loops, in which order, of which kind. Lowering follows it to the
letter.

An axis appears as one or more Loops, outermost first, with falling steps: Loop(m, 240, LOOP), Loop(m, 6,
LOOP), Loop(m, 1, UNROLL) walks m in blocks of 240, inside them in tiles of 6, whose rows are unrolled. A tile
that does not fit becomes a remainder of its own, with fewer rows or masked lanes. Loops after the first loop
over a reduced axis are the register tile: each combination of their UNROLL and LANES points has its own
accumulator.

On a GPU the work-items of a group may also work together: loops of kind THREAD over a reduced axis share out
a sum, packed operands lie in memory that the group shares, and MATRIX loops are one instruction of a whole
wave. Such a schedule is cooperative: no item leaves a loop before the others, points past the end of an axis
are computed and not stored, and there are no remainders.
"""
from collections.abc import Container, Sequence
from dataclasses import dataclass
from math import prod

from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.integer import bounds
from tiny.ir.node import Node, toposort
from tiny.schedule.kernel import Kernel
from tiny.schedule.tensorcore import Matrix

# a workgroup each; on the CPU a piece of work that any thread may take. Outermost
GROUP = "group"
# a work-item of the workgroup each, or a wave where there is a matrix instruction. Over an axis of the result
# after the groups; over a reduced axis anywhere: partial sums are added up at the end
THREAD = "thread"
LOOP = "loop"        # a loop
UNROLL = "unroll"    # written out; over a reduced axis, all points feed the same accumulators
# written out over a reduced axis, each point with accumulators of its own, added up at the end
SPLIT = "split"
LANES = "lanes"      # the lanes of a vector; innermost
MATRIX = "matrix"    # three, innermost, along m, n and k of the schedule's matrix instruction
BLOCK = "block"      # a loop over a reduced axis whose inner sums are taken apart and then added to the whole
PARALLEL = (GROUP, THREAD)
LARGEST_LOCAL = 1 << 20      # bytes of packed operands, which lie on a thread's stack
LARGEST_SHARED = 1 << 16     # bytes of memory that the items of a group share
LARGEST_GROUP = 1024         # work-items of a group
LONGEST_SUM = 4096           # steps of one float accumulator before its sum is set aside
CONTROL = (*PARALLEL, LOOP, BLOCK)


class ScheduleError(ValueError):
    """A schedule that would not compute the kernel; says which loop and why."""


@dataclass(frozen=True, slots=True)
class Loop:
    """Steps through `axis`, a RANGE, `step` points at a time; the loops after it on the same axis walk those
    points.
    """
    axis: Node
    step: int
    kind: str


@dataclass(frozen=True, slots=True)
class Pack:
    """Copy what the loops from number `depth` on read of `operand` into local memory before loop `depth`
    starts.

    operand: a LOAD of the kernel's value, or what is computed from LOADs; the copy holds it as computed.
    layout: numbers of the loops it is laid out by, outermost first; the last is contiguous. Reads inside
    come from the copy.
    """
    operand: Node
    depth: int
    layout: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Loops from the outermost to the innermost, the operands that are packed on the way, and the instruction
    that the MATRIX loops are. streaming: results that are whole vectors go to memory past the caches.
    """
    loops: tuple[Loop, ...]
    packs: tuple[Pack, ...] = ()
    matrix: Matrix | None = None
    streaming: bool = False


def accumulation(kernel: Kernel) -> Node | None:
    """The kernel's reduction, None for a kernel that has none. There is at most one."""
    found = [node for node in toposort(kernel.value) if node.op is ops.ACCUMULATE]
    if len(found) > 1:
        raise ScheduleError(f"{len(found)} reductions in one kernel; store all but one")
    return found[0] if found else None


def reduced_axes(kernel: Kernel) -> tuple[Node, ...]:
    """The RANGEs a kernel's reduction runs over."""
    total = accumulation(kernel)
    return total.src[1:] if total is not None else ()


def rounds(total: Node) -> bool:
    """Whether a reduction loses digits of what is added last where the sum before is long: one of floats."""
    return total.arg is ops.ADD and total.dtype.is_float


def static_size(axis: Node) -> int | None:
    """The size of a RANGE, None when it is symbolic."""
    return axis.src[0].arg if axis.src[0].op is ops.CONST else None


def check(kernel: Kernel, schedule: Schedule) -> None:
    """Raise ScheduleError unless the schedule visits every point once and keeps the order the kernel asks
    for.
    """
    reduced = reduced_axes(kernel)
    for number, loop in enumerate(schedule.loops):
        problem = _problem_with_loop(kernel, reduced, schedule.loops[:number], loop)
        if problem is not None:
            raise ScheduleError(
                f"loop {number}, {loop.kind} over axis {loop.axis.arg} by {loop.step}: {problem}")
    last = {loop.axis: loop.step for loop in schedule.loops}
    for axis in (*kernel.axes, *reduced):
        if last.get(axis) != 1:
            raise ScheduleError(f"axis {axis.arg}: its loops end at step {last.get(axis)}, not at 1")
    if sum(loop.kind == LANES for loop in schedule.loops) > 1:
        raise ScheduleError("only one loop can be the lanes of a vector")
    _check_memory_accumulators(kernel, schedule, reduced)
    problem = _problem_with_matrix(kernel, schedule) or _problem_with_threads(kernel, schedule, reduced)
    if problem is not None:
        raise ScheduleError(problem)
    for number, pack in enumerate(schedule.packs):
        problem = _problem_with_pack(kernel, schedule, pack)
        if problem is not None:
            raise ScheduleError(f"pack {number}, before loop {pack.depth}: {problem}")
    size, most = local_size(kernel, schedule), LARGEST_LOCAL
    if any(loop.kind == THREAD for loop in schedule.loops) or schedule.matrix is not None:
        most = LARGEST_SHARED
    if size > most:
        raise ScheduleError(f"packs take {size} bytes of local memory, more than {most}; use smaller blocks")


def _problem_with_loop(kernel: Kernel, reduced: tuple[Node, ...], outer: tuple[Loop, ...],
                       loop: Loop) -> str | None:
    """Why a loop cannot stand inside the loops `outer`, None if it can."""
    axis, kind = loop.axis, loop.kind
    if axis not in kernel.axes and axis not in reduced:
        return "the kernel has no such axis"
    last = {before.axis: before.step for before in outer}
    width = last.get(axis)                                   # points that are left for this loop
    if loop.step < 1 or (width is not None and (loop.step > width or width % loop.step)):
        return f"steps must divide one another, falling to 1; before it stands {width}"
    if kind in PARALLEL:
        free = axis not in reduced and axis is not kernel.sequential
        kinds = {before.kind for before in outer}
        shared = kind == THREAD and axis in reduced
        if not shared and (not free or not kinds <= ({GROUP} if kind == GROUP else {GROUP, THREAD})):
            return "groups, then threads are the outermost loops, over free axes of the result"
        if kind == THREAD and width is None and static_size(axis) is None:
            return "a group has a fixed number of work-items; put a loop before it"
    if kind in (SPLIT, BLOCK) and axis not in reduced:
        return f"only a reduced axis can be {kind}"
    if kind not in CONTROL and (width is None or (kind in (LANES, MATRIX) and loop.step != 1)):
        return "comes after the loops on its axis, one of which sets its width; lanes last"
    if kind in CONTROL and any(before.axis is axis and before.kind not in CONTROL for before in outer):
        return "stands inside an unrolled loop on the same axis"
    if kind == LANES and width & (width - 1):
        return f"{width} lanes; a vector has a power of two"
    if axis is kernel.sequential and kind != LOOP:
        return "this axis must be walked in order"
    if kernel.carried and kind in CONTROL and axis is not kernel.sequential and kernel.sequential in last:
        return "stands inside the loop along which a result is carried on"
    return None


def _problem_with_pack(kernel: Kernel, schedule: Schedule, pack: Pack) -> str | None:
    """Why an operand cannot be packed so, None if it can."""
    loops = schedule.loops
    parts = toposort(pack.operand)
    pointers = {node.src[0].arg for node in parts if node.op is ops.LOAD}
    if pack.operand not in toposort(kernel.value) or not pointers or pack.operand.dtype is dtypes.index:
        return "its operand is no part of the kernel's value that comes from memory"
    if any(node.op is ops.ACCUMULATE for node in parts):
        return "its operand is a sum, or made of one"
    if 0 in pointers:
        return "its operand is in the memory that the kernel writes"
    if sum(other.operand in parts for other in schedule.packs) > 1:
        return "its operand, or a part of it, is packed twice"
    if not 0 <= pack.depth < len(loops) or loops[pack.depth].kind not in (LOOP, BLOCK):
        return "it stands before no loop"
    axes = {node for node in parts if node.op is ops.RANGE}
    wanted = packed_loops(loops, pack.depth, axes)
    if sorted(pack.layout) != wanted:
        return f"its layout is {pack.layout}; the loops inside that its operand depends on are {wanted}"
    if any(static_size(axis) is None for axis in axes):
        return "its operand depends on an axis of symbolic size"
    total = accumulation(kernel)
    first = first_reduced(schedule, reduced_axes(kernel))
    if total is not None and pack.operand not in toposort(total) and pack.depth >= first:
        return "its operand is read after the reduction, outside the loop"
    return None


def packed_loops(loops: Sequence[Loop], depth: int, axes: Container[Node]) -> list[int]:
    """The numbers of the loops over `axes` whose points a copy made before loop `depth` holds: those inside,
    and wherever they stand, those that are written out or shared out to work-items.
    """
    return [n for n, loop in enumerate(loops)
            if loop.axis in axes and (n >= depth or loop.kind == THREAD or loop.kind not in CONTROL)]


def pack_counts(schedule: Schedule, pack: Pack) -> list[int]:
    """How many points each loop of a pack's layout has at most."""
    return [_count(schedule, number) for number in pack.layout]


def _count(schedule: Schedule, number: int) -> int:
    """How many points a loop has at most; with work-items, also those past the end of its axis."""
    loop = schedule.loops[number]
    steps = [other.step for other in schedule.loops[:number] if other.axis is loop.axis]
    whole = loop.kind == LANES or (steps and has_items(schedule))
    most = steps[-1] if whole else min([static_size(loop.axis), *steps])
    return -(-most // loop.step)


def has_items(schedule: Schedule) -> bool:
    """Whether groups have several work-items."""
    return schedule.matrix is not None or any(loop.kind == THREAD for loop in schedule.loops)


def group_items(schedule: Schedule) -> int:
    """The work-items of a group."""
    lanes = 1 if schedule.matrix is None else schedule.matrix.lanes
    threads = (_count(schedule, n) for n, loop in enumerate(schedule.loops) if loop.kind == THREAD)
    return lanes * prod(threads)


def cooperative(schedule: Schedule, reduced: tuple[Node, ...]) -> bool:
    """Whether the items of a group work together, so that all of them walk the same way through the loops."""
    shared = any(loop.kind == THREAD and loop.axis in reduced for loop in schedule.loops)
    return schedule.matrix is not None or shared or (bool(schedule.packs) and has_items(schedule))


def local_size(kernel: Kernel, schedule: Schedule) -> int:
    """Bytes of local memory: of packed operands, and of what items exchange to add up their sums."""
    size = sum(prod(pack_counts(schedule, pack)) * pack.operand.dtype.itemsize for pack in schedule.packs)
    total = accumulation(kernel)
    if total is None or not any(loop.kind == THREAD and loop.axis in total.src for loop in schedule.loops):
        return size
    tile = [n for n, loop in enumerate(schedule.loops)
            if loop.kind not in CONTROL and loop.axis not in total.src[1:]]
    return size + group_items(schedule) * prod(_count(schedule, n) for n in tile) * total.dtype.itemsize


def _problem_with_matrix(kernel: Kernel, schedule: Schedule) -> str | None:
    """Why the MATRIX loops are not the schedule's instruction, None if they are, or there are none."""
    matrix, loops = schedule.matrix, schedule.loops
    numbers = [n for n, loop in enumerate(loops) if loop.kind == MATRIX]
    if matrix is None:
        return f"loop {numbers[0]} is {MATRIX}; the schedule names no instruction" if numbers else None
    if numbers != list(range(len(loops) - 3, len(loops))) or len({loops[n].axis for n in numbers}) != 3:
        return f"{matrix.name}: its three {MATRIX} loops, over m, n and k, are the innermost"
    widths = tuple([loop.step for loop in loops[:n] if loop.axis is loops[n].axis][-1] for n in numbers)
    if widths != (matrix.m, matrix.n, matrix.k):
        return f"{matrix.name}: its loops are {widths} wide, not {(matrix.m, matrix.n, matrix.k)}"
    m, n, k = (loops[number].axis for number in numbers)
    reduced = reduced_axes(kernel)
    if m in reduced or n in reduced or k not in reduced:
        return f"{matrix.name}: m and n are axes of the result, k is a reduced one"
    if any(loop.kind in (LANES, SPLIT) or (loop.kind == THREAD and loop.axis in reduced) for loop in loops):
        return f"{matrix.name}: no lanes, separate sums or shared sums stand beside it"
    problem = matrix.problem(accumulation(kernel), m, n, k)
    return None if problem is None else f"{matrix.name}: {problem}"


def _problem_with_threads(kernel: Kernel, schedule: Schedule, reduced: tuple[Node, ...]) -> str | None:
    """Why the items of a group cannot work so, None if they can."""
    items = group_items(schedule) if has_items(schedule) else 1
    if items > LARGEST_GROUP:
        return f"{items} work-items in a group, more than {LARGEST_GROUP}"
    if not cooperative(schedule, reduced):
        return None
    threads = [loop.axis in reduced for loop in schedule.loops if loop.kind == THREAD]
    if sum(a != b for a, b in zip(threads, threads[1:], strict=False)) > 1:
        return "threads that share a sum stand together, before or after the other threads"
    if kernel.sequential is not None:
        return "items of a group do not work together on a kernel that is walked in order"
    if spills(schedule, reduced):
        return "items of a group work together only on sums that stay in registers"
    return None


def first_reduced(schedule: Schedule, reduced: tuple[Node, ...]) -> int | None:
    """The number of the first control loop over a reduced axis."""
    return next(
        (n for n, loop in enumerate(schedule.loops) if loop.axis in reduced and loop.kind in CONTROL), None
    )


def spills(schedule: Schedule, reduced: tuple[Node, ...]) -> bool:
    """Whether a loop over the result stands inside one over a reduced axis, so that sums wait in the
    destination.
    """
    first = first_reduced(schedule, reduced)
    return first is not None and any(
        loop.axis not in reduced and loop.kind in (LOOP, BLOCK) for loop in schedule.loops[first:]
    )


def longest_sum(kernel: Kernel, schedule: Schedule) -> int:
    """The most values that are added to one float accumulator one after the other; 0 for other reductions,
    which lose nothing.
    """
    total = accumulation(kernel)
    if total is None or not rounds(total):
        return 0
    loops, reduced = schedule.loops, total.src[1:]
    ends = {n for n, loop in enumerate(loops) if loop.kind == BLOCK}
    if spills(schedule, reduced):                            # what is outside adds to the destination
        ends.add(max(n for n, loop in enumerate(loops) if loop.kind in CONTROL and loop.axis not in reduced))
    longest = steps = 1
    for number, loop in enumerate(loops):
        if loop.axis in reduced and loop.kind not in (THREAD, SPLIT, LANES):
            size = bounds(loop.axis.src[0])[1]
            points = min([size, *(other.step for other in loops[:number] if other.axis is loop.axis)])
            steps *= -(-points // loop.step)
        longest = max(longest, steps)
        if number in ends:
            steps = 1
    return longest


def _check_memory_accumulators(kernel: Kernel, schedule: Schedule, reduced: tuple[Node, ...]) -> None:
    if not spills(schedule, reduced):
        return
    if (
        kernel.value.op is not ops.ACCUMULATE
        or kernel.value.arg is not ops.ADD
        or kernel.dtype is not kernel.value.dtype
    ):
        raise ScheduleError(
            "sums can wait in the destination only when they are the kernel's whole value, unrounded"
        )
    if any(node.op is ops.LOAD and node.src[0].arg == 0 for node in toposort(kernel.value)):
        raise ScheduleError("sums cannot wait in the destination while its old value is still read")
    if any(loop.kind == BLOCK for loop in schedule.loops):
        raise ScheduleError(
            "a loop whose inner sums are taken apart cannot also leave sums in the destination"
        )
