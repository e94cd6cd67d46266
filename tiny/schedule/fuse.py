"""Which nodes of a graph are held in memory; everything between them is fused into the kernels that read it.

A kernel computes one stored node from leaves and other stored nodes. The rules, in this order:
 1. results, writes, running reductions and what the user asked to hold are stored;
 2. a reduction carries on into the elementwise work after it (its epilogue) until something would repeat it;
 3. elementwise work is repeated in each reader while that is cheaper than memory: not where a reader visits
    it many times over, unless it expands few bytes into many (quantised weights), and not where several
    readers would repeat much;
 4. no kernel reads more buffers than the target allows, and no expression grows too deep.
"""
from collections.abc import Iterable

from tiny.ir import ops
from tiny.ir.dtype import accumulator_dtype
from tiny.ir.integer import Integer, bounds, equal, prod
from tiny.ir.node import Node

ALWAYS_STORED = frozenset((ops.ASSIGN, ops.COPY, ops.CONTIGUOUS, ops.SCATTER, ops.SCAN))
LEAVES = frozenset((ops.CONST, ops.VARIABLE, ops.BIND, ops.BUFFER, ops.PARAM, ops.IOTA))
# each element of the operand is visited at most once
MOVES_ONCE = frozenset((ops.RESHAPE, ops.PERMUTE, ops.FLIP, ops.SHRINK, ops.DETACH))
MAX_DEPTH = 100          # nested operations in one kernel's expression
LONGEST_DETOUR = 16      # operations between a reduction that is used several times and where the uses meet
REPEAT_IN_READERS = 8    # operations that several readers may each repeat
MOST_UNPACKING = 64      # operations that unpacking one element may take
KEEP_FUNCTIONS = 3       # a function (exp, sin, ...) counts as that many operations more


def size_of(shape: Iterable[Integer]) -> int:
    """The largest number of elements a shape can have."""
    return bounds(prod(shape))[1]


def fuse(roots: list[Node], order: list[Node], max_inputs: int = 64) -> dict[Node, None]:
    """The nodes to store, in topological order (a dict for its order). `order` is toposort(*roots)."""
    stored = {node for node in order if node.op in ALWAYS_STORED}
    stored.update(root for root in roots if root.op is not ops.BUFFER)
    users: dict[Node, list[Node]] = {node: [] for node in order}
    for node in order:
        for source in dict.fromkeys(node.src):
            users[source].append(node)
    _store_reductions(order, users, stored)
    _store_repeated(order, users, stored)
    _limit(order, stored, max_inputs)
    return {node: None for node in order if node in stored}


# -- 2: reductions -------------------------------------------------------------------------------------------
def _store_reductions(order: list[Node], users: dict[Node, list[Node]], stored: set[Node]) -> None:
    carries: set[Node] = set()                               # nodes whose expression still holds a reduction
    position = {node: number for number, node in enumerate(order)}
    for node in order:
        if node in stored or node in carries:
            continue
        if node.op is ops.REDUCE or any(s in carries for s in node.src):
            readers = users[node]
            if (overlap := _overlap_ahead(node, users, stored)):
                carries |= overlap
                continue
            if len(readers) == 1 and _epilogue(node, readers[0], carries):
                carries.add(node)
                continue
            meeting = _before_meeting(node, users, stored, carries, position) if len(readers) > 1 else None
            if meeting:
                carries |= meeting
            else:
                stored.add(node)


def _overlap_ahead(node: Node, users: dict[Node, list[Node]], stored: set[Node]) -> set[Node] | None:
    """A sum and the movements after it up to where it is only added up again, as overlapping windows are in
    the gradient of a convolution: both sums are then one. None where that does not follow.
    """
    if node.op is not ops.REDUCE or node.arg[0] is not ops.ADD:
        return None
    if accumulator_dtype(node.dtype) is not node.dtype:
        return None
    inside, windows = [node], False
    while len(users[inside[-1]]) == 1 and inside[-1] not in stored:
        (user,) = users[inside[-1]]
        if user.op is ops.REDUCE:
            return set(inside) if windows and user.arg[0] is ops.ADD else None
        if user.op not in MOVES_ONCE and not (user.op is ops.WINDOW and not _grows(inside[-1], user)):
            return None
        windows = windows or user.op is ops.WINDOW
        inside.append(user)
    return None


