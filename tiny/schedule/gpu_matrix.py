"""Loop schedules that multiply matrices with a target's matrix instructions.

A group of waves computes a block of the result, each wave some tiles of it. The operands of the block are
copied into memory that the group shares, a piece of the sum at a time.
"""
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tiny.ir import ops
from tiny.ir.integer import bounds
from tiny.ir.node import Node, toposort
from tiny.schedule import tensorcore
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import (
    BLOCK,
    GROUP,
    LONGEST_SUM,
    LOOP,
    MATRIX,
    THREAD,
    UNROLL,
    Loop,
    Pack,
    Schedule,
    accumulation,
    packed_loops,
    rounds,
    static_size,
)
from tiny.schedule.tensorcore import Matrix
from tiny.target import Target

LEAST_WORK = 1 << 15         # products below which a matrix instruction is not worth its set-up
LEAST_FILLED = 0.4           # of an instruction's elements, on the average, that are not past an end
TILES = 2                    # of a wave along m, and along n
WAVES = 2                    # of a group along m, and along n
PIECE = 32                   # points of the sum that are copied at a time


@dataclass(frozen=True, slots=True)
class _Fit:
    """A matrix instruction and the axes that are its m, n and k."""
    matrix: Matrix
    m: Node
    n: Node
    k: Node

    def tiles(self) -> tuple[int, int, int]:
        """How many instructions cover each axis."""
        return tuple(-(-static_size(axis) // side) for axis, side in zip(*self._pairs(), strict=True))

    def filled(self) -> float:
        """The part of what the instructions compute that is wanted."""
        axes, sides = self._pairs()
        wanted = prod(map(static_size, axes))
        return wanted / (prod(self.tiles()) * prod(sides))

    def _pairs(self) -> tuple[tuple, tuple]:
        return (self.m, self.n, self.k), (self.matrix.m, self.matrix.n, self.matrix.k)


def choose(kernel: Kernel, target: Target) -> Schedule | None:
    """A schedule with the instruction that fits best; None where none does, or the product is small."""
    total = accumulation(kernel)
    if total is None or kernel.sequential is not None or total.src[0].op is not ops.MUL:
        return None
    fits = [fit for fit in _fits(kernel, total, target) if fit.filled() >= LEAST_FILLED]
    work = prod(bounds(axis.src[0])[1] for axis in (*kernel.axes, *total.src[1:]))
    if not fits or work < LEAST_WORK:
        return None
    best = max(fits, key=lambda fit: (round(fit.filled(), 1), prod((fit.matrix.m, fit.matrix.n)),
                                      static_size(fit.m) * static_size(fit.n), static_size(fit.k)))
    return _schedule(kernel, total, best, target)


def _fits(kernel: Kernel, total: Node, target: Target) -> Iterator[_Fit]:
    """Instructions and axes that compute the kernel's sum. m comes before n where both ways fit."""
    free = [axis for axis in kernel.axes if static_size(axis)]
    reduced = [axis for axis in total.src[1:] if static_size(axis)]
    for matrix in tensorcore.instructions(target):
        for m in free:
            for n in free[free.index(m) + 1:]:
                for k in reduced:
                    if matrix.problem(total, m, n, k) is None:
                        yield _Fit(matrix, m, n, k)


def _schedule(kernel: Kernel, total: Node, fit: _Fit, target: Target) -> Schedule:
    matrix, (along_m, along_n, along_k) = fit.matrix, fit.tiles()
    others = prod(bounds(axis.src[0])[1] for axis in kernel.axes if axis not in (fit.m, fit.n))
    tiles, waves = _block(along_m, along_n, others, target)
    steps = {fit.m: matrix.m, fit.n: matrix.n}
    loops = [Loop(axis, waves[axis is fit.n] * tiles[axis is fit.n] * steps[axis] if axis in steps else 1,
                  GROUP) for axis in kernel.axes]
    loops += [Loop(axis, tiles[number] * steps[axis], THREAD)
              for number, axis in enumerate((fit.m, fit.n)) if waves[number] > 1]
    loops += [Loop(axis, 1, LOOP) for axis in total.src[1:] if axis is not fit.k]
    piece = min(max(PIECE // matrix.k, 1), along_k) * matrix.k
    if static_size(fit.k) > LONGEST_SUM and rounds(total):
        loops.append(Loop(fit.k, LONGEST_SUM // piece * piece, BLOCK))
    loops.append(Loop(fit.k, piece, LOOP))
    depth = len(loops)
    if piece > matrix.k:
        loops.append(Loop(fit.k, matrix.k, LOOP))
    loops += [Loop(axis, steps[axis], UNROLL) for number, axis in enumerate((fit.m, fit.n))
              if tiles[number] > 1]
    loops += [Loop(axis, 1, MATRIX) for axis in (fit.m, fit.n, fit.k)]
    if prod(tiles) * prod(waves) == 1 or piece == matrix.k:
        return Schedule(tuple(loops), (), matrix)
    return Schedule(tuple(loops), _packs(total, loops, depth, fit), matrix)


def _block(along_m: int, along_n: int, others: int, target: Target) -> tuple[list[int], list[int]]:
    """(tiles of a wave, waves of a group), along m and n each: fewer where groups would not fill the card."""
    counts = along_m, along_n
    tiles = [min(TILES, count) for count in counts]
    waves = [min(WAVES, -(-count // own)) for count, own in zip(counts, tiles, strict=True)]

    def groups() -> int:
        return others * prod(-(-count // (own * shared))
                             for count, own, shared in zip(counts, tiles, waves, strict=True))
    for side in (0, 1):
        if groups() < target.threads and tiles[side] > 1:
            tiles[side] //= 2
    return tiles, waves


def _packs(total: Node, loops: list[Loop], depth: int, fit: _Fit) -> tuple[Pack, ...]:
    """Copies of both factors, with the axis of the sum innermost, as the instructions read them."""
    packs = []
    for factor in tensorcore.factors(total, fit.m, fit.n):
        nodes = toposort(factor)
        pointers = {node.src[0].arg for node in nodes if node.op is ops.LOAD}
        axes = {node for node in nodes if node.op is ops.RANGE}
        if not pointers or 0 in pointers or any(static_size(axis) is None for axis in axes):
            continue
        layout = sorted(packed_loops(loops, depth, axes),
                        key=lambda number: (loops[number].axis is fit.k, -loops[number].step))
        packs.append(Pack(factor, depth, tuple(layout)))
    return tuple(packs)
