"""The rows in PyTorch, eager; `torch.compile` of each where the framework is asked for as `compiled`."""

import torch
from torch.nn import functional as F

from tests.benchmarks.peers.data import HEADS, LAYERS, PLAIN, WIDTH, chain, matmul, mlp

VERSION = f"PyTorch {torch.__version__}"
COMPILED = False
torch.set_num_threads(2)


def to_numpy(result):
    return result.detach().float().numpy()


def ready(data, dtype=None):
    """Tensors of the arrays, labels as they are."""
    tensors = {name: torch.from_numpy(one) for name, one in data.items()}
    return {
        name: one.to(dtype) if dtype and one.is_floating_point() else one for name, one in tensors.items()
    }


def inference(function, dtype=None):
    """A row that calls `function` with its inputs by name, without gradients."""

    def make(data):
        tensors = ready(data, dtype)
        call = torch.compile(function) if COMPILED else function

        def step():
            with torch.inference_mode():
                return call(**tensors)

        return step

    return make


def decode(x, **weights):
    size = WIDTH // HEADS
    for n in range(LAYERS):
        h = F.layer_norm(x, (WIDTH,))
        query, key, value = (
            (h @ weights[f"{name}{n}"]).view(HEADS, 1, size) for name in ("query", "key", "value")
        )
        keys = torch.cat([weights[f"keys{n}"], key], 1)
        values = torch.cat([weights[f"values{n}"], value], 1)
        x = x + F.scaled_dot_product_attention(query, keys, values).view(1, WIDTH) @ weights[f"out{n}"]
        x = x + (F.layer_norm(x, (WIDTH,)) @ weights[f"up{n}"]).relu() @ weights[f"down{n}"]
    return x


def cnn(x, c1, c2, w, labels):
    h = F.max_pool2d(F.conv2d(x, c1).relu(), 2)
    return F.max_pool2d(F.conv2d(h, c2).relu(), 2).flatten(1) @ w


def training(function, names):
    """A row that trains the weights of those names with Adam."""

    def make(data):
        tensors = ready(data)
        weights = {name: tensors[name].clone().requires_grad_() for name in names}
        optimizer = torch.optim.Adam(weights.values(), lr=1e-3)
        call = torch.compile(function) if COMPILED else function

        def step():
            optimizer.zero_grad()
            loss = F.cross_entropy(call(**tensors | weights), tensors["labels"])
            loss.backward()
            optimizer.step()
            return loss

        return step

    return make


ROWS = {name: inference(function) for name, function in PLAIN.items()} | {
    "matmul bf16 1024": inference(matmul, torch.bfloat16),
    "matmul f16 1024": inference(matmul, torch.float16),
    "(a*b+c).relu().exp() 16M": inference(chain),
    "softmax 4096 x 1024": inference(lambda a: a.softmax(1)),
    "layernorm 4096 x 1024": inference(lambda a: F.layer_norm(a, (1024,))),
    "conv 3x3 64 channels 56x56 N=1": inference(lambda x, w: F.conv2d(x, w, padding=1)),
    "conv 3x3 64 channels 56x56 N=8": inference(lambda x, w: F.conv2d(x, w, padding=1)),
    "MLP training step, batch 128": training(mlp, ("w1", "b1", "w2", "b2")),
    "CNN training step, batch 64": training(cnn, ("c1", "c2", "w")),
    "transformer decode step": inference(decode),
    "MLP inference, batch 1": inference(mlp),
}
