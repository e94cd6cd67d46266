"""Cases of vector instructions on integers and bits; shifts take their count modulo the width.

Source of the definitions: as in cases_alu_float.py.
"""

import numpy as np

from tests.emulator.amd.isa.semantics import ITEMS, case

GFX11, GFX12, GFX9 = ("gfx1100",), ("gfx1201",), ("gfx942",)
RDNA, ALL = GFX11 + GFX12, GFX11 + GFX12 + GFX9
CASES = []


def add(name, signature, expected, processors=ALL, **more):
    CASES.append(case(name, signature, expected, processors=processors, **more))


def renamed(new, old, signature, expected, **more):
    """An instruction that gfx942 calls by an older name."""
    add(f"v_{new}", signature, expected, RDNA, **more)
    add(f"v_{old}", signature, expected, GFX9, **more)


def each_lane(function):
    """A function of Python integers on every lane."""

    def apply(*operands):
        rows = zip(*(operand.tolist() for operand in operands), strict=True)
        found = [function(*row) for row in rows]
        if isinstance(found[0], tuple):
            return tuple(
                np.array([each & (1 << 64) - 1 for each in part], np.uint64)
                for part in zip(*found, strict=True)
            )
        return np.array([each & (1 << 64) - 1 for each in found], np.uint64)

    return apply


def signed(x, width):
    x &= (1 << width) - 1
    return x - (1 << width) if x >> width - 1 else x


def octets(x, count=4):
    return [x >> 8 * n & 255 for n in range(count)]


def pair(low, high):
    return (low & 0xFFFF) | (high & 0xFFFF) << 16


# -- moves and bits ------------------------------------------------------------------------------------------
add("v_mov_b32", "u32 = u32", lambda a: a)
add("v_mov_b16", "u16 = u16", lambda a: a, GFX11)
add("v_mov_b64", "u64 = u64", lambda a: a, GFX9)
COPIES = """
v_accvgpr_write_b32 a0, v4
v_accvgpr_mov_b32 a1, a0
v_mov_b32 v24, 0
v_accvgpr_read_b32 v24, a1"""
add("v_accvgpr_mov_b32", "u32 = u32", lambda a: a, GFX9, spelling="v_mov_b32", after=COPIES)
add("v_not_b32", "u32 = u32", lambda a: ~a)
add("v_not_b16", "u16 = u16", lambda a: ~a, RDNA)
add("v_bfrev_b32", "u32 = u32", each_lane(lambda a: int(f"{a:032b}"[::-1], 2)))
renamed("clz_i32_u32", "ffbh_u32", "i32 = u32", each_lane(lambda a: 32 - a.bit_length() if a else -1))
renamed("ctz_i32_b32", "ffbl_b32", "i32 = u32", each_lane(lambda a: (a & -a).bit_length() - 1))
renamed(
    "cls_i32",
    "ffbh_i32",
    "i32 = i32",
    each_lane(lambda a: -1 if a in (0, -1) else 32 - (a ^ a >> 31).bit_length()),
)
for size in ("16", "32"):
    where = RDNA if size == "16" else ALL
    u = f"u{size}"
    add(f"v_and_b{size}", f"{u} = {u} {u}", lambda a, b: a & b, where)
    add(f"v_or_b{size}", f"{u} = {u} {u}", lambda a, b: a | b, where)
    add(f"v_xor_b{size}", f"{u} = {u} {u}", lambda a, b: a ^ b, where)
    add(f"v_cndmask_b{size}", f"{u} = {u} {u} m", lambda a, b, m: np.where(m, b, a), where)
add("v_xnor_b32", "u32 = u32 u32", lambda a, b: ~(a ^ b))
for size in (16, 32, 64):
    u, i, n = f"u{size}", f"i{size}", "u16" if size == 16 else "u32"
    add(f"v_lshlrev_b{size}", f"{u} = {n} {u}", each_lane(lambda n, a, w=size: a << (n & w - 1)))
    add(f"v_lshrrev_b{size}", f"{u} = {n} {u}", each_lane(lambda n, a, w=size: a >> (n & w - 1)))
    add(f"v_ashrrev_i{size}", f"{i} = {n} {i}", each_lane(lambda n, a, w=size: a >> (n & w - 1)))
