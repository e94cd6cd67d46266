"""The sysfs files from which a client learns what cards there are.

Source: kfd_topology.c, node_show and its neighbours, Linux 6.12; keys and their order are the kernel's.
"""
from collections.abc import Sequence

from tiny.autogen import kfd_6_12 as kfd
from tiny.emulator.amd.kernel import pci
from tiny.emulator.amd.kernel.cards import Card

ROOTS = ("/sys/devices/virtual/kfd/kfd/topology", "/sys/class/kfd/kfd/topology")
FIRST_RENDER_MINOR = 128
HEAP_SYSTEM, HEAP_PUBLIC, HEAP_PRIVATE = 0, 1, 2             # kfd_sysfs.h, HSA_MEM_HEAP_TYPE_*
LINK_PCI = 2                                                 # kfd_sysfs.h, HSA_IOLINKTYPE_PCIEXPRESS
SYSTEM_MEMORY = 64 << 30
DOORBELL_64_BIT = 2 << kfd.HSA_CAP_DOORBELL_TYPE_TOTALBITS_SHIFT


def gpu_id_of(number: int) -> int:
    """The id by which ioctls name the number-th card; any 16-bit value but 0 would do."""
    return 0x4A10 + 0x101 * number


def render_minor_of(number: int) -> int:
    return FIRST_RENDER_MINOR + number


def files(cards: Sequence[Card]) -> dict[str, str]:
    """{path: contents} of all that sysfs shows of the cards."""
    tree = {"generation_id": "2\n", "system_properties": "platform_oem 0\nplatform_id 0\nplatform_rev 0\n"}
    tree |= _cpu_node(len(cards))
    for number, card in enumerate(cards):
        tree |= _gpu_node(number, card, len(cards))
    found = {f"{root}/{path}": text for root in ROOTS for path, text in tree.items()}
    for number, card in enumerate(cards):
        found |= pci.files(number, card, f"/sys/class/drm/renderD{render_minor_of(number)}/device")
    return found


def _lines(values: dict[str, int]) -> str:
    return "".join(f"{key} {value}\n" for key, value in values.items())


def _cpu_node(gpus: int) -> dict[str, str]:
    values = dict.fromkeys(_NODE_KEYS, 0) | {
        "cpu_cores_count": 2,
        "mem_banks_count": 1,
        "io_links_count": gpus,
    }
    tree = {
        "nodes/0/gpu_id": "0\n",
        "nodes/0/name": "\n",
        "nodes/0/properties": _lines(values),
        "nodes/0/mem_banks/0/properties": _memory_bank(HEAP_SYSTEM, SYSTEM_MEMORY, 64),
    }
    for number in range(gpus):
        tree[f"nodes/0/io_links/{number}/properties"] = _link(0, number + 1)
    return tree


_NODE_KEYS = (
    "cpu_cores_count simd_count mem_banks_count caches_count io_links_count p2p_links_count cpu_core_id_base "
    "simd_id_base max_waves_per_simd lds_size_in_kb gds_size_in_kb num_gws wave_front_size array_count "
    "simd_arrays_per_engine cu_per_simd_array simd_per_cu max_slots_scratch_cu gfx_target_version vendor_id "
    "device_id location_id domain drm_render_minor hive_id num_sdma_engines num_sdma_xgmi_engines "
    "num_sdma_queues_per_engine num_cp_queues cwsr_size ctl_stack_size max_engine_clk_fcompute "
    "local_mem_size "
    "fw_version capability debug_prop sdma_fw_version unique_id num_xcc max_engine_clk_ccompute"
).split()


def _gpu_node(number: int, card: Card, gpus: int) -> dict[str, str]:
    node = f"nodes/{number + 1}"
    values = dict.fromkeys(_NODE_KEYS, 0) | {
        "simd_count": card.simd_count,
        "mem_banks_count": 1,
        "caches_count": 2,
        "io_links_count": 1,
        "p2p_links_count": gpus - 1,
        "simd_id_base": 0x80001000 + 0x1000 * number,
        "max_waves_per_simd": card.waves_per_simd,
        "lds_size_in_kb": 64,
        "wave_front_size": card.wave_size,
        "array_count": card.array_count,
        "simd_arrays_per_engine": card.arrays,
        "cu_per_simd_array": card.compute_units // (card.engines * card.arrays),
        "simd_per_cu": card.simd_per_cu,
        "max_slots_scratch_cu": 32,
        "gfx_target_version": card.version,
        "vendor_id": pci.AMD_VENDOR,
        "device_id": card.device_id,
        "location_id": pci.location_of(number),
        "drm_render_minor": render_minor_of(number),
        "num_sdma_engines": card.sdma_engines,
        "num_sdma_queues_per_engine": 8,
        "num_cp_queues": 8,
        "cwsr_size": card.save_area_size,
        "ctl_stack_size": card.control_stack_size,
        "max_engine_clk_fcompute": card.clock_mhz,
        "fw_version": 0x8A2,
        "capability": DOORBELL_64_BIT | kfd.HSA_CAP_AQL_QUEUE_DOUBLE_MAP,
        "sdma_fw_version": 24,
        "unique_id": 0x7A00 + number,
        "num_xcc": card.xccs,
        "max_engine_clk_ccompute": 4000,
    }
    tree = {
        f"{node}/gpu_id": f"{gpu_id_of(number)}\n",
        f"{node}/name": f"{card.name}\n",
        f"{node}/properties": _lines(values),
        f"{node}/mem_banks/0/properties": _memory_bank(
            HEAP_PUBLIC if card.large_bar else HEAP_PRIVATE, card.vram, 256
        ),
        f"{node}/io_links/0/properties": _link(number + 1, 0),
    }
    for cache, (level, kibibytes) in enumerate(((1, 32), (2, 6144))):
        tree[f"{node}/caches/{cache}/properties"] = _cache(level, kibibytes, 0x80001000 + 0x1000 * number)
    others = [other for other in range(gpus) if other != number]
    for link, other in enumerate(others):
        tree[f"{node}/p2p_links/{link}/properties"] = _link(number + 1, other + 1)
    return tree


def _memory_bank(heap: int, size: int, width: int) -> str:
    return _lines({"heap_type": heap, "size_in_bytes": size, "flags": 0, "width": width, "mem_clk_max": 1250})


def _link(start: int, end: int) -> str:
    return _lines(
        {
            "type": LINK_PCI,
            "version_major": 0,
            "version_minor": 0,
            "node_from": start,
            "node_to": end,
            "weight": 20,
            "min_latency": 0,
            "max_latency": 0,
            "min_bandwidth": 312,
            "max_bandwidth": 31504,
            "recommended_transfer_size": 0,
            "recommended_sdma_engine_id_mask": 0,
            "flags": 1,
        }
    )


def _cache(level: int, kibibytes: int, processor: int) -> str:
    values = {
        "processor_id_low": processor,
        "level": level,
        "size": kibibytes,
        "cache_line_size": 128,
        "cache_lines_per_tag": 1,
        "association": 16,
        "latency": 0,
        "type": kfd.HSA_CACHE_TYPE_DATA | kfd.HSA_CACHE_TYPE_HSACU,
    }
    return _lines(values) + "sibling_map 1,1,1,1\n"
