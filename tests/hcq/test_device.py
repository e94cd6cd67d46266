"""Names of devices, the table of kinds, and what an opened device tells about itself."""
import subprocess
import sys

import pytest

from tiny.config import Context
from tiny.hcq import device, events, io
from tiny.hcq.cpu import host
from tiny.hcq.cpu.device import CpuDevice
from tiny.hcq.errors import DeviceUnavailable
from tiny.toolchain import CompileError, Source


def test_a_device_is_opened_once(cpu):
    assert device.open("CPU") is device.open("cpu") is device.open("CPU:0") is device.open() is cpu
    assert device.canonical("cpu:0") == "CPU" and device.canonical("CPU:2") == "CPU:2"


def test_what_is_no_device_name_is_an_error():
    for name in ("CPU:x", "CPU:-1", "CPU:1:2", "CPU: 1"):
        with pytest.raises(DeviceUnavailable, match=f"device {name}: behind the colon stands"):
            device.canonical(name)
    with pytest.raises(TypeError, match="'AMD:1', not by 3"):
        device.canonical(3)
    assert device.canonical("CPU:gfx1201") == "CPU"


def test_a_second_device_of_a_kind_has_its_own_queue(cpu, programs):
    other = device.open("CPU:1")
    assert other is not cpu and other.name == "CPU:1" and other.target.arch == cpu.target.arch
    flag, result = cpu.allocate(8).initialize(bytes(8)), cpu.allocate(8).initialize(bytes(8))
    waiting = cpu.queue()
    waiting.wait(flag.address, 1)
    waiting.execute(programs["store"], [result.address, 5])
    point = waiting.finish().submit()
    signalling = other.queue()
    signalling.signal(flag.address, 1)
    other.synchronize(signalling.finish().submit())
    cpu.synchronize(point)
    assert result.host()[0] == 5


@pytest.mark.parametrize("name, texts", [
    ("CUDDA", ["unknown device CUDDA; available here: CPU", "not built yet: ", "did you mean NV?"]),
    ("CPUU", ["unknown device CPUU", "did you mean CPU?"]),
    ("ROCM", ["did you mean AMD?"]),
    ("qqqqqq", ["unknown device qqqqqq; available here: CPU"]),
])
def test_an_unknown_name_lists_what_there_is_and_the_nearest(name, texts):
    with pytest.raises(DeviceUnavailable) as error:
        device.open(name)
    assert all(text in str(error.value) for text in texts)
    with Context(DEV=name), pytest.raises(DeviceUnavailable):
        device.open()


def test_a_kind_that_is_not_built_is_one_clear_error(monkeypatch):
    monkeypatch.setitem(device.NOT_BUILT, "OTHER", "Other company's cards")
    with pytest.raises(DeviceUnavailable, match="device OTHER:1: Other company's cards are not built yet; "
                                                "available here: CPU"):
        device.open("OTHER:1")


def test_describe_tries_every_kind(monkeypatch):
    def broken(number):
        raise DeviceUnavailable("no card found; plug one in")
    kind = device.DeviceKind("BROKEN", broken, "a broken card")
    monkeypatch.setitem(device._kinds, "BROKEN", kind)
    monkeypatch.setitem(device.NOT_BUILT, "OTHER", "Other company's cards")
    found = {status.name: status for status in device.describe()}
    assert found["CPU"].opens and found["CPU"].target.dialect == "c" and "threads" in found["CPU"].reason
    assert not found["BROKEN"].opens and found["BROKEN"].reason == "no card found; plug one in"
    assert not found["OTHER"].opens and "not built yet" in found["OTHER"].reason


def test_the_target_tells_what_the_machine_can_do(cpu):
    target = cpu.target
    assert target.name == "CPU" and target.arch in ("x86_64", "aarch64") and target.threads >= 1
    assert target.lanes in (16, 32, 64) and target.compiler.startswith(("clang-", "gcc-"))
    assert target.key == target.key and "native" not in target.key and hash(target)


