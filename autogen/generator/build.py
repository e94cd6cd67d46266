"""One header set, from its packages on disk to the text of its module."""
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tiny.autogen.generator import emit, libclang, macros
from tiny.autogen.generator.manifest import Constants, Declared, HeaderSet, Numbers, Records, Table
from tiny.autogen.generator.packages import Unpacked
from tiny.autogen.generator.records import Declarations, Enumeration, Record


@dataclass
class Source:
    """What a set's parts read from.

    text  C that includes the set's headers     includes  folders     paths  the files that the set lists
    """
    text: str
    includes: list[str]
    paths: list[Path]
    language: str

    def names(self, patterns, taking_argument: bool = False) -> list[str]:
        """Macros of the listed headers that match one of the patterns in full."""
        wanted = [re.compile(pattern) for pattern in patterns]
        return [name for name, argument in macros.names(self.paths).items()
                if argument == taking_argument and any(w.fullmatch(name) for w in wanted)]


@dataclass
class Built:
    """A generated module.

    records  the structs in it     hashes  (Package.key, path) -> sha256, of each file read
    """
    text: str
    records: list[Record]
    hashes: dict[tuple[str, str], str]
    source: Source
    constants: dict[str, int]


def source_of(wanted: HeaderSet, folders: Mapping[str, Unpacked], links: Path) -> Source:
    """The C text and include folders of a set. `links`: a folder for stubs and renamed include folders."""
    includes = [str(_stubs(wanted, links))] if wanted.stubs else []
    for folder in wanted.folders:
        place = folders[folder.package.key].folder / folder.path
        if not place.is_dir():
            raise libclang.HeaderError(f"{wanted.module}: {folder.package.name} has no folder {folder.path}")
        if folder.name:
            root = links / f"{wanted.module}-{folder.name}"
            root.mkdir(parents=True, exist_ok=True)
            if not (root / folder.name).exists():
                (root / folder.name).symlink_to(place.resolve())
            place = root
        includes.append(str(place))
    paths = [folders[header.package.key].folder / header.path for header in wanted.headers]
    for path in paths:
        if not path.is_file():
            raise libclang.HeaderError(f"{wanted.module}: {path.name} is not where the manifest says, {path}")
    lines = [f"#include <{header.include}>" for header in wanted.headers if header.include]
    declared = [part for part in wanted.parts if isinstance(part, Declared)]
    replaced = [name for part in declared for name in part.names]
    away = [f"#define {name} {name}_in_header" for name in replaced]    # the header's own get out of the way
    back = [f"#undef {name}" for name in replaced]
    text = "\n".join([wanted.preamble, *away, *lines, *back, *(part.text for part in declared), ""])
    return Source(text, includes, paths, wanted.language)


def _stubs(wanted: HeaderSet, links: Path) -> Path:
    root = links / f"{wanted.module}-stubs"
    for name, text in wanted.stubs:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def build(wanted: HeaderSet, folders: Mapping[str, Unpacked], links: Path) -> Built:
    """Generate one set. Raises HeaderError where the headers and the manifest disagree."""
    source = source_of(wanted, folders, links)
    pieces, values, records = [], {}, []
    declared = [part for part in wanted.parts if isinstance(part, Declared)]
    for part in wanted.parts:
        if isinstance(part, Constants):
            values |= _constants(part, source, wanted.module)
        elif isinstance(part, Numbers):
            pieces.append(f"# a table of ours, from {part.source}\n{emit.constants(dict(part.values))}")
        elif isinstance(part, Table) and not part.name:
            values |= part.make(source, part.patterns, **part.options)
        elif isinstance(part, Table):
            pieces.append(emit.table(part.name, part.make.__doc__.splitlines()[0],
                                     part.make(source, part.patterns, **part.options)))
        elif isinstance(part, Records):
            text, records, enum_values = _records(part, source, wanted.module, declared)
            values |= enum_values
            pieces.append(text)
    heading = emit.docstring(wanted.title, _files(wanted), wanted.notes)
    imports = "import _cffi_backend\n\n" if records else "\n"
    body = "\n".join([piece for piece in (emit.constants(values), *pieces) if piece])
    return Built(f"{heading}{imports}{body}", records, _hashes(wanted, folders, source), source, values)


def _constants(part: Constants, source: Source, module: str) -> dict[str, int]:
    names = source.names(part.patterns)
    found = macros.constants(names, source.text, source.includes)
    for pattern in part.patterns:
        if not any(re.fullmatch(pattern, name) for name in found):
            raise libclang.HeaderError(f"{module}: no integer macro matches {pattern!r}; correct the "
                                       f"manifest")
    for name, value in found.items():
        if value < 0 and any(re.fullmatch(pattern, name) for pattern in part.unsigned):
            found[name] = value & 0xffffffff
    return {name.removeprefix(part.strip): value for name, value in found.items()}


def _records(part: Records, source: Source, module: str,
             declared: list[Declared]) -> tuple[str, list[Record], dict[str, int]]:
    prototypes = "".join(f"{prototype};\n" for prototype in part.functions)
    unit = libclang.parse(source.text + prototypes, source.includes, language=source.language)
    declarations = Declarations(unit)
    for name in (*part.names, *declarations.matching(part.patterns)):
        declarations.take(name)
    enums = [enum for enum in declarations.enums if _wanted(enum, part.enums)]
    named = [enum for enum in enums if enum.tag or enum.typedef]
    records = list(declarations.records.values())
    values = {name: value for enum in enums for name, value in enum.members}
    if not records:
        return "", [], values
    aliases = {record.name: [alias for alias in declarations.aliases(record.name)
                             if alias == record.tag or alias in part.names] for record in records}
    ffi = emit.ffi_for(records, named, aliases)
    ffi.cdef(prototypes)
    origin = {name: d.source for d in declared for name in d.names}
    worth_reading = [record for record in records if not origin
                     or {record.tag, record.typedef} & origin.keys()]
    comments = "".join(map(emit.describe, worth_reading))
    comment = "structs whose layout is a table of ours, with its source"
    table = emit.table("TABLE", comment, origin) if origin else ""
    return f"{table}{comments}{emit.ffi_source(ffi, module)}", records, values


def _wanted(enum: Enumeration, patterns: tuple[str, ...]) -> bool:
    name = enum.tag or enum.typedef or (enum.members[0][0] if enum.members else "")
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def _files(wanted: HeaderSet) -> dict[str, list[str]]:
    files: dict[str, list[str]] = {}
    for header in wanted.headers:
        files.setdefault(f"{header.package.name} ({header.package.suite})", []).append(header.path)
    return files


def _hashes(wanted: HeaderSet, folders: Mapping[str, Unpacked], source: Source) -> dict[tuple[str, str], str]:
    """sha256 of the listed headers and of everything they include from the packages."""
    files = {path.resolve() for path in source.paths}
    if source.text.strip():
        unit = libclang.parse(source.text, source.includes, language=source.language)
        files |= {Path(inclusion.include.name).resolve() for inclusion in unit.get_includes()}
    hashes = {}
    for package in wanted.packages:
        root = folders[package.key].folder.resolve()
        for file in sorted(files):
            if file.is_relative_to(root):
                digest = hashlib.sha256(file.read_bytes()).hexdigest()
                hashes[package.key, str(file.relative_to(root))] = digest
    return hashes
