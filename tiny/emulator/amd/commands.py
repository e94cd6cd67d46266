"""The debugger's commands: what a person or a script may ask of a kernel that is stepped."""

import cmd
import difflib
import inspect
from collections.abc import Iterable

from tiny.emulator.amd import views
from tiny.emulator.amd.formats import FORMATS, format_named, number, width
from tiny.emulator.amd.isa.memory import MemoryFault
from tiny.emulator.amd.stepping import Stepping, Stop

PROMPT = "(tiny) "
ALIASES = {
    "b": "break", "bt": "waves", "c": "continue", "d": "delete", "h": "help", "l": "list", "n": "next",
    "p": "registers", "q": "quit", "r": "registers", "s": "step", "w": "watch", "x": "memory",
}  # fmt: skip
LISTED, LISTED_BEFORE = 10, 3  # instructions of `list`, of which in front of the place
CALLS = ("s_call_b64", "s_swappc_b64")


class Debugger(cmd.Cmd):
    """The commands. Every `do_` returns True to leave; a ValueError is shown, and the debugger goes on.

    buffers: addresses of b0, b1, ...; failed: whether a command was refused; left: whether to end the program
    """

    prompt = PROMPT

    def __init__(self, run: Stepping, buffers: Iterable[int] = (), stdout=None):
        super().__init__(stdout=stdout)
        self.run, self.buffers = run, list(buffers)
        self.failed = self.left = False
        self._snapshot = views.Snapshot(run.group)

    # -- the loop --------------------------------------------------------------------------------------------
    def say(self, *lines: str) -> None:
        """Print lines."""
        for line in lines:
            print(line.rstrip(), file=self.stdout)

    def start(self) -> None:
        """Say what is debugged, and where it stands."""
        kernel, work = self.run.kernel, self.run.dispatch
        self.say(
            f"{kernel.name}: {kernel.family.name}, wave{kernel.wave_size}, {views.comma(work.groups)} groups "
            f"of {views.comma(work.size)} work-items, {kernel.lds_bytes} bytes of LDS, "
            f"{kernel.scratch_bytes} of scratch",
            views.where(self.run),
        )

    def script(self, lines: Iterable[str]) -> None:
        """Execute commands, each shown behind the prompt, until one leaves; # starts a comment."""
        for line in lines:
            line = line.strip()
            if line and not line.startswith("#"):
                self.say(PROMPT + line)
                if self.onecmd(line):
                    return

    def onecmd(self, line: str) -> bool:
        """Execute a command, maybe shortened or an alias; whether to leave. What is refused is shown."""
        word, space, rest = line.strip().partition(" ")
        if word == "EOF":                                    # Ctrl-D, as `cmd` tells it
            self.say("")
            word = "quit"
        name = ALIASES.get(word, word)
        if name and not hasattr(self, f"do_{name}"):
            starts = [each for each in self.names() if each.startswith(name)]
            name = starts[0] if len(starts) == 1 else name
        try:
            return bool(super().onecmd(f"{name}{space}{rest}"))
        except (ValueError, MemoryFault) as error:
            self.failed = True
            self.say(f"error: {error}")
            return False

    def names(self) -> list[str]:
        """The commands."""
        return sorted(each[3:] for each in self.get_names() if each.startswith("do_"))

    def do_help(self, text: str) -> None:
        """help [COMMAND] -- (h) what there is, or more about one; `help examples` shows how it looks"""
        name = ALIASES.get(text.strip(), text.strip())
        if name == "examples":
            self.say(*EXAMPLES.splitlines())
        elif name in self.names():
            self.say(*inspect.cleandoc(getattr(self, f"do_{name}").__doc__).splitlines())
        elif name:
            self.default(name)
        else:
            for each in self.names():
                syntax, _, what = getattr(self, f"do_{each}").__doc__.splitlines()[0].partition(" -- ")
                self.say(f"{syntax:28} {what}" if len(syntax) < 28 else f"{syntax}\n{'':28} {what}")

    def default(self, line: str) -> None:
        """ValueError for an unknown command, with the one that was meant or with all there are."""
        word = line.split()[0]
        close = difflib.get_close_matches(word, self.names(), n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(self.names())}"
        raise ValueError(f"unknown command {word!r}; {hint}")

    # -- running ---------------------------------------------------------------------------------------------
    def _moved(self, stop: Stop) -> bool:
        """Show where a run came to a halt; False, for the debugger stays."""
        if stop.error is not None:
            self.say(f"error: {stop.reason}")
            self.say("the registers and the memory are as they were then; `continue` or `quit` ends it")
            return False
        if stop.reason:
            self.say(stop.reason)
        if not stop.over:
            self.say(views.where(self.run))
        return False

    def _going(self) -> None:
        if self.run.over:
            raise ValueError("the kernel has ended; `quit` leaves, or start it again")
        self.run.interrupted = False
        self._snapshot = views.Snapshot(self.run.group)

    def do_step(self, text: str) -> bool:
        """step [N] -- (s) execute N instructions, 1 by default

        At its end or at a barrier a wave gives way to the next one.
        """
        self._going()
        return self._moved(self.run.step(_count(text, 1)))

    def do_next(self, text: str) -> bool:
        """next [N] -- (n) as step, but a call counts as one instruction, up to its return"""
        self._going()
        stop = Stop("")
        for _ in range(_count(text, 1)):
            stop = self._over_one()
            if stop.reason:
                break
        return self._moved(stop)

    def _over_one(self) -> Stop:
        run, wave = self.run, self.run.wave
        if run.mnemonic(wave.pc) not in CALLS:
            return run.step()
        back = run.add_breakpoint(text="return", pc=run.next_pc(wave.pc), group=wave.group, wave=wave.number)
        stop = run.resume()
        run.delete(back.number)
        return Stop("") if stop.reason == f"breakpoint {back.number}: return" else stop

    def do_continue(self, text: str) -> bool:
        """continue -- (c) run to the next breakpoint or watchpoint, or to the end of the kernel

        Behind the end of the kernel it leaves; a Python program then goes on.
        """
        if self.run.failed is not None or self.run.over:
            return True
        self._going()
        return self._moved(self.run.resume())

    def do_barrier(self, text: str) -> bool:
        """barrier -- run until every wave of the workgroup waits at a barrier or has ended"""
        self._going()
        return self._moved(self.run.to_barrier())

    def do_quit(self, text: str) -> bool:
        """quit -- (q) leave; a Python program ends too"""
        self.left = True
        return True

    # -- places to stop at -----------------------------------------------------------------------------------
    def do_break(self, text: str) -> None:
        """break [PLACE] [wave N] [group X,Y,Z] -- (b) stop in front of an instruction

        PLACE: loop, loop+8        a label
               0x124               a byte offset in the code, or an address of the card
               #100                when a wave has executed 100 instructions
               v_mul_*             a mnemonic, with * and ?
               left out            the first instruction of that wave or group
        Without anything: the list of breakpoints and watchpoints.
        """
        if not text:
            self.do_breakpoints("")
            return
        words = text.split()
        fields = {"text": text}
        while len(words) > 1 and words[-2] in ("wave", "group"):
            fields[words[-2]] = _group(words[-1]) if words[-2] == "group" else _count(words[-1], 0)
            words = words[:-2]
        if len(words) > 1:
            raise ValueError(f"break {text}: one place, then `wave N` and `group X,Y,Z`; see `help break`")
        if "wave" in fields and fields["wave"] >= len(self.run.group.waves):
            raise ValueError(f"wave {fields['wave']}: a workgroup has {len(self.run.group.waves)} waves")
        fields |= self._place(words[0]) if words else {}
        added = self.run.add_breakpoint(**fields)
        where = f" at {added.pc:#x} <{self.run.label(added.pc)}>" if added.pc is not None else ""
        self.say(f"breakpoint {added.number}: {text}{where}")

    def _place(self, word: str) -> dict:
        if word.startswith("#"):
            return {"count": _count(word[1:], 0)}
        known = word.partition("+")[0] in self.run.symbols
        if not known and not word[0].isdigit():
            opcodes = self.run.kernel.family.opcodes
            names = sorted({name for table in opcodes.values() for name in table.values()})
            if "*" in word or "?" in word or word in names:
                return {"pattern": word}
            close = difflib.get_close_matches(word, [*self.run.symbols, *names], n=1)
            hint = f"did you mean {close[0]}?" if close else "see `help break`"
            raise ValueError(f"break {word}: neither a label nor a mnemonic; {hint}")
        pc = self._code_place(word)
        return {"pc": pc}

    def _code_place(self, word: str) -> int:
        """The byte offset of a label, an offset or an address."""
        kernel = self.run.kernel
        at = views.place(word, self.run, self.buffers)
        pc = at - kernel.address if at >= kernel.address else at
        if not 0 <= pc < len(kernel.code):
            raise ValueError(f"{word}: the code has {len(kernel.code):#x} bytes at {kernel.address:#x}")
        return pc

    def do_watch(self, text: str) -> None:
        """watch REGISTER | [global|lds|scratch LANE] PLACE [BYTES] -- (w) stop when it has changed

        Stops behind the instruction that changes a register of its wave, or bytes of memory, 4 by default.
        Storing what is there already is no change.
        PLACE: a sum of b0 (argument 0), args, numbers, labels, registers: b0+16, s[2:3]+4, v[1:2]@5 (lane 5).
        For memory that one register points to say `watch global s[2:3]`.
        """
        words = text.split()
        if not words:
            raise ValueError("watch what? a register or a place: watch v3, watch lds 0x10, watch b0+4")
        if len(words) == 1 and words[0] not in self.run.symbols:
            try:
                register = views.register_named(words[0], self.run.wave)
            except ValueError:
                register = None
            if register is not None:
                added = self.run.add_watchpoint(text, lambda run, wave: register.words(wave).tobytes(), True)
                self.say(f"watchpoint {added.number}: {text}")
                return
        space, lane, words = self._space(words)
        address = self._address(words, space)
        size = _count(words[1], 4) if len(words) > 1 else 4
        self._bytes(space, lane, address, size)
        added = self.run.add_watchpoint(
            text, lambda run, wave: self._bytes(space, lane, address, size), space == "scratch"
        )
        self.say(f"watchpoint {added.number}: {size} bytes of {space} at {address:#x}")

    def do_delete(self, text: str) -> None:
        """delete N -- (d) remove a breakpoint or watchpoint"""
        if not self.run.delete(_count(text, -1)):
            raise ValueError(f"there is no breakpoint or watchpoint {text!r}; `breakpoints` lists them")

    def do_breakpoints(self, text: str) -> None:
        """breakpoints -- all breakpoints and watchpoints"""
        for each in self.run.breakpoints:
            self.say(f"{each.number}: break {each.text}, hit {each.hits} times")
        for each in self.run.watchpoints:
            self.say(f"{each.number}: watch {each.text}")
        if not self.run.breakpoints and not self.run.watchpoints:
            self.say("none; `break PLACE` and `watch WHAT` add some")

    # -- looking ---------------------------------------------------------------------------------------------
    def do_registers(self, text: str) -> None:
        """registers [NAME ...] [FORMAT] -- (r, p) registers, by default all that were written

        NAME: v3, v[3:6], a0, s2, s[2:3], ttmp7, vcc, exec, m0, scc, mode, pc.
        FORMAT: hex u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64.
        * marks what the last command changed; the values of inactive lanes stand in brackets.
        """
        words = text.split()
        format = words.pop() if words and words[-1] in FORMATS else "hex"
        wave = self.run.wave
        found = [views.register_named(word, wave) for word in words] or views.written_registers(wave)
        if not words:
            self.say(views.where(self.run))
        for register in found:
            self.say(*views.shown_register(register, wave, self._snapshot, format, False))

    def do_lanes(self, text: str) -> None:
        """lanes NAME [FORMAT] -- one vector register over all lanes of the wave: lanes v3 f32"""
        words = text.split()
        if not 1 <= len(words) <= 2:
            raise ValueError("lanes: which register? lanes v3, lanes v3 f32, lanes v[2:3] f64")
        register = views.register_named(words[0], self.run.wave)
        if not register.vector:
            raise ValueError(f"{words[0]} is one value for all lanes; `registers {words[0]}` shows it")
        format = format_named(words[1]) if len(words) > 1 else "hex"
        self.say(*views.shown_register(register, self.run.wave, self._snapshot, format, True))

    def do_set(self, text: str) -> None:
        """set REGISTER VALUE [FORMAT] -- change a register

        set s4 7      set v2 1.5 f32 (all active lanes)      set v2@3 -1 (lane 3)
        """
        words = text.split()
        if not 2 <= len(words) <= 3:
            raise ValueError("set: a register, a value and maybe a format: set v2@3 1.5 f32")
        name, _, lane = words[0].partition("@")
        wave = self.run.wave
        register = views.register_named(name, wave)
        format = format_named(words[2]) if len(words) > 2 else "u32"
        data = number(words[1], format).ljust(4, b"\0")
        if len(data) != 4 * register.count:
            raise ValueError(f"{name} has {4 * register.count} bytes, a {format} value {len(data)}")
        only = views.lane_number(lane, wave) if lane else None
        for n in range(register.count):
            word = int.from_bytes(data[4 * n : 4 * n + 4], "little")
            if register.vector:
                self.run.write_vector(register.first + n, word, only)
            else:
                wave.memory[register.first + n] = word

    def do_memory(self, text: str) -> None:
        """memory [global|lds|scratch LANE] PLACE [COUNT] [FORMAT] -- (x) elements of memory

        memory b0 16 f32    of argument 0               memory s[2:3]+64        where registers point to
        memory lds 0 64     of the workgroup            memory scratch 5 0x10   of lane 5
        COUNT is 32 by default; PLACE as in `help watch`, FORMAT as in `help registers`.
        """
        space, lane, words = self._space(text.split())
        if words[-1:] and words[-1] in FORMATS:
            format = words.pop()
        else:
            format = "hex"
        address = self._address(words, space)
        count = _count(words[1], 1) if len(words) > 1 else None
        size = width(format) * (count or 32)
        if count is None:  # as much as there is
            size = self._size_left(space, lane, address, size)
        self.say(*views.memory_lines(address, self._bytes(space, lane, address, size), format))

    def _space(self, words: list[str]) -> tuple[str, int, list[str]]:
        """(space, lane, the words behind them)."""
        if words[:1] == ["scratch"]:
            if len(words) < 3:
                raise ValueError("scratch: of which lane, and where? memory scratch 5 0x10")
            return "scratch", views.lane_number(words[1], self.run.wave), words[2:]
        if words[:1] in (["lds"], ["global"]):
            return words[0], 0, words[1:]
        return "global", 0, words

    def _address(self, words: list[str], space: str) -> int:
        if not words:
            raise ValueError(f"where in {space} memory? a number, or a sum such as b0+16 or s[2:3]+4")
        if len(words) > 2:
            raise ValueError(f"{' '.join(words[2:])!r}: no format; there are {', '.join(FORMATS)}")
        return views.place(words[0], self.run, self.buffers)

    def _bytes(self, space: str, lane: int, address: int, size: int) -> bytes:
        if space == "global":
            return self.run.dispatch.memory.read(address, size)
        return views.local_bytes(self.run, space, lane, address, size)

    def _size_left(self, space: str, lane: int, address: int, size: int) -> int:
        if space == "global":
            for each in self.run.dispatch.memory.ranges():
                if each.address <= address < each.address + each.size:
                    return min(size, each.address + each.size - address)
            return size
        memory = self.run.group.lds if space == "lds" else self.run.wave.scratch[lane]
        return min(size, len(memory) - address) if address < len(memory) else size

    def do_list(self, text: str) -> None:
        """list [PLACE] [N] -- (l) disassembly around the program counter, or from a place on"""
        words = text.split()
        count = _count(words.pop(), LISTED) if len(words) > 1 else LISTED
        if words:
            start = self._code_place(words[0])
        else:
            start = views.before(self.run, self.run.wave.pc, LISTED_BEFORE)
        self.say(*views.listing(self.run, start, count))

    def do_where(self, text: str) -> None:
        """where -- which wave stands where; #N is how many instructions it has executed"""
        self.say(views.where(self.run))

    def do_waves(self, text: str) -> None:
        """waves -- (bt) where every wave of the workgroup stands; > is the selected one"""
        self.say(*views.waves(self.run))

    def do_wave(self, text: str) -> None:
        """wave N -- select a wave: it is looked at, and stepped next if it can run"""
        waves = self.run.group.waves
        chosen = _count(text, -1)
        if not 0 <= chosen < len(waves):
            raise ValueError(f"wave {text!r}: the workgroup has the waves 0 to {len(waves) - 1}")
        self.run.wave = waves[chosen]
        self.say(views.where(self.run))


EXAMPLES = """\
b loop                    stop at a label              c                     go on
b v_fma_*  wave 1         at any of these, in wave 1   s 5                   five instructions
b group 2                 where workgroup 2 starts     barrier               to the next barrier
w v3                      when v3 changes              w b0+16 8             when 8 bytes of buffer 0 do
r                         registers written so far     r s[2:3] vcc v4 f32   these, as f32
lanes v3 f16              one register, all lanes      set v2@3 1.5 f32      change lane 3
x b0 16 f32               memory of argument 0         x lds 0 64 u16        local memory
l                         code around here             bt                    where all waves stand"""


def _count(text: str, default: int) -> int:
    try:
        return int(text, 0) if text else default
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None


def _group(text: str) -> tuple[int, int, int]:
    try:
        found = [int(part, 0) for part in text.split(",")]
    except ValueError:
        found = []
    if not 1 <= len(found) <= 3:
        raise ValueError(f"group {text!r}: one to three numbers: group 2, group 1,0,3")
    return tuple(found + [0] * (3 - len(found)))
