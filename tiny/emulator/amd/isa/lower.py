"""Instruction -> what it does to registers, as expressions over registers.

The rows of the semantics table speak of typed operands. Here operands become registers: constants, sign
modifiers, halves of registers, DPP, output modifiers, denormal flushing are all put into the expression, so
that the interpreter and the translation to C need to know only a handful of leaves:

    vgpr r          register r of this lane, u32          sgpr c     scalar register with source code c, u32
    vgpr_kept r     the same where a part of it stays as it is, written before or not
    lanebit c       this lane's bit of the mask at c      scc, exec, lane, first_lane, vccz, execz
    gather i r      register r of lane i, u32             active i   whether lane i is in EXEC
    vgpr_at i       the register with that number         sgpr_at i  likewise; i is the same for all lanes
"""

from typing import NamedTuple

from tiny.emulator.amd.isa.choices import APPROXIMATE, FLUSHED
from tiny.emulator.amd.isa.decode import (
    EXEC,
    INLINE_FLOATS,
    INLINE_INTEGERS,
    LITERAL,
    VCC,
    Instruction,
    Operand,
)
from tiny.emulator.amd.isa.errors import UnsupportedError
from tiny.emulator.amd.isa.expression import UNSIGNED, WIDTH, Value, apply, bits, cast, const, join, select
from tiny.emulator.amd.isa.functions import (
    INFINITY,
    from_pattern,
    is_finite,
    is_infinite,
    signed,
    without_denormals,
)
from tiny.emulator.amd.isa.lanes import gathered, lane_stores, moved
from tiny.emulator.amd.isa.matrix import matrix_stores
from tiny.emulator.amd.isa.mode import Mode
from tiny.emulator.amd.isa.operation import Operation, value_type
from tiny.emulator.amd.isa.operations_integer import SATURATING
from tiny.emulator.amd.isa.rounding import NEAREST, directed
from tiny.emulator.amd.isa.sdwa import placed, selected

SHARED_APERTURE, PRIVATE_APERTURE = 1 << 48, 2 << 48
_FLOAT_BITS = {
    "16": (0x3800, 0xB800, 0x3C00, 0xBC00, 0x4000, 0xC000, 0x4400, 0xC400, 0x3118),
    "32": (
        0x3F000000,
        0xBF000000,
        0x3F800000,
        0xBF800000,
        0x40000000,
        0xC0000000,
        0x40800000,
        0xC0800000,
        0x3E22F983,
    ),
    "64": (
        0x3FE0 << 48,
        0xBFE0 << 48,
        0x3FF0 << 48,
        0xBFF0 << 48,
        0x4000 << 48,
        0xC000 << 48,
        0x4010 << 48,
        0xC010 << 48,
        0x3FC45F306DC9C882,
    ),
}
OF_MODE = {"ieee", "fp16_ovfl", "nearest"}  # fields of a row that are the mode's, not the instruction's
_UNFLUSHED = ("class", "v_cndmask", "v_mov")


class Store(NamedTuple):
    """One effect. where: vgpr, whole (a VGPR whatever EXEC says), sgpr, mask (a bit for each lane), scc, exec
    (a whole mask), exec_lanes (a bit for each lane), lane (one lane of a VGPR: `lane` says which), vgpr_at
    and sgpr_at (`lane` says which register).

    condition: b1, lanes for which it happens beyond those in EXEC, or None for all of these
    """

    where: str
    index: int
    value: Value
    condition: Value | None = None
    lane: Value | None = None


def leaf(kind: str, op: str, *args) -> Value:
    return Value(kind, op, *args)


# -- operands ------------------------------------------------------------------------------------------------
def constant_bits(operand: Operand) -> int | None:
    """The bits of an inline constant or a literal, as wide as the operand; None for registers."""
    width = operand.token.partition("x")[0][1:] if operand.token[0] != "m" else "32"
    code = operand.code
    if code in INLINE_INTEGERS:
        return (code - 128 if code <= 192 else 192 - code) & (1 << int(width)) - 1
    if code in INLINE_FLOATS:
        return _FLOAT_BITS[width][code - 240]
    if code != LITERAL:
        return None
    if width == "64":
        if operand.token == "f64":
            return operand.value << 32
        negative = operand.token == "i64" and operand.value >> 31
        return operand.value | (0xFFFFFFFF << 32 if negative else 0)
    return operand.value & (1 << int(width)) - 1


def scalar_word(code: int) -> Value:
    """32 bits of the scalar side: a register, or one of the truths with a code of their own."""
    if code < 128:
        return leaf("u32", "sgpr", code)
    if code in (251, 252, 253):
        return cast(leaf("b1", {251: "vccz", 252: "execz", 253: "scc"}[code]), "u32")
    raise UnsupportedError(f"source code {code} as 32 bits")


