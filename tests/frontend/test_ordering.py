"""Sorting against numpy: every type, short and long axes, stability, NaN."""

import numpy as np
import pytest

from tests.frontend.common import NUMPY_TYPES, array, compare
from tiny.frontend.ordering import RANKED_AXIS
from tiny.frontend.tensor import Tensor

CASES = [(kind, length) for kind in NUMPY_TYPES for length in (1, 7, 64)]
CASES += [(kind, RANKED_AXIS + 89) for kind in (np.uint8, np.int16, np.float32, np.int64)]


@pytest.mark.parametrize(("kind", "length"), CASES)
def test_sorting_is_numpys_stable_one(kind, length):
    x = array((2, length), kind, length, -100, 100)
    values, places = Tensor(x).sort()
    order = np.argsort(x, axis=1, kind="stable")
    compare(
        (places, order.astype(np.int32)),
        (values, np.take_along_axis(x, order, 1)),
        (Tensor(x).argsort(), order.astype(np.int32)),
    )


def test_special_numbers_sort_with_nan_last_and_zeros_equal():
    x = np.array([3.0, np.nan, -np.inf, 0.0, -0.0, np.inf, -1.5, np.nan, 1e-45, -1e-45, 0.0], np.float32)
    long = np.concatenate([x, array((RANKED_AXIS,), np.float32)])
    for values in (x, long, x.astype(np.float16), x.astype(np.float64)):
        result, places = Tensor(values).sort()
        compare((places, np.argsort(values, kind="stable").astype(np.int32)), (result, np.sort(values)))


def test_descending_order_is_stable_too():
    """Equal elements keep their order; it is not the ascending one turned round. NaN is first, as largest."""
    x = np.array([1, 3, 2, 3, 1, 2], np.int32)
    values, places = Tensor(x).sort(descending=True)
    compare(
        (values, np.array([3, 3, 2, 2, 1, 1], np.int32)), (places, np.array([1, 3, 2, 5, 0, 4], np.int32))
    )
    f = np.array([1.0, np.nan, 2.0], np.float32)
    assert Tensor(f).argsort(descending=True).tolist() == [1, 2, 0]
    assert Tensor([False, True, False]).sort(descending=True)[1].tolist() == [1, 0, 2]


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_sorting_along_any_axis(dim):
    x = array((4, 5, 3), np.float32)
    values, places = Tensor(x).sort(dim)
    compare((values, np.sort(x, dim)), (places, np.argsort(x, dim).astype(np.int32)))


def test_extreme_integers_keep_their_order():
    x = np.array([2**63 - 1, -(2**63), 0, -1, 1], np.int64)
    u = np.array([2**64 - 1, 0, 2**63, 1], np.uint64)
    compare((Tensor(x).sort()[0], np.sort(x)), (Tensor(u).sort()[0], np.sort(u)))


def test_topk():
    x = np.array([[1, 5, 3, 5, 2], [9, 8, 7, 6, 5]], np.float32)
    values, places = Tensor(x).topk(3)
    low, low_places = Tensor(x).topk(2, largest=False)
    compare(
        (values, np.array([[5, 5, 3], [9, 8, 7]], np.float32)),
        (places, np.array([[1, 3, 2], [0, 1, 2]], np.int32)),
        (low, np.array([[1, 2], [5, 6]], np.float32)),
        (low_places, np.array([[0, 4], [4, 3]], np.int32)),
        (Tensor(x).topk(1, dim=0, sorted_=False)[0], x.max(0, keepdims=True)),
    )
    long = array((2000,), np.float32)
    values, places = Tensor(long).topk(5)
    compare(
        (values, np.sort(long)[::-1][:5]), (places, np.argsort(-long, kind="stable")[:5].astype(np.int32))
    )
    with pytest.raises(ValueError, match="topk: 6 of the 5 elements"):
        Tensor(x).topk(6)


def test_sorting_odd_shapes():
    assert Tensor.zeros(0).sort()[0].shape == (0,) and Tensor.zeros(2, 0).argsort().shape == (2, 0)
    assert Tensor.zeros(0, 3).sort()[1].shape == (0, 3) and Tensor(5.0).sort()[0].item() == 5.0


def test_gradients_go_to_where_elements_came_from():
    x = Tensor([3.0, 1.0, 2.0])
    weights = Tensor([1.0, 10.0, 100.0])
    assert (x.sort()[0] * weights).sum().gradient(x)[0].tolist() == [100.0, 1.0, 10.0]
