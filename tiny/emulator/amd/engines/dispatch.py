"""A dispatch as the hardware sees it: registers, and where the grid lies; and the AQL form of the same."""
from collections.abc import Mapping
from dataclasses import dataclass

from tiny.emulator.amd.engines.base import EmulatorError
from tiny.emulator.amd.isa.descriptor import KernelDescriptor, UserValues, user_data
from tiny.emulator.amd.isa.state import EmulationError
from tiny.emulator.amd.kernel.cards import Card
from tiny.emulator.amd.kernel.memory import PageTable
from tiny.hcq.amd.registers import FILES, sh

LDS_UNIT = 512                                               # bytes; RSRC2.LDS_SIZE counts in them
MOST_LDS = 64 << 10
MOST_THREADS = 1024                                          # of a workgroup
SCRATCH_UNITS = {9: 1024, 11: 256, 12: 256}                  # bytes TMPRING_SIZE.WAVESIZE counts in


@dataclass(frozen=True, slots=True)
class Dispatch:
    """What one dispatch runs. code: address of the first instruction; user_data: SGPRs 0, 1, ... that RSRC2
    counts.

    groups, threads: workgroups, and work-items of each, along x, y, z; grid: work-items in all along each, so
    that the last groups may be smaller. Sizes in bytes; scratch is that of one wave.
    """
    code: int
    rsrc1: int
    rsrc2: int
    rsrc3: int
    user_data: tuple[int, ...]
    groups: tuple[int, int, int]
    threads: tuple[int, int, int]
    grid: tuple[int, int, int]
    wave_size: int
    lds: int
    scratch: int
    scratch_base: int


def from_registers(values: Mapping[int, int], counts: tuple[int, int, int], initiator: int, card: Card,
                   where: str) -> Dispatch:
    """The dispatch that SH registers describe. values: by SH offset; counts: of the packet; EmulatorError if
    senseless.
    """
    file = FILES[card.major]

    def word(name: str) -> int:
        register = getattr(file, name)
        return values.get(sh(register), 0)
    start = file.COMPUTE_DISPATCH_INITIATOR.parse(initiator)
    if not start.COMPUTE_SHADER_EN:
        raise EmulatorError(f"{where}: the dispatch initiator {initiator:#x} lacks COMPUTE_SHADER_EN")
    if not start.FORCE_START_AT_000 and any(word(f"COMPUTE_START_{axis}") for axis in "XYZ"):
        raise EmulatorError(f"{where}: a grid that starts elsewhere than at 0, 0, 0 is not emulated")
    if start.PARTIAL_TG_EN:
        raise EmulatorError(f"{where}: PARTIAL_TG_EN, last workgroups of another size, is not emulated")
    threads = tuple(_threads(file, word(f"COMPUTE_NUM_THREAD_{axis}"), axis, where) for axis in "XYZ")
    check_threads(threads, where)
    if start.USE_THREAD_DIMENSIONS:
        grid = counts
        groups = tuple(-(-count // size) for count, size in zip(counts, threads, strict=True))
    else:
        groups = counts
        grid = tuple(count * size for count, size in zip(counts, threads, strict=True))
    rsrc2 = file.COMPUTE_PGM_RSRC2.parse(word("COMPUTE_PGM_RSRC2"))
    lds = rsrc2.LDS_SIZE * LDS_UNIT
    check_lds(lds, where)
    ring = file.COMPUTE_TMPRING_SIZE.parse(word("COMPUTE_TMPRING_SIZE"))
    scratch = ring.WAVESIZE * SCRATCH_UNITS[card.major]
    if rsrc2.SCRATCH_EN and not scratch:
        raise EmulatorError(f"{where}: the kernel needs scratch memory, COMPUTE_TMPRING_SIZE has none")
    first = sh(file.COMPUTE_USER_DATA_0)
    scratch_base = word("COMPUTE_DISPATCH_SCRATCH_BASE_HI") << 32 | word("COMPUTE_DISPATCH_SCRATCH_BASE_LO")
    return Dispatch(
        code=(word("COMPUTE_PGM_HI") << 32 | word("COMPUTE_PGM_LO")) << 8,
        rsrc1=word("COMPUTE_PGM_RSRC1"),
        rsrc2=word("COMPUTE_PGM_RSRC2"),
        rsrc3=word("COMPUTE_PGM_RSRC3"),
        user_data=tuple(values.get(first + n, 0) for n in range(16)),
        groups=groups,
        threads=threads,
        grid=grid,
        wave_size=32 if card.major > 9 and start.CS_W32_EN else 64,
        lds=lds,
        scratch=scratch if rsrc2.SCRATCH_EN else 0,
        scratch_base=scratch_base << 8,
    )


@dataclass(frozen=True, slots=True)
class AqlPlace:
    """Where a dispatch packet stands: its address, its index in the queue, and the queue's amd_queue_t."""
    packet: int
    index: int
    queue: int


def from_aql(packet, at: AqlPlace, card: Card, table: PageTable, where: str) -> Dispatch:
    """The dispatch of an AQL packet: resource words come from the kernel's descriptor."""
    kernel = KernelDescriptor.decode(table.read(packet.kernel_object, KernelDescriptor.size_bytes))
    threads = packet.workgroup_x, packet.workgroup_y, packet.workgroup_z
    check_threads(threads, where)
    grid = packet.grid_x, packet.grid_y, packet.grid_z
    lds = max(packet.group_segment_bytes, kernel.group_segment)
    check_lds(lds, where)
    values = UserValues(packet.kernarg, at.packet, at.queue, at.index, packet.private_segment_bytes)
    try:
        words = user_data(kernel, values, table.read_u32)
    except EmulationError as error:
        raise EmulatorError(f"{where}: {error}") from None
    return Dispatch(
        code=kernel.entry(packet.kernel_object),
        rsrc1=kernel.pgm_rsrc1,
        rsrc2=kernel.pgm_rsrc2,
        rsrc3=kernel.pgm_rsrc3,
        user_data=(*words, *[0] * (16 - len(words))),
        groups=tuple(-(-count // size) for count, size in zip(grid, threads, strict=True)),
        threads=threads,
        grid=grid,
        wave_size=kernel.wave_size,
        lds=lds,
        scratch=packet.private_segment_bytes * kernel.wave_size,
        scratch_base=0,
    )


def _threads(file, word: int, axis: str, where: str) -> int:
    """Work-items of a workgroup along an axis; on gfx12 the word may also ask for interleaved workgroups."""
    register = getattr(file, f"COMPUTE_NUM_THREAD_{axis}").parse(word)
    if getattr(register, f"INTERLEAVE_BITS_{axis}", 0):
        raise EmulatorError(f"{where}: COMPUTE_NUM_THREAD_{axis} {word:#x} asks for interleaved workgroups, "
                            "which are not emulated")
    return register.NUM_THREAD_FULL


def check_threads(threads: tuple[int, ...], where: str) -> None:
    """A workgroup has 1 to 1024 work-items."""
    count = threads[0] * threads[1] * threads[2]
    if not 1 <= count <= MOST_THREADS:
        raise EmulatorError(
            f"{where}: a workgroup of {' x '.join(map(str, threads))} work-items, 1 to {MOST_THREADS} go"
        )


def check_lds(size: int, where: str) -> None:
    """A workgroup has at most 64 KiB of LDS."""
    if size > MOST_LDS:
        raise EmulatorError(f"{where}: {size} bytes of LDS, a workgroup has {MOST_LDS}")
