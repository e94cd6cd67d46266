"""What `hcq.io` is given when a Radeon is emulated: its sysfs files, /dev/kfd, the render nodes, their
mappings.

Doorbells are stores to shared pages; the driver tells of each through `doorbell`, and the engines run there,
in the caller's thread, until every queue is idle or waits for something that has not happened. A foreign
client that only stores is served by `run`, to be called again and again.
"""
import contextlib
import ctypes
import errno
import os
import threading

from tiny.autogen import kfd_6_12 as kfd
from tiny.emulator.amd.engines import EmulatorError, Engine, engine_for
from tiny.emulator.amd.engines.caches import Caches
from tiny.emulator.amd.kernel import render, topology
from tiny.emulator.amd.kernel.calls import CALLS, GPUVM_BASE, GPUVM_LIMIT, SYSTEM_LIMIT
from tiny.emulator.amd.kernel.cards import Card, cards_named
from tiny.emulator.amd.kernel.events import Events, KernelError
from tiny.emulator.amd.kernel.memory import PAGE, MemoryFault, MemoryObject, PageTable, make_pages
from tiny.emulator.amd.kernel.process import OwnProcess
from tiny.emulator.amd.kernel.queues import DOORBELL_SLICE, Queue
from tiny.hcq import io

KFD_PATH = "/dev/kfd"
TYPE_SHIFT, GPU_SHIFT = 62, 46                               # of mmap offsets, kfd_priv.h, KFD_MMAP_*
MMIO_TYPE, EVENTS_TYPE, DOORBELL_TYPE = 0, 2, 3
IOCTL_MAGIC = ord("K")
SLEEPING = {kfd.AMDKFD_IOC_WAIT_EVENTS & 0xFF}               # calls that others must not wait for
ffi = kfd.ffi


class Doorbells:
    """The doorbell pages of a process on one card. They start as all ones: 0 is a value clients write."""

    def __init__(self, system: io.Provider):
        self.fd = make_pages("doorbells", DOORBELL_SLICE)
        self.address = system.mmap(DOORBELL_SLICE, io.READ | io.WRITE, io.SHARED, self.fd)
        ctypes.memset(self.address, 0xFF, DOORBELL_SLICE)

    def clear(self, offset: int) -> None:
        """Make one doorbell as if nobody had rung it."""
        ctypes.c_uint64.from_address(self.address + offset).value = (1 << 64) - 1

    def close(self, system: io.Provider) -> None:
        """The process has ended."""
        system.munmap(self.address, DOORBELL_SLICE)
        os.close(self.fd)

    def value(self, offset: int) -> int | None:
        """What was written last, None before the first time."""
        value = ctypes.c_uint64.from_address(self.address + offset).value
        return None if value == (1 << 64) - 1 else value


class Gpu:
    """One emulated card, as the process that opened it sees it."""

    def __init__(self, number: int, card: Card, system: io.Provider):
        self.number, self.card = number, card
        self.gpu_id = topology.gpu_id_of(number)
        self.table = PageTable()
        self.caches = Caches()
        self.doorbells = Doorbells(system)
        self.registers_fd = make_pages("mmio-remap", PAGE)   # the page that flushes the host data path
        self.vm_fd: int | None = None
        self.vram_used = 0


