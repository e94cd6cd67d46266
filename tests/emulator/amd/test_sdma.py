"""SDMA packets that ROCr writes and our driver does not, on a queue of a bare client."""
import pytest

from tests.emulator.amd.test_kernel_calls import PAGE, Client
from tiny.autogen import kfd_6_12 as kfd
from tiny.emulator.amd.engines import EmulatorError
from tiny.emulator.amd.kernel.cards import CARDS, PRESENTED
from tiny.hcq.amd import sdma


def ran(card, packets):
    """The dword behind these packets and a fence that writes 7 to it."""
    client = Client(card).acquire()
    fields = client.queue_fields(kfd.KFD_IOC_QUEUE_TYPE_SDMA)
    made = client.call("CREATE_QUEUE", **fields)
    table, page = client.io.gpus[client.gpu].table, client.mapped(PAGE)
    at = 0
    for kind, values in [*packets, (sdma.Fence, dict(address=page, value=7))]:
        data = bytearray(kind.size_bytes)
        kind.encode(data, 0, **values)
        table.write(fields["ring_base_address"] + at, bytes(data))
        at += len(data)
    table.write_u64(fields["write_pointer_address"], at)
    bells = client.io.mmap(8192, fd=client.fd, offset=made.doorbell_offset & ~8191)
    client.io.view(bells + made.doorbell_offset % 8192, 8).cast("Q")[0] = at
    client.io.run()
    return table.read_u32(page)


@pytest.mark.parametrize("card", [CARDS["gfx1100"], PRESENTED["gfx1030"]], ids=lambda card: card.name)
def test_flushes_of_caches_and_of_the_host_data_path_do_nothing(card):
    """Function 0 is true of every register, so the engine goes on: so ROCr writes it for gfx10 and gfx11."""
    flush = dict(memory=0, function=0, address=0x80000000 << 32, mask=0, interval=0, retries=0)
    assert ran(card, [(sdma.PollRegMem, flush), (sdma.UserGcrReq, dict(gl2_inv=1, gli_inv=1)),
                      (sdma.GcrReq, dict(gl2_wb=1))]) == 7


def test_a_register_that_is_really_waited_for_is_refused():
    with pytest.raises(EmulatorError, match="of a register is not emulated"):
        ran(CARDS["gfx1100"], [(sdma.PollRegMem, dict(memory=0, function=3, address=0x1260))])
