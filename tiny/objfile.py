"""ELF64 object files: sections, symbols and relocations as plain data, and how a relocation changes bytes.

`parse` only reads; who loads an object places its sections, resolves undefined symbols and calls `relocate`
for each relocation (tiny/hcq/cpu/loader.py). Sources: System V ABI, "ELF-64 Object File Format" 1.5; the
psABI supplements for x86-64 (1.0, table 4.9) and AArch64 (2024Q3, section 5.7); LLVM's User Guide for AMDGPU
Backend, "Relocation Records".
"""
import struct
from collections.abc import Callable
from typing import NamedTuple

X86_64, AARCH64, AMDGPU, CUDA = 62, 183, 224, 190            # e_machine
RELOCATABLE, EXECUTABLE, SHARED_OBJECT = 1, 2, 3             # e_type
PROGBITS, SYMTAB, RELA, NOBITS, NOTE = 1, 2, 4, 8, 7         # sh_type
WRITE, ALLOC, EXECINSTR, TLS = 1, 2, 4, 0x400                # sh_flags
UNDEFINED, ABSOLUTE, COMMON = 0, 0xfff1, 0xfff2              # st_shndx with a meaning of its own
LOCAL, GLOBAL, WEAK = 0, 1, 2                                # binding of a symbol
SECTION_SYMBOL, THREAD_LOCAL = 3, 6                          # type of a symbol

_HEADER = struct.Struct("<4sBBBBB7xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QQq")


class ObjectError(ValueError):
    """Bytes that are no object file we understand; the text says what is wrong and where."""


class Relocation(NamedTuple):
    """Change the bytes at `offset` of a section by the address of symbol number `symbol` plus `addend`."""
    offset: int
    kind: int
    symbol: int
    addend: int


class Symbol(NamedTuple):
    """A name. section: index of the section it lies in, or UNDEFINED, ABSOLUTE, COMMON;
    value: offset in it.
    """
    name: str
    section: int
    value: int
    size: int
    binding: int
    kind: int


class Section(NamedTuple):
    """A run of bytes. address: where an executable or shared object wants it, 0 in a relocatable one."""
    name: str
    kind: int
    flags: int
    address: int
    size: int
    align: int
    data: memoryview
    relocations: tuple[Relocation, ...]


class ObjectFile(NamedTuple):
    """What `parse` found. sections and symbols keep their numbers in the file, so index 0 is the empty one.
    """
    machine: int
    kind: int
    flags: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    def section(self, name: str) -> Section:
        """The first section of that name; ObjectError if there is none."""
        for section in self.sections:
            if section.name == name:
                return section
        names = ", ".join(section.name for section in self.sections[1:])
        raise ObjectError(f"there is no section {name}; there are {names}")


def parse(data: bytes) -> ObjectFile:
    """Read an ELF64 little-endian file. ObjectError for anything else, or for parts that lie outside it."""
    if len(data) < _HEADER.size or data[:4] != b"\x7fELF":
        raise ObjectError(f"not an ELF file: {len(data)} bytes that start with {data[:4].hex(' ')}")
    _, width, order, _, _, _, kind, machine, _, _, _, sections_at, flags, _, _, _, entry, count, names = \
        _HEADER.unpack_from(data)
    if width != 2 or order != 1:
        raise ObjectError("only 64-bit little-endian ELF files are understood")
    if entry != _SECTION.size or sections_at + count * entry > len(data) or names >= max(count, 1):
        raise ObjectError(f"the section table, {count} entries at {sections_at:#x}, is damaged or cut off")
    rows = list(_SECTION.iter_unpack(data[sections_at:sections_at + count * entry]))
    view = memoryview(data)
    bodies = [_body(view, row, index) for index, row in enumerate(rows)]
    table = next((index for index, row in enumerate(rows) if row[1] == SYMTAB), None)
    symbols = _symbols(bodies[table], bodies[rows[table][6]]) if table is not None else ()
    relocations = _relocations(rows, bodies, len(symbols))
    strings = bytes(bodies[names]) if rows else b""
    sections = tuple(Section(_name(strings, row[0]), row[1], row[2], row[3], row[5], max(row[8], 1), body,
                             relocations.get(index, ()))
                     for index, (row, body) in enumerate(zip(rows, bodies, strict=True)))
    return ObjectFile(machine, kind, flags, sections, symbols)


def _body(view: memoryview, row: tuple, index: int) -> memoryview:
    kind, offset, size = row[1], row[4], row[5]
    if kind in (0, NOBITS):
        return view[:0]
    if offset + size > len(view):
        raise ObjectError(f"section {index} ends at {offset + size:#x}, the file already at {len(view):#x}")
    return view[offset:offset + size]


