"""Functions that several rows of the semantics table share: exact scaling, exp2, log2, sine, division steps,
classes.

The hardware's transcendental units are good to about one unit in the last place; these are computed in f64
and rounded, so they lie within that. Both the interpreter and the translation compute the same bits.
"""

import math

from tiny.emulator.amd.isa.expression import (
    MANTISSA,
    UNSIGNED,
    WIDTH,
    Value,
    bits,
    cast,
    const,
    field,
    floor,
    is_nan,
    rint,
    select,
)

BIAS = {"f16": 15, "f32": 127, "f64": 1023}
SIGN = {kind: 1 << WIDTH[kind] - 1 for kind in BIAS}
INFINITY = {kind: (2 * BIAS[kind] + 1) << MANTISSA[kind] for kind in BIAS}  # its bits
QUIET = {kind: INFINITY[kind] | 1 << MANTISSA[kind] - 1 for kind in BIAS}  # a quiet NaN


def pattern(value: Value) -> Value:
    """A float's bits."""
    return bits(value, UNSIGNED[WIDTH[value.kind]])


def from_pattern(kind: str, number: int) -> Value:
    return bits(const(UNSIGNED[WIDTH[kind]], number), kind)


def exponent(value: Value) -> Value:
    """The biased exponent field, as i32; 0 for zeros and denormals."""
    return cast(
        field(pattern(value), MANTISSA[value.kind], WIDTH[value.kind] - 1 - MANTISSA[value.kind]), "i32"
    )


def sign(value: Value) -> Value:
    return (pattern(value) & SIGN[value.kind]).differs(0)


def is_infinite(value: Value) -> Value:
    return pattern(abs(value)).equals(INFINITY[value.kind])


def is_finite(value: Value) -> Value:
    return pattern(abs(value)) < INFINITY[value.kind]


def is_denormal(value: Value) -> Value:
    return exponent(value).equals(0) & value.differs(0)


def signed(negative: Value, value: Value) -> Value:
    """|value| with that sign."""
    return select(negative, -abs(value), abs(value))


def quiet(value: Value) -> Value:
    return bits(pattern(value) | 1 << MANTISSA[value.kind] - 1, value.kind)


def power_of_two(power: Value) -> Value:
    """2 ** power as f64; power: i32 in -1022 ... 1023."""
    return bits(cast(power + 1023, "u64") << 52, "f64")


def without_denormals(value: Value) -> Value:
    """A zero of the same sign for a denormal."""
    zero = bits(pattern(value) & SIGN[value.kind], value.kind)
    return select(exponent(value).equals(0), zero, value)


def clamped(value: Value, lowest, highest) -> Value:
    value = select(value < lowest, lowest, value)
    return select(value > highest, highest, value)


def ldexp(value: Value, power: Value) -> Value:
    """value * 2 ** power, rounded once. power: i32."""
    if value.kind != "f64":
        return cast(cast(value, "f64") * power_of_two(clamped(power, -400, 400)), value.kind)
    tiny = is_denormal(value)
    normal = select(tiny, value * 2.0**64, value)  # exact
    own = exponent(normal) - 1023
    mantissa = bits(pattern(normal) & ~(0x7FF << 52) & (1 << 64) - 1 | 1023 << 52, "f64")
    total = clamped(clamped(power, -4000, 4000) + own - select(tiny, const("i32", 64), 0), -1200, 1200)
    first = total >> 1
    scaled = mantissa * power_of_two(first) * power_of_two(total - first)
    return select(value.equals(0.0) | ~is_finite(value), value, scaled)


def frexp_exponent(value: Value) -> Value:
    """i32 e with value = m * 2 ** e, m in [0.5, 1); 0 for zero, infinity and NaN."""
    x = cast(value, "f64")
    tiny = is_denormal(x)
    power = exponent(select(tiny, x * 2.0**64, x)) - 1022 - select(tiny, const("i32", 64), 0)
    return select(value.equals(0.0) | ~is_finite(value), const("i32", 0), power)


