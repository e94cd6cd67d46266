"""A kernel and its loop schedule become the flat list of instructions that a dialect walks once.

Everything the schedule says is done here; nothing is decided here. Each combination of unrolled and lane
points is an Instance: the kernel's expression with its axes replaced by positions. Expressions are shared by
interning, placed in the outermost scope that knows their operands (so what a loop does not change stands
before it), and emitted once.
"""
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.integer import Integer, as_node, bounds, less, multiply, unbound
from tiny.ir.node import Node, const
from tiny.ir.ops import identity_of
from tiny.render import exchange, lanewise, matrix, packing
from tiny.render.emit import Emitter
from tiny.render.grid import Grid, make_grid, rounded_up
from tiny.render.instances import Instance, Instantiate, Point, State, all_of, combine, load
from tiny.render.scopes import Scopes
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import (
    BLOCK,
    CONTROL,
    GROUP,
    LANES,
    MATRIX,
    PARALLEL,
    SPLIT,
    THREAD,
    Loop,
    Pack,
    Schedule,
    accumulation,
    cooperative,
    spills,
)


@dataclass(frozen=True, slots=True)
class Lowered:
    """What `lower` gives.

    instructions  the flat list
    groups        how many times the GROUP's body runs, 1 without a GROUP
    threads       the work-items of a group, 1 without threads
    """
    instructions: list[Node]
    groups: Integer
    threads: int = 1


