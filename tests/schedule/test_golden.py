"""Typical graphs: the plan with its kernels and schedules, and the C source, as text kept in tests/golden.

A difference is to be read like code; `pytest --update-golden` writes the new text.
"""
import pytest

from tests.schedule.common import held, plan_of, prepared
from tiny import Tensor, Variable, dtypes
from tiny.frontend.quantised import DEQUANTISE
from tiny.schedule.text import plan_text
from tiny.target import Target


def chain():
    x, y = held(1000), held(1000)
    return (x * 2 + y).relu() - x.abs()


def matmul():
    return held(96, 128) @ held(128, 80)


def linear():
    return (held(64, 128) @ held(128, 96) + held(96)).relu()


def softmax():
    return held(32, 100).softmax()


def layernorm():
    return held(16, 256).layernorm()


def convolution():
    return held(2, 8, 14, 14).conv2d(held(16, 8, 3, 3), held(16), padding=1)


def attention():
    """One query over a cache of n rows: n changes from launch to launch."""
    size = Variable("n", 1, 512).bind(7)
    query, keys, values = held(4, 1, 64), held(4, 512, 64), held(4, 512, 64)
    scores = query @ keys[:, :size].transpose(1, 2) * 0.125
    return scores.softmax() @ values[:, :size]


def quantised_product():
    """A vector by Q4_1 weights that stay as bytes: 20 bytes hold 32 weights."""
    blocks = held(256 * 512 // 32, 20, dtype=dtypes.uint8)
    weights = DEQUANTISE["Q4_1"](blocks).reshape(256, 512)
    return held(1, 512) @ weights.T


def embedding():
    return held(1000, 64)[held(12, dtype=dtypes.int32)]


def scatter_add():
    index = held(50, dtype=dtypes.int32).reshape(50, 1).expand(50, 16)
    return held(20, 16).scatter_reduce(0, index, held(50, 16), "sum")


def cumulative_sum():
    return held(24, 64).cumsum(0)


def write_through_a_view():
    x = held(32, 48)
    x[4:20, ::2].assign(x[4:20, 1::2] * 3)
    return x


GRAPHS = [chain, matmul, linear, softmax, layernorm, convolution, attention, quantised_product, embedding,
          scatter_add, cumulative_sum, write_through_a_view]


GPU = Target("AMD", "gfx1100", "amdgcn", lanes=32, threads=96, work_items=1024, local_bytes=1 << 16)


def half_linear():
    """On a matrix instruction, with what comes after the product."""
    half = dtypes.float16
    return (held(256, 128, dtype=half) @ held(128, 192, dtype=half) + held(192, dtype=half)).relu()


def rows_summed():
    """Sums that the items of a group share."""
    return held(10, 4096).sum(1)


@pytest.mark.parametrize("graph", [half_linear, rows_summed], ids=lambda graph: graph.__name__)
def test_plan_and_source_for_a_gpu(graph, golden):
    plan = plan_of(graph())
    made = prepared(plan, GPU)
    text = plan_text(plan, [(one.source.name, one.kernel, one.schedule) for one in made])
    golden(f"schedule/gpu_{graph.__name__}.txt", "\n\n".join([text, *(one.source.text for one in made)]))


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)
def test_plan_and_source(graph, golden):
    """The kernels of a typical graph, how their loops run, and their C source."""
    plan = plan_of(graph())
    made = prepared(plan)
    text = plan_text(plan, [(one.name, one.kernel, one.schedule) for one in made])
    text = "\n\n".join([text, *(one.source.text.rstrip() for one in made)]) + "\n"
    golden(f"schedule/{graph.__name__}.txt", text)


def test_the_same_graph_gives_the_same_text():
    """Nothing of the text depends on addresses, on other graphs, or on numbers given out before."""
    for graph in GRAPHS:
        texts = []
        for _ in range(2):
            plan = plan_of(graph())
            texts.append([plan_text(plan), *(one.source.text for one in prepared(plan))])
            Tensor(1.0)
        assert texts[0] == texts[1], graph.__name__
