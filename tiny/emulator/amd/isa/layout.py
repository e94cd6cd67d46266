"""Where the elements of a matrix instruction stand in the registers of a wave.

Source: AMD, "RDNA3 ISA" 7.9, "RDNA4 ISA" 7.12, "AMD Instinct MI300 ISA" 7.1.5, and the formulas that AMD's
Matrix Instruction Calculator prints (--detail-instruction). With i a row, j a column, k the depth and S the
side of D, groups of lanes hold parts of k:

    gfx11  every lane has a whole row of A or column of B, lanes i, i + 16, ... alike
           D[i][j] in register i // g of lane 16 (i % g) + j, g = lanes / 16
    gfx12  a row of A and a column of B are shared by 2 lanes (wave64: 4), 16 apart
           D[i][j] in register i % 8 of lane 16 (i // 8) + j
           wave64: in register i % 4 of lane 32 (i // 4 % 2) + 16 (i // 8) + j
    MFMA   64 / (S blocks) groups share k; lane = S blocks group + S block + i
           D[i][j]: four rows in turn in each group of lanes, for f64 one row in turn
    sparse A holds two elements of every four; B is dense

How k is divided between the groups of gfx12 changes nothing in a dense product; here they are parts in order.
"""

from typing import NamedTuple

from tiny.emulator.amd.isa.expression import Value, const
from tiny.emulator.amd.isa.lanes import lane

WIDTH = {"f64": 64, "f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "iu4": 4} | dict.fromkeys(
    ("iu8", "i8", "fp8", "bf8"), 8
)


class Shape(NamedTuple):
    """A matrix instruction.

    a, b      element types           result  of C and D: f32 f64 f16 bf16 i32
    side      rows and columns of D   depth   products that make an element, zeros of a sparse A included
    blocks    independent products    sparse  A has two of every four elements, and D is C
    packed    D has two 16-bit elements in a register      broadcasts  has the modifier blgp
    """

    family: str
    a: str
    b: str
    result: str
    side: int
    depth: int
    blocks: int = 1
    sparse: bool = False
    packed: bool = False
    broadcasts: bool = False


def _shape(family: str, name: str) -> Shape:
    """v_wmma_f32_16x16x16_f16 -> its Shape: result, size, blocks where there are several, element types."""
    text = name.partition("@")[0]
    _, kind, result, size, *rest = text.split("_")
    side, _, depth = (int(part) for part in size.split("x"))
    blocks = int(rest.pop(0)[:-1]) if rest[0][-1] == "b" and rest[0][:-1].isdigit() else 1
    a, b = rest if len(rest) == 2 else rest * 2
    one_word = family == "gfx9" and (blocks > 1 or a in ("f64", "f32")) and kind == "mfma"
    packed = family == "gfx12" and result in ("f16", "bf16")
    return Shape(family, a, b, result, side, depth, blocks, kind in ("smfmac", "swmmac"), packed, one_word)


