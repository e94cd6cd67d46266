"""Convolutions, transposed ones and resizing against loops in numpy."""

import itertools

import numpy as np
import pytest

from tests.frontend.common import array, compare
from tiny.frontend.tensor import Tensor
from tiny.ir.dtype import dtypes


def convolved(x, w, groups=1, stride=1, dilation=1, pads=None) -> np.ndarray:
    """The definition, tap by tap, in float64."""
    count = w.ndim - 2
    stride, dilation = ((v,) * count if isinstance(v, int) else v for v in (stride, dilation))
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *(pads or [(0, 0)] * count)])
    out = [
        (size - d * (k - 1) - 1) // s + 1
        for size, k, s, d in zip(x.shape[2:], w.shape[2:], stride, dilation, strict=True)
    ]
    result = np.zeros((len(x), len(w), *out))
    per_group, inside = len(w) // groups, w.shape[1]
    for o in range(len(w)):
        channels = x[:, o // per_group * inside : (o // per_group + 1) * inside]
        for tap in itertools.product(*map(range, w.shape[2:])):
            places = tuple(
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, dilation, out, stride, strict=True)
            )
            result[:, o] += np.einsum(
                "bc...,c->b...", channels[(slice(None), slice(None), *places)], w[o][(slice(None), *tap)]
            )
    return result.astype(w.dtype)


CASES = [
    ((2, 3, 8), (4, 3, 3), {}, None),
    ((2, 3, 9), (4, 3, 2), {"stride": 2, "padding": 1}, [(1, 1)]),
    ((2, 4, 7, 6), (6, 2, 3, 2), {"groups": 2, "padding": (1, 0)}, [(1, 1), (0, 0)]),
    ((1, 3, 9, 8), (5, 3, 3, 3), {"stride": (2, 1), "dilation": (1, 2), "padding": 2}, [(2, 2), (2, 2)]),
    ((2, 4, 6, 6), (4, 1, 3, 3), {"groups": 4, "padding": 1}, [(1, 1), (1, 1)]),
    ((1, 2, 5, 4, 6), (3, 2, 2, 3, 2), {"padding": (0, 1, 2), "stride": (1, 2, 3)}, [(0, 0), (1, 1), (2, 2)]),
    ((1, 2, 5, 5), (3, 2, 3, 3), {"padding": (1, 2, 0, 3)}, [(0, 3), (1, 2)]),
    ((1, 2, 5, 5), (3, 2, 3, 2), {"padding": "same"}, [(1, 1), (0, 1)]),
    ((1, 2, 5, 5), (3, 2, 5, 5), {"padding": "valid"}, None),
    ((1, 2, 11), (3, 2, 3), {"stride": 5, "dilation": 2}, None),
]


@pytest.mark.parametrize(("input_shape", "weight_shape", "options", "pads"), CASES, ids=str)
def test_convolutions_are_their_definition(input_shape, weight_shape, options, pads):
    x, w, b = (
        array(input_shape, np.float32, 1),
        array(weight_shape, np.float32, 2),
        array((weight_shape[0],), np.float32, 3),
    )
    plain = {name: value for name, value in options.items() if name != "padding"}
    expected = convolved(x, w, pads=pads, **plain)
    shaped = b.reshape(-1, *(1,) * (len(weight_shape) - 2))
    compare(
        (Tensor(x).conv2d(Tensor(w), **options), expected),
        (Tensor(x).conv2d(Tensor(w), Tensor(b), **options), expected + shaped),
        (Tensor(x[0]).conv2d(Tensor(w), **options), expected[0]),
        rtol=1e-4,
        atol=1e-4,
    )


def test_convolutions_of_other_types():
    x, w = array((1, 2, 5, 5), np.int32, 1), array((3, 2, 3, 3), np.int32, 2)
    half, small = x.astype(np.float16), w.astype(np.float16)
    compare(
        (Tensor(x).conv2d(Tensor(w)), convolved(x, w)),
        (Tensor(half).conv2d(Tensor(small)), convolved(half, small)),
    )
    assert Tensor(half).conv2d(Tensor(small), dtype="float32").dtype is dtypes.float32


def test_convolutions_that_do_not_fit_are_errors_that_show_the_shapes():
    x = Tensor.zeros(1, 3, 4, 4)
    for weight, options, said in (
        ((2, 2, 3, 3), {}, r"\(1, 3, 4, 4\) .* \(2, 2, 3, 3\) .* must have 2 channels"),
        ((2, 3, 5, 5), {}, "larger than axis 2"),
        ((3, 1, 3, 3), {"groups": 2}, "groups=2"),
        ((2, 3, 3, 3), {"padding": (1, 2, 3)}, "padding"),
        ((2, 3, 3), {}, "numbers of axes"),
        ((2, 3, 3, 3), {"stride": (1, 1, 1)}, "3 numbers, there are 2 spatial axes"),
        ((2, 3, 3, 3), {"stride": 2, "padding": "same"}, "same"),
        ((2, 3, 3, 3), {"stride": 0}, "at least 1"),
        ((2, 3, 3, 3), {"dilation": (1, -1)}, "at least 1"),
    ):
        with pytest.raises(ValueError, match=said):
            (x if len(weight) == 4 else x.squeeze(0).unsqueeze(0)).conv2d(Tensor.zeros(*weight), **options)


