"""How far a queue has come: a 64-bit counter in memory that only grows."""
from tiny.hcq import events, io
from tiny.hcq.errors import DeviceError

DROPPED_KEPT = 16                                           # ranges, for threads that still wait in one


class Timeline:
    """The progress of one queue. Each submission ends with a signal that moves the counter to its point.

    name       of the queue, for messages           address   of the counter, 64 bits
    submitted  the point of the last submission     completed the counter's value now
    Whoever submits holds the device's lock; reading is safe at any time.
    """
    __slots__ = ("name", "address", "submitted", "_counter", "_dropped")

    def __init__(self, name: str, address: int, provider: io.Provider):
        self.name, self.address = name, address
        self._counter = provider.view(address, 8).cast("Q")
        self.submitted = self.completed
        self._dropped: list[tuple[int, int, DeviceError]] = []

    @property
    def completed(self) -> int:
        return self._counter[0]

    def drop(self, error: DeviceError) -> None:
        """What is submitted and has not finished will not: whoever waits for it gets `error`."""
        self._dropped = self._dropped[1 - DROPPED_KEPT:]
        self._dropped.append((self.completed + 1, self.submitted, error))
        if events.listeners:
            events.emit(events.Failed(self.name, str(error)))

    def check(self, point: int) -> None:
        """Raise the error of a point that was dropped."""
        for first, last, error in self._dropped:
            if first <= point <= last:
                raise error
