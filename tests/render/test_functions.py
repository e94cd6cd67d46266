"""How far the decomposed functions are from the true value, over all magnitudes, and their special values.

Errors are in units of the last place of the true value, with FMA rounding once and twice. float32 is compared
with float64, float64 with the longer `numpy.longdouble`.
"""
import math

import numpy as np
import pytest

from tests.numpy_alu import HELD, evaluate, leaf
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node, const, toposort
from tiny.render.decompose import decompose

INF, NAN = math.inf, math.nan
F32, F64 = dtypes.float32, dtypes.float64
LONG = np.longdouble
# function: (true value, largest error allowed in float32, in float64)
FUNCTIONS = {
    ops.EXP: (np.exp, 1.05, 1.1), ops.EXP2: (np.exp2, 1.1, 1.2), ops.EXPM1: (np.expm1, 1.1, 1.2),
    ops.LOG: (np.log, 1.1, 1.0), ops.LOG2: (np.log2, 1.2, 1.2), ops.LOG1P: (np.log1p, 1.0, 1.0),
    ops.SIN: (np.sin, 0.95, 0.95), ops.COS: (np.cos, 0.95, 0.95), ops.TAN: (np.tan, 1.6, 1.6),
    ops.ATAN: (np.arctan, 1.9, 1.9), ops.ERF: (None, 1.3, 2.0),
}


def erf(x):
    """The error function by its series of positive terms, which loses nothing."""
    if x.dtype == np.float64:
        return np.vectorize(math.erf, otypes=[np.float64])(x)
    size = np.minimum(np.abs(x), 7)
    term = total = size
    for n in range(1, 180):
        term = term * 2 * size * size / (2 * n + 1)
        total = total + term
    root_pi = np.sqrt(LONG(np.pi) + LONG(1.2246467991473532e-16))
    return np.copysign(2 / root_pi * np.exp(-size * size) * total, x)


def errors(got, true, dtype):
    """In units of the last place; 0 where both are NaN or the same infinity or rounding overflows alike, else
    inf.
    """
    held = HELD[dtype]
    nearest = true.astype(held)
    spacing = np.spacing(np.minimum(np.abs(nearest), np.finfo(held).max)).astype(true.dtype)
    finite = np.isfinite(got) & np.isfinite(nearest)
    distance = np.abs(got.astype(true.dtype) - true) / spacing
    alike = (np.isnan(got) & np.isnan(nearest)) | (got == nearest)
    signs = (got == 0) & (nearest == 0) & (np.signbit(got) != np.signbit(nearest))
    return np.where(signs, INF, np.where(alike & ~finite, 0, np.where(finite, distance, INF)))


def sweep(dtype, count):
    """Every exponent with `count` mantissas, and what functions are mostly given: -120 ... 120, and around 1.
    """
    held = HELD[dtype]
    random = np.random.default_rng(7)
    mantissa_bits = np.finfo(held).nmant
    exponents = np.arange(1 << (dtype.bits - mantissa_bits), dtype=np.uint64) << np.uint64(mantissa_bits)
    mantissas = random.integers(0, 1 << mantissa_bits, count, dtype=np.uint64)
    patterns = (exponents[:, None] | mantissas).ravel().astype(f"u{dtype.itemsize}")
    usual = [random.uniform(-120, 120, 40 * count), random.normal(size=40 * count),
             1 + random.normal(size=40 * count) * 10.0**random.uniform(-8, 0, 40 * count)]
    special = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, np.finfo(held).max, np.finfo(held).tiny, 1e6, 1e8,
               30000.0, 3e38]
    return np.concatenate([patterns.view(held), *(v.astype(held) for v in (*usual, np.array(special)))])


@pytest.mark.parametrize("dtype", (F32, F64), ids=lambda d: d.name)
@pytest.mark.parametrize("op", FUNCTIONS, ids=lambda o: o.name)
def test_error_over_all_magnitudes(op, dtype):
    true, *limits = FUNCTIONS[op]
    x = leaf("x", dtype)
    node = decompose(Node(op, None, (x,)))
    values = sweep(dtype, 400 if dtype is F32 else 8)
    with np.errstate(all="ignore"):
        wanted = (true or erf)(values.astype(np.float64 if dtype is F32 else LONG))
        for fused in (True, False):
            found = errors(evaluate(node, {x: values}, fused), wanted, dtype)
            worst = np.argmax(found)
            limit = limits[dtype is F64]
            assert found[worst] <= limit, f"{found[worst]} at {values[worst]!r}, fused {fused}"


