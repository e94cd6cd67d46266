"""One arena for everything a plan holds only for a while."""
from collections.abc import Sequence
from typing import NamedTuple


class Lifetime(NamedTuple):
    """A buffer's size in bytes and the first and last step, both inclusive, that need it."""
    size: int
    first: int
    last: int


def assign_offsets(lifetimes: Sequence[Lifetime], align: int = 256) -> tuple[list[int], int]:
    """Place intermediate buffers in one arena so that buffers alive at the same step never overlap.

    Returns the byte offset of each, in the order given, and the arena's size in bytes. Greedy, largest first:
    each goes to the lowest free gap that holds it. Raises ValueError for a lifetime that ends before it
    starts.
    """
    offsets = [0] * len(lifetimes)
    placed: list[int] = []
    arena = 0
    for number in sorted(range(len(lifetimes)), key=lambda n: (-lifetimes[n].size, n)):
        size, first, last = lifetimes[number]
        if last < first:
            raise ValueError(f"lifetime {number} ends at step {last}, before it starts at step {first}")
        position = 0
        for other in placed:                                 # by offset
            if lifetimes[other].last < first or last < lifetimes[other].first:
                continue
            if position + size <= offsets[other]:
                break
            position = max(position, -(-(offsets[other] + lifetimes[other].size) // align) * align)
        offsets[number] = position
        placed.append(number)
        placed.sort(key=offsets.__getitem__)
        arena = max(arena, position + size)
    return offsets, arena
