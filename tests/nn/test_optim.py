"""Optimisers against PyTorch's, or where it has none, against a few lines of numpy."""
import numpy as np
import pytest

from tests.nn.common import TORCH, close
from tests.nn.filled import filled
from tiny import GlobalCounters, Tensor, TinyJit, dtypes, nn
from tiny.nn import optim

OPTIMISERS = {
    "SGD": lambda p: optim.SGD(p, 0.1),
    "SGD with momentum": lambda p: optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
    "SGD with Nesterov": lambda p: optim.SGD(p, 0.1, momentum=0.8, nesterov=True),
    "Adam": lambda p: optim.Adam(p, 0.05),
    "Adam with decay": lambda p: optim.Adam(p, 0.05, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1),
    "AdamW": lambda p: optim.AdamW(p, 0.05, weight_decay=0.2),
    "Muon": lambda p: optim.Muon(p[:1], 0.05, weight_decay=0.1),
}


def loss_of(params, x) -> Tensor:
    return ((x @ params[0] + params[1]).tanh() - 0.3).square().sum()


def start() -> list[Tensor]:
    return [Tensor(filled(4, 3)), Tensor(filled(3, phase=1))]


@pytest.mark.parametrize("name", OPTIMISERS)
def test_six_steps_equal_torch(name):
    params, x = start(), Tensor(filled(5, 4, phase=2))
    optimiser = OPTIMISERS[name](params)
    for _ in range(6):
        optimiser.zero_grad()
        loss_of(params, x).backward()
        optimiser.step()
    close(params[0].flatten().cat(params[1]), TORCH["optimisers"][name], tolerance=1e-4)


@pytest.mark.parametrize("name", ["Adam", "SGD with momentum"])
def test_captured_steps_equal_plain_ones(name, on_device):
    results = []
    for wrap in (lambda step: step, TinyJit):
        params, x = start(), Tensor(filled(5, 4, phase=2)).realize()
        optimiser = OPTIMISERS[name](params)

        @wrap
        def step(optimiser=optimiser, params=params, x=x):
            optimiser.zero_grad()
            loss = loss_of(params, x).backward()
            optimiser.step()
            return loss.realize()

        losses = [step().item() for _ in range(5)]
        results.append((losses, params[0].numpy()))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-6)


