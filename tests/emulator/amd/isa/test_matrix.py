"""Matrix instructions, every one of each family, against numpy; and what they refuse."""

import pytest

from tests.emulator.amd.isa import registers
from tests.emulator.amd.isa.cases_matrix import CASES_MATRIX


@pytest.mark.parametrize("processor", registers.PROCESSORS)
@pytest.mark.parametrize("translated", [False, True], ids=["interpreted", "translated"])
def test_products_are_those_of_the_matrices(processor, translated):
    registers.check(CASES_MATRIX, processor, translated)
