"""From whole arrays to one element: movement becomes index arithmetic, reductions become ranges.

`Indexer.lower(node, position)` gives the scalar expression of one element of a tensor-level node. It stops at
nodes that are in memory (leaves, and nodes chosen to be materialised), where it emits a LOAD.
"""
from collections.abc import Callable, Sequence

from tiny.ir import ops
from tiny.ir.dtype import DType, accumulator_dtype, dtypes
from tiny.ir.integer import Integer, as_node, bounds, equal, less, multiply, prod, unbound
from tiny.ir.node import Node, const
from tiny.schedule.kernel import Kernel
from tiny.schedule.steps import unbound_argument

Position = tuple[Integer, ...]


def row_major(position: Position, shape: Sequence[Integer]) -> Integer:
    """The element number of a position in a contiguous array."""
    total: Integer = 0
    stride: Integer = 1
    for coordinate, size in zip(reversed(position), reversed(shape), strict=True):
        total = total + multiply(coordinate, stride)
        stride = multiply(stride, size)
    return total


def reshape_position(position: Position, new: Sequence[Integer], old: Sequence[Integer]) -> Position:
    """The position in shape `old` of the element at `position` in shape `new`; both in row-major order.

    Axes are matched in groups of equal size from the right, so that untouched axes need no division.
    """
    result: list[Integer] = []
    i, j = len(new), len(old)
    while i or j:
        start_i, start_j = i, j
        size_i: Integer = 1
        size_j: Integer = 1
        if i:
            i -= 1
            size_i = new[i]
        if j:
            j -= 1
            size_j = old[j]
        while not equal(size_i, size_j):
            if i and (not j or less(size_i, size_j) is True or less(size_j, size_i) is not True):
                i -= 1
                size_i = multiply(size_i, new[i])
            elif j:
                j -= 1
                size_j = multiply(size_j, old[j])
            else:
                raise ValueError(f"reshape: {tuple(old)} and {tuple(new)} hold different numbers of elements")
        flat = position[i] if start_i - i == 1 else row_major(position[i:start_i], new[i:start_i])
        result.extend(reversed(_split(flat, old[j:start_j])))
    return tuple(reversed(result))


def _split(flat: Integer, sizes: Sequence[Integer]) -> list[Integer]:
    """Coordinates of element `flat` in a block of the given sizes."""
    coordinates: list[Integer] = []
    for number, size in enumerate(reversed(sizes)):
        last = number == len(sizes) - 1
        if equal(size, 1):
            coordinates.append(0)
        elif last:
            coordinates.append(flat)
        else:
            symbolic = as_node(flat) if isinstance(size, Node) else flat
            coordinates.append(symbolic % size)
            flat = symbolic // size
    return list(reversed(coordinates))


def move_position(
    op, arg, position: Position, source_shape: Sequence[Integer]
) -> tuple[Position, list[Integer]]:
    """Where a movement op takes the element at `position` from, and the axes that need a check (PAD)."""
    if op is ops.RESHAPE:
        return reshape_position(position, arg, source_shape), []
    if op is ops.EXPAND:
        return tuple(0 if equal(size, 1) else p for p, size in zip(position, source_shape, strict=True)), []
    if op is ops.PERMUTE:
        moved: list[Integer] = [0] * len(position)
        for axis, p in zip(arg, position, strict=True):
            moved[axis] = p
        return tuple(moved), []
    if op is ops.SHRINK:
        return tuple(p + start for p, (start, _) in zip(position, arg, strict=True)), []
    if op is ops.PAD:
        return (
            tuple(p - before for p, (before, _) in zip(position, arg, strict=True)),
            [axis for axis, pads in enumerate(arg) if not (equal(pads[0], 0) and equal(pads[1], 0))],
        )
    if op is ops.FLIP:
        return tuple(source_shape[axis] - 1 - p if axis in arg else p for axis, p in enumerate(position)), []
    if op is ops.WINDOW:
        axis, _, stride, dilation = arg
        moved = list(position[:-1])
        moved[axis] = moved[axis] * stride + position[-1] * dilation
        return tuple(moved), []
    raise ValueError(f"{op.name} is not a movement operation")


def all_of(gates: tuple[Node, ...]) -> tuple[Node, ...]:
    """The gates as at most one bool node."""
    if not gates:
        return ()
    whole = gates[0]
    for gate in gates[1:]:
        whole = Node(ops.AND, None, (whole, gate))
    return (whole,)


