"""Instructions that move data between lanes, and every DPP control: which lane each lane reads.

Source: AMD, "RDNA3 ISA", "RDNA4 ISA" and "AMD Instinct MI300 ISA": DPP, DS_SWIZZLE_B32, DS_PERMUTE_B32,
V_PERMLANE*, V_READLANE_B32 and their like. None stands for a lane that is not there.
"""

import numpy as np

from tests.emulator.amd.isa.registers import LANES, PROCESSORS, Case, covered

RDNA = ("gfx1100", "gfx1201")
DATA = np.arange(64, dtype=np.uint32) * 0x01010101 + 0x11
OLD = np.arange(64, dtype=np.uint32) + 0xABC000
SOME = 0xF0F7_77EE_3C5A_F1E7  # an EXEC mask with inactive lanes in every row


def active(lanes: int, mask: int = SOME) -> np.ndarray:
    return np.array([mask >> lane & 1 for lane in range(lanes)], dtype=bool)


def set_exec(processor: str, mask: int = SOME) -> str:
    if processor == "gfx942":
        return f"s_mov_b32 exec_lo, {mask & 0xFFFFFFFF:#x}\ns_mov_b32 exec_hi, {mask >> 32:#x}"
    return f"s_mov_b32 exec_lo, {mask & 0xFFFFFFFF:#x}"


# -- DPP -----------------------------------------------------------------------------------------------------
def row(function):
    """A control within rows of 16: function of the place in the row -> place, None where it is outside."""

    def source(lane: int) -> int | None:
        place = function(lane % 16)
        return None if place is None or not 0 <= place < 16 else lane // 16 * 16 + place

    return source


CONTROLS = {
    "quad_perm:[3,0,2,2]": lambda lane: lane & ~3 | (3, 0, 2, 2)[lane & 3],
    **{f"row_shl:{n}": row(lambda place, n=n: place + n) for n in (1, 7, 15)},
    **{f"row_shr:{n}": row(lambda place, n=n: place - n) for n in (1, 6, 15)},
    **{f"row_ror:{n}": row(lambda place, n=n: (place - n) % 16) for n in (1, 9, 15)},
    "row_mirror": row(lambda place: 15 - place),
    "row_half_mirror": row(lambda place: place & 8 | 7 - place % 8),
}
ON_RDNA = CONTROLS | {
    **{f"row_share:{n}": row(lambda place, n=n: n) for n in (0, 11)},
    **{f"row_xmask:{n}": row(lambda place, n=n: place ^ n) for n in (1, 13)},
}
ON_GFX9 = CONTROLS | {
    **{f"row_newbcast:{n}": row(lambda place, n=n: n) for n in (0, 11)},
    "wave_shl:1": lambda lane: lane + 1 if lane < 63 else None,
    "wave_rol:1": lambda lane: (lane + 1) % 64,
    "wave_shr:1": lambda lane: lane - 1 if lane else None,
    "wave_ror:1": lambda lane: (lane - 1) % 64,
    "row_bcast:15": lambda lane: lane // 16 * 16 - 1 if lane >= 16 else None,
    "row_bcast:31": lambda lane: lane // 32 * 32 - 1 if lane >= 32 else None,
}


