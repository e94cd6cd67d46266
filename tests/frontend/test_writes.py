"""Writes: through views, in program order with lazy readers, and what they refuse."""

import numpy as np
import pytest

from tests.frontend.common import buffer, compare
from tiny.frontend.tensor import Tensor
from tiny.ir.dtype import dtypes


def test_a_lazy_reader_built_before_a_write_through_a_view_sees_the_old_value():
    """Writes make new versions: a reader keeps what it read, in whatever order things are computed."""
    x = buffer([1, 2], np.int32)
    reader = x + 10
    x[:1].assign(Tensor([9]))
    Tensor.realize(reader, x)
    assert reader.tolist() == [11, 12] and x.tolist() == [9, 2]
    x = buffer([1, 2], np.int32)
    reader = x + 10
    x[:1].assign(Tensor([9]))
    assert x.tolist() == [9, 2] and reader.tolist() == [11, 12]
    x = buffer([1, 2], np.int32)
    reader = x + 10
    x += 5
    x.realize()
    assert reader.tolist() == [11, 12] and x.tolist() == [6, 7]


def test_readers_between_several_writes_each_see_their_version():
    x = buffer([0.0, 0.0])
    readers = []
    for step in range(4):
        readers.append(x * 1)
        x[step % 2] = step + 1.0
    assert x.tolist() == [3.0, 4.0]
    assert [r.tolist() for r in reversed(readers)] == [[3.0, 2.0], [1.0, 2.0], [1.0, 0.0], [0.0, 0.0]]


def test_a_write_to_part_of_a_tensor_happens_once():
    t = buffer(range(6))
    t[:3] *= 10
    assert t.tolist() == [0.0, 10.0, 20.0, 3.0, 4.0, 5.0]


def test_views_follow_their_tensor_and_the_tensor_its_views():
    x = buffer(np.arange(6).reshape(2, 3))
    row, turned, flat = x[1], x.T, x.reshape(6)
    row += 10
    assert flat.tolist() == [0.0, 1.0, 2.0, 13.0, 14.0, 15.0] and turned[0].tolist() == [0.0, 13.0]
    turned[2] = 7
    assert x.tolist() == [[0.0, 1.0, 7.0], [13.0, 14.0, 7.0]] and row.tolist() == [13.0, 14.0, 7.0]
    x.assign(Tensor.zeros(2, 3))
    assert row.tolist() == [0.0, 0.0, 0.0]
    flat[1:4][::2] = Tensor([5.0, 6.0])
    assert x.tolist() == [[0.0, 5.0, 0.0], [6.0, 0.0, 0.0]]
    x.diagonal()[:] = 1
    assert x.tolist() == [[1.0, 5.0, 0.0], [6.0, 1.0, 0.0]]


def test_views_of_lazy_tensors_can_be_written_to():
    t = Tensor([1.0, 2.0]) + 1
    t[0] = 9
    assert t.tolist() == [9.0, 3.0]
    z = Tensor.zeros(3)
    z[1:] = 2
    z[:1] += 1
    assert z.tolist() == [1.0, 2.0, 2.0]
    view = (Tensor([1.0, 2.0]) * 2)[:1]  # nobody else holds the tensor it is a view of
    view += 1
    assert view.tolist() == [3.0]
    view[0] = 7
    assert view.tolist() == [7.0]


def test_a_view_that_outlives_its_tensor_keeps_its_value():
    x = buffer([1.0, 2.0, 3.0])
    view = x[1:]
    del x
    assert view.tolist() == [2.0, 3.0]


def test_copies_do_not_follow():
    x = buffer([1.0, 2.0])
    copies = [
        x.clone(),
        x.pad(
            (
                0,
                0,
            )
        )
        + 0,
        x.repeat(1) * 1,
        x[[0, 1]],
        x.detach().clone(),
    ]
    x += 1
    assert all(c.tolist() == [1.0, 2.0] for c in copies)
    y = copies[0]
    y += 5
    assert x.tolist() == [2.0, 3.0]


def test_two_clones_are_two_tensors():
    x = Tensor([1.0])
    a, b = x.clone(), x.clone()
    a += 1
    assert a.tolist() == [2.0] and b.tolist() == [1.0]
    assert [g.item() for g in (x.clone() + 0).gradient(x)] == [1.0]
    a, b = x.clone(), x.clone()
    assert [g.item() for g in (a + b).gradient(a, b)] == [1.0, 1.0]


def test_equal_constants_are_different_leaves():
    """A gradient by one of two equal parameters is not that of both."""
    a, b = Tensor(3.0), Tensor(3.0)
    assert [g.item() for g in (a + b).gradient(a, b)] == [1.0, 1.0]
    for make in (
        lambda: Tensor.zeros(2),
        lambda: Tensor.ones(2),
        lambda: Tensor.eye(2),
        lambda: Tensor.full((2,), 0.5),
        lambda: Tensor.arange(2.0),
        lambda: Tensor.linspace(0, 1, 2),
    ):
        a, b = make(), make()
        assert [g.sum().item() for g in (a + b).sum().gradient(a, b)] == [a.numel()] * 2


def test_assign_casts_broadcasts_and_returns_the_tensor():
    t = Tensor.zeros(2, 3, dtype=dtypes.int32)
    assert t.assign(Tensor([1.9, 2.0, 3.0])) is t
    compare((t, np.array([[1, 2, 3]] * 2, np.int32)))
    assert t.assign(5).tolist() == [[5] * 3] * 2 and t.assign([[1], [2]]).tolist() == [[1] * 3, [2] * 3]
    assert t.assign(t) is t
    with pytest.raises(ValueError, match=r"assign: a value of shape \(4,\) .* of shape \(2, 3\)"):
        t.assign(Tensor.zeros(4))


def test_an_expanded_view_cannot_be_written_to():
    row = Tensor.zeros(1, 3)
    with pytest.raises(ValueError, match=r"expanded view.*\.clone"):
        row.expand(2, 3).assign(1)


def test_a_value_that_reads_what_it_overwrites():
    x = buffer([1.0, 2.0, 3.0, 4.0])
    x[1:] = x[:-1]
    assert x.tolist() == [1.0, 1.0, 2.0, 3.0]
    x.assign(x.flip(0) + x)
    assert x.tolist() == [4.0, 3.0, 3.0, 4.0]
    x[:2], x[2:] = x[2:] + 0, x[:2] + 0
    assert x.tolist() == [3.0, 4.0, 4.0, 3.0]


def test_many_small_writes_add_up():
    x = Tensor.zeros(8).realize()
    for k in range(8):
        x[k] = k
        if k % 3 == 0:
            x.realize()
    assert x.tolist() == list(range(8))


def test_replace_takes_the_others_value():
    a, b = Tensor([1.0]), Tensor([2.0])
    assert a.replace(b) is a and a.tolist() == [2.0]
    with pytest.raises(ValueError, match="replace: .* does not fit"):
        a.replace(Tensor([1, 2]))


def test_gradients_go_through_writes():
    x, v = Tensor([1.0, 2.0, 3.0]), Tensor([5.0])
    y = x * 2
    y[1:2] = v * 3
    loss = (y * y).sum()
    gx, gv = loss.gradient(x, v)
    assert gx.tolist() == [8.0, 0.0, 24.0] and gv.tolist() == [90.0]
