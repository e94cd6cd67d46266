"""The product of matrices by one thread: by a blocked schedule, by the one that is chosen, and by numpy.

Run with `OPENBLAS_NUM_THREADS=1 make bench`. Best of many, since other programs only ever slow it down.
"""
import time

import numpy as np

from tests.benchmarks.report import report
from tests.schedule.gemm import Blocks, blocked
from tests.schedule.running import planned, source_of
from tests.schedule.test_gemm import product
from tiny.hcq import device as devices
from tiny.schedule import heuristic
from tiny.schedule.axes import merge_axes

ROWS, COLUMNS, DEPTH = 960, 1024, 1024
WORK = 2 * ROWS * COLUMNS * DEPTH


def best(function, rounds: int = 20) -> float:
    """The shortest time in seconds."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


def gigaflops(choose) -> float:
    """Of a schedule, its groups one after the other."""
    device = devices.open("CPU")
    plan, leaves = planned(product(ROWS, COLUMNS, DEPTH))
    kernel = merge_axes(plan.steps[0].kernel)
    source, _, groups = source_of("gemm", kernel, choose(kernel), 3)
    program = device.load(device.compile([source])[0], "gemm")
    sizes = (4 * ROWS * COLUMNS, *(node.arg.nbytes for node in leaves))
    result, *operands = map(device.allocate, sizes)
    for buffer, node in zip(operands, leaves, strict=True):
        buffer.copyin(node.arg.data)
    queue = device.queue()
    addresses = [result.address, *(operands[place.number].address for place in plan.steps[0].places[1:])]
    queue.execute(program, addresses, groups)
    template = queue.finish()
    return WORK / best(lambda: device.synchronize(template.submit([]))) / 1e9


def test_product(benchmark):
    a, b = (np.ones(shape, np.float32) for shape in ((ROWS, DEPTH), (DEPTH, COLUMNS)))
    benchmark.pedantic(lambda: a @ b, rounds=3)
    target = devices.open("CPU").target
    report("product, blocked schedule", gigaflops(lambda k: blocked(k, Blocks(120, 512, 256))), "GFLOP/s")
    report("product, schedule chosen", gigaflops(lambda k: heuristic.choose(k, target)), "GFLOP/s")
    report("product, numpy", WORK / best(lambda: a @ b) / 1e9, "GFLOP/s")
