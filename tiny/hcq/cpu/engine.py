"""The Python side of the CPU's command processor: starts it, fills its ring, waits, reads what went wrong."""
import ctypes
import enum
import os

from tiny.hcq import io
from tiny.hcq.cpu.loader import Image
from tiny.hcq.cpu.packets import Agent, Command, State
from tiny.hcq.errors import DeviceError
from tiny.hcq.layout import LayoutError

RING_BYTES = 1 << 20
STOP_LIMIT_NS = 200_000_000                                 # at the end of the process
ABORT_LIMIT_NS = 10_000_000_000                             # a busy machine may not run a thread for a while


_images: list[Image] = []                                   # threads and signal handlers may outlive a device


class ErrorCode(enum.IntEnum):
    """State.error, set by worker.c."""
    NONE, BAD_OPCODE, KERNEL_FAULT, ABORTED, CRASHED = range(5)


class WaitResult(enum.IntEnum):
    """What tiny_wait returns."""
    REACHED, TIME_PASSED, ERROR = range(3)


class Engine:
    """Worker threads and the ring they read. Not safe between threads: the device holds its lock.

    image    worker.c, loaded       threads     that divide a command's groups, the waiting caller included
    state    address of State       *_address   of words of State that are waited for, or that kernels write
    """
    def __init__(self, image: Image, threads: int, provider: io.Provider):
        _images.append(image)
        self._io = provider
        background = max(1, threads - 1)
        self.state = provider.mmap(State.size_bytes + background * Agent.size_bytes)
        self._agents = self.state + State.size_bytes
        self._memory = provider.view(self.state, State.size_bytes)
        self._ring_address = _mirrored_ring(provider)
        self._ring = provider.view(self._ring_address, 2 * RING_BYTES)
        State.encode(self._memory, 0, ring=self._ring_address, ring_mask=RING_BYTES - 1, threads=threads,
                     background=background)
        words = self._memory.cast("Q")
        self._consumed = words[State.consumed.offset // 8:][:1]
        self._error = self._memory.cast("I")[State.error.offset // 4:][:1]
        self.completed_address = self.state + State.completed.offset
        self.consumed_address = self.state + State.consumed.offset
        self.fault_address = self.state + State.fault_code.offset
        self.written = 0
        self.pid = os.getpid()
        self._bind(image)
        if self._start(self.state, self._agents) < background:
            self.stop()
            raise DeviceError(f"CPU: {background} threads could not be started; set THREADS to a smaller "
                              "number, or raise the limit, see `ulimit -u`")

    def _bind(self, image: Image) -> None:
        u32, u64, pointer = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
        # PYFUNCTYPE keeps the interpreter's lock: for calls that return at once
        self._start = ctypes.PYFUNCTYPE(u32, pointer, pointer)(image.symbol("tiny_start"))
        self._doorbell = ctypes.PYFUNCTYPE(None, pointer, u64, u32)(image.symbol("tiny_doorbell"))
        self._stop = ctypes.CFUNCTYPE(u32, pointer, u64)(image.symbol("tiny_stop"))
        self._wait = ctypes.CFUNCTYPE(u32, pointer, pointer, u64, u64)(image.symbol("tiny_wait"))
        self._abort = ctypes.CFUNCTYPE(u32, pointer, pointer, u64, u64)(image.symbol("tiny_abort"))

    @property
    def failed(self) -> bool:
        """A command failed; State.error says how."""
        return self._error[0] != 0

    def room(self) -> int:
        """Bytes that may be put into the ring now."""
        return RING_BYTES - (self.written - self._consumed[0])

    def put(self, commands, urgent: bool) -> None:
        """Copy commands, no more than there is room for, into the ring and ring the doorbell."""
        size = len(commands)
        start = self.written % RING_BYTES
        self._ring[start:start + size] = commands
        self.written += size
        self._doorbell(self.state, self.written, urgent)

    def wait(self, address: int, value: int, limit_ns: int) -> WaitResult:
        """Run commands, or wait for those who do, until the 64-bit word at the address reaches `value`."""
        return self._wait(self.state, address, value, limit_ns)

    def position_with_room(self, size: int) -> int:
        """How far the ring must have been read for `size` more bytes to fit."""
        return max(0, self.written + size - RING_BYTES)

    def snapshot(self) -> State:
        """The shared memory as it is now."""
        return State.decode(bytes(self._memory))

    def command_at(self, position: int) -> Command | None:
        """The packet at a position of the ring, None past the last one or where the bytes are no packet."""
        start = position % RING_BYTES
        try:
            return Command.decode_next(self._ring[start:start + self.written - position])[0]
        except LayoutError:
            return None

    def abort(self, completed: int) -> bool:
        """Give up the commands in the ring, also one that never ends; the timeline goes on to `completed`.

        False if a thread could not be brought out of its command.
        """
        return bool(self._abort(self.state, self._agents, completed, ABORT_LIMIT_NS))

    def stop(self) -> bool:
        """End the threads. False if one is still inside a command; its memory then stays mapped."""
        return self._stop(self.state, STOP_LIMIT_NS) == 0


def _mirrored_ring(provider: io.Provider) -> int:
    """The ring's memory mapped twice in succession, so that no packet is ever cut by its end."""
    fd = os.memfd_create("tiny-ring", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, RING_BYTES)
        address = provider.mmap(2 * RING_BYTES, 0)
        for place in (address, address + RING_BYTES):
            provider.mmap(RING_BYTES, io.READ | io.WRITE, io.SHARED | io.FIXED, fd, 0, place)
        return address
    finally:
        os.close(fd)
