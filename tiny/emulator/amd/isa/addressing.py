"""Memory instructions: which addresses they touch, as expressions over registers, and which registers they
move.
"""

from collections.abc import Callable
from typing import NamedTuple

from tiny.emulator.amd.isa import buffers
from tiny.emulator.amd.isa.decode import NOTHING, Instruction, Operand
from tiny.emulator.amd.isa.errors import UnsupportedError
from tiny.emulator.amd.isa.expression import Value, cast, const, join, select
from tiny.emulator.amd.isa.functions import signed, without_denormals
from tiny.emulator.amd.isa.lanes import lane
from tiny.emulator.amd.isa.lower import raw
from tiny.emulator.amd.isa.mode import Mode
from tiny.emulator.amd.isa.operands import flat_offset, scalar_offset
from tiny.emulator.amd.isa.operations_memory import ACCESS, Access

SMALLEST_F16 = 2.0**-14  # that is no denormal


class Plan(NamedTuple):
    """A vector memory instruction. Each active lane touches `address` + each of `offsets` in `space`.

    space    global, flat (apertures decide), scratch (of the lane), lds
    address  u64                       offsets  bytes, one for each place
    result   first VGPR that is written, None where nothing is returned
    data     first VGPR of each data operand; of several places, of each place
    valid    for each place a b1: whether it is touched at all, or None: always. What is not touched is loaded
             as 0, or where `kept` is set leaves its register alone
    target   load lds: the address in LDS
    flush    what becomes of denormals in a float atomic
    """

    access: Access
    space: str
    address: Value
    offsets: tuple[int, ...]
    result: int | None
    data: tuple[int, ...]
    valid: tuple[Value | None, ...] = ()
    kept: bool = False
    target: Value | None = None
    flush: Callable[[Value], Value] = lambda value: value

    def checked(self, place: int) -> Value | None:
        return self.valid[place] if self.valid else None


def plan(instruction: Instruction, mode: Mode = Mode()) -> Plan:
    """UnsupportedError with the reason for accesses that are only decoded."""
    access = ACCESS[instruction.operation.name]
    if access.action == "refused":
        raise UnsupportedError(access.reason)
    if instruction.get("gds"):
        raise UnsupportedError("global data share: nothing allocates it for a compute queue")
    if instruction.get("tfe"):
        raise UnsupportedError("tfe, a status word that says which pages of a texture are there")
    result = instruction.results[0].register if instruction.results else None
    if instruction.encoding == "DS":
        found = _local(instruction, access, result)
    elif instruction.encoding == "MUBUF":
        found = _buffer(instruction, access, result)
    else:
        found = _flat(instruction, access, result)
    if access.floats:
        found = found._replace(flush=_flush(access, found.space, mode))
    return found


def _flush(access: Access, space: str, mode: Mode) -> Callable[[Value], Value]:
    """What a float atomic does to denormals: in LDS what MODE says, but for f64's addition. In memory they
    are kept.

    Source: "AMD Instinct MI300 ISA" 9.2.2; LLVM, AMDGPU.td at 001c38d: gfx942, gfx11 and gfx12 all have
    FeatureMemoryAtomicFAddF32DenormalSupport, so llc 22 makes one instruction of an f32 `atomicrmw fadd` that
    keeps denormals, where gfx90a gets a loop of compare-and-swap. Not measured on a card.
    """
    wanted = False
    if space == "lds":
        wanted = mode.flush32[0] if access.floats == "f32" else mode.flush16_64[0]
        wanted = wanted and (access.floats, access.combine.__name__) != ("f64", "add")
    if not wanted:
        return lambda value: value
    if access.floats == "f16":  # as f32, where they are normal
        return lambda value: select(abs(value) < SMALLEST_F16, signed(value < 0.0, value * 0.0), value)
    return without_denormals


