"""The conductor: graph -> plan -> programs -> submission.
It joins every layer; the frontend talks to it alone.

    node = buffer_from_host(array, dtypes.float32, (2, 3), "CPU")      # data into a graph
    [result] = realize([some_node])                                    # computed: a BUFFER node
    bytes(read(result))                                                # back to the host
"""
import math
import threading
import weakref
from collections.abc import Callable, Sequence

from tiny.hcq import device as devices
from tiny.ir import ops
from tiny.ir.dtype import DType
from tiny.ir.node import Node, toposort
from tiny.lazy import Lazy
from tiny.realize import capture as capturing
from tiny.realize.capture import JitError
from tiny.realize.closure import Closure
from tiny.realize.counters import GlobalCounters
from tiny.realize.emulate import plug_in
from tiny.realize.observe import start_recorders
from tiny.realize.storage import (
    Storage,
    allocate,
    born,
    buffer_node,
    dependents,
    element_count,
    hold,
    holders,
    registered,
    serial,
    waiting,
)

__all__ = [
    "Closure",
    "GlobalCounters",
    "Storage",
    "before_write",
    "buffer_from_host",
    "canonical_device",
    "capturing",
    "default_device",
    "empty_buffer",
    "forget",
    "hold",
    "is_shared",
    "lock",
    "pending_writes",
    "read",
    "realize",
    "realized",
    "refreshed_on_replay",
    "return_home",
    "settle_all",
    "settle_pending",
    "settle_waiting",
]

execution = Lazy("tiny.realize.execute")

# node -> the BUFFER with its value
_done: "weakref.WeakKeyDictionary[Node, Node]" = weakref.WeakKeyDictionary()
_failed: "weakref.WeakSet[Node]" = weakref.WeakSet()         # whoever asked for them got the error
lock = threading.RLock()             # to be held while a holder is written, or computed and settled
devices.before_opening(plug_in)
devices.before_opening(start_recorders)


# -- data in and out -----------------------------------------------------------------------------------------
def default_device() -> str:
    """The canonical name of the device that is used when none is named."""
    return devices.canonical(None)


def canonical_device(name: str | None) -> str:
    """The one spelling of a device's name; an error that lists the devices for a name that is none."""
    return devices.canonical(name)


def buffer_from_host(data, dtype: DType, shape: tuple[int, ...], device: str, copy: bool = True) -> Node:
    """A BUFFER node with the bytes of `data`,
    a C-contiguous buffer object of exactly prod(shape) * itemsize bytes.

    copy=False: the CPU uses the memory in place and keeps `data` alive; other devices copy all the same.
    """
    size = memoryview(data).nbytes
    wanted = math.prod(shape) * dtype.itemsize
    if size != wanted:
        raise ValueError(f"buffer_from_host: {size} bytes given, {wanted} needed for {dtype.name} {shape}")
    if not copy and size and device.partition(":")[0] == "CPU":
        buffer = devices.open(device).from_host(data)
    else:
        buffer = allocate(device, size).initialize(data)
    return buffer_node(Storage(device, dtype, tuple(shape), buffer))


def empty_buffer(shape: tuple[int, ...], dtype: DType, device: str) -> Node:
    """A BUFFER node whose contents are whatever the memory held."""
    buffer = allocate(device, math.prod(shape) * dtype.itemsize)
    return buffer_node(Storage(device, dtype, tuple(shape), buffer))


def read(node: Node) -> memoryview:
    """The bytes of a BUFFER node, after waiting for them; on the CPU a live view, elsewhere a copy."""
    if node.op is not ops.BUFFER:
        raise ValueError(f"read: {node!r} is not in memory; realize it first")
    capturing.forbid_reading()
    return node.arg.buffer.host()[: element_count(node) * node.dtype.itemsize]


def refreshed_on_replay(storage: Storage, fill: Callable[[], bytes]) -> None:
    """Let `fill` give the storage's bytes anew each time a captured function that made it is replayed."""
    storage.refill = fill
    capturing.refilled(storage)


def before_write(holder) -> None:
    """To be called before an object of `hold` takes a new value through a write.

    In a captured function, a tensor from outside that is still lazy is computed first, outside the capture,
    and its memory is where replays go on from the last one's value.
    """
    capture = capturing.active()
    if capture is None or born(holder) > capture.began or id(holder) in capture.homes:
        return
    if id(holder) in capture.viewed:
        raise JitError(
            f"{capture.viewed[id(holder)]} is a view of a tensor that the captured function writes to; pass "
            "that tensor, or a .clone() of the view"
        )
    node = holder.lazy_node()
    if node is None and is_shared(holder):
        node = Node(ops.CONTIGUOUS, None, (holder.node,), serial())
    if node is not None:
        with capturing.paused():
            _settle([(holder, node)])
    capture.homes[id(holder)] = holder, holder.node.arg


