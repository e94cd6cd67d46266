"""The oracle: arithmetic Nodes evaluated on whole numpy arrays, one obvious line for each operation.

Written from the table in `tiny.ir.ops` alone, so that rules and decompositions are compared with something
that shares no code with them. numpy has no bfloat16 and no fp8: such values are held as their bit patterns,
in uint16 and uint8; `decode` and `encode` go between patterns and numbers. All NaNs are one value: compare
with `same`.
"""
import numpy as np

from tiny.ir import ops
from tiny.ir.dtype import DType, dtypes
from tiny.ir.node import Node, const

PATTERN = {dtypes.bfloat16: np.uint16, dtypes.fp8e4m3: np.uint8, dtypes.fp8e5m2: np.uint8}
HELD = {dtypes.bool: np.bool_, dtypes.index: np.int64, **PATTERN,
        **{dtype: getattr(np, dtype.name) for dtype in (*dtypes.ints, dtypes.float16, dtypes.float32,
                                                        dtypes.float64)}}


def leaf(name: str, dtype: DType, lanes: int = 0) -> Node:
    """A value to be given at evaluation: element 0 of an argument, or its first `lanes` elements."""
    index = Node(ops.LANES, dtypes.index, (), lanes) if lanes else const(0, dtypes.index)
    return Node(ops.LOAD, None, (Node(ops.POINTER, dtype, (), name), index))


def evaluate(root: Node, leaves: dict[Node, np.ndarray], fused: bool = True) -> np.ndarray:
    """The values of `root`, held as `HELD[root.dtype]`, for the given arrays of the leaves (in held form
    too).

    fused: FMA rounds once (nearly always: numpy has none, longdouble stands in) or twice; both are allowed.
    """
    values = {node: np.asarray(array, HELD[node.dtype]) for node, array in leaves.items()}
    with np.errstate(all="ignore"):
        for node in _order(root, leaves):
            operands = [values[s] for s in node.src]
            values[node] = _held(_evaluate_one(node, operands, fused), node.dtype)
    return values[root]


def _order(root: Node, leaves: dict[Node, np.ndarray]) -> list[Node]:
    """What to compute for the root, operands first; nothing below a leaf."""
    seen, order, stack = set(leaves), [], [root] if root not in leaves else []
    while stack:
        node = stack[-1]
        waiting = [s for s in node.src if s not in seen]
        if waiting:
            stack.extend(waiting)
        elif stack.pop() not in seen:
            seen.add(node)
            order.append(node)
    return order


def same(left: np.ndarray, right: np.ndarray, dtype: DType) -> np.ndarray:
    """Elementwise: equal bit for bit, or both NaN. Both arrays in held form."""
    if not dtype.is_float:
        return np.asarray(left == right)
    left, right = np.atleast_1d(left, right)
    bits = HELD[dtypes.uint8] if dtype.bits == 8 else getattr(np, f"uint{dtype.bits}")
    both_nan = np.isnan(decode(left, dtype)) & np.isnan(decode(right, dtype))
    return (left.view(bits) == right.view(bits)) | both_nan


# -- numbers and patterns -------------------------------------------------------------------------
def decode(pattern: np.ndarray, dtype: DType) -> np.ndarray:
    """The numbers that patterns stand for, float64; arrays of other types come back as they are."""
    if dtype not in PATTERN:
        return pattern
    exponent_bits, mantissa_bits = dtype.exponent_mantissa
    pattern = np.asarray(pattern).astype(np.int64)
    mantissa = pattern & ((1 << mantissa_bits) - 1)
    exponent = pattern >> mantissa_bits & ((1 << exponent_bits) - 1)
    sign = np.where(pattern >> (exponent_bits + mantissa_bits), -1.0, 1.0)
    bias = (1 << (exponent_bits - 1)) - 1
    implicit = np.where(exponent == 0, 0, 1 << mantissa_bits)
    scale = np.maximum(exponent, 1) - bias - mantissa_bits
    number = np.ldexp((mantissa + implicit).astype(np.float64), scale)
    if dtype is dtypes.fp8e4m3:
        return sign * np.where((exponent == 15) & (mantissa == 7), np.nan, number)
    highest = exponent == (1 << exponent_bits) - 1
    return sign * np.where(highest, np.where(mantissa == 0, np.inf, np.nan), number)


