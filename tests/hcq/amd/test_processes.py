"""What becomes of a card when its process is killed in mid-submission, or forks."""
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.hcq.amd.conftest import opened
from tests.hcq.amd.test_faults import Card, works

ENDLESS = """
import sys
from tiny.hcq import device
import tiny.devices, tiny.realize
from tests.hcq.amd.test_faults import FOREVER, filled, started
card = device.open("AMD")
point = started(card, "endless", FOREVER, [filled(card, bytes(128)).address])
"""
AFTERWARDS = """
from tiny.hcq import device
import tiny.devices, tiny.realize
from tests.hcq.amd.test_faults import works
print(works(device.open("AMD")))
"""


def process(code, cache):
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    settings = {"PYTHONPATH": ".", "EMULATE": "1", "CACHE": str(cache),
                "TMPDIR": str(cache.parent / "temporary")}
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, env=kept | settings)


def test_a_process_killed_in_mid_submission_leaves_nothing_behind(tmp_path):
    """Its memory, queues and events go with it, its cache is whole, and the next process works."""
    (tmp_path / "temporary").mkdir()
    child = process(ENDLESS, tmp_path / "cache")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:                      # until it has compiled, and runs the kernel
        spent = sum(map(int, Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
        if spent > 1.5 * os.sysconf("SC_CLK_TCK") and (tmp_path / "cache").exists():
            break
        time.sleep(0.05)
    assert child.poll() is None
    child.send_signal(signal.SIGKILL)
    assert child.wait(timeout=60) == -signal.SIGKILL
    child.communicate()
    after = process(AFTERWARDS, tmp_path / "cache")
    out, err = after.communicate(timeout=200)
    assert (out, err, after.returncode) == ("True\n", "", 0)
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.parts[-2] == "temporary"]
    left += [path for path in (tmp_path / "cache").rglob("*") if "tmp" in path.name]
    assert not left


def test_a_forked_child_is_refused_and_its_parent_goes_on():
    with opened(Card()) as device:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                device.allocate(3 << 20)
            except BaseException as error:
                os.write(write, str(error).encode())
            finally:
                os._exit(0)
        os.close(write)
        os.waitpid(child, 0)
        text = os.read(read, 1000).decode()
        assert "EBADF" in text and "before a fork" in text
        assert works(device)
