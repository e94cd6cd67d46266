"""Recording, slots, templates: what a submission writes, and that commands run in order."""
import random
import struct
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hcq.conftest import read
from tiny.hcq import events
from tiny.hcq.cpu.engine import RING_BYTES
from tiny.hcq.cpu.packets import Command, Copy, Execute, Signal
from tiny.hcq.queue import FEW_SLOTS, Slot
from tiny.toolchain import Source


def test_an_executed_kernel_sees_its_arguments_and_all_groups(words, programs, run):
    buffer = words(1000)
    run(programs["increment"], [buffer.address], 1000)
    run(programs["increment"], [buffer.address], 7)
    assert read(buffer) == [2] * 7 + [1] * 993


@pytest.mark.parametrize("groups", [0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 4097])
def test_every_group_runs_once(words, programs, run, groups):
    buffer = words(groups + 1)
    run(programs["increment"], [buffer.address], groups)
    run(programs["increment"], [buffer.address], groups)
    assert read(buffer) == [2] * groups + [0]


def test_each_command_sees_what_the_ones_before_wrote(cpu, words, programs):
    buffer = words(1)
    queue = cpu.queue()
    for _ in range(10):
        queue.execute(programs["add_value"], [buffer.address, 1])
        queue.execute(programs["double_first"], [buffer.address])
        queue.barrier()
    cpu.synchronize(queue.finish().submit())
    assert read(buffer) == [2046]


def test_many_groups_are_finished_before_the_next_command(cpu, words, programs):
    buffer, copy = words(5000), words(5000)
    queue = cpu.queue()
    for _ in range(20):
        queue.execute(programs["increment"], [buffer.address], 5000)
        queue.copy(copy.address, buffer.address, 40000)
        queue.execute(programs["increment"], [copy.address], 5000)
        queue.copy(buffer.address, copy.address, 40000)
    cpu.synchronize(queue.finish().submit())
    assert read(buffer) == [40] * 5000


def test_slots_are_filled_at_submission(cpu, words, programs):
    buffer = words(4)
    queue = cpu.queue()
    queue.execute(programs["add_value"], [Slot(0), Slot(1)], Slot(2))
    queue.execute(programs["store"], [Slot(0, 24), Slot(1, -1)])
    template = queue.finish()
    assert template.slot_count == 3
    template.submit([buffer.address, 5, 2])
    template.submit((buffer.address, 7, 3))
    template.submit([buffer.address, 7, 3])
    cpu.synchronize()
    assert read(buffer) == [19, 19, 14, 6]


def test_a_submission_does_not_change_one_that_is_still_waiting(cpu, words, programs):
    buffer = words(300)
    queue = cpu.queue()
    queue.execute(programs["slow"], [200000])
    queue.execute(programs["store"], [Slot(0), Slot(1)])
    template = queue.finish()
    for index in range(300):
        template.submit([buffer.address + 8 * index, index])
    cpu.synchronize()
    assert read(buffer) == list(range(300))


def test_negative_and_large_values_wrap(cpu, words, programs):
    buffer = words(2)
    queue = cpu.queue()
    queue.execute(programs["store"], [buffer.address, Slot(0)])
    queue.execute(programs["store"], [buffer.address + 8, -3])
    template = queue.finish()
    for value in (-1, 2**64 - 2, -2**63):
        cpu.synchronize(template.submit([value]))
        assert read(buffer) == [value % 2**64, 2**64 - 3]


