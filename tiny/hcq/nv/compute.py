"""Compute methods as forms of a push-buffer header, each a run of consecutive methods.

Source: clc6c0.h (Mesa 25.0, src/nouveau/headers/nvidia/classes; tiny.autogen.nv_class_c6c0), with which
tests/hcq/nv compares every field. The addresses are the same from Ampere to Blackwell. A pair of methods _A,
_B or _UPPER, _LOWER holds one number, its upper part first.
"""
import enum

from tiny.hcq.layout import bits, high_first, sequence, tail, u32
from tiny.hcq.nv.methods import COMPUTE, COMPUTE_SUBCHANNEL
from tiny.hcq.nv.push import Incrementing, NonIncrementing


class SetSharedWindow(Incrementing, subchannel=COMPUTE_SUBCHANNEL,
                      method=COMPUTE.SET_SHADER_SHARED_MEMORY_WINDOW_A.offset, dwords=3):
    """Where generic addresses mean the workgroup's shared memory. Hopper and later: 4 GiB, aligned to 4 GiB,
    and nothing else may be mapped there (Mesa nvk_cmd_dispatch.c).
    Source: clc6c0.h, NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_A.
    """
    values = None
    base = high_first(1, 49)


class SetLocalWindow(Incrementing, subchannel=COMPUTE_SUBCHANNEL,
                     method=COMPUTE.SET_SHADER_LOCAL_MEMORY_WINDOW_A.offset, dwords=3):
    """Where generic addresses mean a thread's own memory: 16 MiB.

    Source: clc6c0.h, NVC6C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A.
    """
    values = None
    base = high_first(1, 49)


class SetLocalMemory(Incrementing, subchannel=COMPUTE_SUBCHANNEL,
                     method=COMPUTE.SET_SHADER_LOCAL_MEMORY_A.offset,
                     dwords=3):
    """The pool that threads' stacks and spills lie in. Source: clc6c0.h, NVC6C0_SET_SHADER_LOCAL_MEMORY_A."""
    values = None
    address = high_first(1, 49)


class SetLocalMemorySize(Incrementing, subchannel=COMPUTE_SUBCHANNEL,
                         method=COMPUTE.SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A.offset, dwords=4):
    """Bytes of the pool for each TPC, a multiple of 32 KiB. sm_count: at most so many SMs; 0xff is common.

    Source: clc6c0.h, NVC6C0_SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A.
    """
    values = None
    bytes_per_tpc = high_first(1, 40)
    sm_count = bits(3, 0, 9, default=0xff)


class InvalidateCaches(Incrementing, subchannel=COMPUTE_SUBCHANNEL,
                       method=COMPUTE.INVALIDATE_SHADER_CACHES.offset,
                       dwords=2):
    """Wait for idle, then invalidate. Source: clc6c0.h, NVC6C0_INVALIDATE_SHADER_CACHES."""
    values = None
    instruction = bits(1, 0, 1)
    locks = bits(1, 1, 1)
    flush_data = bits(1, 2, 1)
    data = bits(1, 4, 1)
    constant = bits(1, 12, 1)


class InvalidateCachesNoWait(Incrementing, subchannel=COMPUTE_SUBCHANNEL,
                             method=COMPUTE.INVALIDATE_SHADER_CACHES_NO_WFI.offset, dwords=2):
    """Invalidate without waiting: before the first launch after the CPU wrote code or data.

    Source: clc6c0.h, NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI.
    """
    values = None
    instruction = bits(1, 0, 1)
    global_data = bits(1, 4, 1)
    constant = bits(1, 12, 1)


class InvalidateSkedCaches(Incrementing, subchannel=COMPUTE_SUBCHANNEL,
                           method=COMPUTE.INVALIDATE_SKED_CACHES.offset,
                           dwords=2):
    """Invalidate the scheduler's copies of QMDs. Source: clc6c0.h, NVC6C0_INVALIDATE_SKED_CACHES."""
    values = None
    value = bits(1, 0, 1)


class WaitForIdle(Incrementing, subchannel=COMPUTE_SUBCHANNEL, method=COMPUTE.WAIT_FOR_IDLE.offset, dwords=2):
    """Wait until the compute engine has nothing to do. Source: clc6c0.h, NVC6C0_WAIT_FOR_IDLE."""
    values = None
    value = u32(1)


class PcasAction(enum.IntEnum):
    """What happens to a QMD (NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION)."""
    NOP, INVALIDATE, SCHEDULE, INVALIDATE_COPY_SCHEDULE = range(4)
    INCREMENT_PUT = 6
    DECREMENT_DEPENDENCE, PREFETCH, PREFETCH_SCHEDULE, INVALIDATE_PREFETCH_COPY_SCHEDULE = range(7, 11)
    INVALIDATE_PREFETCH_COPY_FORCE_REQUIRE_SCHEDULING, INCREMENT_DEPENDENCE = range(11, 13)


