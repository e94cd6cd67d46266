"""Exponentials, logarithms, and what is made of them, as basic arithmetic without branches or tables.

One way of computing serves both precisions: the numbers that differ are in tables by type. The polynomials
are minimax fits, made by tests/render/minimax.py. Products written with `fma` are either exact or may be
rounded once or twice. The errors stated, in units of the last place, are the largest that
tests/render/test_functions.py meets, with and without fused multiply-add.
"""
import math

from tiny.ir.dtype import dtypes
from tiny.render.formula import Formula, constant, fma, polynomial, where

F32, F64 = dtypes.float32, dtypes.float64
INF, NAN = math.inf, math.nan
LOG2_E, LN2 = 1.4426950408889634, 0.6931471805599453

# ln 2 in two parts: the first times any exponent is exact
LN2_HIGH = {F32: 0.693145751953125, F64: 0.6931471803691238}
LN2_LOW = {F32: 1.4286068203094173e-06, F64: 1.9082149292705877e-10}
# 1 / ln 2 in two parts: the first has half the bits, so that its product with another half is exact
LOG2_E_HIGH = {F32: 1.4423828125, F64: 1.4426950216293335}
LOG2_E_LOW = {F32: 0.00031222838896340733, F64: 1.9259629911266175e-08}

# (e**r - 1 - r) / r**2 for |r| <= ln(2) / 2
EXP = {F32: (0.5, 0.166665763, 0.0416665077, 0.00836325809, 0.00139308767),
       F64: (0.5, 0.16666666666666671, 0.041666666666666685, 0.0083333333333261185, 0.0013888888888874283,
             0.00019841269874878238, 2.4801587347640632e-05, 2.7557255327417014e-06, 2.7557252596152075e-07,
             2.5105247202764813e-08, 2.0921704320748125e-09)}
EXPM1 = {F32: (0.5, 0.166666672, 0.0416665077, 0.0083331801, 0.00139308651, 0.000199695991),
         F64: (0.5, 0.16666666666666666, 0.041666666666666678, 0.0083333333333333367, 0.0013888888888879051,
               0.00019841269841253611, 2.4801587336501681e-05, 2.7557319265675787e-06, 2.755726321530427e-07,
               2.5052055706118428e-08, 2.0918161344314922e-09, 1.6091293662963838e-10)}
# (2**r - 1) / r for |r| <= 1/2
EXP2 = {F32: (0.693147182, 0.240226507, 0.055503659, 0.00961808302, 0.00133880787, 0.000154537513),
        F64: (0.69314718055994529, 0.24022650695910072, 0.055504108664821625, 0.0096181291076284856,
              0.0013333558146406417, 0.00015403530393355938, 1.5252733841625547e-05, 1.3215486822108353e-06,
              1.0178057052290546e-07, 7.0548919919238383e-09, 4.4558242099600285e-10, 2.5736980577879279e-11)}
# (log(1 + f) - f) / f**2 for 1 + f between sqrt(1/2) and sqrt(2)
LOG = (-0.49999997, 0.333333224, -0.250008285, 0.200019285, -0.166262791, 0.141892433, -0.131124884,
       0.128232479,
       -0.0784341693)
# (2 atanh(s) / s - 2) / s**2 as a polynomial in s**2, where s = f / (2 + f)
LOG_SERIES = (0.6666666666666734, 0.39999999999414598, 0.28571428742407234, 0.22222198571002671,
              0.18183564448052286,
              0.1531404722252194, 0.14795985031619976)
# erf(x) / x - 1 as a polynomial in x**2, for |x| <= 1
ERF = {F32: (0.128379166, -0.37612626, 0.112835824, -0.0268536434, 0.00518796267, -0.000800679321,
             7.84229123e-05),
       F64: (0.12837916709551259, -0.37612638903183748, 0.11283791670954857, -0.026866170645072896,
             0.005223977624780894, -0.00085483269787439622, 0.00012055331036966939, -1.4925593508535897e-05,
             1.6460972843378265e-06, -1.6350025498090994e-07, 1.4657881652416457e-08, -1.1365672752828218e-09,
             5.9452728413098053e-11)}