class Indexer:
    """Lowers the nodes of one kernel.

    in_memory(node) -> POINTER of the buffer that holds the node's value contiguously, or None to compute it
    here, as for the kernel's own root.
    """

    def __init__(self, in_memory: Callable[[Node], Node | None]):
        self.in_memory = in_memory
        self.ranges = 0
        self._done: dict[tuple, Node] = {}

    def range(self, size: Integer) -> Integer:
        """A new axis of that size; position 0 where the size is 1."""
        size = unbound(size)
        if equal(size, 1):
            return 0
        self.ranges += 1
        return Node(ops.RANGE, None, (as_node(size),), self.ranges - 1)

    def lower(self, node: Node, position: Position, gates: tuple[Node, ...] = ()) -> Node:
        """The scalar expression of the element at `position`; loads happen only where all gates are true."""
        key = node, position, gates
        found = self._done.get(key)
        if found is None:
            found = self._done[key] = self._lower(node, position, gates)
        return found

    def _lower(self, node: Node, position: Position, gates: tuple[Node, ...]) -> Node:
        pointer = self.in_memory(node)
        if pointer is not None:
            return self.load(pointer, node, position, gates)
        op = node.op
        if op is ops.CONST:
            return node
        if op in (ops.VARIABLE, ops.BIND):
            return unbound(node)
        if op is ops.IOTA:
            return Node(ops.CAST, node.dtype, (as_node(position[0]),), True)
        if op is ops.PAD:
            return self._pad(node, position, gates)
        if op in ops.MOVEMENT:
            arg = unbound_argument(node.arg)
            shape = unbound_argument(node.src[0].shape)
            return self.lower(node.src[0], move_position(op, arg, position, shape)[0], gates)
        if op is ops.REDUCE:
            return self._reduce(node, position, gates)
        if op is ops.GATHER:
            return self._gather(node, position, gates)
        if op in (ops.DETACH, ops.CONTIGUOUS, ops.COPY):
            return self.lower(node.src[0], position, gates)
        if op.level != ops.SHARED:
            raise ValueError(f"{op.name} cannot be computed inside a kernel; it must be held in memory")
        return self._arithmetic(node, position, gates)

    def _arithmetic(self, node: Node, position: Position, gates: tuple[Node, ...]) -> Node:
        src = tuple(self.lower(s, position if s.shape else (), gates) for s in node.src)
        if node.op is ops.CAST:
            inner = src[0]
            if inner.op is ops.CONST:
                return const(inner.arg, node.dtype)
            if node.dtype is inner.dtype:
                return inner
        return Node(node.op, node.dtype, src, node.arg)

    def load(self, pointer: Node, node: Node, position: Position, gates: tuple[Node, ...] = ()) -> Node:
        """The element of a contiguous array in memory."""
        index = as_node(row_major(position, unbound_argument(node.shape)))
        return Node(ops.LOAD, None, (pointer, index, *all_of(gates)))

    def _pad(self, node: Node, position: Position, gates: tuple[Node, ...]) -> Node:
        source = node.src[0]
        shape = unbound_argument(source.shape)
        inner, checked = move_position(ops.PAD, unbound_argument(node.arg), position, shape)
        tests: list[Node] = []
        for axis in checked:
            for certain in (less(-1, inner[axis]), less(inner[axis], shape[axis])):
                if certain is False:
                    return const(0, node.dtype)
                if certain is not True and certain not in tests:
                    tests.append(certain)
        both = gates + tuple(test for test in tests if test not in gates)
        value = self.lower(source, inner, both)
        if not tests or (value.op is ops.LOAD and len(value.src) == 3):
            return value
        return Node(ops.WHERE, None, (all_of(tuple(tests))[0], value, const(0, node.dtype)))

    def _reduce(self, node: Node, position: Position, gates: tuple[Node, ...]) -> Node:
        op, axes = node.arg
        source = node.src[0]
        inner = list(position)
        ranges = []
        for axis in axes:
            inner[axis] = self.range(source.shape[axis])
            if isinstance(inner[axis], Node):
                ranges.append(inner[axis])
        value = self.lower(source, tuple(inner), gates)
        wide = accumulator_dtype(node.dtype)
        if not ranges:
            return value
        if value.op is ops.ACCUMULATE and value.arg is op:     # a sum of sums is one sum
            value, *inside = value.src
            ranges = [*inside, *ranges]
        folded = _constant_reduction(op, value, ranges)
        if folded is not None:
            return folded
        if wide is not node.dtype:
            value = Node(ops.CAST, wide, (value,))
        total = Node(ops.ACCUMULATE, None, (value, *ranges), op)
        return total if wide is node.dtype else Node(ops.CAST, node.dtype, (total,))

    def _gather(self, node: Node, position: Position, gates: tuple[Node, ...]) -> Node:
        data, index = node.src
        split = len(index.shape)
        where = self.lower(index, position[:split], gates)
        number = as_index(where)
        tests = [
            test for test in (less(-1, number), less(number, unbound(data.shape[0]))) if test is not True
        ]
        if any(test is False for test in tests):
            return const(0, node.dtype)
        both = gates + tuple(test for test in tests if test not in gates)
        value = self.lower(data, (number, *position[split:]), both)
        if not tests or (value.op is ops.LOAD and len(value.src) == 3):
            return value
        return Node(ops.WHERE, None, (all_of(tuple(tests))[0], value, const(0, node.dtype)))


