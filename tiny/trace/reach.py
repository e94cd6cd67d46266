"""Bytes of this process that a command or an ioctl names by address: read if they are mapped, else not."""
import bisect

from tiny.hcq import io

MAPS = "/proc/self/maps"


class Reach:
    """Reads memory without a fault. Safe between threads: a new table takes the place of the old one."""

    def __init__(self):
        self._table: tuple[list[int], list[int]] = ([], [])   # starts and ends of readable ranges, in order

    def forget(self) -> None:
        """Something was unmapped or changed."""
        self._table = ([], [])

    def read(self, address: int, size: int) -> bytes | None:
        """The bytes there; None if they are not all readable."""
        if not self._inside(address, size):
            self._table = _readable()
            if not self._inside(address, size):
                return None
        return bytes(io.view(address, size))

    def _inside(self, address: int, size: int) -> bool:
        starts, ends = self._table
        place = bisect.bisect_right(starts, address) - 1
        return place >= 0 and address + size <= ends[place]


def _readable() -> tuple[list[int], list[int]]:
    """The readable ranges of this process, neighbours joined. Source: proc(5), /proc/pid/maps."""
    starts: list[int] = []
    ends: list[int] = []
    with open(MAPS) as file:
        for line in file:
            span, access = line.split(" ", 2)[:2]
            start, end = (int(part, 16) for part in span.split("-"))
            if access[0] != "r":
                continue
            if ends and ends[-1] == start:
                ends[-1] = end
            else:
                starts.append(start)
                ends.append(end)
    return starts, ends
