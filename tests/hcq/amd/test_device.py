"""Memory, copies, timelines and many submissions on emulated cards; no kernel runs here."""
import gc
import random
import threading

import pytest

from tests.hcq.amd.conftest import copied, filled, opened
from tiny.emulator.amd.kernel.cards import cards_named
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq import events
from tiny.hcq.amd import pm4, sdma
from tiny.hcq.amd.queues import ComputeQueue, CopyQueue
from tiny.hcq.amd.transfers import Transfers
from tiny.hcq.errors import DeviceError, OutOfMemory
from tiny.hcq.queue import Slot

SMALL_RING = 4096


@pytest.mark.parametrize("size", [1, 3, 64, 511, 513, 4096, 65537, (9 << 20) + 5])
def test_what_is_written_is_read_back(card, size):
    data = random.Random(size).randbytes(size)
    buffer = card.allocate(size + 7)
    buffer.copyin(data)
    assert bytes(buffer.host())[:size] == data
    assert buffer.copyout(bytearray(size)) == data
    assert buffer.host().readonly and buffer.address % 64 == 0


@pytest.mark.parametrize("offsets", [(0, 0), (1, 2), (3, 0), (0, 61)])
@pytest.mark.parametrize("size", [1, 31, 4097, (4 << 20) + 3])
def test_the_copy_engine_copies_any_bytes(card, size, offsets):
    data = random.Random(size).randbytes(size + 64)
    source, target = filled(card, data), filled(card, bytes(size + 128))
    to, start = offsets
    copied(card, target.address + to, source.address + start, size)
    assert bytes(target.host())[:to + size + 8] == bytes(to) + data[start:start + size] + bytes(8)


def test_copies_in_a_row_see_each_others_results(card):
    first, second = filled(card, bytes(range(200))), filled(card, bytes(200))
    queue = card.queue()
    queue.copy(second.address + 10, first.address, 90)
    queue.timestamp(first.address)
    queue.copy(second.address, first.address, 8)
    queue.signal(first.address + 8, 77)
    queue.copy(second.address + 8, first.address + 8, 8)
    card.synchronize(queue.finish().submit())
    words = second.copyout()
    assert int.from_bytes(words[:8], "little") > 0 and int.from_bytes(words[8:16], "little") == 77
    assert words[16:100] == bytes(range(6, 90))


def test_slots_are_filled_at_submission(card):
    source, target = filled(card, bytes(range(256))), filled(card, bytes(256))
    queue = card.queue()
    queue.copy(Slot(0, 1), Slot(2), Slot(1))
    queue.signal(Slot(0, 128), Slot(1, 5))
    template = queue.finish()
    assert template.slot_count == 3
    template.submit([target.address, 3, source.address + 100])
    template.submit([target.address + 8, 9, source.address])
    card.synchronize(template.submit((target.address + 32, 2, source.address + 7)))
    words = bytes(target.host())
    assert words[:18] == bytes([0, 100, 101, 102, *[0] * 5, *range(9)]) and words[33:35] == bytes([7, 8])
    assert [int.from_bytes(words[at:at + 8], "little") for at in (128, 136, 160)] == [8, 14, 7]
    with pytest.raises(ValueError, match="Template.submit: 2 values given, 3 slots recorded"):
        template.submit([1, 2])


def test_timestamps_count_the_cards_clock(amd):
    buffer = filled(amd, bytes(64))
    queue = amd.queue()
    queue.timestamp(buffer.address)
    queue.timestamp(buffer.address + 8)
    before = amd.memory.kfd.clock_counters(amd.card.gpu_id)[0]
    amd.synchronize(queue.finish().submit())
    after = amd.memory.kfd.clock_counters(amd.card.gpu_id)[0]
    first, second = buffer.host().cast("Q")[:2]
    assert before <= first <= second <= after and amd.clock_hz == 100_000_000


