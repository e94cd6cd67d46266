"""Cases of vector instructions on floats: arithmetic, functions, comparisons.

Source of the definitions: AMD, "RDNA3 Instruction Set Architecture" (2023) and "RDNA4" (2025), chapter 16;
"AMD Instinct MI300 ISA" (2024), chapter 12.
"""

import math
from fractions import Fraction

import numpy as np

from tests.emulator.amd.isa import reference
from tests.emulator.amd.isa.reference import (
    chained,
    fused,
    ieee,
    max_num,
    maximum,
    med3,
    min_num,
    minimum,
    rounded,
)
from tests.emulator.amd.isa.semantics import LITERAL, case
from tiny.emulator.amd.isa.choices import TOLERANCE

GFX11, GFX12, GFX9 = ("gfx1100",), ("gfx1201",), ("gfx942",)
RDNA, OLD = GFX11 + GFX12, GFX11 + GFX9
CASES = []


def add(name, signature, expected, processors=RDNA + GFX9, **more):
    CASES.append(case(name, signature, expected, processors=processors, **more))


# -- two and three operands ----------------------------------------------------------------------------------
def times(a, b):
    return a * b


def plus(a, b):
    return a + b


for t in ("f16", "f32", "f64"):
    two, three = f"{t} = {t} {t}", f"{t} = {t} {t} {t}"
    renamed = "_num" if t == "f64" else ""
    for name, function in (("add", plus), ("mul", times)):
        add(f"v_{name}_{t}", two, function)
    add(f"v_fma_{t}", three, fused(t))
    for name, old, new in (("min", ieee(min_num), min_num), ("max", ieee(max_num), max_num)):
        add(f"v_{name}_{t}", two, old, OLD)
        add(f"v_{name}_num_{t}", two, new, GFX12)
        add(f"v_{name}imum_{t}", two, minimum if name == "min" else maximum, GFX12)
for t in ("f16", "f32"):
    two, three = f"{t} = {t} {t}", f"{t} = {t} {t} {t}"
    literal = np.array(LITERAL[f"k{t[1:]}"], f"u{int(t[1:]) // 8}").reshape(1).view(f"f{int(t[1:]) // 8}")
    everywhere = RDNA if t == "f16" else RDNA + GFX9
    add(f"v_sub_{t}", two, lambda a, b: a - b)
    add(f"v_subrev_{t}", two, lambda a, b: b - a)
    add(f"v_fmac_{t}", f"{t} = {t} {t} +", fused(t), everywhere)

    def fused_with(place, f=fused(t), k=literal):
        """fma with the literal as operand number `place`."""

        def apply(a, b):
            constant = np.repeat(k, len(a))
            return f(a, constant, b) if place == 1 else f(a, b, constant)

        return apply

    add(f"v_fmamk_{t}", f"{t} = {t} k{t[1:]} {t}", fused_with(1), everywhere)
    add(f"v_fmaak_{t}", f"{t} = {t} {t} k{t[1:]}", fused_with(2), everywhere)
    low, high = ieee(min_num), ieee(max_num)
    for name, function, where in (
        ("min3", chained(low, low), OLD),
        ("max3", chained(high, high), OLD),
        ("med3", med3(low, high), OLD),
        ("minmax", chained(low, high), GFX11),
        ("maxmin", chained(high, low), GFX11),
        ("min3_num", chained(min_num, min_num), GFX12),
        ("max3_num", chained(max_num, max_num), GFX12),
        ("med3_num", med3(min_num, max_num), GFX12),
        ("minmax_num", chained(min_num, max_num), GFX12),
        ("maxmin_num", chained(max_num, min_num), GFX12),
        ("minimum3", chained(minimum, minimum), GFX12),
        ("maximum3", chained(maximum, maximum), GFX12),
        ("minimummaximum", chained(minimum, maximum), GFX12),
        ("maximumminimum", chained(maximum, minimum), GFX12),
    ):
        add(f"v_{name}_{t}", three, function, where)
add("v_fmac_f64", "f64 = f64 f64 +", fused("f64"), GFX9)


def zero_wins(function):
    """The rule of DirectX 9: 0 times anything is 0."""

    def apply(a, b, *c):
        zero = (a == 0) | (b == 0)
        return np.where(zero, c[0] if c else np.float32(0), function(a, b, *c))

    return apply


