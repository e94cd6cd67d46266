"""Run a dispatch: the joint between the engines and the instruction sets."""
from tiny.emulator.amd.engines.base import EmulatorError
from tiny.emulator.amd.engines.dispatch import Dispatch
from tiny.emulator.amd.kernel.cards import Card
from tiny.emulator.amd.kernel.memory import PageTable


def execute(dispatch: Dispatch, card: Card, table: PageTable) -> None:
    """Execute every workgroup. MemoryFault for what the page table forbids, EmulatorError for what is not
    known.
    """
    raise EmulatorError(f"{card.name}: the kernel at {dispatch.code:#x}: no instruction set is connected yet")
