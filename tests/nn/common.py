"""What the tests of layers, losses and optimisers share."""
import json
from pathlib import Path

import numpy as np

from tests.nn.filled import filled, weights
from tiny import Tensor
from tiny.nn.state import get_state_dict, load_state_dict

TORCH = json.loads(Path(__file__).with_name("torch_values.json").read_text())


def load(layer) -> None:
    """Give a layer the values of `filled.weights`."""
    named = {name: tensor for name, tensor in get_state_dict(layer).items() if tensor.dtype.is_float}
    load_state_dict(layer, {name: Tensor(value) for name, value in weights(named).items()}, strict=False)


def check_with_gradient(expected: dict, function, *arrays, tolerance: float = 2e-5) -> None:
    """Compare a function's result, and the gradient of its sum times filled numbers, with PyTorch's."""
    inputs = [Tensor(array) for array in arrays]
    result = function(*inputs)
    loss = (result * Tensor(filled(*result.shape, phase=9.0))).sum()
    slope, = loss.gradient(inputs[0])
    close(result, expected["result"], tolerance)
    close(slope, expected["gradient"], tolerance)


def close(tensor: Tensor, expected: list, tolerance: float = 2e-5) -> None:
    np.testing.assert_allclose(tensor.numpy().reshape(-1), np.array(expected), rtol=tolerance, atol=tolerance)
