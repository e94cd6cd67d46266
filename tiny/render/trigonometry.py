"""Sine, cosine, tangent and arc tangent, right for every argument, as arithmetic without branches or tables.

An angle is first reduced to r, |r| <= pi/4, and the number of quarter turns taken away. Large angles need
many digits of pi: Payne and Hanek's method multiplies the angle by those bits of 1 / (2 pi) that matter for
its exponent, in integers ("Radian Reduction for Trigonometric Functions", SIGNUM Newsletter, January 1983).
Where the operand proves that the angle is small, Cody and Waite's subtraction in steps is enough, at a fifth
of the cost.

The errors stated, in units of the last place, are the largest that tests/render/test_functions.py meets.
"""
import math

from tiny.ir.dtype import dtypes
from tiny.render.formula import Formula, constant, fma, polynomial, where

Angle = tuple[Formula, Formula, Formula]                     # quarter turns, unsigned; r; correction to r
F32, F64 = dtypes.float32, dtypes.float64
U32, U64, I64 = dtypes.uint32, dtypes.uint64, dtypes.int64
QUARTER_PI = {F32: 0.785398185, F64: 0.7853981633974483}

# 1 / (2 pi), its bits after the point from the highest on, and a zero before them
ONE_BY_TWO_PI = (
    0, 0x28BE60DB9391054A, 0x7F09D5F47D4D3770, 0x36D8A5664F10E410, 0x7F9458EAF7AEF158, 0x6DC91B8E909374B8,
    0x01924BBA82746487, 0x3F877AC72C4A69CF, 0xBA208D7D4BAED121, 0x3A671C09AD17DF90, 0x4E64758E60D4CE7D,
    0x272117E2EF7E4A0E, 0xC7FE25FFF7816603, 0xFBCBC462D6829B47, 0xDB4D9FB3C9F2C26D, 0xD3D18FD9A797FA8B,
    0x5D49EEB1FAF97C5E, 0xCF41CE7DE294A4BA, 0x9AFED7EC47E35742, 0x1580CC11BF1EDAEA, 0xFC33EF0826BD0D87)

# (sin(r) / r - 1) / r**2 and (cos(r) - 1 + r**2 / 2) / r**4 as polynomials in r**2
SIN = {F32: (-0.166666552, 0.00833218917, -0.000195182831),
       F64: (-0.1666666666666663, 0.0083333333333221044, -0.0001984126982957694, 2.7557313616842721e-06,
             -2.5050747026410391e-08, 1.5896186099706237e-10)}
COS = {F32: (0.0416666456, -0.00138873106, 2.44325638e-05),
       F64: (0.041666666666666595, -0.0013888888888873034, 2.4801587288837941e-05, -2.7557314175207858e-07,
             2.0875700271440559e-09, -1.1358506245371994e-11)}
# (atan(t) / t - 1) / t**2 as a polynomial in t**2, |t| <= tan(pi/8)
ATAN = {F32: (-0.333333164, 0.199985251, -0.142443091, 0.105984695, -0.0608816668),
        F64: (-0.33333333333333326, 0.1999999999999765, -0.14285714285385887, 0.11111111088064812,
              -0.090909081410690776, 0.076922826928884386, -0.066662259509859323, 0.058770153564671426,
              -0.052183714001335035, 0.045034466275869468, -0.033472729923034177, 0.015194019834348029)}
# what rounding pi/4 and pi/2 to the type leaves out
ATAN_LOW = {F32: (-2.1855695e-08, -4.371139e-08), F64: (3.061616997868383e-17, 6.123233995736766e-17)}
# pi/2 in parts of few bits: the product of each but the last with a number of quarter turns below 2**10 is
# exact
HALF_PI_STEPS = {F32: (1.570556640625, 0.0002396702766418457, 1.5890691429376602e-08, 2.563344151594519e-12),
                 F64: (1.570796325802803, 9.920935791635221e-10, 5.17018297889025e-19,
                       2.9038559739793605e-28)}
STEPS_END = 1600.0
# pi/2 in halves of the significant bits, and the rest
HALF_PI = {F32: (1.5703125, 0.00048382679489661926), F64: (1.5707963109016418, 1.5893254773528196e-08)}


# -- an angle in quarter turns and a rest ---------------------------------------------------------
def reduce_in_steps(size: Formula) -> Angle:
    """An angle from 0 to STEPS_END."""
    magic = size.layout.magic
    first, second, third, fourth = HALF_PI_STEPS[size.dtype]
    rounded = fma(size, 2.0 / math.pi, magic)
    n = rounded - magic
    a = fma(n, -first, size)
    b = fma(n, -second, a)
    lost_b = fma(n, -second, a - b)
    r = fma(n, -third, b)
    lost_r = fma(n, -third, b - r)
    return rounded.bits(), r, fma(n, -fourth, lost_r + lost_b)


