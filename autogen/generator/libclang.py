"""Find libclang and parse one C or C++ text with it."""
import ctypes.util
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clang import cindex

# where distributions put the library, newest LLVM first once sorted; libclang-cpp is another library
_PLACES = ("/usr/lib/llvm-*/lib/libclang.so*", "/usr/lib/llvm-*/lib/libclang-*.so*",
           "/usr/lib/*/libclang-*.so*",
           "/usr/lib64/libclang.so*", "/usr/lib/libclang.so*", "/usr/local/lib/libclang.so*",
           "/opt/homebrew/opt/llvm*/lib/libclang.dylib", "/usr/local/opt/llvm*/lib/libclang.dylib",
           "/Library/Developer/CommandLineTools/usr/lib/libclang.dylib")
NEWEST = cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD


class HeaderError(Exception):
    """A header does not parse, or does not hold what the manifest asks of it."""


@dataclass(frozen=True)
class Library:
    """One libclang on this machine, and the folder of its own headers (stddef.h and the like)."""
    path: str
    major: int
    include: str


def _version(path: str) -> int:
    """The major version in a library's path, 0 when the path names none."""
    found = re.findall(r"llvm-(\d+)|clang-(\d+)|@(\d+)", path)
    return max((int(number) for match in found for number in match if number), default=0)


def _own_headers(library: Path, major: int) -> str:
    """clang's own include folder, next to the library: LLVM 16 and later name it by the major version
    alone.
    """
    roots = [library.resolve().parent / "clang", Path(f"/usr/lib/llvm-{major}/lib/clang")]
    found = [folder / "include" for root in roots if root.is_dir()
             for folder in sorted(root.iterdir(), reverse=True)
             if (folder / "include" / "stddef.h").is_file()]
    if not found:
        raise HeaderError(f"libclang {library}: its own headers (stddef.h) are in none of "
                          f"{[str(r) for r in roots]}; "
                          f"install libclang-common-{major}-dev")
    return str(found[0])


def candidates() -> list[Path]:
    """Every libclang found in the usual places, the newest first."""
    found = {path for place in _PLACES for path in Path("/").glob(place[1:]) if "clang-cpp" not in path.name}
    named = ctypes.util.find_library("clang")
    if named and Path(named).is_file():
        found.add(Path(named))
    return sorted(found, key=lambda path: (_version(str(path.resolve())), str(path)), reverse=True)


def load(asked: str | None = None) -> Library:
    """Load libclang once in this process: `asked`, or the newest one found.

    The Python bindings may be older or newer than the library: their check of that is switched off, since
    every function used here is in both. Raises HeaderError when there is no library.
    """
    paths = [Path(asked)] if asked else candidates()
    if not paths:
        raise HeaderError(f"no libclang in any of {', '.join(_PLACES)}; install libclang1-NN, or pass "
                          f"--libclang FILE")
    path = paths[0]
    if not cindex.Config.loaded:
        cindex.Config.set_compatibility_check(False)
        cindex.Config.set_library_file(str(path))
    major = _version(str(path.resolve()))
    return Library(str(path), major, _own_headers(path, major))


def parse(text: str, includes: Sequence[str], *, language: str = "c", arguments: Sequence[str] = (),
          macros: bool = False, tolerant: bool = False) -> cindex.TranslationUnit:
    """Parse `text` for x86-64 Linux with only `includes` and clang's own headers to include from.

    macros    keep the preprocessing record: slow for large headers
    tolerant  errors stay in the result's diagnostics instead of raising HeaderError
    """
    library = load()
    flags = ["-x", language, "--target=x86_64-linux-gnu", "-nostdinc", "-Wno-everything", "-ferror-limit=0",
             *arguments]
    flags += ["-std=c++17", "-fblocks"] if language == "c++" else []
    flags += [flag for folder in includes for flag in ("-isystem", folder)] + ["-isystem", library.include]
    name = "tiny_headers.h"
    unit = cindex.Index.create().parse(name, args=flags, unsaved_files=[(name, text)], options=NEWEST
                                       if macros else 0)
    errors = [diagnostic for diagnostic in unit.diagnostics if diagnostic.severity >= cindex.Diagnostic.Error]
    if errors and not tolerant:
        raise HeaderError("\n".join(f"{e.location.file}:{e.location.line}: {e.spelling}"
                                    for e in errors[:10]))
    return unit
