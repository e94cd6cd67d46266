"""The training example against its PyTorch twin: same weights, same batches
(tests/benchmarks/torch_twin.py)."""
import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.tools import data

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "fashion_mnist.py"
TWIN = json.loads((ROOT / "tests" / "benchmarks" / "torch_twin.json").read_text())
DATA = Path("/usr/share/datasets/fashion-mnist")


def example(*options) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(EXAMPLE), *map(str, options)], capture_output=True, text=True,
                          timeout=1200)


def write_idx(path: Path, array: np.ndarray) -> None:
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
    path.write_bytes(gzip.compress(head + array.tobytes()))


def small_data(folder: Path) -> Path:
    """A learnable set: the class is where the bright square is."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for part, count in (("train", 512), ("t10k", 500)):
        labels = rng.integers(0, 10, count).astype(np.uint8)
        pictures = rng.integers(0, 60, (count, 28, 28)).astype(np.uint8)
        for picture, label in zip(pictures, labels, strict=True):
            picture[label // 5 * 14:][:14, label % 5 * 5:][:, :5] += 180
        write_idx(folder / f"{part}-images-idx3-ubyte.gz", pictures)
        write_idx(folder / f"{part}-labels-idx1-ubyte.gz", labels)
    return folder


def test_trains_on_any_idx_files_and_draws_the_loss(tmp_path):
    done = example(
        "--data",
        small_data(tmp_path / "data"),
        "--epochs",
        12,
        "--picture",
        tmp_path / "loss.png",
        "--figures",
        tmp_path / "figures.json",
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert len(figures["losses"]) == 12 * 4 and figures["accuracy"] > 0.9
    assert "test accuracy" in done.stdout and (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")


def test_absent_data_says_how_to_get_it(tmp_path):
    done = example("--data", tmp_path)
    assert done.returncode == 1 and "apt-get install dataset-fashion-mnist" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_losses_and_accuracy_are_those_of_pytorch(tmp_path):
    data(DATA)
    done = example("--picture", tmp_path / "loss.png", "--figures", tmp_path / "figures.json")
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    np.testing.assert_allclose(figures["losses"][:50], TWIN["losses"], rtol=1e-3)
    assert abs(figures["accuracy"] - TWIN["accuracy"]) < 0.01
