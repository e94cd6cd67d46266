"""Floats of 16 bits in registers of 32: taken out as f32, rounded back."""

from tiny.emulator.amd.isa.expression import Value, bits, cast, select


def pack(low: Value, high: Value) -> Value:
    """Two 16-bit values of any type in one u32."""
    return cast(bits(low, "u16"), "u32") | cast(bits(high, "u16"), "u32") << 16


def from_half(word: Value, kind: str) -> Value:
    """The low half of a word, f16 or bf16, as f32."""
    if kind == "bf16":
        return bits(word << 16, "f32")
    return cast(bits(cast(word, "u16"), "f16"), "f32")


def narrowed(total: Value, kind: str) -> Value:
    """f32 as 16 bits, f16 or bf16, in the low half of a u32."""
    return cast(bits(cast(total, "f16"), "u16") if kind == "f16" else to_bfloat(total), "u32")


def to_bfloat(value: Value) -> Value:
    """f32 -> bf16 to nearest even, as u16; NaN stays NaN."""
    pattern = bits(value, "u32")
    rounded = pattern + 0x7FFF + (pattern >> 16 & 1) >> 16
    return cast(select(value.differs(value), pattern >> 16 | 0x40, rounded), "u16")
