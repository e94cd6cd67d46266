"""The packet processor of HSA queues: AQL packets of 64 bytes. Pointers and doorbell count packets.

The doorbell holds the index of the last packet that is ready, so 0 after the first one. Signals and packet
layouts: hsa.h and amd_hsa_signal.h of libhsa-runtime-dev.
"""
from collections.abc import Iterator

from tiny.emulator.amd.engines import dispatch
from tiny.emulator.amd.engines.base import EmulatorError, Engine
from tiny.emulator.amd.engines.execute import execute
from tiny.emulator.amd.engines.pm4 import Pm4Engine
from tiny.emulator.amd.isa.clock import realtime
from tiny.hcq.amd import aql, pm4

PACKET_BYTES = 64
READ_INDEX = 128                                             # read_dispatch_id in amd_queue_t
PM4_FORMAT = 1                                               # of a vendor packet with an INDIRECT_BUFFER
VALUE, MAILBOX, EVENT_ID, START, END = 8, 16, 24, 32, 40     # byte offsets in amd_signal_t, amd_hsa_signal.h


class AqlEngine(Engine):
    """One HSA queue."""
    family = aql.Aql
    unit = PACKET_BYTES

    def __init__(self, queue, gpu, events):
        super().__init__(queue, gpu, events)
        self._commands = Pm4Engine(queue, gpu, events)       # for PM4 inside of AQL

    def written(self) -> int:
        rung = self.gpu.doorbells.value(self.queue.doorbell)
        return self.position if rung is None else rung + 1

    def program(self) -> Iterator[None]:
        while True:
            where = self.queue.ring + self.position * PACKET_BYTES % self.queue.ring_size
            packet, _ = self.decode(self.ring_bytes(PACKET_BYTES), 0, where)
            if not isinstance(packet, aql.Invalid):
                break
            yield                                            # its header has not been written yet
        began = realtime()
        self.order(*["finish"] * packet.barrier, *["acquire"] * (packet.acquire >= aql.Scope.AGENT))
        yield from self._execute(packet, where)
        self.order(*["write_back"] * (packet.release == aql.Scope.SYSTEM))
        self._complete(packet.completion_signal, began)
        self.table.write(where, aql.Invalid.fixed["type"].to_bytes(2, "little"))
        self.position += 1

    def _execute(self, packet, where: int) -> Iterator[None]:
        if isinstance(packet, aql.KernelDispatch):
            place = f"{self}: dispatch at {where:#x}"
            work = self._dispatch(packet, where, self.position, place)
            table = self.watched(self.kernel_name(work.code), is_kernel=True)
            execute(work, self.card, table, lambda: self._following(place))
        elif isinstance(packet, aql.VendorPm4):
            yield from self._run_commands(packet, where)
        elif isinstance(packet, aql.BarrierAnd):
            while any(self._value(signal) for signal in _signals(packet)):
                yield
        elif isinstance(packet, aql.BarrierOr):
            while _signals(packet) and all(self._value(signal) for signal in _signals(packet)):
                yield
        else:
            raise EmulatorError(f"{self}: {type(packet).__name__} at {where:#x} is not emulated")

    def _following(self, place: str) -> Iterator[dispatch.Dispatch]:
        """The dispatches behind this one in the ring."""
        for position in range(self.position + 1, self.written()):
            where = self.queue.ring + position * PACKET_BYTES % self.queue.ring_size
            packet, _ = self.decode(self.table.read(where, PACKET_BYTES), 0, where)
            if isinstance(packet, aql.KernelDispatch):
                yield self._dispatch(packet, where, position, place)

    def _dispatch(self, packet, where: int, index: int, place: str) -> dispatch.Dispatch:
        """What a packet at an address, the index-th of the queue, runs."""
        at = dispatch.AqlPlace(where, index, self.queue.read_pointer - READ_INDEX)
        return dispatch.from_aql(packet, at, self.card, self.table, place)

    def _run_commands(self, packet, where: int) -> Iterator[None]:
        """The PM4 of a vendor packet: its dwords 1 to 4."""
        command, _ = self._commands.decode(self.ring_bytes(PACKET_BYTES)[4:20], 0, where + 4)
        if packet.format != PM4_FORMAT or not isinstance(command, pm4.IndirectBuffer):
            raise EmulatorError(f"{self}: a vendor packet at {where:#x} of format {packet.format} with "
                                f"{type(command).__name__} is not emulated")
        yield from self._commands.execute(command, where + 4)

    def _value(self, signal: int) -> int:
        return self.table.read_u64(signal + VALUE)

    def _complete(self, signal: int, began: int) -> None:
        """Count a packet's signal down, and wake who sleeps on it."""
        if not signal:
            return
        self.table.write_u64(signal + START, began)
        self.table.write_u64(signal + END, realtime())
        self.table.add_u64(signal + VALUE, -1)
        mailbox = self.table.read_u64(signal + MAILBOX)
        if mailbox:
            event = self.table.read_u32(signal + EVENT_ID)
            self.table.write_u64(mailbox, event)
            self.events.interrupt(event)


def _signals(packet) -> list[int]:
    """The addresses of the signals that a barrier waits for."""
    values = dict(packet.items())
    return [values[f"signals_{number}"] for number in range(5) if values[f"signals_{number}"]]