def test_the_wrong_number_of_values_is_an_error(cpu, programs):
    queue = cpu.queue()
    queue.execute(programs["store"], [Slot(0), Slot(3)])
    template = queue.finish()
    with pytest.raises(ValueError, match="Template.submit: 3 values given, 4 slots recorded"):
        template.submit([1, 2, 3])


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 3 * FEW_SLOTS), st.integers(0, 2**32), st.data())
def test_the_image_holds_the_values_however_many_slots_there_are(cpu, programs, count, seed, data):
    """One place at a time, or the whole image at once: the same bytes."""
    chance = random.Random(seed)
    arguments = [Slot(chance.randrange(count), chance.choice([0, 0, 8, -8])) for _ in range(2 * count)]
    arguments.append(Slot(count - 1))
    queue = cpu.queue()
    queue.execute(programs["store"], arguments, Slot(0))
    template = queue.finish()
    for _ in range(3):
        values = data.draw(st.lists(st.integers(-2**63 + 8, 2**64 - 1), min_size=count, max_size=count))
        template.fill(values)
        execute = next(Command.stream(template.image))
        assert list(execute.arguments) == [(values[s.number] + s.offset) % 2**64 for s in arguments]
        assert execute.groups == values[0] % 2**64


def test_a_patch_reaches_any_field_of_the_last_packet(cpu, words, programs):
    target, source = words(1), words(1)
    queue = cpu.queue()
    queue.copy(target.address, source.address, 8)
    queue.patch(Copy.destination, Slot(0))
    queue.execute(programs["store"], [0], 1)
    queue.patch(Execute.checked, Slot(1))
    template = queue.finish()
    template.fill([99, 1])
    copy, execute, signal = Command.stream(template.image)
    assert (copy.destination, execute.checked, type(signal)) == (99, 1, Signal)


def test_a_thousand_kernels_are_one_submission(cpu, words, programs):
    buffer = words(3)
    queue = cpu.queue()
    for index in range(1000):
        queue.execute(programs["add_value"], [Slot(index % 70), 1], 1 + index % 2)
    template = queue.finish()
    seen = []
    stop = events.subscribe(seen.append)
    try:
        for _ in range(5):
            cpu.synchronize(template.submit([buffer.address] * 70))
    finally:
        stop()
    assert read(buffer) == [5000, 2500, 0]
    assert sum(isinstance(event, events.Submitted) for event in seen) == 5


def test_a_template_larger_than_the_ring_goes_in_pieces(cpu, words, programs):
    buffer = words(1)
    queue = cpu.queue()
    count = 3 * RING_BYTES // Execute.size_bytes // 2
    for _ in range(count):
        queue.execute(programs["add_value"], [buffer.address, Slot(0)])
    template = queue.finish()
    assert len(template.image) > RING_BYTES
    template.submit([1])
    cpu.synchronize(template.submit([2]))
    assert read(buffer) == [3 * count]


def test_the_ring_goes_round_many_times(cpu, words, programs):
    buffer = words(1)
    queue = cpu.queue()
    for _ in range(100):
        queue.execute(programs["add_value"], [buffer.address, 1])
    template = queue.finish()
    submissions = 4 * RING_BYTES // len(template.image)
    for _ in range(submissions):
        template.submit()
    cpu.synchronize()
    assert read(buffer) == [100 * submissions]


def test_threads_submit_and_wait_at_the_same_time(cpu, words, programs):
    counters = words(8)

    def work(index):
        queue = cpu.queue()
        queue.execute(programs["add_value"], [counters.address + 8 * index, Slot(0)])
        template = queue.finish()
        for step in range(300):
            point = template.submit([step])
            if step % 3 == 0:
                cpu.synchronize(point)
    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cpu.synchronize()
    assert read(counters) == [sum(range(300))] * 8


def test_one_template_may_be_submitted_by_several_threads(cpu, words, programs):
    counters = words(4)
    queue = cpu.queue()
    for _ in range(3):
        queue.execute(programs["add_value"], [Slot(0), Slot(1)])
    template = queue.finish()

    def work(index):
        for _ in range(200):
            template.submit([counters.address + 8 * index, index + 1])
    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cpu.synchronize()
    assert read(counters) == [600 * (index + 1) for index in range(4)]


