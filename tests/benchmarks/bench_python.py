"""What the Python of tiny costs: import, nodes, first kernel, a training step, replay. Run with `make bench`.

Each figure is printed with its budget. Nothing else should run meanwhile; the budgets hold on an idle
machine.
"""
import itertools
import os
import statistics
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.benchmarks.report import report
from tiny import Device, GlobalCounters, Tensor, TinyJit, nn
from tiny.frontend import jit
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node, const

FIRST_KERNEL = """
import time
began = time.perf_counter()
from tiny import Tensor
imported = time.perf_counter()
(Tensor([1.0, 2.0, 3.0]) * 2 + 1).tolist()
print(imported - began, time.perf_counter() - imported)
"""


def first_kernel(cache) -> tuple[float, float]:
    """(import, first kernel) in milliseconds, in a fresh process with that cache folder."""
    done = subprocess.run([sys.executable, "-c", FIRST_KERNEL], capture_output=True, text=True, check=True,
                          env=os.environ | {"CACHE": str(cache)})
    return tuple(1e3 * float(figure) for figure in done.stdout.split())


def test_import(benchmark, tmp_path):
    times = []
    benchmark.pedantic(lambda: times.append(first_kernel(tmp_path)[0]), rounds=7)
    report("import tiny", statistics.median(times), "ms", 120)


def test_first_kernel_with_an_empty_cache(benchmark, tmp_path):
    times, number = [], itertools.count()
    benchmark.pedantic(lambda: times.append(first_kernel(tmp_path / str(next(number)))[1]), rounds=5)
    report("first kernel, empty cache", statistics.median(times), "ms", 400)


def test_first_kernel_with_a_warm_cache(benchmark, tmp_path):
    times = []
    first_kernel(tmp_path)
    benchmark.pedantic(lambda: times.append(first_kernel(tmp_path)[1]), rounds=5)
    report("first kernel, warm cache", statistics.median(times), "ms")


def test_making_a_node_anew(benchmark):
    numbers = itertools.count()
    leaf = const(0.5, dtypes.float32)
    kept = []

    def make():
        kept.append(Node(ops.MUL, None, (leaf, const(float(next(numbers)), dtypes.float32))))
    benchmark(make)
    report("two new nodes", 1e6 * benchmark.stats.stats.median, "us")


def test_finding_a_node_that_exists(benchmark):
    leaf = const(0.5, dtypes.float32)
    kept = Node(ops.MUL, None, (leaf, leaf))
    assert benchmark(lambda: Node(ops.MUL, None, (leaf, leaf))) is kept
    report("a node that exists", 1e6 * benchmark.stats.stats.median, "us")


class Perceptron:
    """Small enough that the device's time does not count."""

    def __init__(self):
        Tensor.manual_seed(0)
        self.first = nn.Linear(16, 16)
        self.second = nn.Linear(16, 4)
        self.optimizer = nn.optim.Adam(nn.state.get_parameters(self), lr=1e-3)

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        self.optimizer.zero_grad()
        loss = ((self.second(self.first(x).relu()) - y) ** 2).mean()
        loss.backward()
        self.optimizer.step()
        return loss.realize()


@pytest.fixture
def training():
    rng = np.random.default_rng(0)
    x, y = (Tensor(rng.standard_normal((8, size)).astype(np.float32)).realize() for size in (16, 4))
    return Perceptron(), x, y


def kernels_of(step) -> int:
    before = GlobalCounters.kernel_count
    step()
    return GlobalCounters.kernel_count - before


def test_training_step_without_a_jit(benchmark, training):
    step, x, y = training
    began = time.perf_counter()
    kernels = kernels_of(lambda: step(x, y).item())
    report(
        f"first training step, {kernels} kernels, compiled ones cached",
        1e3 * (time.perf_counter() - began),
        "ms",
    )
    for _ in range(3):
        step(x, y).item()
    kernels = kernels_of(lambda: step(x, y).item())
    benchmark(lambda: step(x, y).item())
    scaled = 1e3 * benchmark.stats.stats.median * 24 / kernels
    report(f"warm training step, {kernels} kernels, as if 24", scaled, "ms", 5)


def test_replay(benchmark, training):
    step, x, y = training
    captured = TinyJit(step)
    for _ in range(3):
        captured(x, y)
    kernels = kernels_of(lambda: captured(x, y))

    def replay():
        captured(x, y)
    benchmark(replay)
    report(f"replay of {kernels} kernels, each", 1e6 * benchmark.stats.stats.median / kernels, "us", 10)


def test_what_a_small_captured_call_consists_of(benchmark):
    """The sum of 16 floats, captured: what the interpreter and the doorbell cost by themselves, and the rest.

    The interpreter's own cost is that of a call through three plain Python functions that make one object.
    """
    a, b = (Tensor(np.ones(16, np.float32)).realize() for _ in range(2))
    captured = TinyJit(lambda x, y: (x + y).realize())
    device = Device[Device.DEFAULT]
    for _ in range(4):
        captured(a, b)
    arguments = jit._Arguments((a, b), {})
    replay = next(iter(captured.captured.values()))

    def call():
        captured(a, b)
        device.synchronize()

    def submit():
        replay.replay(arguments)
        device.synchronize()
    benchmark(call)
    parts = {"plain Python calls": plain_calls,
             "arguments: shapes, types, memory": lambda: jit._Arguments((a, b), {}),
             "is the capture still valid": lambda: replay.is_valid(arguments) and replay.overlaps(arguments),
             "memory, patches, doorbell, kernel, wait": submit}
    report("a + b of 16 floats, captured and waited for", 1e6 * benchmark.stats.stats.median, "us")
    for name, part in parts.items():
        report(f"  {name}", 1e6 * least(part), "us")


def plain_calls():
    def inner(value):
        return [value]

    def outer(value):
        return inner(value)
    return outer(1.0)


def least(function, count: int = 2000) -> float:
    """Seconds of one call, the least mean of several batches."""
    times = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(count):
            function()
        times.append((time.perf_counter() - start) / count)
    return min(times)