# -log(1 - erf(x)) as a polynomial in x - 1, from 1 to where erf is 1 to the last bit
ERF_TAIL = {F32: (1.84960556, 2.63896585, 0.843122184, 0.0415079594, -0.00995001756, 0.00192918174,
                  -0.000255917141,
                  1.65461988e-05),
            F64: (1.8496055099332489, 2.6389675142346105, 0.84310725636730843, 0.041561097881867924,
                  -0.010033823864509642, 0.0019778941663094324, -0.00023729241943983346,
                  -2.6351080691515677e-05,
                  2.7285188535184623e-05, -9.7665008579022879e-06, 2.2051096533591721e-06,
                  -2.4250366910637164e-07,
                  -4.6862956449744511e-08, 3.3155573869038534e-08, -9.9238472575846525e-09,
                  1.9963482672343319e-09,
                  -2.886491200202717e-10, 2.9838350262343189e-11, -2.1036650363699816e-12,
                  9.083812458926095e-14,
                  -1.8143432860196043e-15)}
ROOT_HALF = {F32: 0x3F3504F3, F64: 0x3FE6A09E667F3BCD}      # the pattern of sqrt(1/2)
# beyond these the result is 0, infinite, -1 or 1
EXP_RANGE = {F32: (-104.0, 89.0), F64: (-746.0, 710.0)}
EXPM1_RANGE = {F32: (-30.0, 89.0), F64: (-60.0, 710.0)}
EXP2_RANGE = {F32: (-151.0, 129.0), F64: (-1076.0, 1025.0)}
ERF_END = {F32: 4.0, F64: 6.0}


# -- exponentials ---------------------------------------------------------------------------------
def two_to(k: Formula, layout) -> Formula:
    """2**k as a float; k, an unsigned integer, has the bias added already."""
    return (k << layout.mantissa).bitcast(layout.dtype)


def scale(p: Formula, rounded: Formula) -> Formula:
    """p * 2**n, where `rounded` is n + magic.
    In two steps, so that a result below the normal range rounds once.
    """
    layout = p.layout
    biased_twice = rounded.bits() + (2 * layout.bias - layout.magic_bits)
    half = biased_twice >> 1
    return p * two_to(half, layout) * two_to(biased_twice - half, layout)


def reduce_exp(x: Formula) -> tuple[Formula, Formula, Formula]:
    """x = n ln 2 + r: (n + magic, r, the part of r that its rounding lost)."""
    magic = x.layout.magic
    rounded = fma(x, LOG2_E, magic)
    n = rounded - magic
    high = fma(n, -LN2_HIGH[x.dtype], x)                    # exact
    low = n * LN2_LOW[x.dtype]
    r = high - low
    return rounded, r, (high - r) - low


def exp(x: Formula) -> Formula:
    """e ** x. Error below 1.05 in float32, 1.1 in float64."""
    rounded, r, _ = reduce_exp(x.clamp(*EXP_RANGE[x.dtype]))
    p = fma(r * r, polynomial(r, EXP[x.dtype]), r) + 1.0
    return scale(p, rounded)


def exp2(x: Formula) -> Formula:
    """2 ** x. Error below 1.1 in float32, 1.2 in float64."""
    x = x.clamp(*EXP2_RANGE[x.dtype])
    rounded = x + x.layout.magic
    r = x - (rounded - x.layout.magic)
    return scale(fma(r, polynomial(r, EXP2[x.dtype]), 1.0), rounded)


def expm1(x: Formula) -> Formula:
    """e ** x - 1: 2**n (1 + r + q) - 1, summed so that what cancels is exact.

    Error below 1.1 in float32, 1.2 in float64.
    """
    layout = x.layout
    rounded, r, lost = reduce_exp(x.clamp(*EXPM1_RANGE[x.dtype]))
    q = fma(r * r, polynomial(r, EXPM1[x.dtype]), lost)
    half_power = two_to(rounded.bits() + (layout.bias - 1 - layout.magic_bits), layout)  # 2**n may overflow
    whole = half_power - 0.5
    scaled = half_power * r
    total = whole + scaled
    lost = scaled - (total - whole)
    result = (total + fma(half_power, q, lost)) * 2.0
    return where(x.magnitude() < 2.0**(-2 - layout.mantissa), x, result)


