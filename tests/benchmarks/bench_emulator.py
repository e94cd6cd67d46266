"""Tensor programs on the emulated gfx1100: a matmul, an addition, a training step; launches included.

`make bench` prints two rows for each; `python -m tests.benchmarks.bench_emulator [REPEATS]` a line of JSON,
to be set beside another emulator's. The first call starts with an empty cache on disk, opens the card and
compiles the kernels and their translations; a repeat is a replay of the captured function until it is done.
"""
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.report import report
from tests.llm import expected
from tiny import Device, Tensor, TinyJit, nn

ROOT = Path(__file__).resolve().parents[2]
WARM_UP = 5


def matmul(rng: np.random.Generator):
    """(256, 256) by (256, 256)."""
    a, b = (rng.standard_normal((256, 256)).astype(np.float32) for _ in range(2))
    left, right = Tensor(a).realize(), Tensor(b).realize()
    step = TinyJit(lambda x, y: (x @ y).realize())
    product = a @ b
    return lambda: step(left, right), lambda o: np.testing.assert_allclose(o.numpy(), product, 1e-3, 1e-3)


def add(rng: np.random.Generator):
    """1,048,576 sums."""
    a, b = (rng.standard_normal(1 << 20).astype(np.float32) for _ in range(2))
    left, right = Tensor(a).realize(), Tensor(b).realize()
    step = TinyJit(lambda x, y: (x + y).realize())
    return lambda: step(left, right), lambda o: np.testing.assert_array_equal(o.numpy(), a + b)


def training(rng: np.random.Generator):
    """A network of 64, 32 and 10 units, a batch of 16, forward, backward and SGD."""
    first, second = nn.Linear(64, 32), nn.Linear(32, 10)
    optimizer = nn.optim.SGD([*nn.state.get_parameters(first), *nn.state.get_parameters(second)], lr=0.1)
    pictures = Tensor(rng.standard_normal((16, 64)).astype(np.float32)).realize()
    labels = Tensor(rng.integers(0, 10, 16).astype(np.int32)).realize()
    losses = []

    @TinyJit
    def step(x, y):
        optimizer.zero_grad()
        loss = second(first(x).relu()).sparse_categorical_crossentropy(y)
        loss.backward()
        optimizer.step()
        return loss.realize()

    def check(loss) -> None:
        losses.append(loss.item())
        assert losses[-1] < 3 and losses == sorted(losses, reverse=True), losses
    return lambda: step(pictures, labels), check


PROGRAMS = {"matmul": matmul, "add": add, "training": training}
# seconds at most: of a repeat, a twentieth of what the closest peer's emulator takes; of the first call, all
BUDGETS = {"matmul": (0.73 / 20, 2.9), "add": (0.64 / 20, 2.2), "training": (0.51 / 20, 6.2)}


def measure(name: str, repeats: int) -> dict:
    """Seconds of the first call, and of repeats, of a workload on the default device of this process."""
    began = time.perf_counter()
    device = Device[Device.DEFAULT]
    step, check = PROGRAMS[name](np.random.default_rng(0))
    result = step()
    device.synchronize()
    first = time.perf_counter() - began
    check(result)
    times = []
    for _ in range(WARM_UP + repeats):
        began = time.perf_counter()
        result = step()
        device.synchronize()
        times.append(time.perf_counter() - began)
    check(result)
    times = sorted(times[WARM_UP:])
    return {"workload": name, "device": str(device.target.arch), "first_s": round(first, 4),
            "repeat_s": round(times[0], 6), "median_s": round(statistics.median(times), 6)}


def fresh(name: str, repeats: int, card: str = "gfx1100") -> dict:
    """`measure` on an emulated card, in a process of its own that starts with nothing cached."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "tests.benchmarks.bench_emulator", name, str(repeats)]
        environment = os.environ | {"AMD": "1", "EMULATE": card, "CACHE": cache}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=ROOT)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", PROGRAMS)
def test_workload(benchmark, name):
    most_of_repeat, most_of_first = BUDGETS[name]
    found = []
    benchmark.pedantic(lambda: found.append(fresh(name, 30)), rounds=3)
    first, repeat = (min(one[which] for one in found) for which in ("first_s", "median_s"))
    report(f"emulated {name}: first call, nothing cached", first, "s", most_of_first)
    report(f"emulated {name}: repeat", 1e3 * repeat, "ms", 1e3 * most_of_repeat)


def test_decode(benchmark):
    """SmolLM2, 8 tokens after a short prompt; the first of them is the prompt's."""
    speeds = []

    def run():
        command = [sys.executable, "-m", "tiny", "generate", "--prompt", expected.PROMPT, "--max-tokens", "8"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT,
                              env=os.environ | {"AMD": "1", "EMULATE": "gfx1100"})
        speeds.append(float(re.search(r"decode 7 at ([\d.]+) tokens/s", done.stdout + done.stderr)[1]))
    benchmark.pedantic(run, rounds=2)
    report("emulated SmolLM2: decode", max(speeds), "tokens/s", least=0.5)


def main(name: str = "", repeats: str = "30") -> None:
    """A program's name and repeats measure it in this process; else all are, each in a fresh one."""
    if name in PROGRAMS:
        print(json.dumps(measure(name, int(repeats))))
        return
    for each in PROGRAMS:
        print(json.dumps(fresh(each, int(name or repeats))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
