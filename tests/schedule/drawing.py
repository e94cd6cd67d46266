"""Strategies: random graphs of typical operations, and random legal schedules of their kernels."""
from math import prod

import numpy as np
from hypothesis import strategies as st

from tests.schedule.running import leaf
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.integer import bounds
from tiny.ir.node import Node, const, toposort, variable
from tiny.schedule.axes import merge_axes
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import (
    BLOCK,
    GROUP,
    LANES,
    LARGEST_LOCAL,
    LOOP,
    MATRIX,
    SPLIT,
    THREAD,
    UNROLL,
    Loop,
    Pack,
    Schedule,
    accumulation,
    pack_counts,
    packed_loops,
    reduced_axes,
    static_size,
)

SIZES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 33)
TYPES = (dtypes.float32, dtypes.int32, dtypes.float32, dtypes.uint8, dtypes.float64, dtypes.int64,
         dtypes.float16, dtypes.bool)


# -- graphs --------------------------------------------------------------------------------------------------
def array_of(draw, shape: tuple, dtype) -> np.ndarray:
    """Small whole numbers, so that sums are exact in any order."""
    random = np.random.default_rng(draw(st.integers(0, 99)))
    low = 0 if dtype.kind in "ub" else -3
    return random.integers(low, 2 if dtype is dtypes.bool else 4, shape)


@st.composite
def graphs(draw, most: int = 5, symbolic: bool = False) -> Node:
    """A graph of up to `most` operations over leaves of small whole numbers."""
    dtype = draw(st.sampled_from(TYPES))
    shape = tuple(draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3)))
    node = leaf(array_of(draw, shape, dtype), dtype)
    if symbolic:
        node = _shrink_symbolic(draw, node)
    reduced = 0
    for _ in range(draw(st.integers(1, most))):
        step = draw(st.sampled_from(STEPS))
        if step is reduce and (reduced == 2 or dtype is dtypes.float16):
            continue
        reduced += step is reduce
        if np.prod([max_size(size) for size in node.shape]) > 20_000:
            step = reduce
        node = step(draw, node)
    return node


@st.composite
def reductions(draw, symbolic: bool = False) -> Node:
    """A product of matrices, a convolution, or rows put together, with work before and after.

    symbolic: one of the sizes is a Variable.
    """
    dtype = draw(st.sampled_from(TYPES[:7]))
    rows, inner, columns = (draw(st.sampled_from(SIZES)) for _ in range(3))
    kind = draw(st.sampled_from(("product", "product", "convolution", "rows")))
    if kind == "product":
        left = leaf(array_of(draw, (rows, 1, inner), dtype), dtype)
        right = leaf(array_of(draw, (1, inner, columns), dtype), dtype)
        shape = (rows, columns, inner)
        turned = Node(ops.PERMUTE, None, (right,), (0, 2, 1))
        pair = [Node(ops.EXPAND, None, (side,), shape) for side in (left, turned)]
        node, axes, op = Node(ops.MUL, None, tuple(pair)), (2,), ops.ADD
        node = _shrink_symbolic(draw, node) if symbolic else node
    elif kind == "convolution":
        image = leaf(array_of(draw, (rows, inner + 2), dtype), dtype)
        padded = Node(ops.PAD, None, (image,), ((0, 0), (draw(st.integers(0, 2)), 1)))
        taps = Node(ops.WINDOW, None, (padded,), (1, 3, draw(st.integers(1, 2)), 1))
        weights = leaf(array_of(draw, (rows, 1, 3), dtype), dtype)
        spread = Node(ops.EXPAND, None, (weights,), taps.shape)
        node, axes, op = Node(ops.MUL, None, (taps, spread)), (0, 2), ops.ADD
    else:
        node = leaf(array_of(draw, (rows, inner, columns), dtype), dtype)
        node = _shrink_symbolic(draw, node) if symbolic else node
        axes = tuple(sorted(draw(st.sets(st.integers(0, 2), min_size=1, max_size=2))))
        op = draw(st.sampled_from((ops.ADD, ops.MAX, ops.MIN)))
    total = Node(ops.REDUCE, None, (node,), (op, axes))
    return draw(st.sampled_from((unary, binary)))(draw, total) if draw(st.booleans()) else total


