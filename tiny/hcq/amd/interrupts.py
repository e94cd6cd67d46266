"""KFD events of one card: sleeping until its queue has something to say, and learning of faults.

Source: kfd_events.c and kfd_ioctl.h, Linux 6.12. A page fault signals every MEMORY event of the process, a
reset every HW_EXCEPTION event; after either, the process's queues on that card run no more.
"""
from typing import NamedTuple

from tiny.autogen import kfd_6_12 as kfd
from tiny.hcq.amd.kfd import KfdError
from tiny.hcq.amd.memory import HOST, AddressSpace, CardMemory

SLOT_BYTES = 8
PAGE_BYTES = kfd.KFD_SIGNAL_EVENT_LIMIT * SLOT_BYTES
RESET_CAUSES = {kfd.KFD_HW_EXCEPTION_GPU_HANG: "it hung", kfd.KFD_HW_EXCEPTION_ECC: "its memory had an error"}
MEMORY_ERRORS = {kfd.KFD_MEM_ERR_SRAM_ECC: "an uncorrectable error of the card's memory",
                 kfd.KFD_MEM_ERR_POISON_CONSUMED: "a read of memory that was marked as damaged",
                 kfd.KFD_MEM_ERR_GPU_HANG: "the card hung"}


class Fault(NamedTuple):
    """What the kernel driver reported. address: of a page fault, else None."""
    text: str
    address: int | None


class Interrupts:
    """Three events of a card. slot: where a queue writes `event_id` to wake who sleeps in `wait`."""

    def __init__(self, memory: CardMemory):
        self.kfd, self.gpu_id, self._space = memory.kfd, memory.card.gpu_id, memory.space
        page, handle = _event_page(memory)
        kinds = (kfd.KFD_IOC_EVENT_SIGNAL, kfd.KFD_IOC_EVENT_MEMORY, kfd.KFD_IOC_EVENT_HW_EXCEPTION)
        made: list[tuple[int, int]] = []
        try:
            for kind in kinds:
                made.append(self.kfd.create_event(kind, 0 if made else handle))
        except KfdError:
            for event_id, _ in made:
                self.kfd.destroy_event(event_id)
            if handle and not made:                         # the driver has not taken the page
                _forget_event_page(memory)
            raise
        self._ids = [event_id for event_id, _ in made]
        self.event_id, slot = made[0]
        self.slot = page + slot * SLOT_BYTES

    def wait(self, timeout_ms: int) -> Fault | None:
        """Sleep until the queue writes the slot, a fault, or for the time; what went wrong, if anything."""
        table = self.kfd.wait_events(self._ids, timeout_ms)
        if table is None:
            return None
        memory, hardware = table[1].memory_exception_data, table[2].hw_exception_data
        if memory.gpu_id == self.gpu_id:
            return self._memory_fault(memory)
        if hardware.gpu_id == self.gpu_id:
            cause = RESET_CAUSES.get(hardware.reset_cause, f"cause {hardware.reset_cause}")
            lost = "; what was in its memory is lost" if hardware.memory_lost else ""
            return Fault(f"the card was reset because {cause}{lost}", None)
        return None

    def _memory_fault(self, data) -> Fault:
        if data.ErrorType:
            return Fault(MEMORY_ERRORS.get(data.ErrorType, f"memory error {data.ErrorType}"), None)
        failure = data.failure
        reasons = [text for flag, text in ((failure.NotPresent, "no memory is mapped there"),
                                           (failure.ReadOnly, "the memory there is read-only"),
                                           (failure.NoExecute, "the memory there holds no code")) if flag]
        why = " and ".join(reasons) or "no reason given"
        return Fault(f"a memory fault in the page {data.va:#x}: {why}; it is "
                     f"{self._space.describe(data.va)}", data.va)

    def close(self) -> None:
        for event_id in self._ids:
            self.kfd.destroy_event(event_id)


def _event_page(memory: CardMemory) -> tuple[int, int]:
    """(address, handle for the first CREATE_EVENT of this process, later 0): one page serves all cards."""
    space: AddressSpace = memory.space
    with space.lock:
        if space.event_page is None:
            space.event_page = memory.allocate(PAGE_BYTES, HOST)
            return space.event_page.address, space.event_page.handle
        memory.reach(space.event_page.address, PAGE_BYTES)
        return space.event_page.address, 0


def _forget_event_page(memory: CardMemory) -> None:
    """Give the page back, so that the next CREATE_EVENT of this process brings one."""
    with memory.space.lock:
        page, memory.space.event_page = memory.space.event_page, None
        memory.free(page)