def dpp(processor: str, control: str, source, bound: int, inactive: int, rows: int = 15, banks: int = 15):
    """v_mov_b32_dpp under an EXEC mask. bound: bound_ctrl; inactive: fi."""
    lanes = LANES[processor]
    on, wanted = active(lanes), OLD[:lanes].copy()
    for lane in np.flatnonzero(on):
        if not (rows >> lane // 16 & 1 and banks >> lane // 4 % 4 & 1):
            continue
        other = source(int(lane))
        if other is not None and (on[other] or inactive):
            wanted[lane] = DATA[other]
        elif bound:
            wanted[lane] = 0
    flags = f"row_mask:{rows:#x} bank_mask:{banks:#x}"
    flags += (" bound_ctrl:1" if bound else "") + (" fi:1" if inactive else "")
    text = f"{set_exec(processor)}\nv_mov_b32_dpp v10, v8 {control} {flags}"
    name = f"v_mov_b32:{control} {flags}"
    vgprs = {8: DATA[:lanes], 10: OLD[:lanes]}
    return Case(name, text, (processor,), vgprs, None, {10: wanted})


def _dpp_cases() -> list[Case]:
    found = []
    for processor in PROCESSORS:
        controls = ON_GFX9 if processor == "gfx942" else ON_RDNA
        for control, source in controls.items():
            for bound in (0, 1):
                found.append(dpp(processor, control, source, bound, 0))
            if processor != "gfx942":
                found.append(dpp(processor, control, source, 0, 1))
        control = "row_shr:6"
        found.append(dpp(processor, control, controls[control], 1, 0, 0b0110, 0b1011))
        found.append(dpp(processor, control, controls[control], 0, 0, 0b1001, 0b0101))
    return found


def dpp8(processor: str, choice: tuple[int, ...], inactive: int) -> Case:
    lanes = LANES[processor]
    on = active(lanes)
    source = [lane & ~7 | choice[lane & 7] for lane in range(lanes)]
    read = np.where(on[source] | bool(inactive), DATA[source], 0)
    text = f"{set_exec(processor)}\nv_mov_b32_dpp v10, v8 dpp8:[{','.join(map(str, choice))}]"
    text += " fi:1" if inactive else ""
    vgprs = {8: DATA[:lanes], 10: OLD[:lanes]}
    wanted = {10: np.where(on, read, OLD[:lanes])}
    return Case(f"v_mov_b32:dpp8 {inactive}", text, (processor,), vgprs, None, wanted)


# -- local data share as a crossbar --------------------------------------------------------------------------
def reverse_bits(value: int, count: int = 5) -> int:
    return int(f"{value:0{count}b}"[::-1], 2)


def fourier(mask: int):
    """FFT mode: the low bits of the lane stay, the others come in reverse order."""
    return lambda lane: lane & 32 | reverse_bits(lane & 31) >> mask.bit_count() | lane & mask


def rotated(count: int, mask: int):
    return lambda lane: lane & 32 | lane & mask | (lane + count) & ~mask & 31


SWIZZLES = {
    "swizzle(QUAD_PERM,1,3,0,2)": lambda lane: lane & ~3 | (1, 3, 0, 2)[lane & 3],
    'swizzle(BITMASK_PERM,"01pip")': lambda lane: lane & 0b100101 | 0b01000 | ~lane & 0b00010,
    "swizzle(SWAP,8)": lambda lane: lane ^ 8,
    "swizzle(REVERSE,16)": lambda lane: lane ^ 15,
    "swizzle(BROADCAST,8,5)": lambda lane: lane & ~7 | 5,
    "swizzle(FFT,0)": fourier(0),
    "swizzle(FFT,3)": fourier(3),
    "swizzle(FFT,31)": fourier(31),
    "swizzle(ROTATE,0,3)": rotated(3, 0),
    "swizzle(ROTATE,1,5)": rotated(-5, 0),
    str(0xC000 | 3 << 5 | 0b00011): rotated(3, 3),
}


def swizzle(processor: str, name: str, source) -> Case:
    lanes = LANES[processor]
    on = active(lanes)
    places = np.array([source(lane) for lane in range(lanes)])
    wanted = np.where(on, np.where(on[places], DATA[places], 0), OLD[:lanes])
    text = f"{set_exec(processor)}\nds_swizzle_b32 v10, v8 offset:{name}"
    vgprs = {8: DATA[:lanes], 10: OLD[:lanes]}
    return Case(f"ds_swizzle_b32:{name}", text, (processor,), vgprs, None, {10: wanted})


INDEX = (np.arange(64, dtype=np.uint32) * 5 + 3) * 4 + 0x1003  # beyond the wave, not aligned


def permute(processor: str, name: str) -> Case:
    """Pull (bpermute) or push with an offset of 8 bytes; only bits of the lane number count."""
    lanes = LANES[processor]
    on = active(lanes)
    places = (INDEX[:lanes] + 8 >> 2) % lanes
    if name == "ds_permute_b32":
        read = np.zeros(lanes, dtype=np.uint32)
        read[places[on]] = DATA[:lanes][on]
    else:
        read = np.where(on[places] | (name == "ds_bpermute_fi_b32"), DATA[places], 0)
    text = f"{set_exec(processor)}\n{name} v10, v9, v8 offset:8"
    vgprs = {8: DATA[:lanes], 9: INDEX[:lanes], 10: OLD[:lanes]}
    return Case(name, text, (processor,), vgprs, None, {10: np.where(on, read, OLD[:lanes])})


# -- permlane ------------------------------------------------------------------------------------------------
CHOICES = (0x0FEDCBA98 >> 4 & 0xFFFFFFFF, 0x13570246)


def permlane(processor: str, name: str, after: str = "") -> Case:
    """op_sel: the first flag reads inactive lanes, the second gives 0 for them; else the old value stays."""
    lanes = LANES[processor]
    on = active(lanes)
    both = CHOICES[0] | CHOICES[1] << 32
    if name.endswith("_var_b32"):
        chosen = INDEX[:lanes] >> 2 & 15
        operand = "v9"
    else:
        chosen = np.array([both >> 4 * (lane % 16) & 15 for lane in range(lanes)])
        operand = "s20, s21"
    places = np.arange(lanes) // 16 * 16 + chosen ^ (16 if "permlanex" in name else 0)
    if "[1" in after:
        read = DATA[places]
    elif ",1" in after:
        read = np.where(on[places], DATA[places], 0)
    else:
        read = np.where(on[places], DATA[places], OLD[:lanes])
    vector = INDEX[:lanes] >> 2
    text = f"s_mov_b32 s20, {CHOICES[0]:#x}\ns_mov_b32 s21, {CHOICES[1]:#x}\n{set_exec(processor)}"
    text += f"\n{name} v10, v8, {operand} {after}"
    vgprs = {8: DATA[:lanes], 9: vector, 10: OLD[:lanes]}
    return Case(f"{name}:{after}", text, (processor,), vgprs, None, {10: np.where(on, read, OLD[:lanes])})


# -- single lanes, swaps -------------------------------------------------------------------------------------
def _single(processor: str) -> list[Case]:
    lanes = LANES[processor]
    on, mask = active(lanes), set_exec(processor)
    data, old = DATA[:lanes], OLD[:lanes]
    first = int(np.flatnonzero(on)[0])
    written = old.copy()
    written[5] = 77
    every = f"s_mov_b{'64 exec' if lanes == 64 else '32 exec_lo'}, -1"
    show = f"{every}\nv_mov_b32 v10, s20"
    nobody = f"s_mov_b{'64 exec' if lanes == 64 else '32 exec_lo'}, 0"
    swapped = {8: np.where(on, old, data), 10: np.where(on, data, old)}
    inactive = int(np.flatnonzero(~on)[0])
    cases = [
        ("v_readfirstlane_b32", f"{mask}\nv_readfirstlane_b32 s20, v8\n{show}", {10: data[first]}),
        ("v_readfirstlane_b32:none", f"{nobody}\nv_readfirstlane_b32 s20, v8\n{show}", {10: data[0]}),
        ("v_readlane_b32", f"{mask}\nv_readlane_b32 s20, v8, {inactive}\n{show}", {10: data[inactive]}),
        (
            "v_readlane_b32:far",
            f"s_movk_i32 s21, {lanes + 9}\nv_readlane_b32 s20, v8, s21\n{show}",
            {10: data[9]},
        ),
        ("v_writelane_b32", f"{nobody}\ns_movk_i32 s20, 77\nv_writelane_b32 v10, s20, 5", {10: written}),
        ("v_swap_b32", f"{mask}\nv_swap_b32 v8, v10", swapped),
    ]
    return [Case(name, text, (processor,), {8: data, 10: old}, None, wanted) for name, text, wanted in cases]


def _half_swaps() -> list[Case]:
    """v_swap_b16 of two registers, and of the halves of one."""
    a, b = DATA[:32] * 0x10001, OLD[:32] * 0x20003
    crossed = {8: a & 0xFFFF0000 | b >> 16, 10: b & 0xFFFF | (a & 0xFFFF) << 16}
    turned = {8: a >> 16 | a << 16}
    return [
        Case("v_swap_b16", "v_swap_b16 v8.l, v10.h", ("gfx1100",), {8: a, 10: b}, None, crossed),
        Case("v_swap_b16:one", "v_swap_b16 v8.l, v8.h", ("gfx1100",), {8: a}, None, turned),
    ]


def _permlane64(processor: str) -> Case:
    """Of a wave of 32 lanes nothing moves."""
    data = DATA[:32]
    return Case("v_permlane64_b32", "v_permlane64_b32 v10, v8", (processor,), {8: data}, None, {10: data})


def _moved(processor: str) -> list[Case]:
    """Registers whose numbers have M0 added, in two parts where the name says _2."""
    values = {register: DATA[:32] + register for register in range(8, 16)}
    m0 = "s_mov_b32 m0, 0x30002\n"
    small = "s_mov_b32 m0, 3\n"
    cases = (
        ("v_movrels_b32", f"{small}v_movrels_b32 v8, v10", {8: values[13]}),
        ("v_movreld_b32", f"{small}v_movreld_b32 v8, v10", {11: values[10], 8: values[8]}),
        ("v_movrelsd_b32", f"{small}v_movrelsd_b32 v8, v10", {11: values[13]}),
        ("v_movrelsd_2_b32", f"{m0}v_movrelsd_2_b32 v8, v10", {11: values[12]}),
        ("v_swaprel_b32", f"{m0}v_swaprel_b32 v8, v10", {11: values[12], 12: values[11], 8: values[8]}),
    )
    return [Case(name, text, (processor,), values, None, wanted) for name, text, wanted in cases]


def _scalar_moves(processor: str) -> list[Case]:
    """s_movrels and s_movreld: the number of the source or the destination has M0 added."""
    setup = "\n".join(f"s_mov_b32 s{24 + n}, {0x100 + n:#x}" for n in range(12))
    cases = [
        ("s_movrels_b32", 2, "s_movrels_b32 s24, s28", {24: 0x106}),
        ("s_movrels_b64", 2, "s_movrels_b64 s[24:25], s[28:29]", {24: 0x106, 25: 0x107}),
        ("s_movreld_b32", 2, "s_movreld_b32 s24, s28", {26: 0x104, 24: 0x100}),
        ("s_movreld_b64", 2, "s_movreld_b64 s[24:25], s[28:29]", {26: 0x104, 27: 0x105}),
    ]
    if processor != "gfx942":
        cases.append(("s_movrelsd_2_b32", 0x30002, "s_movrelsd_2_b32 s24, s28", {27: 0x106}))
    found = []
    for name, m0, line, wanted in cases:
        show = [f"v_mov_b32 v{10 + n}, s{register}" for n, register in enumerate(wanted)]
        text = "\n".join([setup, f"s_mov_b32 m0, {m0:#x}", line, *show])
        values = {10 + n: np.uint32(value) for n, value in enumerate(wanted.values())}
        found.append(Case(name, text, (processor,), {}, None, values))
    return found


def _accumulators() -> list[Case]:
    """Accumulation VGPRs hold what is moved into them; one alone is moved under EXEC."""
    on, mask = active(64), set_exec("gfx942")
    lines = "v_accvgpr_write_b32 a3, v8\nv_accvgpr_write_b32 a4, 5\nv_accvgpr_read_b32 v10, a3"
    lines += f"\nv_accvgpr_read_b32 v11, a4\n{mask}\nv_accvgpr_write_b32 a4, v8\nv_accvgpr_mov_b32 a5, a4"
    every = "s_mov_b64 exec, -1\nv_accvgpr_read_b32 v12, a4"
    wanted = {10: DATA, 11: np.uint32(5), 12: np.where(on, DATA, 5)}
    names = ("v_accvgpr_write_b32", "v_accvgpr_read_b32", "v_accvgpr_mov_b32")
    return [Case(name, f"{lines}\n{every}", ("gfx942",), {8: DATA}, None, wanted) for name in names]


def _below(processor: str) -> list[Case]:
    """v_mbcnt: bits of a mask below the lane, of its low and its high half."""
    lanes = LANES[processor]
    mask = DATA[:lanes] * 0x9E3779B1
    words = list(enumerate(map(int, mask)))
    low = [(word & (1 << min(lane, 32)) - 1).bit_count() for lane, word in words]
    high = [(word & (1 << max(lane - 32, 0)) - 1).bit_count() for lane, word in words]
    return [
        Case(
            f"v_mbcnt_{part}_u32_b32",
            f"v_mbcnt_{part}_u32_b32 v10, v8, v9",
            (processor,),
            {8: mask, 9: OLD[:lanes]},
            None,
            {10: np.array(counts, dtype=np.uint32) + OLD[:lanes]},
        )
        for part, counts in (("lo", low), ("hi", high))
    ]


def _all() -> list[Case]:
    found = _dpp_cases() + _half_swaps() + _accumulators()
    for processor in PROCESSORS:
        found += [swizzle(processor, name, source) for name, source in SWIZZLES.items()]
        found += [permute(processor, name) for name in ("ds_permute_b32", "ds_bpermute_b32")]
        found += _single(processor) + _below(processor) + _scalar_moves(processor)
    for processor in RDNA:
        found += [dpp8(processor, (7, 2, 2, 0, 5, 4, 1, 6), inactive) for inactive in (0, 1)]
        names = ["v_permlane16_b32", "v_permlanex16_b32"]
        if processor == "gfx1201":
            names += ["v_permlane16_var_b32", "v_permlanex16_var_b32"]
        flags = ("", "op_sel:[1,0]", "op_sel:[0,1]")
        found += [permlane(processor, name, after) for name in names for after in flags]
        found += [_permlane64(processor), *_moved(processor)]
    return [*found, permute("gfx1201", "ds_bpermute_fi_b32")]


CASES_LANES = tuple(_all())
COVERS = covered(CASES_LANES)
