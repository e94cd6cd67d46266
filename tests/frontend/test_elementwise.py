"""Operators against numpy: every type, broadcasting, reflected and in-place forms, types, corner values."""

import operator

import ml_dtypes
import numpy as np
import pytest

from tests.frontend.common import (
    FLOAT_TYPES,
    INTEGER_TYPES,
    NUMPY_TYPES,
    SPECIAL,
    array,
    buffer,
    compare,
    of_dtype,
)
from tiny.frontend.tensor import Tensor
from tiny.ir.dtype import dtypes, least_upper

ARITHMETIC = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
COMPARISONS = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}


@pytest.mark.parametrize("name", ARITHMETIC)
def test_arithmetic_is_numpys_in_every_type(name):
    pairs = []
    for kind in NUMPY_TYPES[1:]:
        a, b = array((3, 5), kind, 1), array((3, 5), kind, 2)
        pairs.append((getattr(Tensor(a), name)(Tensor(b)), ARITHMETIC[name](a, b)))
    compare(*pairs)


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparison_is_numpys_in_every_type_and_for_nan(name):
    pairs = []
    for kind in NUMPY_TYPES:
        a, b = array((3, 5), kind, 1), array((3, 5), kind, 2)
        pairs.append((getattr(Tensor(a), name)(Tensor(b)), COMPARISONS[name](a, b)))
    special = np.array(SPECIAL, np.float32)
    grid = COMPARISONS[name](special[:, None], special[None])
    pairs.append((getattr(Tensor(special[:, None]), name)(Tensor(special[None])), grid))
    compare(*pairs)


@pytest.mark.parametrize("name", BITS)
def test_bit_operations_are_numpys_in_every_integer_type(name):
    pairs = []
    for kind in (np.bool_, *INTEGER_TYPES):
        a, b = array((7,), kind, 1), array((7,), kind, 2)
        pairs.append((getattr(Tensor(a), name)(Tensor(b)), BITS[name](a, b)))
    compare(*pairs)


def test_not_turns_every_bit_and_for_bool_the_truth():
    pairs = [(~Tensor(array((7,), kind)), ~array((7,), kind)) for kind in (np.bool_, *INTEGER_TYPES)]
    pairs += [
        (Tensor(array((7,), kind)).logical_not(), np.logical_not(array((7,), kind))) for kind in NUMPY_TYPES
    ]
    compare(*pairs)
    with pytest.raises(TypeError, match="float32"):
        ~Tensor([1.0])


