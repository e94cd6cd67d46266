"""The interpreter of checked mode (CHECK=1): as the plain one, and it finds what a card would not report.

- What depends on a register, LDS or scratch memory that nothing has written, where it matters: a branch,
  EXEC, an address, a register number, what is stored to global memory. Reading alone is no error, because
  compilers do so: half of a pair may be undefined, and -O0 spills registers it never set. Global memory
  counts as written. With Dispatch.checked, reading is an error, too.
- A barrier that not every wave of the workgroup reaches, or that waves reach at different places.
- Addresses that are not aligned where a card faults or drops the low bits: atomics, scalar loads, and LDS
  accesses of 8 bytes and more that are not aligned to a dword.
"""

from collections.abc import Callable

import numpy as np

from tiny.emulator.amd.isa.addressing import Plan, plan, scalar_plan
from tiny.emulator.amd.isa.decode import EXEC, VCC, Instruction
from tiny.emulator.amd.isa.defined import Traced, spread
from tiny.emulator.amd.isa.expression import Value, parts_of
from tiny.emulator.amd.isa.interpreter import Interpreter, leaf_reader
from tiny.emulator.amd.isa.lower import PRIVATE_APERTURE, SHARED_APERTURE, Store, raw
from tiny.emulator.amd.isa.state import AT_BARRIER, ENDED, POISON, RUNNING, Group, UninitialisedError, Wave

ALL = np.uint32(0xFFFFFFFF)
REGISTER_LEAVES = {
    "vgpr", "vgpr_kept", "sgpr", "lanebit", "scc", "vccz", "gather", "scatter", "vgpr_at", "sgpr_at",
}  # fmt: skip
PAST_CACHES = ("glc", "dlc", "sc0", "sc1", "scope")  # bits of an access that ask for coherence
WIDE = 8  # bytes of an LDS access that has to be aligned to a dword


class _Late(Exception):
    """Out of time."""


class Shadow:
    """The undefined bits of a wave's registers and scratch, laid out as in Wave.

    origins: name of a register -> what it got its undefined bits from
    """

    def __init__(self, wave: Wave):
        self.v = np.where(wave.v == POISON, ALL, np.uint32(0))
        self.s = np.where(wave.s == POISON, ALL, np.uint32(0))
        self.scc = False
        self.scratch = np.full(wave.scratch.shape, 0xFF, dtype=np.uint8)
        self.origins: dict[str, str] = {}