@pytest.fixture
def small_rings(monkeypatch):
    """A gfx1100 with rings of a page."""
    monkeypatch.setattr(ComputeQueue, "ring_bytes", SMALL_RING)
    monkeypatch.setattr(CopyQueue, "ring_bytes", SMALL_RING)
    with opened(EmulatedRadeon(cards_named("gfx1100"))) as device:
        yield device


def test_rings_wrap_around_after_thousands_of_submissions(small_rings):
    amd = small_rings
    counter, source = filled(amd, bytes(8)), filled(amd, bytes(range(64)))
    queue = amd.queue()
    queue.copy(counter.address, source.address, 5)
    queue.signal(counter.address, Slot(0))
    template = queue.finish()
    for number in range(1, 2000):
        point = template.submit([number])
        assert amd.io.view(counter.address, 8).cast("Q")[0] == number
    amd.synchronize(point)
    assert point == 1999 and len(template.instances) == 1
    assert amd.compute.position > 20 * SMALL_RING and amd.copies.position > 20 * SMALL_RING


def test_more_copies_than_fit_into_the_ring_go_in_pieces(small_rings):
    source, target = filled(small_rings, bytes(range(250)) * 2), filled(small_rings, bytes(500))
    queue = small_rings.queue()
    for number in range(500):
        queue.copy(target.address + number, source.address + 499 - number, 1)
    template = queue.finish()
    assert len(template.copies.image) > 3 * SMALL_RING
    for _ in range(3):
        small_rings.synchronize(template.submit())
        assert bytes(target.host()) == bytes(range(250))[::-1] * 2
        target.copyin(bytes(500))


def test_templates_wait_for_others_and_keep_their_own_values(amd):
    flag, results = filled(amd, bytes(8)), filled(amd, bytes(8 * 64))
    gate = amd.queue()
    gate.wait(flag.address, 1)
    gate.finish().submit()
    queue = amd.queue()
    queue.signal(Slot(0), Slot(1))
    template = queue.finish()
    for number in range(12):
        template.submit([results.address + 8 * number, number + 1])
    assert len(template.instances) == 12 and amd.timeline.completed < amd.timeline.submitted
    amd.io.view(flag.address, 8)[0] = 1
    amd.synchronize()
    assert list(results.host().cast("Q")[:13]) == [*range(1, 13), 0]


def test_more_submissions_than_a_template_has_instances_wait_for_the_oldest(amd):
    flag, result = filled(amd, bytes(8)), filled(amd, bytes(8))
    gate = amd.queue()
    gate.wait(flag.address, 1)
    gate.finish().submit()
    queue = amd.queue()
    queue.signal(result.address, Slot(0))
    template = queue.finish()
    timer = threading.Timer(0.1, lambda: amd.io.view(flag.address, 8).__setitem__(0, 1))
    timer.start()
    for number in range(40):
        template.submit([number])
    amd.synchronize()
    timer.join()
    assert result.host()[0] == 39 and len(template.instances) == 16


def test_a_template_of_many_commands_is_one_submission(amd):
    results, source = filled(amd, bytes(8 * 300)), filled(amd, bytes(range(256)))
    queue = amd.queue()
    for number in range(300):
        queue.signal(results.address + 8 * number, Slot(0, number))
        if number % 100 == 50:
            queue.copy(results.address + 8 * number, source.address + 8, 8)
    template = queue.finish()
    seen = []
    stop = events.subscribe(seen.append)
    amd.synchronize(template.submit([7]))
    stop()
    found = list(results.host().cast("Q"))
    expected = [7 + number for number in range(300)]
    for number in (50, 150, 250):
        expected[number] = int.from_bytes(bytes(range(8, 16)), "little")
    assert found == expected
    submitted = [event for event in seen if isinstance(event, events.Submitted)]
    assert [event.queue for event in submitted] == ["compute", "copy"]
    kinds = {type(packet) for packet in pm4.Pm4.stream(submitted[0].commands)}
    assert {pm4.ReleaseMem, pm4.WaitRegMem, pm4.AcquireMem} <= kinds
    assert {sdma.PollRegMem, sdma.CopyLinear, sdma.Fence} <= set(map(type, sdma.Sdma.stream(
        submitted[1].commands)))


