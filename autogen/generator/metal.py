"""Selectors, signatures and enumerations out of metal-cpp, Apple's C++ wrapper of Metal.

Each method of the wrapper is one message: its body names the selector, its parameters and result give the
signature that `objc_msgSend` has to be cast to.
"""
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from clang.cindex import Cursor, CursorKind, TranslationUnit, Type, TypeKind

from tiny.autogen.generator import libclang
from tiny.autogen.generator.libclang import HeaderError

_PLAIN = {
    TypeKind.VOID: "void", TypeKind.BOOL: "bool", TypeKind.ULONG: "unsigned long", TypeKind.LONG: "long",
    TypeKind.UINT: "unsigned int", TypeKind.INT: "int", TypeKind.ULONGLONG: "unsigned long long",
    TypeKind.LONGLONG: "long long", TypeKind.DOUBLE: "double", TypeKind.FLOAT: "float",
    TypeKind.USHORT: "unsigned short",
    TypeKind.UCHAR: "unsigned char",
}
_ADDRESSES = (TypeKind.POINTER, TypeKind.LVALUEREFERENCE, TypeKind.BLOCKPOINTER, TypeKind.INCOMPLETEARRAY,
              TypeKind.CONSTANTARRAY)
_OWNED = re.compile(r"(alloc|new|copy|mutableCopy)(?![a-z])")


def _spelled(kind: Type) -> str:
    """A parameter's or result's type as C: objects are `void *`, enumerations their integers, structs by
    name.
    """
    canonical = kind.get_canonical()
    if canonical.kind in _ADDRESSES:
        return "void *"
    if canonical.kind == TypeKind.ENUM:
        canonical = canonical.get_declaration().enum_type.get_canonical()
    if canonical.kind == TypeKind.RECORD:
        return f"struct {canonical.get_declaration().spelling}"
    if canonical.kind not in _PLAIN:
        raise HeaderError(f"a message with a {kind.spelling} has no C signature here; add it to metal._PLAIN")
    return _PLAIN[canonical.kind]


def _selectors(source) -> dict[str, str]:
    """metal-cpp's accessor -> selector text."""
    pattern = re.compile(r"_(?:MTL|NS)_PRIVATE_DEF_SEL\(\s*(\w+)\s*,\s*\"([^\"]+)\"")
    return {m[1]: m[2] for path in source.paths for m in pattern.finditer(path.read_text())}


def _methods(unit: TranslationUnit) -> Iterator[Cursor]:
    """Definitions of methods that stand outside of their classes, as metal-cpp writes them all."""
    pending = list(unit.cursor.get_children())
    while pending:
        cursor = pending.pop(0)
        if cursor.kind == CursorKind.CXX_METHOD and cursor.is_definition():
            yield cursor
        elif cursor.kind in (CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC):
            pending += list(cursor.get_children())


def _selector_of(method: Cursor, selectors: dict[str, str], texts: dict[str, bytes]) -> str | None:
    """The selector that a method's body names. Its text is read, since the method begins with a macro."""
    file = method.location.file.name
    if file not in texts:
        texts[file] = Path(file).read_bytes()
    body = texts[file][method.extent.start.offset:method.extent.end.offset].decode()
    found = re.search(r"_(?:MTL|NS)_PRIVATE_SEL\((\w+)\)", body)
    return selectors.get(found[1]) if found else None


def messages(source, patterns: Sequence[str]) -> dict[str, tuple]:
    """"Class selector": (result, (types of the arguments), the result is owned: +1)"""
    unit = libclang.parse(source.text, source.includes, language="c++")
    selectors, texts, rows = _selectors(source), {}, {}
    wanted = {pattern.split()[0] for pattern in patterns}
    for method in _methods(unit):
        owner = method.semantic_parent
        if owner.spelling not in wanted or owner.semantic_parent.spelling not in ("MTL", "NS"):
            continue
        selector = _selector_of(method, selectors, texts)
        key = f"{owner.spelling} {selector}"
        if key in patterns:
            arguments = tuple(_spelled(argument.type) for argument in method.get_arguments())
            rows[key] = (_spelled(method.result_type), arguments, bool(_OWNED.match(selector)))
            if len(arguments) != selector.count(":"):
                raise HeaderError(f"{key}: {len(arguments)} arguments for that selector")
    missing = [pattern for pattern in patterns if pattern not in rows]
    if missing:
        raise HeaderError(f"metal-cpp has no {', '.join(missing)}; correct the manifest")
    return {pattern: rows[pattern] for pattern in patterns}


def _is_wanted(enum: Cursor, patterns: Sequence[str]) -> bool:
    """Flags (_MTL_OPTIONS) are enumerations without a name, whose members begin with it."""
    if "(" not in enum.spelling and enum.spelling:
        return enum.spelling in patterns
    first = next(enum.get_children(), None)
    return first is not None and any(re.match(rf"{pattern}(?=[A-Z])", first.spelling) for pattern in patterns)


def enumerations(source, patterns: Sequence[str]) -> dict[str, int]:
    """constants of Metal's enumerations, by Apple's names"""
    unit = libclang.parse(source.text, source.includes, language="c++")
    found: dict[str, int] = {}
    pending = list(unit.cursor.get_children())
    while pending:
        cursor = pending.pop(0)
        if cursor.kind in (CursorKind.NAMESPACE, CursorKind.LINKAGE_SPEC):
            pending += list(cursor.get_children())
        elif cursor.kind == CursorKind.ENUM_DECL and _is_wanted(cursor, patterns):
            found |= {f"{cursor.semantic_parent.spelling}{child.spelling}": child.enum_value
                      for child in cursor.get_children() if child.kind == CursorKind.ENUM_CONSTANT_DECL}
    missing = [pattern for pattern in patterns
               if not any(re.match(rf"(MTL|NS){pattern}", name) for name in found)]
    if missing:
        raise HeaderError(f"metal-cpp has no enumeration {', '.join(missing)}; correct the manifest")
    return found


