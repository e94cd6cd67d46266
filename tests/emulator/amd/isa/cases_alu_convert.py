"""Cases of conversions, divisions, packed operands, dot products of floats.

Source of the definitions: as in cases_alu_float.py; of 8-bit floats: OCP, "OFP8 Specification" (2023), and
for gfx942 the FNUZ formats of AMD, "MI300 ISA". They come from the package ml_dtypes.
"""

from fractions import Fraction

import ml_dtypes
import numpy as np

from tests.emulator.amd.isa.cases_alu_integer import each_lane, pair
from tests.emulator.amd.isa.reference import fused, ieee, max_num, maximum, min_num, minimum, rounded
from tests.emulator.amd.isa.semantics import case

GFX11, GFX12, GFX9 = ("gfx1100",), ("gfx1201",), ("gfx942",)
RDNA, ALL = GFX11 + GFX12, GFX11 + GFX12 + GFX9
CASES = []


def add(name, signature, expected, processors=ALL, **more):
    CASES.append(case(name, signature, expected, processors=processors, **more))


# -- numbers to numbers --------------------------------------------------------------------------------------
def to_integer(kind, prepare=np.trunc):
    """The nearest that fits; 0 for NaN."""
    limits = np.iinfo(kind)

    def convert(x):
        return 0 if np.isnan(x) else int(max(limits.min, min(limits.max, prepare(x))))

    return each_lane(convert)


for kind, source, names in (
    ("f32", "f16", RDNA),
    ("f16", "f32", RDNA),
    ("f32", "f64", ALL),
    ("f64", "f32", ALL),
    ("f32", "i32", ALL),
    ("f32", "u32", ALL),
    ("f64", "i32", ALL),
    ("f64", "u32", ALL),
    ("f16", "u16", ALL),
    ("f16", "i16", ALL),
    ("f32", "f16", GFX9),
    ("f16", "f32", GFX9),
):
    dtype = f"f{int(kind[1:]) // 8}"
    add(f"v_cvt_{kind}_{source}", f"{kind} = {source}", lambda x, t=dtype: x.astype(t), names)
for kind, source in (
    ("i32", "f32"),
    ("u32", "f32"),
    ("i32", "f64"),
    ("u32", "f64"),
    ("u16", "f16"),
    ("i16", "f16"),
):
    dtype = f"{'int' if kind[0] == 'i' else 'uint'}{kind[1:]}"
    add(f"v_cvt_{kind}_{source}", f"{kind} = {source}", to_integer(dtype))
add("v_cvt_i32_i16", "i32 = i16", lambda x: x, RDNA)
add("v_cvt_u32_u16", "u32 = u16", lambda x: x, RDNA)
for new, old, prepare in (("nearest", "rpi", lambda x: np.floor(x + 0.5)), ("floor", "flr", np.floor)):
    function = to_integer("int32", prepare)
    add(f"v_cvt_{new}_i32_f32", "i32 = f32", function, RDNA)
    add(f"v_cvt_{old}_i32_f32", "i32 = f32", function, GFX9)
add("v_cvt_off_f32_i4", "f32 = u32", lambda x: (((x & 15) ^ 8).astype(np.float32) - 8) / 16)
for n in range(4):
    add(f"v_cvt_f32_ubyte{n}", "f32 = u32", lambda x, n=n: (x >> 8 * n & 255).astype(np.float32))


def packed(convert):
    """Two results in the halves of one register."""
    return lambda a, b: np.stack((convert(a), convert(b)), 1)


def half_toward_zero(x):
    near = x.astype(np.float16)
    raw = x.view(np.uint32)
    quiet = (raw >> 16 & 0x8000 | 0x7E00 | raw >> 13 & 0x1FF).astype(np.uint16)
    bits = np.where(np.isnan(x), quiet, near.view(np.uint16))
    return (bits - (np.isfinite(x) & (abs(near.astype(np.float64)) > abs(x))).astype(np.uint16)).view(
        np.float16
    )


def normalized(kind):
    low, scale = (-1, 32767) if kind == "i16" else (0, 65535)

    def convert(x):
        wide = np.where(np.isnan(x), 0, np.clip(x.astype(np.float64), low, 1))
        return np.rint(wide * scale).astype(np.int64)

    return convert


