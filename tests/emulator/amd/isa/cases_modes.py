"""Cases of what applies to many instructions: rounding, denormals and other bits of MODE, modifiers of
operands and results.

Source: AMD, "RDNA3 ISA" (2023), sections 3.3.5, 7.2.2 and 7.2.3; "MI300 ISA" (2024), 3.8 and 6.2.
"""

import ml_dtypes
import numpy as np

from tests.emulator.amd.isa.cases_alu_convert import by_parts, float_to_octet, mixed
from tests.emulator.amd.isa.reference import (
    DOWN,
    NEAREST,
    UP,
    ZERO,
    Fraction,
    chained,
    fused,
    max_num,
    med3,
    min_num,
    rounded,
)
from tests.emulator.amd.isa.semantics import DEFAULT_MODE, case

GFX11, GFX12, GFX9 = ("gfx1100",), ("gfx1201",), ("gfx942",)
OLD, RDNA, ALL = GFX11 + GFX9, GFX11 + GFX12, GFX11 + GFX12 + GFX9
FLOAT = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
NO_IEEE, NO_CLAMP, OVERFLOW = DEFAULT_MODE & ~0x200, DEFAULT_MODE & ~0x100, DEFAULT_MODE | 1 << 23
CASES = []


def add(name, signature, expected, processors=ALL, **more):
    CASES.append(case(name, signature, expected, processors=processors, **more))


# -- rounding: f32, and f16 with f64 -------------------------------------------------------------------------
def mode_of(single, double):
    return DEFAULT_MODE | single | double << 2


def converted(kind, mode):
    return rounded(kind, lambda x: x, lambda x: x.astype(FLOAT[kind]), mode)


def scaled(kind, mode):
    return rounded(kind, lambda a, n: a * Fraction(2) ** int(max(-3000, min(3000, n))), lambda a, n: a, mode)


for single, double in ((UP, DOWN), (DOWN, ZERO), (ZERO, UP), (NEAREST, ZERO), (UP, NEAREST)):
    more = {"mode": mode_of(single, double)}
    for t in FLOAT:
        mode, two, three = single if t == "f32" else double, f"{t} = {t} {t}", f"{t} = {t} {t} {t}"
        add(f"v_add_{t}:rounded", two, rounded(t, lambda a, b: a + b, lambda a, b: a + b, mode), **more)
        add(f"v_mul_{t}:rounded", two, rounded(t, lambda a, b: a * b, lambda a, b: a * b, mode), **more)
        add(f"v_fma_{t}:rounded", three, fused(t, mode), **more)
        count = "i16" if t == "f16" else "i32"
        add(f"v_ldexp_{t}:rounded", f"{t} = {t} {count}", scaled(t, mode), **more)
    add("v_cvt_f16_f32:rounded", "f16 = f32", converted("f16", double), **more)
    add("v_cvt_f32_f64:rounded", "f32 = f64", converted("f32", single), **more)
    add("v_cvt_f32_i32:rounded", "f32 = i32", converted("f32", single), **more)
    add("v_cvt_f32_u32:rounded", "f32 = u32", converted("f32", single), **more)
    halves = by_parts(rounded("f16", lambda a, b: a + b, lambda a, b: a + b, double))
    add("v_pk_add_f16:rounded", "f16x2 = f16x2 f16x2", halves, **more)
    add("v_max_num_f32:rounded", "f32 = f32 f32", max_num, GFX12, **more)


# -- denormals: bit 0 keeps those of operands, bit 1 those of results ----------------------------------------
def without(x):
    return np.where(abs(x) < np.finfo(x.dtype).tiny, np.copysign(x.dtype.type(0), x), x)


def flushing(function, keeps):
    def apply(*operands):
        operands = operands if keeps & 1 else [without(x) for x in operands]
        result = np.asarray(function(*operands))
        return result if keeps & 2 or result.dtype == bool else without(result)

    return apply


for keeps_single, keeps_double in ((0, 1), (1, 2), (2, 0), (0, 3), (3, 0)):
    more = {"mode": DEFAULT_MODE & ~0xF0 | keeps_single << 4 | keeps_double << 6}
    for t in FLOAT:
        keeps, two = keeps_single if t == "f32" else keeps_double, f"{t} = {t} {t}"
        add(f"v_add_{t}:flushed", two, flushing(lambda a, b: a + b, keeps), **more)
        add(f"v_mul_{t}:flushed", two, flushing(lambda a, b: a * b, keeps), **more)
        add(f"v_fma_{t}:flushed", f"{two} {t}", flushing(fused(t), keeps), **more)
        add(f"v_max_num_{t}:flushed", two, flushing(max_num, keeps), GFX12, **more)
        add(f"v_cmp_gt_{t}:flushed", f"m = {t} {t}", flushing(lambda a, b: a > b, keeps), **more)
        add(f"v_floor_{t}:flushed", f"{t} = {t}", flushing(np.floor, keeps), **more)
    add("v_mov_b32:flushed", "u32 = u32", lambda a: a, **more)

# -- MODE.IEEE and MODE.DX10_CLAMP off -----------------------------------------------------------------------
for t in FLOAT:
    add(f"v_min_{t}:without IEEE", f"{t} = {t} {t}", min_num, OLD, mode=NO_IEEE)
    add(f"v_max_{t}:without IEEE", f"{t} = {t} {t}", max_num, OLD, mode=NO_IEEE)
for t in ("f16", "f32"):
    three = f"{t} = {t} {t} {t}"
    add(f"v_min3_{t}:without IEEE", three, chained(min_num, min_num), OLD, mode=NO_IEEE)
    add(f"v_med3_{t}:without IEEE", three, med3(min_num, max_num), OLD, mode=NO_IEEE)
