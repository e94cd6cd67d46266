"""TinyJit: what a captured function replays must be what the plain function would compute.

Each test compares calls 1 (plain), 2 (captured) and 3 onwards (replayed). What a replay could get wrong is in
the test's name: aliasing, shapes, Python values, state, order.
"""
import numpy as np
import pytest

from tests.realize.common import buffer
from tiny import Context, GlobalCounters, Tensor, TinyJit, Variable, dtypes
from tiny.hcq import device as devices
from tiny.realize import JitError


# -- results -------------------------------------------------------------------------------------------------
def test_results_of_two_calls_alive_at_once_have_memory_of_their_own():
    """Aliasing: comparing the results of two calls compares two values, not one memory with itself."""
    f = TinyJit(lambda x: (x + 1).realize())
    for _ in range(2):
        f(buffer([0.0]))
    assert (f(buffer([1.1])) == f(buffer([1.2]))).tolist() == [False]
    kept = [f(buffer([float(n)])) for n in range(5)]
    assert [t.item() for t in kept] == [1, 2, 3, 4, 5]


def test_result_of_the_capturing_call_is_not_overwritten_by_replays():
    """Aliasing: the tensor returned while capturing keeps its value, as those of replays do."""
    f = TinyJit(lambda x: x * 2)
    first, second, third, fourth = [f(buffer([float(n)])) for n in range(4)]
    assert [t.item() for t in (first, second, third, fourth)] == [0, 2, 4, 6]


def test_a_returned_argument_is_the_argument_of_that_call():
    """Aliasing: a function that returns its own input with something derived does not return an old input."""
    f = TinyJit(lambda x: (x.realize(), (x + 1).realize()))
    for n in range(4):
        same, more = f(buffer([float(n)]))
        assert (same.item(), more.item()) == (n, n + 1)


def test_a_result_fed_back_as_argument_is_read_before_anything_new_is_written():
    """Aliasing: a recurrence through the captured function, each result the next argument."""
    f = TinyJit(lambda x: (x * 2 + 1).realize())
    state, expected = buffer([1.0, 2.0]), np.array([1.0, 2.0])
    for _ in range(6):
        state, expected = f(state), expected * 2 + 1
        assert state.tolist() == expected.tolist()


def test_results_that_are_views_of_arguments_and_of_new_values():
    """A returned view shows the argument's, or the new value's, elements of that call."""
    f = TinyJit(lambda x: (x[1:], (x + 1)[:2], x.reshape(2, 2).T))
    for n in range(4):
        values = np.arange(4.0, dtype=np.float32) + n
        tail, head, turned = f(Tensor(values))
        np.testing.assert_array_equal(tail.numpy(), values[1:])
        np.testing.assert_array_equal(head.numpy(), values[:2] + 1)
        np.testing.assert_array_equal(turned.numpy(), values.reshape(2, 2).T)


def test_one_tensor_returned_twice_stays_one_value():
    f = TinyJit(lambda x: [y := x + 1, y, y * 2])
    for n in range(4):
        a, b, c = f(buffer([float(n)]))
        assert (a.item(), b.item(), c.item()) == (n + 1, n + 1, 2 * n + 2)


def test_lazy_results_are_computed():
    """A function that forgets realize() is captured with its results all the same."""
    f = TinyJit(lambda x: x.exp().sum())
    for n in range(4):
        np.testing.assert_allclose(f(buffer([n, 0.0])).item(), np.exp(n) + 1, rtol=1e-6)


def test_nested_results_keep_their_containers():
    """Lists, tuples, dicts and plain values in a result come back as they were."""
    f = TinyJit(lambda x: {"a": [x + 1, (x + 2, None)], "b": "text", "c": 3})
    for n in range(4):
        result = f(buffer([float(n)]))
        assert result["a"][0].item() == n + 1
        assert result["a"][1][0].item() == n + 2
        assert isinstance(result["a"][1], tuple) and result["a"][1][1] is None
        assert (result["b"], result["c"]) == ("text", 3)


