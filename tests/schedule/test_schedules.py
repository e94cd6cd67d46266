"""Random kernels under random legal schedules compute what numpy does; illegal ones are refused by name."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schedule.common import held, plan_of
from tests.schedule.drawing import choices, graphs, mutated, reductions
from tests.schedule.running import compare, leaf
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node, toposort, variable
from tiny.schedule.loops import (
    BLOCK,
    GROUP,
    LANES,
    LOOP,
    SPLIT,
    THREAD,
    UNROLL,
    Loop,
    Pack,
    Schedule,
    ScheduleError,
    check,
    reduced_axes,
)


@settings(max_examples=60)
@given(graphs(), choices())
def test_any_legal_schedule_computes_the_kernel(graph, choose):
    """Whatever the tiles, unrolled axes, lanes, groups and packed operands."""
    compare([graph], choose)


@settings(max_examples=60)
@given(reductions(), choices())
def test_any_legal_schedule_computes_a_reduction(graph, choose):
    """Also with lanes along the sum, several sums at a time, and sums that wait in the destination."""
    compare([graph], choose)


@settings(max_examples=40)
@given(st.one_of(graphs(symbolic=True), reductions(symbolic=True)), choices())
def test_any_legal_schedule_computes_a_kernel_of_symbolic_size(graph, choose):
    compare([graph], choose)


@settings(max_examples=60)
@given(st.one_of(graphs(most=2), reductions(), reductions()), mutated())
def test_a_changed_schedule_is_refused_or_computes_the_kernel(graph, choose):
    """What `check` lets through is right, whatever it looks like."""
    try:
        compare([graph], choose)
    except ScheduleError:
        pass


# -- what is refused -----------------------------------------------------------------------------------------
PRODUCT = plan_of(held(12, 40) @ held(40, 24)).steps[0].kernel
M, N = PRODUCT.axes
K, = reduced_axes(PRODUCT)
LEFT, RIGHT = (node for node in toposort(PRODUCT.value) if node.op is ops.LOAD)
ROW, COLUMN, SUM = Loop(M, 1, LOOP), Loop(N, 1, LOOP), Loop(K, 1, LOOP)
OTHER = Node(ops.RANGE, None, PRODUCT.axes[0].src, 77)


@pytest.mark.parametrize("loops,message", [
    ([ROW, COLUMN], f"axis {K.arg}: its loops end at step None"),
    ([ROW, COLUMN, Loop(K, 4, LOOP)], f"axis {K.arg}: its loops end at step 4"),
    ([ROW, COLUMN, SUM, Loop(OTHER, 1, LOOP)], "loop 3, loop over axis 77 by 1: the kernel has no such axis"),
    ([Loop(M, 2, LOOP), Loop(M, 4, LOOP), ROW, COLUMN, SUM], "loop 1, .*steps must divide one another"),
    ([Loop(M, 6, LOOP), Loop(M, 4, LOOP), ROW, COLUMN, SUM], "loop 1, .*steps must divide one another"),
    ([Loop(M, 0, LOOP), COLUMN, SUM], "loop 0, .*steps"),
    ([ROW, Loop(N, 1, GROUP), SUM], "loop 1, group .*outermost"),
    ([Loop(K, 1, GROUP), ROW, COLUMN], "loop 0, group .*free axes"),
    ([ROW, Loop(N, 1, THREAD), SUM], "loop 1, thread .*outermost"),
    ([ROW, Loop(N, 4, LOOP), SUM, Loop(N, 1, SPLIT)], "loop 3, split .*only a reduced axis"),
    ([Loop(M, 4, BLOCK), ROW, COLUMN, SUM], "loop 0, block .*only a reduced axis"),
    ([Loop(M, 1, UNROLL), COLUMN, SUM], "loop 0, unroll .*comes after the loops on its axis"),
    ([ROW, Loop(N, 8, LOOP), SUM, Loop(N, 2, LANES), Loop(N, 1, UNROLL)], "loop 3, lanes .*lanes last"),
    ([ROW, Loop(N, 12, LOOP), SUM, Loop(N, 1, LANES)], "loop 3, lanes .*12 lanes; .* power of two"),
    ([Loop(M, 4, LOOP), Loop(N, 4, LOOP), SUM, Loop(M, 1, LANES), Loop(N, 1, LANES)], "only one loop"),
    ([Loop(M, 8, LOOP), COLUMN, SUM, Loop(M, 4, UNROLL), Loop(M, 1, LOOP)], "loop 4, .*inside an unrolled"),
    ([Loop(K, 8, BLOCK), ROW, SUM, COLUMN], "taken apart cannot also leave sums"),
])
def test_illegal_loops_are_refused_by_name(loops, message):
    with pytest.raises(ScheduleError, match=message):
        check(PRODUCT, Schedule(tuple(loops)))


@pytest.mark.parametrize("pack,message", [
    (Pack(LEFT, 7, ()), "pack 0, before loop 7: it stands before no loop"),
    (Pack(LEFT, 0, (0, 1, 3)), "pack 0, before loop 0: it stands before no loop"),
    (Pack(LEFT, 1, (3,)), r"layout is \(3,\); the loops inside .* depends on are \[1, 3\]"),
    (Pack(LEFT, 1, (1, 2, 3)), "its layout"),
    (Pack(PRODUCT.value, 1, (1, 2, 3)), "its operand is a sum, or made of one"),
    (Pack(Node(ops.LOAD, None, (LEFT.src[0], N)), 1, (2,)), "its operand is no part of the kernel's value"),
    (Pack(Node(ops.CONST, LEFT.dtype, (), 1.0), 1, ()), "its operand is no part .* that comes from memory"),
])
def test_illegal_packs_are_refused(pack, message):
    loops = (Loop(M, 4, GROUP), ROW, COLUMN, SUM)
    with pytest.raises(ScheduleError, match=message):
        check(PRODUCT, Schedule(loops, (pack,)))


def test_packs_larger_than_a_stack_are_refused():
    kernel = plan_of(held(1024, 1024) @ held(1024, 8)).steps[0].kernel
    left = next(node for node in toposort(kernel.value) if node.op is ops.LOAD and node.src[0].arg == 1)
    loops = [Loop(axis, 1, LOOP) for axis in (*kernel.axes, *reduced_axes(kernel))]
    with pytest.raises(ScheduleError, match="4194304 bytes of local memory, more than 1048576"):
        check(kernel, Schedule(tuple(loops), (Pack(left, 0, (0, 2)),)))


def test_a_packed_operand_of_symbolic_size_is_refused():
    rows = variable("n", 1, 12).bind(5)
    kernel = plan_of(held(12, 40)[:rows] @ held(40, 24)).steps[0].kernel
    loops = [Loop(axis, 1, LOOP) for axis in (*kernel.axes, *reduced_axes(kernel))]
    left = next(node for node in toposort(kernel.value) if node.op is ops.LOAD and node.src[0].arg == 1)
    with pytest.raises(ScheduleError, match="axis of symbolic size"):
        check(kernel, Schedule(tuple(loops), (Pack(left, 0, (0, 2)),)))


def test_sums_wait_in_the_destination_only_where_they_are_the_whole_value():
    """A product with something done after it, or rounded, needs its sums in registers to the end."""
    spilled = (SUM, ROW, COLUMN)
    check(PRODUCT, Schedule(spilled))
    for graph in ((held(12, 40) @ held(40, 24)).relu(), held(12, 40, 24).max(1)):
        kernel = plan_of(graph).steps[0].kernel
        loops = tuple(Loop(axis, 1, LOOP) for axis in (*reduced_axes(kernel), *kernel.axes))
        with pytest.raises(ScheduleError, match="only when they are the kernel's whole value"):
            check(kernel, Schedule(loops))


def test_a_running_reduction_is_walked_in_order():
    kernel = plan_of(held(6, 8).cumsum(0)).steps[0].kernel
    first, second = kernel.axes
    for loops in ([Loop(second, 1, LOOP), Loop(first, 2, LOOP), Loop(first, 1, UNROLL)],
                  [Loop(first, 1, GROUP), Loop(second, 1, LOOP)],
                  [Loop(first, 1, LOOP), Loop(second, 1, LOOP)]):
        with pytest.raises(ScheduleError):
            check(kernel, Schedule(tuple(loops)))
    check(kernel, Schedule((Loop(second, 1, LOOP), Loop(first, 1, LOOP))))


def test_a_copy_holds_what_was_written_out_before_it():
    """An unrolled loop may stand outside the loop that a copy is made before: the copy has all its points."""
    random = np.random.default_rng(4)
    sides = [leaf(random.integers(-3, 4, shape), dtypes.float32) for shape in ((10, 1, 7), (1, 5, 7))]
    pair = [Node(ops.EXPAND, None, (side,), (10, 5, 7)) for side in sides]
    root = Node(ops.REDUCE, None, (Node(ops.MUL, None, tuple(pair)),), (ops.ADD, (2,)))

    def choose(kernel):
        rows, columns = kernel.axes
        terms, = reduced_axes(kernel)
        left = next(node for node in toposort(kernel.value) if node.op is ops.LOAD and node.src[0].arg == 1)
        loops = (Loop(rows, 4, LOOP), Loop(rows, 1, UNROLL), Loop(columns, 1, LOOP), Loop(terms, 1, LOOP))
        return kernel, Schedule(loops, (Pack(left, 3, (1, 3)),))
    compare([root], choose)
