"""What scheduling costs as graphs grow: time and memory for each node, from 1,000 nodes to 100,000.

The graph is an unrolled network of residual layers. Scheduling is everything between the graph and the
kernels' loops that grows with it: its order, its structure as the key of its plan, and the plan. The picture
is drawn into build/scaling.png where matplotlib is installed.
"""
import gc
import statistics
import time
import tracemalloc
from pathlib import Path

import pytest

from tests.benchmarks.report import report
from tiny import Tensor
from tiny.ir import ops
from tiny.ir.node import toposort
from tiny.realize.execute import collector_paused
from tiny.schedule.plan import make_plan
from tiny.schedule.steps import structure

LAYERS = (22, 70, 200, 700, 2200)
PICTURE = Path("build/scaling.png")


def network(layers: int) -> Tensor:
    """x = x + gelu(layernorm(x) @ w + b), over and over, each layer with weights of its own."""
    x = Tensor.empty(8, 16)
    for _ in range(layers):
        x = x + (x.layernorm() @ Tensor.empty(16, 16) + Tensor.empty(16)).gelu()
    return x


def schedule(x: Tensor) -> int:
    """Schedule a graph; how many nodes it has."""
    order = toposort(x.node)
    structure(order)
    make_plan([x.node], order, {node: False for node in order if node.op is ops.BUFFER})
    return len(order)


def cost(layers: int) -> tuple[int, float, float, float]:
    """(nodes, microseconds to make each, to schedule each, bytes of each with its share of the plan)"""
    making, scheduling = [], []
    for _ in range(5 if layers < 1000 else 3):
        gc.collect()
        start = time.perf_counter()
        x = network(layers)
        making.append(time.perf_counter() - start)
        with collector_paused():
            start = time.perf_counter()
            count = schedule(x)
            scheduling.append(time.perf_counter() - start)
    del x
    gc.collect()
    tracemalloc.start()
    x = network(layers)
    schedule(x)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return count, 1e6 * min(making) / count, 1e6 * statistics.median(scheduling) / count, held / count


def draw(rows: list[tuple]) -> None:
    """The picture: microseconds and bytes for each node over the number of nodes."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, (times, memory) = pyplot.subplots(1, 2, figsize=(9, 3.5))
    nodes, made, scheduled, held = zip(*rows, strict=True)
    times.semilogx(nodes, made, "o-", label="making the node")
    times.semilogx(nodes, scheduled, "o-", label="scheduling it")
    times.set(xlabel="nodes", ylabel="microseconds a node", ylim=(0, None))
    times.legend()
    memory.semilogx(nodes, held, "o-")
    memory.set(xlabel="nodes", ylabel="bytes a node at the peak", ylim=(0, None))
    figure.tight_layout()
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=120)
    pyplot.close(figure)


def test_the_cost_of_a_node_as_graphs_grow(benchmark):
    cost(LAYERS[0])
    rows: list[tuple] = []
    benchmark.pedantic(lambda: rows.extend(map(cost, LAYERS)), rounds=1)
    for count, made, scheduled, held in rows:
        report(f"{count} nodes: making each", made, "us")
        report(f"{count} nodes: scheduling each", scheduled, "us")
        report(f"{count} nodes: memory of each", held, "bytes")
    report("scheduling a node, 100,000 to 1,000", rows[-1][2] / rows[0][2], "times", 1.1)
    draw(rows)
