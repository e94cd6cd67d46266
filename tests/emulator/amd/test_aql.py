"""AQL packets on a queue that a bare client makes: registers a kernel asks for, PM4 inside AQL, barriers."""
import pytest

from tests.emulator.amd.test_kernel_calls import GTT, PAGE, WRITABLE, Client
from tiny.autogen import amd_kernel_descriptor as descriptor
from tiny.autogen import kfd_6_12 as kfd
from tiny.emulator.amd.engines import EmulatorError
from tiny.emulator.amd.engines.dispatch import AqlPlace, from_aql
from tiny.emulator.amd.kernel.cards import PRESENTED
from tiny.hcq.amd import aql, pm4

READ, WRITE = 128, 56                                        # the pointers in amd_queue_t, amd_hsa_queue.h


class Queue(Client):
    """A client with one AQL queue and a page to work on."""

    def __init__(self, *cards):
        super().__init__(*cards)
        self.acquire()
        fields = self.queue_fields(kfd.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL)
        pointers = fields["read_pointer_address"]
        fields |= dict(read_pointer_address=pointers + READ, write_pointer_address=pointers + WRITE)
        self.ring, self.pointers = fields["ring_base_address"], pointers
        self.table = self.io.gpus[self.gpu].table
        self.table.write(self.ring, aql.Invalid.fixed["type"].to_bytes(64, "little") * (PAGE // 64))
        made = self.call("CREATE_QUEUE", **fields)
        bells = self.io.mmap(8192, fd=self.fd, offset=made.doorbell_offset & ~8191)
        self.bell = self.io.view(bells + made.doorbell_offset % 8192, 8).cast("Q")
        self.page, self.count = self.mapped(PAGE), 0

    def submit(self, packet, **fields):
        data = bytearray(64)
        packet.encode(data, 0, **fields)
        self.table.write(self.ring + 64 * self.count, bytes(data))
        self.bell[0] = self.count                            # the last packet that is ready
        self.count += 1
        self.io.run()
        return self.table.read_u64(self.pointers + READ)


@pytest.fixture
def queue():
    return Queue()


def signal(queue, place, value):
    """An amd_signal_t in the page: its address."""
    queue.table.write(queue.page + 64 * place, bytes(64))
    queue.table.write_u64(queue.page + 64 * place + 8, value)
    return queue.page + 64 * place


def value(queue, address):
    return queue.table.read_u64(address + 8)


@pytest.mark.parametrize("cards", [(), (PRESENTED["gfx1030"],)])
def test_barriers_wait_for_all_or_for_one(cards):
    queue = Queue(*cards)
    first, second, done = (signal(queue, place, 1) for place in range(3))
    assert queue.submit(aql.BarrierAnd, signals_0=first, signals_3=second, completion_signal=done) == 0
    queue.table.write_u64(first + 8, 0)
    queue.io.run()
    assert value(queue, done) == 1
    queue.table.write_u64(second + 8, 0)
    queue.io.run()
    assert value(queue, done) == 0 and queue.table.read_u64(queue.pointers + READ) == 1
    queue.table.write_u64(second + 8, 5)
    assert queue.submit(aql.BarrierOr, signals_1=first, signals_4=second, completion_signal=second) == 2
    assert value(queue, second) == 4


def test_pm4_inside_of_a_packet(queue):
    """What a runtime sends to flush caches: a vendor packet with an INDIRECT_BUFFER packet."""
    commands = bytearray(4 * 5)
    pm4.WriteData.encode(commands, 0, to=pm4.WriteTo.MEMORY, address=queue.page + 512, values=[0x1234])
    queue.table.write(queue.page, bytes(commands))
    inner = bytearray(16)
    pm4.IndirectBuffer.encode(inner, 0, address=queue.page, size_dwords=5)
    header, address, control = (int.from_bytes(inner[start:end], "little")
                                for start, end in ((0, 4), (4, 12), (12, 16)))
    done = signal(queue, 4, 1)
    assert queue.submit(aql.VendorPm4, ib_header=header, ib_address=address, ib_control=control,
                        completion_signal=done) == 1
    assert queue.table.read_u32(queue.page + 512) == 0x1234 and value(queue, done) == 0
    with pytest.raises(EmulatorError, match="format 2"):
        queue.submit(aql.VendorPm4, format=2, ib_header=header, ib_address=address, ib_control=control)


PROPERTIES = {name: getattr(descriptor, f"KERNEL_CODE_PROPERTY_ENABLE_SGPR_{name}") for name in (
    "DISPATCH_PTR", "QUEUE_PTR", "KERNARG_SEGMENT_PTR", "DISPATCH_ID", "PRIVATE_SEGMENT_SIZE",
    "PRIVATE_SEGMENT_BUFFER", "FLAT_SCRATCH_INIT")}


def user_data(queue, *names, preload=0):
    """What a kernel with these properties finds in its first SGPRs."""
    made = descriptor.ffi.new("struct kernel_descriptor_t *", {
        "kernel_code_properties": sum(PROPERTIES[name] for name in names), "kernarg_preload": preload})
    queue.table.write(queue.page, bytes(descriptor.ffi.buffer(made)))
    queue.table.write(queue.page + 256, bytes(range(32)))
    data = bytearray(64)
    aql.KernelDispatch.encode(data, 0, kernel_object=queue.page, kernarg=queue.page + 256, grid_x=64,
                              workgroup_x=32, private_segment_bytes=48)
    at = AqlPlace(packet=0x7000_0000_1000, index=0x2_0000_0003, queue=0x6000_0000_2000)
    packet = aql.Aql.decode_next(data, 0)[0]
    return from_aql(packet, at, queue.io.gpus[queue.gpu].card, queue.table, "here").user_data


def test_registers_stand_in_the_order_of_the_abi(queue):
    kernarg = [(queue.page + 256) & 0xFFFFFFFF, (queue.page + 256) >> 32]
    assert list(user_data(queue, "KERNARG_SEGMENT_PTR")) == kernarg + [0] * 14
    found = user_data(queue, "PRIVATE_SEGMENT_SIZE", "DISPATCH_ID", "KERNARG_SEGMENT_PTR", "QUEUE_PTR",
                      "DISPATCH_PTR", preload=2 | 1 << descriptor.KERNARG_PRELOAD_SPEC_OFFSET_SHIFT)
    assert list(found) == [0x1000, 0x7000, 0x2000, 0x6000, *kernarg, 3, 2, 48, 0x07060504, 0x0B0A0908,
                           0, 0, 0, 0, 0]


@pytest.mark.parametrize("name", ["PRIVATE_SEGMENT_BUFFER", "FLAT_SCRATCH_INIT"])
def test_registers_of_older_cards_are_refused(queue, name):
    with pytest.raises(EmulatorError, match="older cards"):
        user_data(queue, name)


def test_a_card_without_instructions_runs_no_kernel():
    queue = Queue(PRESENTED["gfx1030"])
    with pytest.raises(EmulatorError, match="gfx1030: its instructions are not emulated"):
        queue.submit(aql.KernelDispatch, kernel_object=queue.mapped(PAGE, GTT | WRITABLE))