@pytest.mark.parametrize("dtype", (F32, F64), ids=lambda d: d.name)
def test_error_of_power(dtype):
    """Bases near 1 with large exponents are the hard ones; negative bases with whole exponents too."""
    random = np.random.default_rng(5)
    n, most = 20000, 128 if dtype is F32 else 1024
    bases = [np.exp(random.normal(size=n) * 10), np.exp(random.normal(size=n) * 0.1),
             np.exp(random.uniform(-1, 1, n)),
             -np.exp(random.normal(size=n) * 0.2)]
    exponents = [random.normal(size=n) * 8, random.normal(size=n) * 300, random.uniform(-most, most, n),
                 np.rint(random.normal(size=n) * 100)]
    bases, exponents = (np.concatenate(v).astype(HELD[dtype]) for v in (bases, exponents))
    x, y = leaf("x", dtype), leaf("y", dtype)
    node = decompose(Node(ops.POW, None, (x, y)))
    wider = np.float64 if dtype is F32 else LONG
    with np.errstate(all="ignore"):
        wanted = np.power(bases.astype(wider), exponents.astype(wider))
        for fused in (True, False):
            assert errors(evaluate(node, {x: bases, y: exponents}, fused), wanted, dtype).max() <= 1.3


@pytest.mark.parametrize("dtype", (F32, F64), ids=lambda d: d.name)
def test_power_follows_c_for_special_values(dtype):
    special = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 2.0, 3.0, -2.0, -3.0, 0.5, -0.5, 1e30, -1e30,
               2.0**23 + 1, 1e-40]
    held = np.array(special, HELD[dtype])
    bases, exponents = (v.ravel() for v in np.meshgrid(held, held))
    x, y = leaf("x", dtype), leaf("y", dtype)
    with np.errstate(all="ignore"):
        wanted = np.power(bases, exponents)                 # the C library's
    got = evaluate(decompose(Node(ops.POW, None, (x, y))), {x: bases, y: exponents})
    assert_alike(got, wanted)
    for exponent in special:
        node = decompose(Node(ops.POW, None, (x, const(exponent, dtype))))
        with np.errstate(all="ignore"):
            wanted = np.power(held, np.full(held.shape, exponent, held.dtype))
        assert_alike(evaluate(node, {x: held}), wanted)


def assert_alike(got, wanted):
    """Nearly equal, NaN in the same places, signs of zeros and infinities the same."""
    got, numbers = np.broadcast_to(got, wanted.shape), ~np.isnan(wanted)
    assert np.array_equal(np.isnan(got), ~numbers)
    assert np.all(np.isclose(got, wanted, rtol=1e-6, atol=0)[numbers])
    assert np.array_equal(np.signbit(got)[numbers], np.signbit(wanted)[numbers])


@pytest.mark.parametrize("op, argument, wanted", [
    (ops.COS, 1e6, 0.936752), (ops.TAN, 1e8, -2.563779), (ops.COS, 30000.0, -0.596430),
    (ops.SIN, 3e38, -0.998077),
    (ops.SIN, INF, NAN), (ops.LOG, 0.0, -INF), (ops.LOG, -1.0, NAN), (ops.LOG, INF, INF),
    (ops.LOG1P, -1.0, -INF),
    (ops.EXP, -INF, 0.0), (ops.EXP, INF, INF), (ops.EXPM1, -INF, -1.0), (ops.ATAN, INF, 1.570796),
    (ops.ERF, -INF, -1.0)])
def test_large_angles_keep_their_phase_and_edges_are_exact(op, argument, wanted):
    x = leaf("x", F32)
    true = np.float32(argument)
    if op is ops.SIN and math.isfinite(argument):
        wanted = math.sin(float(true))
    assert evaluate(decompose(Node(op, None, (x,))), {x: true}) == pytest.approx(wanted, abs=1e-6,
                                                                                 nan_ok=True)