def test_memory_comes_back(amd, radeon):
    held = len(radeon.memory), radeon.gpus[amd.card.gpu_id].vram_used
    for _ in range(20):
        buffers = [amd.allocate(3 << 20) for _ in range(4)]
        copied(amd, buffers[0].address, buffers[1].address, 3 << 20)
        del buffers
    amd.allocator.trim()
    gc.collect()
    assert radeon.gpus[amd.card.gpu_id].vram_used - held[1] <= 2 << 20 and len(radeon.memory) <= held[0] + 2


def test_a_closed_device_leaves_nothing_in_the_driver(radeon):
    with opened(radeon) as device:
        copied(device, filled(device, bytes(100)).address, filled(device, bytes(100)).address, 50)
    assert not radeon.queues and radeon.gpus[device.card.gpu_id].vram_used == 0
    assert len(radeon.memory) == 1                           # the event page, which belongs to the process
    with opened(radeon) as again:
        copied(again, filled(again, bytes(100)).address, filled(again, bytes(100)).address, 50)
    with pytest.raises(DeviceError, match="the device was closed"):
        device.allocate(1)


def test_no_room_is_an_error_with_the_way_out(amd):
    with pytest.raises(OutOfMemory, match="AMD: .* bytes wanted, .* held, the system has no more"):
        amd.allocate(30 << 30)
    assert amd.allocate(100).size == 100


def test_host_memory_is_used_in_place(amd):
    data = bytearray(range(256)) * 20
    buffer, target = amd.from_host(data), filled(amd, bytes(5120))
    copied(amd, target.address, buffer.address, 5120)
    assert bytes(target.host()) == data
    data[3] = 99
    copied(amd, buffer.address + 100, buffer.address, 4)
    assert data[100:104] == bytes([0, 1, 2, 99]) and buffer.host()[103] == 99
    again = amd.from_host(data)
    copied(amd, again.address, target.address + 8, 8)
    assert data[:8] == bytes(range(8, 16))
    with pytest.raises(ValueError, match="read-only"):
        amd.from_host(bytes(range(100))).copyin(b"x")


def test_two_cards_copy_from_each_other(pair):
    first, second = pair
    assert (first.name, second.name) == ("AMD", "AMD:1")
    source, target = filled(first, bytes(range(256))), filled(second, bytes(256))
    second.reach(source)
    copied(second, target.address, source.address, 200)
    assert bytes(target.host())[:201] == bytes(range(200)) + b"\0"
    first.reach(target)
    copied(first, source.address, target.address + 50, 20)
    assert bytes(source.host())[:20] == bytes(range(50, 70))


@pytest.mark.parametrize("size", [1, 70_000, (4 << 20) + 5])
def test_a_card_receives_a_buffer_of_another_without_the_host(pair, monkeypatch, size):
    first, second = pair
    data = (bytes(range(251)) * -(-size // 251))[:size]
    source = filled(first, data)
    monkeypatch.setattr(Transfers, "read", None)
    made = second.receive(source)
    monkeypatch.undo()
    assert made.device is second and made.copyout() == data


def test_a_card_waits_for_another(pair):
    first, second = pair
    flag, result = filled(first, bytes(8)), filled(second, bytes(8))
    second.reach(flag)
    queue = second.queue()
    queue.wait(flag.address, 3)
    queue.signal(result.address, 5)
    point = queue.finish().submit()
    assert second.timeline.completed < point
    queue = first.queue()
    queue.signal(flag.address, 3)
    first.synchronize(queue.finish().submit())
    second.synchronize(point)
    assert result.host()[0] == 5


def test_threads_share_a_device(amd):
    def work(number):
        buffer, other = filled(amd, bytes([number]) * 5000), filled(amd, bytes(5000))
        for _ in range(20):
            copied(amd, other.address, buffer.address, 5000)
            assert bytes(other.host()) == bytes([number]) * 5000
        done.append(number)
    done = []
    threads = [threading.Thread(target=work, args=[number]) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [1, 2, 3, 4]
