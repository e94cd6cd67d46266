"""Construction from data of every kind, constructors by description, and reading back."""

import copy
import gzip
import pathlib
import pickle

import ml_dtypes
import numpy as np
import pytest

from tests.frontend.common import NUMPY_TYPES, array, compare
from tiny.frontend.tensor import Tensor
from tiny.ir.dtype import dtypes

in_host_memory = pytest.mark.cpu_only("other devices copy what the host holds")


# -- from data ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", NUMPY_TYPES)
def test_numpy_arrays_come_back_as_they_went_in(kind):
    for shape in ((), (3,), (2, 3, 4), (0, 2)):
        x = array(shape, kind)
        compare((Tensor(x), x))


def test_arrays_of_any_layout_and_byte_order_are_read_by_their_numbers():
    x = array((4, 6), np.float32)
    compare(
        (Tensor(x[::2, ::-1]), x[::2, ::-1]),
        (Tensor(x.T), x.T),
        (Tensor(np.broadcast_to(x[0], (3, 6))), np.broadcast_to(x[0], (3, 6))),
    )
    for kind in (">f4", ">i2", ">u8", ">f8", "<f4"):
        values = np.array([1.0, 2.0, 3.0], dtype=kind)
        assert Tensor(values).tolist() == [1.0, 2.0, 3.0]


def test_a_tensor_does_not_change_with_the_array_it_was_made_of():
    x = np.zeros(3, np.float32)
    t = Tensor(x)
    later = t + 1
    x[:] = 7
    assert t.tolist() == [0.0, 0.0, 0.0] and later.tolist() == [1.0, 1.0, 1.0]
    data = bytearray(b"abc")
    t = Tensor(data)
    data[0] = 0
    assert t.tolist() == [97, 98, 99]


@in_host_memory
def test_an_array_can_be_used_in_place():
    x = np.arange(64, dtype=np.float32)
    t = Tensor(x, copy=False)
    x[0] = 5
    assert t.numpy()[0] == 5.0


def test_a_numpy_result_does_not_change_with_the_tensor():
    t = Tensor([1.0, 2.0]).realize()
    before = t.numpy()
    t += 1
    t.realize()
    assert before.tolist() == [1.0, 2.0] and t.tolist() == [2.0, 3.0]


def test_python_numbers_and_lists_take_the_usual_types():
    assert (Tensor(1).dtype, Tensor(1.0).dtype, Tensor(True).dtype) == (
        dtypes.int32,
        dtypes.float32,
        dtypes.bool,
    )
    assert (Tensor([1, 2]).dtype, Tensor([1, 2.5]).dtype) == (dtypes.int32, dtypes.float32)
    assert (Tensor([True, False]).dtype, Tensor([]).dtype) == (dtypes.bool, dtypes.float32)
    assert Tensor([2**40]).dtype is dtypes.int64 and Tensor([2**40, -1]).tolist() == [2**40, -1]
    assert Tensor([2**64 - 1]).tolist() == [2**64 - 1] and Tensor(2**40).item() == 2**40
    assert Tensor([[1, 2], [3, 4]]).shape == (2, 2) and Tensor(((1,), (2,))).shape == (2, 1)
    assert Tensor([[], []]).shape == (2, 0) and Tensor(None).shape == (0,)


def test_lists_of_tensors_and_numpy_numbers():
    assert Tensor([Tensor([1, 2]), Tensor([3, 4])]).tolist() == [[1, 2], [3, 4]]
    assert Tensor([np.float32(1.5), np.float32(2)]).dtype is dtypes.float32
    assert Tensor(np.int64(3)).dtype is dtypes.int64


def test_what_is_no_number_is_an_error_that_names_it():
    with pytest.raises(ValueError, match="different lengths"):
        Tensor([[1, 2], [3]])
    with pytest.raises(TypeError, match="no list of numbers"):
        Tensor(["a", "b"])
    with pytest.raises(TypeError, match="a dict is no number"):
        Tensor({})
    for data in (2**64, -2**63 - 1, [2**64], [-1, 2**63]):
        with pytest.raises(OverflowError, match="into no"):
            Tensor(data)
    assert Tensor(2**64 - 1).item() == 2**64 - 1 and Tensor(2**70, dtype="float64").item() == 2.0**70
    with pytest.raises(TypeError, match="float31"):
        Tensor([1.0], dtype="float31")


