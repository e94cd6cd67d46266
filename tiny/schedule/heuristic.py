"""A good loop schedule for a kernel without trying any: lanes where memory lies, a register tile that reuses
loads, groups over the outermost axis."""
from dataclasses import dataclass

from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.integer import bounds, prod
from tiny.ir.node import Node, toposort
from tiny.schedule import products
from tiny.schedule.axes import NEIGHBOURS, NONE, SCATTERED, along, divisor
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import (
    BLOCK,
    GROUP,
    LANES,
    LONGEST_SUM,
    LOOP,
    SPLIT,
    UNROLL,
    Loop,
    Pack,
    Schedule,
    accumulation,
    check,
    rounds,
    static_size,
)
from tiny.target import Target

PARALLEL_WORK = 20_000  # elementary operations below which waking another thread costs more than it saves
WORTH_UNPACKING = 8          # rows that a panel of unpacked weights serves at least
LARGEST_TILES = 16           # columns of tiles in such a panel
STRIP = 1024                 # columns whose sums wait in the first cache while rows are added
ROWS_AT_A_TIME = 16
WORTH_ROWS = 1 << 18         # elements from which a matrix is summed row by row
LARGEST_BLOCK = 4            # vectors of a block of quantised weights that are unrolled


@dataclass
class _Choice:
    """What is decided about one axis: points per lane vector, vectors or rows unrolled, separate sums."""
    lanes: int = 1
    unroll: int = 1
    split: int = 1


def choose(kernel: Kernel, target: Target) -> Schedule:
    """The schedule of a kernel for a target; always one that `check` accepts."""
    schedule = products.choose(kernel, target) or _Chooser(kernel, target).schedule()
    check(kernel, schedule)
    return schedule