def _before_meeting(node: Node, users: dict[Node, list[Node]], stored: set[Node], carries: set[Node],
                    position: dict[Node, int]) -> set[Node] | None:
    """The node and the elementwise work after it up to where its uses meet again, None if they do not."""
    inside, ahead = {node}, set(users[node])
    while len(inside) <= LONGEST_DETOUR:
        user = min(ahead, key=position.__getitem__)
        ahead.remove(user)
        other_reduction = any(s in carries and s not in inside for s in user.src)
        if user.op.level != ops.SHARED or user.shape != node.shape or other_reduction:
            return None
        if not ahead:
            return inside
        if user in stored:
            return None
        inside.add(user)
        ahead.update(users[user])
    return None


def _epilogue(node: Node, user: Node, carries: set[Node]) -> bool:
    """Whether `user` visits each element of `node` once and brings no second reduction."""
    if user.op in MOVES_ONCE or user.op is ops.CONTIGUOUS:
        return True
    if user.op is ops.ASSIGN:
        return user.src[1] is node and user.src[0] is not node
    if user.op.level != ops.SHARED or user.shape != node.shape:
        return False
    return user.src.count(node) <= 2 and not any(s in carries for s in user.src if s is not node)


# -- 3: elementwise work -------------------------------------------------------------------------------------
class _Cost:
    """What computing a node inside a reader costs: operations, functions among them, bytes read (about).

    floats: some of what it reads are floating-point numbers, so it is no unpacking of bytes.
    """
    __slots__ = ("operations", "functions", "read", "floats")

    def __init__(self, operations: int, functions: int, read: int, floats: bool):
        self.operations, self.functions, self.read, self.floats = operations, functions, read, floats

    @classmethod
    def of_memory(cls, node: Node) -> "_Cost":
        return cls(0, 0, _bytes(node), node.dtype.is_float)


def _costs(order: list[Node], stored: set[Node]) -> dict[Node, _Cost]:
    costs: dict[Node, _Cost] = {}
    for node in order:
        if node.op in LEAVES:
            costs[node] = _Cost.of_memory(node) if node.op is ops.BUFFER else _Cost(0, 0, 0, False)
            continue
        below = [_Cost.of_memory(s) if s in stored else costs[s] for s in node.src]
        counts = node.op.level == ops.SHARED and node.op is not ops.CAST and node.op is not ops.BITCAST
        operations = sum(c.operations for c in below) + counts
        functions = sum(c.functions for c in below) + node.op.function
        read = sum(c.read for c in below)
        if node.op in ops.MOVEMENT:                          # a view of a part reads that part
            read = min(read, _bytes(node))
        floats = any(c.floats for c in below)
        costs[node] = _Cost(min(operations, 1000), min(functions, 1000), read, floats)
    return costs


def _bytes(node: Node) -> int:
    return size_of(node.shape) * node.dtype.itemsize


def _unpacks(node: Node, cost: _Cost) -> bool:
    """Whether a node makes many bytes out of few by cheap arithmetic on integers, as from quantised weights.
    """
    return (node.op.level == ops.SHARED and not cost.functions and not cost.floats
            and 0 < 2 * cost.read <= _bytes(node))


def _grows(node: Node, user: Node) -> bool:
    """Whether `user` reads elements of `node` several times over."""
    if user.op is ops.EXPAND:
        return any(not equal(a, b) for a, b in zip(node.shape, user.shape, strict=True))
    if user.op is ops.WINDOW:
        _, size, stride, _ = user.arg
        return size > stride
    return user.op.level == ops.SHARED and not node.shape and bool(user.shape)


