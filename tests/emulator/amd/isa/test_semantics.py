"""Every entry of the semantics table, as each family has it, computes what the manual says.

The modules cases_*.py hold the cases. The first test enumerates the table: an entry without a case fails,
unless it is refused, for a reason that stands in REFUSED; and what is decoded and not executed has such a
reason.
"""

import importlib
import re
from pathlib import Path

import pytest

from tests.emulator.amd.isa import cases_flow, cases_scalar, semantics, semantics_scalar
from tiny.emulator.amd.isa.families import family_named
from tiny.emulator.amd.isa.operation import OPERATIONS

MODULES = [
    importlib.import_module(f"tests.emulator.amd.isa.{path.stem}")
    for path in sorted(Path(__file__).parent.glob("cases_*.py"))
]
CASES = tuple(each for module in MODULES for each in getattr(module, "CASES", ()))
FUNCTIONS = ("vector", "packed", "packed move", "mix", "dot", "scalar")  # rows executed by their function
FLOW = ("branch", "jump", "mode", "barrier", "wait", "message", "signal", "end", "register", "clock")
ENUMERATED = FUNCTIONS + FLOW
ELSEWHERE = {  # in test_clocks.py
    "s_getreg_b32",
    "s_setreg_b32",
    "s_setreg_imm32_b32",
    "s_round_mode",
    "s_denorm_mode",
    "s_memtime",
    "s_memrealtime",
    "s_sendmsg_rtn_b64",
}
REFUSED = {  # pattern of mnemonics -> why the emulator does not execute them
    r"v_screen_partition_4se_b32": "assigns pixels to rasterizers, of which gfx942 has none",
    r"s_cbranch_cdbg\w+|s_trap|s_rfe(_restore)?_b64|s_sethalt": "no trap handler, no debugger is installed",
    r"s_endpgm_(saved|ordered_ps_done)|s_setkill": "end a wave for context switches and pixel shaders",
    r"s_sendmsg(halt|_rtn_b32)?": "messages of graphics and to trap handlers; gfx11 frees VGPRs by one",
    r"s_code_end": "padding that nothing reaches",
    r"s_cbranch_(g_fork|i_fork|join)|s_setvskip": "of GCN's first years; gfx942 lacks them",
    r"s_subvector_loop_(begin|end)": "runs a wave of 64 in halves by hand; no compiler emits it",
    r"s_set_gpr_idx_(mode|idx)": "changes index mode halfway; no compiler emits it",
    r"s_barrier_(signal_isfirst|init|join|leave)|s_get_barrier_state": "barriers other than the workgroup's",
    r"s_alloc_vgpr": "dynamic VGPRs, a mode that no dispatch asks for",
    r"v_permlanex?16_var_b32|(ds|global|scratch|buffer|tbuffer)_\w+": "memory and lanes: tests of their own",
    r"s_(buffer_|scratch_)?(atomic|store|load|prefetch|atc_probe|dcache)\w*": "memory: tests of their own",
    r"v_s?mfmac?_\w+|v_swmmac_\w+": "matrices: tests of their own",
}


def refused(name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in REFUSED)


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
    found = {each.mnemonic for each in CASES if processor in each.processors} | ELSEWHERE
    for module in MODULES:
        found |= set(getattr(module, "COVERS", {}).get(processor, ()))
    return found


@pytest.mark.parametrize("processor", semantics.PROCESSORS)
def test_every_entry_of_the_table_has_a_case(processor):
    every = {name for name, kind in entries(processor).items() if is_enumerated(name, kind)}
    missing = {name for name in every - covered(processor) if not refused(name)}
    assert not missing, " ".join(sorted(missing))


def test_every_row_is_an_instruction_of_some_family():
    reached = set()
    for family in map(family_named, semantics.PROCESSORS):
        names = {name for table in family.opcodes.values() for name in table.values()}
        reached |= {family.aliases.get(name, name) for name in names}
    reached |= {name.partition("@")[0] for name in reached}  # rows that those of a family are made from
    idle = {name for name, operation in OPERATIONS.items() if operation.kind in ENUMERATED} - reached
    assert not idle, " ".join(sorted(idle))


@pytest.mark.parametrize("processor", semantics.PROCESSORS)
def test_what_is_decoded_and_not_executed_is_refused_for_a_reason(processor):
    family, silent = family_named(processor), set()
    for table in family.opcodes.values():
        for name in table.values():
            operation = OPERATIONS.get(family.aliases.get(name, name))
            known = operation is not None and operation.kind != "unknown"
            if not known or operation.kind in FUNCTIONS and operation.function is None:
                silent.add(name)
    silent -= {"v_pk_mov_b32"}  # executed by code of its own
    assert not (nameless := sorted(name for name in silent if not refused(name))), " ".join(nameless)


@pytest.mark.parametrize("processor", semantics.PROCESSORS)
@pytest.mark.parametrize("translated", [False, True], ids=["interpreted", "translated"])
def test_instructions_compute_what_the_manual_says(processor, translated):
    wrong = semantics.check(CASES, processor, translated)
    assert not wrong, f"{len(wrong)} cases:\n" + "\n".join(wrong)


@pytest.mark.parametrize("processor", semantics.PROCESSORS)
@pytest.mark.parametrize("translated", [False, True], ids=["interpreted", "translated"])
def test_scalar_instructions_compute_what_the_manual_says(processor, translated):
    cases = cases_scalar.SCALAR_CASES + cases_flow.FLOW_CASES
    wrong = semantics_scalar.check(cases, processor, translated)
    assert not wrong, f"{len(wrong)} cases:\n" + "\n".join(wrong)
