"""PM4: what the compute command processor of an AMD GPU reads.

Sources. nvd.h and soc15d.h, drivers/gpu/drm/amd/amdgpu of Linux 6.12: opcodes and fields, checked against
tiny.autogen.amd_pm4 and amd_pm4_gfx9 by tests/hcq/amd. sid.h and pkt3.json, Mesa 25.0 src/amd: what those
leave out. A packet that is the same in all generations is declared once in `Pm4`; `Pm4Gfx9` is that family
with GFX9's own forms of ACQUIRE_MEM and RELEASE_MEM. Addresses are GPU virtual.
"""
import enum

from tiny.autogen import amd_gc_11_0_0 as gc
from tiny.autogen import amd_pm4 as numbers
from tiny.autogen import amd_pm4_gfx9
from tiny.hcq.layout import Packet, bits, length, span, tail, u32, u64


class Pm4(Packet, key=("type", "op")):
    """The header of a type-3 packet. count: dwords of the packet less two, modulo 2^14, so 0x3fff is a lone
    header.

    predicate: skipped when a SET_PREDICATION condition fails. compute: the shader type bit; a compute-only
    processor (MEC) does not look at it. Source: nvd.h, PACKET3; sid.h, PKT3.
    """
    predicate = bits(0, 0, 1)
    compute = bits(0, 1, 1)
    op = bits(0, 8, 8)
    count = length(0, 16, 14, bias=-2)
    type = bits(0, 30, 2)


class Filler(Pm4, type=2, op=0, count=0, dwords=1):
    """One dword that does nothing. Source: nvd.h, PACKET_TYPE2."""


class Nop(Pm4, type=3, op=numbers.PACKET3_NOP, dwords=1):
    """Skipped with everything in it; without a payload it is one dword. Source: nvd.h, PACKET3_NOP; sid.h,
    PKT3_NOP_PAD.
    """
    payload = tail(1)


# -- starting work -------------------------------------------------------------------------------------------
class DispatchDirect(Pm4, type=3, op=numbers.PACKET3_DISPATCH_DIRECT, dwords=5):
    """Start workgroups (with USE_THREAD_DIMENSIONS in the initiator: threads) of the program that the SH
    registers describe.

    initiator: a COMPUTE_DISPATCH_INITIATOR word. Source: nvd.h, PACKET3_DISPATCH_DIRECT; Mesa radv, count 3.
    """
    groups_x = u32(1)
    groups_y = u32(2)
    groups_z = u32(3)
    initiator = u32(4)


class DispatchIndirect(Pm4, type=3, op=numbers.PACKET3_DISPATCH_INDIRECT, dwords=4):
    """As DISPATCH_DIRECT, x, y and z read from three dwords at `address`, 4-byte aligned.

    The form of a compute queue; a graphics queue takes an offset instead. Source: nvd.h; Mesa radv, count 2.
    """
    address = u64(1)
    initiator = u32(3)


class DispatchDirectInterleaved(Pm4, type=3, op=0xa7, dwords=5):
    """As DISPATCH_DIRECT, with workgroups handed out in small squares: GFX12 only.

    Source: Mesa 25.0 sid.h, PKT3_DISPATCH_DIRECT_INTERLEAVED; nvd.h of Linux 6.12 has no such number.
    """
    groups_x = u32(1)
    groups_y = u32(2)
    groups_z = u32(3)
    initiator = u32(4)


class IndirectBuffer(Pm4, type=3, op=numbers.PACKET3_INDIRECT_BUFFER, dwords=4):
    """Run the commands in another buffer, then come back (with `chain`: do not come back).

    address: 4-byte aligned; size_dwords: of the buffer; valid: must be 1 on a compute queue.
    Source: nvd.h, PACKET3_INDIRECT_BUFFER and INDIRECT_BUFFER_VALID; Mesa pkt3.json, IB_CONTROL.
    """
    address = u64(1)
    size_dwords = bits(3, 0, 20)
    chain = bits(3, 20, 1)
    pre_enable = bits(3, 21, 1)
    valid = bits(3, 23, 1, default=1)
    vmid = bits(3, 24, 4)
    cache_policy = bits(3, 28, 2)


