"""Arrays that look random and are the same everywhere, for comparisons with values made elsewhere."""
import numpy as np


def filled(*shape: int, phase: float = 0.0, dtype=np.float32) -> np.ndarray:
    """Numbers between -1 and 1: sines far apart."""
    count = int(np.prod(shape))
    return np.sin(np.arange(count) * 1.7 + phase).reshape(shape).astype(dtype)


def weights(named) -> dict[str, np.ndarray]:
    """Values for tensors or arrays by name, each with a phase of its own; variances come out positive."""
    values = {name: filled(*named[name].shape, phase=1.0 + k) for k, name in enumerate(sorted(named))}
    return {name: np.abs(value) + 0.5 if name.endswith("var") else value for name, value in values.items()}
