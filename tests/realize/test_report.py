"""What each DEBUG level adds on standard error, and the counters behind it."""
import io
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tiny import Context, GlobalCounters, Tensor
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
         6: r"%\d+ = LOAD\(POINTER\(1\)", 7: r"packet compute 0x0 Execute\(.*kernel=reduce_8_r16_float32\n"}


@pytest.mark.cpu_only("the marks are those of the CPU: its C, its packets")
@pytest.mark.parametrize("level", range(8))
def test_each_level_shows_what_it_should_and_no_more(capsys, level):
    # every level computes a graph of its own, since a plan is shown when it is made
    text = shown(capsys, level, lambda x: (x * (level + 1.5)).sum(1) + level)
    for mark_level, mark in MARKS.items():
        assert bool(re.search(mark, text)) == (mark_level <= level), (mark_level, text)
    assert ("device CPU: " in text) == (level >= 1)


def test_machine_code_is_that_of_the_kernel(capsys):
    text = shown(capsys, 7, lambda x: x * 7.25)
    code = text.partition("machine code of map_128_float32:\n")[2].partition("\npacket ")[0]
    assert "mul" in code and "ret" in code, text


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


PROGRAM = "from tiny import Tensor; (Tensor([[1.0, 2], [3, 4]]).sum(1) + 0.5).tolist()"
AMD_MARKS = {1: "device AMD: gfx", 2: "GB/s", 3: "kernel 0, reduce_2_r2_float32: ", 4: "amdgpu_kernel",
             5: " = BUFFER(@0) ", 6: "= LOAD(POINTER(1)", 7: "global_store"}


@pytest.mark.parametrize("card, packet", [
    ("gfx1100", "packet compute 0x3c SetShReg(COMPUTE_PGM=0x"),
    ("gfx942", "packet compute 0x0 KernelDispatch(barrier=0x1, "),
])
def test_levels_on_an_emulated_card(card, packet):
    """Also that a level of a card shows its own machine code, without padding, and its packets by name."""
    def shown_by(level: int) -> str:
        environment = os.environ | {"AMD": "1", "EMULATE": card, "DEBUG": str(level)}
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120,
                              env=environment)
        assert done.returncode == 0 and done.stdout == ""
        return done.stderr
    texts = {level: shown_by(level) for level in (0, 1, 2, 3, 4, 5, 6, 7)}
    assert texts[0] == ""
    for level, mark in (AMD_MARKS | {7: packet}).items():
        assert [mark in texts[each] for each in range(8)] == [each >= level for each in range(8)], mark
    assert AMD_MARKS[7] in texts[7] and "kernel=reduce_2_r2_float32" in texts[7]
    assert "s_code_end" not in texts[7]


@pytest.mark.parametrize("no_color, terminal, coloured", [
    ("", True, True), ("1", True, False), ("", False, False)])
def test_colours_are_for_a_terminal_and_without_no_color(monkeypatch, no_color, terminal, coloured):
    written = io.StringIO()
    monkeypatch.setattr(written, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(sys, "stderr", written)
    with Context(NO_COLOR=no_color):
        report._say("plan: two kernels")
    assert written.getvalue() == ("\033[1mplan:\033[0m two kernels\n" if coloured else "plan: two kernels\n")