class Checked(Interpreter):
    """Runs the waves of one workgroup; errors are EmulationError, as for everything that goes wrong there."""

    def __init__(self, group: Group):
        super().__init__(group)
        self._null = 249 - self.kernel.family.m0
        self._shadows = {wave.number: Shadow(wave) for wave in group.waves}
        self._lds = np.full(len(group.lds), 0xFF, dtype=np.uint8)
        self._barriers: dict[int, int] = {}  # wave -> where the barrier is that it waits at
        self._leaves: dict[tuple, list[Value]] = {}

    def step(self, wave: Wave) -> None:
        instruction, kind = None, None
        try:
            instruction = self.kernel.at(wave.pc)
            kind = instruction.operation.kind
        except (ValueError, LookupError):
            pass  # the step says so
        super().step(wave)
        if kind is not None and kind in self._steps and kind not in ("memory", "scalar memory"):
            self._define(wave, instruction)

    def run_for(self, late: Callable[[], bool], cancelled: Callable[[], bool] | None = None) -> bool:
        """Run to the end: True; or, once it is late, up to where each wave is at a block's start: False."""
        def stop() -> bool:
            if cancelled is not None and cancelled():
                return True
            if late():
                raise _Late
            return False

        try:
            self.run(stop)
            return True
        except _Late:
            for wave in self.group.waves:
                begun = wave.pc != self.kernel.entry
                while wave.state == RUNNING and begun:
                    begun = self.kernel.at(wave.pc).operation.kind not in ("branch", "jump", "barrier")
                    self.step(wave)
            return False

    def _define(self, wave: Wave, instruction: Instruction) -> None:
        """Count everything that an instruction writes as written."""
        shadow, active = self._shadows[wave.number], wave.lanes_of(wave.exec)
        for result in instruction.results:
            if result.is_vgpr:
                shadow.v[result.register : result.register + result.count, active] = 0
            elif 0 <= result.code < len(shadow.s):
                shadow.s[result.code : result.code + result.count] = 0

    # -- reading ---------------------------------------------------------------------------------------------
    def _traced(self, wave: Wave) -> Traced:
        read, shadow = leaf_reader(wave), self._shadows[wave.number]

        def leaf(value: Value, traced: Traced):
            array = read(value, lambda each: traced(each)[0])
            return None if array is None else (array, self._mask(value, wave, shadow, traced))

        return Traced(leaf)

    def _mask(self, value: Value, wave: Wave, shadow: Shadow, traced: Traced) -> np.ndarray:
        """The undefined bits of a leaf."""
        op, args = value.op, value.args
        if op in ("vgpr", "vgpr_kept"):
            return shadow.v[args[0]]
        if op == "sgpr":
            return shadow.s[args[0] : args[0] + 1] if args[0] != self._null else np.zeros(1, np.uint32)
        if op == "lanebit":
            return wave.lanes_of(mask_at(shadow.s, args[0], wave.lanes))
        if op == "scc":
            return np.array([shadow.scc])
        if op == "vccz":
            return np.array([mask_at(shadow.s, VCC, wave.lanes) != 0])
        if op == "gather":
            index, unknown = traced(args[0])
            return np.where(unknown != 0, ALL, shadow.v[args[1]][index])
        if op == "scatter":
            index, unknown = traced(args[0])
            active = wave.lanes_of(wave.exec)
            result = np.zeros(wave.lanes, np.uint32)
            if (np.broadcast_to(unknown, active.shape) != 0)[active].any():
                return np.full(wave.lanes, ALL)
            result[np.broadcast_to(index, active.shape)[active]] = shadow.v[args[1]][active]
            return result
        if op in ("lane_number", "active"):
            return spread(value.kind, [traced(args[0])[1]])
        if op in ("vgpr_at", "sgpr_at"):
            index, unknown = traced(args[0])
            if unknown.any():
                raise UninitialisedError(f"a register's number depends on {self._names([args[0]], wave)}")
            number = int(index[0])
            return shadow.v[number] if op == "vgpr_at" else shadow.s[number : number + 1]
        kind = np.bool_ if value.kind == "b1" else np.dtype(f"u{max(int(value.kind[1:]) // 8, 1)}")
        return np.zeros(1, kind)

    def _tainted(self, leaf: Value, wave: Wave) -> bool:
        """Whether a register that matters has an undefined bit."""
        shadow, active = self._shadows[wave.number], wave.lanes_of(wave.exec)
        if leaf.op in ("vgpr", "vgpr_kept"):
            return bool(shadow.v[leaf.args[0], active].any())
        if leaf.op == "gather":
            return bool(shadow.v[leaf.args[1]].any())
        if leaf.op == "scatter":
            return bool(shadow.v[leaf.args[1], active].any())
        if leaf.op == "sgpr":
            return leaf.args[0] != self._null and bool(shadow.s[leaf.args[0]])
        if leaf.op in ("lanebit", "vccz"):
            code = leaf.args[0] if leaf.op == "lanebit" else VCC
            return bool(mask_at(shadow.s, code, wave.lanes) & wave.exec)
        return shadow.scc if leaf.op == "scc" else True  # found by a number: look closely

    def _all_defined(self, values: list[Value], wave: Wave, key: tuple) -> bool:
        leaves = self._leaves.get(key)
        if leaves is None:
            leaves = self._leaves[key] = register_leaves(values)
        return not any(self._tainted(leaf, wave) for leaf in leaves)

    def _names(self, values: list[Value], wave: Wave) -> str:
        """What undefined bits came from, for an error."""
        shadow, found = self._shadows[wave.number], []
        for leaf in register_leaves(values):
            if self._tainted(leaf, wave):
                name = leaf_name(leaf)
                origin = shadow.origins.get(name, name)
                found.append(name if origin == name else f"{name}, which depends on {origin}")
        return " and ".join(dict.fromkeys(found[:3])) + ", which nothing has written"

    def _require(self, what: str, value: Value, wave: Wave, lanes: bool = True) -> np.ndarray:
        """UninitialisedError if a value depends, in an active lane, on what nothing has written."""
        array, mask = self._traced(wave)(value)
        mask = np.broadcast_to(mask != 0, (wave.lanes,)) if lanes else mask != 0
        bad = mask & wave.lanes_of(wave.exec) if lanes else mask
        if bad.any():
            where = f" in lane {np.flatnonzero(bad)[0]}" if lanes else ""
            raise UninitialisedError(f"{what}{where} depends on {self._names([value], wave)}")
        return array

    # -- registers -------------------------------------------------------------------------------------------
    def _registers(self, wave: Wave, instruction: Instruction) -> None:
        stores = self.stores_of(wave, instruction)
        values = [part for store in stores for part in (store.value, store.condition, store.lane)
                  if part is not None]
        # by their identity: they are kept as long as this workgroup's cache of lowered instructions
        clean = self._all_defined(values, wave, (wave.pc, id(stores)))
        traced = self._traced(wave)
        marks = [self._mark(store, wave, traced, clean) for store in stores]
        origin = None if clean else self._origin(values, wave)
        super()._registers(wave, instruction)
        for store, mark in zip(stores, marks, strict=True):
            self._apply(store, mark, wave, origin)

    def _origin(self, values: list[Value], wave: Wave) -> str:
        shadow = self._shadows[wave.number]
        names = [leaf_name(leaf) for leaf in register_leaves(values) if self._tainted(leaf, wave)]
        return next((shadow.origins.get(name, name) for name in names), "?")

    def _mark(self, store: Store, wave: Wave, traced: Traced, clean: bool) -> tuple:
        """(undefined bits of what is stored, lanes that are written or None, place found by a number)."""
        mask = np.zeros(1, np.uint32) if clean else traced(store.value)[1]
        lanes, number = None, None
        if store.condition is not None:
            written, unknown = traced(store.condition)
            lanes = np.broadcast_to(written | (unknown != 0), (wave.lanes,))
        if store.lane is not None:
            if not clean:
                self._require("the number of a lane or register", store.lane, wave, lanes=False)
            number = int(traced(store.lane)[0][0])
        scalar = store.where == "sgpr" and store.index in range(EXEC, EXEC + wave.lanes // 32)
        if (scalar or store.where in ("exec", "exec_lanes")) and (mask != 0).any():
            active = wave.lanes_of(wave.exec)
            if store.where != "exec_lanes" or (np.broadcast_to(mask != 0, active.shape) & active).any():
                raise UninitialisedError(f"EXEC depends on {self._names([store.value], wave)}")
        return mask, lanes, number

    def _apply(self, store: Store, mark: tuple, wave: Wave, origin: str | None) -> None:
        mask, lanes, number = mark
        shadow = self._shadows[wave.number]
        active = wave.lanes_of(wave.exec)
        index = number if store.where in ("vgpr_at", "sgpr_at") else store.index
        if store.where in ("vgpr", "vgpr_at"):
            written = active if lanes is None else active & lanes
            shadow.v[index] = np.where(written, mask, shadow.v[index])
            self._note(f"v{index}", mask, shadow, origin)
        elif store.where == "whole":
            shadow.v[index] = mask
            self._note(f"v{index}", mask, shadow, origin)
        elif store.where == "lane":
            shadow.v[index, number] = mask[0]
            self._note(f"v{index}", mask, shadow, origin)
        elif store.where == "mask" and index != self._null:
            unknown = np.broadcast_to(mask != 0, active.shape) & active
            words = np.packbits(unknown, bitorder="little").view(np.uint32)
            shadow.s[index : index + len(words)] = words
            self._note(scalar_name(index), words, shadow, origin)
        elif store.where in ("sgpr", "sgpr_at") and index != self._null:
            shadow.s[index] = mask[0]
            self._note(scalar_name(index), mask, shadow, origin)
        elif store.where == "scc":
            shadow.scc = bool(mask[0] != 0)
            self._note("scc", mask, shadow, origin)

    @staticmethod
    def _note(name: str, mask: np.ndarray, shadow: Shadow, origin: str | None) -> None:
        if origin is not None and mask.any():
            shadow.origins[name] = origin
        else:
            shadow.origins.pop(name, None)

    # -- flow ------------------------------------------------------------------------------------------------
    def _branch(self, wave: Wave, instruction: Instruction):
        condition = instruction.name.removeprefix("s_cbranch_")
        if condition.startswith("scc"):
            self._require("the branch", Value("b1", "scc"), wave, lanes=False)
        elif condition.startswith("vcc"):
            self._require("the branch", Value("b1", "vccz"), wave, lanes=False)
        return super()._branch(wave, instruction)

    def _jump(self, wave: Wave, instruction: Instruction):
        if instruction.sources and instruction.name != "s_call_b64":
            for number in (0, 1):
                self._require("the jump", raw(instruction.sources[0], number), wave, lanes=False)
        return super()._jump(wave, instruction)

    def _barrier(self, wave: Wave, instruction: Instruction) -> None:
        self._barriers[wave.number] = wave.pc
        return super()._barrier(wave, instruction)

    def release(self) -> None:
        """EmulationError where some waves wait at a barrier and others have ended, or wait at another one."""
        waves = self.group.waves
        waiting = [wave for wave in waves if wave.state == AT_BARRIER]
        places = {self._barriers[wave.number] for wave in waiting}
        ended = [wave for wave in waves if wave.state == ENDED]
        if waiting and (ended or len(places) > 1):
            stands = [f"wave {wave.number} at {self._barriers[wave.number]:#x}" for wave in waiting]
            stands += [f"wave {wave.number} ended at {wave.pc:#x}" for wave in ended]
            first = waiting[0]
            first.pc = self._barriers[first.number]
            why = "waves wait at different barriers" if not ended else (
                f"a barrier that {len(ended)} of {len(waves)} waves never reach"
            )
            raise first.error(f"{why}: {', '.join(stands)}")
        super().release()

    # -- memory ----------------------------------------------------------------------------------------------
    def _scalar_memory(self, wave: Wave, instruction: Instruction) -> None:
        load = scalar_plan(instruction)
        if not self._all_defined([load.address], wave, (wave.pc, "scalar")):
            self._require("the address", load.address, wave, lanes=False)
        base, unit = load.address, min(int(load.access.element[1:]) // 8, 4)
        if base.op == "and" and base.args[1].op == "const":  # the plan drops the low bits, as a card does
            base = base.args[0]
        address = int(self._traced(wave)(base)[0][0])
        if address % unit:
            raise ValueError(
                f"a scalar load at {address:#x}, which is not aligned to {unit}; its low bits are dropped"
            )
        super()._scalar_memory(wave, instruction)
        count = load.access.size // 4 if load.returned else load.access.count
        if load.access.action == "load" or load.returned:
            self._shadows[wave.number].s[load.register : load.register + count] = 0

    def _memory(self, wave: Wave, instruction: Instruction) -> None:
        access = plan(instruction)
        active = wave.lanes_of(wave.exec)
        if active.any() and not self._all_defined([access.address], wave, (wave.pc, "memory")):
            self._require("the address", access.address, wave)
        address = np.broadcast_to(self._traced(wave)(access.address)[0], (wave.lanes,)).copy()
        for lane in np.flatnonzero(active):
            self._check_alignment(access, int(address[lane]), int(lane))
        before = self._shadows[wave.number].v.copy() if access.data else None
        memory = self.group.dispatch.memory
        memory.coherent = access.access.action == "atomic" or any(map(instruction.get, PAST_CACHES))
        super()._memory(wave, instruction)
        memory.coherent = False
        for result in instruction.results:
            for register in range(result.register, result.register + result.count):
                self._shadows[wave.number].origins.pop(f"v{register}", None)
        for lane in np.flatnonzero(active):
            self._move(access, int(address[lane]), int(lane), wave, before)

    def _check_alignment(self, access: Plan, address: int, lane: int) -> None:
        size = access.access.size
        local = self._place(access, address)[0] == "lds"
        unit = size if access.access.action == "atomic" else 4 if local and size >= WIDE else 1
        for offset in access.offsets:
            if (address + offset) % unit:
                kind = "an atomic" if access.access.action == "atomic" else f"an LDS access of {size} bytes"
                at = address + offset & (1 << 64) - 1
                raise ValueError(f"lane {lane}: {kind} at {at:#x}, which is not aligned to {unit}")

    @staticmethod
    def _place(access: Plan, address: int) -> tuple[str, int]:
        """(space, address in it); flat addresses belong to an aperture."""
        if access.space != "flat":
            return access.space, address & 0xFFFFFFFF if access.space in ("lds", "scratch") else address
        kind = {SHARED_APERTURE: "lds", PRIVATE_APERTURE: "scratch"}.get(address >> 32 << 32, "global")
        return kind, address & 0xFFFFFFFF if kind != "global" else address

    def _move(self, access: Plan, address: int, lane: int, wave: Wave, before: np.ndarray | None) -> None:
        """The undefined bits of one lane, from registers to memory and back."""
        shadow, action = self._shadows[wave.number], access.access
        space, start = self._place(access, address)
        memory = self._lds if space == "lds" else shadow.scratch[lane] if space == "scratch" else None
        size, width = action.size, int(action.element[1:]) // 8
        for number, offset in enumerate(access.offsets):
            at = start + offset & 0xFFFFFFFF
            old = bytes(size) if memory is None else memory[at : at + size].tobytes()
            if action.action != "load" and access.data:
                first = access.data[number if len(access.data) > 1 and len(access.offsets) > 1 else 0]
                data = register_bytes(before, first, lane, width, action.count, action.half)
                if any(data) and memory is None:
                    origin = self._stored_origin(shadow, first, max(size // 4, 1))
                    raise UninitialisedError(
                        f"lane {lane}: what is stored depends on {origin}, which nothing has written"
                    )
                if memory is not None:
                    memory[at : at + size] = np.frombuffer(data, np.uint8)
            if access.result is not None and action.action != "store":
                self._loaded(access, number, old, lane, shadow, f"{space} memory at {at:#x}")

    def _stored_origin(self, shadow: Shadow, first: int, count: int) -> str:
        for register in range(first, first + count):
            if f"v{register}" in shadow.origins:
                return f"v{register}, which depends on {shadow.origins[f'v{register}']}"
        return f"v{first}"

    def _loaded(self, access: Plan, number: int, old: bytes, lane: int, shadow: Shadow, origin: str) -> None:
        action = access.access
        kind = "i" if action.element[0] == "i" else "u"  # a sign is copied upward, undefined or not
        words = np.frombuffer(old, f"{kind}{int(action.element[1:]) // 8}")
        masks = words.astype(np.int64) if words.itemsize < 8 else words.view(np.uint32)
        for n, mask in enumerate(masks):
            register, bits = access.result + number * len(masks) + n, int(mask) & 0xFFFFFFFF
            if action.half is not None:
                kept = int(shadow.v[register, lane])
                low, high = (kept, bits) if action.half else (bits, kept >> 16)
                bits = low & 0xFFFF | (high & 0xFFFF) << 16
            shadow.v[register, lane] = bits
            if bits:
                shadow.origins.setdefault(f"v{register}", origin)


def mask_at(words: np.ndarray, code: int, lanes: int) -> int:
    """A mask of lanes in scalar registers."""
    return int(words[code]) | (int(words[code + 1]) << 32 if lanes == 64 else 0)


def register_bytes(
    masks: np.ndarray, first: int, lane: int, width: int, count: int, half: int | None
) -> bytes:
    """The undefined bits of what a store takes from registers, as the bytes it writes."""
    if width >= 4:
        return b"".join(int(masks[first + n, lane]).to_bytes(4, "little") for n in range(width * count // 4))
    shift = 16 if half else 0
    part = [int(masks[first + n, lane]) >> shift & (1 << 8 * width) - 1 for n in range(count)]
    return b"".join(each.to_bytes(width, "little") for each in part)


def register_leaves(values: list[Value]) -> list[Value]:
    """The leaves of expressions that are registers, each once."""
    return parts_of(values, REGISTER_LEAVES)


def scalar_name(code: int) -> str:
    """A scalar register as errors call it."""
    return {VCC: "vcc", EXEC: "exec"}.get(code, f"s{code}")


def leaf_name(leaf: Value) -> str:
    """The register that a leaf reads, as errors call it."""
    if leaf.op in ("vgpr", "vgpr_kept"):
        return f"v{leaf.args[0]}"
    if leaf.op in ("gather", "scatter"):
        return f"v{leaf.args[1]}"
    if leaf.op in ("sgpr", "lanebit"):
        return scalar_name(leaf.args[0])
    return {"vccz": "vcc", "scc": "scc"}.get(leaf.op, "a register found by its number")

