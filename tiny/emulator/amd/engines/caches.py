"""Checked mode (CHECK=1): who wrote which word of a card's memory last, and whether a reader can see it.

The emulated memory is one; a card's is not: kernels read through caches of their compute unit, which only an
ACQUIRE_MEM empties, and what they wrote may stand in the L2 until a RELEASE_MEM (or ACQUIRE_MEM) writes it
back. This is a model of three rules, not of lines and sizes:

1. A kernel that reads what another dispatch, a packet or a copy wrote needs, on its queue and after that
   write, an acquire that invalidates the vector and the scalar cache.
2. A copy, a packet or a kernel of another queue that reads what a kernel wrote needs a write-back of the L2
   on the kernel's queue after it.
3. A kernel or packet that reads what an earlier kernel of its own queue wrote needs a wait for that kernel:
   CS_PARTIAL_FLUSH, RELEASE_MEM with a WAIT_REG_MEM behind it, or the barrier bit of an AQL packet.

Found: each read of a word whose last write is not covered so, stale on a card or not. Not found: reads and
writes of the host (pages are shared), of other cards, and of workgroups that run translated; words that
atomics or loads past the caches read; memory that is mapped uncached; order the other way round, a write that
comes before an earlier read or write has ended.
"""

from dataclasses import dataclass

import numpy as np

from tiny.autogen import kfd_6_12 as kfd
from tiny.emulator.amd.engines.errors import EmulatorError
from tiny.emulator.amd.kernel.memory import PageTable

PAGE, WORD = 4096, 4
UNCACHED = kfd.KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED


class StaleError(EmulatorError, ValueError):
    """A read of what a card might not have made visible yet."""


@dataclass(slots=True)
class Queue:
    """How far a queue has come, as counts of `Caches`: writes with a smaller count are covered.

    acquired  its caches were emptied       released  its L2 was written back
    finished  its kernels had ended
    signalled  a RELEASE_MEM was sent: a wait behind it means that the kernels had ended
    """

    acquired: int = 0
    released: int = 0
    finished: int = 0
    signalled: int = 0


@dataclass(frozen=True, slots=True)
class Agent:
    """One dispatch, packet or copy: its count, the queue it belongs to, what it is called."""

    count: int
    queue: str
    what: str
    is_kernel: bool


class Caches:
    """Of one card. Every event gets the next count."""

    def __init__(self):
        self._pages: dict[int, np.ndarray] = {}
        self._agents: dict[int, Agent] = {}
        self._queues: dict[str, Queue] = {}
        self._count = 0

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _queue(self, name: str) -> Queue:
        return self._queues.setdefault(name, Queue())

    def agent(self, queue: str, what: str, is_kernel: bool) -> Agent:
        """Somebody who is going to read and write."""
        return Agent(self._next(), queue, what, is_kernel)

    # -- what queues do for order ----------------------------------------------------------------------------
    def acquire(self, queue: str) -> None:
        self._queue(queue).acquired = self._next()

    def write_back(self, queue: str) -> None:
        self._queue(queue).released = self._next()

    def finish(self, queue: str) -> None:
        self._queue(queue).finished = self._next()

    def signal(self, queue: str) -> None:
        self._queue(queue).signalled = self._next()

    def waited(self, queue: str) -> None:
        state = self._queue(queue)
        state.finished = max(state.finished, state.signalled)

    # -- memory ----------------------------------------------------------------------------------------------
    def wrote(self, agent: Agent, address: int, size: int, table: PageTable) -> None:
        """Note a write; nothing of memory that is never cached."""
        memory = table.find(address)
        if memory is None or memory.flags & UNCACHED:
            return
        for page, first, last in pieces(address, size):
            words = self._pages.get(page)
            if words is None:
                words = self._pages[page] = np.zeros(PAGE // WORD, dtype=np.int64)
            words[first:last] = agent.count
            self._agents[agent.count] = agent

    def read(self, agent: Agent, address: int, size: int) -> None:
        """StaleError if one of the words may not be visible to a reader."""
        for page, first, last in pieces(address, size):
            words = self._pages.get(page)
            if words is None:
                continue
            for count in np.unique(words[first:last]):
                problem = self._problem(agent, self._agents[int(count)]) if count else None
                if problem is not None:
                    at = page * PAGE + WORD * (first + int(np.flatnonzero(words[first:last] == count)[0]))
                    raise StaleError(f"{agent.what} reads {max(at, address):#x}, which {problem}")

    def _problem(self, reader: Agent, writer: Agent) -> str | None:
        """Why a reader might not see a write."""
        if reader.count == writer.count:
            return None
        mine, theirs = self._queue(reader.queue), self._queue(writer.queue)
        wrote = f"{writer.what} of {writer.queue} wrote"
        if writer.is_kernel and reader.queue != writer.queue and theirs.released < writer.count:
            return f"{wrote}: no RELEASE_MEM or ACQUIRE_MEM with write-back of the L2 came between"
        if writer.is_kernel and reader.queue == writer.queue and mine.finished < writer.count:
            return f"{wrote}: nothing waited for that kernel; send EVENT_WRITE of CS_PARTIAL_FLUSH"
        if reader.is_kernel and mine.acquired < writer.count:
            return f"{wrote}: no ACQUIRE_MEM that empties the vector and scalar caches came between"
        return None


def pieces(address: int, size: int) -> list[tuple[int, int, int]]:
    """(page, first word, behind the last word) of a range of bytes."""
    found, end = [], address + size
    while address < end:
        page = address // PAGE
        stop = min(end, (page + 1) * PAGE)
        found.append((page, address % PAGE // WORD, (stop - page * PAGE + WORD - 1) // WORD))
        address = stop
    return found


class WatchedTable:
    """A page table as one agent sees it: what it reads and writes is noted; the rest is the table's own.

    coherent: set while an access goes past the caches, as atomics do
    """

    def __init__(self, table: PageTable, caches: Caches, agent: Agent):
        self._table, self._caches, self.agent = table, caches, agent
        self.coherent = False

    def __getattr__(self, name: str):
        return getattr(self._table, name)

    def _seen(self, address: int, size: int) -> None:
        if not self.coherent:
            self._caches.read(self.agent, address, size)

    def _changed(self, address: int, size: int) -> None:
        self._caches.wrote(self.agent, address, size, self._table)

    def read(self, address: int, size: int) -> bytes:
        data = self._table.read(address, size)
        self._seen(address, size)
        return data

    def read_u32(self, address: int) -> int:
        self._seen(address, 4)
        return self._table.read_u32(address)

    def read_u64(self, address: int) -> int:
        self._seen(address, 8)
        return self._table.read_u64(address)

    def write(self, address: int, data: bytes) -> None:
        self._table.write(address, data)
        self._changed(address, len(data))

    def write_u32(self, address: int, value: int) -> None:
        self._table.write_u32(address, value)
        self._changed(address, 4)

    def write_u64(self, address: int, value: int) -> None:
        self._table.write_u64(address, value)
        self._changed(address, 8)

    def move(self, destination: int, source: int, size: int) -> None:
        self._table.move(destination, source, size)
        self._seen(source, size)
        self._changed(destination, size)
