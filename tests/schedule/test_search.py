"""The search: what it proposes is legal and computes the kernel, and it ends at the best it can reach."""
from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schedule import drawing, running
from tests.schedule.common import TARGET, held, plan_of, prepared
from tiny.schedule.loops import GROUP, LANES, UNROLL, Schedule, ScheduleError, check
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
