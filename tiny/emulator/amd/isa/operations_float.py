"""Rows of vector instructions on floats: arithmetic, functions, conversions, comparisons."""

from tiny.emulator.amd.isa import division
from tiny.emulator.amd.isa import functions as fn
from tiny.emulator.amd.isa.expression import (
    Value,
    bits,
    cast,
    ceil,
    const,
    field,
    floor,
    fma,
    is_nan,
    larger,
    rint,
    select,
    smaller,
    sqrt,
    trunc,
)
from tiny.emulator.amd.isa.halves import pack, to_bfloat
from tiny.emulator.amd.isa.operation import row

FLOATS = ("f16", "f32", "f64")
IEEE = ("ieee",)  # what gfx12 has no more


def dx9_product(a: Value, b: Value) -> Value:
    """a * b where 0 times anything, NaN and infinity too, is 0."""
    return select(a.equals(0.0) | b.equals(0.0), const(a.kind, 0.0), a * b)


def to_f16_toward_zero(value: Value) -> Value:
    """f32 -> f16, cut off."""
    near = cast(value, "f16")
    pattern = bits(near, "u16")
    too_far = abs(cast(near, "f32")) > abs(value)
    finite = fn.is_finite(value)
    return bits(select(too_far & finite, pattern - 1, pattern), "f16")


# -- two operands --------------------------------------------------------------------------------------------
for t in FLOATS:
    row(f"v_add_{t}", f"{t} = {t} {t}", lambda a, b: a + b)
    row(f"v_mul_{t}", f"{t} = {t} {t}", lambda a, b: a * b)
    row(f"v_min_{t}", f"{t} = {t} {t}", fn.minimum, fields=IEEE)
    row(f"v_max_{t}", f"{t} = {t} {t}", fn.maximum, fields=IEEE)
    row(f"v_fma_{t}", f"{t} = {t} {t} {t}", fma)
    row(f"v_div_fixup_{t}", f"{t} = {t} {t} {t}", division.div_fixup)
for t in ("f16", "f32"):
    row(f"v_sub_{t}", f"{t} = {t} {t}", lambda a, b: a - b)
    row(f"v_subrev_{t}", f"{t} = {t} {t}", lambda a, b: b - a)
    row(f"v_fmac_{t}", f"{t} = {t} {t} +", fma)
    row(f"v_fmamk_{t}", f"{t} = {t} k{t[1:]} {t}", lambda a, k, b: fma(a, k, b))
    row(f"v_fmaak_{t}", f"{t} = {t} {t} k{t[1:]}", fma)
    for name, first, second in (
        ("min3", fn.minimum, fn.minimum),
        ("max3", fn.maximum, fn.maximum),
        ("maxmin", fn.maximum, fn.minimum),
        ("minmax", fn.minimum, fn.maximum),
    ):
        row(
            f"v_{name}_{t}",
            f"{t} = {t} {t} {t}",
            lambda a, b, c, ieee, f=first, g=second: g(f(a, b, ieee), c, ieee),
            fields=IEEE,
        )
    row(f"v_med3_{t}", f"{t} = {t} {t} {t}", fn.median, fields=IEEE)
row("v_mul_dx9_zero_f32", "f32 = f32 f32", dx9_product)
row(
    "v_fmac_dx9_zero_f32",
    "f32 = f32 f32 +",
    lambda a, b, d: select(a.equals(0.0) | b.equals(0.0), d, fma(a, b, d)),
)
row(
    "v_fma_dx9_zero_f32",
    "f32 = f32 f32 f32",
    lambda a, b, c: select(a.equals(0.0) | b.equals(0.0), c, fma(a, b, c)),
)
row("v_ldexp_f16", "f16 = f16 i16", lambda a, n: fn.ldexp(a, cast(n, "i32")))
row("v_ldexp_f32", "f32 = f32 i32", fn.ldexp)
row("v_ldexp_f64", "f64 = f64 i32", fn.ldexp)
for t in ("f32", "f64"):
    row(f"v_div_scale_{t}", f"{t} m = {t} {t} {t}", division.div_scale)
    row(f"v_div_fmas_{t}", f"{t} = {t} {t} {t} vcc", division.div_fmas, fields=("nearest",))