def test_a_result_that_does_not_depend_on_arguments():
    f = TinyJit(lambda x: (Tensor.ones(3).contiguous() * 2, x + 1))
    for n in range(4):
        fixed, more = f(buffer([float(n)]))
        assert fixed.tolist() == [2, 2, 2]
        assert more.item() == n + 1


def test_a_function_without_results_or_without_arguments():
    counter = buffer([0.0])

    @TinyJit
    def count():
        counter.assign(counter + 1)

    for _ in range(5):
        assert count() is None
    assert counter.item() == 5


# -- shapes, types, Python values ----------------------------------------------------------------------------
def test_another_length_of_a_one_dimensional_argument_is_not_replayed_with_the_old_one():
    """Shape check: a longer, and a shorter, 1-D input after capture gives a result of its own length."""
    f = TinyJit(lambda x: (x + 1).realize())
    for _ in range(3):
        assert f(buffer([1.0] * 3)).tolist() == [2] * 3
    for size in (4, 2, 3, 1):
        assert f(buffer([1.0] * size)).tolist() == [2] * size


def test_another_dtype_or_rank_is_captured_by_itself():
    f = TinyJit(lambda x: x + 1)
    for _ in range(3):
        assert f(buffer([1.5])).dtype is dtypes.float32
        assert f(buffer([1], np.int32)).dtype is dtypes.int32
        assert f(buffer([[1.0]])).shape == (1, 1)


def test_python_scalars_are_not_baked_in():
    """Constants: a number passed as argument has the value of this call."""
    f = TinyJit(lambda x, k: (x + k).realize())
    assert [f(buffer([1.0]), k).item() for k in (1, 2, 3, 4)] == [2, 3, 4, 5]
    for _ in range(3):
        assert [f(buffer([1.0]), k).item() for k in (1, 2, 3, 4)] == [2, 3, 4, 5]


def test_equal_numbers_of_different_kinds_are_different_arguments():
    """1, 1.0 and True are equal for Python, but not what a tensor makes of them; nor are 0.0 and -0.0."""
    f = TinyJit(lambda x, k: x * k)
    whole = buffer([3], np.int32)
    for _ in range(3):
        assert f(whole, 1).dtype is dtypes.int32
        assert f(whole, 1.0).dtype is dtypes.float32
    g = TinyJit(lambda x, k: (x * 0 + k).realize())
    for _ in range(3):
        assert np.signbit(g(buffer([-1.0]), -0.0).numpy())[0]
        assert not np.signbit(g(buffer([1.0]), 0.0).numpy())[0]


def test_not_a_number_as_argument_is_captured_once():
    """nan differs from itself, but two calls with it are one combination."""
    f = TinyJit(lambda x, k: x + k)
    for _ in range(200):
        assert np.isnan(f(buffer([1.0]), float("nan")).item())


def test_numbers_inside_containers_are_not_baked_in():
    f = TinyJit(lambda items, options: items[0] * items[1] + options["k"])
    for _ in range(3):
        for k in (1, 2):
            for m in (3, 4):
                assert f([buffer([5.0]), m], {"k": k}).item() == 5 * m + k


def test_too_many_different_scalars_are_an_error_that_names_the_argument():
    """A number that changes on every call would capture for ever: the error says what to pass instead."""
    f = TinyJit(lambda x, step: x + step)
    with pytest.raises(JitError, match="step|argument 1"):
        for n in range(1000):
            f(buffer([1.0]), n)
    g = TinyJit(lambda x, step: x + step)
    with pytest.raises(JitError, match="argument step"):
        for n in range(1000):
            g(buffer([1.0]), step=n)


def test_arguments_that_may_change_unseen_are_refused_by_name():
    f = TinyJit(lambda x, box: x + 1)
    with pytest.raises(JitError, match="argument 1"):
        f(buffer([1.0]), {1, 2})
    with pytest.raises(JitError, match="argument box"):
        f(buffer([1.0]), box=np.ones(3))


