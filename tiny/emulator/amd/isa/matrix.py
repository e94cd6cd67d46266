"""Matrix instructions as expressions over lanes: D = A B + C, all held by one wave.

Where the elements stand. Source: AMD, "RDNA3 Instruction Set Architecture" 7.9, "RDNA4" 7.12, "AMD Instinct
MI300 ISA" 7.1.5, and AMD's Matrix Instruction Calculator. In what order the hardware adds, and whether it
rounds in between, is not documented: here the products of floats, which are exact, are added to C in the
order of k, each sum rounded to f32.
"""

from typing import NamedTuple

from tiny.emulator.amd.isa.decode import Instruction
from tiny.emulator.amd.isa.expression import Value, bits, cast, const, fma, select
from tiny.emulator.amd.isa.lanes import lane, of_lane


class Shape(NamedTuple):
    """A matrix instruction.

    element   of A and B: f16 bf16 iu8 iu4     result  of C and D: f32 f16 bf16 i32
    depth     products that make an element    split   lanes that share a row of A
    row_step  rows from a lane's element to its next     row_group  rows between lanes 16 apart
    side      rows and columns of D: 16 or 32
    packed    D has two 16-bit elements in a register, else one in the half that op_sel says
    """

    element: str
    result: str
    depth: int = 16
    split: int = 1
    row_step: int = 2
    row_group: int = 1
    packed: bool = False
    side: int = 16


GFX11 = {
    f"v_wmma_{result}_16x16x16_{element}": Shape(element, result)
    for result, element in (
        ("f32", "f16"),
        ("f32", "bf16"),
        ("f16", "f16"),
        ("bf16", "bf16"),
        ("i32", "iu8"),
        ("i32", "iu4"),
    )
}
GFX12 = {
    f"v_wmma_{result}_16x16x16_{element}@gfx12": Shape(
        element, result, 16, 2, 1, 8, result in ("f16", "bf16")
    )
    for result, element in (
        ("f32", "f16"),
        ("f32", "bf16"),
        ("f16", "f16"),
        ("bf16", "bf16"),
        ("i32", "iu8"),
        ("i32", "iu4"),
    )
}
GFX12["v_wmma_i32_16x16x32_iu4"] = Shape("iu4", "i32", 32, 2, 1, 8)
MFMA = {
    f"v_mfma_{name}": shape
    for name, shape in {
        "f32_16x16x16_f16": Shape("f16", "f32", 16, 4),
        "f32_16x16x16_bf16": Shape("bf16", "f32", 16, 4),
        "f32_16x16x4_f32": Shape("f32", "f32", 4, 4),
        "f32_32x32x8_f16": Shape("f16", "f32", 8, 2, side=32),
        "f32_32x32x8_bf16": Shape("bf16", "f32", 8, 2, side=32),
        "f32_32x32x2_f32": Shape("f32", "f32", 2, 2, side=32),
        "i32_16x16x32_i8": Shape("i8", "i32", 32, 4),
        "i32_32x32x16_i8": Shape("i8", "i32", 16, 2, side=32),
    }.items()
}
SHAPES = GFX11 | GFX12 | MFMA
WIDTH = {"f16": 16, "bf16": 16, "iu8": 8, "iu4": 4, "i8": 8, "f32": 32}


def element(word: Value, place: int, kind: str, signed: bool) -> Value:
    """One element of a register, as f32 or i32."""
    if kind == "f32":
        return bits(word, "f32")
    width = WIDTH[kind]
    part = word >> width * place
    if kind == "f16":
        return cast(bits(cast(part, "u16"), "f16"), "f32")
    if kind == "bf16":
        return bits(part << 16, "f32")
    lifted = part << 32 - width
    return bits(lifted, "i32") >> 32 - width if signed else bits(lifted >> 32 - width, "i32")


