"""Instructions that clang rarely or never emits, one kernel each, against what the manual says of them.

v1, v3 and v5 hold the inputs a, b and c of a lane (v1:v2 and so on where a case wants 64 bits), v0 its
number; the result is v20, and v21 for 64 bits. Expected values are computed with Python's integers and
floats.
"""

import math
import struct

import numpy as np
import pytest

from tests.emulator.amd.isa import compiled
from tiny.emulator.amd.isa import assemble

LANES = 32
LOAD = """
s_load_b128 s[4:7], s[0:1], 0x0
v_lshlrev_b32 v10, 5, v0
s_waitcnt lgkmcnt(0)
global_load_b128 v[1:4], v10, s[6:7]
global_load_b64 v[5:6], v10, s[6:7] offset:16
s_waitcnt vmcnt(0)
v_mov_b32 v20, 0
v_mov_b32 v21, 0
"""
STORE = """
v_lshlrev_b32 v10, 3, v0
global_store_b64 v10, v[20:21], s[4:5]
"""
SIZES = {"lds": 64, "scratch": 0, "arguments": 16, "more": ""}
SPECIAL = [
    0,
    1,
    0x80000000,
    0xFFFFFFFF,
    0x7FFFFFFF,
    0x3F800000,
    0xBF800000,
    0x7F800000,
    0xFF800000,
    0x7FC00000,
    0x00000001,
    0x80000001,
    0x00800000,
    0x12345678,
    0x3C00BC00,
    0x4F800000,
    0x0000000C,
    0x0D0B0903,
]


def u32(x):
    return x & 0xFFFFFFFF


def i32(x):
    return u32(x) - (1 << 32) if u32(x) >> 31 else u32(x)


def i16(x):
    return (x & 0xFFFF) - (1 << 16) if x >> 15 & 1 else x & 0xFFFF


def signed(x, width):
    x &= (1 << width) - 1
    return x - (1 << width) if x >> width - 1 else x


def f32(x):
    return struct.unpack("<f", struct.pack("<I", u32(x)))[0]


def bits32(x):
    with np.errstate(all="ignore"):
        return int(np.float32(x).view(np.uint32))


def f16(x):
    return float(np.uint16(x & 0xFFFF).view(np.float16))


def bits16(x):
    with np.errstate(all="ignore"):
        return int(np.float16(np.float32(x)).view(np.uint16))


def octets(x):
    return [x >> 8 * n & 255 for n in range(4)]


def clip(x, low, high):
    return max(low, min(high, x))


def permute(a, b, c):
    both, result = a << 32 | b, 0
    for n, choice in enumerate(octets(c)):
        if choice >= 13:
            octet = 255
        elif choice == 12:
            octet = 0
        elif choice >= 8:
            octet = 255 * (both >> 16 * (choice - 8) + 15 & 1)
        else:
            octet = both >> 8 * choice & 255
        result |= octet << 8 * n
    return result


def to_int(x, low, high):
    return 0 if math.isnan(x) else clip(x if math.isinf(x) else math.trunc(x), low, high)


def f64(low, high):
    return struct.unpack("<d", struct.pack("<II", low, high))[0]


def frexp(x):
    return (x, 0) if x == 0 or math.isinf(x) or math.isnan(x) else math.frexp(x)


def med3(*values):
    known = [x for x in values if not math.isnan(x)]
    if len(known) == 3:
        return sorted(values)[1]
    return min(known) if known else math.nan


def classes(x):
    raw, negative = u32(x), x >> 31
    magnitude = raw & 0x7FFFFFFF
    if magnitude > 0x7F800000:
        return 1 if raw >> 22 & 1 else 0
    size = 0 if magnitude == 0x7F800000 else 1 if magnitude >= 0x00800000 else 2 if magnitude else 3
    return 2 + size if negative else 9 - size


def saturate(x, kind):
    width = int(kind[1:])
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if kind[0] == "i" else (0, (1 << width) - 1)
    return clip(x, low, high) & (1 << width) - 1


def halves(function, a, b, read):
    return function(read(a), read(b)) & 0xFFFF | (function(read(a >> 16), read(b >> 16)) & 0xFFFF) << 16


