"""The statements of one kernel: registers, stores, barriers. Each gets a number of its own."""
from tiny.ir import ops
from tiny.ir.dtype import DType
from tiny.ir.integer import Integer, as_node
from tiny.ir.node import Node, const
from tiny.render.instances import at_lane, lanes_in, lanes_that_exist, neighbours
from tiny.render.scopes import Scopes


class Emitter:
    """Appends statements to the scopes of one kernel."""

    def __init__(self, scopes: Scopes):
        self.scopes = scopes
        self._last = 0

    def number(self) -> int:
        """A number no other loop, register, local memory or read of this kernel has."""
        self._last += 1
        return self._last

    def register(self, start, dtype: DType, lanes: int) -> Node:
        """A new register that holds `start`, a Python value, in each of its lanes; 0 lanes for a scalar."""
        initial = const(start, dtype)
        if lanes:
            initial = Node(ops.BROADCAST, None, (initial,), lanes)
        return self.scopes.statement(ops.REGISTER, (initial,), self.number())

    def read(self, register: Node) -> Node:
        """The value a register has now."""
        return Node(ops.READ, None, (register,), self.number())

    def set(self, register: Node, value: Node) -> None:
        """Give a register a new value."""
        self.scopes.statement(ops.SET, (register, value), self.number())

    def local(self, dtype: DType, elements: int) -> Node:
        """New memory of the group, which on a CPU is one thread."""
        local = Node(ops.LOCAL, dtype, (), (self.number(), elements))
        self.scopes.will_write(local)
        return local

    def barrier(self) -> None:
        """All work-items of the group wait here for one another."""
        self.scopes.statement(ops.BARRIER, (), self.number())

    def store(self, pointer: Node, index: Integer, value: Node, gate: Node | None = None,
              streaming: bool = False) -> None:
        """Store a value at scalar or lane positions: at once where lanes are neighbours, else lane by lane.
        streaming: whole vectors go past the caches.
        """
        lanes = lanes_in(index) or lanes_in(gate)
        if gate is not None and gate.op is ops.CONST:
            if not gate.arg:
                return
            gate = None
        if lanes is None:
            self._store(pointer, index, value, gate)
            return
        first = neighbours(index, lanes)
        if first is not None and lanes_in(gate) is None:
            if not value.shape:
                value = Node(ops.BROADCAST, None, (value,), lanes.arg)
            self._store(pointer, first, value, gate, streaming and gate is None)
            return
        value = self.scopes.place(value)
        count = None if first is None or not value.shape else lanes_that_exist(gate, lanes)
        if count is not None:
            self._store_first(pointer, first, value, count)
            return
        for lane in range(lanes.arg):
            one = Node(ops.EXTRACT, None, (value,), lane) if value.shape else value
            there = None if gate is None else at_lane(gate, lanes, lane)
            self.store(pointer, at_lane(index, lanes, lane), one, there)

    def _store_first(self, pointer: Node, index: Integer, value: Node, count: int) -> None:
        """Store the first lanes of a vector side by side, in vectors of powers of two."""
        start = 0
        while start < count:
            size = 1 << (count - start).bit_length() - 1
            part = Node(ops.SLICE, None, (value,), (start, size)) if size > 1 else \
                Node(ops.EXTRACT, None, (value,), start)
            self._store(pointer, index + start, part, None)
            start += size

    def _store(self, pointer: Node, index: Integer, value: Node, gate: Node | None,
               streaming: bool = False) -> None:
        gates = () if gate is None else (gate,)
        self.scopes.statement(ops.STORE, (pointer, as_node(index), value, *gates), streaming or None)
