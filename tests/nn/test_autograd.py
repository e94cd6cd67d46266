"""Gradients of Tensors: which tensors get them, through what they pass, and the operations built of several
rules.
"""
import gc
import math

import numpy as np
import pytest

from tests.nn.filled import filled
from tiny import Tensor, dtypes
from tiny.frontend import history


def slope(function, numbers) -> list:
    x = Tensor(numbers)
    return function(x).gradient(x)[0].tolist()


def test_gradient_of_products_with_zeros():
    assert slope(Tensor.prod, [0.0, 2.0, 3.0]) == [6, 0, 0]
    assert slope(Tensor.prod, [0.0, 0.0, 3.0]) == [0, 0, 0]
    assert slope(lambda x: x.cumprod(0).sum(), [2.0, 0.0, 3.0]) == [1, 8, 0]


def test_gradient_of_a_maximum_of_many_equal_halves():
    x = Tensor(np.ones(70000, np.float16))
    found = x.max().gradient(x)[0].numpy().astype(np.float64)
    np.testing.assert_allclose(found, 1 / 70000, rtol=2e-3)


def test_leaves_of_equal_numbers_are_two():
    a, b = Tensor(3.0), Tensor(3.0)
    assert [found.item() for found in (a + b).gradient(a, b)] == [1, 1]
    (a + b * 2).backward()
    assert (a.grad.item(), b.grad.item()) == (1, 2)


def test_the_usual_first_example():
    x = Tensor.eye(3, requires_grad=True)
    y = Tensor([[2.0, 0, -2.0]], requires_grad=True)
    y.matmul(x).sum().backward()
    assert x.grad.tolist() == [[2, 2, 2], [0, 0, 0], [-2, -2, -2]]
    assert y.grad.tolist() == [[1, 1, 1]]


def test_second_order():
    x = Tensor([1.0, 2.0])
    first, = (x ** 3).sum().gradient(x)
    second, = first.sum().gradient(x)
    assert (first.tolist(), second.tolist()) == ([3, 12], [6, 12])
    x.requires_grad = True
    (x ** 3).sum().backward(create_graph=True)
    assert x.grad.sum().gradient(x)[0].tolist() == [6, 12]


def test_gradients_add_up_until_they_are_cleared():
    x = Tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5, 7]
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_parameters_get_gradients_and_data_does_not():
    """Where any leaf has requires_grad=True only such leaves get a gradient; else every floating one does."""
    data, weight = Tensor([2.0]), Tensor([3.0], requires_grad=True)
    frozen = Tensor([4.0], requires_grad=False)
    (data * weight * frozen).sum().backward()
    assert (data.grad, frozen.grad, weight.grad.tolist()) == (None, None, [8])
    a, b = Tensor([2.0]), Tensor([3.0])
    (a * b * frozen).sum().backward()
    assert (a.grad.tolist(), b.grad.tolist(), frozen.grad) == ([12], [8], None)


def test_computing_in_the_middle_loses_no_gradient():
    w, v = Tensor(filled(3, 2), requires_grad=True), Tensor(filled(2, 2, phase=1), requires_grad=True)
    x = Tensor(filled(4, 3, phase=2))
    plain = ((x @ w).relu() @ v).square().sum()
    plain.backward()
    expected = w.grad.numpy(), v.grad.numpy()
    w.grad = v.grad = None
    hidden = (x @ w).relu().realize()
    loss = (hidden @ v).square().sum()
    assert math.isclose(loss.item(), plain.item(), rel_tol=1e-5)
    loss.backward()
    np.testing.assert_allclose(w.grad.numpy(), expected[0], rtol=1e-5)
    np.testing.assert_allclose(v.grad.numpy(), expected[1], rtol=1e-5)


def test_gradients_through_writes():
    """A part that is written takes its gradient to what was written; the rest keeps it."""
    x, y = Tensor([1.0, 2.0, 3.0]), Tensor([5.0, 7.0])
    z = x * 2
    z[1:] = y * y
    by_x, by_y = (z * Tensor([1.0, 10.0, 100.0])).sum().gradient(x, y)
    assert (by_x.tolist(), by_y.tolist()) == ([2, 0, 0], [100, 1400])


def test_a_reader_built_before_a_write_keeps_its_gradient():
    x = Tensor([1.0, 2.0])
    z = x * 3
    read = (z * z).sum()
    z[0] = 0.0
    assert read.gradient(x)[0].tolist() == [18, 36]


def test_a_leaf_written_to_meanwhile_is_an_error(on_device):
    """The gradient by a value that is gone would be silently missing."""
    w, v = Tensor([1.0, 2.0], requires_grad=True).realize(), Tensor([1.0, 2.0], requires_grad=True)
    loss = (w * w * v).sum()
    w.assign(w * 2).realize()
    with pytest.raises(RuntimeError, match="was written to after the result was built"):
        loss.backward()