def test_shifts_within_and_past_the_width():
    """Past the width a left shift gives 0, a right shift the sign's fill."""
    x = np.array([1, -8, 100, -1], np.int32)
    compare(
        (Tensor(x) << 3, x << 3),
        (Tensor(x) >> 2, x >> 2),
        (Tensor(x) << 31, x << 31),
        (Tensor(x) << 32, np.zeros(4, np.int32)),
        (Tensor(x) >> 40, np.array([0, -1, 0, -1], np.int32)),
    )


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
def test_integer_division_and_remainder_are_exact(kind):
    """They never go through a float: floor and truncation, every sign, large values."""
    values = (
        [110, 55, 7, 2, 3, 1, 100]
        if kind in (np.int8, np.uint8)
        else [110, 2**31 - 1, 55, 7, 2, 3, 2**30 + 1]
    )
    a = np.array(values, kind)
    if np.issubdtype(kind, np.signedinteger):
        a = np.concatenate([a, -a])
    x, y = a[:, None], a[None]
    truncated = (np.abs(x) // np.abs(y) * np.sign(x) * np.sign(y)).astype(kind)
    compare(
        (Tensor(x) // Tensor(y), x // y),
        (Tensor(x) % Tensor(y), x % y),
        (Tensor(x).div(Tensor(y), rounding_mode="floor"), x // y),
        (Tensor(x).div(Tensor(y), rounding_mode="trunc"), truncated),
        (Tensor(x).fmod(Tensor(y)), np.fmod(x, y)),
    )


def test_integer_division_by_zero_gives_zero():
    compare(
        (Tensor([5, -5]) // Tensor([0, 0]), np.zeros(2, np.int32)),
        (Tensor([5, -5]) % Tensor([0, 0]), np.zeros(2, np.int32)),
    )


@pytest.mark.parametrize("kind", FLOAT_TYPES)
def test_float_remainders_have_numpys_values_and_signs(kind):
    values = np.array([5.5, -5.5, 1.0, -1.0, 0.1, -0.1, 1e3, 3.0, -3.0, 0.0, -0.0], kind)
    x, y = values[:, None], values[:-2][None]
    with np.errstate(all="ignore"):
        compare((Tensor(x) % Tensor(y), x % y), (Tensor(x).fmod(Tensor(y)), np.fmod(x, y)), signed_zeros=True)
        compare((Tensor(x) // Tensor(y), x // y))
    assert (Tensor([1.0]) // 0.1).item() == 9.0


def test_float_remainder_of_infinities_and_by_zero():
    x = np.array([np.inf, -np.inf, 1.0, -1.0, 2.0, np.nan], np.float32)
    y = np.array([2.0, 3.0, np.inf, np.inf, 0.0, 1.0], np.float32)
    with np.errstate(all="ignore"):
        compare((Tensor(x) % Tensor(y), x % y), (Tensor(x).fmod(Tensor(y)), np.fmod(x, y)))


def test_true_division_of_integers_is_a_float():
    a, b = np.array([1, 7, -8], np.int32), np.array([2, 2, 3], np.int32)
    compare(
        (Tensor(a) / Tensor(b), (a / b).astype(np.float32)),
        (1 / Tensor(a), (1 / a).astype(np.float32)),
        (Tensor(a) / 2, (a / 2).astype(np.float32)),
    )


def test_reflected_operators_take_the_number_first():
    x = np.array([3, 5, -2], np.int32)
    t = Tensor(x)
    compare(
        (10 - t, 10 - x),
        (10 + t, 10 + x),
        (10 * t, 10 * x),
        (10 // t, 10 // x),
        (10 % t, 10 % x),
        (2 ** Tensor([1, 2, 3]), np.array([2, 4, 8], np.int32)),
        (6 & t, 6 & x),
        (6 | t, 6 | x),
        (6 ^ t, 6 ^ x),
        (1 << Tensor([1, 2, 3]), np.array([2, 4, 8], np.int32)),
        (-8 >> Tensor([1, 2]), np.array([-4, -2], np.int32)),
        (10 / Tensor([4.0]), np.array([2.5], np.float32)),
    )


def test_a_numpy_array_on_the_left_gives_a_tensor():
    result = np.array([1.0, 2.0], np.float32) + Tensor([1.0, 1.0])
    assert isinstance(result, Tensor)
    compare((result, np.array([2.0, 3.0], np.float32)))


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "//", "%", "**"])
def test_in_place_operators_change_the_tensor(symbol):
    in_place = {
        "+": operator.iadd,
        "-": operator.isub,
        "*": operator.imul,
        "/": operator.itruediv,
        "//": operator.ifloordiv,
        "%": operator.imod,
        "**": operator.ipow,
    }[symbol]
    x = np.array([3.0, 5.5, 2.0], np.float32)
    t = buffer(x)
    same = in_place(t, 2)
    assert same is t
    compare((t, in_place(x.copy(), np.float32(2))))


def test_in_place_bit_operators_change_the_tensor():
    for function in (operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift):
        x = np.array([3, 5, 12], np.int32)
        t = buffer(x, np.int32)
        assert function(t, 2) is t
        compare((t, function(x.copy(), np.int32(2))))


def test_in_place_keeps_the_type_and_refuses_a_wider_kind():
    half = buffer([1.5], np.float16)
    half += Tensor([1.0])
    assert half.dtype is dtypes.float16
    count = buffer([1], np.int32)
    with pytest.raises(TypeError, match=r"/=: the result is float32 .* int32; write x = x / y"):
        count /= 2


def test_broadcasting_is_numpys():
    shapes = [
        ((3, 1), (1, 4)),
        ((2, 3, 4), (4,)),
        ((), (2, 2)),
        ((1,), (5,)),
        ((2, 1, 3), (5, 1)),
        ((0, 3), (1, 3)),
    ]
    pairs = []
    for left, right in shapes:
        a, b = array(left, np.float32, 1), array(right, np.float32, 2)
        pairs.append((Tensor(a) * Tensor(b), a * b))
    compare(*pairs)


def test_shapes_that_do_not_broadcast_are_named():
    with pytest.raises(ValueError, match=r"add: shapes \(2, 3\) and \(4,\) .* axis -1 has the sizes 3 and 4"):
        Tensor.zeros(2, 3) + Tensor.zeros(4)


# -- types --------------------------------------------------------------------------------------------------
def test_two_types_meet_in_the_least_that_holds_both():
    assert least_upper(dtypes.uint8, dtypes.int8) is dtypes.int16
    for a in dtypes.all:
        for b in dtypes.all:
            assert (Tensor.zeros(2, dtype=a) + Tensor.zeros(2, dtype=b)).dtype is least_upper(a, b)


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda dtype: dtype.name)
def test_python_numbers_take_the_tensors_type(dtype):
    t = Tensor.zeros(2, dtype=dtype)
    assert (t + 1.5).dtype is (dtype if dtype.is_float else dtypes.float32)
    assert (t * True).dtype is dtype
    assert (t + 1).dtype is (dtypes.int32 if dtype is dtypes.bool else dtype)


def test_python_numbers_too_large_for_the_tensors_type_are_errors():
    for operation in (lambda t: t + 2**40, lambda t: t * -2**40, lambda t: t < 2**40, lambda t: t.eq(2**32)):
        with pytest.raises(OverflowError, match="does not fit into int32"):
            operation(Tensor([1]))
    assert (Tensor([-1]) & 0xFFFFFFFF).tolist() == [-1] and (Tensor([1]).long() + 2**40).item() == 2**40 + 1


def test_division_makes_integers_the_default_float():
    for kind in INTEGER_TYPES:
        assert (Tensor(array((2,), kind)) / Tensor(array((2,), kind))).dtype is dtypes.float32
    assert (Tensor([1.0]).half() / 2).dtype is dtypes.float16


@pytest.mark.parametrize("kind", NUMPY_TYPES)
def test_casts_between_all_types_are_numpys(kind):
    source = array((17,), kind, 3)
    pairs = [
        (Tensor(source).cast(of_dtype(target)), source.astype(target))
        for target in NUMPY_TYPES
        if not (np.issubdtype(kind, np.floating) and np.issubdtype(target, np.unsignedinteger))
    ]
    compare(*pairs)


def test_float_to_integer_truncates_then_wraps_the_same_way_everywhere():
    """What does not fit wraps from int64: numpy's way. NaN and infinities give 0."""
    x = buffer([-1, -128, 255, 256, 3.7])
    compare(
        (x.cast(dtypes.uint8), np.array([255, 128, 255, 0, 3], np.uint8)),
        (buffer([np.nan, np.inf, -np.inf]).cast(dtypes.int32), np.zeros(3, np.int32)),
    )


def test_a_cast_to_half_and_back_rounds_and_overflows():
    """A chain of casts is not folded away: each one rounds."""
    assert buffer([1.0001, 2049.0]).cast("half").cast("float").tolist() == [1.0, 2048.0]
    assert buffer([65536.0]).half().tolist() == [np.inf]
    assert buffer([1.001]).bfloat16().float().tolist() == [1.0]


def test_small_floats_round_to_nearest_even():
    x = np.concatenate(
        [np.linspace(-3, 3, 101), [448, 460, 470, 1e-3, 1e-5, -0.0, 57344, 70000, np.inf, np.nan]]
    )
    x = x.astype(np.float32)
    with np.errstate(all="ignore"):
        for dtype, other in (
            (dtypes.bfloat16, ml_dtypes.bfloat16),
            (dtypes.fp8e4m3, ml_dtypes.float8_e4m3fn),
            (dtypes.fp8e5m2, ml_dtypes.float8_e5m2),
        ):
            expected = x.astype(other).astype(np.float32)
            compare(
                (buffer(x).cast(dtype).float(), expected), (Tensor(x.tolist(), dtype=dtype).float(), expected)
            )


def test_bitcast_keeps_the_bits_and_resizes_the_last_axis():
    x = np.array([[1.5, -2.0], [np.inf, 0.0]], np.float32)
    pairs = [
        (Tensor(x).bitcast("int32"), x.view(np.int32)),
        (Tensor(x).bitcast("uint8"), x.view(np.uint8)),
        (Tensor(x).bitcast("uint64"), x.view(np.uint64)),
        (Tensor(x).bitcast("int16"), x.view(np.int16)),
        (Tensor(x.view(np.uint8)).bitcast("float32"), x),
    ]
    compare(*pairs)
    with pytest.raises(ValueError, match="multiple of 2"):
        Tensor(np.zeros(3, np.float32)).bitcast("float64")


# -- powers and choice --------------------------------------------------------------------------------------
def test_integer_to_an_integer_power_is_an_integer():
    """By multiplication, so that it is exact and wraps; no float bits."""
    compare(
        (Tensor([2, 3]) ** Tensor([3, 2]), np.array([8, 9], np.int32)),
        (Tensor([11]) ** Tensor([7]), np.array([19487171], np.int32)),
        (Tensor([3, -3, 0]) ** 3, np.array([27, -27, 0], np.int32)),
        (Tensor([2, -1, 1, 0]) ** Tensor([-1, -3, -4, 0]), np.array([0, -1, 1, 1], np.int32)),
        (Tensor([3], dtype="uint8") ** Tensor([6], dtype="uint8"), np.array([3**6 % 256], np.uint8)),
    )
    with pytest.raises(ValueError, match="float"):
        Tensor([2]) ** -1


def test_powers_of_floats_have_the_right_corners():
    bases = np.array([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, np.inf, -np.inf, np.nan, 0.5], np.float32)
    with np.errstate(all="ignore"):
        pairs = [
            (buffer(bases) ** exponent, np.power(bases, np.full_like(bases, exponent)))
            for exponent in (0, 1, 2, 3, -1, -2, 0.5, 2.5, -0.5, np.inf)
        ]
        grid = np.array([0.0, 1.0, 3.0, -3.0, 2.0, np.inf, -np.inf, np.nan], np.float32)
        pairs.append((Tensor(bases[:, None]) ** Tensor(grid[None]), np.power(bases[:, None], grid[None])))
        pairs.append((2.0 ** Tensor(grid), np.power(np.float32(2), grid)))
    compare(*pairs, rtol=1e-6)


def test_where_takes_tensors_and_numbers():
    c = np.array([[True], [False]])
    x, y = array((2, 3), np.float32, 1), array((3,), np.float32, 2)
    compare(
        (Tensor(c).where(Tensor(x), Tensor(y)), np.where(c, x, y)),
        (Tensor(c).where(1.0, 0.0), np.where(c, np.float32(1), np.float32(0))),
        (Tensor(c).where(Tensor(x), 2), np.where(c, x, np.float32(2))),
        (Tensor(c).where(1, Tensor(y)), np.where(c, np.float32(1), y)),
        (Tensor(x).masked_fill(Tensor(x) > 0, -np.inf), np.where(x > 0, np.float32(-np.inf), x)),
    )


def test_isclose_and_allclose():
    a = np.array([1.0, 1.0 + 1e-7, 2.0, np.inf, np.inf, np.nan], np.float32)
    b = np.array([1.0, 1.0, 2.1, np.inf, -np.inf, np.nan], np.float32)
    compare(
        (Tensor(a).isclose(Tensor(b)), np.isclose(a, b)),
        (Tensor(a).isclose(Tensor(b), equal_nan=True), np.isclose(a, b, equal_nan=True)),
    )
    assert Tensor(a[:2]).allclose(Tensor(b[:2]))
    assert not Tensor(a).allclose(Tensor(b))


def test_a_tensor_is_not_equal_to_none_or_text_and_can_be_a_key():
    t = Tensor([1.0])
    assert (t == None) is False and (t != "a") is True  # noqa: E711 - what is tested
    assert {t: 1}[t] == 1 and t in [t]
