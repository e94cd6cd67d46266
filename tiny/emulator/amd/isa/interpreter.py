"""The stepping interpreter: one instruction of one wave at a time, lanes as numpy arrays.

It is slow and simple, made for a debugger and as the reference that translated kernels are compared with.
"""

import itertools
from collections.abc import Callable

import numpy as np

from tiny.emulator.amd.isa import clock, transfer
from tiny.emulator.amd.isa.addressing import plan, scalar_plan
from tiny.emulator.amd.isa.decode import EXEC, VCC, Instruction
from tiny.emulator.amd.isa.errors import UnsupportedError
from tiny.emulator.amd.isa.evaluate import evaluate
from tiny.emulator.amd.isa.expression import Value
from tiny.emulator.amd.isa.immediates import SENDMSG_DEALLOC_VGPRS, register_part
from tiny.emulator.amd.isa.lower import (
    Store,
    lower,
    raw,
)
from tiny.emulator.amd.isa.memory import MemoryFault
from tiny.emulator.amd.isa.mode import DENORMALS, INDEX, ROUNDING, SETTABLE, Mode
from tiny.emulator.amd.isa.state import (
    AT_BARRIER,
    ENDED,
    MODE,
    POISON,
    RUNNING,
    SCC,
    Dispatch,
    Group,
    UninitialisedError,
    Wave,
    iter_groups,
)

MODE_REGISTER, SHADER_CYCLES, SHADER_CYCLES_HI = 1, 29, 30  # hardware registers, LLVM's AMDGPU/SIDefines.h
GET_REALTIME = 0x83  # messages of s_sendmsg_rtn, same source
WORKGROUP_BARRIER = 193
STEPS_BETWEEN = 1024  # questions whether to stop