CPUINFO = """processor\t: 0
flags\t\t: fpu sse sse2 pni ssse3 avx avx2 fma avx512f avx512_bf16 amx_tile amx_bf16
"""


def test_features_come_in_the_compilers_spelling():
    features = host.features(CPUINFO, "x86_64")
    assert features == {"sse3", "ssse3", "avx", "avx2", "fma", "avx512f", "avx512bf16", "amx-tile",
                        "amx-bf16"}
    flags = host.flags("x86_64", features)
    assert {"-mavx512bf16", "-mprefer-vector-width=512"} <= set(flags) and "native" not in " ".join(flags)
    assert host.vector_bytes("x86_64", features) == 64 and host.vector_bytes("x86_64", frozenset()) == 16


def test_aarch64_features():
    features = host.features("Features\t: fp asimd asimdhp asimddp bf16\n", "aarch64")
    assert "-march=armv8-a+bf16+dotprod+fp16" in host.flags("aarch64", features)


def test_amx_is_left_out_where_the_kernel_refuses_it(monkeypatch):
    monkeypatch.setattr(host, "read_cpuinfo", lambda: CPUINFO)
    monkeypatch.setattr(host, "request_amx", lambda: False)
    monkeypatch.setattr(host, "flags", lambda arch, features: ("-O1", "-fPIC"))
    opened = CpuDevice(7)
    assert not any(name.startswith("amx") for name in opened.target.features)
    opened.close()


def test_threads_may_be_given(monkeypatch):
    for threads in (1, 3):
        with Context(THREADS=threads):
            opened = CpuDevice(8)
        assert opened.target.threads == threads
        text = "void f(const unsigned long *a, unsigned long b, unsigned long e) " \
               "{ for (; b < e; b++) ((unsigned long *)a[0])[b] = b; }"
        program = opened.load(opened.compile([Source("f", text)])[0], "f")
        buffer = opened.allocate(8000)
        queue = opened.queue()
        queue.execute(program, [buffer.address], 1000)
        opened.synchronize(queue.finish().submit())
        assert buffer.host().cast("Q").tolist() == list(range(1000))
        opened.close()


def test_a_kernel_that_does_not_compile_shows_its_lines(cpu):
    with pytest.raises(CompileError, match="broken_kernel: .*\n(.*\n)*>    1 . void broken_kernel"):
        cpu.compile([Source("broken_kernel", "void broken_kernel(void) { nonsense; }")])


def test_events_tell_what_the_device_does(cpu, words, programs):
    seen = []
    stop = events.subscribe(seen.append)
    buffer = words(100)
    text = "void told(const unsigned long *args) { ((unsigned long *)args[0])[0] = 4; }"
    data = cpu.compile([Source("told", text)])
    queue = cpu.queue()
    queue.execute(cpu.load(data[0], "told"), [buffer.address])
    point = queue.finish().submit()
    cpu.synchronize(point)
    stop()
    kinds = {type(event): event for event in seen}
    assert kinds[events.Compiled].names == ("told",) and kinds[events.Loaded].name == "told"
    assert kinds[events.Submitted].point == point and len(kinds[events.Submitted].commands) % 8 == 0
    assert kinds[events.Allocated].device == "CPU"
    count = len(seen)
    cpu.allocate(8)
    assert len(seen) == count


def test_calls_go_through_the_installed_provider():
    class Counting(io.Provider):
        maps = 0

        def mmap(self, *args, **kwargs):
            self.maps += 1
            return super().mmap(*args, **kwargs)
    provider = Counting()
    remove = io.install(provider)
    try:
        opened = CpuDevice(9)
    finally:
        remove()
    assert provider.maps >= 4 and io.installed() is not provider
    opened.close()


def test_a_kind_is_loaded_when_its_device_is_asked_for():
    code = ("import sys, tiny; print(sum(name.startswith(('tiny.hcq.cpu', 'tiny.hcq.amd', 'tiny.autogen'))"
            " for name in sys.modules)); tiny.Device['CPU']; print('tiny.hcq.cpu.device' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    assert done.stdout.split() == ["0", "True"], done.stderr