class Lowering:
    """One kernel on its way; parts of the work stand in packing, matrix and exchange."""

    def __init__(self, kernel: Kernel, schedule: Schedule, simplify: Callable[[Node], Node]):
        self.kernel, self.schedule, self.loops = kernel, schedule, schedule.loops
        self.scopes = Scopes(simplify)
        self.emit = Emitter(self.scopes)
        self.total = accumulation(kernel)
        self.reduced = self.total.src[1:] if self.total is not None else ()
        self.value = Instantiate(kernel.value)
        self.term = Instantiate(self.total.src[0]) if self.total is not None else None
        self.where = Instantiate(as_node(kernel.index))
        self.gate = Instantiate(kernel.gate) if kernel.gate is not None else None
        self.destination = Node(ops.POINTER, kernel.dtype, (), 0)
        self.cooperative = cooperative(schedule, self.reduced)
        self.sizes = {
            loop.axis: loop.axis.src[0].arg if loop.axis.src[0].op is ops.CONST else unbound(loop.axis.src[0])
            for loop in self.loops
        }
        self.shared = [n for n, loop in enumerate(self.loops)  # THREAD loops over reduced axes
                       if loop.kind == THREAD and loop.axis in self.reduced]
        self.groups: Integer = 1
        self.grid: Grid | None = None                       # None where groups have one work-item
        self.scopes.will_write(self.destination)

    def run(self) -> Lowered:
        state = State(dict.fromkeys(self.sizes, 0), self.sizes, {}, {})
        if self.kernel.carried:
            stop, body = self._sequential_loop(), self._running
        elif self.total is None:
            stop, body = len(self.loops), self._store_tile
        else:
            stop, body = self._sum_start(), self._sum_tile
        if self.cooperative:
            self._walk_grid(state, stop, body)
        else:
            self.walk(state, 0, stop, body)
        return Lowered(self.scopes.instructions(), self.groups, 1 if self.grid is None else self.grid.items)

    def _sequential_loop(self) -> int:
        return next(n for n, loop in enumerate(self.loops) if loop.axis is self.kernel.sequential)

    def _sum_start(self) -> int:
        """The loop at which accumulators begin: the first reduced one, or past all loops over the result."""
        controls = [n for n, loop in enumerate(self.loops) if loop.kind in CONTROL]
        if spills(self.schedule, self.reduced):
            return 1 + max(n for n in controls if self.loops[n].axis not in self.reduced)
        return next(n for n in controls if self.loops[n].axis in self.reduced)

    # -- loops -----------------------------------------------------------------------------------------------
    def walk(self, state: State, number: int, stop: int, body: Callable[[State], None]) -> None:
        """Emit control loops `number` to stop - 1, remainders included, with `body` inside."""
        packs = [pack for pack in self.schedule.packs if pack.depth == number < stop]
        if packs:
            self.scopes.open(None)
            if self.cooperative:
                self.emit.barrier()                          # for those who still read the last copy
            for pack in packs:
                state = self._copy(state, pack)
            if self.cooperative:
                self.emit.barrier()
        self._walk_packed(state, number, stop, body)
        if packs:
            self.scopes.close()

    def _copy(self, state: State, pack: Pack) -> State:
        if self.cooperative:
            return packing.copy_together(self.emit, self.schedule, state, pack, self.grid)
        return packing.copy(self.emit, self.schedule, state, pack)

    def _walk_packed(self, state: State, number: int, stop: int, body: Callable[[State], None]) -> None:
        if number == stop:
            body(state)
            return
        loop = self.loops[number]
        if loop.kind not in CONTROL or number in state.counters:
            self.walk(state, number + 1, stop, body)
            return
        if number in self.shared:
            inside = state.enter(number, loop, self.grid.counters[number], loop.step)
            self.walk(inside, number + 1, stop, body)
            return
        extent = state.extent[loop.axis]
        if self.cooperative:
            count, rest = rounded_up(extent, loop.step), 0
        else:
            count, rest = (extent // loop.step, extent % loop.step) if loop.step > 1 else (extent, 0)
        if loop.kind in PARALLEL:
            if sum(other.kind in PARALLEL for other in self.loops) == 1 and loop.kind == GROUP:
                self._walk_groups(state, stop, body, count, rest)
            else:
                self._walk_grid(state, stop, body)
            return
        if isinstance(count, Node) or count > 1:
            counter = Node(ops.LOOP, None, (as_node(count),), self.emit.number())
            self.scopes.open(counter, conditional=bounds(count)[0] < 1)
            self.walk(state.enter(number, loop, counter, loop.step), number + 1, stop, body)
            self.scopes.close()
        elif count == 1:
            self.walk(state.enter(number, loop, 0, loop.step), number + 1, stop, body)
        if not isinstance(rest, Node) and not rest:
            return
        remainder = state.enter(number, loop, count, rest)
        if isinstance(rest, Node) and self._has_lanes(loop.axis):
            counter = Node(ops.LOOP, None, (rest,), self.emit.number())
            self.scopes.open(counter, conditional=True)
            self.walk(remainder.one_by_one(loop.axis, counter), number + 1, stop, body)
            self.scopes.close()
        else:
            self.walk(remainder, number + 1, stop, body)

    def _has_lanes(self, axis: Node) -> bool:
        """Whether lanes lie along this axis of the result."""
        return axis not in self.reduced and any(
            loop.kind == LANES and loop.axis is axis for loop in self.loops
        )

    def _walk_groups(
        self, state: State, stop: int, body: Callable[[State], None], count: Integer, rest: Integer
    ) -> None:
        """One loop shared out as groups; the last, smaller one has code of its own."""
        loop = self.loops[0]
        partial = isinstance(rest, Node) or rest > 0
        self.groups = count + 1 if partial else count
        group = Node(ops.GROUP, None, (as_node(self.groups),), 0)
        self.scopes.open(group, conditional=True)
        if not partial:
            self.walk(state.enter(0, loop, group, loop.step), 1, stop, body)
        else:
            full = less(group, count)
            for condition, extent in ((full, loop.step), (_not(full), rest)):
                if condition is False or (isinstance(condition, Node) and condition.op is ops.CONST):
                    continue
                self._guarded(condition, state.enter(0, loop, group, extent), 1, stop, body)
        self.scopes.close()

    def _walk_grid(self, state: State, stop: int, body: Callable[[State], None]) -> None:
        """Several loops shared out as groups and work-items; work-items past the end do nothing, unless
        others need them.
        """
        lanes = 1 if self.schedule.matrix is None else self.schedule.matrix.lanes
        grid = self.grid = make_grid(self.loops, state.extent, lanes)
        openers = [opener for opener in (grid.group, grid.item) if opener is not None]
        for opener in openers:
            self.scopes.open(opener, conditional=True)
        count = grid.group.src[0] if grid.group is not None else 1
        self.groups = count.arg if isinstance(count, Node) and count.op is ops.CONST else count
        first = next((n for n, loop in enumerate(self.loops)
                      if loop.kind not in PARALLEL or n in self.shared), len(self.loops))
        for number in grid.counters.keys() - set(self.shared):
            loop = self.loops[number]
            extent = loop.step if self.cooperative else grid.extents[loop.axis]
            state = state.enter(number, loop, grid.counters[number], extent)
        condition = None if self.cooperative else all_of(grid.conditions)
        self._guarded(True if condition is None else condition, state, first, stop, body)
        for _ in openers:
            self.scopes.close()

    def _guarded(
        self, condition: Node | bool, state: State, number: int, stop: int, body: Callable[[State], None]
    ) -> None:
        if condition is True:
            self.walk(state, number, stop, body)
            return
        opener = Node(ops.IF, None, (self.scopes.place(condition),), self.emit.number())
        self.scopes.open(opener, conditional=True)
        self.walk(state, number, stop, body)
        self.scopes.close()

    # -- the register tile -----------------------------------------------------------------------------------
    def points(self, state: State, of_result: bool) -> list[Point]:
        """Instances over the unrolled and lane loops of the result's axes, or of the reduced ones, and which
        of them exist.
        """
        points = self.tile(state, of_result)
        if not self.cooperative:
            return points
        if of_result and self.schedule.matrix is not None:
            points = [matrix.spread(self, point, self.schedule.matrix.c) for point in points]
        return [replace(point, instance=self.within(point.instance)) for point in points]

    def within(self, instance: Instance) -> Instance:
        """Gated where an axis may be past its end."""
        found = [(axis, less(position, self.sizes[axis])) for axis, position in instance.positions.items()]
        gates = [(axis, gate if isinstance(gate, Node) else const(gate, dtypes.bool)) for axis, gate in found
                 if gate is not True]
        return Instance(instance.positions, (*instance.gates, *gates))

    def tile(self, state: State, of_result: bool) -> list[Point]:
        """The combinations of the unrolled and lane loops; matrix loops stay where they begin."""
        start = {axis: base for axis, base in state.base.items() if (axis not in self.reduced) is of_result}
        points = [(Instance(start), {}, 0, dict(state.extent))]
        for number, loop in enumerate(self.loops):
            if loop.kind in (*CONTROL, MATRIX) or (loop.axis not in self.reduced) is not of_result:
                continue
            width = self._width(number)
            points = [
                self._point(before, number, counter, width, exists)
                for before in points
                for counter, exists in self._counters(loop, width, before[3][loop.axis], state.scalar)
            ]
        return [Point(*point[:3]) for point in points]

    def _point(self, before: tuple, number: int, counter: Integer, width: int, exists: Node | bool) -> tuple:
        """The point `counter` of loop `number` within what outer unrolled loops have chosen."""
        instance, counters, own, extent = before
        loop = self.loops[number]
        moved = multiply(counter, loop.step)
        positions = instance.positions | {loop.axis: instance.positions[loop.axis] + moved}
        gates = instance.gates if exists is True else (*instance.gates, (loop.axis, exists))
        left = extent | {loop.axis: extent[loop.axis] - moved}
        own = own * width + counter if loop.kind == SPLIT else own
        return Instance(positions, gates), counters | {number: counter}, own, left

    def _width(self, number: int) -> int:
        """How many points loop `number`, unrolled or lanes, has when nothing is cut off."""
        loop = self.loops[number]
        return [other.step for other in self.loops[:number] if other.axis is loop.axis][-1] // loop.step

    @staticmethod
    def _counters(loop: Loop, width: int, extent: Integer, scalar: bool) -> list[tuple[Integer, Node | bool]]:
        """(counter, whether that point exists) for the points of an unrolled or lane loop with `extent`
        points left.
        """
        if loop.kind == LANES:
            if scalar or width == 1:
                return [(0, True)]
            lanes = Node(ops.LANES, None, (), width)
            return [(lanes, less(lanes, extent))]
        points = [(point, less(point * loop.step, extent)) for point in range(width)]
        return [(point, exists) for point, exists in points if exists is not False]

    def replaced(self, state: State, counters: dict[int, Integer]) -> dict[Node, Node]:
        return packing.replacements(self.schedule, state, counters)

    # -- bodies ----------------------------------------------------------------------------------------------
    def _store_tile(self, state: State) -> None:
        for point in self.points(state, True):
            instance = point.instance
            value = self.value(instance, self.replaced(state, point.counters))
            if self.kernel.combine is not None:
                old = load(self.destination, self.where(instance, {}), self._gates(instance))
                value = combine(self.kernel.combine, old, value)
            self.store(instance, value)

    def _running(self, state: State) -> None:
        """A running reduction: registers before the sequential loop, one step and one store in it."""
        lanes = self._lane_count(True, state)
        wide = self.kernel.value.dtype
        points = self.points(state, True)
        registers = [self.emit.register(identity_of(self.kernel.combine, wide), wide, lanes) for _ in points]

        def step(inner: State) -> None:
            for register, point in zip(registers, self.points(inner, True), strict=True):
                value = self.value(point.instance, self.replaced(inner, point.counters))
                self.emit.set(register, combine(self.kernel.combine, self.emit.read(register), value))
                result = self.emit.read(register)
                self.store(
                    point.instance,
                    result if wide is self.kernel.dtype else Node(ops.CAST, self.kernel.dtype, (result,)),
                )

        self.walk(state, self._sequential_loop(), len(self.loops), step)

    def _sum_tile(self, state: State) -> None:
        points = self.points(state, True)
        totals = self._sums(state, self._sum_start(), points)
        if self.shared:
            totals = exchange.add_up(self.emit, totals, self.total.arg, self._sharing())
        width = self._lane_count(True, state)
        apart = lanewise.apart(self, points, width)
        lanewise.store(self, state, points, totals, apart, width)
        for point, total in ((p, t) for p, t, count in zip(points, totals, apart, strict=True) if not count):
            replaced = self.replaced(state, point.counters) | {self.total: total}
            self.store(point.instance, self.value(point.instance, replaced))
        if self.shared:
            self.scopes.close()                              # the scope of the item that has the total

    def _sharing(self) -> exchange.Sharing:
        """How the items that share sums are numbered."""
        counts = self.grid.counts
        inside = [n for n in counts if n > self.shared[-1] and self.loops[n].kind == THREAD]
        return exchange.Sharing(self.grid.item, self.grid.items, math.prod(counts[n] for n in self.shared),
                                math.prod(counts[n] for n in inside))

    def _sums(self, state: State, number: int, points: list) -> list[Node]:
        """The reduction over loops from `number` on, for each instance of the result."""
        block = next((n for n in range(number, len(self.loops)) if self.loops[n].kind == BLOCK), None)
        op, dtype = self.total.arg, self.total.dtype
        start = identity_of(op, dtype)
        if block is None:
            return self._plain_sums(state, number, points, start)
        registers = [self.emit.register(start, dtype, self._lane_count(True, state)) for _ in points]

        def inner(within: State) -> None:
            parts = self._sums(within, block + 1, points)
            for register, part in zip(registers, parts, strict=True):
                self.emit.set(register, combine(op, self.emit.read(register), part))

        self.walk(state, number, block + 1, inner)
        return [self.emit.read(register) for register in registers]

    def _plain_sums(self, state: State, number: int, points: list, start) -> list[Node]:
        if self.schedule.matrix is not None:
            return matrix.sums(self, state, number)
        op, dtype = self.total.arg, self.total.dtype
        across = self._lane_count(False, state)  # lanes along a reduced axis
        lanes = across or self._lane_count(True, state)
        copies = 1
        for n, loop in enumerate(self.loops):
            copies *= self._width(n) if loop.kind == SPLIT else 1
        registers = [[self.emit.register(start, dtype, lanes) for _ in range(copies)] for _ in points]

        def inner(within: State) -> None:
            for over in self.points(within, False):
                exists = all_of([gate for _, gate in over.instance.gates])
                for sums, point in zip(registers, points, strict=True):
                    both = Instance(point.instance.positions | over.instance.positions,
                                    point.instance.gates + over.instance.gates)
                    value = self.term(both, self.replaced(within, point.counters | over.counters))
                    if exists is not None:
                        value = Node(ops.WHERE, None, (exists, value, const(start, dtype)))
                    self.emit.set(sums[over.own], combine(op, self.emit.read(sums[over.own]), value))

        self.walk(state, number, len(self.loops), inner)
        totals = [self._gathered(sums, across) for sums in registers]
        waiting = [self._waiting(point.instance, state) for point in points]
        return [total if before is None else combine(op, before, total)
                for before, total in zip(waiting, totals, strict=True)]

    def _waiting(self, instance: Instance, state: State) -> Node | None:
        """The sum that an earlier round of an outer reduced loop left in the destination; None when there is
        none.
        """
        if not spills(self.schedule, self.reduced):
            return None
        rounds: Integer = 0
        for number, counter in state.counters.items():
            if self.loops[number].axis in self.reduced:
                rounds = rounds + counter
        started = less(0, rounds)
        if started is False:
            return None
        gates = self._gates(instance) + ([started] if isinstance(started, Node) else [])
        return load(self.destination, self.where(instance, {}), gates)

    def _gathered(self, registers: list[Node], across: int) -> Node:
        """One value out of the accumulators of one instance: first of its copies, then of its lanes."""
        op = self.total.arg
        values = [self.emit.read(register) for register in registers]
        while len(values) > 1:
            pairs = zip(values[::2], values[1::2], strict=False)
            values = [combine(op, a, b) for a, b in pairs] + ([values[-1]] if len(values) % 2 else [])
        if not across:
            return values[0]
        total = values[0]
        while across > 2:
            across //= 2
            total = combine(op, *(Node(ops.SLICE, None, (total,), (start, across)) for start in (0, across)))
        return combine(op, *(Node(ops.EXTRACT, None, (total,), lane) for lane in range(2)))

    def _lane_count(self, of_result: bool, state: State) -> int:
        """Lanes along the result's axes or along reduced ones, 0 for none."""
        if of_result and state.scalar:
            return 0
        if of_result and self.schedule.matrix is not None:
            return self.schedule.matrix.c.elements
        for number, loop in enumerate(self.loops):
            if loop.kind == LANES and (loop.axis not in self.reduced) is of_result:
                return self._width(number) if self._width(number) > 1 else 0
        return 0

    def _gates(self, instance: Instance) -> list[Node]:
        gates = [gate for _, gate in instance.gates]
        return gates if self.gate is None else [*gates, self.gate(instance, {})]

    def store(self, instance: Instance, value: Node) -> None:
        gate = all_of(self._gates(instance))
        self.emit.store(self.destination, self.where(instance, {}), value, gate, self.schedule.streaming)


def _not(condition: Node | bool) -> Node | bool:
    if isinstance(condition, bool):
        return not condition
    return Node(ops.EQ, None, (condition, const(False, condition.dtype)))


def lower(kernel: Kernel, schedule: Schedule, simplify: Callable[[Node], Node]) -> Lowered:
    """The flat instructions of a kernel under a schedule, which `check` has passed.

    simplify: turns one arithmetic node with simple operands into operations the dialect knows.
    """
    return Lowering(kernel, schedule, simplify).run()
