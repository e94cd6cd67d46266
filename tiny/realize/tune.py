"""Schedules found by search: made once for a kernel and a machine, kept on disk, shared between machines.

    BEAM=4 python script.py                 # search; a second run uses what was found
    python -m tiny tune export FILE         # and import FILE, list, clear
"""
import argparse
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence

from tqdm import tqdm

from tiny import config
from tiny.hcq import device as devices
from tiny.ir import ops
from tiny.ir.integer import bounds, evaluate, substitute
from tiny.ir.node import Node, toposort
from tiny.realize.measure import Job, Worker
from tiny.realize.prepare import pointer_types, scheduled
from tiny.realize.program import Rendered
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import Schedule, ScheduleError
from tiny.schedule.record import from_data, to_data
from tiny.schedule.search import search
from tiny.toolchain import Cache, CompileError, Source
from tiny.toolchain.cache import KEY_BYTES, digest

REVISION = "2"               # of the search: raise it when what was found before should be found anew
LARGEST_MEMORY = 4 << 30     # bytes of a kernel's memory up to which it is tried out
LONGEST_SOURCE = 200_000     # characters of a candidate
WORTH_SEARCHING_S = 10e-6    # a kernel that takes less is mostly its launch
FOLDER = "tuned"
KEY = re.compile(f"[0-9a-f]{{{2 * KEY_BYTES}}}")
# what is kept of a kernel, as JSON. target: the key of a Target; beam: the width of the search; before_s,
# time_s: seconds of a run under the first schedule and under the one found; schedule: see `schedule.record`
ENTRY = {"kernel": str, "target": str, "beam": int, "before_s": (int, float), "time_s": (int, float),
         "schedule": dict}

_workers: dict[str, Worker] = {}


def tuned(plain: Rendered, start: Schedule, device: devices.Device, width: int) -> Schedule:
    """The schedule to use with BEAM=`width`: found before, or searched for now from `start`.

    plain: the kernel under the plain schedule, whose source is what identifies the kernel.
    """
    folder = config.current().cache_folder
    kept = Cache(folder, FOLDER) if folder else None
    kernel = plain.source.text.replace(plain.name, "f")
    key = digest("schedule", REVISION, device.target.key, str(width), kernel)
    known = _decoded(kept.get(key)) if kept else None
    if known is not None:
        try:
            return from_data(plain.kernel, known["schedule"])
        except ScheduleError:
            pass                                            # damaged, or of a kernel that looks alike
    sizes = _sizes(plain.kernel, len(plain.pointers))
    if sizes is None:
        return start
    with tqdm(desc=f"search {plain.name}", unit=" schedules", disable=None, leave=False) as progress:
        timer = _Timer(plain, sizes, device, progress)
        before = timer([start])[0]
        found, seconds = start, before
        if before > WORTH_SEARCHING_S:
            found, seconds = search(plain.kernel, start, device.target, width, timer)
    if kept:
        entry = {"kernel": plain.name, "target": device.target.key, "beam": width, "before_s": before,
                 "time_s": seconds, "schedule": to_data(plain.kernel, found)}
        kept.put(key, json.dumps(entry).encode())
    return found


def _decoded(entry: bytes | None) -> dict | None:
    """What `tuned` wrote; None for nothing, and for what it did not write."""
    try:
        decoded = json.loads(entry) if entry is not None else None
    except ValueError:
        return None
    return decoded if _is_entry(decoded) else None


def _is_entry(decoded) -> bool:
    return isinstance(decoded, dict) and all(isinstance(decoded.get(name), kind)
                                             for name, kind in ENTRY.items())


def _sizes(kernel: Kernel, pointers: int) -> tuple[int, ...] | None:
    """Bytes behind each pointer that the kernel may touch; None where that is unknown or too much."""
    most = [0] * pointers
    most[0] = bounds(kernel.index)[1]
    roots = [part for part in (kernel.value, kernel.gate, kernel.index) if isinstance(part, Node)]
    for node in toposort(*roots):
        if node.op is ops.LOAD:
            most[node.src[0].arg] = max(most[node.src[0].arg], bounds(node.src[1])[1])
    types = pointer_types(kernel, pointers)
    sizes = tuple((last + 1) * dtype.itemsize for last, dtype in zip(most, types, strict=True))
    return sizes if sum(sizes) <= LARGEST_MEMORY else None


