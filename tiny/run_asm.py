"""`python -m tiny run-asm`: assemble a kernel, run it, print registers and memory.

    python -m tiny run-asm kernel.s --arg f32:0..31 --arg =5       # in the interpreter, registers shown
    AMD=1 python -m tiny run-asm kernel.s --arg f32:0..31          # on the card, by way of its queues
    AMD=1 EMULATE=gfx1201 python -m tiny run-asm kernel.s          # by way of the queues of an emulated card

A file without `.amdhsa_kernel` is taken as the instructions of one kernel: a descriptor is written around
them, s_endpgm is added, and s[0:1] holds the address of the arguments.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from tiny import config
from tiny.emulator.amd import bench
from tiny.emulator.amd.formats import dumped, width
from tiny.emulator.amd.isa import run
from tiny.emulator.amd.isa.checked import Checked
from tiny.emulator.amd.isa.code_object import load
from tiny.emulator.amd.isa.interpreter import Interpreter
from tiny.emulator.amd.isa.memory import MemoryFault
from tiny.emulator.amd.isa.state import ENDED, PC, POISON, SCC, Dispatch, EmulationError, Group, iter_groups
from tiny.emulator.amd.isa.text import disassemble, scalar_register
from tiny.hcq import device
from tiny.hcq.errors import DeviceError
from tiny.objfile import ObjectError
from tiny.toolchain import ToolchainError

MOST_STEPS = 1_000_000  # that are traced
ERRORS = (OSError, ToolchainError, ObjectError, ValueError, EmulationError, MemoryFault, DeviceError)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m tiny run-asm", description=__doc__)
    made.add_argument("file", help="assembly in LLVM's syntax, or a code object; - is standard input")
    bench.add_options(made)
    made.add_argument("--translate", action="store_true", help="run translated to C; registers are not shown")
    made.add_argument("--trace", action="store_true", help="print every instruction of the first wave")
    return made


def main(arguments: list[str]) -> int:
    """0, or 2 with one line that says what went wrong."""
    options = parser().parse_args(arguments)
    try:
        data = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
        if config.current().device_name.upper().partition(":")[0] == "AMD":
            _on_card(data, options)
        else:
            _emulated(data, options)
    except ERRORS as error:
        print(f"run-asm: {bench.told(error, options.file)}", file=sys.stderr)
        return 2
    for number, each in enumerate(each for each in options.arguments if not each.by_value):
        print(f"buffer {number}")
        _print_buffer(each)
    return 0


def _on_card(data: bytes, options: argparse.Namespace) -> None:
    """Through the driver: a real card, or an emulated one if EMULATE says so."""
    for flag in ("translate", "checked", "trace"):
        if getattr(options, flag):
            raise ValueError(f"--{flag} needs the interpreter; unset AMD, or use `python -m tiny debug`")
    if options.groups[1:] != (1, 1) or options.size[1:] != (1, 1):
        raise ValueError("--groups and --size go along x only on a card; unset AMD for more")
    card = device.open()
    options.mcpu = options.mcpu or card.target.arch
    code = bench.object_code(options.file, data, options)
    program = card.load(code, options.kernel or load(code, 0).kernels[0], options.size[0])
    buffers = []
    words = []
    for each in options.arguments:
        if each.by_value:
            words.append(int(each.data.view(np.uint64)[0]))
        else:
            buffers.append((each, card.allocate(each.data.nbytes).initialize(each.data.tobytes())))
            words.append(buffers[-1][1].address)
    queue = card.queue()
    queue.execute(program, words, options.groups[0])
    card.synchronize(queue.finish().submit())
    for each, buffer in buffers:
        each.data[:] = np.frombuffer(bytes(buffer.copyout())[: each.data.nbytes], np.uint8)
    print(f"ran on {card.name}, {' '.join(filter(None, (card.io.about, card.target.arch)))}")


def _emulated(data: bytes, options: argparse.Namespace) -> None:
    loaded = bench.Bench(bench.object_code(options.file, data, options), options)
    dispatch = loaded.dispatch(options.checked)
    if options.translate:
        run.run(dispatch)
    else:
        checked = options.checked or config.current().check > 0
        _interpret(dispatch, options.trace, Checked if checked else Interpreter)


def _interpret(dispatch: Dispatch, trace: bool, kind: type[Interpreter]) -> None:
    """Run the first workgroup with the registers of its first wave shown, then all others."""
    end = time.monotonic() + config.current().timeout_ms / 1000

    def late() -> bool:
        return time.monotonic() > end

    for place in iter_groups(dispatch.groups):
        group = Group(dispatch, place)
        stepper = kind(group)
        if place == (0, 0, 0) and trace:
            _traced(stepper)
        stepper.run(late)
        if place == (0, 0, 0):
            _print_registers(group)


def _traced(stepper: Interpreter) -> None:
    """Step the first wave up to its end or a barrier, each instruction printed."""
    wave = stepper.group.waves[0]
    for _ in range(MOST_STEPS):
        if wave.state:
            return
        print(f"{wave.pc:6x}  {disassemble(stepper.kernel.at(wave.pc), wave.lanes)}")
        stepper.step(wave)


def _print_registers(group: Group) -> None:
    """Everything in the first wave that is not as it was at the start."""
    wave = group.waves[0]
    fresh = Group(group.dispatch, group.group).waves[0]
    ended = "ended" if wave.state == ENDED else "not ended"
    print(f"wave 0 {ended} at {int(wave.memory[PC]):#x}, scc {int(wave.memory[SCC])}, exec {wave.exec:#x}")
    m0 = group.dispatch.kernel.family.m0
    for code in range(126):
        if wave.s[code] not in (POISON, fresh.s[code]) and code != 249 - m0:
            print(f"{scalar_register(code, 1, m0):>8} {int(wave.s[code]):#010x}")
    for register in range(len(wave.v)):
        if (wave.v[register] != fresh.v[register]).any():
            print(f"      v{register}")
            _print_words(wave.v[register][:fresh.exec.bit_length()])   # lanes that are work-items


def _print_buffer(argument: bench.Argument) -> None:
    data = argument.data.tobytes()
    if not argument.format:
        _print_words(np.frombuffer(data.ljust(-(-len(data) // 4) * 4, b"\0"), np.uint32))
        return
    columns = {1: 16, 2: 8, 4: 8, 8: 4}[width(argument.format)]
    for line in dumped(0, data, argument.format, columns):
        print(f"  {line}")


def _print_words(words: np.ndarray) -> None:
    """Eight dwords a line, in hexadecimal and as floats."""
    for start in range(0, len(words), 8):
        part = words[start : start + 8]
        floats = " ".join(f"{value:.5g}" for value in part.view(np.float32))
        print(f"{start:8} {' '.join(f'{int(word):08x}' for word in part)}  | {floats}")