class EmulatedRadeon(io.Provider):
    """Answers for the cards; hands everything else on to `system`. One process, any number of threads.

    process: the client, this process if none is named.
    """
    about = "emulated"
    address_range = GPUVM_BASE, GPUVM_LIMIT
    system_limit = SYSTEM_LIMIT

    def __init__(self, cards: list[Card], system: io.Provider | None = None,
                 process: OwnProcess | None = None):
        self.system = io.Provider() if system is None else system
        self.process = OwnProcess(self.system) if process is None else process
        self.files = topology.files(cards)
        self.gpus = {gpu.gpu_id: gpu for gpu in (Gpu(n, card, self.system) for n, card in enumerate(cards))}
        self.render_gpus: dict[int, Gpu] = {}                # file descriptor of a render node -> card
        self.memory: dict[int, MemoryObject] = {}
        self.user_addresses: dict[int, int] = {}             # handle -> the client's address of its pages
        self.queues: dict[int, Queue] = {}
        self.events = Events()
        self.runtime_enabled = False
        self.system_used = 0                                 # bytes of host memory that cards may reach
        self._kfd_fds: set[int] = set()
        self._offsets: dict[int, MemoryObject] = {}
        self._engines: dict[int, Engine] = {}
        self._next_handle = 1
        self._owner = os.getpid()
        self._lock = threading.RLock()

    # -- files -----------------------------------------------------------------------------------------------
    def read_text(self, path: str) -> str:
        if path in self.files:
            return self.files[path]
        return self.system.read_text(path)

    def list_folder(self, path: str) -> list[str]:
        inside = {name[len(path) + 1:].split("/")[0] for name in self.files if name.startswith(path + "/")}
        return sorted(inside) if inside else self.system.list_folder(path)

    def open(self, path: str, flags: int = os.O_RDWR) -> int:
        if path == KFD_PATH:
            fd = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
            self._kfd_fds.add(fd)
            return fd
        for gpu in self.gpus.values():
            if path == f"/dev/dri/renderD{topology.render_minor_of(gpu.number)}":
                fd = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
                self.render_gpus[fd] = gpu
                return fd
        return self.system.open(path, flags)

    def close(self, fd: int) -> None:
        self._kfd_fds.discard(fd)
        self.render_gpus.pop(fd, None)
        self.system.close(fd)

    def ioctl(self, fd: int, request: int, argument: bytearray) -> None:
        if fd not in self._kfd_fds:
            if fd in self.render_gpus:
                render.call(self, self.render_gpus[fd], request, argument)
                return
            self.system.ioctl(fd, request, argument)
            return
        if os.getpid() != self._owner:
            raise OSError(errno.EBADF, "/dev/kfd was opened by another process, before a fork")
        number = request & 0xFF
        if (request >> 8) & 0xFF != IOCTL_MAGIC or number not in CALLS:
            raise OSError(errno.ENOTTY, f"/dev/kfd: ioctl {request:#x} is not known")
        struct, function = CALLS[number]
        args = ffi.new(struct + " *")
        size = min(len(argument), ffi.sizeof(struct))
        ffi.memmove(args, bytes(argument[:size]), size)
        try:
            if number in SLEEPING:
                function(self, args)
            else:
                with self._lock:
                    function(self, args)
        finally:                                             # also after a failure, as the kernel does
            argument[:size] = ffi.buffer(args)[:size]

    def mmap(self, size: int, protection: int = io.READ | io.WRITE, flags: int = io.PRIVATE | io.ANONYMOUS,
             fd: int = -1, offset: int = 0, address: int = 0) -> int:
        if fd in self._kfd_fds or fd in self.render_gpus:
            shared = flags & ~(io.PRIVATE | io.ANONYMOUS) | io.SHARED
            return self.system.mmap(size, protection, shared, *self.pages(fd, size, offset), address)
        return self.system.mmap(size, protection, flags, fd, offset, address)

    def pages(self, fd: int, size: int, offset: int) -> tuple[int, int]:
        """(file descriptor, offset) of what an mmap of a device file shows. OSError where nothing is."""
        if fd in self._kfd_fds:
            return self._pages_of_kfd(size, offset), 0
        if fd not in self.render_gpus:
            raise OSError(errno.EBADF, f"mmap: {fd} is no device file")
        memory = self._offsets.get(offset)
        if memory is None or size > memory.page_bytes:
            raise OSError(errno.EINVAL, f"mmap of {size} bytes at offset {offset:#x}: no memory object "
                                        f"of this size")
        return memory.fd, memory.offset

    def _pages_of_kfd(self, size: int, offset: int) -> int:
        kind, gpu_id = offset >> TYPE_SHIFT & 3, offset >> GPU_SHIFT & 0xFFFF
        if kind == EVENTS_TYPE:
            return self.events.map_page(size)
        gpu = self.gpu(gpu_id, "mmap of /dev/kfd")
        wanted = {DOORBELL_TYPE: DOORBELL_SLICE, MMIO_TYPE: PAGE}.get(kind)
        if size != wanted:
            raise OSError(errno.EINVAL, f"mmap of /dev/kfd: {size} bytes of type {kind}, it has {wanted}")
        return gpu.doorbells.fd if kind == DOORBELL_TYPE else gpu.registers_fd

    # -- what the calls stand on -----------------------------------------------------------------------------
    def gpu(self, gpu_id: int, call: str) -> Gpu:
        """The card of an id, or EINVAL."""
        if gpu_id not in self.gpus:
            raise KernelError(errno.EINVAL, f"{call}: there is no card with gpu_id {gpu_id}")
        return self.gpus[gpu_id]

    def object(self, handle: int, number: int, call: str) -> MemoryObject:
        """The memory object of a handle, or the error that the call gives."""
        if handle not in self.memory:
            raise KernelError(number, f"{call}: there is no memory object {handle:#x}")
        return self.memory[handle]

    def new_handle(self, gpu: Gpu) -> int:
        """A handle: the card's id above, a number below, as the kernel makes them."""
        self._next_handle += 1
        return gpu.gpu_id << 32 | self._next_handle - 1

    def mmap_offset(self, memory: MemoryObject, gpu: Gpu, kind: int) -> int:
        """Where to mmap an object: on /dev/kfd for doorbells and registers, on the render node for the rest.
        """
        if kind == kfd.KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL:
            return self.doorbell_offset(gpu)
        if kind == kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP:
            return MMIO_TYPE << TYPE_SHIFT | gpu.gpu_id << GPU_SHIFT
        offset = 0x100000000 + (memory.handle & 0xFFFFFFFF) * 0x10000000
        self._offsets[offset] = memory
        return offset

    @staticmethod
    def doorbell_offset(gpu: Gpu) -> int:
        """The mmap offset of a card's doorbells."""
        return DOORBELL_TYPE << TYPE_SHIFT | gpu.gpu_id << GPU_SHIFT

    def forget(self, memory: MemoryObject) -> None:
        """Free an object that no card maps."""
        del self.memory[memory.handle], self.user_addresses[memory.handle]
        self._offsets = {offset: held for offset, held in self._offsets.items() if held is not memory}
        gpu = self.gpus[memory.gpu_id]
        if memory.flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM:
            gpu.vram_used -= memory.page_bytes
        elif memory.flags & (kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT | kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR):
            self.system_used -= memory.page_bytes
        self.process.remove(memory)
        if memory.fd not in (-1, gpu.doorbells.fd, gpu.registers_fd):
            os.close(memory.fd)

    @contextlib.contextmanager
    def client(self, address: int, kind: str, count: int, write: bool = False):
        """An array in the client's memory, as a copy, which goes back at the end of the block if `write`.
        EFAULT for a null pointer.
        """
        if not address and count:
            raise KernelError(errno.EFAULT, "a null pointer to an array")
        table = ffi.new(f"{kind}[{count}]")
        held = ffi.buffer(table)
        held[:] = self.process.read(address, len(held))
        yield table
        if write:
            self.process.write(address, bytes(held))

    def release(self) -> None:
        """The client process has ended: stop its queues, free what it held."""
        self.events.close()
        with self._lock:
            for queue in list(self.queues.values()):
                self.stop(queue)
            self.queues.clear()
            for memory in list(self.memory.values()):
                self.forget(memory)
            for gpu in self.gpus.values():
                gpu.doorbells.close(self.system)
                os.close(gpu.registers_fd)
            for fd in (*self._kfd_fds, *self.render_gpus):
                self.system.close(fd)

    # -- engines ---------------------------------------------------------------------------------------------
    def start(self, queue: Queue, gpu: Gpu) -> None:
        """Give a new queue an engine."""
        self._engines[queue.id] = engine_for(queue, gpu, self.events)

    def stop(self, queue: Queue) -> None:
        """Take a queue's engine away."""
        del self._engines[queue.id]

    def name_code(self, address: int, name: str) -> None:
        for gpu in self.gpus.values():
            gpu.table.names[address] = name

    def doorbell(self, ring, position: int) -> None:
        super().doorbell(ring, position)
        self.run()

    def run(self) -> bool:
        """Let all engines work until each is idle or waits; whether anything was done. EmulatorError for what
        the emulator does not know.
        """
        worked = False
        with self._lock:
            moved = True
            while moved:
                moved = False
                for queue in list(self.queues.values()):
                    moved |= not queue.dead and self._advance(queue)
                worked |= moved
        return worked

    def _advance(self, queue: Queue) -> bool:
        gpu = self.gpus[queue.gpu_id]
        try:
            return self._engines[queue.id].advance()
        except MemoryFault as fault:
            self._report(fault, queue, gpu)
        except EmulatorError as error:
            queue.dead = str(error)
            raise
        return True

    def _report(self, fault: MemoryFault, queue: Queue, gpu: Gpu) -> None:
        """A page fault: every memory event is signalled, and the process's queues on the card are dead."""
        for other in self.queues.values():
            if other.gpu_id == queue.gpu_id:
                other.dead = f"{gpu.card.name}: {fault}"
        missing = gpu.table.find(fault.address) is None
        self.events.signal_all(kfd.KFD_IOC_EVENT_MEMORY, va=fault.address & ~(PAGE - 1), gpu_id=gpu.gpu_id,
                               not_present=int(missing), read_only=int(not missing))


def emulate(setting: str, system: io.Provider) -> EmulatedRadeon:
    """The cards that EMULATE names, in front of `system`. ValueError for one that is not known."""
    return EmulatedRadeon(cards_named(setting), system)
