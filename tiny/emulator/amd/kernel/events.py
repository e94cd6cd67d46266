"""KFD events: what lets a client sleep until a GPU has something to say.

Source: kfd_events.c, Linux 6.12. A signal event has a slot of 8 bytes in the process's event page; the GPU
writes the event's id there and raises an interrupt that carries it. All ones is an unsignalled slot.
"""
import errno
import mmap
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tiny.autogen import kfd_6_12 as kfd
from tiny.emulator.amd.kernel.memory import MemoryObject, make_pages

SLOT_BYTES = 8
PAGE_BYTES = kfd.KFD_SIGNAL_EVENT_LIMIT * SLOT_BYTES
OLD_SLOTS = 256                                              # of a page that the client has not mapped yet
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
    """data: the bytes of kfd_event_data's union that tell more; age counts signals; waiters: who sleeps."""
    id: int
    type: int
    auto_reset: bool
    signaled: bool = False
    age: int = 1
    data: dict[str, int] = field(default_factory=dict)
    waiters: list["Waiter"] = field(default_factory=list)
    destroyed: bool = False


@dataclass(eq=False, slots=True)
class Waiter:
    """One of the events that a call of WAIT_EVENTS waits for. A signal reaches everybody who waits then."""
    event: Event
    activated: bool


class Events:
    """The events of one process."""

    def __init__(self):
        self.page_fd = -1                                    # of a page that the kernel gave, for mmap
        self._page: mmap.mmap | None = None
        self._slots: memoryview | None = None                # one number for each slot
        self._usable = 0                                     # slots that events may take
        self._events: dict[int, Event] = {}
        self._changed = threading.Condition()
        self._closed = False

    def set_page(self, memory: MemoryObject) -> None:
        """Take the object that holds the slots; only once, and it must be large enough."""
        if self._slots is not None:
            raise KernelError(errno.EINVAL, "CREATE_EVENT: the process has an event page already")
        if memory.size < PAGE_BYTES:
            raise KernelError(errno.EINVAL, f"CREATE_EVENT: an event page has {PAGE_BYTES} bytes, this one "
                                            f"{memory.size}")
        if memory.fd < 0:
            raise KernelError(errno.EINVAL, "CREATE_EVENT: an event page is memory of the kernel's")
        self._use(memory.fd, memory.offset, kfd.KFD_SIGNAL_EVENT_LIMIT)

    def _use(self, fd: int, offset: int, slots: int) -> None:
        self._page = mmap.mmap(fd, PAGE_BYTES, offset=offset)
        self._page[:] = b"\xff" * PAGE_BYTES
        self._slots = memoryview(self._page).cast("Q")
        self._usable = slots

    def map_page(self, size: int) -> int:
        """The file of the kernel's own event page, of which the client maps `size` bytes."""
        if size > PAGE_BYTES or self.page_fd < 0:
            raise KernelError(errno.EINVAL, f"mmap of {size} bytes of events: "
                              + ("the process has no such page" if self.page_fd < 0 else "too many"))
        self._usable = size // SLOT_BYTES
        return self.page_fd

    def create(self, type: int, auto_reset: bool) -> Event:
        """A new event; the kernel takes any type. A client without an event page gets one of the kernel's.

        ENOSPC when all slots are taken.
        """
        with_slot = type in WITH_SLOT
        if with_slot and self._slots is None:
            self.page_fd = make_pages("events", PAGE_BYTES)
            self._use(self.page_fd, 0, OLD_SLOTS)
        first, limit = (1, self._usable) if with_slot else (FIRST_OTHER_ID, 1 << 31)
        number = next((n for n in range(first, limit) if n not in self._events), None)
        if number is None:
            raise KernelError(errno.ENOSPC, "CREATE_EVENT: no slot is left in the event page")
        event = self._events[number] = Event(number, type, auto_reset)
        if with_slot:
            self._slots[number] = UNSIGNALED
        return event

    def get(self, number: int, call: str) -> Event:
        event = self._events.get(number)
        if event is None:
            raise KernelError(errno.EINVAL, f"{call}: there is no event {number}")
        return event

    def destroy(self, number: int) -> None:
        with self._changed:
            self.get(number, "DESTROY_EVENT").destroyed = True
            del self._events[number]
            self._changed.notify_all()

    def set(self, event: Event, **data: int) -> None:
        """Signal an event; `data` is what WAIT_EVENTS tells of it."""
        with self._changed:
            event.signaled = not event.auto_reset or not event.waiters
            event.age += 1
            event.data = data
            for waiter in event.waiters:
                waiter.activated = True
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
        if self._slots is None:
            return
        event = self._events.get(context)
        numbers = [context] if event is not None and self._taken(context) else [
            number for number in self._events if self._taken(number)]
        for number in numbers:
            self._slots[number] = UNSIGNALED
            self.set(self._events[number])

    def _taken(self, number: int) -> bool:
        return number < FIRST_OTHER_ID and self._slots[number] != UNSIGNALED

    def wait(self, numbers: Sequence[int], ages: Sequence[int], all_of_them: bool,
             timeout_ms: int) -> tuple[int, list[Event]]:
        """(KFD_IOC_WAIT_RESULT_*, the events that are signalled); resets those that reset themselves.

        ages: of signal events, the last that the client has seen; another one counts as signalled; 0: none.
        """
        deadline = None if timeout_ms == FOREVER else time.monotonic() + timeout_ms / 1000
        with self._changed:
            events = [self.get(number, "WAIT_EVENTS") for number in numbers]
            pairs = zip(events, ages, strict=True)
            waiters = [Waiter(event, _taken_over(event, age)) for event, age in pairs]
            for waiter in waiters:
                if not waiter.activated:
                    waiter.event.waiters.append(waiter)
            try:
                while True:
                    ready = [waiter.event for waiter in waiters if waiter.activated]
                    if any(event.destroyed for event in events) or self._closed:
                        raise KernelError(errno.EIO, "WAIT_EVENTS: an event was destroyed meanwhile")
                    if len(ready) == len(events) if all_of_them else ready:
                        return kfd.KFD_IOC_WAIT_RESULT_COMPLETE, ready
                    left = None if deadline is None else deadline - time.monotonic()
                    if left is not None and left <= 0:
                        return kfd.KFD_IOC_WAIT_RESULT_TIMEOUT, []
                    self._changed.wait(left)
            finally:
                for waiter in waiters:
                    if waiter in waiter.event.waiters:
                        waiter.event.waiters.remove(waiter)

    def close(self) -> None:
        """The process has ended: wake its waiters, give its page back."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._slots is not None:
            self._slots.release()
            self._page.close()
            self._slots = None
        if self.page_fd >= 0:
            os.close(self.page_fd)
            self.page_fd = -1


def _taken_over(event: Event, age: int) -> bool:
    """Whether an event counts as signalled for who begins to wait; one that resets itself is reset."""
    activated = event.signaled
    event.signaled = event.signaled and not event.auto_reset
    return activated or bool(event.type == kfd.KFD_IOC_EVENT_SIGNAL and age and event.age != age)
