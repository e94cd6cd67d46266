"""Movement against numpy: values, views and errors that name the shapes."""

import numpy as np
import pytest

from tests.frontend.common import NUMPY_TYPES, array, compare
from tiny.frontend.tensor import Tensor

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def t() -> Tensor:
    return Tensor(X)


def test_reshape_in_all_spellings():
    compare(
        (t().reshape(6, 4), X.reshape(6, 4)),
        (t().reshape((4, -1)), X.reshape(4, 6)),
        (t().view(-1), X.reshape(-1)),
        (t().reshape(None, 12), X.reshape(2, 12)),
        (t().flatten(), X.reshape(-1)),
        (t().flatten(1), X.reshape(2, 12)),
        (t().flatten(0, 1), X.reshape(6, 4)),
        (t().unflatten(2, (2, -1)), X.reshape(2, 3, 2, 2)),
        (Tensor(5.0).reshape(1, 1), np.full((1, 1), 5, np.float32)),
        (t().unsqueeze(0), X[None]),
        (t().unsqueeze(-1), X[..., None]),
        (t().unsqueeze(1).squeeze(1), X),
        (t().reshape(2, 1, 3, 1, 4).squeeze(), X),
        (t().squeeze(0), X),
        (Tensor(X[:0]).reshape(0, 7), X[:0].reshape(0, 7)),
        (t().view_as(Tensor.zeros(4, 6)), X.reshape(4, 6)),
    )
    with pytest.raises(ValueError, match=r"\(2, 3, 4\) does not go into \(5, 5\)"):
        t().reshape(5, 5)
    with pytest.raises(ValueError, match="no multiple of 7"):
        t().reshape(7, -1)
    with pytest.raises(ValueError, match="no size"):
        t().reshape(-1, -1)


def test_expand_grows_axes_of_size_one():
    row = np.arange(3, dtype=np.float32).reshape(1, 3)
    compare(
        (Tensor(row).expand(4, 3), np.broadcast_to(row, (4, 3))),
        (Tensor(row).expand(2, -1, 3), np.broadcast_to(row, (2, 1, 3))),
        (Tensor(row).expand(2, 5, -1), np.broadcast_to(row, (2, 5, 3))),
        (Tensor(2.0).expand(2, 2), np.full((2, 2), 2, np.float32)),
        (Tensor(row).expand_as(Tensor.zeros(2, 3)), np.broadcast_to(row, (2, 3))),
    )
    with pytest.raises(ValueError, match=r"axis 1 has 3 elements, not 1"):
        Tensor(row).expand(1, 4)


def test_order_of_axes():
    compare(
        (t().permute(2, 0, 1), X.transpose(2, 0, 1)),
        (t().permute((1, 0, 2)), X.transpose(1, 0, 2)),
        (t().permute(-1, 0, -2), X.transpose(2, 0, 1)),
        (t().transpose(), X.transpose(1, 0, 2)),
        (t().transpose(0, -1), X.swapaxes(0, -1)),
        (t().T, X.T),
        (t()[0].t(), X[0].T),
        (t().movedim(0, 2), np.moveaxis(X, 0, 2)),
        (t().flip(0), X[::-1]),
        (t().flip((1, -1)), X[:, ::-1, ::-1]),
        (t().permute(0, 1, 2), X),
    )
    with pytest.raises(ValueError, match="no order of the 3 axes"):
        t().permute(0, 1)
    with pytest.raises(IndexError, match="has no axis 3"):
        t().transpose(0, 3)
    with pytest.raises(ValueError, match="twice"):
        t().flip(0, -3)


def test_pieces():
    compare(
        (t().shrink(((0, 1), (1, 3), None)), X[:1, 1:]),
        (t().narrow(2, 1, 2), X[:, :, 1:3]),
        (t().shrink_to(1, None, 2), X[:1, :, :2]),
        (t().narrow(-1, 4, 0), X[:, :, 4:]),
    )
    with pytest.raises(ValueError, match="1 ... 5 is no part of an axis of size 4"):
        t().narrow(2, 1, 4)
    with pytest.raises(ValueError, match="2 ranges for the 3 axes"):
        t().shrink(((0, 1), None))


