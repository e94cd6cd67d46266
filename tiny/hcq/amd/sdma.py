"""SDMA: what the copy engines of an AMD GPU read.

Sources, drivers/gpu/drm/amd/amdgpu of Linux 6.12: sdma_v6_0_0_pkt_open.h for gfx11 and gfx12,
vega10_sdma_pkt_open.h for gfx942; checked against tiny.autogen.amd_sdma_6 and amd_sdma_4 by tests/hcq/amd.
`Sdma` are the packets of gfx11; `SdmaGfx12` and `SdmaGfx9` are that family with the packets that differ. A
packet may not wrap at the end of the ring: zero dwords, NOPs, fill it. The engine hangs on a packet it does
not know and reports nothing. The fields cache_policy, mtype, cpv and the like are absent on gfx942, where
their bits are 0.
"""
import enum

from tiny.autogen import amd_sdma_6 as numbers
from tiny.hcq.layout import Packet, bits, length, span, tail, u32, u64


class Sdma(Packet, key=("op", "sub_op")):
    """The header of a packet."""
    op = bits(0, 0, 8)
    sub_op = bits(0, 8, 8)


class Nop(Sdma, op=numbers.SDMA_OP_NOP, sub_op=0, dwords=1):
    """Skipped, with as many dwords behind it as `count` says. Source: SDMA_PKT_NOP."""
    count = length(0, 16, 14, bias=-1)
    payload = tail(1)


class CopyLinear(Sdma, op=numbers.SDMA_OP_COPY, sub_op=numbers.SDMA_SUBOP_COPY_LINEAR, dwords=7):
    """Copy `nbytes` from source to destination; backwards for ranges that overlap upwards.

    The header has 30 bits for the size; Linux never copies more than 4 MiB in one packet. Source:
    SDMA_PKT_COPY_LINEAR.
    """
    encrypt = bits(0, 16, 1)
    tmz = bits(0, 18, 1)
    cpv = bits(0, 19, 1)
    backwards = bits(0, 25, 1)
    broadcast = bits(0, 27, 1)
    nbytes = bits(1, 0, 30, less=1)
    destination_swap = bits(2, 16, 2)
    destination_cache_policy = bits(2, 18, 3)
    source_swap = bits(2, 24, 2)
    source_cache_policy = bits(2, 26, 3)
    source = u64(3)
    destination = u64(5)


class WriteLinear(Sdma, op=numbers.SDMA_OP_WRITE, sub_op=numbers.SDMA_SUBOP_WRITE_LINEAR, dwords=4):
    """Write the dwords that follow. destination: 4-byte aligned. Source: SDMA_PKT_WRITE_UNTILED."""
    encrypt = bits(0, 16, 1)
    tmz = bits(0, 18, 1)
    cpv = bits(0, 28, 1)
    destination = u64(1)
    count = length(3, 0, 20, bias=-5)
    swap = bits(3, 24, 2)
    cache_policy = bits(3, 26, 3)
    values = tail(4)


class FillSize(enum.IntEnum):
    """Unit of CONSTANT_FILL (sdma_v6_0.c: fillsize 2 is a dword)."""
    BYTE, WORD, DWORD = range(3)


class ConstantFill(Sdma, op=numbers.SDMA_OP_CONST_FILL, sub_op=0, dwords=5):
    """Fill `nbytes` from destination with a value of `fill_size`. Source: SDMA_PKT_CONSTANT_FILL."""
    swap = bits(0, 16, 2)
    cache_policy = bits(0, 24, 3)
    cpv = bits(0, 28, 1)
    fill_size = bits(0, 30, 2, FillSize, default=FillSize.DWORD)
    destination = u64(1)
    value = u32(3)
    nbytes = bits(4, 0, 30, less=1)


class Fence(Sdma, op=numbers.SDMA_OP_FENCE, sub_op=0, dwords=4):
    """Write 32 bits after everything before it; a 64-bit value takes two. address: 4-byte aligned.

    mtype: 3 is uncached, as Linux sends it. Source: SDMA_PKT_FENCE; sdma_v6_0.c, sdma_v6_0_ring_emit_fence.
    """
    mtype = bits(0, 16, 3, default=3)
    gcc = bits(0, 19, 1)
    sys = bits(0, 20, 1)
    snoop = bits(0, 22, 1)
    gpa = bits(0, 23, 1)
    l2_policy = bits(0, 24, 2)
    llc_policy = bits(0, 26, 1)
    cpv = bits(0, 28, 1)
    address = u64(1)
    value = u32(3)


