"""Writes in place: who reads what, in which order, in whose memory. All against numpy.

A tensor's value changes by a write; what was computed from it before, also lazily, keeps the value it saw,
and a view shows what its tensor holds now.
"""
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.realize.common import buffer
from tiny import Tensor, TinyJit, dtypes
from tiny.hcq import device as devices
from tiny.hcq.errors import DeviceError
from tiny.realize import GlobalCounters, execute


# -- lazy readers and writes ---------------------------------------------------------------------------------
def test_a_lazy_reader_from_before_a_write_through_a_view_sees_the_old_value():
    """In place: the reader and the written tensor computed together, or one after the other, in either
    order.
    """
    for order in (0, 1, 2):
        x = buffer([1, 2], np.int32)
        reader = x + 10
        x[:1].assign(Tensor([9]))
        if order == 0:
            Tensor.realize(reader, x)
        elif order == 1:
            x.realize()
        assert reader.tolist() == [11, 12]
        assert x.tolist() == [9, 2]


def test_an_augmented_write_to_a_slice_is_made_once():
    """In place: t[:3] *= 10 reads and writes through a view, then Python stores the view back."""
    t = buffer(range(6))
    t[:3] *= 10
    assert t.tolist() == [0, 10, 20, 3, 4, 5]
    t[1] += 1
    t[-2:] -= 100
    assert t.tolist() == [0, 11, 20, 3, -96, -95]


def test_duplicate_indices_in_a_write_by_index_let_the_last_one_win():
    """Indexing: also when the last value is 0."""
    a = buffer([[1, 2], [3, 4]], np.int32)
    a[[0, 0], [0, 0]] = Tensor([2, 0])
    assert a.tolist() == [[0, 2], [3, 4]]
    b, rows, values = np.zeros(5, np.int32), [3, 1, 3, 3, 1, 0], [5, 6, 0, 7, 0, 0]
    t = Tensor(b.copy())
    t[Tensor(rows)] = Tensor(values)
    b[rows] = values
    assert t.tolist() == b.tolist()


def test_more_tensors_than_a_kernel_may_have_arguments(monkeypatch):
    """Limits: a kernel that would read 40 buffers is split where the device allows 8, or 2."""
    device = devices.open("CPU")
    for limit in (8, 3, 2):
        monkeypatch.setattr(device, "target", replace(device.target, max_buffers=limit))
        tensors = [buffer([i + limit / 100]) for i in range(40)]
        assert Tensor.stack(*tensors).sum().item() == pytest.approx(780 + 40 * limit / 100, rel=1e-6)
        total = tensors[0]
        for tensor in tensors[1:]:
            total = total * 0.5 + tensor
        expected = np.float32(limit / 100)
        for i in range(1, 40):
            expected = expected * np.float32(0.5) + np.float32(i + limit / 100)
        assert total.item() == pytest.approx(expected, rel=1e-6)


# -- the value reads what it overwrites ----------------------------------------------------------------------
def test_swapping_two_tensors():
    """Each write needs the other's old value, whichever is made first."""
    a, b = buffer([1, 2, 3]), buffer([4, 5, 6])
    old = a + 0
    a.assign(b)
    b.assign(old)
    Tensor.realize(a, b)
    assert (a.tolist(), b.tolist()) == ([4, 5, 6], [1, 2, 3])
    x, y = buffer([1, 2, 3]), buffer([4, 5, 6])
    old_x, old_y = x * 1, y * 1
    x.assign(old_y * 10)
    y.assign(old_x * 10)
    assert (y.tolist(), x.tolist()) == ([10, 20, 30], [40, 50, 60])


@pytest.mark.parametrize(
    "move", ["shift up", "shift down", "flip", "transpose", "rotate", "sum", "gather", "softmax"])
