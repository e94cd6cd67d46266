"""KFD events: what lets a client sleep until a GPU has something to say.

Source: kfd_events.c, Linux 6.12. A signal event has a slot of 8 bytes in the process's event page; the GPU
writes the event's id there and raises an interrupt that carries it. All ones is an unsignalled slot.
"""
import errno
import threading
import time
from dataclasses import dataclass, field

from tiny.autogen import kfd_6_12 as kfd
from tiny.emulator.amd.kernel.memory import MemoryObject, PageTable

SLOT_BYTES = 8
PAGE_BYTES = kfd.KFD_SIGNAL_EVENT_LIMIT * SLOT_BYTES
UNSIGNALED = (1 << 64) - 1
FIRST_OTHER_ID = 0x40000000                                  # KFD_FIRST_NONSIGNAL_EVENT_ID, kfd_priv.h
WITH_SLOT = (kfd.KFD_IOC_EVENT_SIGNAL, kfd.KFD_IOC_EVENT_DEBUG_EVENT)
FOREVER = 0xFFFFFFFF


class KernelError(OSError):
    """What an ioctl fails with: an errno and, for people, why."""

    def __init__(self, number: int, reason: str):
        super().__init__(number, reason)


@dataclass(eq=False, slots=True)
class Event:
    """data: the bytes of kfd_event_data's union that tell more; age counts signals."""
    id: int
    type: int
    auto_reset: bool
    signaled: bool = False
    age: int = 1
    data: dict[str, int] = field(default_factory=dict)


class Events:
    """The events of one process."""

    def __init__(self):
        self.page: MemoryObject | None = None
        self.table: PageTable | None = None
        self._events: dict[int, Event] = {}
        self._changed = threading.Condition()

    def set_page(self, memory: MemoryObject, table: PageTable) -> None:
        """Take the object that holds the slots; only once, and it must be large enough."""
        if self.page is not None:
            raise KernelError(errno.EINVAL, "CREATE_EVENT: the process has an event page already")
        if memory.size < PAGE_BYTES:
            raise KernelError(errno.EINVAL, f"CREATE_EVENT: an event page has {PAGE_BYTES} bytes, this one "
                                            f"{memory.size}")
        self.page, self.table = memory, table
        table.write(memory.address, b"\xff" * PAGE_BYTES)

    def create(self, type: int, auto_reset: bool) -> Event:
        """A new event; ENOMEM when all slots are taken, EINVAL for a slot without an event page."""
        with_slot = type in WITH_SLOT
        if type > kfd.KFD_IOC_EVENT_MEMORY:
            raise KernelError(errno.EINVAL, f"CREATE_EVENT: there is no event type {type}")
        if with_slot and self.page is None:
            raise KernelError(errno.EINVAL, "CREATE_EVENT: the process has no event page yet")
        first, limit = (1, kfd.KFD_SIGNAL_EVENT_LIMIT) if with_slot else (FIRST_OTHER_ID, 1 << 31)
        number = next((n for n in range(first, limit) if n not in self._events), None)
        if number is None:
            raise KernelError(errno.ENOSPC, "CREATE_EVENT: no slot is left in the event page")
        event = self._events[number] = Event(number, type, auto_reset)
        return event

    def get(self, number: int, call: str) -> Event:
        event = self._events.get(number)
        if event is None:
            raise KernelError(errno.EINVAL, f"{call}: there is no event {number}")
        return event

    def destroy(self, number: int) -> None:
        with self._changed:
            self.get(number, "DESTROY_EVENT")
            del self._events[number]
            self._changed.notify_all()

    def set(self, event: Event, **data: int) -> None:
        """Signal an event; `data` is what WAIT_EVENTS tells of it."""
        with self._changed:
            event.signaled = True
            event.age += 1
            event.data = data
            self._changed.notify_all()

    def signal_all(self, type: int, **data: int) -> None:
        """Signal every event of a type, as for a memory fault."""
        for event in list(self._events.values()):
            if event.type == type:
                self.set(event, **data)

    def interrupt(self, context: int) -> None:
        """An engine's interrupt with an event id. Events whose slot is not all ones are signalled, slots
        reset.
        """
        if self.page is None:
            return
        event = self._events.get(context)
        numbers = [context] if event is not None and self._taken(context) else [
            number for number in self._events if number < FIRST_OTHER_ID and self._taken(number)]
        for number in numbers:
            self.table.write_u64(self.page.address + SLOT_BYTES * number, UNSIGNALED)
            self.set(self._events[number])

    def _taken(self, number: int) -> bool:
        slot = self.page.address + SLOT_BYTES * number
        return number < FIRST_OTHER_ID and self.table.read_u64(slot) != UNSIGNALED

    def wait(
        self, numbers: list[int], ages: list[int], all_of_them: bool, timeout_ms: int
    ) -> tuple[int, list[Event]]:
        """(KFD_IOC_WAIT_RESULT_*, the events that are signalled); resets those that reset themselves."""
        deadline = None if timeout_ms == FOREVER else time.monotonic() + timeout_ms / 1000
        with self._changed:
            while True:
                missing = [number for number in numbers if number not in self._events]
                if missing:
                    raise KernelError(errno.EINVAL, f"WAIT_EVENTS: there is no event {missing[0]}")
                events = [self._events[number] for number in numbers]
                ready = [
                    event
                    for event, age in zip(events, ages, strict=True)
                    if event.signaled or (age and event.age > age)
                ]
                if len(ready) == len(events) if all_of_them else ready:
                    for event in ready:
                        event.signaled = event.signaled and not event.auto_reset
                    return kfd.KFD_IOC_WAIT_RESULT_COMPLETE, ready
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return kfd.KFD_IOC_WAIT_RESULT_TIMEOUT, []
                self._changed.wait(left)
