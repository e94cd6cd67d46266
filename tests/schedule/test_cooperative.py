"""Work-items of a group that work together, on emulated cards: matrix instructions, memory that a group
shares, sums that its items share. Values are numpy's.
"""
import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.schedule import cards, drawing
from tests.schedule.common import held, plan_of
from tests.schedule.running import compare, leaf, planned, source_of
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node, const, toposort
from tiny.schedule import gpu, record, tensorcore
from tiny.schedule.axes import merge_axes
from tiny.schedule.loops import (
    BLOCK,
    GROUP,
    LANES,
    LOOP,
    MATRIX,
    SPLIT,
    THREAD,
    UNROLL,
    Loop,
    Pack,
    Schedule,
    ScheduleError,
    accumulation,
    check,
    packed_loops,
    reduced_axes,
)

INSTRUCTIONS = [(arch, row) for arch, rows in zip(cards.NAMES, (tensorcore.GFX11, tensorcore.GFX12,
                                                                tensorcore.GFX942), strict=True)
                for row in rows]


@pytest.fixture(scope="module")
def devices():
    with cards.opened() as found:
        yield found


def each_instruction(function):
    return pytest.mark.parametrize("arch,matrix", INSTRUCTIONS, ids=lambda x: getattr(x, "name", x))(function)


def tiled(kernel, matrix, packed):
    """Two waves of two tiles, two steps of the sum at a time."""
    m, n = kernel.axes
    k, = reduced_axes(kernel)
    loops = (Loop(m, 2 * matrix.m, GROUP), Loop(n, 2 * matrix.n, GROUP), Loop(n, matrix.n, THREAD),
             Loop(k, 2 * matrix.k, LOOP), Loop(k, matrix.k, LOOP), Loop(m, matrix.m, UNROLL),
             Loop(m, 1, MATRIX), Loop(n, 1, MATRIX), Loop(k, 1, MATRIX))
    packs = []
    for factor in tensorcore.factors(accumulation(kernel), m, n) if packed else ():
        axes = {node for node in toposort(factor) if node.op is ops.RANGE}
        layout = sorted(packed_loops(loops, 4, axes), key=lambda n: (loops[n].axis is k, n))
        packs.append(Pack(factor, 4, tuple(layout)))
    return Schedule(loops, tuple(packs), matrix)


# -- matrix instructions -------------------------------------------------------------------------------------
@each_instruction
def test_a_product_with_remainders(devices, arch, matrix):
    """Rows, columns and terms that are no multiples of the instruction's, read from where they lie."""
    for dtype in matrix.factors:
        root = cards.product(matrix.m + 9, 2 * matrix.n + 5, 3 * matrix.k + 1, dtype)
        compare([root], lambda kernel: (kernel, tiled(kernel, matrix, False)), device=devices[arch])


@pytest.mark.parametrize("arch,matrix", [next(row for row in INSTRUCTIONS if row[0] == arch)
                                         for arch in cards.NAMES])
def test_a_product_with_remainders_from_shared_memory(devices, arch, matrix):
    root = cards.product(matrix.m + 9, 2 * matrix.n + 5, 3 * matrix.k + 1, matrix.factors[0], turned=True)
    compare([root], lambda kernel: (kernel, tiled(kernel, matrix, True)), device=devices[arch])


@each_instruction
def test_work_before_and_after_a_product(devices, arch, matrix):
    """A factor is rounded first, and the product takes a bias and is rounded, all in one kernel."""
    rows, columns, inner, dtype = matrix.m + 1, matrix.n + 3, 2 * matrix.k, matrix.factors[0]
    random = np.random.default_rng(3)
    wide = dtypes.float32 if dtype.is_float else dtypes.int32
    left = cards.numbers(random, (rows, 1, inner), dtypes.float64 if dtype is wide else wide)
    right = cards.numbers(random, (1, columns, inner), dtype)
    left = Node(ops.CAST, dtype, (left,))
    sides = [Node(ops.EXPAND, None, (side,), (rows, columns, inner)) for side in (left, right)]
    sides = [side if dtype is wide else Node(ops.CAST, wide, (side,)) for side in sides]
    total = Node(ops.REDUCE, None, (Node(ops.MUL, None, tuple(sides)),), (ops.ADD, (2,)))
    bias = Node(ops.EXPAND, None, (cards.numbers(random, (1, columns, 1), wide),), (rows, columns, 1))
    after = Node(ops.MAX, None, (Node(ops.ADD, None, (total, bias)), const(0, wide)))
    root = Node(ops.CAST, dtypes.float16 if dtype.is_float else dtypes.uint8, (after,))
    assert len(planned(root)[0].steps) == 1
    compare([root], lambda kernel: (kernel, tiled(kernel, matrix, True)), device=devices[arch])


