"""The copy engine: SDMA packets. Pointers count bytes and never wrap; a packet does not cross the ring's end.
"""
from collections.abc import Iterator

from tiny.emulator.amd.engines.base import EmulatorError, Engine, compare
from tiny.emulator.amd.isa.clock import realtime
from tiny.hcq.amd import sdma

FAMILIES = {9: sdma.SdmaGfx9, 10: sdma.Sdma, 11: sdma.Sdma, 12: sdma.SdmaGfx12}
INDIRECT_END = 8                                             # dwords: where an INDIRECT packet has to end
ATOMIC_ADD_64 = 47  # MESA sid.h and the ISA documents: TC_OP_ATOMIC_ADD_RTN_64
FOREVER = 0xFFF


class SdmaEngine(Engine):
    """One SDMA queue."""
    unit = 1

    def __init__(self, queue, gpu, events):
        super().__init__(queue, gpu, events)
        self.family = FAMILIES[gpu.card.major]

    def program(self) -> Iterator[None]:
        start = self.position % self.queue.ring_size
        size = min(self.written() - self.position, self.queue.ring_size - start)
        if size % 4:
            raise EmulatorError(f"{self}: the write pointer {self.written():#x} is not a multiple of 4")
        data = self.ring_bytes(size)
        packet, length = self.decode(data, 0, self.queue.ring + start)
        if isinstance(packet, sdma.Indirect) and (start + length) // 4 % INDIRECT_END:
            raise EmulatorError(f"{self}: INDIRECT at {self.queue.ring + start:#x} does not end on a "
                                f"boundary of {INDIRECT_END} dwords")
        yield from self.execute(packet, self.queue.ring + start)
        self.position += length

    def execute(self, packet, where: int) -> Iterator[None]:
        """Do what a packet at an address says."""
        handler = next((done for kind, done in _HANDLERS.items() if isinstance(packet, kind)), None)
        if handler is None:
            raise EmulatorError(f"{self}: {type(packet).__name__} at {where:#x} is not emulated: {packet}")
        try:
            waits = handler(self, packet)
            if waits is not None:
                yield from waits
        except EmulatorError as error:
            raise EmulatorError(f"{error}, in the packet at {where:#x}") from error

    def nop(self, packet) -> None:
        """Nothing."""

    def copy(self, packet) -> None:
        self.watched("copy").move(packet.destination, packet.source, packet.nbytes)

    def write(self, packet) -> None:
        self._aligned(packet, packet.destination, 4)
        data = b"".join(value.to_bytes(4, "little") for value in packet.values)
        self.watched("WRITE").write(packet.destination, data)

    def fill(self, packet) -> None:
        width = 1 << int(packet.fill_size)
        if packet.nbytes % width:
            raise EmulatorError(f"{self}: CONSTANT_FILL of {packet.nbytes} bytes in units of {width}")
        pattern = (packet.value & (1 << 8 * width) - 1).to_bytes(width, "little")
        self.watched("CONSTANT_FILL").write(packet.destination, pattern * (packet.nbytes // width))

    def fence(self, packet) -> None:
        self.table.write_u32(packet.address, packet.value)

    def trap(self, packet) -> None:
        self.events.interrupt(packet.interrupt_id)

    def poll(self, packet) -> Iterator[None]:
        if not packet.memory and not packet.hdp_flush and packet.function == 0:
            return  # true of any register: what ROCr writes for a flush of the host data path
        if not packet.memory or packet.hdp_flush:
            raise EmulatorError(f"{self}: POLL_REGMEM of a register is not emulated: {packet}")
        retries = 0
        while not compare(
            packet.function, self.table.read_u32(packet.address) & packet.mask, packet.reference
        ):
            retries += 1
            if packet.retries != FOREVER and retries > packet.retries:
                raise EmulatorError(
                    f"{self}: POLL_REGMEM gave up after {packet.retries} tries; the engine would hang"
                )
            yield

    def timestamp(self, packet) -> None:
        self.table.write_u64(packet.address, realtime())

    def atomic(self, packet) -> None:
        if packet.atomic != ATOMIC_ADD_64 or packet.loop:
            raise EmulatorError(f"{self}: ATOMIC with opcode {packet.atomic} is not emulated")
        self.table.add_u64(packet.address, packet.operand)

    def indirect(self, packet) -> Iterator[None]:
        data = self.table.read(packet.address, packet.size_dwords * 4)
        offset = 0
        while offset < len(data):
            inner, length = self.decode(data, offset, packet.address + offset)
            yield from self.execute(inner, packet.address + offset)
            offset += length

    def _aligned(self, packet, address: int, size: int) -> None:
        if address % size:
            raise EmulatorError(
                f"{self}: {type(packet).__name__} at {address:#x}, which is not aligned to {size}"
            )


_HANDLERS = {
    sdma.Nop: SdmaEngine.nop,
    sdma.GcrReq: SdmaEngine.nop,
    sdma.UserGcrReq: SdmaEngine.nop,
    sdma.CopyLinear: SdmaEngine.copy,
    sdma.CopyLinearGfx12: SdmaEngine.copy,
    sdma.CopyLinearGfx9: SdmaEngine.copy,
    sdma.WriteLinear: SdmaEngine.write,
    sdma.ConstantFill: SdmaEngine.fill,
    sdma.ConstantFillGfx9: SdmaEngine.fill,
    sdma.Fence: SdmaEngine.fence,
    sdma.FenceGfx9: SdmaEngine.fence,
    sdma.Trap: SdmaEngine.trap,
    sdma.PollRegMem: SdmaEngine.poll,
    sdma.Timestamp: SdmaEngine.timestamp,
    sdma.Atomic: SdmaEngine.atomic,
    sdma.Indirect: SdmaEngine.indirect,
}
