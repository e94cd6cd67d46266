"""One arena for everything a plan holds only for a while."""
from bisect import bisect
from collections.abc import Sequence
from typing import NamedTuple

FEW = 256                    # buffers up to which each is compared with all others


class Lifetime(NamedTuple):
    """A buffer's size in bytes and the first and last step, both inclusive, that need it."""
    size: int
    first: int
    last: int


def assign_offsets(lifetimes: Sequence[Lifetime], align: int = 256) -> tuple[list[int], int]:
    """Place intermediate buffers in one arena so that buffers alive at the same step never overlap.

    Returns the byte offset of each, in the order given, and the arena's size in bytes. The time per buffer
    does not grow with their number. Raises ValueError for a lifetime that ends before it starts.
    """
    for number, (_, first, last) in enumerate(lifetimes):
        if last < first:
            raise ValueError(f"lifetime {number} ends at step {last}, before it starts at step {first}")
    return (_largest_first if len(lifetimes) <= FEW else _in_order)(lifetimes, align)


def _largest_first(lifetimes: Sequence[Lifetime], align: int) -> tuple[list[int], int]:
    """Each goes to the lowest free gap that holds it. The tighter way, whose time grows with the square."""
    offsets = [0] * len(lifetimes)
    placed: list[int] = []
    arena = 0
    for number in sorted(range(len(lifetimes)), key=lambda n: (-lifetimes[n].size, n)):
        size, first, last = lifetimes[number]
        position = 0
        for other in placed:                                 # by offset
            if lifetimes[other].last < first or last < lifetimes[other].first:
                continue
            if position + size <= offsets[other]:
                break
            position = max(position, _rounded(offsets[other] + lifetimes[other].size, align))
        offsets[number] = position
        placed.append(number)
        placed.sort(key=offsets.__getitem__)
        arena = max(arena, position + size)
    return offsets, arena


def _in_order(lifetimes: Sequence[Lifetime], align: int) -> tuple[list[int], int]:
    """Step by step, as an allocator would: each goes to the smallest gap that holds it at its first step."""
    offsets = [0] * len(lifetimes)
    ending = sorted(range(len(lifetimes)), key=lambda n: lifetimes[n].last)
    gaps = _Gaps()
    ended = 0
    for number in sorted(range(len(lifetimes)), key=lambda n: (lifetimes[n].first, -lifetimes[n].size, n)):
        while lifetimes[ending[ended]].last < lifetimes[number].first:
            over = ending[ended]
            gaps.add(offsets[over], _rounded(lifetimes[over].size, align))
            ended += 1
        offsets[number] = gaps.take(_rounded(lifetimes[number].size, align))
    return offsets, gaps.end


class _Gaps:
    """Free pieces of an arena by offset, neighbours joined; `end`: where what was ever used ends."""

    def __init__(self):
        self.end = 0
        self._starts: list[int] = []
        self._sizes: list[int] = []

    def add(self, start: int, size: int) -> None:
        """Give a piece back."""
        if not size:
            return
        place = bisect(self._starts, start)
        if place and self._starts[place - 1] + self._sizes[place - 1] == start:
            place -= 1
            self._sizes[place] += size
        else:
            self._starts.insert(place, start)
            self._sizes.insert(place, size)
        if place + 1 < len(self._starts) and start + size == self._starts[place + 1]:
            self._sizes[place] += self._sizes.pop(place + 1)
            del self._starts[place + 1]

    def take(self, size: int) -> int:
        """The offset of a piece that was free, or at the end."""
        fitting = [place for place, held in enumerate(self._sizes) if held >= size]
        if not fitting:
            return self._extend(size)
        place = min(fitting, key=self._sizes.__getitem__)
        start = self._starts[place]
        self._starts[place] += size
        self._sizes[place] -= size
        if not self._sizes[place]:
            del self._starts[place], self._sizes[place]
        return start

    def _extend(self, size: int) -> int:
        start = self.end
        if self._starts and self._starts[-1] + self._sizes[-1] == self.end:
            start = self._starts.pop()
            self._sizes.pop()
        self.end = start + size
        return start


def _rounded(size: int, align: int) -> int:
    return -(-size // align) * align
