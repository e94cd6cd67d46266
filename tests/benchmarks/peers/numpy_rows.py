"""The rows in numpy, as one would write them."""

import numpy as np

from tests.benchmarks.peers.data import HEADS, LAYERS, WIDTH

VERSION = f"numpy {np.__version__}"
to_numpy = np.asarray


def matmul(data):
    a, b = data["a"], data["b"]
    return lambda: a @ b


def chain(data):
    a, b, c = data["a"], data["b"], data["c"]

    def step():
        out = a * b
        out += c
        np.maximum(out, 0, out=out)
        return np.exp(out, out=out)

    return step


def add(data):
    a, b = data["a"], data["b"]
    return lambda: a + b


def total(axis):
    return lambda data: lambda: data["a"].sum(axis)


def softmax(data):
    def step():
        e = np.exp(data["a"] - data["a"].max(1, keepdims=True))
        e /= e.sum(1, keepdims=True)
        return e

    return step


def layernorm(data):
    def step():
        a = data["a"] - data["a"].mean(1, keepdims=True)
        a /= np.sqrt((a * a).mean(1, keepdims=True) + 1e-5)
        return a

    return step


def decode(data):
    size = WIDTH // HEADS

    def normed(x):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)

    def step():
        x = data["x"]
        for n in range(LAYERS):
            h = normed(x)
            query, key, value = (
                (h @ data[f"{name}{n}"]).reshape(HEADS, 1, size) for name in ("query", "key", "value")
            )
            keys = np.concatenate([data[f"keys{n}"], key], 1)
            values = np.concatenate([data[f"values{n}"], value], 1)
            scores = query @ keys.transpose(0, 2, 1) * size**-0.5
            e = np.exp(scores - scores.max(-1, keepdims=True))
            x = x + (e / e.sum(-1, keepdims=True) @ values).reshape(1, WIDTH) @ data[f"out{n}"]
            x = x + np.maximum(normed(x) @ data[f"up{n}"], 0) @ data[f"down{n}"]
        return x

    return step


def mlp(data):
    def step():
        return np.maximum(data["x"] @ data["w1"] + data["b1"], 0) @ data["w2"] + data["b2"]

    return step


def mlp_training(data):
    weights = {name: data[name].copy() for name in ("w1", "b1", "w2", "b2")}
    moments = {name: (np.zeros_like(one), np.zeros_like(one)) for name, one in weights.items()}
    x, rows, steps = data["x"], np.arange(len(data["x"])), [0]

    def step():
        hidden = np.maximum(x @ weights["w1"] + weights["b1"], 0)
        logits = hidden @ weights["w2"] + weights["b2"]
        logits -= logits.max(1, keepdims=True)
        e = np.exp(logits)
        p = e / e.sum(1, keepdims=True)
        loss = -np.log(p[rows, data["labels"]]).mean()
        p[rows, data["labels"]] -= 1
        p /= len(x)
        back = (p @ weights["w2"].T) * (hidden > 0)
        gradients = {"w1": x.T @ back, "b1": back.sum(0), "w2": hidden.T @ p, "b2": p.sum(0)}
        steps[0] += 1
        for name, g in gradients.items():
            m, v = moments[name]
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            scale = np.sqrt(v / (1 - 0.999 ** steps[0])) + 1e-8
            weights[name] -= 1e-3 * (m / (1 - 0.9 ** steps[0])) / scale
        return loss

    return step


ROWS = {
    "matmul f32 512": matmul,
    "matmul f32 1024": matmul,
    "matmul f32 2048": matmul,
    "(a*b+c).relu().exp() 16M": chain,
    "a+b 16M": add,
    "sum 16M": total(None),
    "sum axis 0 of 4096 x 4096": total(0),
    "sum axis 1 of 4096 x 4096": total(1),
    "softmax 4096 x 1024": softmax,
    "layernorm 4096 x 1024": layernorm,
    "transformer decode step": decode,
    "MLP inference, batch 1": mlp,
    "MLP training step, batch 128": mlp_training,
    "a+b of 16 floats": add,
}
