"""The process that owns an emulated card's memory: how its bytes are read, and where its pages are seen.

A driver of ours runs in the emulator's process, and a GPU address is the same address there. A foreign client
is another process: its pages are mapped here too, wherever there is room, and what its ioctls point to is
read and written through the kernel's process_vm calls.
"""
import ctypes
import errno
import os
import threading

from tiny.emulator.amd.kernel.events import KernelError
from tiny.emulator.amd.kernel.memory import MemoryObject
from tiny.hcq import io

NO_RESERVE = 0x4000                                          # MAP_NORESERVE, mman.h


class OwnProcess:
    """The client is this process."""

    def __init__(self, system: io.Provider):
        self.system = system

    def read(self, address: int, size: int) -> bytes:
        """The client's bytes at an address."""
        return ctypes.string_at(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Store bytes in the client's memory."""
        ctypes.memmove(address, data, len(data))

    def user_pages(self, address: int, size: int) -> tuple[int, int]:
        """(file descriptor, offset) of the client's own pages; -1 for pages that are reached in place."""
        return -1, 0

    def place(self, memory: MemoryObject, user_address: int) -> None:
        """Make an object's pages visible here and set `memory.host`. user_address: of the client's own pages.

        Pages of ours go to the GPU address, which the client has reserved or left free.
        """
        memory.host = memory.address if memory.fd >= 0 else user_address
        if memory.fd >= 0:
            _map_pages(self.system, memory, memory.address)

    def remove(self, memory: MemoryObject) -> None:
        """An object is freed. The client unmaps what is mapped in its memory."""
        memory.host = 0


class ForeignProcess(OwnProcess):
    """The client is another process of the same user, by its id. OSError of the system's for what it lacks.

    Its own memory (USERPTR) comes as a file descriptor, which the calling thread has put into `handed`: the
    shim in the client has moved those pages to a file that both sides map.
    """

    def __init__(self, system: io.Provider, pid: int):
        super().__init__(system)
        self.pid = pid
        self.handed = threading.local()

    def read(self, address: int, size: int) -> bytes:
        data = ctypes.create_string_buffer(size)
        self._transfer(_libc.process_vm_readv, ctypes.addressof(data), address, size)
        return data.raw

    def write(self, address: int, data: bytes) -> None:
        held = ctypes.create_string_buffer(data, len(data))
        self._transfer(_libc.process_vm_writev, ctypes.addressof(held), address, len(data))

    def _transfer(self, call, here: int, there: int, size: int) -> None:
        if not size:
            return
        done = call(self.pid, _Part(here, size), 1, _Part(there, size), 1, 0)
        if done != size:
            number = ctypes.get_errno() if done < 0 else errno.EFAULT
            raise KernelError(number, f"{size} bytes at {there:#x} of process {self.pid}: "
                                      f"{os.strerror(number)}")

    def user_pages(self, address: int, size: int) -> tuple[int, int]:
        pages = getattr(self.handed, "pages", None)
        if pages is None:
            raise KernelError(errno.EFAULT, f"{size} bytes at {address:#x} of the client cannot be shared")
        self.handed.pages = None
        return pages

    def place(self, memory: MemoryObject, user_address: int) -> None:
        if not memory.host:
            memory.host = self.system.mmap(memory.size, 0, io.PRIVATE | io.ANONYMOUS | NO_RESERVE)
            _map_pages(self.system, memory, memory.host)

    def remove(self, memory: MemoryObject) -> None:
        if memory.host:
            self.system.munmap(memory.host, memory.size)
        memory.host = 0


def _map_pages(system: io.Provider, memory: MemoryObject, host: int) -> None:
    """Map an object's pages over all of its addresses."""
    step = memory.page_bytes
    for at in range(0, memory.size, step):
        system.mmap(step, io.READ | io.WRITE, io.SHARED | io.FIXED, memory.fd, memory.offset, host + at)


class _Part(ctypes.Structure):
    """struct iovec, readv(2)."""
    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


_libc = ctypes.CDLL(None, use_errno=True)
for _name in ("process_vm_readv", "process_vm_writev"):
    if hasattr(_libc, _name):  # Linux only
        _call = getattr(_libc, _name)
        _call.restype = ctypes.c_ssize_t
        _call.argtypes = [ctypes.c_int, ctypes.POINTER(_Part), ctypes.c_ulong, ctypes.POINTER(_Part),
                          ctypes.c_ulong, ctypes.c_ulong]