def test_a_write_whose_value_reads_other_elements_of_the_same_tensor(move):
    """Order: each element of the value sees the whole old tensor."""
    array = np.random.default_rng(0).normal(size=(37, 37)).astype(np.float32)
    x = buffer(array)
    if move == "shift up":
        x[1:].assign(x[:-1])
        array[1:] = array[:-1].copy()
    elif move == "shift down":
        x[:-1].assign(x[1:] * 2)
        array[:-1] = array[1:].copy() * 2
    elif move == "flip":
        x.assign(x.flip(0, 1))
        array = array[::-1, ::-1]
    elif move == "transpose":
        x.assign(x.T + 1)
        array = array.T + 1
    elif move == "rotate":
        x.assign(Tensor.cat(x[3:], x[:3]))
        array = np.concatenate([array[3:], array[:3]])
    elif move == "sum":
        x.assign(x - x.sum(0, keepdim=True))
        array = array - array.sum(0, keepdims=True)
    elif move == "gather":
        rows = np.random.default_rng(1).permutation(37).astype(np.int32)
        x.assign(x[Tensor(rows)])
        array = array[rows]
    else:
        x.assign(x.softmax(1))
        array = np.exp(array - array.max(1, keepdims=True))
        array /= array.sum(1, keepdims=True)
    np.testing.assert_allclose(x.numpy(), array, rtol=1e-4, atol=1e-5)


def test_chained_partial_writes():
    """Many writes to parts of one tensor, each reading what the ones before wrote, computed at once."""
    array = np.arange(20, dtype=np.float32)
    x = Tensor(array.copy())
    for k in range(1, 10):
        x[k:k + 10].assign(x[k - 1:k + 9] + k)
        array[k:k + 10] = array[k - 1:k + 9].copy() + k
        x[::3] *= 0.5
        array[::3] *= 0.5
    assert x.tolist() == array.tolist()


def test_writes_by_index_in_a_loop():
    array = np.zeros((6, 4), np.float32)
    x = Tensor.zeros(6, 4).contiguous()
    for k in range(6):
        x[k] = float(k)
        array[k] = k
        x[k, 1:3] = x[k - 1, :2] + 1 if k else 0
        array[k, 1:3] = array[k - 1, :2] + 1 if k else 0
    np.testing.assert_array_equal(x.numpy(), array)


def test_a_reader_between_two_writes_sees_the_first():
    x = buffer([1.0, 2.0])
    readers = []
    for _ in range(5):
        x.assign(x + 1)
        readers.append(x * 10)
    assert x.tolist() == [6, 7]
    assert [r.tolist() for r in readers] == [[10 * (k + 2), 10 * (k + 3)] for k in range(5)]


def test_a_write_that_only_another_write_reads():
    """Side effects: nothing that was written is dropped though nobody asks for it."""
    a, b, c = buffer([1.0]), buffer([2.0]), buffer([3.0])
    b.assign(a * 5)
    c.assign(b + 1)
    a.assign(c)
    assert a.item() == 6
    assert (b.item(), c.item()) == (5, 6)


# -- whose memory --------------------------------------------------------------------------------------------
def test_tensors_that_share_a_value_do_not_share_writes():
    """Memory: Tensor(t), replace(), contiguous() and to() may share memory until one is written."""
    a = buffer([1.0, 2.0])
    others = [Tensor(a), a.contiguous(), a.detach(), a.clone(), a.to("CPU") + 0, buffer([0, 0]).replace(a)]
    others = [t for t in others if t is not a]
    a += 10
    for other in others:
        assert other.tolist() == [1, 2]
    b = others[-1]
    c = Tensor(b)
    b[:1].assign(Tensor([50.0]))
    assert (a.tolist(), b.tolist(), c.tolist()) == ([11, 12], [50, 2], [1, 2])


def test_tensors_that_share_a_waiting_write_do_not_share_later_ones():
    """Memory: replace() by a tensor whose write was not made yet; then either is computed, one is written."""
    for first in (0, 1, None):
        a, b = buffer([1.0, 2.0]), buffer([3.0, 4.0])
        b.assign(b * 10)
        a.replace(b)
        if first is not None:
            (a, b)[first].realize()
        a[[0, 1]] = a[[1, 0]]
        assert (a.tolist(), b.tolist()) == ([40, 30], [30, 40])


