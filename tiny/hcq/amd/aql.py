"""AQL: the 64-byte packets of an HSA queue.

Source: hsa.h of libhsa-runtime-dev (tiny.autogen.amd_hsa has the same structs, which tests/hcq/amd compares
with), and ROCr's amd_aql_queue.cpp for the vendor packet. A packet is published by writing its first dword
last.
"""
import enum

from tiny.autogen import amd_hsa as hsa
from tiny.hcq.layout import Packet, bits, repeated, u32, u64


class Scope(enum.IntEnum):
    """How far an acquire or release reaches (hsa.h, hsa_fence_scope_t)."""
    NONE = hsa.HSA_FENCE_SCOPE_NONE
    AGENT = hsa.HSA_FENCE_SCOPE_AGENT
    SYSTEM = hsa.HSA_FENCE_SCOPE_SYSTEM


class Aql(Packet, key="type"):
    """The header. barrier: wait for the packets before to be complete. Source: hsa.h, hsa_packet_header_t."""
    type = bits(0, hsa.HSA_PACKET_HEADER_TYPE, hsa.HSA_PACKET_HEADER_WIDTH_TYPE)
    barrier = bits(0, hsa.HSA_PACKET_HEADER_BARRIER, hsa.HSA_PACKET_HEADER_WIDTH_BARRIER)
    acquire = bits(0, hsa.HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE,
                   hsa.HSA_PACKET_HEADER_WIDTH_SCACQUIRE_FENCE_SCOPE, Scope)
    release = bits(0, hsa.HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE,
                   hsa.HSA_PACKET_HEADER_WIDTH_SCRELEASE_FENCE_SCOPE, Scope)


class Invalid(Aql, type=hsa.HSA_PACKET_TYPE_INVALID, dwords=16):
    """A slot that nothing was written to yet: the processor waits here. Source: hsa.h,
    HSA_PACKET_TYPE_INVALID.
    """


class KernelDispatch(Aql, type=hsa.HSA_PACKET_TYPE_KERNEL_DISPATCH, dwords=16):
    """Start a kernel. Grid sizes are in work-items; kernel_object: address of its 64-byte descriptor.

    Source: hsa.h, hsa_kernel_dispatch_packet_t.
    """
    dimensions = bits(0, 16, 2, default=3)
    workgroup_x = bits(1, 0, 16, default=1)
    workgroup_y = bits(1, 16, 16, default=1)
    workgroup_z = bits(2, 0, 16, default=1)
    grid_x = u32(3, default=1)
    grid_y = u32(4, default=1)
    grid_z = u32(5, default=1)
    private_segment_bytes = u32(6)
    group_segment_bytes = u32(7)
    kernel_object = u64(8)
    kernarg = u64(10)
    completion_signal = u64(14)


class AgentDispatch(Aql, type=hsa.HSA_PACKET_TYPE_AGENT_DISPATCH, dwords=16):
    """Call a function of the agent. Source: hsa.h, hsa_agent_dispatch_packet_t."""
    function = bits(0, 16, 16)
    return_address = u64(2)
    arguments = repeated(4, u64(4), stride=64)
    completion_signal = u64(14)


class BarrierAnd(Aql, type=hsa.HSA_PACKET_TYPE_BARRIER_AND, dwords=16):
    """Wait until all of the signals are 0; 0 names none. Source: hsa.h, hsa_barrier_and_packet_t."""
    signals = repeated(5, u64(2), stride=64)
    completion_signal = u64(14)


class BarrierOr(Aql, type=hsa.HSA_PACKET_TYPE_BARRIER_OR, dwords=16):
    """Wait until one of the signals is 0. Source: hsa.h, hsa_barrier_or_packet_t."""
    signals = repeated(5, u64(2), stride=64)
    completion_signal = u64(14)


class VendorPm4(Aql, type=hsa.HSA_PACKET_TYPE_VENDOR_SPECIFIC, dwords=16):
    """PM4 inside AQL: the four dwords of an INDIRECT_BUFFER packet, GFX9 and later.

    format: 1; remaining: 10, the dwords that follow. Source: ROCr amd_aql_queue.cpp, AqlQueue::ExecutePM4.
    """
    format = bits(0, 16, 16, default=1)
    ib_header = u32(1)
    ib_address = u64(2)
    ib_control = u32(4)
    remaining = u32(5, default=10)
    completion_signal = u64(14)
