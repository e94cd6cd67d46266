"""The ioctls of a render node that clients of /dev/kfd make, mostly through libdrm: who is there, what card.

Source: drm_ioctl.c and amdgpu_kms.c, amdgpu_info_ioctl, Linux 6.12. Drawing is not emulated: every other
ioctl fails with EINVAL.
"""
import errno

from tiny.autogen import amdgpu_drm_6_12 as drm
from tiny.emulator.amd.isa.clock import realtime
from tiny.emulator.amd.kernel.events import KernelError

ffi = drm.ffi
NAME, DATE, ABOUT = b"amdgpu", b"20150101", b"AMD GPU"       # amdgpu_drv.h, DRIVER_NAME and its neighbours
VERSION = 3, 61, 0                                           # amdgpu_drv.c, KMS_DRIVER_* of Linux 6.12
FAMILIES = {9: drm.AMDGPU_FAMILY_AI, 10: drm.AMDGPU_FAMILY_NV, 11: drm.AMDGPU_FAMILY_GC_11_0_0,
            12: drm.AMDGPU_FAMILY_GC_12_0_0}
CLOCK_KHZ = 100_000                                          # of the GPU's counter
GB_ADDR_CONFIG = 0x263E                                      # its dword offset, soc15.c and nv.c
IOCTL_MAGIC = ord("d")
MOST_ROWS = 4                                                # of the cu_bitmap: engines, and arrays of each


def call(driver, gpu, request: int, argument: bytearray) -> None:
    """Answer an ioctl of a card's render node; EINVAL for what is not emulated."""
    number = request & 0xFF
    if request >> 8 & 0xFF != IOCTL_MAGIC or number not in _CALLS:
        raise KernelError(errno.EINVAL, f"render node: ioctl {request:#x} is not emulated")
    kind, function = _CALLS[number]
    args = ffi.new(f"struct {kind} *")
    held = ffi.buffer(args)
    size = min(len(argument), len(held))
    held[:size] = bytes(argument[:size])
    function(driver, gpu, args)
    argument[:size] = held[:size]


def _version(driver, gpu, args) -> None:
    args.version_major, args.version_minor, args.version_patchlevel = VERSION
    for name, text in (("name", NAME), ("date", DATE), ("desc", ABOUT)):
        room, where = getattr(args, name + "_len"), int(ffi.cast("uintptr_t", getattr(args, name)))
        if room and where:
            driver.process.write(where, text[:room])
        setattr(args, name + "_len", len(text))


def _info(driver, gpu, args) -> None:
    if args.query not in _ANSWERS:
        raise KernelError(errno.EINVAL, f"AMDGPU_INFO: query {args.query:#x} is not emulated")
    answer = bytes(_ANSWERS[args.query](driver, gpu, args))
    if not args.return_pointer or not args.return_size:
        raise KernelError(errno.EINVAL, "AMDGPU_INFO: no room for the answer")
    driver.process.write(args.return_pointer, answer[: args.return_size])


def _yes(driver, gpu, args) -> bytes:
    return (1).to_bytes(4, "little")


def _timestamp(driver, gpu, args) -> bytes:
    return realtime().to_bytes(8, "little")


def _registers(driver, gpu, args) -> bytes:
    """The registers that may be read tell how pictures are tiled; all but one of them are 0."""
    first, count = args.read_mmr_reg.dword_offset, args.read_mmr_reg.count
    values = [gpu.card.tiling if first + number == GB_ADDR_CONFIG else 0 for number in range(count)]
    return b"".join(value.to_bytes(4, "little") for value in values)


def _memory(driver, gpu, args) -> bytes:
    info = ffi.new("struct drm_amdgpu_memory_info *")
    for heap, size, used in ((info.vram, gpu.card.vram, gpu.vram_used),
                             (info.cpu_accessible_vram, gpu.card.host_vram, 0),
                             (info.gtt, driver.system_limit, driver.system_used)):
        heap.total_heap_size = heap.usable_heap_size = heap.max_allocation = size
        heap.heap_usage = used
    return ffi.buffer(info)


def _device(driver, gpu, args) -> bytes:
    card = gpu.card
    info = ffi.new("struct drm_amdgpu_info_device *")
    info.device_id, info.family = card.device_id, FAMILIES[card.major]
    info.num_shader_engines, info.num_shader_arrays_per_engine = card.engines, card.arrays
    info.gpu_counter_freq = CLOCK_KHZ
    info.max_engine_clock = card.clock_mhz * 1000
    info.cu_active_number = card.compute_units
    info.num_cu_per_sh = card.compute_units // (card.engines * card.arrays)
    for engine in range(min(card.engines, MOST_ROWS)):
        for array in range(card.arrays):
            info.cu_bitmap[engine][array] = (1 << info.num_cu_per_sh) - 1
    info.virtual_address_offset, info.virtual_address_max = driver.address_range
    info.virtual_address_alignment = info.pte_fragment_size = info.gart_page_size = 4096
    info.wave_front_size = card.wave_size
    return ffi.buffer(info)


_ANSWERS = {drm.AMDGPU_INFO_ACCEL_WORKING: _yes, drm.AMDGPU_INFO_TIMESTAMP: _timestamp,
            drm.AMDGPU_INFO_READ_MMR_REG: _registers, drm.AMDGPU_INFO_MEMORY: _memory,
            drm.AMDGPU_INFO_DEV_INFO: _device}
_CALLS = {drm.DRM_IOCTL_VERSION & 0xFF: ("drm_version", _version),
          drm.DRM_IOCTL_AMDGPU_INFO & 0xFF: ("drm_amdgpu_info", _info)}
