"""Movement of nodes as Tensor methods need it.

Whatever does nothing is left out, but no node is skipped over: a user may hold the tensor in between and ask
for a gradient by it, so a reshape of a reshape stays two nodes (the scheduler folds them).
"""
import functools
import itertools
import math
from collections.abc import Sequence

from tiny.ir import ops
from tiny.ir.integer import Integer, equal
from tiny.ir.node import Node, const

Shape = tuple[Integer, ...]
MOST_ELEMENTS = (1 << 63) - 1                               # that a 64-bit position can tell apart


def checked_count(shape: Shape) -> Shape:
    """The shape itself; ValueError if it has more elements than there are positions."""
    count = math.prod(size for size in shape if isinstance(size, int))
    if count > MOST_ELEMENTS:
        raise ValueError(f"shape {shape}: {count} elements; a tensor has at most {MOST_ELEMENTS}")
    return shape


def reshape(a: Node, shape: Shape) -> Node:
    """The same elements in another shape; their numbers must agree."""
    return a if a.shape == shape else Node(ops.RESHAPE, None, (a,), shape)


def expand(a: Node, shape: Shape) -> Node:
    """`a` grown to `shape`, which has as many axes: those of size 1 repeat. A scalar goes to any shape."""
    if a.shape == shape:
        return a
    if not a.shape:
        a = Node(ops.RESHAPE, None, (a,), (1,) * len(shape))
    return a if a.shape == shape else Node(ops.EXPAND, None, (a,), shape)


def broadcast(a: Node, shape: Shape) -> Node:
    """`a` grown to `shape` by numpy's rule: axes of size 1 in front where it has fewer."""
    missing = len(shape) - len(a.shape)
    return expand(reshape(a, (1,) * missing + a.shape) if missing and a.shape else a, shape)


def permute(a: Node, order: Sequence[int]) -> Node:
    order = tuple(order)
    return a if order == tuple(range(len(order))) else Node(ops.PERMUTE, None, (a,), order)


def shrink(a: Node, ranges: Sequence[tuple[Integer, Integer]]) -> Node:
    """arg: (start, stop) for each axis, already checked."""
    ranges = tuple(ranges)
    pairs = zip(ranges, a.shape, strict=True)
    if all(same_size(start, 0) and same_size(stop, size) for (start, stop), size in pairs):
        return a
    return Node(ops.SHRINK, None, (a,), ranges)


def pad(a: Node, amounts: Sequence[tuple[Integer, Integer]], value: float = 0) -> Node:
    """`value` before and after along each axis."""
    amounts = tuple(amounts)
    if all(pair == (0, 0) for pair in amounts):
        return a
    padded = Node(ops.PAD, None, (a,), amounts)
    fill = const(value, a.dtype)
    if fill is const(0, a.dtype):
        return padded
    return Node(ops.WHERE, None, (pad(expand(const(True, ops.dtypes.bool), a.shape), amounts), padded, fill))


def same_size(a: Integer, b: Integer) -> bool:
    """Whether two sizes are equal whatever the variables in them."""
    return a == b or ((isinstance(a, Node) or isinstance(b, Node)) and equal(a, b))


@functools.lru_cache(4096)
def broadcast_shape(name: str, *shapes: Shape) -> Shape:
    """The shape that all of `shapes` grow to by numpy's rule; ValueError where they do not."""
    result = []
    for sizes in itertools.zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        size: Integer = 1
        for other in sizes:
            if same_size(size, 1):
                size = other
            elif not same_size(other, 1) and not same_size(size, other):
                listed = " and ".join(map(str, shapes))
                raise ValueError(f"{name}: shapes {listed} do not broadcast: axis {-1 - len(result)} has the "
                                 f"sizes {size} and {other}; one must be 1, or both equal")
        result.append(size)
    return tuple(reversed(result))


def on_axis(a: Node, axis: int, pair: tuple[Integer, Integer], other: tuple | None = None) -> tuple:
    """What `shrink` or `pad` take to touch one axis: the pair there, elsewhere `other` or all of it."""
    return tuple(pair if k == axis else other or (0, size) for k, size in enumerate(a.shape))


def window(a: Node, axis: int, size: int, stride: int = 1, dilation: int = 1) -> Node:
    """Windows along an axis: it becomes their number, a new last axis holds each one's `size` elements."""
    return Node(ops.WINDOW, None, (a,), (axis, size, stride, dilation))