def test_nested_arguments_and_keyword_arguments():
    """Tensors in lists, tuples, dicts and keyword arguments are arguments as much as plain ones."""
    f = TinyJit(lambda pair, *, table: pair[0] * pair[1][0] + table["k"])
    for n in range(4):
        result = f((buffer([float(n)]), [buffer([2.0])]), table={"k": buffer([10.0 * n])})
        assert result.item() == 12 * n


def test_keyword_arguments_in_another_order_are_the_same_call():
    f = TinyJit(lambda **named: named["a"] - named["b"])
    for n in range(4):
        assert f(a=buffer([float(n)]), b=buffer([1.0])).item() == n - 1
        assert f(b=buffer([1.0]), a=buffer([float(n)])).item() == n - 1


def test_the_same_tensor_passed_twice():
    """f(x, x) and f(x, y) are different captures, each right."""
    f = TinyJit(lambda a, b: (a + b).realize())
    x = buffer([1.0])
    assert [f(x, x).item() for _ in range(4)] == [2.0] * 4
    assert [f(x, buffer([5.0])).item() for _ in range(4)] == [6.0] * 4
    assert f(buffer([3.0]), buffer([4.0])).item() == 7.0
    y = buffer([10.0])
    assert f(y, y).item() == 20.0


def test_lazy_arguments_are_computed_before_the_call():
    f = TinyJit(lambda x: x * 2)
    for n in range(4):
        assert f(Tensor([float(n)]) + 1).item() == 2 * n + 2


def test_constant_and_view_arguments():
    """An argument that is a constant, an expanded one, or a view of another tensor."""
    f = TinyJit(lambda x: x + 1)
    base = buffer(np.arange(12).reshape(3, 4))
    for n in range(3):
        assert f(Tensor.full((4,), float(n))).tolist() == [n + 1.0] * 4
        assert f(base[n]).tolist() == (np.arange(12).reshape(3, 4)[n] + 1.0).tolist()
        assert f(Tensor(float(n))).item() == n + 1


def test_zero_size_arrays():
    """Arrays without elements go through plain, captured and replayed calls, alone and beside others."""
    f = TinyJit(lambda x, y: (x + 1, y * 2, x.sum()))
    for n in range(4):
        empty, twice, total = f(Tensor.zeros(0, 3).contiguous(), buffer([float(n)]))
        assert empty.shape == (0, 3)
        assert (twice.item(), total.item()) == (2 * n, 0)
    g = TinyJit(lambda x: x + 1)
    for _ in range(4):
        assert g(Tensor.zeros(0).contiguous()).tolist() == []


# -- symbolic sizes ------------------------------------------------------------------------------------------
def test_results_have_the_symbolic_size_of_their_own_call():
    """Symbolic shape: the returned tensor's size is what the Variable is bound to now, not when captured."""
    f = TinyJit(lambda t: (t + 1).realize())
    for n in range(1, 7):
        result = f(buffer(np.ones(10))[:Variable("i", 1, 10).bind(n)])
        assert result.numpy().shape == (n,)
        assert len(result) == n
        assert result.tolist() == [2.0] * n


def test_symbolic_sizes_given_as_arguments_of_their_own():
    """A bound Variable as argument: sums over a growing part, without another capture."""
    size = Variable("n", 1, 8)
    data = buffer(np.arange(8))
    f = TinyJit(lambda x, n: x[:n].sum())
    for n in (3, 5, 1, 8, 2):
        assert f(data, size.bind(n)).item() == sum(range(n))
    assert len(f.captured) == 1


def test_two_symbolic_sizes_in_one_function():
    a, b = Variable("a", 1, 5), Variable("b", 1, 7)
    x = np.arange(35, dtype=np.float32).reshape(5, 7)
    f = TinyJit(lambda t: (t * 2).sum(0))
    for n, m in ((2, 3), (5, 7), (1, 1), (3, 2), (5, 4)):
        view = buffer(x)[:a.bind(n), :b.bind(m)]
        np.testing.assert_array_equal(f(view).numpy(), (x[:n, :m] * 2).sum(0))


