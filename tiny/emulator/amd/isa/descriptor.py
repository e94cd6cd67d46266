"""The descriptor that a code object has for each kernel, and the SGPRs that it asks for."""

from collections.abc import Callable
from typing import NamedTuple

from tiny.emulator.amd.isa.state import EmulationError
from tiny.hcq.layout import Struct, bits, u32, u64


class KernelDescriptor(Struct, dwords=16):
    """64 bytes, symbol NAME.kd. Source: AMDHSAKernelDescriptor.h; kernarg_preload_* count dwords."""

    group_segment = u32(0)
    private_segment = u32(1)
    kernarg_size = u32(2)
    entry_offset = u64(4)
    pgm_rsrc3 = u32(11)
    pgm_rsrc1 = u32(12)
    pgm_rsrc2 = u32(13)
    private_segment_buffer = bits(14, 0, 1)
    dispatch_ptr = bits(14, 1, 1)
    queue_ptr = bits(14, 2, 1)
    kernarg_segment_ptr = bits(14, 3, 1)
    dispatch_id = bits(14, 4, 1)
    flat_scratch_init = bits(14, 5, 1)
    private_segment_size = bits(14, 6, 1)
    wavefront_size32 = bits(14, 10, 1)
    kernarg_preload_length = bits(14, 16, 7)
    kernarg_preload_offset = bits(14, 23, 9)

    @property
    def wave_size(self) -> int:
        return 32 if self.wavefront_size32 else 64

    def entry(self, place: int) -> int:
        """Where the first instruction is, if the descriptor is at `place`."""
        return place + self.entry_offset & (1 << 64) - 1


class UserValues(NamedTuple):
    """What a packet processor knows for a kernel's SGPRs: addresses, and numbers of the dispatch."""

    kernarg: int
    dispatch_packet: int = 0
    queue: int = 0
    dispatch_id: int = 0
    private_segment_bytes: int = 0


def user_data(
    wanted: KernelDescriptor, values: UserValues, read_u32: Callable[[int], int]
) -> tuple[int, ...]:
    """The SGPRs that are filled before a wave starts, in the order in which a kernel has those it asks for.
    read_u32: of the card's memory, for arguments that are preloaded.

    EmulationError for registers of cards before gfx942. Source: LLVM, "User Guide for AMDGPU Backend",
    initial kernel execution state.
    """
    if wanted.private_segment_buffer or wanted.flat_scratch_init:
        raise EmulationError(
            "the kernel asks for scratch registers of older cards, private_segment_buffer or "
            "flat_scratch_init, which are not emulated; compile it for the card it runs on"
        )
    words: list[int] = []
    for asked, value in (
        (wanted.dispatch_ptr, values.dispatch_packet),
        (wanted.queue_ptr, values.queue),
        (wanted.kernarg_segment_ptr, values.kernarg),
        (wanted.dispatch_id, values.dispatch_id),
    ):
        if asked:
            words += value & 0xFFFFFFFF, value >> 32
    if wanted.private_segment_size:
        words.append(values.private_segment_bytes)
    first = values.kernarg + 4 * wanted.kernarg_preload_offset
    return (*words, *(read_u32(first + 4 * number) for number in range(wanted.kernarg_preload_length)))
