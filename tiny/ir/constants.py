"""The value of an operation on constants,
computed exactly as the table of operations says and a device would.

Floats are computed in float64 and rounded to their type once more; for + - * / and the square root that
equals one rounding, since float64 has more than twice the bits of every shorter type and two more.
"""
import math
import struct
from collections.abc import Callable

from tiny.ir import ops
from tiny.ir.dtype import DType, canonical, dtypes
from tiny.ir.node import Node, const
from tiny.ir.ops import Op

Value = int | float | bool


def fold(row: Op, dtype: DType, *operands: Value) -> Value:
    """The result of an operation on values of `dtype`, in canonical form for the result's type; see FOLDABLE.
    """
    table = _FLOAT if dtype.is_float else _BOOL if dtype.kind == "b" else _INTEGER
    result = table[row](dtype, *operands)
    return result if row in _COMPARISONS else canonical(result, dtype)


def fold_node(node: Node) -> Node | None:
    """The constant that a node with constant operands comes to; None for operations that are not folded."""
    values = [s.arg for s in node.src]
    if node.op is ops.CAST:
        return const(cast(values[0], node.src[0].dtype, node.dtype), node.dtype)
    if node.op is ops.BITCAST:
        result = bitcast(values[0], node.src[0].dtype, node.dtype)
        return None if result is None else const(result, node.dtype)
    if node.op is ops.WHERE:
        return node.src[1] if values[0] else node.src[2]
    dtype = node.src[0].dtype
    if node.arg is not None or node.op not in (_FLOAT if dtype.is_float else _INTEGER):
        return None
    return const(fold(node.op, dtype, *values), node.dtype)


# -- conversions ------------------------------------------------------------------------------------
def cast(value: Value, source: DType, target: DType) -> Value:
    """CAST of a value."""
    if source.is_float and target.is_integer:
        inside = value == value and -2.0**63 <= value < 2.0**63
        return canonical(int(value) if inside else 0, target)
    if target.is_float and not source.is_float and abs(value) >> 53:
        value = _odd(int(value)) if target is not dtypes.float64 else float(value)
    return canonical(value, target)


def _odd(value: int) -> float:
    """An integer that float64 cannot hold,
    as a float64 that rounds on to a shorter type as the integer would.
    """
    shift = value.bit_length() - 53 if value >= 0 else (-value).bit_length() - 53
    short = abs(value) >> shift
    inexact = short << shift != abs(value)
    return math.copysign(math.ldexp(short | inexact, shift), value)


_CODES = {"float64": "d", "float32": "f", "float16": "e", "bool": "B", "int8": "b", "uint8": "B",
          "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q"}


def bitcast(value: Value, source: DType, target: DType) -> Value | None:
    """BITCAST of a value; None where a constant cannot hold the result,
    or bits that were never known are wanted.
    """
    if source.name not in _CODES or target.name not in _CODES or value != value:
        return None
    result = struct.unpack("<" + _CODES[target.name], struct.pack("<" + _CODES[source.name], value))[0]
    return result if result == result else None


# -- arithmetic -------------------------------------------------------------------------------------
def _divide_floats(dtype: DType, x: float, y: float) -> float:
    if y == 0.0:
        return math.nan if x == 0.0 or x != x else math.copysign(math.inf, x) * math.copysign(1.0, y)
    return x / y


def _multiply_floats(dtype: DType, x: float, y: float) -> float:
    return x * y


def _root(dtype: DType, x: float) -> float:
    return math.sqrt(x) if x >= 0.0 else x if x == 0.0 else math.nan


def _truncate(dtype: DType, x: float) -> float:
    return math.copysign(float(math.trunc(x)), x) if math.isfinite(x) else x


def _maximum(dtype: DType, x: Value, y: Value) -> Value:
    return y if x < y or y != y else x


def _minimum(dtype: DType, x: Value, y: Value) -> Value:
    return y if y < x or y != y else x


def _shift_left(dtype: DType, x: int, y: int) -> int:
    return x << y if 0 <= y < dtype.bits else 0


def _shift_right(dtype: DType, x: int, y: int) -> int:
    return x >> y if 0 <= y < dtype.bits else -1 if x < 0 else 0


_COMPARISONS: dict[Op, Callable] = {
    ops.LT: lambda dtype, x, y: x < y, ops.EQ: lambda dtype, x, y: x == y, ops.NE: lambda dtype, x, y: x != y,
}
_EITHER = {
    **_COMPARISONS, ops.ADD: lambda dtype, x, y: x + y, ops.SUB: lambda dtype, x, y: x - y,
    ops.NEG: lambda dtype, x: -x, ops.MAX: _maximum, ops.MIN: _minimum,
}
_FLOAT = {
    **_EITHER, ops.MUL: _multiply_floats, ops.FDIV: _divide_floats, ops.SQRT: _root, ops.TRUNC: _truncate,
}
_INTEGER = {
    **_EITHER, ops.MUL: lambda dtype, x, y: x * y, ops.IDIV: lambda dtype, x, y: x // y if y else 0,
    ops.MOD: lambda dtype, x, y: x % y if y else 0, ops.AND: lambda dtype, x, y: x & y,
    ops.OR: lambda dtype, x, y: x | y, ops.XOR: lambda dtype, x, y: x ^ y, ops.SHL: _shift_left,
    ops.SHR: _shift_right,
    ops.FMA: lambda dtype, x, y, z: x * y + z,
}
# addition is "or", otherwise the arithmetic of integers modulo 2
_BOOL = {
    **_COMPARISONS, ops.ADD: lambda dtype, x, y: x | y, ops.SUB: lambda dtype, x, y: x ^ y,
    ops.MUL: lambda dtype, x, y: x & y, ops.NEG: lambda dtype, x: x, ops.MAX: lambda dtype, x, y: x | y,
    ops.MIN: lambda dtype, x, y: x & y, ops.IDIV: lambda dtype, x, y: x & y, ops.MOD: lambda dtype, x,
    y: False,
    ops.AND: lambda dtype, x, y: x & y, ops.OR: lambda dtype, x, y: x | y, ops.XOR: lambda dtype, x, y: x ^ y,
    ops.SHL: lambda dtype, x, y: x and not y, ops.SHR: lambda dtype, x, y: x and not y,
    ops.FMA: lambda dtype, x, y, z: x & y | z,
}
# operations on constants that have one value; FMA may round once or twice, functions are not known before
# decompose
FOLDABLE = (*dict.fromkeys((*_FLOAT, *_INTEGER)), ops.WHERE, ops.CAST, ops.BITCAST)
