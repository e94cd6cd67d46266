"""Matrix instructions as expressions over lanes: D = A B + C, all held by one wave.

Where the elements stand is `layout`'s. In what order the hardware adds, and whether it rounds in between, is
not documented: here the products of floats, which are exact in f32 for all elements but those of 32 and 64
bits, are added to C in the order of k, each sum rounded to the type of D (to f32 where that has 16 bits); the
products of 32 and 64 bits are fused. xf32 is taken as f32 without its lower 13 bits. Denormals are kept.

Modifiers. Source: AMD, "RDNA3 ISA" 7.9, "RDNA4 ISA" 7.12, "AMD Instinct MI300 ISA" 7.1, and AMD's Matrix
Instruction Calculator, "Examples of Setting Modifiers":

    neg_lo, neg_hi  floats of 16 bits: the sign of A's and B's elements in the lower and upper halves of
                    registers; neg_lo of C negates, neg_hi takes the magnitude first. Integers: neg_lo of A
                    and B says that they are signed
    clamp           integers: the sum stops at the ends of i32
    op_sel          gfx11, D of 16 bits: the half of each register. gfx12, sparse: the set of indices
    cbsz, abid      a block of A goes to 2^cbsz blocks; abid says which. Sparse: abid is the set of indices
    blgp            B's lanes in another order; f64: the signs of A, B and C

EXEC does not matter: all lanes take part and are written.
"""

from collections.abc import Callable
from typing import NamedTuple

from tiny.emulator.amd.isa.decode import Instruction, Operand
from tiny.emulator.amd.isa.errors import UnsupportedError
from tiny.emulator.amd.isa.expression import Value, bits, cast, const, fma, join, select
from tiny.emulator.amd.isa.float8 import is_fnuz, widened
from tiny.emulator.amd.isa.halves import from_half, narrowed
from tiny.emulator.amd.isa.lanes import of_lane
from tiny.emulator.amd.isa.layout import SHAPES, WIDTH, Layout, Shape

LARGEST, SMALLEST = (1 << 31) - 1, -(1 << 31)


class Term(NamedTuple):
    """One product of an element of D: which lane holds the element of A, which of its elements it is, and of
    B likewise. Sparse: the element of B is one of four, the first of which is named.
    """

    lane_a: Value
    position_a: int
    lane_b: Value
    position_b: int


def matrix_stores(instruction: Instruction, raw: Callable, store: Callable, lanes: int) -> list:
    """The effects of a matrix instruction. lanes: of the wave; raw: (operand, part) -> u32.

    UnsupportedError for a form that no card has. `c_matrix` writes the same as C.
    """
    shape = SHAPES[instruction.operation.name]
    place = Layout(shape, lanes)
    check_modifiers(instruction, shape)
    totals = {}
    for number in range(place.elements):
        start = accumulator(instruction, raw, shape, place, number)
        pairs = [
            _factors(instruction, shape, place, each) for each in terms(instruction, shape, place, number)
        ]
        totals[number] = _summed(instruction, shape, start, pairs)
    return results(instruction, shape, place, totals, store)


def sum_type(shape: Shape) -> str:
    """In what type products are added."""
    return shape.result if shape.result in ("i32", "f64") else "f32"


def _summed(instruction: Instruction, shape: Shape, total: Value, pairs: list) -> Value:
    if shape.result == "i32":
        return integer_sum(instruction, total, pairs)
    for x, y in pairs:
        total = fma(x, y, total) if shape.a in ("f32", "f64") else total + x * y
    return total


def check_modifiers(instruction: Instruction, shape: Shape) -> None:
    """UnsupportedError for modifiers that this instruction does not have."""
    floats = shape.a in ("f16", "bf16")
    allowed = {
        "clamp": shape.result == "i32" and shape.family != "gfx9",
        "neg_lo": floats or shape.result == "i32",
        "neg_hi": floats,
        "cbsz": shape.sparse or shape.blocks > 1,
        "abid": shape.sparse or shape.blocks > 1,
        "blgp": shape.broadcasts,
    }
    wrong = [name for name, fine in allowed.items() if instruction.get(name) and not fine]
    if wrong:
        raise UnsupportedError(f"{instruction.name} does not have the modifier {' '.join(wrong)}")
    if shape.result == "i32" and instruction.get("neg_lo") & 4:
        raise UnsupportedError(f"{instruction.name}: neg_lo says which of A and B are signed; C always is")
    cbsz, abid = instruction.get("cbsz"), instruction.get("abid")
    if not shape.sparse and (1 << cbsz > shape.blocks or abid >= 1 << cbsz):
        raise UnsupportedError(
            f"{instruction.name}: cbsz {cbsz} and abid {abid} are beyond its {shape.blocks} blocks"
        )


