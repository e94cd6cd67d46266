"""What each DEBUG level adds on standard error, and the counters behind it."""
import re

import numpy as np
import pytest

from tiny import Context, GlobalCounters, Tensor
from tiny.hcq import device as devices
from tiny.realize import report


def shown(capsys, level: int, function) -> str:
    """What computing function(tensor) prints, as in a process that has not used the device before."""
    x = Tensor(np.ones((8, 16), np.float32)).realize()
    report._seen_devices.clear()
    report._seen_kernels.clear()
    capsys.readouterr()
    with Context(DEBUG=level):
        function(x).realize()
    output = capsys.readouterr()
    assert output.out == ""
    return output.err


# what a level shows that the one below does not
MARKS = {1: r"plan: \d+ kernels, arena \d+ bytes, results: output 0", 2: r"us +[\d.]+ GFLOP/s +[\d.]+ GB/s",
         3: r"kernel 0, reduce_8_r16_float32: output 0 <- input 0\n  a0 < 8, over a1 < 16\n  p0\[a0\] = ",
         4: r"void reduce_8_r16_float32\(const u64 \*restrict args", 5: r"%0 = BUFFER\(@0\) : float32",
         6: r"%\d+ = LOAD\(POINTER\(1\)", 7: r"packet Execute\(.*\n"}


@pytest.mark.skipif(devices.canonical() != "CPU", reason="the marks are those of the CPU")
@pytest.mark.parametrize("level", range(8))
def test_each_level_shows_what_it_should_and_no_more(capsys, level):
    # every level computes a graph of its own, since a plan is shown when it is made
    text = shown(capsys, level, lambda x: (x * (level + 1.5)).sum(1) + level)
    for mark_level, mark in MARKS.items():
        assert bool(re.search(mark, text)) == (mark_level <= level), (mark_level, text)
    assert ("device CPU: " in text) == (level >= 1)


def test_machine_code_is_that_of_the_kernel(capsys):
    text = shown(capsys, 7, lambda x: x * 7.25)
    assert re.search(r"machine code of map_128_float32", text)


def test_plans_and_kernels_are_shown_once_and_runs_each_time(capsys):
    shown(capsys, 3, lambda x: x * 3.25)
    x = Tensor(np.ones((8, 16), np.float32)).realize()
    with Context(DEBUG=3):
        (x * 3.25).realize()
    assert capsys.readouterr().err.count("\n") == 1


def test_counters_count_kernels_submissions_operations_and_bytes():
    """A product of matrices does 2 m n k operations and moves each matrix once."""
    a, b = (Tensor(np.ones(shape, np.float32)).realize() for shape in ((16, 32), (32, 8)))
    GlobalCounters.reset()
    (a @ b).realize()
    assert (GlobalCounters.kernel_count, GlobalCounters.submission_count) == (1, 1)
    assert GlobalCounters.time_sum_s == 0
    with Context(DEBUG=2):
        GlobalCounters.reset()
        (a @ b).realize()
    assert GlobalCounters.global_ops == 2 * 16 * 32 * 8
    assert GlobalCounters.global_mem == 4 * (16 * 32 + 32 * 8 + 16 * 8)
    assert GlobalCounters.time_sum_s > 0