def max_size(size) -> int:
    return bounds(size)[1]


def _shrink_symbolic(draw, node: Node) -> Node:
    """The first elements of an axis, as many as a Variable says."""
    axis = draw(st.integers(0, len(node.shape) - 1))
    size = variable("n", 1, node.shape[axis]).bind(draw(st.integers(1, node.shape[axis])))
    ranges = tuple((0, size if place == axis else whole) for place, whole in enumerate(node.shape))
    return Node(ops.SHRINK, None, (node,), ranges)


def unary(draw, node: Node) -> Node:
    if node.dtype.is_float:
        return Node(draw(st.sampled_from((ops.NEG, ops.TRUNC))), None, (node,))
    return Node(ops.CAST, draw(st.sampled_from((dtypes.float32, dtypes.int32, dtypes.uint8))), (node,))


def binary(draw, node: Node) -> Node:
    """With a new leaf, a constant, or itself turned round."""
    choice = draw(st.integers(0, 2))
    fixed = not any(isinstance(size, Node) for size in node.shape)
    if choice == 0 and fixed:
        other = leaf(array_of(draw, node.shape, node.dtype), node.dtype)
    elif choice == 1 and node.shape:
        other = Node(ops.FLIP, None, (node,), (draw(st.integers(0, len(node.shape) - 1)),))
    else:
        other = const(2, node.dtype)
    op = draw(st.sampled_from((ops.ADD, ops.MUL, ops.MAX, ops.MIN)))
    return Node(op, None, (node, other))


def choose_by(draw, node: Node) -> Node:
    condition = Node(ops.LT, None, (node, const(1, node.dtype)))
    return Node(ops.WHERE, None, (condition, node, const(3, node.dtype)))


def reshape(draw, node: Node) -> Node:
    """Split or join axes, where that needs no symbolic division."""
    shape = list(node.shape)
    if len(shape) > 1 and draw(st.booleans()):
        axis = draw(st.integers(0, len(shape) - 2))
        shape[axis:axis + 2] = [shape[axis] * shape[axis + 1]]
    else:
        axis = draw(st.integers(0, len(shape) - 1)) if shape else 0
        if shape and not isinstance(shape[axis], Node) and shape[axis] > 1:
            parts = [n for n in range(1, shape[axis] + 1) if shape[axis] % n == 0]
            part = draw(st.sampled_from(parts))
            shape[axis:axis + 1] = [part, shape[axis] // part]
    return Node(ops.RESHAPE, None, (node,), tuple(shape))


def permute(draw, node: Node) -> Node:
    return Node(ops.PERMUTE, None, (node,), tuple(draw(st.permutations(range(len(node.shape))))))


def expand(draw, node: Node) -> Node:
    axis = draw(st.integers(0, len(node.shape)))
    size = draw(st.sampled_from((2, 3, 8, 17)))
    wide = Node(ops.RESHAPE, None, (node,), (*node.shape[:axis], 1, *node.shape[axis:]))
    return Node(ops.EXPAND, None, (wide,), (*node.shape[:axis], size, *node.shape[axis:]))


def shrink(draw, node: Node) -> Node:
    ranges = []
    for size in node.shape:
        if isinstance(size, Node):
            ranges.append((0, size))
            continue
        start = draw(st.integers(0, size - 1))
        ranges.append((start, draw(st.integers(start + 1, size))))
    return Node(ops.SHRINK, None, (node,), tuple(ranges))


def pad(draw, node: Node) -> Node:
    pads = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 3))) for _ in node.shape)
    return Node(ops.PAD, None, (node,), pads)


def flip(draw, node: Node) -> Node:
    axes = tuple(axis for axis in range(len(node.shape)) if draw(st.booleans()))
    return Node(ops.FLIP, None, (node,), axes)


