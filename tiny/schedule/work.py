"""How much a kernel does: elementary operations and bytes of memory, for counters and rates."""
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.integer import Integer, as_node, bounds, minimum, prod, unbound
from tiny.ir.node import Node, toposort
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import accumulation


def _points(axes) -> Integer:
    return prod(axis.src[0].arg if axis.src[0].op is ops.CONST else unbound(axis.src[0]) for axis in axes)


def elementary(value: Node) -> list[Node]:
    """The operations of a value, casts included, apart from those on positions."""
    return [node for node in toposort(value) if node.op.level == ops.SHARED
            and node.op is not ops.CONST and node.dtype is not dtypes.index]


def operations(kernel: Kernel) -> Integer:
    """Elementary operations of one run: those inside a reduction for each of its points."""
    total = accumulation(kernel)
    outside = _points(kernel.axes)
    inner = set() if total is None else set(toposort(total.src[0]))
    counted = elementary(kernel.value)
    once = sum(node not in inner for node in counted)
    if total is None:
        return outside * max(once, 1)
    return outside * once + outside * _points(total.src[1:]) * (1 + sum(node in inner for node in counted))


def traffic(kernel: Kernel) -> Integer:
    """Bytes that one run reads and writes at least: each element of each operand once."""
    largest: dict[Node, Integer] = {}
    order = toposort(*(part for part in (kernel.value, kernel.gate, kernel.index) if isinstance(part, Node)))
    for node in order:
        if node.op is ops.LOAD:
            count = _distinct(node.src[1])
            known = largest.get(node.src[0])
            largest[node.src[0]] = count if known is None or bounds(count)[1] > bounds(known)[1] else known
    read: Integer = 0
    for pointer, count in largest.items():
        read = read + count * pointer.dtype.itemsize
    return read + _points(kernel.axes) * kernel.dtype.itemsize


def _distinct(index: Integer) -> Integer:
    """How many values an index takes, at most."""
    points = _points(node for node in toposort(as_node(index)) if node.op is ops.RANGE)
    low, high = bounds(index)
    return minimum(points, high - low + 1)