def _store_repeated(order: list[Node], users: dict[Node, list[Node]], stored: set[Node]) -> None:
    costs = _costs(order, stored)
    place: dict[Node, tuple] = {}  # node -> (kernel's root, the way to it), when only one
    several: set[Node] = set()                               # nodes computed in several places
    grown: set[Node] = set()  # nodes whose elements are computed many times over
    unpacking: set[Node] = set()  # nodes inside one that makes many bytes out of few
    for node in reversed(order):
        ways = set()
        for user in users[node]:
            inside = user not in stored
            ways.add(_way(node, user, place[user] if inside else (user, ())))
            if inside and user in several:
                several.add(node)
            if _grows(node, user) or (inside and user in grown):
                grown.add(node)
            if inside and (user in unpacking or _unpacks(user, costs[user])):
                unpacking.add(node)
        if len(ways) > 1:
            several.add(node)
        place[node] = ways.pop() if len(ways) == 1 else (node, ())
        if node not in stored and node.op not in LEAVES and _worth_storing(
                node, costs[node], node in several, node in grown, node in unpacking,
                node.op is ops.PAD and _repeats_ahead(node, users)):
            stored.add(node)
        if node in stored:
            several.discard(node)
            grown.discard(node)


def _way(node: Node, user: Node, place: tuple) -> tuple:
    """The kernel and the index transformation through which `user` reads `node`."""
    root, path = place
    plain = user.op.level == ops.SHARED and user.shape == node.shape
    return (root, path) if plain else (root, (*path, user, user.src.index(node)))


def _repeats_ahead(node: Node, users: dict[Node, list[Node]]) -> bool:
    """Whether some user reads the node in windows, or repeats it, but for movements in between."""
    ahead = list(users[node])
    while ahead:
        user = ahead.pop()
        if user.op in (ops.WINDOW, ops.EXPAND):
            return True
        if user.op in MOVES_ONCE:
            ahead.extend(users[user])
    return False


def _worth_storing(node: Node, cost: _Cost, several: bool, grown: bool, unpacking: bool,
                   repeated: bool) -> bool:
    if node.op is ops.PAD:  # a test for every element of every window
        return grown and repeated
    if node.op.level != ops.SHARED or not (several or grown):
        return False
    if size_of(node.shape) == 1:  # computed once a kernel, outside its loops
        return several and cost.functions > 0
    if _unpacks(node, cost) or (
        unpacking and not cost.functions and not cost.floats and cost.operations <= MOST_UNPACKING
    ):
        return False  # reading it costs more than making it
    if grown:
        return cost.operations > 0
    return cost.operations + KEEP_FUNCTIONS * cost.functions >= REPEAT_IN_READERS


# -- 4: limits -----------------------------------------------------------------------------------------------
def _limit(order: list[Node], stored: set[Node], max_inputs: int) -> None:
    inputs: dict[Node, frozenset] = {}
    depth: dict[Node, int] = {}

    def seen(source: Node) -> frozenset:
        return frozenset((source,)) if source in stored else inputs[source]

    for node in order:
        if node.op in LEAVES:
            inputs[node], depth[node] = frozenset((node,)) if node.op is ops.BUFFER else frozenset(), 0
            continue
        operands = list(dict.fromkeys(node.src))
        while len(frozenset().union(*map(seen, operands))) > max_inputs:
            largest = max(operands, key=lambda s: len(seen(s)))
            if len(seen(largest)) <= 1:
                break
            stored.add(largest)
        for source in operands:
            if source not in stored and depth[source] >= MAX_DEPTH:
                stored.add(source)
        inputs[node] = frozenset().union(*map(seen, operands))
        depth[node] = 1 + max((0 if s in stored else depth[s]) for s in operands) if operands else 0
