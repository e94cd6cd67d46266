"""A plan as data: which kernels run, in which order, on which memory; and what makes two graphs share one.

A plan knows its graph's leaves only by number, so it serves every graph of the same structure.
"""
import functools
from collections.abc import Sequence
from dataclasses import dataclass

from tiny.ir import ops
from tiny.ir.dtype import DType
from tiny.ir.integer import bounds, prod, unbound
from tiny.ir.node import Node
from tiny.schedule.kernel import Kernel

INPUT, OUTPUT, ARENA = "input", "output", "arena"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value lies: the number-th leaf of the graph,
    result of the plan, or offset in bytes into the arena.
    """
    kind: str
    number: int


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel; places[i] is what its POINTER i means, 0 the destination."""
    kernel: Kernel
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order; where each root's value is in the end, which for a write in place is an input; arena
    bytes the steps need meanwhile.
    """
    steps: tuple[Step, ...]
    results: tuple[Place, ...]
    arena_size: int
    variables: tuple[Node, ...]


# -- structure: what two graphs must share to share a plan or a kernel ---------------------------------------
def structure(order: Sequence[Node], inputs: frozenset | set | dict = frozenset()) -> tuple:
    """A key that is equal for graphs of equal structure:
    leaves by order of appearance, BINDs by their variable.
    """
    number: dict[Node, int] = {}
    key: list = []
    for position, node in enumerate(order):
        number[node] = position
        op = node.op
        if op is ops.BUFFER or node in inputs:
            key.append((node.dtype, unbound_argument(node.shape), node.device))
        elif op is ops.CONST:
            key.append(node)
        elif op is ops.BIND:
            key.append(node.src[0])
        elif op is ops.DETACH or op is ops.CONTIGUOUS:       # their argument only tells equal ones apart
            key.append((op, node.dtype, number[node.src[0]]))
        elif node.arg is None or op.level == ops.SHARED:
            key.append((op, node.dtype, node.arg, *[number[s] for s in node.src]))
        else:
            key.append((op, node.dtype, unbound_argument(node.arg), *[number[s] for s in node.src]))
    return tuple(key)


def unbound_argument(arg):
    """A movement op's argument with every BIND in it replaced by its VARIABLE."""
    if type(arg) is tuple:
        return _unbound_tuple(arg)
    return unbound(arg) if isinstance(arg, Node) else arg


@functools.lru_cache(1 << 14)
def _unbound_tuple(arg: tuple) -> tuple:
    """The same few shapes and arguments are asked for again and again."""
    return tuple(unbound_argument(part) for part in arg)


def bytes_of(shape: Sequence, dtype: DType) -> int:
    """The most bytes an array can take."""
    return bounds(prod(shape))[1] * dtype.itemsize
