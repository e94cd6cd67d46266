"""Failures in more detail than the table of test_faults.py: what is dropped, what goes on, what is kept."""
import contextlib
import errno
import threading
import time

import pytest

from tests.hcq.amd.conftest import copied, filled, opened
from tiny.autogen import kfd_6_12 as kfd
from tiny.config import Context
from tiny.emulator.amd.kernel.cards import cards_named
from tiny.emulator.amd.kernel.events import KernelError
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq.errors import CommandError, DeviceError, WaitTimeout

NOWHERE = 0xdead0000


class Failing(EmulatedRadeon):
    """Refuses one call with an errno, after `passed` calls of that kind."""

    def __init__(self, name="", number=0, passed=0):
        super().__init__(cards_named("gfx1100"))
        self.fail(name, number, passed)

    def fail(self, name, number, passed):
        self.request, self.number, self.left = getattr(kfd, f"AMDKFD_IOC_{name}", 0), number, passed

    def ioctl(self, fd, request, argument):
        if request == self.request:
            self.left -= 1
            if self.left < 0:
                raise KernelError(self.number, "injected")
        super().ioctl(fd, request, argument)


def works(device):
    """Whether a copy goes through."""
    source, target = filled(device, bytes(range(100))), filled(device, bytes(100))
    copied(device, target.address, source.address, 100)
    return bytes(target.host()) == bytes(range(100))


@pytest.mark.parametrize("call, count", [("ACQUIRE_VM", 1), ("ALLOC_MEMORY_OF_GPU", 11),
                                         ("MAP_MEMORY_TO_GPU", 10), ("CREATE_EVENT", 3), ("CREATE_QUEUE", 2)])
def test_a_card_opens_after_a_call_failed_once_and_nothing_is_left_behind(call, count):
    provider = Failing()
    with opened(provider) as device:
        assert works(device)
    left = len(provider.memory)
    for passed in range(count):
        provider.fail(call, errno.EIO, passed)
        with contextlib.suppress(DeviceError), opened(provider) as device:
            assert works(device)
        assert (len(provider.queues), len(provider.memory)) == (0, left)
        provider.request = 0
        with opened(provider) as device:
            assert works(device)
        assert (len(provider.queues), len(provider.memory)) == (0, left)


def test_a_copy_to_an_unmapped_address(amd):
    source = filled(amd, bytes(100))
    queue = amd.queue()
    queue.copy(NOWHERE, source.address, 16)
    point = queue.finish().submit()
    behind = amd.queue().finish().submit()
    with pytest.raises(CommandError) as error:
        amd.synchronize(point)
    for text in ("AMD copy: a memory fault in the page 0xdead0000: no memory is mapped there",
                 "copy of 16 bytes", "it and the submissions behind it were dropped"):
        assert text in str(error.value)
    assert (error.value.queue, error.value.kernel) == ("AMD copy", None)
    for dropped in (point, behind):
        with pytest.raises(CommandError, match="0xdead0000"):
            amd.synchronize(dropped)
    amd.synchronize()
    assert works(amd)


def test_a_store_to_an_unmapped_address(amd):
    buffer = filled(amd, bytes(8))
    queue = amd.queue()
    queue.signal(buffer.address, 1)
    queue.signal(NOWHERE, 1)
    with pytest.raises(CommandError, match="AMD compute: a memory fault in the page 0xdead0000"):
        amd.synchronize(queue.finish().submit())
    assert works(amd)


def test_a_fault_just_behind_a_buffer_says_so(amd):
    buffer = amd.allocate(1 << 20)
    end = buffer.address + (1 << 20)
    queue = amd.queue()
    queue.signal(end, 1)
    with pytest.raises(CommandError, match="it is 0 bytes behind the end of the 1048576 bytes mapped at"):
        amd.synchronize(queue.finish().submit())


def test_a_fault_on_one_card_leaves_the_other_alone(pair):
    first, second = pair
    flag = filled(second, bytes(8))
    waiting = second.queue()
    waiting.wait(flag.address, 1)
    point = waiting.finish().submit()
    queue = first.queue()
    queue.signal(NOWHERE, 1)
    with pytest.raises(CommandError, match="AMD compute"):
        first.synchronize(queue.finish().submit())
    second.io.view(flag.address, 8)[0] = 1
    second.synchronize(point)
    assert works(first) and works(second)


def test_a_signal_that_is_never_written_is_a_timeout(amd):
    before = amd.queue().finish().submit()
    queue = amd.queue()
    queue.wait(filled(amd, bytes(8)).address, 5)
    point = queue.finish().submit()
    started = time.monotonic()
    with Context(TIMEOUT_MS=60), pytest.raises(WaitTimeout) as error:
        amd.synchronize(point)
    assert 0.05 < time.monotonic() - started < 5
    assert (error.value.signal, error.value.wanted, error.value.queue) == (before, point, "AMD compute")
    for text in (f"AMD: the queues did not reach point {point} in 60 ms",
                 "the compute queue is at wait for 5", "TIMEOUT_MS", "reset()", "copy queue"):
        assert text in str(error.value)
    amd.reset()
    with pytest.raises(DeviceError, match="dropped by reset"):
        amd.synchronize(point)
    assert works(amd)


def test_a_wait_that_timed_out_may_be_continued(amd):
    flag = filled(amd, bytes(8))
    queue = amd.queue()
    queue.wait(flag.address, 5)
    point = queue.finish().submit()
    with pytest.raises(WaitTimeout):
        amd.synchronize(point, timeout_ms=5)
    threading.Timer(0.05, lambda: amd.io.view(flag.address, 8).__setitem__(0, 5)).start()
    amd.synchronize(point)


def test_a_card_that_does_not_come_back_refuses_further_work(radeon, monkeypatch):
    with opened(radeon) as device:
        queue = device.queue()
        queue.wait(filled(device, bytes(8)).address, 1)
        queue.finish().submit()

        def removed(fd, request, argument):
            raise KernelError(errno.ENODEV, "injected")
        monkeypatch.setattr(radeon, "ioctl", removed)
        for use in (device.reset, device.queue, lambda: device.allocate(1), device.synchronize):
            with pytest.raises(DeviceError, match="could not be brought back .*DESTROY_QUEUE failed with "
                                                  "ENODEV: the card was removed"):
                use()
