"""What a debugger shows of a wave: registers, lanes, memory, code as lines of text; and how they are named.

A place in memory is a sum: `b0+0x10`, `s[2:3]+64`, `v[1:2]@5` (of lane 5), `args`, a number or a symbol.
"""

import difflib
import re
from typing import NamedTuple

import numpy as np

from tiny.emulator.amd.bench import ARGUMENTS
from tiny.emulator.amd.formats import dumped, texts, width
from tiny.emulator.amd.isa.decode import AGPR, EXEC, VCC, VGPR, DecodeError
from tiny.emulator.amd.isa.state import MODE, PC, POISON, SCC, VECTORS, Group, Wave
from tiny.emulator.amd.isa.text import scalar_register
from tiny.emulator.amd.stepping import STATES, Stepping

SHOWN_LANES = 8  # of a vector register in the overview, and in a line of `lanes`
WRITTEN_SGPRS = 106  # those in front of VCC
SPECIAL = {"scc": SCC, "mode": MODE, "pc": PC}
_VECTOR = re.compile(r"([va])(\d+)$|([va])\[(\d+):(\d+)\]$")
_SCALAR = re.compile(r"(s|ttmp)(\d+)$|(s|ttmp)\[(\d+):(\d+)\]$")


class Register(NamedTuple):
    """Registers by name. vector: row of Wave.v; else place in Wave.memory, where scalar ones stand."""

    name: str
    vector: bool
    first: int
    count: int

    def words(self, wave: Wave) -> np.ndarray:
        """u32 (count,), or (count, lanes) of a vector register."""
        return (wave.v if self.vector else wave.memory)[self.first : self.first + self.count]


