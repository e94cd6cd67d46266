"""The cards that can be emulated, as the numbers that the kernel's topology reports of them."""
from collections.abc import Mapping
from dataclasses import dataclass

PAGE = 4096


@dataclass(frozen=True, slots=True)
class Card:
    """One kind of card. Sizes in bytes; counts as the topology has them, over all compute dies (XCCs).

    version         gfx_target_version: major * 10000 + minor * 100 + stepping
    simd_per_cu     SIMD units of a compute unit; engines: shader engines of one XCC; arrays: shader arrays of
    an engine
    vgpr_per_cu     register file of a compute unit, for the save area of a queue
    waves_per_simd  waves that fit on a SIMD; large_bar: the host can map all of the video memory
    runs_code       whether its instruction set is emulated; else a card has queues, but runs no kernel
    """
    name: str
    version: int
    device_id: int
    simd_count: int
    simd_per_cu: int
    engines: int
    arrays: int
    wave_size: int
    waves_per_simd: int
    vgpr_per_cu: int
    vram: int
    sdma_engines: int
    clock_mhz: int
    xccs: int = 1
    large_bar: bool = True
    runs_code: bool = True

    @property
    def major(self) -> int:
        return self.version // 10000

    @property
    def tiling(self) -> int:
        """GB_ADDR_CONFIG, how pictures lie in memory: of gfx942 its golden value, gfx_v9_4_3.c of Linux 6.12.

        Newer cards have theirs from fuses, so this one (16 pipes, 256 bytes each in turn) is made up; nothing
        that is emulated depends on it.
        """
        return 0x2A114042 if self.major == 9 else 0x00000444

    @property
    def host_vram(self) -> int:
        """Bytes of video memory that the host can map; a small BAR has 256 MiB."""
        return self.vram if self.large_bar else min(self.vram, 256 << 20)

    @property
    def compute_units(self) -> int:
        """Of one XCC."""
        return self.simd_count // self.simd_per_cu // self.xccs

    @property
    def array_count(self) -> int:
        """Shader arrays over all XCCs, as the topology counts them."""
        return self.engines * self.arrays * self.xccs

    @property
    def waves(self) -> int:
        """Waves that one XCC holds for a queue. Source: kfd_queue.c, kfd_queue_ctx_save_restore_size, Linux
        6.12.
        """
        if self.version >= 100100:
            return self.compute_units * 32
        return min(self.compute_units * 40, self.array_count // self.arrays * 512)

    @property
    def control_stack_size(self) -> int:
        """ctl_stack_size of one XCC; the hardware of gfx10 limits it. Source: as `waves`."""
        size = _rounded(40 + self.waves * (12 if self.version >= 100100 else 8) + 8, PAGE)
        return min(size, 0x7000) if self.major == 10 else size

    @property
    def save_area_size(self) -> int:
        """cwsr_size of one XCC: control stack, registers and LDS of every compute unit. Source: as `waves`.
        """
        each = self.vgpr_per_cu + 0x4000 + 0x10000 + 0x1000
        return self.control_stack_size + _rounded(self.compute_units * each, PAGE)

    @property
    def debugger_size(self) -> int:
        """Bytes a wave's debugger data take for one XCC. Source: as `waves`."""
        return _rounded(self.waves * 32, 64)


def _rounded(size: int, unit: int) -> int:
    return -(-size // unit) * unit


# Counts: AMD's product pages and the amdgpu driver's IP discovery of these cards; register files:
# kfd_queue.c, kfd_get_vgpr_size_per_cu.
CARDS = {
    card.name: card
    for card in (
        Card(
            "gfx1100",  # AMD Radeon RX 7900 XTX
            110000,
            0x744C,
            simd_count=192,
            simd_per_cu=2,
            engines=6,
            arrays=2,
            wave_size=32,
            waves_per_simd=16,
            vgpr_per_cu=0x60000,
            vram=24 << 30,
            sdma_engines=2,
            clock_mhz=2500,
        ),
        Card(
            "gfx1201",  # AMD Radeon RX 9070 XT
            120001,
            0x7550,
            simd_count=128,
            simd_per_cu=2,
            engines=4,
            arrays=2,
            wave_size=32,
            waves_per_simd=16,
            vgpr_per_cu=0x60000,
            vram=16 << 30,
            sdma_engines=2,
            clock_mhz=2970,
        ),
        Card(
            "gfx942",  # AMD Instinct MI300X
            90402,
            0x74A1,
            simd_count=1216,
            simd_per_cu=4,
            engines=4,
            arrays=1,
            wave_size=64,
            waves_per_simd=8,
            vgpr_per_cu=0x80000,
            vram=192 << 30,
            sdma_engines=2,
            clock_mhz=2100,
            xccs=8,
        ),
    )
}


# Cards that only foreign programs meet: runtimes that know none of the above list this one.
PRESENTED = {
    card.name: card
    for card in (
        Card(
            "gfx1030",  # AMD Radeon RX 6900 XT
            100300,
            0x73BF,
            simd_count=160,
            simd_per_cu=2,
            engines=4,
            arrays=2,
            wave_size=32,
            waves_per_simd=16,
            vgpr_per_cu=0x40000,
            vram=16 << 30,
            sdma_engines=2,
            clock_mhz=2250,
            runs_code=False,
        ),
    )
}


def cards_named(text: str, known: Mapping[str, Card] = CARDS) -> list[Card]:
    """The cards of EMULATE: "1" is a gfx1100, else names separated by commas. ValueError for one that is not
    known.
    """
    names = ["gfx1100"] if text.strip() in ("1", "") else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise ValueError(
                f"EMULATE={text}: no card {name!r} can be emulated; there are {', '.join(known)}"
            )
    return [known[name] for name in names]
