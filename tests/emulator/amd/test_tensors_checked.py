"""Tensor programs under CHECK=1: kernels that the compiler makes are clean, and their results are numpy's."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
from tiny import Tensor
rng = np.random.default_rng(0)
def pair(*shape, dtype=np.float32):
    array = rng.normal(size=shape).astype(dtype)
    return array, Tensor(array).realize()
def near(name, tensor, array, atol=1e-5):
    print(name, np.allclose(tensor.numpy(), array, atol=atol, rtol=1e-3))
a, ta = pair(32, 32, dtype=np.float16)
near("half matrices", ta @ ta, a.astype(np.float32) @ a.astype(np.float32), 2e-2)
b, tb = pair(33, 17)
c, tc = pair(17, 9)
near("odd matrices", tb @ tc, b @ c)
e = np.exp(b - b.max(1, keepdims=True))
near("softmax", tb.softmax(), e / e.sum(1, keepdims=True))
near("largest", tb.argmax(1), b.argmax(1))
near("padded", tb.pad(((1, 2), (0, 3))), np.pad(b, ((1, 2), (0, 3))))
near("rows", tb[Tensor([1, 3, 5])], b[[1, 3, 5]])
near("sums so far", tb.cumsum(0), b.cumsum(0))
near("double", Tensor(b.astype(np.float64)) * 3, b.astype(np.float64) * 3)
near("bytes", Tensor(np.arange(37, dtype=np.uint8)).cast("float32").sqrt(), np.sqrt(np.arange(37)))
near("a chain", ((tb * 2).realize() + 1).realize().sum(), (b * 2 + 1).sum(), 1e-2)
"""


@pytest.mark.parametrize("card", ["gfx1100", "gfx1201", "gfx942"])
def test_compiled_kernels_pass_checked_mode(card):
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME") if name in os.environ}
    settings = {"AMD": "1", "EMULATE": card, "CHECK": "1", "PYTHONPATH": "."}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=200,
                          env=kept | settings)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert len(lines) == 10 and all(line.endswith(" True") for line in lines), lines
