"""Everything that can go wrong with a card, one row each: the error, and how the card is afterwards.

For every row: the error says what failed and where; it comes within a limit; what follows either works, with
right results, or is refused clearly; nothing is left behind in the driver.
"""
import contextlib
import errno
import os
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from tests.hcq.amd.conftest import copied, filled, opened
from tests.hcq.amd.test_program import PREAMBLE
from tiny.autogen import kfd_6_12 as kfd
from tiny.config import Context
from tiny.emulator.amd.kernel.cards import CARDS, cards_named
from tiny.emulator.amd.kernel.events import KernelError
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq.amd.topology import TOPOLOGY
from tiny.hcq.errors import CommandError, DeviceError, DeviceUnavailable, OutOfMemory, WaitTimeout
from tiny.toolchain import Source

LIMIT_S = 10.0                                              # of a row, on a busy machine; most take 0.1 s
TIMEOUT_MS = 150
NOWHERE = 0xdead0000
RENDER_NODE, KFD = "/dev/dri/renderD128", "/dev/kfd"


class Card(EmulatedRadeon):
    """A card whose driver is made to fail.

    refused: {call: errno}, of paths `open`, of ioctls by name, of `mmap`; passed: how many go through first;
    once: only the first call behind them fails
    """

    def __init__(self, cards=None):
        super().__init__(cards or cards_named("gfx1100"))
        self.refused, self.passed, self.once, self.calls = {}, 0, False, 0

    def refuse(self, call, number, passed=0, once=False):
        self.refused, self.passed, self.once = {call: number}, passed, once
        return self

    def repair(self):
        self.refused = {}

    def _check(self, call):
        number = self.refused.get(call, self.refused.get("every ioctl") if call.isupper() else None)
        if number is None:
            return
        if self.passed:
            self.passed -= 1
            return
        self.calls += 1
        if self.once:
            self.refused = {}
        raise KernelError(number, "injected")

    def open(self, path, flags=os.O_RDWR):
        self._check(path)
        return super().open(path, flags)

    def ioctl(self, fd, request, argument):
        self._check(CALLS.get(request, ""))
        super().ioctl(fd, request, argument)

    def mmap(self, size, protection=3, flags=0x22, fd=-1, offset=0, address=0):
        if fd in self._kfd_fds:
            self._check("mmap")
        return super().mmap(size, protection, flags, fd, offset, address)

    def read_text(self, path):
        self._check(path)
        return super().read_text(path)

    def list_folder(self, path):
        self._check(path)
        return super().list_folder(path)


CALLS = {getattr(kfd, name): name.removeprefix("AMDKFD_IOC_") for name in dir(kfd)
         if name.startswith("AMDKFD_IOC_")}


def works(device):
    """Copies and kernels give right results."""
    numbers = bytes(range(100))
    source, target = filled(device, numbers), filled(device, bytes(100))
    copied(device, target.address, source.address, 100)
    total = filled(device, struct.pack("64i", *range(64)))
    run(device, "twice", "(int *a) { a[ITEM] *= 2; }", [total.address], 64)
    return bytes(target.host()) == numbers and total.copyout() == struct.pack("64i", *range(0, 128, 2))


def started(device, name, text, arguments, threads=32):
    """The point of a submission of one kernel."""
    [code] = device.compile([Source(name, f"KERNEL({name}, {threads}){text}", PREAMBLE)])
    queue = device.queue()
    queue.execute(device.load(code, name, threads), arguments, 1)
    return queue.finish().submit()


def run(device, name, text, arguments, threads=32):
    device.synchronize(started(device, name, text, arguments, threads))


def waiting(device):
    """The point of a submission that waits for what never comes."""
    queue = device.queue()
    queue.wait(filled(device, bytes(8)).address, 1)
    return queue.finish().submit()


class Newer(Card):
    """A driver that speaks another version."""

    def ioctl(self, fd, request, argument):
        super().ioctl(fd, request, argument)
        if request == kfd.AMDKFD_IOC_GET_VERSION:
            argument[0] = 2


