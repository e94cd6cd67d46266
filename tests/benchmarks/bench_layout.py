"""What it costs to write a launch: through its declaration, and as a recording with eight fields changed.
`make bench`.

Targets: 5 us for the about 30 dwords of a launch, 1.5 us for the copy with eight patches.
"""
from tiny.hcq.amd import pm4
from tiny.hcq.amd.dispatch import (
    Launch,
    SetGrid,
    SetKernarg,
    SetLimits,
    SetProgram,
    SetResources,
    SetResources3,
)
from tiny.hcq.layout import stamp

MEMORY = bytearray(4096)
FIELDS = dict(code=0x7f00_0000_1000, rsrc1=0x60af0000, rsrc2=0x90, rsrc3=0, kernarg=0x7f00_0000_2000,
              limits=0,
              threads_x=256, threads_y=1, threads_z=1, groups_x=64, groups_y=1, groups_z=1, initiator=0x8005)
PATCHED = ("code", "kernarg", "rsrc1", "rsrc2", "threads_x", "groups_x", "groups_y", "groups_z")


def test_encode_a_launch_of_31_dwords(benchmark):
    """One call for all of its packets."""
    assert benchmark(lambda: Launch.encode(
        MEMORY, 0, code=0x7f00_0000_1000, rsrc1=0x60af0000, rsrc2=0x90, rsrc3=0, kernarg=0x7f00_0000_2000,
        limits=0,
        threads_x=256, threads_y=1, threads_z=1, groups_x=64, groups_y=1, groups_z=1,
        initiator=0x8005)) == 124


def test_encode_its_seven_packets(benchmark):
    """The same words, one call for each packet."""
    def encode() -> int:
        at = SetProgram.encode(MEMORY, 0, code=0x7f00_0000_1000)
        at += SetResources.encode(MEMORY, at, rsrc1=0x60af0000, rsrc2=0x90)
        at += SetResources3.encode(MEMORY, at, rsrc3=0)
        at += SetKernarg.encode(MEMORY, at, kernarg=0x7f00_0000_2000)
        at += SetLimits.encode(MEMORY, at, limits=0)
        at += SetGrid.encode(MEMORY, at, threads_x=256, threads_y=1, threads_z=1)
        return at + pm4.DispatchDirect.encode(MEMORY, at, groups_x=64, groups_y=1, groups_z=1,
                                              initiator=0x8005)
    assert benchmark(encode) == 124


def test_stamp_a_launch_with_8_patches(benchmark):
    """A copy of the recorded words into the ring, eight fields filled in."""
    write = stamp(bytes(Launch(**FIELDS)), [(Launch.fields[name], 0) for name in PATCHED])
    values = tuple(FIELDS[name] for name in PATCHED)
    assert benchmark(lambda: write(MEMORY, 0, values)) == 124


def test_decode_a_launch(benchmark):
    """Seven packets out of a buffer."""
    data = bytes(Launch(**FIELDS))
    assert len(benchmark(lambda: list(pm4.Pm4.stream(data)))) == 7