def transposed(x, w, groups, stride, dilation, padding, output_padding) -> np.ndarray:
    """Each input element adds its weights to the output: the definition."""
    count = w.ndim - 2
    out = [
        (size - 1) * stride - 2 * padding + dilation * (k - 1) + output_padding + 1
        for size, k in zip(x.shape[2:], w.shape[2:], strict=True)
    ]
    full = np.zeros((len(x), w.shape[1] * groups, *[n + 2 * padding for n in out]))
    inside = x.shape[1] // groups
    for channel in range(x.shape[1]):
        group = channel // inside
        target = full[:, group * w.shape[1] : (group + 1) * w.shape[1]]
        for place in itertools.product(*map(range, x.shape[2:])):
            for tap in itertools.product(*map(range, w.shape[2:])):
                at = tuple(p * stride + t * dilation for p, t in zip(place, tap, strict=True))
                target[(slice(None), slice(None), *at)] += (
                    x[(slice(None), channel, *place)][:, None] * w[channel][(slice(None), *tap)]
                )
    return full[(slice(None), slice(None), *(slice(padding, padding + n) for n in out))][
        (...,) + (slice(None),) * count
    ].astype(w.dtype)


@pytest.mark.parametrize(
    ("groups", "stride", "dilation", "padding", "output_padding"),
    [(1, 1, 1, 0, 0), (1, 2, 1, 1, 1), (2, 3, 2, 1, 2), (4, 2, 1, 0, 0), (1, 1, 1, 2, 0)],
)
def test_transposed_convolutions_are_their_definition(groups, stride, dilation, padding, output_padding):
    options = dict(
        groups=groups, stride=stride, dilation=dilation, padding=padding, output_padding=output_padding
    )
    pairs = []
    for spatial, kernel in (((5,), (3,)), ((4, 3), (3, 3))):
        x, w = array((2, 4, *spatial), np.float32, 1), array((4, 3, *kernel), np.float32, 2)
        pairs.append((Tensor(x).conv_transpose2d(Tensor(w), **options), transposed(x, w, **options)))
    compare(*pairs, rtol=1e-4, atol=1e-4)


# -- resizing -----------------------------------------------------------------------------------------------
def resized(x, size, align_corners) -> np.ndarray:
    """Linear along the last axis."""
    extent = x.shape[-1]
    steps = np.arange(size)
    if align_corners:
        place = steps * ((extent - 1) / (size - 1) if size > 1 else 0)
    else:
        place = np.clip((steps + 0.5) * extent / size - 0.5, 0, extent - 1)
    low = place.astype(int)
    high = np.minimum(low + 1, extent - 1)
    return (x[..., low] * (1 - (place - low)) + x[..., high] * (place - low)).astype(np.float32)


@pytest.mark.parametrize("size", [1, 3, 4, 7, 13])
def test_linear_resizing(size):
    x = array((2, 2, 4), np.float32)
    square = array((1, 2, 3, 4), np.float32)
    both = resized(resized(square, 5, False).swapaxes(2, 3), size, False).swapaxes(2, 3)
    compare(
        (Tensor(x).interpolate((size,)), resized(x, size, False)),
        (Tensor(x).interpolate(size, align_corners=True), resized(x, size, True)),
        (Tensor(square).interpolate((size, 5), mode="bilinear"), both),
        rtol=1e-4,
        atol=1e-5,
    )


def test_resizing_to_one_point_with_aligned_corners():
    """There is no step between corners then: the first element stands, nothing is divided by zero."""
    assert Tensor([[[1.0, 2.0, 3.0]]]).interpolate((1,), mode="linear", align_corners=True).tolist() == [
        [[1.0]]
    ]


def test_nearest_resizing():
    x = np.arange(12, dtype=np.int32).reshape(1, 2, 6)
    for size in (3, 4, 9, 12):
        low = np.minimum(np.floor(np.arange(size) * (6 / size)).astype(int), 5)
        mid = np.minimum(np.floor((np.arange(size) + 0.5) * (6 / size)).astype(int), 5)
        compare(
            (Tensor(x).interpolate((size,), mode="nearest"), x[..., low]),
            (Tensor(x).interpolate((size,), mode="nearest-exact"), x[..., mid]),
        )
    assert Tensor.zeros(1, 1, 4, 6).interpolate(scale_factor=2, mode="nearest").shape == (1, 1, 8, 12)
    with pytest.raises(ValueError, match="none may be 0"):
        Tensor(x).interpolate((0,))
    with pytest.raises(ValueError, match="mode='cubic'"):
        Tensor(x).interpolate((3,), mode="cubic")
