"""What the tests of Tensor share: comparing many results with numpy in one plan, and arrays of every type."""

import numpy as np

from tiny.frontend.tensor import Tensor
from tiny.ir.dtype import dtypes

NUMPY_TYPES = (
    np.bool_,
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
    np.float16,
    np.float32,
    np.float64,
)
FLOAT_TYPES = (np.float16, np.float32, np.float64)
INTEGER_TYPES = NUMPY_TYPES[1:9]
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -3.5, 1e-3, -1e-3, 7.0, np.inf, -np.inf, np.nan)


def compare(*pairs, rtol: float = 0, atol: float = 0, signed_zeros: bool = False) -> None:
    """Each pair is (tensor, what numpy says): shapes, types and values must agree, NaN with NaN.

    All tensors are computed in one plan. rtol, atol of 0 mean equal; signed_zeros tells -0.0 from 0.0.
    """
    pairs = [(tensor, np.asarray(expected)) for tensor, expected in pairs]
    Tensor.realize(*(tensor for tensor, _ in pairs))
    for number, (tensor, expected) in enumerate(pairs):
        got = tensor.numpy()
        where = f"pair {number}"
        assert got.shape == expected.shape == tensor.shape, f"{where}: {got.shape} is not {expected.shape}"
        assert got.dtype == expected.dtype, f"{where}: {got.dtype} is not {expected.dtype}"
        if rtol or atol:
            np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol, err_msg=where)
        else:
            np.testing.assert_array_equal(got, expected, err_msg=where)
        if signed_zeros:
            zero = expected == 0
            np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(expected[zero]), err_msg=where)


def array(shape, kind, seed: int = 0, low: int = -5, high: int = 6) -> np.ndarray:
    """Small numbers of a numpy type; unsigned ones from 0 up. Floats have fractions."""
    generator = np.random.default_rng(seed)
    if np.issubdtype(kind, np.floating):
        return np.asarray(generator.uniform(low, high, shape)).astype(kind)
    if kind is np.bool_:
        return np.asarray(generator.integers(0, 2, shape)).astype(kind)
    return np.asarray(
        generator.integers(0 if np.issubdtype(kind, np.unsignedinteger) else low, high, shape)
    ).astype(kind)


def tolerance(kind) -> float:
    """A few units in the last place, relative."""
    return {np.float16: 2e-3, np.float32: 1e-6, np.float64: 2e-15}[kind]


def buffer(values, dtype=np.float32) -> Tensor:
    """A tensor that is in memory."""
    return Tensor(np.array(values, dtype=dtype)).realize()


def of_dtype(kind):
    """Our type for numpy's."""
    return getattr(dtypes, np.dtype(kind).name)