def test_dtypes_in_every_spelling():
    for spelling in (dtypes.float16, "half", "float16", np.float16, np.dtype("float16")):
        assert Tensor([1.0], dtype=spelling).dtype is dtypes.float16
    assert Tensor([1.5], dtype=int).tolist() == [1] and Tensor([1], dtype=float).dtype is dtypes.float32
    assert Tensor(np.array([1.9, -1.9]), dtype=dtypes.int8).tolist() == [1, -1]
    assert Tensor([300], dtype=dtypes.uint8).tolist() == [44]


def test_bytes_are_elements_of_the_type():
    assert Tensor(b"\x01\x02").tolist() == [1, 2]
    assert Tensor(np.array([1.5, 2.5], np.float32).tobytes(), dtype=dtypes.float32).tolist() == [1.5, 2.5]
    with pytest.raises(ValueError, match="3 bytes are no whole number of float32"):
        Tensor(b"abc", dtype=dtypes.float32)


def test_a_file_is_read_where_it_lies(tmp_path: pathlib.Path):
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(4, dtype=np.int32).tobytes())
    assert Tensor(path).shape == (16,) and Tensor(path, dtype=dtypes.int32).tolist() == [0, 1, 2, 3]
    t = Tensor(path)
    t[0] = 9
    t.realize()
    assert path.read_bytes()[0] == 0 and t.tolist()[0] == 9
    (tmp_path / "empty").write_bytes(b"")
    assert Tensor(tmp_path / "empty").shape == (0,)


def test_bfloat16_in_and_out():
    t = Tensor([1.5, -2.0, 1.001], dtype=dtypes.bfloat16)
    assert t.dtype is dtypes.bfloat16 and t.numpy().dtype == np.float32 and t.tolist() == [1.5, -2.0, 1.0]
    source = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    assert Tensor(source).dtype is dtypes.bfloat16 and Tensor(source).tolist() == [1.5, -2.0]


def test_tensors_of_tensors_share_the_value():
    t = Tensor([1, 2])
    assert Tensor(t).tolist() == [1, 2] and Tensor(t, dtype="float").dtype is dtypes.float32


# -- by description -----------------------------------------------------------------------------------------
def test_constants():
    compare(
        (Tensor.zeros(2, 3), np.zeros((2, 3), np.float32)),
        (Tensor.ones((2,)), np.ones(2, np.float32)),
        (Tensor.full((2, 2), 7), np.full((2, 2), 7, np.int32)),
        (Tensor.full((2,), 0.5), np.full(2, 0.5, np.float32)),
        (Tensor.full((), True), np.array(True)),
        (Tensor.zeros(0, 3), np.zeros((0, 3), np.float32)),
        (Tensor.ones(3, dtype=dtypes.int8), np.ones(3, np.int8)),
        (Tensor.zeros(), np.zeros((), np.float32)),
        (Tensor([1, 2]).zeros_like(), np.zeros(2, np.int32)),
        (Tensor([1.0]).ones_like(), np.ones(1, np.float32)),
        (Tensor([1.0]).full_like(3), np.full(1, 3, np.float32)),
    )
    assert Tensor.empty(2, 3).shape == (2, 3) and Tensor([1, 2]).empty_like().dtype is dtypes.int32
    with pytest.raises(ValueError, match="-1 is no size"):
        Tensor.zeros(-1)


@pytest.mark.parametrize(
    "arguments",
    [(5,), (2, 7), (0, 10, 3), (10, 0, -3), (5, 2), (0,), (0, 1, 0.25), (1.0, 2.0, 0.3), (-3, 3, 2), (2.5,)],
)
def test_arange(arguments):
    expected = np.arange(*arguments)
    kind = np.float32 if expected.dtype == np.float64 else np.int32
    compare((Tensor.arange(*arguments), expected.astype(kind)), rtol=1e-6)


def test_arange_beyond_32_bits_and_in_other_types():
    compare(
        (Tensor.arange(2**33, 2**33 + 3), np.arange(2**33, 2**33 + 3)),
        (Tensor.arange(4, dtype=dtypes.float16), np.arange(4, dtype=np.float16)),
    )
    with pytest.raises(ValueError, match="step is 0"):
        Tensor.arange(0, 3, 0)


@pytest.mark.parametrize("arguments", [(0, 1, 5), (-1, 1, 11), (3, -3, 7), (2, 9, 1), (0, 1, 0), (0, 1, 100)])
def test_linspace_ends_exactly(arguments):
    expected = np.linspace(*arguments, dtype=np.float32)
    result = Tensor.linspace(*arguments)
    compare((result, expected), rtol=1e-6, atol=1e-7)
    if arguments[2] > 1:
        assert result.numpy()[-1] == arguments[1] and result.numpy()[0] == arguments[0]


