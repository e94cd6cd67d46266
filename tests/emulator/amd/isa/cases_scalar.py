"""Cases of scalar instructions.

Source of the definitions: as in cases_alu_float.py.
"""

import numpy as np

from tests.emulator.amd.isa.cases_alu_convert import half_toward_zero, to_integer
from tests.emulator.amd.isa.cases_alu_float import CONDITIONS, LITERAL, wide
from tests.emulator.amd.isa.cases_alu_integer import each_lane, signed
from tests.emulator.amd.isa.reference import fused, max_num, maximum, min_num, minimum
from tests.emulator.amd.isa.semantics import case

GFX11, GFX12, GFX9 = ("gfx1100",), ("gfx1201",), ("gfx942",)
RDNA, ALL = GFX11 + GFX12, GFX11 + GFX12 + GFX9
OLD = GFX11 + GFX9
SCALAR_CASES = []


def add(name, signature, expected, processors=ALL, **more):
    SCALAR_CASES.append(case(f"s_{name}", signature, expected, processors=processors, **more))


def renamed(new, old, signature, expected, changed=RDNA):
    add(new, signature, expected, changed)
    add(old, signature, expected, tuple(name for name in ALL if name not in changed))


def flagged(function):
    """The result, and whether it is not zero."""

    def apply(*operands):
        result = function(*operands)
        return result, result != 0

    return apply


def within(function, bits, unsigned=False):
    """The result cut off and SCC: overflow, or the carry."""

    def apply(*operands):
        exact = function(*operands)
        low, high = (0, (1 << bits) - 1) if unsigned else (-1 << bits - 1, (1 << bits - 1) - 1)
        return exact, int(not low <= exact <= high)

    return each_lane(apply)


# -- sums and products ---------------------------------------------------------------------------------------
for new, old, t, function in (
    ("add_co_u32", "add_u32", "u32", lambda a, b: a + b),
    ("sub_co_u32", "sub_u32", "u32", lambda a, b: a - b),
    ("add_co_i32", "add_i32", "i32", lambda a, b: a + b),
    ("sub_co_i32", "sub_i32", "i32", lambda a, b: a - b),
):
    renamed(new, old, f"{t} scc = {t} {t}", within(function, 32, t == "u32"), GFX12)
for new, old, function in (
    ("add_co_ci_u32", "addc_u32", lambda a, b, c: a + b + c),
    ("sub_co_ci_u32", "subb_u32", lambda a, b, c: a - b - c),
):
    renamed(new, old, "u32 scc = u32 u32 scc", within(function, 32, True), GFX12)
renamed("addk_co_i32", "addk_i32", "i32 scc = 0x7ffe +", within(lambda a: a + 0x7FFE, 32), GFX12)
add("mulk_i32", "i32 = 0xfff9 +", each_lane(lambda a: a * -7))
add("movk_i32", "i32 = 0x8001", lambda: np.full(192, 0x8001 - 0x10000))
add("cmovk_i32", "i32 = 0x8001 + scc", lambda old, c: np.where(c, 0x8001 - 0x10000, old))
add("absdiff_i32", "i32 scc = i32 i32", each_lane(lambda a, b: (abs(signed(a - b, 32)), int(a != b))))
add("mul_i32", "i32 = i32 i32", lambda a, b: a * b)
for t in ("i32", "u32"):
    add(f"mul_hi_{t}", f"{t} = {t} {t}", each_lane(lambda a, b: a * b >> 32))
    add(f"min_{t}", f"{t} scc = {t} {t}", lambda a, b: (np.minimum(a, b), a < b))
    add(f"max_{t}", f"{t} scc = {t} {t}", lambda a, b: (np.maximum(a, b), a >= b))
for n in range(1, 5):
    shifted = each_lane(lambda a, b, n=n: ((a << n) + b, int((a << n) + b >> 32 != 0)))
    add(f"lshl{n}_add_u32", "u32 scc = u32 u32", shifted)
add("add_nc_u64", "u64 = u64 u64", lambda a, b: a + b, GFX12)
add("sub_nc_u64", "u64 = u64 u64", lambda a, b: a - b, GFX12)
add("mul_u64", "u64 = u64 u64", lambda a, b: a * b, GFX12)

# -- bits ----------------------------------------------------------------------------------------------------
LOGIC = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
    "and_not1": lambda a, b: a & ~b,
    "or_not1": lambda a, b: a | ~b,
    "and_not0": lambda a, b: ~a & b,
    "or_not0": lambda a, b: ~a | b,
}
OLDER = {"and_not1": "andn2", "or_not1": "orn2", "and_not0": "andn1", "or_not0": "orn1"}


