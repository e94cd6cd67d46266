"""Rows of conversions to and from 8-bit floats and normalized integers."""

from tiny.emulator.amd.isa import float8
from tiny.emulator.amd.isa.expression import Value, bits, cast, const, join, rint, select
from tiny.emulator.amd.isa.functions import clamped, is_nan
from tiny.emulator.amd.isa.halves import pack
from tiny.emulator.amd.isa.operation import row


# -- normalized integers -------------------------------------------------------------------------------------
def normalized(value: Value, kind: str) -> Value:
    """value in -1 ... 1 or 0 ... 1 as an integer of 16 bits; beyond them the nearest."""
    lowest, scale = (-1.0, 32767.0) if kind == "i16" else (0.0, 65535.0)
    x = rint(clamped(cast(value, "f64"), lowest, 1.0) * scale)
    return cast(select(is_nan(value), const("f64", 0.0), x), kind)


for t in ("i16", "u16"):
    row(f"v_cvt_norm_{t}_f16", f"{t} = f16", lambda a, t=t: normalized(a, t))
    for source in ("f16", "f32"):
        row(
            f"v_cvt_pk_norm_{t}_{source}",
            f"b32 = {source} {source}",
            lambda a, b, t=t: pack(normalized(a, t), normalized(b, t)),
        )


# -- 8-bit floats: `op_sel` says which byte; for the source its two bits stand in reverse --------------------
def source_byte(kind: str, fnuz: bool):
    """A byte of a register as f32."""
    def apply(word: Value, op_sel: int = 0) -> Value:
        number = (op_sel & 1) << 1 | op_sel >> 1 & 1
        return float8.widened(word >> 8 * number, kind, fnuz)

    return apply


def two_bytes(kind: str, fnuz: bool):
    """Two bytes as two f32."""
    def apply(half: Value) -> Value:
        word = cast(half, "u32")
        low, high = (bits(float8.widened(part, kind, fnuz), "u32") for part in (word, word >> 8))
        return join(low, high)

    return apply


def narrowed_pair(kind: str, fnuz: bool):
    """Two f32 as two bytes."""
    def apply(a: Value, b: Value, fp16_ovfl: int) -> Value:
        low, high = (float8.narrowed(each, kind, fnuz, bool(fp16_ovfl)) for each in (a, b))
        return cast(low | high << 8, "u16")

    return apply


def narrowed_byte(kind: str, fnuz: bool):
    """An f32, rounded stochastically, as one byte of the result; the others are kept."""
    def apply(a: Value, seed: Value, old: Value, op_sel: int, fp16_ovfl: int) -> Value:
        low = 8 * (op_sel >> 2)
        octet = float8.narrowed(a, kind, fnuz, bool(fp16_ovfl), seed)
        return old & ~(255 << low) & 0xFFFFFFFF | octet << low

    return apply


for suffix in ("", "@gfx9"):
    for t in ("fp8", "bf8"):
        form = t, bool(suffix)
        fields = () if suffix else ("op_sel",)  # gfx942 has SDWA for it
        row(f"v_cvt_f32_{t}{suffix}", "f32 = b32", source_byte(*form), fields=fields)
        row(f"v_cvt_pk_f32_{t}{suffix}", "b64 = b16", two_bytes(*form))
        row(f"v_cvt_pk_{t}_f32{suffix}", "b16 = f32 f32", narrowed_pair(*form), fields=("fp16_ovfl",))
        row(
            f"v_cvt_sr_{t}_f32{suffix}",
            "b32 = f32 b32 +",
            narrowed_byte(*form),
            fields=("op_sel", "fp16_ovfl"),
        )


def dot_of_bytes(first: str, second: str):
    """c plus the products of four bytes, in f32, the lowest first."""

    def apply(a: Value, b: Value, c: Value) -> Value:
        for low in range(0, 32, 8):
            x, y = (float8.widened(each >> low, kind, False) for each, kind in ((a, first), (b, second)))
            c = Value("f32", "fma", x, y, c)
        return c

    return apply


for one in ("fp8", "bf8"):
    for other in ("fp8", "bf8"):
        row(f"v_dot4_f32_{one}_{other}", "f32 = b32 b32 f32", dot_of_bytes(one, other), "dot")
