"""`python -m tiny decode --kind KIND FILE`: a captured command buffer, packet by packet."""
import argparse
import enum
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tiny.hcq.layout import Layout
from tiny.trace.streams import KINDS, Found, Lost


def text(item: Found | Lost) -> str:
    """One packet with its offset, and below it the registers or methods that it sets."""
    if isinstance(item, Lost):
        return f"{item.at:#08x}: lost {item.size} bytes: {item.reason}"
    return "\n".join([f"{item.at:#08x}: {item.packet}", *(f"            {part}" for part in item.parts)])


def _plain(value):
    return int(value) if isinstance(value, enum.IntEnum) else list(value) if isinstance(value,
        tuple) else value


def _fields(layout: Layout) -> dict:
    return {name: _plain(value) for name, value in layout.items()}


def record(item: Found | Lost) -> dict:
    """The same for programs: plain numbers and names."""
    if isinstance(item, Lost):
        return {"at": item.at, "size": item.size, "lost": item.reason}
    parts = [{"name": type(part).__name__, "fields": _fields(part)} for part in item.parts]
    return {"at": item.at, "size": item.size, "packet": type(item.packet).__name__,
            "fields": _fields(item.packet),
            "parts": parts}


def read(source: str, as_hex: bool) -> bytes:
    """The buffer: a file's bytes, or hexadecimal text from a file or, with "-", from standard input.

    Bare digits are bytes in their order, in groups of any length; 0x1234 is a dword. ValueError for other
    text.
    """
    if source != "-" and not as_hex:
        return Path(source).read_bytes()
    words = (sys.stdin.read() if source == "-" else Path(source).read_text()).replace(",", " ").split()
    return b"".join(map(_bytes, words))


def _bytes(word: str) -> bytes:
    """What a word of hexadecimal text stands for; ValueError."""
    try:
        return int(word, 16).to_bytes(4, "little") if word.startswith("0x") else bytes.fromhex(word)
    except OverflowError:
        raise ValueError(f"{word[:40]!r} is no dword, which has at most 8 digits behind 0x") from None
    except ValueError:
        raise ValueError(f"{word[:40]!r} is not hexadecimal; write bytes as digits, 007602c0, or dwords, "
                         "0xc0027600") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status: 0 all decoded, 1 some bytes are no packets, 2 the buffer cannot be
    read.
    """
    parser = argparse.ArgumentParser(prog="python -m tiny decode", description=__doc__.partition(": ")[2])
    parser.add_argument("--kind", required=True, choices=KINDS, help="what the buffer holds")
    parser.add_argument("--gfx", type=int, default=11, choices=(9, 11, 12),
                        help="AMD graphics generation; default 11")
    parser.add_argument("--class", dest="compute_class", type=lambda text: int(text, 0), default=0xcbc0,
                        help="NVIDIA compute class; default 0xcbc0, Hopper")
    parser.add_argument("--hex", action="store_true",
                        help="FILE is text: bytes as digits, or dwords as 0x...")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("file", nargs="?", default="-", metavar="FILE",
                        help="default: hexadecimal on standard input")
    options = parser.parse_args(arguments)
    try:
        data = read(options.file, options.hex)
    except (OSError, ValueError) as error:
        where = "standard input" if options.file == "-" else options.file
        print(f"tiny decode: {where}: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
        return 2
    decoder, by_generation = KINDS[options.kind]
    lost = False
    for item in decoder(data, options.gfx if by_generation else options.compute_class):
        lost |= isinstance(item, Lost)
        print(json.dumps(record(item)) if options.json else text(item))
    return 1 if lost else 0