class Interpreter:
    """Runs the waves of one workgroup. `step` executes one instruction; errors are EmulationError or
    MemoryFault.
    """

    def __init__(self, group: Group):
        self.group = group
        self.kernel = group.dispatch.kernel
        self._lowered: dict[tuple[int, int], object] = {}
        self._steps = {
            "branch": self._branch,
            "jump": self._jump,
            "memory": self._memory,
            "end": self._end,
            "scalar memory": self._scalar_memory,
            "barrier": self._barrier,
            "wait": self._nothing,
            "mode": self._mode,
            "register": self._register,
            "message": self._message,
            "signal": self._signal,
            "clock": self._clock,
        }

    def step(self, wave: Wave) -> None:
        """Execute the instruction at the wave's program counter and move the counter on."""
        try:
            instruction = self.kernel.at(wave.pc)
            kind = instruction.operation.kind
            step = self._steps.get(kind, self._registers)
            if step(wave, instruction) is None:
                wave.pc += instruction.size
        except (UnsupportedError, ValueError, LookupError, ArithmeticError) as error:
            raise wave.error(error) from error

    def run(self, cancelled: Callable[[], bool] | None = None) -> None:
        """Run the workgroup to its end. cancelled: asked now and then; True stops it with an
        EmulationError.
        """
        waves = self.group.waves
        steps = 0
        while any(wave.state != ENDED for wave in waves):
            for wave in waves:
                while wave.state == RUNNING:
                    self.step(wave)
                    steps += 1
                    if not steps % STEPS_BETWEEN and cancelled is not None and cancelled():
                        raise wave.error("stopped")
            self.release()

    def release(self) -> None:
        """Let the waves go on that wait at the barrier; every other one waits there too or has ended."""
        for wave in self.group.waves:
            if wave.state == AT_BARRIER:
                wave.state = RUNNING

    # -- registers -------------------------------------------------------------------------------------------
    def _cached(self, wave: Wave, make: Callable):
        key = wave.pc, int(wave.memory[MODE])
        found = self._lowered.get(key)
        if found is None:
            found = self._lowered[key] = make()
        return found

    def _registers(self, wave: Wave, instruction: Instruction) -> None:
        apply_stores(wave, self.stores_of(wave, instruction))

    def stores_of(self, wave: Wave, instruction: Instruction) -> list[Store]:
        """What an instruction does to registers, in the wave's mode."""
        word, family = int(wave.memory[MODE]), self.kernel.family.name
        return self._cached(wave, lambda: lower(instruction, Mode.from_bits(word, family), wave.lanes))

    def _values(self, wave: Wave, values: list[Value]) -> list[np.ndarray]:
        return evaluate(values, leaf_reader(wave))

    # -- flow ------------------------------------------------------------------------------------------------
    def _branch(self, wave: Wave, instruction: Instruction):
        if branch_taken(wave, instruction.name):
            wave.pc += instruction.size + 4 * instruction.sources[-1].value
            return True
        return None

    def _jump(self, wave: Wave, instruction: Instruction):
        follows = self.kernel.address + wave.pc + instruction.size
        target = None
        if instruction.name == "s_call_b64":
            target = follows + 4 * instruction.sources[0].value
        elif instruction.sources:
            low, high = self._values(wave, [raw(instruction.sources[0], n) for n in (0, 1)])
            target = int(low[0]) | int(high[0]) << 32
        if instruction.results:
            code = instruction.results[0].code
            wave.s[code : code + 2] = follows & 0xFFFFFFFF, follows >> 32
        if target is None:
            return None
        if not 0 <= target - self.kernel.address < len(self.kernel.code):
            raise UnsupportedError(f"a jump to {target:#x}, outside of the kernel's code")
        wave.pc = target - self.kernel.address
        return True

    def _end(self, wave: Wave, instruction: Instruction) -> None:
        wave.state = ENDED

    def _barrier(self, wave: Wave, instruction: Instruction) -> None:
        wave.state = AT_BARRIER

    def _signal(self, wave: Wave, instruction: Instruction) -> None:
        """s_barrier_signal: the barrier of the workgroup counts at the wait, which every wave reaches."""
        check_barrier(instruction)

    def _nothing(self, wave: Wave, instruction: Instruction) -> None:
        pass

    def _message(self, wave: Wave, instruction: Instruction) -> None:
        if instruction.sources[0].value != SENDMSG_DEALLOC_VGPRS:
            raise UnsupportedError("this message")

    def _mode(self, wave: Wave, instruction: Instruction) -> None:
        wave.memory[MODE] = changed_mode(int(wave.memory[MODE]), instruction)
        if instruction.name == "s_set_gpr_idx_on":
            apply_stores(wave, index_stores(instruction))

    def _register(self, wave: Wave, instruction: Instruction) -> None:
        number, low, width = hardware_register(instruction)
        held, mask = self._hardware(wave, number), (1 << width) - 1 << low
        if instruction.name == "s_getreg_b32":
            wave.s[instruction.results[0].code] = (held & mask) >> low
            return
        value = int(self._values(wave, [raw(instruction.sources[1])])[0][0])
        wave.memory[MODE] = mode_with(held, number, value << low, mask)

    def _hardware(self, wave: Wave, number: int) -> int:
        """A hardware register's 32 bits."""
        if number == MODE_REGISTER:
            return int(wave.memory[MODE]) & ~INDEX.mask
        wide = self.kernel.family.name == "gfx12"
        if number == SHADER_CYCLES and self.kernel.family.name != "gfx9":
            return clock.cycles() & (0xFFFFFFFF if wide else 0xFFFFF)
        if number == SHADER_CYCLES_HI and wide:
            return clock.cycles() >> 32 & 0xFFFFFFFF
        raise UnsupportedError(f"hardware register {number}")

    def _clock(self, wave: Wave, instruction: Instruction) -> None:
        """s_memtime, s_memrealtime, s_sendmsg_rtn: 64 bits of a clock."""
        message = instruction.sources[0].value if instruction.sources else None
        if message not in (None, GET_REALTIME) or not instruction.name.endswith(("time", "b64")):
            raise UnsupportedError("this message: only MSG_RTN_GET_REALTIME as b64 is answered")
        now = clock.cycles() if instruction.name == "s_memtime" else clock.realtime()
        code = instruction.results[0].code
        wave.s[code : code + 2] = now & 0xFFFFFFFF, now >> 32

    # -- memory ----------------------------------------------------------------------------------------------
    def _scalar_memory(self, wave: Wave, instruction: Instruction) -> None:
        access = self._cached(wave, lambda: scalar_plan(instruction))
        if access.access.action != "none":
            self._guarded(wave, lambda: transfer.scalar(self.group, wave, access, leaf_reader(wave)))

    def _guarded(self, wave: Wave, action: Callable):
        try:
            return action()
        except MemoryFault as fault:
            fault.args = (str(wave.error(fault)),)
            raise

    def _memory(self, wave: Wave, instruction: Instruction) -> None:
        mode = Mode.from_bits(int(wave.memory[MODE]), self.kernel.family.name)
        access = self._cached(wave, lambda: plan(instruction, mode))
        if self.group.dispatch.checked:
            count = max(access.access.size // 4, 1)
            for register in (data + n for data in access.data for n in range(count)):
                check_written(wave, register)
        self._guarded(wave, lambda: transfer.vector(self.group, wave, access, leaf_reader(wave)))


# -- what both flow and registers need -----------------------------------------------------------------------
def leaf_reader(wave: Wave) -> Callable:
    """How `evaluate` reads this wave's registers."""
    null = 249 - wave.dispatch.kernel.family.m0
    lanes = wave.lanes

    def read(value: Value, compute: Callable) -> np.ndarray | None:
        op, args = value.op, value.args
        if op in ("vgpr", "vgpr_kept"):
            if op == "vgpr" and wave.dispatch.checked:
                check_written(wave, args[0])
            return wave.v[args[0]]
        if op == "sgpr":
            if wave.dispatch.checked and args[0] < VCC and wave.s[args[0]] == POISON:
                raise UninitialisedError(f"s{args[0]} is read and was never written")
            return wave.s[args[0] : args[0] + 1] if args[0] != null else np.zeros(1, dtype=np.uint32)
        if op == "lanebit":
            return wave.lanes_of(wave.mask(args[0]))
        if op == "lane":
            return np.arange(lanes, dtype=np.uint32)
        if op == "scc":
            return wave.memory[SCC : SCC + 1].astype(bool)
        if op == "exec":
            return np.array([wave.exec], dtype=np.uint64)
        if op in ("vccz", "execz"):
            return np.array([wave.mask(VCC if op == "vccz" else EXEC) == 0])
        if op == "first_lane":
            return np.array([first_lane(wave.exec)], dtype=np.uint32)
        if op == "lane_number":
            return compute(args[0]) & np.uint32(lanes - 1)
        if op == "gather":
            return wave.v[args[1]][compute(args[0])]
        if op == "active":
            return wave.lanes_of(wave.exec)[compute(args[0])]
        if op in ("vgpr_at", "sgpr_at"):
            return _indexed(wave, op, int(compute(args[0])[0]))
        return _scattered(wave, compute(args[0]), args[1]) if op == "scatter" else None

    return read


def check_written(wave: Wave, register: int) -> None:
    """UninitialisedError if an active lane's register still holds the poison."""
    fresh = np.flatnonzero((wave.v[register] == POISON) & wave.lanes_of(wave.exec))
    if len(fresh):
        raise UninitialisedError(f"v{register} is read in lane {fresh[0]} and was never written")


def first_lane(mask: int) -> int:
    """The number of the lowest active lane, 0 if none is."""
    return (mask & -mask).bit_length() - 1 if mask else 0


def _indexed(wave: Wave, op: str, number: int) -> np.ndarray:
    """A register found by a number."""
    check_register(wave, op, number)
    return wave.v[number] if op == "vgpr_at" else wave.s[number : number + 1]


def check_register(wave: Wave, op: str, number: int) -> None:
    """UnsupportedError for a register the wave does not have."""
    limit = wave.dispatch.kernel.vgprs if op == "vgpr_at" else 106
    if number >= limit:
        raise UnsupportedError(f"M0 leads to register {number} of {limit}")


def _scattered(wave: Wave, index: np.ndarray, register: int) -> np.ndarray:
    """Each active lane sends its register to lane `index`; who receives nothing has 0."""
    result = np.zeros(wave.lanes, dtype=np.uint32)
    for lane in np.flatnonzero(wave.lanes_of(wave.exec)):
        result[index[lane]] = wave.v[register, lane]
    return result


def apply_stores(wave: Wave, stores: list[Store]) -> None:
    """Compute everything first, then write."""
    wanted = []
    for store in stores:
        wanted += [each for each in (store.value, store.condition, store.lane) if each is not None]
    computed = dict(zip(map(id, wanted), evaluate(wanted, leaf_reader(wave)), strict=True))
    computed = {key: array.copy() for key, array in computed.items()}
    active = wave.lanes_of(wave.exec)
    null = 249 - wave.dispatch.kernel.family.m0
    for store in stores:
        array = computed[id(store.value)]
        if store.where == "vgpr":
            written = active if store.condition is None else active & computed[id(store.condition)]
            wave.v[store.index] = np.where(written, array, wave.v[store.index])
        elif store.where == "whole":
            wave.v[store.index] = array
        elif store.where in ("mask", "exec_lanes"):
            packed = np.packbits(np.broadcast_to(array, active.shape) & active, bitorder="little")
            words = packed.view(np.uint32)
            if store.index != null:
                wave.s[store.index : store.index + len(words)] = words
        elif store.where == "sgpr" and store.index != null:
            wave.s[store.index] = array[0]
        elif store.where == "scc":
            wave.memory[SCC] = array[0]
        elif store.where == "exec":
            wave.exec = int(array[0])
        elif store.where == "lane":
            wave.v[store.index, int(computed[id(store.lane)][0])] = array[0]
        elif store.where in ("vgpr_at", "sgpr_at"):
            number = int(computed[id(store.lane)][0])
            check_register(wave, store.where, number)
            if store.where == "vgpr_at":
                wave.v[number] = np.where(active, array, wave.v[number])
            else:
                wave.s[number] = array[0]


def branch_taken(wave: Wave, name: str) -> bool:
    """Whether a branch leaves the straight path."""
    if name == "s_branch":
        return True
    condition = name.removeprefix("s_cbranch_")
    if condition in ("scc0", "scc1"):
        return bool(wave.memory[SCC]) == (condition == "scc1")
    zero = wave.mask(VCC if condition.startswith("vcc") else EXEC) == 0
    return zero == (not condition.endswith("nz"))


def index_stores(instruction: Instruction) -> list[Store]:
    """What s_set_gpr_idx_on writes into M0: the index in the low byte, the mode in bits 15:12."""
    m0 = instruction.family.m0
    kept = Value("u32", "sgpr", m0) & 0xFFFF0F00
    value = kept | raw(instruction.sources[0]) & 255 | (instruction.sources[1].value & 15) << 12
    return [Store("sgpr", m0, value)]


def check_barrier(instruction: Instruction) -> None:
    """UnsupportedError for a barrier other than the workgroup's, whose number is -1, source code 193."""
    if instruction.sources[0].code != WORKGROUP_BARRIER:
        raise UnsupportedError("a barrier other than the workgroup's")


def hardware_register(instruction: Instruction) -> tuple[int, int, int]:
    """(number, lowest bit, width) that s_getreg and s_setreg name."""
    part = register_part(next(each.value for each in instruction.sources if each.token == "hwreg"))
    return part.number, part.low, part.width


def mode_with(held: int, number: int, value: int, mask: int) -> int:
    """MODE after s_setreg of these bits. UnsupportedError for another register, or bits that are not
    emulated.
    """
    if number != MODE_REGISTER:
        raise UnsupportedError(f"writing hardware register {number}")
    if value & mask & ~SETTABLE:
        raise UnsupportedError(f"bits {value & mask & ~SETTABLE:#x} of MODE: exceptions and debugging")
    return held & ~(mask & SETTABLE) | value & mask & SETTABLE


def changed_mode(mode: int, instruction: Instruction) -> int:
    """The mode after s_round_mode, s_denorm_mode or s_set_gpr_idx."""
    field = INDEX
    if "gpr_idx" not in instruction.name:
        field = ROUNDING if instruction.name == "s_round_mode" else DENORMALS
    value = instruction.sources[-1].value if instruction.sources else 0
    return mode & ~field.mask | field.placed(value) & field.mask


def run(dispatch: Dispatch, cancelled: Callable[[], bool] | None = None, first: int = 0) -> None:
    """Run the workgroups of a dispatch from number `first` on. See Interpreter.run for `cancelled`."""
    for place in itertools.islice(iter_groups(dispatch.groups), first, None):
        Interpreter(Group(dispatch, place)).run(cancelled)
