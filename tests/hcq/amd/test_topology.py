"""Which cards are found, and what is said when none can be used."""
import errno
import os
from dataclasses import replace

import pytest

from tests.hcq.amd.conftest import opened
from tiny.config import Context
from tiny.emulator.amd.kernel.cards import CARDS, cards_named
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq import io
from tiny.hcq.amd.device import AmdDevice
from tiny.hcq.amd.topology import TOPOLOGY, find_cards
from tiny.hcq.errors import DeviceUnavailable


def test_what_the_kernel_tells_of_each_card_is_what_its_formulas_give():
    for card in CARDS.values():
        provider = EmulatedRadeon([card])
        [found] = find_cards(provider)
        assert (found.arch, found.vram, found.xccs) == (card.name, card.vram, card.xccs)
        assert (found.compute_units, found.engines) == (card.compute_units, card.engines)
        old = replace(found, properties={key: value for key, value in found.properties.items()
                                         if key not in ("cwsr_size", "ctl_stack_size")})
        assert old.control_stack_size == found.control_stack_size == card.control_stack_size
        assert old.save_area_size == found.save_area_size == card.save_area_size
        assert old.save_mapping_size == found.save_mapping_size


@pytest.mark.parametrize("arch, lanes, units", [("gfx1100", 32, 96), ("gfx1201", 32, 64),
                                                ("gfx942", 64, 304)])
def test_a_target_of_each_card(arch, lanes, units):
    with opened(EmulatedRadeon(cards_named(arch))) as device:
        target = device.target
        assert (target.name, target.arch, target.dialect) == ("AMD", arch, "amdgcn")
        assert (target.lanes, target.threads, target.work_items) == (lanes, units, 1024)
        assert target.local_bytes == 64 << 10 and "emulated" in device.detail


def with_arch(version):
    """A provider whose one card has another graphics version."""
    return EmulatedRadeon([replace(CARDS["gfx1100"], name="Radeon RX 6800", version=version)])


class Refusing(EmulatedRadeon):
    """Opens nothing, with an errno."""

    def __init__(self, number, cards="gfx1100"):
        super().__init__(cards_named(cards))
        self.number = number

    def open(self, path, flags=os.O_RDWR):
        raise OSError(self.number, os.strerror(self.number), path)


class WithoutModule(io.Provider):
    def list_folder(self, path):
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)


class OnlyProcessors(EmulatedRadeon):
    def list_folder(self, path):
        return ["0"] if path == f"{TOPOLOGY}/nodes" else super().list_folder(path)


class Forbidden(EmulatedRadeon):
    """A device cgroup hides the card: reading its gpu_id gives EPERM."""

    def read_text(self, path):
        if path.endswith("1/gpu_id"):
            raise PermissionError(errno.EPERM, "Operation not permitted", path)
        return super().read_text(path)


@pytest.mark.parametrize("provider, texts", [
    (with_arch(100300), ["Radeon RX 6800 is gfx1030", "not supported", "supported are gfx1100"]),
    (with_arch(90012), ["is gfx90c"]),
    (WithoutModule(), ["the amdgpu kernel module is not loaded", "modprobe amdgpu"]),
    (OnlyProcessors(cards_named("gfx1100")), ["reports no GPU"]),
    (Forbidden(cards_named("gfx1100")), ["reports no GPU", "device rules"]),
    (Refusing(errno.ENOENT), ["/dev/kfd does not exist though the driver is loaded", "--device /dev/kfd"]),
    (Refusing(errno.EACCES), ["no permission to open /dev/kfd", "usermod -aG render"]),
    (Refusing(errno.EPERM), ["the kernel forbids /dev/kfd", "32-bit"]),
    (Refusing(errno.EMFILE), ["/dev/kfd does not open: Too many open files"]),
], ids=lambda value: type(value).__name__)
def test_what_is_missing_is_said_with_the_way_on(provider, texts):
    with pytest.raises(DeviceUnavailable) as error, opened(provider):
        pass
    assert all(text in str(error.value) for text in [*texts, "EMULATE=1", "DEV=CPU"])


def test_a_card_that_is_not_supported_beside_one_that_is_does_not_count():
    cards = [replace(CARDS["gfx1100"], version=100306), CARDS["gfx1201"]]
    assert [card.arch for card in find_cards(EmulatedRadeon(cards))] == ["gfx1201"]


def test_visible_devices_choose_and_order():
    provider = EmulatedRadeon(cards_named("gfx1100,gfx1201,gfx942"))
    assert [card.arch for card in find_cards(provider, "2,0")] == ["gfx942", "gfx1100"]
    with Context(VISIBLE_DEVICES="1"), opened(provider) as device:
        assert device.target.arch == "gfx1201"
    for wrong in ("3", "-1", "0,-1", "x"):
        message = f"VISIBLE_DEVICES={wrong}: numbers from 0 to 2 .* 0: gfx1100"
        with pytest.raises(DeviceUnavailable, match=message):
            find_cards(provider, wrong)


def test_a_number_that_no_card_has_lists_the_cards(radeon):
    remove = io.install(radeon)
    try:
        with pytest.raises(DeviceUnavailable, match="AMD:1: there is no such card; there are 0: gfx1100"):
            AmdDevice(1)
    finally:
        remove()


def test_gcc_is_refused_with_what_to_install(radeon):
    message = "compiled by clang, gcc has no target .*\n.*apt"
    with Context(CC="gcc"), pytest.raises(RuntimeError, match=message), opened(radeon):
        pass
