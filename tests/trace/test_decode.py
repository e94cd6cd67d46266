"""`tiny decode`: packets with names, junk with its place, JSON for programs."""
import io
import json
import struct

import pytest

from tiny.hcq.amd import aql, dispatch, pm4, sdma
from tiny.hcq.amd.registers import GFX11
from tiny.hcq.cpu import packets as cpu
from tiny.hcq.nv import compute, copy, push, qmd
from tiny.trace import decode, streams

LAUNCH = bytearray(dispatch.Launch.size_bytes)
dispatch.Launch.encode(LAUNCH, code=0x7f00_0000_1000,
                       rsrc1=GFX11.COMPUTE_PGM_RSRC1.word(VGPRS=3, WGP_MODE=1), rsrc2=0x90,
                       kernarg=0x7f00_0000_2000, threads_x=64, threads_y=1, threads_z=1, groups_x=16,
                       groups_y=1,
                       groups_z=1, initiator=GFX11.COMPUTE_DISPATCH_INITIATOR.word(COMPUTE_SHADER_EN=1))
FENCE = bytes(pm4.ReleaseMem(data_sel=pm4.DataSel.U64, address=0x1000, value=7, gl2_wb=1))


def run(capsys, data: bytes, *arguments: str, monkeypatch) -> tuple[int, str]:
    """The command with the buffer as hexadecimal on standard input."""
    monkeypatch.setattr("sys.stdin", io.StringIO(data.hex(" ", 4)))
    status = decode.main(arguments)
    return status, capsys.readouterr().out


def test_pm4_names_packets_registers_and_fields(capsys, monkeypatch):
    status, out = run(capsys, bytes(LAUNCH) + FENCE, "--kind", "pm4", monkeypatch=monkeypatch)
    assert status == 0
    assert out.splitlines() == [
        "0x000000: SetShReg(register=0x20c, values=[0x10, 0x7f])",
        "            COMPUTE_PGM_LO(DATA=0x10)",
        "            COMPUTE_PGM_HI(DATA=0x7f)",
        "0x000010: SetShReg(register=0x212, values=[0x20000003, 0x90])",
        "            COMPUTE_PGM_RSRC1(VGPRS=0x3, WGP_MODE=0x1)",
        "            COMPUTE_PGM_RSRC2(USER_SGPR=0x8, TGID_X_EN=0x1)",
        "0x000020: SetShReg(register=0x228, values=[0x0])",
        "            COMPUTE_PGM_RSRC3()",
        "0x00002c: SetShReg(register=0x240, values=[0x2000, 0x7f00])",
        "            COMPUTE_USER_DATA_0(DATA=0x2000)",
        "            COMPUTE_USER_DATA_1(DATA=0x7f00)",
        "0x00003c: SetShReg(register=0x215, values=[0x0])",
        "            COMPUTE_RESOURCE_LIMITS()",
        "0x000048: SetShReg(register=0x204, values=[0x0, 0x0, 0x0, 0x40, 0x1, 0x1])",
        "            COMPUTE_START_X()",
        "            COMPUTE_START_Y()",
        "            COMPUTE_START_Z()",
        "            COMPUTE_NUM_THREAD_X(NUM_THREAD_FULL=0x40)",
        "            COMPUTE_NUM_THREAD_Y(NUM_THREAD_FULL=0x1)",
        "            COMPUTE_NUM_THREAD_Z(NUM_THREAD_FULL=0x1)",
        "0x000068: DispatchDirect(groups_x=0x10, groups_y=0x1, groups_z=0x1, initiator=0x1)",
        "            COMPUTE_DISPATCH_INITIATOR(COMPUTE_SHADER_EN=0x1)",
        "0x00007c: ReleaseMem(gl2_wb=0x1, data_sel=U64, address=0x1000, value=0x7)",
    ]


def test_junk_is_reported_and_decoding_goes_on(capsys, monkeypatch):
    data = FENCE + struct.pack("<3I", 1, 2, 3) + FENCE + FENCE[:12]
    status, out = run(capsys, data, "--kind", "pm4", monkeypatch=monkeypatch)
    assert status == 1
    lines = out.splitlines()
    assert lines[1] == ("0x000020: lost 12 bytes: Pm4: no packet has type 0x0, op 0x0, found at offset 0x20")
    assert lines[2].startswith("0x00002c: ReleaseMem(")
    assert lines[3].startswith("0x00004c: lost 12 bytes: ReleaseMem at offset 0x4c: truncated")


def test_json_is_an_object_a_line(capsys, monkeypatch):
    status, out = run(capsys, FENCE + bytes(4), "--kind", "pm4", "--json", monkeypatch=monkeypatch)
    first, second = map(json.loads, out.splitlines())
    assert status == 1
    assert first["packet"] == "ReleaseMem"
    assert (first["fields"]["value"], first["fields"]["data_sel"]) == (7, 2)
    assert (second["at"], second["size"]) == (32, 4) and "no packet" in second["lost"]


