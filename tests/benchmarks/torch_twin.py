"""The training example once more in PyTorch: same weights, same batches. Run by hand where PyTorch and tqdm
are installed:

    python tests/benchmarks/torch_twin.py > tests/benchmarks/torch_twin.json

The figures it prints (first 50 losses, final test accuracy) are kept beside it for the test that compares.
"""
import gzip
import importlib.util
import json
import sys
import types
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

DATA = Path("/usr/share/datasets/fashion-mnist")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "fashion_mnist.py"


def load_example():
    """The example's module, with an empty stand-in for tiny: only its numpy parts are used."""
    sys.modules.setdefault("tiny", types.SimpleNamespace(Tensor=object, TinyJit=object, nn=None))
    spec = importlib.util.spec_from_file_location("fashion_mnist", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_data() -> list[np.ndarray]:
    """Pictures (n, 1, 28, 28) and labels for training, then for the test, from the idx files."""
    arrays = []
    for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        raw = gzip.decompress((DATA / f"{name}-ubyte.gz").read_bytes())
        array = np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3])
        arrays.append(array.reshape(-1, 1, 28, 28) if raw[3] == 3 else array)
    return arrays


def forward(weights: dict, x: torch.Tensor) -> torch.Tensor:
    for name in ("conv1", "conv2"):
        x = functional.conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], padding=1)
        x = functional.max_pool2d(functional.relu(x), 2)
    return functional.linear(x.flatten(1), weights["linear.weight"], weights["linear.bias"])


def main() -> None:
    example = load_example()
    pictures, labels, test_pictures, test_labels = load_data()
    weights = {
        name: torch.tensor(value, requires_grad=True) for name, value in example.initial_weights().items()
    }
    optimizer = torch.optim.Adam(weights.values(), lr=1e-3)
    losses = []
    for chosen in example.batch_order(len(labels), 1):
        x, y = torch.tensor(example.prepare(pictures[chosen])), torch.tensor(labels[chosen].astype("int64"))
        loss = functional.cross_entropy(forward(weights, x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        guess = torch.cat(
            [
                forward(weights, torch.tensor(example.prepare(part))).argmax(1)
                for part in (test_pictures[at : at + 500] for at in range(0, len(test_labels), 500))
            ]
        )
    accuracy = (guess.numpy() == test_labels).mean().item()
    print(json.dumps({"torch": torch.__version__, "losses": [round(loss, 6) for loss in losses[:50]],
                      "last_loss": round(losses[-1], 6), "accuracy": round(accuracy, 4)}, indent=1))


if __name__ == "__main__":
    main()
