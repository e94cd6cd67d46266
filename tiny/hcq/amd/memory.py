"""Memory that AMD cards can reach: video memory, host memory, pinned pages, the HDP flush register.

A GPU address is the same address in this process: it is reserved here first, then given to the driver.
Source: ROCr's fmm.c for the scheme, kfd_chardev.c and kfd_priv.h of Linux 6.12 for what the driver accepts.
"""
import bisect
import os
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field

from tiny.autogen import kfd_6_12 as kfd
from tiny.hcq import io
from tiny.hcq.amd.kfd import Kfd, KfdError, open_file
from tiny.hcq.amd.topology import PAGE, Card, rounded
from tiny.hcq.errors import DeviceError

NO_ACCESS, NO_RESERVE = 0, 0x4000                           # PROT_NONE, MAP_NORESERVE: mman(2)
HUGE = 2 << 20                                              # alignment that lets the GPU use large pages
GUARD = PAGE                                                # addresses behind each object, never mapped
ACCESS = (kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | kfd.KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE
          | kfd.KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE)
UNCACHED = kfd.KFD_IOC_ALLOC_MEM_FLAGS_COHERENT | kfd.KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED
VRAM = ACCESS | kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM            # the host cannot reach it
PUBLIC_VRAM = VRAM | kfd.KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC     # the host can: needs a large BAR
HOST = ACCESS | UNCACHED | kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT  # in the host, seen at once by both sides
PINNED = ACCESS | UNCACHED | kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR
REGISTERS = ACCESS | UNCACHED | kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP
REACHED_BY_HOST = kfd.KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC | kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT


@dataclass(eq=False, slots=True)
class Mapping:
    """A memory object at `address`. gpu_ids: cards that see it; reserved: its addresses are ours to unmap."""
    handle: int
    address: int
    size: int
    flags: int
    gpu_ids: set[int] = field(default_factory=set)
    reserved: bool = True
    users: int = 1


class AddressSpace:
    """What this process has mapped on any card, and /dev/kfd behind it. One for each provider and process."""

    def __init__(self, provider: io.Provider):
        self.kfd = Kfd(provider)
        self.lock = threading.RLock()
        self.event_page: Mapping | None = None
        self.render_fds: dict[int, int] = {}                # by gpu_id; the driver knows a process by one
        self._starts: list[int] = []
        self._mappings: list[Mapping] = []

    def add(self, mapping: Mapping) -> None:
        place = bisect.bisect_left(self._starts, mapping.address)
        self._starts.insert(place, mapping.address)
        self._mappings.insert(place, mapping)

    def remove(self, mapping: Mapping) -> None:
        place = self._mappings.index(mapping, bisect.bisect_left(self._starts, mapping.address))
        del self._starts[place], self._mappings[place]

    def find(self, address: int) -> Mapping | None:
        """The mapping that a byte belongs to."""
        place = bisect.bisect_right(self._starts, address) - 1
        if place < 0:
            return None
        mapping = self._mappings[place]
        return mapping if address < mapping.address + mapping.size else None

    def only_on(self, gpu_id: int) -> list[Mapping]:
        """What one card sees and no other, without the page that all cards' events share."""
        return [mapping for mapping in self._mappings
                if mapping.gpu_ids == {gpu_id} and mapping is not self.event_page]

    def describe(self, address: int) -> str:
        """Where an address lies, for errors: inside a mapping, or how far behind the one before it."""
        inside = self.find(address)
        if inside is not None:
            return f"inside the {inside.size} bytes mapped at {inside.address:#x}"
        place = bisect.bisect_right(self._starts, address) - 1
        if place < 0:
            return "in front of everything that is mapped"
        before = self._mappings[place]
        return (f"{address - before.address - before.size} bytes behind the end of the {before.size} bytes "
                f"mapped at {before.address:#x}")


_spaces: "weakref.WeakKeyDictionary[io.Provider, AddressSpace]" = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def address_space(provider: io.Provider) -> AddressSpace:
    """The one of this process; a child of fork() gets its own, as /dev/kfd serves only who opened it."""
    with _lock:
        space = _spaces.get(provider)
        if space is None or space.kfd.pid != os.getpid():
            space = _spaces[provider] = AddressSpace(provider)
        return space


