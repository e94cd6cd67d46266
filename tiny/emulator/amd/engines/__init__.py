"""The engines that read an emulated Radeon's queues.

    base      what all have in common: a ring, its pointers, a program that can wait
    pm4       the compute command processor     dispatch  from registers and descriptors to workgroups
    sdma      the copy engine                   aql       the packet processor of HSA queues
    execute   what runs a dispatch: the joint between the engines and the instruction sets
    caches    checked mode: whether a card would see what was written
"""
from tiny.autogen import kfd_6_12 as kfd
from tiny.emulator.amd.engines.aql import AqlEngine
from tiny.emulator.amd.engines.base import EmulatorError, Engine
from tiny.emulator.amd.engines.pm4 import Pm4Engine
from tiny.emulator.amd.engines.sdma import SdmaEngine

_ENGINES = {kfd.KFD_IOC_QUEUE_TYPE_COMPUTE: Pm4Engine, kfd.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL: AqlEngine,
            kfd.KFD_IOC_QUEUE_TYPE_SDMA: SdmaEngine, kfd.KFD_IOC_QUEUE_TYPE_SDMA_XGMI: SdmaEngine,
            kfd.KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID: SdmaEngine}


def engine_for(queue, gpu, events) -> Engine:
    """The engine of a queue's type."""
    return _ENGINES[queue.type](queue, gpu, events)


__all__ = ["EmulatorError", "Engine", "engine_for"]