def window(draw, node: Node) -> Node:
    fitting = [axis for axis, size in enumerate(node.shape) if not isinstance(size, Node) and size >= 3]
    if not fitting:
        return node
    axis = draw(st.sampled_from(fitting))
    return Node(ops.WINDOW, None, (node,), (axis, draw(st.integers(1, 3)), draw(st.integers(1, 3)), 1))


def reduce(draw, node: Node) -> Node:
    if not node.shape:
        return node
    axes = draw(st.sets(st.integers(0, len(node.shape) - 1), min_size=1, max_size=2))
    op = draw(st.sampled_from((ops.ADD, ops.ADD, ops.MAX, ops.MIN)))
    return Node(ops.REDUCE, None, (node,), (op, tuple(sorted(axes))))


def scan(draw, node: Node) -> Node:
    if not node.shape:
        return node
    op = draw(st.sampled_from((ops.ADD, ops.MAX, ops.MIN)))
    return Node(ops.SCAN, None, (node,), (op, draw(st.integers(0, len(node.shape) - 1))))


def gather(draw, node: Node) -> Node:
    """Rows by an index, some of it outside."""
    if not node.shape or isinstance(node.shape[0], Node):
        return node
    shape = tuple(draw(st.lists(st.sampled_from((1, 3, 8, 17)), min_size=1, max_size=2)))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    index = leaf(random.integers(-1, node.shape[0] + 1, shape), dtypes.int32)
    return Node(ops.GATHER, None, (node, index))


def scatter(draw, node: Node) -> Node:
    """Rows added to, or put in, another array, places repeated and some of them outside."""
    if not node.shape or any(isinstance(size, Node) for size in node.shape):
        return node
    rows = draw(st.sampled_from((1, 4, 9)))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    index = leaf(random.integers(-1, rows + 1, node.shape[0]), dtypes.int64)
    base = leaf(array_of(draw, (rows, *node.shape[1:]), node.dtype), node.dtype)
    op = draw(st.sampled_from((None, ops.ADD, ops.MAX)))
    return Node(ops.SCATTER, None, (base, index, node), op)


def assign(draw, node: Node) -> Node:
    """Into a view of a larger array."""
    if not node.shape or any(isinstance(size, Node) for size in node.shape):
        return node
    pads = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in node.shape)
    shape = tuple(size + before + after for size, (before, after) in zip(node.shape, pads, strict=True))
    base = leaf(array_of(draw, shape, node.dtype), node.dtype)
    cut = tuple((before, before + size) for size, (before, _) in zip(node.shape, pads, strict=True))
    turned = tuple(axis for axis in range(len(shape)) if draw(st.booleans()))
    return Node(ops.ASSIGN, None, (base, node), ((ops.SHRINK, cut), (ops.FLIP, turned)))


STEPS = (unary, binary, binary, choose_by, reshape, permute, expand, shrink, pad, flip, window,
         reduce, reduce, scan, gather, scatter, assign)


# -- schedules -----------------------------------------------------------------------------------------------
@st.composite
def choices(draw, of=None):
    """A function kernel -> (kernel, random legal schedule), for the kernels of one plan in turn. of: the
    strategy that draws them, `schedules` if none is given.
    """
    def choose(kernel: Kernel) -> tuple[Kernel, Schedule]:
        merged = merge_axes(kernel) if draw(st.booleans()) else kernel
        return merged, draw((of or schedules)(merged))
    return choose


