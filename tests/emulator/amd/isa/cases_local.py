"""Local memory and scratch: loads and stores of every size, two places at once, atomics, loads into it.

Source: AMD, "RDNA3 ISA" (2023), "RDNA4 ISA" (2025), "AMD Instinct MI300 ISA" (2024): memory chapters and the
pseudocode of the instructions.
"""

import numpy as np

from tests.emulator.amd.isa.memory_model import (
    DATA,
    GFX9,
    GFX12,
    GLOBAL,
    HALVES,
    INTEGER,
    MEMORY,
    OLD,
    OLD_LOADS,
    OLD_STORES,
    RDNA,
    SIZES,
    Atomic,
    atomic_case,
    compare_swap,
    compare_swap_f32,
    compare_swap_f64,
    float_function,
    lanes_of,
    loaded,
    packed_function,
    spaced,
    span,
    stored,
    wrapped,
)
from tests.emulator.amd.isa.registers import LANES, MEMORY_WORDS, PROCESSORS, Case, covered, wait


# -- local memory --------------------------------------------------------------------------------------------
def filled(processor: str) -> str:
    """Local memory with the case's memory in it: 16 bytes a lane, twice where a wave has 32 lanes."""
    lines = []
    for n in range(0, 4 * MEMORY_WORDS, 16 * LANES[processor]):
        lines += [f"global_load_dwordx4 v[20:23], v99, s[8:9] offset:{n}", wait(processor)]
        lines.append(f"ds_write_b128 v99, v[20:23] offset:{n}")
    return "\n".join(lines)


def copied(processor: str) -> str:
    """Local memory back into the case's memory."""
    lines = ["s_mov_b64 exec, -1" if processor == "gfx942" else "s_mov_b32 exec_lo, -1"]
    for n in range(0, 4 * MEMORY_WORDS, 16 * LANES[processor]):
        lines += [f"ds_read_b128 v[20:23], v99 offset:{n}", wait(processor)]
        lines.append(f"global_store_dwordx4 v99, v[20:23], s[8:9] offset:{n}")
    return "\n".join(lines)


def local_case(processor: str, name: str, line: str, vgprs: dict, wanted: dict, written=None, **more) -> Case:
    """A case whose memory is copied into LDS before and back afterwards."""
    mask = lanes_of(processor)[2]
    text = "\n".join([filled(processor), mask, line, copied(processor)])
    memory = more.pop("memory", MEMORY)
    return Case(name, text, (processor,), vgprs, memory, wanted, written, **more)


DS_LOADS = {f"d16_{each}": f"{each}_d16" for each in ("u8", "i8")} | {"d16_b16": "u16_d16"}
DS_LOADS |= {f"d16_hi_{each}": f"{each}_d16_hi" for each in ("u8", "i8")} | {"d16_hi_b16": "u16_d16_hi"}


