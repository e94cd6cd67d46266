"""Matrix instructions as expressions over lanes: D = A B + C, all held by one wave.

Where the elements stand. Source: AMD, "RDNA3 Instruction Set Architecture" 7.9, "RDNA4" 7.12, "AMD Instinct
MI300 ISA"
7.1.5, and AMD's Matrix Instruction Calculator. In what order the hardware adds, and whether it rounds in
between, is not
documented: here the products of floats, which are exact, are added to C in the order of k, each sum rounded
to f32.
"""

from typing import NamedTuple

from tiny.emulator.amd.isa.decode import Instruction
from tiny.emulator.amd.isa.expression import Value, bits, cast, const, select
from tiny.emulator.amd.isa.lanes import lane, of_lane


class Shape(NamedTuple):
    """A matrix instruction: D is 16 x 16.

    element  of A and B: f16 bf16 iu8 iu4       result  of C and D: f32 f16 bf16 i32
    depth    how many products make an element  split   lanes that share a row of A
    """

    element: str
    result: str
    depth: int
    split: int


GFX11 = {
    f"v_wmma_{result}_16x16x16_{element}": Shape(element, result, 16, 1)
    for result, element in (
        ("f32", "f16"),
        ("f32", "bf16"),
        ("f16", "f16"),
        ("bf16", "bf16"),
        ("i32", "iu8"),
        ("i32", "iu4"),
    )
}
WIDTH = {"f16": 16, "bf16": 16, "iu8": 8, "iu4": 4}


def element(word: Value, place: int, kind: str, signed: bool) -> Value:
    """One element of a register, as f32 or i32."""
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
    shape = GFX11.get(instruction.name)
    count = instruction.results[0].count
    if shape is None or count != 8 or instruction.get("clamp"):
        raise NotImplementedError(f"{instruction.name} with {count} result registers or clamp")
    if shape.element[0] != "i" and (instruction.get("neg_lo") or instruction.get("neg_hi")):
        raise NotImplementedError(f"{instruction.name} with neg_lo or neg_hi")
    a, b, c = instruction.sources
    row_lane = lane() & 16  # the upper half of the wave holds the odd rows
    effects = []
    rows = [_operands(instruction, b, shape, lane() & 15, 1)]
    for register in range(count):
        row = const("u32", 2 * register) + (row_lane >> 4)
        left = _operands(instruction, a, shape, row, 0)
        total = accumulator(c, register, shape, instruction.get("op_sel") >> 2 & 1)
        for x, y in zip(left, rows[0], strict=True):
            total = total + x * y
        effects.append(
            store(
                "vgpr",
                instruction.results[0].register + register,
                merged(instruction, total, shape, register),
            )
        )
    return effects


def _operands(instruction: Instruction, operand, shape: Shape, index: Value, number: int) -> list[Value]:
    """The `depth` elements of a row of A or a column of B, which lane `index` holds."""
    per_register = 32 // WIDTH[shape.element]
    signed = bool(instruction.get("neg_lo") >> number & 1)
    found = []
    for k in range(shape.depth):
        register, place = divmod(k, per_register)
        word = of_lane(operand.register + register, index)
        found.append(element(word, place, shape.element, signed))
    return found


def accumulator(operand, register: int, shape: Shape, high: int) -> Value:
    """An element of C: of this lane's register, or the same constant for all."""
    if not operand.is_vgpr:
        if operand.code != 128:
            raise NotImplementedError("a constant other than 0 as C")
        return const("i32", 0) if shape.result == "i32" else const("f32", 0.0)
    word = Value("u32", "vgpr", operand.register + register)
    if shape.result in ("f16", "bf16"):
        return element(word, high, shape.result, False)
    return bits(word, shape.result)


def merged(instruction: Instruction, total: Value, shape: Shape, register: int) -> Value:
    """D's register: a whole one, or the half that op_sel chooses."""
    if shape.result in ("f32", "i32"):
        return bits(total, "u32")
    half = bits(cast(total, "f16"), "u16") if shape.result == "f16" else to_bfloat(total)
    old = Value("u32", "vgpr", instruction.results[0].register + register)
    if instruction.get("op_sel") >> 2 & 1:
        return old & 0xFFFF | cast(half, "u32") << 16
    return old & 0xFFFF0000 | cast(half, "u32")


def to_bfloat(value: Value) -> Value:
    """f32 -> bf16 to nearest even, as u16; NaN stays NaN."""
    pattern = bits(value, "u32")
    rounded = pattern + 0x7FFF + (pattern >> 16 & 1) >> 16
    return cast(select(value.differs(value), pattern >> 16 | 0x40, rounded), "u16")