def test_a_file_holds_bytes_or_with_hex_digits(capsys, tmp_path):
    (tmp_path / "fence.bin").write_bytes(FENCE)
    dwords = struct.unpack("<8I", FENCE)
    (tmp_path / "fence.txt").write_text(", ".join(map(hex, dwords)))
    assert decode.main(["--kind", "pm4", str(tmp_path / "fence.bin")]) == 0
    assert decode.main(["--kind", "pm4", "--hex", str(tmp_path / "fence.txt")]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert decode.main(["--kind", "pm4", str(tmp_path / "absent")]) == 2
    assert "No such file" in capsys.readouterr().err
    (tmp_path / "fence.txt").write_text("0x1ffffffff")
    assert decode.main(["--kind", "pm4", "--hex", str(tmp_path / "fence.txt")]) == 2
    assert "fence.txt: '0x1ffffffff' is no dword, which has at most 8 digits" in capsys.readouterr().err


def test_generations_differ():
    old = bytes(pm4.ReleaseMemGfx9(tc_wb=1)) + bytes(pm4.EventWrite())
    assert [type(item.packet) for item in streams.pm4_stream(old, 9)] == [pm4.ReleaseMemGfx9, pm4.EventWrite]
    assert [type(item.packet) for item in streams.pm4_stream(old, 11)] == [pm4.ReleaseMem, pm4.EventWrite]
    new = bytes(sdma.CopyLinearGfx12(nbytes=64)) + bytes(sdma.CopyLinear(nbytes=64))
    assert [type(item.packet) for item in streams.sdma_stream(new, 12)] == [sdma.CopyLinearGfx12,
        sdma.CopyLinear]


def test_a_push_buffer_names_methods_by_the_bound_class(capsys, monkeypatch):
    data = bytes(push.SetObject(subchannel=1, class_number=0xcbc0)) + bytes(push.SetObject(subchannel=4,
        class_number=0xc8b5))
    data += bytes(push.Semaphore(address=0x2000, payload=3, operation=push.SemaphoreOperation.RELEASE))
    data += bytes(compute.SendPcas(qmd=0x10000)) + bytes(compute.SendSignalingPcas2())
    data += bytes(copy.LaunchCopy())
    data += bytes(compute.InlineData(values=(5, 6))) + bytes(push.Immediate(method=0x110,
        subchannel=1)) + bytes(4)
    status, out = run(capsys, data, "--kind", "nv-push", monkeypatch=monkeypatch)
    assert status == 0
    assert [line.strip() for line in out.splitlines() if line.startswith("     ")] == [
        "SET_OBJECT(NVCLASS=0xcbc0)", "SET_OBJECT(NVCLASS=0xc8b5)", "SEM_ADDR_LO(OFFSET=0x800)",
        "SEM_ADDR_HI()",
        "SEM_PAYLOAD_LO(PAYLOAD=0x3)", "SEM_PAYLOAD_HI()", "SEM_EXECUTE(OPERATION=RELEASE)",
        "SEND_PCAS_A(QMD_ADDRESS_SHIFTED8=0x100)", "SEND_SIGNALING_PCAS2_B(PCAS_ACTION=PREFETCH_SCHEDULE)",
        "LAUNCH_DMA(DATA_TRANSFER_TYPE=NON_PIPELINED, SRC_MEMORY_LAYOUT=PITCH, DST_MEMORY_LAYOUT=PITCH)",
        "LOAD_INLINE_DATA(V=0x5)", "LOAD_INLINE_DATA(V=0x6)", "WAIT_FOR_IDLE()"]


def test_ring_entries_and_qmds():
    ring = bytes(push.GpfifoEntry(address=0x1000,
                                  length_dwords=4)) + bytes(push.GpfifoControl(opcode=4)) + bytes(3)
    entry, control, rest = streams.gpfifo_stream(ring)
    assert (entry.packet.address, control.packet.opcode.name) == (0x1000, "SET_PB_SEGMENT_EXTENDED_BASE")
    assert "truncated, it has 8 bytes and 3 are left" in rest.reason
    data = bytes(qmd.QmdV3(grid_x=5)) + bytes(256) + bytes(qmd.QmdV5(grid_x=6)) + bytes(qmd.QmdV4(grid_x=7))
    first, lost, second, third = streams.qmd_stream(data)
    assert [item.packet.grid_x for item in (first, second, third)] == [5, 6, 7]
    assert (lost.at, lost.size) == (256, 256)


@pytest.mark.parametrize("kind, data", [
    ("sdma", bytes(sdma.Fence(value=1)) + bytes(sdma.Trap(interrupt_id=3))),
    ("cpu", bytes(cpu.Execute(program=0x1000, groups=4, arguments=(1, 2))) + bytes(cpu.Signal(value=3))),
    ("aql", bytes(aql.KernelDispatch(kernel_object=0x1000)) + bytes(aql.BarrierAnd(signals_0=8))),
])
def test_other_kinds(capsys, monkeypatch, kind, data):
    status, out = run(capsys, data, "--kind", kind, monkeypatch=monkeypatch)
    assert status == 0 and len(out.splitlines()) == 2


def test_text_that_is_not_hexadecimal_and_a_file_that_is_not_there_are_named(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("sys.stdin", io.StringIO("0x12 hello"))
    assert decode.main(["--kind", "pm4"]) == 2
    assert capsys.readouterr().err.startswith("tiny decode: standard input: 'hello' is not hexadecimal")
    assert decode.main(["--kind", "pm4", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == f"tiny decode: {tmp_path / 'none'}: No such file or directory\n"
