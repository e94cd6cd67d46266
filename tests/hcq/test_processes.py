"""Processes: fork, spawn, two at once, killed ones, and the end of one."""
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.tools import tool

OPEN = """
import os, sys, time
from tiny.hcq import device
from tiny.hcq.queue import Slot
from tiny.toolchain import Source
cpu = device.open("CPU")
text = "void add(const unsigned long *a, unsigned long b, unsigned long e) " \\
       "{ for (; b < e; b++) ((unsigned long *)a[0])[b] += a[1]; }"
program = cpu.load(cpu.compile([Source("add", text)])[0], "add")
buffer = cpu.allocate(8000).initialize(bytes(8000))
queue = cpu.queue()
queue.execute(program, [buffer.address, Slot(0)], 1000)
template = queue.finish()
cpu.synchronize(template.submit([3]))
"""


HANG = """
text = "void hang(void) { volatile int x = 1; while (x) {} }"
queue = cpu.queue()
queue.execute(cpu.load(cpu.compile([Source("hang", text)])[0], "hang"), [])
queue.finish().submit()
"""
KEPT = ("PATH", "HOME", "XDG_CACHE_HOME")


def start(code, **settings):
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment |= {"PYTHONPATH": "."} | settings
    return subprocess.Popen([sys.executable, "-W", "error", "-c", OPEN + code], env=environment,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(code, **settings):
    """Standard output of a process that ends well."""
    process = start(code, **settings)
    out, err = process.communicate(timeout=200)
    assert (process.returncode, err) == (0, "")
    return out


def test_a_forked_child_gets_a_clear_error_and_the_parent_goes_on():
    out = run("""
child = os.fork()
if child == 0:
    for use in (lambda: device.open("CPU"), lambda: template.submit([1]), lambda: cpu.allocate(8),
                buffer.host, cpu.synchronize, cpu.queue, lambda: cpu.from_host(b"x")):
        try:
            use()
        except Exception as error:
            print(type(error).__name__, str(error)[:57], flush=True)
    sys.exit(0)
os.waitpid(child, 0)
cpu.synchronize(template.submit([4]))
print(buffer.host()[0])
""")
    lines = out.splitlines()
    assert lines[:7] == ["ForkedError CPU: the device was opened before this process was forked"] * 7
    assert lines[7:] == ["7"]


def test_a_child_may_use_the_device_if_the_parent_has_not():
    code = """
import os, sys
import tiny.hcq
child = os.fork()
if child == 0:
""" + "".join(f"    {line}\n" for line in OPEN.strip().splitlines()) + """
    print(buffer.host()[0])
    sys.exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


def test_two_processes_start_with_one_empty_cache(tmp_path):
    both = [start("print(buffer.host()[0])", CACHE=str(tmp_path / "cache")) for _ in range(2)]
    assert [process.communicate(timeout=200) for process in both] == [("3\n", "")] * 2


@pytest.mark.parametrize("ending", ["", "sys.exit(0)", "template.submit([1])", "cpu.close()", "os._exit(0)",
                                    "del cpu, template, program, buffer"])
def test_a_process_ends_at_once_whatever_it_was_doing(ending):
    started = time.monotonic()
    run(ending)
    assert time.monotonic() - started < 10


def test_a_process_ends_although_a_kernel_never_does():
    run(HANG + "time.sleep(0.01)")


def test_a_process_ended_by_an_exception_shows_only_that():
    process = start("raise KeyError('mine')")
    assert "KeyError: 'mine'" in process.communicate(timeout=200)[1].splitlines()[-1]


def test_a_killed_process_leaves_a_cache_that_works(tmp_path):
    process = start("print(1, flush=True)\nwhile True: template.submit([1])", CACHE=str(tmp_path))
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert run("print(buffer.host()[0])", CACHE=str(tmp_path)) == "3\n"


def test_ctrl_c_ends_a_wait():
    process = start(HANG + """
try:
    print("waiting", flush=True)
    cpu.synchronize()
except KeyboardInterrupt:
    print("interrupted", flush=True)
""")
    process.stdout.readline()
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=200) == ("interrupted\n", "")


def test_gcc_serves_without_clang(tmp_path):
    code = "cpu.synchronize(template.submit([4])); print(buffer.host()[0], cpu.target.compiler[:4])"
    assert run(code, CC=tool("gcc"), CACHE=str(tmp_path)) == "7 gcc-\n"


def test_without_any_compiler_one_error_says_what_to_install(tmp_path):
    process = start("", PATH=str(tmp_path), CACHE="0")
    text = process.communicate(timeout=200)[1].splitlines()
    for part in ("no C compiler: looked for clang-40 ... clang-14, clang, gcc and cc in", "apt-get install"):
        assert any(part in line for line in text)


def test_spawned_children_work():
    code = """
import multiprocessing
from tests.hcq.test_processes import spawned
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(spawned, [2, 3]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("[2, 3]\n", "")


def spawned(number):
    """In the child: add a number on the device."""
    scope = {}
    exec(OPEN.replace("submit([3])", f"submit([{number}])"), scope)
    return scope["buffer"].host()[0]