_PAIRS = ("fp8_fp8", "fp8_bf8", "bf8_fp8", "bf8_bf8")
DENSE = (
    "f32_16x16x16_f16",
    "f32_16x16x16_bf16",
    "f16_16x16x16_f16",
    "bf16_16x16x16_bf16",
    "i32_16x16x16_iu8",
    "i32_16x16x16_iu4",
)
GFX11 = tuple(f"v_wmma_{name}" for name in DENSE)
GFX12 = (
    *(f"v_wmma_{name}@gfx12" for name in DENSE),
    "v_wmma_i32_16x16x32_iu4",
    *(f"v_wmma_f32_16x16x16_{pair}" for pair in _PAIRS),
    *(f"v_swmmac_{t}_16x16x32_{kind}" for kind in ("f16", "bf16") for t in ("f32", kind)),
    "v_swmmac_i32_16x16x32_iu8",
    "v_swmmac_i32_16x16x32_iu4",
    "v_swmmac_i32_16x16x64_iu4",
    *(f"v_swmmac_f32_16x16x32_{pair}" for pair in _PAIRS),
)
GFX9 = (
    "v_mfma_f32_16x16x8_xf32",
    "v_mfma_f32_32x32x4_xf32",
    *(f"v_mfma_f32_{size}_f32" for size in ("32x32x1_2b", "16x16x1_4b", "4x4x1_16b", "32x32x2", "16x16x4")),
    *(
        f"v_mfma_f32_{size}_{kind}"
        for kind in ("f16", "bf16")
        for size in ("32x32x4_2b", "16x16x4_4b", "4x4x4_16b", "32x32x8", "16x16x16")
    ),
    *(f"v_mfma_i32_{size}_i8" for size in ("32x32x4_2b", "16x16x4_4b", "4x4x4_16b", "32x32x16", "16x16x32")),
    "v_mfma_f64_16x16x4_f64",
    "v_mfma_f64_4x4x4_4b_f64",
    *(f"v_mfma_f32_{size}_{pair}" for size in ("16x16x32", "32x32x16") for pair in _PAIRS),
    *(f"v_smfmac_f32_{size}_{kind}" for size in ("16x16x32", "32x32x16") for kind in ("f16", "bf16")),
    *(f"v_smfmac_i32_{size}_i8" for size in ("16x16x64", "32x32x32")),
    *(f"v_smfmac_f32_{size}_{pair}" for size in ("16x16x64", "32x32x32") for pair in _PAIRS),
)
SHAPES = {
    name: _shape(family, name)
    for family, names in (("gfx11", GFX11), ("gfx12", GFX12), ("gfx9", GFX9))
    for name in names
}


class Layout:
    """The places of a shape's elements in a wave of so many lanes.

    elements  of D that a lane holds      groups_a, groups_b  groups of lanes that share k
    """

    def __init__(self, shape: Shape, lanes: int):
        self.shape, self.lanes = shape, lanes
        self.elements = shape.side * shape.side * shape.blocks // lanes
        if shape.family == "gfx11":
            self.groups_a = self.groups_b = 1
        elif shape.family == "gfx12":
            held = shape.depth // (2 if shape.sparse else 1)
            self.groups_a = min(lanes // 16, held * WIDTH[shape.a] // 32)
            self.groups_b = min(lanes // 16, shape.depth * WIDTH[shape.b] // 32)
        else:
            self.groups_a = self.groups_b = 64 // (shape.side * shape.blocks)

    def column(self) -> Value:
        """The column of D that this lane holds elements of."""
        return lane() & self.shape.side - 1

    def row(self, number: int) -> tuple[int | Value, Value]:
        """(block, row in it) of element `number` of D in this lane; of 4x4 a lane knows one block."""
        side, here = self.shape.side, lane()
        if self.shape.family == "gfx11":
            return 0, (here >> 4) + number * (self.lanes // 16)
        if self.shape.family == "gfx12":
            own = (here >> 4 & 1) * 8 + number
            return 0, own + (here >> 5) * 4 if self.lanes == 64 else own
        if side == 4:
            row = here >> 4 if self.shape.result == "f64" else const("u32", number)
            return here >> 2 & self.shape.blocks - 1, row
        if self.shape.result == "f64":
            return 0, (here >> 4) + 4 * number
        groups, rows = 64 // side, side * side // 64
        block, within = divmod(number, rows)
        return block, (here >> (4 if side == 16 else 5)) * 4 + (within % 4 + within // 4 * 4 * groups)

    def lane(self, block: int | Value, group: int, index: Value) -> Value:
        """The lane that holds part `group` of row or column `index` of a block."""
        side, blocks = self.shape.side, self.shape.blocks
        if self.shape.family != "gfx9":
            return index + 16 * group
        return index + side * block + side * blocks * group

    def group(self, part: int, groups: int) -> int:
        """The group of lanes that holds part number `part` of k."""
        turned = groups == 4 and self.shape.family == "gfx12"
        return part >> 1 | (part & 1) << 1 if turned else part

    def split(self, k: int) -> tuple[int, int]:
        """(group, position among its elements) of depth k in B, and in a dense A."""
        per_group = self.shape.depth // self.groups_b
        part, position = divmod(k, per_group)
        return self.group(part, self.groups_b), position

    def register(self, number: int) -> tuple[int, int]:
        """(register, half of it) of element `number` of D."""
        if self.shape.packed:
            return number // 2, number % 2
        return number * (2 if self.shape.result == "f64" else 1), 0