class _Timer:
    """Times schedules of one kernel: compiled several at once here, run one by one in the worker."""

    def __init__(self, plain: Rendered, sizes: tuple[int, ...], device: devices.Device, progress: tqdm):
        self._plain, self._sizes, self._device, self._progress = plain, sizes, device, progress
        if device.name not in _workers:
            _workers[device.name] = Worker(device.name)
        self._worker = _workers[device.name]
        self._best = float("inf")
        self._known: dict[Schedule, float] = {}

    def __call__(self, schedules: Sequence[Schedule]) -> list[float]:
        made = {one: self._prepare(one) for one in schedules if one not in self._known}
        made = {one: prepared for one, prepared in made.items() if prepared is not None}
        objects = _compile(list(made.values()), self._device)
        for (one, prepared), code in zip(made.items(), objects, strict=True):
            if code is not None:
                self._known[one] = self._run(prepared, code)
                self._best = min(self._best, self._known[one])
            self._progress.update()
        return [self._known.setdefault(one, float("inf")) for one in schedules]

    def _prepare(self, schedule: Schedule) -> Rendered | None:
        """The candidate as source text, None if that is too long to be worth compiling."""
        prepared = scheduled(self._plain.kernel, schedule, len(self._plain.pointers), self._device.target)
        return prepared if len(prepared.source.text) <= LONGEST_SOURCE else None

    def _run(self, one: Rendered, code: bytes) -> float:
        largest = {variable: variable.arg[2] for variable in one.variables}
        return self._worker.measure(Job(
            code, one.name, one.threads, self._sizes, tuple(dtype.is_float for dtype in one.pointers),
            tuple(largest.values()), evaluate(substitute(one.groups, largest)), self._best))


def _compile(candidates: list[Rendered], device: devices.Device) -> list[bytes | None]:
    """Object code of each; None for one that the compiler refuses."""
    sources = [one.source for one in candidates]
    try:
        return list(device.compile(sources))
    except CompileError:
        return [_compile_one(source, device) for source in sources]


def _compile_one(source: Source, device: devices.Device) -> bytes | None:
    try:
        return device.compile([source])[0]
    except CompileError:
        return None


# -- the command line ----------------------------------------------------------------------------------------
def main(arguments: list[str]) -> int:
    """`python -m tiny tune`; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tiny tune", description="Schedules that BEAM has found.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="every kernel searched for: its time before and after")
    commands.add_parser("clear", help="forget them")
    for name, text in (("export", "write them to FILE"), ("import", "add those in FILE")):
        commands.add_parser(name, help=text).add_argument("file")
    asked = parser.parse_args(arguments)
    base = config.current().cache_folder
    if base is None:
        print("tiny tune: CACHE=0 keeps nothing; unset it, or name a folder", file=sys.stderr)
        return 2
    folder = os.path.join(base, FOLDER)
    try:
        if asked.command in ("export", "import"):
            return (_export if asked.command == "export" else _import)(folder, asked.file)
        return (_list if asked.command == "list" else _clear)(folder)
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"tiny tune: {error.filename or folder}: {error.strerror}", file=sys.stderr)
        return 2


def _list(folder: str) -> int:
    entries = _entries(folder)
    if not entries:
        print(f"tiny tune: {folder} holds no schedules; BEAM=4 python PROGRAM finds some", file=sys.stderr)
    for entry in sorted(entries.values(), key=lambda entry: -entry["before_s"]):
        device = ":".join(entry["target"].split()[:2])
        print(f"{entry['kernel']:40} {entry['before_s'] * 1e6:10.1f} us -> {entry['time_s'] * 1e6:10.1f} us  "
              f"BEAM={entry['beam']}  {device}")
    return 0


def _clear(folder: str) -> int:
    count = len(_entries(folder))
    shutil.rmtree(folder, ignore_errors=True)
    print(f"{count} schedules forgotten")
    return 0


def _export(folder: str, file: str) -> int:
    entries = _entries(folder)
    with open(file, "w") as out:
        json.dump({"tiny schedules": REVISION, "entries": entries}, out, indent=1)
    print(f"{len(entries)} schedules written to {file}")
    return 0


def _import(folder: str, file: str) -> int:
    """Add a file's entries; of two for one kernel the faster stays."""
    try:
        with open(file) as source:
            read = json.load(source)
        revision, entries = read["tiny schedules"], dict(read["entries"])
        fits = all(KEY.fullmatch(key) and _is_entry(entry) for key, entry in entries.items())
    except (ValueError, KeyError, TypeError):
        fits = False
    if not fits:
        print(f"tiny tune: {file} was not written by `tune export`", file=sys.stderr)
        return 2
    if revision != REVISION:
        print(f"tiny tune: {file} is of revision {revision} of the search, this is {REVISION}; search again",
              file=sys.stderr)
        return 2
    known, kept, added = _entries(folder), Cache(folder), 0
    for key, entry in entries.items():
        if key not in known or entry["time_s"] < known[key]["time_s"]:
            kept.put(key, json.dumps(entry).encode())
            added += 1
    rest = "; the others are no faster than those kept here" if added < len(entries) else ""
    print(f"{added} of {len(entries)} schedules added{rest}")
    return 0


def _entries(folder: str) -> dict[str, dict]:
    kept = Cache(folder)
    decoded = {key: _decoded(kept.get(key)) for key in kept.keys()}
    return {key: entry for key, entry in decoded.items() if entry is not None}