def raw(operand: Operand, part: int = 0) -> Value:
    """Register number `part` of an operand, u32."""
    if operand.is_vgpr:
        return leaf("u32", "vgpr", operand.register + part)
    known = constant_bits(operand)
    if known is not None:
        return const("u32", known >> 32 * part)
    if operand.code in (235, 237):
        base = SHARED_APERTURE if operand.code == 235 else PRIVATE_APERTURE
        return const("u32", base >> 32 * part)
    return scalar_word(operand.code + part)


def indexed_register(instruction: Instruction, operand: Operand) -> Value:
    """The number of a VGPR in index mode: M0's low byte more than the instruction says."""
    return (leaf("u32", "sgpr", instruction.family.m0) & 255) + operand.register


def fetch(instruction: Instruction, operand: Operand, kind: str, place: int = -1, index: int = 0) -> Value:
    """An operand as a value of that type, its sign modifiers applied. place: its number, for DPP."""
    width = WIDTH[kind]
    if operand.token in ("simm", "uimm"):
        return const(kind, operand.value)
    if operand.token == "m":
        return leaf("b1", "lanebit", operand.code)
    from_lane = instruction.dpp is not None and place == 0
    if from_lane:
        word = gathered(instruction, operand.register)
    elif index >> max(place, 0) & 1 and place >= 0 and operand.is_vgpr:
        if width > 32:
            raise UnsupportedError("index mode on 64 bits")
        word = leaf("u32", "vgpr_at", indexed_register(instruction, operand))
    else:
        word = raw(operand)
    if instruction.sdwa is not None and place in (0, 1):
        word = selected(word, instruction, place)
    if width == 64:
        value = join(word, gathered(instruction, operand.register + 1) if from_lane else raw(operand, 1))
    elif width == 16:
        value = cast(word >> 16 if operand.half else word, "u16")
    else:
        value = word
    value = bits(value, kind)
    return with_signs(value, operand.negate, operand.absolute)


def with_signs(value: Value, negate: bool, absolute: bool) -> Value:
    """|x| and then -x on the sign bit, whatever the type says the bits are."""
    unsigned = UNSIGNED[WIDTH[value.kind]]
    top = 1 << WIDTH[value.kind] - 1
    pattern = bits(value, unsigned)
    if absolute:
        pattern = pattern & (top - 1)
    if negate:
        pattern = pattern ^ top
    return bits(pattern, value.kind)


def is_float(value: Value) -> bool:
    return value.kind[0] == "f"


# -- results -------------------------------------------------------------------------------------------------
def output_modifiers(instruction: Instruction) -> tuple[int, int]:
    """(omod, clamp)"""
    sdwa = instruction.sdwa
    if sdwa is not None:
        return (sdwa.omod, sdwa.clamp) if "omod" in sdwa.fields else (0, 0)
    return instruction.get("omod"), instruction.get("clamp")


def finished(instruction: Instruction, value: Value, mode: Mode, operands: list[Value]) -> Value:
    """A float result after rounding, overflow, omod, clamp and flushing, in this order."""
    name = instruction.operation.name
    rounding = mode.rounding(value.kind)
    if rounding != NEAREST and name not in APPROXIMATE:
        value = directed(value, rounding)
    if mode.fp16_ovfl and value.kind == "f16" and name not in APPROXIMATE:
        greatest = from_pattern("f16", INFINITY["f16"] - 1)
        finite = const("b1", 1)
        for each in operands:
            finite = finite & is_finite(each) if is_float(each) else finite
        value = select(is_infinite(value) & finite, signed(value < 0.0, greatest), value)
    factor, clamp = output_modifiers(instruction)
    if factor and mode.scales(value.kind):
        value = without_denormals(value)
        scaled = value * (2.0, 4.0, 0.5)[factor - 1]
        value = select(value.equals(0.0), const(value.kind, 0.0), scaled)
    if clamp:
        limited = select(value > 1.0, const(value.kind, 1.0), value)
        not_above = value <= 0.0 if not mode.clamp_nan else ~(value > 0.0)
        value = select(not_above, const(value.kind, 0.0), limited)
    return without_denormals(value) if name in FLUSHED else mode.flushed(value, output=True)


def refuse_modifiers(instruction: Instruction, value: Value) -> None:
    """UnsupportedError for an output modifier on a result that is no float; conversions do not mind them."""
    if instruction.name.startswith("v_cvt_"):
        return
    factor, clamp = output_modifiers(instruction)
    for what in ("omod",) * bool(factor) + ("clamp",) * bool(clamp):
        raise UnsupportedError(f"{what} on a result of type {value.kind}")


def words_of(value: Value) -> list[Value]:
    """A result as registers: one u32, or two."""
    pattern = bits(value, UNSIGNED[WIDTH[value.kind]])
    if WIDTH[value.kind] == 64:
        return [cast(pattern, "u32"), cast(pattern >> 32, "u32")]
    return [cast(pattern, "u32")]


