"""8-bit floats as expressions: fp8 (four bits of exponent, three of mantissa) and bf8 (five and two).

Two families of formats. OCP (gfx12): fp8 has no infinity, its one NaN is 0x7f; bf8 has both, as IEEE. FNUZ
(gfx942): no infinity and no negative zero, whose code 0x80 is the only NaN; biases are one higher.

Source: OCP, "8-bit Floating Point Specification (OFP8)" (2023); AMD, "MI300 ISA", section "Data formats".
What overflows on gfx12, and which NaN comes out: a description by others, see choices.py; not measured by us.
"""

from typing import NamedTuple

from tiny.emulator.amd.isa.expression import Value, bits, cast, const, field, select
from tiny.emulator.amd.isa.functions import INFINITY, QUIET, from_pattern, pattern


class Format(NamedTuple):
    """mantissa: bits of it; infinity: the code of +infinity or None; nan: what a NaN becomes.

    greatest: the code of the greatest number; too_great: what overflow gives
    """

    mantissa: int
    bias: int
    greatest: int
    too_great: int
    infinity: int | None
    nan: int
    fnuz: bool = False


FORMATS = {
    ("fp8", False): Format(3, 7, 0x7E, 0x7F, None, 0xFF),
    ("bf8", False): Format(2, 15, 0x7B, 0x7C, 0x7C, 0xFE),
    ("fp8", True): Format(3, 8, 0x7F, 0x80, None, 0x80, True),
    ("bf8", True): Format(2, 16, 0x7F, 0x80, None, 0x80, True),
}


def is_fnuz(family: str) -> bool:
    """Whether a family has the kind without infinities."""
    return family == "gfx9"


def widened(octet: Value, kind: str, fnuz: bool) -> Value:
    """The low byte of a u32 as f32. kind: fp8 or bf8."""
    octet, form = octet & 255, FORMATS[kind, fnuz]
    size, fraction = octet & 127, field(octet, 0, form.mantissa)
    normal = bits((size << 23 - form.mantissa) + (127 - form.bias << 23), "f32")
    denormal = cast(fraction, "f32") * 2.0 ** (1 - form.bias - form.mantissa)
    result = select(size < 1 << form.mantissa, denormal, normal)
    result = bits(bits(result, "u32") | (octet & 128) << 24, "f32")
    nan = from_pattern("f32", QUIET["f32"])
    if form.fnuz:
        return select(octet.equals(128), nan, result)
    if form.infinity is None:
        return select(size.equals(127), bits(bits(nan, "u32") | (octet & 128) << 24, "f32"), result)
    special = bits((fraction << 21) + INFINITY["f32"] | (octet & 128) << 24, "f32")
    quiet = bits(bits(special, "u32") | 1 << 22, "f32")
    return select(size > form.infinity, quiet, select(size.equals(form.infinity), special, result))


def narrowed(value: Value, kind: str, fnuz: bool, saturate: bool, seed: Value | None = None) -> Value:
    """f32 -> the code of an 8-bit float, as u32. Rounded to nearest even, or with a seed stochastically: its
    high bits are added below the last place and the sum is cut off.
    """
    form, size = FORMATS[kind, fnuz], pattern(value) & 0x7FFFFFFF
    negative = pattern(value) >> 24 & 128
    exponent = field(size, 23, 8)
    mantissa = size & 0x7FFFFF | select(exponent.equals(0), const("u32", 0), 1 << 23)
    exponent = select(exponent.equals(0), const("u32", 1), exponent)
    least = 128 - form.bias  # of normal numbers, in f32's bias
    power = select(exponent < least, const("u32", least), exponent)
    cut = 23 - form.mantissa
    shift = power - exponent
    most = 31 - cut if seed is None else 31  # nothing is left of 24 bits
    shift = select(shift > most, const("u32", most), shift)
    if seed is None:
        unit = const("u32", 1) << shift + cut
        whole = mantissa + (unit >> 1) - 1 + (mantissa >> shift + cut & 1) >> shift + cut
    else:
        whole = (mantissa >> shift) + (seed >> 32 - cut) >> cut
    code = whole + (power - least << form.mantissa)
    too_great = form.greatest if saturate else form.too_great
    code = select(code > form.greatest, const("u32", too_great), code)
    infinite = form.too_great if form.infinity is None else form.infinity
    code = select(size.equals(INFINITY["f32"]), const("u32", infinite), code)
    if form.fnuz:
        code = select(code.equals(0), const("u32", 0), code | negative)
    else:
        code = code | negative
    return select(size > INFINITY["f32"], const("u32", form.nan), code)