class CondExec(Pm4, type=3, op=numbers.PACKET3_COND_EXEC, dwords=5):
    """Skip the next `count_dwords` if the dword at `address` is 0.

    Source: gfx_v11_0.c, gfx_v11_0_ring_emit_init_cond_exec: address, 0, count.
    """
    address = u64(1)
    count_dwords = bits(4, 0, 14)


class PredExec(Pm4, type=3, op=numbers.PACKET3_PRED_EXEC, dwords=2):
    """On a GPU with several compute dies (gfx942): only dies of the mask run the next `count_dwords`.

    Works only inside an indirect buffer (seen in open drivers, not documented). Source: soc15d.h,
    PACKET3_PRED_EXEC.
    """
    count_dwords = bits(1, 0, 14)
    xcc_mask = bits(1, 24, 8)


class AqlPacket(Pm4, type=3, op=numbers.PACKET3_AQL_PACKET, dwords=2):
    """Run one AQL packet that follows. Only its number is public (nvd.h, PACKET3_AQL_PACKET); its words are
    shown as they are.
    """
    control = u32(1)
    payload = tail(2)


# -- registers -----------------------------------------------------------------------------------------------
class SetShReg(Pm4, type=3, op=numbers.PACKET3_SET_SH_REG, dwords=2):
    """Write consecutive SH registers. register: as registers.sh gives it. Source: nvd.h,
    PACKET3_SET_SH_REG.
    """
    register = bits(1, 0, 16)
    values = tail(2)


class SetShRegIndex(Pm4, type=3, op=numbers.PACKET3_SET_SH_REG_INDEX, dwords=2):
    """As SET_SH_REG; index 3 also applies the kernel driver's mask of compute units.

    Source: nvd.h, PACKET3_SET_SH_REG_INDEX; Mesa ac_pm4.c for index 3.
    """
    register = bits(1, 0, 16)
    index = bits(1, 28, 4)
    values = tail(2)


class SetUconfigReg(Pm4, type=3, op=numbers.PACKET3_SET_UCONFIG_REG, dwords=2):
    """Write consecutive UCONFIG registers. register: as registers.uconfig gives it. Source: nvd.h."""
    register = bits(1, 0, 16)
    index = bits(1, 28, 4)
    values = tail(2)


# -- memory --------------------------------------------------------------------------------------------------
class WriteTo(enum.IntEnum):
    """Where WRITE_DATA writes (nvd.h, WRITE_DATA_DST_SEL)."""
    REGISTER, MEMORY_SYNC, L2, GDS, RESERVED, MEMORY = range(6)


class WriteData(Pm4, type=3, op=numbers.PACKET3_WRITE_DATA, dwords=4):
    """Write dwords to memory or registers.

    one_address: do not count up; confirm: wait until the write has arrived; address: 4-byte aligned, or a
    register's dword index. Source: nvd.h, PACKET3_WRITE_DATA; Mesa pkt3.json, CONTROL.
    """
    to = bits(1, 8, 4, WriteTo, default=WriteTo.MEMORY)
    one_address = bits(1, 16, 1)
    confirm = bits(1, 20, 1)
    cache_policy = bits(1, 25, 2)
    engine = bits(1, 30, 2)
    address = u64(2)
    values = tail(4)


class CopyFrom(enum.IntEnum):
    """Where COPY_DATA reads (sid.h, COPY_DATA_SRC_SEL)."""
    REGISTER, MEMORY, L2, GDS, PERFCOUNTER, IMMEDIATE = range(6)
    TIMESTAMP = 9


class CopyTo(enum.IntEnum):
    """Where COPY_DATA writes (sid.h, COPY_DATA_DST_SEL)."""
    REGISTER, MEMORY_SYNC, L2, GDS, PERFCOUNTER, MEMORY = range(6)


