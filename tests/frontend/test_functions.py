"""Mathematical functions and activations against numpy, with their corner values and slopes."""

import math

import numpy as np
import pytest

from tests.frontend.common import FLOAT_TYPES, NUMPY_TYPES, SPECIAL, array, buffer, compare, tolerance
from tiny.frontend.tensor import Tensor
from tiny.ir.dtype import dtypes

inf, nan = math.inf, math.nan
SAME_NAME = (
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "sqrt",
    "sinh",
    "cosh",
    "tanh",
    "square",
    "reciprocal",
)
OTHER_NAME = {
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": np.vectorize(math.erf, otypes=[float]),
}
FUNCTIONS = {**{name: getattr(np, name) for name in SAME_NAME}, **OTHER_NAME}
EXACT = ("abs", "floor", "ceil", "trunc", "round", "sign", "neg", "isnan", "isinf", "isfinite", "signbit")


def in_float64(function, x: np.ndarray) -> np.ndarray:
    """Evaluated in float64 and rounded to x's type."""
    with np.errstate(all="ignore"):
        return function(x.astype(np.float64)).astype(x.dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_numpys_over_their_range_and_at_the_corners(name):
    for kind in FLOAT_TYPES:
        x = np.concatenate([array((31,), kind, 1), array((31,), kind, 2, -1, 1), np.array(SPECIAL, kind)])
        compare(
            (getattr(Tensor(x), name)(), in_float64(FUNCTIONS[name], x)),
            rtol=4 * tolerance(kind),
            atol=tolerance(kind) if name in ("tan", "cos", "sin", "log", "log2", "log10", "acosh") else 0,
        )


@pytest.mark.parametrize("name", ["exp", "sin", "sqrt", "tanh", "log", "sigmoid"])
def test_functions_of_integers_give_the_default_float(name):
    x = np.array([1, 2, 3], np.int32)
    result = getattr(Tensor(x), name)()
    assert result.dtype is dtypes.float32
    function = (lambda v: 1 / (1 + np.exp(-v))) if name == "sigmoid" else getattr(np, name)
    compare((result, function(x.astype(np.float64)).astype(np.float32)), rtol=1e-6)


@pytest.mark.parametrize("name", EXACT)
def test_signs_and_roundings_are_numpys_exactly(name):
    function = {"neg": np.negative, "abs": np.abs}.get(name) or getattr(np, name)
    for kind in FLOAT_TYPES:
        x = np.concatenate(
            [np.array(SPECIAL, kind), np.arange(-4, 4.5, 0.5).astype(kind), array((20,), kind)]
        )
        compare((getattr(Tensor(x), name)(), function(x)), signed_zeros=True)


def test_rounding_leaves_integers_as_they_are():
    pairs = []
    for kind in NUMPY_TYPES[1:9]:
        x = array((9,), kind)
        pairs += [(getattr(Tensor(x), name)(), x) for name in ("floor", "ceil", "trunc", "round")]
        pairs += [(Tensor(x).abs(), np.abs(x)), (Tensor(x).sign(), np.sign(x))]
        pairs += [(Tensor(x).isnan(), np.zeros(9, bool)), (Tensor(x).isfinite(), np.ones(9, bool))]
    compare(*pairs)


def test_rounding_goes_to_the_even_neighbour():
    assert buffer([0.5, 1.5, 2.5, -0.5, -1.5, 8388609.0]).round().tolist() == [
        0.0,
        2.0,
        2.0,
        -0.0,
        -2.0,
        8388609.0,
    ]


def test_large_arguments_of_trigonometric_functions_keep_their_phase():
    """cos is not sin of a shifted argument: the shift would be rounded away."""
    x = np.array([1e6, 1e8, 30000.0, 1e4, 123456.0, -1e7, 3e30], np.float32)
    compare(
        *[(getattr(buffer(x), name)(), in_float64(getattr(np, name), x)) for name in ("sin", "cos", "tan")],
        rtol=2e-6,
        atol=1e-7,
    )
    assert buffer([1e6]).cos().item() == pytest.approx(0.936752, abs=1e-6)
    assert buffer([1e8]).tan().item() == pytest.approx(-2.563779, rel=1e-6)
    assert buffer([30000.0]).cos().item() == pytest.approx(-0.596430, abs=1e-6)


def test_asinh_of_large_negatives_is_not_minus_infinity():
    """The sum x + sqrt(x*x + 1) cancels for negative x; the function is odd and computed from |x|."""
    assert buffer([-1e4]).asinh().item() == pytest.approx(-9.903488, rel=1e-6)
    x = np.array([-1e4, 1e4, -3e38, 3e38, 1e-20, -1e-20, 0.3], np.float32)
    compare((buffer(x).asinh(), in_float64(np.arcsinh, x)), rtol=1e-6)


def test_hyperbolic_functions_are_right_up_to_overflow():
    x = np.array([1e-6, -1e-6, 20.0, 88.0, 89.3, -89.3, 100.0], np.float32)
    compare(
        (buffer(x).sinh(), in_float64(np.sinh, x)),
        (buffer(x).cosh(), in_float64(np.cosh, x)),
        (buffer(x).tanh(), in_float64(np.tanh, x)),
        rtol=2e-6,
    )


def test_functions_of_two_tensors():
    a, b = np.array(SPECIAL, np.float32), np.array(SPECIAL, np.float32)
    x, y = Tensor(a[:, None]), Tensor(b[None])
    with np.errstate(all="ignore"):
        compare((x.copysign(y), np.copysign(a[:, None], b[None])), signed_zeros=True)
        compare(
            (x.logaddexp(y), np.logaddexp(a[:, None].astype(float), b[None]).astype(np.float32)),
            (x.atan2(y), np.arctan2(a[:, None], b[None])),
            rtol=1e-6,
            atol=1e-7,
        )


def test_lerp_is_exact_at_both_ends():
    a, b = array((5,), np.float32, 1), array((5,), np.float32, 2)
    compare((Tensor(a).lerp(Tensor(b), 0.0), a), (Tensor(a).lerp(Tensor(b), 1.0), b))
    compare(
        (Tensor(a).lerp(Tensor(b), 0.3), a + (b - a) * np.float32(0.3)),
        (Tensor(a).lerp(Tensor(b), Tensor([0.7] * 5)), a + (b - a) * np.float32(0.7)),
        rtol=1e-5,
        atol=1e-6,
    )


def test_clamp_in_both_spellings_keeps_nan():
    x = np.array([-3.0, 0.5, 3.0, nan, inf], np.float32)
    compare(
        (Tensor(x).clamp(-1, 1), np.clip(x, -1, 1)),
        (Tensor(x).clip(min_=0), np.clip(x, 0, None)),
        (Tensor(x).clamp(max=1), np.clip(x, None, 1)),
        (Tensor(x).clamp(Tensor(0.0), Tensor(1.0)), np.clip(x, 0, 1)),
        (Tensor([1, 5, 9]).clamp(2, 7), np.array([2, 5, 7], np.int32)),
    )
    with pytest.raises(ValueError, match="at least one"):
        Tensor(x).clamp()


def test_extremes_and_relu_keep_nan():
    """A comparison with NaN is false, so choosing by one drops it; the extremes must not."""
    assert math.isnan(buffer([1, nan, 3]).max().item())
    assert np.isnan(buffer([nan, 1]).maximum(buffer([1, nan])).numpy()).all()
    assert np.isnan(buffer([nan, 1]).minimum(buffer([1, nan])).numpy()).all()
    assert math.isnan(buffer([nan]).relu().item())
    assert buffer([nan, 3, 1]).argmax().item() == 0


# -- activations --------------------------------------------------------------------------------------------
def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _softplus(x):
    return np.logaddexp(x, 0)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "sigmoid": _sigmoid,
    "hardsigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "silu": lambda x: x * _sigmoid(x),
    "swish": lambda x: x * _sigmoid(x),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "quick_gelu": lambda x: x * _sigmoid(1.702 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "mish": lambda x: x * np.tanh(_softplus(x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "softplus": _softplus,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "logsigmoid": lambda x: -_softplus(-x),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardtanh": lambda x: np.clip(x, -1, 1),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_their_formulas_and_do_not_overflow(name):
    for kind in FLOAT_TYPES:
        x = np.concatenate([array((31,), kind), np.array([0.0, -0.0, 30.0, -30.0, 100.0, -100.0, nan], kind)])
        compare(
            (getattr(Tensor(x), name)(), in_float64(ACTIVATIONS[name], x)),
            rtol=4 * tolerance(kind),
            atol=tolerance(kind),
        )


def test_activation_arguments():
    x = array((9,), np.float32)
    exact = np.vectorize(math.erf)(x.astype(float) / math.sqrt(2))
    compare(
        (Tensor(x).gelu("none"), (0.5 * x * (1 + exact)).astype(np.float32)),
        (Tensor(x).softplus(beta=2.0), (np.logaddexp(2.0 * x, 0) / 2).astype(np.float32)),
        (Tensor(x).elu(2.0), np.where(x > 0, x, 2 * np.expm1(x)).astype(np.float32)),
        (Tensor(x).celu(2.0), np.where(x > 0, x, 2 * np.expm1(x / 2)).astype(np.float32)),
        (Tensor(x).leaky_relu(negative_slope=0.2), np.where(x > 0, x, np.float32(0.2) * x)),
        (Tensor(x).hardtanh(-2, 3), np.clip(x, -2, 3)),
        rtol=2e-6,
        atol=1e-6,
    )
    with pytest.raises(ValueError, match="gelu: approximate='exact'"):
        Tensor(x).gelu("exact")


SLOPES_AT_ZERO = {
    "relu": 0.0,
    "relu6": 0.0,
    "sigmoid": 0.25,
    "tanh": 1.0,
    "sinh": 1.0,
    "asinh": 1.0,
    "atanh": 1.0,
    "silu": 0.5,
    "gelu": 0.5,
    "elu": 1.0,
    "celu": 1.0,
    "softplus": 0.5,
    "softsign": 1.0,
    "abs": 0.0,
    "logsigmoid": 0.5,
    "mish": 0.6,
    "cosh": 0.0,
    "leaky_relu": 0.01,
    "square": 0.0,
    "expm1": 1.0,
}


@pytest.mark.parametrize("name", SLOPES_AT_ZERO)
def test_slopes_at_zero_where_two_formulas_meet(name):
    """Functions made of two sides have one slope where they meet, not the sum or half of both."""
    for zero in (0.0, -0.0):
        x = Tensor([zero])
        slope = getattr(x, name)().sum().gradient(x)[0].item()
        assert slope == pytest.approx(SLOPES_AT_ZERO[name], abs=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "sigmoid",
        "tanh",
        "softplus",
        "logsigmoid",
        "silu",
        "gelu",
        "elu",
        "mish",
        "sinh",
        "cosh",
        "asinh",
        "acosh",
    ],
)
def test_slopes_far_out_are_finite_where_the_function_is(name):
    """The formula not chosen must not put a NaN into the gradient."""
    x = Tensor([80.0, 60.0] if name == "acosh" else [-80.0, 80.0, -3e4, 3e4])
    if name in ("sinh", "cosh"):
        x = Tensor([-80.0, 80.0])
    assert np.isfinite(getattr(x, name)().sum().gradient(x)[0].numpy()).all()