def slopes(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Gradient of sum((x @ w) ** 2) / 2."""
    return x.T @ (x @ w)


def numpy_lamb(w, x, steps, rate, decay, b1=0.9, b2=0.999, eps=1e-6):
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t in range(1, steps + 1):
        g = slopes(w, x)
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        step = m / (1 - b1 ** t) / (np.sqrt(v / (1 - b2 ** t)) + eps) + decay * w
        w = w - rate * np.linalg.norm(w) / np.linalg.norm(step) * step
    return w


def numpy_lars(w, x, steps, rate, decay, momentum=0.9, trust=0.001):
    velocity = np.zeros_like(w)
    for _ in range(steps):
        g = slopes(w, x)
        scale = trust * np.linalg.norm(w) / (np.linalg.norm(g) + decay * np.linalg.norm(w))
        velocity = momentum * velocity + rate * scale * (g + decay * w)
        w = w - velocity
    return w


@pytest.mark.parametrize(("make", "expected"), [
    (lambda p: optim.LAMB(p, 0.1, weight_decay=0.02), lambda w, x: numpy_lamb(w, x, 4, 0.1, 0.02)),
    (lambda p: optim.LARS(p, 0.5, weight_decay=0.02), lambda w, x: numpy_lars(w, x, 4, 0.5, 0.02)),
], ids=["LAMB", "LARS"])
def test_layer_wise_rates(make, expected):
    w, x = filled(4, 3, dtype=np.float64), filled(5, 4, phase=2, dtype=np.float64)
    param = Tensor(w)
    optimiser = make([param])
    for _ in range(4):
        optimiser.zero_grad()
        ((Tensor(x) @ param).square().sum() / 2).backward()
        optimiser.step()
    np.testing.assert_allclose(param.numpy(), expected(w, x), rtol=1e-9)


def test_no_training_mode_is_needed_and_the_rate_can_change():
    param = Tensor([1.0, 2.0])
    optimiser = optim.SGD([param], lr=0.5)
    for rate, expected in ((0.5, [0.5, 1.5]), (0.25, [0.25, 1.25]), (Tensor(1.0), [-0.75, 0.25])):
        optimiser.lr = rate
        optimiser.zero_grad()
        param.sum().backward()
        optimiser.step()
        assert param.tolist() == expected


def test_a_captured_step_sees_a_changed_rate(on_device):
    param = Tensor([8.0]).realize()
    optimiser = optim.SGD([param], lr=1.0)

    @TinyJit
    def step():
        optimiser.zero_grad()
        param.sum().backward()
        optimiser.step()

    values = []
    for rate in (1.0, 1.0, 1.0, 0.5, 0.25):
        optimiser.lr = rate
        step()
        values.append(param.item())
    assert values == [7.0, 6.0, 5.0, 4.5, 4.25]


def test_a_step_is_one_submission_of_everything_written():
    """Running averages that nobody asked for are computed with the step; else their graph would grow."""
    norm, x = nn.BatchNorm(3), Tensor(filled(4, 3))
    optimiser = optim.Adam(nn.state.get_parameters(norm))
    with Tensor.train():
        norm(x).square().mean().backward()
    optimiser.step()
    before = GlobalCounters.kernel_count
    assert norm.num_batches_tracked.item() == 1
    assert norm.running_mean.tolist() != [0, 0, 0]
    assert norm.weight.tolist() != [1, 1, 1]
    assert GlobalCounters.kernel_count == before


def test_memory_of_parameters_is_kept(on_device):
    param = Tensor([1.0, 2.0]).realize()
    optimiser = optim.Adam([param])
    places = set()
    for _ in range(4):
        optimiser.zero_grad()
        param.square().sum().backward()
        optimiser.step()
        places.add(param.node.arg.buffer.address)
    assert len(places) == 1


def test_what_takes_no_gradient_is_passed_over():
    frozen, number, param = Tensor([1.0], requires_grad=False), Tensor([3]), Tensor([1.0])
    optimiser = optim.SGD([frozen, number, param, param])
    assert optimiser.params == [param]
    with pytest.raises(ValueError, match="of the 2 tensors given none is floating"):
        optim.SGD([frozen, number])
    with pytest.raises(RuntimeError, match="no parameter has a gradient"):
        optimiser.step()


def test_halves_keep_their_type_and_have_float32_state():
    param = Tensor([1.0, 2.0], dtype=dtypes.float16)
    optimiser = optim.Adam([param], lr=0.125)
    param.float().sum().backward()
    optimiser.step()
    assert param.dtype is dtypes.float16
    assert optimiser.m[0].dtype is dtypes.float32
    np.testing.assert_allclose(param.numpy(), [0.875, 1.875])


def test_groups_step_together():
    matrix, vector = Tensor(filled(3, 2, phase=1)), Tensor(filled(2, phase=2))
    with pytest.raises(ValueError, match=r"shape \(2,\) is no matrix"):
        optim.Muon([matrix, vector])
    group = optim.OptimizerGroup(optim.Muon([matrix]), optim.AdamW([vector]))
    before = matrix.numpy(), vector.numpy()
    group.zero_grad()
    (matrix @ vector).square().sum().backward()
    group.step()
    assert (matrix.numpy() != before[0]).all()
    assert (vector.numpy() != before[1]).all()
    group.lr = 0.5
    assert [optimiser.lr.item() for optimiser in group.optimizers] == [0.5, 0.5]


@pytest.mark.parametrize("lr", [-1, -1e-9, float("nan")])
def test_a_learning_rate_below_zero_is_refused(lr):
    with pytest.raises(ValueError, match="a learning rate is a number from 0 up"):
        nn.optim.SGD([Tensor.ones(3)], lr=lr)