class CopyData(Pm4, type=3, op=numbers.PACKET3_COPY_DATA, dwords=6):
    """Copy one dword, or two with `wide`, between registers, memory and the GPU's clock.

    source, destination: an address, a register's dword index, or with IMMEDIATE the value. Source: sid.h,
    PKT3_COPY_DATA.
    """
    from_ = bits(1, 0, 4, CopyFrom)
    to = bits(1, 8, 4, CopyTo, default=CopyTo.MEMORY)
    wide = bits(1, 16, 1)
    confirm = bits(1, 20, 1)
    engine = bits(1, 30, 2)
    source = u64(2)
    destination = u64(4)


class AtomicMem(Pm4, type=3, op=numbers.PACKET3_ATOMIC_MEM, dwords=9):
    """An atomic operation of the L2 cache on memory.

    atomic: the cache's opcode; command: 0 send, 1 loop until equal to `compare`, 2 write and confirm, 3 send
    without return; interval: clocks between two tries of a loop. Source: sid.h, PKT3_ATOMIC_MEM, ATOMIC_OP,
    ATOMIC_COMMAND.
    """
    atomic = bits(1, 0, 7)
    command = bits(1, 8, 2)
    cache_policy = bits(1, 25, 2)
    engine = bits(1, 30, 2)
    address = u64(2)
    operand = u64(4)
    compare = u64(6)
    interval = bits(8, 0, 13)


class DmaTo(enum.IntEnum):
    """DMA_DATA destinations (nvd.h, PACKET3_DMA_DATA_DST_SEL)."""
    ADDRESS = 0
    GDS = 1
    L2 = 3


class DmaFrom(enum.IntEnum):
    """DMA_DATA sources (nvd.h, PACKET3_DMA_DATA_SRC_SEL)."""
    ADDRESS, GDS, DATA, L2 = range(4)


class DmaData(Pm4, type=3, op=numbers.PACKET3_DMA_DATA, dwords=7):
    """Copy or fill with the command processor's own DMA; small sizes only are worth it.

    source: an address, or with DATA the dword to fill with. sync: the processor waits for the end.
    Source: nvd.h, PACKET3_DMA_DATA; Mesa pkt3.json, DMA_DATA_WORD0 and COMMAND.
    """
    engine = bits(1, 0, 1)
    source_cache_policy = bits(1, 13, 2)
    to = bits(1, 20, 2, DmaTo)
    destination_cache_policy = bits(1, 25, 2)
    from_ = bits(1, 29, 2, DmaFrom)
    sync = bits(1, 31, 1)
    source = u64(2)
    destination = u64(4)
    size_bytes_ = bits(6, 0, 26)
    source_is_register = bits(6, 26, 1)
    destination_is_register = bits(6, 27, 1)
    source_stays = bits(6, 28, 1)
    destination_stays = bits(6, 29, 1)
    wait_for_earlier = bits(6, 30, 1)
    no_confirm = bits(6, 31, 1)


# -- order, caches, events -----------------------------------------------------------------------------------
class Compare(enum.IntEnum):
    """How a wait compares (nvd.h, WAIT_REG_MEM_FUNCTION). Values are unsigned; what is read is masked
    first.
    """
    ALWAYS, LESS, LESS_EQUAL, EQUAL, NOT_EQUAL, GREATER_EQUAL, GREATER = range(7)


class WaitRegMem(Pm4, type=3, op=numbers.PACKET3_WAIT_REG_MEM, dwords=7):
    """Hold the queue until a dword in memory, or a register, compares with the reference.

    operation: 1 writes `reference` to the register `address` first and then waits for the register in its
    upper half to equal it, as the HDP flush needs; interval: clocks of 16 between reads. Source: nvd.h,
    PACKET3_WAIT_REG_MEM.
    """
    function = bits(1, 0, 3, Compare, default=Compare.GREATER_EQUAL)
    memory = bits(1, 4, 2, default=1)
    operation = bits(1, 6, 2)
    engine = bits(1, 8, 1)
    address = u64(2)
    reference = u32(4)
    mask = u32(5, default=0xffffffff)
    interval = bits(6, 0, 16, default=4)


