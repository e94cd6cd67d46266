"""The search: what it proposes is legal and computes the kernel, and it ends at the best it can reach."""
import random
from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schedule import drawing, running
from tests.schedule.common import TARGET, held, plan_of, prepared
from tiny.ir.dtype import dtypes
from tiny.schedule.loops import (
    BLOCK,
    GROUP,
    LANES,
    LONGEST_SUM,
    LOOP,
    SPLIT,
    UNROLL,
    Loop,
    Schedule,
    ScheduleError,
    check,
    longest_sum,
    reduced_axes,
)
from tiny.schedule.record import from_data, to_data
from tiny.schedule.search import neighbours, search


def matmul():
    """A kernel and what the heuristics make of it."""
    one, = prepared(plan_of(held(64, 96) @ held(96, 64)))
    return one.kernel, one.schedule


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_what_is_proposed_computes_the_kernel(data):
    root = data.draw(drawing.reductions())

    def choose(kernel):
        one = data.draw(drawing.choices())(kernel)
        near = list(neighbours(*one, TARGET))
        return (one[0], data.draw(st.sampled_from(near))) if near else one
    running.compare([root], choose)


def test_every_kind_of_change_is_proposed():
    kernel, schedule = matmul()
    near = list(neighbours(kernel, schedule, TARGET))
    assert len(near) == len(set(near)) > 20
    for one in near:
        check(kernel, one)
    lanes = {next((loop.axis for loop in one.loops if loop.kind == LANES), None) for one in near}
    groups = {tuple((loop.axis, loop.step) for loop in one.loops if loop.kind == GROUP) for one in near}
    assert len(lanes) >= 3 and None in lanes
    assert len(groups) >= 4
    assert any(one.packs for one in near)
    assert {len(one.loops) for one in near} >= {len(schedule.loops) + change for change in (-1, 0, 1)}


def test_copies_stay_where_loops_come_and_go():
    """Before the loop over m and with the lanes of n innermost, where nothing takes these away."""
    one, = prepared(plan_of(held(512, 512) @ held(512, 512)))
    kernel, schedule = one.kernel, one.schedule
    pack, = schedule.packs
    m, n = kernel.axes
    near = [other for other in neighbours(kernel, schedule, TARGET) if other.loops != schedule.loops]
    assert {len(other.loops) for other in near} == {len(schedule.loops) + change for change in (-1, 0, 1)}
    for other in near:
        kept, = other.packs
        before, last = other.loops[kept.depth], other.loops[kept.layout[-1]]
        assert (kept.operand, before) == (pack.operand, Loop(m, before.step, LOOP))
        assert last.kind == LANES or all(loop.kind != LANES or loop.axis is not n for loop in other.loops)


@pytest.mark.parametrize("width", [1, 3])
def test_it_walks_to_the_best_that_small_changes_reach(width):
    """With times that fall with the number of points written out, it ends where no more may be."""
    kernel, schedule = matmul()

    def seconds(one: Schedule) -> float:
        steps = [loop.step for loop in one.loops if loop.kind == UNROLL]
        return 1.0 / (1 + len(steps) + sum(steps))
    asked = []

    def measure(some):
        asked.extend(some)
        return [seconds(one) for one in some]
    found, time = search(kernel, schedule, TARGET, width, measure)
    assert time == seconds(found) == min(map(seconds, asked)) < seconds(schedule)
    assert len(asked) == len(set(asked)), "nothing is timed twice"


def test_it_keeps_the_start_where_everything_else_fails():
    kernel, schedule = matmul()
    found, time = search(kernel, schedule, TARGET, 2,
                         lambda some: [1.0 if one == schedule else inf for one in some])
    assert (found, time) == (schedule, 1.0)


@pytest.mark.parametrize("shape,axis", [((100_000, 64), 0), ((64, 700_001), 1)])
def test_a_search_keeps_long_sums_in_pieces(shape, axis):
    """A float32 that takes one value after the other sticks at 2 ** 24, and loses digits before."""
    one, = prepared(plan_of(held(*shape).sum(axis)))
    kernel, schedule = one.kernel, one.schedule
    whole = Schedule(tuple(loop for loop in schedule.loops if loop.kind != BLOCK))
    assert longest_sum(kernel, whole) > LONGEST_SUM
    generator = random.Random(1)
    for _ in range(6):
        near = list(neighbours(kernel, schedule, TARGET))
        assert near and all(longest_sum(kernel, one) <= LONGEST_SUM for one in near)
        schedule = generator.choice(near)


def test_how_long_a_sum_is():
    """100 points in all: in blocks, with sums of their own, in the destination, of integers."""
    def steps(*loops, dtype=None):
        kernel = plan_of(held(64, 100, dtype=dtype).sum(1)).steps[0].kernel
        axes = {"r": kernel.axes[0], "k": reduced_axes(kernel)[0]}
        schedule = Schedule(tuple(Loop(axes[name], step, kind) for name, step, kind in loops))
        check(kernel, schedule)
        return longest_sum(kernel, schedule)
    row = ("r", 1, LOOP)
    assert steps(row, ("k", 1, LOOP)) == 100
    assert steps(row, ("k", 5, LOOP), ("k", 1, UNROLL)) == 100
    assert steps(row, ("k", 5, LOOP), ("k", 1, SPLIT)) == 20
    assert steps(row, ("k", 4, LOOP), ("k", 1, LANES)) == 25
    assert steps(row, ("k", 30, BLOCK), ("k", 1, LOOP)) == 30
    assert steps(row, ("k", 2, BLOCK), ("k", 1, LOOP)) == 50
    assert steps(("k", 40, LOOP), row, ("k", 1, LOOP)) == 40
    assert steps(row, ("k", 1, LOOP), dtype=dtypes.int32) == 0


def test_a_schedule_as_data_comes_back_the_same():
    kernel, schedule = matmul()
    streaming = replace(schedule, streaming=True)
    for one in [schedule, *neighbours(kernel, schedule, TARGET), *neighbours(kernel, streaming, TARGET)]:
        assert from_data(kernel, to_data(kernel, one)) == one


@pytest.mark.parametrize("data", [{}, {"loops": [[9, 1, "loop"]], "packs": []}, {"loops": [], "packs": []},
                                  {"loops": None, "packs": []}, {"loops": [[0, 1, "spin"]], "packs": []}])
def test_data_of_another_kernel_is_refused(data):
    kernel, _ = matmul()
    with pytest.raises(ScheduleError):
        from_data(kernel, data)
