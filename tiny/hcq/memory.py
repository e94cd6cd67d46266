"""Device memory: buffers, and the allocator that gives them out and takes them back.

A buffer's memory goes back when the last reference is dropped. It may be handed out again at once to
commands that are submitted later, because a queue runs in order; the host waits for the earlier commands
before it touches it.
"""
import ctypes
import errno
import threading
import time
from collections import deque
from collections.abc import Callable

from tiny.hcq import events, io
from tiny.hcq.errors import OutOfMemory

ALIGNMENT = 64                                              # of every address handed out, in bytes
SLAB = 2 << 20                                              # small blocks are cut from slabs of this size
LARGE = 128 << 10                                           # from here on a block has its own mapping
KEPT = 256 << 20                                            # freed large blocks kept for reuse, at least


class _PyBuffer(ctypes.Structure):
    """Py_buffer of the C API (Include/cpython/pybuffer.h), for the address of an object's memory."""
    _fields_ = [("address", ctypes.c_void_p), ("object", ctypes.py_object), ("size", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_PyBuffer), ctypes.c_int]
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [ctypes.POINTER(_PyBuffer)]


class HostMemory:
    """The memory of a Python object (bytes, bytearray, mmap, numpy array), held in place while this lives.

    address, size: in bytes; readonly. TypeError without a buffer, ValueError if it is not contiguous.
    """
    def __init__(self, source):
        self._info = _PyBuffer()
        if not memoryview(source).c_contiguous:
            raise ValueError("the memory of a buffer's data must be contiguous; copy it first")
        _get_buffer(source, ctypes.byref(self._info), 0)
        self.address, self.size = self._info.address or 0, self._info.size
        self.readonly = bool(self._info.readonly)

    def view(self) -> memoryview:
        """The bytes, whatever the object's own format and shape are."""
        window = io.view(self.address, self.size, self)
        return window.toreadonly() if self.readonly else window

    def __del__(self):
        if self._info.address is not None:
            _release_buffer(ctypes.byref(self._info))


class Buffer:
    """`size` bytes of a device's memory at `address`. Freed when the last reference is gone.

    ready     point of the device's timeline before which the host must not touch it
    readonly  the memory belongs to a host object that must not be written
    """
    __slots__ = ("address", "size", "device", "ready", "readonly", "_block", "_owner", "__weakref__")

    def __init__(self, device, address: int, size: int, block: int = 0, ready: int = 0, owner=None):
        self.device, self.address, self.size, self.ready = device, address, size, ready
        self._block, self._owner = block, owner
        self.readonly = owner is not None and owner.readonly

    def __del__(self):
        if self._block:
            self.device.allocator.give_back(self.address, self._block)
        if self._owner is not None:
            self.device.allocator.retire(self._owner)

    def __repr__(self) -> str:
        return f"Buffer({self.device.name}, {self.address:#x}, {self.size} bytes)"

    def host(self) -> memoryview:
        """The bytes after everything submitted so far has finished: in place, and the view keeps the buffer
        alive; or a read-only copy where the host cannot reach the device's memory.
        """
        self.device.synchronize()
        window = self.device.view(self)
        return window.toreadonly() if self.readonly else window

    @property
    def in_host_memory(self) -> bool:
        """Whether it is the memory of a host object, see Device.from_host."""
        return self._owner is not None

    def initialize(self, data) -> "Buffer":
        """Fill a buffer that no submitted command uses yet, without waiting for those of other buffers."""
        if self.ready:
            self.device.settle(self.ready)
        self._write(data)
        return self

    def copyin(self, data) -> None:
        """Write `data` to the start, after everything submitted so far. ValueError if it is larger."""
        self.device.synchronize()
        self._write(data)

    def copyout(self, into=None):
        """The bytes, or the first of them written into the writable buffer `into`,
        after all that is submitted.
        """
        source = self.host()
        if into is None:
            return bytes(source)
        target = HostMemory(into)
        if target.size > self.size:
            raise ValueError(f"Buffer.copyout: {target.size} wanted, {self.size} held; slice the target")
        target.view()[:] = source[:target.size]
        return into

    def _write(self, data) -> None:
        source = HostMemory(data)
        if source.size > self.size:
            raise ValueError(f"Buffer.copyin: {source.size} given, {self.size} held; slice the source")
        if self.readonly:
            raise ValueError("Buffer.copyin: the memory belongs to a read-only host object; copy it first")
        start = time.monotonic_ns()
        self.device.store(self, source.view())
        if events.listeners and source.size:
            events.emit(events.Span(f"to {self.device.name}", "transfer", start, time.monotonic_ns(),
                                    {"bytes": source.size}))


