"""What the driver library costs: compiling, loading, submitting, waiting. `make bench`."""
import itertools

import pytest

from tests.benchmarks.report import report
from tiny.hcq import device
from tiny.hcq.layout import Packet, bits, length, tail, u64
from tiny.hcq.queue import Slot
from tiny.toolchain import Source

KERNEL = """void {name}(const unsigned long *args, unsigned long begin, unsigned long end) {{
    float *out = (float *)args[0], *x = (float *)args[1], *y = (float *)args[2];
    for (unsigned long g = begin; g < end; g++)
        for (int i = 0; i < 16; i++) out[g * 16 + i] = x[g * 16 + i] + y[g * 16 + i] * {number};
}}"""
_numbers = itertools.count(1)


def sources(count):
    """Kernels that no cache holds yet."""
    numbers = [1e-6 * next(_numbers) for _ in range(count)]
    return [Source(f"add{i}", KERNEL.format(name=f"add{i}", number=one)) for i, one in enumerate(numbers)]


@pytest.fixture(scope="module")
def cpu():
    return device.open("CPU")


@pytest.fixture(scope="module")
def add(cpu):
    source = sources(1)[0]
    return cpu.load(cpu.compile([source])[0], source.name)


@pytest.fixture
def buffers(cpu):
    return [cpu.allocate(4096).initialize(bytes(4096)).address for _ in range(3)]


def median_us(benchmark) -> float:
    return 1e6 * benchmark.stats.stats.median


@pytest.mark.parametrize("count, budget", [(1, 100), (24, 300)])
def test_compile(benchmark, cpu, monkeypatch, count, budget):
    monkeypatch.setattr(cpu, "_cache", None)
    benchmark.pedantic(cpu.compile, setup=lambda: ((sources(count),), {}), rounds=9)
    report(f"compile {count} small kernels", median_us(benchmark) / 1e3, "ms", budget)


def test_load(benchmark, cpu):
    fresh = [(cpu.compile([Source("k", source.text.replace("add0", "k"))])[0], "k")
             for _ in range(30) for source in sources(1)]
    benchmark.pedantic(cpu.load, setup=lambda: (fresh.pop(), {}), rounds=30)
    report("load an object", median_us(benchmark), "us", 400)


def test_round_trip(benchmark, cpu, add, buffers):
    queue = cpu.queue()
    queue.execute(add, buffers)
    template = queue.finish()
    cpu.synchronize(template.submit())
    benchmark.pedantic(lambda: cpu.synchronize(template.submit()), rounds=200, iterations=100)
    report("submit one kernel of 16 floats and wait", median_us(benchmark), "us", 8)


def test_submit(benchmark, cpu, add, buffers):
    queue = cpu.queue()
    queue.execute(add, [Slot(0), *buffers[1:]])
    template = queue.finish()
    addresses = itertools.cycle(buffers)
    benchmark.pedantic(lambda: template.submit([next(addresses)]), rounds=200, iterations=100)
    cpu.synchronize()
    report("submit one kernel with a changed slot", median_us(benchmark), "us", 5)


@pytest.mark.parametrize("changed", [False, True])
def test_submit_500_kernels(benchmark, cpu, add, buffers, changed):
    """Six pointers each, every one a slot of its own."""
    queue = cpu.queue()
    for kernel in range(500):
        queue.execute(add, [Slot(6 * kernel + argument) for argument in range(6)])
    template = queue.finish()
    values = itertools.cycle([[*buffers, 0, 0, 0] * 500, [*reversed(buffers), 1, 1, 1] * 500])
    first = next(values)

    def submit():
        return template.submit(next(values) if changed else first)
    benchmark.pedantic(submit, setup=cpu.synchronize, rounds=200)
    cpu.synchronize()
    which = "all" if changed else "no"
    report(f"submit 500 kernels, {which} pointers changed", median_us(benchmark), "us", 300)


def test_kernels_in_a_row(benchmark, cpu, add, buffers):
    queue = cpu.queue()
    for _ in range(1000):
        queue.execute(add, buffers)
    template = queue.finish()
    cpu.synchronize(template.submit())
    benchmark.pedantic(lambda: cpu.synchronize(template.submit()), rounds=100)
    report("a kernel of 16 floats among 1000 of one submission", median_us(benchmark) / 1000, "us", 0.5)


def test_kernels_for_all_cores(benchmark, cpu, add, buffers):
    queue = cpu.queue()
    for _ in range(1000):
        queue.execute(add, buffers, 64)
    template = queue.finish()
    cpu.synchronize(template.submit())
    benchmark.pedantic(lambda: cpu.synchronize(template.submit()), rounds=50)
    report("a kernel of 64 groups among 1000 of one submission", median_us(benchmark) / 1000, "us", 5)


def test_encode_a_command_sequence(benchmark):
    """Thirty dwords in five packets, as a launch on a GPU takes."""
    memory = bytearray(256)

    def encode():
        at = BenchRegisters.encode(memory, 0, first=5, values=(1, 2, 3, 4, 5, 6))
        at += BenchRelease.encode(memory, at, event_type=20, address=0x7f0000001000, value=7)
        at += BenchRegisters.encode(memory, at, first=9, values=(1, 2))
        at += BenchRelease.encode(memory, at, event_type=5, address=0x7f0000002000, value=8)
        return at + BenchRegisters.encode(memory, at, first=11, values=())
    assert encode() >= 120
    benchmark.pedantic(encode, rounds=200, iterations=100)
    report("encode 30 dwords in 5 packets", median_us(benchmark), "us", 5)


class BenchCommand(Packet, key="op"):
    op = bits(0, 8, 8)
    count = length(0, 16, 14, bias=-2)


class BenchRegisters(BenchCommand, op=0x76, dwords=2):
    first = bits(1, 0, 16)
    values = tail(2)


class BenchRelease(BenchCommand, op=0x49, dwords=8):
    event_type = bits(1, 0, 6)
    address = u64(3)
    value = u64(5)


def test_memory(benchmark, cpu):
    def allocate():
        for size in (64, 1000, 70000, 4 << 20):
            cpu.allocate(size)
    benchmark.pedantic(allocate, rounds=100, iterations=20)
    report("allocate and drop a buffer", median_us(benchmark) / 4, "us", 10)