def register_named(text: str, wave: Wave) -> Register:
    """The register of a name: v3, v[3:6], a0, s2, s[2:3], vcc, exec, m0, ttmp7, scc, mode, pc.

    ValueError with the nearest name, or with how many there are.
    """
    lanes64 = wave.lanes == 64
    special = {"vcc": (VCC, 1 + lanes64), "exec": (EXEC, 1 + lanes64)}
    special |= {"vcc_lo": (VCC, 1), "vcc_hi": (VCC + 1, 1), "exec_lo": (EXEC, 1), "exec_hi": (EXEC + 1, 1)}
    special |= {"m0": (wave.dispatch.kernel.family.m0, 1)}
    special |= {name: (place, 1) for name, place in SPECIAL.items()}
    if text in special:
        return Register(text, False, *special[text])
    found = _VECTOR.match(text) or _SCALAR.match(text)
    if found is None:
        close = difflib.get_close_matches(text, special, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ValueError(
            f"{text!r} is no register; there are v3, v[3:6], s2, s[2:3], {', '.join(special)}{hint}"
        )
    kind = found[1] or found[3]
    first = int(found[2] or found[4])
    last = int(found[2] or found[5])
    base, limit = {
        "v": (0, VECTORS),
        "a": (AGPR - VGPR, VECTORS),
        "s": (0, WRITTEN_SGPRS),
        "ttmp": (108, 16),
    }[kind]
    if not first <= last < limit:
        raise ValueError(f"{text}: {kind} registers are numbered 0 to {limit - 1}, the lower number first")
    return Register(text, kind in "va", base + first, last - first + 1)


def place(text: str, run: Stepping, buffers: list[int]) -> int:
    """The address a sum stands for; see above. ValueError for a part that means nothing."""
    total = 0
    for part in text.split("+"):
        name, at, lane = part.partition("@")
        if re.fullmatch(r"b\d+", name):
            number = int(name[1:])
            if number >= len(buffers):
                raise ValueError(f"there is no buffer {name}; {len(buffers)} were given with --arg")
            total += buffers[number]
        elif name == "args":
            total += ARGUMENTS
        elif re.fullmatch(r"0[xX][0-9a-fA-F]+|\d+", name):
            total += int(name, 0)
        elif name in run.symbols:
            total += run.kernel.address + run.symbols[name]
        else:
            total += _value(register_named(name, run.wave), run.wave, lane if at else None)
    return total & (1 << 64) - 1


def _value(register: Register, wave: Wave, lane: str | None) -> int:
    words = register.words(wave)
    if register.vector:
        if lane is None:
            raise ValueError(f"{register.name} differs from lane to lane; write {register.name}@0 for lane 0")
        words = words[:, lane_number(lane, wave)]
    return int.from_bytes(words[:2].tobytes(), "little")


def lane_number(text: str, wave: Wave) -> int:
    """The lane that a text names; ValueError for one that the wave does not have."""
    if not text.isdigit() or int(text) >= wave.lanes:
        raise ValueError(f"lane {text!r}: a wave has the lanes 0 to {wave.lanes - 1}")
    return int(text)


# -- where -------------------------------------------------------------------------------------------------
def comma(numbers) -> str:
    """Numbers with commas between them: 1,0,3."""
    return ",".join(map(str, numbers))


def where(run: Stepping, wave: Wave | None = None) -> str:
    """One line: which wave stands where, and what it does next."""
    wave = run.wave if wave is None else wave
    return (
        f"group {comma(wave.group)} wave {wave.number} #{run.executed[wave.number]}  {wave.pc:#x} "
        f"<{run.label(wave.pc)}>: {run.text_at(wave.pc)}"
    )


def waves(run: Stepping) -> list[str]:
    """Every wave of the workgroup; the selected one is marked."""
    return [
        f"{'>' if wave is run.wave else ' '} {where(run, wave)}  ({STATES[wave.state]}, exec {wave.exec:#x})"
        for wave in run.group.waves
    ]


def listing(run: Stepping, start: int, count: int) -> list[str]:
    """Disassembly from a byte offset on, with labels; `=>` is the selected wave, `B` a breakpoint."""
    names: dict[int, list[str]] = {}
    for name, offset in run.symbols.items():
        names.setdefault(offset, []).append(name)
    broken = {each.pc for each in run.breakpoints}
    lines, pc = [], start
    for _ in range(count):
        if pc >= len(run.kernel.code):
            break
        if not run.decodes(pc) and pc != run.wave.pc:
            break
        lines += [f"{name}:" for name in names.get(pc, ())]
        mark = f"{'=>' if pc == run.wave.pc else '  '}{'B' if pc in broken else ' '}"
        lines.append(f"{mark} {pc:6x}  {run.text_at(pc)}")
        pc = run.next_pc(pc)
    return lines


def before(run: Stepping, pc: int, count: int) -> int:
    """The offset `count` instructions in front of a place, but not in front of its symbol."""
    offsets = [offset for offset in run.symbols.values() if offset <= pc]
    at = max(offsets, default=pc)
    passed = []
    while at < pc:
        passed.append(at)
        try:
            at += run.kernel.at(at).size
        except DecodeError:
            return pc
    return passed[-count] if len(passed) >= count else passed[0] if passed else pc


# -- registers ---------------------------------------------------------------------------------------------
class Snapshot:
    """The registers of a group's waves at one time, to mark what has changed since."""

    def __init__(self, group: Group):
        self.group = group.group
        self._memory = [wave.memory.copy() for wave in group.waves]

    def words(self, register: Register, wave: Wave) -> np.ndarray:
        """What `register.words` was then; what it is now if that was another group."""
        if wave.group != self.group:
            return register.words(wave)
        memory = self._memory[wave.number]
        source = memory[len(memory) - wave.v.size :].reshape(wave.v.shape) if register.vector else memory
        return source[register.first : register.first + register.count]


def shown_register(
    register: Register, wave: Wave, before: Snapshot, format: str, every_lane: bool
) -> list[str]:
    """A register's lines. Vector registers of several dwords are joined where the format is wider."""
    changed = "*" if (register.words(wave) != before.words(register, wave)).any() else " "
    step = max(width(format) // 4, 1)
    if not register.vector:
        found = texts(register.words(wave).tobytes(), format)
        return [f"{changed}{register.name:8} {' '.join(found)}"]
    if register.count % step:
        raise ValueError(f"{register.name} as {format} needs {step} registers a value; name an even number")
    lines = []
    for first in range(register.first, register.first + register.count, step):
        rows = wave.v[first : first + step]
        old = before.words(Register("", True, first, step), wave)
        mark = "*" if (rows != old).any() else " "
        name = f"v{first}" if step == 1 else f"v[{first}:{first + step - 1}]"
        name = name.replace(f"v{first}", f"a{first - VECTORS}") if first >= VECTORS else name
        found = lane_texts(rows, wave, format)
        if every_lane:
            lines += [f"{mark}{name}", *_by_lane(found)]
        else:
            more = " ..." if len(found) > SHOWN_LANES else ""
            lines.append(f"{mark}{name:8} {' '.join(found[:SHOWN_LANES])}{more}")
    return lines


def lane_texts(rows: np.ndarray, wave: Wave, format: str) -> list[str]:
    """One text for each lane, of some registers; inactive lanes stand in brackets. unset: as at the start."""
    active = wave.lanes_of(wave.exec)
    found = []
    for lane in range(wave.lanes):
        text = ":".join(texts(rows[:, lane].tobytes(), format))
        if format != "hex" and (rows[:, lane] == POISON).all():
            text = "unset"
        found.append(text if active[lane] else f"({text})")
    return found


def _by_lane(found: list[str]) -> list[str]:
    size = max(map(len, found))
    return [
        f"  {start:4}  {' '.join(text.rjust(size) for text in found[start : start + SHOWN_LANES])}"
        for start in range(0, len(found), SHOWN_LANES)
    ]


def written_registers(wave: Wave) -> list[Register]:
    """Every register that is no longer as poisoned at the start."""
    m0 = wave.dispatch.kernel.family.m0
    codes = [code for code in range(WRITTEN_SGPRS) if wave.s[code] != POISON]
    found = [Register(scalar_register(code, 1, m0), False, code, 1) for code in codes]
    wide = 1 + (wave.lanes == 64)
    if (wave.s[VCC : VCC + wide] != POISON).any():
        found.append(Register("vcc", False, VCC, wide))
    found.append(Register("exec", False, EXEC, wide))
    found += [Register(name, False, at, 1) for name, at in SPECIAL.items() if name != "pc"]
    rows = np.flatnonzero((wave.v != POISON).any(axis=1))
    return found + [Register(f"v{row}", True, int(row), 1) for row in rows]


# -- memory ------------------------------------------------------------------------------------------------
def local_bytes(run: Stepping, space: str, lane: int, address: int, size: int) -> bytes:
    """Bytes of LDS, or of a lane's scratch. ValueError where there is less."""
    memory = run.group.lds if space == "lds" else run.wave.scratch[lane]
    if address + size > len(memory):
        raise ValueError(f"{space} has {len(memory)} bytes; {size} at {address:#x} lie outside")
    return memory[address : address + size].tobytes()


def memory_lines(address: int, data: bytes, format: str) -> list[str]:
    """Memory as lines, as many elements in each as fit a screen."""
    return dumped(address, data, format, {1: 16, 2: 8, 4: 8, 8: 4}[width(format)])
