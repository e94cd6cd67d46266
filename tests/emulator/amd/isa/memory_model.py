"""What memory instructions do, written a second time with numpy, for the cases of each space.

Source: AMD, "RDNA3 ISA" (2023), "RDNA4 ISA" (2025), "AMD Instinct MI300 ISA" (2024): memory chapters and the
pseudocode of the instructions.
"""

from collections.abc import Callable

import numpy as np

from tests.emulator.amd.isa.registers import LANES, MEMORY_WORDS, PROCESSORS, Case

RDNA, GFX12, GFX9 = ("gfx1100", "gfx1201"), ("gfx1201",), ("gfx942",)
MEMORY = (np.arange(MEMORY_WORDS, dtype=np.uint32) * 0x9E3779B1 ^ 0x8421_7BDE).astype(np.uint32)
OLD = np.arange(64, dtype=np.uint32) | 0xABC0_0000
DATA = [
    (np.arange(64, dtype=np.uint64) * 0x01234567 + 0x80F0_00F1 * (n + 1)).astype(np.uint32) for n in range(4)
]
SOME = 0xF0F7_77EE_3C5A_F1E7  # active lanes


def lanes_of(processor: str) -> tuple[np.ndarray, np.ndarray, str]:
    """(numbers of the lanes, which are active, text that makes them so)."""
    lanes = np.arange(LANES[processor])
    on = np.array([SOME >> int(lane) & 1 for lane in lanes], dtype=bool)
    text = f"s_mov_b32 exec_lo, {SOME & 0xFFFFFFFF:#x}"
    return lanes, on, text + (f"\ns_mov_b32 exec_hi, {SOME >> 32:#x}" if len(lanes) == 64 else "")


