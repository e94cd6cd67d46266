"""Reductions and running reductions against numpy: axes, types, NaN, infinities, no elements."""

import math

import numpy as np
import pytest

from tests.frontend.common import FLOAT_TYPES, NUMPY_TYPES, array, buffer, compare, tolerance
from tiny.frontend.tensor import Tensor
from tiny.ir.dtype import dtypes

inf, nan = math.inf, math.nan
X = array((3, 4, 5), np.float32, 7)
AXES = [None, 0, 1, -1, (0, 2), (0, 1, 2), ()]
PLAIN = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "var": np.var,
    "std": np.std,
    "any": np.any,
    "all": np.all,
}


@pytest.mark.parametrize("name", PLAIN)
def test_reductions_are_numpys_over_any_axes(name):
    pairs = []
    for axis in AXES:
        for keepdim in (False, True):
            more = {"correction": 0} if name in ("var", "std") else {}
            with np.errstate(all="ignore"):
                expected = PLAIN[name](X, axis=axis, keepdims=keepdim)
            pairs.append((getattr(Tensor(X), name)(axis, keepdim, **more), expected))
    compare(*pairs, rtol=1e-5, atol=1e-5)


def test_axis_and_dim_keepdim_and_keepdims_are_the_same():
    t = Tensor(X)
    compare(
        (t.sum(dim=1), X.sum(1)),
        (t.sum(axis=1), X.sum(1)),
        (t.max(dim=(0, 1), keepdims=True), X.max((0, 1), keepdims=True)),
        (t.softmax(dim=0).sum(0), np.ones((4, 5), np.float32)),
        (t.cumsum(dim=1), X.cumsum(1)),
        (t.var(dim=0, unbiased=False), X.var(0)),
        (t.argmax(dim=2), X.argmax(2).astype(np.int32)),
        rtol=1e-5,
    )
    with pytest.raises(IndexError, match="sum: a tensor with 3 axes has no axis 3"):
        t.sum(3)
    with pytest.raises(ValueError, match="twice"):
        t.sum((0, -3))


def test_sums_and_products_keep_at_least_32_bits():
    """sum(uint8) is uint32, sum(int8) and sum(bool) int32; floats keep their type."""
    wide = {
        np.bool_: np.int32,
        np.int8: np.int32,
        np.int16: np.int32,
        np.uint8: np.uint32,
        np.uint16: np.uint32,
    }
    pairs = []
    for kind in NUMPY_TYPES:
        x = array((40,), kind, 1)
        target = wide.get(kind, kind)
        if not np.issubdtype(kind, np.floating):
            pairs += [
                (Tensor(x).sum(), x.sum(dtype=target)),
                (Tensor(x[:9]).prod(), x[:9].prod(dtype=target)),
                (Tensor(x).cumsum(0), x.cumsum(dtype=target)),
            ]
        pairs += [(Tensor(x).max(), x.max()), (Tensor(x).min(), x.min())]
        assert Tensor(x).sum().dtype.name == np.dtype(target).name
        assert Tensor(x).mean().dtype is (Tensor(x).dtype if Tensor(x).dtype.is_float else dtypes.float32)
    compare(*pairs)
    assert Tensor([1, 2]).sum(dtype=dtypes.float16).dtype is dtypes.float16


def test_small_floats_add_up_in_float32():
    """A half counts only to 2048 and holds 65504; its mean must not pass through either."""
    x = np.full(4096, 30, np.float16)
    assert Tensor(x).mean().item() == 30.0 and Tensor(np.ones(4096, np.float16)).sum().item() == 4096.0
    assert Tensor(x).var().item() == 0.0 and Tensor(x).softmax(0).sum().item() == pytest.approx(1, rel=1e-2)
    assert Tensor([1.0] * 300, dtype="bfloat16").sum().item() == 300.0


def test_a_long_sum_does_not_stick_at_two_to_the_24():
    """One float32 accumulator would: 2**24 + 1 is not representable."""
    assert Tensor.ones(2**24 + 2).contiguous().sum().item() == 16777218.0
    assert Tensor.ones(2**24 + 2).sum().item() == 16777218.0


@pytest.mark.parametrize("name", ["var", "std"])
def test_spread_with_corrections_and_their_means(name):
    pairs = []
    for correction in (0, 1, 2):
        function = getattr(np, name)
        pairs.append(
            (getattr(Tensor(X), name)(1, correction=correction), function(X, axis=1, ddof=correction))
        )
    both = getattr(Tensor(X), f"{name}_mean")(0)
    pairs += [(both[0], getattr(np, name)(X, axis=0, ddof=1)), (both[1], X.mean(0))]
    compare(*pairs, rtol=1e-5, atol=1e-6)
    big = np.array([1e4 + 1, 1e4 + 2, 1e4 + 3], np.float32)
    assert Tensor(big).var().item() == 1.0  # squares are of distances: nothing cancels