# -- while the card is opened --------------------------------------------------------------------------------
@dataclass(frozen=True)
class Opening:
    """A card that does not open. make: the provider that fails; texts: in the error."""
    name: str
    make: Callable[[], EmulatedRadeon]
    error: type[Exception]
    texts: tuple[str, ...]


def refusing(call, number, passed=0):
    return lambda: Card().refuse(call, number, passed)


OPENINGS = [
    Opening("no driver module", refusing(f"{TOPOLOGY}/nodes", errno.ENOENT), DeviceUnavailable,
            ("amdgpu kernel module is not loaded", "modprobe amdgpu", "EMULATE=1")),
    Opening("kfd is missing", refusing(KFD, errno.ENOENT), DeviceUnavailable,
            ("/dev/kfd does not exist though the driver is loaded", "--device /dev/kfd")),
    Opening("kfd permission", refusing(KFD, errno.EACCES), DeviceUnavailable,
            ("no permission to open /dev/kfd", "usermod -aG render")),
    Opening("render node is missing", refusing(RENDER_NODE, errno.ENOENT), DeviceUnavailable,
            ("/dev/dri/renderD128 does not exist", "--device /dev/dri")),
    Opening("render node permission", refusing(RENDER_NODE, errno.EACCES), DeviceUnavailable,
            ("no permission to open /dev/dri/renderD128", "usermod -aG render")),
    Opening("card is hidden by a cgroup", refusing(f"{TOPOLOGY}/nodes/1/gpu_id", errno.EPERM),
            DeviceUnavailable, ("reports no GPU", "device rules")),
    Opening("unsupported gfx",
            lambda: Card([replace(CARDS["gfx1100"], name="Radeon RX 6800", version=100300)]),
            DeviceUnavailable, ("Radeon RX 6800 is gfx1030, which is not supported", "are gfx1100")),
    Opening("GET_VERSION unknown", refusing("GET_VERSION", errno.ENOTTY), DeviceError,
            ("GET_VERSION failed with ENOTTY", "this kernel does not know the call", "Linux 5.10")),
    Opening("ACQUIRE_VM busy", refusing("ACQUIRE_VM", errno.EBUSY), DeviceError,
            ("ACQUIRE_VM failed with EBUSY", "through another file", "gpu_id=0x4a10")),
    Opening("event page out of memory", refusing("ALLOC_MEMORY_OF_GPU", errno.ENOMEM), DeviceError,
            ("ALLOC_MEMORY_OF_GPU failed with ENOMEM", "no memory of this kind is left", "size=0x8000")),
    Opening("event page not mapped", refusing("MAP_MEMORY_TO_GPU", errno.ENOMEM), DeviceError,
            ("MAP_MEMORY_TO_GPU failed with ENOMEM", "no room for page tables")),
    Opening("event creation out of memory", refusing("CREATE_EVENT", errno.ENOMEM), DeviceError,
            ("CREATE_EVENT failed with ENOMEM",)),
    Opening("no event left", refusing("CREATE_EVENT", errno.ENOSPC, 1), DeviceError,
            ("CREATE_EVENT failed with ENOSPC", "4096 events")),
    Opening("save area out of memory", refusing("ALLOC_MEMORY_OF_GPU", errno.ENOMEM, 5), DeviceError, (
            "ALLOC_MEMORY_OF_GPU failed with ENOMEM", "size=")),
    Opening("kind of memory refused", refusing("ALLOC_MEMORY_OF_GPU", errno.EINVAL, 5), DeviceError,
            ("ALLOC_MEMORY_OF_GPU failed with EINVAL", "does not exist on this card")),
    Opening("too many queues", refusing("CREATE_QUEUE", errno.EPERM), DeviceError,
            ("CREATE_QUEUE failed with EPERM", "too many queues on this card")),
    Opening("driver of another version", lambda: Newer(), DeviceUnavailable,
            ("/dev/kfd speaks version 2.17, this driver version 1",)),
    Opening("compute queue refused", refusing("CREATE_QUEUE", errno.EINVAL), DeviceError,
            ("CREATE_QUEUE failed with EINVAL", "the kernel refused the ring", "ring_size=0x40000")),
    Opening("no copy queue left", refusing("CREATE_QUEUE", errno.ENOMEM, 1), DeviceError,
            ("CREATE_QUEUE failed with ENOMEM", "no hardware queue of this kind is left")),
    Opening("doorbell page not mapped", refusing("mmap", errno.ENOMEM), DeviceError, ("doorbell", "ENOMEM")),
    Opening("card removed before it is opened", refusing("every ioctl", errno.ENODEV, 1), DeviceError,
            ("failed with ENODEV", "the card was removed")),
    Opening("a signal interrupts a call for ever", refusing("CREATE_QUEUE", errno.EINTR), DeviceError,
            ("CREATE_QUEUE failed with EINTR", "a signal interrupted it 100 times")),
]


