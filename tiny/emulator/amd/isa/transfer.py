"""How the interpreter moves data between registers and memory, lane by lane."""

from collections.abc import Callable

import numpy as np

from tiny.emulator.amd.isa.addressing import Plan, ScalarPlan
from tiny.emulator.amd.isa.errors import UnsupportedError
from tiny.emulator.amd.isa.evaluate import DTYPE, evaluate
from tiny.emulator.amd.isa.lower import PRIVATE_APERTURE, SHARED_APERTURE
from tiny.emulator.amd.isa.memory import MemoryFault
from tiny.emulator.amd.isa.operations_memory import Access
from tiny.emulator.amd.isa.state import POISON, Group, UninitialisedError, Wave


class Space:
    """The memory one lane reaches with one instruction: global, its scratch, or the workgroup's LDS."""

    def __init__(self, group: Group, wave: Wave, kind: str, lane: int):
        self._group, self._wave, self._kind, self._lane = group, wave, kind, lane

    def _local(self, address: int, size: int, action: str) -> np.ndarray | None:
        """The bytes in LDS or scratch; None for an address in global memory."""
        kind = self._kind
        if kind == "flat":
            aperture = address >> 32 << 32
            kind = {SHARED_APERTURE: "lds", PRIVATE_APERTURE: "scratch"}.get(aperture, "global")
            address = address & 0xFFFFFFFF if kind != "global" else address
        if kind == "global":
            return None
        address &= 0xFFFFFFFF
        memory = self._group.lds if kind == "lds" else self._wave.scratch[self._lane]
        if address + size > len(memory):
            raise UnsupportedError(
                f"lane {self._lane}: {action} of {size} bytes at {address:#x} of {kind}, which has "
                f"{len(memory)} bytes"
            )
        return memory[address : address + size]

    def read(self, address: int, size: int, written: bool = False) -> bytes:
        """The bytes there. written: the same access writes them too, and a fault is then called a write.

        UnsupportedError outside of LDS and scratch, MemoryFault where nothing is mapped.
        """
        local = self._local(address, size, "write" if written else "read")
        if local is not None and self._group.dispatch.checked and size % 4 == 0:
            fresh = np.flatnonzero(local.copy().view(np.uint32) == POISON)
            if len(fresh):
                place = (address & 0xFFFFFFFF) + 4 * int(fresh[0])
                raise UninitialisedError(f"lane {self._lane}: local memory at {place:#x} was never written")
        if local is not None:
            return local.tobytes()
        try:
            return self._group.dispatch.memory.read(address, size)
        except MemoryFault as fault:
            raise MemoryFault(address, size, "write" if written else "read") from fault

    def write(self, address: int, data: bytes) -> None:
        """Store bytes; the same errors."""
        local = self._local(address, len(data), "write")
        if local is None:
            self._group.dispatch.memory.write(address, data)
        else:
            local[:] = np.frombuffer(data, dtype=np.uint8)


# -- vector memory -------------------------------------------------------------------------------------------
def vector(group: Group, wave: Wave, plan: Plan, leaf: Callable) -> None:
    """Execute a vector memory instruction for the active lanes, one after another."""
    wanted = [plan.address, *(each for each in (plan.target, *plan.valid) if each is not None)]
    computed = dict(zip(map(id, wanted), evaluate(wanted, leaf), strict=True))
    lanes = {key: np.broadcast_to(array, (wave.lanes,)).copy() for key, array in computed.items()}
    before = {
        register: wave.v[register].copy()
        for first in plan.data
        for register in range(first, min(first + 4, len(wave.v)))
    }
    active = np.flatnonzero(wave.lanes_of(wave.exec))
    if plan.access.action == "count":
        return _count(group, wave, plan, active, int(lanes[id(plan.address)][0]))
    for lane in map(int, active):
        address = int(lanes[id(plan.address)][lane])
        registers = {number: int(row[lane]) for number, row in before.items()}
        for place, offset in enumerate(plan.offsets):
            valid = plan.checked(place)
            if valid is not None and not lanes[id(valid)][lane]:
                words = None
            elif plan.access.action == "load lds":
                words = _loaded_word(group, wave, plan, lane, address + offset)
            else:
                space = Space(group, wave, plan.space, lane)
                words = _one(plan, space, place, address + offset & (1 << 64) - 1, registers)
            if plan.access.action == "load lds":
                target = int(lanes[id(plan.target)][lane])
                word = words[0] if words is not None else 0
                Space(group, wave, "lds", lane).write(target, word.to_bytes(4, "little"))
            elif plan.result is not None and not (words is None and plan.kept):
                _into_registers(wave, plan, lane, place, words)
    return None


