"""The rows in tiny, captured; and in tinygrad, by changing the import."""

import importlib
import importlib.metadata
import os

from tests.benchmarks.peers.data import HEADS, LAYERS, PLAIN, WIDTH, chain, matmul, mlp

LIBRARY = os.environ.get("ROWS_LIBRARY", "tiny")
VERSION = f"{LIBRARY} {importlib.metadata.version(LIBRARY)}"
library = importlib.import_module(LIBRARY)
Device, Tensor, TinyJit, dtypes = library.Device, library.Tensor, library.TinyJit, library.dtypes
nn = importlib.import_module(f"{LIBRARY}.nn")


def to_numpy(result):
    return result.float().numpy()


def ready(data, dtype=None):
    tensors = {name: Tensor(one) for name, one in data.items()}
    return {
        name: (one.cast(dtype) if dtype and one.is_floating_point() else one).realize()
        for name, one in tensors.items()
    }


def finished(result):
    """Wait for the device, as a reader of the result would."""
    Device[Device.DEFAULT].synchronize()
    return result


def inference(function, dtype=None):
    """A row that calls `function`, captured, with its inputs by name."""

    def make(data):
        tensors = ready(data, dtype)
        call = TinyJit(lambda **some: function(**some).realize())
        return lambda: finished(call(**tensors))

    return make


def decode(x, **weights):
    size = WIDTH // HEADS
    for n in range(LAYERS):
        h = x.layernorm()
        query, key, value = (
            (h @ weights[f"{name}{n}"]).reshape(HEADS, 1, size) for name in ("query", "key", "value")
        )
        keys, values = weights[f"keys{n}"].cat(key, dim=1), weights[f"values{n}"].cat(value, dim=1)
        x = x + query.scaled_dot_product_attention(keys, values).reshape(1, WIDTH) @ weights[f"out{n}"]
        x = x + (x.layernorm() @ weights[f"up{n}"]).relu() @ weights[f"down{n}"]
    return x


def cnn(x, c1, c2, w, labels):
    h = x.conv2d(c1).relu().max_pool2d(2)
    return h.conv2d(c2).relu().max_pool2d(2).flatten(1) @ w


def training(function, names):
    """A row that trains the weights of those names with Adam, the whole step captured."""

    def make(data):
        tensors = ready(data)
        weights = {name: Tensor(data[name]) for name in names}
        optimizer = nn.optim.Adam(list(weights.values()), lr=1e-3)

        @TinyJit
        @library.Context(TRAINING=1)
        def update(**batch):
            optimizer.zero_grad()
            loss = function(**batch | weights).sparse_categorical_crossentropy(batch["labels"])
            loss.backward()
            optimizer.step()
            return loss.realize()

        batch = {name: one for name, one in tensors.items() if name not in names}
        return lambda: finished(update(**batch))

    return make


ROWS = {name: inference(function) for name, function in PLAIN.items()} | {
    "matmul bf16 1024": inference(matmul, dtypes.bfloat16),
    "matmul f16 1024": inference(matmul, dtypes.float16),
    "(a*b+c).relu().exp() 16M": inference(chain),
    "softmax 4096 x 1024": inference(lambda a: a.softmax(1)),
    "layernorm 4096 x 1024": inference(lambda a: a.layernorm()),
    "conv 3x3 64 channels 56x56 N=1": inference(lambda x, w: x.conv2d(w, padding=1)),
    "conv 3x3 64 channels 56x56 N=8": inference(lambda x, w: x.conv2d(w, padding=1)),
    "MLP training step, batch 128": training(mlp, ("w1", "b1", "w2", "b2")),
    "CNN training step, batch 64": training(cnn, ("c1", "c2", "w")),
    "transformer decode step": inference(decode),
    "MLP inference, batch 1": inference(mlp),
}
