"""Random tensors: what fixes their values, what they may be, and that they are distributed as they say."""
import math

import numpy as np
import pytest

from tiny import Context, Tensor, TinyJit, dtypes
from tiny.frontend.random import Generator


def test_values_depend_on_the_order_of_calls_not_of_reading():
    """Two lazy tensors read in the opposite order differ, and are the same as when read in order."""
    Tensor.manual_seed(7)
    a, b = Tensor.rand(4), Tensor.rand(4)
    late, early = b.tolist(), a.tolist()
    assert late != early
    Tensor.manual_seed(7)
    assert Tensor.rand(4).tolist() == early
    assert Tensor.rand(4).tolist() == late


def test_reading_twice_gives_the_same_numbers():
    x = Tensor.randn(5)
    assert x.tolist() == x.tolist()
    y = Tensor.rand(3)
    assert (y - y).tolist() == [0, 0, 0]


def test_known_values():
    """They are part of the contract: a seed gives the same numbers on every device and in every version."""
    Tensor.manual_seed(42)
    assert Tensor.random_bits(3).tolist() == [1471113958, 143471562, 1895131759]
    np.testing.assert_allclose(Tensor.rand(2).numpy(), [0.8844612240791321, 0.9979065656661987], rtol=1e-6)


def test_seeds_and_keys_are_all_different():
    keys = set()
    for seed in (0, 1, 2, -1, 2**63):
        generator = Generator(seed)
        keys |= {generator.next_key() for _ in range(1000)}
    assert len(keys) == 5000


def test_the_setting_seed_is_the_first_seed():
    first = Generator()
    with Context(SEED=5):
        assert first.next_key() == Generator(5).next_key()


def test_a_captured_function_draws_anew(on_device):
    @TinyJit
    def draw():
        return Tensor.rand(4).realize()

    draws = [tuple(draw().tolist()) for _ in range(6)]
    assert len(set(draws)) == 6


@pytest.mark.parametrize("dtype", [dtypes.fp8e5m2, *dtypes.floats[2:]])
def test_uniform_numbers_stay_below_one(dtype):
    values = Tensor.rand(20000, dtype=dtype).cast(dtypes.float64).numpy()
    assert 0 <= values.min() < 0.01 + (dtype.bits == 8) * 0.2
    assert values.max() < 1
    assert abs(values.mean() - 0.5) < 0.01 + 2.0 ** -dtype.exponent_mantissa[1]


def share_below(values: np.ndarray, bounds) -> np.ndarray:
    return (values.reshape(-1, 1) < np.array(bounds)).mean(0)


def test_uniform_distribution():
    values = Tensor.uniform(20000, low=-2.0, high=6.0).numpy()
    np.testing.assert_allclose(share_below(values, [-1, 0, 2, 5]), [1 / 8, 2 / 8, 4 / 8, 7 / 8], atol=0.015)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64])
def test_normal_distribution(dtype):
    values = Tensor.normal(40000, mean=3.0, std=2.0, dtype=dtype).numpy()
    expected = [0.5 * (1 + math.erf(z / math.sqrt(2))) for z in (-2, -1, 0, 0.5, 1.5)]
    np.testing.assert_allclose(share_below(values, [-1, 1, 3, 4, 6]), expected, atol=0.012)
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.02


def test_integers_cover_their_range_evenly():
    values = Tensor.randint(30000, low=-2, high=4).numpy()
    assert values.dtype == np.int32
    counts = np.unique(values, return_counts=True)
    assert counts[0].tolist() == [-2, -1, 0, 1, 2, 3]
    np.testing.assert_allclose(counts[1] / 30000, 1 / 6, atol=0.015)


@pytest.mark.parametrize(("low", "high", "dtype"), [
    (0, 256, dtypes.uint8), (-2**31, 2**31, dtypes.int32), (-2**62, 2**62, dtypes.int64),
    (0, 2**64, dtypes.uint64), (5, 6, dtypes.int8),
])
def test_integers_of_whole_ranges(low, high, dtype):
    values = Tensor.randint(2000, low=low, high=high, dtype=dtype).numpy().astype(np.float64)
    assert low <= values.min() <= values.max() < high + (high - low) * 1e-9
    assert abs((values - low).mean() / (high - low) - 0.5) < 0.05 or high - low == 1


