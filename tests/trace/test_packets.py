"""Packets in a trace: one line each, buffers inside of buffers, addresses in one piece, what is no packet."""
import ctypes
from collections import namedtuple

from tiny.hcq.amd import aql, dispatch, pm4, sdma
from tiny.hcq.amd.registers import GFX11
from tiny.hcq.cpu import packets as cpu
from tiny.hcq.nv import compute, push
from tiny.trace.packets import Decoder, named
from tiny.trace.reach import Reach

Named = namedtuple("Named", "name entries argument_bytes")   # what the text needs of a program
CODE, KERNARG = 0x7f12_3456_7800, 0x7f00_0000_2000


def decoder(memory: dict[int, bytes]) -> Decoder:
    """One whose memory is these pieces."""
    def read(address: int, size: int) -> bytes | None:
        return next((data[address - start:address - start + size] for start, data in memory.items()
                     if start <= address and address + size <= start + len(data)), None)
    return Decoder(read)


def launch() -> bytes:
    data = bytearray(dispatch.Launch.size_bytes)
    dispatch.Launch.encode(data, code=CODE, rsrc1=0, rsrc2=0, kernarg=KERNARG, threads_x=64, threads_y=1,
                           threads_z=1, groups_x=16, groups_y=1, groups_z=1,
                           initiator=GFX11.COMPUTE_DISPATCH_INITIATOR.word(COMPUTE_SHADER_EN=1))
    return bytes(data)


def test_a_launch_in_an_indirect_buffer_names_its_kernel_and_arguments():
    inner = launch()
    one = decoder({0x1000: inner, KERNARG: (5).to_bytes(8, "little") + (1 << 40).to_bytes(8, "little")})
    one.programs.update(named([Named("add", (CODE, 0x8000), 16)]))
    ring = bytes(pm4.IndirectBuffer(address=0x1000, size_dwords=len(inner) // 4)) + bytes(pm4.EventWrite())
    lines = list(one.lines("pm4", 11, ring, 0x40))
    assert lines[0].startswith("0x40 IndirectBuffer(address=0x1000, ") and lines[-1] == "0x50 EventWrite()"
    assert lines[1] == f"0x40/0x0 SetShReg(COMPUTE_PGM={CODE:#x})"
    assert f"SetShReg(COMPUTE_USER_DATA_0_1={KERNARG:#x})" in " ".join(lines)
    assert lines[-2].endswith(" kernel=add arguments=[0x5, 0x10000000000]")


def test_aql_and_the_cpu_name_kernels_too():
    one = decoder({KERNARG: bytes(8)})
    one.programs.update(named([Named("scale", (0x9000,), 8)]))
    packet = bytes(aql.KernelDispatch(kernel_object=0x9000, kernarg=KERNARG))
    [line] = one.lines("aql", 9, packet)
    assert line.endswith(" kernel=scale arguments=[0x0]")
    [line] = one.lines("cpu", 0, bytes(cpu.Execute(program=0x9000, groups=2, arguments=(3, 4))))
    assert line == "0x0 Execute(program=0x9000, groups=0x2, arguments=[0x3, 0x4]) kernel=scale"


def test_buffers_of_the_copy_engine_and_of_a_channel_are_followed():
    copy = bytes(sdma.Fence(address=0x4000, value=3))
    one = decoder({0x2000: copy, 0x3000: bytes(compute.InlineData(values=(5,)))})
    lines = list(one.lines("sdma", 11, bytes(sdma.Indirect(address=0x2000, size_dwords=len(copy) // 4))))
    assert lines[1] == "0x0/0x0 Fence(address=0x4000, value=0x3)"
    ring = bytes(push.GpfifoEntry(address=0x3000, length_dwords=2))
    lines = list(one.lines("gpfifo", 0xcbc0, ring))
    assert lines[0].startswith("0x0 GpfifoEntry(") and "LOAD_INLINE_DATA(V=0x5)" in lines[1]


def test_what_cannot_be_read_or_is_no_packet_is_told_and_the_rest_goes_on():
    ring = bytes(pm4.IndirectBuffer(address=0x5000, size_dwords=4)) + bytes(8) + bytes(pm4.EventWrite())
    lines = list(decoder({}).lines("pm4", 11, ring))
    assert lines[1] == "0x0/0x0 lost 16 bytes: they cannot be read at 0x5000"
    assert lines[2].startswith("0x10 lost 8 bytes, 0000000000000000: Pm4: no packet has type 0x0")
    assert lines[3] == "0x18 EventWrite()"


def test_a_buffer_that_runs_itself_ends():
    loop = bytes(pm4.IndirectBuffer(address=0x1000, size_dwords=4))
    assert 2 <= len(list(decoder({0x1000: loop}).lines("pm4", 11, loop))) < 10


def test_registers_without_a_name_and_bits_without_a_field_are_not_lost():
    [line] = decoder({}).lines("pm4", 11, bytes(pm4.SetShReg(register=0x3ff, values=[7, 8])))
    assert line == "0x0 SetShReg(register=0x3ff, values=[0x7, 0x8])"
    free = 1 << 31                                          # COMPUTE_PGM_HI has no field up there
    [line] = decoder({}).lines("pm4", 11, bytes(pm4.SetShReg(register=0x20d, values=[free])))
    assert line.endswith(f"={free:#x})")


def test_memory_is_read_only_where_some_is():
    reach, data = Reach(), ctypes.create_string_buffer(b"here it is", 64)
    assert reach.read(ctypes.addressof(data), 10) == b"here it is"
    assert reach.read(0x1000, 16) is None and reach.read((1 << 47) - 4096, 8192) is None
    reach.forget()
    assert reach.read(ctypes.addressof(data), 4) == b"here"
