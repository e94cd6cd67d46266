"""What a dispatch's registers mean, and which of their settings the emulator refuses instead of guessing."""
import pytest

from tiny.emulator.amd.engines.base import EmulatorError
from tiny.emulator.amd.engines.dispatch import from_registers
from tiny.emulator.amd.kernel.cards import CARDS
from tiny.hcq.amd.registers import FILES, sh


def dispatch(card, word_x=64, **initiator):
    card = CARDS[card]
    file = FILES[card.major]
    values = {sh(getattr(file, f"COMPUTE_NUM_THREAD_{axis}")): word
              for axis, word in zip("XYZ", (word_x, 1, 1), strict=True)}
    start = file.COMPUTE_DISPATCH_INITIATOR.word(COMPUTE_SHADER_EN=1, FORCE_START_AT_000=1, **initiator)
    return from_registers(values, (3, 1, 1), start, card, "here")


@pytest.mark.parametrize("card", CARDS)
def test_a_grid_counts_workgroups_or_work_items(card):
    assert dispatch(card).grid == (192, 1, 1)
    by_items = dispatch(card, USE_THREAD_DIMENSIONS=1)
    assert (by_items.grid, by_items.groups) == ((3, 1, 1), (1, 1, 1))


def test_interleaved_workgroups_of_gfx12_are_refused():
    """Bits 15:13 are no part of the size there; on gfx11 they are."""
    with pytest.raises(EmulatorError, match="COMPUTE_NUM_THREAD_X 0x2040 asks for interleaved"):
        dispatch("gfx1201", word_x=0x2040)
    with pytest.raises(EmulatorError, match="workgroup of 8256 x 1 x 1"):
        dispatch("gfx1100", word_x=0x2040)


def test_a_smaller_last_workgroup_is_refused():
    with pytest.raises(EmulatorError, match="PARTIAL_TG_EN"):
        dispatch("gfx1100", PARTIAL_TG_EN=1)
