"""Structs, unions and enums of a parsed header, as the C text that cffi reads.

Layouts are libclang's. The C text only spells them with fixed-width types: pointers become `void *`,
alignment attributes become explicit padding, and `emit` checks every offset that cffi computes from it
against the libclang one.
"""
import re
from collections.abc import Iterable
from dataclasses import dataclass

from clang.cindex import Cursor, CursorKind, TranslationUnit, Type, TypeKind

from tiny.autogen.generator.libclang import HeaderError

_INTEGERS = {
    TypeKind.BOOL: "_Bool", TypeKind.CHAR_S: "char", TypeKind.SCHAR: "int8_t", TypeKind.UCHAR: "uint8_t",
    TypeKind.CHAR_U: "char", TypeKind.SHORT: "int16_t", TypeKind.USHORT: "uint16_t", TypeKind.INT: "int32_t",
    TypeKind.UINT: "uint32_t", TypeKind.LONG: "int64_t", TypeKind.ULONG: "uint64_t",
    TypeKind.LONGLONG: "int64_t",
    TypeKind.ULONGLONG: "uint64_t", TypeKind.FLOAT: "float", TypeKind.DOUBLE: "double",
    TypeKind.WCHAR: "int32_t",
}
_RECORD_KINDS = {CursorKind.STRUCT_DECL: "struct", CursorKind.UNION_DECL: "union",
                 CursorKind.CLASS_DECL: "struct"}


@dataclass(frozen=True)
class Field:
    """One member. `offset` in bits from the start of its record; `width` in bits for a bit field, otherwise
    None.

    base   C text of the element type, or the Record itself for a nested one without a name
    array  lengths of the array's dimensions, outermost first; None stands for a flexible one
    size   bytes of the whole member
    """
    name: str
    offset: int
    width: int | None
    base: "str | Record"
    array: tuple[int | None, ...]
    size: int
    align: int


@dataclass(frozen=True)
class Record:
    """A struct or union: `tag` as in `struct tag`, `typedef` for one that only a typedef names."""
    kind: str
    tag: str
    typedef: str
    size: int
    align: int
    fields: tuple[Field, ...]

    @property
    def name(self) -> str:
        """The name C programs use for the type: `struct kfd_event_data`, `NVOS21_PARAMETERS`."""
        return self.typedef or f"{self.kind} {self.tag}"

    def paths(self, prefix: str = "", base: int = 0) -> list[tuple[str, int, int | None, int]]:
        """Every named member that can be reached: (dotted path, bit offset, bit width or None, size in
        bytes).
        """
        found = []
        for field in self.fields:
            path = f"{prefix}{field.name}"
            if field.name:
                found.append((path, base + field.offset, field.width, field.size))
            if isinstance(field.base, Record) and (not field.array or not field.name):
                found += field.base.paths(f"{path}." if field.name else prefix, base + field.offset)
        return found


@dataclass(frozen=True)
class Enumeration:
    """An enum: its members in order, and whether a tag or a typedef names it. An unnamed one has neither."""
    tag: str
    typedef: str
    unsigned: bool
    members: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        return self.typedef or f"enum {self.tag}"


