"""Check that a graph is what a stage may take: rows of its level only,
each with the operands its row asks for.

    verify(roots, TENSOR)                   # what scheduling takes
    verify(kernel.value, KERNEL)            # what it gives, and lowering takes
    verify_instructions(lowered)            # what a dialect takes

CHECK=1 does all three. Cycles need no check: a node is made after its operands and never changes.
"""
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tiny.ir import ops
from tiny.ir.dtype import DType, canonical, dtypes
from tiny.ir.node import Node, toposort
from tiny.ir.ops import Op


@dataclass(frozen=True, eq=False)
class Level:
    """A stage of the way down, and the rows it admits."""
    name: str
    rows: frozenset[Op]


_SHARED = frozenset(row for row in ops.TABLE.values() if row.level == ops.SHARED)
_POSITIONS = frozenset((ops.RANGE, ops.LANES, ops.POINTER, ops.LOCAL, ops.LOAD, ops.STORE))
_EXPRESSIONS = frozenset((ops.ACCUMULATE,))
TENSOR = Level("tensor", _SHARED | frozenset(row for row in ops.TABLE.values() if row.level == ops.TENSOR))
KERNEL = Level("kernel", _SHARED | _POSITIONS | _EXPRESSIONS)
FLAT = Level("flat", frozenset(
    row for row in ops.TABLE.values() if row.level in (ops.SHARED, ops.KERNEL) and not row.function)
    - _EXPRESSIONS - {ops.RANGE, ops.BIND})


class VerifyError(ValueError):
    """A node that does not belong: the message names its operation, the node and who uses it."""


# -- graphs -----------------------------------------------------------------------------------------
def verify(roots: Node | Sequence[Node], level: Level) -> None:
    """Check every node below the roots; VerifyError for the first that is wrong, operands before users."""
    nodes = toposort(*([roots] if isinstance(roots, Node) else roots))
    for node in nodes:
        problem = problem_with(node, level)
        if problem is not None:
            user = next((u for u in nodes if node in u.src), None)
            where = "" if user is None else f", operand {user.src.index(node)} of {user!r}"
            raise VerifyError(f"{level.name} level: {node.op.name}: {problem}; in {node!r}{where}")


def problem_with(node: Node, level: Level) -> str | None:
    """What is wrong with one node, its operands taken as right; None if nothing is."""
    row = node.op
    if ops.TABLE.get(row.name) is not row:
        return "no row of the table of operations"
    if row not in level.rows:
        return f"is of the {row.level} level, which is not admitted here"
    if row.operands is not None and len(node.src) != row.operands:
        return f"{row.operands} operands expected, {len(node.src)} found"
    try:
        wanted = row.dtype(node.src, node.arg, node.dtype)
        shape = row.shape(node.src, node.arg)
    except (TypeError, ValueError, IndexError) as error:
        return str(error)
    if wanted is not node.dtype:
        return f"is {node.dtype.name}, but its operands make it {wanted.name}"
    if shape != node.shape:
        return f"has shape {node.shape}, but its operands make it {shape}"
    check = _CHECKS.get(row)
    return check(node) if check is not None else None


# -- what rows ask beyond their types ---------------------------------------------------------------
def _constant(node: Node) -> str | None:
    right = canonical(node.arg, node.dtype)
    same = right == node.arg or (right != right and node.arg != node.arg)
    if type(right) is not type(node.arg) or not same:
        return f"{node.arg!r} is not in canonical form, {right!r}"
    return None


def _flag(node: Node) -> str | None:
    return None if node.arg in (None, True) else f"the argument is None or True, not {node.arg!r}"


def _bitcast(node: Node) -> str | None:
    source = node.src[0].dtype
    return None if source.bits == node.dtype.bits else f"{source.bits} bits cannot become {node.dtype.bits}"


def _reshape(node: Node) -> str | None:
    before, after = node.src[0].shape, node.shape
    if all(isinstance(size, int) for size in (*before, *after)) and math.prod(before) != math.prod(after):
        return f"{math.prod(before)} elements cannot become {math.prod(after)}"
    return None


def _expand(node: Node) -> str | None:
    before, after = node.src[0].shape, node.shape
    fits = len(before) == len(after) and all(
        b is a or b == a or b == 1 for b, a in zip(before, after, strict=True))
    return None if fits else f"{before} does not grow to {after}"


def _permute(node: Node) -> str | None:
    axes = list(range(node.src[0].ndim))
    return None if sorted(node.arg) == axes else f"{node.arg} is no order of the axes {axes}"


def _shrink(node: Node) -> str | None:
    for size, (start, stop) in zip(node.src[0].shape, node.arg, strict=True):
        if all(isinstance(v, int) for v in (size, start, stop)) and not 0 <= start <= stop <= size:
            return f"{start} ... {stop} is not within 0 ... {size}"
    return None


def _reduced(node: Node) -> str | None:
    row, axes = node.arg
    axes = axes if isinstance(axes, tuple) else (axes,)
    if row not in ops.IDENTITY:
        return f"{row!r} cannot reduce"
    return None if all(0 <= a < node.src[0].ndim for a in axes) else f"there is no axis {axes}"


def _pointer_of(node: Node) -> str | None:
    if not node.src or node.src[0].op not in (ops.POINTER, ops.LOCAL):
        return "the first operand is a POINTER or LOCAL"
    return None if node.src[1].dtype is dtypes.index else f"the index is {node.src[1].dtype.name}"


