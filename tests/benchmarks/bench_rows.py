"""Every row of the comparison for tiny alone; `tests.benchmarks.compare` sets it beside its peers."""
import pytest

from tests.benchmarks.peers import data, tensor_rows
from tests.benchmarks.report import report


@pytest.mark.parametrize("name", tensor_rows.ROWS)
def test_row(benchmark, name):
    step = tensor_rows.ROWS[name](data.inputs(name))
    for _ in range(3):
        step()
    benchmark(step)
    report(name, 1e3 * benchmark.stats.stats.median, "ms")
