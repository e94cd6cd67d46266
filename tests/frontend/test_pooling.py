"""Pooling against loops in numpy, with padding, dilation, ceil_mode, places and integer types."""

import itertools
import math

import numpy as np
import pytest

from tests.frontend.common import array, compare
from tiny.frontend.tensor import Tensor


def windows_of(x, kernel, stride, dilation, padding, ceil_mode):
    """(output place, [(flat place in the image, value)], number of elements inside the padded image)."""
    spatial = x.shape[2:]
    out = []
    for size, k, s in zip(spatial, kernel, stride, strict=True):
        reach = size + 2 * padding - dilation * (k - 1) - 1
        count = (-(-reach // s) if ceil_mode else reach // s) + 1
        if ceil_mode and (count - 1) * s >= size + padding:
            count -= 1
        out.append(count)
    for place in itertools.product(*map(range, out)):
        inside, padded = [], 0
        for tap in itertools.product(*map(range, kernel)):
            at = [p * s + t * dilation - padding for p, s, t in zip(place, stride, tap, strict=True)]
            padded += all(-padding <= a < size + padding for a, size in zip(at, spatial, strict=True))
            if all(0 <= a < size for a, size in zip(at, spatial, strict=True)):
                inside.append(tuple(at))
        yield out, place, inside, padded


def pooled(x, kernel, stride, dilation=1, padding=0, ceil_mode=False, average=None):
    result = places = None
    for out, place, inside, padded in windows_of(x, kernel, stride, dilation, padding, ceil_mode):
        if result is None:
            result, places = np.zeros((*x.shape[:2], *out)), np.zeros((*x.shape[:2], *out), np.int32)
        values = np.stack([x[(slice(None), slice(None), *at)] for at in inside])
        if average:
            result[(slice(None), slice(None), *place)] = values.sum(0) / (
                padded if average == "padded" else len(inside)
            )
        else:
            result[(slice(None), slice(None), *place)] = values.max(0)
            flat = np.array([np.ravel_multi_index(at, x.shape[2:]) for at in inside])
            best = np.where((values == values.max(0)) | np.isnan(values), flat[:, None, None], 10**6)
            places[(slice(None), slice(None), *place)] = best.min(0)
    return result.astype(x.dtype), places


CASES = [
    ((2, 2), None, 1, 0, False),
    ((3, 2), (2, 1), 1, 1, False),
    ((3, 3), (2, 2), 1, 1, True),
    ((2, 2), (3, 3), 1, 0, True),
    ((2, 3), (1, 1), 2, 1, False),
    ((2, 2), (2, 2), 1, 1, True),
    ((1, 1), (2, 3), 1, 0, True),
]


@pytest.mark.parametrize(("kernel", "stride", "dilation", "padding", "ceil_mode"), CASES, ids=str)
def test_pooling_is_its_definition(kernel, stride, dilation, padding, ceil_mode):
    x = array((2, 3, 7, 6), np.float32)
    options = dict(kernel_size=kernel, stride=stride, dilation=dilation, padding=padding, ceil_mode=ceil_mode)
    plain = (kernel, stride or kernel, dilation, padding, ceil_mode)
    values, places = Tensor(x).max_pool2d(**options, return_indices=True)
    best, best_places = pooled(x, *plain)
    compare((values, best), (Tensor(x).max_pool2d(**options), best), (places, best_places))
    compare(
        (Tensor(x).avg_pool2d(**options), pooled(x, *plain, average="padded")[0]),
        (Tensor(x).avg_pool2d(**options, count_include_pad=False), pooled(x, *plain, average="inside")[0]),
        rtol=1e-5,
        atol=1e-6,
    )


def test_pooling_in_one_and_three_dimensions():
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 12)
    cube = np.arange(64, dtype=np.float32).reshape(1, 4, 4, 4)
    compare(
        (Tensor(x).max_pool2d((3,)), x.reshape(1, 1, 4, 3).max(-1)),
        (Tensor(x).avg_pool2d((3,)), x.reshape(1, 1, 4, 3).mean(-1)),
        (Tensor(cube).max_pool2d((2, 2, 2)), cube.reshape(1, 2, 2, 2, 2, 2, 2).max((2, 4, 6))),
    )


def test_padding_does_not_change_the_type_of_an_integer_pool():
    """What stands in the padding is the type's lowest value, not a float infinity."""
    result = Tensor(np.array([[[[-5, -6], [-7, -8]]]], np.int32)).max_pool2d(2, stride=1, padding=1)
    assert (
        result.numpy().dtype == np.int32
        and result.numpy().reshape(-1)[0] == -5
        and result.numpy().max() == -5
    )


def test_pooling_keeps_nan_and_infinities():
    x = np.full((1, 1, 2, 4), -np.inf, np.float32)
    x[0, 0, 0, 2] = np.nan
    values, places = Tensor(x).max_pool2d(2, return_indices=True)
    assert values.tolist()[0][0][0][0] == -np.inf and math.isnan(values.tolist()[0][0][0][1])
    assert places.tolist() == [[[[0, 2]]]]


def test_unpooling_puts_elements_back():
    x = array((2, 3, 6, 4), np.float32)
    values, places = Tensor(x).max_pool2d(2, return_indices=True)
    back = values.max_unpool2d(places)
    expected = np.zeros((2, 3, 24), np.float32)
    np.put_along_axis(expected, places.numpy().reshape(2, 3, -1), values.numpy().reshape(2, 3, -1), 2)
    compare((back, expected.reshape(2, 3, 6, 4)))
    assert values.max_unpool2d(places, output_size=(2, 3, 7, 5)).shape == (2, 3, 7, 5)


def test_windows_larger_than_the_image_are_errors():
    with pytest.raises(ValueError, match=r"a kernel of \(5, 5\) .* larger than the axis of 4"):
        Tensor.zeros(1, 1, 4, 4).max_pool2d(5)
    with pytest.raises(ValueError, match="too few axes"):
        Tensor.zeros(4).avg_pool2d(2)
    for options in ({"kernel_size": 0}, {"kernel_size": 2, "stride": 0}, {"kernel_size": (2, -1)}):
        with pytest.raises(ValueError, match="at least 1"):
            Tensor.zeros(1, 1, 4, 4).max_pool2d(**options)
