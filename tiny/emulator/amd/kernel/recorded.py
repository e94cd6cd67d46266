"""Emulated cards with the numbers of real ones, from what `hwcheck` and TRACE have written down of them."""
from collections.abc import Mapping, Sequence

from tiny.emulator.amd.kernel import topology
from tiny.emulator.amd.kernel.cards import CARDS, Card
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq import io


def card_like(arch: str, facts: Mapping[str, int], vram: int, large_bar: bool) -> Card:
    """The card of an architecture whose topology has these numbers. vram: bytes.

    ValueError where no card of its generation is emulated.
    """
    major, xccs = facts["gfx_target_version"] // 10000, facts["num_xcc"]
    like = next((card for card in CARDS.values() if card.major == major), None)
    if like is None:
        raise ValueError(f"{arch}: no card of its generation is emulated; there are {', '.join(CARDS)}")
    return Card(arch, facts["gfx_target_version"], facts["device_id"], facts["simd_count"],
                facts["simd_per_cu"], facts["array_count"] // facts["simd_arrays_per_engine"] // xccs,
                facts["simd_arrays_per_engine"], facts["wave_front_size"], facts["max_waves_per_simd"],
                like.vgpr_per_cu, vram, facts["num_sdma_engines"], facts["max_engine_clk_fcompute"], xccs,
                large_bar)


def emulate(cards: Sequence[Card]) -> EmulatedRadeon:
    """A provider that answers as the driver of such cards."""
    return EmulatedRadeon(list(cards), io.Provider())


def identities(provider: EmulatedRadeon) -> list[tuple[int, str]]:
    """(gpu_id, path of its render node) of each card."""
    return [(gpu.gpu_id, f"/dev/dri/renderD{topology.render_minor_of(gpu.number)}")
            for gpu in provider.gpus.values()]
