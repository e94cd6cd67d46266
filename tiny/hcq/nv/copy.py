"""Methods of the copy engine as forms of a push-buffer header.

Sources: clc6b5.h and clc8b5.h of NVIDIA's open kernel module, kernel-open/nvidia-uvm
(tiny.autogen.nv_class_c6b5, _c8b5), with which tests/hcq/nv compares every field. Ampere has 49 bits of
address, Hopper and later 57; a form for Ampere takes the same fields.
"""
import enum

from tiny.hcq.layout import bits, high_first, u32
from tiny.hcq.nv.methods import COPY, COPY_SUBCHANNEL
from tiny.hcq.nv.push import Incrementing


class CopySemaphore(Incrementing, subchannel=COPY_SUBCHANNEL, method=COPY.SET_SEMAPHORE_A.offset, dwords=4):
    """What the next launch releases: SET_SEMAPHORE_A, _B and _PAYLOAD.

    Source: clc8b5.h, NVC8B5_SET_SEMAPHORE_A.
    """
    values = None
    address = high_first(1, 57)
    payload = u32(3)


class CopySemaphoreAmpere(Incrementing, subchannel=COPY_SUBCHANNEL, method=COPY.SET_SEMAPHORE_A.offset,
                          dwords=4):
    """As CopySemaphore. Source: clc6b5.h, NVC6B5_SET_SEMAPHORE_A."""
    values = None
    address = high_first(1, 49)
    payload = u32(3)


class CopyLines(Incrementing, subchannel=COPY_SUBCHANNEL, method=COPY.OFFSET_IN_UPPER.offset, dwords=9):
    """What to copy: OFFSET_IN_UPPER to LINE_COUNT. One line of nbytes, or with multi_line `lines` of them at

    Source: clc8b5.h, NVC8B5_OFFSET_IN_UPPER.
    pitches.
    """
    values = None
    source = high_first(1, 57)
    destination = high_first(3, 57)
    source_pitch = u32(5)
    destination_pitch = u32(6)
    nbytes = u32(7)
    lines = u32(8, default=1)


class CopyLinesAmpere(Incrementing, subchannel=COPY_SUBCHANNEL, method=COPY.OFFSET_IN_UPPER.offset, dwords=9):
    """As CopyLines. Source: clc6b5.h, NVC6B5_OFFSET_IN_UPPER."""
    values = None
    source = high_first(1, 49)
    destination = high_first(3, 49)
    source_pitch = u32(5)
    destination_pitch = u32(6)
    nbytes = u32(7)
    lines = u32(8, default=1)


class Transfer(enum.IntEnum):
    """NVC8B5_LAUNCH_DMA_DATA_TRANSFER_TYPE."""
    NONE, PIPELINED, NON_PIPELINED = range(3)


class SemaphoreType(enum.IntEnum):
    """NVC8B5_LAUNCH_DMA_SEMAPHORE_TYPE: release one word, or four with the GPU's nanoseconds."""
    NONE, ONE_WORD, WITH_TIMESTAMP, CONDITIONAL_INTERRUPT = range(4)


class LaunchCopy(Incrementing, subchannel=COPY_SUBCHANNEL, method=COPY.LAUNCH_DMA.offset, dwords=2):
    """Begin a copy. A plain one is NON_PIPELINED between two pitch-linear places: 0x182.

    wide_payload: Hopper and later. Source: clc8b5.h, NVC8B5_LAUNCH_DMA.
    """
    values = None
    transfer = bits(1, 0, 2, Transfer, default=Transfer.NON_PIPELINED)
    flush = bits(1, 2, 1)
    semaphore = bits(1, 3, 2, SemaphoreType)
    interrupt = bits(1, 5, 2)
    source_pitch_linear = bits(1, 7, 1, default=1)
    destination_pitch_linear = bits(1, 8, 1, default=1)
    multi_line = bits(1, 9, 1)
    remap = bits(1, 10, 1)
    source_physical = bits(1, 12, 1)
    destination_physical = bits(1, 13, 1)
    semaphore_reduction = bits(1, 14, 4)
    semaphore_unsigned = bits(1, 18, 1)
    semaphore_reduce = bits(1, 19, 1)
    flush_gl = bits(1, 25, 1)
    wide_payload = bits(1, 27, 1)


class Component(enum.IntEnum):
    """Where a destination component comes from (NVC8B5_SET_REMAP_COMPONENTS_DST_X)."""
    SRC_X, SRC_Y, SRC_Z, SRC_W, CONST_A, CONST_B, NO_WRITE = range(7)


class Remap(Incrementing, subchannel=COPY_SUBCHANNEL, method=COPY.SET_REMAP_CONST_A.offset, dwords=4):
    """Fill with constants, or reorder components: SET_REMAP_CONST_A, _B and _COMPONENTS. Counts are given as
    they are.

    Source: clc8b5.h, NVC8B5_SET_REMAP_COMPONENTS.
    """
    values = None
    constant_a = u32(1)
    constant_b = u32(2)
    x = bits(3, 0, 3, Component, default=Component.CONST_A)
    y = bits(3, 4, 3, Component, default=Component.NO_WRITE)
    z = bits(3, 8, 3, Component, default=Component.NO_WRITE)
    w = bits(3, 12, 3, Component, default=Component.NO_WRITE)
    component_bytes = bits(3, 16, 2, less=1)
    source_components = bits(3, 20, 2, less=1)
    destination_components = bits(3, 24, 2, less=1)
