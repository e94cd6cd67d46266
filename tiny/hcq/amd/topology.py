"""Which AMD cards there are and what they are made of, as the kernel's topology in sysfs tells it.

Source: kfd_topology.c, node_show, and kfd_sysfs.h, Linux 6.12. The formulas for what older kernels do not
tell are those of kfd_queue.c, kfd_queue_ctx_save_restore_size, which ROCr's queues.c repeats.
"""
import errno
from collections.abc import Mapping
from dataclasses import dataclass

from tiny.autogen import kfd_6_12 as kfd
from tiny.hcq import io
from tiny.hcq.errors import DeviceUnavailable

TOPOLOGY = "/sys/devices/virtual/kfd/kfd/topology"
PAGE = 4096                                                 # of the GPU and of what KFD checks
SUPPORTED = ("gfx1100", "gfx1101", "gfx1102", "gfx1200", "gfx1201", "gfx942")
WAY_ON = "EMULATE=1 runs AMD=1 on an emulated card, DEV=CPU runs everything on the CPU"
SGPR_BYTES, LDS_BYTES, HWREG_BYTES = 0x4000, 0x10000, 0x1000          # of a compute unit, kfd_queue.c
VGPR_BYTES = {(9, 4): 0x80000, (11, 0, 0): 0x60000, (11, 0, 1): 0x60000, (11, 5, 1): 0x60000,
              (12, 0, 0): 0x60000, (12, 0, 1): 0x60000}
OTHER_VGPR_BYTES = 0x40000


@dataclass(frozen=True)
class Card:
    """One GPU node. properties: the numbers of its `properties` file, by name.

    version: graphics IP, (11, 0, 0) for gfx1100; vram: bytes; large_bar: the host can map all of it.
    """
    node: int
    gpu_id: int
    name: str
    version: tuple[int, int, int]
    properties: Mapping[str, int]
    vram: int
    large_bar: bool

    @property
    def arch(self) -> str:
        """As the compiler spells it; minor and stepping are hexadecimal digits: gfx90a."""
        major, minor, stepping = self.version
        return f"gfx{major}{minor:x}{stepping:x}"

    @property
    def render_node(self) -> str:
        return f"/dev/dri/renderD{self.properties['drm_render_minor']}"

    @property
    def xccs(self) -> int:
        """Compute dies; what follows counts those of one."""
        return max(self.properties.get("num_xcc", 1), 1)

    @property
    def compute_units(self) -> int:
        return self.properties["simd_count"] // self.properties["simd_per_cu"] // self.xccs

    @property
    def engines(self) -> int:
        """Shader engines."""
        return self.properties["array_count"] // self.properties["simd_arrays_per_engine"] // self.xccs

    @property
    def wave_size(self) -> int:
        return self.properties["wave_front_size"]

    @property
    def local_bytes(self) -> int:
        """LDS of a workgroup."""
        return self.properties["lds_size_in_kb"] << 10

    @property
    def scratch_slots(self) -> int:
        """Waves of a compute unit that may have scratch memory at a time."""
        return self.properties["max_slots_scratch_cu"]

    @property
    def _waves(self) -> int:
        if self.version >= (10, 1, 0):
            return self.compute_units * 32
        return min(self.compute_units * 40, self.engines * self.xccs * 512)

    @property
    def control_stack_size(self) -> int:
        """Must equal the kernel's; from the topology, or computed where an old kernel does not tell."""
        per_wave = 12 if self.version >= (10, 1, 0) else 8
        computed = rounded(40 + self._waves * per_wave + 8, PAGE)
        return self.properties.get("ctl_stack_size") or computed

    @property
    def save_area_size(self) -> int:
        """Where the waves of a queue go when it is preempted (CWSR), control stack included."""
        vgpr = VGPR_BYTES.get(self.version, VGPR_BYTES.get(self.version[:2], OTHER_VGPR_BYTES))
        each = vgpr + SGPR_BYTES + LDS_BYTES + HWREG_BYTES
        computed = self.control_stack_size + rounded(self.compute_units * each, PAGE)
        return self.properties.get("cwsr_size") or computed

    @property
    def save_mapping_size(self) -> int:
        """Of the one mapping that holds the save areas of all dies and what a debugger would keep there."""
        return rounded((self.save_area_size + rounded(self._waves * 32, 64)) * self.xccs, PAGE)


