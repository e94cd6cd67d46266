"""What a channel reads: entries of its GPFIFO, the headers in a push buffer, and host methods.

Sources: clc56f.h and clc86f.h of NVIDIA's open kernel module, kernel-open/nvidia-uvm
(tiny.autogen.nv_class_c56f, _c86f), with which tests/hcq/nv compares every field here.
"""
import enum

from tiny.autogen import nv_class_c86f
from tiny.hcq.layout import Packet, Register, Struct, bits, length, tail, u32, u64
from tiny.hcq.nv.methods import HOST

_DMA = nv_class_c86f.METHODS


class Level(enum.IntEnum):
    """Which level of a push buffer an entry starts (NVC86F_GP_ENTRY1_LEVEL)."""
    MAIN, SUBROUTINE = range(2)


class GpfifoEntry(Struct, dwords=2):
    """One entry of a channel's ring: `length_dwords` dwords of push buffer at `address`, 40 bits, 4-byte
    aligned.

    conditional: do not fetch; sync: wait for earlier work before fetching. Source: clc56f.h,
    NVC56F_GP_ENTRY0/1. Bit 8 of the second word, the privilege level, stays 0.
    """
    conditional = bits(0, 0, 1)
    address = bits(0, 2, 38, unit=4)
    level = bits(1, 9, 1, Level)
    length_dwords = bits(1, 10, 21)
    sync = bits(1, 31, 1)


class Opcode(enum.IntEnum):
    """What a ring entry without a length does (NVC86F_GP_ENTRY1_OPCODE)."""
    NOP, ILLEGAL, GP_CRC, PB_CRC, SET_PB_SEGMENT_EXTENDED_BASE = range(5)


class GpfifoControl(Struct, dwords=2):
    """An entry of length 0: an operation. Source: clc86f.h, NVC86F_GP_ENTRY0_OPERAND,
    NVC86F_GP_ENTRY1_OPCODE.
    """
    operand = u32(0)
    opcode = bits(1, 0, 8, Opcode)
    length_dwords = bits(1, 10, 21)


class Push(Packet, key="form"):
    """A header in a push buffer. method: its address in bytes; subchannel: whose class the method belongs to.

    Source: clc56f.h, NVC56F_DMA_SEC_OP, DMA_METHOD_ADDRESS, DMA_METHOD_SUBCHANNEL.
    """
    method = bits(0, 0, 12, unit=4)
    subchannel = bits(0, 13, 3)
    form = bits(0, 29, 3)


class Nop(Push, form=0, method=0, subchannel=0, dwords=1):
    """A zero dword. Other words with 0 in the top bits are an older form of header, which tiny never
    writes. Source: clc56f.h, NVC56F_DMA_NOP.
    """


class Incrementing(Push, form=_DMA["DMA_INCR"][2]["OPCODE"][2]["VALUE"], dwords=1):
    """Values for consecutive methods from `method` on. Source: clc56f.h, NVC56F_DMA_INCR."""
    count = length(0, 16, 13, bias=-1)
    values = tail(1)


class NonIncrementing(Push, form=_DMA["DMA_NONINCR"][2]["OPCODE"][2]["VALUE"], dwords=1):
    """All values for the one method. Source: clc56f.h, NVC56F_DMA_NONINCR."""
    count = length(0, 16, 13, bias=-1)
    values = tail(1)


class OnceIncrementing(Push, form=_DMA["DMA_ONEINCR"][2]["OPCODE"][2]["VALUE"], dwords=1):
    """The first value for `method`, all others for the one behind it. Source: clc56f.h,
    NVC56F_DMA_ONEINCR.
    """
    count = length(0, 16, 13, bias=-1)
    values = tail(1)


class Immediate(Push, form=_DMA["DMA_IMMD"][2]["OPCODE"][2]["VALUE"], dwords=1):
    """A value of 13 bits for one method, in the header. Source: clc56f.h, NVC56F_DMA_IMMD."""
    value = bits(0, 16, 13)


class EndSegment(Push, form=_DMA["DMA_ENDSEG"][2]["OPCODE"][2]["VALUE"], dwords=1):
    """Ends the push buffer before its length. Source: clc56f.h, NVC56F_DMA_ENDSEG_OPCODE."""