# -- one operand ---------------------------------------------------------------------------------------------
for t in FLOATS:
    row(f"v_floor_{t}", f"{t} = {t}", floor)
    row(f"v_ceil_{t}", f"{t} = {t}", ceil)
    row(f"v_trunc_{t}", f"{t} = {t}", trunc)
    row(f"v_rndne_{t}", f"{t} = {t}", rint)
    row(f"v_fract_{t}", f"{t} = {t}", fn.fract)
    row(f"v_sqrt_{t}", f"{t} = {t}", sqrt)
    row(f"v_rcp_{t}", f"{t} = {t}", fn.reciprocal)
    row(f"v_rsq_{t}", f"{t} = {t}", fn.reciprocal_root)
    row(f"v_frexp_mant_{t}", f"{t} = {t}", fn.frexp_mantissa)
row("v_rcp_iflag_f32", "f32 = f32", fn.reciprocal)
for t in ("f16", "f32"):
    row(f"v_exp_{t}", f"{t} = {t}", fn.exp2)
    row(f"v_log_{t}", f"{t} = {t}", fn.log2)
    row(f"v_sin_{t}", f"{t} = {t}", fn.sine)
    row(f"v_cos_{t}", f"{t} = {t}", fn.cosine)
row("v_frexp_exp_i32_f32", "i32 = f32", fn.frexp_exponent)
row("v_frexp_exp_i32_f64", "i32 = f64", fn.frexp_exponent)
row("v_frexp_exp_i16_f16", "i16 = f16", lambda a: cast(fn.frexp_exponent(a), "i16"))
row("v_trig_preop_f64", "f64 = f64 u32", fn.trig_preop)

# -- conversions ---------------------------------------------------------------------------------------------
for to, source in (
    ("f32", "f16"),
    ("f16", "f32"),
    ("f32", "f64"),
    ("f64", "f32"),
    ("f32", "i32"),
    ("f32", "u32"),
    ("f64", "i32"),
    ("f64", "u32"),
    ("i32", "f32"),
    ("u32", "f32"),
    ("i32", "f64"),
    ("u32", "f64"),
    ("f16", "u16"),
    ("f16", "i16"),
    ("u16", "f16"),
    ("i16", "f16"),
    ("i32", "i16"),
    ("u32", "u16"),
):
    row(f"v_cvt_{to}_{source}", f"{to} = {source}", lambda a, to=to: cast(a, to))
row("v_cvt_nearest_i32_f32", "i32 = f32", lambda a: cast(floor(cast(a, "f64") + 0.5), "i32"))
row("v_cvt_floor_i32_f32", "i32 = f32", lambda a: cast(floor(a), "i32"))
row("v_cvt_off_f32_i4", "f32 = b32", lambda a: cast(bits(a << 28, "i32") >> 28, "f32") * 0.0625)
for n in range(4):
    row(f"v_cvt_f32_ubyte{n}", "f32 = u32", lambda a, n=n: cast(field(a, 8 * n, 8), "f32"))
row("v_cvt_pk_rtz_f16_f32", "b32 = f32 f32", lambda a, b: pack(to_f16_toward_zero(a), to_f16_toward_zero(b)))
row("v_cvt_pk_i16_f32", "b32 = f32 f32", lambda a, b: pack(cast(a, "i16"), cast(b, "i16")))
row("v_cvt_pk_u16_f32", "b32 = f32 f32", lambda a, b: pack(cast(a, "u16"), cast(b, "u16")))
row(
    "v_cvt_pk_u16_u32",
    "b32 = u32 u32",
    lambda a, b: pack(cast(smaller(a, 0xFFFF), "u16"), cast(smaller(b, 0xFFFF), "u16")),
)
row(
    "v_cvt_pk_i16_i32",
    "b32 = i32 i32",
    lambda a, b: pack(*(cast(larger(smaller(x, 0x7FFF), -0x8000), "i16") for x in (a, b))),
)
row("v_pack_b32_f16", "b32 = f16 f16", pack)
row(
    "v_cvt_pk_u8_f32",
    "b32 = f32 u32 u32",
    lambda a, place, into: (
        into & ~(const("u32", 255) << (place & 3) * 8) | cast(cast(rint(a), "u8"), "u32") << (place & 3) * 8
    ),
)


