"""Compile C sources to object code: from the cache, or several at once."""
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tiny.toolchain.cache import Cache, digest
from tiny.toolchain.compilers import Compiler
from tiny.toolchain.process import ToolchainError, finish, start

LARGEST_UNIT = 64                                   # sources in one translation unit
UNIT_CHARACTERS = 12_000                            # take as long to compile as a compiler takes to start


class CompileError(ToolchainError):
    """The compiler refused a source; the text shows its message and the numbered lines around the place."""


@dataclass(frozen=True, slots=True)
class Source:
    """One kernel: `text` defines the function `name` and nothing else that other units could see.

    preamble: typedefs and static helpers in front of it; sources with the same preamble share a compilation.
    """
    name: str
    text: str
    preamble: str = ""


def compile_objects(sources: Sequence[Source], compiler: Compiler, flags: Sequence[str],
                    cache: Cache | None = None, processes: int = 1,
                    missed: Callable[[list[Source]], None] | None = None) -> list[bytes]:
    """Object code for each source, from the cache or the compiler; sources compiled together share one.

    processes: how many compilers may run at a time. missed: called with the sources that were not in the
    cache, before they are compiled. CompileError for a source the compiler refuses.
    """
    fixed = (compiler.kind, compiler.banner, *flags)
    keys = [digest("object", *fixed, s.preamble, s.name, s.text) for s in sources]
    found = {key: cache.get(key) for key in keys} if cache else {}
    objects = {key: data for key, data in found.items() if data is not None}
    missing = {key: source for key, source in zip(keys, sources, strict=True) if key not in objects}
    if missed is not None and missing:
        missed(list(missing.values()))
    units = divide(missing, processes)
    for first in range(0, len(units), processes):
        together = units[first:first + processes]
        running = [_Compilation([missing[key] for key in unit], compiler, flags, cache) for unit in together]
        try:
            for unit, compilation in zip(together, running, strict=True):
                data = compilation.objects()
                objects.update(zip(unit, data, strict=True))
                if cache:
                    cache.put_shared(unit, data)
        finally:
            for compilation in running:
                compilation.close()
    return [objects[key] for key in keys]


def divide(missing: dict[str, Source], processes: int) -> list[list[str]]:
    """Keys by translation unit: same preamble, different names, and of about equal length.

    As few units as keep `processes` compilers busy, since each start costs as much as UNIT_CHARACTERS.
    """
    alike: dict[tuple[str, int], list[str]] = {}
    seen: dict[tuple[str, str], int] = {}
    for key, source in missing.items():
        repeats = seen[source.preamble, source.name] = seen.get((source.preamble, source.name), -1) + 1
        alike.setdefault((source.preamble, repeats), []).append(key)
    units = []
    for keys in alike.values():
        lengths = {key: len(missing[key].text) for key in keys}
        count = min(processes, -(-sum(lengths.values()) // UNIT_CHARACTERS), len(keys))
        parts: list[list[str]] = [[] for _ in range(max(count, -(-len(keys) // LARGEST_UNIT)))]
        filled = [0] * len(parts)
        for key in sorted(keys, key=lengths.__getitem__, reverse=True):
            smallest = filled.index(min(filled))
            parts[smallest].append(key)
            filled[smallest] += lengths[key]
        units += parts
    return units


class _Compilation:
    """A compiler at work on a translation unit; `objects` waits for it, `close` ends it if it still runs."""

    def __init__(self, sources: list[Source], compiler: Compiler, flags: Sequence[str], cache: Cache | None):
        self.sources, self.compiler, self.flags, self.cache = sources, compiler, flags, cache
        self._folder = tempfile.mkdtemp(prefix="tiny-", dir=cache.work_folder() if cache else None)
        source, self._result = (os.path.join(self._folder, name) for name in ("kernel.c", "kernel.o"))
        with open(source, "w") as file:
            file.write(_unit_text(sources))
        self._process = start([*compiler.command, *flags, "-c", source, "-o", self._result])

    def objects(self) -> list[bytes]:
        """One object for each source: the same one, or one each if they clash or one of them is bad."""
        status, output = finish(self._process)
        if status == 0:
            with open(self._result, "rb") as file:
                return [file.read()] * len(self.sources)
        if len(self.sources) == 1:
            raise CompileError(_explain(self.sources[0], output, self.compiler))
        return [_alone(source, self.compiler, self.flags, self.cache) for source in self.sources]

    def close(self) -> None:
        if self._process.returncode is None:                # given up because another one failed
            self._process.kill()
            self._process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)


def _alone(source: Source, compiler: Compiler, flags: Sequence[str], cache: Cache | None) -> bytes:
    compilation = _Compilation([source], compiler, flags, cache)
    try:
        return compilation.objects()[0]
    finally:
        compilation.close()


def _unit_text(sources: list[Source]) -> str:
    parts = [f'#line 1 "preamble"\n{sources[0].preamble}\n'] if sources[0].preamble else []
    return "".join(parts + [f'#line 1 "{source.name}"\n{source.text}\n' for source in sources])


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