def test_places_of_extremes_are_the_first_and_of_nan_before_all():
    x = np.array([[3, 1, 3], [1, 1, 0], [-2, -2, -1]], np.int32)
    f = np.array([[1, nan, 3], [nan, nan, 0], [-inf, inf, inf], [-inf, -inf, -inf]], np.float32)
    pairs = []
    for values in (x, f):
        for axis in (0, 1, -1, None):
            pairs += [
                (Tensor(values).argmax(axis), values.argmax(axis).astype(np.int32)),
                (Tensor(values).argmin(axis), values.argmin(axis).astype(np.int32)),
            ]
    pairs += [
        (Tensor(x).argmax(1, keepdim=True), x.argmax(1, keepdims=True).astype(np.int32)),
        (Tensor(x).argmax(keepdim=True), np.array([[0]], np.int32)),
        (Tensor(5).argmax(), np.array(0, np.int32)),
        (Tensor([False, True]).argmax(), np.array(1, np.int32)),
        (Tensor([3, 0], dtype="uint8").argmin(), np.array(1, np.int32)),
    ]
    compare(*pairs)
    with pytest.raises(ValueError, match="no elements"):
        Tensor.zeros(2, 0).argmax(1)


def test_reductions_of_no_elements():
    empty = np.zeros((2, 0, 3), np.float32)
    compare(
        (Tensor(empty).sum(1), empty.sum(1)),
        (Tensor(empty).prod(), np.float32(1)),
        (Tensor(empty).any(), np.array(False)),
        (Tensor(empty).all(), np.array(True)),
        (Tensor(empty).max(1), np.full((2, 3), -inf, np.float32)),
        (Tensor(empty).min(1), np.full((2, 3), inf, np.float32)),
        (Tensor(empty).mean(1), np.full((2, 3), nan, np.float32)),
        (Tensor(empty).sum(0), np.zeros((0, 3), np.float32)),
        (Tensor(empty).cumsum(1), empty),
        (Tensor(empty.astype(np.int32)).max(1), np.full((2, 3), -(2**31), np.int32)),
        (Tensor(empty).softmax(0), empty),
        (Tensor(empty).logsumexp(1), np.full((2, 3), -inf, np.float32)),
    )


def test_nan_and_infinities_stay():
    x = np.array([[1, nan, 2], [inf, 1, 2], [inf, -inf, 0], [-inf, -inf, -inf]], np.float32)
    with np.errstate(all="ignore"):
        compare(
            (Tensor(x).sum(1), x.sum(1)),
            (Tensor(x).max(1), x.max(1)),
            (Tensor(x).min(1), x.min(1)),
            (Tensor(x).mean(1), x.mean(1)),
            (Tensor(x).prod(1), x.prod(1)),
            (Tensor(x).any(1), x.any(1)),
        )


# -- exponentials -------------------------------------------------------------------------------------------
def _logsumexp(x, axis):
    top = np.where(np.isfinite(x.max(axis, keepdims=True)), x.max(axis, keepdims=True), 0)
    return np.squeeze(np.log(np.exp(x - top).sum(axis, keepdims=True)) + top, axis)


def test_logsumexp_of_rows_that_are_all_minus_infinity():
    """The largest element is taken away first; where it is infinite that would be inf - inf."""
    result = Tensor([[1.0, 2.0], [-inf, -inf]]).logsumexp(1).numpy()
    assert result[0] == pytest.approx(2.3132617) and result[1] == -inf
    x = np.array([[1e4, 1e4 + 1], [-1e4, -1e4], [inf, 1], [nan, 1], [inf, -inf]], np.float32)
    with np.errstate(all="ignore"):
        compare((Tensor(x).logsumexp(1), _logsumexp(x.astype(float), 1).astype(np.float32)), rtol=1e-6)


@pytest.mark.parametrize("kind", FLOAT_TYPES)
def test_softmax_and_its_logarithm(kind):
    x = (array((3, 6), kind, 3) * kind(20)).astype(kind)
    wide = x.astype(np.float64)
    share = np.exp(wide - wide.max(1, keepdims=True))
    share /= share.sum(1, keepdims=True)
    low = wide - wide.min(1, keepdims=True)
    small = np.exp(-low) / np.exp(-low).sum(1, keepdims=True)
    compare(
        (Tensor(x).softmax(), share.astype(kind)),
        (Tensor(x).softmin(1), small.astype(kind)),
        (Tensor(x).log_softmax(1), (wide - _logsumexp(wide, 1)[:, None]).astype(kind)),
        (Tensor(x).logsumexp(), _logsumexp(wide.reshape(-1), 0).astype(kind)),
        rtol=8 * tolerance(kind),
        atol=8 * tolerance(kind),
    )
    assert (
        Tensor([1, 2]).softmax().dtype is dtypes.float32
        and Tensor(x).softmax(dtype="double").dtype is dtypes.float64
    )


