"""float16, bfloat16 and fp8: held as bits, computed in float32, rounded once.

A value of type bfloat16, fp8e4m3 or fp8e5m2 has no arithmetic on any processor we emit for; in a kernel it is
nothing but the unsigned integer of its bits, and the only operation on it is the BITCAST to and from that.
`decoded` gives its number as float32, `encoded` the value for a number. float16 is native: there CAST does
both.

float32 holds every number of these types, and has more than twice their significant bits and two more, so
that +, -, *, / and the square root rounded to float32 and then once more give what one rounding would.
"""
import math

from tiny.ir import ops
from tiny.ir.dtype import DType, canonical, dtypes
from tiny.render.formula import LAYOUTS, Formula, constant, where

PATTERNS = (dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2)
F32, F64 = dtypes.float32, dtypes.float64


# -- to float32 -----------------------------------------------------------------------------------
def decoded(x: Formula) -> Formula:
    """The number of a small float, exact, as float32; other floats come back as they are."""
    node, dtype = x.node, x.dtype
    if dtype in (F32, F64):
        return x
    if node.op is ops.CONST:
        return constant(node.arg, F32)
    if dtype is dtypes.float16:
        return x.cast(F32)
    if dtype is dtypes.bfloat16:
        return _widened_bfloat16(x)
    if dtype is dtypes.fp8e5m2:                             # the upper half of a float16
        return (x.bits().cast(dtypes.uint16) << 8).bitcast(dtypes.float16).cast(F32)
    return _decoded_e4m3(x)


def _widened_bfloat16(x: Formula) -> Formula:
    """The upper half of a float32. Bits that `encoded` has just narrowed are used as they were."""
    bits = x.bits()
    narrow = bits.node
    if narrow.op is ops.CAST and narrow.src[0].op is ops.SHR and narrow.src[0].src[1].arg == 16:
        return (Formula(narrow.src[0].src[0]) & 0xFFFF0000).bitcast(F32)
    return (bits.cast(dtypes.uint32) << 16).bitcast(F32)


def _decoded_e4m3(x: Formula) -> Formula:
    """The fields moved to their places, and a product to mend the exponent; it makes denormals normal."""
    bits = x.bits().cast(dtypes.uint32)
    number = ((bits & 0x7F) << 20).bitcast(F32) * 2.0**120
    number = where((bits & 0x7F).equals(0x7F), math.nan, number)
    return number.flip_sign((bits & 0x80) << 24)


# -- from float32 and float64 ---------------------------------------------------------------------
def encoded(x: Formula, dtype: DType) -> Formula:
    """A float32 or float64 number as `dtype`, rounded to nearest even once;
    too large ones become inf, NaN in e4m3.
    """
    if dtype in (F32, F64):
        return x.cast(dtype)
    if x.node.op is ops.CONST:
        return _encoded_constant(canonical(x.node.arg, dtype), dtype)
    if x.dtype is F64:
        x = rounded_to_odd(x)
    if dtype is dtypes.float16:
        return x.cast(dtype)
    if dtype is dtypes.bfloat16:
        bits = x.bits()
        rounded = bits + 0x7FFF + ((bits >> 16) & 1)
        rounded = where(x.is_nan(), bits | 0x400000, rounded)
        return (rounded >> 16).cast(dtypes.uint16).bitcast(dtype)
    return _encoded_byte(x, dtype)


def _encoded_byte(x: Formula, dtype: DType) -> Formula:
    """fp8: rounded by an integer addition in the normal range, by a float addition below it."""
    layout = LAYOUTS[dtype]
    dropped = 23 - layout.mantissa
    size = x.magnitude()
    bits = size.bits()
    odd = (bits >> dropped) & 1
    rebias = (127 - layout.bias) << 23
    normal = (bits + ((1 << (dropped - 1)) - 1 - rebias) + odd) >> dropped
    aligning = 2.0**(24 - layout.bias - layout.mantissa)    # its last bit is worth the smallest denormal
    denormal = (size + aligning).bits() - constant(aligning, F32).bits()
    pattern = where(size < 2.0**(1 - layout.bias), denormal, normal)
    # halfway between the largest number and the next step; a tie goes to the even one
    limit, beyond = (464.0, 0x7F) if dtype is dtypes.fp8e4m3 else (61440.0, 0x7C)
    too_large = size > limit if dtype is dtypes.fp8e4m3 else ~(size < limit)
    pattern = where(too_large, beyond, pattern)
    pattern = where(x.is_nan(), 0x7F, pattern)
    return (pattern | (x.sign_bit() >> 24)).cast(dtypes.uint8).bitcast(dtype)


def _encoded_constant(value: float, dtype: DType) -> Formula:
    """A constant that the type holds exactly: as the constant of its bits, where bits are all there is."""
    if dtype not in PATTERNS:
        return constant(value, dtype)
    layout = LAYOUTS[dtype]
    sign = layout.sign if math.copysign(1.0, value) < 0 else 0
    if value != value:
        pattern = layout.sign - 1
    elif math.isinf(value):
        pattern = layout.infinity
    else:
        fraction, exponent = math.frexp(abs(value))
        exponent = max(exponent - 1 + layout.bias, 1) if value else 1
        steps = int(abs(value) * 2.0**(layout.mantissa + layout.bias - exponent))
        pattern = steps + ((exponent - 1) << layout.mantissa)
    return constant(sign | pattern, layout.word).bitcast(dtype)


def rounded_to_odd(x: Formula) -> Formula:
    """float64 to float32 so that a second rounding, to fewer bits, gives what one rounding would have.

    An inexact result gets an odd last bit (Boldo and Melquiond, "When double rounding is odd", 2005).
    """
    near = x.cast(F32)
    back = near.cast(F64)
    bits = near.bits()
    inward = back.magnitude() > x.magnitude()
    odd = where(inward, bits - 1, bits + 1)
    inexact = back.differs(x) & (bits & 1).equals(0)
    return where(inexact, odd, bits).bitcast(F32)


def integer_to_odd(x: Formula, dtype: DType) -> Formula:
    """An integer or bool as float32, exact where `dtype` can tell the difference;
    to be rounded to `dtype` next.
    """
    source = x.dtype
    if source.bits <= 16:
        return x.cast(F32)
    if dtype is not dtypes.bfloat16:                        # the others are infinite, or NaN, from 2**18 on
        bounded = where(x > (1 << 18), 1 << 18, x)
        if not source.is_unsigned:
            bounded = where(bounded < -(1 << 18), -(1 << 18), bounded)
        return bounded.cast(F32)
    result = x
    # above 2**length, the bits below 2**shift become one odd bit
    for length, shift in ((24, 14), (38, 28), (52, 40)):
        if source.bits > length:
            large = x > (1 << length)
            if not source.is_unsigned:
                large = large | (x < -(1 << length))
            inexact = (x & ((1 << shift) - 1)).differs(0).cast(source)
            result = where(large, ((x >> shift) | inexact) << shift, result)
    return result.cast(F32)
