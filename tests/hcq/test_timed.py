"""Queues that tell when their commands ran: on the CPU and on emulated cards."""
import gc
import os
import subprocess
import sys
import time
import weakref

import pytest

from tests.hcq.amd.conftest import opened
from tiny import Context
from tiny.emulator.amd.kernel.cards import cards_named
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq import device as devices
from tiny.hcq import events
from tiny.hcq.queue import Slot
from tiny.hcq.timed import TimedQueue


@pytest.fixture
def told():
    """The events.Ran of a test."""
    seen: list[events.Ran] = []
    stop = events.subscribe(lambda event: seen.append(event) if isinstance(event, events.Ran) else None)
    yield seen
    stop()


@pytest.fixture(params=["CPU", "gfx1100", "gfx942"])
def device(request):
    if request.param == "CPU":
        yield devices.open("CPU")
    else:
        with opened(EmulatedRadeon(cards_named(request.param))) as card:
            yield card


def test_each_command_has_its_time_in_order(device, told):
    buffer = device.allocate(256).initialize(bytes(range(128)) * 2)
    queue = TimedQueue(device.queue())
    queue.copy(buffer.address, buffer.address + 128, 64)
    queue.signal(buffer.address + 64, Slot(0))
    queue.wait(buffer.address + 64, Slot(0))
    queue.barrier()
    queue.copy(Slot(1), buffer.address + 64, Slot(2))
    template = queue.finish()
    assert template.slot_count == 3
    before = time.monotonic_ns()
    for number in (5, 9):
        device.synchronize(template.submit([number, buffer.address + 200, 8]))
    assert buffer.host()[200] == 9 and buffer.host()[64] == 9
    events.flush()
    after = time.monotonic_ns()
    assert [event.point for event in told] == sorted(event.point for event in told) and len(told) == 2
    for event in told:
        assert [(span.name, span.where) for span in event.commands] == [
            ("copy", "copy"), ("signal", "compute"), ("wait", "compute"), ("copy", "copy")]
        assert event.commands[0].details == {"bytes": 64} and event.commands[3].details == {}
        ends = [event.start_ns, *(span.end_ns for span in event.commands)]
        assert ends == sorted(ends) and ends[-1] == event.end_ns
        assert before - 1_000_000 <= event.start_ns and event.end_ns <= after + 1_000_000


def test_many_submissions_have_their_own_times(device, told):
    buffer = device.allocate(64)
    queue = TimedQueue(device.queue())
    queue.copy(buffer.address, buffer.address + 32, 8)
    template = queue.finish()
    for _ in range(40):
        template.submit()
    events.flush()
    starts = [event.start_ns for event in sorted(told, key=lambda event: event.point)]
    assert len(starts) == 40 and starts == sorted(starts)


def test_a_timed_device_can_be_let_go(told):
    with opened(EmulatedRadeon(cards_named("gfx1100"))) as card:
        queue = TimedQueue(card.queue())
        queue.barrier()
        card.synchronize(queue.finish().submit())
        events.flush()
    gone = weakref.ref(card)
    del card, queue
    gc.collect()
    assert len(told) == 1 and gone() is None


def test_what_was_dropped_has_no_times(told):
    device = devices.open("CPU")
    flag = device.allocate(8).initialize(bytes(8))
    queue = TimedQueue(device.queue())
    queue.wait(flag.address, 1)
    queue.finish().submit()
    device.reset()
    events.flush()
    assert told == []


def test_telling_does_not_wait_for_what_never_ends_more_than_once(told):
    device = devices.open("CPU")
    flag = device.allocate(8).initialize(bytes(8))
    queue = TimedQueue(device.queue())
    queue.wait(flag.address, 1)
    template = queue.finish()
    for _ in range(5):
        template.submit()
    start = time.monotonic()
    with Context(TIMEOUT_MS=1000):                          # each of the five would wait as long
        events.flush()
    assert 0.9 < time.monotonic() - start < 4.5 and told == []
    device.reset()
    with Context(TIMEOUT_MS=300):
        events.flush()
    assert told == []


def test_all_is_told_before_devices_close_at_the_end_of_a_process():
    """Two cards: the second is opened after the first has been used."""
    code = """
import tiny
from tiny.hcq import device, events
from tiny.hcq.timed import TimedQueue
events.subscribe(lambda event: print(event.device, event.point) if isinstance(event, events.Ran) else None)
for name in ("AMD", "AMD:1"):
    queue = TimedQueue(device.open(name).queue())
    queue.barrier()
    queue.finish().submit()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                          env=os.environ | {"EMULATE": "gfx1100,gfx942"})
    assert (done.stdout, done.stderr) == ("AMD 1\nAMD:1 1\n", "")
