"""What differs from one generation of cards to the next, each as a class: packets, registers, units.

`generation_of` is the one place where a card's IP version chooses; everything else asks the class.
"""
from collections.abc import Callable

from tiny.hcq.amd import aql, pm4, sdma
from tiny.hcq.amd.aql_queue import AqlQueue
from tiny.hcq.amd.aql_recorder import AqlRecorder
from tiny.hcq.amd.dispatch import (
    Launch,
    SetGrid,
    SetKernarg,
    SetLimits,
    SetProgram,
    SetResources,
    SetResources3Gfx9,
)
from tiny.hcq.amd.pm4_queue import Pm4Queue
from tiny.hcq.amd.pm4_recorder import Pm4Recorder
from tiny.hcq.amd.queues import ComputeQueue
from tiny.hcq.amd.recorder import AmdRecorder
from tiny.hcq.amd.registers import GFX9, GFX11, GFX12
from tiny.hcq.amd.topology import Card
from tiny.hcq.layout import Packet, RegisterFile, Struct, sequence

LaunchGfx9 = sequence("LaunchGfx9", SetProgram, SetResources, SetResources3Gfx9, SetKernarg, SetLimits,
                      SetGrid, pm4.DispatchDirect,
                      doc="All that starts a kernel without scratch on gfx942: 31 dwords.")
MOST_SCRATCH_WAVES = 0xfff                                  # TMPRING_SIZE.WAVES has 12 bits


class Generation:
    """gfx11, and what the others share with it.

    gfx          its number                        registers      the register file
    launch       the packets that start a kernel
    packets      the family of the compute queue's packets, copy_packets of the copy queue's
    copy, fence  packets of the copy engine        copy_bytes     most that one packet copies
    scratch_unit bytes that TMPRING_SIZE.WAVESIZE counts
    code_padding bytes behind a program's code that the instruction prefetch may read
    """
    gfx = 11
    registers: RegisterFile = GFX11
    packets: type[Packet] = pm4.Pm4
    copy_packets: type[Packet] = sdma.Sdma
    launch: type[Struct] = Launch
    release: type[Packet] = pm4.ReleaseMem
    copy: type[Packet] = sdma.CopyLinear
    fence: type[Packet] = sdma.Fence
    copy_bytes = 4 << 20                                    # of one packet: Linux never copies more
    compute_queue: type[ComputeQueue] = Pm4Queue
    recorder: type[AmdRecorder] = Pm4Recorder
    scratch_unit = 256
    code_padding = 256
    # open drivers set a program's privilege bit on gfx11 under KFD; why is not documented, and nobody has
    # tried this driver on a card without it
    extra_rsrc1 = GFX11.COMPUTE_PGM_RSRC1.word(PRIV=1)

    def __init__(self, card: Card):
        self.card = card

    def initiator(self, wave32: bool) -> int:
        """The COMPUTE_DISPATCH_INITIATOR word of a launch."""
        return self.registers.COMPUTE_DISPATCH_INITIATOR.word(COMPUTE_SHADER_EN=1, FORCE_START_AT_000=1,
                                                              CS_W32_EN=wave32)

    def with_lds(self, rsrc2: int, local_bytes: int) -> int:
        """RSRC2 with LDS_SIZE, which the descriptor leaves 0: in units of 512 bytes."""
        return rsrc2 | self.registers.COMPUTE_PGM_RSRC2.word(LDS_SIZE=-(-local_bytes // 512))

    def scratch(self, lane_bytes: int, lanes: int) -> tuple[int, int]:
        """(COMPUTE_TMPRING_SIZE word, bytes of memory it needs) for waves of `lanes` times `lane_bytes`.

        WAVES counts those of a shader engine from gfx11 on (ROCr, FillComputeTmpRingSize_Gfx11).
        """
        wave = -(-lane_bytes * lanes // self.scratch_unit)
        per_engine = self.card.compute_units // self.card.engines * self.card.scratch_slots
        waves = min(per_engine, MOST_SCRATCH_WAVES)
        word = self.registers.COMPUTE_TMPRING_SIZE.word(WAVES=waves, WAVESIZE=wave)
        return word, waves * self.card.engines * self.card.xccs * wave * self.scratch_unit

    def acquire(self, emit: Callable, everything: bool) -> None:
        """Invalidate caches before what follows. everything: also the L2, for what others have written."""
        emit(pm4.AcquireMem, gli_inv=everything, glk_inv=1, glv_inv=1, gl1_inv=1, gl2_inv=everything,
             gl2_wb=everything, glm_inv=everything, glm_wb=everything)

    def interrupt_id(self, event_id: int) -> int:
        """What an interrupt carries: the KFD event's id."""
        return event_id

    @property
    def write_back(self) -> dict[str, int]:
        """Fields of `release` that make results visible to the host and to other engines."""
        return dict(gl2_wb=1, glm_wb=1, glk_wb=1)


class Gfx12(Generation):
    """gfx1200 and gfx1201. Linux 6.12 sends the cache bits of gfx11, some of whose caches are gone."""
    gfx = 12
    registers = GFX12
    copy_packets = sdma.SdmaGfx12
    copy = sdma.CopyLinearGfx12
    extra_rsrc1 = 0


class Gfx9(Generation):
    """gfx942 as a partition with one compute die: 64 lanes a wave, its own ACQUIRE_MEM and RELEASE_MEM."""
    gfx = 9
    registers = GFX9
    packets = pm4.Pm4Gfx9
    copy_packets = sdma.SdmaGfx9
    launch = LaunchGfx9
    release = pm4.ReleaseMemGfx9
    copy = sdma.CopyLinearGfx9
    fence = sdma.FenceGfx9
    scratch_unit = 1024
    extra_rsrc1 = 0

    def initiator(self, wave32: bool) -> int:
        return self.registers.COMPUTE_DISPATCH_INITIATOR.word(COMPUTE_SHADER_EN=1, FORCE_START_AT_000=1)

    def scratch(self, lane_bytes: int, lanes: int) -> tuple[int, int]:
        """Before gfx11 WAVES counts those of the whole die."""
        wave = -(-lane_bytes * lanes // self.scratch_unit)
        waves = min(self.card.compute_units * self.card.scratch_slots, MOST_SCRATCH_WAVES)
        word = self.registers.COMPUTE_TMPRING_SIZE.word(WAVES=waves, WAVESIZE=wave)
        return word, waves * self.card.xccs * wave * self.scratch_unit

    def acquire(self, emit: Callable, everything: bool) -> None:
        emit(pm4.AcquireMemGfx9, tcl1=1, sh_kcache=1, sh_icache=everything, tc=everything, tc_wb=everything)

    def interrupt_id(self, event_id: int) -> int:
        """Linux sends 0 on GFX9, and looks through the event page for slots that were written."""
        return 0

    @property
    def write_back(self) -> dict[str, int]:
        return dict(tc_wb=1, tc=1)


class Gfx9Dies(Gfx9):
    """gfx942 with several compute dies: a PM4 queue would run on the first, an AQL queue runs on all."""
    packets = aql.Aql
    compute_queue = AqlQueue
    recorder = AqlRecorder


GENERATIONS = {9: Gfx9, 11: Generation, 12: Gfx12}
OF_SEVERAL_DIES = {9: Gfx9Dies}


def generation_of(card: Card) -> Generation:
    """Chosen by the graphics IP's major version; `find_cards` lets no other pass."""
    major = card.version[0]
    return (OF_SEVERAL_DIES if card.xccs > 1 else GENERATIONS)[major](card)