# -- logarithms -----------------------------------------------------------------------------------
def split(x: Formula) -> tuple[Formula, Formula]:
    """x = m * 2**k with m between sqrt(1/2) and sqrt(2): (k as a float, m).
    For positive x, denormal ones too.
    """
    layout = x.layout
    steps = layout.mantissa + 2
    tiny = x < 2.0**(1 - layout.bias)
    one, root_half = layout.bias << layout.mantissa, ROOT_HALF[x.dtype]
    shifted = where(tiny, x * 2.0**steps, x).bits() + (one - root_half)
    # 2**mantissa as a float holds an integer in its low bits: a conversion without the instruction for it
    holder = 2.0**layout.mantissa
    holder_bits = (layout.bias + layout.mantissa) << layout.mantissa
    held = ((shifted >> layout.mantissa) | holder_bits).bitcast(x.dtype)
    k = held - where(tiny, constant(holder + layout.bias + steps, x.dtype), holder + layout.bias)
    return k, ((shifted & ((1 << layout.mantissa) - 1)) + root_half).bitcast(x.dtype)


def log_rest(f: Formula) -> Formula:
    """log(1 + f) - f for 1 + f between sqrt(1/2) and sqrt(2)."""
    if f.dtype is F32:
        return f * f * polynomial(f, LOG)
    s = f / (f + 2.0)
    square = s * s
    half = f * f * 0.5
    return fma(s, fma(square, polynomial(square, LOG_SERIES), half), -half)


def _sum_log(k: Formula, f: Formula, rest: Formula) -> Formula:
    """k ln 2 + f + rest, the first two added without loss."""
    high = k * LN2_HIGH[f.dtype]                            # exact
    total = high + f
    lost = f - (total - high)
    return total + (lost + fma(k, LN2_LOW[f.dtype], rest))


def _log_edges(argument: Formula, x: Formula, result: Formula) -> Formula:
    """-inf for log(0), NaN below, infinity and NaN of x as they are."""
    infinity = x.layout.infinity
    ordinary = (argument.bits() - 1) < (infinity - 1)       # positive and finite, in one unsigned comparison
    special = where(argument.equals(0.0), -INF, where(argument < 0.0, NAN, x))
    return where(ordinary, result, special)


def log(x: Formula) -> Formula:
    """The natural logarithm. Error below 1.1 in float32, 1.0 in float64."""
    k, m = split(x)
    f = m - 1.0
    return _log_edges(x, x, _sum_log(k, f, log_rest(f)))


def log1p(x: Formula) -> Formula:
    """log(1 + x): of the rounded sum, with what the rounding lost made up for. Error below 1.0."""
    u = x + 1.0
    lost = where(x > 1.0, 1.0 - (u - x), x - (u - 1.0))
    k, m = split(u)
    f = m - 1.0
    result = _sum_log(k, f, log_rest(f) + lost / u)
    return where(x.equals(0.0), x, _log_edges(u, x, result))


def log2(x: Formula) -> Formula:
    """The logarithm to base 2: log(m) / ln 2 with the larger part of the product exact, for results near 0.

    Error below 1.2.
    """
    k, m = split(x)
    f = m - 1.0
    half = f.high_half()
    high = half * LOG2_E_HIGH[x.dtype]                      # exact
    low = fma(f - half, LOG2_E_HIGH[x.dtype], fma(f, LOG2_E_LOW[x.dtype], log_rest(f) * LOG2_E))
    total = k + high
    lost = high - (total - k)
    return _log_edges(x, x, total + (lost + low))


# -- the error function ---------------------------------------------------------------------------
def erf(x: Formula) -> Formula:
    """The error function: an odd polynomial up to 1, beyond it 1 - exp(-polynomial).

    Error below 1.3 in float32, 2.0 in float64.
    """
    size = x.magnitude()
    end = ERF_END[x.dtype]
    square = x * x
    inner = fma(x, polynomial(square, ERF[x.dtype]), x)
    exponent = polynomial(where(size > end, end, size) - 1.0, ERF_TAIL[x.dtype])
    rounded, r, _ = reduce_exp(-exponent)
    layout = x.layout
    power = two_to(rounded.bits() + (layout.bias - layout.magic_bits), layout)
    complement = (fma(r * r, polynomial(r, EXP[x.dtype]), r) + 1.0) * power
    outer = (1.0 - complement).flip_sign(x.sign_bit())
    return where(size < 1.0, inner, outer)
