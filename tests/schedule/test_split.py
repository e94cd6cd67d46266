"""Long reductions are shared out among threads, and give the same bits however many there are."""
import numpy as np
import pytest

from tests.schedule.common import held, plan_of
from tests.schedule.running import compare, leaf, planned, run_plan
from tests.schedule.test_products import chosen, machine
from tiny import Tensor, Variable
from tiny.ir.dtype import dtypes
from tiny.schedule import heuristic
from tiny.schedule.axes import merge_axes
from tiny.schedule.loops import GROUP, UNROLL
from tiny.schedule.split import LONG

SIZE = 1 << 19


def numbers(*shape: int, dtype=dtypes.float32) -> Tensor:
    return Tensor._wrap(leaf(np.random.default_rng(3).integers(-9, 10, shape), dtype))


GRAPHS = [lambda: numbers(SIZE).sum(), lambda: numbers(64, SIZE // 32).mean(),
          lambda: numbers(3, SIZE).max(1),
          lambda: numbers(SIZE, 2).min(0), lambda: numbers(SIZE).argmax(), lambda: numbers(SIZE + 1).sum(),
          lambda: numbers(SIZE) @ numbers(SIZE), lambda: (numbers(8, 16, SIZE // 64) * 2).sum((0, 2)) + 1,
          lambda: numbers(SIZE, dtype=dtypes.int64).sum(), lambda: numbers(SIZE).cast(dtypes.float16).sum()]


@pytest.mark.parametrize("graph", GRAPHS)
def test_values(graph):
    compare([graph().node], chosen(machine()))


def test_a_long_sum_becomes_two_kernels():
    first, second = plan_of(held(LONG).sum()).steps
    assert [axis.src[0].arg for axis in first.kernel.axes] == [128]
    assert not second.kernel.axes
    first, second = plan_of(held(LONG).half().sum()).steps
    assert first.kernel.dtype is dtypes.float32 and second.kernel.dtype is dtypes.float16, "rounded once"


@pytest.mark.parametrize("shape", [(64, 4096), (300, 1111), (65, 5000)])
def test_rows_are_added_up_as_they_lie_in_memory(shape):
    """A few at a time, remainders of rows and columns included."""
    root = (numbers(*shape) * 2).sum(0).node
    plan, leaves = planned(root)
    results = [run_plan(plan, leaves, [root], chosen(machine(threads)))[0] for threads in (1, 2, 7)]
    assert all(result.tobytes() == results[0].tobytes() for result in results)
    compare([root], chosen(machine()))
    schedule = heuristic.choose(merge_axes(plan.steps[0].kernel), machine())
    assert [loop.step for loop in schedule.loops if loop.kind in (GROUP, UNROLL)] == [1024, 1]


def test_what_stays_one_kernel():
    rows = Variable("n", 1, LONG).bind(LONG)
    long = held(LONG)
    others = held(LONG // 2).sum(), held(4096, 4096).sum(0), held(LONG + 1).sum()
    for graph in (*others, long[:rows].sum()):
        assert len(plan_of(graph).steps) == 1


def test_the_number_of_threads_changes_no_bit():
    values = np.random.default_rng(0).standard_normal(SIZE)
    root = Tensor._wrap(leaf(values, dtypes.float32)).sum().node
    plan, leaves = planned(root)
    results = [run_plan(plan, leaves, [root], chosen(machine(threads)))[0] for threads in (1, 2, 7)]
    assert all(result.tobytes() == results[0].tobytes() for result in results)


def test_several_results_share_what_they_need():
    """A changed reduction stays the same node for all that read it, and results keep their order."""
    x = numbers(SIZE)
    total = x.sum()
    roots = [(total * 2).node, x.max().node, total.node, (x[:5] - total).node]
    compare(roots, chosen(machine()))
