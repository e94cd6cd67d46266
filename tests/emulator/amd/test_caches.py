"""CHECK=1: a driver that forgets a wait, a flush or an invalidation is told; another one is left alone."""

import struct

import pytest

from tests.hcq.amd.conftest import KINDS, filled, opened
from tests.hcq.amd.test_program import PREAMBLE
from tiny.config import Context
from tiny.emulator.amd.engines.caches import Caches, StaleError
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq.amd import aql, aql_recorder, pm4, pm4_recorder
from tiny.hcq.errors import CommandError
from tiny.toolchain import Source

DOUBLE = "(int *a, const int *b) { a[ITEM] = 2 * b[ITEM]; }"
COUNT = "(int *a) { __atomic_fetch_add(a, 1, __ATOMIC_RELAXED); }"


def chain(device, copying=True):
    """a -> b by a kernel, b -> c by a copy or a kernel, c -> a by a kernel; what is then in a."""
    a, b, c = (filled(device, struct.pack("64i", *range(64))) for _ in range(3))
    [code] = device.compile([Source("twice", f"KERNEL(twice, 64){DOUBLE}", PREAMBLE)])
    program = device.load(code, "twice", 64)
    queue = device.queue()
    queue.execute(program, [b.address, a.address], 1)
    if copying:
        queue.copy(c.address, b.address, 256)
    else:
        queue.execute(program, [c.address, b.address], 1)
    queue.execute(program, [a.address, c.address], 1)
    with Context(CHECK=1):
        device.synchronize(queue.finish().submit())
    return list(struct.unpack("64i", a.copyout()))


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_driver_sends_is_enough(kind):
    with opened(EmulatedRadeon([KINDS[kind]])) as device:
        assert chain(device) == [4 * n for n in range(64)]
        assert chain(device, copying=False) == [8 * n for n in range(64)]
        assert chain(device) == [4 * n for n in range(64)]


def broken(device, copying, *texts):
    with pytest.raises(CommandError) as error:
        chain(device, copying)
    assert all(text in str(error.value) for text in texts), str(error.value)
    assert chain_without_check(device)


def chain_without_check(device):
    """The card goes on after the error."""
    buffer = filled(device, bytes(64))
    queue = device.queue()
    queue.signal(buffer.address, 7)
    device.synchronize(queue.finish().submit())
    return buffer.copyout()[0] == 7


PM4_KINDS = ["gfx1100", "gfx1201", "one die of gfx942"]


def only_at_the_start(device, monkeypatch):
    """Forget the acquires between kernels."""
    acquire = type(device.generation).acquire
    monkeypatch.setattr(
        type(device.generation), "acquire",
        lambda self, emit, everything: acquire(self, emit, everything) if everything else None)


@pytest.mark.parametrize("kind", PM4_KINDS)
def test_no_invalidation_between_kernels(kind, monkeypatch):
    with opened(EmulatedRadeon([KINDS[kind]])) as device:
        only_at_the_start(device, monkeypatch)
        broken(device, False, "twice, workgroup (0, 0, 0), wave 0", "global_load", "kernel twice reads 0x",
               "which kernel twice of", "queue 0 wrote: no ACQUIRE_MEM that empties the vector")


@pytest.mark.parametrize("kind", PM4_KINDS)
def test_no_wait_between_kernels(kind, monkeypatch):
    def separate(self):
        self.generation.acquire(self.emit, everything=False)
    monkeypatch.setattr(pm4_recorder.Pm4Recorder, "_separate", separate)
    with opened(EmulatedRadeon([KINDS[kind]])) as device:
        broken(device, False, "nothing waited for that kernel; send EVENT_WRITE of CS_PARTIAL_FLUSH")


@pytest.mark.parametrize("kind", PM4_KINDS)
def test_no_write_back_before_a_copy(kind, monkeypatch):
    with opened(EmulatedRadeon([KINDS[kind]])) as device:
        monkeypatch.setattr(type(device.generation), "write_back", {})
        broken(device, True, "AMD copy", "copy reads 0x", "which kernel twice of",
               "no RELEASE_MEM or ACQUIRE_MEM with write-back of the L2 came between")