def test_copies_of_all_sizes(cpu):
    for size in (1, 7, 4096, (1 << 18) + 1, (1 << 20) + 13):
        source, target = cpu.allocate(size), cpu.allocate(size)
        data = random.Random(size).randbytes(size)
        source.initialize(data)
        queue = cpu.queue()
        queue.copy(target.address, source.address, Slot(0))
        cpu.synchronize(queue.finish().submit([size]))
        assert target.copyout() == data


def test_timestamps_are_the_monotonic_clock(cpu, words, programs):
    times = words(2)
    queue = cpu.queue()
    queue.timestamp(times.address)
    queue.execute(programs["slow"], [100000])
    queue.timestamp(Slot(0))
    before = time.monotonic_ns()
    cpu.synchronize(queue.finish().submit([times.address + 8]))
    first, second = read(times)
    assert before < first < second < time.monotonic_ns() and second - first > 10000


def test_a_wait_holds_the_queue_until_the_word_is_reached(cpu, words, programs):
    flag, result = words(1), words(1)
    queue = cpu.queue()
    queue.wait(flag.address, 5)
    queue.execute(programs["store"], [result.address, 1])
    point = queue.finish().submit()
    with pytest.raises(TimeoutError):
        cpu.synchronize(point, timeout_ms=30)
    window = cpu.io.view(flag.address, 8).cast("Q")
    assert cpu.io.view(result.address, 8)[0] == 0
    window[0] = 6
    cpu.synchronize(point)
    assert read(result) == [1]


def test_work_is_done_without_anyone_waiting(cpu, words, programs):
    """A small submission wakes nobody, yet it is found within milliseconds."""
    buffer = words(1)
    queue = cpu.queue()
    queue.execute(programs["store"], [buffer.address, Slot(0)])
    template = queue.finish()
    window = cpu.io.view(buffer.address, 8).cast("Q")
    for pause_s in (0, 0.005, 0.2):
        time.sleep(pause_s)
        value = window[0] + 1
        template.submit([value])
        limit = time.monotonic() + 2
        while window[0] != value and time.monotonic() < limit:
            time.sleep(0.001)
        assert window[0] == value


def test_kernels_see_the_default_floating_point_mode(cpu, programs, run):
    buffer = cpu.allocate(8)
    for _ in range(2):                                      # first a worker's thread, then this one
        buffer.copyin(struct.pack("<ff", 1e-45 * 4, 0))
        run(programs["denormal"], [buffer.address])
        assert struct.unpack("<ff", buffer.copyout())[1] > 0


def test_a_dropped_program_stays_until_its_commands_have_run(cpu, words, programs):
    buffer = words(1)
    text = "void short_lived(const unsigned long *args) { ((unsigned long *)args[0])[0] = 3; }"
    program = cpu.load(cpu.compile([Source("short_lived", text)])[0], "short_lived")
    queue = cpu.queue()
    queue.execute(programs["slow"], [3000000])
    queue.execute(program, [buffer.address])
    queue.finish().submit()
    del program, queue
    cpu.allocate(64)
    cpu.synchronize()
    assert read(buffer) == [3]


def test_a_program_is_loaded_into_memory_that_earlier_commands_are_done_with(cpu, programs):
    """A dropped buffer's memory may be given to a program while the command that writes it still waits."""
    text = "void seven(const unsigned long *args) { *(unsigned long *)args[0] = 7; }"
    code = cpu.compile([Source("seven", text)])[0]
    result = cpu.allocate(8).initialize(bytes(8))
    for _ in range(50):
        dropped = [cpu.allocate(8) for _ in range(40)]
        queue = cpu.queue()
        queue.execute(programs["slow"], [300_000])
        for buffer in dropped:
            queue.execute(programs["store"], [buffer.address, 0x40400000])
        queue.finish().submit()
        del dropped, buffer
        queue = cpu.queue()
        queue.execute(cpu.load(code, "seven"), [result.address])
        cpu.synchronize(queue.finish().submit())
        assert read(result) == [7]