class CardMemory:
    """One card's memory: allocates, maps, frees. KfdError, which is an OSError, where the driver refuses."""

    def __init__(self, space: AddressSpace, card: Card):
        self.space, self.kfd, self.io, self.card = space, space.kfd, space.kfd.io, card
        self._registers: tuple[int, int] | None = None      # handle and address of the flush register
        with space.lock:
            if card.gpu_id not in space.render_fds:
                fd = open_file(self.io, card.render_node)
                try:
                    self.kfd.acquire_vm(card.gpu_id, fd)
                except KfdError:
                    self.io.close(fd)
                    raise
                space.render_fds[card.gpu_id] = fd          # kept: no other file could take its place
            self.render_fd = space.render_fds[card.gpu_id]

    def allocate(self, size: int, flags: int) -> Mapping:
        """A memory object of whole pages, mapped on this card, and in this process where the host can reach
        it.
        """
        size = rounded(size, PAGE)
        address = self._reserve(size)
        try:
            handle, offset = self.kfd.allocate(self.card.gpu_id, address, size, flags)
        except KfdError:
            self.io.munmap(address, size + GUARD)
            raise
        mapping = Mapping(handle, address, size, flags)
        try:
            if flags & REACHED_BY_HOST:
                self.io.mmap(size, io.READ | io.WRITE, io.SHARED | io.FIXED, self.render_fd, offset, address)
            self._show(mapping, [self.card.gpu_id])
        except OSError:
            self.kfd.free(handle)
            self.io.munmap(address, size + GUARD)
            raise
        with self.space.lock:
            self.space.add(mapping)
        return mapping

    def _reserve(self, size: int) -> int:
        """Addresses that nothing else of this process gets, and GUARD behind them that nothing is mapped at,
        so that kernels fault there. Large ones start on a large page.
        """
        flags = io.PRIVATE | io.ANONYMOUS | NO_RESERVE
        size += GUARD
        if size < HUGE:
            return self.io.mmap(size, NO_ACCESS, flags)
        return self.io.mmap_aligned(size, HUGE, NO_ACCESS, flags)

    def pin(self, address: int, size: int) -> Mapping:
        """Let the card reach host memory of someone else: whole pages around the bytes, pinned in place.

        Pages that are pinned already are shared. DeviceError where only some of them are.
        """
        start = address // PAGE * PAGE
        size = rounded(address + size, PAGE) - start
        with self.space.lock:
            known = self.space.find(start)
            if known is not None and start + size <= known.address + known.size:
                known.users += 1
                self._show(known, [self.card.gpu_id])
                return known
            if known is not None or self.space.find(start + size - 1) is not None:
                raise DeviceError(f"AMD: some pages of the {size} bytes at {start:#x} are pinned already by "
                                  "another object; copy the data instead of using it in place")
            handle, _ = self.kfd.allocate(self.card.gpu_id, start, size, PINNED, start)
            mapping = Mapping(handle, start, size, PINNED, reserved=False)
            try:
                self._show(mapping, [self.card.gpu_id])
            except OSError:
                self.kfd.free(handle)
                raise
            self.space.add(mapping)
        return mapping

    def _show(self, mapping: Mapping, gpu_ids: Sequence[int]) -> None:
        new = [gpu_id for gpu_id in gpu_ids if gpu_id not in mapping.gpu_ids]
        if new:
            self.kfd.map(mapping.handle, new)
            mapping.gpu_ids.update(new)

    def reach(self, address: int, size: int) -> None:
        """Let this card see memory that another card of this process holds. DeviceError if nobody does."""
        with self.space.lock:
            while size > 0:
                mapping = self.space.find(address)
                if mapping is None:
                    raise DeviceError(f"AMD: {size} bytes at {address:#x} belong to no card; they are "
                                      f"{self.space.describe(address)}")
                self._show(mapping, [self.card.gpu_id])
                size -= mapping.address + mapping.size - address
                address = mapping.address + mapping.size

    def free(self, mapping: Mapping) -> None:
        """Take an object from every card and give it back; no command may use it any more."""
        with self.space.lock:
            mapping.users -= 1
            if mapping.users:
                return
            self.space.remove(mapping)
        if mapping.gpu_ids:
            self.kfd.unmap(mapping.handle, sorted(mapping.gpu_ids))
        self.kfd.free(mapping.handle)
        if mapping.reserved:
            self.io.munmap(mapping.address, mapping.size + GUARD)

    def free_at(self, address: int, size: int) -> None:
        """As `free`, for an Allocator, which knows addresses only."""
        self.free(self.space.find(address))

    def host_pages(self, size: int) -> int:
        """Host memory for an Allocator."""
        return self.allocate(size, HOST).address

    def video_pages(self, size: int) -> int:
        """Video memory for an Allocator; the host can reach it where the BAR is large."""
        return self.allocate(size, PUBLIC_VRAM if self.card.large_bar else VRAM).address

    def flush_register(self) -> memoryview | None:
        """The word whose writing flushes the path (HDP) by which the host writes video memory.

        None where the driver does not offer it: then nothing may be written that way. Source: kfd_ioctl.h,
        KFD_MMIO_REMAP_HDP_MEM_FLUSH_CNTL.
        """
        try:
            address = self.io.mmap(PAGE, NO_ACCESS, io.PRIVATE | io.ANONYMOUS | NO_RESERVE)
            handle, offset = self.kfd.allocate(self.card.gpu_id, address, PAGE, REGISTERS)
            self.io.mmap(PAGE, io.READ | io.WRITE, io.SHARED | io.FIXED, self.kfd.fd, offset, address)
        except OSError:
            return None
        self._registers = handle, address
        return self.io.view(address + kfd.KFD_MMIO_REMAP_HDP_MEM_FLUSH_CNTL, 4).cast("I")

    def close(self) -> None:
        """Give everything back that only this card sees; its queues must be gone."""
        with self.space.lock:
            for mapping in self.space.only_on(self.card.gpu_id):
                mapping.users = 1
                self.free(mapping)
        if self._registers is not None:
            handle, address = self._registers
            self.io.munmap(address, PAGE)
            self.kfd.free(handle)