CASES = {  # name -> (assembly, expected u32 of (a, b, c, lane))
    "perm": ("v_perm_b32 v20, v1, v3, v5", lambda a, b, c, lane: permute(a, b, c)),
    "alignbit": ("v_alignbit_b32 v20, v1, v3, v5.l", lambda a, b, c, lane: (a << 32 | b) >> (c & 31)),
    "alignbyte": ("v_alignbyte_b32 v20, v1, v3, v5.l", lambda a, b, c, lane: (a << 32 | b) >> 8 * (c & 3)),
    "bfe_u32": ("v_bfe_u32 v20, v1, v3, v5", lambda a, b, c, lane: a >> (b & 31) & (1 << (c & 31)) - 1),
    "bfe_i32": (
        "v_bfe_i32 v20, v1, v3, v5",
        lambda a, b, c, lane: signed(i32(a) >> (b & 31), c & 31) if c & 31 else 0,
    ),
    "bfi": ("v_bfi_b32 v20, v1, v3, v5", lambda a, b, c, lane: a & b | ~a & c),
    "bfm": ("v_bfm_b32 v20, v1, v3", lambda a, b, c, lane: ((1 << (a & 31)) - 1) << (b & 31)),
    "sad_u8": (
        "v_sad_u8 v20, v1, v3, v5",
        lambda a, b, c, lane: c + sum(abs(x - y) for x, y in zip(octets(a), octets(b), strict=True)),
    ),
    "sad_hi_u8": (
        "v_sad_hi_u8 v20, v1, v3, v5",
        lambda a, b, c, lane: c + (sum(abs(x - y) for x, y in zip(octets(a), octets(b), strict=True)) << 16),
    ),
    "sad_u16": (
        "v_sad_u16 v20, v1, v3, v5",
        lambda a, b, c, lane: c + abs((a & 0xFFFF) - (b & 0xFFFF)) + abs((a >> 16) - (b >> 16)),
    ),
    "sad_u32": ("v_sad_u32 v20, v1, v3, v5", lambda a, b, c, lane: c + abs(a - b)),
    "lerp": (
        "v_lerp_u8 v20, v1, v3, v5",
        lambda a, b, c, lane: sum(
            (x + y + (z & 1) >> 1) << 8 * n
            for n, (x, y, z) in enumerate(zip(octets(a), octets(b), octets(c), strict=True))
        ),
    ),
    "mul_hi_u24": (
        "v_mul_hi_u32_u24 v20, v1, v3",
        lambda a, b, c, lane: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 32,
    ),
    "mul_hi_i24": ("v_mul_hi_i32_i24 v20, v1, v3", lambda a, b, c, lane: signed(a, 24) * signed(b, 24) >> 32),
    "mad_i24": ("v_mad_i32_i24 v20, v1, v3, v5", lambda a, b, c, lane: signed(a, 24) * signed(b, 24) + c),
    "mad_i16": ("v_mad_i32_i16 v20, v1.l, v3.h, v5", lambda a, b, c, lane: i16(a) * i16(b >> 16) + c),
    "xad": ("v_xad_u32 v20, v1, v3, v5", lambda a, b, c, lane: (a ^ b) + c),
    "cls": (
        "v_cls_i32 v20, v1",
        lambda a, b, c, lane: (
            32 - (a ^ (0xFFFFFFFF if a >> 31 else 0)).bit_length() if a not in (0, 0xFFFFFFFF) else -1
        ),
    ),
    "add_clamp": ("v_add_nc_u32 v20, v1, v3 clamp", lambda a, b, c, lane: saturate(a + b, "u32")),
    "sub_clamp": ("v_sub_nc_u32 v20, v1, v3 clamp", lambda a, b, c, lane: saturate(a - b, "u32")),
    "add_i32_clamp": (
        "v_add_nc_i32 v20, v1, v3 clamp",
        lambda a, b, c, lane: saturate(i32(a) + i32(b), "i32"),
    ),
    "sub_i16_clamp": (
        "v_sub_nc_i16 v20.l, v1.l, v3.h clamp",
        lambda a, b, c, lane: saturate(i16(a) - i16(b >> 16), "i16"),
    ),
    "pk_add_clamp": (
        "v_pk_add_u16 v20, v1, v3 clamp",
        lambda a, b, c, lane: halves(lambda x, y: saturate(x + y, "u16"), a, b, lambda x: x & 0xFFFF),
    ),
    "pk_sub_clamp": (
        "v_pk_sub_i16 v20, v1, v3 clamp",
        lambda a, b, c, lane: halves(lambda x, y: saturate(x - y, "i16"), a, b, i16),
    ),
    "pk_swapped": (
        "v_pk_add_u16 v20, v1, v3 op_sel:[1,0] op_sel_hi:[0,1]",
        lambda a, b, c, lane: (a >> 16) + b & 0xFFFF | ((a & 0xFFFF) + (b >> 16) & 0xFFFF) << 16,
    ),
    "half_high": (
        "v_add_nc_u16 v20.h, v1.l, v3.h",
        lambda a, b, c, lane: ((a & 0xFFFF) + (b >> 16) & 0xFFFF) << 16,
    ),
    "dot4": (
        "v_dot4_i32_iu8 v20, v1, v3, v5 neg_lo:[1,0,0]",
        lambda a, b, c, lane: c + sum(signed(x, 8) * y for x, y in zip(octets(a), octets(b), strict=True)),
    ),
    "dot8": (
        "v_dot8_i32_iu4 v20, v1, v3, v5 neg_lo:[0,1,0]",
        lambda a, b, c, lane: c + sum((a >> 4 * n & 15) * signed(b >> 4 * n, 4) for n in range(8)),
    ),
    "cvt_off": ("v_cvt_off_f32_i4 v20, v1", lambda a, b, c, lane: bits32(signed(a, 4) / 16)),
    "cvt_u32": ("v_cvt_u32_f32 v20, v1", lambda a, b, c, lane: to_int(f32(a), 0, 0xFFFFFFFF)),
    "cvt_i32": ("v_cvt_i32_f32 v20, v1", lambda a, b, c, lane: to_int(f32(a), -(1 << 31), (1 << 31) - 1)),
    "cvt_floor": (
        "v_cvt_floor_i32_f32 v20, v1",
        lambda a, b, c, lane: to_int(
            f32(a) if not math.isfinite(f32(a)) else math.floor(f32(a)), -(1 << 31), (1 << 31) - 1
        ),
    ),
    "cvt_pk_u16": (
        "v_cvt_pk_u16_u32 v20, v1, v3",
        lambda a, b, c, lane: min(a, 0xFFFF) | min(b, 0xFFFF) << 16,
    ),
    "cvt_pk_i16": (
        "v_cvt_pk_i16_i32 v20, v1, v3",
        lambda a, b, c, lane: saturate(i32(a), "i16") | saturate(i32(b), "i16") << 16,
    ),
    "frexp_exp": ("v_frexp_exp_i32_f32 v20, v1", lambda a, b, c, lane: frexp(f32(a))[1]),
    "frexp_mant": ("v_frexp_mant_f32 v20, v1", lambda a, b, c, lane: bits32(frexp(f32(a))[0])),
    "med3": ("v_med3_f32 v20, v1, v3, v5", lambda a, b, c, lane: bits32(med3(f32(a), f32(b), f32(c)))),
    "mul_zero": (
        "v_mul_dx9_zero_f32 v20, v1, v3",
        lambda a, b, c, lane: 0 if 0 in (f32(a), f32(b)) else bits32(np.float32(f32(a)) * np.float32(f32(b))),
    ),
    "clamp": (
        "v_mul_f32 v20, v1, v3 clamp",
        lambda a, b, c, lane: bits32(
            0 if math.isnan(p := float(np.float32(f32(a)) * np.float32(f32(b)))) else clip(p, 0.0, 1.0) + 0.0
        ),
    ),
    "class": (
        "v_cmp_class_f32 vcc_lo, v1, v3\n v_cndmask_b32 v20, 0, 1, vcc_lo",
        lambda a, b, c, lane: b >> classes(a) & 1,
    ),
    "dual": (
        "v_mov_b32 v20, v1\n v_mov_b32 v21, v3\n v_dual_mov_b32 v20, v21 :: v_dual_lshlrev_b32 v21, 1, v20",
        lambda a, b, c, lane: b,
    ),
    "fmamk_f16": ("v_fmamk_f16 v20.l, v1.l, 0x4000, v3.l", lambda a, b, c, lane: bits16(f16(a) * 2 + f16(b))),
    "mbcnt": ("v_mbcnt_lo_u32_b32 v20, v1, v3", lambda a, b, c, lane: b + (a & (1 << lane) - 1).bit_count()),
    "carry": ("v_mad_i64_i32 v[20:21], s20, v1, v3, v[5:6]\n v_cndmask_b32 v20, 0, 1, s20", None),
    "swizzle": (
        'ds_swizzle_b32 v20, v1 offset:swizzle(BITMASK_PERM, "01pip")\n s_waitcnt lgkmcnt(0)',
        lambda a, b, c, lane: ("lane", (lane & 7 ^ 2) | 8),
    ),
    "broadcast": (
        "ds_swizzle_b32 v20, v1 offset:swizzle(BROADCAST,8,3)\n s_waitcnt lgkmcnt(0)",
        lambda a, b, c, lane: ("lane", lane & ~7 | 3),
    ),
    "permlane16": (
        "s_mov_b32 s20, 0x76543210\n s_mov_b32 s21, 0x89abcdef\n v_permlane16_b32 v20, v1, s20, s21",
        lambda a, b, c, lane: ("lane", lane & 16 | (lane & 7 if lane & 8 == 0 else 15 - (lane & 7))),
    ),
    "permlanex16": (
        "s_mov_b32 s20, 0x76543210\n s_mov_b32 s21, 0xfedcba98\n v_permlanex16_b32 v20, v1, s20, s21",
        lambda a, b, c, lane: ("lane", lane ^ 16),
    ),
    "readlane": ("v_readlane_b32 s20, v1, 7\n v_mov_b32 v20, s20", lambda a, b, c, lane: ("lane", 7)),
    "movrels": ("s_mov_b32 m0, 2\n v_movrels_b32 v20, v1", lambda a, b, c, lane: b),
}
CONTROLS = {  # DPP control -> source lane of a lane, None where there is none
    "quad_perm:[1,0,3,2]": lambda lane: lane ^ 1,
    "row_shl:3": lambda lane: lane + 3 if lane % 16 < 13 else None,
    "row_shr:5": lambda lane: lane - 5 if lane % 16 >= 5 else None,
    "row_ror:7": lambda lane: lane & 16 | (lane - 7) % 16,
    "row_mirror": lambda lane: lane ^ 15,
    "row_half_mirror": lambda lane: lane ^ 7,
    "row_share:9": lambda lane: lane & 16 | 9,
    "row_xmask:6": lambda lane: lane ^ 6,
}
for number, (control, _) in enumerate(CONTROLS.items()):
    CASES[f"dpp{number}"] = (
        f"v_mov_b32_dpp v20, v1 {control} row_mask:0xf bank_mask:0xf bound_ctrl:1",
        lambda a, b, c, lane, f=CONTROLS[control]: ("lane", f(lane)),
    )