_SORTED = {}


def _positive_numbers(dtype: DType) -> np.ndarray:
    """The finite numbers of a pattern type from 0 up, where the index is the pattern, and one step beyond."""
    if dtype not in _SORTED:
        patterns = np.arange(1 << (dtype.bits - 1))
        numbers = decode(patterns, dtype)
        finite = numbers[np.isfinite(numbers)]
        _SORTED[dtype] = np.append(finite, 2 * finite[-1] - finite[-2])
    return _SORTED[dtype]


def encode(number: np.ndarray, dtype: DType) -> np.ndarray:
    """Round float64 numbers once, to the nearest pattern, ties to the even one, by search in the list of all.
    """
    if dtype not in PATTERN:
        return np.asarray(number)
    number = np.asarray(number, np.float64)
    numbers = _positive_numbers(dtype)
    magnitude = np.minimum(np.where(np.isnan(number), 0, np.abs(number)), numbers[-1])
    above = np.searchsorted(numbers, magnitude)
    below = np.maximum(above - 1, 0)
    middle = (numbers[above] + numbers[below]) / 2                             # exact in float64
    up = (magnitude > middle) | ((magnitude == middle) & (above % 2 == 0))
    pattern = np.where(up, above, below)
    not_a_number = (1 << (dtype.bits - 1)) - 1
    beyond = not_a_number if dtype is dtypes.fp8e4m3 else len(numbers) - 1
    pattern = np.where(pattern == len(numbers) - 1, beyond, pattern)
    pattern = np.where(np.isnan(number), not_a_number, pattern)
    return (pattern + (np.signbit(number).astype(np.int64) << (dtype.bits - 1))).astype(PATTERN[dtype])


def _held(value: np.ndarray, dtype: DType) -> np.ndarray:
    """A result in held form; numbers computed for a pattern type are rounded to it here."""
    if dtype in PATTERN and value.dtype != PATTERN[dtype]:
        return encode(value, dtype)
    return np.asarray(value).astype(HELD[dtype], copy=False)


# -- one operation --------------------------------------------------------------------------------
def _evaluate_one(node: Node, operands: list[np.ndarray], fused: bool) -> np.ndarray:
    if node.op is ops.CONST:
        return _constant(node)
    if node.op is ops.FMA:
        return _multiply_add(*operands, node.dtype, fused)
    if node.op in (ops.CAST, ops.BITCAST):
        return (_cast if node.op is ops.CAST else _bitcast)(operands[0], node.src[0].dtype, node.dtype)
    if node.op is ops.WHERE:
        return np.where(*operands)
    if node.op not in ARITHMETIC:
        raise ValueError(f"numpy_alu: {node!r} is no arithmetic, and no leaf with a value")
    source = node.src[0].dtype
    numbers = [decode(operand, source) for operand in operands]
    if node.arg is True and node.op in (ops.IDIV, ops.MOD):
        return _truncating(node.op, *numbers)
    if source is dtypes.bool and node.op in BOOLEAN:
        return BOOLEAN[node.op](*numbers)
    return ARITHMETIC[node.op](*numbers)


def _constant(node: Node) -> np.ndarray:
    if node.dtype in PATTERN:
        return encode(np.float64(node.arg), node.dtype)
    value = node.arg
    if node.dtype is dtypes.index:                          # of any size in Python
        value = (value + 2**63) % 2**64 - 2**63
    return np.asarray(value, HELD[node.dtype])


def _floor_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(y == 0, 0, np.floor_divide(x, np.where(y == 0, 1, y))).astype(x.dtype)


