"""Sizes that are variables: one graph for every value, right at each."""
import numpy as np
import pytest

from tests.frontend.common import array
from tiny.frontend.tensor import Tensor
from tiny.ir.node import variable

X = array((6, 8), np.float32)
SIZES = (1, 3, 6)


def bound(value: int, name: str = "i", high: int = 6):
    return variable(name, 1, high).bind(value)


OPERATIONS = {
    "read": (lambda t, i: t[:i] + 1, lambda x: x + 1),
    "sum": (lambda t, i: t[:i].sum(0), lambda x: x.sum(0)),
    "mean": (lambda t, i: t[:i].mean(), lambda x: x.mean()),
    "var": (lambda t, i: t[:i].var(0, correction=0), lambda x: x.var(0)),
    "max": (lambda t, i: t[:i].max(0), lambda x: x.max(0)),
    "argmax": (lambda t, i: t[:i].argmax(0), lambda x: x.argmax(0).astype(np.int32)),
    "cumsum": (lambda t, i: t[:i].cumsum(0), lambda x: x.cumsum(0)),
    "transpose": (lambda t, i: t[:i].T, lambda x: x.T),
    "reshape": (lambda t, i: t[:i].reshape(i, 2, 4), lambda x: x.reshape(-1, 2, 4)),
    "flatten": (lambda t, i: t[:i].reshape(-1), lambda x: x.reshape(-1)),
    "unflatten": (lambda t, i: t[:i].reshape(-1, 4), lambda x: x.reshape(-1, 4)),
    "matmul inside": (lambda t, i: t[:i].T @ t[:i], lambda x: x.T @ x),
    "matmul outside": (lambda t, i: t[:i] @ t.T, lambda x: x @ X.T),
    "softmax": (lambda t, i: t[:i].softmax(0), lambda x: np.exp(x - x.max(0)) / np.exp(x - x.max(0)).sum(0)),
    "broadcast": (lambda t, i: t[:i] * t[0], lambda x: x * X[0]),
    "expand": (lambda t, i: t[:1].expand(i, 8), lambda x: np.broadcast_to(X[:1], x.shape)),
    "cat": (lambda t, i: t[:i].cat(t[:2]), lambda x: np.concatenate([x, X[:2]])),
    "cat after": (lambda t, i: t[:2].cat(t[:i]), lambda x: np.concatenate([X[:2], x])),
    "pad": (lambda t, i: t[:i].pad_to(6, None), lambda x: np.pad(x, ((0, 6 - len(x)), (0, 0)))),
    "flip": (lambda t, i: t[:i].flip(0), lambda x: x[::-1]),
    "row": (lambda t, i: t[i - 1], lambda x: x[-1]),
    "rest": (lambda t, i: t[i - 1:], lambda x: X[len(x) - 1:]),
    "taken": (lambda t, i: t[:i][Tensor([0, -1])], lambda x: x[[0, -1]]),
    "arange": (lambda t, i: Tensor.arange(i), lambda x: np.arange(len(x), dtype=np.int32)),
    "ones": (lambda t, i: Tensor.ones(i, 2).sum(), lambda x: np.float32(2 * len(x))),
    "tril": (lambda t, i: t[:i].tril(), lambda x: np.tril(x)),
    "where": (lambda t, i: (t[:i] > 0).where(t[:i], 0), lambda x: np.where(x > 0, x, 0)),
    "layernorm": (lambda t, i: t[:i].T.layernorm(eps=1e-3),
                  lambda x: (x.T - x.T.mean(-1, keepdims=True)) / np.sqrt(x.T.var(-1, keepdims=True) + 1e-3)),
    "einsum": (lambda t, i: Tensor.einsum("ij,kj->ik", t[:i], t), lambda x: x @ X.T),
    "split": (lambda t, i: t[:i].split(4, 1)[1], lambda x: x[:, 4:]),
    "repeat": (lambda t, i: t[:i].repeat(2, 1), lambda x: np.tile(x, (2, 1))),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_on_an_axis_of_variable_size(name):
    function, expected = OPERATIONS[name]
    for size in SIZES:
        result = function(Tensor(X), bound(size))
        wanted = np.asarray(expected(X[:size]))
        got = result.numpy()
        assert got.shape == wanted.shape and got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_a_cache_that_grows_at_a_variable_place():
    cache, expected = Tensor.zeros(6, 2).realize(), np.zeros((6, 2), np.float32)
    for place in range(1, 5):
        start = bound(place)
        row = np.full((1, 2), place, np.float32)
        cache[start:start + 1] = Tensor(row)
        expected[place] = row
        seen = cache[:start + 1].sum(0)
        np.testing.assert_array_equal(seen.numpy(), expected[:place + 1].sum(0))
    np.testing.assert_array_equal(cache.numpy(), expected)


def test_attention_over_a_variable_length():
    q, k = array((1, 2, 1, 4), np.float32, 1), array((1, 2, 6, 4), np.float32, 2)
    for size in SIZES:
        scores = (Tensor(q) @ Tensor(k)[:, :, :bound(size)].transpose(-1, -2)).softmax(-1)
        result = scores @ Tensor(k)[:, :, :bound(size)]
        logits = q @ k[:, :, :size].swapaxes(-1, -2)
        share = np.exp(logits - logits.max(-1, keepdims=True))
        share /= share.sum(-1, keepdims=True)
        np.testing.assert_allclose(result.numpy(), share @ k[:, :, :size], rtol=1e-5, atol=1e-6)


def test_a_symbolic_shape_has_a_largest_one_and_a_length_now():
    t = Tensor(X)[:bound(3)] + 1
    assert t.shape[1] == 8 and not isinstance(t.shape[0], int) and t.max_shape == (6, 8)
    assert len(t) == 3 and t.numpy().shape == (3, 8)


def test_a_variable_place_outside_is_an_error():
    for index in (slice(None, bound(6) + 1), slice(bound(3), 2), slice(bound(1) - 2, None)):
        with pytest.raises(IndexError, match="does not fit in an axis of size 6"):
            Tensor(X)[index]


def test_two_variables_do_not_broadcast():
    with pytest.raises(ValueError, match="do not broadcast"):
        Tensor(X)[:bound(2)] + Tensor(X)[:bound(2, "j")]