def _count(group: Group, wave: Wave, plan: Plan, active: np.ndarray, address: int) -> None:
    """ds_append and ds_consume: one dword for the whole wave."""
    if not len(active):
        return
    space = Space(group, wave, "lds", int(active[0]))
    place = address + plan.offsets[0]
    old = int.from_bytes(space.read(place, 4, written=True), "little")
    space.write(place, (plan.access.combine(old, len(active)) & 0xFFFFFFFF).to_bytes(4, "little"))
    wave.v[plan.result, active] = old


def _loaded_word(group: Group, wave: Wave, plan: Plan, lane: int, address: int) -> list[int]:
    space = Space(group, wave, plan.space, lane)
    return loaded(plan.access, space.read(address & (1 << 64) - 1, plan.access.size))


def _one(plan: Plan, space: Space, place: int, where: int, registers: dict[int, int]) -> list[int] | None:
    """One lane's transfer at one place; the words that are loaded."""
    action, words = plan.access.action, None
    if action in ("load", "exchange"):
        words = loaded(plan.access, space.read(where, plan.access.size, written=action == "exchange"))
    if action in ("store", "exchange"):
        first = plan.data[place if len(plan.data) > 1 else 0]
        space.write(where, stored(plan.access, registers, first))
    if action == "atomic":
        operands = [
            [registers[first + n] for n in range(plan.access.size // 4)] for first in plan.data
        ]
        words = atomic(plan.access, plan.flush, space, where, operands)
    return words


def _into_registers(wave: Wave, plan: Plan, lane: int, place: int, words: list[int] | None) -> None:
    if plan.access.action == "store":
        return
    count = plan.access.count if plan.access.action != "atomic" else plan.access.size // 4
    for n, word in enumerate(words if words is not None else [0] * count):
        register = plan.result + place * count + n
        if plan.access.half is not None:
            old, shift = int(wave.v[register, lane]), 16 * plan.access.half
            word = old & 0xFFFF0000 >> shift | (word & 0xFFFF) << shift
        wave.v[register, lane] = word


def atomic(
    access: Access, flush: Callable, space: Space, where: int, operands: list[list[int]]
) -> list[int]:
    """Read, combine, write; what was there, as words."""
    element = np.dtype(DTYPE[access.element])
    if where % element.itemsize:
        raise UnsupportedError(f"an atomic of {element.itemsize} bytes at {where:#x}, which is not aligned")
    inputs, result = access.combined(flush)
    old = np.frombuffer(space.read(where, element.itemsize, written=True), dtype=element)
    arrays = [old, *(np.array(words, dtype=np.uint32).view(element) for words in operands)]
    values = dict(zip(map(id, inputs), arrays, strict=True))
    new = evaluate([result], lambda value, compute: values.get(id(value)))[0]
    space.write(where, new.astype(element).tobytes())
    return [int(word) for word in old.view(np.uint32)]


def loaded(access: Access, data: bytes) -> list[int]:
    """What a load puts into registers, one u32 each."""
    values = np.frombuffer(data, dtype=DTYPE[access.element])
    return [int(value) & 0xFFFFFFFF for value in values]


def stored(access: Access, registers: dict[int, int], first: int) -> bytes:
    """The bytes a store writes."""
    shift = 16 if access.half else 0
    size = int(access.element[1:]) // 8
    return b"".join(
        (registers[first + n] >> shift & (1 << 8 * size) - 1).to_bytes(size, "little")
        for n in range(access.count)
    )


# -- scalar memory -------------------------------------------------------------------------------------------
def scalar(group: Group, wave: Wave, plan: ScalarPlan, leaf: Callable) -> None:
    """Execute a scalar memory instruction; what is out of range is loaded as 0 and not stored."""
    access, first = plan.access, plan.register
    wanted = [plan.address] if plan.count is None else [plan.address, plan.count]
    address, *count = (int(array[0]) for array in evaluate(wanted, leaf))
    valid = count[0] if count else access.count
    space = Space(group, wave, "global", 0)
    width = access.size // access.count
    if access.action == "load":
        words = loaded(access, space.read(address, width * valid)) if valid else []
        wave.s[first : first + access.count] = words + [0] * (access.count - valid)
    elif access.action == "store":
        for n in range(valid):
            space.write(address + 4 * n, int(wave.s[first + n]).to_bytes(4, "little"))
    else:
        dwords = access.size // 4
        operands = [
            [int(wave.s[first + dwords * number + n]) for n in range(dwords)]
            for number in range(access.operands)
        ]
        words = atomic(access, lambda value: value, space, address, operands) if valid else [0] * dwords
        if plan.returned:
            wave.s[first : first + dwords] = words
