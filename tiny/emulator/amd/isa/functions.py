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


def minimum(a: Value, b: Value) -> Value:
    """minNum of IEEE 754-2008: a number wins over NaN."""
    return select(is_nan(a), select(is_nan(b), quiet(a), b), select(is_nan(b) | less(a, b), a, b))


def maximum(a: Value, b: Value) -> Value:
    return select(is_nan(a), select(is_nan(b), quiet(a), b), select(is_nan(b) | less(b, a), a, b))


def median(a: Value, b: Value, c: Value) -> Value:
    """The middle one; the least where one is NaN."""
    most = maximum(maximum(a, b), c)
    middle = select(most.equals(a), maximum(b, c), select(most.equals(b), maximum(a, c), maximum(a, b)))
    return select(is_nan(a) | is_nan(b) | is_nan(c), minimum(minimum(a, b), c), middle)


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


# -- division: v_rcp, v_div_scale, steps of v_fma, v_div_fmas and v_div_fixup together give the rounded quotie
_SCALE = {"f32": (96, 64, 23), "f64": (768, 128, 53)}


def div_scale(which: Value, denominator: Value, numerator: Value) -> tuple[Value, Value]:
    """(`which`, one of the other two, scaled so that the steps neither overflow nor lose bits; unscale
    afterwards).

    Where both 1 / denominator and the quotient would be denormal, the documents print a scale up of the
    denominator, which overflows; it is scaled down here, the only way in which the quotient comes out right.
    """
    kind = which.kind
    far, scale, tiny = _SCALE[kind]
    up, down = ldexp(which, const("i32", scale)), ldexp(which, const("i32", -scale))
    is_denominator = which.equals(denominator)
    near_overflow = (exponent(numerator) - exponent(denominator)) >= far
    inverse_small = is_denormal(1.0 / cast(denominator, "f64")) if kind == "f64" else const("b1", 0)
    quotient_small = is_denormal(numerator / denominator)
    steps = [  # condition, result, unscale
        (numerator.equals(0.0) | denominator.equals(0.0), from_pattern(kind, QUIET[kind]), False),
        (near_overflow, select(is_denominator, up, which), True),
        (is_denormal(denominator), up, False),
        (inverse_small & quotient_small, select(is_denominator, down, which), True),
        (inverse_small, down, False),
        (quotient_small, select(which.equals(numerator), up, which), True),
        (exponent(numerator) <= tiny, up, False),
    ]
    result, unscale = which, const("b1", 0)
    for condition, scaled, flag in reversed(steps):
        result = select(condition, scaled, result)
        unscale = select(condition, const("b1", flag), unscale)
    return result, unscale


def div_fmas(a: Value, b: Value, c: Value, unscale: Value) -> Value:
    """fma, scaled back where div_scale said so: up if the quotient so far is at least 2, else down.

    Some documents print a factor of 2 ** 32 in one direction only, which fits neither of div_scale's scales.
    """
    scale = _SCALE[a.kind][1]
    plain = Value(a.kind, "fma", a, b, c)
    power = select(exponent(c) > BIAS[a.kind], const("i32", scale), const("i32", -scale))
    return select(unscale, ldexp(plain, power), plain)


def div_fixup(quotient: Value, denominator: Value, numerator: Value) -> Value:
    """The special cases of numerator / denominator, else the quotient with the right sign."""
    kind = quotient.kind
    negative = sign(denominator) ^ sign(numerator)
    infinite, zero = from_pattern(kind, INFINITY[kind]), from_pattern(kind, 0)
    invalid = from_pattern(kind, QUIET[kind] | SIGN[kind])
    too_small = (exponent(numerator) - exponent(denominator)) < -(BIAS[kind] + MANTISSA[kind])
    steps = [
        (is_nan(numerator), quiet(numerator)),
        (is_nan(denominator), quiet(denominator)),
        (denominator.equals(0.0) & numerator.equals(0.0), invalid),
        (is_infinite(denominator) & is_infinite(numerator), invalid),
        (denominator.equals(0.0) | is_infinite(numerator), signed(negative, infinite)),
        (is_infinite(denominator) | numerator.equals(0.0), signed(negative, zero)),
        (too_small, signed(negative, zero)),
        (is_nan(quotient), signed(negative, infinite)),
    ]
    result = signed(negative, quotient)
    for condition, special in reversed(steps):
        result = select(condition, special, result)
    return result
