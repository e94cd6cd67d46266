"""x ** y, as basic arithmetic without branches or tables.

The logarithm is multiplied by y, up to 1000 in size, before it is exponentiated, so it is computed with ten
bits more than the type has, as a sum of two floats. The scheme is that of Sun's e_pow.c (Freely Distributable
Math Library, 1993); every product that must be exact is of two halves, so no fused multiply-add is needed.
"""
import math

from tiny.ir.dtype import dtypes
from tiny.render.exponential import EXP2, scale, split
from tiny.render.formula import Formula, constant, fma, polynomial, where

F32, F64 = dtypes.float32, dtypes.float64
LN2 = math.log(2.0)
# 2 / (3 ln 2), and in halves
FACTOR = 0.9617966939259756
FACTOR_PARTS = {F32: (0.961669921875, 0.0001267720509756049),
                F64: (0.9617966860532761, 7.872699542894897e-09)}
# 3 (atanh(s) / s - 1 - s**2 / 3) / s**4 as a polynomial in s**2, s <= 0.1716
SERIES = {F32: (0.600002289, 0.428206414, 0.351292193),
          F64: (0.60000000000003395, 0.42857142855144831, 0.33333333780727004, 0.27272676474251789,
                0.23080139631476079, 0.19885139533682558, 0.19795322553302208)}
# beyond these y decides alone; beyond these the result is 0 or infinite
LARGEST_Y = {F32: 2.0**40, F64: 2.0**70}
EXPONENT_RANGE = {F32: (-155.0, 130.0), F64: (-1080.0, 1026.0)}


def log2_in_two(x: Formula) -> tuple[Formula, Formula]:
    """log2(x) of a positive finite x as (high half, rest).

    log2(m) = 2 / (3 ln 2) * (3 s + s**3 (1 + ...)) with s = (m - 1) / (m + 1), each step in two parts.
    """
    k, m = split(x)
    f, g = m - 1.0, m + 1.0
    s = f / g
    s_high, g_high = s.high_half(), g.high_half()
    g_low = m - (g_high - 1.0)
    s_low = ((f - s_high * g_high) - s_high * g_low) / g
    square = s * s
    rest = fma(square * square, polynomial(square, SERIES[x.dtype]), s_low * (s_high + s))
    square = s_high * s_high                                # exact
    t_high = (square + 3.0 + rest).high_half()
    t_low = rest - ((t_high - 3.0) - square)
    u = s_high * t_high                                     # exact
    v = fma(s_low, t_high, t_low * s)
    p_high = (u + v).high_half()
    p_low = v - (p_high - u)
    high, low = FACTOR_PARTS[x.dtype]
    z_high = p_high * high                                  # exact
    z_low = fma(p_high, low, p_low * FACTOR)
    total = (z_high + z_low + k).high_half()
    return total, z_low - ((total - k) - z_high)


def magnitude_of_power(size: Formula, y: Formula) -> Formula:
    """size ** y for a positive finite size."""
    dtype = size.dtype
    log_high, log_low = log2_in_two(size)
    y = y.clamp(-LARGEST_Y[dtype], LARGEST_Y[dtype])
    y_high = y.high_half()
    low = fma(y, log_low, (y - y_high) * log_high).clamp(-1.0, 1.0)          # out of range only if `high` is
    high = (y_high * log_high).clamp(*EXPONENT_RANGE[dtype])                 # exact
    rounded = high + low + size.layout.magic
    fraction = high - (rounded - size.layout.magic)
    r = fraction + low
    lost = low - (r - fraction)
    return scale(1.0 + fma(r, polynomial(r, EXP2[dtype]), lost * LN2), rounded)


def power(x: Formula, y: Formula) -> Formula:
    """x ** y by the rules of C11 F.10.4.4 for signs, zeros, infinities and NaN. Error below 1.3 ulp."""
    size = x.magnitude()
    zero, infinite = size.equals(0.0), size.equals(math.inf)
    edge = where((y < 0.0) ^ infinite, constant(math.inf, x.dtype), 0.0)
    result = where(zero | infinite, edge, magnitude_of_power(size, y))
    half = y * 0.5
    whole = y.trunc().equals(y)
    odd = whole & half.trunc().differs(half)
    result = (result.bits() | where(odd, x.sign_bit(), 0)).bitcast(x.dtype)
    negative = (x < 0.0) & x.differs(-math.inf)
    undefined = x.is_nan() | y.is_nan() | (negative & ~whole)
    return where(y.equals(0.0) | x.equals(1.0), 1.0, where(undefined, math.nan, result))


def power_of_constant(x: Formula, exponent: float) -> Formula | None:
    """x ** exponent by multiplication where that is at least as accurate; None where it is not."""
    if exponent == 0.5:
        return where(x.equals(-math.inf), math.inf, (x + 0.0).sqrt())        # pow(-0.0, 0.5) is 0.0
    if exponent not in _BY_MULTIPLICATION:
        return None
    return _BY_MULTIPLICATION[exponent](x)


_BY_MULTIPLICATION = {
    0.0: lambda x: where(x.equals(x), 1.0, constant(1.0, x.dtype)),          # with the lanes of x
    1.0: lambda x: x, 2.0: lambda x: x * x, 3.0: lambda x: x * x * x, -1.0: lambda x: 1.0 / x}
