"""Memory instructions of every space, on every family, by the interpreter and the translation."""

import pytest

from tests.emulator.amd.isa import registers
from tests.emulator.amd.isa.cases_buffers import CASES_BUFFERS
from tests.emulator.amd.isa.cases_local import CASES_LOCAL
from tests.emulator.amd.isa.cases_memory import CASES_MEMORY

CASES = {"memory": CASES_MEMORY, "local": CASES_LOCAL, "buffers": CASES_BUFFERS}


@pytest.mark.parametrize("space", CASES)
@pytest.mark.parametrize("processor", registers.PROCESSORS)
@pytest.mark.parametrize("translated", [False, True], ids=["interpreted", "translated"])
def test_memory_instructions_move_what_the_manual_says(space, processor, translated):
    registers.check(CASES[space], processor, translated)
