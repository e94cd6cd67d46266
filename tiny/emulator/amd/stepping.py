"""What a debugger stands on: a dispatch that runs instruction by instruction, with places to stop at.

Waves take turns as in the interpreter: one runs until it ends or waits at a barrier, then the next. Nothing
here prints; `debugger` is the part that people see.
"""

import fnmatch
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tiny.emulator.amd.isa.checked import Checked
from tiny.emulator.amd.isa.decode import DecodeError
from tiny.emulator.amd.isa.interpreter import Interpreter
from tiny.emulator.amd.isa.memory import MemoryFault
from tiny.emulator.amd.isa.state import (
    AT_BARRIER,
    ENDED,
    RUNNING,
    Dispatch,
    EmulationError,
    Group,
    Wave,
    iter_groups,
)
from tiny.emulator.amd.isa.text import disassemble
from tiny.emulator.amd.isa.translate import jump_targets

ENDED_TEXT = "the kernel has ended"
MOST_STEPS = 1_000_000  # of one command; a loop without an end stops here


@dataclass
class Breakpoint:
    """Stops in front of an instruction. Each of these is None where it does not matter.

    pc       byte offset in the code        count    how many instructions the wave has executed
    pattern  of the mnemonic, `*` and `?`   group, wave   only there
    text     what the user asked for; hits: how often it stopped
    """

    number: int
    text: str
    pc: int | None = None
    count: int | None = None
    pattern: str | None = None
    group: tuple[int, int, int] | None = None
    wave: int | None = None
    hits: int = 0

    def matches(self, run: "Stepping", wave: Wave) -> bool:
        """Whether a wave stands at it."""
        if self.group not in (None, wave.group) or self.wave not in (None, wave.number):
            return False
        executed = run.executed[wave.number]
        if self.pc is None and self.count is None and self.pattern is None:
            return executed == 0  # the wave's first instruction
        return (
            self.pc in (None, wave.pc)
            and self.count in (None, executed)
            and (self.pattern is None or fnmatch.fnmatch(run.mnemonic(wave.pc), self.pattern))
        )


@dataclass
class Watchpoint:
    """Stops behind the instruction that changes something.

    read: the bytes that are looked at, given the run and the wave that was stepped; None where they cannot be
    read; per_wave: each wave has its own, as for registers.
    """

    number: int
    text: str
    read: Callable[["Stepping", Wave], bytes | None]
    per_wave: bool
    seen: dict = field(default_factory=dict)

    def changed(self, run: "Stepping", wave: Wave) -> tuple[bytes, bytes] | None:
        """(before, now) if it is no longer what it was when this was last asked."""
        key = (wave.group, wave.number) if self.per_wave else None
        now = self.read(run, wave)
        before = self.seen.get(key, now)
        self.seen[key] = now
        return (before, now) if before != now and before is not None and now is not None else None


class Stop(NamedTuple):
    """Why a run came to a halt. over: the whole dispatch has ended; error: what an instruction failed with"""

    reason: str
    over: bool = False
    error: Exception | None = None