add("v_pk_min_f16:without IEEE", "f16x2 = f16x2 f16x2", by_parts(min_num), OLD, mode=NO_IEEE)


def limited(x):
    return np.where(x > 0, np.where(x > 1, x.dtype.type(1), x), x.dtype.type(0))


for t in FLOAT:
    two, three = f"{t} = {t} {t}", f"{t} = {t} {t} {t}"
    add(f"v_add_{t}:clamp", two, lambda a, b: limited(a + b), after="clamp")
    add(f"v_fma_{t}:clamp", three, lambda a, b, c, t=t: limited(fused(t)(a, b, c)), after="clamp")

    def kept(a, b):
        return np.where(np.isnan(a * b), a * b, limited(a * b))

    add(f"v_mul_{t}:clamp keeps NaN", two, kept, OLD, after="clamp", mode=NO_CLAMP)
clamped_halves = by_parts(lambda a, b: limited(a + b))
add("v_pk_add_f16:clamp", "f16x2 = f16x2 f16x2", clamped_halves, after="clamp")
clamped_mix = {"after": "op_sel:[0,1,0] op_sel_hi:[1,1,0] clamp"}
add("v_fma_mix_f32:clamp", "f32 = u32 u32 f32", lambda a, b, c: limited(mixed(a, b, c)), **clamped_mix)

# -- MODE.FP16_OVFL ------------------------------------------------------------------------------------------
GREATEST = np.float16(65504)


def bounded(function):
    """Infinity that finite operands make is the greatest number."""

    def apply(*operands):
        result = np.asarray(function(*operands)).astype(np.float16)
        made = np.isinf(result) & np.logical_and.reduce([np.isfinite(x) for x in operands])
        return np.where(made, np.copysign(GREATEST, result), result)

    return apply


for name, function, count in (
    ("add", lambda a, b: a + b, 2),
    ("mul", lambda a, b: a * b, 2),
    ("fma", fused("f16"), 3),
):
    signature = f"f16 = {' '.join(['f16'] * count)}"
    add(f"v_{name}_f16:bounded", signature, bounded(function), mode=OVERFLOW)
    packed = signature.replace("f16", "f16x2")
    add(f"v_pk_{name}_f16:bounded", packed, by_parts(bounded(function)), mode=OVERFLOW)
add("v_cvt_f16_f32:bounded", "f16 = f32", bounded(lambda x: x), mode=OVERFLOW)
for name, dtype in (("fp8", ml_dtypes.float8_e4m3fn), ("bf8", ml_dtypes.float8_e5m2)):
    greatest = float(ml_dtypes.finfo(dtype).max)

    def both(a, b, d=dtype, top=greatest):
        octets = [np.where(np.isfinite(x), np.clip(x, -top, top), x).astype(np.float32) for x in (a, b)]
        low, high = (float_to_octet(x, d, GFX12) for x in octets)
        return low | high << 8

    add(f"v_cvt_pk_{name}_f32:bounded", "u16 = f32 f32", both, GFX12, mode=OVERFLOW)


# -- signs of operands, factors of results -------------------------------------------------------------------
def negative(x):
    """The sign bit, of NaN too."""
    return np.copysign(x, -1)


for t in FLOAT:
    half = ".l" if t == "f16" else ""
    for where in (GFX11, GFX12 + GFX9):
        tail = half if where == GFX11 else ""
        add(f"v_add_{t}:signs", f"{t} = {t}:-{{}}{tail} {t}:|{{}}{tail}|", lambda a, b: abs(b) - a, where)
        signs = f"{t} = {t}:-|{{}}{tail}| {t}:{{}}{tail} {t}:-{{}}{tail}"
        add(f"v_fma_{t}:signs", signs, lambda a, b, c, t=t: fused(t)(negative(a), b, -c), where)
add("v_cndmask_b32:signs", "f32 = f32:-{} f32:|{}| m", lambda a, b, m: np.where(m, abs(b), -a))
for text, factor in (("mul:2", 2), ("mul:4", 4), ("div:2", 0.5)):
    for t in ("f32", "f16"):

        def times(a, b, factor=factor):
            product = without(a * b)
            return without(
                np.where(product == 0, 0, product * product.dtype.type(factor)).astype(product.dtype)
            )

        flushes = DEFAULT_MODE & ~0x200 & ~(0x20 if t == "f32" else 0x80)  # results lose denormals
        add(f"v_mul_{t}:{text}", f"{t} = {t} {t}", times, after=text, mode=flushes)
        add(f"v_mul_{t}:{text} ignored", f"{t} = {t} {t}", lambda a, b: a * b, after=text, mode=NO_IEEE)
        plain = flushing(lambda a, b: a * b, 1)
        add(f"v_mul_{t}:{text} with IEEE", f"{t} = {t} {t}", plain, OLD, after=text, mode=flushes | 0x200)


# -- halves of registers -------------------------------------------------------------------------------------
def half(x, number):
    return (x >> 16 * number).astype(np.uint16).view(np.float16)


def into_high(value, old):
    return np.stack((old[:, 0], value), 1)


def sum_of_halves(a, b, old):
    return into_high(half(a, 0) + half(b, 1), old)


def fma_of_halves(a, b, c, old):
    return into_high(fused("f16")(half(a, 1), half(b, 0), c), old)


TRUE16 = "f16x2:{0}.h = u32:{0}.l u32:{0}.h +"
add("v_add_f16:halves", TRUE16, sum_of_halves, GFX11)
# the assembler takes no halves for gfx12, whose compiler uses none
add("v_fma_f16:halves", "f16x2 = u32 u32 f16 +", fma_of_halves, GFX9, after="op_sel:[1,0,0,1]")
CASES = tuple(CASES)
