"""Tensors that are not on the default device: what methods make for them, and gradients, is there too."""

import numpy as np
import pytest

from tiny.frontend.tensor import Tensor
from tiny.ir.dtype import dtypes
from tiny.nn import optim

OTHER = "CPU:1"
X = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
MASK = X > 0
WITH_DATA = {
    "list": (lambda x: x[[0, 2]], X[[0, 2]]),
    "second axis": (lambda x: x[:, [1, 3]], X[:, [1, 3]]),
    "array": (lambda x: x[np.array([2, 0])], X[[2, 0]]),
    "tensor and list": (lambda x: x[Tensor([0, 1], device=OTHER), [1, 2]], X[[0, 1], [1, 2]]),
    "array of bool": (lambda x: x[MASK], X[MASK]),
    "mask": (lambda x: x[x > 0], X[MASK]),
    "masked_select": (lambda x: x.masked_select(MASK), X[MASK]),
    "masked_fill": (lambda x: x.masked_fill(MASK, 2), np.where(MASK, np.float32(2), X)),
    "nonzero": (lambda x: x.nonzero(), np.argwhere(X).astype(np.int32)),
    "gather": (lambda x: x.gather(0, [[1, 0]]), np.take_along_axis(X[:, :2], np.array([[1, 0]]), 0)),
    "add": (lambda x: x + X, X + X),
    "subtract from": (lambda x: X - x, X - X),
    "matmul": (lambda x: x @ X.T, X @ X.T),
    "where": (lambda x: (x > 0).where(1.0, X), np.where(MASK, np.float32(1), X)),
    "where numbers": (lambda x: (x > 0).where(X, 0.0), np.where(MASK, X, np.float32(0))),
    "stack": (lambda x: Tensor([x[0], X[1]]), X[:2]),
    "full_like": (lambda x: x.full_like(3), np.full_like(X, 3)),
}


@pytest.mark.parametrize("name", WITH_DATA)
def test_data_goes_where_the_tensor_is(name):
    function, expected = WITH_DATA[name]
    result = function(Tensor(X, device=OTHER))
    assert result.device == OTHER
    np.testing.assert_array_equal(result.numpy(), expected)


def test_writes_by_index_take_data_there():
    tensor, expected = Tensor(X, device=OTHER).contiguous().realize(), X.copy()
    for target in (tensor, expected):
        target[[0, 2]] = np.ones(4, np.float32)
        target[:, np.array([1])] = np.full((3, 1), 7, np.float32)
        target[np.array([True, False, False])] = 2.0
    assert tensor.device == OTHER
    np.testing.assert_array_equal(tensor.numpy(), expected)


def test_a_number_next_to_a_tensor_stays_a_constant():
    assert Tensor(X, device=OTHER).logical_or(True).device == OTHER
    assert Tensor([1.0, Tensor(2.0, device=OTHER)]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("loss", [lambda x: x.sum(), lambda x: x[1:].sum(), lambda x: (x * x).sum()])
def test_a_gradient_is_on_the_device_of_its_leaf(loss):
    """One that is a constant too: computed before it is used, it could not meet the leaf otherwise."""
    leaf = Tensor(X, device=OTHER, requires_grad=True)
    loss(leaf).backward()
    [given] = loss(leaf).gradient(leaf)
    assert leaf.grad.device == given.device == OTHER
    np.testing.assert_array_equal(leaf.grad.realize().numpy(), given.realize().numpy())
    assert (leaf - leaf.grad).device == OTHER
    optim.SGD([leaf], lr=1.0).step()
    np.testing.assert_array_equal(leaf.numpy(), X - given.numpy())


def test_gradients_that_are_zeros_are_there_too():
    leaf = Tensor(X, device=OTHER, requires_grad=True)
    [zeros] = Tensor(1.0).gradient(leaf, materialize_grads=True)
    assert zeros.device == OTHER and not zeros.numpy().any()


def test_a_gradient_passes_a_copy_of_constants():
    """The copy's source has no place of its own until it is computed: then it is the default device."""
    leaf = Tensor.ones(3, requires_grad=True)
    (leaf.to(OTHER) * Tensor([1.0, 2.0, 3.0], device=OTHER)).sum().backward()
    assert leaf.grad.device == leaf.device != OTHER
    assert leaf.grad.tolist() == [1.0, 2.0, 3.0]


def test_a_matrix_is_factorized_where_it_is():
    factors = Tensor(X, device=OTHER).svd(full_matrices=False)
    assert all(factor.device == OTHER for factor in factors)
    u, s, vh = (factor.numpy() for factor in factors)
    np.testing.assert_allclose(u * s @ vh, X, atol=1e-4)


def test_a_type_and_a_device_can_be_given_together():
    made = Tensor([[1, 2]], device=OTHER, dtype=dtypes.int8)
    assert made.device == OTHER and (made + [1, 1]).tolist() == [[2, 3]]
