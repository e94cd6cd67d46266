"""Reading and writing by index against numpy; gather, scatter and masks; what happens outside."""

import numpy as np
import pytest

from tests.frontend.common import NUMPY_TYPES, array, buffer, compare
from tiny.config import Context
from tiny.frontend.tensor import Tensor
from tiny.ir.dtype import dtypes

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
BASIC = [
    0,
    -1,
    (1, 2),
    (1, -1, 3),
    slice(1, None),
    slice(None, None, 2),
    slice(None, None, -1),
    (slice(0, 0),),
    (slice(None), slice(3, 0, -2)),
    (slice(None), slice(None), slice(-2, None)),
    (Ellipsis, 1),
    (0, Ellipsis, 2),
    None,
    (None, 1, None),
    (slice(None), None, 2),
    (Ellipsis, None),
    (slice(5, 9), 1),
    (slice(2, 1), slice(None)),
    (slice(None, None, 3), slice(1, 4, 2), slice(4, None, -3)),
    (np.int64(1), slice(0, 2)),
    Ellipsis,
    (),
]
ADVANCED = [
    [0, 2],
    [-1, 0, 1],
    ([0, 1], [1, 2]),
    (slice(None), [3, 0]),
    (slice(None), [[0, 1], [2, -1]]),
    ([[0], [2]], [1, 3]),
    (slice(None), [0, 1], [2, 4]),
    ([0, 1], slice(None), [2, 4]),
    (Ellipsis, [0, 0, 4]),
    (slice(1, None), [1, 2], slice(None, None, 2)),
    (None, [1], slice(None)),
    ([], slice(None)),
    np.array([[0, 1], [1, 2]]),
    (np.array([1]), slice(None), np.array([0])),
    (range(2),),
    (slice(None), slice(None, None, -1), [1, 3]),
]
MASKS = [
    X > 20,
    (X[:, :, 0] > 20),
    (slice(None), np.array([True, False, True, True])),
    np.zeros((3, 4, 5), bool),
    (np.array([True, False, True]), [0, 1]),
    (Ellipsis, X[0, 0] > 2),
]


@pytest.mark.parametrize("index", [*BASIC, *ADVANCED, *MASKS], ids=str)
def test_reading_is_numpys(index):
    compare((Tensor(X)[index], X[index]))


@pytest.mark.parametrize("index", [*BASIC, *ADVANCED, *MASKS], ids=str)
def test_writing_is_numpys(index):
    places = X[index].shape
    values = np.arange(np.prod(places, dtype=int), dtype=np.float32).reshape(places) + 100
    pairs = []
    for value in (7, values, np.float32(3)):
        expected = X.copy()
        expected[index] = value
        t = Tensor(X)
        t[index] = value
        pairs.append((t, expected))
    compare(*pairs)


def test_indices_may_be_tensors_of_any_integer_type():
    for kind in NUMPY_TYPES[1:9]:
        places = np.array([2, 0], kind)
        compare((Tensor(X)[Tensor(places)], X[[2, 0]]), (Tensor(X)[:, Tensor(places)], X[:, [2, 0]]))
    compare((Tensor(X)[Tensor(1)], X[1]), (Tensor(X)[Tensor([[1, -1]])], X[[[1, -1]]]))
    mask = Tensor(X) > 20
    compare((Tensor(X)[mask], X[X > 20]))


def test_integers_are_applied_before_tensors_as_torch_does():
    """numpy would put the taken axis in front: (2, 4)."""
    assert Tensor(X)[0, :, [0, 1]].shape == (4, 2)


def test_indices_broadcast_a_value_and_cast_it():
    t = Tensor(np.zeros((2, 3), np.int32))
    t[:, [0, 2]] = np.array([1.9, 5.0])
    compare((t, np.array([[1, 0, 5], [1, 0, 5]], np.int32)))
    with pytest.raises(ValueError, match=r"a value of shape \(4,\) does not go"):
        t[0] = np.zeros(4)


def test_the_last_of_two_writes_to_a_place_stays():
    """Also where it writes a zero: the order is that of the index, not of the values."""
    a = buffer([[1, 2], [3, 4]], np.int32)
    a[[0, 0], [0, 0]] = Tensor([2, 0])
    assert a.tolist() == [[0, 2], [3, 4]]
    b = Tensor.zeros(4, dtype=dtypes.int32)
    b[[1, 1, 1, 3, 3]] = Tensor([1, 2, 3, 5, 4])
    assert b.tolist() == [0, 3, 0, 4]


