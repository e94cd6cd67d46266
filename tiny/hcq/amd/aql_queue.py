"""An AQL queue: the packets of HSA, shared out among all compute dies of a card by its command processor.

Sources: amd_hsa_queue.h and amd_hsa_signal.h of libhsa-runtime-dev, whose structs tiny.autogen.amd_hsa has;
ROCr's amd_aql_queue.cpp for what the queue's struct must hold. Nobody has run this on a card yet. Not known:
whether scratch memory needs the struct's scratch_resource_descriptor where scratch is architected (gfx942).
"""
from tiny.autogen import amd_hsa as hsa
from tiny.autogen import kfd_6_12 as kfd
from tiny.hcq import io
from tiny.hcq.amd import aql
from tiny.hcq.amd.queues import ComputeQueue
from tiny.hcq.amd.topology import PAGE
from tiny.hcq.timeline import Timeline

PACKET_BYTES = 64
SIGNAL_VALUE = hsa.ffi.offsetof("amd_signal_t", "value")
START = 1 << 62                                             # of a timeline's signal, which counts down
LOCAL_APERTURE, PRIVATE_APERTURE = 1 << 48, 2 << 48         # kfd_flat_memory.c, GFX9 and later
INVALID = aql.Invalid.fixed["type"]


def signal_bytes(value: int, mailbox: int = 0, event_id: int = 0) -> bytes:
    """A signal: packets count its value down and, if `mailbox` is not 0, write `event_id` there."""
    fields = dict(kind=hsa.AMD_SIGNAL_KIND_USER, value=value, event_mailbox_ptr=mailbox, event_id=event_id)
    return bytes(hsa.ffi.buffer(hsa.ffi.new("amd_signal_t *", fields)))


class SignalTimeline(Timeline):
    """A timeline in a signal's value, which every submission counts down."""
    __slots__ = ()

    @property
    def completed(self) -> int:
        return START - self._counter[0]


class AqlQueue(ComputeQueue):
    """A submission is the template's packets, then a barrier that counts the timeline's signal down."""
    kind = kfd.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL
    unit = PACKET_BYTES
    packets = "aql"
    doorbell_lag = 1                                        # the index of the last packet
    read_at = hsa.ffi.offsetof("amd_queue_t", "read_dispatch_id")
    write_at = hsa.ffi.offsetof("amd_queue_t", "write_dispatch_id")

    def make_timeline(self, name: str, provider: io.Provider) -> Timeline:
        signal = signal_bytes(START, self.interrupts.slot, self.interrupts.event_id)
        provider.view(self._signals, len(signal))[:] = signal
        self._counter = provider.view(self._signals + SIGNAL_VALUE, 8).cast("Q")
        self._end = bytes(aql.BarrierAnd(barrier=1, acquire=aql.Scope.SYSTEM, release=aql.Scope.SYSTEM,
                                         completion_signal=self._signals))
        return SignalTimeline(name, self._signals + SIGNAL_VALUE, provider)

    def set_timeline(self, point: int) -> None:
        self._counter[0] = START - point

    def create(self) -> None:
        """The struct that the processor finds by the pointers' addresses, and a ring of invalid packets."""
        card = self.memory.card
        self._struct = hsa.ffi.from_buffer("amd_queue_t *", self.io.view(self._pointer_memory.address, PAGE))
        self._struct.hsa_queue.base_address = hsa.ffi.cast("void *", self._ring_memory.address)
        self._struct.hsa_queue.size = self.ring_bytes // PACKET_BYTES
        self._struct.group_segment_aperture_base_hi = LOCAL_APERTURE >> 32
        self._struct.private_segment_aperture_base_hi = PRIVATE_APERTURE >> 32
        self._struct.max_cu_id = card.compute_units * card.xccs - 1
        self._struct.max_wave_id = card.scratch_slots - 1
        self._struct.read_dispatch_id_field_base_byte_offset = self.read_at
        self._struct.queue_properties = hsa.AMD_QUEUE_PROPERTIES_IS_PTR64
        self._headers = self.ring.cast("I")[::PACKET_BYTES // 4]
        self.ring[::PACKET_BYTES] = bytes([INVALID]) * (self.ring_bytes // PACKET_BYTES)
        super().create()

    def put(self, commands) -> None:
        """As HardwareQueue.put; the first word of each packet, which makes it valid, is written last."""
        packets = bytearray(commands)
        headers = memoryview(packets).cast("I")[::PACKET_BYTES // 4].tolist()
        packets[::PACKET_BYTES] = bytes([INVALID]) * len(headers)
        first, count = self.position // PACKET_BYTES, self.ring_bytes // PACKET_BYTES
        super().put(packets)
        for number, header in enumerate(headers, first):
            self._headers[number % count] = header

    def room(self) -> int:
        return self.ring_bytes - (self.position - self.read_position)

    def pieces(self, template, instance) -> list:
        image = memoryview(template.image)
        most = self.ring_bytes // 2
        return [image[start:start + size] for start, size in template.parts(most)]

    def end(self, point: int) -> bytes:
        return self._end

    def use_scratch(self, base: int, size: int, tmpring_size: int, lane_bytes: int) -> None:
        """The queue is idle."""
        self._struct.compute_tmpring_size = tmpring_size
        self._struct.scratch_backing_memory_location = base
        self._struct.scratch_backing_memory_byte_size = size
        self._struct.scratch_wave64_lane_byte_size = lane_bytes

    def command_number(self, template, end: int) -> int:
        start = end - len(self._end) - template.commands_bytes
        packet = (self.read_position - start) // PACKET_BYTES
        return template.marks[packet] if 0 <= packet < len(template.marks) else len(template.commands)