def write(instruction: Instruction, operand: Operand, value: Value, condition: Value | None) -> list[Store]:
    """Stores of a value into a destination; a 16-bit one keeps the other half of its VGPR."""
    if operand.token == "m":
        return [Store("mask", operand.code, value)]
    words = words_of(value)
    if operand.is_vgpr:
        old = leaf("u32", "vgpr_kept", operand.register)
        if instruction.sdwa is not None and len(words) == 1:
            words = [placed(words[0], old, instruction)]
        elif WIDTH[value.kind] == 16 and not clears_upper(instruction):
            words = [old & 0xFFFF | words[0] << 16 if operand.half else old & 0xFFFF0000 | words[0]]
        return [Store("vgpr", operand.register + n, word, condition) for n, word in enumerate(words)]
    return [Store("sgpr", operand.code + n, word) for n, word in enumerate(words)]


def clears_upper(instruction: Instruction) -> bool:
    """Whether a 16-bit result clears the upper half: on gfx9 where there is a short form, and in what carries
    the name `legacy`.

    Source: LLVM's knowledge of what reads of the whole register may assume (GCNSubtarget,
    zeroesHigh16BitsOfDest).
    """
    name = instruction.name
    short = name in instruction.family.promoted and name not in KEEPS_UPPER
    return instruction.family.name == "gfx9" and (short or "legacy" in name)


KEEPS_UPPER = {"v_mac_f16", "v_madak_f16", "v_madmk_f16", "v_fmac_f16"}
IMPLICIT_RESULTS = {
    "scc": lambda value: Store("scc", 0, value),
    "exec": lambda value: Store("exec_lanes" if value.kind == "b1" else "exec", EXEC, value),
}


def inputs(instruction: Instruction, operation: Operation, mode: Mode) -> list[Value]:
    """What the row's function is applied to."""
    explicit = iter(enumerate(instruction.sources))
    found = []
    flushing = not any(name in operation.name for name in _UNFLUSHED)
    for token, kind in zip(operation.sources, operation.input_kinds(), strict=True):
        if token == "scc":
            found.append(leaf("b1", "scc"))
        elif token == "vcc":
            found.append(leaf("b1", "lanebit", VCC))
        elif token == "exec":
            found.append(leaf("u64", "exec"))
        elif token == "lane":
            found.append(leaf("u32", "lane"))
        elif token == "+":
            found.append(fetch(instruction, instruction.results[0], kind))
        elif "32x" in token:
            _, operand = next(explicit)
            found += [raw(operand, n) for n in range(operand.count)]
        else:
            place, operand = next(explicit)
            found.append(fetch(instruction, operand, kind, place, mode.index))
        if is_float(found[-1]) and operation.name in FLUSHED:
            found[-1] = without_denormals(found[-1])
        elif is_float(found[-1]) and flushing:
            found[-1] = mode.flushed(found[-1], output=False)
    return found


def lower(instruction: Instruction, mode: Mode, lanes: int = 32) -> list[Store]:
    """All effects of an instruction on registers. lanes: of the wave."""
    operation = instruction.operation
    if operation.kind == "packed":
        return _packed(instruction, mode)
    if operation.kind == "mix":
        return _mixed(instruction, mode)
    if operation.kind == "lanes":
        return lane_stores(instruction, raw, Store)
    if operation.kind == "packed move":
        return _packed_move(instruction)
    if operation.kind == "matrix":
        return matrix_stores(instruction, raw, Store, lanes)
    if operation.kind == "indirect":
        return moved(instruction, raw, Store)
    if operation.function is None:
        raise UnsupportedError(f"{operation.name} is decoded, but what it does is not known here")
    stores = _plain(instruction, operation, mode)
    if instruction.second is not None:
        stores += _plain(instruction.second, instruction.second.operation, mode)
    return stores


def _plain(instruction: Instruction, operation: Operation, mode: Mode) -> list[Store]:
    known = {
        name: mode.field(name, operation.results[0]) if name in OF_MODE else instruction.get(name)
        for name in operation.fields
    }
    saturating = operation.name in SATURATING and instruction.get("clamp")
    function = SATURATING[operation.name] if saturating else operation.function
    operands = inputs(instruction, operation, mode)
    values = apply(function, operands, known)
    if "32x" in operation.results[0]:
        return [
            Store("vgpr", instruction.results[0].register + n, word) for n, word in enumerate(values)
        ]
    condition = gathered(instruction, None) if instruction.dpp is not None else None
    explicit, stores = iter(instruction.results), []
    for token, value in zip(operation.results, values, strict=True):
        if token in IMPLICIT_RESULTS:
            if condition is not None:
                value = value & condition
            stores.append(IMPLICIT_RESULTS[token](value))
            continue
        if is_float(value):
            value = finished(instruction, value, mode, operands)
            if token == "s32":  # a half in a scalar register: zeros above it
                value = cast(bits(value, UNSIGNED[WIDTH[value.kind]]), "u32")
        elif token != "m" and not saturating and "clamp" not in operation.fields:
            refuse_modifiers(instruction, value)
        value = bits(value, value_type(token)) if token != "m" else value
        stores += write(instruction, next(explicit), value, condition)
    return stores if not mode.index >> 3 else [_indexed(instruction, each) for each in stores]


