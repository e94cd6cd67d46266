"""Find a C compiler, run it on kernels, keep what it made in a content-addressed cache on disk.

A start with a warm cache runs no process at all: object code is found by a key of everything that could
change it (source, flags, compiler and its version), and the compiler's version is itself cached by the
file's path, size and time. Sources that miss the cache are joined into one translation unit, because
starting clang costs 30 ms and a small kernel 3 ms (tests/benchmarks/toolchain.py).
"""
import functools
import hashlib
import itertools
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

NEWEST_CLANG, OLDEST_CLANG = 40, 14
INSTALL = "apt-get install clang-22   (or: apt-get install clang, or: apt-get install gcc)"
COMPILE_LIMIT_S = 300
BATCH_SOURCES = 16                                  # sources in one translation unit at most

MAGIC = b"tiny1\n"
CHECKSUM_BYTES = 16
STALE_S = 3600
DATA, SHARED = b"d", b"s"                           # what follows: the data, or the key of the entry with it


class ToolchainError(RuntimeError):
    """A tool is missing or does not work; the text says what was looked for, where, and what to install."""


class CompileError(ToolchainError):
    """The compiler refused a source; the text shows its message and the numbered lines around the place."""


@dataclass(frozen=True, slots=True)
class Source:
    """One kernel: `text` defines the function `name` and nothing else that other units could see.

    preamble: typedefs and static helpers in front of it; sources with the same preamble share one
    compilation.
    """
    name: str
    text: str
    preamble: str = ""


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


class Cache:
    """Entries in `folder`, content-addressed, safe between processes.

    An entry is a file named by its key: magic, a checksum, then the data. It is written beside its place and
    renamed into it, so a reader sees all of it or nothing; a damaged entry counts as missing and is written
    again. A killed process leaves at most a file in `work/`, which a later process clears away.

    A folder that cannot be written is reported once on stderr, then entries are only read.
    """
    def __init__(self, folder: str):
        self.folder = folder
        self._numbers = itertools.count()
        self._writable = True
        self._cleared = False
        self._shared: dict[str, bytes] = {}         # objects that several keys share, as read in this process

    def get(self, key: str) -> bytes | None:
        """The entry's data, None if there is none or it is damaged."""
        body = self._read(key)
        if body is None:
            return None
        if body[:1] == DATA:
            return body[1:]
        shared_key = body[1:].decode()
        if shared_key not in self._shared:
            shared = self._read(shared_key)
            if shared is None or shared[:1] != DATA:
                return None
            self._shared[shared_key] = shared[1:]
        return self._shared[shared_key]

    def put(self, key: str, data: bytes) -> None:
        """Keep `data`; another process may do the same at the same time, the later one wins."""
        self._write(key, DATA + data)

    def put_shared(self, keys: Sequence[str], data: Sequence[bytes]) -> None:
        """Keep one object for each key; an object that several keys share is stored once."""
        for key, one in zip(keys, data, strict=True):
            if sum(other is one for other in data) == 1:
                self.put(key, one)
                continue
            place = hashlib.blake2b(one, digest_size=20).hexdigest()
            if place not in self._shared:
                self._shared[place] = one
                self.put(place, one)
            self._write(key, SHARED + place.encode())

    def work_folder(self) -> str | None:
        """A folder for temporary files on the same file system, None if there is none to write in."""
        folder = os.path.join(self.folder, "work")
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            self._give_up(error)
            return None
        if not os.access(folder, os.W_OK):
            return None
        if not self._cleared:
            self._cleared = True
            _clear_stale(folder)
        return folder

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, key[:2], key[2:])

    def _read(self, key: str) -> bytes | None:
        try:
            with open(self._path(key), "rb") as file:
                entry = file.read()
        except OSError:
            return None
        start = len(MAGIC) + CHECKSUM_BYTES
        if entry[:len(MAGIC)] != MAGIC or entry[len(MAGIC):start] != _checksum(entry[start:]):
            return None
        return entry[start:]

    def _write(self, key: str, body: bytes) -> None:
        if not self._writable:
            return
        folder, path = self.work_folder(), self._path(key)
        if folder is None:
            return
        temporary = os.path.join(folder, f"{key}.{os.getpid()}.{next(self._numbers)}")
        try:
            with open(temporary, "wb") as file:
                file.write(MAGIC + _checksum(body) + body)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.replace(temporary, path)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        if self._writable:
            self._writable = False
            os.write(2, f"tiny: {self.folder} cannot be written ({error.strerror}), compiled kernels are not "
                        "kept; set CACHE to a folder that can, or CACHE=0 to do without\n".encode())


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=CHECKSUM_BYTES).digest()


