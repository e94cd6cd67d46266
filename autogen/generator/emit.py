"""Write one generated module: constants, tables and a cffi out-of-line ABI module for structs and enums."""
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cffi import FFI
from cffi.recompiler import make_py_source

from tiny.autogen.generator.libclang import HeaderError
from tiny.autogen.generator.records import Enumeration, Record, enum_text, text


def number(value: int) -> str:
    return str(value) if -10 < value < 10 else hex(value)


def constants(values: Mapping[str, int]) -> str:
    return "".join(f"{name} = {number(value)}\n" for name, value in values.items())


def table(name: str, comment: str, rows: Mapping[str, object]) -> str:
    """A dict literal, one row a line; Python loads such a table of tuples in microseconds."""
    body = "".join(f"    {key!r}: {_literal(value)},\n" for key, value in rows.items())
    return f"# {comment}\n{name} = {{\n{body}}}\n"


def _literal(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, int):
        return number(value)
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k!r}: {_literal(v)}" for k, v in value.items()) + "}"
    items = [_literal(item) for item in value]
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def describe(record: Record) -> str:
    """One comment line: a reviewer reads a layout change here, since cffi's own form is not for reading."""
    members = ", ".join(f"{path} {offset // 8}" + (f".{offset % 8}:{width}" if width else "")
                        for path, offset, width, _ in record.paths())
    return f"# {record.name}: {record.size} bytes: {members}\n"


def ffi_for(records: Iterable[Record], enums: Iterable[Enumeration],
            aliases: Mapping[str, Sequence[str]]) -> FFI:
    """A cffi FFI that declares them all, checked against libclang's layouts."""
    ffi = FFI()
    for enum in enums:
        ffi.cdef(enum_text(enum))
    records = list(records)
    for record in records:
        plain = "".join(f"typedef {record.name} {alias};\n" for alias in aliases.get(record.name, ()))
        ffi.cdef(text(record) + plain, packed=_is_packed(record))
    check(ffi, records)
    return ffi


def _is_packed(record: Record) -> bool:
    """Whether a member stands where its own alignment would not allow it, or the whole is not rounded up."""
    loose = [f for f in record.fields if f.width is None and f.offset % (8 * f.align)]
    natural = max((f.align for f in record.fields), default=1)
    return bool(loose) or (bool(record.fields) and record.size % natural != 0)


def check(ffi: FFI, records: Iterable[Record]) -> None:
    """Compare every size and member's place by cffi with libclang's; HeaderError names the first that
    differs."""
    for record in records:
        if ffi.sizeof(record.name) != record.size:
            raise HeaderError(f"{record.name}: cffi computes {ffi.sizeof(record.name)} bytes, libclang "
                              f"{record.size}")
        for path, offset, width, size in record.paths():
            place, bits, bytes_ = member_place(ffi, record.name, path)
            if place != offset or bits != width or (width is None and bytes_ != size):
                raise HeaderError(f"{record.name}.{path}: cffi has bit {place} width {bits} size {bytes_}, "
                                  f"libclang bit {offset} width {width} size {size}")


def member_place(ffi, record: str, path: str) -> tuple[int, int | None, int]:
    """(bit offset, bit width or None, bytes) of a dotted member path, as cffi computes it."""
    kind, offset = ffi.typeof(record), 0
    for name in path.split("."):
        field = member(kind, name)
        offset += field[0]
        kind, width = field[1], field[2]
    flexible = kind.kind == "array" and kind.length is None
    return offset, width, 0 if flexible else ffi.sizeof(kind)


def member(kind, name: str):
    """(bit offset, type, bit width or None) of a member, looking through unnamed members as C does."""
    for field_name, field in kind.fields:
        if field_name == name:
            bits = field.offset * 8 + max(field.bitshift, 0)
            return bits, field.type, field.bitsize if field.bitsize > 0 else None
        if not field_name:
            try:
                inner = member(field.type, name)
            except KeyError:
                continue
            return field.offset * 8 + inner[0], inner[1], inner[2]
    raise KeyError(name)


def ffi_source(ffi: FFI, module: str) -> str:
    """The Python text of an out-of-line ABI module; importing it costs a few milliseconds, and no C is
    parsed.
    """
    name = f"tiny.autogen.{module}"
    ffi.set_source(name, None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "module.py"
        make_py_source(ffi, name, str(path))
        source = path.read_text()
    return re.sub(r"^# auto-generated file\n", "", source).replace("import _cffi_backend\n\n", "")


def docstring(title: str, headers: Mapping[str, Sequence[str]], notes: str) -> str:
    """headers: package and suite -> the files read from it, as the manifest names them."""
    lines = [f'"""{title}', "", "Generated by `make bindings`; do not edit. Versions and hashes: "
                                "autogen/manifest.json."]
    lines += [f"From {package}: {', '.join(files)}." for package, files in headers.items()]
    if notes:
        lines += ["", notes]
    return "\n".join(lines) + '\n"""\n'
