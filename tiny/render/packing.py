"""Packed operands: copies in local memory, laid out as the inner loops read them."""
import math
from dataclasses import replace

from tiny.ir import ops
from tiny.ir.integer import Integer, as_node, less, multiply, unbound
from tiny.ir.node import Node
from tiny.render.emit import Emitter
from tiny.render.instances import Instance, Instantiate, State, load
from tiny.schedule.loops import LANES, Pack, Schedule, pack_counts


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
    """Emit the copy of an operand; the state it returns reads from the copy."""
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