def window(index: Formula, table: tuple[int, ...], count: int, steps: int) -> list[Formula]:
    """table[index], table[index + 1] ...: `count` words chosen without a load, by shifting 2**(steps-1), ...
    2, 1 places.
    """
    words: list = [constant(word, index.dtype) for word in table]
    for step in reversed(range(steps)):
        distance, needed = 1 << step, count + (1 << step) - 1
        chosen = (index & distance).differs(0)
        words = [where(chosen, words[i + distance], words[i]) if i + distance < len(words) else words[i]
                 for i in range(min(needed, len(words)))]
    return words


def reduce_exactly(size: Formula) -> Angle:
    """Any finite angle from 1/2 up.

    With the angle as 0.m * 2**e, the words of 1 / (2 pi) from bit e on, times m, are the fraction of a turn.
    """
    layout = size.layout
    word, bits = layout.word, layout.word.bits
    pattern = size.bits()
    exponent = (pattern >> layout.mantissa) - (layout.bias - 1)
    m = (pattern << (bits - 1 - layout.mantissa)) | (1 << (bits - 1))
    index, shift = exponent >> int(math.log2(bits)), exponent & (bits - 1)
    count, table = (4, _words_of_32()) if word is U32 else (4, ONE_BY_TWO_PI)
    parts = window(index, table, count, 3 if word is U32 else 5)
    high, middle, low = (
        (parts[i] << shift) | ((parts[i + 1] >> 1) >> ((bits - 1) - shift)) for i in range(3))
    return (_fraction_32 if word is U32 else _fraction_64)(m, high, middle, low)


def _words_of_32() -> tuple[int, ...]:
    halves = [half for word in ONE_BY_TWO_PI[1:4] for half in (word >> 32, word & 0xFFFFFFFF)]
    return (0, *halves, 0)


def _fraction_32(m: Formula, high: Formula, middle: Formula, low: Formula) -> Angle:
    """The top 64 bits of m * (high, middle, low) modulo one turn, to quarter turns and radians."""
    m, high, middle, low = (v.cast(U64) for v in (m, high, middle, low))
    product = ((m * high) << 32) + m * middle + ((m * low) >> 32)
    quarters = (product + (1 << 61)) >> 62                  # to the nearest
    rest = (product - (quarters << 62)).cast(I64)           # of a quarter turn, in units of 2**-62
    leading = rest.cast(F32)
    trailing = (rest - leading.cast(I64, fits=True)).cast(F32)
    return quarters.cast(U32), *_radians(leading * 2.0**-62, trailing * 2.0**-62)


def multiply_wide(a: Formula, b: Formula) -> tuple[Formula, Formula]:
    """The 128-bit product of two uint64: (high word, low word)."""
    mask = 0xFFFFFFFF
    a_low, a_high, b_low, b_high = a & mask, a >> 32, b & mask, b >> 32
    low = a_low * b_low
    cross = a_high * b_low + (low >> 32)
    other = a_low * b_high + (cross & mask)
    return a_high * b_high + (cross >> 32) + (other >> 32), a * b


def _fraction_64(m: Formula, high: Formula, middle: Formula, low: Formula) -> Angle:
    """The same with words of 64 bits: the fraction of a turn to 128 bits."""
    middle_high, middle_low = multiply_wide(m, middle)
    below = middle_low + multiply_wide(m, low)[0]
    carry = (below < middle_low).cast(U64)
    above = m * high + middle_high + carry
    quarters = (above + (1 << 61)) >> 62
    rest = (above - (quarters << 62)).cast(I64)             # in units of 2**-62, with `below` as its fraction
    leading = rest.cast(F64)
    trailing = (rest - leading.cast(I64, fits=True)).cast(F64) + below.cast(F64) * 2.0**-64
    total = leading + trailing
    return quarters, *_radians(total * 2.0**-62, (trailing - (total - leading)) * 2.0**-62)


def _radians(turns: Formula, correction: Formula) -> tuple[Formula, Formula]:
    """Quarter turns times pi/2: (r, correction to r)."""
    high, low = HALF_PI[turns.dtype]
    half = turns.high_half()
    exact = half * high
    rest = fma(turns - half, high, fma(turns, low, correction * (math.pi / 2)))
    r = exact + rest
    return r, rest - (r - exact)