def test_bytes_of_either_sign(devices):
    """Each factor brings its own: signed by unsigned."""
    random = np.random.default_rng(1)
    sides = [leaf(random.integers(0 if dtype is dtypes.uint8 else -128, 128, shape), dtype)
             for dtype, shape in ((dtypes.int8, (20, 1, 40)), (dtypes.uint8, (1, 17, 40)))]
    sides = [Node(ops.CAST, dtypes.int32, (Node(ops.EXPAND, None, (side,), (20, 17, 40)),)) for side in sides]
    root = Node(ops.REDUCE, None, (Node(ops.MUL, None, tuple(sides)),), (ops.ADD, (2,)))
    for arch, matrix in (("gfx1100", tensorcore.GFX11[2]), ("gfx1201", tensorcore.GFX12[2])):
        compare([root], lambda kernel, matrix=matrix: (kernel, tiled(kernel, matrix, True)),
                device=devices[arch])


def test_sums_of_bytes_wrap(devices):
    """int8 by int8 added up in int8: the instruction's 32 bits are cut off at the end."""
    random = np.random.default_rng(2)
    sides = [leaf(random.integers(-128, 128, shape), dtypes.int8) for shape in ((20, 1, 40), (1, 17, 40))]
    sides = [Node(ops.EXPAND, None, (side,), (20, 17, 40)) for side in sides]
    root = Node(ops.REDUCE, None, (Node(ops.MUL, None, tuple(sides)),), (ops.ADD, (2,)))
    for arch, matrix in (("gfx1100", tensorcore.GFX11[2]), ("gfx942", tensorcore.GFX942[-1])):
        compare([root], lambda kernel, matrix=matrix: (kernel, tiled(kernel, matrix, False)),
                device=devices[arch])


def test_infinities_do_not_meet_the_zeros_past_an_end(devices):
    """A sum over two axes, one of them in steps that run past its end, where only one factor has it."""
    left, right = np.full((4, 1, 3, 16), np.inf, np.float16), np.ones((1, 4, 1, 16), np.float16)
    sides = [Node(ops.CAST, dtypes.float32, (Node(ops.EXPAND, None, (leaf(side, dtypes.float16),),
                                                  (4, 4, 3, 16)),)) for side in (left, right)]
    root = Node(ops.REDUCE, None, (Node(ops.MUL, None, tuple(sides)),), (ops.ADD, (2, 3)))

    def choose(kernel):
        m, n = kernel.axes
        extra, k = reduced_axes(kernel)
        return kernel, Schedule((Loop(m, 16, GROUP), Loop(n, 16, GROUP), Loop(extra, 2, LOOP),
                                 Loop(k, 16, LOOP), Loop(extra, 1, UNROLL), Loop(m, 1, MATRIX),
                                 Loop(n, 1, MATRIX), Loop(k, 1, MATRIX)), (), tensorcore.GFX11[0])
    compare([root], choose, device=devices["gfx1100"])


