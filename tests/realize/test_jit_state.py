"""TinyJit and tensors that change: what a captured function writes, and what is written around it.

As in test_jit.py, calls 1 (plain), 2 (captured) and 3 onwards (replayed) must agree.
"""
import numpy as np
import pytest

from tests.realize.common import buffer
from tiny import Tensor, TinyJit
from tiny.realize import JitError


def _train(jit: bool) -> list[float]:
    x, y, w = buffer(np.ones((4, 2))), buffer(np.ones((4, 1))), buffer(np.zeros((2, 1)))

    def step():
        loss = ((x @ w) - y).pow(2).mean()
        w.assign(w - 0.1 * loss.gradient(w)[0])
        return loss
    step = TinyJit(step) if jit else step
    sums = []
    for _ in range(5):
        step()
        sums.append(w.sum().item())
    return sums


def test_a_write_to_a_captured_tensor_that_is_not_returned_is_replayed():
    """State: training goes on after capture although only the loss is returned."""
    plain, jitted = _train(False), _train(True)
    assert len(set(jitted)) == 5
    assert jitted == plain


def _momentum(jit: bool) -> list:
    rng = np.random.default_rng(1)
    w, m, v = (buffer(rng.normal(size=(3, 2)) if n == 0 else np.zeros((3, 2))) for n in range(3))
    t = buffer([0.0])
    xs = [buffer(rng.normal(size=(4, 3))) for _ in range(5)]

    def step(x):
        loss = (x @ w).square().mean()
        gradient = loss.gradient(w)[0]
        t.assign(t + 1)
        m.assign(0.9 * m + 0.1 * gradient)
        v.assign(0.999 * v + 0.001 * gradient * gradient)
        w.assign(w - 0.01 * (m / (1 - 0.9 ** t)) / ((v / (1 - 0.999 ** t)).sqrt() + 1e-8))
        return loss.realize()
    step = TinyJit(step) if jit else step
    return [(step(x).item(), w.tolist(), m.tolist(), v.tolist(), t.item()) for x in xs]


def test_state_of_an_optimiser_over_five_steps_is_that_of_the_plain_run():
    """State: several tensors written in one step, each reading the others' new values."""
    assert _momentum(True) == _momentum(False)


def test_writes_to_arguments_reach_the_tensors_of_each_call():
    """State: an in-place write to an argument changes the tensor passed now, and only that."""
    @TinyJit
    def double(x, y):
        x.assign(x * 2)
        y += 1
        return x.sum()
    for n in range(4):
        x, y, other = buffer([n, 1.0]), buffer([5.0]), buffer([7.0])
        assert double(x, y).item() == 2 * n + 2
        assert (x.tolist(), y.item(), other.item()) == ([2 * n, 2], 6, 7)


def test_repeated_writes_to_one_argument():
    @TinyJit
    def step(x):
        x.assign(x + 1)
        x.assign(x * 2)
        x[:1].assign(x[:1] + 100)
    x, expected = buffer([1.0, 2.0]), np.array([1.0, 2.0])
    for _ in range(5):
        step(x)
        expected = (expected + 1) * 2
        expected[0] += 100
        assert x.tolist() == expected.tolist()


def test_swapping_two_captured_tensors():
    """State: each write needs the other's old value."""
    a, b = buffer([1.0, 2.0]), buffer([3.0, 4.0])

    @TinyJit
    def swap():
        old = a + 0
        a.assign(b)
        b.assign(old)
    for n in range(1, 6):
        swap()
        assert (a.tolist(), b.tolist()) == (([3, 4], [1, 2]) if n % 2 else ([1, 2], [3, 4]))


def test_two_functions_that_share_state():
    """State: what one jitted function writes the other reads, in any order, with plain code between."""
    state = buffer([1.0])

    @TinyJit
    def double():
        state.assign(state * 2)

    @TinyJit
    def add(x):
        state.assign(state + x)
        return state + 0
    value = 1.0
    for n in range(5):
        double()
        value *= 2
        assert add(buffer([float(n)])).item() == value + n
        value += n
        state += 1
        value += 1
        assert state.item() == value


def test_lazy_readers_outside_keep_the_value_they_saw():
    """Order: a reader built before a replay that writes what it reads sees the old value."""
    state = buffer([1.0])

    @TinyJit
    def step():
        state.assign(state * 10)
    value = 1.0
    for _ in range(5):
        reader = state + 1
        view = state[:1]
        step()
        value *= 10
        assert reader.item() == value / 10 + 1
        assert view.item() == value


