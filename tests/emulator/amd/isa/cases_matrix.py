"""Matrix instructions: for each one the places of its elements, as AMD's Matrix Instruction Calculator prints
them (--detail-instruction), and products of small integers, which every order of additions gives exactly.

Also AMD, "RDNA3 ISA" 7.9, "RDNA4 ISA" 7.12, "AMD Instinct MI300 ISA" 7.1.
"""

import re
import zlib
from typing import NamedTuple

import numpy as np

from tests.emulator.amd.isa.registers import LANES, Case, covered

A, B, C, INDEX = 20, 40, 60, 56  # first registers
WIDTH = {"f64": 64, "f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "iu4": 4} | dict.fromkeys(
    ("iu8", "i8", "fp8", "bf8"), 8
)
PAIRS = ("fp8_fp8", "fp8_bf8", "bf8_fp8", "bf8_bf8")
WMMA = (
    "f32_16x16x16_f16 f32_16x16x16_bf16 f16_16x16x16_f16 bf16_16x16x16_bf16 "
    "i32_16x16x16_iu8 i32_16x16x16_iu4"
)
NAMES = {
    "gfx1100": [f"v_wmma_{name}" for name in WMMA.split()],
    "gfx1201": [
        *(f"v_wmma_{name}" for name in WMMA.split()),
        "v_wmma_i32_16x16x32_iu4",
        *(f"v_wmma_f32_16x16x16_{pair}" for pair in PAIRS),
        *(f"v_swmmac_{t}_16x16x32_{kind}" for kind in ("f16", "bf16") for t in ("f32", kind)),
        *("v_swmmac_i32_16x16x32_iu8", "v_swmmac_i32_16x16x32_iu4", "v_swmmac_i32_16x16x64_iu4"),
        *(f"v_swmmac_f32_16x16x32_{pair}" for pair in PAIRS),
    ],
    "gfx942": [
        *("v_mfma_f32_16x16x8_xf32", "v_mfma_f32_32x32x4_xf32"),
        *(f"v_mfma_f32_{size}_f32" for size in "32x32x1_2b 16x16x1_4b 4x4x1_16b 32x32x2 16x16x4".split()),
        *(
            f"v_mfma_f32_{size}_{kind}"
            for kind in ("f16", "bf16")
            for size in "32x32x4_2b 16x16x4_4b 4x4x4_16b 32x32x8 16x16x16".split()
        ),
        *(f"v_mfma_i32_{size}_i8" for size in "32x32x4_2b 16x16x4_4b 4x4x4_16b 32x32x16 16x16x32".split()),
        *("v_mfma_f64_16x16x4_f64", "v_mfma_f64_4x4x4_4b_f64"),
        *(f"v_mfma_f32_{size}_{pair}" for size in ("16x16x32", "32x32x16") for pair in PAIRS),
        *(f"v_smfmac_f32_{size}_{kind}" for size in ("16x16x32", "32x32x16") for kind in ("f16", "bf16")),
        *("v_smfmac_i32_16x16x64_i8", "v_smfmac_i32_32x32x32_i8"),
        *(f"v_smfmac_f32_{size}_{pair}" for size in ("16x16x64", "32x32x32") for pair in PAIRS),
    ],
}


class Matrix(NamedTuple):
    """The facts that an instruction's name holds."""

    family: str
    a: str
    b: str
    result: str
    side: int
    depth: int
    blocks: int
    sparse: bool


def matrix(processor: str, name: str) -> Matrix:
    kind, result, side, depth, blocks, types = re.fullmatch(
        r"v_(\w+?)_(\w+?)_(\d+)x\d+x(\d+)(_\d+b)?_(\w+)", name
    ).groups()
    a, _, b = types.partition("_")
    count = int(blocks[1:-1]) if blocks else 1
    sparse = kind in ("smfmac", "swmmac")
    return Matrix(processor, a, b or a, result, int(side), int(depth), count, sparse)


