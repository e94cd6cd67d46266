"""Decomposed arithmetic gives, bit for bit, what the table of operations says; compared by the numpy oracle.
"""
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.numpy_alu import HELD, PATTERN, decode, encode, evaluate, leaf, same
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node, const, toposort
from tiny.render.bounds import bounds
from tiny.render.decompose import decompose

SMALL = (dtypes.float16, dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2)
BASIC = frozenset((ops.CONST, ops.ADD, ops.SUB, ops.MUL, ops.FDIV, ops.IDIV, ops.MOD, ops.MAX, ops.MIN,
                   ops.AND, ops.OR,
                   ops.XOR, ops.SHL, ops.SHR, ops.LT, ops.EQ, ops.NE, ops.NEG, ops.TRUNC, ops.SQRT, ops.WHERE,
                   ops.FMA,
                   ops.CAST, ops.BITCAST))
EDGES = {"f": (0.0, -0.0, 1.0, -1.0, 0.5, -0.75, 3.7, 255.0, 256.0, 448.0, 464.0, 465.0, 57344.0, 61440.0,
               65504.0, 65520.0,
               2.0**31, -2.0**31, 2.0**32 + 512, 2.0**63, -2.0**63, 1.5 * 2.0**62, 3e38, np.inf, -np.inf,
               np.nan, 1e-40),
         "i": (0, 1, -1, 2, -2, 7, -7, 31, 32, 63, 64, 100, -100, "min", "max"),
         "u": (0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 100, "max"), "b": (False, True)}


def values_of(dtype, count=2000, seed=0):
    """Random bits and edge cases of a type, in held form: all patterns, where there are few."""
    held = np.dtype(HELD[dtype])
    if held.itemsize == 1 and dtype is not dtypes.bool:
        return np.arange(256, dtype=np.uint8).view(held)
    if dtype is dtypes.bool:
        return np.array([False, True])
    kind = "i" if dtype.kind == "x" else dtype.kind
    edges = [getattr(dtype, v) if isinstance(v, str) else v for v in EDGES[kind]]
    random = np.random.default_rng(seed).integers(0, 1 << 63, count, dtype=np.uint64) * np.uint64(2)
    random = random.view(held)[::8 // held.itemsize] if held.itemsize < 8 else random.view(held)
    with np.errstate(over="ignore"):
        edges = encode(np.array(edges), dtype) if dtype in PATTERN else np.array(edges, held)
    return np.concatenate([edges, random])


def pairs_of(dtype):
    """Every edge with every edge, all pairs of bytes, and random pairs that are often close together."""
    few = values_of(dtype, 100 if np.dtype(HELD[dtype]).itemsize > 1 else 0)[:256]
    x, y = (v.ravel() for v in np.meshgrid(few, few))
    left, right = values_of(dtype, 3000, 1), values_of(dtype, 3000, 2)
    return np.concatenate([x, left, left]), np.concatenate([y, right, left])


def check(node, leaves):
    """The decomposition is basic, decomposing its parts changes nothing, and it computes the same."""
    result = decompose(node)
    parts = [n for n in toposort(result) if n.op in BASIC]
    assert all(decompose(n) is n for n in parts), [n for n in parts if decompose(n) is not n]
    assert result.dtype is node.dtype and result.shape == node.shape
    for part in parts:
        assert part.op is not ops.CAST or part.arg or not part.src[0].dtype.is_float or part.dtype.is_float
        operands = [s.dtype for s in part.src]
        assert part.op in (ops.BITCAST, ops.WHERE, ops.CAST) or not set(operands) & set(SMALL), part
        assert part.op is ops.BITCAST or not set(operands) & set(PATTERN), part
    wanted, got = evaluate(node, leaves), evaluate(result, leaves)
    right = same(wanted, got, node.dtype)
    if not np.all(right):
        at = tuple(np.argwhere(~np.atleast_1d(right))[0])
        inputs = [np.atleast_1d(v)[at] for v in leaves.values()]
        got, wanted = np.atleast_1d(got)[at], np.atleast_1d(wanted)[at]
        raise AssertionError(f"{node!r} of {inputs}: {got!r}, not {wanted!r}")


def check_unary(op, dtype, target=None, values=None):
    x = leaf("x", dtype)
    check(Node(op, target, (x,)), {x: values_of(dtype) if values is None else values})


def check_binary(op, dtype):
    x, y = leaf("x", dtype), leaf("y", dtype)
    left, right = pairs_of(dtype)
    check(Node(op, None, (x, y)), {x: left, y: right})


# -- arithmetic -----------------------------------------------------------------------------------
FLOAT_BINARY = (ops.ADD, ops.SUB, ops.MUL, ops.FDIV, ops.MAX, ops.MIN, ops.LT, ops.EQ, ops.NE)
WHOLE_BINARY = (ops.ADD, ops.SUB, ops.MUL, ops.IDIV, ops.MOD, ops.MAX, ops.MIN, ops.AND, ops.OR, ops.XOR,
                ops.SHL, ops.SHR,
                ops.LT, ops.EQ, ops.NE)


@pytest.mark.parametrize("dtype", dtypes.floats, ids=lambda d: d.name)
@pytest.mark.parametrize("op", FLOAT_BINARY, ids=lambda o: o.name)
def test_float_arithmetic(op, dtype):
    check_binary(op, dtype)


@pytest.mark.parametrize("dtype", (dtypes.bool, *dtypes.ints), ids=lambda d: d.name)
@pytest.mark.parametrize("op", WHOLE_BINARY, ids=lambda o: o.name)
def test_integer_and_bool_arithmetic(op, dtype):
    check_binary(op, dtype)


@pytest.mark.parametrize("dtype", dtypes.floats, ids=lambda d: d.name)
@pytest.mark.parametrize("op", (ops.NEG, ops.TRUNC, ops.SQRT), ids=lambda o: o.name)
def test_float_unary(op, dtype):
    values = np.arange(65536, dtype=np.uint16).view(HELD[dtype]) if dtype.bits == 16 else None
    check_unary(op, dtype, values=values)


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda d: d.name)
def test_choice_keeps_every_bit(dtype):
    c, x, y = leaf("c", dtypes.bool), leaf("x", dtype), leaf("y", dtype)
    left, right = pairs_of(dtype)
    check(Node(ops.WHERE, None, (c, x, y)), {c: np.arange(len(left)) % 3 == 0, x: left, y: right})


