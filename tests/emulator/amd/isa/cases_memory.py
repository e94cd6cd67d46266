"""Flat, global and scalar memory instructions: loads and stores of every size, atomics.

Source: AMD, "RDNA3 ISA" (2023), "RDNA4 ISA" (2025), "AMD Instinct MI300 ISA" (2024): memory chapters and the
pseudocode of the instructions.
"""

import numpy as np

from tests.emulator.amd.isa.memory_model import (
    DATA,
    GFX9,
    GLOBAL,
    HALVES,
    MEMORY,
    OLD,
    OLD_LOADS,
    OLD_STORES,
    SIZES,
    Space,
    atomic_case,
    lanes_of,
    loaded,
    spaced,
    span,
    stored,
)
from tests.emulator.amd.isa.registers import PROCESSORS, Case, covered

FORMS = {  # name -> (text before, operands of the address, offset in bytes, whether the base is in v8)
    "flat": (True, "v[8:9]", ""),
    "global": (False, "v8, s[8:9]", " offset:20"),
    "global:vector": (True, "v[8:9], off", " offset:-12"),
}


def _flat(processor: str) -> list[Case]:
    found = []
    lanes, on, mask = lanes_of(processor)
    for form, (based, operands, after) in FORMS.items():
        space = form.partition(":")[0]
        offset = int(after.rpartition(":")[2] or 0)
        before = "\n".join([*(Space(space, processor).base() if based else []), mask])
        for kind in (*SIZES, *(f"{half}_{each}" for half in ("d16", "d16_hi") for each in HALVES)):
            name = f"{space}_load_{OLD_LOADS[kind] if processor == 'gfx942' else kind}"
            count = SIZES.get(kind, ("", 1))[1]
            places = spaced(processor, 4 * count) + 32 - offset
            values = loaded(kind, MEMORY, places + offset, OLD[: len(lanes)])
            wanted = {4 + n: np.where(on, value, OLD[: len(lanes)]) for n, value in enumerate(values)}
            text = f"{before}\n{name} {span('v', 4, count)}, {operands}{after}"
            vgprs = {8: places} | {4 + n: OLD[: len(lanes)] for n in range(count)}
            found.append(Case(f"{name}:{form}", text, (processor,), vgprs, MEMORY, wanted))
        for kind in OLD_STORES:
            name = f"{space}_store_{OLD_STORES[kind] if processor == 'gfx942' else kind}"
            count = max(int(kind.rpartition("b")[2]) // 32, 1)
            places = spaced(processor, 4 * count) + 32 - offset
            data = [each[: len(lanes)] for each in DATA]
            address, _, rest = operands.partition(", ")
            line = f"{name} {address}, {span('v', 4, count)}{', ' + rest if rest else ''}{after}"
            vgprs = {8: places} | {4 + n: data[n] for n in range(count)}
            written = stored(kind, MEMORY, places + offset, on, data)
            found.append(
                Case(f"{name}:{form}", f"{before}\n{line}", (processor,), vgprs, MEMORY, {}, written)
            )
    return found


def _atomics(processor: str) -> list[Case]:
    """Flat and global atomics, with what was there returned and without."""
    found = []
    _, _, mask = lanes_of(processor)
    based = "\n".join([*Space("flat", processor).base(), mask])
    wants = {"gfx1100": "glc", "gfx1201": "th:TH_ATOMIC_RETURN", "gfx942": "sc0"}[processor]
    for each in GLOBAL:
        if processor not in each.processors:
            continue
        count = each.bits // 32 * (2 if each.order else 1)
        data, result = span("v", 4, count), span("v", 12, each.bits // 32)
        for space, address, last in (("global", "v8", ", s[8:9]"), ("flat", "v[8:9]", "")):
            name = f"{space}_atomic_{each.name}"
            if space == "flat" and each.name in ("csub_u32",):
                continue
            before = based if space == "flat" else mask
            line = f"{name} {address}, {data}{last}"
            if each.name != "csub_u32":
                found.append(atomic_case(name, each, processor, f"{before}\n{line}", False, 8))
            line = f"{name} {result}, {address}, {data}{last} {wants}"
            found.append(atomic_case(f"{name}:returns", each, processor, f"{before}\n{line}", True, 8))
    return found


def _by_lane(processor: str) -> list[Case]:
    """global_*_addtid: a dword for each lane, one behind the other."""
    if processor == "gfx942":
        return []
    lanes, on, mask = lanes_of(processor)
    old, data = OLD[:32], [each[:32] for each in DATA]
    return [
        Case(
            "global_load_addtid_b32",
            f"{mask}\nglobal_load_addtid_b32 v12, s[8:9] offset:16",
            (processor,),
            {12: old},
            MEMORY,
            {12: np.where(on, MEMORY[4:36], old)},
        ),
        Case(
            "global_store_addtid_b32",
            f"{mask}\nglobal_store_addtid_b32 v4, s[8:9] offset:16",
            (processor,),
            {4: data[0]},
            MEMORY,
            {},
            stored("b32", MEMORY, 16 + lanes * 4, on, data),
        ),
    ]


def _blocks(processor: str) -> list[Case]:
    """Blocks of registers that M0 chooses."""
    if processor != "gfx1201":
        return []
    lanes, on, mask = lanes_of(processor)
    old, data, found = OLD[:32], [each[:32] for each in DATA], []
    places = (lanes * 16).astype(np.uint32)
    chosen = {n: np.where(on, loaded("b32", MEMORY, places + 4 * n, old)[0], old) for n in (0, 2, 3)}
    vgprs = {20 + n: old for n in range(4)} | {8: places}
    block = "s_mov_b32 m0, 13\n" + mask
    wanted = {20 + n: chosen.get(n, old) for n in range(4)}
    line = f"{block}\nglobal_load_block v[20:51], v8, s[8:9]"
    found.append(Case("global_load_block", line, (processor,), vgprs, MEMORY, wanted))
    written = MEMORY
    for n in (0, 2, 3):
        written = stored("b32", written, places + 4 * n, on, [data[n]])
    vgprs = {20 + n: data[n] for n in range(4)} | {8: places}
    line = f"{block}\nglobal_store_block v8, v[20:51], s[8:9]"
    found.append(Case("global_store_block", line, (processor,), vgprs, MEMORY, {}, written))
    lines = [
        block,
        "scratch_store_block off, v[20:51], off offset:4",
        "scratch_load_b128 v[12:15], off, off offset:4",
        "v_mov_b32 v16, 5\nv_mov_b32 v17, 6\nv_mov_b32 v18, 7\nv_mov_b32 v19, 8",
    ]
    wanted = {12 + n: np.where(on, data[n], old) for n in (0, 2, 3)}
    vgprs = {20 + n: data[n] for n in range(4)} | {12 + n: old for n in range(4)}
    found.append(Case("scratch_store_block", "\n".join(lines), (processor,), vgprs, None, wanted))
    lines = [
        "scratch_store_b128 off, v[4:7], off offset:4",
        block,
        "scratch_load_block v[20:51], off, off offset:4",
    ]
    vgprs = {4 + n: data[n] for n in range(4)} | {20 + n: old for n in range(4)}
    wanted = {20 + n: np.where(on, data[n], old) if n != 1 else old for n in range(4)}
    found.append(Case("scratch_load_block", "\n".join(lines), (processor,), vgprs, None, wanted))
    return found


# -- scalar memory -------------------------------------------------------------------------------------------
def _scalar(processor: str) -> list[Case]:
    """Loads through pointers and buffers, beyond the end too; gfx942: stores and atomics."""
    gfx9, found = processor == "gfx942", []
    sizes = {"b32": 1, "b64": 2, "b128": 4, "b256": 8, "b512": 16} | (
        {"b96": 3} if processor == "gfx1201" else {}
    )
    old_names = dict(zip(sizes, ("dword", "dwordx2", "dwordx4", "dwordx8", "dwordx16"), strict=False))
    zero = 0 if gfx9 else "null"
    for kind, count in sizes.items():
        words = MEMORY[5 : 5 + count]
        show = "\n".join(f"v_mov_b32 v{12 + n}, s{24 + n}" for n in range(min(count, 12)))
        wanted = {12 + n: np.uint32(words[n]) for n in range(min(count, 12))}
        name = f"s_load_{old_names[kind] if gfx9 else kind}"
        line = f"{name} {span('s', 24, count)}, s[8:9], 0x14\n{show}"
        found.append(Case(name, line, (processor,), {}, MEMORY, wanted))
        line = f"s_movk_i32 s20, 0x10\n{name} {span('s', 24, count)}, s[8:9], s20 offset:4\n{show}"
        found.append(Case(f"{name}:sgpr", line, (processor,), {}, MEMORY, wanted))
        name = f"s_buffer_load_{old_names[kind] if gfx9 else kind}"
        end = {12 + n: np.uint32(words[n] if 5 + n < 8 else 0) for n in range(min(count, 12))}
        line = f"s_movk_i32 s14, 32\n{name} {span('s', 24, count)}, s[12:15], 0x14\n{show}"
        found.append(Case(name, line, (processor,), {}, MEMORY, end))
    if processor == "gfx1201":
        for kind in ("u8", "i8", "u16", "i16"):
            value = loaded(kind, MEMORY, np.array([22]), OLD[:1])[0]
            for name, base in ((f"s_load_{kind}", "s[8:9]"), (f"s_buffer_load_{kind}", "s[12:15]")):
                line = f"{name} s24, {base}, 0x16\nv_mov_b32 v12, s24"
                found.append(Case(name, line, (processor,), {}, MEMORY, {12: value[0]}))
        for name in ("s_prefetch_data s[8:9]", "s_prefetch_inst s[8:9]", "s_buffer_prefetch_data s[12:15]"):
            found.append(Case(name.partition(" ")[0], f"{name}, 0x10, null, 3", (processor,), {}, MEMORY))
        for name in ("s_prefetch_data_pc_rel", "s_prefetch_inst_pc_rel"):
            found.append(Case(name, f"{name} 0x10, null, 3", (processor,), {}, MEMORY))
    return found + (_scalar_writes(zero) if gfx9 else [])


def _unseen(processor: str) -> list[Case]:
    """Probes and what only tells the cache: nothing changes."""
    lines = ["s_atc_probe 1, s[8:9], 0x10", "s_atc_probe_buffer 1, s[12:15], 0x10"]
    if processor == "gfx942":
        lines += ["s_dcache_discard s[8:9], 0x0", "s_dcache_discard_x2 s[8:9], 0x40"]
    return [Case(line.partition(" ")[0], line, (processor,), {}, MEMORY) for line in lines]


def _scalar_writes(zero) -> list[Case]:
    found = []
    values = [0x11, 0x80000022, 0x33, 0x44]
    setup = "\n".join(f"s_mov_b32 s{24 + n}, {value:#x}" for n, value in enumerate(values))
    for size, count in (("dword", 1), ("dwordx2", 2), ("dwordx4", 4)):
        for name, base in ((f"s_store_{size}", "s[8:9]"), (f"s_buffer_store_{size}", "s[12:15]")):
            written = MEMORY.copy()
            written[6 : 6 + count] = values[:count]
            line = f"{setup}\n{name} {span('s', 24, count)}, {base}, 0x18"
            found.append(Case(name, line, GFX9, {}, MEMORY, {}, written))
    for each in GLOBAL:
        if each.processors != GFX9 or each.kind:
            continue
        words = each.bits // 32
        count = words * (2 if each.order else 1)
        numbers = [
            sum(values[n * words + m] << 32 * m for m in range(words)) for n in range(2 if each.order else 1)
        ]
        memory = MEMORY.copy()
        if each.order:
            memory[6 : 6 + words] = values[words : 2 * words]
        old = sum(int(memory[6 + n]) << 32 * n for n in range(words))
        new = each.combine(old, numbers[0], numbers[1] if each.order else 1 << each.bits)
        written = memory.copy()
        written[6 : 6 + words] = [new >> 32 * n & 0xFFFFFFFF for n in range(words)]
        wanted = {12 + n: np.uint32(old >> 32 * n & 0xFFFFFFFF) for n in range(words)}
        show = "\n".join(f"v_mov_b32 v{12 + n}, s{24 + n}" for n in range(words))
        for name, base in ((f"s_atomic_{each.name}", "s[8:9]"), (f"s_buffer_atomic_{each.name}", "s[12:15]")):
            line = f"{setup}\n{name} {span('s', 24, count)}, {base}, 0x18 glc\n{show}"
            found.append(Case(name, line, GFX9, {}, memory, wanted, written))
    return found


PARTS = (_flat, _atomics, _by_lane, _blocks, _scalar, _unseen)
CASES_MEMORY = tuple(each for processor in PROCESSORS for part in PARTS for each in part(processor))
COVERS = covered(CASES_MEMORY)
