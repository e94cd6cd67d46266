"""What is generated: header sets, their packages, and what is taken from each.

A set becomes one module, `tiny.autogen.<module>`. The versions and the sha256 of every file read are recorded
in `autogen/manifest.json` when the set is generated; `make bindings-check` compares with that record.
"""
from collections.abc import Callable
from dataclasses import dataclass, field

from tiny.autogen.generator.packages import Package


@dataclass(frozen=True)
class Header:
    """One file to read: its package and its path in it. `include` is how an #include line names it ("" to
    read it only).
    """
    package: Package
    path: str
    include: str = ""


@dataclass(frozen=True)
class Folder:
    """A folder to include from: a package's sub-folder. `name` makes it appear one level down, as
    `<name/...>`.
    """
    package: Package
    path: str
    name: str = ""


@dataclass(frozen=True)
class Records:
    """Take these structs and unions, and what they contain.

    names     exact names
    patterns  regular expressions that match a whole name
    enums     regular expressions for enums to take as types and as constants; unnamed enums match by their
    first member
    functions C prototypes to call through `ffi.dlopen`; one that contradicts the headers does not compile
    """
    names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    enums: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Constants:
    """Take the macros that match and are integer constants. `unsigned`: those the C language makes negative
    by accident, as `1 << 31`, are given as unsigned 32-bit numbers.
    """
    patterns: tuple[str, ...]
    unsigned: tuple[str, ...] = ()
    strip: str = ""


@dataclass(frozen=True)
class Table:
    """Take a table with one of the functions of `tables`; `name` is what the module calls it; rows of a table
    without a name become constants.
    """
    name: str
    make: Callable
    patterns: tuple[str, ...] = (".*",)
    options: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Numbers:
    """Numbers of ours that no packaged header has; `source` says where they come from."""
    values: tuple[tuple[str, int], ...]
    source: str


@dataclass(frozen=True)
class Declared:
    """C text of ours in place of a header's: for what no package carries. `source` says where the facts come
    from.
    """
    text: str
    source: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class HeaderSet:
    """One module to generate.

    preamble  C text before the headers: types that a kernel header takes for granted
    stubs     (name, text) of system headers that the set includes and does not need the contents of
    small     its packages are a few megabytes: CI regenerates it
    """
    module: str
    title: str
    headers: tuple[Header, ...]
    folders: tuple[Folder, ...]
    parts: tuple[Records | Constants | Table | Numbers | Declared, ...]
    preamble: str = ""
    stubs: tuple[tuple[str, str], ...] = ()
    language: str = "c"
    small: bool = False
    notes: str = ""

    @property
    def packages(self) -> tuple[Package, ...]:
        """Every package the set reads from, once."""
        return tuple(dict.fromkeys([h.package for h in self.headers] + [f.package for f in self.folders]))