# -- flat, global, scratch -----------------------------------------------------------------------------------
def _flat(instruction: Instruction, access: Access, result: int | None) -> Plan:
    space = {"FLAT": "flat", "GLOBAL": "global", "SCRATCH": "scratch"}[instruction.encoding]
    *middle, scalar = instruction.sources
    offset = flat_offset(instruction)
    name = instruction.name
    if "addtid" in name:
        address = _sum(scalar) + cast(lane() * 4, "u64")
    else:
        address = _sum(middle[0], scalar)
    data = tuple(each.register for each in middle[1:])
    if access.operands == 2:  # cmpswap: the new value, then what it is compared with
        data = (data[0], data[0] + int(access.element[1:]) // 32)
    found = Plan(access, space, address, (offset,), result, data)
    if name.endswith("_block"):
        return _block(instruction, found)
    if access.action == "load lds":
        m0 = Value("u32", "sgpr", instruction.family.m0)
        return found._replace(target=cast((m0 & 0x3FFFC) + offset + lane() * 4, "u64"))
    return found


def _block(instruction: Instruction, found: Plan) -> Plan:
    """Up to 32 registers, those whose bits are set in M0. Source: LLVM, "User Guide for AMDGPU Backend"."""
    m0 = Value("u32", "sgpr", instruction.family.m0)
    count = range(found.access.count)
    return found._replace(
        access=ACCESS[f"global_{found.access.action}_b32"],
        offsets=tuple(found.offsets[0] + 4 * n for n in count),
        data=tuple(found.data[0] + n for n in count) if found.data else (),
        valid=tuple((m0 >> n & 1).differs(0) for n in count),
        kept=True,
    )


def _sum(*operands: Operand) -> Value:
    total = const("u64", 0)
    for operand in operands:
        if operand.code != NOTHING:
            part = join(raw(operand), raw(operand, 1)) if operand.count == 2 else cast(raw(operand), "u64")
            total = total + part
    return total


# -- local data share ----------------------------------------------------------------------------------------
def _local(instruction: Instruction, access: Access, result: int | None) -> Plan:
    low, high = instruction.get("offset0"), instruction.get("offset1")
    offsets = (low * access.stride, high * access.stride) if access.places == 2 else (low | high << 8,)
    sources = list(instruction.sources)
    if "addtid" in instruction.name or access.action == "count":
        m0 = Value("u32", "sgpr", instruction.family.m0) & 0xFFFF
        address = m0 + lane() * 4 if access.action != "count" else m0
    else:
        address = raw(sources.pop(0))
    if "condxchg32" in instruction.name:  # the whole address is a multiple of 8
        address, offsets = address + offsets[0] & 0xFFF8, (0,)
    return Plan(
        access, "lds", cast(address, "u64"), offsets, result, tuple(each.register for each in sources)
    )


# -- buffers -------------------------------------------------------------------------------------------------
def _buffer(instruction: Instruction, access: Access, result: int | None) -> Plan:
    """Dwords are checked one by one, everything else as a whole."""
    *data, vector, resource, scalar = instruction.sources
    family = instruction.family.name
    index = offset = const("u64", 0)
    if instruction.get("idxen"):
        index = cast(raw(vector), "u64")
    if instruction.get("offen"):
        offset = cast(raw(vector, instruction.get("idxen")), "u64")
    parts = access.count if access.action in ("load", "store") else 1
    size = access.size // parts
    base = flat_offset(instruction)
    added = buffers.Access(
        cast(raw(scalar), "u64"), offset + base, index, bool(instruction.get("idxen")), size
    )
    found = buffers.resource([raw(resource, n) for n in range(4)], family)
    registers = tuple(each.register for each in data)
    if access.operands == 2:
        registers = (registers[0], registers[0] + int(access.element[1:]) // 32)
    made = Plan(
        access if parts == 1 else ACCESS[f"global_{access.action}_b32"],
        "global",
        buffers.address(found, added, family),
        tuple(4 * n for n in range(parts)),
        result,
        tuple(registers[0] + n for n in range(parts)) if parts > 1 and registers else registers,
        tuple(buffers.in_range(found, added, 4 * n, family) for n in range(parts)),
    )
    if instruction.get("lds"):
        m0 = Value("u32", "sgpr", instruction.family.m0)
        target = cast((m0 & 0xFFFF) + base + lane() * 4, "u64")
        made = made._replace(access=_into_lds(instruction, access), target=target, result=None)
    return made


def _into_lds(instruction: Instruction, access: Access) -> Access:
    if access.action != "load" or access.count > 1 or access.half is not None:
        raise UnsupportedError("only loads of one element go to local memory")
    return Access("load lds", access.element)


# -- scalar memory -------------------------------------------------------------------------------------------
class ScalarPlan(NamedTuple):
    """A scalar access at `address` (u64, the same for all lanes); scalar registers from `register` up.

    access    as of vector instructions; "none" does nothing
    count     elements that are in range, u32; None: all. Others load as 0 and are not stored
    returned  atomics: whether the register gets what was there
    """

    address: Value
    access: Access
    register: int
    count: Value | None = None
    returned: bool = False


def scalar_plan(instruction: Instruction) -> ScalarPlan:
    """UnsupportedError with the reason for what is only decoded."""
    access = ACCESS[instruction.operation.name]
    if access.action == "refused":
        raise UnsupportedError(access.reason)
    if access.action == "none":
        return ScalarPlan(const("u64", 0), access, 0)
    *data, base, soffset = instruction.sources
    register = (data or instruction.results)[0].code
    offset = const("u64", 0) + scalar_offset(instruction)
    if soffset.code != NOTHING:
        offset = offset + cast(raw(soffset), "u64")
    wide = access.element[1:] in ("32", "64")
    if base.count == 2:
        address = join(raw(base), raw(base, 1)) + offset
        count = None
    else:
        found = buffers.resource([raw(base, n) for n in range(4)], instruction.family.name)
        offset = offset & ~3 if wide else offset
        limit = select(found.stride.equals(0), const("u64", 1), found.stride) * found.records
        address = found.base + offset
        step = access.size // access.count
        left = select(limit > offset, limit - offset + (step - 1), const("u64", 0)) >> step.bit_length() - 1
        count = cast(select(left > access.count, const("u64", access.count), left), "u32")
    address = address & ~3 if wide else address
    return ScalarPlan(address, access, register, count, bool(data) and bool(instruction.results))
