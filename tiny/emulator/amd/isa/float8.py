"""Floats of 8 bits as f32.

fp8 has 4 bits of exponent and 3 of mantissa, bf8 has 5 and 2. gfx942 has the kind without infinities and
without a negative zero, whose code is the only NaN ("FNUZ"); gfx12 has those of the Open Compute Project.
Source: AMD, "AMD Instinct MI300 ISA" (2024) and "RDNA4 ISA" (2025), data types; "OCP 8-bit Floating Point
Specification" 1.0.
"""

from tiny.emulator.amd.isa.expression import Value, bits, const, select

MANTISSA = {"fp8": 3, "bf8": 2}
BIAS = {("fp8", False): 7, ("bf8", False): 15, ("fp8", True): 8, ("bf8", True): 16}
NAN = 0x7FC00000


def is_fnuz(family: str) -> bool:
    """Whether a family has the kind without infinities."""
    return family == "gfx9"


def widened(code: Value, kind: str, fnuz: bool) -> Value:
    """The low 8 bits of a u32 as f32. kind: fp8 or bf8.

    The magnitude stands where f32 has exponent and mantissa, so a product with a power of two, which is
    exact for denormals too, gives the number.
    """
    magnitude, sign = code & 0x7F, (code & 0x80) << 24
    scale = 127 - BIAS[kind, fnuz]
    number = bits(magnitude << 23 - MANTISSA[kind], "f32") * (2.0**scale)
    number = bits(bits(number, "u32") | sign, "f32")
    nan = bits(const("u32", NAN), "f32")
    if fnuz:
        return select((code & 0xFF).equals(0x80), nan, number)
    if kind == "fp8":
        return select(magnitude.equals(0x7F), nan, number)
    infinite = bits(sign | 0x7F800000, "f32")
    return select(magnitude > 0x7C, nan, select(magnitude.equals(0x7C), infinite, number))
