"""What DEBUG shows, on standard error. Each level shows what the ones before it do, and

1  devices as they are used, and plans as they are made      5  the graph of each plan
2  each kernel as it ran, with its time and bandwidth        6  the flat instructions of each kernel
3  the kernels of each plan, with the loops chosen           7  machine code, and packets as submitted
4  the source of each kernel
"""
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence

from tiny import config
from tiny.hcq.device import Device
from tiny.hcq.queue import Template
from tiny.ir.integer import evaluate, substitute
from tiny.ir.node import Node
from tiny.ir.text import print_graph
from tiny.realize.counters import GlobalCounters
from tiny.realize.observe import packet_lines
from tiny.realize.prepare import instructions
from tiny.realize.program import Compiled, object_code
from tiny.schedule.steps import Plan
from tiny.schedule.text import plan_text
from tiny.toolchain.process import finish, start

CODE_END = "s_code_end"                                     # padding behind AMD's code, LLVM's AMDGPU guide
_seen_devices: set[str] = set()
_seen_kernels: set[Compiled] = set()


def level() -> int:
    """The setting DEBUG as it is now."""
    return config.current().debug


def _say(text: str) -> None:
    """Print, and let the first word stand out where a person reads."""
    if config.may_colour(sys.stderr):
        word, rest = re.match(r"(\S*)(.*)", text, re.DOTALL).groups()
        text = f"\033[1m{word}\033[0m{rest}"                # ECMA-48, SGR: bold
    print(text, file=sys.stderr)


def planned(plan: Plan, compiled: Sequence[Compiled], roots: Sequence[Node], device: Device) -> None:
    """A new plan and the kernels in it that are new."""
    debug = level()
    if debug < 1:
        return
    if device.name not in _seen_devices:
        _seen_devices.add(device.name)
        target = device.target
        _say(f"device {device.name}: {target.arch}, {target.threads} threads, {target.compiler}")
    text = plan_text(plan, [(one.name, one.rendered.kernel, one.rendered.schedule) for one in compiled])
    _say(f"plan: {text if debug >= 3 else text.partition(chr(10))[0]}")
    if debug >= 5:
        _say(print_graph(*roots))
    for one in dict.fromkeys(compiled):
        if one not in _seen_kernels:
            _seen_kernels.add(one)
            _kernel(one, device, debug)


def _kernel(one: Compiled, device: Device, debug: int) -> None:
    if debug >= 6:
        flat = instructions(one.rendered.kernel, one.rendered.schedule)
        _say(f"instructions of {one.name}:\n{_flat_text(flat)}")
    if debug >= 4:
        _say(f"source of {one.name}:\n{one.rendered.source.text}")
    if debug >= 7:
        _say(disassembly(object_code(one, device), one.name))


def _flat_text(flat: Sequence[Node]) -> str:
    """One instruction a line, operands by the number of the line they come from, indented by its loops."""
    numbers: dict[Node, int] = {}
    lines, depth = [], 0
    for node in flat:
        depth -= node.op.name == "END"
        operands = [f"%{numbers[s]}" if s in numbers else repr(s) for s in node.src]
        argument = [] if node.arg is None else [repr(node.arg)]
        shape = f" x {node.shape[0]}" if node.shape else ""
        lines.append(f"{'  ' * depth}%{len(lines)} = {node.op.name}({', '.join(operands + argument)}) : "
                     f"{node.dtype.name}{shape}")
        numbers[node] = len(lines) - 1
        depth += node.op.name in ("GROUP", "ITEM", "LOOP", "IF")
    return "\n".join(lines)


def disassembly(code: bytes, name: str) -> str:
    """The machine code of one function, as llvm-objdump writes it; its size where there is no such tool."""
    tool = next(filter(None, map(shutil.which, ("llvm-objdump-22", "llvm-objdump", "objdump"))), None)
    if tool is None:
        return f"machine code of {name}: {len(code)} bytes; install llvm to see it"
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        file.write(code)
        file.flush()
        chosen = "--disassemble" if tool.endswith("/objdump") else "--disassemble-symbols"
        _, output = finish(start([tool, f"{chosen}={name}", "--no-show-raw-insn", file.name]))
    lines = output.partition("section .text")[2].lstrip(":").splitlines()
    while lines and (not lines[-1].strip() or CODE_END in lines[-1]):
        lines.pop()
    return "\n".join([f"machine code of {name}:", *lines[1:]])


def submitted(template: Template) -> None:
    """The packets of a submission, with the values filled in."""
    if level() >= 7:
        for line in packet_lines(template):
            _say(f"packet {line}")


def ran(one: Compiled, seconds: float, values: dict[Node, int]) -> None:
    """A kernel that ran by itself: name, time, rates."""
    counts = one.rendered.operations, one.rendered.memory
    operations, memory = (evaluate(substitute(count, values)) for count in counts)
    GlobalCounters.global_ops += operations
    GlobalCounters.global_mem += memory
    GlobalCounters.time_sum_s += seconds
    if level() >= 2:
        _say(f"{one.name:40} {seconds * 1e6:10.1f} us {operations / seconds / 1e9:9.2f} GFLOP/s "
             f"{memory / seconds / 1e9:8.2f} GB/s")