class Trap(Sdma, op=numbers.SDMA_OP_TRAP, sub_op=0, dwords=2):
    """Interrupt the CPU. interrupt_id: KFD event id, 28 bits. Source: SDMA_PKT_TRAP."""
    interrupt_id = bits(1, 0, 28)


class Compare(enum.IntEnum):
    """How POLL_REGMEM compares: as WAIT_REG_MEM of PM4 does."""
    ALWAYS, LESS, LESS_EQUAL, EQUAL, NOT_EQUAL, GREATER_EQUAL, GREATER = range(7)


class PollRegMem(Sdma, op=numbers.SDMA_OP_POLL_REGMEM, sub_op=0, dwords=6):
    """Hold the engine until (what is at `address` & mask) compares with `reference`, 32 bits unsigned.

    memory: 1 for an address, 0 for a register; hdp_flush: write a request register first; retries: 0xfff is
    for ever. Source: SDMA_PKT_POLL_REGMEM.
    """
    cache_policy = bits(0, 20, 3)
    cpv = bits(0, 24, 1)
    hdp_flush = bits(0, 26, 1)
    function = bits(0, 28, 3, Compare, default=Compare.GREATER_EQUAL)
    memory = bits(0, 31, 1, default=1)
    address = u64(1)
    reference = u32(3)
    mask = u32(4, default=0xffffffff)
    interval = bits(5, 0, 16, default=4)
    retries = bits(5, 16, 12, default=0xfff)


class CondExe(Sdma, op=numbers.SDMA_OP_COND_EXE, sub_op=0, dwords=5):
    """Skip the next `count_dwords` unless the dword at `address` equals `reference`. Source:
    SDMA_PKT_COND_EXE.
    """
    cache_policy = bits(0, 24, 3)
    cpv = bits(0, 28, 1)
    address = u64(1)
    reference = u32(3)
    count_dwords = bits(4, 0, 14)


class Atomic(Sdma, op=numbers.SDMA_OP_ATOMIC, sub_op=0, dwords=8):
    """An atomic operation on memory; `loop` repeats a compare-and-swap until it succeeds. Source:
    SDMA_PKT_ATOMIC.
    """
    loop = bits(0, 16, 1)
    tmz = bits(0, 18, 1)
    cache_policy = bits(0, 20, 3)
    cpv = bits(0, 24, 1)
    atomic = bits(0, 25, 7)
    address = u64(1)
    operand = u64(3)
    compare = u64(5)
    interval = bits(7, 0, 13)


class Timestamp(Sdma, op=numbers.SDMA_OP_TIMESTAMP, sub_op=numbers.SDMA_SUBOP_TIMESTAMP_GET_GLOBAL, dwords=3):
    """Write the GPU's 64-bit clock. address: 8-byte aligned. Source: SDMA_PKT_TIMESTAMP_GET_GLOBAL."""
    l2_policy = bits(0, 24, 2)
    llc_policy = bits(0, 26, 1)
    cpv = bits(0, 28, 1)
    address = bits(1, 3, 61, unit=8)


class SrbmWrite(Sdma, op=numbers.SDMA_OP_SRBM_WRITE, sub_op=0, dwords=3):
    """Write a register. register: dword index; byte_enable: 15 writes all four bytes. Source:
    SDMA_PKT_SRBM_WRITE.
    """
    byte_enable = bits(0, 28, 4, default=15)
    register = bits(1, 0, 18)
    aperture = bits(1, 20, 12)
    value = u32(2)


class Indirect(Sdma, op=numbers.SDMA_OP_INDIRECT, sub_op=0, dwords=6):
    """Run the packets in another buffer. address: 32-byte aligned; the packet must end on an 8-dword boundary
    of the ring.

    save_area: where the engine keeps its state when it is preempted, or 0. Source: SDMA_PKT_INDIRECT;
    sdma_v6_0.c, sdma_v6_0_ring_emit_ib, for the boundary.
    """
    vmid = bits(0, 16, 4)
    privileged = bits(0, 31, 1)
    address = bits(1, 5, 59, unit=32)
    size_dwords = bits(3, 0, 20)
    save_area = u64(4)


