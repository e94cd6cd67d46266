"""The one node type every stage works on."""
import os
import struct
import threading
import weakref

from tiny.ir import ops
from tiny.ir.dtype import DType, canonical, dtypes
from tiny.ir.ops import Op

_pack_double = struct.Struct("<d").pack


class Node:
    """One operation. Immutable and interned: equal nodes are the same object, so compare with `is`.

    op      row of ir.ops                shape   tuple of int | Node (tensor level), () scalar, (n,) n lanes
    dtype   DType of one element         src     operands, a tuple of Node
    arg     op's static data, hashable   device  where the data lives, by name; None if it may be anywhere

    The table of nodes holds them weakly: a node lives as long as a tensor, a plan or another node refers to
    it. Safe between threads: two threads that make the same node get the same object. Arithmetic operators on
    index nodes (sizes, positions) are defined in `ir.integer`, which simplifies as it builds.
    """
    __slots__ = ("op", "dtype", "src", "arg", "shape", "device", "_bounds", "_linear", "_order",
                 "__weakref__")

    def __new__(cls, op: Op, dtype: DType | None = None, src: tuple = (), arg=None) -> "Node":
        if op.dtype is not ops.asked:
            dtype = None  # the row decides it, so it is no part of the key
        key = (op, dtype, src, arg) if op is not ops.CONST else (op, dtype, _bits(arg, dtype))
        found = _interned.get(key)
        if found is not None:
            node = found()
            if node is not None:
                return node
        return _make(key, op, dtype, src, arg)

    def __setattr__(self, name, value):
        raise AttributeError(f"Node.{name}: nodes are immutable; make another one")

    def __reduce__(self):
        return Node, (self.op, self.dtype, self.src, self.arg)

    def __repr__(self) -> str:
        if self.op is ops.CONST:
            return f"{self.arg!r}:{self.dtype.name}"
        if self.op is ops.VARIABLE:
            return self.arg[0]
        inner = [f"{len(self.src)} operands"] if self.src else []
        inner += [repr(self.arg)] if self.arg is not None else []
        return f"{self.op.name}({', '.join(inner)}):{self.dtype.name}"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def bind(self, value: int) -> "Node":
        """A VARIABLE with its value for now; ValueError when it is outside the variable's bounds."""
        if self.op is not ops.VARIABLE:
            raise TypeError(f"bind: {self!r} is not a Variable")
        name, low, high = self.arg
        if not low <= value <= high:
            raise ValueError(f"Variable {name}: {value} is outside {low} ... {high}")
        return Node(ops.BIND, dtypes.index, (self,), int(value))


_interned: dict[tuple, weakref.ref] = {}
_table_lock = threading.RLock()     # re-entrant: the collector may forget a node while one is being put in
_set = object.__setattr__


def _bits(value, dtype: DType):
    if dtype.kind == "f":
        return _pack_double(value) if value == value else "nan"
    return value


def _make(key: tuple, op: Op, dtype: DType | None, src: tuple, arg) -> Node:
    if op.operands is not None and len(src) != op.operands:
        raise ValueError(f"{op.name}: {op.operands} operands expected, {len(src)} given")
    node = object.__new__(Node)
    _set(node, "op", op)
    _set(node, "src", src)
    _set(node, "arg", arg)
    try:
        _set(node, "dtype", op.dtype(src, arg, dtype))
        _set(node, "shape", op.shape(src, arg))
    except (TypeError, ValueError) as error:
        raise type(error)(f"{op.name}: {error}") from None
    _set(node, "device", _device_of(op, src, arg))

    def forget(reference, key=key):
        with _table_lock:  # another thread may just be putting its node there
            if _interned.get(key) is reference:
                del _interned[key]

    reference = weakref.ref(node, forget)
    with _table_lock:
        other = _interned.get(key)  # another thread may have made the same node meanwhile
        alive = None if other is None else other()
        if alive is None:
            _interned[key] = reference
    return node if alive is None else alive


def _device_of(op: Op, src: tuple, arg) -> str | None:
    if not src:
        return arg.device if op is ops.BUFFER else arg[2] if op is ops.PARAM else None
    if op is ops.COPY:
        return arg
    device = None
    for s in src:
        if s.device is not None and s.device != device:
            if device is not None:
                raise RuntimeError(
                    f"{op.name}: operands on different devices, {device} {src[0].shape} and {s.device} "
                    f"{s.shape}; move one with .to()"
                )
            device = s.device
    return device


def _after_fork_in_child() -> None:
    global _table_lock
    _table_lock = threading.RLock()                         # the parent's may be held by another thread


os.register_at_fork(after_in_child=_after_fork_in_child)


def const(value, dtype: DType) -> Node:
    """A constant of `dtype`; the value takes canonical form first (integers wrap, floats round)."""
    return Node(ops.CONST, dtype, (), canonical(value, dtype))


def variable(name: str, low: int, high: int) -> Node:
    """A symbolic size with inclusive bounds."""
    if not low <= high:
        raise ValueError(f"Variable {name}: the lower bound {low} is above the upper bound {high}")
    return Node(ops.VARIABLE, dtypes.index, (), (name, low, high))


class Variable:
    """`Variable(name, min, max)` gives a symbolic size, a Node; `.bind(value)` gives it its value for now."""

    def __new__(cls, name: str, low: int, high: int) -> Node:
        return variable(name, low, high)


def toposort(*roots: Node) -> list[Node]:
    """Every node that the roots reach through operands, operands before users.
    No recursion: graphs may be deep.
    """
    seen, order = set(), []
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((s, False) for s in reversed(node.src) if s not in seen)
    return order