def test_lazy_readers_of_an_argument_keep_the_value_they_saw():
    """Order: also a reader that was built before other calls with other arguments."""
    x, y = buffer([1.0]), buffer([2.0])
    bump = TinyJit(lambda t: t.assign(t + 1))
    early = y * 1
    for tensor in (x, x, x, y):
        before, old = tensor * 1, tensor.item()
        bump(tensor)
        assert (before.item(), tensor.item()) == (old, old + 1)
    assert early.item() == 2


def test_a_graph_that_was_computed_once_is_not_remembered_after_a_replay_overwrote_it():
    """Order: x + 1 is known to lie in y's memory; once a replay wrote there, x + 1 is made anew.
    """
    bump = TinyJit(lambda t: t.assign(t * 10))
    for _ in range(3):
        bump(buffer([5.0]))
    x = buffer([1.0])
    y, other = x + 1, (x + 1) * 3
    y.realize()
    bump(y)
    assert (y.item(), other.item(), (x + 1).item()) == (20, 6, 2)
    state = x + 5
    again = (x + 5) * 2
    step = TinyJit(lambda: state.assign(state * 10))
    for _ in range(4):
        step()
    assert (state.item(), again.item(), (x + 5).item()) == (60_000, 12, 6)


def test_pending_writes_from_outside_are_made_once():
    """Order: a write that waits when the function is captured is no part of the function."""
    state, log = buffer([0.0]), buffer([0.0])
    f = TinyJit(lambda x: (x + state).realize())
    for n in range(5):
        state.assign(state + 1)
        log[:1].assign(log[:1] + 1)
        assert f(buffer([10.0])).item() == 11 + n
    assert log.item() == 5


def test_a_captured_tensor_that_is_still_lazy_is_computed_once_and_then_shared():
    """A closure's tensor that has no memory yet when captured: later writes to it from outside are seen."""
    lazy = buffer([1.0, 2.0]) * 3
    f = TinyJit(lambda x: x + lazy)
    for n in range(4):
        assert f(buffer([n, n])).tolist() == [n + 3, n + 6]


def test_a_captured_tensor_that_is_still_lazy_and_written_to():
    """A closure's tensor that has no memory yet is where replays go on from."""
    for state in (buffer([1.0]) * 3, Tensor([3.0]), Tensor.full((1,), 3.0), Tensor(3.0)):
        def add(x, state=state):
            state.assign(state + x.reshape(state.shape))
            return state * 1
        step = TinyJit(add)
        value = 3.0
        for n in range(5):
            value += n
            assert step(buffer([float(n)])).item() == value
            assert state.item() == value


def test_a_captured_constant_that_changes_later():
    """A closure's constant is built into the captured kernels; a later write to it is seen all the same."""
    for scale in (Tensor(2.0), Tensor(2), Tensor.full((1,), 2.0), Tensor.ones(1) * 2):
        f = TinyJit(lambda x, scale=scale: x * scale)
        for n in range(3):
            assert f(buffer([float(n)])).item() == 2 * n
        scale.assign(scale + 3)
        for n in range(3):
            assert f(buffer([float(n)])).item() == 5 * n
        scale += 1
        assert f(buffer([2.0])).item() == 12


def test_a_captured_tensor_that_moves_to_other_memory():
    """A closure's tensor replaced from outside, or swapped with another, is read where it is now."""
    a, b = buffer([1.0]), buffer([2.0])
    f = TinyJit(lambda x: x + a * 10 + b * 100)
    for n in range(3):
        assert f(buffer([float(n)])).item() == n + 210
    old = a + 0
    a.assign(b)
    b.assign(old)
    for n in range(3):
        assert f(buffer([float(n)])).item() == n + 120
    a.replace(buffer([3.0]))
    for n in range(3):
        assert f(buffer([float(n)])).item() == n + 130


def test_a_captured_lazy_tensor_whose_source_is_written():
    """A closure's lazy tensor keeps the value of its source from before a write, and so do replays."""
    base = buffer([1.0])
    lazy = base * 3
    f = TinyJit(lambda x: x + lazy)
    for n in range(3):
        assert f(buffer([float(n)])).item() == n + 3
    base.assign(base + 10)
    for n in range(3):
        assert f(buffer([float(n)])).item() == n + 3
    assert base.item() == 11


def test_a_captured_view_of_a_tensor_that_is_written():
    """A closure's view shows what its tensor holds at each call."""
    base = buffer([1.0, 2.0, 3.0])
    view = base[1:]
    f = TinyJit(lambda x: x + view)
    for n in range(5):
        assert f(buffer([0.0])).tolist() == [2.0 + n, 3.0 + n]
        base += 1


def test_an_argument_that_is_also_the_written_state_of_the_function():
    """Aliasing: the function's own state passed in reads in program order."""
    state = buffer([1.0])

    @TinyJit
    def step(x):
        before = x * 1
        state.assign(state + 1)
        return before + 0, x * 1
    for _ in range(3):
        before, after = step(buffer([50.0]))
        assert (before.item(), after.item()) == (50, 50)
    before, after = step(state)
    assert (before.item(), after.item(), state.item()) == (4, 5, 5)


