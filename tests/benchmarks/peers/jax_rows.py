"""The rows in JAX, jitted."""

import jax
import jax.numpy as jnp
import numpy as np

from tests.benchmarks.peers.data import HEADS, LAYERS, PLAIN, WIDTH, matmul

VERSION = f"JAX {jax.__version__}"


def to_numpy(result):
    return np.asarray(result, np.float32)


def ready(data, dtype=None):
    arrays = {name: jnp.asarray(one) for name, one in data.items()}
    return {
        name: one.astype(dtype) if dtype and one.dtype == jnp.float32 else one for name, one in arrays.items()
    }


def inference(function, dtype=None):
    """A row that calls `function`, jitted, with its inputs by name."""

    def make(data):
        arrays, call = ready(data, dtype), jax.jit(function)
        return lambda: call(**arrays).block_until_ready()

    return make


def chain(a, b, c):
    return jnp.exp(jax.nn.relu(a * b + c))


def layernorm(a):
    a = a - a.mean(-1, keepdims=True)
    return a * jax.lax.rsqrt((a * a).mean(-1, keepdims=True) + 1e-5)


def convolution(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")


def decode(x, **weights):
    size = WIDTH // HEADS
    for n in range(LAYERS):
        h = layernorm(x)
        query, key, value = (
            (h @ weights[f"{name}{n}"]).reshape(HEADS, 1, size) for name in ("query", "key", "value")
        )
        keys = jnp.concatenate([weights[f"keys{n}"], key], 1)
        values = jnp.concatenate([weights[f"values{n}"], value], 1)
        scores = jax.nn.softmax(query @ keys.transpose(0, 2, 1) * size**-0.5)
        x = x + (scores @ values).reshape(1, WIDTH) @ weights[f"out{n}"]
        x = x + jax.nn.relu(layernorm(x) @ weights[f"up{n}"]) @ weights[f"down{n}"]
    return x


def mlp(x, w1, b1, w2, b2, labels):
    return jax.nn.relu(x @ w1 + b1) @ w2 + b2


def pool(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def cnn(x, c1, c2, w, labels):
    h = pool(jax.nn.relu(jax.lax.conv_general_dilated(x, c1, (1, 1), "VALID")))
    h = pool(jax.nn.relu(jax.lax.conv_general_dilated(h, c2, (1, 1), "VALID")))
    return h.reshape(len(x), -1) @ w


def training(function, names):
    """A row that trains the weights of those names with Adam, the whole step jitted."""

    def make(data):
        arrays = ready(data)
        weights = {name: arrays[name] for name in names}
        state = [
            weights,
            jax.tree.map(jnp.zeros_like, weights),
            jax.tree.map(jnp.zeros_like, weights),
            jnp.zeros(()),
        ]

        def loss_of(weights):
            logits = jax.nn.log_softmax(function(**arrays | weights))
            return -jnp.take_along_axis(logits, arrays["labels"][:, None], 1).mean()

        @jax.jit
        def update(weights, first, second, count):
            loss, gradients = jax.value_and_grad(loss_of)(weights)
            count = count + 1
            first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
            second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
            weights = jax.tree.map(
                lambda w, m, v: w - 1e-3 * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8),
                weights,
                first,
                second,
            )
            return loss, (weights, first, second, count)

        def step():
            loss, state[:] = update(*state)
            return loss.block_until_ready()

        return step

    return make


ROWS = {name: inference(function) for name, function in PLAIN.items()} | {
    "matmul bf16 1024": inference(matmul, jnp.bfloat16),
    "matmul f16 1024": inference(matmul, jnp.float16),
    "(a*b+c).relu().exp() 16M": inference(chain),
    "softmax 4096 x 1024": inference(lambda a: jax.nn.softmax(a, 1)),
    "layernorm 4096 x 1024": inference(layernorm),
    "conv 3x3 64 channels 56x56 N=1": inference(convolution),
    "conv 3x3 64 channels 56x56 N=8": inference(convolution),
    "MLP training step, batch 128": training(mlp, ("w1", "b1", "w2", "b2")),
    "CNN training step, batch 64": training(cnn, ("c1", "c2", "w")),
    "transformer decode step": inference(decode),
    "MLP inference, batch 1": inference(mlp),
}