def test_norms():
    compare(
        (Tensor(X).norm(), np.linalg.norm(X.reshape(-1))),
        (Tensor(X).norm(1, 1), np.abs(X).sum(1)),
        (Tensor(X).norm(3, -1), (np.abs(X) ** 3).sum(-1) ** np.float32(1 / 3)),
        (Tensor(X).norm(inf, 0), np.abs(X).max(0)),
        (Tensor(X).normalize(dim=2), X / np.linalg.norm(X, axis=2, keepdims=True)),
        rtol=1e-5,
    )


def test_normalisation_over_features_and_batch():
    mean, var = X.mean(-1, keepdims=True), X.var(-1, keepdims=True)
    weight, bias = array((4,), np.float32, 1), array((4,), np.float32, 2)
    center, spread = X.mean((0, 2)), 1 / np.sqrt(X.var((0, 2)) + 1e-5)
    shaped = [v.reshape(1, 4, 1) for v in (center, spread, weight, bias)]
    compare(
        (Tensor(X).layernorm(), (X - mean) / np.sqrt(var + 1e-5)),
        (Tensor(X).rms_norm(), X / np.sqrt((X**2).mean(-1, keepdims=True) + 1e-5)),
        (
            Tensor(X).batchnorm(Tensor(weight), Tensor(bias), Tensor(center), Tensor(spread)),
            (X - shaped[0]) * shaped[1] * shaped[2] + shaped[3],
        ),
        rtol=1e-4,
        atol=1e-5,
    )


# -- running reductions -------------------------------------------------------------------------------------
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_running_sums_products_and_extremes(axis):
    values, places = Tensor(X).cummax(axis)
    low, _ = Tensor(X).cummin(axis)
    compare(
        (Tensor(X).cumsum(axis), X.cumsum(axis)),
        (Tensor(X).cumprod(axis), X.cumprod(axis)),
        (values, np.maximum.accumulate(X, axis)),
        (low, np.minimum.accumulate(X, axis)),
        (Tensor(X).gather(axis, places), np.maximum.accumulate(X, axis)),
        (Tensor(X).logcumsumexp(axis), np.logaddexp.accumulate(X.astype(float), axis).astype(np.float32)),
        rtol=1e-5,
        atol=1e-5,
    )


def test_running_extremes_keep_nan_and_name_the_last_place():
    x = np.array([1, 3, 3, nan, 5, nan], np.float32)
    values, places = Tensor(x).cummax(0)
    compare((values, np.maximum.accumulate(x)), (places, np.array([0, 1, 2, 3, 3, 5], np.int32)))


def test_running_logsumexp_neither_overflows_nor_underflows():
    x = np.array([-1000, 0, 1000, -inf, 999, inf], np.float32)
    compare(
        (Tensor(x).logcumsumexp(0), np.logaddexp.accumulate(x.astype(float)).astype(np.float32)), rtol=1e-6
    )
    start = np.array([-inf, -inf, 1], np.float32)
    compare((Tensor(start).logcumsumexp(0), start))


def test_running_reductions_of_odd_shapes():
    compare(
        (Tensor(3.0).cumsum(0), np.array(3, np.float32)),
        (Tensor.ones(1000).cumsum(0), np.arange(1, 1001, dtype=np.float32)),
        (Tensor.ones(3, 1).cumsum(1), np.ones((3, 1), np.float32)),
        (Tensor([True, True]).cumsum(0), np.array([1, 2], np.int32)),
        (Tensor(np.full(3000, 1, np.float16)).cumsum(0), np.arange(1, 3001).astype(np.float16)),
    )


def test_gradients_of_products_with_zeros():
    """Nothing is divided by an element, so a zero gives no NaN."""
    for values, expected in (([0.0, 2, 3], [6.0, 0, 0]), ([0.0, 0, 3], [0.0, 0, 0])):
        x = Tensor(values)
        assert x.prod().gradient(x)[0].tolist() == expected
    x = Tensor([2.0, 0, 3])
    assert x.cumprod(0).sum().gradient(x)[0].tolist() == [1.0, 8.0, 0.0]


def test_the_gradient_of_a_maximum_counts_ties_where_they_fit():
    """70000 ties do not fit in a half; the share of each must not become 0."""
    x = buffer(np.ones(70000), np.float16)
    assert x.max().gradient(x)[0][0].item() == pytest.approx(1.43e-5, rel=1e-2)