@pytest.mark.parametrize("failure", OPENINGS, ids=lambda failure: failure.name)
def test_a_card_that_does_not_open(failure):
    provider, start = failure.make(), time.monotonic()
    with pytest.raises(failure.error) as error, opened(provider):
        pass
    assert time.monotonic() - start < LIMIT_S
    assert all(text in str(error.value) for text in failure.texts), str(error.value)
    assert not provider.queues
    if failure.name not in ("unsupported gfx", "driver of another version"):
        provider.repair()                                   # nothing that is left behind is in the way
        with opened(provider) as device:
            assert works(device)
        assert not provider.queues


# -- while it works ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Failure:
    """A card that fails at work. act: function of (device, provider) that raises; None if it must not.

    after: "works", at once; "reset", once reset() was called; "lost", further work is refused
    """
    name: str
    act: Callable
    error: type[Exception] | None
    texts: tuple[str, ...]
    after: str = "works"


FOREVER = "(volatile int *a) { while (a[0] == 0) {} }"


def copy_fault(device, provider):
    copied(device, NOWHERE, filled(device, bytes(100)).address, 16)


def store_fault(device, provider):
    run(device, "stray", "(int *a) { a[ITEM] = 1; }", [NOWHERE])


def load_fault(device, provider):
    target = filled(device, bytes(128))
    run(device, "stray", "(int *a, int *b) { b[ITEM] = a[ITEM]; }", [0x1000, target.address])


def overrun(device, provider):
    buffer = device.allocate(1 << 20)
    run(device, "overrun", "(int *a) { a[ITEM + (1 << 18)] = 1; }", [buffer.address])


def read_only(device, provider):
    buffer = device.allocate(1 << 20)
    memory = provider.gpus[device.card.gpu_id].table.find(buffer.address)
    memory.flags &= ~kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE
    provider.gpus[device.card.gpu_id].table.generation += 1
    run(device, "write", "(int *a) { a[ITEM] = 1; }", [buffer.address])


def endless(device, provider):
    zeros = filled(device, bytes(128))
    with Context(TIMEOUT_MS=TIMEOUT_MS):
        run(device, "endless", FOREVER, [zeros.address])


def unknown_instruction(device, provider):
    text = '(int *a) { __asm__ volatile("s_sethalt 1"); a[ITEM] = 1; }'
    run(device, "halting", text, [filled(device, bytes(128)).address])


def unknown_packet(device, provider):
    device.compute.put(struct.pack("<II", 0xC000FF00, 0))   # type 3, opcode 0xff
    device.synchronize(device.queue().finish().submit())


def wrong_write_pointer(device, provider):
    device.compute.position += 2 * device.compute.ring_bytes
    device.compute.released = device.compute.position       # as if all of it had been read
    device._flying.clear()
    device.synchronize(device.queue().finish().submit())


def no_doorbell(device, provider):
    provider.doorbell = lambda ring, position: None
    with Context(TIMEOUT_MS=TIMEOUT_MS):
        try:
            run(device, "twice", "(int *a) { a[ITEM] *= 2; }", [filled(device, bytes(128)).address])
        finally:
            del provider.doorbell


