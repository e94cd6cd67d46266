"""What a computed value came from, kept as long as somebody may differentiate through it.

Computing a tensor puts a BUFFER in the place of its graph. A gradient asked for later has to pass from the
buffer to that graph: `origin` gives it. It is kept for leaves, whose graph is small (a random number, a
constant), and for results that depend on a tensor with requires_grad=True; not for what was written to, whose
history would have no end. That it was cut off is kept instead, so that nobody misses a gradient silently.
"""
import weakref
from collections.abc import Iterable

from tiny.ir import ops
from tiny.ir.node import Node

# buffer -> (op, dtype, src, arg) of the node it was computed from. Not that node: `realize` remembers which
# buffer has a node's value as long as the node lives, so each would keep the other alive for ever.
_origins: "weakref.WeakKeyDictionary[Node, tuple]" = weakref.WeakKeyDictionary()

_cut: "weakref.WeakSet[Node]" = weakref.WeakSet()           # buffers of what was written to and has a history

# gradients do not pass these, though they have floating results: steps, bits, and what was cut off on purpose
STOPS = frozenset((ops.DETACH, ops.TRUNC, ops.BITCAST))


def origin(node: Node) -> Node | None:
    """The node that the BUFFER was computed from, where it is known. The caller keeps it alive."""
    recipe = _origins.get(node) if node.op is ops.BUFFER else None
    return None if recipe is None else Node(*recipe)


def remember(lazy: Node, held: Node) -> None:
    """`held` is the buffer with the value of `lazy`."""
    if held.op is ops.BUFFER and lazy.op is not ops.BUFFER and lazy.op is not ops.ASSIGN:
        _origins[held] = (lazy.op, lazy.dtype, lazy.src, lazy.arg)


def cut_off(held: Node) -> None:
    """`held` has the value of something written to that a gradient would have to pass."""
    if held.op is ops.BUFFER:
        _cut.add(held)


def forbid_cut(root: Node) -> None:
    """RuntimeError where a gradient of root would have to pass what `cut_off` was told."""
    if _cut and not _cut.isdisjoint(reachable(root)):
        raise RuntimeError("backward: the result depends on a tensor that was written to and then computed: "
                           "the way back through the write is gone. Call backward() before reading it, "
                           "or write values to it that are detached with .detach()")


def differentiable_sources(node: Node) -> tuple[Node, ...]:
    """The operands that a gradient may pass to; for a buffer the node that it was computed from."""
    if node.op in STOPS:
        return ()
    if node.op is ops.BUFFER:
        source = origin(node)
        return () if source is None else (source,)
    return tuple(source for source in node.src if source.dtype.is_float)


def reachable(root: Node) -> set[Node]:
    """Every node that a gradient of root may pass to, root included."""
    seen, stack = {root}, [root]
    while stack:
        fresh = [source for source in differentiable_sources(stack.pop()) if source not in seen]
        seen.update(fresh)
        stack.extend(fresh)
    return seen


def depends_on(root: Node, targets: Iterable[Node]) -> bool:
    """Whether a gradient of root passes to one of the targets."""
    wanted = set(targets)
    seen, stack = {root}, [root] if wanted else []
    while stack:
        node = stack.pop()
        if node in wanted:
            return True
        fresh = [source for source in differentiable_sources(node) if source not in seen]
        seen.update(fresh)
        stack.extend(fresh)
    return False