@st.composite
def schedules(draw, kernel: Kernel) -> Schedule:
    """Any legal schedule: blocks and tiles, remainders, unrolled axes, lanes anywhere, groups, packs, spilled
    sums."""
    reduced = reduced_axes(kernel)
    lanes_axis = draw(st.sampled_from((None, *(axis for axis in (*kernel.axes, *reduced)
                                               if axis is not kernel.sequential))))
    queues: dict[Node, list[Loop]] = {}
    inner: list[Loop] = []
    for axis in (*kernel.axes, *reduced):
        control, tile = _loops_of(draw, kernel, axis, axis in reduced, axis is lanes_axis)
        queues[axis] = control
        inner += tile
    inner.sort(key=lambda loop: (loop.kind == LANES))
    free = [axis for axis in kernel.axes if axis is not kernel.sequential]
    loops: list[Loop] = []
    for axis in draw(st.lists(st.sampled_from(free), max_size=2, unique=True)) if free else ():
        first = queues[axis].pop(0)
        loops.append(Loop(axis, first.step, GROUP))
    loops += _interleaved(draw, kernel, queues, _may_spill(kernel) and draw(st.booleans()))
    if any(loop.kind == BLOCK for loop in loops) and _spilled(loops, reduced):
        loops = [Loop(loop.axis, loop.step, LOOP if loop.kind == BLOCK else loop.kind) for loop in loops]
    loops += inner
    packs = tuple(pack for pack in (_pack(draw, kernel, loops),) if pack) if draw(st.booleans()) else ()
    return Schedule(tuple(loops), packs)


def _loops_of(draw, kernel: Kernel, axis: Node, is_reduced: bool, lanes: bool) -> tuple[list, list]:
    """(control loops of an axis, its unrolled and lane loops)"""
    step = 1
    tile: list[Loop] = []
    if lanes:
        tile.append(Loop(axis, 1, LANES))
        step = draw(st.sampled_from((2, 4, 8, 16)))
    if axis is not kernel.sequential:
        for _ in range(draw(st.integers(0, 2))):
            kind = draw(st.sampled_from((UNROLL, SPLIT))) if is_reduced else UNROLL
            width = draw(st.sampled_from((2, 3, 4)))
            if step * width <= 64:
                tile.insert(0, Loop(axis, step, kind))
                step *= width
    control = [Loop(axis, step, LOOP)]
    for _ in range(draw(st.integers(0, 2))):
        step *= draw(st.sampled_from((2, 3, 5)))
        kind = BLOCK if is_reduced and draw(st.booleans()) else LOOP
        control.insert(0, Loop(axis, step, kind))
    return control, tile


def _may_spill(kernel: Kernel) -> bool:
    value = kernel.value
    return (value.op is ops.ACCUMULATE and value.arg is ops.ADD and value.dtype is kernel.dtype
            and not any(node.op is ops.LOAD and node.src[0].arg == 0 for node in toposort(value)))


def _spilled(loops: list[Loop], reduced: tuple) -> bool:
    first = next((n for n, loop in enumerate(loops) if loop.axis in reduced), len(loops))
    return any(loop.axis not in reduced for loop in loops[first:])


def _interleaved(draw, kernel: Kernel, queues: dict, spill: bool) -> list[Loop]:
    """The control loops in an order that keeps each axis's own; a running reduction's axis is last."""
    reduced = reduced_axes(kernel)
    late = set(() if spill else reduced) | ({kernel.sequential} if kernel.carried else set())
    loops: list[Loop] = []
    for wanted in (set(queues) - late, late):
        while any(queues[axis] for axis in wanted):
            axis = draw(st.sampled_from([axis for axis in queues if axis in wanted and queues[axis]]))
            loops.append(queues[axis].pop(0))
    return loops


def _pack(draw, kernel: Kernel, loops: list[Loop]) -> Pack | None:
    """A packed operand: laid out by all loops inside the pack over axes that it depends on, in any order."""
    total = accumulation(kernel)
    body = kernel.value if total is None else total.src[0]
    operands = [node for node in toposort(body) if node.op is ops.LOAD and node.src[0].arg != 0]
    if not operands:
        return None
    operand = draw(st.sampled_from(operands))
    axes = {node for node in toposort(operand) if node.op is ops.RANGE}
    controls = [n for n, loop in enumerate(loops) if loop.kind in (LOOP, BLOCK)]
    if not controls or any(static_size(axis) is None for axis in axes):
        return None
    depth = draw(st.sampled_from(controls))
    layout = packed_loops(loops, depth, axes)
    if draw(st.booleans()):
        layout = draw(st.permutations(layout))
    pack = Pack(operand, depth, tuple(layout))
    size = prod(pack_counts(Schedule(tuple(loops)), pack)) * operand.dtype.itemsize
    return pack if size <= LARGEST_LOCAL else None


