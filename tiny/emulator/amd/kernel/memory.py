"""Memory objects and page tables of the emulated cards.

An object's pages, a memfd's, are mapped in this process, so that translated kernels, copies and the CPU see
one memory; where they are is the business of the client process that owns the object (kernel/process.py).
What a card may reach is decided by its page table alone.
"""
import bisect
import ctypes
import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from tiny.autogen import kfd_6_12 as kfd
from tiny.emulator.amd.kernel import atomics

PAGE = mmap.PAGESIZE


class MemoryFault(Exception):
    """An access that the page table forbids. address, size in bytes; write; reason for people."""

    def __init__(self, address: int, size: int, write: bool, reason: str):
        what = "write" if write else "read"
        super().__init__(f"{what} of {size} bytes at {address:#x}: {reason}")
        self.address, self.size, self.write, self.reason = address, size, write, reason


@dataclass(eq=False, slots=True)
class MemoryObject:
    """What ALLOC_MEMORY_OF_GPU made. address, size: for the card; host: where its first byte is in this
    process, 0 while it is nowhere.

    fd, offset: the file that holds its pages and where in it; -1 for memory of the client that is reached in
    place. mapped: gpu_ids whose page table has it; used: queues that hold it.
    """
    handle: int
    gpu_id: int
    address: int
    size: int
    flags: int
    fd: int
    offset: int = 0
    host: int = 0
    mapped: set[int] = field(default_factory=set)
    used: int = 0

    @property
    def end(self) -> int:
        return self.address + self.size

    @property
    def page_bytes(self) -> int:
        """Bytes of its pages: half of its addresses for a ring that is mapped twice, one after the other.

        Source: amdgpu_amdkfd_gpuvm.c, amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu, Linux 6.12.
        """
        return self.size // 2 if self.flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM else self.size

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
        if (before and before.end > memory.address) or (after and after.address < memory.end):
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
        return memory if address < memory.end else None

    def ranges(self) -> list[tuple[int, int, int, bool]]:
        """(start, end, host address of the start, writable) of everything mapped, by address; neighbours are
        joined.
        """
        joined: list[tuple[int, int, int, bool]] = []
        for memory in self._objects:
            start, end, host, writable = joined[-1] if joined else (0, -1, 0, False)
            if (end, host + end - start, writable) == (memory.address, memory.host, memory.writable):
                joined[-1] = start, memory.end, host, writable
            else:
                joined.append((memory.address, memory.end, memory.host, memory.writable))
        return joined

    def pieces(self, address: int, size: int, write: bool) -> Iterator[tuple[int, int]]:
        """(host address, bytes) of the parts that hold a range. MemoryFault unless all of it is mapped, and
        writable for a write.
        """
        at, end = address, address + size
        while at < end:
            memory = self.find(at)
            if memory is None:
                raise MemoryFault(address, size, write, "not mapped")
            if write and not memory.writable:
                raise MemoryFault(address, size, write, "mapped read-only")
            until = min(end, memory.end)
            yield memory.host + at - memory.address, until - at
            at = until

    def read(self, address: int, size: int) -> bytes:
        """Bytes, checked."""
        memory = self.find(address)
        if memory is not None and address + size <= memory.address + memory.size:  # nearly always
            return ctypes.string_at(memory.host + address - memory.address, size)
        return b"".join([ctypes.string_at(host, count) for host, count in self.pieces(address, size, False)])

    def write(self, address: int, data: bytes) -> None:
        """Store bytes, checked before the first is stored."""
        memory = self.find(address)
        if memory is not None and memory.writable and address + len(data) <= memory.address + memory.size:
            ctypes.memmove(memory.host + address - memory.address, data, len(data))
            return
        at = 0
        for host, count in list(self.pieces(address, len(data), True)):
            ctypes.memmove(host, data[at:at + count], count)
            at += count

    def read_u32(self, address: int) -> int:
        """An aligned dword; MemoryFault where the address is not aligned."""
        return ctypes.c_uint32.from_address(self._word(address, 4, False)).value

    def read_u64(self, address: int) -> int:
        """An aligned quadword."""
        return ctypes.c_uint64.from_address(self._word(address, 8, False)).value

    def write_u32(self, address: int, value: int) -> None:
        """Store an aligned dword, at once for whoever polls it."""
        ctypes.c_uint32.from_address(self._word(address, 4, True)).value = value

    def write_u64(self, address: int, value: int) -> None:
        """Store an aligned quadword."""
        ctypes.c_uint64.from_address(self._word(address, 8, True)).value = value

    def add_u64(self, address: int, value: int) -> int:
        """Add to an aligned quadword, as one step for everybody; what was there before."""
        return atomics.add_u64(self._word(address, 8, True), value)

    def _word(self, address: int, size: int, write: bool) -> int:
        """Where an aligned word is in this process; it cannot cross the end of an object."""
        if address % size:
            raise MemoryFault(address, size, write, f"not aligned to {size} bytes")
        memory = self.find(address)
        if memory is not None and (not write or memory.writable):
            return memory.host + address - memory.address
        return next(self.pieces(address, size, write))[0]    # which says what is wrong

    def move(self, destination: int, source: int, size: int) -> None:
        """Copy bytes, as if all were read before any is written."""
        sources = list(self.pieces(source, size, False))
        targets = list(self.pieces(destination, size, True))
        if len(sources) == len(targets) == 1:
            ctypes.memmove(targets[0][0], sources[0][0], size)
        elif size:
            self.write(destination, self.read(source, size))
