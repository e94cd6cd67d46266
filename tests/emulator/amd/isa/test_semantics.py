"""Every entry of the semantics table, as each family has it, computes what the manual says.

The modules cases_*.py hold the cases. The first test enumerates the table: an entry without a case fails,
unless it is refused, for a reason that stands in REFUSED.
"""

import importlib
from pathlib import Path

import pytest

from tests.emulator.amd.isa import cases_scalar, semantics, semantics_scalar
from tiny.emulator.amd.isa.families import family_named
from tiny.emulator.amd.isa.operation import OPERATIONS

MODULES = [
    importlib.import_module(f"tests.emulator.amd.isa.{path.stem}")
    for path in sorted(Path(__file__).parent.glob("cases_*.py"))
]
CASES = tuple(each for module in MODULES for each in getattr(module, "CASES", ()))
ENUMERATED = ("vector", "packed", "packed move", "mix", "dot", "scalar")  # kinds of rows
REFUSED = {  # mnemonic -> why the emulator does not execute it
    "v_screen_partition_4se_b32": "assigns pixels to rasterizers, of which gfx942 has none",
}


def entries(processor: str) -> dict[str, str]:
    """The mnemonics of a family that have a row, with the row's kind."""
    family = family_named(processor)
    names = {name for table in family.opcodes.values() for name in table.values()}
    rows = {name: OPERATIONS.get(family.aliases.get(name, name)) for name in names}
    return {name: operation.kind for name, operation in rows.items() if operation is not None}


def is_enumerated(name: str, kind: str) -> bool:
    """Memory, matrices and what moves between lanes have tests of their own."""
    return kind in ENUMERATED and "permlane" not in name


def covered(processor: str) -> set[str]:
    """Mnemonics that a case shows, here or, where a module says so in COVERS, in a test of its own."""
    found = {each.mnemonic for each in CASES if processor in each.processors}
    for module in MODULES:
        found |= set(getattr(module, "COVERS", {}).get(processor, ()))
    return found


@pytest.mark.parametrize("processor", semantics.PROCESSORS)
def test_every_entry_of_the_table_has_a_case(processor):
    shown = covered(processor) | REFUSED.keys()
    every = {name for name, kind in entries(processor).items() if is_enumerated(name, kind)}
    missing = every - shown
    assert not missing, " ".join(sorted(missing))


@pytest.mark.parametrize("processor", semantics.PROCESSORS)
def test_what_is_refused_cannot_be_executed(processor):
    known = {name: OPERATIONS[name] for name in entries(processor).keys() & REFUSED.keys()}
    assert not [name for name, operation in known.items() if operation.function is not None]


@pytest.mark.parametrize("processor", semantics.PROCESSORS)
@pytest.mark.parametrize("translated", [False, True], ids=["interpreted", "translated"])
def test_instructions_compute_what_the_manual_says(processor, translated):
    wrong = semantics.check(CASES, processor, translated)
    assert not wrong, f"{len(wrong)} cases:\n" + "\n".join(wrong)


@pytest.mark.parametrize("processor", semantics.PROCESSORS)
@pytest.mark.parametrize("translated", [False, True], ids=["interpreted", "translated"])
def test_scalar_instructions_compute_what_the_manual_says(processor, translated):
    wrong = semantics_scalar.check(cases_scalar.SCALAR_CASES, processor, translated)
    assert not wrong, f"{len(wrong)} cases:\n" + "\n".join(wrong)
