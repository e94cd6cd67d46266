"""Long reductions with few results become two: of many parts at the same time, then of what they gave.

How long a part is depends on sizes alone, never on the machine, so the same bits come out whatever the number
of threads.
"""
from tiny.ir import ops
from tiny.ir.dtype import accumulator_dtype, dtypes
from tiny.ir.integer import prod
from tiny.ir.node import Node, toposort

FEW_RESULTS = 32             # results below which there is too little to share out
LONG = 1 << 19               # elements from which a reduction is worth two kernels
MOST_PARTS = 128
LEAST_PARTS = 4


def split_reductions(roots: list[Node], order: list[Node]) -> tuple[list[Node], list[Node]]:
    """The roots and their toposort with each long reduction in two. order: toposort(*roots)."""
    changed: dict[Node, Node] = {}
    for node in order:
        src = tuple(changed.get(source, source) for source in node.src)
        made = node if src == node.src else Node(node.op, node.dtype, src, node.arg)
        parts = _parts(made) if made.op is ops.REDUCE else 1
        if parts > 1:
            made = _in_parts(made, parts)
        if made is not node:
            changed[node] = made
    if not changed:
        return roots, order
    roots = [changed.get(root, root) for root in roots]
    return roots, toposort(*roots)


def _parts(node: Node) -> int:
    """Into how many parts the first reduced axis is cut, 1 for none."""
    op, axes = node.arg
    shape = node.src[0].shape
    if any(isinstance(size, Node) for size in shape) or node.dtype is dtypes.bool:
        return 1
    length = prod(shape[axis] for axis in axes)
    if prod(node.shape) > FEW_RESULTS or length < LONG:
        return 1
    size = shape[min(axes)]
    parts = next(n for n in range(MOST_PARTS, 0, -1) if size % n == 0)
    return parts if parts >= LEAST_PARTS else 1


def _in_parts(node: Node, parts: int) -> Node:
    """A REDUCE over `parts` parts of its first axis, held in memory in the accumulator's type, then over
    those."""
    op, axes = node.arg
    source = node.src[0]
    first = min(axes)
    wide = accumulator_dtype(node.dtype)
    if wide is not source.dtype:
        source = Node(ops.CAST, wide, (source,))
    before, size, after = source.shape[:first], source.shape[first], source.shape[first + 1:]
    cut = Node(ops.RESHAPE, None, (source,), (*before, parts, size // parts, *after))
    inner = Node(ops.REDUCE, None, (cut,), (op, tuple(axis + 1 for axis in axes)))
    total = Node(ops.REDUCE, None, (Node(ops.CONTIGUOUS, None, (inner,)),), (op, (first,)))
    total = Node(ops.RESHAPE, None, (total,), node.shape)
    return total if wide is node.dtype else Node(ops.CAST, node.dtype, (total,))