@pytest.mark.parametrize("arch", cards.NAMES)
def test_a_wave_with_many_tiles_stores_its_elements_apart(devices, arch):
    """More elements of one item, none beside another in memory, than are stored one by one elsewhere."""
    matrix = tensorcore.instructions(devices[arch].target)[0]
    rows = (64 // matrix.c.elements + 1) * matrix.m

    def choose(kernel):
        m, n = kernel.axes
        k, = reduced_axes(kernel)
        return kernel, Schedule((Loop(m, rows, GROUP), Loop(n, matrix.n, GROUP), Loop(k, matrix.k, LOOP),
                                 Loop(m, matrix.m, UNROLL),
                                 Loop(m, 1, MATRIX), Loop(n, 1, MATRIX), Loop(k, 1, MATRIX)), (), matrix)
    root = cards.product(rows, matrix.n, matrix.k, matrix.factors[0])
    compare([root], choose, device=devices[arch])


def test_items_that_store_many_lanes_apart_do_not_meet(devices):
    """Each work-item has a tile of 128 rows of one column, in lanes."""
    def choose(kernel):
        m, n = kernel.axes
        k, = reduced_axes(kernel)
        return kernel, Schedule((Loop(m, 128, GROUP), Loop(n, 16, GROUP), Loop(n, 1, THREAD),
                                 Loop(k, 1, LOOP), Loop(m, 16, UNROLL), Loop(m, 1, LANES)))
    compare([cards.product(128, 48, 5, dtypes.float32)], choose, device=devices["gfx1100"])


# -- sums that items share -----------------------------------------------------------------------------------
SHARED = [(dtypes.float32, ops.ADD), (dtypes.int32, ops.MAX), (dtypes.uint8, ops.MIN),
          (dtypes.float16, ops.MAX), (dtypes.float64, ops.ADD), (dtypes.bool, ops.ADD)]


@pytest.mark.parametrize("arch,items", [("gfx1100", 24), ("gfx1201", 2), ("gfx942", 64), ("gfx942", 3)])
def test_a_sum_shared_by_items(devices, arch, items):
    """Numbers of items that are a power of two or not, sums with a remainder, several rows to a group."""
    roots = []
    for dtype, op in SHARED:
        data = cards.numbers(np.random.default_rng(5), (7, 333), dtype) if dtype is not dtypes.bool \
            else leaf(np.arange(7 * 333).reshape(7, 333) % 111 == 5, dtype)
        roots.append(Node(ops.REDUCE, None, (data,), (op, (1,))))

    def choose(kernel):
        row, = kernel.axes
        k, = reduced_axes(kernel)
        return kernel, Schedule((Loop(row, 4, GROUP), Loop(row, 2, THREAD), Loop(k, 2 * items, LOOP),
                                 Loop(k, 2, THREAD), Loop(row, 1, UNROLL), Loop(k, 1, UNROLL)))
    compare(roots, choose, device=devices[arch])


@pytest.mark.parametrize("arch", cards.NAMES)
def test_columns_whose_sums_are_shared_by_items_far_apart(devices, arch):
    data = cards.numbers(np.random.default_rng(6), (333, 40), dtypes.float32)
    roots = [Node(ops.REDUCE, None, (data,), (op, (0,))) for op in (ops.ADD, ops.MAX)]

    def choose(kernel):
        column, = kernel.axes
        k, = reduced_axes(kernel)
        return kernel, Schedule((Loop(column, 16, GROUP), Loop(k, 32, THREAD), Loop(column, 1, THREAD),
                                 Loop(k, 8, BLOCK), Loop(k, 2, LOOP), Loop(k, 1, SPLIT)))
    compare(roots, choose, device=devices[arch])


# -- any schedule --------------------------------------------------------------------------------------------
# compiling and translating a kernel takes a second: failures are shown as found, not made small
SLOW = settings(max_examples=15, suppress_health_check=list(HealthCheck), phases=(Phase.generate,))


@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
def test_any_cooperative_schedule_computes_a_reduction(devices, arch):
    """Threads over results and over sums, packed operands in shared memory, lanes, tiles, remainders."""
    @SLOW
    @given(drawing.reductions(), drawing.choices(drawing.cooperative))
    def agree(graph, choose):
        compare([graph], choose, device=devices[arch])
    agree()


def test_any_cooperative_schedule_computes_a_kernel_of_symbolic_size(devices):
    @SLOW
    @given(drawing.reductions(symbolic=True), drawing.choices(drawing.cooperative))
    def agree(graph, choose):
        compare([graph], choose, device=devices["gfx1201"])
    agree()


def test_a_changed_cooperative_schedule_is_refused_or_computes_the_kernel(devices):
    @SLOW
    @given(drawing.reductions(), drawing.mutated(drawing.cooperative))
    def agree(graph, choose):
        try:
            compare([graph], choose, device=devices["gfx1100"])
        except ScheduleError:
            pass
    agree()


# -- what is chosen ------------------------------------------------------------------------------------------
def kinds(schedule):
    return {loop.kind for loop in schedule.loops}


@pytest.mark.parametrize("arch", cards.NAMES)
def test_products_as_chosen(devices, arch):
    """Sizes with and without remainders: matrix instructions where there are any for the type."""
    device, chosen = devices[arch], []

    def choose(kernel):
        merged = merge_axes(kernel)
        chosen.append(gpu.choose(merged, device.target))
        return merged, chosen[-1]
    types = {dtype for row in tensorcore.instructions(device.target) for dtype in row.factors}
    for dtype, size in itertools.product((dtypes.float16, dtypes.bfloat16, dtypes.int8, dtypes.float32),
                                         ((64, 64, 64), (70, 33, 129))):
        compare([cards.product(*size, dtype, turned=size[0] == 70)], choose, device=device)
        assert (chosen[-1].matrix is not None) is (dtype in types)


@pytest.mark.parametrize("arch", cards.NAMES)
def test_sums_as_chosen(devices, arch):
    """All elements, rows, columns and the middle of three axes."""
    device, chosen = devices[arch], []

    def choose(kernel):
        merged = merge_axes(kernel)
        chosen.append(gpu.choose(merged, device.target))
        return merged, chosen[-1]
    random = np.random.default_rng(8)
    for shape, axes in (((20_000,), (0,)), ((30, 1000), (1,)), ((1000, 30), (0,)), ((3, 300, 7), (1,))):
        roots = [Node(ops.REDUCE, None, (cards.numbers(random, shape, dtype),), (op, axes))
                 for dtype, op in ((dtypes.float32, ops.ADD), (dtypes.int64, ops.MIN))]
        compare(roots, choose, device=device)
        reduced = chosen[-1].loops
        assert sum(loop.kind == THREAD for loop in reduced) >= 1


def test_long_sums_do_not_stick(devices):
    """Ones beyond 2 ** 24, which a single float32 cannot count."""
    ones = Node(ops.EXPAND, None, (leaf(np.ones((1, 1), np.float32), dtypes.float32),), (2, 2 ** 24 + 2))
    root = Node(ops.REDUCE, None, (ones,), (ops.ADD, (1,)))
    device = devices["gfx1100"]
    compare([root], lambda kernel: (kernel, gpu.choose(kernel, device.target)), device=device)


@pytest.mark.parametrize("arch", ["gfx1100", "gfx942"])
def test_a_long_product_as_chosen_is_added_up_in_pieces(devices, arch):
    device, chosen = devices[arch], []

    def choose(kernel):
        chosen.append(gpu.choose(kernel, device.target))
        return kernel, chosen[-1]
    compare([cards.product(20, 33, 9001, dtypes.float16)], choose, device=device)
    assert {BLOCK, MATRIX} <= kinds(chosen[-1])


@pytest.mark.parametrize("arch,wanted", [
    ("gfx1100", {"v_wmma_f32_16x16x16_f16", "ds_store_b128", "ds_load_b128", "s_barrier"}),
    ("gfx1201", {"v_wmma_f32_16x16x16_f16", "ds_store_b128", "ds_load_b128", "s_barrier_signal",
                 "s_barrier_wait"}),
    ("gfx942", {"v_mfma_f32_32x32x8_f16", "ds_write_b128", "ds_read_b64", "s_barrier"}),
])
def test_the_machine_code_of_a_product(devices, arch, wanted):
    plan, _ = planned(cards.product(128, 128, 128, dtypes.float16))
    kernel, device = plan.steps[0].kernel, devices[arch]
    source, *_ = source_of("product", kernel, gpu.choose(kernel, device.target), 3, "amdgcn")
    found = cards.mnemonics(device.compile([source])[0], "product")
    assert wanted <= found, sorted(found)


def test_the_machine_code_of_a_shared_sum(devices):
    plan, _ = planned(Node(ops.REDUCE, None, (leaf(np.zeros((4, 5000)), dtypes.float32),), (ops.ADD, (1,))))
    kernel, device = plan.steps[0].kernel, devices["gfx1100"]
    source, *_ = source_of("sums", kernel, gpu.choose(kernel, device.target), 2, "amdgcn")
    found = cards.mnemonics(device.compile([source])[0], "sums")
    assert {"s_barrier", "ds_store_b32"} <= found and any(name.startswith("ds_load") for name in found)


# -- what is refused -----------------------------------------------------------------------------------------
PRODUCT = plan_of(held(64, 64, dtype=dtypes.float16) @ held(64, 64, dtype=dtypes.float16)).steps[0].kernel
WHOLE = plan_of(held(64, 64) @ held(64, 64)).steps[0].kernel
WMMA = tensorcore.GFX11[0]


def matrix_loops(kernel, *outer, m=16, n=16, k=16, inner=None):
    """A block for each group, loops outside and inside the sum, then the instruction."""
    (rows, columns), (terms,) = kernel.axes, reduced_axes(kernel)
    last = inner if inner is not None else [Loop(axis, 1, MATRIX) for axis in (rows, columns, terms)]
    return (Loop(rows, m, GROUP), Loop(columns, n, GROUP), *outer, Loop(terms, k, LOOP), *last)


def test_matrix_loops_that_are_not_the_instruction_are_refused():
    m, n = PRODUCT.axes
    k, = reduced_axes(PRODUCT)
    check(PRODUCT, Schedule(matrix_loops(PRODUCT), (), WMMA))
    three = [Loop(axis, 1, MATRIX) for axis in (m, n, k)]
    for loops, message in (
        (matrix_loops(PRODUCT, m=8), r"wmma_f32_16x16x16_f16: its loops are \(8, 16, 16\) wide"),
        (matrix_loops(PRODUCT, inner=three[::-1]), "m and n are axes of the result"),
        (matrix_loops(PRODUCT, inner=[*three[:2], Loop(k, 1, UNROLL)]), "are the innermost"),
        (matrix_loops(PRODUCT, m=32, inner=[Loop(m, 16, LANES), *three]), "lanes"),
        (matrix_loops(PRODUCT, k=32, inner=[Loop(k, 16, SPLIT), *three]), "no lanes, separate sums"),
    ):
        with pytest.raises(ScheduleError, match=message):
            check(PRODUCT, Schedule(loops, (), WMMA))
    with pytest.raises(ScheduleError, match="loop 3 is matrix; the schedule names no instruction"):
        check(PRODUCT, Schedule(matrix_loops(PRODUCT)))
    with pytest.raises(ScheduleError, match="three matrix loops"):
        check(PRODUCT, Schedule(matrix_loops(PRODUCT, m=1, n=1, k=1, inner=()), (), WMMA))


def test_other_types_and_other_sums_are_refused():
    with pytest.raises(ScheduleError, match="it multiplies float16, not float32 by float32"):
        check(WHOLE, Schedule(matrix_loops(WHOLE), (), WMMA))
    half = held(64, 64, dtype=dtypes.float16)
    rounded = plan_of((half.reshape(64, 1, 64) * half.reshape(1, 64, 64)).sum(2)).steps[0].kernel
    with pytest.raises(ScheduleError, match="products of one factor along m"):
        check(rounded, Schedule(matrix_loops(rounded), (), WMMA))
    largest = plan_of((held(64, 1, 64) * held(1, 64, 64)).max(2)).steps[0].kernel
    with pytest.raises(ScheduleError, match="products of one factor along m"):
        check(largest, Schedule(matrix_loops(largest, k=4), (), tensorcore.GFX942[-3]))


def test_work_together_that_cannot_be_is_refused():
    m, n = WHOLE.axes
    k, = reduced_axes(WHOLE)
    left = next(node for node in toposort(WHOLE.value) if node.op is ops.LOAD)
    row, column, terms = Loop(m, 1, GROUP), Loop(n, 1, LOOP), Loop(k, 1, THREAD)
    for loops, packs, message in (
        ((row, Loop(n, 1, THREAD), Loop(k, 32, LOOP), terms), (), "2048 work-items in a group"),
        ((row, terms, column), (), "sums that stay in registers"),
        ((Loop(k, 8, THREAD), Loop(m, 8, THREAD), Loop(k, 1, THREAD), Loop(m, 1, LOOP), column), (),
         "threads that share a sum stand together"),
        ((Loop(m, 64, GROUP), Loop(m, 1, THREAD), Loop(n, 8, LOOP), Loop(k, 1, LOOP), Loop(n, 1, UNROLL)),
         (Pack(left, 3, (3,)),), r"are \[1, 3\]"),
    ):
        with pytest.raises(ScheduleError, match=message):
            check(WHOLE, Schedule(loops, packs))
    running = plan_of(held(6, 80).cumsum(1)).steps[0].kernel
    data = next(node for node in toposort(running.value) if node.op is ops.LOAD)
    rows, along = running.axes
    with pytest.raises(ScheduleError, match="walked in order"):
        check(running, Schedule((Loop(rows, 1, THREAD), Loop(along, 1, LOOP)), (Pack(data, 1, (0, 1)),)))


def test_a_schedule_with_a_matrix_instruction_is_kept_as_data():
    schedule = tiled(PRODUCT, WMMA, True)
    assert record.from_data(PRODUCT, record.to_data(PRODUCT, schedule)) == schedule
    assert kinds(schedule) == {GROUP, THREAD, LOOP, UNROLL, MATRIX}
