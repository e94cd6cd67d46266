"""What the tests of the CPU device share."""
import pytest

from tiny.hcq import device
from tiny.toolchain import Source

PREAMBLE = "typedef unsigned long u64;\n"
KERNELS = {
    "increment": "for (; begin < end; begin++) ((volatile u64 *)args[0])[begin]++;",
    "add_value": "for (; begin < end; begin++) ((u64 *)args[0])[begin] += args[1];",
    "store": "((u64 *)args[0])[0] = args[1];",
    "double_first": "((u64 *)args[0])[0] *= 2;",
    "collect": "for (u64 i = 1; args[i] != ~0ul; i++) ((u64 *)args[0])[i] = args[i];",
    "slow": "for (volatile u64 i = 0; i < args[0]; i++) {}",
    "hang": "volatile u64 x = 1; while (x) {}",
    "fault": "u64 *fault = (u64 *)args[0]; fault[1] = 20; fault[2] = 16; fault[3] = 3; fault[0] = 9;",
    "crash": "if (begin <= args[1] && args[1] < end) *(volatile u64 *)args[0] = 1;",
    "denormal": "volatile float *x = (volatile float *)args[0]; x[1] = x[0] / 2;",
}


@pytest.fixture(scope="session")
def cpu():
    return device.open("CPU")


@pytest.fixture(scope="session")
def programs(cpu):
    """Small kernels by name, all compiled together."""
    sources = [Source(name, f"void {name}(const u64 *args, u64 begin, u64 end) {{ {body} }}", PREAMBLE)
               for name, body in KERNELS.items()]
    objects = cpu.compile(sources)
    return {source.name: cpu.load(data, source.name) for source, data in zip(sources, objects, strict=True)}


@pytest.fixture
def run(cpu):
    """Record one command, submit it and wait: run(program, arguments, groups)."""
    def once(program, arguments, groups=1, **options):
        queue = cpu.queue()
        queue.execute(program, arguments, groups, **options)
        cpu.synchronize(queue.finish().submit())
    return once


@pytest.fixture
def words(cpu):
    """A function that makes a buffer of so many 64-bit zeros."""
    return lambda count: cpu.allocate(count * 8).initialize(bytes(count * 8))


def read(buffer):
    """The buffer as a list of 64-bit numbers."""
    return list(buffer.host().cast("Q"))