def call(register: type[Register], subchannel: int = 0, **fields) -> Incrementing:
    """One method by its table, for those that have no form: `call(COMPUTE.INVALIDATE_SAMPLER_CACHE, 1,
    LINES=0)`.
    """
    return Incrementing(method=register.offset, subchannel=subchannel, values=(register.word(**fields),))


# -- host methods --------------------------------------------------------------------------------------------
class SetObject(Incrementing, method=HOST.SET_OBJECT.offset, dwords=2):
    """Bind the subchannel to a class. Source: clc6c0.h, NVC6C0_SET_OBJECT; clc56f.h, NVC56F_SET_OBJECT."""
    values = None
    class_number = bits(1, 0, 16)
    engine = bits(1, 16, 5)


class SemaphoreOperation(enum.IntEnum):
    """NVC86F_SEM_EXECUTE_OPERATION. An acquire holds the channel's front end only; GEQ compares modulo 2^32
    or 2^64.
    """
    ACQUIRE, RELEASE, ACQ_STRICT_GEQ, ACQ_CIRC_GEQ, ACQ_AND, ACQ_NOR, REDUCTION = range(7)


class Reduction(enum.IntEnum):
    """NVC86F_SEM_EXECUTE_REDUCTION."""
    IMIN, IMAX, IXOR, IAND, IOR, IADD, INC, DEC = range(8)


class Semaphore(Incrementing, method=HOST.SEM_ADDR_LO.offset, subchannel=0, dwords=6):
    """Release or acquire a semaphore: SEM_ADDR_LO to SEM_EXECUTE. Hopper and later: 57 bits of address.

    A release with `timestamp` writes 16 bytes, the payload and the GPU's nanoseconds, otherwise 4 or, with
    `wide`, 8. wait_for_idle: release after earlier work; switch: let other channels run while an acquire
    waits. Source: clc86f.h, NVC86F_SEM_*.
    """
    values = None
    address = bits(1, 2, 55, unit=4)
    payload = u64(3)
    operation = bits(5, 0, 3, SemaphoreOperation)
    switch = bits(5, 12, 1)
    wait_for_idle = bits(5, 20, 1)
    wide = bits(5, 24, 1)
    timestamp = bits(5, 25, 1)
    reduction = bits(5, 27, 4, Reduction)
    unsigned = bits(5, 31, 1)


class SemaphoreAmpere(Incrementing, method=HOST.SEM_ADDR_LO.offset, subchannel=0, dwords=6):
    """As Semaphore, with 40 bits of address. Source: clc56f.h, NVC56F_SEM_*."""
    values = None
    address = bits(1, 2, 38, unit=4)
    payload = u64(3)
    operation = bits(5, 0, 3, SemaphoreOperation)
    switch = bits(5, 12, 1)
    wait_for_idle = bits(5, 20, 1)
    wide = bits(5, 24, 1)
    timestamp = bits(5, 25, 1)
    reduction = bits(5, 27, 4, Reduction)
    unsigned = bits(5, 31, 1)


class MemoryOperation(Incrementing, method=HOST.MEM_OP_A.offset, subchannel=0, dwords=5):
    """A TLB or L2 operation: MEM_OP_A to MEM_OP_D. operation: NVC86F_MEM_OP_D_OPERATION. Source: clc86f.h."""
    values = None
    a = u32(1)
    b = u32(2)
    c = u32(3)
    d = bits(4, 0, 27)
    operation = bits(4, 27, 5)


class WaitForIdle(Incrementing, method=HOST.WFI.offset, subchannel=0, dwords=2):
    """Wait for the engine: scope 0 the current class, 1 all. Source: clc86f.h, NVC86F_WFI_SCOPE."""
    values = None
    scope = bits(1, 0, 1)


class NonStallInterrupt(Incrementing, method=HOST.NON_STALL_INTERRUPT.offset, subchannel=0, dwords=2):
    """Wake CPU threads that wait on the channel. Source: clc86f.h, NVC86F_NON_STALL_INTERRUPT."""
    values = None
    handle = u32(1)
