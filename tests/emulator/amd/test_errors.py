"""What the emulator does not know is an error with the place: one row for each kind of thing."""

import struct

import pytest

from tests.emulator.amd.isa.test_checked import made
from tests.hcq.amd.conftest import KINDS, filled, opened
from tests.hcq.amd.test_faults import store_fault
from tiny.config import Context
from tiny.emulator.amd.engines import EmulatorError
from tiny.emulator.amd.engines.execute import debug_command
from tiny.emulator.amd.isa import interpreter, run
from tiny.emulator.amd.isa.memory import MemoryFault
from tiny.emulator.amd.isa.state import EmulationError
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq.amd import aql, pm4, sdma
from tiny.hcq.errors import CommandError

# -- instructions: kernel, workgroup, wave, place, disassembly -----------------------------------------------
GLOBAL = "v_mov_b32 v0, 0\n v_mov_b32 v1, 0\n"
INSTRUCTIONS = {
    "words without an encoding": (".long 0xc0ffee00", "0xc0ffee00 at 0x0 has no known encoding"),
    "an opcode without a name": (".long 0xbfff0000", "gfx11: "),
    "an opcode behind a branch": (
        "s_branch there\n there:\n .long 0xbfff0000", "at 0x4 (0x7f0000000004): gfx11: ",
    ),
    "an instruction that is only decoded": ("s_sethalt 1", "at 0x0 (0x7f0000000000): s_sethalt 1: "),
    "a message": ("s_sendmsg sendmsg(MSG_INTERRUPT)", "s_sendmsg sendmsg(MSG_INTERRUPT): this message"),
    "a trap": ("s_trap 2", "s_trap 2: "),
    "a jump out of the code": (
        "s_mov_b32 s8, 0\n s_mov_b32 s9, 1\n s_setpc_b64 s[8:9]", " out",
    ),
    "a read of unmapped memory": (GLOBAL + "global_load_b32 v2, v[0:1], off", "read of 4 bytes at 0x0"),
    "a write, unmapped": (GLOBAL + "global_store_b64 v[0:1], v[2:3], off", "write of 8 bytes at 0x0"),
    "a write of the code": (
        "s_getpc_b64 s[2:3]\n v_mov_b32 v1, 0\n global_store_b32 v1, v1, s[2:3]",
        "write of 4 bytes at 0x7f0000000",
    ),
    "an atomic on unmapped memory": (GLOBAL + "global_atomic_add_u32 v[0:1], v2, off", "of 4 bytes at 0x0"),
    "a scalar read of unmapped memory": (
        "s_mov_b64 s[2:3], 64\n s_load_b64 s[4:5], s[2:3], 0x0", "read of 8 bytes at 0x40",
    ),
    "a read behind the end of LDS": ("v_mov_b32 v1, 256\n ds_load_b32 v2, v1", "at 0x100"),
    "a write over the end of LDS": ("v_mov_b32 v1, 252\n ds_store_b64 v1, v[2:3]", "at 0xfc"),
    "scratch beyond what a lane has": ("scratch_load_b32 v2, off, off offset:16", "at 0x10"),
    "flat memory in the aperture of LDS": (
        "v_mov_b32 v0, 0x200\n v_mov_b32 v1, 0x10000\n flat_load_b32 v2, v[0:1]", "at 0x200",
    ),
    "flat memory that is not mapped": (GLOBAL + "flat_load_b32 v2, v[0:1]", "read of 4 bytes at 0x0, which"),
}


@pytest.mark.parametrize("name", INSTRUCTIONS)
@pytest.mark.parametrize("translated", [False, True], ids=["interpreter", "translation"])
def test_an_instruction_that_fails_is_named_with_its_place(name, translated):
    text, message = INSTRUCTIONS[name]
    dispatch = made(text, size=32).dispatch()
    with pytest.raises((EmulationError, MemoryFault)) as error:
        (run if translated else interpreter).run(dispatch)
    found = str(error.value)
    assert found.startswith("kernel, workgroup (0, 0, 0), wave 0, at 0x"), found
    assert message in found, found


def test_what_is_never_reached_is_no_error():
    """Data between instructions, and a branch that is not taken."""
    text = "s_cmp_eq_u32 0, 1\n s_cbranch_scc1 there\n s_endpgm\n there:\n .long 0xbfff0000"
    for kind in (interpreter, run):
        kind.run(made(text, size=32).dispatch())


# -- packets: engine, queue, address -------------------------------------------------------------------------
@pytest.fixture
def card():
    with opened(EmulatedRadeon([KINDS["gfx1100"]])) as device:
        yield device


def rung(queue, packets):
    """Put bytes into a ring; the error that the emulator ends with, and the address of the ring."""
    queue.put(packets)
    with pytest.raises(EmulatorError) as error:
        queue.ring_doorbell()
    return str(error.value)


def place(queue):
    return f"{queue._ring_memory.address:#x}"


