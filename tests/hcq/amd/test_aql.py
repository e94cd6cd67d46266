"""AQL queues, which cards of several dies have: order, wrap-around, faults, time limits."""
import threading
import time

import pytest

from tests.hcq.amd.conftest import KINDS, copied, filled, opened
from tests.hcq.amd.test_program import SOURCES, executed_by
from tiny.autogen import amd_hsa as hsa
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq import events
from tiny.hcq.amd import aql
from tiny.hcq.amd.aql_queue import START, AqlQueue
from tiny.hcq.amd.queues import ComputeQueue
from tiny.hcq.errors import CommandError, DeviceError, WaitTimeout
from tiny.hcq.queue import Slot

PACKETS_IN_RING = 64


@pytest.fixture
def mi300(monkeypatch):
    """A gfx942 of eight dies with a small ring."""
    monkeypatch.setattr(ComputeQueue, "ring_bytes", 64 * PACKETS_IN_RING)
    with opened(EmulatedRadeon([KINDS["gfx942"]])) as device:
        assert isinstance(device.compute, AqlQueue)
        yield device


@pytest.fixture
def add(mi300):
    names = [source.name for source in SOURCES]
    return mi300.load(mi300.compile(SOURCES)[names.index("add")], "add", 64)


def test_the_processor_finds_the_queues_struct_by_its_pointers(mi300):
    queue = mi300.compute
    found = hsa.ffi.from_buffer("amd_queue_t *", mi300.io.view(queue._pointer_memory.address, 4096))
    assert found.read_dispatch_id_field_base_byte_offset == 128 == queue.read_at and queue.write_at == 56
    assert found.hsa_queue.size == PACKETS_IN_RING and found.max_cu_id == 303
    copied(mi300, filled(mi300, bytes(8)).address, filled(mi300, bytes(8)).address, 8)
    assert found.write_dispatch_id == found.read_dispatch_id == 3 and mi300.timeline.completed == 1
    assert queue._counter[0] == START - 1
    assert all(queue.ring[start] == aql.Invalid.fixed["type"] for start in range(0, queue.ring_bytes, 64))


def test_kernels_and_copies_alternate_and_symbolic_grids_are_in_items(mi300, add, monkeypatch):
    buffer, seen = filled(mi300, bytes(64)), []

    def store(dispatch, card, table):
        seen.append(dispatch.grid[0])
        table.write_u64(buffer.address + 8, table.read_u64(buffer.address) + len(seen))
    executed_by(monkeypatch, store)
    queue = mi300.queue()
    for groups in (Slot(0), 3, Slot(0, 1)):
        queue.execute(add, [0, 0, 0], groups)
        queue.copy(buffer.address, buffer.address + 8, 8)
    template = queue.finish()
    told = []
    stop = events.subscribe(told.append)
    template.submit([5])
    stop()
    mi300.synchronize(template.submit([7]))
    assert seen == [320, 192, 384, 448, 192, 512] and buffer.host().cast("Q")[0] == sum(range(1, 7))
    commands = next(event.commands for event in told if isinstance(event, events.Submitted))
    packets = list(aql.Aql.stream(commands))
    assert [type(packet) for packet in packets[:3]] == [aql.KernelDispatch, aql.BarrierAnd, aql.BarrierAnd]
    assert all(packet.barrier for packet in packets) and packets[0].acquire is aql.Scope.SYSTEM


def test_the_ring_wraps_and_longer_templates_go_in_pieces(mi300, add, monkeypatch):
    count = []
    executed_by(monkeypatch, lambda dispatch, card, table: count.append(1))
    queue = mi300.queue()
    for _ in range(3 * PACKETS_IN_RING):
        queue.execute(add, [0, 0, 0], 1)
    long, queue = queue.finish(), mi300.queue()
    queue.execute(add, [0, 0, 0], 1)
    short = queue.finish()
    for _ in range(100):
        short.submit()
    mi300.synchronize(long.submit())
    mi300.synchronize(short.submit())
    assert len(count) == 101 + 3 * PACKETS_IN_RING and mi300.compute.position > 4 * mi300.compute.ring_bytes


def test_the_kernel_that_faults_is_named_and_the_queue_comes_back(mi300, add, monkeypatch):
    count = []

    def fault(dispatch, card, table):
        count.append(1)
        if len(count) == 2:
            table.write_u32(0xdead0000, 1)
    executed_by(monkeypatch, fault)
    queue = mi300.queue()
    for groups in (1, 2, 3):
        queue.execute(add, [0, 0, 0], groups)
    template = queue.finish()
    message = "AMD compute: .*0xdead0000.* at kernel add, 2 groups of 64"
    with pytest.raises(CommandError, match=message) as error:
        mi300.synchronize(template.submit())
    assert error.value.kernel == "add"
    mi300.synchronize(template.submit())
    assert len(count) == 5


def test_time_limits_interrupts_and_reset(mi300):
    flag, result = filled(mi300, bytes(8)), filled(mi300, bytes(8))
    queue = mi300.queue()
    queue.wait(flag.address, 2)
    queue.signal(result.address, 7)
    template = queue.finish()
    with pytest.raises(WaitTimeout, match="the copy queue is at"):
        mi300.synchronize(template.submit(), timeout_ms=20)
    mi300.reset()
    with pytest.raises(DeviceError, match="dropped by reset"):
        mi300.synchronize(1)
    point = template.submit()
    threading.Timer(0.05, lambda: mi300.io.view(flag.address, 8).__setitem__(0, 2)).start()
    started = time.monotonic()
    mi300.synchronize(point)
    assert time.monotonic() - started < 5 and result.host()[0] == 7
