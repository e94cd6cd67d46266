"""Buffers: reuse after the timeline has passed, the host's memory in place, limits and their errors."""
import gc
import math
import mmap
import threading

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hcq.conftest import read
from tiny.hcq.errors import OutOfMemory
from tiny.hcq.memory import ALIGNMENT, LARGE, Allocator, size_class
from tiny.hcq.queue import Slot


class Pages:
    """Stands for the system: hands out made-up addresses and remembers what is mapped."""
    def __init__(self, capacity=1 << 40):
        self.mapped, self.next, self.capacity = {}, 1 << 30, capacity

    def map(self, size):
        if sum(self.mapped.values()) + size > self.capacity:
            raise OSError(12, "Cannot allocate memory")
        self.next += 1 << 32
        self.mapped[self.next] = size
        return self.next

    def unmap(self, address, size):
        assert self.mapped.pop(address) == size


class Clock:
    submitted = completed = 0


def make(limit=0, capacity=1 << 40):
    pages, clock = Pages(capacity), Clock()
    timeline = (lambda: clock.submitted), (lambda: clock.completed)
    return Allocator("TEST", pages.map, pages.unmap, *timeline, limit), pages, clock


@given(st.integers(1, 1 << 40))
def test_size_classes_waste_at_most_an_eighth(size):
    block = size_class(size)
    assert block >= size and block % ALIGNMENT == 0 and size_class(block) == block
    assert block - size < max(ALIGNMENT, size / 8 + 1)


@given(st.lists(st.integers(0, 3 << 20), max_size=60))
def test_blocks_are_aligned_and_never_overlap(sizes):
    allocator, _, _ = make()
    blocks = sorted(allocator.take(size)[:2] for size in sizes)
    assert all(address % ALIGNMENT == 0 for address, _ in blocks)
    assert all(a + size <= b for (a, size), (b, _) in zip(blocks, blocks[1:], strict=False))
    assert allocator.held == sum(size for _, size in blocks)


def test_a_block_is_reused_with_the_point_of_its_last_use():
    allocator, _, clock = make()
    address, block, ready = allocator.take(1000)
    assert ready == 0
    clock.submitted = 7
    allocator.give_back(address, block)
    assert allocator.take(1000) == (address, block, 7) and allocator.held == block


def test_owners_are_kept_until_the_timeline_has_passed():
    allocator, _, clock = make()

    class Owner:
        def __del__(self):
            gone.append(True)
    gone = []
    clock.submitted = 3
    allocator.retire(Owner())
    for clock.completed in (0, 2):
        allocator.take(1)
        assert not gone
    clock.completed = 3
    allocator.take(1)
    assert gone


def test_freed_large_blocks_go_back_to_the_system_once_they_are_too_many():
    allocator, pages, clock = make()
    blocks = [allocator.take(64 << 20)[:2] for _ in range(10)]
    clock.submitted = 1
    for address, block in blocks:
        allocator.give_back(address, block)
    allocator.take(1)
    assert len(pages.mapped) == 11                          # still in use on the device
    clock.completed = 1
    allocator.take(1)
    assert len(pages.mapped) == 1 + 4                       # 256 MiB are kept
    allocator.trim()
    assert len(pages.mapped) == 1 and allocator.kept == 0


def test_the_limit_is_an_error_that_says_what_is_held():
    allocator, _, _ = make(limit=1 << 20)
    address, block, _ = allocator.take(600 << 10)
    with pytest.raises(OutOfMemory, match="TEST: .* wanted, 655360 held, MEMORY_LIMIT is 1048576; drop"):
        allocator.take(600 << 10)
    allocator.give_back(address, block)
    allocator.take(900 << 10)                               # the freed block is unmapped to make room


def test_when_the_system_has_no_more_what_is_kept_is_given_back_first():
    allocator, _, _ = make(capacity=10 << 20)
    address, block, _ = allocator.take(6 << 20)
    allocator.give_back(address, block)
    allocator.take(7 << 20)
    with pytest.raises(MemoryError, match="the system has no more .Cannot allocate memory.; drop tensors"):
        allocator.take(7 << 20)


def test_buffers_are_aligned_and_freed_with_their_last_reference(cpu):
    gc.collect()
    cpu.allocate(1)
    held = cpu.allocator.held
    buffers = [cpu.allocate(size) for size in (0, 1, 63, 64, 65, 5000, LARGE, 9 << 20)]
    assert all(buffer.address % ALIGNMENT == 0 for buffer in buffers)
    assert cpu.allocator.held > held + (9 << 20)
    del buffers
    cpu.allocate(1)
    assert cpu.allocator.held <= held