add("v_mul_dx9_zero_f32", "f32 = f32 f32", zero_wins(times), RDNA)
add("v_mul_legacy_f32", "f32 = f32 f32", zero_wins(times), GFX9)
add("v_fma_dx9_zero_f32", "f32 = f32 f32 f32", zero_wins(fused("f32")), RDNA)
add("v_fmac_dx9_zero_f32", "f32 = f32 f32 +", zero_wins(fused("f32")), GFX11)


def multiply_lit(a, b, c):
    least = -np.finfo(np.float32).max
    gone = (b == least) | (b == -np.inf) | np.isnan(b) | (c <= 0) | np.isnan(c)
    return np.where(gone, least, zero_wins(times)(a, b))


add("v_mullit_f32", "f32 = f32 f32 f32", multiply_lit, RDNA)
# unfused: the product is rounded before the sum
add("v_mad_f16", "f16 = f16 f16 f16", lambda a, b, c: a * b + c, GFX9)
add("v_mad_legacy_f16", "f16 = f16 f16 f16", lambda a, b, c: a * b + c, GFX9)
add("v_fma_legacy_f16", "f16 = f16 f16 f16", fused("f16"), GFX9)
add("v_mac_f16", "f16 = f16 f16 +", lambda a, b, d: a * b + d, GFX9)
PI16 = np.uint16(0x4248).view(np.float16)
add("v_madmk_f16", "f16 = f16 k16 f16", lambda a, b: a * PI16 + b, GFX9)
add("v_madak_f16", "f16 = f16 f16 k16", lambda a, b: a * b + PI16, GFX9)


# -- scaling -------------------------------------------------------------------------------------------------
def scale(kind):
    def exact(a, n):
        return a * Fraction(2) ** int(max(-3000, min(3000, n)))

    return rounded(kind, exact, lambda a, n: a)


add("v_ldexp_f16", "f16 = f16 i16", scale("f16"))
add("v_ldexp_f32", "f32 = f32 i32", scale("f32"))
add("v_ldexp_f64", "f64 = f64 i32", scale("f64"))
for t in ("f16", "f32", "f64"):

    def mantissa(x):
        return np.where(np.isfinite(x), np.frexp(x)[0], x)

    def power(x):
        return np.where(np.isfinite(x), np.frexp(np.where(np.isfinite(x), x, 0))[1], 0)

    add(f"v_frexp_mant_{t}", f"{t} = {t}", mantissa)
    add(f"v_frexp_exp_i{'16' if t == 'f16' else '32'}_{t}", f"i{'16' if t == 'f16' else '32'} = {t}", power)


# -- one operand ---------------------------------------------------------------------------------------------
def fraction(x):
    below_one = np.nextafter(np.asarray(1, x.dtype), np.asarray(0, x.dtype))
    return np.where(np.isfinite(x), np.minimum(x - np.floor(x), below_one), np.nan).astype(x.dtype)


def flushed(x):
    """A zero of the same sign for a denormal of f32."""
    return np.where(abs(x) < np.finfo(np.float32).tiny, np.copysign(x.dtype.type(0), x), x)


def wide(function):
    """Computed in double precision and rounded; in f32 denormals are flushed."""

    def apply(x):
        if x.dtype == np.float32:
            return flushed(function(flushed(x).astype(np.float64)).astype(np.float32))
        return function(x.astype(np.float64)).astype(x.dtype)

    return apply