@pytest.mark.parametrize("make", [lambda x: x * 2, lambda x: Tensor.zeros(3), lambda x: x.detach().clone()])
def test_a_gradient_through_a_write_that_was_computed_is_an_error(make):
    """The history of what is written to ends when it is computed; the gradient would be silently missing."""
    x, v = Tensor([1.0, 2.0, 3.0], requires_grad=True), Tensor([1.0, 1.0, 1.0], requires_grad=True)
    z = make(x)
    z[1:] = x[1:] * 5
    (z * v).sum().backward()
    assert x.grad.tolist()[1:] == [5, 5]
    z.realize()
    for differentiate in (lambda loss: loss.backward(), lambda loss: loss.gradient(v)):
        with pytest.raises(RuntimeError, match="written to and then computed.* detach"):
            differentiate((z * v).sum())
    z.assign(z.detach() + 1).realize()                      # data by now
    assert (z * v).sum().gradient(v)[0].tolist() == z.tolist()


def test_histories_end_with_their_tensors():
    """Computing in every step keeps nothing of the steps before alive."""
    w, x = Tensor(filled(4, 3), requires_grad=True), Tensor(filled(2, 4))
    counts = []
    for _ in range(12):
        w.grad = None
        loss = (x @ w).square().sum().realize()
        loss.backward()
        moved = (w.grad * 0.9).realize()
        w.assign(w - moved * 0.01).realize()
        gc.collect()
        counts.append(len(history._origins))
    assert len(set(counts[2:])) == 1

def test_gradient_from_a_given_start():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (x * x).backward(gradient=Tensor([[1.0, 0.0], [0.0, 2.0]]))
    assert x.grad.tolist() == [[2, 0], [0, 16]]
    assert (x * 2).gradient(x, gradient=Tensor.ones(2, 2))[0].tolist() == [[2, 2], [2, 2]]


def test_gradient_by_a_value_in_between():
    x = Tensor([1.0, 2.0])
    y = x * 3
    assert (y * y).sum().gradient(y)[0].tolist() == [6, 12]


def test_nothing_to_differentiate_is_an_error_with_the_way_out():
    x, other = Tensor([1.0, 2.0], requires_grad=True), Tensor([1.0])
    with pytest.raises(RuntimeError, match=r"shape \(2,\) is no scalar"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="target 0, .* not at all"):
        x.sum().gradient(other)
    with pytest.raises(RuntimeError, match="depends on no leaf"):
        x.detach().sum().backward()
    with pytest.raises(TypeError, match="int32"):
        Tensor([1, 2]).sum().gradient(x)
    assert x.sum().gradient(other, materialize_grads=True)[0].tolist() == [0]


def test_small_types_keep_their_type():
    for dtype in (dtypes.float16, dtypes.bfloat16, dtypes.float64):
        x = Tensor([1.0, 2.0], dtype=dtype)
        found, = (x * x).sum().gradient(x)
        assert found.dtype is dtype
        assert found.tolist() == [2, 4]


# -- operations made of several rules, against differences ---------------------------------------------------
def image(x: Tensor) -> Tensor:
    return x.reshape(1, 1, 3, 4)


KERNEL = Tensor(filled(2, 1, 2, 3, dtype=np.float64))
PLACES, TARGETS = Tensor([[0, 0], [3, 1], [2, 2]]), Tensor([[0, 0, 1, 2]] * 3)
COMPOSED = {
    "softmax": lambda x: x.softmax(-1), "log_softmax": lambda x: x.log_softmax(0), "std": lambda x: x.std(0),
    "logsumexp": lambda x: x.logsumexp(1), "layernorm": Tensor.layernorm, "gelu": Tensor.gelu,
    "mish": Tensor.mish, "sigmoid": Tensor.sigmoid, "tanh": Tensor.tanh, "silu": Tensor.silu,
    "elu": Tensor.elu, "softplus": Tensor.softplus, "asinh": Tensor.asinh, "atan": Tensor.atan,
    "erf": Tensor.erf, "sinh": Tensor.sinh, "abs": Tensor.abs, "sort": lambda x: x.sort(1)[0],
    "topk": lambda x: x.topk(2, 1)[0], "cummax": lambda x: x.cummax(1)[0], "max": lambda x: x.max(1),
    "var": lambda x: x.var(1), "index": lambda x: x[Tensor([1, 0, 1]), 1:],
    "gather": lambda x: x.gather(1, PLACES), "cumsum": lambda x: x.cumsum(0),
    "logcumsumexp": lambda x: x.logcumsumexp(1), "roll": lambda x: x.roll(2, 1),
    "normalize": lambda x: x.normalize(axis=1), "pow": lambda x: (x * x + 1) ** x,
    "conv": lambda x: image(x).conv2d(KERNEL, padding=1, stride=2),
    "pools": lambda x: image(x).max_pool2d(2, 1).avg_pool2d((1, 2), 1),
    "resize": lambda x: image(x).interpolate((5, 7), mode="linear"),
    "einsum": lambda x: Tensor.einsum("ij,kj->ik", x, x),
    "scatter": lambda x: x.zeros_like().scatter_reduce(1, TARGETS, x, reduce="sum"),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_operation(name):
    function, numbers = COMPOSED[name], filled(3, 4, dtype=np.float64)
    x = Tensor(numbers)
    result = function(x)
    weights = filled(*result.shape, phase=3.0, dtype=np.float64)
    found, = (result * Tensor(weights)).sum().gradient(x)
    steps = np.eye(12).reshape(12, 3, 4) * 1e-6
    above, below = ([(function(Tensor(numbers + sign * step)).numpy() * weights).sum() for step in steps]
                    for sign in (1, -1))
    expected = (np.array(above) - np.array(below)).reshape(3, 4) / 2e-6
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-7)