# -- comparisons ---------------------------------------------------------------------------------------------
def _unordered(a: Value, b: Value) -> Value:
    return is_nan(a) | is_nan(b)


CONDITIONS = {
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a.equals(b),
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "lg": lambda a, b: (a < b) | (a > b),
    "ge": lambda a, b: a >= b,
    "o": lambda a, b: ~_unordered(a, b),
    "u": _unordered,
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b),
    "neq": lambda a, b: ~a.equals(b),
    "nlt": lambda a, b: ~(a < b),
    "f": lambda a, b: const("b1", 0),
    "t": lambda a, b: const("b1", 1),
}
for t in FLOATS:
    for name, condition in CONDITIONS.items():
        row(f"v_cmp_{name}_{t}", f"m = {t} {t}", condition)
        row(f"v_cmpx_{name}_{t}", f"exec = {t} {t}", condition)
    row(f"v_cmp_class_{t}", f"m = {t} {'b16' if t == 'f16' else 'b32'}", fn.in_class)
    row(f"v_cmpx_class_{t}", f"exec = {t} {'b16' if t == 'f16' else 'b32'}", fn.in_class)

# -- halves of registers: VOP3P. `packed` rows give the work of one half -------------------------------------
for name, count, function in (
    ("add", 2, lambda a, b: a + b),
    ("mul", 2, lambda a, b: a * b),
    ("min", 2, fn.minimum),
    ("max", 2, fn.maximum),
    ("fma", 3, fma),
):
    fields = IEEE if name in ("min", "max") else ()
    row(f"v_pk_{name}_f16", f"f16 = {'f16 ' * count}", function, "packed", fields)
row("v_pk_fmac_f16", "f16 = f16 f16 +", fma, "packed")
for name in ("fma_mix_f32", "fma_mixlo_f16", "fma_mixhi_f16"):
    row(f"v_{name}", "f32 = f32 f32 f32", fma, "mix")


def half(value: Value, high: int) -> Value:
    """A half of a register as f32."""
    return cast(bits(cast(field(value, 16 * high, 16), "u16"), "f16"), "f32")


def bfloat(value: Value, high: int) -> Value:
    return bits(value & 0xFFFF0000 if high else value << 16, "f32")


def dot_of_halves(read):
    """c plus the products of the halves, in f32, the low ones first; op_sel and neg as for packed rows."""

    def apply(a: Value, b: Value, c: Value, op_sel=0, op_sel_hi=3, neg_lo=0, neg_hi=0) -> Value:
        for chosen, negated in ((op_sel, neg_lo), (op_sel_hi, neg_hi)):
            x, y = (read(each, chosen >> n & 1) for n, each in enumerate((a, b)))
            c = fma(-x if negated & 1 else x, -y if negated & 2 else y, c)
        return c

    return apply


PACKED_FIELDS = ("op_sel", "op_sel_hi", "neg_lo", "neg_hi")
for name, read in (("f16", half), ("bf16", bfloat)):
    row(f"v_dot2_f32_{name}", "f32 = b32 b32 f32", dot_of_halves(read), "dot", PACKED_FIELDS)
    row(f"v_dot2acc_f32_{name}", "f32 = b32 b32 +", dot_of_halves(read))


def dot_of_bfloats(a: Value, b: Value, c: Value) -> Value:
    """v_dot2_bf16_bf16: c plus two products, in f32 without denormals, then bf16; see choices.py."""
    flushed = fn.without_denormals
    total = flushed(bfloat(cast(c, "u32"), 0))
    for high in (0, 1):
        total = fma(flushed(bfloat(a, high)), flushed(bfloat(b, high)), total)
    return to_bfloat(flushed(total))


row(
    "v_dot2_f16_f16",
    "f16 = b32 b32 f16",
    lambda a, b, c: cast(dot_of_halves(half)(a, b, cast(c, "f32")), "f16"),
)
row("v_dot2_bf16_bf16", "b16 = b32 b32 b16", dot_of_bfloats)