def frexp_mantissa(value: Value) -> Value:
    return select(is_finite(value), ldexp(value, -frexp_exponent(value)), value)


def fract(value: Value) -> Value:
    """value - floor(value), below 1 also where that rounds up to it."""
    part = value - floor(value)
    below_one = from_pattern(value.kind, (BIAS[value.kind] << MANTISSA[value.kind]) - 1)
    return select(part > below_one, below_one, part)


def _polynomial(x: Value, coefficients: list[float]) -> Value:
    """Horner's rule, highest power first."""
    result = const("f64", coefficients[0])
    for coefficient in coefficients[1:]:
        result = result * x + coefficient
    return result


_EXP2 = [math.log(2) ** n / math.factorial(n) for n in range(12, -1, -1)]
_SINE = [(-1) ** n * (2 * math.pi) ** (2 * n + 1) / math.factorial(2 * n + 1) for n in range(9, -1, -1)]
_LOG2 = [2 / math.log(2) / (2 * n + 1) for n in range(8, -1, -1)]


def exp2(value: Value) -> Value:
    x = clamped(cast(value, "f64"), -400.0, 400.0)
    whole = rint(x)
    result = _polynomial(x - whole, _EXP2) * power_of_two(cast(whole, "i32"))
    return cast(cast(result, "f32"), value.kind)


def log2(value: Value) -> Value:
    x = cast(value, "f64")
    raw = pattern(x)
    low = cast(raw - 0x3FE6A09E667F3BCD >> 52, "i32")  # above or below sqrt(1/2) decides
    power = select(low >= 2048, low - 4096, low)
    mantissa = x / power_of_two(clamped(power, -1022, 1023))
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    result = cast(_polynomial(ratio * ratio, _LOG2) * ratio + cast(power, "f64"), "f32")
    infinite = from_pattern("f32", INFINITY["f32"])
    result = select(x.equals(0.0), -infinite, select(is_infinite(x), infinite, result))
    return cast(select((x < 0.0) | is_nan(x), from_pattern("f32", QUIET["f32"]), result), value.kind)


def _sine_of_turns(turns: Value) -> Value:
    """sin(2 pi turns), turns: f64 in -0.75 ... 0.75."""
    near = turns - rint(turns)
    near = select(near > 0.25, 0.5 - near, near)
    near = select(near < -0.25, -0.5 - near, near)
    return _polynomial(near * near, _SINE) * near


def sine(value: Value) -> Value:
    """sin(2 pi value). Arguments beyond +-256 are outside the documented domain; they are reduced like the
    others.
    """
    x = cast(value, "f64")
    return cast(cast(_sine_of_turns(x - rint(x)), "f32"), value.kind)


def cosine(value: Value) -> Value:
    x = cast(value, "f64")
    return cast(cast(_sine_of_turns(abs(x - rint(x)) + 0.25), "f32"), value.kind)


def reciprocal(value: Value) -> Value:
    return 1.0 / value


def reciprocal_root(value: Value) -> Value:
    root = Value("f64", "sqrt", cast(value, "f64"))
    return cast(1.0 / root, value.kind) if value.kind != "f16" else cast(cast(1.0 / root, "f32"), "f16")


def less(a: Value, b: Value) -> Value:
    """a < b with -0.0 below +0.0."""
    return (a < b) | a.equals(b) & sign(a) & ~sign(b)


def is_signalling(value: Value) -> Value:
    return is_nan(value) & field(pattern(value), MANTISSA[value.kind] - 1, 1).equals(0)


def _number(a: Value, b: Value, ieee: bool, a_wins: Value) -> Value:
    """Of two numbers the one that wins; a number wins over NaN, but with ieee not over a signalling one."""
    result = select(is_nan(a), select(is_nan(b), quiet(a), b), select(is_nan(b) | a_wins, a, b))
    if not ieee:
        return result
    return select(is_signalling(a), quiet(a), select(is_signalling(b), quiet(b), result))


