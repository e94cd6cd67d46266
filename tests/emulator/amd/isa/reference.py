"""What floating-point instructions give, computed apart from the emulator: exact fractions, rounded once."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

FORMAT = {"f16": (10, 15), "f32": (23, 127), "f64": (52, 1023)}  # bits of the mantissa, bias
UNSIGNED = {"f16": np.uint16, "f32": np.uint32, "f64": np.uint64}
NEAREST, UP, DOWN, ZERO = range(4)  # as in MODE.ROUND


def round_fraction(value: Fraction, mantissa: int, bias: int, mode: int = NEAREST) -> int:
    """The bits of the float of that format; value is not zero. Beyond the largest: infinity's bits, or the
    largest where the mode rounds toward zero there.
    """
    negative, size = value < 0, abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    exponent = max(exponent, 1 - bias)
    scaled = size / Fraction(2) ** (exponent - mantissa)
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    if mode == NEAREST:
        whole += rest > Fraction(1, 2) or rest == Fraction(1, 2) and whole & 1
    else:
        whole += rest > 0 and mode == (DOWN if negative else UP)
    pattern = (exponent + bias - 1 << mantissa) + whole
    infinity = 2 * bias + 1 << mantissa
    if pattern >= infinity:
        keeps = mode == ZERO or mode == (UP if negative else DOWN)
        pattern = infinity - 1 if keeps else infinity
    return pattern | negative << (mantissa + bias.bit_length() + 1)


def rounded(kind: str, exact: Callable, plain: Callable, mode: int = NEAREST) -> Callable:
    """exact: fractions -> a fraction, for finite operands; plain: numpy's function, for all others and for
    zeros, whose sign it knows (toward -infinity a sum that cancels is -0).
    """
    mantissa, bias = FORMAT[kind]

    def apply(*operands: np.ndarray) -> np.ndarray:
        result = np.asarray(plain(*operands)).astype(np.dtype(f"f{np.dtype(UNSIGNED[kind]).itemsize}"))
        bits = result.view(UNSIGNED[kind]).copy()
        for item in range(len(bits)):
            values = [float(each[item]) if each.dtype.kind == "f" else int(each[item]) for each in operands]
            if not all(np.isfinite(value) for value in values):
                continue
            value = exact(*map(Fraction, values))
            if value:
                bits[item] = round_fraction(value, mantissa, bias, mode)
            elif mode == DOWN and cancels(bits[item], operands, item):
                bits[item] = 1 << 8 * bits.itemsize - 1
        return bits.view(result.dtype)

    return apply


def cancels(bits: int, operands: tuple[np.ndarray, ...], item: int) -> bool:
    """Whether +0 came from unlike signs: toward -infinity it is -0. Products have numpy's sign."""
    if len(operands) < 2 or bits or any(each.dtype.kind != "f" for each in operands):
        return False
    signs = [bool(np.signbit(each[item])) for each in operands]
    if len(operands) == 3:
        return (signs[0] ^ signs[1]) != signs[2]
    return signs[0] != signs[1]


def fused(kind: str, mode: int = NEAREST) -> Callable:
    """a * b + c, rounded once."""

    def plain(a, b, c):
        wide = np.float64 if kind != "f64" else np.longdouble
        return (a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(a.dtype)

    return rounded(kind, lambda a, b, c: a * b + c, plain, mode)


# -- minimum and maximum -------------------------------------------------------------------------------------
def is_signalling(x: np.ndarray) -> np.ndarray:
    kind = {2: "f16", 4: "f32", 8: "f64"}[x.dtype.itemsize]
    quiet_bit = x.view(UNSIGNED[kind]) >> np.asarray(FORMAT[kind][0] - 1, UNSIGNED[kind]) & UNSIGNED[kind](1)
    return np.isnan(x) & (quiet_bit == 0)


def below(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a < b with -0 below +0."""
    return (a < b) | (a == b) & np.signbit(a) & ~np.signbit(b)


def min_num(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(a), b, np.where(np.isnan(b) | below(a, b), a, b))


def max_num(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(a), b, np.where(np.isnan(b) | below(b, a), a, b))


def ieee(function: Callable) -> Callable:
    """With MODE.IEEE: a signalling NaN makes the result NaN."""

    def apply(a, b):
        return np.where(is_signalling(a) | is_signalling(b), np.asarray(np.nan, a.dtype), function(a, b))

    return apply


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(a) | np.isnan(b), np.asarray(np.nan, a.dtype), min_num(a, b))


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(a) | np.isnan(b), np.asarray(np.nan, a.dtype), max_num(a, b))


def med3(low: Callable, high: Callable) -> Callable:
    """The middle one; with a NaN among them the least of the three."""

    def apply(a, b, c):
        most = high(high(a, b), c)
        middle = np.where(most == a, high(b, c), np.where(most == b, high(a, c), high(a, b)))
        any_nan = np.isnan(a) | np.isnan(b) | np.isnan(c)
        return np.where(any_nan, low(low(a, b), c), middle)

    return apply


def quiet(x: np.ndarray) -> np.ndarray:
    """An intermediate result is never signalling."""
    return np.where(np.isnan(x), np.asarray(np.nan, x.dtype), x)


def chained(first: Callable, second: Callable) -> Callable:
    return lambda a, b, c: second(quiet(first(a, b)), c)
