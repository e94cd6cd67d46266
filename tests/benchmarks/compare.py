"""tiny beside PyTorch (eager and compiled), JAX, numpy and tinygrad: times, ratios, and a picture.

    python -m tests.benchmarks.compare                    # what is installed beside tiny
    python -m tests.benchmarks.compare --rows matmul --seconds 2 --python /path/to/python

Each framework has a process of its own that stays; a row is measured in all of them in turn, several times,
so that what the machine does meanwhile meets them all. Nothing else should run. Figures are medians.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tqdm import tqdm

from tests.benchmarks.peers.data import BY_NAME, ROWS, Row
from tests.benchmarks.peers.processes import SCRIPTS, script
from tiny.llm import files
from tiny.toolchain import find_compiler

try:
    from matplotlib import pyplot
except ImportError:                                         # the table is worth having without the picture
    pyplot = None

PEERS = ("torch", "compiled", "jax", "numpy", "tinygrad")
HEADINGS = {
    "tiny": "tiny",
    "torch": "PyTorch",
    "compiled": "compiled",
    "jax": "JAX",
    "numpy": "numpy",
    "tinygrad": "tinygrad",
}
ROUNDS = 3
LEAST = 0.7  # no row under this ratio
FIGURES, PICTURE = Path("build/compare.json"), Path("build/compare.png")


def environment(cache: str | None = None) -> dict[str, str]:
    """What every process gets: two threads, a compiler by the name that peers look for, where caches are.

    cache: a folder for the caches of every framework, instead of each one's own.
    """
    found = os.environ | {"OMP_NUM_THREADS": "2", "THREADS": "2", "PATH": f"{_tools()}:{os.environ['PATH']}"}
    if cache:
        found |= {"XDG_CACHE_HOME": cache, "CACHEDB": f"{cache}/cache.db", "JAX_COMPILATION_CACHE_DIR": cache}
    return found


_folder: list[tempfile.TemporaryDirectory] = []


def _tools() -> str:
    """A folder where `clang` is the compiler that tiny uses, in case it is only known by its number."""
    if not _folder:
        _folder.append(tempfile.TemporaryDirectory())
        if shutil.which("clang") is None:
            os.symlink(find_compiler().command[0], f"{_folder[0].name}/clang")
    return _folder[0].name


class Framework:
    """A worker process; `ask` measures a row in it.

    known: {"version": str, "rows": names of the rows it has}, None where the framework is not installed, or
    the process has ended.
    """

    def __init__(self, name: str, python: str):
        self.name = name
        self._process = subprocess.Popen(
            [python, "-m", "tests.benchmarks.peers.worker", name],
            text=True,
            bufsize=1,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )
        line = self._process.stdout.readline()
        self.known = json.loads(line) if line else None
        if self.known is None:
            self.close()

    def ask(self, row: str, seconds: float) -> dict:
        """What `worker.measured` gives for a row in about so many seconds: {"times": seconds of each step,
        "peak": bytes, "result": path of an .npy file, the first time}, or {"error": why not}.
        """
        if self.known is None or row not in self.known["rows"]:
            return {"error": "no such row"}
        self._process.stdin.write(json.dumps({"row": row, "seconds": seconds}) + "\n")
        line = self._process.stdout.readline()
        if not line:
            self.known = None
            return {"error": "its process ended"}
        return json.loads(line)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()


@dataclass
class Measured:
    """A row's outcome. times: by framework, in seconds; problems: what went wrong, by framework."""

    row: Row
    times: dict[str, float] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """The best peer's time over ours; None without either."""
        peers = [time for name, time in self.times.items() if name != "tiny"]
        return min(peers) / self.times["tiny"] if peers and "tiny" in self.times else None


