"""`python -m tiny emulate -- COMMAND ...`: run any program with an emulated card in its machine.

The program and its libraries are not changed: a small library, compiled here and preloaded, sends what they
ask of the kernel driver to this process, which answers and executes. Linux on x86-64 only.
"""
import argparse
import contextlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tiny import config
from tiny.autogen import kfd_6_12 as kfd
from tiny.emulator.amd.foreign.server import Server
from tiny.emulator.amd.foreign.tree import write_tree
from tiny.emulator.amd.kernel.cards import CARDS, PRESENTED, Card, cards_named
from tiny.toolchain import Cache, ToolchainError, find_compiler
from tiny.toolchain.process import finish, start

SOURCE = Path(__file__).with_name("shim.c")
KNOWN = CARDS | PRESENTED


def numbers() -> dict[str, int]:
    """What the shim has to know of ioctls: which ones name a file or the client's own memory, and where."""
    acquire, alloc = "struct kfd_ioctl_acquire_vm_args", "struct kfd_ioctl_alloc_memory_of_gpu_args"
    offset = kfd.ffi.offsetof
    return {
        "ACQUIRE_VM": kfd.AMDKFD_IOC_ACQUIRE_VM & 0xFF, "ACQUIRE_VM_FD": offset(acquire, "drm_fd"),
        "ALLOC": kfd.AMDKFD_IOC_ALLOC_MEMORY_OF_GPU & 0xFF, "ALLOC_SIZE": offset(alloc, "size"),
        "ALLOC_USER": offset(alloc, "mmap_offset"), "ALLOC_FLAGS": offset(alloc, "flags"),
        "USERPTR": kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR,
    }


def build_shim(folder: Path) -> Path:
    """Compile the library that programs are given. ToolchainError with the compiler's words."""
    settings = config.current()
    cache = Cache(settings.cache_folder) if settings.cache_folder else None
    compiler = find_compiler(settings.cc, cache)
    library = folder / "shim.so"
    options = [f"-D{name}={value}" for name, value in numbers().items()]
    status, said = finish(start([*compiler.command, "-O2", "-Wall", "-shared", "-fPIC", "-o", str(library),
                                 *options, str(SOURCE), "-ldl", "-lpthread"]))
    if status:
        raise ToolchainError(f"{SOURCE} does not compile:\n{said}")
    return library


@contextlib.contextmanager
def machine(cards: Sequence[Card]) -> Iterator[dict[str, str]]:
    """A machine with these cards, as long as the block lasts: the environment of programs that are to see it.
    """
    with tempfile.TemporaryDirectory(prefix="emulated-") as name:
        folder = Path(name)
        library = build_shim(folder)
        write_tree(folder, cards)
        server = Server(cards, str(folder / "socket"))
        try:
            yield {"LD_PRELOAD": str(library), "EMULATED_CARD_ROOT": str(folder)}
        finally:
            server.close()


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m tiny emulate", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--cards", default="1", metavar="NAMES",
                      help=f"separated by commas, of {', '.join(KNOWN)}; default gfx1100")
    made.add_argument("command", nargs="+", metavar="COMMAND", help="the program and its arguments, after --")
    return made


def main(arguments: list[str]) -> int:
    """Run a program; its exit code, 2 if it cannot be started."""
    options = parser().parse_args(arguments)
    try:
        cards = cards_named(options.cards, KNOWN)
        with machine(cards) as environment:
            settings = [f"{name}={value}" for name, value in environment.items()]
            program = subprocess.Popen(["env", *settings, *options.command])
            before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program has it from the terminal
            try:
                status = program.wait()
            finally:
                signal.signal(signal.SIGINT, before)
            return status if status >= 0 else 128 - status
    except (OSError, ToolchainError, ValueError) as error:
        print(f"emulate: {error}", file=sys.stderr)
        return 2