def matrix_stores(instruction: Instruction, store) -> list:
    """The effects of a matrix instruction. NotImplementedError for modifiers whose meaning is not certain."""
    shape = SHAPES.get(instruction.operation.name)
    modifiers = [name for name in ("clamp", "cbsz", "abid", "blgp") if instruction.get(name)]
    if shape is None or modifiers:
        raise NotImplementedError(
            f"{instruction.name}: this matrix instruction, or {' '.join(modifiers)} with it"
        )
    if shape.element[0] != "i" and (instruction.get("neg_lo") or instruction.get("neg_hi")):
        raise NotImplementedError(f"{instruction.name} with neg_lo or neg_hi")
    a, b, c = instruction.sources
    group = lane() >> (4 if shape.side == 16 else 5)  # which of the lanes that share a column of D
    right = _operands(instruction, b, shape, lane() & shape.side - 1, 1)
    elements = instruction.results[0].count * (2 if shape.packed else 1)
    totals = []
    for number in range(elements):
        row = row_of(instruction, shape, group, number)
        left = _operands(instruction, a, shape, row, 0)
        place = (number // 2, number & 1) if shape.packed else (number, instruction.get("op_sel") >> 2 & 1)
        total = accumulator(c, *place, shape)
        for x, y in zip(left, right, strict=True):
            total = fma(x, y, total) if shape.element == "f32" else total + x * y
        totals.append(total)
    first = instruction.results[0].register
    if shape.packed:
        words = [
            narrowed(low, shape) | narrowed(high, shape) << 16
            for low, high in zip(totals[::2], totals[1::2], strict=True)
        ]
    else:
        words = [merged(instruction, total, shape, n) for n, total in enumerate(totals)]
    return [store("vgpr", first + n, word) for n, word in enumerate(words)]


def row_of(instruction: Instruction, shape: Shape, group: Value, number: int) -> Value:
    """The row of D that element `number` of a lane is in. MFMA has four rows in turn in each group of lanes.
    """
    if instruction.operation.name in MFMA:
        groups = 64 // shape.side
        return group * 4 + (number % 4 + number // 4 * 4 * groups)
    return group * shape.row_group + shape.row_step * number


def _operands(instruction: Instruction, operand, shape: Shape, index: Value, number: int) -> list[Value]:
    """The `depth` elements of a row of A or a column of B: `split` lanes, `side` apart, hold them in turn."""
    per_register = 32 // WIDTH[shape.element]
    signed = shape.element == "i8" or bool(instruction.get("neg_lo") >> number & 1)
    found = []
    for k in range(shape.depth):
        part, within = divmod(k, shape.depth // shape.split)
        register, place = divmod(within, per_register)
        word = of_lane(operand.register + register, index + shape.side * part)
        found.append(element(word, place, shape.element, signed))
    return found


def accumulator(operand, register: int, high: int, shape: Shape) -> Value:
    """An element of C: of this lane's register, or the same constant for all."""
    if not operand.is_vgpr:
        if operand.code != 128:
            raise NotImplementedError("a constant other than 0 as C")
        return const("i32", 0) if shape.result == "i32" else const("f32", 0.0)
    word = Value("u32", "vgpr", operand.register + register)
    if shape.result in ("f16", "bf16"):
        return element(word, high, shape.result, False)
    return bits(word, shape.result)


def narrowed(total: Value, shape: Shape) -> Value:
    """A 16-bit element in the low half of a u32."""
    return cast(bits(cast(total, "f16"), "u16") if shape.result == "f16" else to_bfloat(total), "u32")


def merged(instruction: Instruction, total: Value, shape: Shape, register: int) -> Value:
    """D's register: a whole one, or the half that op_sel chooses."""
    if shape.result in ("f32", "i32"):
        return bits(total, "u32")
    old = Value("u32", "vgpr_kept", instruction.results[0].register + register)
    if instruction.get("op_sel") >> 2 & 1:
        return old & 0xFFFF | narrowed(total, shape) << 16
    return old & 0xFFFF0000 | narrowed(total, shape)


def to_bfloat(value: Value) -> Value:
    """f32 -> bf16 to nearest even, as u16; NaN stays NaN."""
    pattern = bits(value, "u32")
    rounded = pattern + 0x7FFF + (pattern >> 16 & 1) >> 16
    return cast(select(value.differs(value), pattern >> 16 | 0x40, rounded), "u16")