@st.composite
def cooperative(draw, kernel: Kernel) -> Schedule:
    """A legal schedule whose items work together where the kernel allows: threads over the result and over
    the sum, packed operands that the group shares; else one with threads over the result only.
    """
    reduced = reduced_axes(kernel)
    free = [axis for axis in kernel.axes if axis is not kernel.sequential]
    loops: list[Loop] = []
    late: list[Loop] = []
    tile: list[Loop] = []
    items = 1
    lanes_axis = draw(st.sampled_from((None, *free)))
    for axis in free:
        control, inner = _loops_of(draw, kernel, axis, False, axis is lanes_axis)
        width = draw(st.sampled_from((1, 2, 5, 8)))
        width = width if items * width <= 64 else 1
        items *= width
        step = control[-1].step
        loops.insert(0, Loop(axis, step * width, GROUP))
        loops.append(Loop(axis, step, THREAD))
        tile += inner
    order = draw(st.booleans())
    shared = draw(st.sampled_from((None, *reduced))) if kernel.sequential is None else None
    for axis in reduced:
        control, inner = _loops_of(draw, kernel, axis, True, False)
        if axis is shared and order:
            thread = Loop(axis, control[0].step * draw(st.sampled_from((1, 3))), THREAD)
            if static_size(axis) is not None and static_size(axis) <= thread.step * 16:
                loops.insert(sum(loop.kind == GROUP for loop in loops), thread)
        elif axis is shared:
            width, last = draw(st.sampled_from((2, 3, 8, 9))), control[-1].step
            control = [Loop(axis, last * width, control[0].kind), Loop(axis, last, THREAD)]
        late += control
        tile += inner
    if kernel.sequential is not None:
        late = [Loop(kernel.sequential, 1, LOOP), *late]
    tile.sort(key=lambda loop: loop.kind == LANES)
    loops += late + tile
    pack = _pack(draw, kernel, loops) if kernel.sequential is None and draw(st.booleans()) else None
    return Schedule(tuple(loops), () if pack is None else (pack,))


@st.composite
def mutated(draw, of=None):
    """A function kernel -> (kernel, schedule that was legal before one thing about it was changed)."""
    legal = draw(choices(of))

    def choose(kernel: Kernel) -> tuple[Kernel, Schedule]:
        kernel, schedule = legal(kernel)
        loops, packs = list(schedule.loops), schedule.packs
        place = draw(st.integers(0, len(loops) - 1)) if loops else 0
        change = draw(st.integers(0, 5)) if loops else 6
        loop = loops[place] if loops else None
        if change == 0:
            other = draw(st.integers(0, len(loops) - 1))
            loops[place], loops[other] = loops[other], loops[place]
        elif change == 1:
            kind = draw(st.sampled_from((LOOP, UNROLL, SPLIT, LANES, BLOCK, GROUP) if of is None else
                                        (LOOP, UNROLL, SPLIT, LANES, BLOCK, GROUP, THREAD, MATRIX)))
            loops[place] = Loop(loop.axis, loop.step, kind)
        elif change == 2:
            loops[place] = Loop(loop.axis, draw(st.sampled_from((0, 1, 2, 3, 4, 8))), loop.kind)
        elif change == 3:
            del loops[place]
        elif change == 4:
            loops.insert(draw(st.integers(0, len(loops))), loop)
        elif packs:
            depth = draw(st.integers(0, len(loops)))
            layout = tuple(draw(st.lists(st.integers(0, len(loops)), max_size=4)))
            packs = (Pack(packs[0].operand, depth, draw(st.sampled_from((packs[0].layout, layout)))),)
        return kernel, Schedule(tuple(loops), packs, schedule.matrix)
    return choose
