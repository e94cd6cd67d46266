"""Run a dispatch: the joint between the engines and the instruction sets."""

import functools
import math
import shlex
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence

from tiny import config
from tiny.emulator.amd.engines.base import EmulatorError
from tiny.emulator.amd.engines.caches import WatchedTable
from tiny.emulator.amd.engines.dispatch import Dispatch
from tiny.emulator.amd.interception import intercept
from tiny.emulator.amd.isa import run
from tiny.emulator.amd.isa.decode import DecodeError, Family
from tiny.emulator.amd.isa.errors import UnsupportedError
from tiny.emulator.amd.isa.families import family_named
from tiny.emulator.amd.isa.memory import MemoryFault as IsaFault
from tiny.emulator.amd.isa.memory import Range
from tiny.emulator.amd.isa.state import Dispatch as IsaDispatch
from tiny.emulator.amd.isa.state import EmulationError, Kernel
from tiny.emulator.amd.isa.translate import extent
from tiny.emulator.amd.kernel.cards import Card
from tiny.emulator.amd.kernel.memory import MemoryFault, PageTable

CHECKED_SECONDS = 1.0  # of a dispatch, that CHECK=1 spends in the interpreter
MOST_CODE = 4 << 20  # bytes of a kernel; more is a runaway

# name, family, code address, resource words and sizes, see `_kernel` -> the kernel that was found there last
_kernels: dict[tuple, Kernel] = {}
# page table -> (its generation, the ranges it had then)
_ranges: "weakref.WeakKeyDictionary[PageTable, tuple[int, list[Range]]]" = weakref.WeakKeyDictionary()


class CardMemory:
    """A page table as instructions see it; what it forbids is their own MemoryFault."""

    def __init__(self, table: PageTable | WatchedTable, ranges: list[Range]):
        self._table, self._ranges = table, ranges

    def ranges(self) -> list[Range]:
        """What is mapped during the dispatch; the pages belong to the clients."""
        return self._ranges

    def read(self, address: int, size: int) -> bytes:
        """The bytes there."""
        try:
            return self._table.read(address, size)
        except MemoryFault as fault:
            raise IsaFault(fault.address, fault.size, "read") from fault

    def write(self, address: int, data: bytes) -> None:
        """Put bytes there."""
        try:
            self._table.write(address, data)
        except MemoryFault as fault:
            raise IsaFault(fault.address, fault.size, "write") from fault


class WatchedMemory(CardMemory):
    """The same of a WatchedTable, in checked mode. coherent: whether accesses go past the caches; the
    interpreter sets it.
    """

    @property
    def coherent(self) -> bool:
        return self._table.coherent

    @coherent.setter
    def coherent(self, value: bool) -> None:
        self._table.coherent = value


def _memory(table: PageTable | WatchedTable) -> CardMemory:
    """The card's memory; its ranges are listed anew only when its page table has changed."""
    if isinstance(table, WatchedTable):
        return WatchedMemory(table, _listed(table))
    known = _ranges.get(table)
    if known is None or known[0] != table.generation:
        known = _ranges[table] = table.generation, _listed(table)
    return CardMemory(table, known[1])


def _listed(table: PageTable | WatchedTable) -> list[Range]:
    """What a page table maps, in order of address."""
    return [Range(start, end - start, host, writable) for start, end, host, writable in table.ranges()]


def execute(dispatch: Dispatch, card: Card, table: PageTable,
            following: Callable[[], Iterable[Dispatch]] = tuple) -> None:
    """Execute every workgroup. MemoryFault for what the page table forbids, EmulatorError for what is not
    known, and for a kernel that runs longer than TIMEOUT_MS.

    following: dispatches that come next, as far as is known. Asked for when a kernel has to be translated:
    several at once take less time.
    """
    if not card.runs_code:
        raise EmulatorError(f"{card.name}: its instructions are not emulated, only its queues")
    settings = config.current()
    end = math.inf
    try:
        kernel = _kernel(dispatch, card, table)
        user_data = dispatch.user_data[: kernel.rsrc2.user_sgprs]
        work = IsaDispatch(
            kernel, _memory(table), user_data, dispatch.groups, dispatch.threads, dispatch.grid
        )
        if intercept(work):
            return
        threads = settings.threads or _cores()
        if settings.check:
            end = time.monotonic() + settings.timeout_ms / 1000
            seconds = CHECKED_SECONDS if settings.check == 1 else None
            run.run_checked(work, threads, lambda: time.monotonic() > end, seconds)
            return
        if not run.translated(kernel):
            run.prepare([kernel, *_kernels_of(following(), card, table)])
        end = time.monotonic() + settings.timeout_ms / 1000
        run.run(work, threads, lambda: time.monotonic() > end)
    except IsaFault as fault:
        raise MemoryFault(fault.address, fault.size, fault.action == "write", str(fault)) from fault
    except (EmulationError, DecodeError, UnsupportedError) as error:
        late = time.monotonic() > end
        hint = f" after {settings.timeout_ms} ms; raise TIMEOUT_MS if it is only slow" if late else (
            f"; `{debug_command(sys.argv, dispatch_name(dispatch, table))}` steps to it"
        )
        raise EmulatorError(f"{card.name}: {error}{hint}") from error


def debug_command(arguments: Sequence[str], kernel: str) -> str:
    """What stops in front of a kernel of the program that was started with these arguments, its file first.
    PROGRAM.py where there is no file: text of -c or of standard input.
    """
    program = arguments[0] if arguments and arguments[0].endswith(".py") else "PROGRAM.py"
    rest = ["--", *arguments[1:]] if arguments[1:] else []
    return shlex.join(["python", "-m", "tiny", "debug", program, "--kernel", kernel, *rest])


def dispatch_name(dispatch: Dispatch, table: PageTable | WatchedTable) -> str:
    """What a dispatch's kernel is called, as far as is known."""
    return table.names.get(dispatch.code, f"kernel at {dispatch.code:#x}")


@functools.cache
def _cores() -> int:
    """Reading this takes as long as a small kernel."""
    return config.current().core_count


def _kernels_of(dispatches: Iterable[Dispatch], card: Card, table: PageTable) -> Iterator[Kernel]:
    """The kernels of dispatches up to one that cannot be run; whoever gets there says why."""
    try:
        for dispatch in dispatches:
            yield _kernel(dispatch, card, table)
    except (EmulatorError, MemoryFault, DecodeError):
        return


def _kernel(dispatch: Dispatch, card: Card, table: PageTable) -> Kernel:
    """The kernel at the dispatch's address: the one of last time, if its code is still the same."""
    family = family_named(card.name)
    lane_scratch = dispatch.scratch // dispatch.wave_size
    name = dispatch_name(dispatch, table)
    facts = (dispatch.code, dispatch.rsrc1, dispatch.rsrc2, 0, dispatch.wave_size, dispatch.lds, lane_scratch)
    key = (name, family.name, *facts)
    known = _kernels.get(key)
    if known is not None and table.read(dispatch.code, len(known.code)) == known.code:
        return known
    found = _kernels[key] = Kernel(name, family, _code(dispatch, table, family), *facts)
    return found


def _code(dispatch: Dispatch, table: PageTable, family: Family) -> bytes:
    """The bytes from the first instruction to the last one that can be reached."""
    memory = table.find(dispatch.code)
    if memory is None:
        raise MemoryFault(dispatch.code, 4, False, "not mapped, and a dispatch's code is there")
    size = min(memory.address + memory.size - dispatch.code, MOST_CODE)
    data = table.read(dispatch.code, size)
    return data[: extent(family, data)]