add("v_cvt_pk_rtz_f16_f32", "f16x2 = f32 f32", packed(half_toward_zero), RDNA)
add("v_cvt_pkrtz_f16_f32", "f16x2 = f32 f32", packed(half_toward_zero), GFX9)
add("v_cvt_pk_i16_f32", "u16x2 = f32 f32", packed(to_integer("int16")), RDNA)
add("v_cvt_pk_u16_f32", "u16x2 = f32 f32", packed(to_integer("uint16")), RDNA)
add("v_cvt_pk_u16_u32", "u32 = u32 u32", each_lane(lambda a, b: pair(min(a, 0xFFFF), min(b, 0xFFFF))))
add(
    "v_cvt_pk_i16_i32",
    "u32 = i32 i32",
    each_lane(lambda a, b: pair(*(max(-0x8000, min(0x7FFF, x)) for x in (a, b)))),
)
add("v_pack_b32_f16", "f16x2 = f16 f16", lambda a, b: np.stack((a, b), 1))
for t in ("i16", "u16"):
    add(f"v_cvt_norm_{t}_f16", f"{t} = f16", normalized(t))
    for source in ("f16", "f32"):
        signature = f"{t}x2 = {source} {source}"
        add(f"v_cvt_pk_norm_{t}_{source}", signature, packed(normalized(t)), RDNA)
        add(f"v_cvt_pknorm_{t}_{source}", signature, packed(normalized(t)), GFX9)


def inserted_byte(a, place, into):
    octet = np.where(np.isnan(a), 0, np.rint(np.clip(a, 0, 255))).astype(np.uint32)
    shift = 8 * (place & 3)
    return into & ~(np.uint32(255) << shift) | octet << shift


add("v_cvt_pk_u8_f32", "u32 = f32 u32 u32", inserted_byte)
add("v_cvt_pkaccum_u8_f32", "u32 = f32 u32 +", inserted_byte, GFX9)

# -- 8-bit floats --------------------------------------------------------------------------------------------
FLOAT8 = {
    ("fp8", GFX12): ml_dtypes.float8_e4m3fn,
    ("bf8", GFX12): ml_dtypes.float8_e5m2,
    ("fp8", GFX9): ml_dtypes.float8_e4m3fnuz,
    ("bf8", GFX9): ml_dtypes.float8_e5m2fnuz,
}


def octet_to_float(x, dtype, n=0):
    return (x >> 8 * n).astype(np.uint8).view(dtype).astype(np.float32)


def two_floats(x, dtype, half):
    return np.stack([octet_to_float(x, dtype, 2 * half + n) for n in (0, 1)], 1)


def float_to_octet(x, dtype, processors):
    """To nearest; what overflows becomes NaN, or infinity where there is one."""
    code = x.astype(dtype).view(np.uint8).astype(np.uint32)
    if processors == GFX9:
        return np.where(np.isfinite(x), code, 0x80)
    return np.where(np.isnan(x), 0xFF if dtype == ml_dtypes.float8_e4m3fn else 0xFE, code)


def stochastic(dtype, mantissa, bias, processors):
    """The seed's upper bits are added below the last place, and the sum is cut off."""
    cut = 23 - mantissa
    top = ml_dtypes.finfo(dtype).max

    def convert(x, seed):
        if not np.isfinite(x):
            return int(float_to_octet(np.float32([x]), dtype, processors)[0])
        size = abs(Fraction(float(x)))
        power = max(int(np.floor(np.log2(float(size)))) if size else -999, 1 - bias)
        units = size / Fraction(2) ** (power - mantissa)
        whole = int(units * (1 << cut)) + (seed >> 32 - cut) >> cut
        value = np.float64(whole) * 2.0 ** (power - mantissa)
        if value > float(top):
            value = np.inf
        value = -value if np.signbit(x) else value
        return int(float_to_octet(np.float32([value]), dtype, processors)[0])

    return lambda a, seed: each_lane(convert)(a, seed).astype(np.uint32)


