"""The files of a card's PCI device in sysfs, as found below its render node: what it is, its parts' versions.

Source: amdgpu_discovery.c, amdgpu_discovery_sysfs_init and its neighbours, Linux 6.12; base addresses:
navi10_ip_offset.h and vega10_ip_offset.h; hardware ids: soc15_hw_ip.h; versions: the cases of
amdgpu_discovery_set_ip_blocks and, for the graphics core, kfd_device.c, kgd2kfd_probe.
"""
from tiny.emulator.amd.kernel.cards import Card

AMD_VENDOR = 0x1002
HARDWARE_IDS = {"GC": 11, "SDMA0": 42, "NBIF": 108}          # graphics core, copy engine, bus interface
# gfx_target_version -> versions of these parts
VERSIONS = {
    90402: {"GC": (9, 4, 3), "SDMA0": (4, 4, 2), "NBIF": (7, 9, 0)},
    100300: {"GC": (10, 3, 0), "SDMA0": (5, 2, 0), "NBIF": (3, 3, 0)},
    110000: {"GC": (11, 0, 0), "SDMA0": (6, 0, 0), "NBIF": (4, 3, 0)},
    120001: {"GC": (12, 0, 1), "SDMA0": (7, 0, 1), "NBIF": (6, 3, 1)},
}
NBIF_BASES = 0x0, 0x14, 0xD20, 0x10400
BASES = {True: {"GC": (0x2000, 0xA000), "SDMA0": (0x1260,), "NBIF": NBIF_BASES},       # gfx9
         False: {"GC": (0x1260, 0xA000), "SDMA0": (0x1260, 0xA000), "NBIF": NBIF_BASES}}


def files(number: int, card: Card, folder: str) -> dict[str, str]:
    """{path: contents} of the number-th card's device, whose folder in sysfs is given."""
    bus = location_of(number) >> 8
    found = {
        f"{folder}/vendor": f"{AMD_VENDOR:#06x}\n",
        f"{folder}/device": f"{card.device_id:#06x}\n",
        f"{folder}/revision": "0x00\n",
        f"{folder}/subsystem_vendor": f"{AMD_VENDOR:#06x}\n",
        f"{folder}/subsystem_device": f"{card.device_id:#06x}\n",
        f"{folder}/uevent": f"DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID={AMD_VENDOR:04X}:{card.device_id:04X}\n"
                            f"PCI_SLOT_NAME=0000:{bus:02x}:00.0\n",
        f"{folder}/mem_info_vram_total": f"{card.vram}\n",
    }
    return found | _discovery(card, f"{folder}/ip_discovery/die/0")


def location_of(number: int) -> int:
    """PCI bus and function of the number-th card: bus << 8 | function."""
    return (number + 3) << 8


def _discovery(card: Card, folder: str) -> dict[str, str]:
    """The parts by hardware id, and by name, which is a link to the id. A card that is not in VERSIONS has no
    such folder; older kernels do not have it either.
    """
    if card.version not in VERSIONS:
        return {}
    counts = {"GC": card.xccs, "SDMA0": card.sdma_engines, "NBIF": 1}
    found = {f"{folder}/num_ips": f"{sum(counts.values())}\n"}
    for name, version in VERSIONS[card.version].items():
        bases = BASES[card.major == 9][name]
        for instance in range(counts[name]):
            values = {
                "hw_id": str(HARDWARE_IDS[name]), "num_instance": str(instance), "harvest": "0x0",
                **dict(zip(("major", "minor", "revision"), map(str, version), strict=True)),
                "num_base_addresses": str(len(bases)),
                "base_addr": "\n".join(f"0x{base:08X}" for base in bases),
            }
            for parent in (name, HARDWARE_IDS[name]):
                found |= {f"{folder}/{parent}/{instance}/{key}": f"{text}\n" for key, text in values.items()}
    return found
