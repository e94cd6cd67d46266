"""`python -m tiny profile`: runs the program as Python would, then says where the time went."""
import os
import pstats
import re
import subprocess
import sys

import pytest

PROGRAM = """
import sys
from tiny import Tensor
print("arguments", sys.argv[1:])
x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
(x * x).sum().backward()
print(x.grad.tolist())
"""


def profile(tmp_path, text: str, *options: str, arguments: tuple = ()) -> subprocess.CompletedProcess:
    """Profile a program with an empty cache, where nothing is planned yet."""
    (tmp_path / "program.py").write_text(text)
    return subprocess.run([sys.executable, "-m", "tiny", "profile", *options, str(tmp_path / "program.py"),
                           *arguments], capture_output=True, text=True,
                          env=os.environ | {"CACHE": str(tmp_path / "cache")})


def test_the_program_runs_and_its_stages_are_listed(tmp_path):
    options = ("--top", "3", "--out", str(tmp_path / "figures"))
    done = profile(tmp_path, PROGRAM, *options, arguments=("a", "--b"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "arguments ['a', '--b']\n[2.0, 4.0, 6.0]\n"
    for stage in ("gradients", "planning", "scheduling and rendering", "compiler", "submitting"):
        assert re.search(rf"^{stage}.* [1-9]\d* +\d+\.\d+ +\d+\.\d%", done.stderr, re.M), stage
    assert "tiny/ir" in done.stderr and "the program" in done.stderr
    assert len(done.stderr.partition("function, without")[2].splitlines()) == 1 + 3
    assert pstats.Stats(str(tmp_path / "figures")).total_tt > 0


@pytest.mark.parametrize("last, code", [("sys.exit(3)", 3), ("sys.exit()", 0), ("raise ValueError('no')", 1),
                                        ("sys.exit('gone')", 1)])
def test_the_programs_exit_code_is_kept(tmp_path, last, code):
    done = profile(tmp_path, f"import sys\n{last}\n")
    assert done.returncode == code
    assert "s of Python" in done.stderr
    assert ("ValueError: no" in done.stderr) == ("Value" in last)
    assert ("gone" in done.stderr) == ("gone" in last)


def test_a_program_that_is_not_there_is_told(tmp_path):
    command = [sys.executable, "-m", "tiny", "profile", "none.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "tiny profile: none.py: no such file; name a Python program\n"
