"""Sums of several work-items become one, through memory that the group shares."""
from collections.abc import Sequence
from dataclasses import dataclass

from tiny.ir import ops
from tiny.ir.integer import Integer, as_node, less
from tiny.ir.node import Node, const
from tiny.ir.ops import Op, identity_of
from tiny.render.emit import Emitter
from tiny.render.instances import combine

AT_ONCE = 8                  # sums that one item takes together, between two barriers


@dataclass(frozen=True, slots=True)
class Sharing:
    """Which work-items share their sums: `sharers` of the group's `items`, each `apart` from the next."""
    item: Node
    items: int
    sharers: int
    apart: int


def add_up(emit: Emitter, sums: Sequence[Node], op: Op, sharing: Sharing) -> list[Node]:
    """The totals of `sums`, of which every item has some of its own.

    A tree: items store what they have, and ever fewer take AT_ONCE of those together. The totals are known to
    one item of the sharers, in a scope that is open when this returns: the caller closes it.
    """
    item, sharers = sharing.item, sharing.sharers
    rank: Integer = item // sharing.apart % sharers
    lanes = sums[0].shape[0] if sums[0].shape else 0
    each = max(lanes, 1)
    local = emit.local(sums[0].dtype, sharing.items * each * len(sums))

    def place(number: int, further: int) -> Integer:
        return (item + further * sharing.apart + number * sharing.items) * each

    held = [emit.scopes.statement(ops.REGISTER, (total,), emit.number()) for total in sums]
    emit.barrier()                                           # for those who still read an earlier exchange
    width = sharers
    while width > 1:
        for number, register in enumerate(held):
            emit.store(local, place(number, 0), emit.read(register))
        if width < sharers:
            emit.scopes.close()
        emit.barrier()
        stride = -(-width // AT_ONCE)
        _only(emit, less(rank, stride))
        for number, register in enumerate(held):
            others = [(place(number, further), further + stride <= width or less(rank + further, width))
                      for further in range(stride, width, stride)]
            emit.set(register, _taken(local, emit.read(register), op, others))
        width = stride
    if sharers == 1:
        emit.scopes.open(None)
    return [emit.read(register) for register in held]


def _only(emit: Emitter, condition: Node | bool) -> None:
    """Open a scope for the items for which the condition holds."""
    opener = Node(ops.IF, None, (emit.scopes.place(condition),), emit.number())
    emit.scopes.open(opener, conditional=True)


def _taken(local: Node, total: Node, op: Op, others: Sequence[tuple]) -> Node:
    """A sum with those at `others`, (place, whether there is one there), taken in, in that order."""
    lanes = total.shape[0] if total.shape else None
    for place, exists in others:
        gates = () if exists is True else (exists,)
        found = Node(ops.LOAD, None, (local, as_node(place), *gates), lanes)
        if gates:
            found = Node(ops.WHERE, None, (exists, found, const(identity_of(op, total.dtype), total.dtype)))
        total = combine(op, total, found)
    return total