def reduce_angle(x: Formula, largest: float) -> Angle:
    """(quarter turns, r, correction) of |x|, which is promised not to be above `largest`;
    inf if nothing is known.
    """
    size = x.magnitude()
    if largest <= STEPS_END:
        return reduce_in_steps(size)
    quarters, r, correction = reduce_exactly(size)
    small = size < QUARTER_PI[x.dtype]
    return where(small, 0, quarters), where(small, size, r), where(small, 0.0, correction)


# -- the functions --------------------------------------------------------------------------------
def sin_kernel(r: Formula, correction: Formula) -> Formula:
    """sin(r + correction), |r| <= pi/4."""
    square = r * r
    return r + fma(square * r, polynomial(square, SIN[r.dtype]), correction)


def cos_kernel(r: Formula, correction: Formula) -> Formula:
    """cos(r + correction), |r| <= pi/4; what 1 - r**2 / 2 loses is added again."""
    square = r * r
    half = square * 0.5
    leading = 1.0 - half
    rest = fma(square * square, polynomial(square, COS[r.dtype]), -(r * correction))
    return leading + (((1.0 - leading) - half) + rest)


def _finite_only(x: Formula, result: Formula) -> Formula:
    """NaN for infinities; NaN stays."""
    return where(x.magnitude() < math.inf, result, math.nan)


def _turned(sine: Formula, cosine: Formula, quarters: Formula) -> Formula:
    """The sine after so many quarter turns: the sine, the cosine, and both again with the other sign."""
    value = where((quarters & 1).differs(0), cosine, sine)
    return value.flip_sign((quarters & 2) << (quarters.dtype.bits - 2))


def sin(x: Formula, largest: float = math.inf) -> Formula:
    """The sine of an angle in radians. Error below 0.95."""
    quarters, r, correction = reduce_angle(x, largest)
    result = _turned(sin_kernel(r, correction), cos_kernel(r, correction), quarters)
    result = result.flip_sign(x.sign_bit())
    return result if largest < math.inf else _finite_only(x, result)


def cos(x: Formula, largest: float = math.inf) -> Formula:
    """The cosine of an angle in radians. Error below 0.95."""
    quarters, r, correction = reduce_angle(x, largest)
    result = _turned(sin_kernel(r, correction), cos_kernel(r, correction), quarters + 1)
    return result if largest < math.inf else _finite_only(x, result)


def tan(x: Formula, largest: float = math.inf) -> Formula:
    """The tangent: sine by cosine, or minus cosine by sine after an odd number of quarter turns.

    Sine and cosine keep what rounding them lost, and a second division mends the first. Error below 1.75.
    """
    quarters, r, correction = reduce_angle(x, largest)
    square = r * r
    half = square * 0.5
    sine = _sum(r, fma(square * r, polynomial(square, SIN[r.dtype]), correction))
    cosine = _sum(1.0 - half, fma(square * square, polynomial(square, COS[r.dtype]), -(r * correction)))
    cosine = cosine[0], cosine[1] + ((1.0 - (1.0 - half)) - half)
    odd = (quarters & 1).differs(0)
    above = [where(odd, -c, s) for s, c in zip(sine, cosine, strict=True)]
    below = [where(odd, s, c) for s, c in zip(sine, cosine, strict=True)]
    quotient = above[0] / below[0]
    result = quotient + (above[1] - quotient * below[1]) / below[0]
    result = result.flip_sign(x.sign_bit())
    return result if largest < math.inf else _finite_only(x, result)


def _sum(large: Formula, small: Formula) -> tuple[Formula, Formula]:
    """(large + small rounded, what the rounding lost)."""
    total = large + small
    return total, small - (total - large)


def atan(x: Formula) -> Formula:
    """The arc tangent: of x, of (x - 1) / (x + 1) plus pi/4, or of -1/x plus pi/2. Error below 1.9."""
    size = x.magnitude()
    middle, far = size > 0.4142135623730950, size > 2.414213562373095
    t = where(far, -1.0, where(middle, size - 1.0, size)) / where(far, size, where(middle, size + 1.0, 1.0))
    quarter_low, half_low = ATAN_LOW[x.dtype]
    base = where(far, constant(math.pi / 2, x.dtype), where(middle, constant(math.pi / 4, x.dtype), 0.0))
    base_low = where(far, constant(half_low, x.dtype), where(middle, constant(quarter_low, x.dtype), 0.0))
    square = t * t
    total = base + t
    lost = t - (total - base)
    result = total + (lost + fma(square * t, polynomial(square, ATAN[x.dtype]), base_low))
    return result.flip_sign(x.sign_bit())
