"""What the tests of AMD cards share: emulated cards behind hcq.io, and devices opened on them."""
import contextlib

import pytest

from tiny.emulator.amd.kernel.cards import cards_named
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq import io
from tiny.hcq.amd.device import AmdDevice

ARCHS = ("gfx1100", "gfx1201", "gfx942")


@contextlib.contextmanager
def opened(provider, count=1):
    """AMD, AMD:1, ... on a provider; closed at the end."""
    remove = io.install(provider)
    devices = []
    try:
        for number in range(count):
            devices.append(AmdDevice(number))
        yield devices[0] if count == 1 else devices
    finally:
        remove()
        for device in devices:
            device.close()


@pytest.fixture
def radeon():
    """The kernel's side of one gfx1100."""
    return EmulatedRadeon(cards_named("gfx1100"))


@pytest.fixture
def amd(radeon):
    """One gfx1100."""
    with opened(radeon) as device:
        yield device


@pytest.fixture
def pair():
    """Two gfx1100 cards."""
    with opened(EmulatedRadeon(cards_named("gfx1100,gfx1100")), 2) as devices:
        yield devices


def filled(device, data):
    """A buffer with these bytes."""
    return device.allocate(len(data)).initialize(data)


def copied(device, destination, source, nbytes):
    """Copy once and wait."""
    queue = device.queue()
    queue.copy(destination, source, nbytes)
    device.synchronize(queue.finish().submit())
