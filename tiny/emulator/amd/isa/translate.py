"""A whole kernel as C: basic blocks with labels, vector instructions as loops over lanes, memory with faults.

What the translation does not know (an instruction of a rare kind) it hands to the interpreter, one step at a
time, on the same registers. The text depends only on the code, the mode and the wave size, so its object is
cached like a kernel's.
"""

import hashlib
from pathlib import Path

from tiny.emulator.amd.isa import c_matrix, c_memory, c_text
from tiny.emulator.amd.isa.decode import VCC, DecodeError, Family, Instruction, decode
from tiny.emulator.amd.isa.errors import UnsupportedError
from tiny.emulator.amd.isa.immediates import SENDMSG_DEALLOC_VGPRS
from tiny.emulator.amd.isa.interpreter import (
    MODE_REGISTER,
    changed_mode,
    check_barrier,
    hardware_register,
    index_stores,
    mode_with,
)
from tiny.emulator.amd.isa.lower import Store, lower, raw
from tiny.emulator.amd.isa.mode import INDEX, Mode
from tiny.emulator.amd.isa.segment import EXEC, LANE_WISE, Segment, mask_text, mentions, uniform_leaf
from tiny.emulator.amd.isa.state import Kernel
from tiny.toolchain import Source

RUNTIME = Path(__file__).with_name("runtime.c").read_text()
INTERPRETED = {"scatter", "sgpr_at"}  # leaves that only the interpreter knows
VECTOR_KINDS = {"vector", "packed", "mix", "dot", "lanes", "indirect", "matrix move", "packed move"}
FUNCTION = "static u32 kernel"
LONGEST = 12  # bytes of an instruction
MOST_INSTRUCTIONS = 200_000  # of one kernel; more is a runaway


def preamble(wave_size: int) -> str:
    """What precedes the kernel in its unit."""
    kind = "u32" if wave_size == 32 else "u64"
    return f"#define LANES {wave_size}\n#define MASK {kind}\n{RUNTIME}"


def translate(kernel: Kernel, places: frozenset[int] = frozenset()) -> Source:
    """The kernel's source. places: byte offsets that are jumped to through registers, as found out by running
    it.
    """
    body = Translator(kernel).function(places)
    name = "run_" + hashlib.blake2b(body.encode(), digest_size=8).hexdigest()  # kernels may share a unit
    body = body.replace(FUNCTION, f"static u32 kernel_of_{name}", 1)
    entry = f"u32 {name}(struct run *r) {{ return run_groups(r, kernel_of_{name}); }}\n"
    return Source(name, body + entry, preamble(kernel.wave_size))