three = "u32 = u32 u32 u32"
add("v_xor3_b32", three, lambda a, b, c: a ^ b ^ c, RDNA)
add("v_or3_b32", three, lambda a, b, c: a | b | c)
add("v_and_or_b32", three, lambda a, b, c: a & b | c)
add("v_lshl_or_b32", three, lambda a, n, c: a << (n & 31) | c)
add("v_bfi_b32", three, lambda a, b, c: a & b | ~a & c)
add("v_bfm_b32", "u32 = u32 u32", each_lane(lambda a, b: ((1 << (a & 31)) - 1) << (b & 31)))
add("v_bfe_u32", three, each_lane(lambda a, b, c: a >> (b & 31) & (1 << (c & 31)) - 1))
add(
    "v_bfe_i32",
    "i32 = i32 u32 u32",
    each_lane(lambda a, b, c: signed(a >> (b & 31), c & 31) if c & 31 else 0),
)


def permuted(a, b, c):
    both, result = a << 32 | b, 0
    for n, choice in enumerate(octets(c)):
        constant = 255 if choice >= 13 else 0
        octet = 255 * (both >> 16 * (choice - 8) + 15 & 1) if 8 <= choice < 12 else constant
        result |= (both >> 8 * choice & 255 if choice < 8 else octet) << 8 * n
    return result


add("v_perm_b32", three, each_lane(permuted))
for name, function in (
    ("alignbit", lambda a, b, c: (a << 32 | b) >> (c & 31)),
    ("alignbyte", lambda a, b, c: (a << 32 | b) >> 8 * (c & 3)),
):
    add(f"v_{name}_b32", "u32 = u32 u32 u16", each_lane(function))
add("v_bcnt_u32_b32", "u32 = u32 u32", each_lane(lambda a, b: a.bit_count() + b))


def mbcnt(first, lanes):
    """Ones of a below this lane, of lanes first ... first + 31, more than b."""

    def apply(a, b):
        lane = np.arange(ITEMS) % lanes - first
        return each_lane(lambda a, b, n: b + (a & (1 << max(0, min(32, n))) - 1).bit_count())(a, b, lane)

    return apply


for where, lanes in ((RDNA, 32), (GFX9, 64)):
    add("v_mbcnt_lo_u32_b32", "u32 = u32 u32", mbcnt(0, lanes), where)
    add("v_mbcnt_hi_u32_b32", "u32 = u32 u32", mbcnt(32, lanes), where)

# -- sums, differences, products -----------------------------------------------------------------------------
renamed("add_nc_u32", "add_u32", "u32 = u32 u32", lambda a, b: a + b)
renamed("sub_nc_u32", "sub_u32", "u32 = u32 u32", lambda a, b: a - b)
renamed("subrev_nc_u32", "subrev_u32", "u32 = u32 u32", lambda a, b: b - a)
for t in ("i32", "u16", "i16"):
    renamed(f"add_nc_{t}", f"add_{t}", f"{t} = {t} {t}", lambda a, b: a + b)
    renamed(f"sub_nc_{t}", f"sub_{t}", f"{t} = {t} {t}", lambda a, b: a - b)
add("v_subrev_u16", "u16 = u16 u16", lambda a, b: b - a, GFX9)
for t in ("u16", "i16"):
    add(f"v_mad_{t}", f"{t} = {t} {t} {t}", lambda a, b, c: a * b + c)
    add(f"v_mad_legacy_{t}", f"{t} = {t} {t} {t}", lambda a, b, c: a * b + c, GFX9)
add("v_mul_lo_u16", "u16 = u16 u16", lambda a, b: a * b)
CLAMPED = {
    "u16": (0, 0xFFFF),
    "i16": (-0x8000, 0x7FFF),
    "u32": (0, 0xFFFFFFFF),
    "i32": (-1 << 31, (1 << 31) - 1),
}
for t, (low, high) in CLAMPED.items():
    for name, function in (("add", lambda a, b: a + b), ("sub", lambda a, b: a - b)):

        def limited(a, b, f=function, low=low, high=high):
            return max(low, min(high, f(a, b)))

        add(f"v_{name}_nc_{t}:clamp", f"{t} = {t} {t}", each_lane(limited), RDNA, after="clamp")
        add(f"v_{name}_{t}:clamp", f"{t} = {t} {t}", each_lane(limited), GFX9, after="clamp")
    if t.endswith("16"):

        def limited_mad(a, b, c, low=low, high=high):
            return max(low, min(high, a * b + c))

        add(f"v_mad_{t}:clamp", f"{t} = {t} {t} {t}", each_lane(limited_mad), after="clamp")
        add(f"v_mad_legacy_{t}:clamp", f"{t} = {t} {t} {t}", each_lane(limited_mad), GFX9, after="clamp")
