"""Zeros around a sum of products, put around the one factor that varies along the axis.

The padded factor is small and kept in memory, so that what reads windows of the sum can compute it from there
without asking at each element whether it lies inside, and without the sum ever being stored. As in a padded
convolution, zeros meet the other factor: where that is infinite or NaN, the padding becomes NaN.
"""
from collections.abc import Sequence

from tiny.frontend.shaping import on_axis, pad
from tiny.ir import ops
from tiny.ir.integer import prod
from tiny.ir.node import Node


def pad_factor(a: Node, axis: int, pair: tuple[int, int]) -> Node:
    """`a` with zeros before and after along an axis; inside a sum of products if `a` is one."""
    if pair == (0, 0):
        return a
    return _pushed(a, axis, pair) or pad(a, on_axis(a, axis, pair, (0, 0)))


def _pushed(a: Node, axis: int, pair: tuple[int, int]) -> Node | None:
    """The padded node made from padded operands, None where `a` is no view of a sum of products."""
    if any(isinstance(size, Node) for size in a.shape):
        return None
    if a.op is ops.MUL:
        return _product(a, axis, pair)
    if a.op is ops.REDUCE:
        op, axes = a.arg
        source = _pushed(a.src[0], axis, pair) if op is ops.ADD and axis not in axes else None
        return source and Node(ops.REDUCE, None, (source,), a.arg)
    moved = _through(a, axis)
    source = moved and _pushed(a.src[0], moved[0], pair)
    if not source:
        return None
    arg = a.arg
    if a.op is ops.RESHAPE:
        arg = _grown(a.shape, axis, pair)
    return Node(a.op, None, (source,), arg)


def _through(a: Node, axis: int) -> tuple[int] | None:
    """The axis of the operand of a movement that is that axis of its result and nothing else, in a tuple."""
    if a.op is ops.PERMUTE:
        return (a.arg[axis],)
    if a.op is ops.FLIP:
        return None if axis in a.arg else (axis,)
    if a.op is ops.WINDOW:
        return None if axis in (a.arg[0], a.ndim - 1) else (axis,)
    if a.op is ops.RESHAPE:
        return _same_axis(a.src[0].shape, a.shape, axis)
    return None


def _same_axis(old: Sequence[int], new: Sequence[int], axis: int) -> tuple[int] | None:
    """The axis of `old` that a reshape to `new` leaves as axis `axis`."""
    before = prod(new[:axis])
    found = [k for k, size in enumerate(old) if size == new[axis] and prod(old[:k]) == before]
    return (found[0],) if found and new[axis] > 1 else None


def _grown(shape: Sequence[int], axis: int, pair: tuple[int, int]) -> tuple[int, ...]:
    return tuple(size + sum(pair) if k == axis else size for k, size in enumerate(shape))


def _product(a: Node, axis: int, pair: tuple[int, int]) -> Node | None:
    """A product whose one factor is repeated along the axis, and whose other one is a view of memory."""
    for varying, constant in (a.src, a.src[::-1]):
        if constant.op is not ops.EXPAND or constant.src[0].shape[axis] != 1:
            continue
        repeated = Node(ops.EXPAND, None, constant.src, _grown(a.shape, axis, pair))
        return Node(ops.MUL, None, (_pad_view(varying, axis, pair), repeated))
    return None


def _pad_view(a: Node, axis: int, pair: tuple[int, int]) -> Node:
    """Padded as near to the memory as movements allow, where there are the fewest elements."""
    if a.op is ops.EXPAND and a.src[0].shape[axis] == a.shape[axis]:
        return Node(ops.EXPAND, None, (_pad_view(a.src[0], axis, pair),), _grown(a.shape, axis, pair))
    moved = _through(a, axis) if a.op is not ops.WINDOW else None
    if moved:
        arg = _grown(a.shape, axis, pair) if a.op is ops.RESHAPE else a.arg
        return Node(a.op, None, (_pad_view(a.src[0], moved[0], pair),), arg)
    if a.op is ops.PAD:
        amounts = tuple((before + pair[0] * (k == axis), after + pair[1] * (k == axis))
                        for k, (before, after) in enumerate(a.arg))
        return Node(ops.PAD, None, a.src, amounts)
    return pad(a, on_axis(a, axis, pair, (0, 0)))
