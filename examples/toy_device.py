"""A complete device in one file: the Abacus, a machine that computes one number at a time.

    python examples/toy_device.py

It has what every device has: packets, a ring, a doorbell, a timeline, memory of its own, a dialect for its
programs. Its silicon is the class Hardware. docs/add-a-device.md explains it; DEBUG=4 shows its programs.
"""
import numpy as np

from tiny import Tensor
from tiny.hcq import device, io
from tiny.hcq.layout import Packet, bits, length, tail, u64
from tiny.hcq.memory import Allocator
from tiny.hcq.queue import Program, Recorder, Template
from tiny.ir import ops
from tiny.ir.dtype import DType, dtypes
from tiny.ir.node import Node
from tiny.render import dialects
from tiny.target import Target

MEMORY_BYTES = 256 << 20


# -- 1. packets: what the hardware reads from its ring -------------------------------------------------------
class Command(Packet, key="op"):
    """The family of all commands. count: dwords of the packet."""
    op = bits(0, 0, 8)
    count = length(0, 8, 24)


class Execute(Command, op=1, dwords=6):
    """Run groups 0 ... groups-1 of the program with that number. arguments: addresses, then integers."""
    program = u64(2)
    groups = u64(4)
    arguments = tail(6, "Q")


class Signal(Command, op=2, dwords=4):
    """Move the timeline to `value`, after everything before has finished."""
    value = u64(2)


# -- 2. the dialect: flat instructions become a program ------------------------------------------------------
EXPRESSIONS = {
    ops.ADD: "{} + {}", ops.SUB: "{} - {}", ops.MUL: "{} * {}", ops.FDIV: "{} / {}", ops.AND: "{} & {}",
    ops.OR: "{} | {}", ops.XOR: "{} ^ {}", ops.SHL: "{} << {}", ops.SHR: "{} >> {}", ops.LT: "{} < {}",
    ops.EQ: "{} == {}", ops.NE: "{} != {}", ops.MAX: "max({}, {})", ops.MIN: "min({}, {})",
    ops.NEG: "np.negative({})", ops.SQRT: "np.sqrt({})", ops.TRUNC: "np.trunc({})", ops.REGISTER: "{}",
    ops.READ: "{}", ops.FMA: "{kind}(np.float64({}) * {} + {})", ops.MOD: "np.fmod({}, {})",
    ops.IDIV: "({0} - np.fmod({0}, {1})) // {1}", ops.CAST: "np.asarray({}).astype({kind})[()]",
    ops.BITCAST: "np.asarray({}).view({kind})[()]"}
OF_SIZES = {ops.IDIV: "{} // {}", ops.MOD: "{} % {}"}       # these round down; other integers towards zero
OPENERS = {ops.GROUP: "for {name} in range(groups):", ops.LOOP: "for {name} in range({0}):",
           ops.IF: "if {0}:"}


def type_name(dtype: DType) -> str:
    """numpy's name for an element; bfloat16 and fp8 are only ever bits here."""
    if dtype.is_float and dtype not in (dtypes.float16, dtypes.float32, dtypes.float64):
        return f"np.uint{dtype.bits}"
    return {dtypes.index: "np.int64", dtypes.bool: "np.bool_"}.get(dtype, f"np.{dtype.name}")


class AbacusDialect:
    """Writes one program, a statement for each instruction."""

    def __init__(self):
        self.names, self.lines, self.depth = {}, [], 1

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def ref(self, node: Node) -> str:
        """An operand: a literal, a pointer, local memory, or the name of a value."""
        if node.op is ops.CONST:
            literal = f"float('{node.arg}')" if node.dtype.is_float else repr(node.arg)
            return literal if node.dtype is dtypes.index else f"{type_name(node.dtype)}({literal})"
        if node.op is ops.LOCAL:
            return f"local{node.arg[0]}"
        return f"p{node.arg}" if node.op is ops.POINTER else self.names[node]

    def expression(self, node: Node) -> str:
        operands = [self.ref(source) for source in node.src]
        if node.op is ops.WHERE:
            return "{1} if {0} else {2}".format(*operands)
        if node.op is ops.LOAD:
            value, gate = f"{operands[0]}[{operands[1]}]", operands[2:]
            return f"{value} if {gate[0]} else {type_name(node.dtype)}(0)" if gate else value
        pattern = OF_SIZES.get(node.op) if node.dtype is dtypes.index else None
        return (pattern or EXPRESSIONS[node.op]).format(*operands, kind=type_name(node.dtype))

    def statement(self, node: Node) -> None:
        operands = [self.ref(source) for source in node.src if node.op is not ops.END]
        if node.op is ops.END:
            self.depth -= 1
        elif node.op is ops.STORE:
            gate = f"if {operands[3]}: " if len(operands) > 3 else ""
            self.line(f"{gate}{operands[0]}[{operands[1]}] = {operands[2]}")
        elif node.op is ops.SET:
            self.line(f"{operands[0]} = {operands[1]}")
        else:
            name = self.names[node] = f"v{len(self.names)}"
            opener = OPENERS.get(node.op)
            self.line(opener.format(*operands, name=name) if opener else f"{name} = {self.expression(node)}")
            self.depth += opener is not None


