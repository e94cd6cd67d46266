"""Data sets: the real one where its package is installed, the files' format, and what happens without them.
"""
import gzip

import numpy as np
import pytest

from tests.tools import data
from tiny import nn
from tiny.nn import datasets


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes() + array.tobytes()


@pytest.fixture
def small(tmp_path):
    """A folder as MNIST's, with three and two pictures, one file not packed."""
    pictures = np.arange(5 * 28 * 28, dtype=np.uint8).reshape(5, 28, 28)
    for part, these in (("train", slice(0, 3)), ("t10k", slice(3, 5))):
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(pictures[these])))
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(idx(np.arange(5, dtype=np.uint8)[these]))
    return tmp_path


def test_idx_files(small):
    pictures, labels, test_pictures, test_labels = nn.datasets.mnist(folder=small)
    assert (pictures.shape, test_pictures.shape) == ((3, 1, 28, 28), (2, 1, 28, 28))
    assert (labels.tolist(), test_labels.tolist()) == ([0, 1, 2], [3, 4])
    assert pictures[0, 0, 0, :3].tolist() == [0, 1, 2]


def test_damaged_and_missing_files_are_named(small):
    (small / "t10k-labels-idx1-ubyte").write_bytes(b"text")
    with pytest.raises(ValueError, match="t10k-labels-idx1-ubyte: starts with b'tex'"):
        nn.datasets.mnist(folder=small)
    (small / "train-images-idx3-ubyte.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"train-images-idx3-ubyte\.gz: not there"):
        nn.datasets.mnist(folder=small)


def test_fashion_mnist():
    data(datasets.FASHION_FOLDER)
    pictures, labels, test_pictures, test_labels = nn.datasets.mnist(fashion=True)
    assert (pictures.shape, labels.shape) == ((60000, 1, 28, 28), (60000,))
    assert (test_pictures.shape, test_labels.shape) == ((10000, 1, 28, 28), (10000,))
    assert np.bincount(test_labels.numpy()).tolist() == [1000] * 10


def test_without_any_package_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "FASHION_FOLDER", tmp_path / "absent")
    monkeypatch.setattr(datasets, "_package_file", lambda *inside: None)
    with pytest.raises(FileNotFoundError, match="no Fashion-MNIST is installed; apt-get install dataset"):
        nn.datasets.mnist(fashion=True)


def test_scikit_learns_digits_stand_in(monkeypatch, tmp_path):
    rows = np.concatenate([np.arange(10).repeat(64).reshape(10, 64), np.arange(10)[:, None]], axis=1)
    path = tmp_path / "digits.csv.gz"
    path.write_bytes(gzip.compress("\n".join(",".join(map(str, row)) for row in rows).encode()))
    monkeypatch.setattr(datasets, "FASHION_FOLDER", tmp_path / "absent")
    monkeypatch.setattr(datasets, "_package_file", lambda package, *_: path if package == "sklearn" else None)
    with pytest.warns(UserWarning, match="8 digits stand in for it"):
        pictures, labels, _, test_labels = nn.datasets.mnist(fashion=True)
    assert pictures.shape == (8, 1, 28, 28)
    assert (labels.tolist(), test_labels.tolist()) == ([1, 2, 3, 4, 6, 7, 8, 9], [0, 5])
    assert pictures[1, 0, 14, 14].item() == 32


def test_cifar(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"data_batch_1\.bin: not there; unpack"):
        nn.datasets.cifar(folder=tmp_path)
    record = bytes([7]) + bytes(range(256)) * 12
    for name in [f"data_batch_{number}.bin" for number in range(1, 6)] + ["test_batch.bin"]:
        (tmp_path / name).write_bytes(record)
    pictures, labels, test_pictures, _ = nn.datasets.cifar(folder=tmp_path)
    assert (pictures.shape, test_pictures.shape, labels.tolist()) == ((5, 3, 32, 32), (1, 3, 32, 32), [7] * 5)