def is_shared(holder) -> bool:
    """Whether another holder's value is the same memory."""
    return any(other is not holder and other.node is holder.node for other in holders())


def return_home(capture: capturing.Capture, arguments: set[int]) -> None:
    """Before a capture ends: what was written elsewhere than to its tensor's own memory is copied back there.

    arguments: ids of the tensors that the function was called with, whose new memory its replays hand over
    instead.
    """
    for holder, home in capture.homes.values():
        if holder.node.arg.buffer is home.buffer or id(holder) in arguments:
            continue
        if home.buffer.readonly:
            raise JitError(
                f"a captured function writes to a tensor of shape {home.shape} that lives in read-only "
                "memory (a file, or an array used in place); write to a .clone() of it"
            )
        written = Storage(home.device, home.dtype, home.shape, home.buffer)
        holder.settle(realize([Node(ops.ASSIGN, None, (buffer_node(written), holder.node), ())])[0])


def pending_writes() -> list[tuple[object, Node]]:
    """(object of `hold`, its node) of all that were written to and not computed since."""
    return [(holder, node) for holder, node in _waiting() if node.op is ops.ASSIGN]


def settle_waiting(written: set[int], read: set[int], since: int) -> int:
    """What must happen before a replay that writes and reads memory with these ids: readers of what it writes
    see the old value, writes that wait for what it reads are made.

    Looks only at holders registered after serial `since`; gives the next call's `since`.
    """
    with lock:
        now = serial()
        others = _waiting(since)
        if others:
            order = toposort(*(node for _, node in others))
            reading = dependents(
                order, {node for node in order if node.op is ops.BUFFER and id(node.arg.buffer) in written}
            )
            _settle([(holder, node) for holder, node in others if node in reading or _writes(node, read)])
    return now


def settle_all(holders: Sequence) -> None:
    """Compute objects of `hold` together."""
    pairs = [(holder, holder.node) for holder in holders]
    if any(node.op is not ops.BUFFER for _, node in pairs):
        with lock:
            _settle(pairs)


def settle_pending(holders: Sequence = ()) -> None:
    """Compute objects of `hold` and, with them, all that were written to and not computed since."""
    with lock:
        _settle([*((holder, holder.node) for holder in holders), *pending_writes()])


def _settle(pairs: list[tuple[object, Node]]) -> None:
    for (holder, _), node in zip(pairs, realize([node for _, node in pairs]), strict=True):
        holder.settle(node)


def _waiting(since: int = 0) -> list[tuple[object, Node]]:
    """As `waiting`, without what others must not be kept up by: values whose computation has failed, and
    those that need them, or memory that it overwrote. Whoever asks for such a value gets the error.
    """
    found = waiting(since)
    if not found:
        return found
    broken: set[Node] = set()
    for node in toposort(*(node for _, node in found)):
        lost = node.op is ops.BUFFER and node.arg.lost
        if lost or node in _failed or any(s in broken for s in node.src) and realized(node) is None:
            broken.add(node)
    return [(holder, node) for holder, node in found if node not in broken]


def _writes(node: Node, buffers: set[int]) -> bool:
    """Whether a node is a write to any of the buffers with these ids."""
    bottom = _bottom(node)
    return node.op is ops.ASSIGN and bottom.op is ops.BUFFER and id(bottom.arg.buffer) in buffers


def realized(node: Node) -> Node | None:
    """The BUFFER node that holds this node's value, None if it was not computed, or overwritten since."""
    if node.op is ops.BUFFER:
        return node
    held = _done.get(node)
    return None if held is None or held.arg.lost else held


def forget(buffers: set[int]) -> None:
    """Forget that the memory with these ids holds a graph's value: somebody overwrites it without a graph."""
    with lock:
        for node, held in list(_done.items()):
            if id(held.arg.buffer) in buffers:
                del _done[node]


# -- computing -----------------------------------------------------------------------------------------------
def realize(nodes: Sequence[Node]) -> list[Node]:
    """Compute nodes, all in one plan; each result is a BUFFER node of the same shape and dtype.

    Returns once the work is submitted. Lazy values elsewhere that read memory which this writes are computed
    along, so every reader sees the version it was made from.
    """
    with lock:
        wanted = [node for node in dict.fromkeys(nodes) if not _is_known(node)]
        if wanted:
            _compute(wanted)
        return [node if node.op is ops.BUFFER else _done[node] for node in nodes]


def _is_known(node: Node) -> bool:
    """Whether a node's value need not be computed; inside a captured function only if it computed it itself.
    """
    capture = capturing.active()
    if capture is not None and node not in capture.made and node.op not in (ops.BUFFER, ops.ASSIGN, ops.COPY):
        return False
    return realized(node) is not None


