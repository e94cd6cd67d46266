"""Measures one framework's rows, asked for on standard input, one JSON line each way.

python -m tests.benchmarks.peers.worker torch
{"row": "a+b 16M", "seconds": 1.0}  ->  {"times": [...], "result": "path of an .npy file"}
"""

import contextlib
import importlib
import json
import os
import resource
import sys
import tempfile
import time

import numpy as np

from tests.benchmarks.peers import data

MODULES = {
    "tiny": "tensor_rows",
    "tinygrad": "tensor_rows",
    "torch": "torch_rows",
    "compiled": "torch_rows",
    "jax": "jax_rows",
    "numpy": "numpy_rows",
}
WARM = 4  # calls before the first that counts: plain, captured, replayed


def main(framework: str) -> None:
    """Answer until the other side closes."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the framework prints is no answer
    if framework in ("tiny", "tinygrad"):
        os.environ["ROWS_LIBRARY"] = framework
    rows = importlib.import_module(f"tests.benchmarks.peers.{MODULES[framework]}")
    if framework == "compiled":
        rows.COMPILED = True
    print(json.dumps({"version": rows.VERSION, "rows": list(rows.ROWS)}), file=answers, flush=True)
    steps = {}
    with tempfile.TemporaryDirectory() as folder:
        for line in sys.stdin:
            asked = json.loads(line)
            print(
                json.dumps(measured(rows, steps, asked["row"], asked["seconds"], folder)),
                file=answers,
                flush=True,
            )


def measured(rows, steps: dict, name: str, seconds: float, folder: str) -> dict:
    """Times of single steps of a row, and its first result the first time."""
    answer: dict = {}
    try:
        if name not in steps:
            steps.clear()  # one row's memory at a time
            steps[name] = step = rows.ROWS[name](data.inputs(name))
            for _ in range(WARM):
                result = step()
            answer["result"] = os.path.join(folder, "result.npy")
            np.save(answer["result"], rows.to_numpy(result))
        answer["times"] = times(steps[name], seconds)
        answer["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    except Exception as error:  # a framework that cannot do a row says so in the table, and goes on
        with contextlib.suppress(KeyError):
            del steps[name]
        answer["error"] = f"{type(error).__name__}: {error}"[:200]
    return answer


def times(step, seconds: float) -> list[float]:
    """Seconds of single steps, at least 5 of them, for about so long; short ones in batches."""
    start = time.perf_counter()
    step()
    once = time.perf_counter() - start
    batch = max(1, int(50e-6 / max(once, 1e-7)))
    found = []
    end = time.perf_counter() + seconds
    while len(found) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(batch):
            step()
        found.append((time.perf_counter() - start) / batch)
    return found


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in MODULES:
        sys.exit(f"usage: python -m tests.benchmarks.peers.worker {'|'.join(MODULES)}")
    main(sys.argv[1])
