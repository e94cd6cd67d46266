"""Search for a better loop schedule by trying: small changes of a good one, the best kept, until none helps.

Nothing here runs a kernel. `search` proposes schedules and is given a function that times them.
"""
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tiny.ir import ops
from tiny.ir.node import Node, toposort
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import (
    BLOCK,
    CONTROL,
    GROUP,
    LANES,
    LONGEST_SUM,
    LOOP,
    SPLIT,
    THREAD,
    UNROLL,
    Loop,
    Pack,
    Schedule,
    ScheduleError,
    check,
    group_items,
    has_items,
    local_size,
    longest_sum,
    packed_loops,
    reduced_axes,
    static_size,
)
from tiny.target import Target

ROUNDS = 12                  # changes that a schedule may be away from where the search began
CANDIDATES = 48              # tried in one round
LARGEST_TILE = 96            # accumulators or copies of a statement that are written out
WORTH = 0.99                 # a round that gains less ends the search
WIDTHS = (2, 4, 8)
BLOCK_WIDTHS = (8, 64)

Measure = Callable[[Sequence[Schedule]], list[float]]


def search(kernel: Kernel, start: Schedule, target: Target, width: int,
           measure: Measure) -> tuple[Schedule, float]:
    """The fastest schedule found and its time in seconds; `start` itself if nothing is faster.

    width: schedules kept from one round to the next. measure: seconds of each, infinite for one that fails.
    """
    times = {start: measure([start])[0]}
    beam = [start]
    for _ in range(ROUNDS):
        proposed = dict.fromkeys(other for one in beam for other in neighbours(kernel, one, target))
        fresh = _spread([one for one in proposed if one not in times], CANDIDATES)
        if not fresh:
            break
        before = times[beam[0]]
        times.update(zip(fresh, measure(fresh), strict=True))
        beam = sorted({*beam, *fresh}, key=times.__getitem__)[:width]
        if times[beam[0]] > WORTH * before:
            break
    return beam[0], times[beam[0]]


def _spread(candidates: list[Schedule], most: int) -> list[Schedule]:
    """At most `most` of them, evenly from the whole list, so that each kind of change has its turn."""
    stride = max(len(candidates) / most, 1.0)
    return [candidates[int(number * stride)] for number in range(min(most, len(candidates)))]


def neighbours(kernel: Kernel, schedule: Schedule, target: Target) -> Iterator[Schedule]:
    """Every legal schedule that is one change away and that the target can run. Float sums stay as short as
    they are, or LONGEST_SUM, so that a search does not cost accuracy (docs/numerics.md).
    """
    most = max(LONGEST_SUM, longest_sum(kernel, schedule))
    for changed in dict.fromkeys(_changes(kernel, schedule, target)):
        if changed == schedule:
            continue
        try:
            check(kernel, changed)
        except ScheduleError:
            continue
        useful = _written_out(changed) <= LARGEST_TILE and longest_sum(kernel, changed) <= most
        if useful and _fits(kernel, changed, target):
            yield changed


def _fits(kernel: Kernel, schedule: Schedule, target: Target) -> bool:
    """Whether the target has the work-items and the memory for a group."""
    local = not has_items(schedule) or local_size(kernel, schedule) <= target.local_bytes
    return local and group_items(schedule) <= target.work_items


def _changes(kernel: Kernel, schedule: Schedule, target: Target) -> Iterator[Schedule]:
    for loops in _loop_changes(kernel, list(schedule.loops), target):
        yield replace(schedule, loops=tuple(loops), packs=tuple(_kept_packs(schedule, loops)))
    for packs in _pack_changes(kernel, schedule):
        yield replace(schedule, packs=packs)