# -- products ------------------------------------------------------------------------------------------------
def terms(instruction: Instruction, shape: Shape, place: Layout, number: int) -> list[Term]:
    """The products of element `number` of D in each lane, in the order of k."""
    block, row = place.row(number)
    cbsz, abid = instruction.get("cbsz"), instruction.get("abid")
    found = []
    if not shape.sparse:
        source_block = block & -(1 << cbsz) | abid
        for k in range(shape.depth):
            group, position = place.split(k)
            column = _other_lanes(instruction, shape, place.lane(block, group, place.column()))
            found.append(Term(place.lane(source_block, group, row), position, column, position))
        return found
    per_lane = shape.depth // place.groups_a  # values of k that a lane of A covers
    for pair in range(shape.depth // 2):
        chunk = pair // 2
        part, within = divmod(chunk, per_lane // 4)
        group_b, first = place.split(4 * chunk)
        lane_a = place.lane(0, place.group(part, place.groups_a), row)
        found.append(Term(lane_a, 2 * within + pair % 2, place.lane(0, group_b, place.column()), first))
    return found


def _factors(instruction: Instruction, shape: Shape, place: Layout, term: Term) -> tuple[Value, Value]:
    """The elements of A and B of a product."""
    left = _element(instruction, 0, shape.a, term.lane_a, term.position_a)
    if not shape.sparse:
        return left, _element(instruction, 1, shape.b, term.lane_b, term.position_b)
    shift = index_shift(instruction, shape, place) + 2 * term.position_a
    choice = of_lane(instruction.sources[2].register, term.lane_a) >> shift & 3
    return left, _chosen(instruction, shape.b, term.lane_b, term.position_b, choice)


def element(instruction: Instruction, shape: Shape, operand: int, position: int) -> Value:
    """Element number `position` that this lane holds of A (operand 0) or B (1)."""
    return _element(instruction, operand, (shape.a, shape.b)[operand], None, position)


def index_shift(instruction: Instruction, shape: Shape, place: Layout) -> int:
    """Where the chosen set of indices starts in its register: a lane needs one bit for each k it covers."""
    per_lane = shape.depth // place.groups_a
    sets = 32 // per_lane
    chosen = 0 if instruction.get("cbsz") else instruction.get("abid")
    if shape.family == "gfx12":
        chosen = instruction.get("op_sel")
    return chosen % sets * per_lane


def _word(register: int, lane: Value | None) -> Value:
    return of_lane(register, lane) if lane is not None else Value("u32", "vgpr", register)


def _chosen(instruction: Instruction, kind: str, lane: Value, first: int, choice: Value) -> Value:
    """Element `first` + choice (0 ... 3) of B."""
    width, register = WIDTH[kind], instruction.sources[1].register
    per_register = 32 // width
    word = of_lane(register + first // per_register, lane)
    if width == 16:  # four elements stand in two registers
        word = select((choice & 2).differs(0), of_lane(register + first // 2 + 1, lane), word)
    word = word >> (choice & per_register - 1 if width == 16 else choice + first % per_register) * width
    if width == 16:
        even = _typed(instruction, 1, kind, word, 0)
        return select((choice & 1).differs(0), _typed(instruction, 1, kind, word, 1), even)
    return _typed(instruction, 1, kind, word, first)


def _element(instruction: Instruction, operand: int, kind: str, lane: Value | None, position: int) -> Value:
    """Element number `position` that a lane, None: this one, holds of A (operand 0) or B (1)."""
    register = instruction.sources[operand].register
    if kind == "f64":
        number = bits(join(_word(register, lane), _word(register + 1, lane)), "f64")
        return -number if instruction.get("blgp") >> operand & 1 else number
    register, part = register + position * WIDTH[kind] // 32, position * WIDTH[kind] % 32
    return _typed(instruction, operand, kind, _word(register, lane) >> part, position)


def _typed(instruction: Instruction, operand: int, kind: str, word: Value, position: int) -> Value:
    """The lowest bits of a word as f32 or i32, with the operand's modifiers."""
    if kind == "f32":
        return bits(word, "f32")
    if kind == "xf32":
        return bits(word & 0xFFFFE000, "f32")
    if kind in ("fp8", "bf8"):
        return widened(word, kind, is_fnuz(instruction.family.name))
    if kind in ("f16", "bf16"):
        value = from_half(word, kind)
        negated = instruction.get("neg_hi" if position % 2 else "neg_lo") >> operand & 1
        return -value if negated else value
    width = WIDTH[kind]
    signed = kind == "i8" or instruction.get("neg_lo") >> operand & 1
    lifted = word << 32 - width
    return bits(lifted, "i32") >> 32 - width if signed else bits(lifted >> 32 - width, "i32")


def _other_lanes(instruction: Instruction, shape: Shape, lane: Value) -> Value:
    """The lane that B is read from: blgp broadcasts or turns groups of lanes."""
    pattern = instruction.get("blgp") if shape.a != "f64" else 0
    if pattern == 0:
        return lane
    if pattern == 3:
        return lane + 16 & 63
    if pattern < 3:
        return lane & 31 | (pattern - 1) * 32
    return lane & 15 | (pattern - 4) * 16


def integer_sum(instruction: Instruction, start: Value, products: list[tuple[Value, Value]]) -> Value:
    """C and the products, which fit i32 together; the last addition wraps, or stops where clamp is set."""
    total = const("i32", 0)
    for x, y in products:
        total = total + x * y
    if not instruction.get("clamp"):
        return start + total
    wide = cast(start, "i64") + cast(total, "i64")
    wide = select(wide > LARGEST, const("i64", LARGEST), wide)
    return cast(select(wide < SMALLEST, const("i64", SMALLEST), wide), "i32")


# -- C and D -------------------------------------------------------------------------------------------------
def accumulator(instruction: Instruction, raw: Callable, shape: Shape, place: Layout, number: int) -> Value:
    """Element `number` of C, as f32, f64 or i32: of this lane's registers, or the same constant for all."""
    operand: Operand = instruction.results[0] if shape.sparse else instruction.sources[2]
    register, half = place.register(number)
    if shape.result == "f64":
        low, high = (raw(operand, register + n) for n in (0, 1))
        if not operand.is_vgpr:
            low, high = (raw(operand._replace(token="f64"), n) for n in (0, 1))
        value = bits(join(low, high), "f64")
        return -value if instruction.get("blgp") & 4 else value
    if shape.result in ("f32", "i32"):
        value = bits(raw(operand, register if operand.is_vgpr else 0), shape.result)
    elif operand.is_vgpr:
        value = from_half(raw(operand, register) >> 16 * chosen_half(instruction, shape, half), shape.result)
    else:
        value = constant_half(instruction, raw, operand, shape)
    if shape.a in ("f16", "bf16"):
        value = abs(value) if instruction.get("neg_hi") & 4 and not shape.sparse else value
        value = -value if instruction.get("neg_lo") & 4 and not shape.sparse else value
    return value


def constant_half(instruction: Instruction, raw: Callable, operand: Operand, shape: Shape) -> Value:
    """An inline constant as C of 16 bits: f16 has its own; of bf16 the upper half of f32's."""
    if instruction.get("op_sel") & 4:
        raise UnsupportedError(f"{instruction.name}: a constant as C, and op_sel for its upper half")
    if shape.result == "f16":
        return from_half(raw(operand._replace(token="f16")), "f16")
    if operand.code != 128:
        raise UnsupportedError(f"{instruction.name}: a constant other than 0 as C of bf16")
    return const("f32", 0.0)


def chosen_half(instruction: Instruction, shape: Shape, half: int) -> int:
    """The half of a register that holds an element of 16 bits of C or D."""
    return half if shape.packed else instruction.get("op_sel") >> 2 & 1


def results(instruction: Instruction, shape: Shape, place: Layout, totals: dict, store: Callable) -> list:
    """D into its registers; a half that has no element keeps what it held."""
    first, words = instruction.results[0].register, {}
    for number, total in totals.items():
        register, half = place.register(number)
        if shape.result == "f64":
            pattern = bits(total, "u64")
            words[register] = cast(pattern, "u32")
            words[register + 1] = cast(pattern >> 32, "u32")
        elif shape.result in ("f32", "i32"):
            words[register] = bits(total, "u32")
        else:
            half = chosen_half(instruction, shape, half)
            old = words.get(register)
            if old is None:
                kept = Value("u32", "vgpr_kept", first + register)
                old = const("u32", 0) if shape.packed else kept & (0xFFFF << 16 * (1 - half))
            words[register] = old | narrowed(total, shape.result) << 16 * half
    return [store("whole", first + register, word) for register, word in sorted(words.items())]