@pytest.mark.parametrize("dtype", dtypes.floats, ids=lambda d: d.name)
@pytest.mark.parametrize("constant", (0.0, -0.0, 1.0, np.nan, np.inf))
def test_maximum_with_a_constant_keeps_nan(dtype, constant):
    x = leaf("x", dtype)
    y = decompose(const(constant, dtype))
    for op, operands in itertools.product((ops.MAX, ops.MIN), ((x, y), (y, x))):
        check(Node(op, None, operands), {x: values_of(dtype)})


def test_maximum_with_a_number_is_one_choice():
    result = decompose(Node(ops.MAX, None, (leaf("x", dtypes.float32), const(0.0, dtypes.float32))))
    assert [n.op for n in toposort(result) if n.op in BASIC] == [ops.CONST, ops.CONST, ops.LT, ops.WHERE]


@pytest.mark.parametrize("dtype", dtypes.ints, ids=lambda d: d.name)
@pytest.mark.parametrize("value", (0, 1, 2, 3, 7, 8, 64, -1, -2, -5, 127))
def test_division_and_shift_by_a_constant(dtype, value):
    x = leaf("x", dtype)
    for op in (ops.IDIV, ops.MOD, ops.SHL, ops.SHR):
        check(Node(op, None, (x, const(value, dtype))), {x: values_of(dtype)})


def test_division_of_a_position_needs_no_guard():
    lanes = Node(ops.LANES, dtypes.index, (), 16)
    quotient = decompose(Node(ops.IDIV, None, (lanes, const(3, dtypes.index))))
    assert quotient is Node(ops.IDIV, None, quotient.src, True) and quotient.src[0] is lanes


def test_known_values_of_integer_division():
    """-7 // 2 = -4, 7 // -2 = -4, -7 % 2 = 1, and no quotient through a float: 110 // 55 = 2, 110 % 55 = 0.
    """
    x, y = leaf("x", dtypes.int32), leaf("y", dtypes.int32)
    leaves = {x: [-7, 7, -7, 110, 5], y: [2, -2, -2, 55, 0]}
    assert evaluate(decompose(Node(ops.IDIV, None, (x, y))), leaves).tolist() == [-4, -4, 3, 2, 0]
    assert evaluate(decompose(Node(ops.MOD, None, (x, y))), leaves).tolist() == [1, -1, -1, 0, 0]


def test_lanes_and_scalars_mix():
    x, y = leaf("x", dtypes.bfloat16, lanes=4), leaf("y", dtypes.bfloat16)
    held = encode(np.array([1.0, 2.5, -3.0, np.nan]), dtypes.bfloat16)
    for op in (ops.ADD, ops.MAX, ops.POW):
        node = decompose(Node(op, None, (x, y)))
        assert node.shape == (4,)
    check(Node(ops.ADD, None, (x, y)), {x: held, y: held[1]})


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_bounds_hold(data):
    """What `bounds` claims of random expressions is true of every value."""
    x = leaf("x", data.draw(st.sampled_from((dtypes.uint8, dtypes.int16, dtypes.uint32, dtypes.float32))))
    node, operators = x, (ops.ADD, ops.SUB, ops.MUL, ops.AND, ops.SHR, ops.NEG, ops.CAST, ops.WHERE)
    for op in data.draw(st.lists(st.sampled_from(operators), max_size=5)):
        constant = const(data.draw(st.integers(-40, 300)), node.dtype)
        if op is ops.CAST:
            target = data.draw(st.sampled_from((dtypes.float32, dtypes.int32, dtypes.uint16)))
            node = Node(op, target, (node,))
        elif op is ops.WHERE:
            node = Node(op, None, (Node(ops.LT, None, (node, constant)), node, constant))
        elif op is ops.NEG:
            node = Node(op, None, (node,))
        elif not (node.dtype.is_float and op in (ops.AND, ops.SHR)):
            node = Node(op, None, (node, constant))
    low, high = bounds(node)
    values = np.atleast_1d(evaluate(node, {x: values_of(x.dtype)}))
    if low > -np.inf:
        assert np.all((values >= low) & (values <= high))