def _modulo(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(y == 0, 0, np.mod(x, np.where(y == 0, 1, y))).astype(x.dtype)


def _truncating(op, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """C's / and % on operands promised to be safe; a broken promise is an error here."""
    lowest = np.iinfo(x.dtype).min
    if np.any(y == 0) or (lowest < 0 and np.any((x == lowest) & (y == -1))):
        raise ZeroDivisionError(f"{op.name} with arg True: an operand pair traps in C")
    remainder = np.fmod(x, y)
    return remainder if op is ops.MOD else (x - remainder) // y


def _shift(x: np.ndarray, y: np.ndarray, left: bool) -> np.ndarray:
    bits = x.dtype.itemsize * 8
    amount = y.astype(np.float64)                          # a plain number, whatever the type and the sign
    inside = (amount >= 0) & (amount < bits)
    count = np.where(inside, amount, 0).astype(x.dtype)
    if left:
        return np.where(inside, np.left_shift(x, count), 0).astype(x.dtype)
    return np.where(inside, np.right_shift(x, count), np.where(x < 0, -1, 0).astype(x.dtype)).astype(x.dtype)


def _multiply_add(x, y, z, dtype: DType, fused: bool) -> np.ndarray:
    if not dtype.is_float:
        return ARITHMETIC[ops.ADD](ARITHMETIC[ops.MUL](x, y), z)
    x, y, z = (decode(v, dtype) for v in (x, y, z))
    if fused:
        return x.astype(np.longdouble) * y + z
    product = decode(_held(x * y, dtype), dtype)
    return product + z


def _cast(x: np.ndarray, source: DType, target: DType) -> np.ndarray:
    number = decode(x, source)
    if source.is_float and target.is_integer:
        wide = number.astype(np.float64)
        inside = (wide >= -2.0**63) & (wide < 2.0**63)
        return np.where(inside, wide, 0).astype(np.int64).astype(HELD[target])
    if target is dtypes.bool:
        return number != 0
    if target in PATTERN and source.bits == 64 and source.is_integer:
        return encode(_odd(x), target)
    return number if target in PATTERN and source.is_float else number.astype(
        np.float64 if target in PATTERN else HELD[target])


def _odd(x: np.ndarray) -> np.ndarray:
    """64-bit integers as float64 that round on to a small type as the integer itself would: the last bit is
    sticky.
    """
    low = x & x.dtype.type(0xFFF)
    sticky = (x - low) + np.where(low != 0, 0x800, 0).astype(x.dtype)
    wide = (np.abs(x.astype(np.float64)) >= 2.0**52)
    return np.where(wide, sticky, x).astype(np.float64)


def _bitcast(x: np.ndarray, source: DType, target: DType) -> np.ndarray:
    if target is dtypes.bool:
        return x.view(np.uint8) != 0
    return np.ascontiguousarray(x).view(HELD[target]).reshape(x.shape)


def _trunc(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.trunc(x), x)


ARITHMETIC = {
    ops.ADD: lambda x, y: x + y, ops.SUB: lambda x, y: x - y, ops.MUL: lambda x, y: x * y,
    ops.FDIV: lambda x, y: x / y, ops.IDIV: _floor_divide, ops.MOD: _modulo,
    ops.MAX: lambda x, y: np.where((x < y) | (y != y), y, x), ops.MIN: lambda x,
    y: np.where((y < x) | (y != y), y, x),
    ops.AND: lambda x, y: x & y, ops.OR: lambda x, y: x | y, ops.XOR: lambda x, y: x ^ y,
    ops.SHL: lambda x, y: _shift(x, y, left=True), ops.SHR: lambda x, y: _shift(x, y, left=False),
    ops.LT: lambda x, y: x < y, ops.EQ: lambda x, y: x == y, ops.NE: lambda x, y: x != y,
    ops.NEG: lambda x: -x, ops.TRUNC: _trunc, ops.SQRT: np.sqrt,
}
# bool is the integers modulo 2, except that + is "or"
BOOLEAN = {
    ops.ADD: lambda x, y: x | y, ops.SUB: lambda x, y: x ^ y, ops.MUL: lambda x, y: x & y, ops.IDIV: lambda x,
    y: x & y,
    ops.MOD: lambda x, y: x & False & y, ops.MAX: lambda x, y: x | y, ops.MIN: lambda x, y: x & y,
    ops.SHL: lambda x, y: x & ~y, ops.SHR: lambda x, y: x & ~y, ops.LT: lambda x, y: ~x & y,
    ops.NEG: lambda x: x,
}