def test_writes_do_not_reach_read_only_memory():
    """Memory: a tensor over an array that must not be written, or over a file's bytes, gets memory of its
    own.
    """
    array = np.arange(4, dtype=np.float32)
    array.flags.writeable = False
    x = Tensor(array, copy=False)
    x += 1
    x[:2] *= 10
    assert x.tolist() == [10, 20, 3, 4]
    assert array.tolist() == [0, 1, 2, 3]


def test_a_value_that_was_computed_once_and_overwritten_is_made_anew():
    """Memory: x + 1 is known to lie in y's memory; once y was written to, it is not looked up there."""
    x = buffer([1.0])
    y, other = x + 1, (x + 1) * 3
    y.realize()
    y.assign(y * 10).realize()
    assert (y.item(), other.item(), (x + 1).item()) == (20, 6, 2)


def test_a_write_by_a_tensor_that_is_gone_is_known_too():
    """Memory: the same where nobody holds the written tensor any more, only a reader of it."""
    x = buffer([1.0])
    y, other = x + 1, (x + 1) * 3
    y.realize()
    y.assign(y * 10)
    reader = y + 0.5
    del y
    assert (reader.item(), other.item(), (x + 1).item()) == (20.5, 6, 2)


def test_writes_that_wait_for_a_write_bring_their_own_readers():
    """Order: computing one tensor makes another's write, whose lazy readers see the value from before."""
    a, b = buffer([1.0]), buffer([2.0])
    reader = a + 100
    a.assign(b * 10)
    b.assign(b + 1)
    b.realize()
    assert (reader.item(), a.item(), b.item()) == (101, 20, 3)


@pytest.mark.cpu_only("other devices copy what the host holds")
def test_an_array_used_in_place_sees_writes():
    """Memory: copy=False shares the array both ways."""
    array = np.arange(64, dtype=np.float32)
    x = Tensor(array, copy=False)
    x += 1
    x.realize()
    x.numpy()
    assert array[0] == 1 and x.numpy(copy=False).ctypes.data == array.ctypes.data


def test_a_write_allocates_nothing_and_runs_one_kernel():
    """Memory: x += 1 writes in place, by one kernel, through a view as well."""
    x = buffer(np.zeros(1 << 16))
    address = x.node.arg.buffer.address
    for part in (np.s_[:], np.s_[100:200], np.s_[::2]):
        GlobalCounters.reset()
        x[part] += 1
        x.realize()
        assert GlobalCounters.kernel_count == 1
        assert x.node.arg.buffer.address == address


def test_a_write_that_failed_is_an_error_for_its_tensor_alone(monkeypatch):
    """Others that compute what waits, as optimisers and captured functions do, go on."""
    def fail(run):
        raise DeviceError("the card is on fire")
    x, other, state = buffer([1, 2]), buffer([3]), buffer([0])
    x += 1
    reader = x + other
    with monkeypatch.context() as broken:
        broken.setattr(execute, "submit", fail)
        with pytest.raises(DeviceError, match="on fire"):
            x.realize()

    @TinyJit
    def count(y):
        state.assign(state + y)
        return (y * 2).realize()
    for _ in range(4):
        assert count(buffer([1])).tolist() == [2]
    other += 5
    assert state.tolist() == [4] and other.tolist() == [8]
    with pytest.raises(RuntimeError, match="overwritten by a computation that failed: the card is on fire"):
        reader.tolist()


# -- views ---------------------------------------------------------------------------------------------------
def test_views_show_what_their_tensor_holds_now():
    x = buffer(np.arange(12).reshape(3, 4))
    row, column, turned, part = x[1], x[:, 2], x.T, x[1:, 1:3]
    x.assign(x * 10)
    part.assign(-1)
    expected = np.arange(12).reshape(3, 4) * 10
    expected[1:, 1:3] = -1
    for view, numbers in ((row, expected[1]), (column, expected[:, 2]), (turned, expected.T), (x, expected)):
        np.testing.assert_array_equal(view.numpy(), numbers)


