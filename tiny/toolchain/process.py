"""Run a tool and collect what it says."""
import shlex
import subprocess
from collections.abc import Sequence

INSTALL = "apt-get install clang-22   (or: apt-get install clang, or: apt-get install gcc)"
LIMIT_S = 300


class ToolchainError(RuntimeError):
    """A tool is missing or does not work; the text says what was looked for, where, and what to install."""


def start(command: Sequence[str]) -> subprocess.Popen:
    """A process without input, whose output and messages go into one pipe. ToolchainError if it cannot."""
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)
    except OSError as error:
        raise ToolchainError(f"{command[0]} does not start: {error.strerror}; set CC to a C compiler that "
                             f"does, or install one:\n    {INSTALL}") from None


def finish(process: subprocess.Popen) -> tuple[int, str]:
    """Exit status and everything the process printed. ToolchainError if it takes longer than LIMIT_S."""
    try:
        output = process.communicate(timeout=LIMIT_S)[0]
    except subprocess.TimeoutExpired:
        raise ToolchainError(f"{shlex.join(process.args)}: stopped after {LIMIT_S} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            process.communicate()
    return process.returncode, output.decode(errors="replace")
