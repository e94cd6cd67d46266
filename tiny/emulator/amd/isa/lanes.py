"""Instructions that move data between lanes, and the DPP modifier: which lane each lane reads, as an
expression.

Source: AMD, "RDNA3 Instruction Set Architecture" (2023), sections on DPP, "DS_SWIZZLE_B32" and chapter 16.
"""

from tiny.emulator.amd.isa.decode import Instruction
from tiny.emulator.amd.isa.errors import UnsupportedError
from tiny.emulator.amd.isa.expression import Value, const, select


def leaf(kind: str, op: str, *args) -> Value:
    return Value(kind, op, *args)


def lane() -> Value:
    return leaf("u32", "lane")


def of_lane(register: int, index: Value) -> Value:
    """A VGPR of another lane."""
    return leaf("u32", "gather", index, register)


def is_active(index: Value) -> Value:
    return leaf("b1", "active", index)


# -- DPP -----------------------------------------------------------------------------------------------------
def dpp_source(instruction: Instruction) -> tuple[Value, Value]:
    """(lane that is read, whether there is one) for this lane."""
    dpp, here = instruction.dpp, lane()
    exists = const("b1", 1)
    if "lanes" in dpp.fields:
        choice = const("u32", dpp.lanes) >> (here & 7) * 3 & 7
        return here & ~7 & 0xFFFFFFFF | choice, exists
    control, place = dpp.dpp_ctrl, here & 15
    row = here & 0xFFFFFFF0
    count = control & 15
    if control < 0x100:
        return here & 0xFFFFFFFC | (const("u32", control) >> (here & 3) * 2 & 3), exists
    if 0x101 <= control <= 0x10F:
        return row | (place + count & 15), place + count < 16
    if 0x111 <= control <= 0x11F:
        return row | (place - count & 15), place >= count
    if 0x121 <= control <= 0x12F:
        return row | (place - count & 15), exists
    if control in (0x140, 0x141):
        return here ^ (15 if control == 0x140 else 7), exists
    if 0x150 <= control <= 0x15F:
        return row | count, exists
    if 0x160 <= control <= 0x16F and instruction.family.name != "gfx9":
        return here ^ count, exists
    if instruction.family.name == "gfx9":
        return _wave_shift(control, here, row)
    raise UnsupportedError(f"DPP control {control:#x} is not defined for {instruction.family.name}")


def _wave_shift(control: int, here: Value, row: Value) -> tuple[Value, Value]:
    """Controls that only 64-lane families before gfx10 have: shifts over the wave, and a row's last lane for
    the next.
    """
    exists = const("b1", 1)
    if control == 0x130:
        return here + 1 & 63, here < 63
    if control == 0x134:
        return here + 1 & 63, exists
    if control == 0x138:
        return here - 1 & 63, here >= 1
    if control == 0x13C:
        return here - 1 & 63, exists
    if control == 0x142:
        return row - 1 & 63, here >= 16
    if control == 0x143:
        return (here & 32) - 1 & 63, here >= 32
    raise UnsupportedError(f"DPP control {control:#x} is not defined for gfx9")


def gathered(instruction: Instruction, register: int | None) -> Value:
    """What DPP gives for a register; for None: whether this lane is written at all.

    A lane whose source does not exist or is not active keeps its destination, or with bound_ctrl reads 0.
    """
    index, exists = dpp_source(instruction)
    readable = exists if instruction.fetch_inactive else exists & is_active(index)
    dpp = instruction.dpp
    bound = "lanes" in dpp.fields or bool(dpp.bound_ctrl)
    if register is not None:
        return select(readable, of_lane(register, index), const("u32", 0))
    written = const("b1", 1) if bound else readable
    if "lanes" not in dpp.fields and (dpp.row_mask, dpp.bank_mask) != (15, 15):
        rows = const("u32", dpp.row_mask) >> (lane() >> 4 & 3) & 1
        banks = const("u32", dpp.bank_mask) >> (lane() >> 2 & 3) & 1
        written = written & (rows & banks).differs(0)
    return written


def moved(instruction: Instruction, raw, store) -> list:
    """v_movrel and s_movrel: a register whose number is that of the operand plus M0. "d": the destination's,
    "s": the source's; with "_2" they have a part of M0 each.
    """
    name, scalar = instruction.name, instruction.name.startswith("s_")
    if name == "v_swaprel_b32":
        return _swapped(instruction, store)
    m0 = leaf("u32", "sgpr", instruction.family.m0)
    read, write = ("sgpr_at", "sgpr_at") if scalar else ("vgpr_at", "vgpr_at")
    from_m0, to_m0 = (m0 & 0x3FF, m0 >> 16 & 0x3FF) if "_2_" in name else (m0, m0)
    effects = []
    for part in range(instruction.results[0].count):
        operand, target = instruction.sources[0], instruction.results[0]
        value = raw(operand, part)
        if "movrels" in name:
            value = leaf("u32", read, from_m0 + operand.register + part)
        place = target.register + part
        if "movreld" in name or "movrelsd" in name:
            effects.append(store(write, place, value, lane=to_m0 + place))
        else:
            effects.append(store("sgpr" if scalar else "vgpr", place, value))
    return effects


def _swapped(instruction: Instruction, store) -> list:
    """v_swaprel_b32: two registers change places, each one's number has a part of M0 added."""
    m0 = leaf("u32", "sgpr", instruction.family.m0)
    source = (m0 & 0x3FF) + instruction.sources[0].register
    target = (m0 >> 16 & 0x3FF) + instruction.results[0].register
    first, second = instruction.results[0].register, instruction.sources[0].register
    return [
        store("vgpr_at", first, leaf("u32", "vgpr_at", source), lane=target),
        store("vgpr_at", second, leaf("u32", "vgpr_at", target), lane=source),
    ]