PM4 = {
    "an unknown opcode": (struct.pack("<2I", 0xC000FF00, 0), "op 0xff"),
    "a packet of type 0": (struct.pack("<2I", 0x00000000, 0), "type"),
    "a packet that is only decoded": (
        bytes(pm4.AtomicMem(address=64)), "AtomicMem at {} is not emulated: AtomicMem(",
    ),
    "an indirect buffer without VALID": (
        bytes(pm4.IndirectBuffer(address=64, size_dwords=1, valid=0)), "INDIRECT_BUFFER at {} without VALID",
    ),
    "a wait for a register": (bytes(pm4.WaitRegMem(memory=0, address=64)), "WaitRegMem at {} of a register"),
    "data to a register": (
        bytes(pm4.WriteData(to=pm4.WriteTo.REGISTER, address=64, values=[1])),
        "WRITE_DATA at {} to <WriteTo.REGISTER",
    ),
    "data from a register": (
        bytes(pm4.CopyData(from_=pm4.CopyFrom.REGISTER, source=1, destination=64)),
        "COPY_DATA at {} from <CopyFrom.REGISTER",
    ),
    "a DMA to the GDS": (bytes(pm4.DmaData(to=pm4.DmaTo.GDS, size_bytes_=4)), "DMA_DATA at {} of this form"),
    "a dispatch without work-items": (
        bytes(pm4.DispatchDirect(groups_x=1, groups_y=1, groups_z=1, initiator=0x1005)),
        "dispatch at {}: a workgroup of 0 x 0 x 0 work-items",
    ),
    "a dispatch that starts nothing": (
        bytes(pm4.DispatchDirect(groups_x=1, groups_y=1, groups_z=1)),
        "dispatch at {}: the dispatch initiator",
    ),
}


@pytest.mark.parametrize("name", PM4)
def test_a_pm4_packet_that_is_not_known_is_named_with_its_address(card, name):
    data, message = PM4[name]
    found = rung(card.compute, data)
    assert found.startswith("gfx1100 Pm4Engine of queue 0: "), found
    assert message.format(place(card.compute)) in found and place(card.compute) in found, found


def test_a_packet_in_an_indirect_buffer_is_named_with_its_own_address(card):
    inner = filled(card, bytes(pm4.Nop()) + struct.pack("<2I", 0xC000FF00, 0))
    found = rung(card.compute, bytes(pm4.IndirectBuffer(address=inner.address, size_dwords=3)))
    assert f"at {inner.address + 4:#x}: " in found and "op 0xff" in found


SDMA = {
    "an unknown opcode": (struct.pack("<2I", 0xEE, 0), "op 0xee"),
    "a packet that is only decoded": (bytes(sdma.SrbmWrite()), "SrbmWrite at {} is not emulated"),
    "a wait for a register": (bytes(sdma.PollRegMem(memory=0, address=64)), "POLL_REGMEM of a register"),
    "an atomic operation": (bytes(sdma.Atomic(atomic=1, address=64)), "ATOMIC with opcode 1"),
    "data that is not aligned": (
        bytes(sdma.WriteLinear(destination=2, values=[1])),
        "WriteLinear at 0x2, which is not aligned to 4",
    ),
    "an indirect buffer in a wrong place": (
        bytes(sdma.Indirect(address=64, size_dwords=8)),
        "INDIRECT at {} does not end on a boundary of 8 dwords",
    ),
}


@pytest.mark.parametrize("name", SDMA)
def test_an_sdma_packet_that_is_not_known_is_named_with_its_address(card, name):
    data, message = SDMA[name]
    found = rung(card.copies, data)
    assert found.startswith("gfx1100 SdmaEngine of queue 1: "), found
    assert message.format(place(card.copies)) in found and place(card.copies) in found, found


def test_a_write_pointer_between_dwords(card):
    assert "the write pointer 0x2 is not a multiple of 4" in rung(card.copies, b"\0\0")


INDIRECT = int.from_bytes(bytes(pm4.IndirectBuffer())[:4], "little")
AQL = {
    "an unknown type": (struct.pack("<H62x", 7), "type"),
    "a call of the host": (bytes(aql.AgentDispatch()), "AgentDispatch at {} is not emulated"),
    "a vendor packet": (bytes(aql.VendorPm4(format=3, ib_header=INDIRECT)), "packet at {} of format 3"),
}


@pytest.mark.parametrize("name", AQL)
def test_an_aql_packet_that_is_not_known_is_named_with_its_address(name):
    data, message = AQL[name]
    with opened(EmulatedRadeon([KINDS["gfx942"]])) as device:
        found = rung(device.compute, data)
        assert found.startswith("gfx942 "), found
        assert "queue 0" in found and message.format(place(device.compute)) in found, found


@pytest.mark.parametrize("check", [0, 1])
def test_a_fault_of_a_card_names_the_wave_in_checked_mode_too(check, monkeypatch):
    found, report = [], EmulatedRadeon._report

    def noted(self, fault, *rest):
        found.append(str(fault))
        report(self, fault, *rest)

    monkeypatch.setattr(EmulatedRadeon, "_report", noted)
    with Context(CHECK=check), opened(EmulatedRadeon([KINDS["gfx1100"]])) as device:
        with pytest.raises(CommandError):
            store_fault(device, None)
    assert "stray, workgroup (0, 0, 0), wave 0, at 0x" in found[0] and "global_store" in found[0], found


@pytest.mark.parametrize("arguments, kernel, command", [
    (["train.py"], "r_4", "python -m tiny debug train.py --kernel r_4"),
    (["my train.py", "--steps", "5"], "kernel at 0x40",
     "python -m tiny debug 'my train.py' --kernel 'kernel at 0x40' -- --steps 5"),
    (["-c"], "r_4", "python -m tiny debug PROGRAM.py --kernel r_4"),
    ([], "r_4", "python -m tiny debug PROGRAM.py --kernel r_4"),
])
def test_what_steps_to_a_kernel_is_a_line_for_the_shell(arguments, kernel, command):
    assert debug_command(arguments, kernel) == command
