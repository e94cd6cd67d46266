"""The device of docs/add-a-device.md: short, complete, and right in every bit against the CPU."""
import re
import subprocess
import sys
from pathlib import Path

from tiny.ir import ops

ROOT = Path(__file__).resolve().parents[2]
TOY = ROOT / "examples" / "toy_device.py"
COMPARE = ROOT / "tests" / "examples" / "compare_devices.py"


def run(*arguments) -> str:
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_short_and_complete():
    assert len(TOY.read_text().splitlines()) < 200
    assert run(TOY) == "[[7.0, 10.0], [15.0, 22.0]] on ABACUS\n"


def test_it_computes_what_the_cpu_computes():
    assert run(COMPARE, TOY, "ABACUS") == "15 agree\n"


def test_the_page_lists_the_operations_a_dialect_meets():
    page = (ROOT / "docs" / "add-a-device.md").read_text()
    used = set(re.findall(r"ops\.([A-Z]+)", TOY.read_text())) - {"POINTER", "LOCAL", "VARIABLE", "CONST"}
    assert used <= set(ops.TABLE)
    assert [name for name in sorted(used) if f"`{name}`" not in page] == []
