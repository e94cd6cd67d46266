"""Any chain of views, written to at its end: numpy's views say what must come out."""
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tiny.frontend.tensor import Tensor

PLACES = st.one_of(st.none(), st.integers(-3, 3))
SLICES = st.builds(slice, PLACES, PLACES, st.sampled_from((None, 1, 2, 3, -1, -2)))


def halves(x: np.ndarray) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(x, 2, -1, writeable=True)[..., ::2, :]


def moved(data, t: Tensor, x: np.ndarray) -> tuple:
    """One more view of both."""
    choices = ["unsqueeze", "squeeze"]
    choices += ["permute", "flip", "slices"] if x.ndim else []
    choices += ["row"] if x.ndim and len(x) else []
    choices += ["windows"] if x.ndim and x.shape[-1] >= 2 else []
    choices += ["flatten"] if x.flags.c_contiguous else []
    choice = data.draw(st.sampled_from(choices))
    if choice == "unsqueeze":
        axis = data.draw(st.integers(0, x.ndim))
        return t.unsqueeze(axis), np.expand_dims(x, axis)
    if choice == "permute":
        order = data.draw(st.permutations(range(x.ndim)))
        return t.permute(order), x.transpose(order)
    if choice == "flip":
        axis = data.draw(st.integers(0, x.ndim - 1))
        return t.flip(axis), np.flip(x, axis)
    if choice == "slices":
        index = tuple(data.draw(SLICES) for _ in range(x.ndim))
        return t[index], x[index]
    if choice == "row":
        place = data.draw(st.integers(-len(x), len(x) - 1))
        return t[place], x[place, ...]
    return {"squeeze": lambda: (t.squeeze(), x.squeeze()), "windows": lambda: (t.unfold(-1, 2, 2), halves(x)),
            "flatten": lambda: (t.flatten(), x.reshape(-1))}[choice]()


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_write_at_the_end_of_any_chain_of_views_reaches_the_tensor_and_no_earlier_reader(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    t = Tensor(x) * 1 if data.draw(st.booleans()) else Tensor(x)
    x = x.copy()
    view, expected = t, x
    for _ in range(data.draw(st.integers(1, 5))):
        view, expected = moved(data, view, expected)
    reader, before = t + 0.5, x + 0.5
    if data.draw(st.booleans()):
        view += 1
        expected += 1
    else:
        values = np.arange(expected.size, dtype=np.float32).reshape(expected.shape) + 100
        view.assign(values)
        expected[...] = values
    for got, wanted in data.draw(st.permutations([(view, expected), (t, x), (reader, before)])):
        np.testing.assert_array_equal(got.numpy(), wanted)