# -- instructions --------------------------------------------------------------------------------------------
def lane_stores(instruction: Instruction, raw, store) -> list:
    """The effects of a `lanes` instruction. raw: (operand) -> u32; store: makes one effect."""
    name = instruction.name
    if name.startswith("ds_"):
        return _data_share(instruction, raw, store)
    return _INSTRUCTIONS[name](instruction, raw, store)


def _read_first(instruction: Instruction, raw, store) -> list:
    source = instruction.sources[0]
    return [store("sgpr", instruction.results[0].code, of_lane(source.register, leaf("u32", "first_lane")))]


def _read(instruction: Instruction, raw, store) -> list:
    source, index = instruction.sources
    wanted = leaf("u32", "lane_number", raw(index))
    return [store("sgpr", instruction.results[0].code, of_lane(source.register, wanted))]


def _write(instruction: Instruction, raw, store) -> list:
    value, index = instruction.sources
    wanted = leaf("u32", "lane_number", raw(index))
    return [store("lane", instruction.results[0].register, raw(value), lane=wanted)]


def _permute16(instruction: Instruction, raw, store) -> list:
    """v_permlane16: 16 four-bit lane numbers in two SGPRs, or one in each lane of a VGPR; x: from the other
    row of the pair.
    """
    source, low, *high = instruction.sources
    place = lane() & 15
    choice = select(place < 8, raw(low), raw(high[0])) >> (place & 7) * 4 if high else raw(low)
    index = lane() & 0xFFFFFFF0 | choice & 15
    if instruction.name.startswith("v_permlanex16"):
        index = index ^ 16
    op_sel = instruction.get("op_sel")
    register = instruction.results[0].register
    value = of_lane(source.register, index)
    if op_sel & 1:
        return [store("vgpr", register, value)]
    if op_sel & 2:
        return [store("vgpr", register, select(is_active(index), value, const("u32", 0)))]
    return [store("vgpr", register, value, is_active(index))]


def _permute64(instruction: Instruction, raw, store) -> list:
    source = instruction.sources[0]
    other = leaf("u32", "lane_number", lane() ^ 32)
    return [store("vgpr", instruction.results[0].register, of_lane(source.register, other))]


def _swap(instruction: Instruction, raw, store) -> list:
    a, b = instruction.results[0], instruction.sources[0]
    if instruction.name == "v_swap_b32":
        return [store("vgpr", a.register, raw(b)), store("vgpr", b.register, raw(a))]
    halves = [raw(each) >> 16 * each.half & 0xFFFF for each in (a, b)]
    if a.register == b.register:
        same = raw(a) if a.half == b.half else raw(a) << 16 | raw(a) >> 16
        return [store("vgpr", a.register, same)]
    return [
        store("vgpr", each.register, raw(each) & 0xFFFF << 16 * (1 - each.half) | half << 16 * each.half)
        for each, half in zip((a, b), reversed(halves), strict=True)
    ]


_INSTRUCTIONS = {
    "v_readfirstlane_b32": _read_first,
    "v_readlane_b32": _read,
    "v_writelane_b32": _write,
    "v_permlane16_b32": _permute16,
    "v_permlanex16_b32": _permute16,
    "v_permlane16_var_b32": _permute16,
    "v_permlanex16_var_b32": _permute16,
    "v_permlane64_b32": _permute64,
    "v_swap_b32": _swap,
    "v_swap_b16": _swap,
}


def _data_share(instruction: Instruction, raw, store) -> list:
    offset = instruction.get("offset0") | instruction.get("offset1") << 8
    register = instruction.results[0].register
    if instruction.name == "ds_swizzle_b32":
        index = swizzled(offset)
        value = of_lane(instruction.sources[0].register, index)
        return [store("vgpr", register, select(is_active(index), value, const("u32", 0)))]
    index = leaf("u32", "lane_number", raw(instruction.sources[0]) + offset >> 2)
    data = instruction.sources[1].register
    if instruction.name == "ds_bpermute_fi_b32":
        return [store("vgpr", register, of_lane(data, index))]
    if instruction.name == "ds_bpermute_b32":
        return [store("vgpr", register, select(is_active(index), of_lane(data, index), const("u32", 0)))]
    return [store("vgpr", register, leaf("u32", "scatter", index, data))]


def swizzled(offset: int) -> Value:
    """The lane that ds_swizzle reads, within 32 or, for a quad permutation, within four.

    Source: the manuals' pseudocode of DS_SWIZZLE_B32: from 0xe000 on the order of a Fourier transform, from
    0xc000 on a rotation, with bit 15 a permutation of quads, else masks on the lane number.
    """
    here = lane()
    group, place = here & 0xFFFFFFE0, here & 31
    mask = offset & 31
    if offset >= 0xE000:
        reverse = sum(((place >> n & 1) << 4 - n for n in range(5)), const("u32", 0))
        return group | reverse >> mask.bit_count() | place & mask
    if offset >= 0xC000:
        count = offset >> 5 & 31
        return group | place & mask | place + (-count if offset & 0x400 else count) & ~mask & 31
    if offset & 0x8000:
        return here & 0xFFFFFFFC | (const("u32", offset) >> (here & 3) * 2 & 3)
    return group | (place & mask | offset >> 5 & 31) ^ (offset >> 10 & 31)