def test_a_state_of_the_function_passed_in_when_it_is_captured():
    """Aliasing: called with a tensor that it also closes over, in whatever way, it is not captured."""
    class Holder:
        pass
    box = Holder()
    box.items = [{"w": buffer([1.0])}]
    state = box.items[0]["w"]
    functions = [lambda x: x * 10 + box.items[0]["w"], lambda x, bound=box: x * 10 + bound.items[0]["w"]]
    for function in functions:
        f = TinyJit(function)
        for x in (state, state, state, buffer([5.0]), buffer([6.0]), buffer([7.0]), state):
            assert f(x).item() == x.item() * 10 + 1


def test_an_expression_that_was_computed_outside_is_computed_anew_inside():
    """State: state + 1 is known when the function is captured, but not what it will be at each replay."""
    state = buffer([1.0])
    known, keeps_it_alive = state + 1, (state + 1) * 2
    known.realize()
    f = TinyJit(lambda x: (x + (state + 1)).realize())
    for n in range(5):
        assert f(buffer([10.0])).item() == 12 + n
        state += 1
    assert (known.item(), keeps_it_alive.item()) == (2, 4)


def test_lazy_readers_outside_are_no_part_of_the_function():
    """Order: what waits outside and reads what the function writes is computed once, not on every replay."""
    state = buffer([1.0])
    step = TinyJit(lambda x: state.assign(state + x))
    readers = []
    for _ in range(5):
        readers.append((state * 10, state.item() * 10))
        step(buffer([2.0]))
    for reader, value in readers:
        assert reader.item() == value


def test_a_view_as_argument_that_is_written_to_is_an_error_that_names_it():
    """A replay could not reach the tensor that the view is of; a view that is only read is like any tensor.
    """
    f = TinyJit(lambda part, x: part.assign(x))
    base = buffer([1.0, 2.0])
    f(base[1:], buffer([5.0]))
    assert base.tolist() == [1, 5]
    with pytest.raises(JitError, match="argument 0 is a view"):
        f(base[1:], buffer([6.0]))
    for n in range(4):
        assert f(buffer([0.0]), buffer([float(n)])).item() == n
    f(base[1:], buffer([7.0]))
    assert base.tolist() == [1, 7]
    g = TinyJit(lambda part: part * 2)
    for n in range(4):
        base[1] = float(n)
        assert g(base[1:]).item() == 2 * n


def test_two_tensors_that_share_memory_until_one_is_written():
    """State: replace() lets two tensors share a value; a captured write to one leaves the other alone."""
    source, state = buffer([1.0]), buffer([0.0])
    state.replace(source)

    @TinyJit
    def step():
        state.assign(state + 1)
    for n in range(5):
        step()
        assert (state.item(), source.item()) == (n + 2, 1)


def test_a_captured_read_only_tensor():
    """A closure's tensor in memory that must not be written can be read."""
    array = np.array([1.0, 2.0], np.float32)
    array.flags.writeable = False
    fixed = Tensor(array, copy=False)
    f = TinyJit(lambda x: x + fixed)
    for n in range(4):
        assert f(buffer([n, n])).tolist() == [n + 1, n + 2]
    assert array.tolist() == [1, 2]


def test_a_write_to_mapped_bytes_does_not_reach_their_owner():
    """Writing to a tensor made of immutable bytes leaves the bytes alone, jitted or not."""
    owner = bytes(range(4))
    state = Tensor(owner)

    @TinyJit
    def step():
        state.assign(state + 1)
    for n in range(1, 5):
        step()
        assert state.tolist() == [k + n for k in range(4)]
    assert owner == bytes(range(4))


def test_a_function_that_replaces_a_tensor_of_its_closure():
    """State kept by replace(), as a recurrent cell does, goes on from the last replay."""
    hidden = buffer([1.0])

    @TinyJit
    def step(x):
        hidden.replace((hidden * 2 + x).realize())
        return hidden + 0
    value = 1.0
    for n in range(5):
        value = value * 2 + n
        assert step(buffer([float(n)])).item() == value
        assert hidden.item() == value


def test_state_in_an_object_and_methods():
    """A jitted method captures for each object by itself."""
    class Counter:
        def __init__(self, start):
            self.total = buffer([start])

        @TinyJit
        def add(self, x):
            self.total.assign(self.total + x)
            return self.total + 0
    one, two = Counter(0.0), Counter(100.0)
    for n in range(1, 6):
        assert one.add(buffer([1.0])).item() == n
        assert two.add(buffer([2.0])).item() == 100 + 2 * n