def rounded(size: int, unit: int) -> int:
    """Up to a multiple of `unit`."""
    return -(-size // unit) * unit


def find_cards(provider: io.Provider, visible: str = "") -> list[Card]:
    """The cards this driver can use, in the order of the topology or of `visible`, "2,0".

    DeviceUnavailable that says what is missing: the kernel module, any card, a card that is supported.
    """
    try:
        nodes = provider.list_folder(f"{TOPOLOGY}/nodes")
    except OSError:
        raise DeviceUnavailable(f"AMD: the amdgpu kernel module is not loaded ({TOPOLOGY} does not exist); "
                                f"load it with `modprobe amdgpu` on a machine that has a card; {WAY_ON}"
                                ) from None
    found = [card for node in sorted(map(int, nodes)) if (card := _read_card(provider, node)) is not None]
    if not found:
        raise DeviceUnavailable("AMD: the amdgpu module is loaded and reports no GPU that this process may "
                                f"use (a container's device rules may hide them); {WAY_ON}")
    usable = [card for card in found if card.arch in SUPPORTED]
    if not usable:
        listed = ", ".join(f"{card.name or 'a card'} is {card.arch}" for card in found)
        raise DeviceUnavailable(f"AMD: {listed}, which is not supported; supported are "
                                f"{', '.join(SUPPORTED)}; {WAY_ON}")
    return _visible(usable, visible)


def _visible(cards: list[Card], visible: str) -> list[Card]:
    if not visible:
        return cards
    try:
        numbers = [int(number) for number in visible.split(",")]
        if min(numbers) < 0:                                # which would count from the end
            raise IndexError
        return [cards[number] for number in numbers]
    except (ValueError, IndexError):
        raise DeviceUnavailable(f"VISIBLE_DEVICES={visible}: numbers from 0 to {len(cards) - 1} are needed, "
                                f"separated by commas; the cards are {listed(cards)}") from None


def listed(cards: list[Card]) -> str:
    """Each card's number, behind AMD:, and its architecture."""
    return ", ".join(f"{number}: {card.arch}" for number, card in enumerate(cards))


def pick(cards: list[Card], number: int) -> Card:
    """The card behind AMD:number; DeviceUnavailable that lists those there are."""
    if number >= len(cards):
        raise DeviceUnavailable(f"AMD:{number}: there is no such card; there are {listed(cards)}")
    return cards[number]


def _read_card(provider: io.Provider, node: int) -> Card | None:
    """None for a CPU, and for a GPU that a device cgroup forbids."""
    folder = f"{TOPOLOGY}/nodes/{node}"
    try:
        gpu_id = int(provider.read_text(f"{folder}/gpu_id"))
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES):
            return None
        raise
    if not gpu_id:
        return None
    properties = _numbers(provider.read_text(f"{folder}/properties"))
    version = properties["gfx_target_version"]
    banks = [_numbers(provider.read_text(f"{folder}/mem_banks/{bank}/properties"))
             for bank in provider.list_folder(f"{folder}/mem_banks")]
    local = [bank for bank in banks
             if bank["heap_type"] in (kfd.HSA_MEM_HEAP_TYPE_FB_PUBLIC, kfd.HSA_MEM_HEAP_TYPE_FB_PRIVATE)]
    return Card(node, gpu_id, provider.read_text(f"{folder}/name").strip(),
                (version // 10000, version // 100 % 100, version % 100), properties,
                sum(bank["size_in_bytes"] for bank in local),
                all(bank["heap_type"] == kfd.HSA_MEM_HEAP_TYPE_FB_PUBLIC for bank in local))


def _numbers(text: str) -> dict[str, int]:
    """The `key value` lines of a sysfs file; other lines are left out."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].lstrip("-").isdigit()}