def _clear_stale(folder: str) -> None:
    """Remove what processes that were killed left behind."""
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if time.time() - entry.stat(follow_symlinks=False).st_mtime < STALE_S:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)
            except OSError:
                continue                            # another process was faster, or it is not ours to remove


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
    key = _digest("compiler", *command, binary, str(facts.st_size), str(facts.st_mtime_ns))
    text = cache.get(key) if cache else None
    if text is None:
        text = _run([*command, "--version"])[1].encode()
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


def _run(command: Sequence[str]) -> tuple[int, str]:
    """Exit status and everything the command printed. Raises ToolchainError if it cannot start or hangs."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=COMPILE_LIMIT_S)
    except OSError as error:
        raise ToolchainError(f"{command[0]} does not start: {error.strerror}; set CC to a C compiler that "
                             f"does, or install one:\n    {INSTALL}") from None
    except subprocess.TimeoutExpired:
        raise ToolchainError(f"{shlex.join(command)}: stopped after {COMPILE_LIMIT_S} s") from None
    return done.returncode, done.stdout.decode(errors="replace")


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=20).hexdigest()


def compile_objects(sources: Sequence[Source], compiler: Compiler, flags: Sequence[str],
                    cache: Cache | None = None,
                    missed: Callable[[list[Source]], None] | None = None) -> list[bytes]:
    """Object code for each source, from the cache or the compiler; sources compiled together share one.

    missed: called with the sources that were not in the cache, before they are compiled.
    Raises CompileError for a source the compiler refuses.
    """
    fixed = (compiler.kind, compiler.banner, *flags)
    keys = [_digest("object", *fixed, s.preamble, s.name, s.text) for s in sources]
    objects: dict[str, bytes] = {}
    for key in keys:
        if cache and key not in objects:
            data = cache.get(key)
            if data is not None:
                objects[key] = data
    missing = {key: source for key, source in zip(keys, sources, strict=True) if key not in objects}
    if missed is not None and missing:
        missed(list(missing.values()))
    for batch in _batches(missing):
        data = _compile_together([missing[key] for key in batch], compiler, flags, cache)
        for key, one in zip(batch, data, strict=True):
            objects[key] = one
        if cache:
            cache.put_shared(batch, data)
    return [objects[key] for key in keys]


def _batches(missing: dict[str, Source]) -> list[list[str]]:
    """Keys that are compiled together: same preamble, different names, not too many."""
    batches: dict[tuple, list[str]] = {}
    count: dict[tuple, int] = {}
    for key, source in missing.items():
        repeats = count[source.preamble, source.name] = count.get((source.preamble, source.name), -1) + 1
        total = count[source.preamble] = count.get(source.preamble, -1) + 1
        batches.setdefault((source.preamble, repeats, total // BATCH_SOURCES), []).append(key)
    return list(batches.values())


def _compile_together(sources: list[Source], compiler: Compiler, flags: Sequence[str],
                      cache: Cache | None) -> list[bytes]:
    """One object for each source: the same one, or one each if they cannot share a unit or one of them is
    bad.
    """
    status, output, data = _compile_unit(_unit(sources), compiler, flags, cache)
    if status == 0:
        return [data] * len(sources)
    if len(sources) == 1:
        raise CompileError(_explain(sources[0], output, compiler))
    return [_compile_together([source], compiler, flags, cache)[0] for source in sources]


def _unit(sources: list[Source]) -> str:
    parts = [f'#line 1 "preamble"\n{sources[0].preamble}\n'] if sources[0].preamble else []
    return "".join(parts + [f'#line 1 "{source.name}"\n{source.text}\n' for source in sources])


def _compile_unit(text: str, compiler: Compiler, flags: Sequence[str],
                  cache: Cache | None) -> tuple[int, str, bytes]:
    """Exit status, messages and the object."""
    folder = tempfile.mkdtemp(prefix="tiny-", dir=cache.work_folder() if cache else None)
    try:
        source, result = os.path.join(folder, "kernel.c"), os.path.join(folder, "kernel.o")
        with open(source, "w") as file:
            file.write(text)
        status, output = _run([*compiler.command, *flags, "-c", source, "-o", result])
        if status:
            return status, output, b""
        with open(result, "rb") as file:
            return status, output, file.read()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _explain(source: Source, output: str, compiler: Compiler) -> str:
    place = re.search(r"^([^:\n]+):(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", output, re.MULTILINE)
    if place is None:
        return f"{source.name}: {compiler} failed:\n{output.strip()}"
    where, line, message = place.group(1), int(place.group(2)), place.group(3)
    lines = (source.preamble if where == "preamble" else source.text).split("\n")
    shown = [f"{'>' if n == line else ' '}{n:5} | {lines[n - 1]}"
             for n in range(max(1, line - 4), min(len(lines), line + 4) + 1)]
    rest = f"\n{output.strip()}" if output.count("error: ") > 1 else ""
    return f"{source.name}: {compiler}: {message}\n" + "\n".join([f"{where}:{line}", *shown]) + rest