def test_eye():
    compare(
        (Tensor.eye(3), np.eye(3, dtype=np.float32)),
        (Tensor.eye(2, 4), np.eye(2, 4, dtype=np.float32)),
        (Tensor.eye(3, dtype=dtypes.int32), np.eye(3, dtype=np.int32)),
    )


@in_host_memory
def test_memory_of_somebody_else():
    x = np.arange(6, dtype=np.float32)
    t = Tensor.from_blob(x.ctypes.data, (2, 3))
    x[0] = 9
    assert t.tolist() == [[9.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_the_bytes_at_an_address(tmp_path: pathlib.Path):
    path = tmp_path / "data"
    path.write_bytes(gzip.compress(b"abc"))
    assert Tensor.from_url(path.as_uri(), gunzip=True).tolist() == [97, 98, 99]


# -- reading back -------------------------------------------------------------------------------------------
def test_item_of_every_type_and_of_one_element_only():
    for kind in NUMPY_TYPES:
        assert Tensor(np.array([1], kind)).item() == 1
    assert Tensor(np.array([1.5], np.float16)).item() == 1.5 and Tensor([[True]]).item() is True
    assert Tensor(np.array([1.5], np.float16)).data().nbytes == 2
    with pytest.raises(ValueError, match="has 2 elements, not one"):
        Tensor([1, 2]).item()


def test_python_protocols():
    t = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert len(t) == 2 and [row.tolist() for row in t] == [[1.0, 2.0], [3.0, 4.0]]
    assert float(Tensor(1.5)) == 1.5 and int(Tensor([3])) == 3 and bool(Tensor([0.0])) is False
    assert [10, 20, 30][Tensor(1)] == 20 and np.asarray(t).tolist() == t.tolist()
    assert memoryview(t.data()).shape == (2, 2)
    assert (t.numel(), t.element_size(), t.nbytes(), t.size(), t.size(1), t.ndim) == (4, 4, 16, (2, 2), 2, 2)
    assert t.is_floating_point() and "(2, 2) float32" in repr(t)
    with pytest.raises(TypeError, match="not true or false as a whole"):
        bool(t)
    with pytest.raises(TypeError, match="no length"):
        len(Tensor(1))


def test_one_element_is_formatted_as_its_number():
    assert f"{Tensor(1.234):.2f} {Tensor([7]):>3} {Tensor([[True]]):d}" == "1.23   7 1"
    assert f"{Tensor([1.0])}" == repr(Tensor([1.0]))
    with pytest.raises(ValueError, match="has 2 elements"):
        f"{Tensor([1.0, 2.0]):.2f}"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_and_pickles_hold_the_value_and_are_tensors_of_their_own(duplicate):
    for dtype in dtypes.all:
        x = Tensor([0, 1, 1], dtype=dtype)
        assert duplicate(x).dtype is dtype and duplicate(x).tolist() == x.tolist()
    x = Tensor([[1.0, 2.0]], requires_grad=True)
    other = duplicate(x)
    other[0, 0] = 5.0
    assert other.requires_grad and other.tolist() == [[5.0, 2.0]] and x.tolist() == [[1.0, 2.0]]
    lazy = duplicate((x * 2)[:, 1:].T)
    assert lazy.tolist() == [[4.0]]


def test_sequential_passes_through_the_layers():
    assert Tensor([1.0, -1.0]).sequential([Tensor.relu, lambda x: x + 1]).tolist() == [2.0, 1.0]


@pytest.mark.parametrize("make", [lambda: Tensor.zeros(10**30), lambda: Tensor.ones(2**40, 2**40),
                                  lambda: Tensor.arange(10**20), lambda: Tensor.empty(2**62, 2),
                                  lambda: Tensor.ones(3).expand(10**20, 3),
                                  lambda: Tensor.rand(10**10, 10**10)])
def test_more_elements_than_positions_are_refused_where_they_are_asked_for(make):
    with pytest.raises(ValueError, match=r"elements; a tensor has at most 9223372036854775807"):
        make()


def test_weights_of_no_elements():
    """As many dividends of 0 as there are ways to start a weight."""
    for make in (Tensor.scaled_uniform, Tensor.glorot_uniform, Tensor.kaiming_uniform, Tensor.kaiming_normal):
        assert make(0, 2).numpy().shape == (0, 2)
        assert make(2, 0).numpy().shape == (2, 0)
        assert make(0, 0).numpy().shape == (0, 0)
