"""What the operations above a value tell about its range,
so that guards against what cannot happen are left out.
"""
import math

from tiny.ir import integer, ops
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node

UNKNOWN = (-math.inf, math.inf)
SLACK = 2.0**-20                                            # more than what rounding can add, relative


def bounds(node: Node, depth: int = 6) -> tuple[float, float]:
    """(lowest, highest) value a node can have, as far as `depth` operations tell;
    a bounded float is no NaN either.

    (-inf, inf) for a float that nothing is known of.
    """
    dtype, row = node.dtype, node.op
    if row is ops.CONST:
        return (node.arg, node.arg) if not dtype.is_float or math.isfinite(node.arg) else UNKNOWN
    if dtype is dtypes.index:
        return integer.bounds(node)
    widest = UNKNOWN if dtype.is_float else (int(dtype.min), int(dtype.max))
    if depth == 0 or row not in _RULES:
        return widest
    operands = [bounds(s, depth - 1) for s in node.src]
    if UNKNOWN in operands:
        return widest
    low, high = _RULES[row](node, *operands)
    if dtype.is_float:
        if dtype.bits < 32:
            return UNKNOWN
        slack = max(abs(low), abs(high)) * SLACK
        low, high = low - slack, high + slack
        return (low, high) if high < 2.0**126 and low > -2.0**126 else UNKNOWN
    return (low, high) if widest[0] <= low <= high <= widest[1] else widest        # otherwise it wraps


def _cast(node: Node, x: tuple) -> tuple:
    return x if node.dtype.is_float else (math.trunc(x[0]), math.trunc(x[1]))


def _product(node: Node, x: tuple, y: tuple) -> tuple:
    ends = [a * b for a in x for b in y]
    return min(ends), max(ends)


def _and(node: Node, x: tuple, y: tuple) -> tuple:
    tops = [high for low, high in (x, y) if low >= 0]
    return (0, min(tops)) if tops else UNKNOWN


def _shift_right(node: Node, x: tuple, y: tuple) -> tuple:
    inside = y[0] == y[1] and 0 <= y[0] < node.dtype.bits
    return (x[0] >> y[0], x[1] >> y[0]) if inside else (min(x[0], 0), max(x[1], 0))


_RULES = {
    ops.ADD: lambda node, x, y: (x[0] + y[0], x[1] + y[1]),
    ops.SUB: lambda node, x, y: (x[0] - y[1], x[1] - y[0]),
    ops.MUL: _product,
    ops.NEG: lambda node, x: (-x[1], -x[0]),
    ops.TRUNC: lambda node, x: x,
    ops.CAST: _cast,
    ops.AND: _and,
    ops.SHR: _shift_right,
    ops.WHERE: lambda node, condition, x, y: (min(x[0], y[0]), max(x[1], y[1])),
}
