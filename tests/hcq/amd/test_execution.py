"""Kernels from source to result: compiled by clang, loaded by our loader, executed from machine code."""
import random
import struct

import pytest

from tests.hcq.amd.conftest import KINDS, filled, opened
from tests.hcq.amd.test_program import PREAMBLE, SOURCES
from tiny.config import Context
from tiny.emulator.amd.isa import run as emulated
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq.errors import CommandError
from tiny.hcq.queue import Slot
from tiny.toolchain import Source


@pytest.fixture(scope="module", params=["gfx1100", "gfx1201", "gfx942", "one die of gfx942"])
def setting(request):
    """(device, {name: program})."""
    with opened(EmulatedRadeon([KINDS[request.param]])) as device:
        threads = {"add": 64, "lookup": 32, "local": 128, "private": 32, "sizes": 32}
        objects = device.compile(SOURCES)
        yield device, {source.name: device.load(code, source.name, threads[source.name])
                       for source, code in zip(SOURCES, objects, strict=True)}


def run(device, program, arguments, groups=1):
    queue = device.queue()
    queue.execute(program, arguments, groups)
    device.synchronize(queue.finish().submit())


def ints(buffer, count):
    return list(struct.unpack_from(f"{count}i", buffer.copyout()))


def test_items_of_all_groups_run(setting):
    device, programs = setting
    count = 1000
    a = [random.Random(1).random() for _ in range(count)]
    first, second = (filled(device, struct.pack(f"{count}f", *values)) for values in (a, range(count)))
    run(device, programs["add"], [first.address, second.address, count - 3], -(-count // 64))
    found = struct.unpack(f"{count}f", first.copyout())
    expected = [struct.unpack("f", struct.pack("f", x))[0] for x in a]
    assert all(abs(got - x - n) < 1e-4 for n, (got, x) in enumerate(zip(found[:-3], expected, strict=False)))
    assert list(found[-3:]) == expected[-3:]


def test_constant_tables_local_and_private_memory(setting):
    device, programs = setting
    data = filled(device, struct.pack("128i", *range(128)))
    run(device, programs["local"], [data.address])
    assert ints(data, 128) == list(range(127, -1, -1))
    table = filled(device, bytes(32 * 4))
    run(device, programs["lookup"], [table.address, filled(device, struct.pack("i", 3)).address])
    assert ints(table, 32) == [9] * 32
    numbers = random.Random(2).choices(range(1000), k=64)
    data = filled(device, struct.pack("64i", *numbers))
    run(device, programs["private"], [data.address, 10])
    assert ints(data, 1) == [sum(numbers[number & 63] for number in numbers[:10])]


def test_the_kernels_of_a_submission_are_translated_together(setting, monkeypatch):
    device, programs = setting
    together = []
    monkeypatch.setattr(emulated, "_programs", {})
    monkeypatch.setattr(emulated, "prepare", lambda kernels, original=emulated.prepare: (
        together.append(len(kernels)), original(kernels)))
    data, other = filled(device, bytes(range(256)) * 2), filled(device, bytes(256))
    queue = device.queue()
    for _ in range(2):
        queue.execute(programs["local"], [data.address])
        queue.execute(programs["add"], [data.address, other.address, 64])
    device.synchronize(queue.finish().submit())
    assert len(emulated._programs) == 2 and together == [4]
    assert data.copyout() == bytes(range(256)) * 2


def test_a_hundred_kernels_are_one_doorbell(setting, monkeypatch):
    device, programs = setting
    data, rung, ring = filled(device, struct.pack("128i", *range(128))), [], device.io.doorbell
    queue = device.queue()
    for _ in range(101):
        queue.execute(programs["local"], [data.address])
    template = queue.finish()
    monkeypatch.setattr(device.io, "doorbell", lambda *store: (rung.append(store), ring(*store)))
    for submitted, wanted in ((1, range(127, -1, -1)), (2, range(128))):
        device.synchronize(template.submit())
        assert len(rung) == submitted and ints(data, 128) == list(wanted)


def test_kernels_and_copies_in_one_template(setting):
    device, programs = setting
    ones, total = filled(device, struct.pack("64f", *[1] * 64)), filled(device, bytes(256))
    kept = filled(device, bytes(256))
    queue = device.queue()
    queue.execute(programs["add"], [total.address, ones.address, 64], Slot(0))
    queue.copy(kept.address, total.address, 256)
    queue.execute(programs["add"], [total.address, kept.address, Slot(1)], 1)
    template = queue.finish()
    for _ in range(2):
        device.synchronize(template.submit([1, 32]))
    assert list(struct.unpack("64f", total.copyout())) == [6.0] * 32 + [2.0] * 32
    assert list(struct.unpack("64f", kept.copyout())) == [3.0] * 32 + [2.0] * 32


def test_a_kernel_that_never_ends_is_named_and_dropped(setting):
    device, programs = setting
    text = "(volatile int *a) { while (a[0] == 0) {} }"
    [code] = device.compile([Source("forever", f"KERNEL(forever, 32){text}", PREAMBLE)])
    buffer = filled(device, bytes(256))
    message = "after 150 ms.* at kernel forever"
    with Context(TIMEOUT_MS=150), pytest.raises(CommandError, match=message) as error:
        run(device, device.load(code, "forever", 32), [buffer.address])
    assert error.value.kernel == "forever"
    run(device, programs["add"], [buffer.address, buffer.address, 64], 1)


def test_a_kernel_that_reaches_unmapped_memory_is_named(setting):
    device, programs = setting
    buffer = filled(device, bytes(256))
    queue = device.queue()
    queue.execute(programs["add"], [buffer.address, buffer.address, 64], 1)
    queue.execute(programs["add"], [0x1000, buffer.address, 64], 1)
    with pytest.raises(CommandError, match="memory fault in the page 0x1000: no memory is mapped") as error:
        device.synchronize(queue.finish().submit())
    assert error.value.kernel == "add"
    run(device, programs["add"], [buffer.address, buffer.address, 64], 1)
