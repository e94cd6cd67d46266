"""Positions beyond 2 ** 31: elements are found in arrays that large, and lanes stay narrow where they may.

Large arrays cost nothing here: they are expanded from small ones, made of positions, or files with holes.
"""
import re

import numpy as np
import pytest

from tests.schedule.common import held, plan_of, prepared
from tiny import Context, Tensor, Variable, dtypes

HUGE = 2 ** 31


@pytest.fixture(params=[0, 1], ids=["scheduled", "plain"])
def plain(request):
    """With the schedules that are chosen, and with loops as they come."""
    with Context(NOOPT=request.param):
        yield


def test_views_of_an_expanded_array(plain):
    """A quotient, or remainder, of a position above 2 ** 31 decides which element is read."""
    x = Tensor(np.arange(7, dtype=np.float32)).realize()
    rows = x.reshape(7, 1).expand(7, HUGE).reshape(7 * HUGE)
    assert rows[HUGE - 2:HUGE + 2].tolist() == [0, 0, 1, 1]
    assert rows[5 * HUGE - 20:5 * HUGE + 20].tolist() == [4] * 20 + [5] * 20
    columns = x.reshape(1, 7).expand(HUGE, 7).reshape(7 * HUGE)
    start = 3 * HUGE + 11
    assert columns[start:start + 40].tolist() == [(start + k) % 7 for k in range(40)]
    assert columns[start:start + 40].flip(0).tolist() == [(start + k) % 7 for k in range(39, -1, -1)]


def test_positions_as_values(plain):
    for dtype in (dtypes.int64, dtypes.uint64, dtypes.float64):
        numbers = Tensor.arange(HUGE * 8, dtype=dtypes.int64)[HUGE * 3 - 17:HUGE * 3 + 17].cast(dtype)
        assert numbers.tolist() == list(range(HUGE * 3 - 17, HUGE * 3 + 17))
    wrapped = Tensor.arange(HUGE * 8, dtype=dtypes.int64)[HUGE * 2 - 3:HUGE * 2 + 3].cast(dtypes.int32)
    assert wrapped.tolist() == [-3, -2, -1, 0, 1, 2]


def test_taking_elements_by_index(plain):
    """Places that only the device knows, 64 bits wide."""
    places = np.array([0, HUGE - 1, HUGE, 2 * HUGE + 5, 5 * HUGE - 1, 5 * HUGE, -1], np.int64)
    x = Tensor(np.arange(5, dtype=np.int32)).realize().reshape(5, 1).expand(5, HUGE).reshape(5 * HUGE)
    assert x[Tensor(places[:5])].tolist() == [0, 0, 1, 2, 4]
    assert x[Tensor(places[5:])].tolist() == [0, 4]       # outside gives 0; -1 is the last


def test_rows_of_a_large_file_by_narrow_indices(plain, tmp_path):
    """A row's number fits in 32 bits, its place in memory does not."""
    path, width = tmp_path / "table", 50_000
    with open(path, "wb") as file:
        file.truncate(60_000 * width)
        for row in (59_999, 45_001, 3):
            file.seek(row * width)
            file.write(bytes(range(row % 100, row % 100 + 64)))
    table = Tensor(path).reshape(60_000, width)
    rows = table[Tensor(np.array([3, 45_001, 59_999, 7], np.int32))][:, :64]
    np.testing.assert_array_equal(rows.numpy(), [np.arange(k, k + 64) for k in (3, 1, 99)] + [np.zeros(64)])


def test_a_sum_over_windows_far_out(plain):
    x = Tensor(np.arange(3, dtype=np.float32)).realize().reshape(1, 3).expand(HUGE, 3).reshape(3 * HUGE)
    start = 2 * HUGE + 1
    assert x[start:start + 12].reshape(4, 3).sum(1).tolist() == [3] * 4
    padded = x[start:start + 6].pad(((2, 3),))
    assert padded.tolist() == [0, 0, *((start + k) % 3 for k in range(6)), 0, 0, 0]


def test_sums_of_more_ones_than_a_float_can_count(plain):
    """Over one axis and over two with another between them, without memory for the ones."""
    ones = Tensor(np.ones(1, np.float32)).realize()
    assert ones.expand(2 ** 24 + 2).sum().item() == 2 ** 24 + 2
    total = ones.reshape(1, 1, 1).expand(4099, 2, 4099).sum((0, 2))
    assert total.tolist() == [float(np.float32(4099 * 4099))] * 2


def test_a_symbolic_size_above_the_limit(plain):
    n = Variable("n", 1, 4 * HUGE)
    x = Tensor(np.arange(4, dtype=np.float32)).realize().reshape(4, 1).expand(4, HUGE).reshape(4 * HUGE)
    for start in (HUGE + 3, 3 * HUGE - 1):
        place = n.bind(start)
        assert x[place:place + 3].tolist() == [(start + k) // HUGE for k in range(3)]


def test_memory_above_4_gigabytes(plain, tmp_path):
    """A mapped file with holes, whose few written bytes lie past 2 ** 31 and 2 ** 32."""
    path, marks = tmp_path / "large", {7: 1, HUGE + 5: 2, 2 * HUGE - 1: 3, 2 * HUGE: 4, 2 * HUGE + 77: 5}
    with open(path, "wb") as file:
        file.truncate(2 * HUGE + 4096)
        for place, value in marks.items():
            file.seek(place)
            file.write(bytes([value]))
    x = Tensor(path)
    for place, value in marks.items():
        assert x[place - 7:place + 9].tolist()[7] == value
    assert x[2 * HUGE - 64:2 * HUGE + 128].sum().item() == 12
    assert x[Tensor(np.array(list(marks), np.int64))].tolist() == list(marks.values())
    x[2 * HUGE - 2:2 * HUGE + 1] = Tensor(np.array([8, 9, 10], np.uint8))
    assert x[2 * HUGE - 3:2 * HUGE + 2].tolist() == [0, 8, 9, 10, 0]


def test_lanes_of_positions_are_as_wide_as_they_must_be():
    """32-bit lanes where bounds allow; half as many 64-bit ones would do else."""
    for size, wanted in ((1000, "i32"), (HUGE * 4, "i64")):
        numbers = Tensor.arange(size, dtype=dtypes.int64)[size - 64:]
        graph = (numbers % 7).cast(dtypes.float32) + held(64)
        source, = (one.source.text for one in prepared(plan_of(graph)))
        widths = set(re.findall(r"typedef (i32|i64) i\d+x\d+ ", source))
        assert wanted in widths, source
    index = plan_of(held(64)[Tensor.arange(64) // 3])
    source, = (one.source.text for one in prepared(index))
    assert "i64x" not in source
