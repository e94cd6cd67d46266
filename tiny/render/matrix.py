"""Sums made by matrix instructions: which elements each work-item holds, and where they come from."""
from dataclasses import replace

from tiny.ir import ops
from tiny.ir.integer import Integer
from tiny.ir.node import Node, const
from tiny.render.instances import Instance, Instantiate, Point, State, all_of
from tiny.schedule.loops import MATRIX
from tiny.schedule.tensorcore import Layout, factors


def offsets(layout: Layout, lane: Integer) -> dict[str, Integer]:
    """Where a lane's elements stand along m, n and k, as vectors where they differ."""
    elements = Node(ops.LANES, None, (), layout.elements) if layout.elements > 1 else 0
    found: dict[str, Integer] = {}
    for number, digits in ((lane, layout.lane), (elements, layout.element)):
        for place, digit in enumerate(digits):
            value = number if place == len(digits) - 1 else number % digit.size
            number = number // digit.size
            if digit.axis:
                found[digit.axis] = found.get(digit.axis, 0) + value * digit.stride
    return found


def spread(lowering, point: Point, layout: Layout) -> Point:
    """The point, which is the first element of a tile, at the elements that this item holds."""
    positions, counters = dict(point.instance.positions), dict(point.counters)
    numbers = [n for n, loop in enumerate(lowering.loops) if loop.kind == MATRIX]
    moved = offsets(layout, lowering.grid.lane)
    for letter, number in zip("mnk", numbers, strict=True):
        axis = lowering.loops[number].axis
        if axis in positions and letter in moved:
            positions[axis] = positions[axis] + moved[letter]
            counters[number] = moved[letter]
    return replace(point, instance=replace(point.instance, positions=positions), counters=counters)


def sums(lowering, state: State, number: int) -> list[Node]:
    """The reduction over loops from `number` on, one vector of elements for each tile of the result."""
    matrix, total = lowering.schedule.matrix, lowering.total
    m, n, _ = (loop.axis for loop in lowering.loops if loop.kind == MATRIX)
    sides = [(Instantiate(factor), layout)
             for factor, layout in zip(factors(total, m, n), (matrix.a, matrix.b), strict=True)]
    tiles = lowering.tile(state, True)
    emit = lowering.emit
    registers = [emit.register(0, matrix.total, matrix.c.elements) for _ in tiles]

    def inner(within: State) -> None:
        for over in lowering.tile(within, False):
            for register, tile in zip(registers, tiles, strict=True):
                both = Point(Instance(tile.instance.positions | over.instance.positions),
                             tile.counters | over.counters, 0)
                a, b = (_elements(lowering, within, spread(lowering, both, layout), factor, layout)
                        for factor, layout in sides)
                emit.set(register, Node(ops.MATMUL, None, (a, b, emit.read(register)), matrix.name))

    lowering.walk(state, number, len(lowering.loops), inner)
    totals = [Node(ops.TOGETHER, None, (emit.read(register),)) for register in registers]
    if total.dtype is not matrix.total:
        totals = [Node(ops.CAST, total.dtype, (value,)) for value in totals]
    for value in totals:
        emit.scopes.place(value)
    return totals


def _elements(lowering, state: State, point: Point, factor: Instantiate, layout: Layout) -> Node:
    """This item's elements of a factor, 0 past the end of the reduced axes."""
    instance = lowering.within(point.instance)
    value = factor(instance, lowering.replaced(state, point.counters))
    if layout.elements > 1 and not value.shape:
        value = Node(ops.BROADCAST, None, (value,), layout.elements)
    gates = {axis: gate for axis, gate in instance.gates if axis in lowering.reduced}
    exists = all_of(list(gates.values()))
    source = factor.value
    while source.op is ops.CAST:
        source = source.src[0]
    by_itself = source.op is ops.LOAD and gates.keys() <= factor.axes[source]
    if exists is None or by_itself:                          # a load gives 0 there
        return value
    return Node(ops.WHERE, None, (exists, value, const(0, value.dtype)))