def test_a_variable_bound_to_two_values_in_one_call_is_an_error():
    v = Variable("n", 1, 8)
    f = TinyJit(lambda a, b: a.sum() + b.sum())
    with pytest.raises(JitError, match="argument 1.*n is bound to 3"):
        f(buffer(np.ones(8))[:v.bind(2)], buffer(np.ones(8))[:v.bind(3)])


def test_a_cache_that_grows_by_writes_at_a_symbolic_place():
    """The decoding loop of a language model: write row n, attend over the first n + 1 rows."""
    position = Variable("position", 0, 7)
    cache = Tensor.zeros(8, 4).contiguous().realize()

    @TinyJit
    def step(row, start):
        cache[start:start + 1].assign(row.reshape(1, 4))
        return (cache[:start + 1] * row).sum(1)
    rows = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    for n in range(8):
        scores = step(Tensor(rows[n]), position.bind(n))
        np.testing.assert_allclose(scores.numpy(), rows[:n + 1] @ rows[n], rtol=1e-5)
    np.testing.assert_array_equal(cache.numpy(), rows)


# -- random numbers ------------------------------------------------------------------------------------------
def test_random_numbers_are_drawn_anew_on_replay():
    f = TinyJit(lambda x: x * 0 + Tensor.rand(4))
    drawn = [tuple(f(buffer(np.zeros(4))).tolist()) for _ in range(6)]
    assert len(set(drawn)) == 6
    assert all(0 <= value < 1 for row in drawn for value in row)


def test_replayed_random_numbers_follow_the_seed():
    """The n-th call draws what the n-th plain call would, two draws a call included."""
    def draw(x):
        return x * 0 + Tensor.rand(3), Tensor.randn(2)
    results = []
    for function in (draw, TinyJit(draw)):
        Tensor.manual_seed(7)
        results.append([[t.tolist() for t in function(buffer(np.zeros(3)))] for _ in range(5)])
    assert results[0] == results[1]


def test_dropout_differs_between_replays():
    with Context(TRAINING=1):
        f = TinyJit(lambda x: x.dropout(0.5))
        masks = {tuple(f(buffer(np.ones(64))).tolist()) for _ in range(5)}
    assert len(masks) == 5


# -- errors --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("read", [lambda t: t.item(), lambda t: t.numpy(), lambda t: t.tolist(), bool, float])
def test_reading_a_value_inside_is_an_error(read):
    """A value read while capturing would be the same on every replay."""
    f = TinyJit(lambda x: x * read(x.sum()))
    f(buffer([1.0]))
    with pytest.raises(JitError, match="read"):
        f(buffer([2.0]))


def test_an_exception_inside_leaves_the_function_usable():
    """Raised in the plain or the capturing call; what was written before the exception stays written."""
    state = buffer([0.0])
    fail = [False]

    def add(x):
        state.assign(state + x)
        if fail[0]:
            raise RuntimeError("on purpose")
        return state + 0
    for failing in range(3):
        step = TinyJit(add)
        for n in range(5):
            fail[0] = n == failing
            before = state.item()
            if fail[0] and n < 2:
                with pytest.raises(RuntimeError, match="on purpose"):
                    step(buffer([1.0]))
            else:
                assert step(buffer([1.0])).item() == before + 1
            assert state.item() == before + 1
    assert f"{Tensor([1.0]).item()}" == "1.0"


def test_a_jitted_function_inside_a_captured_one_is_part_of_it():
    """Nesting: the inner function's work is captured with the outer's."""
    inner = TinyJit(lambda x: x * 2)
    outer = TinyJit(lambda x: inner(x) + 1)
    for n in range(5):
        assert inner(buffer([float(n)])).item() == 2 * n
        assert outer(buffer([float(n)])).item() == 2 * n + 1


def test_reset_captures_anew():
    calls = []
    scale = [2]

    @TinyJit
    def f(x):
        calls.append(1)
        return x * scale[0]
    for n in range(4):
        assert f(buffer([float(n)])).item() == 2 * n
    assert len(calls) == 2
    f.reset()
    scale[0] = 3
    for n in range(4):
        assert f(buffer([float(n)])).item() == 3 * n
    assert len(calls) == 4


