"""Whole processes: import, first kernel, a training script, in each framework. `{library}` is filled in.

The training script is 30 steps of a 64-32-10 perceptron with Adam, batch 16, printed loss included.
"""

TENSOR_IMPORT = "from {library} import Tensor"
TENSOR_KERNEL = "from {library} import Tensor\nprint((Tensor([1.0, 2.0, 3.0]) * 2 + 1).tolist())"
TENSOR_TRAINING = """
import numpy as np
from {library} import Context, Tensor, nn
random = np.random.default_rng(0)
x, y = Tensor(random.standard_normal((16, 64), np.float32)), Tensor(random.integers(0, 10, 16))
first, second = nn.Linear(64, 32), nn.Linear(32, 10)
optimizer = nn.optim.Adam(nn.state.get_parameters([first, second]), lr=1e-3)
with Context(TRAINING=1):
    for _ in range(30):
        optimizer.zero_grad()
        loss = second(first(x).relu()).sparse_categorical_crossentropy(y)
        loss.backward()
        optimizer.step()
        loss.item()
print(loss.item())
"""
TORCH_TRAINING = """
import numpy as np
import torch
random = np.random.default_rng(0)
x, y = torch.tensor(random.standard_normal((16, 64), np.float32)), torch.tensor(random.integers(0, 10, 16))
model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(30):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print(loss.item())
"""
JAX_TRAINING = """
import jax
import jax.numpy as jnp
import numpy as np
random = np.random.default_rng(0)
x, y = random.standard_normal((16, 64), np.float32), random.integers(0, 10, 16)
weights = {"a": random.standard_normal((64, 32), np.float32) / 8, "b": np.zeros(32, np.float32),
           "c": random.standard_normal((32, 10), np.float32) / 6, "d": np.zeros(10, np.float32)}

def loss_of(w):
    logits = jax.nn.log_softmax(jax.nn.relu(x @ w["a"] + w["b"]) @ w["c"] + w["d"])
    return -logits[jnp.arange(16), y].mean()

@jax.jit
def update(w, m, v, t):
    loss, g = jax.value_and_grad(loss_of)(w)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
    scale = jax.tree.map(lambda v: jnp.sqrt(v / (1 - 0.999 ** t)) + 1e-8, v)
    w = jax.tree.map(lambda w, m, scale: w - 1e-3 * (m / (1 - 0.9 ** t)) / scale, w, m, scale)
    return loss, w, m, v

zeros = jax.tree.map(np.zeros_like, weights)
m, v = zeros, zeros
for t in range(1, 31):
    loss, weights, m, v = update(weights, m, v, float(t))
print(float(loss))
"""
SCRIPTS = {
    "import": {
        "tiny": TENSOR_IMPORT,
        "tinygrad": TENSOR_IMPORT,
        "torch": "import torch",
        "jax": "import jax.numpy",
        "numpy": "import numpy",
    },
    "first kernel": {
        "tiny": TENSOR_KERNEL,
        "tinygrad": TENSOR_KERNEL,
        "torch": "import torch\nprint((torch.tensor([1.0, 2.0, 3.0]) * 2 + 1).tolist())",
        "jax": "import jax.numpy as jnp\nprint((jnp.array([1.0, 2.0, 3.0]) * 2 + 1).tolist())",
        "numpy": "import numpy\nprint((numpy.array([1.0, 2.0, 3.0]) * 2 + 1).tolist())",
    },
    "training script": {
        "tiny": TENSOR_TRAINING,
        "tinygrad": TENSOR_TRAINING,
        "torch": TORCH_TRAINING,
        "jax": JAX_TRAINING,
    },
}


def script(name: str, framework: str) -> str | None:
    """The program of a row, None where the framework has none."""
    text = SCRIPTS[name].get(framework)
    return text and text.replace("{library}", framework)