class Translator:
    """Walks the code from its entry along all branches."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.null = 249 - kernel.family.m0
        self._start_mode = kernel.mode
        self._lines: list[str] = []
        self._undecoded: set[int] = set()
        self._float_mode = self._start_mode
        self._segment = Segment(kernel.wave_size, self.null)

    def function(self, places: frozenset[int]) -> str:
        """The C function `kernel`, after finding out which instructions can be reached."""
        starts, reached = self._explore({self.kernel.entry, *places})
        cases = " ".join(f"case {pc}: goto L{pc};" for pc in sorted(starts))
        lines = [
            f"{FUNCTION}(struct run *r, struct wave *w) {{",
            "u32 *const S = w->s; u32 (*const V)[LANES] = w->v;",
            "u32 bad;",
            "again:",
            f"switch (w->pc) {{ {cases} default: return NEW_PLACE; }}",
        ]
        for start in sorted(starts):
            lines += [f"L{start}: ;", *self._block(start, starts, reached)]
        return "\n".join([*lines, "}", ""])

    # -- which instructions there are ------------------------------------------------------------------------
    def _explore(self, entries: set[int]) -> tuple[set[int], dict[int, Instruction]]:
        """(starts of basic blocks, every instruction that can be reached by its offset)."""
        starts, reached, todo = set(entries), {}, list(entries)
        while todo:
            pc = todo.pop()
            while pc not in reached:
                try:
                    instruction = reached[pc] = self.kernel.at(pc)
                except DecodeError:
                    self._undecoded.add(pc)  # a step of the interpreter, which says what is wrong
                    break
                if len(reached) > MOST_INSTRUCTIONS:
                    raise UnsupportedError(
                        f"{self.kernel.name} has more than {MOST_INSTRUCTIONS} instructions"
                    )
                kind, follows = instruction.operation.kind, pc + instruction.size
                if kind in ("branch", "jump"):
                    targets = jump_targets(instruction, follows)
                    starts.update((*targets, follows))
                    todo += targets
                elif kind == "barrier" or not self._translated(instruction):
                    starts.add(follows)
                if kind == "end" or instruction.name in ("s_branch", "s_setpc_b64"):
                    break
                pc = follows
        return starts & reached.keys() | self._undecoded, reached

    def _translated(self, instruction: Instruction) -> bool:
        """Whether this instruction becomes C; others are steps of the interpreter."""
        try:
            self._check(instruction)
        except UnsupportedError:
            return False
        return True

    def _check(self, instruction: Instruction) -> None:
        kind = instruction.operation.kind
        if kind in VECTOR_KINDS or kind == "scalar":
            mode = Mode.from_bits(self._start_mode, self.kernel.family.name)
            stores = lower(instruction, mode, self.kernel.wave_size)
            if any(store.where == "sgpr_at" or uses(store, INTERPRETED) for store in stores):
                raise UnsupportedError(instruction.name)
        elif kind == "register" and hardware_register(instruction)[0] != MODE_REGISTER:
            raise UnsupportedError("a hardware register other than MODE")
        elif kind == "matrix":
            self._matrix_lines(instruction)
        elif kind in ("memory", "scalar memory"):
            mode = Mode.from_bits(self._start_mode, self.kernel.family.name)
            c_memory.statements(instruction, self.kernel.wave_size, self.null, mode)
        elif kind not in (
            "branch",
            "jump",
            "end",
            "barrier",
            "wait",
            "mode",
            "message",
            "register",
            "signal",
        ):
            raise UnsupportedError(instruction.name)

    # -- writing ---------------------------------------------------------------------------------------------
    def _block(self, start: int, starts: set[int], reached: dict[int, Instruction]) -> list[str]:
        self._lines, self._float_mode, pc = [], self._start_mode, start
        if start in self._undecoded:
            return [f"w->pc = {start}; return STEP;"]
        while pc in reached and (pc == start or pc not in starts):
            instruction = reached[pc]
            leaves = self._instruction(instruction, pc)
            pc += instruction.size
            if leaves:
                break
        else:
            self._finish()
            self._leave_mode(pc)
            known = pc in reached or pc in self._undecoded
            self._lines.append(f"goto L{pc};" if known else f"w->pc = {pc}; return NEW_PLACE;")
        self._finish()
        return self._lines

    def _finish(self) -> None:
        """Close the loop over lanes."""
        if not self._segment.empty:
            self._lines += self._segment.text()
            self._segment = Segment(self.kernel.wave_size, self.null)

    def _leave_mode(self, pc: int) -> None:
        if self._float_mode != self._start_mode:
            raise UnsupportedError(
                f"{self.kernel.name}: the float mode differs where blocks meet, at {pc:#x}"
            )

    def _instruction(self, instruction: Instruction, pc: int) -> bool:
        """Write one instruction. True if control never reaches the next one in line."""
        kind = instruction.operation.kind
        if not self._translated(instruction):
            self._finish()
            self._leave_mode(pc)
            self._lines.append(f"w->pc = {pc}; return STEP;")
            return True
        if kind in ("wait", "signal", "message"):
            if kind == "signal":
                check_barrier(instruction)
            if kind == "message" and instruction.sources[0].value != SENDMSG_DEALLOC_VGPRS:
                raise UnsupportedError("this message")
            return False
        if kind in VECTOR_KINDS or kind == "scalar":
            self._registers(instruction)
            return False
        self._finish()
        return getattr(self, f"_{kind.replace(' ', '_')}")(instruction, pc)

    def _registers(self, instruction: Instruction) -> None:
        mode = Mode.from_bits(self._float_mode, self.kernel.family.name)
        stores = lower(instruction, mode, self.kernel.wave_size)
        if all(store.where in LANE_WISE for store in stores):
            if not self._segment.accepts(stores):
                self._finish()
            self._segment.add(stores)
            return
        self._finish()
        self._uniform(stores)

    def _uniform(self, stores: list[Store]) -> None:
        """Scalar results, computed once."""
        writer = c_text.Writer(self._leaf)
        wanted = [each for store in stores for each in (store.value, store.lane) if each is not None]
        texts = dict(zip(map(id, wanted), writer.expressions(wanted), strict=True))
        lines = []
        for number, store in enumerate(stores):
            text = texts[id(store.value)]
            lines.append(f"const {c_text.CTYPE[store.value.kind]} r{number} = {text};")
        for number, store in enumerate(stores):
            if store.where == "sgpr" and store.index != self.null:
                lines.append(f"S[{store.index}] = r{number};")
            elif store.where == "scc":
                lines.append(f"w->scc = r{number};")
            elif store.where == "exec":
                lines.append(f"S[{EXEC}] = r{number}; S[{EXEC + 1}] = r{number} >> 32;")
            elif store.where == "lane":
                lines.append(f"V[{store.index}][{texts[id(store.lane)]}] = r{number};")
        self._lines += ["{", *writer.statements, *lines, "}"]

    def _leaf(self, value) -> str | None:
        if value.op in ("gather", "lane_number"):
            writer = c_text.Writer(self._leaf, "g")
            index = writer.expressions([value.args[0]])[0]
            if writer.statements:
                raise UnsupportedError("a lane number that is computed")
            bound = self.kernel.wave_size - 1
            return f"V[{value.args[1]}][{index}]" if value.op == "gather" else f"({index} & {bound})"
        return uniform_leaf(value, self.kernel.wave_size, self.null)

    # -- memory ----------------------------------------------------------------------------------------------
    def _memory(self, instruction: Instruction, pc: int) -> bool:
        mode = Mode.from_bits(self._float_mode, self.kernel.family.name)
        self._lines += [
            "{",
            f"w->pc = {pc};",
            *c_memory.statements(instruction, self.kernel.wave_size, self.null, mode, pc // 8),
            "}",
        ]
        return False

    _scalar_memory = _memory

    def _matrix(self, instruction: Instruction, pc: int) -> bool:
        self._lines += self._matrix_lines(instruction)
        return False

    def _matrix_lines(self, instruction: Instruction) -> list[str]:
        size = self.kernel.wave_size
        return c_matrix.statements(instruction, size, lambda value: uniform_leaf(value, size, self.null))

    # -- flow ------------------------------------------------------------------------------------------------
    def _branch(self, instruction: Instruction, pc: int) -> bool:
        self._leave_mode(pc)
        target = pc + instruction.size + 4 * instruction.sources[-1].value
        condition = branch_condition(instruction.name, self.kernel.wave_size)
        jump = f"goto L{target};"
        if target <= pc:  # a loop may never end: come back to Python now and then
            jump = f"{{ if (!--r->fuel) {{ w->pc = {target}; return PAUSE; }} {jump} }}"
        self._lines.append(f"if ({condition}) {jump}")
        if instruction.name == "s_branch":
            return True
        self._lines.append(f"goto L{pc + instruction.size};")
        return True

    def _jump(self, instruction: Instruction, pc: int) -> bool:
        self._leave_mode(pc)
        base, follows = self.kernel.address, pc + instruction.size
        self._lines.append("{")
        if instruction.sources and instruction.name != "s_call_b64":
            low, high = (
                uniform_leaf(raw(instruction.sources[0], n), self.kernel.wave_size, self.null) for n in (0, 1)
            )
            self._lines.append(f"const u64 target = ((u64){high} << 32 | {low}) - {base}ul;")
        if instruction.results:
            code, address = instruction.results[0].code, base + follows
            self._lines.append(
                f"S[{code}] = {address & 0xFFFFFFFF:#x}u; S[{code + 1}] = {address >> 32:#x}u;"
            )
        if instruction.name == "s_getpc_b64":
            self._lines.append("}")
            return False
        if instruction.name == "s_call_b64":
            self._lines.append(f"}} goto L{follows + 4 * instruction.sources[0].value};")
        else:
            self._lines.append("w->pc = target < 0xffffffff ? target : 0xffffffff; } goto again;")
        return True

    def _end(self, instruction: Instruction, pc: int) -> bool:
        self._lines.append(f"w->pc = {pc}; w->state = ENDED; return DONE;")
        return True

    def _barrier(self, instruction: Instruction, pc: int) -> bool:
        self._leave_mode(pc)
        self._lines.append(f"w->pc = {pc + instruction.size}; w->state = AT_BARRIER; return DONE;")
        return True

    def _mode(self, instruction: Instruction, pc: int) -> bool:
        self._set_mode(changed_mode(self._float_mode, instruction))
        if instruction.name == "s_set_gpr_idx_on":
            self._uniform(index_stores(instruction))
        return False

    def _set_mode(self, mode: int) -> None:
        self._float_mode = mode
        self._lines.append(f"w->mode = {mode};")

    def _register(self, instruction: Instruction, pc: int) -> bool:
        number, low, width = hardware_register(instruction)
        mask = (1 << width) - 1 << low
        if instruction.name == "s_getreg_b32":
            seen = mask & ~INDEX.mask
            self._lines.append(f"S[{instruction.results[0].code}] = (w->mode & {seen:#x}u) >> {low};")
            return False
        if instruction.name != "s_setreg_imm32_b32":
            raise UnsupportedError(f"{instruction.name} of MODE with a value that is not known in advance")
        self._set_mode(mode_with(self._float_mode, number, instruction.sources[1].value << low, mask))
        return False


def extent(family: Family, code: bytes) -> int:
    """Bytes of `code` up to the end of the last instruction that can be reached from the first one."""
    seen: set[int] = set()
    todo, end = [0], 0
    while todo:
        pc = todo.pop()
        while pc not in seen:
            seen.add(pc)
            try:
                instruction = decode(family, code, pc)
            except DecodeError:
                end = max(end, min(pc + LONGEST, len(code)))  # whoever gets there says so
                break
            pc += instruction.size
            end = max(end, pc)
            todo += [target for target in jump_targets(instruction, pc) if target >= 0]
            if instruction.operation.kind == "end" or instruction.name in ("s_branch", "s_setpc_b64"):
                break
    return end


def uses(store: Store, ops: set[str]) -> bool:
    """Whether a leaf of those kinds occurs in what is stored."""
    return any(mentions(each, ops) for each in (store.value, store.condition, store.lane) if each is not None)


def jump_targets(instruction: Instruction, follows: int) -> list[int]:
    """Where a branch or a call may go, as far as the instruction itself says."""
    labels = [each for each in instruction.sources if each.token == "label"]
    return [follows + 4 * labels[0].value] if labels else []


def branch_condition(name: str, wave_size: int) -> str:
    """The C text of the condition of a branch."""
    if name == "s_branch":
        return "1"
    condition = name.removeprefix("s_cbranch_")
    if condition in ("scc0", "scc1"):
        return "w->scc" if condition == "scc1" else "!w->scc"
    mask = mask_text(VCC if condition.startswith("vcc") else EXEC, wave_size)
    return f"{mask} {'!=' if condition.endswith('nz') else '=='} 0"