def no_copy_doorbell(device, provider):
    buffers = [filled(device, bytes(100)).address for _ in range(2)]
    provider.doorbell = lambda ring, position: None
    with Context(TIMEOUT_MS=TIMEOUT_MS):
        try:
            copied(device, *buffers, 100)
        finally:
            del provider.doorbell


def no_signal(device, provider):
    device.synchronize(waiting(device), TIMEOUT_MS)


def no_interrupt(device, provider):
    provider.events.interrupt = lambda context: None
    assert works(device)


def reported(kind, **data):
    """The kernel driver signals an event while a submission waits."""
    def act(device, provider):
        point = waiting(device)
        provider.events.signal_all(kind, gpu_id=device.card.gpu_id, **data)
        device.synchronize(point)
    return act


def out_of_memory(device, provider):
    held = []
    with contextlib.ExitStack() as stack:
        stack.callback(held.clear)
        provider.gpus[device.card.gpu_id].vram_used = device.card.vram - (8 << 20)
        stack.callback(setattr, provider.gpus[device.card.gpu_id], "vram_used", 64 << 20)
        while True:
            held.append(device.allocate(3 << 20))


def refused_allocation(device, provider):
    provider.refuse("MAP_MEMORY_TO_GPU", errno.ENOMEM)
    try:
        device.allocate(3 << 20)
    finally:
        provider.repair()


def interrupted(device, provider):
    provider.refuse("ALLOC_MEMORY_OF_GPU", errno.EINTR, once=True)
    assert device.allocate(3 << 20).size == 3 << 20 and provider.calls == 1


def busy(device, provider):
    provider.refuse("MAP_MEMORY_TO_GPU", errno.EAGAIN, once=True)
    assert device.allocate(3 << 20).size == 3 << 20 and provider.calls == 1


def wait_interrupted(device, provider):
    point = waiting(device)
    provider.refuse("WAIT_EVENTS", errno.EINTR, once=True)
    device.synchronize(point, TIMEOUT_MS)


def removed_while_it_works(device, provider):
    point = waiting(device)
    provider.refuse("every ioctl", errno.ENODEV)
    device.synchronize(point)


def removed_when_idle(device, provider):
    provider.refuse("every ioctl", errno.ENODEV)
    device.allocate(3 << 20)


def does_not_come_back(device, provider):
    provider.refuse("CREATE_QUEUE", errno.EIO)
    store_fault(device, provider)


def silent_after_reset(device, provider):
    waiting(device)
    provider.doorbell = lambda ring, position: None
    device.reset()