class _CacheRequest:
    """The fields of both packets below. The cache bits are those of PM4's ACQUIRE_MEM."""
    __slots__ = ()
    base = span(32 + 7, 41, unit=128)
    gli_inv = bits(2, 16, 2)
    gl1_range = bits(2, 18, 2)
    glm_wb = bits(2, 20, 1)
    glm_inv = bits(2, 21, 1)
    glk_wb = bits(2, 22, 1)
    glk_inv = bits(2, 23, 1)
    glv_inv = bits(2, 24, 1)
    gl1_inv = bits(2, 25, 1)
    gl2_us = bits(2, 26, 1)
    gl2_range = bits(2, 27, 2)
    gl2_discard = bits(2, 29, 1)
    gl2_inv = bits(2, 30, 1)
    gl2_wb = bits(2, 31, 1)
    seq = bits(3, 0, 2)
    range_is_pa = bits(3, 2, 1)
    limit = span(3 * 32 + 7, 41, unit=128)
    vmid = bits(4, 24, 4)


class GcrReq(Sdma, _CacheRequest, op=numbers.SDMA_OP_GCR_REQ, sub_op=0, dwords=5):
    """Write back and invalidate GPU caches in a range, 128-byte aligned; all 0 for everything.

    Source: SDMA_PKT_GCR_REQ and SDMA_GCR_*; sdma_v6_0_ring_emit_mem_sync.
    """


class UserGcrReq(Sdma, _CacheRequest, op=numbers.SDMA_OP_GCR_REQ, sub_op=1, dwords=5):
    """The same, from a user's queue.

    Source: seen in queues of ROCr 5.2.3 and 6.1.2, around a copy; no public header names sub_op 1.
    """


class SdmaGfx12(Sdma, key=("op", "sub_op")):
    """The packets of gfx12: those of gfx11, and a COPY_LINEAR that may be a dword longer."""


class CopyLinearGfx12(SdmaGfx12, op=numbers.SDMA_OP_COPY, sub_op=numbers.SDMA_SUBOP_COPY_LINEAR, dwords=8):
    """As CopyLinear, with `cpv` set and an eighth dword about compression, 0: the form that Linux 6.12 sends.

    Whether gfx12 takes the form of seven dwords, which another open driver sends, is not verified; both are
    decoded. Source: sdma_v7_0.c, sdma_v7_0_emit_copy_buffer.
    """
    encrypt = bits(0, 16, 1)
    tmz = bits(0, 18, 1)
    cpv = bits(0, 19, 1, default=1)
    backwards = bits(0, 25, 1)
    broadcast = bits(0, 27, 1)
    nbytes = bits(1, 0, 30, less=1)
    destination_swap = bits(2, 16, 2)
    destination_cache_policy = bits(2, 18, 3)
    source_swap = bits(2, 24, 2)
    source_cache_policy = bits(2, 26, 3)
    source = u64(3)
    destination = u64(5)
    compression = u32(7)

    @classmethod
    def variant_at(cls, buffer, offset: int) -> type[Packet]:
        return cls if CopyLinear.cpv.mask & int.from_bytes(buffer[offset:offset + 4],
                                                           "little") else CopyLinear


class SdmaGfx9(Sdma, key=("op", "sub_op")):
    """The packets of gfx942: smaller sizes, and no cache policies."""


class CopyLinearGfx9(SdmaGfx9, op=numbers.SDMA_OP_COPY, sub_op=numbers.SDMA_SUBOP_COPY_LINEAR, dwords=7):
    """As CopyLinear, with 22 bits for the size: at most 4 MiB. Source: vega10_sdma_pkt_open.h."""
    encrypt = bits(0, 16, 1)
    tmz = bits(0, 18, 1)
    broadcast = bits(0, 27, 1)
    nbytes = bits(1, 0, 22, less=1)
    destination_swap = bits(2, 16, 2)
    source_swap = bits(2, 24, 2)
    source = u64(3)
    destination = u64(5)


class ConstantFillGfx9(SdmaGfx9, op=numbers.SDMA_OP_CONST_FILL, sub_op=0, dwords=5):
    """As ConstantFill, with 22 bits for the size. Source: vega10_sdma_pkt_open.h."""
    swap = bits(0, 16, 2)
    fill_size = bits(0, 30, 2, FillSize, default=FillSize.DWORD)
    destination = u64(1)
    value = u32(3)
    nbytes = bits(4, 0, 22, less=1)


class FenceGfx9(SdmaGfx9, op=numbers.SDMA_OP_FENCE, sub_op=0, dwords=4):
    """As Fence, without a memory type. Source: vega10_sdma_pkt_open.h."""
    address = u64(1)
    value = u32(3)