def test_a_write_through_a_view_of_a_view():
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    x = Tensor(array.copy())
    x[1:3].T[::2].flip(1).assign(Tensor(np.arange(6).reshape(3, 2) + 100.0))
    array[1:3].T[::2][:, ::-1] = np.arange(6).reshape(3, 2) + 100
    np.testing.assert_array_equal(x.numpy(), array)


def test_a_view_keeps_its_value_when_its_tensor_is_gone():
    x = buffer([1.0, 2.0, 3.0])
    view = x[1:]
    x += 10
    del x
    assert view.tolist() == [12, 13]
    view.assign(view + 1)
    assert view.tolist() == [13, 14]


def test_zero_size_writes():
    x = buffer(np.ones((0, 3)))
    x.assign(x + 1)
    assert x.tolist() == []
    y = buffer([1.0, 2.0])
    y[1:1] = 5.0
    y[2:].assign(y[:0])
    assert y.tolist() == [1, 2]


# -- random programs -----------------------------------------------------------------------------------------
SLICES = [np.s_[:], np.s_[0:2], np.s_[1:], np.s_[::2], np.s_[:, 1:3], np.s_[1], np.s_[:, 2], np.s_[::-1],
          np.s_[0:2, ::-1], np.s_[1:1]]


class _Program:
    """Tensors and the same arrays in numpy; every step does the same to both."""

    def __init__(self):
        rng = np.random.default_rng(5)
        self.arrays = [rng.integers(-9, 9, (3, 4)).astype(np.int32) for _ in range(3)]
        self.tensors = [Tensor(array.copy()) for array in self.arrays]
        self.readers: list[tuple[Tensor, np.ndarray]] = []
        self.views: list[tuple[Tensor, np.ndarray]] = []

    def step(self, kind: int, a: int, b: int, cut: int, number: int) -> None:
        index = SLICES[cut]
        x, y = self.tensors[a], self.tensors[b]
        p, q = self.arrays[a], self.arrays[b]
        if kind == 0:
            self.readers.append((x * number + y, p * number + q))
        elif kind == 1:
            x.assign(y + x * number)
            p[...] = q + p * number
        elif kind == 2:
            x[index] = y[index] + number
            p[index] = q[index] + number
        elif kind == 3:
            x[index] += number
            p[index] += number
        elif kind == 4:
            x.assign(y.flip(0) - y.sum(1, keepdim=True).cast(dtypes.int32))
            p[...] = q[::-1] - q.sum(1, keepdims=True)
        elif kind == 5:
            (x if number % 2 else Tensor(0) + y).realize()
        elif kind == 6:
            self.views.append((x[index], p[index]))
        elif kind == 7 and self.views:
            view, array = self.views[number % len(self.views)]
            view.assign(view * 2 + number)
            array[...] = array * 2 + number
        elif kind == 8:
            x[[2, 0, 2]] = y[[0, 1, 1]]
            p[[2, 0, 2]] = q[[0, 1, 1]]
        elif kind == 9 and self.readers:
            reader, array = self.readers[number % len(self.readers)]
            reader.realize()
            self.tensors[a].assign(reader)
            self.arrays[a][...] = array

    def check(self) -> None:
        for tensor, array in [*self.readers, *self.views, *zip(self.tensors, self.arrays, strict=True)]:
            np.testing.assert_array_equal(tensor.numpy(), array)


steps = st.tuples(st.integers(0, 9), st.integers(0, 2), st.integers(0, 2), st.integers(0, len(SLICES) - 1),
                  st.integers(-3, 3))


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, min_size=1, max_size=14))
def test_random_programs_of_reads_writes_and_views(program):
    """Any order of lazy readers, views, writes to both, and computing in between, gives numpy's values."""
    state = _Program()
    for one in program:
        state.step(*one)
    state.check()