def test_indexed_in_place_operators():
    t, x = buffer(range(6)), np.arange(6, dtype=np.float32)
    t[:3] *= 10
    x[:3] *= 10
    t[::-2] += 1
    x[::-2] += 1
    t[[0, 2]] -= 5
    x[[0, 2]] -= 5
    t[t > 10] = 0
    x[x > 10] = 0
    compare((t, x))


def test_an_index_outside_is_an_error_where_python_knows_it():
    t = Tensor(X)
    for index in (3, -4, (0, 4), [0, 3], (slice(None), [-5]), np.array([9])):
        with pytest.raises(IndexError, match="is outside axis"):
            t[index]
    with pytest.raises(IndexError, match="4 axes are indexed"):
        t[0, 0, 0, 0]
    with pytest.raises(IndexError, match="only integers and bool"):
        t[[0.5]]
    for index in ("a", 1.0, (0, 2.5), {}):
        with pytest.raises(IndexError, match="integers, slices, .* can index"):
            t[index]
    with pytest.raises(IndexError, match="more than one"):
        t[..., ...]
    with pytest.raises(IndexError):
        t[np.zeros((2, 4), bool)] = 1


def test_an_index_outside_reads_zero_and_writes_nothing_where_only_the_device_knows_it():
    """One rule for every way of indexing; checked mode reports it instead."""
    compare(
        (Tensor([1, 2, 3])[Tensor([4, 1, -4])], np.array([0, 2, 0], np.int32)),
        (Tensor([1, 2, 3]).gather(0, Tensor([-1, 2, 3])), np.array([0, 3, 0], np.int32)),
        (Tensor(X)[Tensor([0, 7]), Tensor([9, 1])], np.zeros((2, 5), np.float32)),
        (Tensor(X).take(Tensor([100, 3])), np.array([0, 3], np.float32)),
    )
    t = Tensor([1, 2, 3])
    t[Tensor([5, 0])] = Tensor([9, 8])
    assert t.tolist() == [8, 2, 3]
    assert Tensor([1, 2]).scatter(0, Tensor([2, -1]), Tensor([7, 7])).tolist() == [1, 2]


def test_checked_mode_reports_an_index_outside_with_operation_index_and_size():
    with Context(CHECK=1):
        with pytest.raises(IndexError, match=r"index: the place 4 is outside axis 0 of size 3"):
            Tensor([1, 2, 3])[Tensor([1, 4])]
        with pytest.raises(IndexError, match=r"gather, scatter: the place -1 is outside axis 0 of size 3"):
            Tensor([1, 2, 3]).gather(0, Tensor([-1]))
        t = Tensor([1, 2, 3])
        with pytest.raises(IndexError, match="place 3"):
            t[Tensor([3])] = 1
        assert Tensor([1, 2, 3])[Tensor([-3, 2])].tolist() == [1, 3]


# -- gather and scatter -------------------------------------------------------------------------------------
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_gather_takes_along_an_axis(dim):
    places = np.random.default_rng(0).integers(0, X.shape[dim], (2, 3, 4))
    places = np.minimum(places, X.shape[dim] - 1)
    shrunk = X[tuple(slice(None) if k == dim % 3 else slice(size) for k, size in enumerate(places.shape))]
    compare((Tensor(X).gather(dim, Tensor(places)), np.take_along_axis(shrunk, places, dim)))


def test_gather_needs_an_index_of_as_many_axes():
    with pytest.raises(IndexError, match=r"shape \(2,\) for axis 0 of a tensor of shape \(3, 4, 5\)"):
        Tensor(X).gather(0, Tensor([0, 1]))


def scattered(base, dim, index, source, reduce) -> np.ndarray:
    """scatter as a loop."""
    result = base.copy()
    for place in np.ndindex(index.shape):
        target = tuple(index[place] if k == dim else p for k, p in enumerate(place))
        old, new = result[target], source[place]
        result[target] = {
            None: new,
            "add": old + new,
            "multiply": old * new,
            "sum": old + new,
            "prod": old * new,
            "amax": max(old, new),
            "amin": min(old, new),
        }[reduce]
    return result


