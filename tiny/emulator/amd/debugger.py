"""`python -m tiny debug`: step through a kernel of an emulated Radeon.

    python -m tiny debug kernel.s --arg f32:0..31                  # assembly, or a code object
    python -m tiny debug program.py --kernel NAME                  # the kernel of a Python program, at its
    python -m tiny debug program.py --kernel 'r_*:3'               #   first dispatch, or at its third one
    python -m tiny debug kernel.s --commands session.txt           # commands from a file, or piped in

The interpreter executes one instruction of one wave at a time: waits for memory are over at once, and waves
run one after the other between barriers.
"""

import argparse
import contextlib
import fnmatch
import runpy
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from tiny import config
from tiny.emulator.amd import bench
from tiny.emulator.amd.commands import Debugger
from tiny.emulator.amd.interception import intercepted
from tiny.emulator.amd.isa.state import Dispatch, EmulationError
from tiny.emulator.amd.stepping import Stepping
from tiny.objfile import ObjectError
from tiny.toolchain import ToolchainError

INTRO = "`help` lists the commands, `help examples` shows some; Ctrl-C stops what runs"


@contextlib.contextmanager
def interruptible(debugger: Debugger) -> Iterator[None]:
    """Ctrl-C stops what runs, behind its instruction, and not the debugger."""
    def interrupt(number, frame) -> None:
        debugger.run.interrupted = True

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Console:
    """Where commands come from: a file or a pipe, whose commands are shown, or a person."""

    def __init__(self, commands: str | None):
        self.failed = False
        self._lines = None
        if commands is not None:
            self._lines = iter(Path(commands).read_text().splitlines())
        elif not sys.stdin.isatty():
            self._lines = iter(sys.stdin)

    def attend(self, debugger: Debugger) -> None:
        """Let the user work until the kernel is left."""
        debugger.start()
        if self._lines is None:
            with interruptible(debugger):
                debugger.cmdloop(intro=INTRO)
        else:
            debugger.script(self._lines)
        self.failed |= debugger.failed


class KernelBreak:
    """Attends to the n-th dispatch of a kernel of a program, and lets all others run."""

    def __init__(self, wanted: str, console: Console):
        name, colon, turn = wanted.rpartition(":")
        self.pattern, self.turn = (name, int(turn)) if colon and turn.isdigit() else (wanted, 1)
        if self.turn < 1:
            raise ValueError(f"--kernel {wanted}: dispatches are counted from 1")
        self.console = console
        self.seen: dict[str, int] = {}
        self.count = 0

    def __call__(self, dispatch: Dispatch) -> bool:
        """Whether it ran the dispatch."""
        name = dispatch.kernel.name
        self.seen[name] = self.seen.get(name, 0) + 1
        if not fnmatch.fnmatchcase(name, self.pattern):
            return False
        self.count += 1
        if self.count != self.turn:
            return False
        run = Stepping(dispatch, checked=config.current().check > 0)
        debugger = Debugger(run)
        self.console.attend(debugger)
        if debugger.left:
            raise SystemExit(1 if self.console.failed else 0)
        run.breakpoints, run.watchpoints = [], []
        while not run.over and run.failed is None:
            run.resume()
        if run.failed is not None:
            raise run.failed
        return True

    def missed(self) -> str:
        """What to say if it never came to the dispatch."""
        ran = ", ".join(f"{name} ({count})" for name, count in sorted(self.seen.items()))
        times = f"{self.count} times" if self.count else "never"
        return (f"kernel {self.pattern} was dispatched {times}, {self.turn} wanted; the program ran "
                f"{ran or 'no kernel on an emulated card'}")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m tiny debug", description=__doc__)
    made.add_argument("file", help="assembly, a code object, or a Python program (.py)")
    bench.add_options(made)
    made.add_argument("--commands", metavar="FILE", help="commands, one a line; by default from the terminal")
    made.epilog += "\n\nWhat stands behind -- are the arguments of the Python program."
    return made


def main(arguments: list[str]) -> int:
    """0, 1 if a command was refused, 2 if there is nothing to debug."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser().parse_args(arguments[:end])
    try:
        console = Console(options.commands)
        if options.file.endswith(".py"):
            return _debug_program(options, arguments[end + 1 :], console)
        data = Path(options.file).read_bytes()
        loaded = bench.Bench(bench.object_code(options.file, data, options), options)
        checked = options.checked or config.current().check > 0
        run = Stepping(loaded.dispatch(options.checked), loaded.labels(), checked)
    except (OSError, ToolchainError, ObjectError, ValueError, EmulationError) as error:
        print(f"debug: {bench.told(error, options.file)}", file=sys.stderr)
        return 2
    console.attend(Debugger(run, loaded.addresses))
    return int(console.failed)


def _debug_program(options: argparse.Namespace, rest: list[str], console: Console) -> int:
    if not options.kernel:
        raise ValueError(f"{options.file}: which kernel? --kernel NAME, or NAME:3 for its third dispatch; "
                         "DEBUG=2 shows the names")
    if not Path(options.file).is_file():
        raise ValueError(f"{options.file}: no such file; name a Python program")
    settings = config.current()
    changes = {} if settings.emulate else {"EMULATE": "1"}
    changes |= {} if settings.amd or settings.dev or settings.device else {"AMD": "1"}
    stop_at = KernelBreak(options.kernel, console)
    sys.argv = [options.file, *rest]
    sys.path.insert(0, str(Path(options.file).resolve().parent))
    try:
        with config.Context(**changes), intercepted(stop_at):
            runpy.run_path(options.file, run_name="__main__")
    except EmulationError:
        raise
    except Exception:                                       # the program's own, shown as Python would
        traceback.print_exc()
        return 1
    if stop_at.count < stop_at.turn:
        print(f"debug: {stop_at.missed()}", file=sys.stderr)
        return 2
    return int(console.failed)
