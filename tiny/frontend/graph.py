"""Builders of nodes for code that works on nodes rather than on Tensors: gradients, random numbers.

They leave out what does nothing, such as times one, and never change a value. Shapes must already agree, as
the op table asks (scalars, shape (), go with any shape). No node is skipped over: see `shaping`, the other
half.
"""
import math
from collections.abc import Sequence

from tiny.frontend.shaping import Shape, expand, on_axis, pad, permute, reshape, shrink
from tiny.ir import ops
from tiny.ir.dtype import DType, accumulator_dtype, dtypes
from tiny.ir.integer import Integer, bounds, prod
from tiny.ir.node import Node, const


def is_const(node: Node, value: float | None = None) -> bool:
    """Whether the node is a constant, the one given if any. 0.0 is not -0.0."""
    if node.op is not ops.CONST:
        return False
    return value is None or (node.arg == value and math.copysign(1.0, node.arg) == math.copysign(1.0, value))


def size_value(size: Integer, dtype: DType) -> Node:
    """A number, or a size that may be symbolic, as a scalar of `dtype`."""
    return cast(size, dtype) if isinstance(size, Node) else const(size, dtype)


# -- arithmetic ---------------------------------------------------------------------------------------------
def add(a: Node, b: Node) -> Node:
    if is_const(a) and is_const(b):
        return const(a.arg + b.arg, a.dtype)
    return Node(ops.ADD, None, (b, a) if is_const(a) else (a, b))


def subtract(a: Node, b: Node) -> Node:
    if is_const(a) and is_const(b):
        return const(a.arg - b.arg, a.dtype)
    return Node(ops.SUB, None, (a, b))


def multiply(a: Node, b: Node) -> Node:
    if is_const(a):
        a, b = b, a
    if is_const(b):
        if is_const(a):
            return const(a.arg * b.arg, a.dtype)
        if is_const(b, 1):
            return a
        if is_const(b, -1):
            return negate(a)
    return Node(ops.MUL, None, (a, b))


def divide(a: Node, b: Node) -> Node:
    return a if is_const(b, 1) else Node(ops.FDIV, None, (a, b))


def negate(a: Node) -> Node:
    if is_const(a):
        return const(-a.arg, a.dtype)
    return Node(ops.NEG, None, (a,))


def scale(a: Node, factor: float) -> Node:
    """a * factor, the factor taking a's type."""
    return multiply(a, const(factor, a.dtype))


def where(condition: Node, a: Node, b: Node) -> Node:
    return a if a is b else Node(ops.WHERE, None, (condition, a, b))


def keep_where(condition: Node, a: Node) -> Node:
    """a where the condition holds, 0 elsewhere."""
    return where(condition, a, const(0, a.dtype))


def equal(a: Node, b: Node) -> Node:
    return Node(ops.EQ, None, (a, b))


def less(a: Node, b: Node) -> Node:
    return Node(ops.LT, None, (a, b))


def cast(a: Node, dtype: DType) -> Node:
    if a.dtype is dtype:
        return a
    return const(a.arg, dtype) if is_const(a) and dtype.bits >= 32 else Node(ops.CAST, dtype, (a,))


def function(row: ops.Op, *operands: Node) -> Node:
    return Node(row, None, operands)


# -- movement -----------------------------------------------------------------------------------------------
def zeros(shape: Shape, dtype: DType) -> Node:
    return expand(const(0, dtype), shape)


def unpermute(a: Node, order: Sequence[int]) -> Node:
    """Undo `permute(a, order)`."""
    return permute(a, sorted(range(len(order)), key=order.__getitem__))


def flip(a: Node, axes: tuple[int, ...]) -> Node:
    return Node(ops.FLIP, None, (a,), axes)


def shift(a: Node, axis: int, steps: int) -> Node:
    """Move along an axis by `steps` (backwards where negative), zeros coming in; the size stays."""
    size = a.shape[axis]
    if steps == 0:
        return a
    if not isinstance(size, Node) and abs(steps) >= size:
        return zeros(a.shape, a.dtype)
    kept, room = ((0, size - steps), (steps, 0)) if steps > 0 else ((-steps, size), (0, -steps))
    return pad(shrink(a, on_axis(a, axis, kept)), on_axis(a, axis, room, (0, 0)))


def resize(a: Node, axis: int, size: Integer) -> Node:
    """The axis cut, or filled with zeros, at its end."""
    more = size - a.shape[axis]
    if bounds(more)[0] >= 0:
        return pad(a, on_axis(a, axis, (0, more), (0, 0)))
    return shrink(a, on_axis(a, axis, (0, size)))


def split_axis(a: Node, axis: int, sizes: tuple[Integer, ...]) -> Node:
    return reshape(a, (*a.shape[:axis], *sizes, *a.shape[axis + 1:]))


def merge_axes(a: Node, axis: int) -> Node:
    """An axis and the next one as one."""
    return reshape(a, (*a.shape[:axis], a.shape[axis] * a.shape[axis + 1], *a.shape[axis + 2:]))


def spread_out(a: Node, axis: int, step: int) -> Node:
    """step - 1 zeros after each element along the axis."""
    if step == 1:
        return a
    return merge_axes(resize(split_axis(a, axis, (a.shape[axis], 1)), axis + 1, step), axis)


# -- whole arrays -------------------------------------------------------------------------------------------
def reduce(row: ops.Op, a: Node, axes: Sequence[int]) -> Node:
    """A reduction that keeps the reduced axes as size 1."""
    axes = tuple(axes)
    return Node(ops.REDUCE, None, (a,), (row, axes)) if axes else a


def total(a: Node) -> Node:
    """The sum of all elements, shape ()."""
    return reshape(reduce(ops.ADD, a, range(a.ndim)), ())


def times_size(a: Node, shape: Shape) -> Node:
    """The sum of prod(shape) copies of a scalar; small floats multiply in float32, where the count fits."""
    count, wide = prod(shape), accumulator_dtype(a.dtype)
    if is_const(a) and not isinstance(count, Node):
        return const(a.arg * count, a.dtype)
    return cast(multiply(cast(a, wide), size_value(count, wide)), a.dtype)


def iota(size: Integer, dtype: DType = dtypes.int32) -> Node:
    return Node(ops.IOTA, dtype, (), size)


def positions(shape: Shape, axis: int, dtype: DType = dtypes.int32) -> Node:
    """For each element of an array of `shape`, its position along `axis`."""
    line = reshape(iota(shape[axis], dtype), tuple(size if k == axis else 1 for k, size in enumerate(shape)))
    return expand(line, shape)


def gather(data: Node, index: Node) -> Node:
    return Node(ops.GATHER, None, (data, index))


def scatter(base: Node, index: Node, updates: Node, row: ops.Op | None) -> Node:
    return Node(ops.SCATTER, None, (base, index, updates), row)


def scan(row: ops.Op, a: Node, axis: int) -> Node:
    return Node(ops.SCAN, None, (a,), (row, axis))


def contiguous(a: Node) -> Node:
    return Node(ops.CONTIGUOUS, None, (a,))
