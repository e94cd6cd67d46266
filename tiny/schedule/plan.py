"""From a graph to a plan: which kernels run, in which order, on which memory."""
import heapq
from collections.abc import Iterable, Sequence

from tiny.ir import ops
from tiny.ir.integer import equal
from tiny.ir.node import Node, toposort
from tiny.schedule.fuse import fuse, size_of
from tiny.schedule.index import lower_assign, lower_kernel, lower_scatter
from tiny.schedule.kernel import Kernel
from tiny.schedule.memory import Lifetime, assign_offsets
from tiny.schedule.split import split_reductions
from tiny.schedule.steps import ARENA, INPUT, OUTPUT, Place, Plan, Step, structure, unbound_argument

SAME_ORDER = (ops.RESHAPE, ops.DETACH, ops.CONTIGUOUS)


def region(root: Node, stored: dict[Node, None]) -> tuple[list[Node], list[Node]]:
    """(nodes that the kernel of `root` computes or reads, operands first;
    those it reads, in order of appearance).
    """
    order: list[Node] = []
    inputs: list[Node] = []
    seen: set[Node] = set()
    stack = [(root, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            if node.op is ops.BUFFER or (node in stored and node is not root):
                order.append(node)
                inputs.append(node)
            else:
                stack.append((node, True))
                stack.extend((s, False) for s in reversed(node.src))
    return order, inputs


# -- building ------------------------------------------------------------------------------------------------
class _Builder:
    """Builds one plan. `writable[leaf]` says whether a leaf's memory may be overwritten."""

    def __init__(self, roots: list[Node], order: list[Node], writable: dict[Node, bool], max_inputs: int):
        self.roots, self.order, self.writable = roots, order, writable
        self.stored = fuse(roots, order, max_inputs)
        self.leaves = {node: number for number, node in enumerate(n for n in order if n.op is ops.BUFFER)}
        self.views = _views_of_new_memory(roots, self.stored)
        self.copied: set[Node] = set()                       # ASSIGNs that may not be made in place
        self.inputs: dict[Node, list[Node]] = {}
        self.orders: dict[Node, list[Node]] = {}

    def build(self) -> Plan:
        while True:
            for node in self.stored:
                if node not in self.inputs:
                    self.orders[node], self.inputs[node] = region(node, self.stored)
            self._forbid_impossible_writes()
            sequence = self._sequence()
            if sequence is not None and not self._hold_values(sequence):
                return self._finish(sequence)

    # in place or not
    def in_place(self, node: Node) -> bool:
        return node.op is ops.ASSIGN and node not in self.copied

    def _forbid_impossible_writes(self) -> None:
        """A base that must survive, or that a later reader needs, is not overwritten."""
        writes = [node for node in self.stored if self.in_place(node)]
        readers = self._readers(node.src[0] for node in writes)
        later = self._later_than([node for node in writes if len(readers[node.src[0]]) > 1])
        taken: set[Node] = set()
        kept = {*self.roots, *self.views.values()}
        for node in writes:
            base = node.src[0]
            free = self.writable[base] if base.op is ops.BUFFER else base in self.stored
            late = node in later and any(reader in later[node] for reader in readers[base])
            if not free or base in kept or base in taken or late:
                self.copied.add(node)
            else:
                taken.add(base)

    def _readers(self, bases: Iterable[Node]) -> dict[Node, list[Node]]:
        """The stored nodes whose kernels read each of the bases."""
        readers: dict[Node, list[Node]] = {base: [] for base in bases}
        if readers:
            for node in self.stored:
                for source in self.inputs[node]:
                    if source in readers:
                        readers[source].append(node)
        return readers

    def _later_than(self, writes: list[Node]) -> dict[Node, set[Node]]:
        """For each of the writes, the stored nodes that need its result."""
        later: dict[Node, set[Node]] = {node: set() for node in writes}
        after: dict[Node, list[Node]] = {}                   # stored node -> the writes that it needs
        for node in self.stored if writes else ():           # topological order
            needed = {write for source in self.inputs[node] for write in after.get(source, ())}
            for write in needed:
                later[write].add(node)
            if node in later:
                needed.add(node)
            if needed:
                after[node] = list(needed)
        return later

    def _hold_values(self, sequence: list[Node]) -> bool:
        """Store the value of each write that reads its base elsewhere than where it writes;
        True if any was found.
        """
        held = set()
        for node in sequence:
            value = node.src[1] if node.op is ops.ASSIGN else None
            if (
                not self.in_place(node)
                or value in self.stored
                or node.src[0] not in region(value, self.stored)[1]
            ):
                continue
            kernel = self._kernel(node)[0]
            if any(load.src[1] is not kernel.index for load in _loads_of_destination(kernel)):
                held.add(value)
        if held:
            self.stored = {node: None for node in self.order if node in self.stored or node in held}
            self.inputs.clear()
        return bool(held)

    def _sequence(self) -> list[Node] | None:
        """Stored nodes in an order where readers of a base come before the write;
        None after a write lost its place.
        """
        before: dict[Node, set[Node]] = {
            node: {s for s in self.inputs[node] if s in self.stored} for node in self.stored
        }
        writes = [node for node in self.stored if self.in_place(node)]
        readers = self._readers(node.src[0] for node in writes)
        for node in writes:
            before[node].update(other for other in readers[node.src[0]] if other is not node)
        after: dict[Node, list[Node]] = {node: [] for node in self.stored}
        for node, earlier in before.items():
            for other in earlier:
                after[other].append(node)
        rank = {node: number for number, node in enumerate(self.stored)}
        waiting = {node: len(earlier) for node, earlier in before.items()}
        ready = [rank[node] for node, count in waiting.items() if not count]
        heapq.heapify(ready)
        nodes = list(self.stored)
        sequence: list[Node] = []
        while ready:
            node = nodes[heapq.heappop(ready)]
            sequence.append(node)
            for other in after[node]:
                waiting[other] -= 1
                if not waiting[other]:
                    heapq.heappush(ready, rank[other])
        if len(sequence) < len(nodes):  # two writes wait for each other: one gets its own memory
            self.copied.add(next(node for node in nodes if waiting[node] and self.in_place(node)))
            return None
        return sequence

    # kernels
    def _kernel(self, node: Node) -> tuple[Kernel, list[Node]]:
        """The kernel that computes a stored node and the nodes its POINTERs 1, 2, ... stand for."""
        in_place = self.in_place(node)
        reads = self.inputs[node]
        if node.op in (ops.ASSIGN, ops.SCATTER):
            reads = [s for s in region_of_sources(node, self.stored) if not (in_place and s is node.src[0])]
        key = (
            structure(self.orders[node], set(self.inputs[node])),
            in_place,
            tuple(self.orders[node].index(r) for r in reads),
        )
        kernel = _kernels.get(key)
        if kernel is None:
            slots = {
                source: Node(ops.POINTER, source.dtype, (), number + 1) for number, source in enumerate(reads)
            }
            if in_place:
                slots[node.src[0]] = Node(ops.POINTER, node.dtype, (), 0)
            lower = {ops.ASSIGN: lower_assign, ops.SCATTER: lower_scatter}.get(node.op)
            kernel = lower(node, slots.get) if lower else lower_kernel(node, slots.get, node.dtype)
            kernel = _kernels.setdefault(key, kernel)
        return kernel, reads

    def _copy_kernel(self, base: Node) -> tuple[Kernel, list[Node]]:
        """The kernel that writes the value of `base` into fresh memory."""
        if base in self.stored or base.op is ops.BUFFER:
            pointer = Node(ops.POINTER, base.dtype, (), 1)
            return lower_kernel(base, {base: pointer}.get, base.dtype), [base]
        reads = region(base, self.stored)[1]
        slots = {
            source: Node(ops.POINTER, source.dtype, (), number + 1) for number, source in enumerate(reads)
        }
        return lower_kernel(base, slots.get, base.dtype), reads

    # places
    def _finish(self, sequence: list[Node]) -> Plan:
        owner = {source: root for root, source in self.views.items()}  # whose memory a stored node lives in
        for node in sequence:
            base = node.src[0] if self.in_place(node) else node
            owner[node] = owner.get(base, base)
        kernels: list[tuple[Kernel, Node, list[Node]]] = []
        for node in sequence:
            if node in self.views:
                continue
            if any(equal(size, 0) for size in (node.src[1] if node.op is ops.ASSIGN else node).shape):
                if not (node.op is ops.ASSIGN and not self.in_place(node)):
                    continue
            whole = node.op is ops.ASSIGN and not node.arg
            if node.op is ops.SCATTER or (node.op is ops.ASSIGN and not self.in_place(node) and not whole):
                kernel, reads = self._copy_kernel(node.src[0])
                kernels.append((kernel, node, reads))
            kernels.append((self._kernel(node)[0], node, self._kernel(node)[1]))
        places = self._places(kernels, owner)
        steps = tuple(
            Step(kernel, (places[owner[node]], *(places[owner.get(r, r)] for r in reads)))
            for kernel, node, reads in kernels
        )
        results = tuple(places[owner.get(root, root)] for root in self.roots)
        return Plan(steps, results, self.arena_size, variables_of(self.order))

    def _places(self, kernels: list, owner: dict[Node, Node]) -> dict[Node, Place]:
        places = {leaf: Place(INPUT, number) for leaf, number in self.leaves.items()}
        for number, root in enumerate(self.roots):
            places.setdefault(owner.get(root, root), Place(OUTPUT, number))
        spans: dict[Node, list[int]] = {}
        for step, (_, node, reads) in enumerate(kernels):
            for used in (node, *reads):
                held = owner.get(used, used)
                if held not in places:
                    spans.setdefault(held, [step, step])[1] = step
        lifetimes = [
            Lifetime(size_of(node.shape) * node.dtype.itemsize, *span) for node, span in spans.items()
        ]
        offsets, self.arena_size = assign_offsets(lifetimes)
        places.update((node, Place(ARENA, offset)) for node, offset in zip(spans, offsets, strict=True))
        for node in self.stored:  # of no elements, so of no memory
            places.setdefault(owner.get(node, node), Place(ARENA, 0))
        return places


def _views_of_new_memory(roots: list[Node], stored: dict[Node, None]) -> dict[Node, Node]:
    """{root: stored node whose elements it has in the same order}: that node is put in the root's memory."""
    views: dict[Node, Node] = {}
    for root in roots:
        source = root
        while source.op in SAME_ORDER and (source is root or source not in stored):
            source = source.src[0]
        new = source in stored and source not in roots and source.op is not ops.ASSIGN
        if new and source is not root and source not in views.values():
            views[root] = source
    return views


_kernels: dict[tuple, Kernel] = {}


def region_of_sources(node: Node, stored: dict[Node, None]) -> list[Node]:
    """What the update kernel of an ASSIGN or SCATTER reads:
    everything but its base, unless the value reads that too.
    """
    reads: dict[Node, None] = {}
    for source in node.src[1:]:
        if source in stored or source.op is ops.BUFFER:
            reads[source] = None
        else:
            reads.update(dict.fromkeys(region(source, stored)[1]))
    return list(reads)


def _loads_of_destination(kernel: Kernel) -> list[Node]:
    return [node for node in toposort(kernel.value) if node.op is ops.LOAD and node.src[0].arg == 0]


def variables_of(order: Sequence[Node]) -> tuple[Node, ...]:
    """The VARIABLEs in a graph, also those inside shapes and arguments, in order of first appearance."""
    found: dict[Node, None] = {}
    for node in order:
        if node.op in (ops.VARIABLE, ops.BIND):
            found[unbound_argument(node)] = None
        elif node.arg is not None and node.op.level == ops.TENSOR:
            _collect(node.arg if node.op is not ops.BUFFER else node.shape, found)
    return tuple(found)


def _collect(arg, found: dict[Node, None]) -> None:
    if isinstance(arg, Node):
        for node in toposort(arg):
            if node.op in (ops.VARIABLE, ops.BIND):
                found[unbound_argument(node)] = None
    elif isinstance(arg, tuple):
        for part in arg:
            _collect(part, found)


def make_plan(roots: list[Node], order: list[Node], writable: dict[Node, bool], max_inputs: int = 64) -> Plan:
    """The plan of a graph. roots: distinct nodes that are not BUFFERs;
    order: toposort(*roots); writable: by BUFFER.
    """
    return _Builder(*split_reductions(roots, order), writable, max_inputs).build()
