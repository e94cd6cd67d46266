"""`python -m tiny trace`: recorded runs, shown and compared.

    python -m tiny trace show FILE [--kind ioctl,packet] [--device AMD:1] [--queue copy] [--names]
    python -m tiny trace diff A B [--kind ...] [--without ...] [--context N]
"""
import argparse
import sys
from collections.abc import Callable, Iterator, Sequence

from tiny.config import may_colour
from tiny.trace.diff import unified
from tiny.trace.names import Reader, Record, numbered
from tiny.trace.record import FORMAT

KINDS = ("open", "close", "ioctl", "mmap", "munmap", "protect", "device", "program", "packet", "doorbell",
         "failed")                                          # the first words of records
OF_QUEUES = ("packet", "doorbell", "failed")                # kinds whose second and third word name the queue
OF_DEVICES = (*OF_QUEUES, "program", "device")
COLOURS = {"-": "31", "+": "32", "@": "36"}                 # ECMA-48, SGR: red, green, cyan


class TraceError(ValueError):
    """A file is no trace, or not one of this version."""


def lines_of(path: str) -> Iterator[tuple[int, str]]:
    """(number, text) of each line, the header's too. TraceError for what is no trace; OSError.

    A last line that was cut off, because the process was killed there, is left out.
    """
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if number == 1 and line.split() != ["#", "tiny", "trace", str(FORMAT)]:
                raise TraceError(f"{path}: its first line is not `# tiny trace {FORMAT}`; record one with "
                                 "TRACE=FILE")
            if line.endswith("\n"):
                yield number, line[:-1]


def kinds_named(text: str) -> list[str]:
    """ "ioctl,packet" -> ["ioctl", "packet"]; ArgumentTypeError for what no record is."""
    kinds = text.split(",")
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no record is of kind {unknown[0]!r}; there are {', '.join(KINDS)}")
    return kinds


def wanted(text: str, options: argparse.Namespace) -> bool:
    """Whether a record passes the filters of the command line."""
    words = text.split(" ", 3)
    kind = words[0]
    if options.kind and kind not in options.kind:
        return False
    if options.device and (kind not in OF_DEVICES or words[1] != options.device):
        return False
    if options.queue and (kind not in OF_QUEUES or words[2] != options.queue):
        return False
    return not any(part in text for part in options.without)


def records_of(path: str, options: argparse.Namespace) -> list[Record]:
    """The records that pass the filters, with names taken out."""
    reader = Reader()
    apart = ((reader.record(number, text), text) for number, text in lines_of(path) if text[:1] != "#")
    return [record for record, text in apart if wanted(text, options)]


def show(options: argparse.Namespace) -> int:
    """The records of a file, as they are or with names for addresses and handles."""
    if options.names:
        records = records_of(options.file, options)
        names = numbered(records)
        for record in records:
            print(record.text(names))
        return _shown(len(records), options)
    count = 0
    for _, text in lines_of(options.file):
        if text[:1] == "#":
            print(text)
        elif wanted(text, options):
            print(text)
            count += 1
    return _shown(count, options)


def _shown(count: int, options: argparse.Namespace) -> int:
    """0, having said so if no record passed the filters."""
    if not count:
        print(f"tiny trace: {options.file}: no record is as --kind, --device, --queue and --without ask",
              file=sys.stderr)
    return 0


def compare(options: argparse.Namespace) -> int:
    """0 if two runs are the same but for addresses, handles and times; 1 if they differ."""
    headers = [[text for _, text in lines_of(path) if text[:1] == "#"] for path in (options.a, options.b)]
    first, second = (records_of(path, options) for path in (options.a, options.b))
    coloured = may_colour(sys.stdout)
    different = False
    for line in unified(first, second, options.context):
        if not different:
            print(f"--- {options.a}\n+++ {options.b}")
            if headers[0] != headers[1]:
                print("\n".join(f"{sign}{text}" for sign, header in zip("-+", headers, strict=True)
                                for text in header if text not in headers[sign == "-"]))
        different = True
        print(f"\033[{COLOURS[line[0]]}m{line}\033[0m" if coloured and line[0] in COLOURS else line)
    return 1 if different else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tiny trace",
                                     description="Recorded runs (TRACE=FILE), shown and compared.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, function, text: str, *files: str) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=text, description=text)
        one.set_defaults(function=function)
        for file in files:
            one.add_argument(file)
        one.add_argument("--kind", type=kinds_named, default=(),
                         help="only such records: ioctl,packet")
        one.add_argument("--device", help="only records of a device: AMD:1")
        one.add_argument("--queue", help="only packets and doorbells of a queue: compute, copy")
        one.add_argument("--without", action="append", default=[], metavar="TEXT",
                         help="leave records with this text out: WAIT_EVENTS; may be given again")
        return one
    one = command("show", show, "print the records of a file", "file")
    one.add_argument("--names", action="store_true", help="names in place of addresses and handles")
    one = command("diff", compare, "what differs between two runs but addresses, handles and times; exit "
                  "code 0 if nothing does, 1 if something does", "a", "b")
    one.add_argument("--context", type=int, default=3, metavar="N", help="records around a difference")
    return parser


def exit_code(command: str, function: Callable[[argparse.Namespace], int],
              options: argparse.Namespace) -> int:
    """What the function of a command returns; 2, and a line on stderr, for a file that cannot be read."""
    try:
        return function(options)
    except BrokenPipeError:                                 # the command line knows what to do
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"tiny {command}: {where}{error.strerror or error}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"tiny {command}: {error}", file=sys.stderr)
        return 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code: 0 done, 1 a difference, 2 a file that cannot be read."""
    options = _parser().parse_args(arguments)
    return exit_code("trace", options.function, options)