# -- conversions ----------------------------------------------------------------------------------
@pytest.mark.parametrize("source", dtypes.all, ids=lambda d: d.name)
def test_conversions_between_all_types(source):
    values = values_of(source, 20000)
    if source.bits == 16:
        values = np.arange(65536, dtype=np.uint16).view(HELD[source])
    for target in dtypes.all:
        check_unary(ops.CAST, source, target, values)


@pytest.mark.parametrize("target", SMALL, ids=lambda d: d.name)
def test_rounding_once_to_small_floats(target):
    """Numbers at, and just beside, the middle between any two neighbours; from float64 that is not two
    roundings.
    """
    patterns = np.arange(1 << target.bits).astype(f"u{target.itemsize}").view(HELD[target])
    numbers = decode(patterns, target).astype(np.float64)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    middle = (numbers[1:] + numbers[:-1]) / 2
    beside = [np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf), middle, numbers]
    check_unary(ops.CAST, dtypes.float64, target, np.concatenate(beside))
    with np.errstate(over="ignore"):
        middle = middle.astype(np.float32)
    beside = [np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-np.inf)), middle]
    check_unary(ops.CAST, dtypes.float32, target, np.concatenate(beside))


@pytest.mark.parametrize("source", (*dtypes.sints[2:], *dtypes.uints[2:]), ids=lambda d: d.name)
def test_rounding_once_from_integers(source):
    """Integers just above a tie of bfloat16, that float32 would round to the tie."""
    shifts = np.arange(source.bits - 10, dtype=np.uint64)
    values = np.concatenate([(np.uint64(mantissa) << shifts) + np.uint64(low)
                             for mantissa in range(256, 512, 3) for low in (0, 1)])
    values = values.astype(HELD[source])
    if source.kind == "i":
        values = np.concatenate([values, -values])
    for target in SMALL:
        check_unary(ops.CAST, source, target, values)


def test_float_to_integer_truncates_and_wraps():
    """One rule for every backend: truncate, wrap modulo the width; NaN and what int64 cannot hold are 0."""
    x = leaf("x", dtypes.float32)
    given_values = {x: [-1, -128, 255, 256, 3.7, np.nan, np.inf, 1e19]}
    node = decompose(Node(ops.CAST, dtypes.uint8, (x,)))
    assert evaluate(node, given_values).tolist() == [255, 128, 255, 0, 3, 0, 0, 0]


def test_float_to_integer_without_guards_where_the_value_fits():
    byte = Node(ops.CAST, dtypes.float32, (leaf("x", dtypes.uint8),))
    node = decompose(Node(ops.CAST, dtypes.int32, (Node(ops.MUL, None, (byte, const(4.0, dtypes.float32))),)))
    assert node.op is ops.CAST and node.arg is True and node.src[0].op is ops.MUL


def test_rounding_to_half_and_back_is_kept():
    x = leaf("x", dtypes.float32)
    for small in SMALL:
        narrow = decompose(Node(ops.CAST, small, (x,)))
        back = decompose(Node(ops.CAST, dtypes.float32, (narrow,)))
        wanted = decode(encode(np.float64(1.0001), small), small) if small in PATTERN else 1.0
        assert evaluate(back, {x: np.float32(1.0001)}) == wanted


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda d: d.name)
def test_bitcasts(dtype):
    for target in dtypes.all:
        if target.bits == dtype.bits:
            check_unary(ops.BITCAST, dtype, target)


@pytest.mark.parametrize("dtype", SMALL, ids=lambda d: d.name)
def test_constants(dtype):
    for value in (0.0, -0.0, 1.0, -2.5, 448.0, 2.0**-9, np.nan, np.inf):
        node = decompose(const(value, dtype))
        assert same(evaluate(node, {}), evaluate(const(value, dtype), {}), dtype).all()


def test_bfloat16_sum_of_a_sum_is_rounded_but_not_packed():
    """Between two operations a bfloat16 is not squeezed into 16 bits and widened again."""
    x = Node(ops.BITCAST, dtypes.bfloat16, (leaf("x", dtypes.uint16),))
    once = decompose(Node(ops.ADD, None, (x, x)))
    twice = decompose(Node(ops.MUL, None, (once, once)))
    widened = [n for n in toposort(twice) if n.op is ops.SHL]
    assert len(widened) == 1