HANG = dict(reset_cause=kfd.KFD_HW_EXCEPTION_GPU_HANG)
FAILURES = [
    Failure("copy to nowhere", copy_fault, CommandError,
            ("AMD copy: a memory fault in the page 0xdead0000: no memory is mapped there", "copy of 16 bytes",
             "were dropped")),
    Failure("kernel stores to nowhere", store_fault, CommandError,
            ("AMD compute: a memory fault in the page 0xdead0000", "kernel stray", "CHECK=1")),
    Failure("kernel loads from nowhere", load_fault, CommandError,
            ("AMD compute: a memory fault in the page 0x1000: no memory is mapped", "kernel stray")),
    Failure("kernel runs over a buffer's end", overrun, CommandError,
            ("it is 0 bytes behind the end of the 1048576 bytes mapped at", "kernel overrun")),
    Failure("kernel writes read-only memory", read_only, CommandError,
            ("the memory there is read-only", "kernel write")),
    Failure("kernel never ends", endless, CommandError,
            (f"after {TIMEOUT_MS} ms; raise TIMEOUT_MS if it is only slow", "wave 0", "kernel endless")),
    Failure("kernel with an unknown instruction", unknown_instruction, CommandError,
            ("halting, workgroup (0, 0, 0), wave 0", "s_sethalt 1", "kernel halting")),
    Failure("unknown packet", unknown_packet, CommandError, ("AMD compute", "Pm4Engine of queue", "0xff")),
    Failure("write pointer beyond the ring", wrong_write_pointer, CommandError,
            ("the write pointer 0x", "more than the ring's 0x40000 bytes ahead of the read pointer")),
    Failure("lost doorbell", no_doorbell, WaitTimeout,
            ("the queues did not reach point", f"in {TIMEOUT_MS} ms", "kernel twice", "reset()"), "reset"),
    Failure("lost doorbell of the copy queue", no_copy_doorbell, WaitTimeout,
            ("copy queue is at copy of 100 bytes",), "reset"),
    Failure("signal never written", no_signal, WaitTimeout,
            ("did not reach point", "the compute queue is at wait for 1 at 0x", "TIMEOUT_MS"), "reset"),
    Failure("lost interrupt", no_interrupt, None, ()),
    Failure("reset by the driver", reported(kfd.KFD_IOC_EVENT_HW_EXCEPTION, memory_lost=1, **HANG),
            CommandError, ("the card was reset because it hung; what was in its memory is lost", "wait for")),
    Failure("memory error of the card", reported(kfd.KFD_IOC_EVENT_MEMORY, va=0x5000,
                                                 error_type=kfd.KFD_MEM_ERR_SRAM_ECC),
            CommandError, ("an uncorrectable error of the card's memory", "wait for 1")),
    Failure("damaged memory was read", reported(kfd.KFD_IOC_EVENT_MEMORY, va=0x5000,
                                                error_type=kfd.KFD_MEM_ERR_POISON_CONSUMED),
            CommandError, ("a read of memory that was marked as damaged", "wait for 1")),
    Failure("out of video memory", out_of_memory, OutOfMemory,
            ("AMD: 3145728 bytes wanted", "held", "no memory of this kind is left", "drop tensors")),
    Failure("no room for page tables", refused_allocation, OutOfMemory,
            ("MAP_MEMORY_TO_GPU failed with ENOMEM", "3145728 bytes wanted")),
    Failure("signal interrupts a call", interrupted, None, ()),
    Failure("driver is busy for a moment", busy, None, ()),
    Failure("signal interrupts a wait", wait_interrupted, WaitTimeout, ("wait for 1",), "reset"),
    Failure("card removed while it works", removed_while_it_works, CommandError,
            ("AMD compute: /dev/kfd: WAIT_EVENTS failed with ENODEV: the card was removed", "wait for 1"),
            "lost"),
    Failure("card removed when idle", removed_when_idle, DeviceError,
            ("ALLOC_MEMORY_OF_GPU failed with ENODEV: the card was removed",), "removed"),
    Failure("card does not come back after a fault", does_not_come_back, CommandError,
            ("memory fault in the page 0xdead0000",), "lost"),
    Failure("card is silent after a reset", silent_after_reset, DeviceError,
            ("could not be brought back (its new queues do not answer)", "start it again"), "lost"),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_a_card_that_fails_at_work(failure, monkeypatch):
    monkeypatch.setattr("tiny.hcq.amd.device.PROBE_MS", 20)
    provider = Card()
    with opened(provider) as device:
        assert works(device)
        start = time.monotonic()
        expected = contextlib.nullcontext() if failure.error is None else pytest.raises(failure.error)
        with expected as error:
            failure.act(device, provider)
        assert time.monotonic() - start < LIMIT_S
        assert all(text in str(error.value) for text in failure.texts), str(error.value)
        if failure.after == "reset":
            device.reset()
        if failure.after in ("works", "reset"):
            assert works(device)
        elif failure.after == "lost":
            message = "AMD: the card could not be brought back .* start it again"
            for use in (device.queue, lambda: device.allocate(1), device.synchronize, device.reset):
                with pytest.raises(DeviceError, match=message):
                    use()
        else:
            with pytest.raises(DeviceError, match="ENODEV: the card was removed"):
                device.reset()
                waiting(device)
                device.synchronize()
    assert failure.after in ("lost", "removed") or not provider.queues