def _name(table: bytes, start: int) -> str:
    end = table.find(b"\0", start)
    if end < 0:
        raise ObjectError(f"a name at {start:#x} of a string table of {len(table)} bytes has no end")
    return table[start:end].decode()


def _symbols(body: memoryview, strings: memoryview) -> tuple[Symbol, ...]:
    if len(body) % _SYMBOL.size:
        raise ObjectError(f"the symbol table has {len(body)} bytes, no multiple of {_SYMBOL.size}")
    text = bytes(strings)
    found = []
    for name, info, _, section, value, size in _SYMBOL.iter_unpack(body):
        found.append(Symbol(_name(text, name), section, value, size, info >> 4, info & 15))
    return tuple(found)


def _relocations(rows: list[tuple], bodies: list[memoryview],
                 symbol_count: int) -> dict[int, tuple[Relocation, ...]]:
    """Section number -> the changes to make in it."""
    found: dict[int, tuple[Relocation, ...]] = {}
    for row, body in zip(rows, bodies, strict=True):
        if row[1] != RELA:
            continue
        target, own = row[7], []
        for offset, info, addend in _RELA.iter_unpack(body):
            if info >> 32 >= symbol_count and symbol_count or target >= len(rows):
                raise ObjectError(f"a relocation at {offset:#x} names symbol {info >> 32} of {symbol_count}")
            own.append(Relocation(offset, info & 0xffffffff, info >> 32, addend))
        found[target] = found.get(target, ()) + tuple(own)
    return found


# -- relocations ---------------------------------------------------------------------------------------
class Rule(NamedTuple):
    """How one kind of relocation is done.

    name     as the ABI spells it
    value    (address of the target plus addend, address of the place) -> number
    write    (bytearray, offset, number, rule name) puts the number into the bytes
    through  what the target is: the symbol itself, "call" (a jump to it will do), "pointer" (its table entry)
    """
    name: str
    value: Callable[[int, int], int]
    write: Callable[[bytearray, int, int, str], None]
    through: str = "symbol"


def relocate(machine: int, kind: int) -> Rule:
    """The rule for a relocation; ObjectError, naming it, for one we do not know."""
    rule = RULES.get(machine, {}).get(kind)
    if rule is None:
        raise ObjectError(f"relocation {kind} of machine {machine} is not known; add it to objfile.RULES")
    return rule


def _absolute(target: int, place: int) -> int:
    return target


def _relative(target: int, place: int) -> int:
    return target - place


