"""Groups and work-items: how the outermost loops of a schedule share out the axes of the result."""
from collections.abc import Sequence
from dataclasses import dataclass

from tiny.ir import ops
from tiny.ir.integer import Integer, as_node, less, minimum, multiply, prod
from tiny.ir.node import Node
from tiny.schedule.loops import GROUP, PARALLEL, THREAD, Loop


@dataclass(frozen=True, slots=True)
class Grid:
    """counts, counters: of each parallel loop, by its number; extents: points left on each axis inside a
    work-item; conditions: what must hold for the work-item to have any; group, item: the nodes the counters
    are made of, None for one alone; items: work-items of a group; lane: of the item in its wave, for a matrix
    instruction.
    """
    counters: dict[int, Integer]
    extents: dict[Node, Integer]
    conditions: tuple[Node, ...]
    group: Node | None
    item: Node | None
    items: int
    lane: Integer
    counts: dict[int, Integer]


def rounded_up(extent: Integer, step: int) -> Integer:
    """How many steps cover an extent."""
    return (extent + (step - 1)) // step


def _peel(number: Node, counts: Sequence[Integer]) -> list[Integer]:
    """Counters of nested loops from the number of a point in all of them, the last running fastest."""
    counters: list[Integer] = []
    for place, count in enumerate(reversed(counts)):
        first = place == len(counts) - 1
        counters.append(number if first else number % count)
        number = number // count
    return list(reversed(counters))


def make_grid(loops: Sequence[Loop], sizes: dict[Node, Integer], lanes: int = 1) -> Grid:
    """The grid of a schedule's parallel loops. Work-items past the end of an axis fail a condition.

    lanes: neighbouring work-items that share the counters of their THREAD loops.
    """
    left = dict(sizes)
    counts: dict[int, Integer] = {}
    for number, loop in enumerate(loops):
        if loop.kind in PARALLEL:
            counts[number] = rounded_up(left[loop.axis], loop.step)
        left[loop.axis] = loop.step
    groups = [number for number in counts if loops[number].kind == GROUP]
    threads = [number for number in counts if loops[number].kind == THREAD]
    group = Node(ops.GROUP, None, (as_node(prod(counts[n] for n in groups)),), 0) if groups else None
    items = lanes * prod(counts[n] for n in threads)
    item = Node(ops.ITEM, None, (as_node(items),), 0) if threads or lanes > 1 else None
    of_groups = _peel(group, [counts[n] for n in groups]) if groups else []
    of_items = _peel(item, [*(counts[n] for n in threads), lanes]) if item is not None else [0]
    counters = dict(zip((*groups, *threads), (*of_groups, *of_items[:-1]), strict=True))
    return Grid(counters, *_points_left(loops, sizes, counters), group, item, items, of_items[-1], counts)


def _points_left(loops: Sequence[Loop], sizes: dict[Node, Integer],
                 counters: dict[int, Integer]) -> tuple[dict[Node, Integer], tuple[Node, ...]]:
    """Extents and conditions, see Grid, of the parallel loops that a schedule begins with."""
    position: dict[Node, Integer] = dict.fromkeys(sizes, 0)
    left = dict(sizes)
    parallel = [(loops[number], counter) for number, counter in counters.items()]
    for loop, counter in parallel:
        position[loop.axis] = position[loop.axis] + multiply(counter, loop.step)
        left[loop.axis] = loop.step
    conditions = []
    extents: dict[Node, Integer] = {}
    for loop, _ in parallel:
        size = sizes[loop.axis]
        exists = less(position[loop.axis], size)
        if isinstance(exists, Node) and exists not in conditions:
            conditions.append(exists)
        whole = not isinstance(size, Node) and size % left[loop.axis] == 0
        step = left[loop.axis]
        extents[loop.axis] = step if whole or step == 1 else minimum(step, size - position[loop.axis])
    return extents, tuple(conditions)
