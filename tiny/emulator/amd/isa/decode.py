"""Machine words -> Instruction: which row of the semantics table, which operands, which modifiers.

A Family says how a generation encodes: its layouts, its opcode numbers, what its register codes mean. Words
that mean nothing are a DecodeError that names the encoding, the number and the place; nothing is guessed.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from tiny.emulator.amd.isa import operations  # noqa: F401  (fills the table)
from tiny.emulator.amd.isa.encoding import DPP8, DPP8_FI, DPP16, LITERAL, SDWA, Dpp8, Dpp16, Sdwa, SdwaCompare
from tiny.emulator.amd.isa.operation import OPERATIONS, Operation, dwords
from tiny.hcq.layout import Struct

FROM_SCALAR = {"v_writelane_b32", "ds_permute_b32"}
VGPR, VCC, NULL, M0, EXEC = 256, 106, 124, 125, 126
NOTHING = -2  # code of an operand that is left out
AGPR = VGPR + 256  # accumulation VGPRs follow the others, in codes and in a wave's registers
INLINE_INTEGERS = range(128, 209)
INLINE_FLOATS = range(240, 249)
TRUTHS = {
    235: "shared_base",
    236: "shared_limit",
    237: "private_base",
    238: "private_limit",
    251: "vccz",
    252: "execz",
    253: "scc",
}


class DecodeError(ValueError):
    """Words that are no instruction we know; the text says where and which."""


class Operand(NamedTuple):
    """One operand. code: as in a 9-bit source field: 0 ... 127 scalar registers, 128 ... constants, 255 the
    literal, 256 and up VGPRs. token: its type in the signature.

    half     0 or 1 for 16 bits of a VGPR, where the encoding can say which; None where it cannot
    extended  SDWA takes a byte or word of it and extends its sign
    value    the literal's 32 bits, or the number of an immediate (token simm, label, hwreg, ...)
    """

    code: int
    token: str
    negate: bool = False
    absolute: bool = False
    half: int | None = None
    value: int = 0
    extended: bool = False

    @property
    def is_vgpr(self) -> bool:
        return self.code >= VGPR

    @property
    def register(self) -> int:
        return self.code - VGPR if self.code >= VGPR else self.code

    @property
    def count(self) -> int:
        """Registers it covers."""
        return max(dwords(self.token), 1)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One decoded instruction. `second`: the other half of a VOPD pair, whose operands stand in an
    Instruction too.
    """

    family: "Family" = field(repr=False)
    encoding: str
    operation: Operation
    words: Struct = field(repr=False)
    results: tuple[Operand, ...]
    sources: tuple[Operand, ...]
    size: int
    dpp: Struct | None = None
    fetch_inactive: bool = False
    second: "Instruction | None" = None
    sdwa: Struct | None = None

    @property
    def name(self) -> str:
        return self.operation.name.partition("@")[0]

    def get(self, name: str, default: int = 0) -> int:
        """A field of the encoding, `default` where it has none of that name."""
        return getattr(self.words, name) if name in self.words.fields else default