for name, function in (
    ("add", lambda a, b, c=0: (a + b + c, a + b + c >> 32)),
    ("sub", lambda a, b, c=0: (a - b - c, b + c > a)),
    ("subrev", lambda a, b, c=0: (b - a - c, a + c > b)),
):
    add(f"v_{name}_co_u32", "u32 m = u32 u32", each_lane(function))
    letter = "b" if name.startswith("sub") else "c"
    gfx9_name = {"add": "addc", "sub": "subb", "subrev": "subbrev"}[name]
    renamed(f"{name}_co_ci_u32", f"{gfx9_name}_co_u32", "u32 m = u32 u32 m", each_lane(function))
for t in ("u32", "i32"):
    width24 = (lambda x: x & 0xFFFFFF) if t == "u32" else (lambda x: signed(x, 24))
    two, more = f"{t} = {t} {t}", f"{t} = {t} {t} {t}"
    add(f"v_mul_hi_{t}", two, each_lane(lambda a, b: a * b >> 32))
    add(f"v_mul_{t}_{t[0]}24", two, each_lane(lambda a, b, f=width24: f(a) * f(b)))
    add(f"v_mul_hi_{t}_{t[0]}24", two, each_lane(lambda a, b, f=width24: f(a) * f(b) >> 32))
    add(f"v_mad_{t}_{t[0]}24", more, each_lane(lambda a, b, c, f=width24: f(a) * f(b) + c))
    half = f"{t[0]}16"
    add(f"v_mad_{t}_{half}", f"{t} = {half} {half} {t}", each_lane(lambda a, b, c: a * b + c))
add("v_mul_lo_u32", "u32 = u32 u32", lambda a, b: a * b)
mad_carry = each_lane(lambda a, b, c: (a * b + c, a * b + c >> 64 & 1))
for co, where in (("", GFX11 + GFX9), ("_co", GFX12)):
    add(f"v_mad{co}_u64_u32", "u64 m = u32 u32 u64", mad_carry, where)
    add(f"v_mad{co}_i64_i32", "i64 m = i32 i32 i64", mad_carry, where)
add("v_add3_u32", three, lambda a, b, c: a + b + c)
add("v_xad_u32", three, lambda a, b, c: (a ^ b) + c)
add("v_lshl_add_u32", three, lambda a, n, c: (a << (n & 31)) + c)
add("v_add_lshl_u32", three, lambda a, b, n: (a + b) << (n & 31))
add("v_lshl_add_u64", "u64 = u64 u32 u64", each_lane(lambda a, n, c: (a << (n & 7)) + c), GFX9)
for t in ("u16", "i16", "u32", "i32"):
    low, high = np.minimum, np.maximum
    add(f"v_min_{t}", f"{t} = {t} {t}", low)
    add(f"v_max_{t}", f"{t} = {t} {t}", high)
    for name, function, where in (
        ("min3", lambda a, b, c: min(a, b, c), ALL),
        ("max3", lambda a, b, c: max(a, b, c), ALL),
        ("med3", lambda a, b, c: sorted((a, b, c))[1], ALL),
        ("maxmin", lambda a, b, c: min(max(a, b), c), RDNA),
        ("minmax", lambda a, b, c: max(min(a, b), c), RDNA),
    ):
        if t.endswith("32") or name[-1] == "3":
            add(f"v_{name}_{t}", f"{t} = {t} {t} {t}", each_lane(function), where)


# -- video ---------------------------------------------------------------------------------------------------
def sad(a, b, c):
    return c + sum(abs(x - y) for x, y in zip(octets(a), octets(b), strict=True))


def masked_sad(a, b, c):
    return c + sum(abs(x - y) for x, y in zip(octets(a), octets(b), strict=True) if y)


add("v_sad_u8", three, each_lane(sad))
add("v_sad_hi_u8", three, each_lane(lambda a, b, c: c + (sad(a, b, 0) << 16)))
add(
    "v_sad_u16",
    three,
    each_lane(lambda a, b, c: c + abs((a & 0xFFFF) - (b & 0xFFFF)) + abs((a >> 16) - (b >> 16))),
)
add("v_sad_u32", three, each_lane(lambda a, b, c: c + abs(a - b)))
add("v_msad_u8", three, each_lane(masked_sad))
add(
    "v_lerp_u8",
    three,
    each_lane(
        lambda a, b, c: sum(
            (x + y + (z & 1) >> 1) << 8 * n
            for n, (x, y, z) in enumerate(zip(octets(a), octets(b), octets(c), strict=True))
        )
    ),
)
for name, function in (("qsad", sad), ("mqsad", masked_sad)):

    def four(a, b, c, f=function):
        return sum((f(a >> 8 * n & 0xFFFFFFFF, b, c >> 16 * n & 0xFFFF) & 0xFFFF) << 16 * n for n in range(4))

    add(f"v_{name}_pk_u16_u8", "u64 = u64 u32 u64", each_lane(four))