class _Chooser:
    def __init__(self, kernel: Kernel, target: Target):
        self.kernel, self.target = kernel, target
        self.total = accumulation(kernel)
        self.reduced = self.total.src[1:] if self.total is not None else ()
        body = self.total.src[0] if self.total is not None else kernel.value
        nodes = toposort(body)
        self.loads = [node for node in nodes if node.op is ops.LOAD]
        self.operations = 1 + sum(node.op not in (ops.CONST, ops.POINTER) and node.dtype is not dtypes.index
                                  for node in nodes)
        sizes = [
            n.dtype.itemsize for n in toposort(kernel.value) if n.dtype not in (dtypes.index, dtypes.bool)
        ]
        self.width = max(
            1, target.lanes // max(4 if self.operations > 2 else 1, *sizes, kernel.dtype.itemsize)
        )
        self.choice = {axis: _Choice() for axis in (*kernel.axes, *self.reduced)}

    # -- lanes -----------------------------------------------------------------------------------------------
    def _fitting_width(self, axis: Node) -> int:
        """Lanes that walk the axis without a remainder if there are any, else with a small one."""
        size = static_size(axis)
        if size is None:
            return self.width
        width = self.width
        while width > size:
            width //= 2
        fitting = width
        while fitting >= 4 and size % fitting:
            fitting //= 2
        if fitting >= 4 and (fitting == width or size < 8 * width):
            return fitting
        return width if size >= 4 else 1

    def _cost(self, axis: Node) -> float:
        """Memory instructions per point with lanes along this axis; infinite where that cannot be."""
        width = self._fitting_width(axis)
        if width == 1 or axis is self.kernel.sequential:
            return float("inf")
        cost = 0.0
        for load in self.loads:
            way = along(load.src[1], axis, width)
            if load.src[2:] and axis in toposort(load.src[2]):
                way = SCATTERED
            cost += {NONE: 0.3, NEIGHBOURS: 1.0, SCATTERED: width * 1.5}[way]
        length = max(bounds(prod(axis.src[0] for axis in self.reduced))[1], 1)
        if axis in self.reduced:
            cost += 2.0 * width / max(length / width, 1.0)  # adding up the lanes at the end
        else:
            way = along(self.kernel.index, axis, width)
            cost += (1.0 if way == NEIGHBOURS else width * 1.5) / length
        size = static_size(axis)
        if size is None:
            cost *= 1.5
        elif size % width:
            cost *= 1 + width / size
        return cost / width

    def _choose_lanes(self) -> Node | None:
        costs = {axis: self._cost(axis) for axis in self.choice}
        scalar = len(self.loads) + 1.0 + 0.25 * self.operations
        best = min(costs, key=costs.get, default=None)
        if best is None or costs[best] >= scalar:
            return None
        self.choice[best].lanes = self._fitting_width(best)
        return best

    # -- register tile ---------------------------------------------------------------------------------------
    def _choose_tile(self, lane_axis: Node | None) -> None:
        if self.total is None:
            return
        if lane_axis in self.reduced or lane_axis is None:
            self._unroll_blocks(lane_axis)
            self._tile_of_rows(lane_axis)
            return
        sums = 24 if self.target.lanes >= 64 else 12
        size = static_size(lane_axis)
        lanes = self.choice[lane_axis].lanes
        vectors = 1 if size is None else divisor(size // lanes, 4)
        rows = [
            axis
            for axis in self.kernel.axes
            if axis is not lane_axis
            and static_size(axis)
            and any(
                along(load.src[1], axis, 2) == NONE and along(load.src[1], lane_axis, lanes) != NONE
                for load in self.loads
            )
        ]
        if rows:
            row = max(rows, key=static_size)
            self.choice[row].unroll = divisor(static_size(row), max(1, sums // vectors), least=4)
        self.choice[lane_axis].unroll = vectors

    def _unroll_blocks(self, lane_axis: Node | None) -> None:
        """Unroll lanes along a sum to whole blocks of the data (quantised weights),
        so that places in them are fixed.
        """
        if lane_axis is None or static_size(lane_axis) is None:
            return
        lanes = self.choice[lane_axis].lanes
        blocks = {
            node.src[1].arg
            for load in self.loads
            for node in toposort(load.src[1])
            if node.op in (ops.IDIV, ops.MOD) and node.src[1].op is ops.CONST and lane_axis in toposort(node)
        }
        fitting = [
            block // lanes
            for block in blocks
            if block % lanes == 0
            and lanes < block <= LARGEST_BLOCK * lanes
            and static_size(lane_axis) % block == 0
        ]
        self.choice[lane_axis].unroll = max(fitting, default=1)

    def _tile_of_rows(self, lane_axis: Node | None) -> None:
        """Lanes along the sum: unroll up to two axes of the result, so that each load serves several sums."""
        free = [axis for axis in self.kernel.axes if static_size(axis) and static_size(axis) > 1]
        reuse = [axis for axis in free if any(along(load.src[1], axis, 2) == NONE for load in self.loads)]
        reuse.sort(key=static_size, reverse=True)
        for axis in reuse[:2]:
            self.choice[axis].unroll = divisor(static_size(axis), 4)
        made = prod(self.choice[axis].unroll for axis in self.kernel.axes)
        if made < 4 and lane_axis is not None:
            steps = static_size(lane_axis)
            wanted = 4 // made if len(self.loads) == 1 or made == 1 else 1
            while steps is not None and wanted > 1 and steps // self.choice[lane_axis].lanes < 2 * wanted:
                wanted //= 2
            self.choice[lane_axis].split = wanted if steps is not None else 1

    # -- unpacking -------------------------------------------------------------------------------------------
    def schedule(self) -> Schedule:
        """The loops, and a panel where that saves repeated work."""
        rows = self._row_by_row()
        if rows is not None:
            return rows
        loops = self.loops()
        return self._unpacked_once(loops) or Schedule(tuple(loops), streaming=self._streams())

    def _row_by_row(self) -> Schedule | None:
        """For sums over the rows of a wide matrix: a few rows at a time, as they lie in memory, added to sums
        that wait in the destination, in the first cache. Columns would be read in short pieces, each from
        another page.
        """
        kernel, total = self.kernel, self.total
        if kernel.value is not total or total.arg is not ops.ADD or kernel.dtype is not total.dtype:
            return None
        if len(kernel.axes) != 1 or len(self.reduced) != 1 or kernel.gate is not None:
            return None
        (columns,), (rows,) = kernel.axes, self.reduced
        width, height = static_size(columns), static_size(rows)
        if width is None or height is None or width < STRIP or width * height < WORTH_ROWS:
            return None
        if not 4 * ROWS_AT_A_TIME <= height <= LONGEST_SUM * ROWS_AT_A_TIME:
            return None
        ways = {(along(load.src[1], columns, self.width), along(load.src[1], rows, 2)) for load in self.loads}
        if ways != {(NEIGHBOURS, SCATTERED)} or any(load.src[2:] for load in self.loads):
            return None
        return Schedule((Loop(columns, STRIP, self._outermost()), Loop(rows, ROWS_AT_A_TIME, LOOP),
                         Loop(columns, self.width, LOOP), Loop(rows, ROWS_AT_A_TIME, LOOP),
                         Loop(rows, 1, UNROLL), Loop(columns, 1, LANES)))

    def _streams(self) -> bool:
        """Whether elementwise results are so many that none would still be in a cache when it is read."""
        kernel, caches = self.kernel, self.target.cache_bytes
        size = bounds(prod(axis.src[0] for axis in kernel.axes))[1] * kernel.dtype.itemsize
        once = self.total is None and kernel.sequential is None and kernel.combine is None
        read = any(load.src[0].arg == 0 for load in self.loads)
        return bool(caches) and once and not read and size > caches[-1]

    def _unpacked_once(self, loops: list[Loop]) -> Schedule | None:
        """With lanes along the sum of a product: a factor that is unpacked (quantised weights) becomes a
        panel for all rows that read it. Nothing changes in what is added up in which order.
        """
        if not self.reduced or self.total.src[0].op is not ops.MUL or len(self.kernel.axes) != 2:
            return None
        if loops[-1].kind != LANES or loops[-1].axis not in self.reduced or self.kernel.sequential:
            return None
        for factor in self.total.src[0].src:
            axes = set(toposort(factor))
            columns = [axis for axis in self.kernel.axes if axis in axes]
            rows = [axis for axis in self.kernel.axes if axis not in axes]
            if products.operations(factor) > products.CHEAP and len(rows) == len(columns) == 1:
                return self._with_panel(loops, factor, rows[0], columns[0])
        return None

    def _with_panel(self, loops: list[Loop], factor: Node, rows: Node, columns: Node) -> Schedule | None:
        size, tile = static_size(columns), self.choice[columns].unroll
        steps = [static_size(axis) for axis in self.reduced]
        if size is None or None in steps or bounds(rows.src[0])[1] < WORTH_UNPACKING:
            return None
        wide = products.PANEL_BYTES // (prod(steps) * factor.dtype.itemsize) // tile * tile
        wide = min(wide, LARGEST_TILES * tile, size // tile * tile)
        if wide < 2 * tile:
            return None
        inside = [loop for loop in loops if loop.axis in self.reduced or loop.kind not in (GROUP, LOOP)]
        outer = [Loop(columns, wide, self._outermost()), Loop(rows, self.choice[rows].unroll, LOOP),
                 Loop(columns, tile, LOOP)]
        made = tuple(outer + inside)
        axes = set(toposort(factor))
        layout = tuple(number for number in range(1, len(made)) if made[number].axis in axes)
        return Schedule(made, (Pack(factor, 1, layout),))

    # -- loops -----------------------------------------------------------------------------------------------
    def loops(self) -> list[Loop]:
        lane_axis = self._choose_lanes()
        self._choose_tile(lane_axis)
        outer = [axis for axis in self.kernel.axes if axis is not self.kernel.sequential]
        group = self._group_axis(outer)
        if group is not None:
            outer.remove(group)
            outer.insert(0, group)
        loops: list[Loop] = []
        inner: list[Loop] = []
        for axis in outer:
            self._add(axis, axis is group, loops, inner)
        if self.kernel.sequential is not None:
            loops.append(Loop(self.kernel.sequential, 1, LOOP))
        for axis in sorted(self.reduced, key=lambda axis: axis is lane_axis):
            self._add(axis, False, loops, inner)
        return loops + sorted(inner, key=lambda loop: loop.kind == LANES)

    def _add(self, axis: Node, grouped: bool, loops: list[Loop], inner: list[Loop]) -> None:
        choice = self.choice[axis]
        tile = choice.lanes * choice.unroll * choice.split
        if grouped:
            loops.append(Loop(axis, self._group_step(axis, tile), GROUP))
        elif self._needs_blocks(axis, tile):
            loops.append(Loop(axis, tile * 1024, BLOCK))
        if not loops or loops[-1].axis is not axis or loops[-1].step != tile:
            loops.append(Loop(axis, tile, LOOP))
        for kind, width in ((SPLIT, choice.split), (UNROLL, choice.unroll)):
            if width > 1:
                tile //= width
                inner.append(Loop(axis, tile, kind))
        if choice.lanes > 1:
            inner.append(Loop(axis, 1, LANES))

    def _needs_blocks(self, axis: Node, tile: int) -> bool:
        size = static_size(axis)
        return (
            axis in self.reduced
            and rounds(self.total)
            and size is not None
            and size // tile > LONGEST_SUM
        )

    def _work(self) -> int:
        points = bounds(prod(axis.src[0] for axis in self.choice))[1]
        return points * self.operations

    def _outermost(self) -> str:
        """The kind of the first loop: GROUP where there is enough to do for more than one thread."""
        return GROUP if self.target.threads > 1 and self._work() >= PARALLEL_WORK else LOOP

    def _group_axis(self, outer: list[Node]) -> Node | None:
        """The axis whose pieces are shared out among threads."""
        if self._outermost() != GROUP:
            return None
        for axis in outer:
            choice = self.choice[axis]
            pieces = bounds(axis.src[0])[1] // (choice.lanes * choice.unroll)
            if pieces >= 2 * self.target.threads:
                return axis
        candidates = [axis for axis in outer if bounds(axis.src[0])[1] > 1]
        return max(candidates, key=lambda axis: bounds(axis.src[0])[1], default=None)

    def _group_step(self, axis: Node, tile: int) -> int:
        """Points a group takes: whole tiles, a few groups a thread, enough work in each."""
        size = bounds(axis.src[0])[1]
        if static_size(axis) is None:
            return tile
        others = max(self._work() // max(size, 1), 1)
        pieces = self.target.threads * products.GROUPS_PER_THREAD
        step = max(size // pieces, PARALLEL_WORK // 2 // others, 1)
        step = min(step, -(-size // 2))
        return max(tile, step // tile * tile)
