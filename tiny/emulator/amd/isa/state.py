"""A dispatch, its workgroups and the registers of a wave.

A wave's registers are one block of memory with the layout of `struct wave` in the C that `translate` writes,
so that the interpreter and a translated kernel can take over from one another.
"""

import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tiny.emulator.amd.isa.decode import EXEC, Family, Instruction, decode
from tiny.emulator.amd.isa.memory import AddressSpace
from tiny.emulator.amd.isa.mode import ModeRegister
from tiny.emulator.amd.isa.text import disassemble
from tiny.hcq.layout import Struct, bits, u32, u64

SCALARS, VECTORS = 128, 256
POISON = 0xA5A5A5A5  # what registers and local memory hold before they are written
RUNNING, AT_BARRIER, ENDED = range(3)


class WaveHeader(Struct, dwords=160):
    """What precedes the vector registers. Scalar registers stand at their source code: VCC at 106, EXEC at
    126.
    """

    scalar_0 = u32(0)
    scc = u32(128)
    pc = u32(129)
    state = u32(130)
    mode = u32(131)
    scratch = u64(132)
    fault_address = u64(134)
    fault_size = u32(136)
    fault_action = u32(137)


SCC, PC, STATE, MODE = (WaveHeader.fields[name].dword for name in ("scc", "pc", "state", "mode"))
SCRATCH = WaveHeader.scratch.dword


class PgmRsrc1(Struct, dwords=1):
    """COMPUTE_PGM_RSRC1, as far as a wave sees it. Source: LLVM, AMDHSAKernelDescriptor.h."""

    vgprs = bits(0, 0, 6)
    float_mode = bits(0, 12, 8)
    dx10_clamp = bits(0, 21, 1)
    ieee_mode = bits(0, 23, 1)
    fp16_ovfl = bits(0, 26, 1)


class PgmRsrc2(Struct, dwords=1):
    """COMPUTE_PGM_RSRC2: which SGPRs and VGPRs a wave starts with."""

    scratch_enable = bits(0, 0, 1)
    user_sgprs = bits(0, 1, 5)
    workgroup_id_x = bits(0, 7, 1)
    workgroup_id_y = bits(0, 8, 1)
    workgroup_id_z = bits(0, 9, 1)
    workgroup_info = bits(0, 10, 1)
    workitem_ids = bits(0, 11, 2)


class UninitialisedError(ValueError):
    """Checked mode: a register or local memory is read that still holds what it was poisoned with."""


class EmulationError(RuntimeError):
    """An instruction that cannot be executed; the text names kernel, workgroup, wave, place and instruction.
    """


@dataclass(frozen=True)
class Kernel:
    """Machine code and what the registers of the dispatch packet say about it.

    code           from its first instruction on: whatever the program counter may reach
    address        of code[0] for the card          entry  byte offset of the first instruction executed
    scratch_bytes  private memory of a lane         lds_bytes  of a workgroup
    """

    name: str
    family: Family
    code: bytes = field(repr=False)
    address: int
    pgm_rsrc1: int
    pgm_rsrc2: int
    entry: int = 0
    wave_size: int = 32
    lds_bytes: int = 0
    scratch_bytes: int = 0
    _decoded: dict[int, Instruction] = field(default_factory=dict, repr=False, compare=False)

    def at(self, pc: int) -> Instruction:
        """The instruction at a byte offset."""
        found = self._decoded.get(pc)
        if found is None:
            found = self._decoded[pc] = decode(self.family, self.code, pc)
        return found

    @functools.cached_property
    def identity(self) -> bytes:
        """Equal for kernels that translate alike."""
        facts = repr((self.family.name, self.address, self.entry, self.wave_size, self.pgm_rsrc1)).encode()
        return hashlib.blake2b(facts + self.code, digest_size=16).digest()

    @functools.cached_property
    def vgprs(self) -> int:
        """VGPRs a wave has: RSRC1 counts in eights, in wave32 of gfx11 and later as in wave64 of gfx942."""
        return min(8 * (self.rsrc1.vgprs + 1), 2 * VECTORS)

    @functools.cached_property
    def mode(self) -> int:
        """The MODE register at the start. gfx12 has other fields where dx10_clamp and ieee were."""
        rsrc1, old = self.rsrc1, self.family.name != "gfx12"
        word = ModeRegister(
            dx10_clamp=rsrc1.dx10_clamp & old, ieee=rsrc1.ieee_mode & old, fp16_ovfl=rsrc1.fp16_ovfl
        )
        return int.from_bytes(bytes(word), "little") | rsrc1.float_mode

    @functools.cached_property
    def rsrc1(self) -> PgmRsrc1:
        return PgmRsrc1.decode(self.pgm_rsrc1.to_bytes(4, "little"))

    @functools.cached_property
    def rsrc2(self) -> PgmRsrc2:
        return PgmRsrc2.decode(self.pgm_rsrc2.to_bytes(4, "little"))