class Declarations:
    """All records and enums that one translation unit defines, by name."""

    def __init__(self, unit: TranslationUnit):
        self.records: dict[str, Record] = {}                  # by Record.name
        self.enums: list[Enumeration] = []
        self._cursors: dict[str, Cursor] = {}                 # name -> definition
        # USR of an unnamed definition -> the typedef that names it
        self._typedefs: dict[str, str] = {}
        # typedef -> the name of the record it stands for
        self._aliases: dict[str, str] = {}
        cursors = list(self._definitions(unit.cursor))
        for cursor in cursors:
            if cursor.kind == CursorKind.TYPEDEF_DECL:
                self._learn_typedef(cursor)
        for cursor in cursors:
            if cursor.kind in _RECORD_KINDS and cursor.is_definition():
                name = self._record_name(cursor)
                if name:
                    self._cursors[name] = cursor
            elif cursor.kind == CursorKind.ENUM_DECL and cursor.is_definition():
                self.enums.append(self._enum(cursor))

    def _definitions(self, cursor: Cursor) -> Iterable[Cursor]:
        for child in cursor.get_children():
            yield child
            if child.kind in (CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC, CursorKind.UNEXPOSED_DECL) \
                    or child.kind in _RECORD_KINDS:
                yield from self._definitions(child)

    def _learn_typedef(self, cursor: Cursor) -> None:
        target = cursor.underlying_typedef_type.get_canonical().get_declaration()
        if target.kind in _RECORD_KINDS or target.kind == CursorKind.ENUM_DECL:
            if _unnamed(target):
                first = self._typedefs.setdefault(target.get_usr(), cursor.spelling)
                if first != cursor.spelling:
                    self._aliases[cursor.spelling] = first
            elif target.spelling != cursor.spelling or target.kind != CursorKind.CLASS_DECL:
                self._aliases[cursor.spelling] = f"{_RECORD_KINDS.get(target.kind, 'enum')} {target.spelling}"

    def _record_name(self, cursor: Cursor) -> str:
        """The Record.name of a definition, "" for one without any name."""
        if _unnamed(cursor):
            return self._typedefs.get(cursor.get_usr(), "")
        return f"{_RECORD_KINDS[cursor.kind]} {cursor.spelling}"

    def _enum(self, cursor: Cursor) -> Enumeration:
        members = tuple((child.spelling, child.enum_value) for child in cursor.get_children()
                        if child.kind == CursorKind.ENUM_CONSTANT_DECL)
        unnamed = _unnamed(cursor)
        typedef = self._typedefs.get(cursor.get_usr(), "") if unnamed else ""
        unsigned = cursor.enum_type.get_canonical().kind in (TypeKind.UINT, TypeKind.ULONG)
        return Enumeration("" if unnamed else cursor.spelling, typedef, unsigned, members)

    def resolve(self, name: str) -> str:
        """The Record.name for `name`, which may be a typedef or a tag without its `struct`."""
        for known in (name, self._aliases.get(name, ""), f"struct {name}", f"union {name}"):
            if known in self._cursors:
                return known
        near = [known for known in self._cursors if name.split()[-1][:12] in known]
        raise HeaderError(f"no definition of {name!r} in these headers; near: "
                          f"{', '.join(near[:5]) or 'nothing'}")

    def matching(self, patterns: Iterable[str]) -> list[str]:
        """Record names that one of the regular expressions matches in full (without `struct`), in header
        order.
        """
        wanted = [re.compile(pattern) for pattern in patterns]
        return [name for name in self._cursors if any(w.fullmatch(name.split()[-1]) for w in wanted)]

    def aliases(self, name: str) -> list[str]:
        """The typedefs that stand for one tagged record."""
        return [alias for alias, target in self._aliases.items() if target == name]

    def take(self, name: str) -> Record:
        """The record of that name; those it contains are taken before it, so that `records` is in order of
        use.
        """
        name = self.resolve(name)
        if name not in self.records:
            self.records[name] = self._record(self._cursors[name])
        return self.records[name]

    def _record(self, cursor: Cursor) -> Record:
        unnamed = _unnamed(cursor)
        typedef = self._typedefs.get(cursor.get_usr(), "") if unnamed else ""
        kind = "union" if cursor.kind == CursorKind.UNION_DECL else "struct"
        fields = tuple(self._field(field) for field in cursor.type.get_fields())
        return Record(kind, "" if unnamed else cursor.spelling, typedef, cursor.type.get_size(),
                      cursor.type.get_align(), fields)

    def _field(self, cursor: Cursor) -> Field:
        width = cursor.get_bitfield_width() if cursor.is_bitfield() else None
        array, element = [], cursor.type
        while element.get_canonical().kind in (TypeKind.CONSTANTARRAY, TypeKind.INCOMPLETEARRAY):
            canonical = element.get_canonical()
            array.append(canonical.element_count if canonical.kind == TypeKind.CONSTANTARRAY else None)
            element = canonical.element_type
        flexible = bool(array) and array[0] is None
        size = 0 if flexible else cursor.type.get_size()
        # some versions spell an unnamed member in words
        name = "" if "(" in cursor.spelling else cursor.spelling
        return Field(name, cursor.get_field_offsetof(), width, self._base(element), tuple(array), size,
                     element.get_align())

    def _base(self, element: Type) -> "str | Record":
        canonical = element.get_canonical()
        if canonical.kind == TypeKind.RECORD:
            declaration = canonical.get_declaration()
            name = self._record_name(declaration)
            return self.take(name).name if name else self._record(declaration)
        if canonical.kind == TypeKind.ENUM:
            canonical = canonical.get_declaration().enum_type.get_canonical()
        if canonical.kind in _INTEGERS:
            return _INTEGERS[canonical.kind]
        if canonical.kind in (TypeKind.POINTER, TypeKind.BLOCKPOINTER, TypeKind.OBJCOBJECTPOINTER):
            return "void *"
        raise HeaderError(f"a member of type {element.spelling} has no C spelling here; add it to "
                          f"records._INTEGERS")


