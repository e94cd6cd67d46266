"""Memory instructions: which addresses they touch, as expressions over registers, and which registers they
move.
"""

from typing import NamedTuple

from tiny.emulator.amd.isa.decode import NOTHING, Instruction, Operand
from tiny.emulator.amd.isa.errors import UnsupportedError
from tiny.emulator.amd.isa.expression import Value, cast, const, join
from tiny.emulator.amd.isa.lower import raw
from tiny.emulator.amd.isa.operands import flat_offset, scalar_offset
from tiny.emulator.amd.isa.operations_memory import ACCESS, Access


class Plan(NamedTuple):
    """A vector memory instruction. Each active lane touches `address` + each of `offsets` in `space`.

    space    global, flat (apertures decide), scratch (of the lane), lds
    address  u64                       offsets  bytes, one for each place
    result   first VGPR that is written, None where nothing is returned
    data     first VGPR of each data operand
    """

    access: Access
    space: str
    address: Value
    offsets: tuple[int, ...]
    result: int | None
    data: tuple[int, ...]


def plan(instruction: Instruction) -> Plan:
    """UnsupportedError for accesses that are only decoded."""
    access = ACCESS[instruction.name]
    if (
        access.action not in ("load", "store", "atomic", "exchange")
        or access.combine is None
        and access.action == "atomic"
    ):
        raise UnsupportedError(f"{instruction.name} is decoded, but not executed")
    if instruction.encoding == "MUBUF" or instruction.get("gds"):
        raise UnsupportedError(f"{instruction.name}: buffer resources and GDS are decoded, but not executed")
    result = instruction.results[0].register if instruction.results else None
    if instruction.encoding == "DS":
        return _local(instruction, access, result)
    space = {"FLAT": "flat", "GLOBAL": "global", "SCRATCH": "scratch"}[instruction.encoding]
    *middle, scalar = instruction.sources
    address = _sum(middle[0], scalar)
    data = tuple(each.register for each in middle[1:])
    if access.operands == 2:  # cmpswap: the new value, then what it is compared with
        data = (data[0], data[0] + int(access.element[1:]) // 32)
    return Plan(access, space, address, (flat_offset(instruction),), result, data)


def _sum(vector: Operand, scalar: Operand) -> Value:
    total = const("u64", 0)
    for operand in (vector, scalar):
        if operand.code != NOTHING:
            part = join(raw(operand), raw(operand, 1)) if operand.count == 2 else cast(raw(operand), "u64")
            total = total + part
    return total


def _local(instruction: Instruction, access: Access, result: int | None) -> Plan:
    low, high = instruction.get("offset0"), instruction.get("offset1")
    offsets = (low * access.stride, high * access.stride) if access.places == 2 else (low | high << 8,)
    address, *data = instruction.sources
    return Plan(
        access, "lds", cast(raw(address), "u64"), offsets, result, tuple(each.register for each in data)
    )


class ScalarPlan(NamedTuple):
    """s_load: from `address` (u64, the same for all lanes) into scalar registers from `result` up.

    access: `count` dwords, or one smaller element that fills a register
    """

    address: Value
    access: Access
    result: int


def scalar_plan(instruction: Instruction) -> ScalarPlan:
    base, soffset = instruction.sources
    if base.count != 2:
        raise UnsupportedError(f"{instruction.name}: buffer resources are decoded, but not executed")
    access = ACCESS[instruction.name]
    address = join(raw(base), raw(base, 1)) + scalar_offset(instruction)
    if soffset.code != NOTHING:
        address = address + cast(raw(soffset), "u64")
    address = address & ~3 if access.element == "u32" else address
    return ScalarPlan(address, access, instruction.results[0].code)
