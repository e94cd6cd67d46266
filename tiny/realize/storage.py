"""Where a value lives: the identity behind a BUFFER node, and who still waits to read it."""
import itertools
import math
import weakref
from collections.abc import Callable, Iterator, Sequence

from tiny.hcq import device as devices
from tiny.hcq.memory import Buffer
from tiny.ir import ops
from tiny.ir.dtype import DType
from tiny.ir.integer import evaluate, prod
from tiny.ir.node import Node


class Storage:
    """What a BUFFER node stands for: `buffer`,
    device memory that holds an array of `shape` in row-major order.

    A write in place makes a new Storage for the same memory; the old one has then lost its value. Two
    storages made of equal values are two. failure: how it was lost, if the write then failed. refill: gives
    the bytes that a captured function finds here on its next replay, or None.
    """
    __slots__ = ("device", "dtype", "shape", "buffer", "lost", "failure", "refill", "__weakref__")

    def __init__(self, device: str, dtype: DType, shape: tuple, buffer: Buffer):
        self.device, self.dtype, self.shape, self.buffer = device, dtype, shape, buffer
        self.lost, self.failure = False, ""
        self.refill: Callable[[], bytes] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the array; for a symbolic shape, of its size now."""
        return evaluate(prod(self.shape)) * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"Storage({self.device}, {self.dtype.name}, {self.shape})"


def buffer_node(storage: Storage) -> Node:
    """The leaf that stands for a storage in graphs."""
    return Node(ops.BUFFER, storage.dtype, (), storage)


def allocate(device: str, nbytes: int) -> Buffer:
    """Memory for `nbytes`, at least one."""
    return devices.open(device).allocate(max(nbytes, 1))


# -- who may still read a value ------------------------------------------------------------------------------
class _Reference(weakref.ref):
    __slots__ = ("key", "serial", "born")


_holders: dict[int, _Reference] = {}                         # by id, the newest last
_serials = itertools.count(1)
_pop = _holders.pop


def _forget(reference: _Reference) -> None:
    if _holders.get(reference.key) is reference:
        _pop(reference.key, None)


def hold(holder) -> None:
    """Register an object with a lazy value: `lazy_node()` gives it, or None;
    `settle(node)` takes the computed one.

    Before memory is written in place, whoever still waits to read what it holds is computed along. Held
    weakly. To be called again when the holder takes another lazy value.
    """
    reference = _Reference(holder, _forget)
    reference.key = key = id(holder)
    reference.serial = reference.born = next(_serials)
    old = _pop(key, None)
    if old is not None and old() is holder:
        reference.born = old.born
    _holders[key] = reference


def serial() -> int:
    """A number above those of all holders so far."""
    return next(_serials)


def registered(holder) -> int:
    """When a holder was registered last, with the value it has or waits for."""
    return _holders[id(holder)].serial


def born(holder) -> int:
    """When a holder was registered first."""
    return _holders[id(holder)].born


def holders(since: int = 0, before: float = math.inf) -> Iterator:
    """All that were registered after serial `since` for the last time,
    the newest first, and born before `before`.
    """
    for reference in _registered_since(since):
        holder = reference()
        if holder is not None and reference.born < before:
            yield holder


def _registered_since(since: int) -> list[_Reference]:
    """The newest first. Most look for the few that are new, so not all are copied first."""
    found = []
    try:
        for reference in reversed(_holders.values()):
            if reference.serial <= since:
                break
            found.append(reference)
    except RuntimeError:                                    # one came or went meanwhile
        every = reversed(list(_holders.values()))
        found = list(itertools.takewhile(lambda reference: reference.serial > since, every))
    return found


def waiting(since: int = 0) -> list[tuple[object, Node]]:
    """(holder, its lazy node) of all that have not been computed and were registered after serial `since`."""
    found = []
    for holder in holders(since):
        node = holder.lazy_node()
        if node is not None:
            found.append((holder, node))
    return found


def dependents(order: Sequence[Node], leaves: set[Node]) -> set[Node]:
    """The nodes of a graph, in topological order, that read any of the leaves."""
    found = set(leaves)
    for node in order:
        if any(s in found for s in node.src):
            found.add(node)
    return found


def element_count(node: Node) -> int:
    """Elements a node has now."""
    return evaluate(prod(node.shape))
