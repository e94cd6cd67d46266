"""Hardware queues: a ring in host memory, two pointers, a doorbell, and what the kernel wants for each.

Linux 6.12 checks that each buffer is a mapping of its own and of the right size (kfd_queue.c,
kfd_queue_acquire_buffers). Pointers and doorbell are running counts that never wrap: of dwords for PM4, of
bytes for SDMA. Order of a submission: packets, then the write pointer, then the doorbell; x86-64 keeps these
stores in order.
"""
import abc
import errno
from collections.abc import Sequence

from tiny.autogen import kfd_6_12 as kfd
from tiny.hcq import events, io
from tiny.hcq.amd.kfd import KfdError
from tiny.hcq.amd.memory import HOST, VRAM, CardMemory
from tiny.hcq.amd.topology import PAGE
from tiny.hcq.errors import DeviceError
from tiny.hcq.timeline import Timeline

COMPUTE_RING, COPY_RING = 1 << 18, 1 << 20                  # bytes
DOORBELL_PAGES = 2 * PAGE                                   # of a process on one card: 1024 of 8 bytes
END_OF_PIPE_BYTES = PAGE                                    # without it RELEASE_MEM fails
NORMAL_PRIORITY, WHOLE = 7, 100                             # queue_priority, queue_percentage


class HardwareQueue:
    """A user queue of a card. Not safe between threads: the device holds its lock.

    position  bytes ever put into the ring      unit  bytes that pointers and doorbell count in
    packets   their name in a trace             programs  that the commands put last may name
    doorbell_lag  what the doorbell takes is the write pointer less this
    """
    kind: int
    packets: str
    unit: int
    ring_bytes: int
    name: str
    doorbell_lag = 0
    read_at, write_at = 0, 64                               # byte offsets in the page of pointers

    def __init__(self, memory: CardMemory, generation, device_name: str):
        self.memory, self.io = memory, memory.io
        self.generation, self.device_name = generation, device_name
        self.programs: Sequence = ()
        self._ring_memory = memory.allocate(self.ring_bytes, HOST)
        self._pointer_memory = memory.allocate(PAGE, HOST)
        self._buffers = self._allocate_buffers()
        self.ring = self.io.view(self._ring_memory.address, self.ring_bytes)
        pointers = self.io.view(self._pointer_memory.address, PAGE).cast("Q")
        self._read, self._write = pointers[self.read_at // 8:][:1], pointers[self.write_at // 8:][:1]
        self.position = 0
        self._doorbells = 0                                 # address of the mapped pages
        self.create()

    def _allocate_buffers(self) -> dict:
        """What the kind needs beside the ring: name -> mapping."""
        return {}

    def _arguments(self) -> dict[str, int]:
        """Fields of CREATE_QUEUE that only this kind has."""
        return {}

    def create(self) -> None:
        """Make the queue from its memory, empty. Also after `destroy`."""
        self.position = self._rung = self._read[0] = self._write[0] = 0
        pointers = self._pointer_memory.address
        self.id, offset = self.memory.kfd.create_queue(
            ring_base_address=self._ring_memory.address, ring_size=self.ring_bytes,
            write_pointer_address=pointers + self.write_at, read_pointer_address=pointers + self.read_at,
            gpu_id=self.memory.card.gpu_id, queue_type=self.kind, queue_percentage=WHOLE,
            queue_priority=NORMAL_PRIORITY, **self._arguments())
        inside = offset % DOORBELL_PAGES
        if not self._doorbells:
            self._doorbells = self._map_doorbells(offset - inside)
        self._doorbell = self.io.view(self._doorbells + inside, 8).cast("Q")

    def _map_doorbells(self, offset: int) -> int:
        """The address of the doorbell pages; without them the queue is given back."""
        try:
            return self.io.mmap(DOORBELL_PAGES, io.READ | io.WRITE, io.SHARED, self.memory.kfd.fd, offset)
        except OSError as error:
            self.destroy()
            name = errno.errorcode.get(error.errno or 0, str(error.errno))
            raise DeviceError(f"AMD: the doorbell page of the {self.name} queue cannot be mapped ({name}: "
                              f"{error.strerror}); see `dmesg`") from error

    def put(self, commands) -> None:
        """Copy commands, for which there is room, into the ring; the engine does not know of them yet."""
        size = len(commands)
        start = self.position % self.ring_bytes
        first = min(size, self.ring_bytes - start)
        self.ring[start:start + first] = commands[:first]
        if first < size:
            self.ring[:size - first] = commands[first:]
        self.position += size

    def ring_doorbell(self) -> None:
        """Tell the engine of everything that was put."""
        position = self.position // self.unit
        self._write[0] = position
        value = position - self.doorbell_lag
        if events.listeners:
            self._tell(value)
        self._rung = self.position
        self.io.doorbell(self._store, value)

    def _tell(self, value: int) -> None:
        """Tell who listens what was put since the doorbell was last rung."""
        start, size = self._rung % self.ring_bytes, self.position - self._rung
        commands = bytes(self.ring[start:start + size])
        commands += bytes(self.ring[:size - len(commands)])
        events.emit(events.Ringing(self.device_name, self.name, self.packets, self.generation.gfx, start,
                                   commands, value, self.programs))

    def _store(self, position: int) -> None:
        self._doorbell[0] = position                        # one 64-bit store

    @property
    def read_position(self) -> int:
        """Bytes the engine has read, as it reports them."""
        return self._read[0] * self.unit

    def destroy(self) -> None:
        """Stop the queue, whatever it is doing. KfdError where the kernel does not manage."""
        self.memory.kfd.destroy_queue(self.id)

    def close(self) -> None:
        """Stop the queue and give its memory back."""
        try:
            self.destroy()
        except KfdError:
            return                                          # its memory may be in use for ever
        for mapping in (self._ring_memory, self._pointer_memory, *self._buffers.values()):
            self.memory.free(mapping)
        self.io.munmap(self._doorbells, DOORBELL_PAGES)

    def __str__(self) -> str:
        return (f"{self.name} queue {self.id}, read up to {self.read_position:#x} of "
                f"{self.position:#x} bytes")


class ComputeQueue(HardwareQueue, abc.ABC):
    """A queue for kernels, with the timeline that its submissions move on.

    timeline  of the device       released  position up to which the ring may be filled again
    A subclass for each format of packets gives the abstract methods.
    """
    ring_bytes = COMPUTE_RING
    name = "compute"

    def __init__(self, memory: CardMemory, generation, device_name: str, interrupts):
        self.generation, self.interrupts = generation, interrupts
        self.released = 0
        self._signals = memory.allocate(PAGE, HOST).address
        self.timeline = self.make_timeline(f"{device_name} {self.name}", memory.io)
        super().__init__(memory, generation, device_name)

    def _allocate_buffers(self) -> dict:
        return {"end of pipe": self.memory.allocate(END_OF_PIPE_BYTES, VRAM),
                "save area": self.memory.allocate(self.memory.card.save_mapping_size, VRAM)}

    def _arguments(self) -> dict[str, int]:
        card = self.memory.card
        return dict(eop_buffer_address=self._buffers["end of pipe"].address,
                    eop_buffer_size=END_OF_PIPE_BYTES,
                    ctx_save_restore_address=self._buffers["save area"].address,
                    ctx_save_restore_size=card.save_area_size, ctl_stack_size=card.control_stack_size)

    def create(self) -> None:
        self.released = 0
        super().create()

    @abc.abstractmethod
    def make_timeline(self, name: str, provider: io.Provider) -> Timeline:
        """The timeline, in the page of signals."""

    @abc.abstractmethod
    def set_timeline(self, point: int) -> None:
        """Move the timeline by hand; the queue does not run."""

    @abc.abstractmethod
    def room(self) -> int:
        """Bytes that may be put now."""

    def prepare(self, template, address: int) -> bytes:
        """What a submission of this copy of a template's image puts into the ring, as far as it never
        changes.
        """
        return b""

    @abc.abstractmethod
    def pieces(self, template, instance) -> list:
        """What a submission puts into the ring, in pieces that fit."""

    @abc.abstractmethod
    def end(self, point: int) -> bytes:
        """Commands that move the timeline to a point once all before them has finished."""

    def wake(self) -> bytes:
        """Commands that wake who sleeps; none where every submission does."""
        return b""

    def use_scratch(self, base: int, size: int, tmpring_size: int, lane_bytes: int) -> None:
        """Note where scratch memory is, where the queue and not each launch says it."""

    @abc.abstractmethod
    def command_number(self, template, end: int) -> int:
        """Which command of a template in flight the queue is at. end: position behind the submission."""


class CopyQueue(HardwareQueue):
    """SDMA. A packet must not cross the end of the ring."""
    kind = kfd.KFD_IOC_QUEUE_TYPE_SDMA
    unit = 1
    ring_bytes = COPY_RING
    name = "copy"
    packets = "sdma"

    def padding(self, size: int) -> int:
        """Bytes of NOPs, zeros, in front of packets of `size` bytes, so that they lie in one piece."""
        left = self.ring_bytes - self.position % self.ring_bytes
        return left if left < size else 0

    def room(self) -> int:
        """Bytes that may be put now."""
        return self.ring_bytes - (self.position - self.read_position)

