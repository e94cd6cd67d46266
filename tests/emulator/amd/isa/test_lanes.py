"""Instructions that move data between lanes, on every family, by the interpreter and the translation."""

import pytest

from tests.emulator.amd.isa import registers
from tests.emulator.amd.isa.cases_lanes import CASES_LANES


@pytest.mark.parametrize("processor", registers.PROCESSORS)
@pytest.mark.parametrize("translated", [False, True], ids=["interpreted", "translated"])
def test_each_lane_reads_the_lane_it_should(processor, translated):
    registers.check(CASES_LANES, processor, translated)
