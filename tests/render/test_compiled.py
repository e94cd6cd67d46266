"""What the compiler makes of decomposed arithmetic is bit for bit what the numpy oracle computes.

A compiler that contracts, reassociates or flushes would show here, and so would a dialect that spells an
operation wrong.
"""
import numpy as np
import pytest

from tests.numpy_alu import HELD, PATTERN, evaluate, leaf, same
from tests.render.test_decompose import FLOAT_BINARY, WHOLE_BINARY, pairs_of, values_of
from tests.render.test_functions import FUNCTIONS, sweep
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node
from tiny.realize import buffer_from_host, read, realize
from tiny.render.decompose import decompose


def run(row, target, dtype, *arrays):
    """The operation on arrays in held form, as the default device computes it."""
    buffers = tuple(buffer_from_host(np.ascontiguousarray(a), dtype, a.shape, "CPU") for a in arrays)
    result, = realize([Node(row, target, buffers)])
    return np.frombuffer(read(result), HELD[result.dtype])


def check(row, target, dtype, *arrays):
    """Device and oracle agree; the oracle evaluates what decompose makes, so that FMA is fused in both."""
    leaves = {leaf(f"x{i}", dtype): a for i, a in enumerate(arrays)}
    wanted = evaluate(decompose(Node(row, target, tuple(leaves))), leaves)
    got = run(row, target, dtype, *arrays)
    equal = same(got, wanted, Node(row, target, tuple(leaves)).dtype)
    at = int(np.argmin(equal))
    assert equal.all(), f"{row.name} of {[a[at] for a in arrays]}: {got[at]!r}, not {wanted[at]!r}"


@pytest.mark.parametrize("row", FUNCTIONS, ids=lambda row: row.name)
def test_functions(row):
    check(row, None, dtypes.float32, sweep(dtypes.float32, 20))


def test_power():
    check(ops.POW, None, dtypes.float32, *pairs_of(dtypes.float32))


@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda d: d.name)
def test_binary_operations(dtype):
    for row in FLOAT_BINARY if dtype.is_float else WHOLE_BINARY:
        check(row, None, dtype, *pairs_of(dtype))


@pytest.mark.parametrize("source", dtypes.all, ids=lambda d: d.name)
def test_conversions(source):
    values = values_of(source, 500)
    for target in dtypes.all:
        check(ops.CAST, target, source, values)


def test_every_small_float_is_read_and_written_as_it_is():
    for dtype in PATTERN:
        values = np.arange(1 << dtype.bits).astype(HELD[dtype])
        for wide in (dtypes.float32, dtypes.float64):
            number = run(ops.CAST, wide, dtype, values)
            assert same(run(ops.CAST, dtype, wide, number), values, dtype).all()
