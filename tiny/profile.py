"""`python -m tiny profile SCRIPT`: where the Python time of a program goes."""
import argparse
import cProfile
import pstats
import runpy
import sys
import traceback
from pathlib import Path

from tiny.realize import GlobalCounters

PACKAGE = Path(__file__).parent
# what a value goes through: stage -> (file in tiny/, functions whose whole time is the stage's)
STAGES = {
    "gradients": ("frontend/grad.py", ("gradient",)),
    "looking for a known plan": ("schedule/plan.py", ("structure",)),
    "planning: kernels, order, memory": ("schedule/plan.py", ("make_plan",)),
    "scheduling and rendering kernels": ("realize/prepare.py", ("prepare",)),
    "compiler, or its cache": ("toolchain/objects.py", ("compile_objects",)),
    "recording command queues": ("realize/execute.py", ("_template",)),
    "submitting": ("hcq/queue.py", ("submit",)),
    "waiting for the device": ("hcq/cpu/device.py", ("synchronize", "settle")),
    "waiting for the card": ("hcq/amd/device.py", ("synchronize", "settle")),
}


def main(arguments: list[str]) -> int:
    """Run the script under the profiler and print what it spent; the script's exit code."""
    parser = argparse.ArgumentParser(prog="python -m tiny profile", description=__doc__)
    parser.add_argument("--top", type=int, default=15, help="functions to list (default %(default)s)")
    parser.add_argument("--out", help="also write all figures to this file, for pstats and its viewers")
    parser.add_argument("script", help="the program, with its arguments behind it")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if not Path(asked.script).is_file():
        print(f"tiny profile: {asked.script}: no such file; name a Python program", file=sys.stderr)
        return 2
    profiler = cProfile.Profile()
    code = run(asked.script, asked.rest, profiler)
    stats = pstats.Stats(profiler)
    if asked.out:
        try:
            stats.dump_stats(asked.out)
        except OSError as error:
            print(f"tiny profile: {asked.out}: {error.strerror}", file=sys.stderr)
            return 2
    print(table(stats, asked.top), file=sys.stderr)
    return code


def run(script: str, arguments: list[str], profiler: cProfile.Profile) -> int:
    """The script as `python script` would run it; an exception is shown, and counts as exit code 1."""
    before = sys.argv, sys.path[:]
    sys.argv, sys.path[0] = [script, *arguments], str(Path(script).resolve().parent)
    try:
        profiler.runcall(runpy.run_path, script, run_name="__main__")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # the script's own fault, shown as Python would; the figures are shown all the same
        traceback.print_exc()
        return 1
    finally:
        sys.argv, sys.path[:] = before
    return 0


def table(stats: pstats.Stats, top: int) -> str:
    """The figures as text: by stage (its functions and what they call), by folder, by function."""
    whole = max(stats.total_tt, 1e-9)
    kernels = GlobalCounters.kernel_count
    lines = [f"{whole:.3f} s of Python, {kernels} kernels, {GlobalCounters.submission_count} submissions"
             + (f", {1e6 * whole / kernels:.1f} us a kernel" if kernels else ""), "",
             f"{'stage':34}{'calls':>9}{'seconds':>10}{'share':>8}{'us a call':>12}"]
    lines += [f"{stage:34}{calls:>9}{seconds:>10.3f}{seconds / whole:>8.1%}{1e6 * seconds / calls:>12.1f}"
              for stage, calls, seconds in stages(stats) if calls]
    lines += ["", f"{'folder':34}{'calls':>9}{'seconds':>10}{'share':>8}"]
    lines += [f"{folder:34}{calls:>9}{seconds:>10.3f}{seconds / whole:>8.1%}"
              for folder, calls, seconds in folders(stats)]
    lines += ["", f"{'function, without what it calls':52}{'calls':>9}{'seconds':>10}"]
    functions = sorted(stats.stats.items(), key=lambda item: -item[1][2])[:top]
    lines += [f"{_name(place):52}{calls:>9}{own:>10.3f}" for place, (_, calls, own, _, _) in functions]
    return "\n".join(lines)


def stages(stats: pstats.Stats) -> list[tuple[str, int, float]]:
    """(stage, calls, seconds), in the order a value goes through them."""
    found = []
    for stage, (file, names) in STAGES.items():
        path = str(PACKAGE / file)
        own = [figures for (where, _, name), figures in stats.stats.items()
               if where == path and name in names]
        found.append((stage, sum(calls for _, calls, *_ in own), sum(cumulated for *_, cumulated, _ in own)))
    return found


def folders(stats: pstats.Stats) -> list[tuple[str, int, float]]:
    """(folder of tiny/, or where else the code is from, calls, seconds of its own), the largest first."""
    sums: dict[str, list] = {}
    for (where, _, _), (_, calls, own, _, _) in stats.stats.items():
        row = sums.setdefault(_folder(where), [0, 0.0])
        row[0] += calls
        row[1] += own
    return sorted(((name, *row) for name, row in sums.items()), key=lambda row: -row[2])


def _folder(where: str) -> str:
    path = Path(where)
    if not path.is_absolute():
        return "C functions and built-ins" if where == "~" else "generated code"
    if path.is_relative_to(PACKAGE):
        first = path.relative_to(PACKAGE).parts[0]
        return f"tiny/{first}"
    library = any(part in ("site-packages", "dist-packages") or part.startswith("python3")
                  for part in path.parts)
    return "libraries" if library else "the program"


def _name(place: tuple) -> str:
    where, line, name = place
    path = Path(where)
    if path.is_absolute() and path.is_relative_to(PACKAGE):
        where = f"tiny/{path.relative_to(PACKAGE)}"
    text = name if where == "~" else f"{where if len(where) < 40 else path.name}:{line}({name})"
    return text[:51]
