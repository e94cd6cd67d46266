"""The compute command processor: PM4 packets. Pointers count dwords; packets may cross the end of the ring.

A dispatch runs to its end at once, so waits for earlier work are over when they are read, and caches are
always clean. What a missing wait or flush would break on a card is looked for in checked mode, see `caches`.
"""
import functools
from collections.abc import Iterator

from tiny.autogen import amd_gc_11_0_0 as gc
from tiny.emulator.amd.engines import dispatch
from tiny.emulator.amd.engines.base import EmulatorError, Engine, compare
from tiny.emulator.amd.engines.execute import execute
from tiny.emulator.amd.isa.clock import realtime
from tiny.hcq.amd import pm4
from tiny.hcq.layout import LayoutError, Packet

FAMILIES = {9: pm4.Pm4Gfx9, 10: pm4.Pm4, 11: pm4.Pm4, 12: pm4.Pm4}
LONGEST_PACKET = 4 * ((1 << 14) + 1)                         # bytes
MASK_64 = (1 << 64) - 1
KEPT_BUFFERS = 16                                            # decoded indirect buffers, a megabyte or so each


class Pm4Engine(Engine):
    """One compute queue."""
    unit = 4

    def __init__(self, queue, gpu, events):
        super().__init__(queue, gpu, events)
        self.family = FAMILIES[gpu.card.major]
        self.registers: dict[int, int] = {}                  # SH registers, by offset in their window
        self._reading: tuple[dict, int] = {}, 0              # a decoded buffer, and where in it

    def program(self) -> Iterator[None]:
        size = min((self.written() - self.position) * 4, self.queue.ring_size, LONGEST_PACKET)
        where = self.queue.ring + self.position * 4 % self.queue.ring_size
        packet, length = self.decode(self.ring_bytes(size), 0, where)
        yield from self.execute(packet, where)
        self.position += length // 4

    def execute(self, packet, where: int) -> Iterator[None]:
        """Do what a packet at an address says."""
        handler = _HANDLERS.get(type(packet))
        if handler is None:
            raise EmulatorError(f"{self}: {type(packet).__name__} at {where:#x} is not emulated: {packet}")
        waits = handler(self, packet, where)
        if waits is not None:
            yield from waits

    # -- registers and work ----------------------------------------------------------------------------------
    def nop(self, packet, where: int) -> None:
        """Nothing: padding, and the flush of the host's path to video memory."""

    def set_registers(self, packet, where: int) -> None:
        for number, value in enumerate(packet.values):
            self.registers[packet.register + number] = value

    def dispatch_direct(self, packet, where: int) -> None:
        self._start((packet.groups_x, packet.groups_y, packet.groups_z), packet.initiator, where)

    def dispatch_indirect(self, packet, where: int) -> None:
        table = self.watched("DISPATCH_INDIRECT")
        counts = tuple(table.read_u32(packet.address + 4 * n) for n in range(3))
        self._start(counts, packet.initiator, where)

    def _start(self, counts: tuple[int, int, int], initiator: int, where: int) -> None:
        place = f"{self}: dispatch at {where:#x}"
        found = dispatch.from_registers(self.registers, counts, initiator, self.card, place)
        table = self.watched(self.kernel_name(found.code), is_kernel=True)
        execute(found, self.card, table, lambda: self._following(place))

    def _following(self, place: str) -> Iterator[dispatch.Dispatch]:
        """The dispatches behind this one in its buffer, as far as the packets alone tell."""
        registers, (known, reached) = dict(self.registers), self._reading
        for offset, (packet, _) in known.items():
            if offset <= reached:
                continue
            if isinstance(packet, (pm4.SetShReg, pm4.SetShRegIndex)):
                registers |= {packet.register + number: value for number, value in enumerate(packet.values)}
            elif isinstance(packet, pm4.DispatchDirect):
                counts = packet.groups_x, packet.groups_y, packet.groups_z
                yield dispatch.from_registers(registers, counts, packet.initiator, self.card, place)

    def indirect_buffer(self, packet, where: int) -> Iterator[None]:
        if not packet.valid:
            raise EmulatorError(
                f"{self}: INDIRECT_BUFFER at {where:#x} without VALID; a compute queue would hang"
            )
        address, size = packet.address, packet.size_dwords * 4
        while address:
            data = self.table.read(address, size)
            address, size = yield from self._run_buffer(data, address)

    def _run_buffer(self, data: bytes, address: int) -> Iterator[None]:
        """Run commands from memory; (address, size in bytes) of the buffer they chain to, (0, 0) for none."""
        offset = 0
        known = _decoded(self.family, data)
        while offset < len(data):
            packet, length = known.get(offset) or self.decode(data, offset, address + offset)
            if isinstance(packet, pm4.IndirectBuffer) and packet.chain:
                return packet.address, packet.size_dwords * 4
            if isinstance(packet, pm4.CondExec):
                skipped = 0 if self.table.read_u32(packet.address) else packet.count_dwords * 4
                offset += length + skipped
                continue
            if isinstance(packet, pm4.PredExec):  # the emulated card runs the whole grid on its first die
                offset += length + (0 if packet.xcc_mask & 1 else packet.count_dwords * 4)
                continue
            self._reading = known, offset
            yield from self.execute(packet, address + offset)
            offset += length
        return 0, 0

    # -- memory ----------------------------------------------------------------------------------------------
    def write_data(self, packet, where: int) -> None:
        if packet.to not in (pm4.WriteTo.MEMORY, pm4.WriteTo.MEMORY_SYNC, pm4.WriteTo.L2):
            raise EmulatorError(f"{self}: WRITE_DATA at {where:#x} to {packet.to!r} is not emulated")
        table = self.watched("WRITE_DATA")
        for number, value in enumerate(packet.values):
            table.write_u32(packet.address + (0 if packet.one_address else 4 * number), value)

    def copy_data(self, packet, where: int) -> None:
        table = self.watched("COPY_DATA")
        sources = {pm4.CopyFrom.TIMESTAMP: realtime, pm4.CopyFrom.IMMEDIATE: lambda: packet.source}
        read = table.read_u64 if packet.wide else table.read_u32
        memory = (pm4.CopyFrom.MEMORY, pm4.CopyFrom.L2)
        if packet.from_ not in (*sources, *memory) or packet.to not in (
            pm4.CopyTo.MEMORY,
            pm4.CopyTo.MEMORY_SYNC,
            pm4.CopyTo.L2,
        ):
            raise EmulatorError(
                f"{self}: COPY_DATA at {where:#x} from {packet.from_!r} to {packet.to!r} is not emulated"
            )
        value = read(packet.source) if packet.from_ in memory else sources[packet.from_]()
        if packet.wide:
            table.write_u64(packet.destination, value & MASK_64)
        else:
            table.write_u32(packet.destination, value & 0xFFFFFFFF)

    def dma_data(self, packet, where: int) -> None:
        addresses = packet.to in (pm4.DmaTo.ADDRESS, pm4.DmaTo.L2) and packet.from_ is not pm4.DmaFrom.GDS
        plain = not (
            packet.source_is_register
            or packet.destination_is_register
            or packet.source_stays
            or packet.destination_stays
        )
        if not addresses or not plain:
            raise EmulatorError(f"{self}: DMA_DATA at {where:#x} of this form is not emulated: {packet}")
        table = self.watched("DMA_DATA")
        if packet.from_ is pm4.DmaFrom.DATA:
            pattern = (packet.source & 0xFFFFFFFF).to_bytes(4, "little")
            table.write(
                packet.destination, (pattern * -(-packet.size_bytes_ // 4))[: packet.size_bytes_]
            )
        else:
            table.move(packet.destination, packet.source, packet.size_bytes_)

    # -- order and events ------------------------------------------------------------------------------------
    def wait(self, packet, where: int) -> Iterator[None]:
        if packet.operation == 1 and not packet.memory:  # write a register, wait for another: the HDP flush
            return
        if not packet.memory:
            raise EmulatorError(
                f"{self}: {type(packet).__name__} at {where:#x} of a register is not emulated"
            )
        read = self.table.read_u64 if isinstance(packet, pm4.WaitRegMem64) else self.table.read_u32
        while not compare(
            packet.function, read(packet.address) & packet.mask, packet.reference & packet.mask
        ):
            yield
        self.order("waited")

    def event(self, packet, where: int) -> None:
        if packet.event_type == gc.CS_PARTIAL_FLUSH:
            self.order("finish")

    def acquire(self, packet, where: int) -> None:
        old = isinstance(packet, pm4.AcquireMemGfx9)
        if packet.tcl1 and packet.sh_kcache if old else packet.glv_inv and packet.glk_inv:
            self.order("acquire")
        if packet.tc_wb if old else packet.gl2_wb:
            self.order("write_back")

    def release(self, packet, where: int) -> None:
        self.order("signal")
        if packet.tc_wb if isinstance(packet, pm4.ReleaseMemGfx9) else packet.gl2_wb:
            self.order("write_back")
        if packet.data_sel is pm4.DataSel.U32:
            self.table.write_u32(packet.address, packet.value & 0xFFFFFFFF)
        elif packet.data_sel is not pm4.DataSel.NONE:
            value = packet.value if packet.data_sel is pm4.DataSel.U64 else realtime()
            self.table.write_u64(packet.address, value)
        if packet.interrupt is not pm4.IntSel.NONE:
            self.events.interrupt(packet.interrupt_id)


@functools.lru_cache(maxsize=KEPT_BUFFERS)
def _decoded(family: type[Packet], data: bytes) -> dict[int, tuple[Packet, int]]:
    """{offset: (packet, its bytes)} of a buffer from its start up to what is no packet.

    A captured graph runs the same buffer again and again: only addresses outside of it change.
    """
    found, offset = {}, 0
    try:
        while offset < len(data):
            found[offset] = family.decode_next(data, offset)
            offset += found[offset][1]
    except LayoutError:
        pass                                                 # whoever gets there says where it is
    return found


_HANDLERS = {
    pm4.Nop: Pm4Engine.nop,
    pm4.Filler: Pm4Engine.nop,
    pm4.AcquireMem: Pm4Engine.acquire,
    pm4.AcquireMemGfx9: Pm4Engine.acquire,
    pm4.EventWrite: Pm4Engine.event,
    pm4.HdpFlush: Pm4Engine.nop,
    pm4.SetShReg: Pm4Engine.set_registers,
    pm4.SetShRegIndex: Pm4Engine.set_registers,
    pm4.DispatchDirect: Pm4Engine.dispatch_direct,
    pm4.DispatchIndirect: Pm4Engine.dispatch_indirect,
    pm4.IndirectBuffer: Pm4Engine.indirect_buffer,
    pm4.WriteData: Pm4Engine.write_data,
    pm4.CopyData: Pm4Engine.copy_data,
    pm4.DmaData: Pm4Engine.dma_data,
    pm4.WaitRegMem: Pm4Engine.wait,
    pm4.WaitRegMem64: Pm4Engine.wait,
    pm4.ReleaseMem: Pm4Engine.release,
    pm4.ReleaseMemGfx9: Pm4Engine.release,
}
