"""EMULATE: the emulated cards are plugged in before AMD is opened, in processes of their own."""
import os
import subprocess
import sys

import pytest

KEPT = ("PATH", "HOME", "XDG_CACHE_HOME")


def process(code, **settings) -> subprocess.CompletedProcess:
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True,
                          timeout=200, env=environment | {"PYTHONPATH": "."} | settings)


def run(code, **settings):
    """What a process prints; its exit code must be 0."""
    done = process(code, **settings)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


SHOW = """
from tiny import Device
from tiny.hcq.errors import DeviceUnavailable
for name in (None, "AMD:1"):
    try:
        found = Device[name or Device.DEFAULT]
        print(found.name, found.target.arch, found.detail)
    except DeviceUnavailable as error:
        print(error)
"""


@pytest.mark.parametrize("settings, lines", [
    ({"AMD": "1", "EMULATE": "1"}, ["AMD gfx1100 emulated 24 GiB", "AMD:1: there is no such card"]),
    ({"AMD": "1", "EMULATE": "gfx1201,gfx942"}, ["AMD gfx1201 emulated 16 GiB",
                                                 "AMD:1 gfx942 emulated 192 GiB"]),
    ({"DEV": "AMD:gfx1201", "EMULATE": "1"}, ["AMD gfx1201 emulated", "AMD:1: there is no such card"]),
    ({"AMD": "1", "EMULATE": "gfx9000"}, ["EMULATE=gfx9000: no card 'gfx9000' can be emulated",
                                          "EMULATE=gfx9000"]),
    ({"EMULATE": "1", "VISIBLE_DEVICES": "0"}, ["CPU ", "AMD:1: there is no such card"]),
])
def test_the_cards_that_are_asked_for(settings, lines):
    found = run(SHOW, **settings).splitlines()
    assert len(found) == 2 and all(line.startswith(start) for line, start in zip(found, lines, strict=True))


def test_the_emulator_is_loaded_only_when_it_is_asked_for():
    code = "import sys, tiny; tiny.Device['CPU']; print(any('emulator' in name for name in sys.modules))"
    assert run(code).strip() == "False" and run(code, EMULATE="1", DEV="CPU").strip() == "False"


@pytest.mark.parametrize("settings, devices, lines", [
    ({"EMULATE": "gfx942"}, ["CPU", "CPU:1"], 1), ({"EMULATE": "1"}, ["CPU", "AMD"], 0), ({}, ["CPU"], 0),
    ({"EMULATE": "1", "DEV": "CPU"}, ["CPU"], 0), ({"EMULATE": "0"}, ["CPU"], 0),
])
def test_a_setting_without_effect_is_told_once_at_the_end(settings, devices, lines):
    done = process(f"import tiny\nfor name in {devices}: tiny.Device[name]", **settings)
    assert done.returncode == 0 and done.stderr == lines * (
        "tiny: EMULATE=gfx942 had no effect, all ran on the CPU, the default device; AMD=1 EMULATE=gfx942 "
        "runs on an emulated card\n")


def test_the_listing_shows_an_emulated_card():
    listing = run("from tiny.devices import main; main([])", AMD="1", EMULATE="1").splitlines()
    [line] = [line for line in listing if " AMD " in line]
    assert line.startswith("* AMD    opens") and "gfx1100, emulated 24 GiB, 96 threads, clang-" in line


def test_a_forked_child_gets_a_clear_error_and_the_parent_goes_on():
    out = run("""
import os, sys
from tiny.hcq import device
amd = device.open("AMD")
source, target = (amd.allocate(4000).initialize(bytes([n]) * 4000) for n in (7, 0))
queue = amd.queue()
queue.copy(target.address, source.address, 4000)
template = queue.finish()
child = os.fork()
if child == 0:
    for use in (lambda: device.open("AMD"), template.submit, lambda: amd.allocate(8), target.host,
                amd.synchronize, amd.queue):
        try:
            use()
        except Exception as error:
            print(type(error).__name__, str(error)[:57], flush=True)
    sys.exit(0)
os.waitpid(child, 0)
amd.synchronize(template.submit())
print(target.host()[3999])
""", EMULATE="1")
    lines = out.splitlines()
    assert lines == ["ForkedError AMD: the device was opened before this process was forked"] * 6 + ["7"]


def test_tensors_go_from_card_to_card():
    """Each computes with the other's results, also when those are overwritten right after."""
    out = run("""
import numpy as np
from tiny import Tensor
x = Tensor(np.arange(5000, dtype=np.float32), device="AMD")
for number in range(3):
    y = (x + 1).to("AMD:1").realize()
    x.assign(x * 0 + number).realize()
    print(y.device, y.numpy()[[0, 4999]].tolist(), (y * 2).to("CPU").sum().item())
    x = (y - 1).to("AMD")
print(x.device, x.sum().item())
""", EMULATE="gfx1100,gfx1201", AMD="1")
    one = f"AMD:1 [1.0, 5000.0] {2.0 * sum(range(1, 5001))}"
    assert out.splitlines() == [one] * 3 + [f"AMD {float(sum(range(5000)))}"]
