"""A kernel's loop schedule as data: which loops, in which order, of which kind. Lowering follows it to the
letter.

An axis appears as one or more Loops, outermost first, with falling steps: Loop(m, 240, LOOP), Loop(m, 6,
LOOP), Loop(m, 1, UNROLL) walks m in blocks of 240, inside them in tiles of 6, whose rows are unrolled. A tile
that does not fit becomes a remainder of its own, with fewer rows or masked lanes. Loops after the first loop
over a reduced axis are the register tile: each combination of their UNROLL and LANES points has its own
accumulator.
"""
from dataclasses import dataclass

from tiny.ir import ops
from tiny.ir.node import Node, toposort
from tiny.schedule.kernel import Kernel

# a workgroup each; on the CPU a piece of work that any thread may take. Outermost
GROUP = "group"
THREAD = "thread"    # a work-item of the workgroup each; after the groups
LOOP = "loop"        # a loop
UNROLL = "unroll"    # written out; over a reduced axis, all points feed the same accumulators
# written out over a reduced axis, each point with accumulators of its own, added up at the end
SPLIT = "split"
LANES = "lanes"      # the lanes of a vector; innermost
BLOCK = "block"      # a loop over a reduced axis whose inner sums are taken apart and then added to the whole
PARALLEL = (GROUP, THREAD)
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

    operand: a LOAD of the kernel's value. layout: numbers of the loops it is laid out by, outermost first;
    the last is contiguous. Reads inside come from the copy.
    """
    operand: Node
    depth: int
    layout: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Loops from the outermost to the innermost, and the operands that are packed on the way."""
    loops: tuple[Loop, ...]
    packs: tuple[Pack, ...] = ()


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


def static_size(axis: Node) -> int | None:
    """The size of a RANGE, None when it is symbolic."""
    return axis.src[0].arg if axis.src[0].op is ops.CONST else None


def check(kernel: Kernel, schedule: Schedule) -> None:
    """Raise ScheduleError unless the schedule visits every point once and keeps the order the kernel asks
    for.
    """
    reduced = reduced_axes(kernel)
    wanted = {*kernel.axes, *reduced}
    last: dict[Node, int] = {}
    unrolled: set[Node] = set()
    for number, loop in enumerate(schedule.loops):
        where = f"loop {number}, {loop.kind} over axis {loop.axis.arg} by {loop.step}"
        if loop.axis not in wanted:
            raise ScheduleError(f"{where}: the kernel has no such axis")
        if loop.step < 1 or loop.step > last.get(loop.axis, loop.step) or (
                loop.axis in last and last[loop.axis] % loop.step):
            raise ScheduleError(
                f"{where}: steps must divide one another, falling to 1; before it stands {last}"
            )
        if loop.kind in PARALLEL:
            free = loop.axis not in reduced and loop.axis is not kernel.sequential
            kinds = {other.kind for other in schedule.loops[:number]}
            if not free or not kinds <= ({GROUP} if loop.kind == GROUP else {GROUP, THREAD}):
                raise ScheduleError(f"{where}: groups, then threads are the outermost loops, over free axes of "
                                    "the result")
        if loop.kind in (SPLIT, BLOCK) and loop.axis not in reduced:
            raise ScheduleError(f"{where}: only a reduced axis can be {loop.kind}")
        if loop.kind not in CONTROL and (loop.axis not in last or (loop.kind == LANES and loop.step != 1)):
            raise ScheduleError(
                f"{where}: comes after the loops on its axis, one of which sets its width; lanes last"
            )
        if loop.kind in CONTROL and loop.axis in unrolled:
            raise ScheduleError(f"{where}: stands inside an unrolled loop on the same axis")
        if loop.kind not in CONTROL:
            unrolled.add(loop.axis)
        if loop.axis is kernel.sequential and loop.kind != LOOP:
            raise ScheduleError(f"{where}: this axis must be walked in order")
        last[loop.axis] = loop.step
    for axis in wanted:
        if last.get(axis) != 1:
            raise ScheduleError(f"axis {axis.arg}: its loops end at step {last.get(axis)}, not at 1")
    if sum(loop.kind == LANES for loop in schedule.loops) > 1:
        raise ScheduleError("only one loop can be the lanes of a vector")
    _check_memory_accumulators(kernel, schedule, reduced)


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
        loop.axis not in reduced and loop.kind in CONTROL for loop in schedule.loops[first:]
    )


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
    if any(loop.kind == BLOCK for loop in schedule.loops):
        raise ScheduleError(
            "a loop whose inner sums are taken apart cannot also leave sums in the destination"
        )