def test_a_view_keeps_its_buffer(cpu):
    view = cpu.allocate(4096).initialize(b"x" * 4096).host()
    gc.collect()
    others = [cpu.allocate(4096).initialize(b"y" * 4096) for _ in range(5)]
    assert bytes(view) == b"x" * 4096 and len(others) == 5


def test_a_reused_block_is_not_touched_by_the_host_while_commands_use_it(cpu, programs):
    for _ in range(20):
        first = cpu.allocate(8192)
        queue = cpu.queue()
        queue.execute(programs["slow"], [300000])
        queue.execute(programs["increment"], [first.address], 1024)
        queue.finish().submit()
        del first
        second = cpu.allocate(8192).initialize(b"\7" * 8192)
        cpu.synchronize()
        assert second.copyout() == b"\7" * 8192


def test_copyin_and_copyout_wait_for_what_is_submitted(cpu, words, programs):
    buffer = words(2)
    queue = cpu.queue()
    queue.execute(programs["slow"], [1000000])
    queue.execute(programs["store"], [buffer.address, Slot(0)])
    template = queue.finish()
    template.submit([5])
    assert buffer.copyout()[:8] == (5).to_bytes(8, "little")
    template.submit([6])
    buffer.copyin((9).to_bytes(8, "little"))
    assert read(buffer) == [9, 0]
    template.submit([7])
    target = bytearray(8)
    assert buffer.copyout(target) is target and target[0] == 7


def test_too_much_data_is_an_error_with_both_sizes(cpu):
    buffer = cpu.allocate(1024)
    with pytest.raises(ValueError, match="Buffer.copyin: 4096 given, 1024 held; slice the source"):
        buffer.copyin(bytes(4096))
    with pytest.raises(ValueError, match="Buffer.copyout: 4096 wanted, 1024 held; slice"):
        buffer.copyout(bytearray(4096))


@pytest.mark.parametrize("make_source", [
    bytearray, lambda n: numpy.zeros(n, "u1"), lambda n: mmap.mmap(-1, n)])
def test_host_memory_is_used_in_place(cpu, programs, run, make_source):
    source = make_source(8000)
    buffer = cpu.from_host(source)
    run(programs["increment"], [buffer.address], 1000)
    assert memoryview(source).cast("B").cast("Q").tolist() == [1] * 1000 and not buffer.readonly
    buffer.host()[0] = 77
    assert source[0] == 77


def test_read_only_host_memory_is_read_but_not_written(cpu, words, programs):
    source = bytes(range(256))
    buffer, target = cpu.from_host(source), cpu.allocate(256)
    queue = cpu.queue()
    queue.copy(target.address, buffer.address, 256)
    cpu.synchronize(queue.finish().submit())
    assert target.copyout() == source and buffer.host().readonly
    with pytest.raises(ValueError, match="read-only host object; copy it first"):
        buffer.copyin(b"x")


def test_host_memory_stays_in_place_until_its_commands_are_done(cpu, programs):
    source = bytearray(8192)
    buffer = cpu.from_host(source)
    queue = cpu.queue()
    queue.execute(programs["slow"], [300000])
    queue.execute(programs["increment"], [buffer.address], 1024)
    queue.finish().submit()
    with pytest.raises(BufferError):
        source.extend(b"x")                                 # it is lent, so it cannot move
    del buffer
    cpu.synchronize()
    cpu.allocate(1)
    source.extend(b"x")
    assert source[0] == 1


def test_host_memory_that_cannot_be_lent_is_an_error(cpu):
    with pytest.raises(ValueError, match="must be contiguous; copy it first"):
        cpu.from_host(memoryview(bytearray(100))[::2])
    with pytest.raises(TypeError):
        cpu.from_host(5)
    assert cpu.from_host(b"").size == 0


@pytest.mark.parametrize("dtype", ["float16", "bool", "int64", "float32"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (0, 3)])
def test_arrays_of_any_type_and_shape(cpu, dtype, shape):
    array = numpy.arange(24)[:math.prod(shape)].reshape(shape).astype(dtype)
    buffer = cpu.allocate(array.nbytes).initialize(array)
    assert buffer.copyout() == array.tobytes() == cpu.from_host(array).copyout()
    result = numpy.ones_like(array)
    buffer.copyout(result)
    assert (result == array).all()


def test_threads_allocate_at_the_same_time(cpu):
    errors = []

    def work(index):
        for step in range(200):
            data = bytes([index]) * (64 + 37 * step)
            if cpu.allocate(len(data)).initialize(data).copyout() != data:
                errors.append((index, step))
    threads = [threading.Thread(target=work, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