for (name, where), dtype in FLOAT8.items():
    tail = ("", " byte_sel:1", " byte_sel:2", " byte_sel:3")
    mantissa = ml_dtypes.finfo(dtype).nmant
    bias = 1 - ml_dtypes.finfo(dtype).minexp
    sr = stochastic(dtype, mantissa, bias, where)
    for n in range(4):
        form = f"v_cvt_f32_{name}", "f32 = u32", lambda x, n=n, d=dtype: octet_to_float(x, d, n)
        if where == GFX12:
            add(*form, where, after=tail[n])
        else:
            sdwa = {"spelling": f"v_cvt_f32_{name}_sdwa", "after": f"src0_sel:BYTE_{n}"}
            add(*form, where, **(sdwa if n else {}))
        after = tail[n] if where == GFX12 else f"op_sel:[0,0,{n & 1},{n >> 1}]"

        def put(a, seed, old, n=n, f=sr):
            return old & ~np.uint32(255 << 8 * n) | f(a, seed) << 8 * n

        add(f"v_cvt_sr_{name}_f32", "u32 = f32 u32 +", put, where, after=after)
    add(f"v_cvt_pk_f32_{name}", "f32x2 = u32", lambda x, d=dtype: two_floats(x, d, 0), where)
    form = {"after": "op_sel:[1,0]"}
    if where == GFX9:
        form = {"spelling": f"v_cvt_pk_f32_{name}_sdwa", "after": "src0_sel:WORD_1"}
    add(f"v_cvt_pk_f32_{name}", "f32x2 = u32", lambda x, d=dtype: two_floats(x, d, 1), where, **form)

    def both(a, b, d=dtype, where=where):
        return float_to_octet(a, d, where) | float_to_octet(b, d, where) << 8

    add(f"v_cvt_pk_{name}_f32", "u16 = f32 f32", both, where)


# -- division: the three steps, as the documents print them --------------------------------------------------
def power_of(x):
    """The biased exponent field."""
    mantissa, unsigned = {2: (10, np.uint16), 4: (23, np.uint32), 8: (52, np.uint64)}[x.dtype.itemsize]
    width = {2: 5, 4: 8, 8: 11}[x.dtype.itemsize]
    return (x.view(unsigned) >> unsigned(mantissa) & unsigned((1 << width) - 1)).astype(np.int64)


def div_fixup(q, d, n):
    nan, inf = np.asarray(np.nan, q.dtype), np.asarray(np.inf, q.dtype)
    negative = np.signbit(d) ^ np.signbit(n)
    limit = {2: -25, 4: -150, 8: -1075}[q.dtype.itemsize]
    signed_as = np.where(negative, -1, 1).astype(q.dtype)
    steps = [
        (np.isnan(n) | np.isnan(d), nan),
        ((d == 0) & (n == 0) | np.isinf(d) & np.isinf(n), nan),
        ((d == 0) | np.isinf(n), inf),
        (np.isinf(d) | (n == 0), np.asarray(0, q.dtype)),
        (power_of(n) - power_of(d) < limit, np.asarray(0, q.dtype)),
        (np.isnan(q), inf),
    ]
    return np.copysign(np.select([c for c, _ in steps], [v for _, v in steps], abs(q)), signed_as)


for t in ("f16", "f32", "f64"):
    add(f"v_div_fixup_{t}", f"{t} = {t} {t} {t}", div_fixup)
add("v_div_fixup_legacy_f16", "f16 = f16 f16 f16", div_fixup, GFX9)


def div_fmas(t, scale):
    def apply(a, b, c, unscale):
        power = np.where(unscale, np.where(power_of(c) > (127 if t == "f32" else 1023), scale, -scale), 0)
        plain = fused(t)(a, b, c)
        scaled = rounded(t, lambda x, n: x * Fraction(2) ** int(n), lambda x, n: x)(plain, power)
        return np.where(unscale, scaled, plain)

    return apply


def div_scale(t, far, scale, tiny):
    limits = np.finfo(np.float32 if t == "f32" else np.float64)

    def scaled(x, by):
        return rounded(t, lambda x, n: x * Fraction(2) ** int(n), lambda x, n: x)(x, np.full(len(x), by))

    def denormal(x):
        return (x != 0) & (abs(x) < limits.tiny)

    def apply(which, d, n):
        up, down = scaled(which, scale), scaled(which, -scale)
        quotient_small = denormal(n / d)
        inverse_small = denormal(1 / d)
        of_d = which == d
        nan = np.full(len(d), np.nan, which.dtype)
        steps = [
            ((n == 0) | (d == 0), nan, False),
            (power_of(n) - power_of(d) >= far, np.where(of_d, up, which), True),
            (denormal(d), up, False),
            (inverse_small & quotient_small, np.where(of_d, down, which), True),
            (inverse_small, down, False),
            (quotient_small, np.where(which == n, up, which), True),
            (power_of(n) <= tiny, up, False),
        ]
        conditions = [c for c, _, _ in steps]
        return np.select(conditions, [v for _, v, _ in steps], which), np.select(
            conditions, [f for *_, f in steps], False
        )

    return apply


