"""What is fused into one kernel, what lies where, and in which order kernels run."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schedule.common import held, plan_of
from tests.schedule.drawing import graphs, reductions
from tests.schedule.running import compare, leaf, planned
from tiny import GlobalCounters, Tensor, Variable, dtypes, nn
from tiny.ir import ops
from tiny.ir.integer import bounds
from tiny.ir.node import Node, toposort
from tiny.realize.prepare import plain_schedule
from tiny.schedule.memory import Lifetime, assign_offsets
from tiny.schedule.steps import ARENA, INPUT, OUTPUT, Plan


def kernels(*tensors: Tensor) -> int:
    return len(plan_of(*tensors).steps)


# -- how much goes into one kernel ---------------------------------------------------------------------------
def x(*shape):
    return held(*(shape or (32, 64)))


FUSED = {
    "elementwise chain": (lambda: (x() * 2 + x()).relu().exp() - x().abs(), 1),
    "views between elementwise work": (lambda: (x().T.reshape(16, 128)[2:9].flip(1).T + 1) * 3, 1),
    "padding and slicing": (lambda: x().pad(((1, 1), (2, 2)))[2:, 3:] + 1, 1),
    "broadcasting": (lambda: x(32, 1) * x(64) + x(1, 64), 1),
    "sum and what follows": (lambda: (x() * 2).sum(1).sqrt() + 1, 1),
    "mean of everything": (lambda: x().mean(), 1),
    "product, bias, activation": (lambda: (x() @ x(64, 10) + x(10)).relu(), 1),
    "product, a function that uses it twice": (lambda: (x() @ x(64, 10)).silu(), 1),
    "product of a transposed part": (lambda: x()[:, 3:40] @ x(20, 37).T, 1),
    "einsum": (lambda: Tensor.einsum("ij,kj->ik", x(), x()), 1),
    "convolution, bias, activation": (lambda: x(2, 3, 8, 8).conv2d(x(4, 3, 3, 3), x(4)).relu(), 1),
    "pooling": (lambda: x(2, 3, 8, 8).max_pool2d(2), 1),
    "gather": (lambda: x(100, 8)[held(5, dtype=dtypes.int32)] * 2, 1),
    "one hot": (lambda: held(5, dtype=dtypes.int32).one_hot(10), 1),
    "running sum": (lambda: x().cumsum(1), 1),
    "softmax": (lambda: x().softmax(), 3),
    "log-sum-exp": (lambda: x().logsumexp(1), 2),
    "layer norm": (lambda: x().layernorm(), 3),
    "root-mean-square norm": (lambda: x() * (x().square().mean(-1, keepdim=True) + 1e-5).rsqrt(), 2),
    "variance": (lambda: x().var(1), 2),
    "attention": (lambda: x(2, 4, 16, 8).scaled_dot_product_attention(x(2, 4, 16, 8), x(2, 4, 16, 8)), 5),
    "cross entropy": (lambda: x().cross_entropy(held(32, dtype=dtypes.int32)), 5),
    "quantised product": (lambda: x(1, 64) @ (held(8, 64, dtype=dtypes.uint8).float() * 0.1).T, 1),
}


@pytest.mark.parametrize("name", FUSED)
def test_typical_graphs_take_few_kernels(name):
    graph, most = FUSED[name]
    assert kernels(graph()) <= most


def test_a_view_is_read_where_it_lies():
    """No kernel only moves data, whatever views stand between two that compute."""
    first = x().exp().sum(1, keepdim=True).expand(32, 64) + x()
    for view in (lambda t: t.T, lambda t: t.reshape(64, 32), lambda t: t[3:, ::2], lambda t: t.flip(0),
                 lambda t: t.reshape(32, 8, 8).permute(2, 0, 1)[1:].reshape(7, 256)):
        plan = plan_of(view(first.contiguous()).square().sum(0))
        assert len(plan.steps) == 3


def test_a_view_of_a_result_is_not_copied_out():
    """A scatter, a running sum or held data is made in the memory of the result that is a view of it."""
    index = held(50, dtype=dtypes.int32).reshape(50, 1).expand(50, 16)
    for graph, most in ((x(20, 16).scatter_reduce(0, index, x(50, 16), "sum").reshape(320), 2),
                        (x().cumsum(0).reshape(2, 1024), 1), (x().exp().contiguous().reshape(2048), 1)):
        plan = plan_of(graph)
        assert len(plan.steps) <= most
        assert plan.steps[-1].places[0].kind == OUTPUT


def test_work_that_is_cheap_is_repeated_and_work_that_is_dear_is_kept():
    """Two readers each compute a small expression themselves; a sum, or a long one, is computed once."""
    small = x() * 2
    assert kernels(small + 1, small.T - 1) == 2
    total = x().sum(1)
    assert kernels(total + 1, (total - 1).exp()) == 3
    long = x()
    for _ in range(12):
        long = (long * 1.5).sin()
    assert kernels(long + 1, long.T - 1) == 3


def test_a_training_step_of_a_small_network():
    """Two layers: forward, loss, backward and update, as one submission of at most twenty kernels."""
    first, second = nn.Linear(64, 32), nn.Linear(32, 10)
    parameters = [first.weight, first.bias, second.weight, second.bias]
    optimiser = nn.optim.SGD(parameters, lr=0.1)
    images = Tensor(np.random.default_rng(0).normal(size=(16, 64)).astype(np.float32)).realize()
    labels = Tensor((np.arange(16) % 10).astype(np.int32)).realize()
    for _ in range(3):
        GlobalCounters.reset()
        optimiser.zero_grad()
        loss = second(first(images).relu()).sparse_categorical_crossentropy(labels)
        loss.backward()
        optimiser.step()
        loss.realize()
    assert (GlobalCounters.submission_count, GlobalCounters.kernel_count) <= (1, 20)


# -- limits --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("limit", [3, 7, 30])
def test_no_kernel_has_more_arguments_than_the_device_allows(limit):
    """Forty tensors added, chosen from, and put side by side; `limit` counts what a kernel reads."""
    def tensors():
        return [held(4) for _ in range(40)]
    total = tensors()[0]
    for tensor in tensors():
        total = total * 0.5 + tensor
    balanced = tensors()
    while len(balanced) > 1:
        balanced = [a * b for a, b in zip(balanced[::2], balanced[1::2], strict=False)] + \
            ([balanced[-1]] if len(balanced) % 2 else [])
    for graph in (total, balanced[0], Tensor.stack(*tensors()).sum(), Tensor.cat(*tensors())):
        for step in plan_of(graph, max_inputs=limit).steps:
            assert len(step.places) <= limit + 1


def test_deep_graphs_need_no_recursion():
    """Three thousand operations on end: elementwise, with views between them, with sums, as writes."""
    plain = Tensor(np.ones(8, np.float32))
    viewed = Tensor(np.ones((2, 4), np.float32))
    summed = Tensor(np.ones(4, np.float32))
    written = Tensor(np.ones(4, np.float32)).realize()
    for n in range(3000):
        plain = plain * 0.5 + 1
        viewed = viewed.T.reshape(2, 4) + 1
        if n < 300:
            summed = summed / summed.sum() + 1
            written += 1
    assert plain.tolist() == [2] * 8
    assert viewed.tolist() == [[3001] * 4] * 2
    np.testing.assert_allclose(summed.numpy(), [1.25] * 4)
    assert written.tolist() == [301] * 4


# -- memory --------------------------------------------------------------------------------------------------
lifetimes = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 12), st.integers(0, 6)).map(
    lambda one: Lifetime(one[0], one[1], one[1] + one[2])), max_size=30)


@settings(max_examples=300)
@given(lifetimes, st.sampled_from((1, 64, 256)), st.booleans())
def test_buffers_alive_at_the_same_time_never_overlap(spans, align, many):
    """In the arena: aligned, inside it, and apart from all that live at any of the same steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tiny.schedule.memory.FEW", 0 if many else len(spans))
        offsets, size = assign_offsets(spans, align)
    for number, (one, offset) in enumerate(zip(spans, offsets, strict=True)):
        assert offset % align == 0 and offset + one.size <= size
        for other, place in zip(spans[:number], offsets[:number], strict=True):
            if one.first <= other.last and other.first <= one.last:
                assert offset + one.size <= place or place + other.size <= offset
    if spans:                                               # no larger than all of them side by side
        assert size <= sum(-(-one.size // align) * align for one in spans)


def test_the_arena_is_as_large_as_what_is_alive_at_once():
    spans = [Lifetime(100, 0, 1), Lifetime(200, 1, 2), Lifetime(100, 2, 3), Lifetime(50, 3, 3)]
    assert assign_offsets(spans, 1) == ([200, 0, 200, 0], 300)
    assert assign_offsets([], 256) == ([], 0)
    with pytest.raises(ValueError, match="lifetime 0 ends at step 1, before it starts at step 2"):
        assign_offsets([Lifetime(8, 2, 1)])


def test_the_arena_of_a_long_chain_is_that_of_a_short_one():
    """Three buffers are alive at a time, however many there are."""
    def chain(length: int) -> list[Lifetime]:
        return [Lifetime(1024 * (1 + number % 2), number, number + 2) for number in range(length)]
    sizes = [assign_offsets(chain(length))[1] for length in (10, 200, 300, 5000)]
    assert sizes == [sizes[0]] * 4


def _sizes(plan: Plan) -> list[list[tuple]]:
    """For each step (place, bytes it reaches) of every argument, the destination first; 1 where only the
    device knows.
    """
    found = []
    for step in plan.steps:
        reach: dict[int, int] = {}
        if step.kernel.gate is None:
            reach[0] = (bounds(step.kernel.index)[1] + 1) * step.kernel.dtype.itemsize
        parts = [p for p in (step.kernel.value, step.kernel.gate, step.kernel.index) if isinstance(p, Node)]
        for node in toposort(*parts):
            if node.op is ops.LOAD and len(node.src) == 2:
                pointer = node.src[0]
                size = (bounds(node.src[1])[1] + 1) * pointer.dtype.itemsize
                reach[pointer.arg] = max(reach.get(pointer.arg, 0), size)
        found.append([(place, reach.get(number, 1)) for number, place in enumerate(step.places)])
    return found


@settings(max_examples=80)
@given(st.lists(st.one_of(graphs(), reductions()), min_size=1, max_size=3))
def test_nothing_in_the_arena_is_overwritten_while_it_is_needed(roots):
    """Whatever lies in the arena was written before, and not overwritten since, by the kernel that reads it.
    """
    plan, _ = planned(*dict.fromkeys(roots))
    holds: list[tuple[int, int, int]] = []                  # (start, end, step that wrote it)
    for number, arguments in enumerate(_sizes(plan)):
        for place, size in arguments[1:]:
            if place.kind == ARENA:
                writers = {w for start, end, w in holds if start < place.number + size and place.number < end}
                assert len(writers) == 1, "read from memory that several kernels, or none, wrote last"
        place, size = arguments[0]
        if place.kind == ARENA:
            assert place.number + size <= plan.arena_size
            for other, _ in arguments[1:]:
                assert other.kind != ARENA or other != place
            start, end = place.number, place.number + size
            again = [h for h in holds if h[0] == start]     # a copy and the updates made in it
            if again and plan.steps[number].kernel.sequential is not None:
                continue
            holds = [(a, b, w) for a, b, w in holds if b <= start or end <= a] + [(start, end, number)]


def test_a_symbolic_size_takes_room_for_its_largest_value():
    rows = Variable("n", 1, 100).bind(3)
    plan = plan_of(held(100, 8)[:rows].softmax().sum(0))
    assert plan.arena_size >= 100 * 4


# -- order of writes -----------------------------------------------------------------------------------------
def test_readers_come_before_the_write_they_must_not_see():
    a, b = held(16), held(16)
    reader = a.flip(0) * 2
    a.assign(b)
    plan = plan_of(a, reader)
    written = next(number for number, step in enumerate(plan.steps) if step.places[0].kind == INPUT)
    assert written == len(plan.steps) - 1


def test_two_writes_that_need_each_other_are_kept_apart():
    """A swap: one of the two values goes through memory of its own, the other is written in place."""
    a, b = (Tensor._wrap(leaf(np.arange(16) + first, dtypes.float32)) for first in (1, 100))
    old = a + 0
    a.assign(b)
    b.assign(old)
    assert any(step.places[0].kind == INPUT for step in plan_of(a, b).steps)
    compare([a.node, b.node], lambda kernel: (kernel, plain_schedule(kernel)))


def test_the_same_structure_is_the_same_kernel():
    """Graphs that differ only in their leaves give kernels that are the same object, so nothing is compiled
    twice.
    """
    def graph():
        return (held(16, 8) @ held(8, 4)).relu() * Tensor(2.0)
    one, two = (plan_of(graph()).steps[0].kernel for _ in range(2))
    assert one is two
