"""What a captured function reads besides its arguments, and whether that is still where it was.

A replay goes to fixed addresses and has constants built in. It stands for the function as long as each tensor
from outside that was in the captured graphs has the value it had then, or new data in the same memory.
"""
import weakref

from tiny.ir import ops
from tiny.ir.node import Node
from tiny.realize.capture import Capture
from tiny.realize.storage import holders, serial


class Closure:
    """The tensors from outside that a capture saw.

    arguments: ids of those that were passed in, which are none; written: ids of buffers replays overwrite.
    """

    def __init__(self, capture: Capture, arguments: set[int], written: set[int]):
        self._written = written
        seen = {id(holder): holder for holder, _ in capture.homes.values()}
        for holder in holders(before=capture.began):
            if id(holder) not in arguments and holder.node in capture.nodes:
                seen[id(holder)] = holder
        self._seen = {key: (weakref.ref(holder), _value(holder.node)) for key, holder in seen.items()}
        self._checked = serial()

    def unchanged(self) -> bool:
        """Whether all of them, as far as they are alive, are what they were, and share no written memory.

        Looks only at those that took a new value since the last call, and at all if there is one.
        """
        since, self._checked = self._checked, serial()
        look = False
        for holder in holders(since=since):
            reference, _ = self._seen.get(id(holder), (None, None))
            if reference is not None and reference() is holder:
                look = True
            elif holder.node.op is ops.BUFFER and id(holder.node.arg.buffer) in self._written:
                return False
        return not look or all(self._is_same(*one) for one in self._seen.values())

    @staticmethod
    def _is_same(reference: weakref.ref, value) -> bool:
        holder = reference()
        return holder is None or _value(holder.node) is value


def _value(node: Node):
    """What stands for a tensor's value: its memory, or the graph that it is yet to be computed from."""
    return node.arg.buffer if node.op is ops.BUFFER else node