@pytest.mark.parametrize("reduce", [None, "add", "multiply"])
def test_scatter_writes_along_an_axis(reduce):
    base, source = array((3, 4), np.float32, 1), array((3, 5), np.float32, 2)
    pairs = []
    for dim, index in ((0, [[0, 1, 2, 0], [2, 2, 0, 1]]), (1, [[0, 0, 3], [1, 1, 1]])):
        index = np.array(index)
        pairs.append(
            (
                Tensor(base).scatter(dim, Tensor(index), Tensor(source), reduce),
                scattered(base, dim, index, source, reduce),
            )
        )
        pairs.append(
            (
                Tensor(base).scatter(dim, Tensor(index), 2.0, reduce),
                scattered(base, dim, index, np.full_like(source, 2), reduce),
            )
        )
    compare(*pairs, rtol=1e-6)


@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce_combines_what_meets(reduce, include_self):
    base, source, index = (
        np.array([1, 2, 3], np.float32),
        np.array([5, -6, 7, 8], np.float32),
        np.array([0, 1, 0, 0]),
    )
    expected = base.copy()
    for place in (0, 1):
        items = ([base[place]] if include_self else []) + [
            s for s, k in zip(source, index, strict=True) if k == place
        ]
        expected[place] = {"sum": sum, "prod": np.prod, "amax": max, "amin": min, "mean": np.mean}[reduce](
            items
        )
    compare((Tensor(base).scatter_reduce(0, Tensor(index), Tensor(source), reduce, include_self), expected))
    compare(
        (Tensor(base).scatter_add(0, Tensor(index), Tensor(source)), scattered(base, 0, index, source, "sum"))
    )


def test_scatter_refuses_what_it_does_not_know():
    t, index = Tensor([1.0, 2.0]), Tensor([0])
    with pytest.raises(ValueError, match="reduce='max'"):
        t.scatter(0, index, Tensor([1.0]), reduce="max")
    with pytest.raises(ValueError, match="reduce='max'"):
        t.scatter_reduce(0, index, Tensor([1.0]), "max")
    with pytest.raises(ValueError, match="must be at least as large"):
        t.scatter(0, Tensor([0, 1]), Tensor([1.0]))


def test_index_select_take_and_one_hot():
    compare(
        (Tensor(X).index_select(1, Tensor([3, 0])), X[:, [3, 0]]),
        (Tensor(X).take(Tensor([[0, 59]])), X.take([[0, 59]])),
        (Tensor([1, 0, 3]).one_hot(4), np.eye(4, dtype=np.int32)[[1, 0, 3]]),
        (Tensor([[1], [2]]).one_hot(), np.eye(3, dtype=np.int32)[[[1], [2]]]),
        (Tensor([-1, 5]).one_hot(3), np.zeros((2, 3), np.int32)),
    )
    with pytest.raises(TypeError, match="classes are integers"):
        Tensor([1.0]).one_hot(2)


def test_masks_select_and_locate():
    mask = X % 7 == 0
    compare(
        (Tensor(X).masked_select(Tensor(mask)), X[mask]),
        (Tensor(mask).nonzero(), np.argwhere(mask).astype(np.int32)),
        (Tensor(X).masked_select(Tensor(mask), size=4), X[mask][:4]),
        (Tensor(X).masked_select(Tensor(mask), size=12), np.pad(X[mask], (0, 3))),
        (Tensor(mask).nonzero(size=11), np.pad(np.argwhere(mask), ((0, 2), (0, 0))).astype(np.int32)),
        (Tensor(mask).nonzero(size=2), np.argwhere(mask)[:2].astype(np.int32)),
        (
            Tensor([0.0, 2.0]).masked_select(Tensor([[True, False], [True, True]])),
            np.array([0, 0, 2], np.float32),
        ),
        (Tensor([0.0, -0.0]).nonzero(), np.zeros((0, 1), np.int32)),
    )


def test_every_type_can_be_taken_and_written():
    pairs = []
    for kind in NUMPY_TYPES:
        x = array((4, 3), kind)
        t, expected = Tensor(x), x.copy()
        t[[3, 0], 1:] = x[:2, 1:]
        expected[[3, 0], 1:] = x[:2, 1:]
        pairs += [(t, expected), (Tensor(x)[[1, 1]], x[[1, 1]])]
    compare(*pairs)