def minimum(a: Value, b: Value, ieee: bool = False) -> Value:
    """minNum of IEEE 754-2008: a number wins over NaN. ieee: MODE.IEEE, as gfx9 and gfx11 have it."""
    return _number(a, b, ieee, less(a, b))


def maximum(a: Value, b: Value, ieee: bool = False) -> Value:
    return _number(a, b, ieee, less(b, a))


def median(a: Value, b: Value, c: Value, ieee: bool = False) -> Value:
    """The middle one; the least where one is NaN."""
    most = maximum(maximum(a, b, ieee), c, ieee)
    of_a, of_b, of_c = maximum(b, c, ieee), maximum(a, c, ieee), maximum(a, b, ieee)
    middle = select(most.equals(a), of_a, select(most.equals(b), of_b, of_c))
    least = minimum(minimum(a, b, ieee), c, ieee)
    return select(is_nan(a) | is_nan(b) | is_nan(c), least, middle)


def in_class(value: Value, mask: Value) -> Value:
    """v_cmp_class: bit n of the mask asks for class n: signalling NaN, quiet NaN, -infinity, -normal,
    -denormal, -0, +0, +denormal, +normal, +infinity.
    """
    negative, nan = sign(value), is_nan(value)
    quiet_bit = field(pattern(value), MANTISSA[value.kind] - 1, 1).differs(0)
    size = select(
        is_infinite(value),
        const("u32", 0),
        select(
            value.equals(0.0), const("u32", 3), select(is_denormal(value), const("u32", 2), const("u32", 1))
        ),
    )
    number = select(negative, size + 2, 9 - size)
    number = select(nan, select(quiet_bit, const("u32", 1), const("u32", 0)), number)
    return field(cast(mask, "u32") >> number, 0, 1).differs(0)


# -- the bits of 2 / pi that a range reduction needs ---------------------------------------------------------
def _inverse_tangent(n: int, width: int) -> int:
    """arctan(1 / n) * 2 ** width, by its series."""
    power, total, k = (1 << width) // n, 0, 1
    while power:
        total += power // k if k & 2 == 0 else -(power // k)
        power, k = power // (n * n), k + 2
    return total


_WIDTH = 1400
_PI = 4 * (4 * _inverse_tangent(5, _WIDTH) - _inverse_tangent(239, _WIDTH))
_TWO_OVER_PI = (2 << 2 * _WIDTH) // _PI >> _WIDTH - 1201 << 79  # 1201 bits are kept; then zeros up to 1280
_WORDS = [_TWO_OVER_PI >> 1248 - 32 * n & 0xFFFFFFFF for n in range(40)] + [0] * 24


def _word_of_two_over_pi(number: Value) -> Value:
    """The 32-bit word with that number, 0 ... 63, from the highest down: a tree of choices."""
    level = [const("u32", word) for word in _WORDS]
    for n in range(6):
        high = field(number, n, 1).differs(0)
        level = [select(high, b, a) for a, b in zip(level[::2], level[1::2], strict=True)]
    return level[0]


def trig_preop(value: Value, segment: Value) -> Value:
    """53 bits of 2 / pi from bit `shift` behind the point on, as their value; shift: 53 for each segment, and
    what the exponent has above 1077. From exponent 1968 on value is expected to be scaled by 2 ** -128.
    """
    power = exponent(value)
    shift = cast(segment & 31, "i32") * 53 + select(power > 1077, power - 1077, 0)
    shift = cast(select(shift > 1280, const("i32", 1280), shift), "u32")
    place, rest = shift >> 5, shift & 31
    high, middle, low = (cast(_word_of_two_over_pi(place + n), "u64") for n in range(3))
    rest = cast(rest, "u64")
    window = ((high << 32 | middle) << rest | low >> 32 - rest) >> 11
    scale = -53 - cast(shift, "i32") + select(power >= 1968, const("i32", 128), 0)
    return ldexp(cast(window, "f64"), scale)