def test_padding_with_a_constant():
    compare(
        (t().pad(((1, 0), None, (0, 2))), np.pad(X, ((1, 0), (0, 0), (0, 2)))),
        (t().pad((1, 2)), np.pad(X, ((0, 0), (0, 0), (1, 2)))),
        (t().pad((1, 2, 3, 0)), np.pad(X, ((0, 0), (3, 0), (1, 2)))),
        (t().pad((1, 1), value=7), np.pad(X, ((0, 0), (0, 0), (1, 1)), constant_values=7)),
        (t().pad((-1, 1)), np.pad(X[:, :, 1:], ((0, 0), (0, 0), (0, 1)))),
        (t().pad((0, -4)), X[:, :, :0]),
        (t().pad((1, 0), value=-np.inf), np.pad(X, ((0, 0), (0, 0), (1, 0)), constant_values=-np.inf)),
        (t().pad_to(3, None, 6), np.pad(X, ((0, 1), (0, 0), (0, 2)))),
    )
    pairs = []
    for kind in NUMPY_TYPES:
        x = array((3,), kind)
        pairs.append((Tensor(x).pad((1, 1), value=1), np.pad(x, 1, constant_values=1)))
    compare(*pairs)
    with pytest.raises(ValueError, match="2 pairs for the 3 axes"):
        t().pad(((1, 1), (1, 1)))


