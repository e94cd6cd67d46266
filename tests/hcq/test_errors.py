"""What goes wrong on a queue: time limits, faults of kernels, a damaged ring, and coming back from them."""
import platform
import subprocess
import sys
import threading
import time

import pytest

from tests.hcq.conftest import read
from tiny.config import Context
from tiny.hcq.cpu.packets import Nop
from tiny.hcq.errors import CommandError, DeviceError, KernelFault, WaitTimeout

x86_64_only = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="on other processors a kernel that crashes ends the process, as "
    "docs/hcq.md says: compilers have no __builtin_longjmp there to bring its thread back with")


def submit(cpu, *commands):
    queue = cpu.queue()
    for program, arguments, groups, *checked in commands:
        queue.execute(program, arguments, groups, *checked)
    return queue.finish().submit()


@pytest.mark.parametrize("groups", [1, 2, 100])
def test_a_kernel_that_never_ends_is_a_timeout_that_names_it_and_reset_drops_it(cpu, words, programs, groups):
    buffer = words(8)
    before = submit(cpu, (programs["store"], [buffer.address, 7], 1))
    point = submit(cpu, (programs["hang"], [buffer.address], groups))
    behind = submit(cpu, (programs["store"], [buffer.address, 8], 1))
    cpu.synchronize(before)
    started = time.monotonic()
    with pytest.raises(WaitTimeout) as error:
        cpu.synchronize(point, timeout_ms=300)
    assert 0.29 < time.monotonic() - started < 10
    assert (error.value.kernel, error.value.signal, error.value.wanted) == ("hang", before, point)
    for part in (f"CPU: the compute queue did not reach point {point} in 300 ms", f"its signal is {before}",
                 "in kernel hang, command Execute(program=", f"groups={groups:#x}", "TIMEOUT_MS", "reset()"):
        assert part in str(error.value)
    cpu.reset()
    for dropped in (point, behind):
        with pytest.raises(DeviceError, match="dropped by reset"):
            cpu.synchronize(dropped)
    cpu.synchronize(before)
    cpu.synchronize(submit(cpu, (programs["increment"], [buffer.address], 8)))
    assert read(buffer) == [8] + [1] * 7


def test_the_limit_of_a_wait_comes_from_the_settings(cpu, programs):
    submit(cpu, (programs["hang"], [0], 1))
    with Context(TIMEOUT_MS=50), pytest.raises(WaitTimeout, match="in 50 ms"):
        cpu.synchronize()
    cpu.reset()


def test_a_wait_that_timed_out_may_be_continued(cpu, words, programs, run):
    buffer = words(2)
    # the waiting thread runs only what ended soon before
    for count in range(2):
        run(programs["slow"], [100_000_000])
        point = submit(cpu, (programs["slow"], [100_000_000], 1),
                       (programs["increment"], [buffer.address], 2))
        with pytest.raises(WaitTimeout, match="did not reach point"):
            cpu.synchronize(point, timeout_ms=1)
        cpu.synchronize(point)
        assert read(buffer) == [count + 1] * 2


def test_reset_of_an_idle_device_changes_nothing(cpu, words, programs, run):
    cpu.synchronize()
    cpu.reset()
    buffer = words(1)
    run(programs["store"], [buffer.address, 3])
    assert read(buffer) == [3]


def test_a_kernel_that_reports_a_fault_stops_the_queue(cpu, words, programs):
    buffer = words(1)
    before = submit(cpu, (programs["store"], [buffer.address, 1], 1))
    bad = submit(cpu, (programs["fault"], [cpu.fault_address], 1, True),
                 (programs["store"], [buffer.address, 2], 1))
    with pytest.raises(KernelFault) as error:
        cpu.synchronize()
    assert (error.value.kernel, error.value.code, error.value.details) == ("fault", 9, (20, 16, 3))
    assert "kernel fault reported code 9, details (20, 16, 3)" in str(error.value)
    cpu.synchronize(before)
    with pytest.raises(KernelFault):
        cpu.synchronize(bad)
    assert read(buffer) == [1]                              # what is behind the fault was dropped
    cpu.synchronize(submit(cpu, (programs["store"], [buffer.address, 3], 1)))
    assert read(buffer) == [3]


def test_without_the_checked_mark_nobody_looks(cpu, words, programs, run):
    run(programs["fault"], [words(4).address], 1)