# -- what a replay costs -------------------------------------------------------------------------------------
def test_a_replay_is_one_submission_however_many_kernels(monkeypatch):
    """One doorbell for a function that computes and realizes in several steps, more than 100 kernels."""
    def f(x):
        for _ in range(51):
            x = (x.softmax() + 1).realize()
        return x
    jitted = TinyJit(f)
    for _ in range(2):
        jitted(buffer(np.arange(8)))
    provider, rung, x = devices.open().io, [], buffer(np.arange(8))
    ring = provider.doorbell
    monkeypatch.setattr(provider, "doorbell", lambda *store: (rung.append(store), ring(*store)))
    GlobalCounters.reset()
    result = jitted(x)
    monkeypatch.undo()
    assert GlobalCounters.submission_count == 1
    assert len(rung) == (devices.canonical() != "CPU")       # the CPU's is a store of its own C
    assert GlobalCounters.kernel_count > 100
    np.testing.assert_array_equal(result.numpy(), f(buffer(np.arange(8))).numpy())


def test_replays_kernel_by_kernel_give_the_same():
    """JIT=2 submits each kernel of a captured function by itself."""
    state = buffer([1.0])

    @TinyJit
    def f(x, n):
        state.assign(state + 1)
        return (x[:n].softmax() + state).realize() * 2
    size = Variable("n", 1, 4)
    for k in range(6):
        with Context(JIT=1 if k < 4 else 2):
            GlobalCounters.reset()
            n = 1 + k % 4
            result = f(buffer(np.zeros(4)), size.bind(n)).numpy()
            np.testing.assert_allclose(result, [2 / n + 2 * k + 4] * n, rtol=1e-6)
            if k > 3:
                assert GlobalCounters.submission_count == GlobalCounters.kernel_count > 1


def test_jit_switched_off_calls_the_function():
    calls = []

    @TinyJit
    def f(x):
        calls.append(1)
        return x + 1
    with Context(JIT=0):
        for n in range(4):
            assert f(buffer([float(n)])).item() == n + 1
    assert len(calls) == 4


# -- plain, captured and replayed values agree ---------------------------------------------------------------
@pytest.mark.parametrize("padding,stride,groups", [(1, 1, 1), (2, 2, 1), (1, 2, 2), (0, 1, 2)])
def test_padded_convolutions_agree_between_plain_captured_and_replayed_calls(padding, stride, groups):
    """Masked loads: the same convolution in all three kinds of calls, optimised and not."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2, 4, 7, 6)).astype(np.float32)
    w = rng.normal(size=(6, 4 // groups, 3, 3)).astype(np.float32)
    results = []
    for plain in (0, 1):
        with Context(NOOPT=plain):
            f = TinyJit(lambda a, b: a.conv2d(b, padding=padding, stride=stride, groups=groups).relu())
            results += [f(Tensor(x), Tensor(w)).numpy() for _ in range(4)]
    for other in results[1:4]:
        np.testing.assert_array_equal(results[0], other)
    np.testing.assert_allclose(results[0], results[4], rtol=1e-4, atol=1e-5)


def test_replays_do_not_collect_memory():
    """Hundreds of replays hold no more memory than ten."""
    f = TinyJit(lambda x: (x @ x).relu())
    x = buffer(np.ones((32, 32)))
    for _ in range(10):
        f(x)
    held = GlobalCounters.mem_used
    for _ in range(300):
        f(x)
    f(x).numpy()
    assert GlobalCounters.mem_used <= held + 64 * 1024


def test_checked_mode_checks_the_indices_of_every_call():
    """Checked mode: a captured function would read its indices while it is captured, and never again."""
    f = TinyJit(lambda table, places: table[places])
    with Context(CHECK=1):
        for _ in range(4):
            assert f(buffer([1, 2, 3]), buffer([2, 0], np.int32)).tolist() == [3, 1]
        with pytest.raises(IndexError, match="the place 5 is outside axis 0 of size 3"):
            f(buffer([1, 2, 3]), buffer([5, 0], np.int32))