@pytest.mark.parametrize(
    ("mode", "numpys"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")]
)
def test_padding_with_the_tensors_own_elements(mode, numpys):
    compare(
        (t().pad((1, 2), mode), np.pad(X, ((0, 0), (0, 0), (1, 2)), numpys)),
        (t().pad((2, 0, 1, 1), mode), np.pad(X, ((0, 0), (1, 1), (2, 0)), numpys)),
        (t().pad((-1, 1), mode), np.pad(X[:, :, 1:], ((0, 0), (0, 0), (0, 1)), numpys)),
    )
    if mode != "replicate":
        with pytest.raises(ValueError, match="fit"):
            t().pad((5, 0), mode)


def test_repeating():
    compare(
        (t().repeat(2, 1, 3), np.tile(X, (2, 1, 3))),
        (t().repeat((2, 1, 1, 2)), np.tile(X, (2, 1, 1, 2))),
        (t().repeat_interleave(2, 1), np.repeat(X, 2, 1)),
        (t().repeat_interleave(3), np.repeat(X, 3)),
        (t().repeat(1, 0, 1), np.tile(X, (1, 0, 1))),
    )
    with pytest.raises(ValueError, match="2 numbers for the 3 axes"):
        t().repeat(2, 2)


def test_joining():
    y = np.arange(8, dtype=np.float32).reshape(2, 1, 4)
    compare(
        (t().cat(Tensor(y), dim=1), np.concatenate([X, y], 1)),
        (Tensor.cat(t(), t(), t()), np.concatenate([X, X, X])),
        (t().cat(t(), dim=-1), np.concatenate([X, X], -1)),
        (t().cat(Tensor(X[:, :0]), dim=1), X),
        (Tensor.cat([t(), t()], axis=2), np.concatenate([X, X], 2)),
        (Tensor.stack(t(), t()), np.stack([X, X])),
        (t().stack(t(), dim=-1), np.stack([X, X], -1)),
        (Tensor.stack([t(), t()], axis=1), np.stack([X, X], 1)),
        (Tensor.stack(Tensor(1.0), Tensor(2.0)), np.array([1, 2], np.float32)),
        (Tensor([1]).cat(Tensor([2.5])), np.array([1, 2.5], np.float32)),
    )
    compare(
        (Tensor([-0.0]).cat(Tensor([0.0, -0.0])), np.array([-0.0, 0.0, -0.0], np.float32)), signed_zeros=True
    )
    with pytest.raises(ValueError, match=r"\(2, 3, 4\) and \(2, 1, 4\) differ beside axis 0"):
        t().cat(Tensor(y))
    with pytest.raises(ValueError, match="all must be the same"):
        t().stack(Tensor(y))


def test_more_parts_than_a_kernel_has_arguments():
    parts = [Tensor([float(i)]) for i in range(40)]
    assert Tensor.stack(*parts).sum().item() == 780.0


def test_taking_apart():
    pieces = t().split(2, 2)
    compare(*zip(pieces, np.split(X, 2, 2), strict=True))
    compare(*zip(t().split([1, 2], 1), np.split(X, [1], 1), strict=True))
    assert [p.shape for p in Tensor.zeros(7).split(3)] == [(3,), (3,), (1,)]
    assert [p.shape for p in Tensor.zeros(7).chunk(3)] == [(3,), (3,), (1,)]
    assert [p.shape for p in Tensor.zeros(4).chunk(3)] == [(2,), (2,)]
    compare(*zip(t().unbind(1), [X[:, k] for k in range(3)], strict=True))
    with pytest.raises(ValueError, match=r"\[1, 1\] is 2 in all"):
        t().split([1, 1], 1)


def test_windows_rolls_and_triangles():
    windows = np.lib.stride_tricks.sliding_window_view
    compare(
        (t().unfold(2, 3, 1), windows(X, 3, 2)),
        (t().unfold(1, 2, 1), windows(X, 2, 1)),
        (Tensor(np.arange(10)).unfold(0, 4, 3), windows(np.arange(10), 4)[::3]),
        (t().roll(1, 2), np.roll(X, 1, 2)),
        (t().roll((1, -1), (0, 2)), np.roll(X, (1, -1), (0, 2))),
        (t().roll(5), np.roll(X, 5)),
        (t().roll(-7, 1), np.roll(X, -7, 1)),
    )
    square = np.arange(12, dtype=np.int32).reshape(3, 4)
    pairs = []
    for k in (-5, -1, 0, 1, 3, 9):
        pairs += [
            (Tensor(square).tril(k), np.tril(square, k)),
            (Tensor(square).triu(k), np.triu(square, k)),
            (Tensor(square).diagonal(k), np.diagonal(square, k)),
            (t().diagonal(k, 1, 2), np.diagonal(X, k, 1, 2)),
        ]
        if abs(k) < 5:
            pairs.append((Tensor(square[0]).diag(k), np.diag(square[0], k)))
    compare(
        *pairs,
        (t().tril(), np.tril(X)),
        (Tensor(square).diag(1), np.diag(square, 1)),
        (Tensor([[np.nan, np.nan], [np.nan, 1.0]]).tril(-1), np.array([[0, 0], [np.nan, 0]], np.float32)),
    )
    with pytest.raises(ValueError, match="windows of 5"):
        t().unfold(2, 5)


def test_grids():
    a, b = np.arange(2), np.arange(3)
    for indexing in ("ij", "xy"):
        compare(
            *zip(
                Tensor(a).meshgrid(Tensor(b), indexing=indexing),
                np.meshgrid(a, b, indexing=indexing),
                strict=True,
            )
        )


def test_rearrangement_by_formula():
    x = np.arange(2 * 6 * 4).reshape(2, 6, 4)
    compare(
        (Tensor(x).rearrange("b (h w) c -> b c h w", h=2), x.reshape(2, 2, 3, 4).transpose(0, 3, 1, 2)),
        (Tensor(x).rearrange("b n c -> (b n) c"), x.reshape(12, 4)),
        (Tensor(x).rearrange("... c -> c ..."), x.transpose(2, 0, 1)),
        (Tensor(x).rearrange("b ... -> b (...)"), x.reshape(2, 24)),
        (Tensor(x).rearrange("b n c -> b 1 n c 1"), x[:, None, :, :, None]),
    )
    for formula in ("a b -> b a", "b n c -> b n", "b (h w) c -> b h w c", "b n c"):
        with pytest.raises(ValueError, match="rearrange"):
            Tensor(x).rearrange(formula)


def test_movement_that_does_nothing_is_the_tensor_itself():
    x = t()
    assert x.reshape(2, 3, 4) is x and x.permute(0, 1, 2) is x and x.expand(2, 3, 4) is x
    assert x.shrink(((0, 2), (0, 3), (0, 4))) is x and x.flip() is x and x.cast("float32") is x