def test_angles_close_to_a_multiple_of_a_right_angle():
    """The hardest arguments of range reduction: sin or cos is almost 0, nearly all leading digits cancel."""
    turns = np.arange(1, 200000, dtype=np.float64)
    for dtype, wider in ((F32, np.float64), (F64, LONG)):
        near = (turns * (math.pi / 2) * 1.0).astype(HELD[dtype])
        extremes = {F32: 16367173 * 2.0**72, F64: 6381956970095103 * 2.0**797}[dtype]
        near = np.append(near, HELD[dtype](extremes))
        x = leaf("x", dtype)
        for op, true in ((ops.SIN, np.sin), (ops.COS, np.cos), (ops.TAN, np.tan)):
            got = evaluate(decompose(Node(op, None, (x,))), {x: near})
            assert errors(got, true(near.astype(wider)), dtype).max() < (2e3 if dtype is F64 else 1.6)


def test_cheap_reduction_where_the_angle_is_known_to_be_small():
    bits, two_pi = leaf("bits", dtypes.uint32), const(2 * math.pi, F32)
    top = Node(ops.SHR, None, (bits, const(8, dtypes.uint32)))
    uniform = Node(ops.MUL, None, (Node(ops.CAST, F32, (top,)), const(2.0**-24, F32)))
    node = decompose(Node(ops.COS, None, (Node(ops.MUL, None, (uniform, two_pi)),)))
    assert not any(n.dtype is dtypes.uint64 for n in toposort(node))
    values = np.random.default_rng(3).integers(0, 1 << 32, 100000, dtype=np.uint32)
    angle = evaluate(Node(ops.MUL, None, (uniform, two_pi)), {bits: values})
    for fused in (True, False):
        assert errors(evaluate(node, {bits: values}, fused), np.cos(angle.astype(np.float64)),
                      F32).max() < 0.95


def test_cheap_reduction_up_to_its_end():
    number = leaf("n", dtypes.int32)
    kept = Node(ops.AND, None, (number, const((1 << 23) - 1, dtypes.int32)))
    for dtype, wider in ((F32, np.float64), (F64, LONG)):
        angle = Node(ops.MUL, None, (Node(ops.CAST, dtype, (kept,)), const(1500 / 2**23, dtype)))
        values = np.random.default_rng(4).integers(0, 1 << 23, 100000)
        given = evaluate(angle, {number: values}).astype(wider)
        for op, true in ((ops.SIN, np.sin), (ops.COS, np.cos), (ops.TAN, np.tan)):
            node = decompose(Node(op, None, (angle,)))
            assert len(toposort(node)) < 120
            for fused in (True, False):
                assert errors(evaluate(node, {number: values}, fused), true(given), dtype).max() < 1.75


@pytest.mark.parametrize("dtype", (dtypes.float16, dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2),
                         ids=lambda d: d.name)
def test_functions_of_small_floats_round_the_float32_result(dtype):
    x, wide = leaf("x", dtype), leaf("wide", F32)
    patterns = np.arange(1 << dtype.bits).astype(f"u{dtype.itemsize}").view(HELD[dtype])
    number = evaluate(decompose(Node(ops.CAST, F32, (x,))), {x: patterns})
    for op in FUNCTIONS:
        got = evaluate(decompose(Node(op, None, (x,))), {x: patterns})
        result = evaluate(decompose(Node(op, None, (wide,))), {wide: number})
        wanted = evaluate(decompose(Node(ops.CAST, dtype, (wide,))), {wide: result})
        bits = f"u{dtype.itemsize}"
        assert np.array_equal(got.view(bits), wanted.view(bits)) or np.all(np.isnan(got) == np.isnan(wanted))


def test_random_bits_are_those_of_the_published_vectors():
    """Random123's known answers for Threefry 2x32 with 20 rounds."""
    counter, key = leaf("counter", dtypes.uint64), leaf("key", dtypes.uint64)
    node = decompose(Node(ops.THREEFRY, None, (counter, key)))
    counters = np.array([0, 2**64 - 1, 0x85A308D3_243F6A88], np.uint64)
    keys = np.array([0, 2**64 - 1, 0x03707344_13198A2E], np.uint64)
    wanted = [0x99BA4EFE_6B200159, 0xBB002BE7_1CB996FC, 0x483DF7A0_C4923A9C]
    assert evaluate(node, {counter: counters, key: keys}).tolist() == wanted
