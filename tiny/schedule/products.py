"""Loop schedules for sums of products: matrices, batches of them, convolutions and their gradients.

Each factor depends on some axes of the result. Lanes lie along an axis that one factor, the right one, has
for itself; a tile of rows, axes that only the left factor has, reuses what was loaded of it. What the tile
reads of the right factor is copied into a panel first, as it will be read, where that costs less than it
saves: converted to the type of the sum, and with what else is computed from it. A panel stays in the second
cache while all rows pass by. A sum too long for that is taken in blocks, between which it waits in the
destination. Where each step of the sum reads the left factor from another page, blocks are short and panels
wide, so that a few pages serve many columns.
"""
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product as pairs
from math import ceil

from tiny.ir import ops
from tiny.ir.integer import bounds, prod
from tiny.ir.node import Node, toposort
from tiny.schedule.axes import NEIGHBOURS, NONE, SCATTERED, along, loads
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import (
    BLOCK,
    GROUP,
    LANES,
    LONGEST_SUM,
    LOOP,
    UNROLL,
    Loop,
    Pack,
    Schedule,
    accumulation,
    static_size,
)
from tiny.schedule.work import elementary
from tiny.target import Target

PANEL_BYTES = 1 << 18        # of a packed panel that is cut as one likes; a quarter of a usual second cache
LARGEST_PANEL = 1 << 19      # of one that cannot be cut
SHORT_BLOCK = 128            # steps of a block whose left factor lies in as many pages
SHORTEST_SUM = 8             # steps; shorter sums are mostly loads and stores
WORTH_BLOCKS = 1 << 15       # products below which loops as they come are as good
GROUPS_PER_THREAD = 4        # so that threads that are done early find more
WORTH_GROUPS = 1 << 17       # products that one group has at least
WORTH_COPY = 20              # rows that a group has at least for each cycle that a vector of its panel costs
MOST_ROWS = 8                # of a tile; each is a stream of its own
MOST_NEIGHBOURS = 14         # rows of a tile that lie side by side in memory
IN_FLIGHT = 8                # sums that a processor adds to at a time

# What things cost in cycles, where one multiplication and addition of whole vectors costs 1
COPY, CONVERT, GATHER, STORE, SCATTER = 2.0, 4.0, 1.5, 1.0, 2.0      # GATHER and SCATTER: a lane
CHEAP = 2                    # operations on a factor, such as a cast, that may be repeated
WORST = 1.6                  # average cost of a step above which the schedule is not worth it


@dataclass(frozen=True, slots=True)
class Product:
    """A sum of left * right. rows: axes of the result that only `left` depends on, columns: only `right`;
    batch: the others; reduced: those summed over.
    """
    left: Node
    right: Node
    rows: tuple[Node, ...]
    columns: tuple[Node, ...]
    batch: tuple[Node, ...]
    reduced: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """The register tile and its panel: `lanes` of `axis` in a vector, vectors of them, points of each row
    axis. depth: steps of each reduced axis in a block of the sum; columns: points of `axis` that a panel
    holds, a multiple of the tile's width. packed: whether the panel is copied; copy: what that costs for a
    vector.
    """
    axis: Node
    lanes: int
    vectors: int
    rows: dict[Node, int]
    depth: dict[Node, int]
    columns: int
    packed: bool
    copy: float

    @property
    def width(self) -> int:
        return self.lanes * self.vectors


def choose(kernel: Kernel, target: Target) -> Schedule | None:
    """The schedule of a kernel that is a sum of products, None where another is as good."""
    found = [(cost, product, tile) for product in products(kernel)
             for cost, tile in _tiles(kernel, product, target)]
    best = min(found, key=lambda one: one[0], default=None)
    if best is None or best[0] > min(WORST, *map(_cost_along_sum, products(kernel))):
        return None
    return _schedule(best[1], best[2], target)


def products(kernel: Kernel) -> Iterator[Product]:
    """The two ways to see a kernel as a sum of left * right; none if it is no such sum or a small one."""
    total = accumulation(kernel)
    if total is None or total.arg is not ops.ADD or total.src[0].op is not ops.MUL:
        return
    reduced = total.src[1:]
    sizes = [static_size(axis) for axis in reduced]
    if kernel.sequential is not None or kernel.gate is not None:
        return
    if None in sizes or prod(sizes) < SHORTEST_SUM:
        return
    if bounds(prod(axis.src[0] for axis in kernel.axes))[1] * prod(sizes) < WORTH_BLOCKS:
        return
    for left, right in (total.src[0].src, total.src[0].src[::-1]):
        inside = set(toposort(left)), set(toposort(right))
        ways = {axis: tuple(axis in nodes for nodes in inside) for axis in kernel.axes}
        rows = tuple(axis for axis in kernel.axes if ways[axis] == (True, False))
        columns = tuple(axis for axis in kernel.axes if ways[axis] == (False, True))
        batch = tuple(axis for axis in kernel.axes if axis not in rows and axis not in columns)
        if rows and columns:
            yield Product(left, right, rows, columns, batch, reduced)


