"""The work of the comparison: each row's name, its inputs, and how closely frameworks must agree.

A framework's rows stand in `<framework>_rows.py`: a function for each name, of the inputs, that returns a
function which does the work once, waits for it, and returns the result.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Row:
    """A row of the table. inputs: makes the arrays by name; tolerance: how far results may be from one
    another, relative to the largest; None for those that depend on their own history (training).
    """

    name: str
    inputs: Callable[[np.random.Generator], dict[str, np.ndarray]] = field(repr=False)
    tolerance: float | None = 1e-4


def floats(**shapes: tuple) -> Callable[[np.random.Generator], dict[str, np.ndarray]]:
    """Inputs: standard normal float32 arrays of these names and shapes."""

    def make(random: np.random.Generator) -> dict[str, np.ndarray]:
        return {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}

    return make


def square(size: int) -> Callable[[np.random.Generator], dict[str, np.ndarray]]:
    """Inputs: two square matrices, a and b."""
    return floats(a=(size, size), b=(size, size))


WIDTH, LAYERS, HEADS, POSITIONS = 256, 4, 4, 128  # of the decoding transformer


def transformer(random: np.random.Generator) -> dict[str, np.ndarray]:
    """Weights scaled so that values stay near 1; keys and values of the positions before."""
    weights: dict[str, np.ndarray] = {"x": random.standard_normal((1, WIDTH), np.float32)}
    shapes = {
        "query": (WIDTH, WIDTH),
        "key": (WIDTH, WIDTH),
        "value": (WIDTH, WIDTH),
        "out": (WIDTH, WIDTH),
        "up": (WIDTH, 4 * WIDTH),
        "down": (4 * WIDTH, WIDTH),
    }
    for layer in range(LAYERS):
        for name, shape in shapes.items():
            scale = np.float32(shape[0] ** -0.5)
            weights[f"{name}{layer}"] = random.standard_normal(shape, np.float32) * scale
        for name in ("keys", "values"):
            weights[f"{name}{layer}"] = random.standard_normal((HEADS, POSITIONS, WIDTH // HEADS), np.float32)
    return weights


def perceptron(random: np.random.Generator, batch: int) -> dict[str, np.ndarray]:
    """Pictures of 784 pixels, the weights of two layers (784 x 256, 256 x 10), labels 0 to 9."""
    return {
        "x": random.standard_normal((batch, 784), np.float32),
        "w1": random.standard_normal((784, 256), np.float32) * np.float32(784**-0.5),
        "b1": np.zeros(256, np.float32),
        "w2": random.standard_normal((256, 10), np.float32) * np.float32(256**-0.5),
        "b2": np.zeros(10, np.float32),
        "labels": random.integers(0, 10, batch),
    }


def convolutional(random: np.random.Generator) -> dict[str, np.ndarray]:
    """Pictures (64, 1, 28, 28), two convolutions of 3 x 3, the weights of a last layer, labels 0 to 9."""
    return {
        "x": random.standard_normal((64, 1, 28, 28), np.float32),
        "c1": random.standard_normal((32, 1, 3, 3), np.float32) * np.float32(1 / 3),
        "c2": random.standard_normal((64, 32, 3, 3), np.float32) * np.float32(1 / 17),
        "w": random.standard_normal((1600, 10), np.float32) * np.float32(1 / 40),
        "labels": random.integers(0, 10, 64),
    }


LONG = 1 << 24
ROWS = (
    Row("matmul f32 512", square(512)),
    Row("matmul f32 1024", square(1024)),
    Row("matmul f32 2048", square(2048)),
    Row("matmul bf16 1024", square(1024), 2e-2),
    Row("matmul f16 1024", square(1024), 4e-3),
    Row("(a*b+c).relu().exp() 16M", floats(a=(LONG,), b=(LONG,), c=(LONG,))),
    Row("a+b 16M", floats(a=(LONG,), b=(LONG,))),
    Row("sum 16M", floats(a=(LONG,)), 1e-2),
    Row("sum axis 0 of 4096 x 4096", floats(a=(4096, 4096))),
    Row("sum axis 1 of 4096 x 4096", floats(a=(4096, 4096))),
    Row("softmax 4096 x 1024", floats(a=(4096, 1024))),
    Row("layernorm 4096 x 1024", floats(a=(4096, 1024))),
    Row("conv 3x3 64 channels 56x56 N=1", floats(x=(1, 64, 56, 56), w=(64, 64, 3, 3))),
    Row("conv 3x3 64 channels 56x56 N=8", floats(x=(8, 64, 56, 56), w=(64, 64, 3, 3))),
    Row("MLP training step, batch 128", lambda random: perceptron(random, 128), None),
    Row("CNN training step, batch 64", convolutional, None),
    Row("transformer decode step", transformer),
    Row("MLP inference, batch 1", lambda random: perceptron(random, 1)),
    Row("a+b of 16 floats", floats(a=(16,), b=(16,))),
)
BY_NAME = {row.name: row for row in ROWS}


def inputs(name: str) -> dict[str, np.ndarray]:
    """A row's inputs, the same in every process."""
    return BY_NAME[name].inputs(np.random.default_rng(7))


# -- what reads the same in several frameworks ---------------------------------------------------------------
def matmul(a, b):
    return a @ b


def add(a, b):
    return a + b


PLAIN = {                                                   # in all whose arrays have operators and methods
    "matmul f32 512": matmul,
    "matmul f32 1024": matmul,
    "matmul f32 2048": matmul,
    "a+b 16M": add,
    "sum 16M": lambda a: a.sum(),
    "sum axis 0 of 4096 x 4096": lambda a: a.sum(0),
    "sum axis 1 of 4096 x 4096": lambda a: a.sum(1),
    "a+b of 16 floats": add,
}


def chain(a, b, c):
    """In tiny, tinygrad and PyTorch."""
    return (a * b + c).relu().exp()


def mlp(x, w1, b1, w2, b2, labels):
    """In tiny, tinygrad and PyTorch; `labels` are for the loss of a training step."""
    return (x @ w1 + b1).relu() @ w2 + b2