@pytest.mark.parametrize("kind", PM4_KINDS)
def test_no_invalidation_behind_a_copy(kind, monkeypatch):
    def wait_only(self, address, value):
        self._place(pm4.WaitRegMem, pm4.WaitRegMem.address, address=address, reference=value)
    monkeypatch.setattr(pm4_recorder.Pm4Recorder, "_await", wait_only)
    with opened(EmulatedRadeon([KINDS[kind]])) as device:
        broken(device, True, "which copy of queue 1 wrote: no ACQUIRE_MEM that empties")


def test_aql_packets_without_fences(monkeypatch):
    def packet(self, kind, **values):
        self.marks.append(max(len(self.commands) - 1, 0))
        self.emit(kind, barrier=1, acquire=aql.Scope.NONE, release=aql.Scope.NONE, **values)
    monkeypatch.setattr(aql_recorder.AqlRecorder, "_packet", packet)
    with opened(EmulatedRadeon([KINDS["gfx942"]])) as device:
        broken(device, False, "queue 0 wrote: no ACQUIRE_MEM that empties")
    with opened(EmulatedRadeon([KINDS["gfx942"]])) as device:
        broken(device, True, "copy reads", "with write-back of the L2")


def test_atomics_go_past_the_caches(monkeypatch):
    """A counter that kernels share needs no invalidation between them."""
    with opened(EmulatedRadeon([KINDS["gfx1100"]])) as device:
        only_at_the_start(device, monkeypatch)
        counter = filled(device, bytes(64))
        [code] = device.compile([Source("count", f"KERNEL(count, 64){COUNT}", PREAMBLE)])
        queue = device.queue()
        for _ in range(2):
            queue.execute(device.load(code, "count", 64), [counter.address], 1)
        with Context(CHECK=1):
            device.synchronize(queue.finish().submit())
        assert counter.copyout()[0] == 128


class Everywhere:
    """A page table that has everything, cached."""
    flags = 0

    def find(self, address):
        return self


def test_the_rules():
    caches, table = Caches(), Everywhere()
    first = caches.agent("A", "kernel one", True)
    caches.wrote(first, 0x1ffc, 8, table)                   # over a page's end
    caches.read(first, 0x1ffc, 8)                           # its own
    caches.read(caches.agent("A", "kernel two", True), 0x1ff8, 4)
    caches.read(caches.agent("A", "kernel two", True), 0x2004, 400)
    for address in (0x1ffc, 0x2000, 0x2003, 0x1ff9):
        with pytest.raises(StaleError, match="two reads .*, which kernel one of A wrote: nothing waited"):
            caches.read(caches.agent("A", "kernel two", True), address, 4)
    caches.finish("A")
    with pytest.raises(StaleError, match="no ACQUIRE_MEM"):
        caches.read(caches.agent("A", "kernel two", True), 0x2000, 4)
    caches.read(caches.agent("A", "COPY_DATA", False), 0x2000, 4)
    caches.acquire("A")
    caches.read(caches.agent("A", "kernel two", True), 0x2000, 4)
    with pytest.raises(StaleError, match="copy reads 0x2000, which kernel one of A wrote: no RELEASE_MEM"):
        caches.read(caches.agent("C", "copy", False), 0x2000, 4)
    caches.write_back("A")
    caches.read(caches.agent("C", "copy", False), 0x2000, 4)
    with pytest.raises(StaleError, match="no ACQUIRE_MEM"):
        caches.read(caches.agent("B", "kernel three", True), 0x2000, 4)


def test_a_wait_behind_a_signal_is_a_wait_for_the_kernels_before_it():
    caches, table = Caches(), Everywhere()
    caches.wrote(caches.agent("A", "one", True), 0, 4, table)
    reader = caches.agent("A", "COPY_DATA", False)
    caches.waited("A")
    with pytest.raises(StaleError):
        caches.read(reader, 0, 4)
    caches.signal("A")
    caches.waited("A")
    caches.read(reader, 0, 4)
