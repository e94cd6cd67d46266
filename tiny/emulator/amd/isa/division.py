"""Division: v_rcp, v_div_scale, steps of v_fma, v_div_fmas, v_div_fixup together make a quotient."""

from tiny.emulator.amd.isa.expression import Value, bits, const, is_nan, select
from tiny.emulator.amd.isa.functions import (
    BIAS,
    INFINITY,
    MANTISSA,
    QUIET,
    SIGN,
    exponent,
    from_pattern,
    is_denormal,
    is_infinite,
    ldexp,
    pattern,
    quiet,
    sign,
    signed,
)
from tiny.emulator.amd.isa.rounding import fma_error

_SCALE = {"f32": (96, 64, 23), "f64": (768, 128, 53)}


def div_scale(which: Value, denominator: Value, numerator: Value) -> tuple[Value, Value]:
    """(`which`, one of the other two, scaled so that the steps neither overflow nor lose bits; unscale
    afterwards).

    Where both 1 / denominator and the quotient would be denormal, the documents print a scale up of the
    denominator, which overflows; it is scaled down here, the only way in which the quotient comes out right.
    For f32 they print 1 / denominator in f64, where nothing is denormal; it is f32's denormals that matter,
    as v_rcp_f32 flushes them.
    """
    kind = which.kind
    far, scale, tiny = _SCALE[kind]
    up, down = ldexp(which, const("i32", scale)), ldexp(which, const("i32", -scale))
    is_denominator = which.equals(denominator)
    near_overflow = (exponent(numerator) - exponent(denominator)) >= far
    inverse_small = is_denormal(1.0 / denominator)
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


def div_fmas(a: Value, b: Value, c: Value, unscale: Value, nearest: bool = True) -> Value:
    """fma, scaled back where div_scale said so: up if the quotient so far is at least 2, else down. It is
    rounded once, after scaling.

    nearest: the rounding mode. Rounding twice in one direction does no harm, but to nearest it does: where
    the scaled value lies between two denormals, what the fma lost decides.
    Some documents print a factor of 2 ** 32 in one direction only, which fits neither of div_scale's scales.
    """
    kind, scale = a.kind, _SCALE[a.kind][1]
    plain = Value(kind, "fma", a, b, c)
    up = exponent(c) > BIAS[kind]
    scaled = ldexp(plain, select(up, const("i32", scale), const("i32", -scale)))
    if nearest:
        above, below = fma_error(a, b, c, plain)
        between = 2.0 ** (scale - BIAS[kind] - MANTISSA[kind])  # half of the distance, times 2 ** scale
        rest = plain - ldexp(scaled, const("i32", scale))
        step = pattern(scaled)
        negative = sign(plain)
        raised = select(negative, bits(step - 1, kind), bits(step + 1, kind))
        lowered = select(negative, bits(step + 1, kind), bits(step - 1, kind))
        corrected = select(rest.equals(between) & above, raised, scaled)
        corrected = select(rest.equals(-between) & below, lowered, corrected)
        scaled = select(up, scaled, corrected)
    return select(unscale, scaled, plain)


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