CASES["dpp8"] = ("v_mov_b32_dpp v20, v1 dpp8:[7,6,5,4,3,2,1,0]", lambda a, b, c, lane: ("lane", lane ^ 7))
CASES["dpp_kept"] = (
    "v_mov_b32 v20, 99\n v_mov_b32_dpp v20, v1 row_shl:1 row_mask:0xf bank_mask:0xf",
    lambda a, b, c, lane: ("lane", lane + 1) if lane % 16 < 15 else 99,
)
CASES["dpp_bank"] = (
    "v_mov_b32 v20, 99\n v_mov_b32_dpp v20, v1 quad_perm:[0,1,2,3] row_mask:0x2 bank_mask:0x5",
    lambda a, b, c, lane: a if lane >= 16 and lane // 4 % 2 == 0 else 99,
)
SCALAR = {  # on s10 = a, s11 = b of lane 0; result in s20
    "s_bfe_u32": ("s_bfe_u32 s20, s10, 0x80004", lambda a, b: a >> 4 & 255),
    "s_bfe_i32": ("s_bfe_i32 s20, s10, 0x50003", lambda a, b: signed(a >> 3, 5)),
    "s_bfm": ("s_bfm_b32 s20, 9, s11", lambda a, b: 511 << (b & 31)),
    "s_quadmask": ("s_quadmask_b32 s20, s10", lambda a, b: sum(1 << n for n in range(8) if a >> 4 * n & 15)),
    "s_wqm": ("s_wqm_b32 s20, s10", lambda a, b: sum(15 << 4 * n for n in range(8) if a >> 4 * n & 15)),
    "s_bitreplicate": (
        "s_bitreplicate_b64_b32 s[20:21], s10",
        lambda a, b: sum(3 << 2 * n for n in range(16) if a >> n & 1),
    ),
    "s_absdiff": ("s_absdiff_i32 s20, s10, s11", lambda a, b: abs(i32(i32(a) - i32(b)))),
    "s_pack_hl": ("s_pack_hl_b32_b16 s20, s10, s11", lambda a, b: a >> 16 | (b & 0xFFFF) << 16),
    "s_cls": ("s_cls_i32 s20, s10", lambda a, b: 32 - (a ^ (0xFFFFFFFF if a >> 31 else 0)).bit_length()),
    "s_bcnt0": ("s_bcnt0_i32_b32 s20, s10", lambda a, b: 32 - a.bit_count()),
    "s_overflow": (
        "s_add_i32 s20, s10, s11\n s_cselect_b32 s20, 1, 0",
        lambda a, b: int(not -(1 << 31) <= i32(a) + i32(b) < 1 << 31),
    ),
    "s_lshl4_add": (
        "s_lshl4_add_u32 s20, s10, s11\n s_cselect_b32 s20, 1, 0",
        lambda a, b: (a << 4) + b >> 32 != 0,
    ),
    "s_bitset": ("s_mov_b32 s20, s10\n s_bitset0_b32 s20, s11", lambda a, b: a & ~(1 << (b & 31))),
    "s_sext": ("s_sext_i32_i8 s20, s10", lambda a, b: signed(a, 8)),
    "s_brev": ("s_brev_b32 s20, s10", lambda a, b: int(f"{a:032b}"[::-1], 2)),
    "s_mulk": ("s_mov_b32 s20, s10\n s_mulk_i32 s20, -7", lambda a, b: a * -7),
    "s_cmpk": ("s_cmpk_gt_i32 s10, 0x100\n s_cselect_b32 s20, 5, 6", lambda a, b: 5 if i32(a) > 256 else 6),
}