def _loop_changes(kernel: Kernel, loops: list[Loop], target: Target) -> Iterator[list[Loop]]:
    reduced = reduced_axes(kernel)
    axes = [axis for axis in (*kernel.axes, *reduced) if axis is not kernel.sequential]
    for place, loop in enumerate(loops):
        if loop.kind in (UNROLL, SPLIT, LANES, THREAD, GROUP):
            yield from _rescaled(loops, place)
        if loop.kind in (UNROLL, SPLIT):
            yield _without(loops, place)
            if loop.axis in reduced:
                yield _with_kind(loops, place, SPLIT if loop.kind == UNROLL else UNROLL)
        if place and loop.kind in (LOOP, BLOCK, GROUP, UNROLL):
            yield [*loops[:place - 1], loop, loops[place - 1], *loops[place + 1:]]
    for axis in axes:
        for width in WIDTHS:
            yield from _tiled(loops, axis, width, UNROLL)
            if axis in reduced:
                yield from _tiled(loops, axis, width, SPLIT)
        yield from _blocked(loops, axis, reduced)
        yield from _grouped(loops, axis, reduced, target)
        if target.work_items == 1:
            yield from _with_lanes(loops, axis, target)


def _rescaled(loops: list[Loop], place: int) -> Iterator[list[Loop]]:
    """The loop twice and half as wide: the steps outside it on its axis grow or shrink with it."""
    loop = loops[place]
    outer = [n for n in range(place) if loops[n].axis is loop.axis]
    if loop.kind == GROUP:                              # its own step is how much a group takes
        inner = next((other.step for other in loops[place + 1:] if other.axis is loop.axis), 1)
        for step in (loop.step * 2, loop.step // 2):
            if step and step % inner == 0:
                yield [*loops[:place], Loop(loop.axis, step, GROUP), *loops[place + 1:]]
        return
    if not outer:
        return
    width = loops[outer[-1]].step // loop.step
    yield [Loop(o.axis, o.step * 2, o.kind) if n in outer else o for n, o in enumerate(loops)]
    if width > 2 and width % 2 == 0:
        yield [Loop(o.axis, o.step // 2, o.kind) if n in outer else o for n, o in enumerate(loops)]


def _without(loops: list[Loop], place: int) -> list[Loop]:
    """Without an unrolled loop: the steps outside it shrink to its own."""
    loop = loops[place]
    outer = [n for n in range(place) if loops[n].axis is loop.axis]
    width = loops[outer[-1]].step // loop.step
    kept = [Loop(o.axis, o.step // width, o.kind) if n in outer else o for n, o in enumerate(loops)]
    return kept[:place] + kept[place + 1:]


def _with_kind(loops: list[Loop], place: int, kind: str) -> list[Loop]:
    return [*loops[:place], Loop(loops[place].axis, loops[place].step, kind), *loops[place + 1:]]


def _tiled(loops: list[Loop], axis: Node, width: int, kind: str) -> Iterator[list[Loop]]:
    """`width` steps of the axis's innermost control loop written out."""
    own = [n for n, loop in enumerate(loops) if loop.axis is axis]
    controls = [n for n in own if loops[n].kind in CONTROL]
    size = static_size(axis)
    if not controls or any(loops[n].kind == kind for n in own):
        return
    step = loops[controls[-1]].step
    if size is not None and step * width > size:
        return
    grown = [Loop(o.axis, o.step * width, o.kind) if n in controls else o for n, o in enumerate(loops)]
    place = next((n for n, o in enumerate(loops) if o.kind not in CONTROL), len(loops))
    yield [*grown[:place], Loop(axis, step, kind), *grown[place:]]


def _blocked(loops: list[Loop], axis: Node, reduced: Sequence[Node]) -> Iterator[list[Loop]]:
    """A loop over blocks of the axis, outside the others; or without the one there is."""
    controls = [n for n, loop in enumerate(loops) if loop.axis is axis and loop.kind in (LOOP, BLOCK)]
    if not controls:
        return
    if len(controls) > 1:
        yield loops[:controls[0]] + loops[controls[0] + 1:]
        return
    size = static_size(axis)
    first = next((n for n, loop in enumerate(loops) if loop.kind not in (GROUP, THREAD)), len(loops))
    for width in BLOCK_WIDTHS:
        step = loops[controls[0]].step * width
        if size is not None and step < size:
            yield [*loops[:first], Loop(axis, step, LOOP), *loops[first:]]
            if axis in reduced:
                yield [*loops[:controls[0]], Loop(axis, step, BLOCK), *loops[controls[0]:]]


def _grouped(loops: list[Loop], axis: Node, reduced: Sequence[Node],
             target: Target) -> Iterator[list[Loop]]:
    """Another axis shared out among threads, or none."""
    groups = [n for n, loop in enumerate(loops) if loop.kind == GROUP]
    if axis in reduced or target.work_items > 1:
        return
    own = [n for n in groups if loops[n].axis is axis]
    if own:
        yield loops[:own[0]] + loops[own[0] + 1:]
        return
    inner = next(loop.step for loop in loops if loop.axis is axis)
    size = static_size(axis)
    if size is None or size <= inner or target.threads < 2:
        return
    step = max(inner, size // (4 * target.threads) // inner * inner)
    rest = [loop for n, loop in enumerate(loops) if n not in groups or _is_last_control(loops, n)]
    rest = [Loop(o.axis, o.step, LOOP) if o.kind == GROUP else o for o in rest]
    yield [Loop(axis, step, GROUP), *rest]


def _is_last_control(loops: list[Loop], place: int) -> bool:
    axis = loops[place].axis
    return not any(loop.axis is axis and loop.kind in CONTROL for loop in loops[place + 1:])


def _with_lanes(loops: list[Loop], axis: Node, target: Target) -> Iterator[list[Loop]]:
    """Vector lanes along this axis in place of where they are."""
    plain = loops
    lanes = next((n for n, loop in enumerate(loops) if loop.kind == LANES), None)
    if lanes is not None:
        plain = _without(loops, lanes)
        if loops[lanes].axis is axis:
            yield plain
            return
    own = [n for n, loop in enumerate(plain) if loop.axis is axis]
    for width in (target.lanes // 8, target.lanes // 4, target.lanes // 2):
        size = static_size(axis)
        if width > 1 and (size is None or size >= width):
            yield [*(Loop(o.axis, o.step * width, o.kind) if n in own else o for n, o in enumerate(plain)),
                   Loop(axis, 1, LANES)]


def _pack_changes(kernel: Kernel, schedule: Schedule) -> Iterator[tuple[Pack, ...]]:
    """One operand packed, packed elsewhere, or read in place again."""
    loads = [node for node in toposort(kernel.value) if node.op is ops.LOAD and node.src[0].arg != 0]
    packed = [pack.operand for pack in schedule.packs]
    controls = [n for n, loop in enumerate(schedule.loops) if loop.kind in (LOOP, BLOCK)]
    for operand in dict.fromkeys((*packed, *loads)):
        others = tuple(pack for pack in schedule.packs if operand not in toposort(pack.operand))
        if len(others) < len(schedule.packs):
            yield others
        axes = {node for node in toposort(operand) if node.op is ops.RANGE}
        for depth in controls:
            yield (*others, Pack(operand, depth, tuple(packed_loops(schedule.loops, depth, axes))))


def _kept_packs(schedule: Schedule, loops: list[Loop]) -> Iterator[Pack]:
    """The packs under other loops, each before the loop it stood before; gone where that loop is. Loops that
    are new come first in a layout, lanes last.
    """
    before, after = _identities(schedule.loops), _identities(loops)
    for pack in schedule.packs:
        if before[pack.depth] not in after:
            continue
        depth = after.index(before[pack.depth])
        axes = {node for node in toposort(pack.operand) if node.op is ops.RANGE}
        order = {before[number]: position for position, number in enumerate(pack.layout)}

        def position(number: int, order: dict = order) -> int:
            return order.get(after[number], len(order) if loops[number].kind == LANES else -1)
        yield Pack(pack.operand, depth, tuple(sorted(packed_loops(loops, depth, axes), key=position)))


def _identities(loops: Sequence[Loop]) -> list[tuple[Node, str, int]]:
    """What tells loops apart, whatever their steps: axis, kind, and how many of the same stand inside."""
    return [(loop.axis, loop.kind, sum(other.axis is loop.axis and other.kind == loop.kind
                                       for other in loops[number + 1:])) for number, loop in enumerate(loops)]


def _written_out(schedule: Schedule) -> int:
    """How often the innermost statement is written out."""
    widths = []
    for number, loop in enumerate(schedule.loops):
        if loop.kind in (UNROLL, SPLIT):
            widths.append(next(o.step for o in reversed(schedule.loops[:number]) if o.axis is loop.axis)
                          // loop.step)
    return math.prod(widths)
