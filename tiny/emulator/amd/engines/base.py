"""What all engines have in common: a ring, its pointers, packets that may have to wait."""
import abc
from collections.abc import Callable, Iterator

from tiny import config
from tiny.emulator.amd.engines.caches import StaleError, WatchedTable
from tiny.emulator.amd.engines.errors import EmulatorError
from tiny.emulator.amd.kernel.events import Events
from tiny.emulator.amd.kernel.memory import PageTable
from tiny.hcq.layout import LayoutError, Packet


class Engine(abc.ABC):
    """Reads a queue's ring packet by packet. Subclasses give `unit`, `family` and `program`.

    A packet's handler may yield to wait; it goes on there when the engine is next let run.
    """
    family: type[Packet]
    unit: int                                                # bytes that the pointers count in

    def __init__(self, queue, gpu, events: Events):
        self.queue, self.gpu, self.events = queue, gpu, events
        self.table = gpu.table
        self.card = gpu.card
        self.position = 0  # of the next packet, in units, counting on for ever
        self._program: Iterator[None] | None = None

    def written(self) -> int:
        """How far the client has filled the ring, in units, once it has rung the doorbell."""
        rung = self.gpu.doorbells.value(self.queue.doorbell)
        return self.position if rung is None else min(rung, self.table.read_u64(self.queue.write_pointer))

    def advance(self) -> bool:
        """Work until the queue is empty or must wait; whether anything was done."""
        moved = False
        while True:
            if self._program is None:
                written = self.written()
                if written <= self.position:
                    return moved
                if (written - self.position) * self.unit > self.queue.ring_size:
                    raise EmulatorError(
                        f"{self}: the write pointer {written:#x} is more than the ring's "
                        f"{self.queue.ring_size:#x} bytes ahead of the read pointer {self.position:#x} (in "
                        f"units of {self.unit})"
                    )
                self._program = self.program()
            try:
                for _ in self._program:                      # it waits
                    return moved
            except StaleError as error:
                raise EmulatorError(f"{self}: {error}") from error
            self._program = None
            moved = True
            self.table.write_u64(self.queue.read_pointer, self.position)

    @abc.abstractmethod
    def program(self) -> Iterator[None]:
        """Execute the packet at `position` and step over it; yield to wait."""

    def ring_bytes(self, count: int) -> bytes:
        """`count` bytes of the ring from the position on, around its end."""
        start = self.position * self.unit % self.queue.ring_size
        first = min(count, self.queue.ring_size - start)
        data = self.table.read(self.queue.ring + start, first)
        return data + (self.table.read(self.queue.ring, count - first) if count > first else b"")

    def decode(self, data: bytes, offset: int, where: int) -> tuple[Packet, int]:
        """The packet at an offset and its size; EmulatorError with its address where it is not known."""
        try:
            return self.family.decode_next(data, offset)
        except LayoutError as error:
            raise EmulatorError(f"{self}: at {where:#x}: {error}") from None

    def watched(self, what: str, is_kernel: bool = False) -> PageTable | WatchedTable:
        """The page table for one packet, called `what`; in checked mode with an eye on the caches."""
        if not config.current().check:
            return self.table
        caches = self.gpu.caches
        return WatchedTable(self.table, caches, caches.agent(f"queue {self.queue.id}", what, is_kernel))

    def order(self, *events: str) -> None:
        """In checked mode, tell the model of the caches what this queue does for order: methods of Caches."""
        if config.current().check:
            for event in events:
                getattr(self.gpu.caches, event)(f"queue {self.queue.id}")

    def kernel_name(self, code: int) -> str:
        """What the kernel at an address is called."""
        return f"kernel {self.table.names.get(code, f'at {code:#x}')}"

    def __str__(self) -> str:
        return f"{self.card.name} {type(self).__name__} of queue {self.queue.id}"


COMPARISONS: tuple[Callable[[int, int], bool], ...] = (
    lambda value, reference: True,
    lambda value, reference: value < reference,
    lambda value, reference: value <= reference,
    lambda value, reference: value == reference,
    lambda value, reference: value != reference,
    lambda value, reference: value >= reference,
    lambda value, reference: value > reference,
)


def compare(function: int, value: int, reference: int) -> bool:
    """The comparison of WAIT_REG_MEM and POLL_REGMEM, unsigned."""
    return COMPARISONS[int(function)](value, reference)
