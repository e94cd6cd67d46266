"""Plans on disk: a second run of a program finds its kernels' order and source there, and plans nothing.

An entry is found by the graph's structure, the target, the settings that shape kernels, and the state of the
files that plan, schedule and render, so that a change of any of them plans anew.
"""
import functools
import hashlib
import os
import pickle
from pathlib import Path

from tiny import config
from tiny.realize.program import Rendered
from tiny.schedule.steps import Plan
from tiny.target import Target
from tiny.toolchain import Cache
from tiny.toolchain.cache import digest

WORTH_KEEPING_S = 0.002      # plans made faster than this are made again
FOLDER = "plans"
# what of tiny/ shapes a plan, and what it is kept as
DECIDING = ("ir", "schedule", "render", "toolchain", "realize/prepare.py", "realize/program.py")

Found = tuple[Plan, list[Rendered]]                         # and the kernel of each step


def place_of(key: tuple, target: Target) -> tuple[Cache, str] | None:
    """Where the plan of a graph would be kept: the cache and the entry's name; None where none is kept.

    key: what tells the graph's plan from others.
    """
    settings = config.current()
    folder = settings.cache_folder
    if folder is None or settings.check or settings.noopt or settings.beam:
        return None
    graph = hashlib.blake2b(pickle.dumps(key, 5), digest_size=32).hexdigest()
    return _cache(folder), digest("plan", _state_of_sources(), target.key, graph)


def load(place: tuple[Cache, str]) -> Found | None:
    """The plan that is kept there, None if there is none or it cannot be read."""
    data = place[0].get(place[1])
    if data is None:
        return None
    try:
        plan, kernels, which = pickle.loads(data)
    except Exception:  # of other classes, or damaged in a way that no checksum shows: as if not there
        return None
    return plan, [kernels[number] for number in which]


def keep(place: tuple[Cache, str], plan: Plan, rendered: list[Rendered]) -> None:
    """Keep a plan; kernels that several steps share are written once."""
    kernels = list({id(one): one for one in rendered}.values())
    number = {id(one): n for n, one in enumerate(kernels)}
    data = pickle.dumps((plan, kernels, [number[id(one)] for one in rendered]), 5)
    place[0].put(place[1], data)


@functools.cache
def _cache(folder: str) -> Cache:
    return Cache(folder, FOLDER)


@functools.cache
def _state_of_sources() -> str:
    """Names, sizes and times of the files that decide what a plan looks like."""
    package = Path(__file__).parent.parent
    states = []
    for part in DECIDING:
        path = package / part
        entries = os.scandir(path) if path.is_dir() else [path]
        for entry in entries:
            if entry.name.endswith(".py"):
                facts = entry.stat()
                states.append(f"{part}/{entry.name} {facts.st_size} {facts.st_mtime_ns}")
    return digest(*sorted(states))
