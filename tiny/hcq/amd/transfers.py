"""Data between the host and video memory: in place through the BAR for a few bytes, else by the copy engine.

Reading through the BAR is slow, each access a round trip on the bus; writing is fast but ends in a buffer
(HDP) that has to be flushed. On a card with a small BAR everything goes through the copy engine and a staging
area in host memory. (The limits below are guesses until somebody measures a card.)
"""
import threading
from collections.abc import Callable

from tiny.hcq.amd.memory import HOST, CardMemory

READ_IN_PLACE, WRITE_IN_PLACE = 512, 64 << 10               # bytes, at most
STAGING_BYTES = 8 << 20


class Transfers:
    """One card's copies to and from the host. Safe between threads.

    copy: (destination, source, size) -> number to wait for; wait: (number) until the copy engine is done
    """

    def __init__(self, memory: CardMemory, copy: Callable[[int, int, int], int], wait: Callable[[int], None]):
        self._io, self._copy, self._wait = memory.io, copy, wait
        self._in_place = memory.card.large_bar
        self._flush = memory.flush_register() if self._in_place else None
        self._lock = threading.Lock()
        self._staging = memory.allocate(STAGING_BYTES, HOST).address
        half = STAGING_BYTES // 2
        self._halves = [(self._staging + part, self._io.view(self._staging + part, half))
                        for part in (0, half)]

    def write(self, address: int, source: memoryview) -> None:
        """Store bytes in video memory that no command uses now; they are there on return."""
        size = len(source)
        if size <= WRITE_IN_PLACE and self._flush is not None:
            self._io.view(address, size)[:] = source
            self._flush[0] = 0
            return
        with self._lock:
            numbers = [0, 0]
            for index, start in enumerate(range(0, size, STAGING_BYTES // 2)):
                piece = source[start:start + STAGING_BYTES // 2]
                place, view = self._halves[index % 2]
                self._wait(numbers[index % 2])
                view[:len(piece)] = piece
                numbers[index % 2] = self._copy(address + start, place, len(piece))
            self._wait(max(numbers))

    def read(self, address: int, size: int) -> memoryview:
        """A read-only copy of bytes of video memory; the commands that write them have finished."""
        if size <= READ_IN_PLACE and self._in_place:
            return memoryview(bytes(self._io.view(address, size)))
        result = bytearray(size)
        starts = range(0, size, STAGING_BYTES // 2)
        with self._lock:
            pending: list[tuple[int, int, int]] = []         # number, start, half
            for index, start in enumerate(starts):
                if len(pending) == 2:
                    self._collect(pending.pop(0), result)
                length = min(size - start, STAGING_BYTES // 2)
                number = self._copy(self._halves[index % 2][0], address + start, length)
                pending.append((number, start, index % 2))
            for one in pending:
                self._collect(one, result)
        return memoryview(result).toreadonly()

    def _collect(self, pending: tuple[int, int, int], result: bytearray) -> None:
        number, start, half = pending
        self._wait(number)
        length = min(len(result) - start, STAGING_BYTES // 2)
        result[start:start + length] = self._halves[half][1][:length]
