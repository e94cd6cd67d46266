"""Losses and attention against PyTorch's results and gradients; the corners where identities break."""
import functools
import math

import numpy as np
import pytest

from tests.nn.common import TORCH, check_with_gradient
from tests.nn.filled import filled
from tiny import Tensor, dtypes

CLASSES, ROWS = Tensor([2, 0, -100, 1]), Tensor([[0, 1], [2, 1]])
FACTORS = Tensor([0.5, 1.0, 2.0])
Y = Tensor(filled(4, 3, phase=4))


def shares() -> Tensor:
    return Tensor(filled(4, 3, phase=3)).softmax(1)


LOSSES = {
    "cross entropy": lambda p: p.cross_entropy(CLASSES),
    "smoothed": lambda p: p.cross_entropy(CLASSES, label_smoothing=0.2),
    "smoothed and weighted": lambda p: p.cross_entropy(CLASSES, weight=FACTORS, label_smoothing=0.2),
    "of axis 1": lambda p: p.cross_entropy(ROWS, reduction="none"),
    "of shares": lambda p: p.cross_entropy(shares(), label_smoothing=0.1),
    "nll": lambda p: p.nll_loss(CLASSES, FACTORS, reduction="sum"),
    "binary": lambda p: p.binary_crossentropy(Y.abs()),
    "binary of logits": lambda p: p.binary_crossentropy_logits(Y.abs(), pos_weight=FACTORS),
    "smooth l1": lambda p: p.smooth_l1_loss(Y, beta=0.5),
    "mse": lambda p: p.mse_loss(Y),
    "l1": lambda p: p.l1_loss(Y, reduction="sum"),
    "kl": lambda p: p.kl_div(shares(), reduction="sum"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_loss_equals_torch(name):
    predictions = filled(2, 3, 2) if name == "of axis 1" else filled(4, 3)
    if name == "binary":
        predictions = np.abs(predictions) * np.float32(0.9) + np.float32(0.05)
    check_with_gradient(TORCH["losses"][name], LOSSES[name], predictions)


def test_label_smoothing_leaves_ignored_rows_out():
    logits = Tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 5.0]])
    both = logits.sparse_categorical_crossentropy(Tensor([2, -1]), ignore_index=-1, label_smoothing=0.1)
    first = logits[:1].sparse_categorical_crossentropy(Tensor([2]), ignore_index=-1, label_smoothing=0.1)
    assert math.isclose(both.item(), 0.507606, rel_tol=1e-5)
    assert math.isclose(first.item(), both.item(), rel_tol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_label_that_is_no_class_makes_the_loss_nan(smoothing):
    """Rows beside it, and rows that are ignored, keep theirs."""
    logits, labels = Tensor(filled(5, 3)), Tensor([0, 3, -1, -100, 2])
    losses = logits.cross_entropy(labels, reduction="none", label_smoothing=smoothing).numpy()
    assert np.isnan(losses).tolist() == [False, True, True, False, False]
    assert losses[3] == 0
    assert math.isnan(logits.cross_entropy(labels, label_smoothing=smoothing).item())
    assert math.isnan(logits.log_softmax(1).nll_loss(labels).item())
    assert not math.isnan(logits.sparse_categorical_crossentropy(Tensor([0, 1, -1, 2, 2])).item())


def test_sparse_categorical_crossentropy_is_over_the_last_axis():
    logits, classes = filled(2, 3, 4), np.array([[0, 3, 2], [1, 1, 0]])
    got = Tensor(logits).sparse_categorical_crossentropy(Tensor(classes), reduction="none").numpy()
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    np.testing.assert_allclose(got, -np.take_along_axis(logs, classes[..., None], -1)[..., 0], rtol=1e-5)


def test_logits_of_minus_infinity_give_no_nan():
    logits = Tensor([[0.0, -math.inf, 1.0]], requires_grad=True)
    loss = logits.cross_entropy(Tensor([0]))
    loss.backward()
    assert math.isclose(loss.item(), math.log(1 + math.e), rel_tol=1e-6)
    share = math.e / (1 + math.e)
    np.testing.assert_allclose(logits.grad.numpy(), [[-share, 0, share]], rtol=1e-5)


def test_binary_losses_are_finite_at_certain_predictions():
    sure = Tensor([0.0, 1.0])
    assert sure.binary_crossentropy(Tensor([1.0, 0.0])).item() == 100
    assert sure.binary_crossentropy(Tensor([0.0, 1.0])).item() == 0
    assert Tensor([500.0, -500.0]).binary_crossentropy_logits(Tensor([0.0, 1.0])).item() == 500


def test_errors_name_shapes_and_choices():
    with pytest.raises(ValueError, match=r"targets are int32 \(3,\), predictions \(2, 3\); class .* \(2,\)"):
        Tensor.ones(2, 3).cross_entropy(Tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="reduction='avg'; it is one of mean, sum, none"):
        Tensor.ones(2).mse_loss(Tensor.ones(2), reduction="avg")
    with pytest.raises(ValueError, match="label_smoothing=2"):
        Tensor.ones(2, 3).cross_entropy(Tensor([0, 1]), label_smoothing=2)


# -- attention -----------------------------------------------------------------------------------------------
Q, K, V = filled(1, 4, 3, 2), filled(1, 2, 5, 2, phase=1), filled(1, 2, 5, 2, phase=2)
ATTENTION = {
    "plain": {},
    "causal": {"is_causal": True},
    "mask": {"attn_mask": Tensor(filled(3, 5, phase=5)) > -0.3, "scale": 0.3},
    "added": {"attn_mask": Tensor(filled(3, 5, phase=6))},
    "shared heads": {"enable_gqa": True},
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_equals_torch(name):
    heads = 1 if name == "shared heads" else 2
    k, v = (np.repeat(array, heads, axis=1) for array in (K, V))
    attend = functools.partial(Tensor.scaled_dot_product_attention, **ATTENTION[name])
    check_with_gradient(TORCH["attention"][name], attend, Q, k, v)


@pytest.mark.parametrize("mask", [[[True, True], [False, False]], [[0.0, 0.0], [-math.inf] * 2]])
def test_a_query_that_may_look_nowhere_gives_zeros(mask):
    ones = Tensor.ones(1, 1, 2, 4, requires_grad=True)
    result = ones.scaled_dot_product_attention(ones, ones, attn_mask=Tensor(mask))
    assert result.tolist() == [[[[1.0] * 4, [0.0] * 4]]]
    result.sum().backward()
    assert np.isfinite(ones.grad.numpy()).all()


def test_attention_of_halves_adds_up_in_float32():
    """Scores of 70000 would be infinite as half floats, their softmax NaN."""
    big = Tensor.full((1, 1, 2, 4), 200.0, dtype=dtypes.float16)
    result = big.scaled_dot_product_attention(big, big, scale=0.5)
    assert result.dtype is dtypes.float16
    assert result.tolist() == [[[[200.0] * 4] * 2]]


def test_attention_errors_name_heads_and_masks():
    with pytest.raises(ValueError, match="4 heads of queries, 3 of keys"):
        Tensor.ones(1, 4, 2, 2).scaled_dot_product_attention(*[Tensor.ones(1, 3, 2, 2)] * 2, enable_gqa=True)
    with pytest.raises(ValueError, match="not both"):
        Tensor.ones(1, 2, 2).scaled_dot_product_attention(
            *[Tensor.ones(1, 2, 2)] * 2, attn_mask=Tensor.ones(2, 2), is_causal=True)