def _local(processor: str) -> list[Case]:
    """Loads and stores of LDS, of one place and of two."""
    found = []
    lanes, on, _ = lanes_of(processor)
    old, data = OLD[: len(lanes)], [each[: len(lanes)] for each in DATA]
    gfx9 = processor == "gfx942"
    for kind in (*SIZES, *DS_LOADS):
        name = f"ds_{'read' if gfx9 else 'load'}_{DS_LOADS.get(kind, kind)}"
        count = SIZES.get(kind, ("", 1))[1]
        places = spaced(processor, 4 * count)
        values = loaded(kind, MEMORY, places + 16, old)
        wanted = {4 + n: np.where(on, value, old) for n, value in enumerate(values)}
        vgprs = {8: places} | {4 + n: old for n in range(count)}
        found.append(
            local_case(processor, name, f"{name} {span('v', 4, count)}, v8 offset:16", vgprs, wanted)
        )
    for kind in OLD_STORES:
        ending = f"{kind.removeprefix('d16_hi_')}_d16_hi" if kind.startswith("d16") else kind
        name = f"ds_{'write' if gfx9 else 'store'}_{ending}"
        count = max(int(kind.rpartition("b")[2]) // 32, 1)
        places = spaced(processor, 4 * count)
        vgprs = {8: places} | {4 + n: data[n] for n in range(count)}
        written = stored(kind, MEMORY, places + 16, on, data)
        found.append(
            local_case(processor, name, f"{name} v8, {span('v', 4, count)} offset:16", vgprs, {}, written)
        )
    for count in (1, 2):
        for far in (False, True):
            found += _two_places(processor, count, far)
    return found


def _two_places(processor: str, count: int, far: bool) -> list[Case]:
    """Two elements at offsets counted in elements, or in 64 of them; of a swap, all is read before."""
    lanes, on, _ = lanes_of(processor)
    gfx9 = processor == "gfx942"
    old, data = OLD[: len(lanes)], [each[: len(lanes)] for each in DATA]
    step = 4 * count * (64 if far else 1)
    first, second = (0, 1) if far else (3, 70 // count)
    places = (lanes * 4 * count % 256).astype(np.uint32)
    at = [places + first * step, places + second * step]
    middle = {(True, False): "2", (True, True): "2st64"}.get((gfx9, far), "_2addr" + ("_stride64" * far))
    ending, kind = f"b{32 * count}", f"b{32 * count}"
    words = [word for place in at for word in loaded(kind, MEMORY, place, old)]
    wanted = {12 + n: np.where(on, word, old) for n, word in enumerate(words)}
    kept = {12 + n: old for n in range(2 * count)}
    offsets = f"offset0:{first} offset1:{second}"
    name = f"ds_{'read' if gfx9 else 'load'}{middle}_{ending}"
    vgprs = {8: places} | kept
    found = [local_case(processor, name, f"{name} {span('v', 12, 2 * count)}, v8 {offsets}", vgprs, wanted)]
    unique = np.unique(places, return_index=True)[1]
    alone = np.zeros(len(lanes), dtype=bool)
    alone[unique] = True
    mask = "\n".join(
        f"s_mov_b32 exec_{part}, {int(sum(1 << n for n in range(32) if (alone & on)[shift:][n])):#x}"
        for part, shift in (("lo", 0), *((("hi", 32),) if len(lanes) == 64 else ()))
    )
    written = MEMORY
    for n, place in enumerate(at):
        written = stored(kind, written, place, on & alone, data[n * count : (n + 1) * count])
    vgprs = {8: places} | {4 + n: data[n] for n in range(2 * count)}
    both = f"{span('v', 4, count)}, {span('v', 4 + count, count)}"
    name = f"ds_{'write' if gfx9 else 'store'}{middle}_{ending}"
    found.append(local_case(processor, name, f"{mask}\n{name} v8, {both} {offsets}", vgprs, {}, written))
    name = f"ds_{'wrxchg' if gfx9 else 'storexchg'}{middle}_rtn_{ending}"
    line = f"{mask}\n{name} {span('v', 12, 2 * count)}, v8, {both} {offsets}"
    wanted = {12 + n: np.where(on & alone, word, old) for n, word in enumerate(words)}
    found.append(local_case(processor, name, line, vgprs | kept, wanted, written))
    return found


def masked_or(old: int, data: int, mask: int) -> int:
    return old & ~mask | data


def wrapped_around(old: int, limit: int, step: int) -> int:
    return (old - step if old >= step else old + limit) % (1 << 32)


def exchanged(old: int, data: int, size: int) -> int:
    """ds_condxchg32: each half where its highest bit is set, without that bit."""
    halves = ((data >> shift & 0xFFFFFFFF, old >> shift & 0xFFFFFFFF) for shift in (0, 32))
    low, high = (new & 0x7FFFFFFF if new >> 31 else kept for new, kept in halves)
    return low | high << 32


def _local_list() -> list[Atomic]:
    """The atomics of LDS; each has a form that returns what was there."""
    found = []
    for name, (_, function) in INTEGER.items():
        if name != "swap_b":
            found += [Atomic(f"{name}{bits}", bits, function) for bits in (32, 64)]
    for bits in (32, 64):
        found.append(Atomic(f"rsub_u{bits}", bits, wrapped(lambda old, data: data - old)))
        found.append(Atomic(f"mskor_b{bits}", bits, masked_or, order="cd"))
        found.append(Atomic(f"storexchg_b{bits}", bits, lambda old, data, size: data, RDNA))
        found.append(Atomic(f"wrxchg_b{bits}", bits, lambda old, data, size: data, GFX9))
        found.append(Atomic(f"cmpstore_b{bits}", bits, compare_swap, RDNA, order="dc"))
        found.append(Atomic(f"cmpst_b{bits}", bits, compare_swap, GFX9, order="cd"))
        for each in ("min", "max"):
            function = float_function(f"f{bits}", each)
            found.append(Atomic(f"{each}_f{bits}", bits, function, ("gfx1100", "gfx942"), f"f{bits}"))
            found.append(Atomic(f"{each}_num_f{bits}", bits, function, GFX12, f"f{bits}"))
    found.append(Atomic("cmpstore_f32", 32, compare_swap_f32, ("gfx1100",), "f32", "dc"))
    found.append(Atomic("cmpst_f32", 32, compare_swap_f32, GFX9, "f32", "cd"))
    found.append(Atomic("cmpstore_f64", 64, compare_swap_f64, ("gfx1100",), "f64", "dc"))
    found.append(Atomic("cmpst_f64", 64, compare_swap_f64, GFX9, "f64", "cd"))
    found.append(Atomic("wrap_b32", 32, wrapped_around, ("gfx1100", "gfx942"), order="cd"))
    found.append(Atomic("add_f32", 32, float_function("f32", "add"), PROCESSORS, "f32"))
    found.append(Atomic("add_f64", 64, float_function("f64", "add"), GFX9, "f64"))
    for kind in ("f16", "bf16"):
        found.append(Atomic(f"pk_add_{kind}", 32, packed_function(kind), ("gfx1201", "gfx942"), kind))
    found.append(Atomic("cond_sub_u32", 32, GLOBAL[-1].combine, GFX12))
    found.append(Atomic("sub_clamp_u32", 32, GLOBAL[-2].combine, GFX12))
    found.append(Atomic("condxchg32_b64", 64, exchanged))
    return found


RETURNS_ONLY = ("storexchg", "wrxchg", "condxchg32", "wrap")


def _local_atomics(processor: str) -> list[Case]:
    found = []
    for each in _local_list():
        if processor not in each.processors:
            continue
        words = each.bits // 32
        data = ", ".join(span("v", 4 + n * words, words) for n in range(2 if each.order else 1))
        action, _, kind = each.name.rpartition("_")
        forms = [(f"ds_{action}_rtn_{kind}", f"{span('v', 12, words)}, ", True)]
        if action not in RETURNS_ONLY:
            forms.append((f"ds_{each.name}", "", False))
        for name, result, returns in forms:
            made = atomic_case(name, each, processor, "", returns, 8)
            line = f"{name} {result}v8, {data}"
            more = {"memory": made.memory, "equal": made.equal}
            found.append(local_case(processor, name, line, made.vgprs, made.expected, made.written, **more))
    return found


def _counted(processor: str) -> list[Case]:
    """ds_append, ds_consume: the number of active lanes; addtid: addresses from M0 and the lane."""
    lanes, on, _ = lanes_of(processor)
    old, found = OLD[: len(lanes)], []
    for name, sign in (("ds_append", 1), ("ds_consume", -1)):
        written = MEMORY.copy()
        written[7] = (int(MEMORY[7]) + sign * int(on.sum())) & 0xFFFFFFFF
        wanted = {12: np.where(on, MEMORY[7], old)}
        line = f"s_movk_i32 m0, 0x10\n{name} v12 offset:12"
        found.append(local_case(processor, name, line, {12: old}, wanted, written))
    load, store = ("read", "write") if processor == "gfx942" else ("load", "store")
    places = 32 + lanes * 4
    wanted = {12: np.where(on, MEMORY[8 : 8 + len(lanes)], old)}
    name = f"ds_{load}_addtid_b32"
    found.append(local_case(processor, name, f"s_movk_i32 m0, 0x10\n{name} v12 offset:16", {12: old}, wanted))
    data = [DATA[0][: len(lanes)]]
    written = stored("b32", MEMORY, places, on, data)
    name = f"ds_{store}_addtid_b32"
    found.append(
        local_case(processor, name, f"s_movk_i32 m0, 0x10\n{name} v4 offset:16", {4: data[0]}, {}, written)
    )
    return found


# -- scratch -------------------------------------------------------------------------------------------------
# how scratch is addressed: by an SGPR, a VGPR, the offset alone, and both registers
SCRATCH_FORMS = ("off, s20", "v8, off", "off, off", "v8, s20")


def _scratch_stores(processor: str) -> list[Case]:
    """Stores to scratch, loaded back."""
    found = []
    lanes, on, mask = lanes_of(processor)
    data = [each[: len(lanes)] for each in DATA]
    gfx9 = processor == "gfx942"
    for number, kind in enumerate(OLD_STORES):
        vector, _, scalar = SCRATCH_FORMS[number % len(SCRATCH_FORMS)].partition(", ")
        count = max(int(kind.rpartition("b")[2]) // 32, 1)
        store = f"scratch_store_{OLD_STORES[kind] if gfx9 else kind}"
        load = f"scratch_load_{'dwordx4' if gfx9 else 'b128'}"
        line = f"{store} {vector}, {span('v', 4, count)}, {scalar} offset:4"
        base = 4 + 16 * (scalar != "off") + (16 if vector != "off" else 0)
        start = np.tile(np.array([d[0] for d in DATA], dtype=np.uint32), 4)
        before = [np.full(len(lanes), start[n], dtype=np.uint32) for n in range(4)]
        lines = [
            "s_movk_i32 s20, 0x10",
            *(f"v_mov_b32 v{20 + n}, {int(start[n]):#x}" for n in range(4)),
            f"scratch_store_{'dwordx4' if gfx9 else 'b128'} off, v[20:23], off offset:{base}",
            mask,
            line,
            "s_mov_b64 exec, -1" if gfx9 else "s_mov_b32 exec_lo, -1",
            f"{load} v[12:15], off, off offset:{base}",
        ]
        after = [word.copy() for word in before]
        for lane in np.flatnonzero(on):
            row = np.array([word[lane] for word in before], dtype=np.uint32)
            row = stored(
                kind,
                row,
                np.zeros(1, dtype=np.uint32),
                np.ones(1, dtype=bool),
                [d[lane : lane + 1] for d in data],
            )
            for n in range(4):
                after[n][lane] = row[n]
        vgprs = {8: np.full(len(lanes), 16, dtype=np.uint32)} | {4 + n: data[n] for n in range(count)}
        wanted = {12 + n: after[n] for n in range(4)}
        found.append(Case(store, "\n".join(lines), (processor,), vgprs, None, wanted))
    return found


def _scratch_loads(processor: str) -> list[Case]:
    """Loads from scratch of what was stored as four dwords."""
    found = []
    lanes, on, mask = lanes_of(processor)
    old, data = OLD[: len(lanes)], [each[: len(lanes)] for each in DATA]
    gfx9 = processor == "gfx942"
    for number, kind in enumerate((*SIZES, *(f"{h}_{each}" for h in ("d16", "d16_hi") for each in HALVES))):
        name = f"scratch_load_{OLD_LOADS[kind] if gfx9 else kind}"
        count = SIZES.get(kind, ("", 1))[1]
        vector, _, scalar = SCRATCH_FORMS[number % len(SCRATCH_FORMS)].partition(", ")
        base = 4 + 16 * (scalar != "off") + 16 * (vector != "off")
        lines = [
            "s_movk_i32 s20, 0x10",
            f"scratch_store_{'dwordx4' if gfx9 else 'b128'} off, v[4:7], off offset:{base}",
            mask,
            f"{name} {span('v', 12, count)}, {vector}, {scalar} offset:4",
        ]
        values = [np.zeros(len(lanes), dtype=np.uint32) for _ in range(count)]
        for lane in lanes:
            row = np.array([d[lane] for d in data], dtype=np.uint32)
            for n, word in enumerate(loaded(kind, row, np.zeros(1, dtype=np.uint32), old[lane : lane + 1])):
                values[n][lane] = word[0]
        vgprs = {8: np.full(len(lanes), 16, dtype=np.uint32)} | {4 + n: data[n] for n in range(4)}
        vgprs |= {12 + n: old for n in range(count)}
        wanted = {12 + n: np.where(on, word, old) for n, word in enumerate(values)}
        found.append(Case(name, "\n".join(lines), (processor,), vgprs, None, wanted))
    return found


def _into_lds(processor: str) -> list[Case]:
    """gfx942: a dword of LDS for each lane, at M0, the instruction's offset and four times the lane."""
    if processor != "gfx942":
        return []
    lanes, on, _ = lanes_of(processor)
    found = []
    places = (lanes[::-1] * 8).astype(np.uint32)
    for kind in ("u8", "i8", "u16", "i16", "b32"):
        value = loaded(kind, MEMORY, places + 4, OLD)[0]
        written = stored("b32", MEMORY, 36 + lanes * 4, on, [value])
        for name, line in (
            (f"global_load_lds_{OLD_LOADS[kind]}", "v8, s[8:9] offset:4"),
            (f"buffer_load_{OLD_LOADS[kind]}", "v8, s[12:15], 0 offen offset:4 lds"),
        ):
            text = f"s_movk_i32 m0, 0x20\n{name} {line}"
            found.append(local_case(processor, f"{name}:lds", text, {8: places}, {}, written))
        value = loaded(kind, DATA[0], lanes * 4, OLD)[0]
        written = stored("b32", MEMORY, 36 + lanes * 4, on, [value])
        name = f"scratch_load_lds_{OLD_LOADS[kind]}"
        text = f"scratch_store_dword off, v4, off offset:4\ns_movk_i32 m0, 0x20\n{name} off, off offset:4"
        found.append(local_case(processor, name, text, {4: DATA[0]}, {}, written))
    return found


PARTS = (_local, _local_atomics, _counted, _scratch_stores, _scratch_loads, _into_lds)
CASES_LOCAL = tuple(each for processor in PROCESSORS for part in PARTS for each in part(processor))
COVERS = covered(CASES_LOCAL)
