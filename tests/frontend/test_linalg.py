"""Products of matrices and sums of products against numpy."""

import numpy as np
import pytest

from tests.frontend.common import NUMPY_TYPES, array, compare
from tiny.frontend.tensor import Tensor
from tiny.ir.dtype import dtypes

SHAPES = [
    ((3, 4), (4, 5)),
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((1, 4), (4, 1)),
    ((3, 0), (0, 2)),
    ((0, 3), (3, 2)),
    ((7, 65), (65, 33)),
    ((2, 3, 4), (4,)),
]


@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
def test_matrix_products_of_any_shapes(left, right):
    a, b = array(left, np.float32, 1), array(right, np.float32, 2)
    compare(
        (Tensor(a) @ Tensor(b), a @ b),
        (Tensor(a).dot(Tensor(b)), a @ b),
        (a @ Tensor(b), a @ b),
        rtol=1e-5,
        atol=1e-4,
    )


def test_matrix_products_in_every_type():
    pairs = []
    for kind in NUMPY_TYPES[1:]:
        a, b = array((3, 4), kind, 1), array((4, 2), kind, 2)
        pairs.append((Tensor(a) @ Tensor(b), a @ b))
    compare(*pairs, rtol=5e-3, atol=5e-3)


def test_products_of_halves_are_not_rounded_before_they_are_added():
    a = np.array([[1 + 2**-10, 2048.0]], np.float16)
    b = np.array([[1 + 2**-10], [1.0]], np.float16)
    exact = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16)
    compare((Tensor(a) @ Tensor(b), exact))
    assert (Tensor(a) @ Tensor(b).float()).dtype is dtypes.float32
    assert Tensor(a).matmul(Tensor(b), dtype="float32").dtype is dtypes.float32


def test_shapes_that_do_not_multiply_are_named():
    with pytest.raises(ValueError, match=r"matmul: shapes \(2, 3\) and \(4, 5\): .* size 3, .* has 4"):
        Tensor.zeros(2, 3) @ Tensor.zeros(4, 5)
    with pytest.raises(ValueError, match="a number is no matrix"):
        Tensor(1.0) @ Tensor.zeros(2)
    with pytest.raises(ValueError, match="do not broadcast"):
        Tensor.zeros(2, 3, 4) @ Tensor.zeros(3, 4, 5)


def test_linear_and_outer():
    x, w, b = array((2, 3), np.float32, 1), array((3, 4), np.float32, 2), array((4,), np.float32, 3)
    compare(
        (Tensor(x).linear(Tensor(w), Tensor(b)), x @ w + b),
        (Tensor(x).linear(Tensor(w[:, 0])), x * w[:, 0]),
        (Tensor(b).outer(Tensor(b)), np.outer(b, b)),
        rtol=1e-5,
    )


FORMULAS = [
    "ij,jk->ik",
    "ij,jk",
    "ij->ji",
    "ij->",
    "ij->i",
    "i,i->",
    "i,j->ij",
    "bij,bjk->bik",
    "ii->i",
    "ii",
    "iji->j",
    "ij,ij->ij",
    "...ij,...jk->...ik",
    "...i->...",
    "ij,j,i->",
    " i j , j k -> k i ",
    "bhqd,bhkd->bhqk",
    "ab,ba",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_sums_of_products_by_formula(formula):
    sizes = dict(zip("ijkbhqdac", (3, 4, 5, 2, 2, 3, 4, 3, 2), strict=True))
    operands = []
    for number, names in enumerate(formula.replace(" ", "").split("->")[0].split(",")):
        shape = [2, 3] if names.startswith("...") else []
        shape += [sizes[name] for name in names.replace("...", "")]
        operands.append(array(tuple(shape), np.float32, number))
    tensors = [Tensor(x) for x in operands]
    compare((Tensor.einsum(formula, *tensors), np.einsum(formula, *operands)), rtol=1e-4, atol=1e-4)


def test_formulas_that_do_not_fit_are_errors_that_show_them():
    x = Tensor.zeros(2, 3)
    for formula, operands, said in (
        ("ij,jk->ik", (x,), "2 operands are named, 1 given"),
        ("ijk->i", (x,), "does not name"),
        ("ij,jk->ik", (x, x), "'j' has the sizes 3 and 2"),
        ("ij->ik", (x,), "must occur before"),
    ):
        with pytest.raises(ValueError, match=said):
            Tensor.einsum(formula, *operands)
