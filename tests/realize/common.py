"""What the tests of this folder share."""
import numpy as np

from tiny import Tensor


def buffer(values, dtype=np.float32) -> Tensor:
    """A tensor in memory."""
    return Tensor(np.array(values, dtype=dtype)).realize()
