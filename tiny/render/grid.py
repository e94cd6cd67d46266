"""Groups and work-items: how the outermost loops of a schedule share out the axes of the result."""
from collections.abc import Sequence
from dataclasses import dataclass

from tiny.ir import ops
from tiny.ir.integer import Integer, as_node, less, minimum, multiply, prod
from tiny.ir.node import Node
from tiny.schedule.loops import GROUP, PARALLEL, Loop


@dataclass(frozen=True, slots=True)
class Grid:
    """counters: of each parallel loop, in order; extents: points left on each axis inside a work-item;
    conditions: what must hold for the work-item to have any; group, item: the nodes the counters are made of,
    None for one alone.
    """
    counters: tuple[Integer, ...]
    extents: dict[Node, Integer]
    conditions: tuple[Node, ...]
    group: Node | None
    item: Node | None


def _rounded_up(extent: Integer, step: int) -> Integer:
    return (extent + (step - 1)) // step


def _peel(number: Node, counts: Sequence[Integer]) -> list[Integer]:
    """Counters of nested loops from the number of a point in all of them, the last running fastest."""
    counters: list[Integer] = []
    for place, count in enumerate(reversed(counts)):
        first = place == len(counts) - 1
        counters.append(number if first else number % count)
        number = number // count
    return list(reversed(counters))


def make_grid(loops: Sequence[Loop], sizes: dict[Node, Integer]) -> Grid:
    """The grid of the parallel loops a schedule begins with.
    Work-items past the end of an axis fail a condition.
    """
    parallel = [loop for loop in loops if loop.kind in PARALLEL]
    left = dict(sizes)
    counts = []
    for loop in parallel:
        counts.append(_rounded_up(left[loop.axis], loop.step))
        left[loop.axis] = loop.step
    groups = sum(loop.kind == GROUP for loop in parallel)
    group = Node(ops.GROUP, None, (as_node(prod(counts[:groups])),), 0) if groups else None
    item = Node(ops.ITEM, None, (as_node(prod(counts[groups:])),), 0) if groups < len(counts) else None
    counters = (_peel(group, counts[:groups]) if groups else []) + (
        _peel(item, counts[groups:]) if item else []
    )
    position: dict[Node, Integer] = dict.fromkeys(sizes, 0)
    for loop, counter in zip(parallel, counters, strict=True):
        position[loop.axis] = position[loop.axis] + multiply(counter, loop.step)
    conditions = []
    extents: dict[Node, Integer] = {}
    for loop in parallel:
        size = sizes[loop.axis]
        exists = less(position[loop.axis], size)
        if isinstance(exists, Node) and exists not in conditions:
            conditions.append(exists)
        whole = not isinstance(size, Node) and size % left[loop.axis] == 0
        step = left[loop.axis]
        extents[loop.axis] = step if whole or step == 1 else minimum(step, size - position[loop.axis])
    return Grid(tuple(counters), extents, tuple(conditions), group, item)
