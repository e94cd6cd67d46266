"""Find a C compiler: the one CC names, the newest clang, or gcc."""
import functools
import os
import re
import shlex
import shutil
from dataclasses import dataclass

from tiny.toolchain.cache import Cache, digest
from tiny.toolchain.process import INSTALL, ToolchainError, finish, start

NEWEST_CLANG, OLDEST_CLANG = 40, 14


@dataclass(frozen=True, slots=True)
class Compiler:
    """A working C compiler. command: program and its fixed arguments; kind: clang or gcc; version: 22.1.8.

    banner: the first line it says of itself, which tells builds of one version apart in cache keys.
    """
    command: tuple[str, ...]
    kind: str
    version: str
    banner: str

    def __str__(self) -> str:
        return f"{self.kind}-{self.version}"


def find_compiler(cc: str = "", cache: Cache | None = None) -> Compiler:
    """The compiler that `cc` names (a command, arguments allowed), else the newest clang on PATH, else gcc.

    Raises ToolchainError that says what was looked for, where, and how to install it.
    """
    path = os.pathsep.join(os.get_exec_path())
    if cc:
        command = shlex.split(cc)
        program = shutil.which(command[0], path=path)
        if program is None:
            raise ToolchainError(f"CC={cc}: {command[0]} is not on PATH ({path}); name one that is, or unset "
                                 "CC to use the newest clang")
        return _identify((program, *command[1:]), cache)
    program = _newest_on(path)
    if program is None:
        raise ToolchainError(f"no C compiler: looked for clang-{NEWEST_CLANG} ... clang-{OLDEST_CLANG}, "
                             f"clang, gcc and cc in {path}; install one with\n    {INSTALL}\nor name one "
                             "with CC=/path/to/clang")
    return _identify((program,), cache)


@functools.cache
def _newest_on(path: str) -> str | None:
    numbered = [f"clang-{n}" for n in range(NEWEST_CLANG, OLDEST_CLANG - 1, -1)]
    found = (shutil.which(name, path=path) for name in [*numbered, "clang", "gcc", "cc"])
    return next((program for program in found if program), None)


def _identify(command: tuple[str, ...], cache: Cache | None) -> Compiler:
    binary = os.path.realpath(command[0])
    facts = os.stat(binary)
    key = digest("compiler", *command, binary, str(facts.st_size), str(facts.st_mtime_ns))
    text = cache.get(key) if cache else None
    if text is None:
        text = finish(start([*command, "--version"]))[1].encode()
        if cache:
            cache.put(key, text)
    return _parse_version(command, text.decode())


def _parse_version(command: tuple[str, ...], text: str) -> Compiler:
    banner = text.partition("\n")[0]
    kind = "clang" if "clang" in banner else "gcc" if re.match(r"\S*(cc|g\+\+|GCC)", banner) else None
    number = re.search(r"\d+\.\d+(\.\d+)?", text)
    if kind is None or number is None:
        raise ToolchainError(f"{shlex.join(command)} --version answers {text[:80]!r}, which is neither clang "
                             f"nor gcc; set CC to one of them, or install one:\n    {INSTALL}")
    return Compiler(command, kind, number.group(), banner)
