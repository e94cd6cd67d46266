"""Where instructions stand: every expression once, in the outermost scope that knows all it needs."""
from collections.abc import Callable

from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node

OPENERS = (ops.GROUP, ops.ITEM, ops.LOOP, ops.IF)


class _Scope:
    __slots__ = ("opener", "body", "known", "conditional")

    def __init__(self, opener: Node | None, conditional: bool):
        self.opener, self.conditional = opener, conditional
        self.body: list[Node] = []
        self.known: set[Node] = set()


class Scopes:
    """Collects instructions in nested scopes and flattens them at the end.

    simplify(node) -> node: turns one arithmetic node, whose operands are simplified, into operations dialects
    know; positions are simple as they are.
    A LOAD stays inside scopes that may not run at all; a LOAD from memory the kernel itself writes stays
    where it is asked for, and is repeated after each store.
    """

    def __init__(self, simplify: Callable[[Node], Node]):
        self.simplify = simplify
        self.stack = [_Scope(None, False)]
        self._depth: dict[Node, int] = {}
        self._simple: dict[Node, Node] = {}
        self._written: dict[Node, set[Node]] = {}  # pointers this kernel stores to, loads known from them

    def will_write(self, pointer: Node) -> None:
        """Declare memory that the kernel writes, before anything is read from it."""
        self._written[pointer] = set()

    # scopes
    def open(self, opener: Node | None, conditional: bool = False) -> None:
        """Begin a scope: GROUP, LOOP, IF, or None for one that only bounds what is remembered."""
        if opener is not None:
            opener_src = tuple(self.place(s) for s in opener.src)
            if any(a is not b for a, b in zip(opener_src, opener.src, strict=True)):
                raise ValueError(f"{opener!r}: the operand of a scope must be simple already")
        self.stack.append(_Scope(opener, conditional))
        if opener is not None:
            self._know(opener, len(self.stack) - 1)

    def close(self) -> None:
        """End the innermost scope."""
        scope = self.stack.pop()
        body = self.stack[-1].body
        if scope.opener is not None:
            body.append(scope.opener)
        body.extend(scope.body)
        if scope.opener is not None:
            body.append(Node(ops.END, None, (scope.opener,)))
        for node in scope.known:
            self._depth.pop(node, None)

    def instructions(self) -> list[Node]:
        """The flat list, once all scopes are closed."""
        return self.stack[0].body

    # instructions
    def _know(self, node: Node, depth: int) -> None:
        if node.op is ops.LOAD and node.src[0] in self._written:
            self._written[node.src[0]].add(node)
        self._depth[node] = depth
        self.stack[depth].known.add(node)

    def place(self, node: Node) -> Node:
        """Make sure a value is computed here and return the node that stands for it in operands."""
        stack = [(node, False)]
        while stack:
            current, expanded = stack.pop()
            simple = self._simple.get(current)
            if simple is not None and self._is_known(simple):
                continue
            if not expanded:
                stack.append((current, True))
                stack.extend((s, False) for s in current.src if s.op not in (ops.POINTER, ops.LOCAL))
                continue
            src = tuple(self._simple.get(s, s) for s in current.src)
            rebuilt = current if src == current.src else Node(current.op, current.dtype, src, current.arg)
            simple = rebuilt if rebuilt.dtype is dtypes.index else self.simplify(rebuilt)
            self._simple[current] = simple
            self._emit_tree(simple)
        return self._simple[node]

    def _is_known(self, node: Node) -> bool:
        return node.op is ops.CONST or node in self._depth

    def _emit_tree(self, root: Node) -> None:
        stack = [(root, False)]
        while stack:
            node, expanded = stack.pop()
            if self._is_known(node) or node.op in (ops.POINTER, ops.LOCAL):
                continue
            if expanded:
                depth = self._depth_for(node)
                self.stack[depth].body.append(node)
                self._know(node, depth)
            else:
                stack.append((node, True))
                stack.extend((s, False) for s in node.src)

    def _depth_for(self, node: Node) -> int:
        here = len(self.stack) - 1
        if node.op is ops.READ or (node.op is ops.LOAD and node.src[0] in self._written):
            return here
        depth = max((self._depth[s] for s in node.src if s in self._depth), default=0)
        if node.op is ops.LOAD:
            for number in range(here, depth, -1):
                if self.stack[number].conditional:
                    return number
        if node.op is ops.VARIABLE:
            return 0
        return depth

    def statement(self, op, src: tuple[Node, ...], arg=None) -> Node:
        """Append an instruction with an effect: STORE, REGISTER, SET or BARRIER; its operands are placed
        first.
        """
        src = tuple(s if s.op in (ops.POINTER, ops.LOCAL, ops.REGISTER) else self.place(s) for s in src)
        node = Node(op, None, src, arg)
        self.stack[-1].body.append(node)
        if op is ops.REGISTER:
            self._know(node, len(self.stack) - 1)
            self._simple[node] = node
        if op is ops.STORE:
            self._forget_loads(src[0])
        if op is ops.BARRIER:
            for pointer in self._written:
                self._forget_loads(pointer)
        return node

    def _forget_loads(self, pointer: Node) -> None:
        """After a store, values loaded from that memory, and all made of them, must be computed anew."""
        stale = self._written[pointer] & self._depth.keys()
        self._written[pointer].clear()
        if not stale:
            return
        for node in list(self._depth):
            if node in stale:
                del self._depth[node]
            elif any(s in stale for s in node.src) and node.op not in (ops.REGISTER, *OPENERS):
                stale.add(node)
                del self._depth[node]
