"""Memory objects and page tables of the emulated cards.

A GPU address is the same address in this process: an object's pages, a memfd's, are mapped at the GPU address
its owner chose, so that translated kernels, copies and the CPU see one memory. What a card may reach is
decided by its page table alone.
"""
import bisect
import ctypes
import mmap
import os
from dataclasses import dataclass, field

from tiny.autogen import kfd_6_12 as kfd
from tiny.hcq import io

PAGE = mmap.PAGESIZE


class MemoryFault(Exception):
    """An access that the page table forbids. address, size in bytes; write; reason for people."""

    def __init__(self, address: int, size: int, write: bool, reason: str):
        what = "write" if write else "read"
        super().__init__(f"{what} of {size} bytes at {address:#x}: {reason}")
        self.address, self.size, self.write, self.reason = address, size, write, reason


@dataclass(eq=False, slots=True)
class MemoryObject:
    """What ALLOC_MEMORY_OF_GPU made. fd: of its pages, -1 for memory that the client owns (USERPTR).

    mapped: gpu_ids whose page table has it; used: queues that hold it.
    """
    handle: int
    gpu_id: int
    address: int
    size: int
    flags: int
    fd: int
    mapped: set[int] = field(default_factory=set)
    used: int = 0

    @property
    def writable(self) -> bool:
        return bool(self.flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE)


def make_pages(name: str, size: int) -> int:
    """A file descriptor of `size` bytes of zeroed shared memory."""
    fd = os.memfd_create(name)
    os.ftruncate(fd, size)
    return fd


class PageTable:
    """What one card may reach: ranges that do not overlap, sorted by address.

    names: of kernels by the address of their code, as far as clients tell; for errors and the debugger
    """

    def __init__(self):
        self._starts: list[int] = []
        self._objects: list[MemoryObject] = []
        self.names: dict[int, str] = {}
        self.generation = 0                                  # counts up with every change

    def insert(self, memory: MemoryObject) -> None:
        """Map an object at its address. ValueError where something is mapped already."""
        place = bisect.bisect_left(self._starts, memory.address)
        before = self._objects[place - 1] if place else None
        after = self._objects[place] if place < len(self._objects) else None
        if (before and before.address + before.size > memory.address) or (
                after and after.address < memory.address + memory.size):
            raise ValueError(f"{memory.size} bytes at {memory.address:#x} are mapped already")
        self._starts.insert(place, memory.address)
        self._objects.insert(place, memory)
        self.generation += 1

    def remove(self, memory: MemoryObject) -> None:
        """Unmap an object."""
        place = self._starts.index(memory.address)
        del self._starts[place], self._objects[place]
        self.generation += 1

    def find(self, address: int) -> MemoryObject | None:
        """The object that a byte belongs to."""
        place = bisect.bisect_right(self._starts, address) - 1
        if place < 0:
            return None
        memory = self._objects[place]
        return memory if address < memory.address + memory.size else None

    def ranges(self) -> list[tuple[int, int, bool]]:
        """(start, end, writable) of everything mapped, by address; neighbours are joined."""
        joined: list[tuple[int, int, bool]] = []
        for memory in self._objects:
            end = memory.address + memory.size
            if joined and joined[-1][1] == memory.address and joined[-1][2] == memory.writable:
                joined[-1] = (joined[-1][0], end, memory.writable)
            else:
                joined.append((memory.address, end, memory.writable))
        return joined

    def check(self, address: int, size: int, write: bool) -> None:
        """MemoryFault unless all bytes are mapped, and writable for a write."""
        at = address
        while at < address + size:
            memory = self.find(at)
            if memory is None:
                raise MemoryFault(address, size, write, "not mapped")
            if write and not memory.writable:
                raise MemoryFault(address, size, write, "mapped read-only")
            at = memory.address + memory.size

    def read(self, address: int, size: int) -> bytes:
        """Bytes, checked."""
        self.check(address, size, False)
        return ctypes.string_at(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Store bytes, checked."""
        self.check(address, len(data), True)
        ctypes.memmove(address, data, len(data))

    def read_u32(self, address: int) -> int:
        """An aligned dword; MemoryFault where the address is not aligned."""
        return int.from_bytes(self._aligned(address, 4), "little")

    def read_u64(self, address: int) -> int:
        """An aligned quadword."""
        return int.from_bytes(self._aligned(address, 8), "little")

    def write_u32(self, address: int, value: int) -> None:
        """Store an aligned dword, at once for whoever polls it."""
        self._store(ctypes.c_uint32, address, value)

    def write_u64(self, address: int, value: int) -> None:
        """Store an aligned quadword."""
        self._store(ctypes.c_uint64, address, value)

    def _aligned(self, address: int, size: int) -> bytes:
        if address % size:
            raise MemoryFault(address, size, False, f"not aligned to {size} bytes")
        return self.read(address, size)

    def _store(self, kind, address: int, value: int) -> None:
        size = ctypes.sizeof(kind)
        if address % size:
            raise MemoryFault(address, size, True, f"not aligned to {size} bytes")
        self.check(address, size, True)
        kind.from_address(address).value = value

    def move(self, destination: int, source: int, size: int) -> None:
        """Copy bytes, as if all were read before any is written."""
        self.check(source, size, False)
        self.check(destination, size, True)
        ctypes.memmove(destination, source, size)


def place_pages(system: io.Provider, memory: MemoryObject) -> None:
    """Put an object's pages at its GPU address, which its owner has reserved in this process or left free."""
    if memory.fd >= 0:
        system.mmap(memory.size, io.READ | io.WRITE, io.SHARED | io.FIXED, memory.fd, 0, memory.address)