@dataclass(frozen=True)
class Family:
    """How one generation encodes instructions.

    name       gfx11, gfx12 or gfx9                 encodings   layouts, longest prefix first
    opcodes    encoding -> number -> mnemonic       operands    encoding -> function that finds the operands
    true16     16-bit operands name halves of VGPRs, in the short encodings by bit 7 of the register
    true16_text  and LLVM writes them as v1.l and v1.h
    wave_sizes what it can run                      m0          code of M0; the other of 124 and 125 is NULL
    split      (encoding, mnemonic) -> another layout for this opcode
    aliases    mnemonic -> the name of its row, where the family spells it in its own way
    promoted   mnemonics with a short and a long form, which assembly tells apart by _e32 and _e64
    graphics   (lowest bit, prefix) -> what the encoding is, where it is refused
    """

    name: str
    encodings: tuple[type[Struct], ...]
    opcodes: dict[str, dict[int, str]]
    operands: dict[str, Callable]
    true16: bool = False
    true16_text: bool = False
    wave_sizes: tuple[int, ...] = (32, 64)
    m0: int = M0
    split: dict[tuple[str, str], type[Struct]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    promoted: frozenset[str] = frozenset()
    graphics: dict[tuple[int, int], str] = field(default_factory=dict)

    def __hash__(self) -> int:
        return id(self)

    def prefixes(self) -> tuple[tuple[int, int, type[Struct]], ...]:
        """(mask, value, layout) of the first word."""
        found = []
        for layout in self.encodings:
            encoding = layout.fields["encoding"]
            found.append((encoding.mask, encoding.placed(layout.fixed["encoding"]), layout))
        return tuple(found)


_PREFIXES: dict[str, tuple] = {}


def decode(family: Family, code, offset: int = 0) -> Instruction:
    """The instruction at byte `offset` of `code` (bytes-like). DecodeError if it is none that is known."""
    word = int.from_bytes(code[offset : offset + 4], "little")
    if offset + 4 > len(code):
        raise DecodeError(
            f"{family.name}: the code ends at {len(code):#x}, inside the instruction at {offset:#x}"
        )
    prefixes = _PREFIXES.get(family.name)
    if prefixes is None:
        prefixes = _PREFIXES[family.name] = family.prefixes()
    for mask, value, layout in prefixes:
        if word & mask == value:
            return _decode_as(family, layout, code, offset)
    for (low, prefix), what in family.graphics.items():
        if word >> low == prefix:
            raise DecodeError(
                f"{family.name}: {word:#010x} at {offset:#x} is {what}: graphics, which this card does not do"
            )
    raise DecodeError(f"{family.name}: {word:#010x} at {offset:#x} has no known encoding")


def _decode_as(family: Family, layout: type[Struct], code, offset: int) -> Instruction:
    name = layout.__name__
    if offset + layout.size_bytes > len(code):
        raise DecodeError(f"{family.name}: {name} at {offset:#x} is cut off after {len(code) - offset} bytes")
    stray = int.from_bytes(code[offset : offset + layout.size_bytes], "little") & reserved_bits(layout)
    if stray:
        raise DecodeError(f"{family.name}: {name} at {offset:#x} has reserved bits {stray:#x} set")
    words = layout.decode(code, offset)
    table = name
    if "segment" in layout.fields:
        table = ("FLAT", "SCRATCH", "GLOBAL", "")[words.segment]
    operation = _operation(family, table, words.op, words, offset)
    other = family.split.get((table, operation.name))
    if other is not None:
        words = other.decode(code, offset)
    reader = Reader(family, code, offset, layout.size_bytes)
    return family.operands[name](reader, table, operation, words)


@functools.cache
def reserved_bits(layout: type[Struct]) -> int:
    """The bits of an encoding that no field has; they must be zero."""
    declared = 0
    for each in layout.fields.values():
        declared |= each.mask << 32 * each.dword
    return (1 << 32 * layout.dwords) - 1 & ~declared


def _operation(family: Family, table: str, number: int, words: Struct, offset: int) -> Operation:
    mnemonic = family.opcodes.get(table, {}).get(number)
    operation = OPERATIONS.get(family.aliases.get(mnemonic, mnemonic)) if mnemonic else None
    if operation is None:
        known = f"is {mnemonic}, which is not in the semantics table" if mnemonic else "is not defined"
        raise DecodeError(f"{family.name}: {table} opcode {number:#x} at {offset:#x} {known}")
    return operation


class Reader:
    """Reads the operands of one instruction: knows where the literal and the DPP word stand."""

    def __init__(self, family: Family, code, offset: int, size: int):
        self.family, self.size = family, size
        self._code, self._offset = code, offset
        self._literal: int | None = None
        self.dpp: Struct | None = None
        self.sdwa: Struct | None = None
        self.fetch_inactive = False
        self.long = size > 4
        self.signs = False  # bits, too, take sign modifiers: v_cndmask, v_mov

    def fail(self, text: str) -> DecodeError:
        return DecodeError(f"{self.family.name}: {text}, at {self._offset:#x}")

    def _word(self, layout: type[Struct]) -> Struct:
        place = self._offset + self.size
        if place + 4 > len(self._code):
            raise self.fail(f"the word after {self.size} bytes is missing")
        self.size += 4
        return layout.decode(self._code, place)

    def literal(self) -> int:
        """The 32-bit constant behind the instruction; all operands share one."""
        if self._literal is None:
            place = self._offset + self.size
            if place + 4 > len(self._code):
                raise self.fail("the literal is missing")
            self._literal = int.from_bytes(self._code[place : place + 4], "little")
            self.size += 4
        return self._literal

    def modifier_word(self, src0: int, compares: bool = False) -> int:
        """The code of the first source after looking at DPP and SDWA."""
        if self.long and self.family.name == "gfx9" and src0 in (DPP16, SDWA):
            raise self.fail("DPP or SDWA in an instruction of 64 bits")
        if src0 == DPP16:
            self.dpp = self._word(Dpp16)
            self.fetch_inactive = bool(self.dpp.fetch_inactive)
            if self.fetch_inactive and self.family.name == "gfx9":
                raise self.fail("reserved bits of the DPP word")
        elif src0 == SDWA and self.family.name == "gfx9":
            self.sdwa = self._word(SdwaCompare if compares else Sdwa)
            return self.sdwa.src0 if self.sdwa.src0_scalar else VGPR + self.sdwa.src0
        elif src0 in (DPP8, DPP8_FI) and self.family.name != "gfx9":
            self.dpp = self._word(Dpp8)
            self.fetch_inactive = src0 == DPP8_FI
        else:
            return src0
        return VGPR + self.dpp.src0

    def source(
        self,
        code: int,
        token: str,
        negate: int = 0,
        absolute: int = 0,
        half: int | None = None,
        short: bool = False,
    ) -> Operand:
        """An operand from a source field of 8 or 9 bits. short: an encoding that names halves by bit 7."""
        value = 0
        if code == LITERAL and self.size > 4 and self.family.name == "gfx9" and self.long:
            raise self.fail("a literal in an instruction of 64 bits")
        if code == LITERAL:
            value = self.literal()
        elif not (
            code <= 127
            or code in INLINE_INTEGERS
            or code in INLINE_FLOATS
            or code >= VGPR
            or code in TRUTHS
            or code in (230, 231, 239, 254)
        ):
            raise self.fail(f"source code {code} is reserved")
        if (negate or absolute) and token[0] != "f" and not self.signs:
            raise self.fail(f"a sign modifier on an operand of type {token}")
        self.check_alignment(code, token)
        if token[1:] != "16":
            half = None
        elif short:
            half = None
            if code >= VGPR and self.family.true16:
                half, code = (code >> 7) & 1, code & ~128
        return Operand(code, token, bool(negate), bool(absolute), half, value)

    def check_alignment(self, code: int, token: str) -> None:
        """Several SGPRs start at an even number, four and more at a multiple of four."""
        count = dwords(token)
        first = code - 108 if code >= 108 else code
        if code < 124 and count > 1 and first % min(4, count + count % 2):
            raise self.fail(f"{count} scalar registers from code {code}, which is not aligned")

    def scalar(self, code: int, token: str) -> Operand:
        """A scalar register field of 7 bits."""
        self.check_alignment(code, token)
        return Operand(code, token)

    def result(self, code: int, token: str, half: int | None = None, short: bool = False) -> Operand:
        """A destination: a VGPR, or an SGPR where the token says so."""
        if token in ("m", "s32", "s64") or token == "exec":
            if code > 127:
                raise self.fail(f"destination {code} is no scalar register")
            return self.scalar(code, token)
        return self.source(VGPR + code, token, half=half, short=short)

    def made(
        self, table: str, operation: Operation, words: Struct, results, sources, second=None
    ) -> Instruction:
        if (
            operation.kind == "lanes"
            and sources
            and not sources[0].is_vgpr
            and operation.name not in FROM_SCALAR
        ):
            raise self.fail(f"{operation.name} reads a VGPR, not source code {sources[0].code}")
        return Instruction(
            self.family,
            table,
            operation,
            words,
            tuple(results),
            tuple(sources),
            self.size,
            self.dpp,
            self.fetch_inactive,
            second,
            self.sdwa,
        )