def size_class(size: int) -> int:
    """The block size for `size` bytes: at most an eighth larger, a multiple of ALIGNMENT."""
    step = max(ALIGNMENT, 1 << max(0, (size - 1).bit_length() - 4))
    return max(ALIGNMENT, -(-size // step) * step)


class Allocator:
    """Gives out blocks of a device's memory by size class,
    and takes them back with the point of their last use.

    device   its name, for messages                      map, unmap  pages from the system and back
    submitted, completed  () -> the timeline's two ends  limit       bytes at most, 0 for none
    Safe between threads; a buffer may be dropped at any moment, also while this allocates.
    """
    def __init__(self, device: str, map: Callable[[int], int], unmap: Callable[[int, int], None],
                 submitted: Callable[[], int], completed: Callable[[], int], limit: int = 0):
        self.device, self.limit = device, limit
        self._map, self._unmap, self._submitted, self._completed = map, unmap, submitted, completed
        self._lock = threading.Lock()
        self._free: dict[int, deque[tuple[int, int]]] = {}  # size class -> (address, point of its last use)
        self._dropped: deque[tuple] = deque()               # what __del__ left here; appending is atomic
        self._retired: deque[tuple[int, object]] = deque()
        self._slab, self._slab_left = 0, 0
        self.held = 0                                       # bytes handed out
        self.kept = 0                                       # bytes of freed large blocks

    def take(self, size: int) -> tuple[int, int, int]:
        """(address, block size, ready): until the timeline reaches
        `ready` earlier commands may use the block.

        OutOfMemory if the system or the limit has no room for it.
        """
        if size < 0:
            raise ValueError(f"{self.device}: a buffer of {size} bytes")
        block = size_class(size)
        with self._lock:
            self._collect()
            ready = 0
            free = self._free.get(block)
            if free:
                address, ready = free.popleft()
                self.kept -= block if block >= LARGE else 0
            else:
                address = self._new_block(block)
            self.held += block
        if events.listeners:
            events.emit(events.Allocated(self.device, address, size, self.held))
        return address, block, ready

    def give_back(self, address: int, block: int) -> None:
        """A buffer is gone. Called from __del__, so it takes no lock."""
        self._dropped.append((address, block, self._submitted()))

    def retire(self, owner: object) -> None:
        """Keep `owner` until what was submitted so far has finished.
        Called from __del__, so it takes no lock.
        """
        self._retired.append((self._submitted(), owner))

    def trim(self) -> None:
        """Give the freed large blocks that no command uses any more back to the system."""
        with self._lock:
            self._collect()
            self._release(self.kept)

    def _collect(self) -> None:
        while self._dropped:
            address, block, point = self._dropped.popleft()
            self._free.setdefault(block, deque()).append((address, point))
            self.held -= block
            self.kept += block if block >= LARGE else 0
            if events.listeners:
                events.emit(events.Allocated(self.device, address, -block, self.held))
        completed = self._completed()
        while self._retired and self._retired[0][0] <= completed:
            self._retired.popleft()
        if self.kept > max(KEPT, self.held):
            self._release(self.kept - max(KEPT, self.held))

    def _release(self, size: int) -> None:
        completed = self._completed()
        for block in sorted((b for b in self._free if b >= LARGE), reverse=True):
            free = self._free[block]
            while size > 0 and free and free[0][1] <= completed:
                self._unmap(free.popleft()[0], block)
                self.kept -= block
                size -= block

    def _new_block(self, block: int) -> int:
        if self.limit and self.held + self.kept + block > self.limit:
            self._release(self.kept)
            if self.held + block > self.limit:
                raise OutOfMemory(f"{self.device}: {block} bytes wanted, {self.held} held, MEMORY_LIMIT is "
                                  f"{self.limit}; drop tensors that are no longer needed, or raise the limit")
        if block >= LARGE:
            return self._pages(block)
        if self._slab_left < block:
            self._slab, self._slab_left = self._pages(SLAB), SLAB
        self._slab_left -= block
        return self._slab + self._slab_left

    def _pages(self, size: int) -> int:
        try:
            return self._map(size)
        except OSError as first:
            if first.errno != errno.ENOMEM:                  # a card that is gone has not run out of memory
                raise
            self._release(self.kept)
            try:
                return self._map(size)
            except OSError:
                raise OutOfMemory(f"{self.device}: {size} bytes wanted, {self.held} held, the system has no "
                                  f"more ({first.strerror}); drop tensors that are not needed") from None


def lend(device, source) -> Buffer:
    """A buffer in the memory of a host object, which is kept and not copied; its alignment is the object's.
    """
    memory = HostMemory(source)
    if not memory.size:
        return device.allocate(0)
    return Buffer(device, memory.address, memory.size, owner=memory)
