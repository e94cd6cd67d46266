"""Sums whose lanes are stored in places apart: through local memory, in a loop, which is short code.

Only where a group is one thread: elsewhere local memory belongs to all work-items of the group.
"""
from dataclasses import replace

from tiny.ir import ops
from tiny.ir.integer import as_node, substitute
from tiny.ir.node import Node
from tiny.render.instances import Instance, Point, all_of, lanes_in, lanes_that_exist, load, neighbours
from tiny.schedule.loops import LANES, has_items

WRITTEN_OUT = 64             # lanes of a tile that are stored one by one


def apart(lowering, points: list[Point], width: int) -> list[int]:
    """For each point, how many lanes it has where those are stored in places apart; 0 where a vector is
    stored at once, where how many there are is not certain, and everywhere if they are few, or if a group
    has several work-items.
    """
    if not width or has_items(lowering.schedule):
        return [0] * len(points)
    lanes = Node(ops.LANES, None, (), width)
    counts = []
    for point in points:
        gate = all_of([gate for _, gate in point.instance.gates if lanes_in(gate) is not None])
        scattered = neighbours(lowering.where(point.instance, {}), lanes) is None
        counts.append(lanes_that_exist(gate, lanes) or 0 if scattered else 0)
    return counts if sum(counts) > WRITTEN_OUT else [0] * len(points)


def store(lowering, state, points: list[Point], totals: list[Node], counts: list[int], width: int) -> None:
    """Store the sums of the points that have a count. totals: vectors of `width` lanes, one a point."""
    if not any(counts):
        return
    emit, lanes = lowering.emit, Node(ops.LANES, None, (), width)
    number = next(n for n, loop in enumerate(lowering.loops) if loop.kind == LANES)
    local = emit.local(lowering.total.dtype, len(points) * width)
    for place, total in enumerate(totals):
        if counts[place]:
            emit.store(local, place * width + lanes, total)
    for count in dict.fromkeys(count for count in counts if count):
        lane = Node(ops.LOOP, None, (as_node(count),), emit.number())
        lowering.scopes.open(lane)
        for place, point in enumerate(points):
            if counts[place] == count:
                one = _at(point, lanes, lane, number)
                total = load(local, place * width + lane, ())
                known = lowering.replaced(state, one.counters) | {lowering.total: total}
                lowering.store(one.instance, lowering.value(one.instance, known))
        lowering.scopes.close()


def _at(point: Point, lanes: Node, lane: Node, number: int) -> Point:
    """The point at one of its lanes, the counter of loop `number`."""
    positions = {axis: substitute(at, {lanes: lane}) for axis, at in point.instance.positions.items()}
    gates = tuple(one for one in point.instance.gates if lanes_in(one[1]) is None)
    return replace(point, instance=Instance(positions, gates), counters=point.counters | {number: lane})
