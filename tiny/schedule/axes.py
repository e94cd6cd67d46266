"""How a kernel's axes show in its memory accesses, and axes that can be walked as one."""
from collections.abc import Iterable

from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.integer import Integer, as_node, equal, linear, multiply, substitute
from tiny.ir.node import Node, toposort
from tiny.schedule.kernel import Kernel

NONE, NEIGHBOURS, SCATTERED = "none", "neighbours", "scattered"


def loads(value: Node) -> list[Node]:
    """What a value reads from memory, apart from positions that are read."""
    return [node for node in toposort(value) if node.op is ops.LOAD and node.dtype is not dtypes.index]


def divisor(size: int, most: int, least: int = 1) -> int:
    """The largest number up to `most` that divides `size`; `most` itself, or `size` if that is smaller, where
    only less than `least` does.
    """
    best = next(n for n in range(max(min(size, most), 1), 0, -1) if size % n == 0)
    return best if best >= min(least, size) else min(size, most)


def positions_of(kernel: Kernel) -> list[Integer]:
    """Every integer expression of the kernel: indices of loads and of the store,
    and positions used as values.
    """
    found: dict[Integer, None] = {kernel.index: None}
    roots = [kernel.value] if kernel.gate is None else [kernel.value, kernel.gate]
    if isinstance(kernel.index, Node):
        roots.append(kernel.index)
    for node in toposort(*roots):
        if node.dtype is not dtypes.index:
            found.update((s, None) for s in node.src if s.dtype is dtypes.index and s.op is not ops.RANGE)
            if node.op is not ops.ACCUMULATE:
                found.update((s, None) for s in node.src if s.op is ops.RANGE)
    return list(found)


def _mergeable(outer: Node, inner: Node, positions: Iterable[Integer]) -> bool:
    """Whether every position depends on the two axes only through outer * size(inner) + inner."""
    size = inner.src[0].arg if inner.src[0].op is ops.CONST else inner.src[0]
    for position in positions:
        terms = linear(position)[1]
        for atom in terms:
            if atom not in (outer, inner) and _mentions(atom, (outer, inner)):
                return False
        if not equal(multiply(size, terms.get(inner, 0)), terms.get(outer, 0)):
            return False
    return True


def _mentions(node: Node, axes: tuple[Node, ...]) -> bool:
    return any(n in axes for n in toposort(node)) if node.src else node in axes


def merge_axes(kernel: Kernel) -> Kernel:
    """The same kernel with neighbouring axes joined where all its positions allow; the result's axes and the
    reduced ones each among themselves. A sequential axis stays alone."""
    axes = list(kernel.axes)
    number = 0
    while number + 1 < len(axes):
        pair = axes[number], axes[number + 1]
        if kernel.sequential not in pair and _mergeable(*pair, positions_of(kernel)):
            kernel, joined = _merge(kernel, *pair)
            axes[number:number + 2] = [joined]
            number = max(number - 1, 0)
        else:
            number += 1
    while True:
        reduced = next((node.src[1:] for node in toposort(kernel.value) if node.op is ops.ACCUMULATE), ())
        for pair in zip(reduced, reduced[1:], strict=False):
            if _mergeable(*pair, positions_of(kernel)):
                kernel, _ = _merge(kernel, *pair)
                break
        else:
            return kernel


def _merge(kernel: Kernel, outer: Node, inner: Node) -> tuple[Kernel, Node]:
    size = multiply(as_node(outer.src[0]), inner.src[0])
    joined = Node(ops.RANGE, None, (as_node(size),), outer.arg)
    replacements = {outer: 0, inner: joined}
    value = _replace(kernel.value, replacements)
    gate = None if kernel.gate is None else _replace(kernel.gate, replacements)
    index = _replace(as_node(kernel.index), replacements)
    axes = tuple(joined if axis is outer else axis for axis in kernel.axes if axis is not inner)
    return Kernel(
        axes, value, index, kernel.dtype, gate, kernel.sequential, kernel.combine, kernel.carried
    ), joined


def _replace(root: Node, replacements: dict[Node, Integer]) -> Node:
    """Substitute axes inside a whole expression, loads and reductions included."""
    done: dict[Node, Integer] = dict(replacements)
    for node in toposort(root):
        if node in done:
            continue
        if node.dtype is dtypes.index and node.op is not ops.CAST:
            done[node] = substitute(node, done) if node.src and node.op is not ops.RANGE else node
        elif node.op is ops.ACCUMULATE:
            ranges = tuple(done[s] for s in node.src[1:] if isinstance(done[s], Node))
            done[node] = Node(node.op, None, (as_node(done[node.src[0]]), *ranges), node.arg)
        else:
            src = tuple(as_node(done[s]) for s in node.src)
            done[node] = node if src == node.src else Node(node.op, node.dtype, src, node.arg)
    return as_node(done[root])


def along(index: Integer, axis: Node, lanes: int) -> str:
    """How an index moves along `lanes` points of an axis that start at a multiple of `lanes`."""
    if not isinstance(index, Node) or axis not in toposort(index):
        return NONE
    block = Node(ops.RANGE, None, (as_node(axis.src[0]),), -1 - axis.arg)
    vector = Node(ops.LANES, None, (), lanes)
    moved = substitute(index, {axis: block * lanes + vector})
    if isinstance(moved, Node) and axis in toposort(moved):  # inside a value that was loaded
        return SCATTERED
    if not isinstance(moved, Node) or not moved.shape:
        return NONE
    terms = linear(moved)[1]
    if terms.get(vector) == 1 and not any(atom.shape for atom in terms if atom is not vector):
        return NEIGHBOURS
    return SCATTERED