def _indexed(instruction: Instruction, store: Store) -> Store:
    """The store in index mode with the destination's bit set."""
    if store.where != "vgpr" or "+" in instruction.operation.sources or store.condition is not None:
        raise UnsupportedError("this form in index mode")
    return store._replace(where="vgpr_at", lane=indexed_register(instruction, instruction.results[0]))


def _packed(instruction: Instruction, mode: Mode) -> list[Store]:
    """The row's function on the low parts, then on the high ones; op_sel and op_sel_hi say which parts they
    are.
    """
    operation, get = instruction.operation, instruction.get
    function = operation.function
    if get("clamp") and operation.results[0][0] != "f":
        function = SATURATING.get(operation.name)
    if function is None or instruction.dpp is not None:
        raise UnsupportedError(f"{operation.name} with clamp or DPP")
    width = int(operation.results[0][1:])
    words, known = [], {name: mode.field(name, operation.results[0]) for name in operation.fields}
    sources, both = instruction.sources, get("op_sel_hi", 3) | get("op_sel_hi2") << 2
    if "+" in operation.sources:
        sources, both = (*sources, instruction.results[0]), 7
    for chosen, negated in ((get("op_sel"), get("neg_lo")), (both, get("neg_hi"))):
        operands = []
        for n, (operand, token) in enumerate(zip(sources, operation.sources, strict=True)):
            token = operation.results[0] if token == "+" else token
            part = packed_part(operand, token, width, chosen >> n & 1)
            value = with_signs(bits(part, token), bool(negated >> n & 1), False)
            operands.append(mode.flushed(value, False) if is_float(value) else value)
        value = apply(function, operands, known)[0]
        if is_float(value):
            value = finished(instruction, value, mode, operands)
        words.append(bits(value, UNSIGNED[width]))
    register = instruction.results[0].register
    if width == 16:
        return [Store("vgpr", register, cast(words[0], "u32") | cast(words[1], "u32") << 16)]
    return [Store("vgpr", register + n, word) for n, word in enumerate(words)]


def _packed_move(instruction: Instruction) -> list[Store]:
    """v_pk_mov_b32: op_sel says which register of each source goes to the two of the destination."""
    register = instruction.results[0].register
    chosen = instruction.get("op_sel")
    words = [
        packed_part(operand, "u32", 32, chosen >> n & 1) for n, operand in enumerate(instruction.sources)
    ]
    return [Store("vgpr", register + n, word) for n, word in enumerate(words)]


def packed_part(operand: Operand, token: str, width: int, high: int) -> Value:
    """The low or high part of a packed operand. An inline constant stands in the low part, the high one is
    its sign.
    """
    if width == 32:
        known = constant_bits(operand._replace(token="b32"))
        return const("u32", known) if known is not None else raw(operand, high)
    if operand.code in INLINE_FLOATS:
        return const("u16", 0 if high else _FLOAT_BITS["16"][operand.code - 240])
    return cast(raw(operand) >> 16 if high else raw(operand), "u16")


def _mixed(instruction: Instruction, mode: Mode) -> list[Store]:
    """v_fma_mix: each source is a float, or where op_sel_hi says so a half of a register."""
    operation, get = instruction.operation, instruction.get
    halves = get("op_sel_hi") | get("op_sel_hi2") << 2
    operands = []
    for n, operand in enumerate(instruction.sources):
        if halves >> n & 1:
            value = bits(packed_part(operand, "f16", 16, get("op_sel") >> n & 1), "f16")
            value = cast(mode.flushed(value, False), "f32")
        else:
            value = mode.flushed(bits(raw(operand), "f32"), False)
        operands.append(with_signs(value, operand.negate, operand.absolute))
    value, register = apply(operation.function, operands, {})[0], instruction.results[0].register
    if operation.name.endswith("f32"):
        return [Store("vgpr", register, bits(finished(instruction, value, mode, operands), "u32"))]
    if mode.round32 != NEAREST:
        value = directed(value, mode.round32)
    narrow = cast(bits(finished(instruction, cast(value, "f16"), mode, operands), "u16"), "u32")
    old = leaf("u32", "vgpr_kept", register)
    merged = old & 0xFFFF | narrow << 16 if "mixhi" in operation.name else old & 0xFFFF0000 | narrow
    return [Store("vgpr", register, merged)]