for t in ("f16", "f32", "f64"):
    one = f"{t} = {t}"
    for name, function in (("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("rndne", np.rint)):
        add(f"v_{name}_{t}", one, function)
    add(f"v_fract_{t}", one, fraction)
    for name, function in (
        ("sqrt", np.sqrt),
        ("rcp", lambda x: 1 / x),
        ("rsq", lambda x: 1 / np.sqrt(x)),
    ):
        add(f"v_{name}_{t}", one, wide(function), ulps=TOLERANCE[f"v_{name}_{t}"])
add("v_rcp_iflag_f32", "f32 = f32", wide(lambda x: 1 / x), ulps=TOLERANCE["v_rcp_iflag_f32"])


def sine(x):
    """sin(2 pi x), the turns reduced exactly to a quarter of one on either side of 0."""
    x = np.where(np.isfinite(x), x, np.nan)
    near = x - np.rint(x)
    near = np.where(abs(near) > 0.25, np.copysign(0.5, near) - near, near)
    return np.sin(2 * math.pi * near)


def cosine(x):
    x = np.where(np.isfinite(x), x, np.nan)
    return sine(abs(x - np.rint(x)) + 0.25)


for t in ("f16", "f32"):
    for name, function in (("exp", np.exp2), ("log", np.log2)):
        add(f"v_{name}_{t}", f"{t} = {t}", wide(function), ulps=TOLERANCE[f"v_{name}_{t}"])
    for name, function in (("sin", sine), ("cos", cosine)):
        add(f"v_{name}_{t}", f"{t} = {t}", wide(function), ulps=TOLERANCE[f"v_{name}_{t}"])
for name, function in (("exp", np.exp2), ("log", np.log2)):
    add(f"v_{name}_legacy_f32", "f32 = f32", wide(function), GFX9, ulps=TOLERANCE[f"v_{name}_legacy_f32"])

# -- comparisons ---------------------------------------------------------------------------------------------
CONDITIONS = {
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "lg": lambda a, b: (a < b) | (a > b),
    "ge": lambda a, b: a >= b,
    "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "u": lambda a, b: np.isnan(a) | np.isnan(b),
    "nge": lambda a, b: ~(a >= b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "ngt": lambda a, b: ~(a > b),
    "nle": lambda a, b: ~(a <= b),
    "neq": lambda a, b: ~(a == b),
    "nlt": lambda a, b: ~(a < b),
    "f": lambda a, b: a < -np.inf,
    "t": lambda a, b: (a < 0) | ~(a < 0),
}


def float_class(x, mask):
    """Bit n of the mask asks for class n."""
    tiny = np.finfo(x.dtype).tiny
    sizes = [np.isinf(x), abs(x) >= tiny, x != 0, np.ones(len(x), bool)]  # infinite, normal, denormal, zero
    size = np.select(sizes, [0, 1, 2, 3])
    number = np.where(np.signbit(x), 2 + size, 9 - size)
    number = np.where(np.isnan(x), np.where(reference.is_signalling(x), 0, 1), number)
    return mask.astype(np.uint64) >> number.astype(np.uint64) & np.uint64(1) != 0


def compare(name, kinds, function):
    add(f"v_cmp_{name}", f"m = {kinds}", function)
    add(f"v_cmpx_{name}", f"exec = {kinds}", function, RDNA)
    add(f"v_cmpx_{name}", f"m exec = {kinds}", lambda *x: (function(*x),) * 2, GFX9)


for t in ("f16", "f32", "f64"):
    for name, condition in CONDITIONS.items():
        if name not in ("f", "t"):
            compare(f"{name}_{t}", f"{t} {t}", condition)
    compare(f"class_{t}", f"{t} {'u16' if t == 'f16' else 'u32'}", float_class)
    for name, condition in (("f", CONDITIONS["f"]), ("t", CONDITIONS["t"])):
        add(f"v_cmp_{name}_{t}", f"m = {t} {t}", condition, GFX11)
        add(f"v_cmpx_{name}_{t}", f"exec = {t} {t}", condition, GFX11)
        old = "tru" if name == "t" else name
        add(f"v_cmp_{old}_{t}", f"m = {t} {t}", condition, GFX9)
        add(f"v_cmpx_{old}_{t}", f"m exec = {t} {t}", lambda a, b, f=condition: (f(a, b),) * 2, GFX9)


# -- the corners of a cube -----------------------------------------------------------------------------------
def cube(z_major, y_major, x_major):
    """Which of three holds: the largest coordinate decides, z before y before x."""

    def apply(x, y, z):
        z_wins = (abs(z) >= abs(x)) & (abs(z) >= abs(y))
        y_wins = abs(y) >= abs(x)
        return np.where(z_wins, z_major(x, y, z), np.where(y_wins, y_major(x, y, z), x_major(x, y, z)))

    return apply


for name, faces in (
    (
        "id",
        (
            lambda x, y, z: np.where(z < 0, 5.0, 4.0),
            lambda x, y, z: np.where(y < 0, 3.0, 2.0),
            lambda x, y, z: np.where(x < 0, 1.0, 0.0),
        ),
    ),
    (
        "sc",
        (lambda x, y, z: np.where(z < 0, -x, x), lambda x, y, z: x, lambda x, y, z: np.where(x < 0, z, -z)),
    ),
    ("tc", (lambda x, y, z: -y, lambda x, y, z: np.where(y < 0, -z, z), lambda x, y, z: -y)),
    ("ma", (lambda x, y, z: z * 2, lambda x, y, z: y * 2, lambda x, y, z: x * 2)),
):
    add(f"v_cube{name}_f32", "f32 = f32 f32 f32", cube(*faces))
CASES = tuple(CASES)