def operations(value: Node) -> int:
    """How many operations, casts included, an element of a value takes."""
    return len(elementary(value))


def _way(value: Node, axis: Node, lanes: int) -> str:
    """How the loads of a value move along an axis, the worst of them."""
    found = {along(load.src[1], axis, lanes) for load in loads(value)}
    gated = any(load.src[2:] and axis in toposort(load.src[2]) for load in loads(value))
    return SCATTERED if SCATTERED in found or gated else NEIGHBOURS if NEIGHBOURS in found else NONE


def _most(axes: Iterable[Node]) -> int:
    return bounds(prod(axis.src[0] for axis in axes))[1]


def _cost_along_sum(product: Product) -> float:
    """Of lanes along the sum, which needs no panel where both factors lie so; the other schedules know it."""
    for axis in product.reduced:
        if _way(product.left, axis, 4) == NEIGHBOURS == _way(product.right, axis, 4):
            return 1.25 + 24 / static_size(axis)
    return float("inf")


# -- tiles ---------------------------------------------------------------------------------------------------
def _tiles(kernel: Kernel, product: Product, target: Target) -> Iterator[tuple[float, Tile]]:
    """Tiles, with what a step of the sum costs for each vector."""
    steps = prod(static_size(axis) for axis in product.reduced)
    rows = _most(product.rows)
    dtype = accumulation(kernel).dtype
    lanes = target.lanes // max(dtype.itemsize, 4)
    if operations(product.left) > CHEAP:                    # they would be repeated in each tile
        return
    waits = kernel.value is accumulation(kernel) and kernel.dtype is dtype
    for axis in product.columns:
        size = static_size(axis)
        if size is None or size < max(lanes // 2, 2):
            continue
        way = _way(product.right, axis, lanes)
        if way == SCATTERED and operations(product.right) > CHEAP:
            continue                                         # quantised weights lie along the sum
        plain = product.right.op is ops.LOAD and way == NEIGHBOURS
        copy = COPY if plain else CONVERT if way == NEIGHBOURS else GATHER * lanes
        straight = along(kernel.index, axis, lanes) == NEIGHBOURS
        store = STORE if straight else SCATTER * lanes
        for vectors in range(1, 5):
            wide = vectors * lanes
            wasted = ceil(size / wide) * wide / size
            tall, loss = _tile_rows(product, vectors, target)
            packed = not plain or (size > wide and rows > 8 * MOST_ROWS)
            depth, columns = _panel(product, axis, wide, dtype.itemsize, waits and straight)
            if packed and prod(depth.values()) * columns * dtype.itemsize > LARGEST_PANEL:
                continue
            cost = wasted * loss * (1 + store / steps) + (copy / rows if packed else 0)
            height = prod(tall.values())
            cost += 0.3 * (vectors + height / 2) / (vectors * height)
            yield cost, Tile(axis, lanes, vectors, tall, depth, columns, packed, copy)


def _tile_rows(product: Product, vectors: int, target: Target) -> tuple[dict[Node, int], float]:
    """(points of each row axis in a tile, how much longer it takes than one without remainders)."""
    registers = 32 if target.lanes >= 64 else 16
    spare = 0 if registers == 32 and product.left.op is ops.LOAD else 1
    most = (registers - vectors - spare) // vectors
    near = [axis for axis in product.rows if _way(product.left, axis, 2) == NEIGHBOURS]
    order = near + [axis for axis in reversed(product.rows) if axis not in near]
    best = ({}, float("inf"))
    for first, second in ((a, b) for a, b in pairs(order, order) if a is not b or len(order) == 1):
        for tall in range(1, min(most, MOST_NEIGHBOURS if first in near else MOST_ROWS) + 1):
            tile = {first: tall}
            loss = _remainder_loss(first, tall, vectors)
            if second is not first and most // tall > 1 and static_size(first) == tall:
                tile[second] = most // tall
                loss *= _remainder_loss(second, most // tall, vectors * tall)
            height = prod(tile.values())
            loss *= max(1.0, IN_FLIGHT / (vectors * height)) * (1 + 0.25 / height)
            if loss < best[1]:
                best = tile, loss
    return best


def _remainder_loss(axis: Node, tall: int, sums: int) -> float:
    """How much longer an axis takes in tiles of so many points than without a smaller one at the end."""
    size = static_size(axis)
    if size is None:
        return 1.0
    if tall > size:
        return float("inf")
    rest = size % tall
    return (size - rest + (max(rest, IN_FLIGHT / sums) if rest else 0)) / size


def _panel(product: Product, axis: Node, width: int, itemsize: int,
           cut: bool) -> tuple[dict[Node, int], int]:
    """(steps of each reduced axis, columns) of a panel. cut: whether the sum may be taken in blocks."""
    sizes = {reduced: static_size(reduced) for reduced in product.reduced}
    if not cut:
        return sizes, width
    last = product.reduced[-1]
    scattered = _way(product.left, last, 2) == SCATTERED and sizes[last] > 2 * SHORT_BLOCK
    most = SHORT_BLOCK if scattered else max(PANEL_BYTES // (width * itemsize), 1)
    depth = {}
    for reduced in reversed(product.reduced):                # outer axes are cut first
        depth[reduced] = min(sizes[reduced], _even_part(sizes[reduced], most))
        most = max(most // depth[reduced], 1)
    if not scattered:
        return depth, width
    panels = LARGEST_PANEL // (prod(depth.values()) * width * itemsize)
    return depth, width * max(min(panels, ceil(static_size(axis) / width)), 1)


def _even_part(size: int, most: int) -> int:
    """A length up to `most` that cuts `size` into equal parts, or nearly so."""
    length = ceil(size / ceil(size / most))
    return next((n for n in range(length, length * 3 // 4, -1) if size % n == 0), length)


# -- loops ---------------------------------------------------------------------------------------------------
def _schedule(product: Product, tile: Tile, target: Target) -> Schedule:
    """Groups, batches, panels of columns, blocks of the sum, rows; then the sum and the tile."""
    group, step = _group(product, tile, target)
    loops = [] if group is None else [Loop(group, step, GROUP)]
    loops += [Loop(axis, 1, LOOP) for axis in product.batch if axis is not group or step > 1]
    others = [axis for axis in product.columns if axis is not tile.axis]
    loops += [Loop(axis, 1, LOOP) for axis in others if axis is not group or step > 1]
    if tile.axis is not group or step > tile.columns:
        loops.append(Loop(tile.axis, tile.columns, LOOP))
    for axis in product.reduced:
        if tile.depth[axis] < static_size(axis):
            loops.append(Loop(axis, tile.depth[axis], LOOP))
    start = len(loops)
    for axis in sorted(product.rows, key=lambda axis: axis in tile.rows):
        tall = tile.rows.get(axis, 1)
        if axis is not group or step > tall:
            loops.append(Loop(axis, tall, LOOP))
    if tile.columns > tile.width:
        loops.append(Loop(tile.axis, tile.width, LOOP))
    loops += _sum_loops(product, tile)
    loops += [Loop(axis, 1, UNROLL) for axis, tall in tile.rows.items() if tall > 1]
    if tile.vectors > 1:
        loops.append(Loop(tile.axis, tile.lanes, UNROLL))
    loops.append(Loop(tile.axis, 1, LANES))
    if not tile.packed:
        return Schedule(tuple(loops))
    axes = set(toposort(product.right))
    layout = tuple(number for number in range(start, len(loops)) if loops[number].axis in axes)
    return Schedule(tuple(loops), (Pack(product.right, start, layout),))


def _sum_loops(product: Product, tile: Tile) -> list[Loop]:
    """The loops over a block of the sum; parts of one that is too long for one float are added up apart."""
    loops, steps = [], 1
    for axis in reversed(product.reduced):
        loops.insert(0, Loop(axis, 1, LOOP))
        if steps * tile.depth[axis] > LONGEST_SUM >= steps and tile.depth[axis] == static_size(axis):
            loops.insert(0, Loop(axis, max(LONGEST_SUM // steps // 2, 1), BLOCK))
        steps *= tile.depth[axis]
    return loops


def _group(product: Product, tile: Tile, target: Target) -> tuple[Node | None, int]:
    """(the axis whose pieces are shared out among threads, points of a piece)."""
    steps = prod(static_size(axis) for axis in product.reduced)
    work = _most((*product.batch, *product.rows, *product.columns)) * steps
    if target.threads < 2 or work < 2 * WORTH_GROUPS:
        return None, 0
    order = [*product.batch, *product.columns, *product.rows]
    units = {axis: tile.rows.get(axis, 1) for axis in order} | {tile.axis: tile.columns}
    pieces = {axis: ceil(_most([axis]) / units[axis]) for axis in order}
    fitting = [axis for axis in order if pieces[axis] >= 2 * target.threads]
    group = fitting[0] if fitting else max(order, key=pieces.get)
    if static_size(group) is None:
        return group, units[group]
    most = ceil(pieces[group] / target.threads)
    wanted = pieces[group] // (target.threads * GROUPS_PER_THREAD)
    least = ceil(WORTH_GROUPS * pieces[group] / work)
    if tile.packed and group in product.rows:      # each group makes its own panel
        least = max(least, ceil(WORTH_COPY * tile.copy * pieces[group] / _most(product.rows)))
    return group, units[group] * max(min(max(wanted, least), most), 1)
