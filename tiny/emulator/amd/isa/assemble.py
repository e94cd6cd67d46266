"""`python -m tiny run-asm`: assemble a kernel, run it on the emulated card, print registers and memory.

A file without `.amdhsa_kernel` is taken as the instructions of one kernel: a descriptor is written around
them, s_endpgm is added, and s[0:1] holds the address of an array of the buffers' addresses.
"""

import argparse
import sys

import numpy as np

from tiny import config
from tiny.emulator.amd.isa import code_object, interpreter, run
from tiny.emulator.amd.isa.families import MACHINES
from tiny.emulator.amd.isa.memory import HostMemory, MemoryFault
from tiny.emulator.amd.isa.state import ENDED, PC, POISON, SCC, Dispatch, EmulationError, Group
from tiny.emulator.amd.isa.text import disassemble, scalar_register
from tiny.objfile import ObjectError
from tiny.toolchain import Cache, Source, ToolchainError, compile_objects, find_compiler

CODE_ADDRESS = 0x7F00_0000_0000
MOST_STEPS = 1_000_000
HEADER = """\
.text
.globl {name}
.p2align 8
.type {name},@function
{name}:
{body}
s_endpgm
.rodata
.p2align 6
.amdhsa_kernel {name}
.amdhsa_user_sgpr_kernarg_segment_ptr 1
.amdhsa_next_free_vgpr 128
.amdhsa_next_free_sgpr 100
.amdhsa_group_segment_fixed_size {lds}
.amdhsa_private_segment_fixed_size {scratch}
.amdhsa_float_denorm_mode_32 3
{more}
.end_amdhsa_kernel
"""
ACCUMULATORS = ".amdhsa_accum_offset 128"  # gfx942 divides its VGPRs at this one


def assemble(text: str, processor: str, lds: int = 0, scratch: int = 0) -> code_object.Image:
    """A loaded code object. CompileError with the assembler's message for text it refuses."""
    if ".amdhsa_kernel" not in text:
        more = ACCUMULATORS if processor == "gfx942" else ""
        text = HEADER.format(name="kernel", body=text, lds=lds, scratch=scratch, more=more)
    folder = config.current().cache_folder
    cache = Cache(folder) if folder else None
    flags = ["-x", "assembler-with-cpp", "--target=amdgcn-amd-amdhsa", f"-mcpu={processor}"]
    data = compile_objects(
        [Source("run-asm", text)], find_compiler(config.current().cc, cache), flags, cache
    )[0]
    return code_object.load(data, CODE_ADDRESS)


def numbers(text: str) -> tuple[int, int, int]:
    """ "4,2" -> (4, 2, 1)"""
    found = [int(part, 0) for part in text.split(",")]
    if not 1 <= len(found) <= 3 or min(found) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: one to three numbers, at least 1 each, as in 64 or 8,8")
    return tuple(found + [1] * (3 - len(found)))


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m tiny run-asm", description=__doc__.partition("\n")[0])
    made.add_argument("file", help="assembly in LLVM's syntax; - is standard input")
    made.add_argument("--mcpu", default="gfx1100", choices=[name for name, _ in MACHINES.values()])
    made.add_argument("--kernel", help="which kernel of the file; the first one by default")
    made.add_argument("--groups", type=numbers, default=(1, 1, 1), help="workgroups: x[,y[,z]]")
    made.add_argument("--size", type=numbers, default=(32, 1, 1), help="work items of a workgroup: x[,y[,z]]")
    made.add_argument(
        "--buffer",
        type=lambda text: int(text, 0),
        action="append",
        default=[],
        help="bytes of a buffer, whose dwords are 0, 1, 2, ...; repeat for more arguments",
    )
    made.add_argument("--lds", type=lambda text: int(text, 0), default=0, help="bytes of local memory")
    made.add_argument(
        "--scratch", type=lambda text: int(text, 0), default=0, help="bytes of scratch for a lane"
    )
    made.add_argument("--translate", action="store_true", help="run translated to C; registers are not shown")
    made.add_argument("--checked", action="store_true", help="reading what was never written is an error")
    made.add_argument("--trace", action="store_true", help="print every instruction of the first wave")
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    try:
        with sys.stdin if options.file == "-" else open(options.file) as file:
            text = file.read()
        image = assemble(text, options.mcpu, options.lds, options.scratch)
        return _run(image, options)
    except (OSError, ToolchainError, ObjectError, ValueError, EmulationError, MemoryFault) as error:
        print(f"run-asm: {error}", file=sys.stderr)
        return 2


def _run(image: code_object.Image, options: argparse.Namespace) -> int:
    name = options.kernel or next(each.removesuffix(".kd") for each in image.symbols if each.endswith(".kd"))
    buffers = [np.arange(-(-size // 4), dtype=np.uint32) for size in options.buffer]
    table = np.array([each.ctypes.data for each in buffers] or [0], dtype=np.uint64)
    code = np.frombuffer(bytes(image.data), dtype=np.uint8)
    memory = HostMemory()
    for each in (*buffers, table):
        memory.map(each.ctypes.data, each.nbytes, each.ctypes.data)
    memory.map(image.address, len(code), code.ctypes.data, writable=False)
    dispatch = Dispatch(
        image.kernel(name),
        memory,
        image.user_data(name, table.ctypes.data),
        options.groups,
        options.size,
        checked=options.checked,
    )
    if options.translate:
        run.run(dispatch)
    else:
        _interpret(dispatch, options.trace)
    for number, each in enumerate(buffers):
        print(f"buffer {number}")
        _print_words(each)
    return 0


def _interpret(dispatch: Dispatch, trace: bool) -> None:
    """Run the first workgroup's first wave with its registers shown, then all others."""
    groups = dispatch.groups
    for number in range(groups[0] * groups[1] * groups[2]):
        group = Group(
            dispatch, (number % groups[0], number // groups[0] % groups[1], number // groups[0] // groups[1])
        )
        stepper = interpreter.Interpreter(group)
        if number == 0 and trace:
            _traced(stepper)
        stepper.run()
        if number == 0:
            _print_registers(group)


def _traced(stepper: interpreter.Interpreter) -> None:
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
            _print_words(wave.v[register])


def _print_words(words: np.ndarray) -> None:
    """Eight dwords a line, in hexadecimal and as floats."""
    for start in range(0, len(words), 8):
        part = words[start : start + 8]
        floats = " ".join(f"{value:.5g}" for value in part.view(np.float32))
        print(f"{start:8} {' '.join(f'{int(word):08x}' for word in part)}  | {floats}")