class SendPcas(Incrementing, subchannel=COMPUTE_SUBCHANNEL, method=COMPUTE.SEND_PCAS_A.offset, dwords=2):
    """Name the QMD that the next action is about: 256-byte aligned, below 2^40.

    Source: clc6c0.h, NVC6C0_SEND_PCAS_A.
    """
    values = None
    qmd = bits(1, 0, 32, unit=256)


class SendSignalingPcas(Incrementing, subchannel=COMPUTE_SUBCHANNEL, method=COMPUTE.SEND_PCAS_B.offset,
                        dwords=3):
    """The older way to launch. Source: clc6c0.h, NVC6C0_SEND_PCAS_B."""
    values = None
    from_ = bits(1, 0, 24)
    delta = bits(1, 24, 8)
    invalidate = bits(2, 0, 1)
    schedule = bits(2, 1, 1)


class SendSignalingPcas2(Incrementing, subchannel=COMPUTE_SUBCHANNEL,
                         method=COMPUTE.SEND_SIGNALING_PCAS2_B.offset,
                         dwords=2):
    """Launch the QMD. Source: clc6c0.h, NVC6C0_SEND_SIGNALING_PCAS2_B."""
    values = None
    action = bits(1, 0, 4, PcasAction, default=PcasAction.PREFETCH_SCHEDULE)


Launch = sequence("Launch", SendPcas, SendSignalingPcas2, doc="Launch the QMD at `qmd`: 4 dwords.")


class InlineQmd(Incrementing, subchannel=COMPUTE_SUBCHANNEL, method=COMPUTE.SET_INLINE_QMD_ADDRESS_A.offset,
                dwords=3):
    """Send a QMD inside the push buffer and launch it: its address, 256-byte aligned, then its words.

    64 words for QMD version 3, 96 for 4 and 5. The words follow LOAD_INLINE_QMD_DATA(0), the next method.
    Source: clc6c0.h, NVC6C0_SET_INLINE_QMD_ADDRESS_A.
    """
    address = high_first(1, 64, unit=256)
    values = None
    qmd = tail(3)


class InlineTo(Incrementing, subchannel=COMPUTE_SUBCHANNEL, method=COMPUTE.LINE_LENGTH_IN.offset, dwords=5):
    """Where inline data goes: LINE_LENGTH_IN to OFFSET_OUT. Then InlineLaunch, then InlineData.

    Source: clc6c0.h, NVC6C0_LINE_LENGTH_IN.
    """
    values = None
    nbytes = u32(1)
    lines = u32(2, default=1)
    destination = high_first(3, 49)


class InlineLaunch(Incrementing, subchannel=COMPUTE_SUBCHANNEL, method=COMPUTE.LAUNCH_DMA.offset, dwords=2):
    """Begin an inline write. The defaults, a pitch-linear destination without a membar, are 0x41.

    Source: clc6c0.h, NVC6C0_LAUNCH_DMA.
    """
    values = None
    pitch = bits(1, 0, 1, default=1)
    reduce = bits(1, 1, 1)
    reduction_format = bits(1, 2, 2)
    completion = bits(1, 4, 2)
    no_membar = bits(1, 6, 1, default=1)
    interrupt = bits(1, 8, 2)
    one_word_semaphore = bits(1, 12, 1)
    reduction = bits(1, 13, 3)


class InlineData(NonIncrementing, subchannel=COMPUTE_SUBCHANNEL, method=COMPUTE.LOAD_INLINE_DATA.offset,
                 dwords=1):
    """The data of an inline write. Source: clc6c0.h, NVC6C0_LOAD_INLINE_DATA."""
    values = tail(1)


class ReportSemaphore(Incrementing, subchannel=COMPUTE_SUBCHANNEL,
                      method=COMPUTE.SET_REPORT_SEMAPHORE_A.offset,
                      dwords=5):
    """Write a value, or with four words value and time, after earlier work: SET_REPORT_SEMAPHORE_A to _D.

    Source: clc6c0.h, NVC6C0_SET_REPORT_SEMAPHORE_A.
    """
    values = None
    address = high_first(1, 40)
    payload = u32(3)
    operation = bits(4, 0, 2)
    no_flush = bits(4, 2, 1)
    reduce = bits(4, 3, 1)
    reduction = bits(4, 9, 3)
    reduction_format = bits(4, 17, 2)
    conditional_trap = bits(4, 19, 1)
    awaken = bits(4, 20, 1)
    one_word = bits(4, 28, 1)