def octets(words: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(words).view(np.uint8)


# -- sizes ---------------------------------------------------------------------------------------------------
# type -> (numpy's, dwords of registers); "d16" and "d16_hi" keep the other half
SIZES = {"u8": ("u1", 1), "i8": ("i1", 1), "u16": ("u2", 1), "i16": ("i2", 1)} | {
    f"b{32 * n}": ("u4", n) for n in range(1, 5)
}
HALVES = {"u8": "u1", "i8": "i1", "b16": "u2"}
OLD_LOADS = {
    "u8": "ubyte",
    "i8": "sbyte",
    "u16": "ushort",
    "i16": "sshort",
    "b32": "dword",
    "b64": "dwordx2",
    "b96": "dwordx3",
    "b128": "dwordx4",
    "d16_u8": "ubyte_d16",
    "d16_i8": "sbyte_d16",
    "d16_b16": "short_d16",
    "d16_hi_u8": "ubyte_d16_hi",
    "d16_hi_i8": "sbyte_d16_hi",
    "d16_hi_b16": "short_d16_hi",
}
OLD_STORES = {
    "b8": "byte",
    "b16": "short",
    "d16_hi_b8": "byte_d16_hi",
    "d16_hi_b16": "short_d16_hi",
    "b32": "dword",
    "b64": "dwordx2",
    "b96": "dwordx3",
    "b128": "dwordx4",
}


def span(prefix: str, first: int, count: int) -> str:
    return f"{prefix}{first}" if count == 1 else f"{prefix}[{first}:{first + count - 1}]"


def loaded(kind: str, memory: np.ndarray, places: np.ndarray, old: np.ndarray) -> list[np.ndarray]:
    """What a load of that kind gives each lane: one array for each register."""
    half = next((each for each in ("d16_hi_", "d16_") if kind.startswith(each)), "")
    dtype, count = (HALVES[kind.removeprefix(half)], 1) if half else SIZES[kind]
    size, found = np.dtype(dtype).itemsize, []
    for n in range(count):
        raw = np.stack([octets(memory)[places + 4 * n + m] for m in range(size)], axis=1)
        value = raw.copy().view(dtype).reshape(-1).astype(np.int64) & 0xFFFFFFFF
        if half:
            value = value & 0xFFFF
            value = old & 0xFFFF | value << 16 if half == "d16_hi_" else old & 0xFFFF0000 | value
        found.append(value.astype(np.uint32))
    return found


def stored(kind: str, memory: np.ndarray, places: np.ndarray, on: np.ndarray, data) -> np.ndarray:
    """The memory after a store of that kind."""
    after = octets(memory.copy())
    shift = 16 if kind.startswith("d16_hi_") else 0
    bits = int(kind.rpartition("b")[2])
    for lane in np.flatnonzero(on):
        for n in range(bits // 8):
            word = int(data[n // 4][lane]) >> shift
            after[places[lane] + n] = word >> 8 * (n % 4) & 255
    return after.view(np.uint32)


class Space:
    """How one space is addressed in a case: registers v8 and v9 hold addresses or offsets, v4 ... v7 data.

    prepare   text that brings the addresses about
    address   operands between data and modifiers       places  bytes from the start of the memory, per lane
    local     local memory or scratch: filled from the memory before, copied back to it afterwards
    """

    def __init__(self, name: str, processor: str):
        self.name, self.processor = name, processor
        self.lanes, self.on, self.mask = lanes_of(processor)

    def base(self) -> list[str]:
        """v[8:9]: the address of the memory and of this lane's places in it."""
        add = (
            "v_add_co_u32 v8, vcc, s8, v8"
            if self.processor == "gfx942"
            else "v_add_co_u32 v8, vcc_lo, s8, v8"
        )
        carry = (
            "v_addc_co_u32 v9, vcc, 0, v9, vcc"
            if self.processor == "gfx942"
            else "v_add_co_ci_u32 v9, vcc_lo, 0, v9, vcc_lo"
        )
        return ["v_mov_b32 v9, s9", add, carry]


def spaced(processor: str, width: int) -> np.ndarray:
    """Places of the lanes: apart, the last ones first, within 512 bytes."""
    lanes = np.arange(LANES[processor])
    step = max(width, 4)
    return lanes[::-1] * step % (4 * MEMORY_WORDS - 64)


# -- atomics -------------------------------------------------------------------------------------------------
def wrapped(function: Callable) -> Callable:
    """On Python's integers: (old, data, limit) -> new."""
    return lambda old, data, size: function(old, data) % size


def as_signed(value: int, size: int) -> int:
    return value - size if value >= size // 2 else value


INTEGER = {  # the gfx11 name -> (the gfx9 name, function of (old, data, 2 ** bits))
    "swap_b": ("swap", lambda old, data, size: data),
    "add_u": ("add", wrapped(lambda old, data: old + data)),
    "sub_u": ("sub", wrapped(lambda old, data: old - data)),
    "min_i": ("smin", lambda old, data, size: min(old, data, key=lambda each: as_signed(each, size))),
    "min_u": ("umin", lambda old, data, size: min(old, data)),
    "max_i": ("smax", lambda old, data, size: max(old, data, key=lambda each: as_signed(each, size))),
    "max_u": ("umax", lambda old, data, size: max(old, data)),
    "and_b": ("and", lambda old, data, size: old & data),
    "or_b": ("or", lambda old, data, size: old | data),
    "xor_b": ("xor", lambda old, data, size: old ^ data),
    "inc_u": ("inc", lambda old, data, size: 0 if old >= data else old + 1),
    "dec_u": ("dec", lambda old, data, size: data if old == 0 or old > data else old - 1),
}


def quiet(value, kind) -> int:
    """A NaN's bits with the quiet bit."""
    return int(value) | {"f32": 1 << 22, "f64": 1 << 51}[kind]


def float_function(kind: str, operation: str) -> Callable:
    """min and max by the manual's order of NaN, zeros and the rest; add in numpy. On bits."""
    dtype, unsigned = {"f32": (np.float32, np.uint32), "f64": (np.float64, np.uint64)}[kind]
    sign = 1 << (31 if kind == "f32" else 63)

    def value(bits: int):
        return np.array(bits, dtype=unsigned).view(dtype)[()]

    def signalling(bits: int) -> bool:
        return bool(np.isnan(value(bits))) and not bits >> (22 if kind == "f32" else 51) & 1

    def order(bits: int) -> tuple:
        return (float(value(bits)), 0 if bits & sign else 1)

    def combine(old: int, data: int, size: int) -> int:
        if operation == "add":
            with np.errstate(all="ignore"):
                return int(np.array(value(old) + value(data), dtype=dtype).view(unsigned))
        for each in (old, data):
            if signalling(each):
                return quiet(each, kind)
        if np.isnan(value(old)):
            return data
        if np.isnan(value(data)):
            return old
        return (min if operation == "min" else max)(old, data, key=order)

    return combine


def packed_function(kind: str) -> Callable:
    """Two additions of halves."""

    def one(old: int, data: int) -> int:
        with np.errstate(all="ignore"):
            if kind == "f16":
                a, b = (np.array(each, dtype=np.uint16).view(np.float16) for each in (old, data))
                return int((a + b).astype(np.float16).view(np.uint16))
            a, b = (np.array(each << 16, dtype=np.uint32).view(np.float32) for each in (old, data))
            word = int((a + b).view(np.uint32))
            return (
                word >> 16
                if word & 0x7FFFFFFF > 0x7F800000
                else word + 0x7FFF + (word >> 16 & 1) >> 16 & 0xFFFF
            )

    return lambda old, data, size: one(old & 0xFFFF, data & 0xFFFF) | one(old >> 16, data >> 16) << 16


FLOAT_BITS = {
    "f32": np.array(
        [0x3F800000, 0xBFC00000, 0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00001, 0x7F800001, 1, 0x80000003]
        + [0x42280000, 0xC2F6E979],
        dtype=np.uint64,
    ),
    "f64": np.array(
        [
            0x3FF0 << 48,
            0xBFF8 << 48,
            0,
            1 << 63,
            0x7FF0 << 48,
            0xFFF0 << 48,
            0x7FF8 << 48 | 1,
            0x7FF0 << 48 | 1,
        ]
        + [1, 1 << 63 | 3, 0x4045 << 48, 0xC05E << 48],
        dtype=np.uint64,
    ),
    "f16": np.array(
        [0x3C00BE00, 0x80007C00, 0xFC007E00, 0x00018003, 0x5140C900, 0x7BFF7BFF], dtype=np.uint64
    ),
    "bf16": np.array(
        [0x3F80BFC0, 0x80007F80, 0xFF807FC0, 0x00018003, 0x4228C2F6, 0x7F7F7F7F], dtype=np.uint64
    ),
}


def same_float(kind: str) -> Callable:
    """Equal words, or all halves or words that differ are NaN; of f64 the high words tell."""

    def equal(mine: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        same = mine == wanted
        if kind in ("f16", "bf16"):
            top = 0x7C00 if kind == "f16" else 0x7F80
            fine = np.ones(mine.shape, dtype=bool)
            for shift in (0, 16):
                a, b = mine >> shift & 0xFFFF, wanted >> shift & 0xFFFF
                fine &= (a == b) | (a & 0x7FFF > top) & (b & 0x7FFF > top)
            return fine
        nan = 0x7FF00000 if kind == "f64" else 0x7F800000
        return same | (mine & 0x7FFFFFFF > nan) & (wanted & 0x7FFFFFFF > nan)

    return equal


class Atomic:
    """An atomic: its name behind `atomic_` or `ds_`, its bits and what it writes. order: of the operands of a
    compare-and-swap, the data first ("dc") or last ("cd").
    """

    def __init__(self, name: str, bits: int, combine: Callable, processors=PROCESSORS, kind="", order=""):
        self.name, self.bits, self.combine, self.processors = name, bits, combine, processors
        self.kind, self.order = kind, order


def compare_swap(old: int, data: int, compare: int) -> int:
    return data if old == compare else old


def compare_swap_f32(old: int, data: int, compare: int) -> int:
    a, b = (np.array(each, dtype=np.uint32).view(np.float32)[()] for each in (old, compare))
    return data if a == b else old


def compare_swap_f64(old: int, data: int, compare: int) -> int:
    a, b = (np.array(each, dtype=np.uint64).view(np.float64)[()] for each in (old, compare))
    return data if a == b else old


GLOBAL = [
    *(
        Atomic(f"{name}{bits}", bits, function, RDNA)
        for name, (_, function) in INTEGER.items()
        for bits in (32, 64)
    ),
    *(
        Atomic(f"{old}{'_x2' if bits == 64 else ''}", bits, function, GFX9)
        for old, function in INTEGER.values()
        for bits in (32, 64)
    ),
    Atomic("cmpswap_b32", 32, compare_swap, RDNA, order="dc"),
    Atomic("cmpswap_b64", 64, compare_swap, RDNA, order="dc"),
    Atomic("cmpswap", 32, compare_swap, GFX9, order="dc"),
    Atomic("cmpswap_x2", 64, compare_swap, GFX9, order="dc"),
    Atomic("cmpswap_f32", 32, compare_swap_f32, ("gfx1100",), "f32", "dc"),
    Atomic("add_f32", 32, float_function("f32", "add"), PROCESSORS, "f32"),
    Atomic("min_f32", 32, float_function("f32", "min"), ("gfx1100",), "f32"),
    Atomic("max_f32", 32, float_function("f32", "max"), ("gfx1100",), "f32"),
    Atomic("min_num_f32", 32, float_function("f32", "min"), GFX12, "f32"),
    Atomic("max_num_f32", 32, float_function("f32", "max"), GFX12, "f32"),
    *(Atomic(f"{each}_f64", 64, float_function("f64", each), GFX9, "f64") for each in ("add", "min", "max")),
    *(
        Atomic(f"pk_add_{kind}", 32, packed_function(kind), ("gfx1201", "gfx942"), kind)
        for kind in ("f16", "bf16")
    ),
    Atomic("csub_u32", 32, lambda old, data, size: max(old - data, 0), ("gfx1100",)),
    Atomic("sub_clamp_u32", 32, lambda old, data, size: max(old - data, 0), GFX12),
    Atomic("cond_sub_u32", 32, lambda old, data, size: old - data if old >= data else old, GFX12),
]


def words_of(values: np.ndarray, bits: int) -> list[np.ndarray]:
    values = values.astype(np.uint64)
    return [(values >> np.uint64(shift)).astype(np.uint32) for shift in range(0, bits, 32)]


def atomic_inputs(each: Atomic, count: int) -> list[np.ndarray]:
    """What is in memory, the data and for a swap what it is compared with, one value for each lane."""
    rng = np.random.default_rng(each.bits + len(each.name))
    if each.kind:
        pool = FLOAT_BITS[each.kind]
        lanes = np.arange(count)
        old, data = pool[lanes % len(pool)], pool[lanes // 3 * 5 % len(pool)]
        return [
            old,
            data,
            np.where(lanes % 3 == 0, old ^ ((old << np.uint64(1)) == 0) * np.uint64(1 << 31), data),
        ]
    top = (1 << each.bits) - 1
    old, data, other = (rng.integers(0, top, count, dtype=np.uint64, endpoint=True) for _ in range(3))
    old[::5], data[::4], old[1::7] = 0, 3, data[1::7]
    old[2::9] = 5
    return [old, data, np.where(np.arange(count) % 2, old, other)]


def atomic_case(name: str, each: Atomic, processor: str, text: str, returns: bool, memory_step: int) -> Case:
    """`text` is the whole program; v4 and up hold the data, v8 the places, v12 and up get what was there."""
    lanes, on, _ = lanes_of(processor)
    old, data, compare = atomic_inputs(each, len(lanes))
    third = compare if each.order else np.full(len(lanes), float(1 << each.bits), dtype=object)
    new = [
        each.combine(int(a), int(b), int(c)) if active else int(a)
        for a, b, c, active in zip(old, data, third, on, strict=True)
    ]
    memory, written = MEMORY.copy(), MEMORY.copy()
    step = memory_step // 4
    for array, values in ((memory, old), (written, np.array(new, dtype=np.uint64))):
        for n, words in enumerate(words_of(values, each.bits)):
            array[n : n + step * len(lanes) : step] = words
    operands = [data, compare] if each.order == "dc" else [compare, data] if each.order else [data]
    vgprs = {8: (lanes * memory_step).astype(np.uint32)}
    registers = [words for values in operands for words in words_of(values, each.bits)]
    vgprs |= {4 + n: words for n, words in enumerate(registers)}
    wanted = {}
    if returns:
        kept = [OLD[: len(lanes)] for _ in range(each.bits // 32)]
        vgprs |= {12 + n: words for n, words in enumerate(kept)}
        wanted = {12 + n: np.where(on, words, kept[n]) for n, words in enumerate(words_of(old, each.bits))}
    equal = same_float(each.kind) if each.kind else np.equal
    return Case(name, text, (processor,), vgprs, memory, wanted, written, equal)
