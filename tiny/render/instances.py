"""One point of the register tile: a kernel's expression with its axes replaced by positions, some of them
lanes; and where the walk through the loops is.
"""
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tiny.ir import ops
from tiny.ir.dtype import DType, dtypes
from tiny.ir.integer import ARITHMETIC, Integer, as_node, less, linear, multiply, substitute
from tiny.ir.node import Node, const, toposort
from tiny.ir.ops import Op
from tiny.schedule.loops import Loop, Pack


@dataclass(frozen=True, slots=True)
class Instance:
    """positions: where each axis stands;
    gates: (axis, bool Node) that must hold for a point on that axis to exist.
    """
    positions: dict[Node, Integer]
    gates: tuple[tuple[Node, Node], ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """Where the walk through the loops is.

    base, extent  of each axis: its position so far, and how many points are left
    counters      of each loop so far, by its number
    packed        operand -> (LOCAL with its copy, how it was packed)
    scalar        in a remainder whose lanes are walked one by one
    """
    base: dict[Node, Integer]
    extent: dict[Node, Integer]
    counters: dict[int, Integer]
    packed: dict[Node, tuple[Node, Pack]]
    scalar: bool = False

    def enter(self, number: int, loop: Loop, counter: Integer, extent: Integer) -> "State":
        """Inside a loop, at its `counter`, with `extent` points of its axis left."""
        moved = self.base[loop.axis] + multiply(counter, loop.step)
        return replace(self, base=self.base | {loop.axis: moved}, extent=self.extent | {loop.axis: extent},
                       counters=self.counters | {number: counter})

    def one_by_one(self, axis: Node, counter: Integer) -> "State":
        """At a single point of `axis`, `counter` further on, without lanes."""
        return replace(self, base=self.base | {axis: self.base[axis] + counter},
                       extent=self.extent | {axis: 1}, scalar=True)


@dataclass(frozen=True, slots=True)
class Point:
    """An instance, the counters of its unrolled and lane loops by their numbers, and the number of its own
    accumulator set (for SPLIT).
    """
    instance: Instance
    counters: dict[int, Integer]
    own: int


def combine(op: Op, a: Node, b: Node) -> Node:
    """One step of a reduction; a product that is added becomes one FMA."""
    if op is ops.ADD and b.op is ops.MUL and b.dtype.is_float:
        return Node(ops.FMA, None, (*b.src, a))
    if op is ops.ADD and b.dtype is dtypes.bool:
        return Node(ops.OR, None, (a, b))
    if op is None:
        return b
    return Node(op, None, (a, b))


def fold(op: Op, src: tuple[Node, ...], dtype: DType, arg) -> Node:
    """Make a node, with what constant conditions decide decided."""
    if op is ops.WHERE and src[0].op is ops.CONST:
        return src[1] if src[0].arg else src[2]
    if op in (ops.AND, ops.OR) and dtype is dtypes.bool:
        for this, other in (src, src[::-1]):
            if this.op is ops.CONST:
                return other if this.arg == (op is ops.AND) else this
    if op is ops.CAST and src[0].op is ops.CONST and src[0].dtype is dtypes.index:
        return const(src[0].arg, dtype)
    return Node(op, dtype, src, arg)


class Instantiate:
    """Replaces axes in one expression; made once a kernel, used for each instance."""

    def __init__(self, value: Node):
        self.value = value
        self.order = toposort(value)
        self.axes: dict[Node, frozenset] = {}
        for node in self.order:
            own = frozenset((node,)) if node.op is ops.RANGE else frozenset()
            self.axes[node] = own.union(*(self.axes[s] for s in node.src)) if node.src else own
        self.orders: dict[frozenset, list[Node]] = {frozenset(): self.order}

    def _order_above(self, replaced: dict[Node, Node]) -> list[Node]:
        """The nodes that must be made when those are put in as they are."""
        known = self.orders.get(key := frozenset(replaced))
        if known is None:
            wanted = {self.value}
            for node in reversed(self.order):
                if node in wanted and node not in key:
                    wanted.update(node.src)
            known = self.orders[key] = [node for node in self.order if node in wanted and node not in key]
        return known

    def __call__(self, instance: Instance, replaced: dict[Node, Node]) -> Node:
        """The expression at that instance; `replaced` gives nodes to put in as they are
        (a sum, a packed operand).
        """
        done: dict[Node, Integer] = dict(replaced)
        for node in self._order_above(replaced):
            if node.op is ops.RANGE:
                if node in instance.positions:
                    done[node] = instance.positions[node]
            elif not node.src or node.op in (ops.POINTER, ops.LOCAL):
                done[node] = node
            elif any(s not in done for s in node.src):
                continue                                     # below something replaced
            else:
                done[node] = self._rebuild(node, [done[s] for s in node.src], instance)
        return as_node(done[self.value])

    def _rebuild(self, node: Node, src: Sequence[Integer], instance: Instance) -> Integer:
        op = node.op
        if node.dtype is dtypes.index and op in ARITHMETIC:
            return ARITHMETIC[op](*src)
        if op is ops.LT and node.src[0].dtype is dtypes.index:
            known = less(*src)
            return known if isinstance(known, Node) else const(known, dtypes.bool)
        if op is ops.LOAD:
            gates = list(src[2:]) + [gate for axis, gate in instance.gates if axis in self.axes[node]]
            return load(src[0], src[1], gates)
        return fold(op, tuple(as_node(s) for s in src), node.dtype, node.arg)


def lanes_in(node: Integer) -> Node | None:
    """The LANES of an index, gate or value, None when it is one scalar."""
    if not isinstance(node, Node) or not node.shape:
        return None
    return Node(ops.LANES, None, (), node.shape[0])


def at_lane(node: Integer, lanes: Node, number: int) -> Integer:
    """A value at one lane."""
    if not isinstance(node, Node) or not node.shape:
        return node
    if node.dtype is dtypes.index and all(n.dtype is dtypes.index for n in toposort(node)):
        return substitute(node, {lanes: number})
    done: dict[Node, Integer] = {lanes: number}
    for n in toposort(node):
        if n in done:
            continue
        src = [done[s] for s in n.src]
        if not n.shape:
            done[n] = n
        elif n.op is ops.STACK:
            done[n] = n.src[number]
        elif n.dtype is dtypes.index and n.op in ARITHMETIC:
            done[n] = ARITHMETIC[n.op](*src)
        elif n.op is ops.LT and n.src[0].dtype is dtypes.index:
            known = less(*src)
            done[n] = known if isinstance(known, Node) else const(known, dtypes.bool)
        elif n.op is ops.LOAD or n.op is ops.READ:
            done[n] = Node(ops.EXTRACT, None, (n,), number)
        elif n.op is ops.BROADCAST:
            done[n] = src[0]
        else:
            done[n] = fold(n.op, tuple(as_node(s) for s in src), n.dtype, n.arg)
    return done[node]


def lanes_that_exist(gate: Node | None, lanes: Node) -> int | None:
    """How many lanes a gate lets through, if that is certain and they are the first ones; else None."""
    if gate is None:
        return lanes.arg
    known = [at_lane(gate, lanes, lane) for lane in range(lanes.arg)]
    if any(one.op is not ops.CONST for one in known):
        return None
    count = sum(bool(one.arg) for one in known)
    return count if all(one.arg for one in known[:count]) else None


def all_of(gates: Sequence[Node]) -> Node | None:
    """Gates as one, None when there is nothing to check."""
    whole = None
    for gate in gates:
        if gate.op is ops.CONST and gate.arg:
            continue
        whole = gate if whole is None else fold(ops.AND, (whole, gate), dtypes.bool, None)
    return whole


def load(pointer: Node, index: Integer, gates: Sequence[Node]) -> Node:
    """A load at scalar or lane positions: one vector load where lanes are neighbours, else one load a lane.
    """
    gate = all_of(gates)
    lanes = lanes_in(index) or lanes_in(gate)
    if gate is not None and gate.op is ops.CONST and not gate.arg:
        return const(0, pointer.dtype)
    if lanes is None:
        return Node(ops.LOAD, None, (pointer, as_node(index), *(() if gate is None else (gate,))))
    first = neighbours(index, lanes)
    if first is not None and lanes_in(gate) is None:
        return Node(ops.LOAD, None, (pointer, as_node(first), *(() if gate is None else (gate,))), lanes.arg)
    each = tuple(load(pointer, at_lane(index, lanes, n), () if gate is None else (at_lane(gate, lanes, n),))
                 for n in range(lanes.arg))
    if all(one is each[0] for one in each):
        return each[0]
    return Node(ops.STACK, None, each)


def neighbours(index: Integer, lanes: Node) -> Integer | None:
    """The index of lane 0 when lane n is n elements further, None when lanes lie otherwise."""
    terms = linear(index)[1]
    if terms.get(lanes) != 1 or any(atom.shape for atom in terms if atom is not lanes):
        return None
    return index - lanes