def as_index(value: Node) -> Integer:
    """An integer value of a kernel as a position; one that came from a position is that position again."""
    if value.op is ops.CONST:
        return int(value.arg)
    if value.op is ops.CAST and value.src[0].dtype is dtypes.index:
        low, high = bounds(value.src[0])
        if value.dtype.min <= low and high <= value.dtype.max:
            return value.src[0]
    return Node(ops.CAST, dtypes.index, (value,), True)


def _constant_reduction(op, value: Node, ranges: list[Node]) -> Node | None:
    """The reduction of one constant over axes of fixed size, which needs no loop."""
    sizes = [r.src[0] for r in ranges]
    if value.op is not ops.CONST or any(size.op is not ops.CONST for size in sizes):
        return None
    if op in (ops.MAX, ops.MIN):
        return value
    if op is ops.ADD and value.dtype is not dtypes.bool:
        return const(value.arg * prod(size.arg for size in sizes), value.dtype)
    return None


def lower_kernel(root: Node, in_memory: Callable[[Node], Node | None], dtype: DType) -> Kernel:
    """The kernel that computes all elements of `root`, row-major, into POINTER 0.

    A SCAN gives a kernel with a carried sequential axis. For SCATTER and ASSIGN see the functions below.
    """
    indexer = Indexer(in_memory)
    position = tuple(indexer.range(size) for size in root.shape)
    index = row_major(position, unbound_argument(root.shape))
    axes = tuple(p for p in position if isinstance(p, Node))
    if root.op is not ops.SCAN:
        return Kernel(axes, indexer.lower(root, position), index, dtype)
    op, axis = root.arg
    value = indexer.lower(root.src[0], position)
    wide = accumulator_dtype(root.dtype)
    if wide is not root.dtype:
        value = Node(ops.CAST, wide, (value,))
    if not isinstance(position[axis], Node):
        return Kernel(axes, indexer.lower(root.src[0], position), index, dtype)
    return Kernel(axes, value, index, dtype, sequential=position[axis], combine=op, carried=True)


def lower_assign(root: Node, in_memory: Callable[[Node], Node | None]) -> Kernel:
    """The kernel that writes an ASSIGN's value into the viewed part of its base, POINTER 0."""
    base, source = root.src
    indexer = Indexer(in_memory)
    position = tuple(indexer.range(size) for size in source.shape)
    axes = tuple(p for p in position if isinstance(p, Node))
    value = indexer.lower(source, position)
    return Kernel(axes, value, view_index(base.shape, root.arg, position), base.dtype)


def view_index(shape: Sequence[Integer], chain: tuple, position: Position) -> Integer:
    """The element of the base that a view's position stands for;
    `chain` is a tuple of (movement op, its arg).
    """
    shapes = [unbound_argument(tuple(shape))]
    for op, arg in chain:
        shapes.append(unbound_argument(_moved_shape(op, arg, shapes[-1])))
    for (op, arg), before in zip(reversed(chain), reversed(shapes[:-1]), strict=True):
        position = move_position(op, unbound_argument(arg), position, before)[0]
    return row_major(position, shapes[0])


class _Shape:
    """Stands for a node in a shape rule."""

    def __init__(self, shape: tuple):
        self.shape = shape


def _moved_shape(op, arg, shape: tuple) -> tuple:
    return op.shape((_Shape(shape),), arg)


def lower_scatter(root: Node, in_memory: Callable[[Node], Node | None]) -> Kernel:
    """The kernel that makes a SCATTER's updates, in order, in POINTER 0, which holds a copy of the base."""
    base, index, updates = root.src
    indexer = Indexer(in_memory)
    position = tuple(indexer.range(size) for size in updates.shape)
    number = as_index(indexer.lower(index, position[:1]))
    tests = [test for test in (less(-1, number), less(number, unbound(base.shape[0]))) if test is not True]
    gate = None
    if any(test is False for test in tests):
        gate = const(False, dtypes.bool)
    elif tests:
        gate = all_of(tuple(tests))[0]
    value = indexer.lower(updates, position)
    where = row_major((number, *position[1:]), unbound_argument(base.shape))
    first = position[0] if isinstance(position[0], Node) else None
    axes = tuple(p for p in position if isinstance(p, Node))
    return Kernel(axes, value, where, base.dtype, gate=gate, sequential=first, combine=root.arg)
