"""Results that no cache would hold until they are read go past the caches."""
import numpy as np
import pytest

from tests.schedule.common import held, plan_of, prepared
from tests.schedule.running import compare, leaf
from tests.schedule.test_products import chosen
from tiny import Tensor
from tiny.ir.dtype import dtypes
from tiny.schedule import heuristic
from tiny.schedule.axes import merge_axes
from tiny.schedule.record import from_data, to_data
from tiny.schedule.text import schedule_lines
from tiny.target import Target

SMALL = Target("CPU", "x86_64", lanes=64, threads=2, cache_bytes=(256, 1024))


def numbers(*shape: int, dtype=dtypes.float32) -> Tensor:
    return Tensor._wrap(leaf(np.random.default_rng(1).integers(-9, 10, shape), dtype))


GRAPHS = [lambda: numbers(999) + 1, lambda: numbers(40, 33).T * 2, lambda: numbers(1000).cast(dtypes.int64),
          lambda: numbers(1000).cast(dtypes.float16), lambda: numbers(5, 300).pad(((0, 0), (1, 2))),
          lambda: numbers(3000) > 2]


@pytest.mark.parametrize("graph", GRAPHS)
def test_values(graph):
    compare([graph().node], chosen(SMALL))


def test_a_place_that_is_no_multiple_of_a_vector():
    target = numbers(1000)
    target[3:].assign(numbers(997) * 2)
    compare([target.node], chosen(SMALL))


def test_which_results_stream():
    """Large ones that are written once and not read by the same kernel."""
    def streams(graph, target=SMALL) -> bool:
        return heuristic.choose(merge_axes(plan_of(graph).steps[0].kernel), target).streaming
    assert streams(held(257) + 1)
    assert not streams(held(256) + 1)
    assert not streams(held(300, 300).sum(1))
    assert not streams(held(300).cumsum(0))
    assert not streams(held(257) + 1, Target("CPU", "x86_64", lanes=64))
    inplace = held(400)
    inplace.assign(inplace * 2)
    assert not streams(inplace)


def test_the_source_waits_for_what_went_past_the_caches():
    (one,) = prepared(plan_of(held(1000) + 1), SMALL)
    assert "STREAM(f32x16" in one.source.text
    assert one.source.text.rstrip().endswith("STREAMED();\n}")
    assert schedule_lines(one.schedule)[-1] == "results past the caches"
    assert from_data(one.kernel, to_data(one.kernel, one.schedule)) == one.schedule