def test_a_fault_is_met_at_the_next_submission_if_nobody_waits(cpu, words, programs):
    submit(cpu, (programs["fault"], [cpu.fault_address], 2, True))
    with pytest.raises(KernelFault):
        for _ in range(1000):
            submit(cpu, (programs["store"], [words(1).address, 2], 1))
            time.sleep(0.001)
    cpu.synchronize()


def test_every_waiting_thread_gets_the_error(cpu, words, programs):
    point = submit(cpu, (programs["slow"], [10_000_000], 1),
                   (programs["fault"], [cpu.fault_address], 1, True))
    seen = []

    def wait():
        try:
            cpu.synchronize(point)
        except KernelFault as error:
            seen.append(error.code)
    threads = [threading.Thread(target=wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [9] * 4


@x86_64_only
@pytest.mark.parametrize("groups, bad_group", [(1, 0), (100, 0), (100, 50), (100, 99)])
def test_a_kernel_that_crashes_is_an_error_that_names_it(cpu, words, programs, groups, bad_group):
    buffer = words(100)
    before = submit(cpu, (programs["increment"], [buffer.address], 100))
    bad = submit(cpu, (programs["crash"], [0x10, bad_group], groups),
                 (programs["increment"], [buffer.address], 100))
    with pytest.raises(CommandError, match="kernel crash crashed with SIGSEGV at address 0x10, in"):
        cpu.synchronize()
    cpu.synchronize(before)
    with pytest.raises(CommandError, match="CHECK=1"):
        cpu.synchronize(bad)
    assert read(buffer) == [1] * 100
    for _ in range(10):
        cpu.synchronize(submit(cpu, (programs["increment"], [buffer.address], 100)))
    assert read(buffer) == [11] * 100


CRASH_SEEN_BY_ANOTHER = """
import faulthandler
from tiny.hcq import device
from tiny.toolchain import Source

cpu = device.open("CPU")
text = "void crash(const unsigned long *args) { *(volatile int *)args[0] = 1; }"
program = cpu.load(cpu.compile([Source("crash", text)])[0], "crash")
faulthandler.enable()
queue = cpu.queue()
queue.execute(program, [0x10])
try:
    cpu.synchronize(queue.finish().submit())
except Exception as error:
    print(error)
"""


@x86_64_only
def test_a_crash_that_another_handler_saw_first_keeps_its_address():
    """Python's faulthandler, enabled after the device was opened, prints and raises the signal anew."""
    done = subprocess.run([sys.executable, "-c", CRASH_SEEN_BY_ANOTHER], capture_output=True, text=True,
                          timeout=120)
    assert "Segmentation fault" in done.stderr
    assert "kernel crash crashed with SIGSEGV at address 0x10, in" in done.stdout


def test_crashes_and_hangs_of_many_kinds_in_a_row(cpu, words, programs):
    buffer = words(64)
    for round_number in range(30):
        crash = (programs["crash"], [0x10, round_number % 64], 64)
        bad = crash if round_number % 3 else (programs["hang"], [], 64)
        submit(cpu, (programs["increment"], [buffer.address], 64), bad)
        with pytest.raises(DeviceError):
            cpu.synchronize(timeout_ms=20)
        cpu.reset()
    cpu.synchronize(submit(cpu, (programs["increment"], [buffer.address], 64)))
    assert read(buffer) == [31] * 64


def test_a_ring_that_was_written_over_is_an_error_with_the_place(cpu, words, programs, run):
    queue = cpu.queue()
    queue.emit(Nop)
    queue.image[-8:] = b"\xee\1\0\0\0\0\0\0"
    with pytest.raises(CommandError, match="the ring holds no known command at 0x.*CHECK=1"):
        cpu.synchronize(queue.finish().submit())
    buffer = words(1)
    run(programs["store"], [buffer.address, 3])
    assert read(buffer) == [3]


def test_a_packet_without_a_size_is_an_error_too(cpu):
    queue = cpu.queue()
    queue.emit(Nop)
    queue.image[-8:] = bytes(8)
    with pytest.raises(CommandError, match="no known command"):
        cpu.synchronize(queue.finish().submit())


def test_waiting_for_a_point_that_was_never_submitted_is_an_error(cpu):
    with pytest.raises(ValueError, match="point 999999999999 was never submitted, the last is"):
        cpu.synchronize(999999999999)
