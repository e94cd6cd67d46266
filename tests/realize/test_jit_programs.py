"""Random programs inside a captured function and around it give what numpy does, call after call.

A program is a list of steps on tensors that the function closes over and on its arguments; numpy arrays go
through the same steps. Arguments are new tensors, lazy ones, one tensor twice, or the function's own state.
"""
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny import Tensor, TinyJit, dtypes

PARTS = [np.s_[:], np.s_[0:2], np.s_[1:], np.s_[::2], np.s_[:, 1:3], np.s_[1], np.s_[:, 2], np.s_[::-1],
         np.s_[0:2, ::-1]]
STATES, SECOND, LAZY = range(3), 4, 5                       # places in the list of what a step may use
WRITING = ("update", "set part", "add to part", "turn", "write view", "take rows", "swap", "replace")


def step(items: list, views: list, kind: str, a: int, b: int, part: int, number: int) -> None:
    """One step on tensors or on arrays."""
    x, y, place = items[a], items[b], PARTS[part]
    is_array = isinstance(x, np.ndarray)
    if kind == "update":
        _write(x, y + x * number)
    elif kind == "set part":
        x[place] = y[place] + number
    elif kind == "add to part":
        x[place] += number
    elif kind == "turn":
        total = y.sum(1, keepdims=True) if is_array else y.sum(1, keepdim=True).cast(dtypes.int32)
        _write(x, (y[::-1] if is_array else y.flip(0)) - total)
    elif kind == "compute" and not is_array:
        x.realize()
    elif kind == "make view":
        views.append(x[place])
    elif kind == "write view" and views:
        view = views[number % len(views)]
        _write(view, view * 2 + number)
    elif kind == "take rows":
        x[[2, 0, 2]] = y[[0, 1, 1]]
    elif kind == "swap":
        old = x * 1
        _write(x, y)
        _write(y, old)
    elif kind == "replace":
        _write(x, y) if is_array else x.replace(y)


def _write(target, value) -> None:
    if isinstance(target, np.ndarray):
        target[...] = value
    else:
        target.assign(value)


def steps(kinds: tuple, most: int, last: int):
    one = st.tuples(st.sampled_from(kinds), st.integers(0, last), st.integers(0, last),
                    st.integers(0, len(PARTS) - 1), st.integers(-2, 2))
    return st.lists(one, max_size=most)


def run(items: list, program: list) -> None:
    views: list = []
    for one in program:
        step(items, views, *one)


class Both:
    """A function and its numpy twin, over the same state."""

    def __init__(self, program: list, result: tuple):
        random = np.random.default_rng(5)
        self.arrays = [random.integers(-9, 9, (3, 4)).astype(np.int32) for _ in STATES]
        self.tensors = [Tensor(array.copy()) for array in self.arrays]
        self.lazy = self.tensors[0] * 2 + self.tensors[1], self.arrays[0] * 2 + self.arrays[1]
        self.jitted = TinyJit(lambda x, y: self.body([*self.tensors, x, y, self.lazy[0]], program, result))
        self.plain = lambda x, y: self.body([*self.arrays, x, y, self.lazy[1]], program, result)

    @staticmethod
    def body(items: list, program: list, result: tuple) -> list:
        run(items, program)
        a, b, number = result
        return [items[a] * number + items[b], items[a] + 0, items[b] * 1]

    def arguments(self, how: str, random) -> list[tuple]:
        """((tensor, array) for each of the two arguments)"""
        arrays = [random.integers(-9, 9, (3, 4)).astype(np.int32) for _ in range(2)]
        pairs = [(Tensor(array.copy()), array) for array in arrays]
        if how == "lazy":
            pairs[0] = pairs[0][0] + 1, pairs[0][1] + 1
        elif how == "twice":
            pairs[1] = pairs[0]
        elif how == "state":
            pairs[0] = self.tensors[0], self.arrays[0]
        elif how == "two states":
            pairs = [(self.tensors[2], self.arrays[2]), (self.tensors[1], self.arrays[1])]
        return pairs

    def check(self, what: str, pairs) -> None:
        for number, (tensor, array) in enumerate(pairs):
            np.testing.assert_array_equal(tensor.numpy(), array, err_msg=f"{what} {number}")


HOW = st.sampled_from(("new", "new", "new", "lazy", "twice", "state", "two states"))
CALLS = st.lists(HOW, min_size=7, max_size=7)
INSIDE = steps((*WRITING[:-1], "compute", "make view"), 6, SECOND)
OUTSIDE = steps(WRITING, 3, 2)
RESULT = st.tuples(st.integers(0, SECOND), st.integers(0, LAZY), st.integers(-2, 2))


@settings(max_examples=120)
@given(INSIDE, OUTSIDE, RESULT, CALLS)
def test_captured_functions_are_their_plain_ones(inside, outside, result, calls):
    """Results, arguments, state and lazy readers are right after each call, and results of earlier calls
    stay.
    """
    both = Both(inside, result)
    random = np.random.default_rng(1)
    kept = []
    for how in calls:
        (x, p), (y, q) = both.arguments(how, random)
        state = list(zip(both.tensors, both.arrays, strict=True))
        readers = [(tensor * 3 + 1, array * 3 + 1) for tensor, array in state]
        got, wanted = both.jitted(x, y), both.plain(p, q)
        kept += zip([tensor * 1 for tensor in got], wanted, strict=True)
        both.check("result", zip(got, wanted, strict=True))
        both.check("argument", [(x, p), (y, q)])
        both.check("state", state)
        both.check("reader", readers)
        run(both.tensors, outside)
        run(both.arrays, outside)
    both.check("kept", kept)