class WaitRegMem64(Pm4, type=3, op=numbers.PACKET3_WAIT_REG_MEM64, dwords=9):
    """As WAIT_REG_MEM, on 64 bits. nvd.h has its number only; the words are those of WAIT_REG_MEM with the
    reference and the mask twice as wide (seen in open tools, not documented).
    """
    function = bits(1, 0, 3, Compare, default=Compare.GREATER_EQUAL)
    memory = bits(1, 4, 2, default=1)
    operation = bits(1, 6, 2)
    engine = bits(1, 8, 1)
    address = u64(2)
    reference = u64(4)
    mask = u64(6, default=0xffffffffffffffff)
    interval = bits(8, 0, 16, default=4)


class EventWrite(Pm4, type=3, op=numbers.PACKET3_EVENT_WRITE, dwords=2):
    """Send an event down the pipeline. The default waits for all waves of earlier dispatches.

    event_type: VGT_EVENT_TYPE of the generation's header; event_index: 4 for a partial flush. Source: nvd.h,
    PACKET3_EVENT_WRITE, EVENT_TYPE, EVENT_INDEX.
    """
    event_type = bits(1, 0, 6, default=gc.CS_PARTIAL_FLUSH)
    event_index = bits(1, 8, 4, default=4)


class HdpFlush(Pm4, type=3, op=numbers.PACKET3_HDP_FLUSH, dwords=2):
    """Flush the path by which the CPU writes video memory. nvd.h has its number only; one dword without
    meaning follows.
    """
    ignored = u32(1)


class AcquireMem(Pm4, type=3, op=numbers.PACKET3_ACQUIRE_MEM, dwords=8):
    """Wait for and invalidate caches before the commands that follow: GFX10 and later.

    gl0/gl1/gl2/glk/gli/glm are the vector L0, L1, L2, scalar, instruction and metadata caches. size, base: a
    range in 256-byte units by the names of the registers behind them (COHER_SIZE_256B); everybody sends the
    full range, the default. Linux 6.12 sends the same bits on GFX12, where some of those caches are gone.
    Source: nvd.h, PACKET3_ACQUIRE_MEM; Mesa pkt3.json, GCR_CNTL.
    """
    coherence = u32(1)
    size = span(2 * 32, 40, default=0xffffffffff)
    base = span(4 * 32, 56)
    interval = bits(6, 0, 16, default=0xa)
    gli_inv = bits(7, 0, 2)
    gl1_range = bits(7, 2, 2)
    glm_wb = bits(7, 4, 1)
    glm_inv = bits(7, 5, 1)
    glk_wb = bits(7, 6, 1)
    glk_inv = bits(7, 7, 1)
    glv_inv = bits(7, 8, 1)
    gl1_inv = bits(7, 9, 1)
    gl2_us = bits(7, 10, 1)
    gl2_range = bits(7, 11, 2)
    gl2_discard = bits(7, 13, 1)
    gl2_inv = bits(7, 14, 1)
    gl2_wb = bits(7, 15, 1)
    seq = bits(7, 16, 2)
    range_is_pa = bits(7, 18, 1)


class DataSel(enum.IntEnum):
    """What RELEASE_MEM writes (nvd.h, PACKET3_RELEASE_MEM_DATA_SEL). CLOCK: the 100 MHz counter of the
    GPU.
    """
    NONE, U32, U64, CLOCK, SYSTEM_CLOCK = range(5)


class IntSel(enum.IntEnum):
    """Whether RELEASE_MEM interrupts the CPU (nvd.h, PACKET3_RELEASE_MEM_INT_SEL)."""
    NONE, ALWAYS, AFTER_WRITE = range(3)


