"""What the tests of AMD cards share: emulated cards behind hcq.io, and devices opened on them."""
import contextlib
from dataclasses import replace

import pytest

from tiny.emulator.amd.kernel.cards import CARDS, cards_named
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq import io
from tiny.hcq.amd.device import AmdDevice

# what differs for the driver: generations, queues of PM4 and of AQL, video memory that the host cannot reach
KINDS = {"gfx1100": CARDS["gfx1100"], "gfx1201": CARDS["gfx1201"], "gfx942": CARDS["gfx942"],
         "one die of gfx942": replace(CARDS["gfx942"], xccs=1, simd_count=152),
         "small BAR": replace(CARDS["gfx1100"], large_bar=False)}


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


@pytest.fixture(params=KINDS)
def card(request):
    """A device of each kind."""
    with opened(EmulatedRadeon([KINDS[request.param]])) as device:
        yield device


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
