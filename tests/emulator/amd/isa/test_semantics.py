"""Every entry of the semantics table, as each family has it, computes what the manual says.

The modules cases_*.py hold the cases. The first test enumerates the table: an entry without a case fails,
unless it is refused, for a reason that stands in REFUSED.
"""

import importlib
from pathlib import Path

import pytest

from tests.emulator.amd.isa import semantics
from tiny.emulator.amd.isa.families import family_named
from tiny.emulator.amd.isa.operation import OPERATIONS

MODULES = [
    importlib.import_module(f"tests.emulator.amd.isa.{path.stem}")
    for path in sorted(Path(__file__).parent.glob("cases_*.py"))
]
CASES = tuple(each for module in MODULES for each in getattr(module, "CASES", ()))
ENUMERATED = ()  # kinds of rows
REFUSED: dict[str, str] = {}  # mnemonic -> why the emulator does not execute it


def entries(processor: str) -> dict[str, str]:
    """The mnemonics of a family that have a row, with the row's kind."""
    family = family_named(processor)
    names = {name for table in family.opcodes.values() for name in table.values()}
    rows = {name: OPERATIONS.get(family.aliases.get(name, name)) for name in names}
    return {name: operation.kind for name, operation in rows.items() if operation is not None}


def covered(processor: str) -> set[str]:
    """Mnemonics that a case shows, here or, where a module says so in COVERS, in a test of its own."""
    found = {each.mnemonic for each in CASES if processor in each.processors}
    for module in MODULES:
        found |= set(getattr(module, "COVERS", {}).get(processor, ()))
    return found


@pytest.mark.parametrize("processor", semantics.PROCESSORS)
def test_every_entry_of_the_table_has_a_case(processor):
    missing = {
        name
        for name, kind in entries(processor).items()
        if kind in ENUMERATED and name not in covered(processor)
    }
    assert not missing, " ".join(sorted(missing))


@pytest.mark.parametrize("processor", semantics.PROCESSORS)
@pytest.mark.parametrize("translated", [False, True], ids=["interpreted", "translated"])
def test_instructions_compute_what_the_manual_says(processor, translated):
    wrong = semantics.check(CASES, processor, translated)
    assert not wrong, f"{len(wrong)} cases:\n" + "\n".join(wrong)
