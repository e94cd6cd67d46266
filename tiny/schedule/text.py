"""Kernels, their loop schedules and plans as text, for DEBUG and for golden tests.

    kernel 0, reduce_32_64_r128_float32: output 0 <- input 0, arena + 256
      a0 < 32, a1 < 64, over a2 < 128
      p0[(a0 * 64) + a1] = max(sum(p1[(a0 * 128) + a2] * p2[a1 + (a2 * 64)]), 0.0)
      group  a0 by 8
      loop   a1 by 32
      loop   a2 by 1
      unroll a1 by 16
      lanes  a1 by 1

The arrow stands between the memory of p0 and that of p1, p2, ... Values that are used several times get a
line and a name of their own.
"""
from collections.abc import Sequence

from tiny.ir import ops
from tiny.ir.dtype import DType, canonical, dtypes
from tiny.ir.integer import as_node
from tiny.ir.node import Node, toposort
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import Loop, Pack, Schedule, reduced_axes
from tiny.schedule.steps import ARENA, Place, Plan

_SIGNS = {ops.ADD: "+", ops.SUB: "-", ops.MUL: "*", ops.FDIV: "/", ops.IDIV: "//", ops.MOD: "%", ops.AND: "&",
          ops.OR: "|", ops.XOR: "^", ops.SHL: "<<", ops.SHR: ">>", ops.LT: "<", ops.EQ: "==", ops.NE: "!="}
_REDUCTIONS = {ops.ADD: "sum", ops.MUL: "product", ops.MAX: "maximum", ops.MIN: "minimum"}
_ATOMS = (ops.CONST, ops.VARIABLE, ops.RANGE, ops.POINTER)


class _Writer:
    """Writes the expressions of one kernel; `lines` holds those values that got names."""

    def __init__(self, roots: Sequence[Node]):
        self.lines: list[str] = []
        self.names: dict[Node, str] = {}
        order = toposort(*roots)
        uses: dict[Node, int] = {}
        for node in order:
            for source in node.src:
                uses[source] = uses.get(source, 0) + 1
        self.text: dict[Node, str] = {}
        for node in order:
            text = self._text(node)
            position = node.dtype is dtypes.index and node.op is not ops.CAST
            if uses.get(node, 0) > 1 and node.op not in _ATOMS and not position:
                name = f"v{len(self.lines)}"
                self.lines.append(f"{name} = {_bare(text)}")
                text = name
            self.text[node] = text

    def _text(self, node: Node) -> str:
        op = node.op
        src = [self.text[s] for s in node.src]
        if op is ops.CONST:
            return _shortest(node.arg, node.dtype)
        if op is ops.VARIABLE:
            return node.arg[0]
        if op is ops.RANGE:
            return f"a{node.arg}"
        if op is ops.POINTER:
            return f"p{node.arg}"
        if op is ops.LOAD:
            return f"{src[0]}[{_bare(src[1])}{f' if {_bare(src[2])}' if src[2:] else ''}]"
        if op in _SIGNS:
            return f"({src[0]} {_SIGNS[op]} {src[1]})"
        if op is ops.ACCUMULATE:
            return f"{_REDUCTIONS[node.arg]}({_bare(src[0])})"
        if op is ops.CAST or op is ops.BITCAST:
            return f"{'bits_as_' if op is ops.BITCAST else ''}{node.dtype.name}({_bare(src[0])})"
        return f"{op.name.lower()}({', '.join(map(_bare, src))})"


def _shortest(value, dtype: DType) -> str:
    """The fewest digits that give a constant of that type."""
    if not dtype.is_float or value != value:
        return str(value)
    digits = next(n for n in range(1, 18) if canonical(float(f"{value:.{n}g}"), dtype) == value)
    return repr(float(f"{value:.{digits}g}"))


def _bare(text: str) -> str:
    """Without the brackets around the whole."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth and place < len(text) - 1:
            return text
    return text[1:-1]


def kernel_text(kernel: Kernel, schedule: Schedule | None = None) -> str:
    """The axes, the assignment, and the schedule if there is one; no newline at the end."""
    index = as_node(kernel.index)
    roots = [kernel.value, index] + ([] if kernel.gate is None else [kernel.gate])
    writer = _Writer(roots)
    sizes = {axis: _bare(_Writer([axis.src[0]]).text[axis.src[0]]) for axis in _axes(kernel)}
    free = [f"a{axis.arg} < {sizes[axis]}{' in order' * (axis is kernel.sequential)}" for axis in kernel.axes]
    over = [f"over a{axis.arg} < {sizes[axis]}" for axis in reduced_axes(kernel)]
    lines = [", ".join(free + over) or "one element", *writer.lines]
    assigned = "=" if kernel.combine is None else f"{_REDUCTIONS[kernel.combine]}="
    gate = "" if kernel.gate is None else f" if {_bare(writer.text[kernel.gate])}"
    carried = "running " * kernel.carried
    value = _bare(writer.text[kernel.value])
    lines.append(f"{carried}p0[{_bare(writer.text[index])}] {assigned} {value}{gate}")
    if schedule is not None:
        lines += schedule_lines(schedule)
    return "\n".join(lines)


def _axes(kernel: Kernel) -> tuple[Node, ...]:
    return (*kernel.axes, *reduced_axes(kernel))


def schedule_lines(schedule: Schedule) -> list[str]:
    """One line a loop, from the outermost in, packs where they happen."""
    lines = []
    for number, loop in enumerate(schedule.loops):
        lines += [_pack_line(pack, schedule.loops) for pack in schedule.packs if pack.depth == number]
        lines.append(_loop_line(loop))
    if schedule.matrix is not None:
        lines.append(f"by     {schedule.matrix.name}")
    return [*lines, "results past the caches"] if schedule.streaming else lines


def _loop_line(loop: Loop) -> str:
    return f"{loop.kind:6} a{loop.axis.arg} by {loop.step}"


def _pack_line(pack: Pack, loops: Sequence[Loop]) -> str:
    operand = _Writer([pack.operand]).text[pack.operand]
    layout = ", ".join(f"a{loops[number].axis.arg} by {loops[number].step}" for number in pack.layout)
    return f"pack   {operand} as [{layout}]"


def place_text(place: Place) -> str:
    """input 2, output 0, arena + 256."""
    return f"arena + {place.number}" if place.kind == ARENA else f"{place.kind} {place.number}"


def plan_text(plan: Plan, scheduled: Sequence[tuple[str, Kernel, Schedule]] | None = None) -> str:
    """Every step with its places and its kernel; `scheduled` gives name, kernel and schedule as compiled."""
    results = ", ".join(map(place_text, plan.results))
    lines = [f"{len(plan.steps)} kernels, arena {plan.arena_size} bytes, results: {results}"]
    for number, step in enumerate(plan.steps):
        target, *reads = map(place_text, step.places)
        name, kernel, schedule = scheduled[number] if scheduled else ("", step.kernel, None)
        called = f"kernel {number}{', ' * bool(name)}{name}"
        lines += ["", f"{called}: {target} <- {', '.join(reads) or 'nothing'}"]
        lines += [f"  {line}" for line in kernel_text(kernel, schedule).split("\n")]
    return "\n".join(lines)
