"""Rounding upward, downward and toward zero, as expressions.

An expression computes as the host does, to nearest even. `directed` rebuilds it: wherever a step loses
something, the sign of what was lost is found exactly, and the result moves to its neighbour if the mode asks
for that. So interpreter and translation need no rounding mode of the host.

The error of a sum: Knuth's TwoSum. Of f32 and f16: the exact value, or that and its error, fits f64. Of a
product and of an fma in f64: Boldo and Muller, "Some functions computable with a fused-mac" (2005), on scaled
operands where the error would underflow.
"""

from tiny.emulator.amd.isa.expression import (
    MANTISSA,
    WIDTH,
    Value,
    bits,
    cast,
    const,
    is_float,
    select,
)
from tiny.emulator.amd.isa.functions import from_pattern, is_finite, is_infinite, pattern, sign

NEAREST, UP, DOWN, TO_ZERO = range(4)  # MODE.ROUND
_ARITHMETIC = {"add", "sub", "mul", "fma"}
_PARTS = _ARITHMETIC | {"div", "sqrt", "floor", "ceil", "trunc", "rint", "clz", "popcount", "cast", "bits"}
_PARTS |= {"select", "and", "or", "xor", "shl", "shr", "not", "lt", "le", "eq"}
TINY, SCALE = 2.0**-700, 2.0**600


def directed(value: Value, mode: int) -> Value:
    """The expression with every step that rounds doing so in this mode."""
    known: dict[int, Value] = {}

    def rebuilt(each: Value) -> Value:
        found = known.get(id(each))
        if found is None:
            found = known[id(each)] = each if each.op not in _PARTS else _step(each, mode, rebuilt)
        return found

    return rebuilt(value)


def _step(value: Value, mode: int, rebuilt) -> Value:
    args = [rebuilt(each) if isinstance(each, Value) else each for each in value.args]
    near = Value(value.kind, value.op, *args)
    if not is_float(value.kind):
        return near
    if value.op in _ARITHMETIC:
        above, below, vanished = _arithmetic_error(value.op, args, near)
        finite = const("b1", 1)
        for each in args:
            finite = finite & is_finite(each)
        moved = _moved(near, above & finite, below & finite, mode)
        return select(vanished & finite, -abs(near), moved) if mode == DOWN else moved
    if value.op == "cast" and _loses(args[0].kind, value.kind):
        wide, back = cast(args[0], "f64"), cast(near, "f64")
        finite = is_finite(wide)
        return _moved(near, (wide > back) & finite, (wide < back) & finite, mode)
    return near


def _loses(source: str, kind: str) -> bool:
    """Whether a conversion between these can round."""
    bits_of_source = MANTISSA[source] + 1 if is_float(source) else WIDTH[source]
    return bits_of_source > MANTISSA[kind] + 1 and bits_of_source < 54


def _moved(near: Value, above: Value, below: Value, mode: int) -> Value:
    """`near` or its neighbour; above, below: whether the exact value is."""
    negative, raw = sign(near), pattern(near)
    away, toward = bits(raw + 1, near.kind), bits(raw - 1, near.kind)
    if mode == UP:
        return select(above, select(negative, toward, away), near)
    if mode == DOWN:
        return select(below, select(negative, away, toward), near)
    return select(select(negative, above, below), toward, near)


def _arithmetic_error(op: str, args: list[Value], near: Value) -> tuple[Value, Value, Value]:
    """(exact value above `near`, below it, a sum of unlike numbers that is exactly zero)"""
    if op == "sub":
        args = [args[0], -args[1]]
    a, b = args[0], args[1]
    none = const("b1", 0)
    if op == "mul":
        return *(_wide_product if near.kind == "f64" else _narrow)(a, b, None, near), none
    product_sign = sign(a) ^ sign(b) if op == "fma" else sign(a)
    addend = args[2] if op == "fma" else b
    if op == "fma":
        above, below = fma_error(a, b, addend, near)
    elif near.kind == "f64":
        error = _sum_error(a, b, near)
        stuck = is_infinite(near)
        above, below = select(stuck, near < 0.0, error > 0.0), select(stuck, near > 0.0, error < 0.0)
    else:
        above, below = _narrow(a, const("f32", 1.0), b, near)
    zero = near.equals(0.0) & ~above & ~below & (product_sign ^ sign(addend))
    return above, below, zero


def fma_error(a: Value, b: Value, c: Value, near: Value) -> tuple[Value, Value]:
    """(a * b + c above `near`, below it) for finite operands and near = fma(a, b, c)."""
    return (_wide_fma if near.kind == "f64" else _narrow)(a, b, c, near)


def _sum_error(a: Value, b: Value, total: Value) -> Value:
    """a + b - total, exactly."""
    part = total - a
    return (a - (total - part)) + (b - part)


def _narrow(a: Value, b: Value, c: Value | None, near: Value) -> tuple[Value, Value]:
    """a * b (+ c) in f32 against `near`: the product is exact in f64."""
    exact, error = cast(a, "f64") * cast(b, "f64"), const("f64", 0.0)
    if c is not None:
        product, wide = exact, cast(c, "f64")
        exact = product + wide
        error = _sum_error(product, wide, exact)
    back = cast(near, "f64")
    same = exact.equals(back)
    return (exact > back) | same & (error > 0.0), (exact < back) | same & (error < 0.0)


def _scaled(a: Value, b: Value, small: Value) -> tuple[Value, Value]:
    """The two with the smaller one made larger, where `small` holds."""
    first = abs(a) < abs(b)
    return select(small & first, a * SCALE, a), select(small & ~first, b * SCALE, b)


def _wide_product(a: Value, b: Value, c: None, near: Value) -> tuple[Value, Value]:
    return _wide_fma(a, b, from_pattern("f64", 0), near)


def _wide_fma(a: Value, b: Value, c: Value, near: Value) -> tuple[Value, Value]:
    """a * b + c in f64 against `near`."""
    small = (abs(a * b) < TINY) & (abs(c) < TINY)
    a, b = _scaled(a, b, small)
    c, back = select(small, c * SCALE, c), select(small, near * SCALE, near)
    product = a * b
    rest = Value("f64", "fma", a, b, -product)
    lost = product.equals(0.0) & a.differs(0.0) & b.differs(0.0)  # far below all else: its sign matters
    least = bits(const("u64", 1) | bits(product, "u64"), "f64")
    product = select(lost, least, product)
    total = product + c
    low = _sum_error(product, c, total)
    both = low + rest
    error = (total - back) + both + _sum_error(low, rest, both)
    stuck = is_infinite(near)
    above = select(stuck, near < 0.0, error > 0.0)
    return above, select(stuck, near > 0.0, error < 0.0)
