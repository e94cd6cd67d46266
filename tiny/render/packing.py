"""Packed operands: copies in local memory, laid out as the inner loops read them. Where groups have
work-items, they make the copy together.
"""
import math
from dataclasses import replace

from tiny.ir import ops
from tiny.ir.integer import Integer, as_node, less, linear, multiply, unbound
from tiny.ir.node import Node, toposort
from tiny.render.emit import Emitter
from tiny.render.grid import Grid
from tiny.render.instances import Instance, Instantiate, State, load
from tiny.schedule.loops import LANES, Loop, Pack, Schedule, pack_counts

LARGEST_ACCESS = 16          # bytes that an item moves with one instruction


def replacements(schedule: Schedule, state: State, counters: dict[int, Integer]) -> dict[Node, Node]:
    """Packed operands, read from their copies; counters: of loops that the state does not know."""
    known = state.counters | counters
    return {
        operand: load(local, _local_index(schedule, pack, known), ())
        for operand, (local, pack) in state.packed.items()
    }


def _local_index(schedule: Schedule, pack: Pack, counters: dict[int, Integer]) -> Integer:
    index: Integer = 0
    for number, count in zip(pack.layout, pack_counts(schedule, pack), strict=True):
        index = multiply(index, count) + counters.get(number, 0)
    return index


def copy(emit: Emitter, schedule: Schedule, state: State, pack: Pack) -> State:
    """Emit the copy of an operand by one thread; the state it returns reads from the copy."""
    counts = pack_counts(schedule, pack)
    local = emit.local(pack.operand.dtype, math.prod(counts))
    positions = dict(state.base)
    counters: dict[int, Integer] = {}
    opened = 0
    for number, count in zip(pack.layout, counts, strict=True):
        loop = schedule.loops[number]
        if loop.kind == LANES and number == pack.layout[-1]:
            counter: Integer = Node(ops.LANES, None, (), count)
        elif count == 1:
            counter = 0
        else:
            counter = Node(ops.LOOP, None, (as_node(count),), emit.number())
            emit.scopes.open(counter)
            opened += 1
        counters[number] = counter
        positions[loop.axis] = positions[loop.axis] + multiply(counter, loop.step)
    value = _value(schedule, state, pack, positions, counters)
    emit.store(local, _local_index(schedule, pack, counters), value)
    for _ in range(opened):
        emit.scopes.close()
    return replace(state, packed=state.packed | {pack.operand: (local, pack)})


def _value(schedule: Schedule, state: State, pack: Pack, positions: dict[Node, Integer],
           counters: dict[int, Integer]) -> Node:
    """The operand at a position, 0 past the end of an axis."""
    read = Instantiate(pack.operand)
    gates = [(axis, less(positions[axis], unbound(axis.src[0]))) for axis in read.axes[pack.operand]]
    gates = tuple((axis, gate) for axis, gate in gates if isinstance(gate, Node))
    return read(Instance(positions, gates), replacements(schedule, state, counters))


# -- by all items of a group ---------------------------------------------------------------------------------
def copy_together(emit: Emitter, schedule: Schedule, state: State, pack: Pack, grid: Grid) -> State:
    """Emit the copy of an operand by all work-items: neighbours in memory go to neighbouring items, several
    at a time where they are neighbours along one loop. The caller puts barriers around it.
    """
    counts = dict(zip(pack.layout, pack_counts(schedule, pack), strict=True))
    local = emit.local(pack.operand.dtype, math.prod(counts.values()))
    largest = _largest_load(pack.operand)
    order = sorted(pack.layout, key=lambda number: -_distance(schedule.loops[number], largest))
    width = _width(schedule, largest, order, counts)
    pieces = math.prod(counts.values()) // width
    rounds = -(-pieces // grid.items)
    first: Integer = 0
    if rounds > 1:
        first = Node(ops.LOOP, None, (as_node(rounds),), emit.number())
        emit.scopes.open(first)
    piece = first * grid.items + grid.item
    exists = less(piece, pieces)
    if exists is not True:
        opener = Node(ops.IF, None, (emit.scopes.place(exists),), emit.number())
        emit.scopes.open(opener, conditional=True)
    counters: dict[int, Integer] = {}
    for number in reversed(order):
        count = counts[number] // (width if number == order[-1] else 1)
        counters[number] = piece if number == order[0] else piece % count
        piece = piece // count
    if width > 1:
        counters[order[-1]] = counters[order[-1]] * width + Node(ops.LANES, None, (), width)
    positions: dict[Node, Integer] = dict.fromkeys(state.base, 0)
    for number, counter in (state.counters | counters).items():
        loop = schedule.loops[number]
        positions[loop.axis] = positions[loop.axis] + multiply(counter, loop.step)
    value = _value(schedule, state, pack, positions, counters)
    emit.store(local, _local_index(schedule, pack, counters), value)
    for _ in range((exists is not True) + (rounds > 1)):
        emit.scopes.close()
    return replace(state, packed=state.packed | {pack.operand: (local, pack)})


def _largest_load(operand: Node) -> Node:
    """What an operand reads that depends on most axes: it decides in which order items make the copy."""
    loads = [node for node in toposort(operand) if node.op is ops.LOAD]
    return max(loads, key=lambda one: sum(node.op is ops.RANGE for node in toposort(one)))


def _distance(loop: Loop, read: Node) -> float:
    """Elements in memory between two steps of a loop; endless where they lie otherwise. read: a LOAD."""
    terms = linear(read.src[1])[1]
    inside = any(loop.axis in toposort(atom) for atom in terms if atom is not loop.axis)
    return math.inf if inside else abs(terms.get(loop.axis, 0)) * loop.step


def _width(schedule: Schedule, read: Node, order: list[int], counts: dict[int, int]) -> int:
    """Neighbouring elements of a LOAD that an item copies at a time. order: loops of the copy, those whose
    steps lie furthest apart in memory first; counts: how many points each has.
    """
    if not order or _distance(schedule.loops[order[-1]], read) != 1:
        return 1
    width = max(LARGEST_ACCESS // read.dtype.itemsize, 1)
    while counts[order[-1]] % width:
        width //= 2
    return width