def measure(row: Row, frameworks: list[Framework], seconds: float) -> Measured:
    """A row in every framework in turn, ROUNDS times; results compared with ours."""
    outcome, found, results = Measured(row), {}, {}
    for number in range(ROUNDS):
        for framework in frameworks:
            if framework.name in outcome.problems:
                continue
            answer = framework.ask(row.name, seconds / ROUNDS)
            if "error" in answer:
                outcome.problems[framework.name] = answer["error"]
                found.pop(framework.name, None)
                continue
            if "result" in answer:
                results[framework.name] = np.load(answer["result"])
            found.setdefault(framework.name, []).extend(answer["times"])
            if number == 0 and sum(answer["times"]) > 20 * seconds:
                break
    outcome.times = {name: statistics.median(times) for name, times in found.items()}
    if row.tolerance is not None and "tiny" in results:
        for name, result in results.items():
            if not _agree(result, results["tiny"], row.tolerance):
                outcome.problems[name] = "its values differ from tiny's"
    return outcome


def _agree(one: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    scale = max(float(np.abs(other).max()), 1e-30)
    return one.shape == other.shape and float(np.abs(one - other).max()) <= tolerance * scale


def table(outcomes: list[Measured], names: list[str], unit: str = "milliseconds", scale: float = 1e3) -> str:
    """The figures of each framework, and the best peer's over ours."""
    lines = [f"{unit:42}" + "".join(f"{HEADINGS[name]:>11}" for name in names) + f"{'ratio':>9}"]
    for one in outcomes:
        cells = "".join(
            f"{scale * one.times[name]:11.4g}" if name in one.times else f"{'-':>11}" for name in names
        )
        ratio = one.ratio
        mark = "" if ratio is None else f"{ratio:9.2f}" + (" <" if ratio < LEAST else "")
        lines.append(f"{one.row.name:42}{cells}{mark}")
    ratios = [one.ratio for one in outcomes if one.ratio is not None]
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        lines += [
            "",
            f"geometric mean of the ratios {mean:.2f}, least {min(ratios):.2f}; < marks those under {LEAST}",
        ]
    lines += [
        f"{one.row.name}: {HEADINGS[name]}: {problem}"
        for one in outcomes
        for name, problem in one.problems.items()
        if problem != "no such row"
    ]
    return "\n".join(lines)


# -- whole processes -----------------------------------------------------------------------------------------
def process_rows(names: list[str], python: str) -> list[Measured]:
    """Seconds of whole processes, with warm caches and with empty ones."""
    outcomes = []
    for state in ("warm caches", "empty caches"):
        for row in SCRIPTS:
            one = Measured(Row(f"{row}, {state}", dict, None))
            for name in names:
                text = script(row, name)
                if text is not None:
                    interpreter = sys.executable if name == "tiny" else python
                    one.times[name] = _seconds([interpreter, "-c", text], state == "warm caches")
            outcomes.append(one)
    return outcomes


def _seconds(command: list[str], warm: bool) -> float:
    """The median of several runs of a command, each with a cache of its own unless `warm`."""
    times = []
    with tempfile.TemporaryDirectory() as shared:
        for number in range(2 * ROUNDS + warm):
            with tempfile.TemporaryDirectory() as own:
                start = time.perf_counter()
                subprocess.run(
                    command,
                    env=environment(shared if warm else own),
                    check=True,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                if number or not warm:
                    times.append(time.perf_counter() - start)
    return statistics.median(times)


def memory_rows(names: list[str], python: str) -> list[Measured]:
    """Bytes at the peak of a process that does one training row and nothing else."""
    outcomes = []
    for row in (row for row in ROWS if "training" in row.name):
        one = Measured(Row(f"peak memory, {row.name}", dict, None))
        for name in names:
            framework = Framework(name, sys.executable if name == "tiny" else python)
            answer = framework.ask(row.name, 0.2)
            framework.close()
            if "peak" in answer:
                one.times[name] = answer["peak"]
        outcomes.append(one)
    return outcomes


def language_table(python: str) -> str:
    """Tokens a second of SmolLM2 in tiny and, where llama-cpp-python is installed, in llama.cpp."""
    path = str(files.default_model())
    found = {}
    for name, interpreter in (("tiny", sys.executable), ("llama.cpp", python)):
        bound = {"OMP_PROC_BIND": "true", "OMP_PLACES": "cores"} if name == "llama.cpp" else {}
        done = subprocess.run(
            [interpreter, "-m", "tests.benchmarks.peers.language", name, path], env=environment() | bound,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if done.returncode == 0:
            found[name] = json.loads(done.stdout)
    lines = [f"{'SmolLM2-135M Q4_1, tokens a second':42}" + "".join(f"{name:>11}" for name in found)]
    for row in ("decode", "prompt of 256"):
        cells = [one[row] for one in found.values()]
        ratio = f"{cells[0] / cells[1]:9.2f}" if len(cells) > 1 else ""
        lines.append(f"{row:42}" + "".join(f"{cell:11.1f}" for cell in cells) + ratio)
    cells = "".join(f"{one['peak'] / 1e6:11.1f}" for one in found.values())
    return "\n".join([*lines, f"{'megabytes at the peak':42}{cells}"])


def draw(outcomes: list[Measured]) -> None:
    """The picture, where matplotlib is installed: each row's ratio as a bar, on a logarithmic scale, 1 being
    the best peer.
    """
    if pyplot is None:
        return
    PICTURE.parent.mkdir(exist_ok=True)
    shown = [one for one in outcomes if one.ratio is not None][::-1]
    figure, axes = pyplot.subplots(figsize=(8, 0.35 * len(shown) + 1.2))
    axes.barh(
        [one.row.name for one in shown],
        [one.ratio for one in shown],
        color=["tab:green" if one.ratio >= 1 else "tab:orange" for one in shown],
    )
    axes.axvline(1, color="black", linewidth=1)
    axes.set(xscale="log", xlabel="best peer's time / tiny's time (longer is better)")
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=120)
    pyplot.close(figure)


def arguments() -> argparse.Namespace:
    """What was asked for; where it makes no sense, the program ends with the reason and exit code 2."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", default="", help="only rows whose name contains this")
    parser.add_argument("--seconds", type=float, default=1.5, help="for each row and framework")
    parser.add_argument("--peers", default=",".join(PEERS), help="which, by comma (default %(default)s)")
    parser.add_argument("--python", default=os.environ.get("PEERS", sys.executable),
                        help="the Python that has the peers (default $PEERS, or the one that runs this)")
    parser.add_argument("--only", choices=("rows", "processes", "memory", "language"), help="one table")
    asked = parser.parse_args()
    asked.peers = [name for name in asked.peers.split(",") if name]
    unknown = [name for name in asked.peers if name not in PEERS]
    if unknown:
        parser.error(f"--peers: {', '.join(unknown)} is none of {', '.join(PEERS)}")
    if not any(asked.rows in row.name for row in ROWS):
        parser.error(f"--rows: no row's name contains {asked.rows!r}; the rows are {', '.join(BY_NAME)}")
    if not asked.seconds > 0:
        parser.error(f"--seconds: {asked.seconds:g} is no time to measure in; give more than 0")
    if shutil.which(asked.python) is None:
        parser.error(f"--python: {asked.python} is no program; give the path of a Python with the peers")
    return asked


def main() -> int:
    asked = arguments()
    rows = [row for row in ROWS if asked.rows in row.name]
    frameworks = [Framework("tiny", sys.executable)]
    frameworks += [Framework(name, asked.python) for name in asked.peers]
    frameworks = [one for one in frameworks if one.known]
    names = [one.name for one in frameworks]
    print(", ".join(one.known["version"] for one in frameworks if one.name != "compiled"))
    figures = {}
    if asked.only in (None, "rows"):
        outcomes = [measure(row, frameworks, asked.seconds) for row in tqdm(rows, disable=None)]
        print(table(outcomes, names))
        figures = {one.row.name: one.times for one in outcomes}
        draw(outcomes)
    for one in frameworks:
        one.close()
    alone = [name for name in names if name != "compiled"]
    if asked.only in (None, "processes"):
        outcomes = process_rows(alone, asked.python)
        print("", table(outcomes, alone, "whole processes, seconds", 1), sep="\n")
        figures |= {one.row.name: one.times for one in outcomes}
    if asked.only in (None, "memory"):
        outcomes = memory_rows(alone, asked.python)
        print("", table(outcomes, alone, "megabytes", 1e-6), sep="\n")
        figures |= {one.row.name: one.times for one in outcomes}
    if asked.only in (None, "language"):
        print("", language_table(asked.python), sep="\n")
    FIGURES.parent.mkdir(exist_ok=True)
    FIGURES.write_text(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
