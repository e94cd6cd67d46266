"""The bring-up bench: a kernel and its arguments from the command line, for `run-asm` and the debugger.

A kernel file is assembly in LLVM's syntax (see `assemble`) or a code object, linked or not. Arguments stand
in the kernarg segment, 8 bytes each, in the order of the command line: addresses of buffers, or values.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tiny.emulator.amd.formats import MOST_VALUES, format_named, number, values
from tiny.emulator.amd.isa import assemble
from tiny.emulator.amd.isa.code_object import Image, load
from tiny.emulator.amd.isa.families import MACHINES
from tiny.emulator.amd.isa.memory import HostMemory
from tiny.emulator.amd.isa.state import Dispatch
from tiny.objfile import ObjectError
from tiny.toolchain import Source

BUFFERS, BUFFER_STEP = 0x1_0000_0000, 0x1_0000_0000  # addresses of buffer 0, and of each from the one before
ARGUMENTS = 0x7E00_0000_0000
MOST_BYTES = 4 * MOST_VALUES  # of a buffer that is given by its size
DEFAULT_PROCESSOR = "gfx1100"
ELF = b"\x7fELF"


@dataclass
class Argument:
    """One argument. data: a buffer's bytes, or a value's 8; format: in which it is shown, "" for dwords and
    floats side by side.
    """

    data: np.ndarray
    format: str
    by_value: bool = False


def argument(text: str) -> Argument:
    """The argument that a text stands for; ArgumentTypeError with the forms there are.

    64             a buffer of 64 bytes, its dwords 0, 1, 2, ...
    f32:1,2,0..7   a buffer of these values           u8:255*16     one value, 16 times
    @file          a buffer with a file's bytes       f16@file      the same, shown as f16
    =5  =f32:1.5   a value, not a buffer
    """
    try:
        if text.startswith("="):
            kind, colon, rest = text[1:].rpartition(":")
            data = number(rest, format_named(kind) if colon else "i64")
            return Argument(np.frombuffer(data.ljust(8, b"\0"), np.uint8), kind, True)
        if "@" in text:
            kind, _, path = text.partition("@")
            data = Path(path).read_bytes()
            return Argument(_writable(data), format_named(kind) if kind else "")
        if ":" in text:
            kind, _, rest = text.partition(":")
            return Argument(_writable(values(rest, format_named(kind))), kind)
        size = int(text, 0)
        if not 1 <= size <= MOST_BYTES:
            raise ValueError(f"a buffer of {size} bytes; 1 to {MOST_BYTES} go")
        return Argument(np.arange(-(-size // 4), dtype=np.uint32).view(np.uint8), "")
    except (ValueError, OSError) as error:
        raise argparse.ArgumentTypeError(
            f"argument {text!r}: {told(error)}; write 64 (bytes), f32:1,2,0..7, u8:255*16, @FILE, f16@FILE, "
            "=5 or =f32:1.5 (a value)"
        ) from None


def _writable(data: bytes) -> np.ndarray:
    found = np.frombuffer(data, np.uint8).copy()
    if not len(found):
        raise ValueError("a buffer of 0 bytes")
    return found


def numbers(text: str) -> tuple[int, int, int]:
    """ "4,2" -> (4, 2, 1)"""
    try:
        found = [int(part, 0) for part in text.split(",")]
    except ValueError:
        found = []
    if not 1 <= len(found) <= 3 or min(found) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: one to three numbers, at least 1 each, as in 64 or 8,8")
    return tuple(found + [1] * (3 - len(found)))


def told(error: Exception, file: str = "") -> str:
    """One line for what went wrong; of a file its name, and what the system says of it. file: of the kernel,
    which what is wrong with a code object does not name.
    """
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return f"{file}: {error}" if isinstance(error, ObjectError) and file else str(error)


def whole(text: str) -> int:
    """A number as Python writes it: 64, 0x40."""
    return int(text, 0)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What says which kernel is run, and on what. The forms of --arg stand behind the options, as a table."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"arguments:\n    {argument.__doc__.partition(chr(10) * 2)[2].strip()}"
    parser.add_argument("--mcpu", choices=[name for name, _ in MACHINES.values()],
                        help="the processor that assembly is for, by default gfx1100 or the card's own")
    parser.add_argument("--kernel", help="which kernel of the file; the first one by default")
    parser.add_argument("--groups", type=numbers, default=(1, 1, 1), help="workgroups: x[,y[,z]]")
    parser.add_argument("--size", type=numbers, default=(32, 1, 1),
                        help="work items of a workgroup: x[,y[,z]]")
    parser.add_argument("--arg", "--buffer", dest="arguments", type=argument, action="append", default=[],
                        metavar="ARG", help="an argument; repeat for more, see below")
    parser.add_argument("--checked", action="store_true",
                        help="look for what a card would not report, as CHECK=1 does, and for every read of "
                        "what was never written")
    parser.add_argument("--lds", type=whole, default=0, help="bytes of local memory, for bare assembly")
    parser.add_argument("--scratch", type=whole, default=0,
                        help="bytes of scratch for a lane, for bare assembly")


def object_code(file: str, text: str | bytes, options: argparse.Namespace) -> bytes:
    """The code object of a kernel file's content: as it is, or assembled.

    ValueError for what is neither; ToolchainError for text that does not assemble.
    """
    if isinstance(text, bytes) and text.startswith(ELF):
        return text
    try:
        text = text.decode() if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: neither text nor a code object: byte {error.object[error.start]:#04x} at "
                         f"{error.start} is not UTF-8; give assembly, or what clang made of it") from None
    return assemble.compiled(Source(Path(file).name or "kernel", text), options.mcpu or DEFAULT_PROCESSOR,
                             options.lds, options.scratch, 8 * len(options.arguments))


class Bench:
    """A loaded kernel with its arguments in memory of its own.

    image, name: the code object and which of its kernels; arguments: what `options` gave, changed in place
    """

    def __init__(self, data: bytes, options: argparse.Namespace):
        self.image: Image = load(data, assemble.CODE_ADDRESS)
        self.name = options.kernel or self.image.kernels[0]
        self.arguments: list[Argument] = options.arguments
        self._options = options
        self._code = np.frombuffer(bytes(self.image.data), dtype=np.uint8)
        self.memory = HostMemory()
        self.addresses = []
        words = []
        for each in self.arguments:
            address = BUFFERS + BUFFER_STEP * len(self.addresses)
            if not each.by_value:
                self.memory.map(address, each.data.nbytes, each.data.ctypes.data)
                self.addresses.append(address)
            words.append(int(each.data.view(np.uint64)[0]) if each.by_value else address)
        self._table = np.array(words or [0], dtype=np.uint64)
        self.memory.map(ARGUMENTS, self._table.nbytes, self._table.ctypes.data)
        self.memory.map(self.image.address, len(self._code), self._code.ctypes.data, writable=False)

    def dispatch(self, checked: bool = False) -> Dispatch:
        """ObjectError that lists the kernels if there is none of the name."""
        kernel = self.image.kernel(self.name)
        user_data = self.image.user_data(self.name, ARGUMENTS, self.memory)
        return Dispatch(kernel, self.memory, user_data, self._options.groups, self._options.size,
                        checked=checked)

    def labels(self) -> dict[str, int]:
        """Names of places in the code -> byte offsets."""
        return {name: offset for name, offset in self.image.symbols.items()
                if name and not name.endswith(".kd")}
