"""Starting a kernel from a PM4 queue: the SH registers that describe it, as forms of SET_SH_REG, and the
whole sequence.

SH offsets are the same in gfx9.4.3, gfx11 and gfx12 headers (gc_*_offset.h), except COMPUTE_PGM_RSRC3 of
GFX9. Words of registers come from the generation's own file: `GFX12.COMPUTE_PGM_RSRC1.word(...)`.
"""
from tiny.hcq.amd.pm4 import DispatchDirect, SetShReg
from tiny.hcq.amd.registers import GFX9, GFX11, sh
from tiny.hcq.layout import bits, sequence, span, u32, u64


class SetProgram(SetShReg, register=sh(GFX11.COMPUTE_PGM_LO), dwords=4):
    """Where the code starts: 256-byte aligned, 48 bits. Source: gc_11_0_0_sh_mask.h, COMPUTE_PGM_LO,
    COMPUTE_PGM_HI.
    """
    values = None
    code = span(2 * 32, 40, unit=256)


class SetResources(SetShReg, register=sh(GFX11.COMPUTE_PGM_RSRC1), dwords=4):
    """The two resource words of a kernel descriptor, LDS size filled in.

    Source: gc_11_0_0_offset.h, regCOMPUTE_PGM_RSRC1.
    """
    values = None
    rsrc1 = u32(2)
    rsrc2 = u32(3)


class SetResources3(SetShReg, register=sh(GFX11.COMPUTE_PGM_RSRC3), dwords=3):
    """The third resource word, GFX10 and later. Source: gc_11_0_0_offset.h, regCOMPUTE_PGM_RSRC3."""
    values = None
    rsrc3 = u32(2)


class SetResources3Gfx9(SetShReg, register=sh(GFX9.COMPUTE_PGM_RSRC3), dwords=3):
    """The third resource word of gfx942, which stands elsewhere.

    Source: gc_9_4_3_offset.h, regCOMPUTE_PGM_RSRC3.
    """
    values = None
    rsrc3 = u32(2)


class SetScratchBase(SetShReg, register=sh(GFX11.COMPUTE_DISPATCH_SCRATCH_BASE_LO), dwords=4):
    """Where scratch memory of all waves starts: 256-byte aligned.

    Source: gc_11_0_0_offset.h, regCOMPUTE_DISPATCH_SCRATCH_BASE_LO.
    """
    values = None
    scratch = span(2 * 32, 40, unit=256)


class SetScratchSize(SetShReg, register=sh(GFX11.COMPUTE_TMPRING_SIZE), dwords=3):
    """A COMPUTE_TMPRING_SIZE word of the generation: its fields differ in width and unit.

    Source: gc_11_0_0_offset.h, regCOMPUTE_TMPRING_SIZE.
    """
    values = None
    tmpring_size = u32(2)


class SetRestart(SetShReg, register=sh(GFX11.COMPUTE_RESTART_X), dwords=5):
    """Where a preempted dispatch goes on: 0 for a new one.

    Source: gc_11_0_0_offset.h, regCOMPUTE_RESTART_X.
    """
    values = None
    restart_x = u32(2)
    restart_y = u32(3)
    restart_z = u32(4)


class SetKernarg(SetShReg, register=sh(GFX11.COMPUTE_USER_DATA_0), dwords=4):
    """User data 0 and 1, which arrive in s[0:1]: the address of the kernel's arguments.

    Source: gc_11_0_0_offset.h, regCOMPUTE_USER_DATA_0.
    """
    values = None
    kernarg = u64(2)


class SetLimits(SetShReg, register=sh(GFX11.COMPUTE_RESOURCE_LIMITS), dwords=3):
    """A COMPUTE_RESOURCE_LIMITS word; 0 sets no limit.

    Source: gc_11_0_0_offset.h, regCOMPUTE_RESOURCE_LIMITS.
    """
    values = None
    limits = u32(2)


class SetGrid(SetShReg, register=sh(GFX11.COMPUTE_START_X), dwords=8):
    """First workgroup, and threads of a workgroup, in each dimension. Source: gc_11_0_0_sh_mask.h,
    COMPUTE_NUM_THREAD_*: FULL 15:0, PARTIAL 31:16 (on GFX12 threads_x has 13 bits, then INTERLEAVE_BITS).
    """
    values = None
    start_x = u32(2)
    start_y = u32(3)
    start_z = u32(4)
    threads_x = bits(5, 0, 16)
    partial_x = bits(5, 16, 16)
    threads_y = bits(6, 0, 16)
    partial_y = bits(6, 16, 16)
    threads_z = bits(7, 0, 16)
    partial_z = bits(7, 16, 16)


Launch = sequence("Launch", SetProgram, SetResources, SetResources3, SetKernarg, SetLimits, SetGrid,
                  DispatchDirect,
                  doc="All that starts a kernel without scratch: 31 dwords, GFX10 and later.")