@dataclass(frozen=True)
class Dispatch:
    """A kernel to be run. user_data: the user SGPRs' values; groups: workgroups in x, y, z; size: work items
    of one.

    grid: work items in all, where the last workgroups are smaller. checked: run by the interpreter, where
    reading what was never written is an error. Compilers do read such registers, where nothing depends on
    them: -O0 spills them, and half of a pair may be undefined.
    """

    kernel: Kernel
    memory: AddressSpace
    user_data: tuple[int, ...]
    groups: tuple[int, int, int] = (1, 1, 1)
    size: tuple[int, int, int] = (1, 1, 1)
    grid: tuple[int, int, int] | None = None
    checked: bool = False

    @property
    def items(self) -> int:
        """Work items of a full workgroup."""
        return self.size[0] * self.size[1] * self.size[2]

    @property
    def grid_items(self) -> tuple[int, int, int]:
        """Work items in x, y, z; the last workgroups have fewer where this is no multiple of their size."""
        whole = tuple(count * size for count, size in zip(self.groups, self.size, strict=True))
        return self.grid or whole

    def size_of(self, group: tuple[int, int, int]) -> tuple[int, int, int]:
        """The size of one workgroup."""
        return tuple(
            min(size, total - number * size)
            for number, size, total in zip(group, self.size, self.grid_items, strict=True)
        )

    @property
    def waves(self) -> int:
        """Waves in a workgroup; the last one may have fewer lanes."""
        return -(-self.items // self.kernel.wave_size)


class Wave:
    """The registers of one wave. s: scalar registers by source code; v[register, lane]; both u32 and
    writable.
    """

    def __init__(self, dispatch: Dispatch, group: tuple[int, int, int], number: int):
        self.dispatch, self.group, self.number = dispatch, group, number
        lanes = self.lanes = dispatch.kernel.wave_size
        self.memory = np.full(WaveHeader.dwords + 2 * VECTORS * lanes, POISON, dtype=np.uint32)
        self.s = self.memory[:SCALARS]
        self.v = self.memory[WaveHeader.dwords :].reshape(2 * VECTORS, lanes)
        self.memory[[SCC, STATE]] = 0
        self.memory[PC] = dispatch.kernel.entry
        self.memory[MODE] = dispatch.kernel.mode
        self.scratch = np.full((lanes, dispatch.kernel.scratch_bytes), POISON & 255, dtype=np.uint8)
        self.memory[SCRATCH : SCRATCH + 2] = np.array([self.scratch.ctypes.data], dtype=np.uint64).view(
            np.uint32
        )
        self._start()

    @classmethod
    def over(
        cls,
        dispatch: Dispatch,
        group: tuple[int, int, int],
        number: int,
        memory: np.ndarray,
        scratch: np.ndarray,
    ) -> "Wave":
        """A wave whose registers are in memory already, as a translated kernel left them."""
        wave = cls.__new__(cls)
        wave.dispatch, wave.group, wave.number, wave.lanes = (
            dispatch,
            group,
            number,
            dispatch.kernel.wave_size,
        )
        wave.memory, wave.scratch = memory, scratch
        wave.s, wave.v = memory[:SCALARS], memory[WaveHeader.dwords :].reshape(2 * VECTORS, wave.lanes)
        return wave

    def _start(self) -> None:
        """Source: LLVM, "User Guide for AMDGPU Backend", initial kernel execution state."""
        dispatch, rsrc2 = self.dispatch, self.dispatch.kernel.rsrc2
        first = self.number * self.lanes
        size_x, size_y, size_z = dispatch.size_of(self.group)
        self.exec = (1 << min(self.lanes, size_x * size_y * size_z - first)) - 1
        self.s[: len(dispatch.user_data)] = dispatch.user_data
        place = rsrc2.user_sgprs
        if dispatch.kernel.family.name == "gfx12":
            self.s[108 + 9] = self.group[0]
            self.s[108 + 7] = self.group[1] | self.group[2] << 16
        else:
            for number, enabled in enumerate(
                (rsrc2.workgroup_id_x, rsrc2.workgroup_id_y, rsrc2.workgroup_id_z)
            ):
                if enabled:
                    self.s[place] = self.group[number]
                    place += 1
        items = np.arange(first, first + self.lanes, dtype=np.uint32)
        self.v[0] = items % size_x | items // size_x % size_y << 10 | items // (size_x * size_y) << 20

    @property
    def exec(self) -> int:
        return int(self.s[EXEC]) | (int(self.s[EXEC + 1]) << 32 if self.lanes == 64 else 0)

    @exec.setter
    def exec(self, mask: int) -> None:
        self.s[EXEC : EXEC + 2] = mask & 0xFFFFFFFF, mask >> 32

    @property
    def pc(self) -> int:
        """Byte offset in the kernel's code of the next instruction."""
        return int(self.memory[PC])

    @pc.setter
    def pc(self, value: int) -> None:
        self.memory[PC] = value

    @property
    def state(self) -> int:
        return int(self.memory[STATE])

    @state.setter
    def state(self, value: int) -> None:
        self.memory[STATE] = value

    def mask(self, code: int) -> int:
        """A mask of lanes in scalar registers."""
        return int(self.s[code]) | (int(self.s[code + 1]) << 32 if self.lanes == 64 else 0)

    def lanes_of(self, mask: int) -> np.ndarray:
        """A mask as one bool for each lane."""
        octets = np.array([mask], dtype=np.uint64).view(np.uint8)
        return np.unpackbits(octets, bitorder="little")[: self.lanes].astype(bool)

    def error(self, reason: object) -> EmulationError:
        """The error for something that went wrong at the current instruction."""
        kernel = self.dispatch.kernel
        try:
            text = disassemble(kernel.at(self.pc), self.lanes)
        except ValueError as undecoded:
            text = str(undecoded)
        why = text if text == str(reason) else f"{text}: {reason}"
        return EmulationError(
            f"{kernel.name}, workgroup {self.group}, wave {self.number}, at {self.pc:#x} "
            f"({kernel.address + self.pc:#x}): {why}"
        )


class Group:
    """A workgroup: its waves and the memory they share."""

    def __init__(self, dispatch: Dispatch, group: tuple[int, int, int]):
        self.dispatch, self.group = dispatch, group
        self.lds = np.full(dispatch.kernel.lds_bytes, POISON & 255, dtype=np.uint8)
        size_x, size_y, size_z = dispatch.size_of(group)
        waves = -(-size_x * size_y * size_z // dispatch.kernel.wave_size)
        self.waves = [Wave(dispatch, group, number) for number in range(waves)]


def iter_groups(groups: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """The workgroups in the order they run."""
    for z in range(groups[2]):
        for y in range(groups[1]):
            for x in range(groups[0]):
                yield x, y, z
