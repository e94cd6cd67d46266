"""The blocked product of matrices, as a schedule: blocks for each cache, packed operands, a register tile."""
from dataclasses import dataclass

from tiny.ir import ops
from tiny.ir.node import toposort
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import GROUP, LANES, LOOP, UNROLL, Loop, Pack, Schedule, reduced_axes


@dataclass(frozen=True)
class Blocks:
    """rows, columns, depth: of the blocks held in caches; tile_rows, vectors: of the register tile; lanes: of
    a vector; unroll: steps of the sum written out.
    """
    rows: int
    columns: int
    depth: int
    tile_rows: int = 6
    vectors: int = 4
    lanes: int = 16
    unroll: int = 1


def blocked(kernel: Kernel, blocks: Blocks, pack_left: bool = True, pack_right: bool = True) -> Schedule:
    """The schedule of a plain product: threads take blocks of columns; in each the depth is walked in blocks
    whose rows of the right operand are packed, then blocks of rows of the left one, then register tiles.
    """
    m, n = kernel.axes
    k, = reduced_axes(kernel)
    wide = blocks.vectors * blocks.lanes
    loops = [Loop(n, blocks.columns, GROUP), Loop(k, blocks.depth, LOOP), Loop(m, blocks.rows, LOOP),
             Loop(n, wide, LOOP), Loop(m, blocks.tile_rows, LOOP), Loop(k, blocks.unroll, LOOP)]
    if blocks.unroll > 1:
        loops.append(Loop(k, 1, UNROLL))
    loops += [Loop(m, 1, UNROLL), Loop(n, blocks.lanes, UNROLL), Loop(n, 1, LANES)]
    packs = []
    for operand in (node for node in toposort(kernel.value) if node.op is ops.LOAD):
        left = m in toposort(operand)
        depth = 3 if left else 2
        axes = toposort(operand)
        layout = tuple(number for number in range(depth, len(loops)) if loops[number].axis in axes)
        if pack_left if left else pack_right:
            packs.append(Pack(operand, depth, layout))
    return Schedule(tuple(loops), tuple(packs))
