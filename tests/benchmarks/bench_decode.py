"""What a token of SmolLM2 costs: speed, Python's share of it, and how long the first one takes. `make
bench`."""
import os
import statistics
import subprocess
import sys
import time

import pytest

from tests.benchmarks.report import report
from tests.llm import expected
from tiny.hcq import events
from tiny.llm import files
from tiny.llm.generate import CHUNKS, Generator
from tiny.llm.models import Llama

CONTEXT = 4096
TOKENS = 40


@pytest.fixture(scope="module")
def generator():
    """A generator that has captured everything."""
    file = files.load(files.default_model())
    made = Generator(Llama(file.config, file.weights, CONTEXT + max(CHUNKS)))
    for _ in range(3):
        list(made.tokens(expected.PROMPT_IDS, 5))
    return made


def test_decode(benchmark, generator):
    speeds = []

    def run():
        list(generator.tokens(expected.PROMPT_IDS, TOKENS))
        speeds.append(generator.figures.decoded_tokens / generator.figures.decode_s)
    benchmark.pedantic(run, rounds=5)
    report("decode", statistics.median(speeds), "tokens/s", least=15)
    report("kernels in a token", generator.figures.kernels, "")
    report("submissions in a token", generator.figures.submissions, "", 1)


def test_python_in_a_token(benchmark, generator):
    """Everything but waiting for the queue; the waiting thread runs kernels itself, which counts as
    waiting."""
    waits, shares = [], []
    stop = events.subscribe(lambda event: waits.append(event) if type(event) is events.Waited else None)

    def run():
        began = time.perf_counter()
        for number, _ in enumerate(generator.tokens(expected.PROMPT_IDS, TOKENS)):
            ended = time.perf_counter()
            waited = sum(wait.end_ns - wait.start_ns for wait in waits) / 1e9
            if number:                                      # the first one is the prompt's
                shares.append(ended - began - waited)
            waits.clear()
            began = time.perf_counter()
    benchmark.pedantic(run, rounds=5)
    stop()
    report("Python in a token", 1e3 * statistics.median(shares), "ms", 1)


def first_token(cache) -> float:
    """Seconds from the start of a process to its first token."""
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "tiny", "generate", "--prompt", expected.PROMPT, "--max-tokens", "1"],
        capture_output=True,
        check=True,
        env=os.environ | {"CACHE": str(cache)},
    )
    return time.perf_counter() - began


def test_first_token(benchmark, tmp_path):
    report("first token, empty cache", first_token(tmp_path), "s", 8)
    times = []
    benchmark.pedantic(lambda: times.append(first_token(tmp_path)), rounds=3)
    report("first token, warm cache", statistics.median(times), "s", 2)