def four_wide(a, b, c):
    rows = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    return np.array(
        [
            [masked_sad(x >> 8 * n & 0xFFFFFFFF, y, each) & 0xFFFFFFFF for n, each in enumerate(z)]
            for x, y, z in rows
        ]
    )


add("v_mqsad_u32_u8", "u32x4 = u64 u32 u32x4", four_wide)


def saturated_octets(a):
    low, high = (max(0, min(255, signed(a >> shift, 16))) for shift in (0, 16))
    return low | high << 8


add("v_sat_pk_u8_i16", "u16 = u32", each_lane(saturated_octets))

# with clamp the sum is the nearest that fits
for name, function in (
    ("sad_u8", sad),
    ("msad_u8", masked_sad),
    ("mad_u32_u24", lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c),
    ("sad_u32", lambda a, b, c: c + abs(a - b)),
):
    add(
        f"v_{name}:clamp",
        three,
        each_lane(lambda a, b, c, f=function: min(f(a, b, c), 0xFFFFFFFF)),
        after="clamp",
    )
for name, function in (
    ("mad_i32_i24", lambda a, b, c: max(-1 << 31, min((1 << 31) - 1, signed(a, 24) * signed(b, 24) + c))),
    ("mad_i32_i16", lambda a, b, c: max(-1 << 31, min((1 << 31) - 1, a * b + c))),
):
    half = "i16" if name.endswith("16") else "i32"
    add(f"v_{name}:clamp", f"i32 = {half} {half} i32", each_lane(function), after="clamp")

# -- comparisons ---------------------------------------------------------------------------------------------
CONDITIONS = {
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ne": lambda a, b: a != b,
    "ge": lambda a, b: a >= b,
    "f": lambda a, b: a != a,
    "t": lambda a, b: a == a,
}
for t in ("i16", "u16", "i32", "u32", "i64", "u64"):
    for name, condition in CONDITIONS.items():
        constant = name in ("f", "t")
        long = () if constant and t.endswith("16") else GFX11
        add(f"v_cmp_{name}_{t}", f"m = {t} {t}", condition, GFX9 + long + (() if constant else GFX12))
        add(f"v_cmpx_{name}_{t}", f"exec = {t} {t}", condition, long + (() if constant else GFX12))
        add(f"v_cmpx_{name}_{t}", f"m exec = {t} {t}", lambda a, b, f=condition: (f(a, b),) * 2, GFX9)


# -- dot products of integers --------------------------------------------------------------------------------
def dot(width, signs):
    """c plus the products of the fields; signs: whether those of a, of b are signed."""

    def fields(x, is_signed):
        parts = [x >> low & (1 << width) - 1 for low in range(0, 32, width)]
        return [signed(part, width) for part in parts] if is_signed else parts

    def apply(a, b, c):
        return c + sum(x * y for x, y in zip(fields(a, signs[0]), fields(b, signs[1]), strict=True))

    return apply


def within(function, kind):
    low, high = CLAMPED[kind]
    return lambda *operands: max(low, min(high, function(*operands)))


def dot_cases(name, t, function, processors, accumulates=False, after=""):
    signature = f"{t} = u32 u32 {'+' if accumulates else t}"
    add(f"v_{name}{after and ':' + after}", signature, each_lane(function), processors, after=after)
    add(
        f"v_{name}:{after} clamp",
        signature,
        each_lane(within(function, t)),
        processors,
        after=f"{after} clamp",
    )


for width in (8, 4):
    name = f"dot{32 // width}"
    for flags in range(4):
        after = f"neg_lo:[{flags & 1},{flags >> 1},0]" if flags else ""
        dot_cases(f"{name}_i32_iu{width}", "i32", dot(width, (flags & 1, flags >> 1)), RDNA, after=after)
    dot_cases(f"{name}_u32_u{width}", "u32", dot(width, (0, 0)), ALL)
    dot_cases(f"{name}_i32_i{width}", "i32", dot(width, (1, 1)), GFX9)
    dot_cases(f"{name}c_i32_i{width}", "i32", dot(width, (1, 1)), GFX9, True)
dot_cases("dot2_i32_i16", "i32", dot(16, (1, 1)), GFX9)
dot_cases("dot2_u32_u16", "u32", dot(16, (0, 0)), GFX9)
dot_cases("dot2c_i32_i16", "i32", dot(16, (1, 1)), GFX9, True)
CASES = tuple(CASES)