# -- where elements are --------------------------------------------------------------------------------------
def input_place(m: Matrix, i: int, k: int, block: int, held: int) -> tuple[int, int]:
    """(lane, number among its elements) of element k of row or column i; `held`: elements that are stored of
    each row. gfx11 has copies in further lanes.
    """
    if m.family == "gfx1100":
        return i, k
    groups = 2 if m.family == "gfx1201" else 64 // (m.side * m.blocks)
    part, within = divmod(k, held // groups)
    if m.family == "gfx1201":
        return 16 * part + i, within
    return m.side * m.blocks * part + m.side * block + i, within


def output_place(m: Matrix, i: int, j: int, block: int) -> tuple[int, int, int]:
    """(lane, register, half) of D[i][j]."""
    if m.family == "gfx1100":
        return (16 * i) % 32 + j, i // 2, 0
    if m.family == "gfx1201":
        lane = 16 * (i // 8) + j
        return (lane, i // 2 % 4, i % 2) if m.result in ("f16", "bf16") else (lane, i % 8, 0)
    if m.result == "f64":
        if m.side == 4:
            return 16 * i + 4 * block + j, 0, 0
        return 16 * (i % 4) + j, 2 * (i // 4), 0
    if m.side == 4:
        return 4 * block + j, i, 0
    if m.side == 16:
        return 16 * (i // 4) + j, 4 * block + i % 4, 0
    return 32 * (i // 4 % 2) + j, 16 * block + 4 * (i // 8) + i % 4, 0


def registers_of(m: Matrix) -> tuple[int, int, int]:
    """Registers of A, B, D."""
    lanes = LANES[m.family]
    share = lanes // 16 if m.family == "gfx1100" else 1
    counts = []
    for kind, depth in ((m.a, m.depth // (1 + m.sparse)), (m.b, m.depth)):
        counts.append(max(share * m.side * m.blocks * depth * WIDTH[kind] // 32 // lanes, 1))
    size = 2 if m.result == "f64" else 1
    packed = 2 if m.family == "gfx1201" and m.result in ("f16", "bf16") else 1
    return *counts, m.side * m.side * m.blocks * size // lanes // packed


# -- codes of small integers ---------------------------------------------------------------------------------
def code(value: int, kind: str, processor: str) -> int:
    """The bits of a small integer in an element type."""
    if kind in ("iu8", "i8", "iu4"):
        return value & (1 << WIDTH[kind]) - 1
    if kind == "f64":
        return int(np.float64(value).view(np.uint64))
    word = int(np.float32(value).view(np.uint32))
    if kind in ("f32", "xf32"):
        return word
    if kind == "bf16":
        return word >> 16
    if kind == "f16":
        return int(np.float16(value).view(np.uint16))
    if value == 0:
        return 0
    fnuz = processor == "gfx942"
    mantissa, bias = {"fp8": (3, 8 if fnuz else 7), "bf8": (2, 16 if fnuz else 15)}[kind]
    exponent = (word >> 23 & 255) - 127 + bias
    return word >> 24 & 0x80 | exponent << mantissa | (word & 0x7FFFFF) >> 23 - mantissa


class Registers:
    """A wave's registers, filled a few bits at a time."""

    def __init__(self, lanes: int):
        self.words: dict[int, np.ndarray] = {}
        self._lanes = lanes

    def reserve(self, first: int, count: int) -> None:
        for register in range(first, first + count):
            self.words[register] = np.zeros(self._lanes, dtype=np.uint32)

    def put(self, first: int, lane: int, place: int, width: int, value: int) -> None:
        """Bits `width` * `place` of a lane's registers."""
        if width == 64:
            self.put(first, lane, 2 * place, 32, value & 0xFFFFFFFF)
            self.put(first, lane, 2 * place + 1, 32, value >> 32)
            return
        register, shift = first + place * width // 32, place * width % 32
        self.words[register][lane] |= np.uint32(value << shift)


def expanded(m: Matrix, values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """A with its zeros: each pair of values at the two places of four that `chosen` names."""
    full = np.zeros((m.side, m.depth), dtype=np.int64)
    rows = np.arange(m.side)
    for p in range(m.depth // 2):
        np.add.at(full, (rows, 4 * (p // 2) + chosen[:, p]), values[:, p])
    return full


def made(processor: str, name: str, after: str = "", **options) -> Case:
    """A case with random small integers. options: signed (a, b), cbsz, abid, blgp, set, half,
    negate, magnitude."""
    m, lanes = matrix(processor, name), LANES[processor]
    rng = np.random.default_rng(zlib.crc32(f"{name} {after}".encode()))
    fill, out = Registers(lanes), Registers(lanes)
    counts = registers_of(m)
    for first, count in zip((A, B, C), counts, strict=True):
        fill.reserve(first, count)
    held = m.depth // (1 + m.sparse)
    low, high = (-2, 3) if m.a[0] != "i" else (-8, 8)
    signed = options.get("signed", (m.a == "i8", m.a == "i8"))
    draw = [
        rng.integers(low if m.a[0] != "i" or s else 0, high if s or m.a[0] != "i" else 16, size)
        for s, size in zip(signed, ((m.blocks, m.side, held), (m.blocks, m.depth, m.side)), strict=True)
    ]
    a, b = draw
    c = rng.integers(-9, 10, (m.blocks, m.side, m.side))
    for block in range(m.blocks):
        _fill_inputs(fill, m, a[block], b[block], block, held)
    dense = _sparse(fill, m, a, rng, options.get("set", 0)) if m.sparse else a
    d = _product(m, dense, b, c, options)
    half = options.get("half", 0)
    _fill_outputs(fill, m, c, C, half)
    out.reserve(C, counts[2])
    _fill_outputs(out, m, d, C, half)
    result, left, right = (_span(*each) for each in ((C, counts[2]), (A, counts[0]), (B, counts[1])))
    text = f"{name} {result}, {left}, {right}, {f'v{INDEX}' if m.sparse else result} {after}"
    label = f"{name}:{after}" if after else name
    return Case(label, text, (processor,), fill.words, None, out.words)


def _span(first: int, count: int) -> str:
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def _fill_inputs(fill: Registers, m: Matrix, a: np.ndarray, b: np.ndarray, block: int, held: int) -> None:
    for first, kind, array, depth in ((A, m.a, a, held), (B, m.b, b.T, m.depth)):
        for i in range(m.side):
            for k in range(depth):
                lane, place = input_place(m, i, k, block, depth)
                bits = code(int(array[i, k]), kind, m.family)
                for copy in range(0, 32, 16) if m.family == "gfx1100" else (0,):
                    fill.put(first, lane + copy, place, WIDTH[kind], bits)


def _sparse(fill: Registers, m: Matrix, a: np.ndarray, rng, index_set: int) -> np.ndarray:
    """Choose two places of each four, put them into the index register, give A with its zeros."""
    pairs = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
    chosen = pairs[rng.integers(0, 6, (m.side, m.depth // 4))].reshape(m.side, m.depth // 2)
    fill.reserve(INDEX, 1)
    fill.words[INDEX][:] = 0
    groups = 2 if m.family == "gfx1201" else 64 // m.side
    bits = m.depth // groups
    for i in range(m.side):
        for p in range(m.depth // 2):
            lane, place = input_place(m, i, p, 0, m.depth // 2)
            fill.put(INDEX, lane, place + index_set * bits // 2, 2, int(chosen[i, p]))
    return expanded(m, a[0], chosen)[None]


def _product(m: Matrix, a: np.ndarray, b: np.ndarray, c: np.ndarray, options: dict) -> np.ndarray:
    """D in integers."""
    if "cbsz" in options:
        blocks = np.arange(m.blocks)
        a = a[blocks & -(1 << options["cbsz"]) | options["abid"]]
    if "blgp" in options:
        b = _other_columns(m, b, options["blgp"])
    sign = options.get("negate", (1, 1, 1))
    return (sign[0] * a) @ (sign[1] * b) + sign[2] * (abs(c) if options.get("magnitude") else c)


def _other_columns(m: Matrix, b: np.ndarray, pattern: int) -> np.ndarray:
    """B as it is where each lane reads another one, as the Calculator's table of BLGP says."""
    lane_of = {
        1: lambda lane: lane % 32,
        2: lambda lane: lane % 32 + 32,
        3: lambda lane: (lane + 16) % 64,
        4: lambda lane: lane % 16,
        5: lambda lane: lane % 16 + 16,
        6: lambda lane: lane % 16 + 32,
        7: lambda lane: lane % 16 + 48,
    }[pattern]
    at = {}
    for block in range(m.blocks):
        for j in range(m.side):
            for k in range(m.depth):
                at[input_place(m, j, k, block, m.depth)] = block, k, j
    moved = np.zeros_like(b)
    for (lane, place), target in at.items():
        moved[target] = b[at[lane_of(lane), place]]
    return moved


def _fill_outputs(fill: Registers, m: Matrix, values: np.ndarray, first: int, upper: int) -> None:
    width = {"f64": 64, "f16": 16, "bf16": 16}.get(m.result, 32)
    kind = {"i32": "i8"}.get(m.result, m.result)
    for block in range(m.blocks):
        for i in range(m.side):
            for j in range(m.side):
                lane, register, half = output_place(m, i, j, block)
                value = int(values[block, i, j])
                bits = value & 0xFFFFFFFF if kind == "i8" else code(value, kind, m.family)
                if width == 16:
                    fill.put(first + register, lane, half if m.family == "gfx1201" else upper, 16, bits)
                else:
                    fill.put(first + register, lane, 0, width, bits)


def _plain(processor: str) -> list[Case]:
    return [made(processor, name) for name in NAMES[processor]]


CASES_MATRIX = [each for processor in NAMES for each in _plain(processor)]
for name in ("v_wmma_i32_16x16x16_iu8", "v_wmma_i32_16x16x16_iu4"):
    for processor in ("gfx1100", "gfx1201"):
        for after, signed in (("neg_lo:[1,0,0]", (True, False)), ("neg_lo:[1,1,0]", (True, True))):
            CASES_MATRIX.append(made(processor, name, after, signed=signed))
for name in ("v_wmma_f32_16x16x16_f16", "v_wmma_bf16_16x16x16_bf16"):
    for processor in ("gfx1100", "gfx1201"):
        after = "neg_lo:[1,0,1] neg_hi:[1,0,1]"
        CASES_MATRIX.append(made(processor, name, after, negate=(-1, 1, -1), magnitude=True))
        CASES_MATRIX.append(made(processor, name, "neg_lo:[0,1,0] neg_hi:[0,1,0]", negate=(1, -1, 1)))
for name in ("v_wmma_f16_16x16x16_f16", "v_wmma_bf16_16x16x16_bf16"):
    CASES_MATRIX.append(made("gfx1100", name, "op_sel:[0,0,1]", half=1))
for name in ("f32_16x16x32_f16", "i32_16x16x32_iu8", "f32_16x16x32_fp8_bf8", "i32_16x16x32_iu4"):
    CASES_MATRIX.append(made("gfx1201", f"v_swmmac_{name}", "index_key:1", set=1))
CASES_MATRIX.append(
    made("gfx1201", "v_swmmac_i32_16x16x64_iu4", "neg_lo:[0,1,0]", signed=(False, True))
)
for name, number in (("f32_16x16x32_f16", 2), ("f32_32x32x16_bf16", 3), ("i32_16x16x64_i8", 1)):
    CASES_MATRIX.append(made("gfx942", f"v_smfmac_{name}", f"abid:{number}", set=number))
CASES_MATRIX.append(made("gfx942", "v_smfmac_f32_16x16x32_f16", "cbsz:1 abid:2", set=0))
for name, cbsz, abid in (
    ("f32_4x4x4_16b_f16", 2, 1),
    ("f32_4x4x1_16b_f32", 4, 13),
    ("f32_16x16x4_4b_bf16", 1, 1),
    ("i32_32x32x4_2b_i8", 1, 1),
):
    CASES_MATRIX.append(made("gfx942", f"v_mfma_{name}", f"cbsz:{cbsz} abid:{abid}", cbsz=cbsz, abid=abid))
for pattern in range(1, 8):
    name = ("f32_4x4x4_16b_f16", "f32_32x32x2_f32", "i32_16x16x4_4b_i8")[pattern % 3]
    CASES_MATRIX.append(made("gfx942", f"v_mfma_{name}", f"blgp:{pattern}", blgp=pattern))
CASES_MATRIX.append(made("gfx942", "v_mfma_f64_16x16x4_f64", "neg:[1,0,0]", negate=(-1, 1, 1)))
CASES_MATRIX.append(made("gfx942", "v_mfma_f64_4x4x4_4b_f64", "neg:[0,1,1]", negate=(1, -1, -1)))
CASES_MATRIX = tuple(CASES_MATRIX)
COVERS = covered(CASES_MATRIX)