def _unnamed(cursor: Cursor) -> bool:
    """No tag of its own. libclang 16 and later spell such a record by its typedef, but their USR says @SA@,
    @UA@, @EA@.
    """
    return not cursor.spelling or "(" in cursor.spelling or cursor.is_anonymous() \
        or bool(re.search(r"@[SUE]A@\w+$", cursor.get_usr()))


# -- C text --------------------------------------------------------------------------------------------------
def text(record: Record) -> str:
    """One complete C definition of a record."""
    body = _body(record, "  ")
    if record.typedef:
        return f"typedef {body} {record.typedef};\n"
    return body.replace(record.kind, record.name, 1) + ";\n"


def _body(record: Record, indent: str) -> str:
    lines, place, pads = [], 0, 0
    for field in record.fields:
        gap = field.offset - _aligned(place, field) if record.kind == "struct" and field.width is None else 0
        # an alignment attribute in the header: spell the padding
        if gap > 0:
            lines.append(f"{indent}uint8_t tiny_pad{pads}[{(field.offset - place + 7) // 8}];")
            pads += 1
        lines.append(f"{indent}{_member(field, indent)};")
        place = field.offset + (field.width if field.width is not None else field.size * 8)
    natural = max([_natural_align(field) for field in record.fields], default=1) * 8
    rounded = -(-place // natural) * natural
    if record.kind == "struct" and record.fields and record.size * 8 > rounded:
        lines.append(f"{indent}uint8_t tiny_pad{pads}[{record.size - (place + 7) // 8}];")
    return f"{record.kind} {{\n" + "\n".join(lines) + f"\n{indent[2:]}}}"


def _natural_align(field: Field) -> int:
    """The alignment that the spelled type has by itself, in bytes."""
    if isinstance(field.base, Record):
        return max((_natural_align(inner) for inner in field.base.fields), default=1)
    return field.align


def _aligned(place: int, field: Field) -> int:
    step = _natural_align(field) * 8
    return -(-place // step) * step


def _member(field: Field, indent: str) -> str:
    base = _body(field.base, indent + "  ") if isinstance(field.base, Record) else field.base
    array = "".join(f"[{'' if length is None else length}]" for length in field.array)
    width = f" : {field.width}" if field.width is not None else ""
    return f"{base} {field.name}{array}{width}".rstrip() if field.name or width else base


def enum_text(enum: Enumeration) -> str:
    """One complete C definition of an enum with a name."""
    members = ", ".join(f"{name} = {value}" for name, value in enum.members)
    if enum.typedef:
        return f"typedef enum {{ {members} }} {enum.typedef};\n"
    return f"enum {enum.tag} {{ {members} }};\n"