def _gate(gate: Node) -> str | None:
    return None if gate.dtype is dtypes.bool else f"the gate is {gate.dtype.name}, not bool"


def _load(node: Node) -> str | None:
    if len(node.src) not in (2, 3):
        return f"pointer, index and perhaps a gate expected, not {len(node.src)} operands"
    return _pointer_of(node) or (_gate(node.src[2]) if len(node.src) == 3 else None)


def _store(node: Node) -> str | None:
    if len(node.src) not in (3, 4):
        return f"pointer, index, value and perhaps a gate expected, not {len(node.src)} operands"
    pointer, value = node.src[0], node.src[2]
    if pointer.dtype is not value.dtype:
        return f"the value is {value.dtype.name}, the memory {pointer.dtype.name}"
    return _pointer_of(node) or (_gate(node.src[3]) if len(node.src) == 4 else None)


def _accumulate(node: Node) -> str | None:
    if node.arg not in ops.IDENTITY:
        return f"{node.arg!r} cannot accumulate"
    stray = next((s for s in node.src[1:] if s.op is not ops.RANGE), None)
    return None if stray is None else f"runs over RANGEs, not {stray!r}"


def _count(node: Node) -> str | None:
    size = node.src[0]
    return None if size.dtype is dtypes.index else f"counts to an index, not {size.dtype.name}"


def _end(node: Node) -> str | None:
    return None if node.src[0].op in OPENERS else f"closes a scope, not {node.src[0]!r}"


def _set(node: Node) -> str | None:
    register, value = node.src
    if register.op is not ops.REGISTER:
        return f"sets a REGISTER, not {register!r}"
    if register.dtype is not value.dtype:
        return f"{value.dtype.name} into a register of {register.dtype.name}"
    return None


OPENERS = (ops.GROUP, ops.ITEM, ops.LOOP, ops.IF)
_CHECKS: dict[Op, Callable[[Node], str | None]] = {
    ops.CONST: _constant, ops.CAST: _flag, ops.IDIV: _flag, ops.MOD: _flag, ops.BITCAST: _bitcast,
    ops.RESHAPE: _reshape, ops.EXPAND: _expand, ops.PERMUTE: _permute, ops.SHRINK: _shrink,
    ops.REDUCE: _reduced, ops.SCAN: _reduced, ops.LOAD: _load, ops.STORE: _store,
    ops.ACCUMULATE: _accumulate, ops.RANGE: _count, ops.GROUP: _count, ops.ITEM: _count, ops.LOOP: _count,
    ops.IF: lambda node: _gate(node.src[0]), ops.END: _end, ops.SET: _set,
}


# -- the flat list ----------------------------------------------------------------------------------
def verify_instructions(instructions: Sequence[Node]) -> None:
    """Check a flat list: scopes nest, and each operand stands before its user in a scope that is still open.

    Constants, variables, arguments, local memory and LANES need not stand anywhere. Arithmetic must be
    decomposed (see render.decompose), except on positions. Raises VerifyError.
    """
    visible: set[Node] = set()
    scopes: list[tuple[Node, list[Node]]] = []
    for node in instructions:
        problem = problem_with(node, FLAT) or _not_basic(node)
        missing = next((s for s in node.src if s not in visible and s.op not in _ANYWHERE), None)
        if missing is not None:
            problem = problem or f"its operand {missing!r} does not stand before it in an open scope"
        if node.op is ops.END and problem is None:
            if not scopes or scopes[-1][0] is not node.src[0]:
                innermost = scopes[-1][0] if scopes else None
                problem = f"closes {node.src[0]!r}, but the innermost scope is {innermost!r}"
            else:
                visible.difference_update(scopes.pop()[1])
        if problem is not None:
            raise VerifyError(f"flat list: {node.op.name}: {problem}; in {node!r}")
        visible.add(node)
        if scopes:
            scopes[-1][1].append(node)
        if node.op in OPENERS:
            scopes.append((node, []))
    if scopes:
        raise VerifyError(f"flat list: {scopes[-1][0].op.name}: no END closes {scopes[-1][0]!r}")


_ANYWHERE = (ops.CONST, ops.VARIABLE, ops.POINTER, ops.LOCAL, ops.LANES)
_NO_ARITHMETIC = (dtypes.float16, dtypes.bfloat16, dtypes.fp8e4m3, dtypes.fp8e5m2)
_MOVES = (ops.CONST, ops.CAST, ops.BITCAST, ops.WHERE)
_BOOL_ROWS = (ops.AND, ops.OR, ops.XOR, ops.EQ, ops.NE, *_MOVES)


def _not_basic(node: Node) -> str | None:
    """What decomposing would still have changed."""
    row = node.op
    if row.level != ops.SHARED or not node.src or node.src[-1].dtype is dtypes.index:
        return None
    source: DType = node.src[-1].dtype
    if row is ops.CAST and source.is_float and not node.dtype.is_float and node.arg is not True:
        return "a float becomes an integer only with the promise that it fits"
    if source in _NO_ARITHMETIC and row not in _MOVES:
        return f"no arithmetic on {source.name}"
    if source is dtypes.bool and row not in _BOOL_ROWS:
        return "no such operation on bool"
    if row in (ops.IDIV, ops.MOD) and node.arg is not True:
        return "division is C's, with operands that cannot trap"
    if row in (ops.MAX, ops.MIN) and source.is_float:
        return "floats are compared and chosen, for the sake of NaN"
    return None