def render(name: str, instructions: list[Node], pointers: list[DType], variables: list[Node]) -> str:
    """The text of a program: a function of the memory, the address it starts at, arguments and groups."""
    dialect = AbacusDialect()
    for number, dtype in enumerate(pointers):
        dialect.line(f"p{number} = memory[args[{number}] - base:].view({type_name(dtype)})")
    for number, variable in enumerate(variables, len(pointers)):
        dialect.names[variable] = f"args[{number}]"
    for local in dict.fromkeys(s for node in instructions for s in node.src if s.op is ops.LOCAL):
        dialect.line(f"{dialect.ref(local)} = np.zeros({local.arg[1]}, {type_name(local.dtype)})")
    for node in instructions:
        if node.op is not ops.VARIABLE:
            dialect.statement(node)
    return "\n".join([f"def {name}(memory, base, args, groups):", *dialect.lines, ""])


# -- 3. the hardware: what a real card has in silicon --------------------------------------------------------
class Hardware:
    """Reads its ring when the doorbell rings, and has finished when the doorbell returns."""

    def __init__(self, base: int, memory: memoryview):
        self.base, self.memory = base, np.frombuffer(memory, np.uint8)
        self.programs, self.ring, self.timeline = [], bytearray(), 0

    def doorbell(self, position: int) -> None:
        with np.errstate(all="ignore"):
            for packet in Command.stream(bytes(self.ring[:position])):
                if type(packet) is Signal:
                    self.timeline = packet.value
                else:
                    self.programs[packet.program](self.memory, self.base, packet.arguments, packet.groups)
        del self.ring[:position]


# -- 4. the driver: memory, programs, queues, submission -----------------------------------------------------
class AbacusRecorder(Recorder):
    def execute(self, program: Program, arguments: list, groups=1) -> None:
        self.programs.append(program)
        self.emit(Execute, program=program.address, groups=groups, arguments=arguments)

    def finish(self) -> Template:
        self.emit(Signal)                                   # its value is filled in at each submission
        return super().finish()


class Abacus(device.Device):
    """One Abacus. See tiny.hcq.device.Device for what each method promises."""

    def __init__(self, number: int):
        self.name, self.io, self.submitted = f"ABACUS:{number}" if number else "ABACUS", io.installed(), 0
        self.target = Target("ABACUS", "numpy", dialect="abacus", lanes=1)
        self.free = self.io.mmap(MEMORY_BYTES)
        self.hardware = Hardware(self.free, self.io.view(self.free, MEMORY_BYTES))
        self.allocator = Allocator(self.name, self.map, lambda address, size: None,
                                   submitted=lambda: self.submitted, completed=lambda: self.hardware.timeline)

    def map(self, size: int) -> int:
        if self.free + size > self.hardware.base + MEMORY_BYTES:
            raise OSError(12, "the Abacus is full")     # ENOMEM
        self.free += size
        return self.free - size

    def compile(self, sources) -> list[bytes]:
        return [source.text.encode() for source in sources]

    def load(self, object_code: bytes, entry: str) -> Program:
        scope = {"np": np}
        exec(object_code, scope)
        self.hardware.programs.append(scope[entry])
        return Program(entry, len(self.hardware.programs) - 1, self, None)

    def queue(self) -> AbacusRecorder:
        return AbacusRecorder(self)

    def submit(self, template: Template, values: list[int] | tuple = ()) -> int:
        template.fill(values)
        self.submitted += 1
        template.words[-1] = self.submitted                 # Signal.value
        self.hardware.ring += template.image
        self.io.doorbell(self.hardware.doorbell, len(self.hardware.ring))
        return self.submitted

    def synchronize(self, point: int | None = None, timeout_ms: int | None = None) -> None:
        assert self.hardware.timeline >= (self.submitted if point is None else point)
    settle = synchronize


dialects.register(dialects.Dialect("abacus", render))
device.register(device.DeviceKind("ABACUS", Abacus, "an example, one number at a time"))

if __name__ == "__main__":
    a = Tensor([[1.0, 2.0], [3.0, 4.0]], device="ABACUS")
    print((a @ a).relu().tolist(), "on", a.device)
