"""The command line: `python -m tiny COMMAND ...`."""
import difflib
import importlib
import os
import sys

from tiny.config import ConfigError

# command -> (module whose main(arguments) runs it, one line of help); the module is loaded only when asked
# for
COMMANDS = {
    "generate": ("tiny.llm.cli", "text from a language model: a GGUF file or a Hugging Face folder"),
    "devices": ("tiny.devices", "every device: whether it opens, and if not, why and what to do"),
    "hwcheck": ("tiny.hcq.hwcheck", "try a real card stage by stage, and write down what was found"),
    "decode": ("tiny.trace.decode", "a captured command buffer, packet by packet"),
    "tune": ("tiny.realize.tune", "schedules found by BEAM: list, export, import, clear"),
    "run-asm": ("tiny.run_asm", "run a hand-written Radeon kernel, on the emulated card or a real one"),
    "debug": ("tiny.emulator.amd.debugger", "step through a kernel of an emulated Radeon"),
    "profile": ("tiny.profile", "where a program's Python time goes"),
    "trace": ("tiny.trace.command", "recorded runs (TRACE=FILE), shown and compared"),
    "replay": ("tiny.replay", "ask an emulated card what a recorded one was asked"),
    "emulate": ("tiny.emulator.amd.foreign.command", "run any program with an emulated Radeon"),
    "abi": ("tiny.trace.abi", "what changed between two NVIDIA driver versions in the structs used here"),
}


def usage() -> str:
    lines = [f"  {name:10}{doc}" for name, (_, doc) in COMMANDS.items()]
    return "\n".join(["usage: python -m tiny COMMAND ...", "", "commands:", *lines, "",
                      "Each command tells more with --help. The manual is in docs/."])


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit code: 0 done, 2 a request that cannot be met, told in one line; 130 Ctrl-C."""
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if sys.stdin is None:                                   # closed by who started this: nothing to read
        sys.stdin = open(os.devnull)
    try:
        try:
            return _run(name, rest)
        finally:
            if sys.stdout is not None:                      # None: closed by who started this
                sys.stdout.flush()
    except BrokenPipeError:                                 # the reader has gone, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ConfigError as error:
        print(f"tiny {name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"tiny {name}: interrupted", file=sys.stderr)
        return 130


def _run(name: str, rest: list[str]) -> int:
    if name in ("-h", "--help", "help"):
        print(usage())
        return 0
    if name not in COMMANDS:
        close = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"the commands are {', '.join(COMMANDS)}"
        print(f"tiny: unknown command {name!r}; {hint}", file=sys.stderr)
        return 2
    return importlib.import_module(COMMANDS[name][0]).main(rest)


if __name__ == "__main__":
    sys.exit(main())