def _low_half(value: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda target, place: value(target, place) & 0xffffffff


def _high_half(value: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda target, place: value(target, place) >> 32 & 0xffffffff


def _page(target: int, place: int) -> int:
    return (target >> 12) - (place >> 12)


def _in_page(target: int, place: int) -> int:
    return target & 0xfff


def _plain(code: str, lowest: int, highest: int) -> Callable:
    pack_into = struct.Struct("<" + code).pack_into

    def write(data: bytearray, offset: int, number: int, name: str) -> None:
        if not lowest <= number <= highest:
            raise ObjectError(f"{name} at {offset:#x}: {number:#x} does not fit; the target is too far away")
        pack_into(data, offset, number)
    return write


def _field(low: int, width: int, shift: int = 0, signed: bool = False) -> Callable:
    """Put number >> shift into bits low ... low+width-1 of an AArch64 instruction."""
    mask = (1 << width) - 1

    def write(data: bytearray, offset: int, number: int, name: str) -> None:
        scaled = number >> shift
        if number & ((1 << shift) - 1):
            raise ObjectError(f"{name} at {offset:#x}: {number:#x} is not aligned to {1 << shift}")
        if signed and not -(1 << (width - 1)) <= scaled < 1 << (width - 1):
            raise ObjectError(f"{name} at {offset:#x}: {number:#x} does not fit; the target is too far away")
        word = struct.unpack_from("<I", data, offset)[0] & ~(mask << low)
        struct.pack_into("<I", data, offset, word | (scaled & mask) << low)
    return write


def _adr(data: bytearray, offset: int, number: int, name: str) -> None:
    """ADR and ADRP: 21 bits, the lowest two in bits 29-30, the others in bits 5-23."""
    if not -(1 << 20) <= number < 1 << 20:
        raise ObjectError(f"{name} at {offset:#x}: {number:#x} does not fit; the target is too far away")
    word = struct.unpack_from("<I", data, offset)[0] & ~(3 << 29 | 0x7ffff << 5)
    struct.pack_into("<I", data, offset, word | (number & 3) << 29 | (number >> 2 & 0x7ffff) << 5)


_WORD64 = _plain("Q", 0, (1 << 64) - 1)
_SIGNED64 = _plain("q", -(1 << 63), (1 << 63) - 1)
_WORD32 = _plain("I", 0, (1 << 32) - 1)
_SIGNED32 = _plain("i", -(1 << 31), (1 << 31) - 1)

RULES: dict[int, dict[int, Rule]] = {
    X86_64: {
        1: Rule("R_X86_64_64", _absolute, _WORD64),
        2: Rule("R_X86_64_PC32", _relative, _SIGNED32),
        4: Rule("R_X86_64_PLT32", _relative, _SIGNED32, "call"),
        9: Rule("R_X86_64_GOTPCREL", _relative, _SIGNED32, "pointer"),
        10: Rule("R_X86_64_32", _absolute, _WORD32),
        11: Rule("R_X86_64_32S", _absolute, _SIGNED32),
        24: Rule("R_X86_64_PC64", _relative, _SIGNED64),
        41: Rule("R_X86_64_GOTPCRELX", _relative, _SIGNED32, "pointer"),
        42: Rule("R_X86_64_REX_GOTPCRELX", _relative, _SIGNED32, "pointer"),
    },
    AARCH64: {
        257: Rule("R_AARCH64_ABS64", _absolute, _WORD64),
        258: Rule("R_AARCH64_ABS32", _absolute, _WORD32),
        260: Rule("R_AARCH64_PREL64", _relative, _SIGNED64),
        261: Rule("R_AARCH64_PREL32", _relative, _SIGNED32),
        273: Rule("R_AARCH64_LD_PREL_LO19", _relative, _field(5, 19, 2, signed=True)),
        274: Rule("R_AARCH64_ADR_PREL_LO21", _relative, _adr),
        275: Rule("R_AARCH64_ADR_PREL_PG_HI21", _page, _adr),
        277: Rule("R_AARCH64_ADD_ABS_LO12_NC", _in_page, _field(10, 12)),
        278: Rule("R_AARCH64_LDST8_ABS_LO12_NC", _in_page, _field(10, 12)),
        279: Rule("R_AARCH64_TSTBR14", _relative, _field(5, 14, 2, signed=True)),
        280: Rule("R_AARCH64_CONDBR19", _relative, _field(5, 19, 2, signed=True)),
        282: Rule("R_AARCH64_JUMP26", _relative, _field(0, 26, 2, signed=True), "call"),
        283: Rule("R_AARCH64_CALL26", _relative, _field(0, 26, 2, signed=True), "call"),
        284: Rule("R_AARCH64_LDST16_ABS_LO12_NC", _in_page, _field(10, 12, 1)),
        285: Rule("R_AARCH64_LDST32_ABS_LO12_NC", _in_page, _field(10, 12, 2)),
        286: Rule("R_AARCH64_LDST64_ABS_LO12_NC", _in_page, _field(10, 12, 3)),
        299: Rule("R_AARCH64_LDST128_ABS_LO12_NC", _in_page, _field(10, 12, 4)),
        311: Rule("R_AARCH64_ADR_GOT_PAGE", _page, _adr, "pointer"),
        312: Rule("R_AARCH64_LD64_GOT_LO12_NC", _in_page, _field(10, 12, 3), "pointer"),
    },
    AMDGPU: {
        1: Rule("R_AMDGPU_ABS32_LO", _low_half(_absolute), _WORD32),
        2: Rule("R_AMDGPU_ABS32_HI", _high_half(_absolute), _WORD32),
        3: Rule("R_AMDGPU_ABS64", _absolute, _WORD64),
        4: Rule("R_AMDGPU_REL32", _relative, _SIGNED32),
        5: Rule("R_AMDGPU_REL64", _relative, _SIGNED64),
        6: Rule("R_AMDGPU_ABS32", _absolute, _WORD32),
        7: Rule("R_AMDGPU_GOTPCREL", _relative, _SIGNED32, "pointer"),
        8: Rule("R_AMDGPU_GOTPCREL32_LO", _low_half(_relative), _WORD32, "pointer"),
        9: Rule("R_AMDGPU_GOTPCREL32_HI", _high_half(_relative), _WORD32, "pointer"),
        10: Rule("R_AMDGPU_REL32_LO", _low_half(_relative), _WORD32),
        11: Rule("R_AMDGPU_REL32_HI", _high_half(_relative), _WORD32),
    },
}