for t, far, scale, tiny in (("f32", 96, 64, 23), ("f64", 768, 128, 53)):
    add(f"v_div_fmas_{t}", f"{t} = {t} {t} {t} vcc", div_fmas(t, scale))
    for first, name in (("a", "denominator"), ("b", "numerator")):
        form = f"{t} m = {t} {t}"
        operands = {"a": "v[4:5]", "b": "v[8:9]"} if t == "f64" else {"a": "v4", "b": "v8"}
        function = div_scale(t, far, scale, tiny)

        def steps(d, n, f=function, first=first):
            return f(d if first == "a" else n, d, n)

        signature = f"{t} m = {operands[first]} {t} {t}"
        add(f"v_div_scale_{t}:{name}", signature, steps)


# -- 2 / pi in pieces ----------------------------------------------------------------------------------------
def arctangent(n, width):
    total, power, k = 0, (1 << width) // n, 1
    while power:
        total, power, k = total + (power // k if k % 4 == 1 else -(power // k)), power // n // n, k + 2
    return total


PI = 4 * (arctangent(2, 1500) + arctangent(3, 1500))
TWO_OVER_PI = (1 << 3001) // PI & (1 << 1500) - (1 << 299)  # 1201 bits behind the point


def piece(x, segment):
    exponent = x >> 52 & 2047
    shift = (segment & 31) * 53 + max(0, exponent - 1077)
    whole = (TWO_OVER_PI << shift) % (1 << 1500) >> 1500 - 53
    scale = -53 - shift + (128 if exponent >= 1968 else 0)
    return int(np.ldexp(np.float64(whole), scale).view(np.uint64))


add("v_trig_preop_f64", "f64 = u64 u32", lambda x, n: each_lane(piece)(x, n).view(np.float64))


# -- halves and pairs ----------------------------------------------------------------------------------------
def by_parts(function):
    """The same function on each part of the registers."""

    def apply(*operands):
        columns = [[np.ascontiguousarray(part) for part in operand.T] for operand in operands]
        return np.stack([np.asarray(function(*parts)) for parts in zip(*columns, strict=True)], 1)

    return apply


def half_cases(name, function, count, processors=ALL, after=""):
    """Low with low and high with high; without a modifier also the first operand's halves swapped."""
    t = f"{name.rpartition('_')[2].replace('b16', 'u16')}x2"
    signature = f"{t} = {' '.join([t] * count)}"
    add(f"v_pk_{name}", signature, by_parts(function), processors, after=after)
    if not after:
        swap = f"op_sel:[1{',0' * (count - 1)}] op_sel_hi:[0{',1' * (count - 1)}]"
        apply = by_parts(function)
        add(
            f"v_pk_{name}:swapped",
            signature,
            lambda a, *rest: apply(a[:, ::-1], *rest),
            processors,
            after=swap,
        )


half_cases("add_f16", lambda a, b: a + b, 2)
half_cases("mul_f16", lambda a, b: a * b, 2)
half_cases("fma_f16", fused("f16"), 3)
half_cases("min_f16", ieee(min_num), 2, GFX11 + GFX9)
half_cases("max_f16", ieee(max_num), 2, GFX11 + GFX9)
half_cases("min_num_f16", min_num, 2, GFX12)
half_cases("max_num_f16", max_num, 2, GFX12)
half_cases("minimum_f16", minimum, 2, GFX12)
half_cases("maximum_f16", maximum, 2, GFX12)
add("v_pk_fmac_f16", "f16x2 = f16x2 f16x2 +", by_parts(fused("f16")))
for t, dtype in (("u16", np.uint16), ("i16", np.int16)):
    limits = np.iinfo(dtype)

    def clamped(function, limits=limits):
        return lambda *x: np.clip(function(*(each.astype(np.int64) for each in x)), limits.min, limits.max)

    for name, function, count in (
        ("add", lambda a, b: a + b, 2),
        ("sub", lambda a, b: a - b, 2),
        ("mad", lambda a, b, c: a * b + c, 3),
    ):
        half_cases(f"{name}_{t}", function, count)
        half_cases(f"{name}_{t}", clamped(function), count, after="clamp")
    half_cases(f"min_{t}", np.minimum, 2)
    half_cases(f"max_{t}", np.maximum, 2)
half_cases("mul_lo_u16", lambda a, b: a * b, 2)
half_cases("lshlrev_b16", lambda n, a: a << (n & 15), 2)
half_cases("lshrrev_b16", lambda n, a: a >> (n & 15), 2)
half_cases("ashrrev_i16", lambda n, a: a >> (n & 15), 2)


for name, function, count in (
    ("fma", fused("f32"), 3),
    ("mul", lambda a, b: a * b, 2),
    ("add", lambda a, b: a + b, 2),
):
    add(f"v_pk_{name}_f32", f"f32x2 = {'f32x2 ' * count}".strip(), by_parts(function), GFX9)
add(
    "v_pk_mov_b32",
    "u32x2 = u32x2 u32x2",
    lambda a, b: np.stack((a[:, 1], b[:, 0]), 1),
    GFX9,
    after="op_sel:[1,0]",
)
add(
    "v_pk_mov_b32",
    "u32x2 = u32x2 u32x2",
    lambda a, b: np.stack((a[:, 0], b[:, 1]), 1),
    GFX9,
    after="op_sel:[0,1]",
)


def half_of(x, high=0):
    return (x >> 16 * high).astype(np.uint16).view(np.float16)


def mixed(a, b, c):
    """v_fma_mix with a's low half, b's high half and all of c."""
    return fused("f32")(half_of(a).astype(np.float32), half_of(b, 1).astype(np.float32), c)


MIX = "op_sel:[0,1,0] op_sel_hi:[1,1,0]"


def into_half(shift):
    def apply(a, b, c, old):
        bits = mixed(a, b, c).astype(np.float16).view(np.uint16).astype(np.uint32)
        return old & ~np.uint32(0xFFFF << shift) | bits << shift

    return apply


add("v_fma_mix_f32", "f32 = u32 u32 f32", mixed, after=MIX)
add("v_fma_mixlo_f16", "u32 = u32 u32 f32 +", into_half(0), after=MIX)
add("v_fma_mixhi_f16", "u32 = u32 u32 f32 +", into_half(16), after=MIX)


# -- dot products of halves ----------------------------------------------------------------------------------
def bfloat_of(x, high=0):
    return (x & np.uint32(0xFFFF0000) if high else x << np.uint32(16)).view(np.float32)


def dot_in_f32(part, prepare=lambda x: x):
    """c and then the products of the halves, each step rounded to f32; products are exact."""
    step = fused("f32")

    def apply(a, b, c, low=(0, 0), high=(1, 1)):
        total = prepare(c)
        for at_a, at_b in (low, high):
            total = step(
                prepare(part(a, at_a).astype(np.float32)), prepare(part(b, at_b).astype(np.float32)), total
            )
        return total

    return apply


def flushed(x):
    return np.where(abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)


def to_bfloat(x):
    return flushed(x).astype(ml_dtypes.bfloat16).view(np.uint16)


DUAL = ":: v_dual_mov_b32 v27, v1"
half_dot, bfloat_dot = dot_in_f32(half_of), dot_in_f32(bfloat_of)
add("v_dot2_f32_f16", "f32 = u32 u32 f32", half_dot)
add(
    "v_dot2_f32_f16:negated",
    "f32 = u32 u32 f32",
    lambda a, b, c: half_dot(a ^ np.uint32(0x8000), b, c),
    after="neg_lo:[1,0,0]",
)
add(
    "v_dot2_f32_f16:chosen",
    "f32 = u32 u32 f32",
    lambda a, b, c: half_dot(a, b, c, low=(1, 0), high=(0, 1)),
    RDNA,
    after="op_sel:[1,0,0] op_sel_hi:[0,1,1]",
)
add("v_dot2_f32_bf16", "f32 = u32 u32 f32", bfloat_dot, RDNA)
add("v_dot2c_f32_f16", "f32 = u32 u32 +", half_dot, GFX9)
for name, function in (("f16", half_dot), ("bf16", bfloat_dot)):
    form = {"spelling": f"v_dual_dot2acc_f32_{name}", "after": DUAL}
    add(f"v_dot2acc_f32_{name}:dual", "f32 = u32 u32 +", function, RDNA, **form)
add("v_dot2acc_f32_f16", "f32 = u32 u32 +", half_dot, GFX11)
add("v_dot2_f16_f16", "f16 = u32 u32 f16", lambda a, b, c: half_dot(a, b, c.astype(np.float32)), RDNA)
add(
    "v_dot2_bf16_bf16",
    "b16 = u32 u32 b16",
    lambda a, b, c: to_bfloat(dot_in_f32(bfloat_of, flushed)(a, b, bfloat_of(c.astype(np.uint32)))),
    RDNA,
)
for one in ("fp8", "bf8"):
    for other in ("fp8", "bf8"):

        def dot_of_octets(a, b, c, one=FLOAT8[one, GFX12], other=FLOAT8[other, GFX12]):
            for n in range(4):
                c = fused("f32")(octet_to_float(a, one, n), octet_to_float(b, other, n), c)
            return c

        add(f"v_dot4_f32_{one}_{other}", "f32 = u32 u32 f32", dot_of_octets, GFX12)
CASES = tuple(CASES)