def test_integers_take_torchs_arguments():
    assert Tensor.randint(3, 5, (2, 7)).shape == (2, 7)
    values = Tensor.randint(10, (50,)).numpy()
    assert 0 <= values.min() <= values.max() < 10
    assert Tensor.randint(4, 6, size=(3,)).numpy().min() >= 4
    assert Tensor.randint(2, 3).shape == (2, 3)
    with pytest.raises(ValueError, match="from 3 below 3 as int32"):
        Tensor.randint(2, low=3, high=3)
    with pytest.raises(ValueError, match="from 0 below 300 as uint8"):
        Tensor.randint(2, high=300, dtype=dtypes.uint8)


def test_permutations_hold_every_number_once():
    orders = [tuple(Tensor.randperm(6).tolist()) for _ in range(20)]
    assert {tuple(sorted(order)) for order in orders} == {tuple(range(6))}
    assert len(set(orders)) > 10


def test_choices_follow_their_weights():
    weights = Tensor([[0.0, 1.0, 3.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    drawn = weights.multinomial(4000, replacement=True)
    assert drawn.shape == (2, 4000)
    assert drawn.dtype is dtypes.int32
    first, second = drawn.numpy()
    assert set(first) == {1, 2}
    assert abs((first == 2).mean() - 0.75) < 0.03
    assert set(second) == {0}
    assert weights[0].multinomial().shape == (1,)


def test_choices_without_replacement_differ():
    weights = Tensor([1.0, 2.0, 0.0, 5.0])
    rows = weights.reshape(1, 4).expand(2000, 4).multinomial(3).numpy()
    assert {tuple(sorted(row)) for row in rows.tolist()} == {(0, 1, 3)}
    assert abs((rows[:, 0] == 3).mean() - 5 / 8) < 0.04
    with pytest.raises(ValueError, match="5 samples of 4 without replacement"):
        weights.multinomial(5)
    with pytest.raises(ValueError, match="0 samples of weights"):
        weights.multinomial(0)


def test_dropout_keeps_the_mean_and_its_gradient():
    x = Tensor.ones(20000, requires_grad=True)
    with Tensor.train():
        dropped = x.dropout(0.3)
    values = dropped.numpy()
    assert abs((values == 0).mean() - 0.3) < 0.015
    assert abs(values.mean() - 1) < 0.02
    dropped.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), values)
    assert x.dropout(1.0, training=True).sum().item() == 0
    with pytest.raises(ValueError, match="p=1.5"):
        x.dropout(1.5)


def test_starting_weights_have_the_spread_of_their_papers():
    def spread(tensor):
        return np.abs(tensor.numpy()).max()
    assert math.isclose(spread(Tensor.scaled_uniform(50, 200)), 0.01, rel_tol=1e-3)
    assert math.isclose(spread(Tensor.glorot_uniform(100, 50)), 0.2, rel_tol=1e-3)
    assert math.isclose(spread(Tensor.kaiming_uniform(50, 100, a=0.0)), math.sqrt(6 / 100), rel_tol=1e-3)
    assert math.isclose(Tensor.kaiming_normal(50, 100, a=1.0).numpy().std(), 0.1, rel_tol=0.05)


def test_likes_take_shape_and_type():
    like = Tensor.zeros(2, 3, dtype=dtypes.float16).rand_like()
    assert (like.shape, like.dtype) == ((2, 3), dtypes.float16)
    assert Tensor.zeros(2).randn_like(dtype=dtypes.float64).dtype is dtypes.float64


def test_types_that_do_not_fit_are_errors():
    with pytest.raises(TypeError, match="rand: int32 is no floating type"):
        Tensor.rand(2, dtype=dtypes.int32)
    with pytest.raises(TypeError, match="random_bits: int32"):
        Tensor.random_bits(2, dtype=dtypes.int32)


def test_a_random_leaf_takes_a_gradient_before_and_after_it_is_computed():
    w = Tensor.randn(3, requires_grad=True)
    before = (w * 2).sum()
    w.realize()
    before.backward()
    (w * 3).sum().backward()
    assert w.grad.tolist() == [5, 5, 5]
