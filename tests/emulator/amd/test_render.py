"""What a card's render node and its folder in sysfs tell."""
import errno

import pytest

from tests.emulator.amd.test_kernel_calls import PAGE, VRAM, Client
from tiny.autogen import amdgpu_drm_6_12 as drm
from tiny.emulator.amd.kernel import topology
from tiny.emulator.amd.kernel.cards import CARDS, PRESENTED

ffi = drm.ffi


@pytest.fixture(params=[*CARDS.values(), *PRESENTED.values()], ids=lambda card: card.name)
def client(request):
    return Client(request.param).acquire()


def ask(client, query, kind, size=None, **fields):
    """The answer to an AMDGPU_INFO query."""
    answer = ffi.new(ffi.getctype(kind, "*"))
    size = ffi.sizeof(kind) if size is None else size
    args = ffi.new("struct drm_amdgpu_info *", dict(
        query=query, return_size=size, return_pointer=int(ffi.cast("uintptr_t", answer)), **fields))
    client.io.ioctl(client.render, drm.DRM_IOCTL_AMDGPU_INFO, bytearray(ffi.buffer(args)))
    return answer[0]


def test_the_driver_names_itself(client):
    name, date = ffi.new("char[4]"), ffi.new("char[64]")
    args = ffi.new("struct drm_version *", dict(name=name, name_len=3, date=date, date_len=64))
    data = bytearray(ffi.buffer(args))
    client.io.ioctl(client.render, drm.DRM_IOCTL_VERSION, data)
    assert ffi.string(name) == b"amd" and ffi.string(date) == b"20150101"
    assert ffi.from_buffer("struct drm_version *", data).name_len == 6


def test_what_is_told_of_the_card(client):
    card = client.io.gpus[client.gpu].card
    client.allocate(PAGE, VRAM)
    assert ask(client, drm.AMDGPU_INFO_ACCEL_WORKING, "uint32_t") == 1
    memory = ask(client, drm.AMDGPU_INFO_MEMORY, "struct drm_amdgpu_memory_info")
    assert (memory.vram.total_heap_size, memory.vram.heap_usage) == (card.vram, PAGE)
    device = ask(client, drm.AMDGPU_INFO_DEV_INFO, "struct drm_amdgpu_info_device")
    assert (device.device_id, device.cu_active_number) == (card.device_id, card.compute_units)
    assert device.gpu_counter_freq == 100_000 and device.wave_front_size == card.wave_size
    short = ask(client, drm.AMDGPU_INFO_DEV_INFO, "struct drm_amdgpu_info_device", size=4)
    assert (short.device_id, short.family) == (card.device_id, 0)
    register = ask(client, drm.AMDGPU_INFO_READ_MMR_REG, "uint32_t[2]",
                   read_mmr_reg=dict(dword_offset=0x263D, count=2))
    assert list(register) == [0, card.tiling] and card.tiling
    first = ask(client, drm.AMDGPU_INFO_TIMESTAMP, "uint64_t")
    assert 0 < first <= ask(client, drm.AMDGPU_INFO_TIMESTAMP, "uint64_t")


def test_what_is_not_told(client):
    for fields in (dict(query=0x7F, kind="uint32_t"),
                   dict(query=drm.AMDGPU_INFO_ACCEL_WORKING, kind="uint32_t", size=0)):
        with pytest.raises(OSError) as error:
            ask(client, **fields)
        assert error.value.errno == errno.EINVAL
    for request in (drm.DRM_IOCTL_AMDGPU_GEM_CREATE, drm.DRM_IOCTL_VERSION & ~0xFF00 | 0x4100):
        with pytest.raises(OSError) as error:
            client.io.ioctl(client.render, request, bytearray(64))
        assert error.value.errno == errno.EINVAL


def test_versions_and_bases_of_the_parts(client):
    """As amdgpu_discovery.c lays them out: by hardware id and by name, one folder for each instance."""
    card = client.io.gpus[client.gpu].card
    die = f"/sys/class/drm/renderD{topology.render_minor_of(0)}/device/ip_discovery/die/0"
    assert {"11", "42", "108", "GC", "SDMA0", "NBIF", "num_ips"} == set(client.io.list_folder(die))
    assert len(client.io.list_folder(f"{die}/42")) == card.sdma_engines
    core = f"{die}/11/0"
    assert client.io.read_text(f"{core}/hw_id") == "11\n"
    assert client.io.read_text(f"{core}/harvest") == "0x0\n"
    assert int(client.io.read_text(f"{core}/major")) == card.major
    bases = client.io.read_text(f"{core}/base_addr").split()
    assert len(bases) == int(client.io.read_text(f"{core}/num_base_addresses")) == 2
    assert bases[0] == ("0x00002000" if card.major == 9 else "0x00001260")
    for key in client.io.list_folder(core):
        assert client.io.read_text(f"{core}/{key}") == client.io.read_text(f"{die}/GC/0/{key}")
