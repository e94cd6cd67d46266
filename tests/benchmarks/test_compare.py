"""The comparison with other frameworks: every one has rows of the table, and wrong arguments are told."""
import sys

import pytest

from tests.benchmarks import compare
from tests.benchmarks.peers import data, numpy_rows, tensor_rows


def test_rows_are_those_of_the_table():
    assert set(tensor_rows.ROWS) == set(data.BY_NAME)
    assert set(numpy_rows.ROWS) < set(data.BY_NAME)


@pytest.mark.parametrize("arguments,message", [
    (["--peers", "torch,nothing"], "--peers: nothing is none of torch, compiled"),
    (["--rows", "nothing"], "--rows: no row's name contains 'nothing'; the rows are matmul f32 512"),
    (["--seconds", "0"], "--seconds: 0 is no time to measure in"),
    (["--seconds", "nan"], "--seconds: nan is no time to measure in"),
    (["--python", "/no/such/program"], "--python: /no/such/program is no program"),
])
def test_arguments_that_make_no_sense_are_refused(monkeypatch, capsys, arguments, message):
    monkeypatch.setattr(sys, "argv", ["compare", *arguments])
    with pytest.raises(SystemExit) as ended:
        compare.arguments()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
