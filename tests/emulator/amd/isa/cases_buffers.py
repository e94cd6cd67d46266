"""Buffers: loads, stores and atomics through a resource, in range and beyond.

Source: AMD, "RDNA3 ISA" (2023), "RDNA4 ISA" (2025), "AMD Instinct MI300 ISA" (2024): memory chapters and the
pseudocode of the instructions.
"""

import numpy as np

from tests.emulator.amd.isa.memory_model import (
    DATA,
    GLOBAL,
    HALVES,
    MEMORY,
    OLD,
    OLD_LOADS,
    OLD_STORES,
    SIZES,
    atomic_case,
    lanes_of,
    loaded,
    span,
    stored,
)
from tests.emulator.amd.isa.registers import PROCESSORS, Case, covered


# -- buffers -------------------------------------------------------------------------------------------------
def _buffers(processor: str) -> list[Case]:
    """Raw buffers: loads and stores of every size, the last lanes beyond the end of the buffer."""
    found = []
    lanes, on, mask = lanes_of(processor)
    old, data = OLD[: len(lanes)], [each[: len(lanes)] for each in DATA]
    gfx9 = processor == "gfx942"
    end = 400
    limit = f"s_movk_i32 s14, {end}\ns_movk_i32 s20, 0x10\n{mask}"
    for kind in (*SIZES, *(f"{half}_{each}" for half in ("d16", "d16_hi") for each in HALVES)):
        name = f"buffer_load_{OLD_LOADS[kind] if gfx9 else kind}"
        count = SIZES.get(kind, ("", 1))[1]
        places = (lanes * 4 * max(count, 2) % 480).astype(np.uint32)
        values = loaded(kind, MEMORY, places + 20, old)
        size = 4 if count > 1 or kind == "b32" else {"8": 1, "6": 2}[kind[-1]]
        wanted = {}
        for n, value in enumerate(values):
            offset = places + 4 + 4 * n
            inside = offset < end if gfx9 else offset + size <= end - 16
            empty = {"d16_h": old & 0xFFFF, "d16_": old & 0xFFFF0000}
            out = (
                empty["d16_h"]
                if kind.startswith("d16_hi")
                else empty["d16_"]
                if kind.startswith("d16")
                else 0
            )
            wanted[4 + n] = np.where(on, np.where(inside, value, out), old)
        vgprs = {8: places} | {4 + n: old for n in range(count)}
        line = f"{name} {span('v', 4, count)}, v8, s[12:15], s20 offen offset:4"
        found.append(Case(name, f"{limit}\n{line}", (processor,), vgprs, MEMORY, wanted))
    for kind in OLD_STORES:
        name = f"buffer_store_{OLD_STORES[kind] if gfx9 else kind}"
        count = max(int(kind.rpartition("b")[2]) // 32, 1)
        places = (lanes * 4 * count % 480 if count > 1 else lanes * 7 % 480 & ~3).astype(np.uint32)
        keep = np.unique(places, return_index=True)[1]
        alone = np.isin(lanes, keep)
        places = np.where(alone, places, 1 << 20).astype(np.uint32)  # far beyond the end
        bits = int(kind.rpartition("b")[2])
        written = MEMORY
        for n in range(count):
            offset = places.astype(np.int64) + 4 + 4 * n
            inside = offset < end if gfx9 else offset + min(bits // 8, 4) <= end - 16
            part = kind if count == 1 else "b32"
            written = stored(part, written, (offset + 16) * inside, on & inside, data[n : n + 1])
        vgprs = {8: places} | {4 + n: data[n] for n in range(count)}
        line = f"{name} {span('v', 4, count)}, v8, s[12:15], s20 offen offset:4"
        found.append(Case(name, f"{limit}\n{line}", (processor,), vgprs, MEMORY, {}, written))
    return found + _buffer_atomics(processor) + _structured(processor)


def _buffer_atomics(processor: str) -> list[Case]:
    found = []
    wants = {"gfx1100": "glc", "gfx1201": "th:TH_ATOMIC_RETURN", "gfx942": "sc0"}[processor]
    _, _, mask = lanes_of(processor)
    for each in GLOBAL:
        if processor not in each.processors or (processor, each.name) == ("gfx942", "pk_add_bf16"):
            continue
        words = each.bits // 32
        count = words * (2 if each.order else 1)
        name = f"buffer_atomic_{each.name}"
        made = atomic_case(name, each, processor, "", True, 8)
        line = f"{name} {span('v', 4, count)}, v8, s[12:15], 0 offen {wants}"
        if processor == "gfx1201":
            line = line.replace("], 0 ", "], null ")
        data = {4 + n: made.vgprs[4 + n] for n in range(count)}
        _, on, _ = lanes_of(processor)
        wanted = {
            4 + n: np.where(on, made.memory[n : n + 2 * len(on) : 2], data[4 + n]) for n in range(words)
        }
        vgprs = {8: made.vgprs[8]} | data
        text = f"{mask}\n{line}"
        found.append(Case(name, text, (processor,), vgprs, made.memory, wanted, made.written, made.equal))
    return found


def _structured(processor: str) -> list[Case]:
    """Records of 12 bytes, index and offset from VGPRs, and a swizzled buffer; indices beyond the end."""
    lanes, on, mask = lanes_of(processor)
    old, gfx9 = OLD[: len(lanes)], processor == "gfx942"
    name = "buffer_load_dword" if gfx9 else "buffer_load_b32"
    index = (lanes * 3 % 40).astype(np.uint32)
    offset = (lanes % 3 * 4).astype(np.uint32)
    records, found = 25, []
    select = "" if gfx9 else "s_and_b32 s15, s15, 0xcfffffff\n"  # structured: out of bounds select 0
    setup = f"s_movk_i32 s14, {records}\ns_or_b32 s13, s13, 0xc0000\n{select}"
    place = index * 12 + offset
    inside = index < records
    zero = "null" if processor == "gfx1201" else "0"
    for swizzle in (False, True):
        if swizzle:  # elements of 4 bytes, 16 indices together
            setup += (
                f"s_or_b32 s13, s13, {0x80000000 if gfx9 else 0x40000000:#x}\ns_or_b32 s15, s15, 0x200000\n"
            )
            place = (index // 16 * 12 + offset) * 16 + index % 16 * 4
        value = loaded("b32", MEMORY, np.where(inside, place, 0), old)[0]
        wanted = {4: np.where(on, np.where(inside, value, 0), old)}
        text = f"{setup}{mask}\n{name} v4, v[8:9], s[12:15], {zero} idxen offen"
        vgprs = {8: index, 9: offset, 4: old}
        found.append(Case(f"{name}:structured {swizzle}", text, (processor,), vgprs, MEMORY, wanted))
    return found


PARTS = (_buffers,)
CASES_BUFFERS = tuple(each for processor in PROCESSORS for part in PARTS for each in part(processor))
COVERS = covered(CASES_BUFFERS)