def _compute(wanted: list[Node]) -> None:
    roots = list(wanted)
    order = toposort(*roots)
    _after_copies(order)
    order, joined = _join_readers(roots, order)
    if joined and capturing.active() is not None:
        joined = _compute_outside(joined, capturing.active().began)
        roots = list(dict.fromkeys([*wanted, *(node for _, node in joined)]))
        order = toposort(*roots)
    seen = order
    graph, order = _with_known(roots, order)
    writable = _writable(order)
    device = next((root.device for root in graph if root.device is not None), None) or default_device()
    distinct = list(dict.fromkeys(node for node in graph if node.op is not ops.BUFFER))
    try:
        run = execution.execute(distinct, order, device, writable)
    except Exception:
        _failed.update(roots)
        raise
    computed = dict(zip(distinct, run.results, strict=True))
    for root, node in zip(roots, graph, strict=True):
        _done[root] = _done[node] = computed.get(node, node)
        _failed.discard(root)
    for holder, node in joined:
        holder.settle(_done[node])
    capturing.ran(run, (*roots, *graph), (*seen, *order))


def _compute_outside(joined: list[tuple[object, Node]], began: int) -> list[tuple[object, Node]]:
    """Compute readers that a captured function found waiting outside the capture, or replays would do so
    again; returns those of its own.
    """
    outside = [(holder, node) for holder, node in joined if registered(holder) < began]
    with capturing.paused():
        _settle(outside)
    return [(holder, node) for holder, node in joined if registered(holder) >= began]


def _writable(order: list[Node]) -> dict[Node, bool]:
    """Whether each BUFFER of a graph may be overwritten: not if read-only, or still a holder's value."""
    writable = {node: not node.arg.buffer.readonly for node in order if node.op is ops.BUFFER}
    if any(node.op is ops.ASSIGN for node in order):
        for holder in holders():
            if holder.node.op is ops.BUFFER:
                writable[holder.node] = False
    return writable


def _join_readers(roots: list[Node], order: list[Node]) -> tuple[list[Node], list[tuple[object, Node]]]:
    """Add to the roots what waits to read memory that this graph writes, until nothing more does.

    Returns the topological order of all roots and the holders that were added.
    """
    others = None
    joined: list[tuple[object, Node]] = []
    while True:
        written = {_bottom(node) for node in order if node.op is ops.ASSIGN}
        written = {node for node in written if node.op is ops.BUFFER}
        if not written:
            return order, joined
        if others is None:
            others = _waiting()
            joined = [(holder, node) for holder, node in others if node in roots and node.op is ops.ASSIGN]
            others = [(holder, node) for holder, node in others if node not in roots]
            others_order = toposort(*(node for _, node in others))
        reading = dependents(others_order, written)
        added = [(holder, node) for holder, node in others if node in reading]
        if not added:
            return order, joined
        joined += added
        roots.extend(dict.fromkeys(node for _, node in added if node not in roots))
        others = [(holder, node) for holder, node in others if node not in reading]
        order = toposort(*roots)


def _bottom(node: Node) -> Node:
    while node.op is ops.ASSIGN:
        node = node.src[0]
    return node


def _known_to_capture(known: dict[Node, Node], order: list[Node]) -> dict[Node, Node]:
    """The known values that a captured function may rely on: those it made itself, since others would be the
    same on every replay, writes that were made, copies, and what cannot be made again.
    """
    own = capturing.active().made
    result: dict[Node, Node] = {}
    gone: set[Node] = set()                                  # made of memory that was overwritten since
    for node in order:
        if node in known and (node in own or node.op in (ops.ASSIGN, ops.COPY)):
            result[node] = known[node]
        elif (node.op is ops.BUFFER and node.arg.lost) or any(s in gone for s in node.src):
            gone.add(node)
            if node in known:
                result[node] = known[node]
    return result


def _with_known(roots: list[Node], order: list[Node]) -> tuple[list[Node], list[Node]]:
    """The roots with what has been computed before put in as leaves, and their topological order."""
    known = {node: held for node in order if (held := _done.get(node)) is not None and not held.arg.lost}
    if known and capturing.active() is not None:
        known = _known_to_capture(known, order)
    if not known:
        return roots, order
    changed: dict[Node, Node] = dict(known)
    for node in order:
        if node not in changed:
            src = tuple(changed[s] for s in node.src)
            changed[node] = node if src == node.src else Node(node.op, node.dtype, src, node.arg)
    graph = [changed[root] for root in roots]
    return graph, toposort(*graph)


def _after_copies(order: list[Node]) -> None:
    """Move what is copied between devices first; those copies are then known."""
    for node in order:
        if node.op is ops.COPY and node not in _done and node.src[0].device not in (None, node.arg):
            capturing.forbid_reading()
            [source] = realize([node.src[0]])
            buffer = devices.open(node.arg).receive(source.arg.buffer)
            _done[node] = buffer_node(Storage(node.arg, node.dtype, source.shape, buffer))