class Stepping:
    """A dispatch under way.

    group  the workgroup that runs now, at the end the last one      wave  the selected wave
    over   whether all of it has ended      checked  with what the interpreter of checked mode looks for
    executed  instructions of each wave of the group         symbols  name -> byte offset in the code
    failed  the error that ended it, if one did    interrupted  set by others: stop behind this instruction
    """

    def __init__(self, dispatch: Dispatch, symbols: dict[str, int] | None = None, checked: bool = False):
        self.dispatch, self.kernel = dispatch, dispatch.kernel
        self._kind = Checked if checked else Interpreter
        self.symbols = dict(symbols or {self.kernel.name: self.kernel.entry})
        self.breakpoints: list[Breakpoint] = []
        self.watchpoints: list[Watchpoint] = []
        self.failed: Exception | None = None
        self.interrupted = False
        self._next_number = 1
        self._groups = iter_groups(dispatch.groups)
        self.over = False
        self._enter_group()

    def _enter_group(self) -> None:
        place = next(self._groups, None)
        if place is None:
            self.over = True
            return
        self.group = Group(self.dispatch, place)
        self._interpreter = self._kind(self.group)
        self.wave = self.group.waves[0]
        self.executed = [0] * len(self.group.waves)
        self._note_watched()

    def _note_watched(self) -> None:
        for watchpoint in self.watchpoints:
            for wave in self.group.waves:
                watchpoint.changed(self, wave)

    # -- places ----------------------------------------------------------------------------------------------
    def mnemonic(self, pc: int) -> str:
        """The name of an instruction, "" where there is none."""
        try:
            return self.kernel.at(pc).name
        except DecodeError:
            return ""

    def text_at(self, pc: int) -> str:
        """The disassembly of an instruction, or why there is none."""
        try:
            instruction = self.kernel.at(pc)
        except (DecodeError, LookupError) as error:
            return f"({error})"
        text = disassemble(instruction, self.kernel.wave_size)
        targets = jump_targets(instruction, pc + instruction.size)
        return f"{text} -> {self.label(targets[0])}" if targets else text

    def decodes(self, pc: int) -> bool:
        """Whether there is an instruction at an offset."""
        try:
            self.kernel.at(pc)
        except DecodeError:
            return False
        return True

    def next_pc(self, pc: int) -> int:
        """The offset of the instruction behind one."""
        try:
            return pc + self.kernel.at(pc).size
        except DecodeError:
            return pc + 4

    def label(self, pc: int) -> str:
        """`loop+0x8`: the nearest symbol in front of a place."""
        before = [(offset, name) for name, offset in self.symbols.items() if offset <= pc]
        if not before:
            return f"{pc:#x}"
        offset, name = max(before)
        return f"{name}+{pc - offset:#x}" if pc != offset else name

    # -- places to stop at -----------------------------------------------------------------------------------
    def add_breakpoint(self, **fields) -> Breakpoint:
        """A new one; fields: those of Breakpoint behind its number."""
        self.breakpoints.append(Breakpoint(self._number(), **fields))
        return self.breakpoints[-1]

    def add_watchpoint(self, text: str, read, per_wave: bool) -> Watchpoint:
        """A new one; see Watchpoint. It compares with what is there now."""
        self.watchpoints.append(Watchpoint(self._number(), text, read, per_wave))
        self._note_watched()
        return self.watchpoints[-1]

    def _number(self) -> int:
        self._next_number += 1
        return self._next_number - 1

    def delete(self, number: int) -> bool:
        """Whether there was a place to stop of this number."""
        before = len(self.breakpoints) + len(self.watchpoints)
        self.breakpoints = [each for each in self.breakpoints if each.number != number]
        self.watchpoints = [each for each in self.watchpoints if each.number != number]
        return len(self.breakpoints) + len(self.watchpoints) < before

    # -- running ---------------------------------------------------------------------------------------------
    def step(self, count: int = 1) -> Stop:
        """Execute instructions of the selected wave; at its end or barrier, of the one whose turn it is."""
        for number in range(count):
            stop = self._one() or (self._broken() if number + 1 < count else None)
            if stop is not None:
                return stop
        return Stop("") if self._choose() else self._halted()

    def resume(self) -> Stop:
        """Run to the next place to stop at, or to the end."""
        for _ in range(MOST_STEPS):
            stop = self._one() or self._broken()
            if stop is not None:
                return stop
        return Stop(f"stopped after {MOST_STEPS} instructions; `continue` goes on")

    def to_barrier(self) -> Stop:
        """Run until every wave of a workgroup waits at a barrier or has ended."""
        for _ in range(MOST_STEPS):
            stop = self._one()
            if stop is None:
                states = [wave.state for wave in self.group.waves]
                if RUNNING not in states and AT_BARRIER in states:
                    return Stop(f"{states.count(AT_BARRIER)} of {len(states)} waves are at a barrier")
                stop = self._broken()
            if stop is not None:
                return stop
        return Stop(f"stopped after {MOST_STEPS} instructions; `barrier` goes on")

    def _one(self) -> Stop | None:
        """Execute one instruction of the wave whose turn it is."""
        if self.failed is not None:
            return Stop("it cannot go on after the error", error=self.failed)
        if not self._choose():
            return self._halted()
        wave = self.wave
        try:
            self._interpreter.step(wave)
        except (EmulationError, MemoryFault) as error:
            self.failed = error
            return Stop(str(error), error=error)
        self.executed[wave.number] += 1
        if self.interrupted:
            return Stop("interrupted")
        changes = [(each, each.changed(self, wave)) for each in self.watchpoints]
        hit = next(((each, change) for each, change in changes if change is not None), None)
        return Stop(f"watchpoint {hit[0].number}: {hit[0].text} changed") if hit else None

    def _halted(self) -> Stop:
        """Why no wave can run."""
        if self.failed is not None:
            return Stop(str(self.failed), error=self.failed)
        return Stop(ENDED_TEXT, over=True)

    def _choose(self) -> bool:
        """Select a wave that can run; False at the end of the dispatch, and after an error."""
        while not self.over and self.failed is None:
            if self.wave.state == RUNNING:
                return True
            waves = self.group.waves
            later = [*waves[self.wave.number + 1 :], *waves[: self.wave.number]]
            running = next((wave for wave in later if wave.state == RUNNING), None)
            if running is not None:
                self.wave = running
            elif any(wave.state == AT_BARRIER for wave in waves):
                self._release()
            else:
                self._enter_group()
        return False

    def _release(self) -> None:
        """Let the workgroup go on behind its barrier, from its first wave that waits."""
        try:
            self._interpreter.release()
        except EmulationError as error:
            self.failed = error
            return
        self.wave = next(wave for wave in self.group.waves if wave.state == RUNNING)

    def _broken(self) -> Stop | None:
        """The breakpoint in front of the instruction that comes next, if any."""
        if not self._choose():
            return self._halted()
        for each in self.breakpoints:
            if each.matches(self, self.wave):
                each.hits += 1
                return Stop(f"breakpoint {each.number}: {each.text}")
        return None

    def write_vector(self, register: int, value: int, lane: int | None = None) -> None:
        """Change a vector register of the selected wave, in one lane or in all active ones."""
        if lane is None:
            active = self.wave.lanes_of(self.wave.exec)
            self.wave.v[register] = np.where(active, np.uint32(value), self.wave.v[register])
        else:
            self.wave.v[register, lane] = value


STATES = {RUNNING: "running", AT_BARRIER: "at a barrier", ENDED: "ended"}