def saved(function, bits, lanes, writes=False):
    """Old EXEC (or the new one), SCC and the new EXEC, of which a wave of 32 has the lower half alone."""

    def apply(source, mask):
        old = mask & np.uint64((1 << min(bits, lanes)) - 1)
        new = function(source.astype(np.uint64), old) & np.uint64((1 << bits) - 1)
        kept = new if lanes == 64 else new & np.uint64(0xFFFFFFFF) | mask & np.uint64(0xFFFFFFFF << 32)
        return new if writes else old, new != 0, kept

    return apply


for bits in (32, 64):
    u, i = f"u{bits}", f"i{bits}"
    for name, function in LOGIC.items():
        older = OLDER.get(name, name)
        if "not0" not in name:
            renamed(f"{name}_b{bits}", f"{older}_b{bits}", f"{u} scc = {u} {u}", flagged(function))
    add(f"not_b{bits}", f"{u} scc = {u}", flagged(lambda a: ~a))
    add(f"mov_b{bits}", f"{u} = {u}", lambda a: a)
    add(f"cmov_b{bits}", f"{u} = {u} + scc", lambda a, old, c: np.where(c, a, old))
    add(f"cselect_b{bits}", f"{u} = {u} {u} scc", lambda a, b, c: np.where(c, a, b))
    top = bits - 1
    add(f"lshl_b{bits}", f"{u} scc = {u} u32", flagged(lambda a, n, top=top: a << (n & top).astype(a.dtype)))
    add(f"lshr_b{bits}", f"{u} scc = {u} u32", flagged(lambda a, n, top=top: a >> (n & top).astype(a.dtype)))
    add(f"ashr_i{bits}", f"{i} scc = {i} u32", flagged(lambda a, n, top=top: a >> (n & top).astype(a.dtype)))

    def quads(a, per=bits // 4):
        return sum((a >> 4 * n & 15 != 0) << n for n in range(per))

    def whole(a, per=bits // 4):
        return sum((15 << 4 * n) * (a >> 4 * n & 15 != 0) for n in range(per))

    def with_scc(function):
        return each_lane(lambda *x: (function(*x), int(function(*x) != 0)))

    add(f"quadmask_b{bits}", f"{u} scc = {u}", with_scc(quads))
    add(f"wqm_b{bits}", f"{u} scc = {u}", with_scc(whole))
    add(f"bcnt0_i32_b{bits}", f"u32 scc = {u}", with_scc(lambda a, w=bits: w - a.bit_count()))
    add(f"bcnt1_i32_b{bits}", f"u32 scc = {u}", with_scc(lambda a: a.bit_count()))
    add(f"brev_b{bits}", f"{u} = {u}", each_lane(lambda a, w=bits: int(f"{a:0{w}b}"[::-1], 2)))
    add(
        f"bfm_b{bits}",
        f"{u} = u32 u32",
        each_lane(lambda n, at, w=bits: ((1 << (n & w - 1)) - 1) << (at & w - 1)),
    )
    first_one = each_lane(lambda a: (a & -a).bit_length() - 1)
    renamed(f"ctz_i32_b{bits}", f"ff1_i32_b{bits}", f"i32 = {u}", first_one)
    first_zero = each_lane(lambda a, w=bits: (~a & a + 1 & (1 << w) - 1).bit_length() - 1)
    add(f"ff0_i32_b{bits}", f"i32 = {u}", first_zero, GFX9)
    leading = each_lane(lambda a, w=bits: w - a.bit_length() if a else -1)
    renamed(f"clz_i32_u{bits}", f"flbit_i32_b{bits}", f"i32 = {u}", leading)
    suffix = "" if bits == 32 else "_i64"
    same_bits = each_lane(lambda a, w=bits: -1 if a in (0, -1) else w - (a ^ a >> w - 1).bit_length())
    renamed(f"cls_i32{suffix}", f"flbit_i32{suffix}", f"i32 = {i}", same_bits)
    for n in (0, 1):
        tested = each_lane(lambda a, at, n=n, w=bits: int(a >> (at & w - 1) & 1 == n))
        add(f"bitcmp{n}_b{bits}", f"scc = {u} u32", tested)

        def put(at, old, n=n, w=bits):
            return old | 1 << (at & w - 1) if n else old & ~(1 << (at & w - 1))

        add(f"bitset{n}_b{bits}", f"{u} = u32 +", each_lane(put))

    def extracted(a, place, w=bits):
        width = min(place >> 16 & 127, w - (place & w - 1))
        return (a >> (place & w - 1)) & (1 << width) - 1, width

    def unsigned_field(a, place, f=extracted):
        return f(a, place)[0]

    def signed_field(a, place, f=extracted):
        value, width = f(a, place)
        return signed(value, width) if width else 0

    add(f"bfe_u{bits}", f"{u} scc = {u} u32", with_scc(unsigned_field))
    add(f"bfe_i{bits}", f"{i} scc = {i} u32", with_scc(signed_field))
for where, lanes in ((RDNA, 32), (GFX9, 64)):
    for bits in (32, 64):
        if bits < lanes:
            continue  # no 32-bit forms on gfx942
        for name, function in LOGIC.items():
            spelled = OLDER.get(name, name) if where == GFX9 else name
            form = f"u{bits} scc exec = u{bits} exec"
            add(f"{spelled}_saveexec_b{bits}", form, saved(function, bits, lanes), where)
            if name.startswith("and_not"):
                add(f"{spelled}_wrexec_b{bits}", form, saved(function, bits, lanes, True), where)
add("sext_i32_i8", "i32 = u32", each_lane(lambda a: signed(a, 8)))
add("sext_i32_i16", "i32 = u32", each_lane(lambda a: signed(a, 16)))
add("abs_i32", "i32 scc = i32", each_lane(lambda a: (abs(a), int(a != 0))))
add(
    "bitreplicate_b64_b32", "u64 = u32", each_lane(lambda a: sum(3 << 2 * n for n in range(32) if a >> n & 1))
)
for name, (a_at, b_at) in {"ll": (0, 0), "lh": (0, 16), "hh": (16, 16), "hl": (16, 0)}.items():
    packed = each_lane(lambda a, b, m=a_at, n=b_at: a >> m & 0xFFFF | (b >> n & 0xFFFF) << 16)
    add(f"pack_{name}_b32_b16", "u32 = u32 u32", packed, ALL if name != "hl" else RDNA)

# -- comparisons ---------------------------------------------------------------------------------------------
for name, function in {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}.items():
    for t in ("i32", "u32"):
        add(f"cmp_{name}_{t}", f"scc = {t} {t}", function)
        constant = 0x80 if t == "u32" else -32768
        text = "0x80" if t == "u32" else "0x8000"
        add(f"cmpk_{name}_{t}", f"scc = {t} {text}", lambda a, f=function, k=constant: f(a, k), OLD)
    if name in ("eq", "lg"):
        add(f"cmp_{name}_u64", "scc = u64 u64", function)

# -- floats (gfx12) ------------------------------------------------------------------------------------------
for t in ("f16", "f32"):
    two = f"{t} = {t} {t}"
    for name, function in (
        ("add", lambda a, b: a + b),
        ("sub", lambda a, b: a - b),
        ("mul", lambda a, b: a * b),
        ("min_num", min_num),
        ("max_num", max_num),
        ("minimum", minimum),
        ("maximum", maximum),
    ):
        add(f"{name}_{t}", two, function, GFX12)
    add(f"fmac_{t}", f"{two} +", fused(t), GFX12)
    for name, function in (("ceil", np.ceil), ("floor", np.floor), ("trunc", np.trunc), ("rndne", np.rint)):
        add(f"{name}_{t}", f"{t} = {t}", function, GFX12)
    for name, condition in CONDITIONS.items():
        if name not in ("f", "t"):
            add(f"cmp_{name}_{t}", f"scc = {t} {t}", condition, GFX12)
    for name, function in (
        ("exp", np.exp2),
        ("log", np.log2),
        ("rcp", lambda x: 1 / x),
        ("rsq", lambda x: 1 / np.sqrt(x)),
        ("sqrt", np.sqrt),
    ):
        SCALAR_CASES.append(case(f"v_s_{name}_{t}", f"{t} = {t}", wide(function), processors=GFX12, ulps=1))
PI = np.uint32(LITERAL["k32"]).view(np.float32)
add("fmamk_f32", "f32 = f32 k32 f32", lambda a, b: fused("f32")(a, np.full(len(a), PI), b), GFX12)
add("fmaak_f32", "f32 = f32 f32 k32", lambda a, b: fused("f32")(a, b, np.full(len(a), PI)), GFX12)
for to, source in (("f32", "i32"), ("f32", "u32"), ("f32", "f16"), ("f16", "f32")):
    add(f"cvt_{to}_{source}", f"{to} = {source}", lambda x, t=f"f{int(to[1:]) // 8}": x.astype(t), GFX12)
add("cvt_hi_f32_f16", "f32 = u32", lambda x: (x >> 16).astype(np.uint16).view(np.float16), GFX12)
for t, dtype in (("i32", "int32"), ("u32", "uint32")):
    add(f"cvt_{t}_f32", f"{t} = f32", to_integer(dtype), GFX12)


def packed_halves(a, b):
    low, high = (half_toward_zero(each).view(np.uint16).astype(np.uint32) for each in (a, b))
    return low | high << 16


add("cvt_pk_rtz_f16_f32", "u32 = f32 f32", packed_halves, GFX12)
SCALAR_CASES = tuple(SCALAR_CASES)
COVERS = {name: {each.mnemonic for each in SCALAR_CASES if name in each.processors} for name in ALL}
