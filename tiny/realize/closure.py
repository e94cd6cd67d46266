"""What a captured function reads besides its arguments, and whether that is still where it was.

A replay goes to fixed addresses and has constants built in. It stands for the function as long as each tensor
from outside that was in the captured graphs has the value it had then, or new data in the same memory.
"""
import weakref
from collections.abc import Callable, Iterable

from tiny.ir import ops
from tiny.ir.node import Node
from tiny.realize.capture import Capture
from tiny.realize.storage import holders, serial


class Closure:
    """The tensors from outside that a capture saw. arguments: ids of those that were passed in, which are
    none.
    """

    def __init__(self, capture: Capture, arguments: Iterable[int]):
        outside = [holder for holder in holders(before=capture.began) if id(holder) not in set(arguments)]
        seen = {id(holder): holder for holder, _ in capture.homes.values()}
        seen |= {id(holder): holder for holder in outside if holder.node in capture.nodes}
        self._seen = {key: (weakref.ref(holder), _value(holder.node)) for key, holder in seen.items()}
        self._checked = serial()

    def unchanged(self) -> bool:
        """Whether all of them, as far as they are alive, are what they were. Looks only when one took a new
        value.
        """
        since, self._checked = self._checked, serial()
        for holder in holders(since=since):
            known = self._seen.get(id(holder))
            if known is not None and known[0]() is holder:
                return all(self._is_same(*one) for one in self._seen.values())
        return True

    @staticmethod
    def _is_same(reference: Callable, value) -> bool:
        holder = reference()
        return holder is None or _value(holder.node) is value


def _value(node: Node):
    """What stands for a tensor's value: its memory, or the graph that it is yet to be computed from."""
    return node.arg.buffer if node.op is ops.BUFFER else node
