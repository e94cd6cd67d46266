"""Gradients of Tensors: `gradient` gives them, `backward` leaves them in `.grad`."""
import tiny.realize as runtime
from tiny.frontend import core, grad, history
from tiny.frontend.graph import zeros
from tiny.ir import ops
from tiny.ir.node import Node, const


class Autograd:
    """Gradients of Tensor."""

    def gradient(self, *targets, gradient=None, materialize_grads: bool = False) -> list:
        """The gradient of this tensor by each of the targets, lazily. They can be differentiated again.

        gradient: what to start from, of this tensor's shape; may be left out where it has one element.
        materialize_grads: zeros for a target that this tensor does not depend on, else that is a
        RuntimeError.
        """
        history.forbid_cut(self.node)
        nodes = [target.node for target in targets]
        found = grad.gradient(self.node, self._cotangent(gradient, "gradient"), nodes)
        for number, (target, node) in enumerate(zip(targets, found, strict=True)):
            if node is None:
                if not materialize_grads:
                    raise RuntimeError(f"gradient: the result depends on target {number}, {target!r}, not at "
                                       "all, or past .detach(), integers or a write; materialize_grads=True "
                                       "gives zeros for it")
                found[number] = zeros(target.shape, target.dtype)
        return [self._wrap(_where_its_leaf_is(*pair)) for pair in zip(found, nodes, strict=True)]

    def backward(self, gradient=None, retain_graph: bool = True, create_graph: bool = False):
        """Add the gradient of this tensor to the `.grad` of the leaves it depends on. Returns the tensor.

        The leaves are those with requires_grad=True; where it depends on none, all floating leaves but those
        with requires_grad=False. create_graph: the gradients can be differentiated again. Graphs are always
        retained.
        """
        history.forbid_cut(self.node)
        leaves = self._leaves_below()
        if not leaves:
            raise RuntimeError(f"backward: {self!r} depends on no leaf that could take a gradient; make one "
                               "with requires_grad=True, and a .grad to go on from with create_graph=True")
        nodes = [leaf.node for leaf in leaves]
        found = grad.gradient(self.node, self._cotangent(gradient, "backward"), nodes)
        for leaf, of, node in zip(leaves, nodes, found, strict=True):
            node = _where_its_leaf_is(node, of)
            part = self._wrap(node if create_graph else Node(ops.DETACH, None, (node,)))
            leaf.grad = part if leaf.grad is None else leaf.grad + part
        return self

    def contiguous_backward(self):
        """This tensor. (Elsewhere it has the gradient held in memory; here the scheduler decides on that.)"""
        return self

    def _cotangent(self, gradient, name: str) -> Node:
        if gradient is not None:
            return self._lift(gradient).cast(self.dtype).node
        if any(size != 1 for size in self.shape):
            raise RuntimeError(f"{name}: the tensor of shape {self.shape} is no scalar; reduce it, with "
                               ".sum() or .mean(), or give gradient=")
        return const(1, self.dtype)

    def _leaves_below(self) -> list:
        """The leaves that take a gradient of this tensor, by the order in which they were made."""
        alive = [leaf for leaf in core.leaves_alive() if leaf.requires_grad is not False]
        reached = history.reachable(self.node)
        _forbid_stale(reached, alive)
        below = [leaf for leaf in alive if (history.origin(leaf.node) or leaf.node) in reached]
        return [leaf for leaf in below if leaf.requires_grad] or below


def _where_its_leaf_is(gradient: Node, leaf: Node) -> Node:
    """A gradient made of constants is anywhere; alone it would be computed on the default device."""
    if gradient.device is not None or leaf.device in (None, runtime.default_device()):
        return gradient
    return Node(ops.COPY, None, (gradient,), leaf.device)


def _forbid_stale(reached: set[Node], leaves: list) -> None:
    """RuntimeError where the graph goes back to what a leaf held before it was written to in place."""
    held = (node.arg for node in reached if node.op is ops.BUFFER)
    gone = {id(storage.buffer) for storage in held if getattr(storage, "lost", False)}
    for leaf in leaves if gone else ():
        if leaf.node.op is ops.BUFFER and id(leaf.node.arg.buffer) in gone:
            raise RuntimeError(f"backward: {leaf!r} was written to after the result was built from its old "
                               "value; call backward() before the write, or build the result anew")