@pytest.fixture(scope="module")
def image():
    """All cases in one code object."""
    texts = []
    for name, (code, _) in CASES.items():
        texts.append(assemble.described(name, LOAD + code + STORE, **SIZES))
    for name, (code, _) in SCALAR.items():
        loads = "v_readfirstlane_b32 s10, v1\nv_readfirstlane_b32 s11, v3"
        body = f"{LOAD}\n{loads}\n{code}\nv_mov_b32 v20, s20\n{STORE}"
        texts.append(assemble.described(name, body, **SIZES))
    return assemble.assemble("\n".join(texts), "gfx1100")


def inputs(seed: int) -> np.ndarray:
    """[lane, dword]: 0, 2 and 4 are a, b and c."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 1 << 32, (LANES, 8), dtype=np.uint32)
    words[::2] = rng.choice(np.array(SPECIAL, dtype=np.uint32), (LANES // 2, 8))
    words[1::4] = (10 * rng.normal(size=(LANES // 4, 8))).astype(np.float32).view(np.uint32)
    return words


def run(image, name: str, words: np.ndarray, translated: bool = False) -> np.ndarray:
    out = np.zeros((LANES, 2), dtype=np.uint32)
    compiled.launch(image, name, [out.reshape(-1), words.reshape(-1)], (1, 1, 1), (LANES, 1, 1), translated)
    return out


def same(mine: int, expected: int) -> bool:
    nan = all(x & 0x7FFFFFFF > 0x7F800000 for x in (mine, expected))
    return mine == expected or nan


@pytest.mark.parametrize("name", [name for name, (_, expected) in CASES.items() if expected])
def test_vector_instruction(image, name):
    words = inputs(len(name))
    out = run(image, name, words)
    for lane in range(LANES):
        a, b, c = (int(words[lane, n]) for n in (0, 2, 4))
        with np.errstate(all="ignore"):
            expected = CASES[name][1](a, b, c, lane)
        if isinstance(expected, tuple):
            expected = 0 if expected[1] is None else int(words[expected[1], 0])
        mine = int(out[lane, 0])
        assert same(mine, u32(expected)), (
            f"lane {lane}: {a:#x} {b:#x} {c:#x} -> {mine:#x}, not {u32(expected):#x}"
        )


@pytest.mark.parametrize("name", SCALAR)
@pytest.mark.parametrize("seed", range(3))
def test_scalar_instruction(image, name, seed):
    words = inputs(seed)
    out = run(image, name, words)
    assert out[0, 0] == u32(int(SCALAR[name][1](int(words[0, 0]), int(words[0, 2]))))


def test_carry_of_65_bits(image):
    words = inputs(5)
    out = run(image, "carry", words)
    for lane in range(LANES):
        a, b = i32(int(words[lane, 0])), i32(int(words[lane, 2]))
        c = int(words[lane, 4:6].view(np.uint64)[0])
        assert out[lane, 0] == int(a * b + signed(c, 64) < 0)


def test_translation_gives_the_same(image):
    for name in (
        "perm",
        "bfe_i32",
        "pk_sub_clamp",
        "half_high",
        "dual",
        "swizzle",
        "permlane16",
        "movrels",
        "dpp_kept",
        "dpp_bank",
        "dpp1",
        "s_quadmask",
        "carry",
        "mbcnt",
        "class",
    ):
        words = inputs(9)
        assert (run(image, name, words) == run(image, name, words, translated=True)).all(), name
