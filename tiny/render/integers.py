"""Integer and bool arithmetic whose edge cases no processor agrees on, from what all of them do.

After this, IDIV and MOD have arg True: C's / and %, rounding towards zero, on operands that cannot trap. SHL
and SHR have counts within 0 ... bits-1. A float becomes an integer only by a CAST with arg True, on a value
that fits.
"""
from tiny.ir import ops
from tiny.ir.dtype import DType, dtypes
from tiny.ir.node import Node
from tiny.render.bounds import bounds
from tiny.render.formula import Formula, where


# -- division -------------------------------------------------------------------------------------
def divide(node: Node) -> Node:
    """IDIV and MOD, rounding down, 0 for a divisor of 0, wrapping for the lowest integer by -1."""
    row, (x, y) = node.op, map(Formula, node.src)
    if y.node.op is ops.CONST:
        return _divide_by_constant(row, x, y).node
    (low_x, _), (low_y, high_y) = bounds(x.node), bounds(y.node)
    divisor, may_be_zero = y, low_y <= 0 <= high_y
    may_overflow = low_x == node.dtype.min and low_x < 0 and low_y <= -1 <= high_y
    if may_be_zero or may_overflow:
        unsafe = y.equals(0)
        if may_overflow:                                    # 1 in place of -1 gives what wrapping would
            unsafe = unsafe | (x.equals(low_x) & y.equals(-1))
        divisor = where(unsafe, 1, y)
    result = _floor(row, x, divisor, low_x >= 0 and low_y >= 0)
    return (where(y.equals(0), 0, result) if may_be_zero else result).node


def _divide_by_constant(row: ops.Op, x: Formula, y: Formula) -> Formula:
    value = y.node.arg
    if value == 0:
        return x & 0
    if value in (1, -1):
        return x & 0 if row is ops.MOD else x if value == 1 else -x
    if value > 0 and value & (value - 1) == 0:              # shifts and masks round down, for either sign
        return x >> (value.bit_length() - 1) if row is ops.IDIV else x & (value - 1)
    return _floor(row, x, y, bounds(x.node)[0] >= 0 and value > 0)


def _floor(row: ops.Op, x: Formula, y: Formula, not_negative: bool) -> Formula:
    """C's quotient or remainder, then one step down where it was rounded up."""
    def in_c(which):
        return Formula(Node(which, None, (x.node, y.node), True))
    if not_negative:
        return in_c(row)
    remainder = in_c(ops.MOD)
    rounded_up = remainder.differs(0) & ((remainder ^ y) < 0)
    if row is ops.MOD:
        return where(rounded_up, remainder + y, remainder)
    quotient = in_c(ops.IDIV)
    return where(rounded_up, quotient - 1, quotient)


# -- shifts ---------------------------------------------------------------------------------------
def shift(node: Node) -> Node:
    """SHL and SHR with any count: what is shifted out is gone."""
    x, count = map(Formula, node.src)
    bits = node.dtype.bits
    if _is_count(count.node, bits):
        return node
    arithmetic = node.op is ops.SHR and not node.dtype.is_unsigned
    inside = (count & ~(bits - 1)).equals(0)
    masked = count & (bits - 1)
    if arithmetic:
        return (x >> where(inside, masked, bits - 1)).node
    shifted = x << masked if node.op is ops.SHL else x >> masked
    return where(inside, shifted, 0).node


def _is_count(node: Node, bits: int) -> bool:
    low, high = bounds(node)
    return 0 <= low and high < bits


# -- bool -----------------------------------------------------------------------------------------
BOOLEAN = {
    ops.ADD: lambda x, y: x | y, ops.MAX: lambda x, y: x | y, ops.MUL: lambda x, y: x & y, ops.MIN: lambda x,
    y: x & y,
    ops.IDIV: lambda x, y: x & y, ops.MOD: lambda x, y: x & False, ops.SUB: lambda x, y: x ^ y,
    ops.LT: lambda x, y: ~x & y, ops.SHL: lambda x, y: x & ~y, ops.SHR: lambda x, y: x & ~y,
    ops.NEG: lambda x: x,
    ops.FMA: lambda x, y, z: (x & y) | z,
}


# -- from float -----------------------------------------------------------------------------------
def from_float(x: Formula, target: DType) -> Formula:
    """A float32 or float64 as an integer: truncated, taken modulo 2**bits; 0 for NaN and beyond int64.

    Only types that hold the truncated value exactly take part: what is above `target` goes off in floating
    point, where the remainder of a division by a power of two is exact.
    """
    low, high = bounds(x.node)
    wide = dtypes.int64 if target.bits == 64 else target if target.bits == 32 else dtypes.int32
    if wide.min - 1 < low and high < wide.max + 1:
        return x.cast(wide, fits=True).cast(target)
    if target.bits == 64:
        inside = (x < 2.0**63) & ~(x < -2.0**63)
        return where(inside, x, 0.0).cast(dtypes.int64, fits=True).cast(target)
    turn = 2.0**target.bits if target.bits == 32 else 2.0**16
    rest = x - (x * (1.0 / turn)).trunc() * turn            # exact
    rest = where(x.magnitude() < 2.0**63, rest, 0.0)
    if target.bits == 32:
        whole = rest.trunc()
        rest = where(whole < 2.0**31, whole, whole - turn)
        rest = where(rest < -2.0**31, rest + turn, rest)
    return rest.cast(dtypes.int32, fits=True).cast(target)
