"""Factorizations: their products give the matrix back, their factors have the form they promise."""
import numpy as np
import pytest

from tests.frontend.common import array
from tiny.frontend.tensor import Tensor

SHAPES = [(3, 3), (5, 3), (3, 5), (1, 4), (4, 1), (2, 4, 3), (6, 6)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_qr(shape):
    x = array(shape, np.float32)
    q, r = (part.numpy() for part in Tensor(x).qr())
    np.testing.assert_allclose(q @ r, x, atol=1e-5)
    np.testing.assert_allclose(q @ q.swapaxes(-1, -2), np.broadcast_to(np.eye(shape[-2]), q.shape), atol=1e-5)
    assert np.array_equal(r, np.triu(r))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_svd(shape):
    x = array(shape, np.float32)
    small = min(shape[-2:])
    u, s, vh = (part.numpy() for part in Tensor(x).svd())
    np.testing.assert_allclose(s, np.linalg.svd(x, compute_uv=False), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(u[..., :small] * s[..., None, :] @ vh[..., :small, :], x, atol=1e-4)
    for matrix in (u, vh):
        unit = np.broadcast_to(np.eye(matrix.shape[-1]), matrix.shape)
        np.testing.assert_allclose(matrix @ matrix.swapaxes(-1, -2), unit, atol=1e-4)
    u, s, vh = Tensor(x).svd(full_matrices=False)
    assert u.shape[-1] == s.shape[-1] == vh.shape[-2] == small


def test_matrices_without_full_rank():
    x = np.array([[1, 2], [2, 4], [3, 6]], np.float32)
    u, s, vh = (part.numpy() for part in Tensor(x).svd())
    np.testing.assert_allclose(s, [np.sqrt(70), 0], atol=1e-5)
    np.testing.assert_allclose(u @ u.T, np.eye(3), atol=1e-5)
    q, r = (part.numpy() for part in Tensor(np.zeros((2, 2), np.float32)).qr())
    assert np.array_equal(q, np.eye(2)) and not r.any()
    with pytest.raises(ValueError, match=r"qr: a tensor of shape \(3,\)"):
        Tensor([1.0, 2.0, 3.0]).qr()