class ReleaseMem(Pm4, type=3, op=numbers.PACKET3_RELEASE_MEM, dwords=8):
    """Write `value` (or the GPU clock) to `address` after all earlier work has drained and caches are
    flushed.

    address: 4-byte aligned for U32, 8-byte for U64 and the clocks. interrupt_id: KFD event id. A queue
    without an EOP buffer cannot run it. glk_wb, glk_inv, pws_enable: GFX11 and later. Source: nvd.h,
    PACKET3_RELEASE_MEM; Mesa pkt3.json, RELEASE_MEM_OP; GFX10 and later.
    """
    event_type = bits(1, 0, 6, default=gc.CACHE_FLUSH_AND_INV_TS_EVENT)
    wait_sync = bits(1, 7, 1)
    event_index = bits(1, 8, 4, default=5)
    glm_wb = bits(1, 12, 1)
    glm_inv = bits(1, 13, 1)
    glv_inv = bits(1, 14, 1)
    gl1_inv = bits(1, 15, 1)
    gl2_us = bits(1, 16, 1)
    gl2_range = bits(1, 17, 2)
    gl2_discard = bits(1, 19, 1)
    gl2_inv = bits(1, 20, 1)
    gl2_wb = bits(1, 21, 1)
    seq = bits(1, 22, 2)
    glk_wb = bits(1, 24, 1)
    cache_policy = bits(1, 25, 2)
    execute = bits(1, 28, 2)
    glk_inv = bits(1, 30, 1)
    pws_enable = bits(1, 31, 1)
    to_l2 = bits(2, 16, 2)
    interrupt = bits(2, 24, 3, IntSel)
    data_sel = bits(2, 29, 3, DataSel)
    address = u64(3)
    value = u64(5)
    interrupt_id = u32(7)


# -- GFX9 ----------------------------------------------------------------------------------------------------
class Pm4Gfx9(Pm4, key=("type", "op")):
    """The packets of gfx942: those of Pm4, and its own ACQUIRE_MEM and RELEASE_MEM."""


class AcquireMemGfx9(Pm4Gfx9, type=3, op=amd_pm4_gfx9.PACKET3_ACQUIRE_MEM, dwords=7):
    """Wait for and invalidate caches: tc is the L2, tcl1 the vector L1, kcache and icache the scalar and
    instruction ones.

    Source: soc15d.h, PACKET3_ACQUIRE_MEM and its CP_COHER_CNTL fields.
    """
    tc_nc = bits(1, 3, 1)
    tc_wc = bits(1, 4, 1)
    tc_inv_metadata = bits(1, 5, 1)
    tcl1_vol = bits(1, 15, 1)
    tc_wb = bits(1, 18, 1)
    tcl1 = bits(1, 22, 1)
    tc = bits(1, 23, 1)
    sh_kcache = bits(1, 27, 1)
    sh_kcache_vol = bits(1, 28, 1)
    sh_icache = bits(1, 29, 1)
    sh_kcache_wb = bits(1, 30, 1)
    engine = bits(1, 31, 1)
    size = span(2 * 32, 40, default=0xffffffffff)
    base = span(4 * 32, 56)
    interval = bits(6, 0, 16, default=0xa)


class ReleaseMemGfx9(Pm4Gfx9, type=3, op=amd_pm4_gfx9.PACKET3_RELEASE_MEM, dwords=8):
    """As ReleaseMem, with GFX9's caches. The kernel writes 0 as interrupt id on GFX9; its width there is not
    documented.

    Source: soc15d.h, PACKET3_RELEASE_MEM and the EOP_ fields.
    """
    event_type = bits(1, 0, 6, default=gc.CACHE_FLUSH_AND_INV_TS_EVENT)
    event_index = bits(1, 8, 4, default=5)
    tcl1_vol = bits(1, 12, 1)
    tc_vol = bits(1, 13, 1)
    tc_wb = bits(1, 15, 1)
    tcl1 = bits(1, 16, 1)
    tc = bits(1, 17, 1)
    tc_nc = bits(1, 19, 1)
    tc_md = bits(1, 21, 1)
    execute = bits(1, 28, 1)
    to_l2 = bits(2, 16, 2)
    interrupt = bits(2, 24, 3, IntSel)
    data_sel = bits(2, 29, 3, DataSel)
    address = u64(3)
    value = u64(5)
    interrupt_id = u32(7)
