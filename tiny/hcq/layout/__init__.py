"""Words that hardware reads, declared once: packets, registers and memory structures.

One declaration encodes (one checked `struct.pack_into`), decodes, says where a field lies so that a template
can be patched, prints itself with names, and tells an emulator what arrived:

    class Family(Packet, key="op"):                 # what all packets of one command processor share
        op    = bits(0, 8, 8)                       # dword, lowest bit, width
        count = length(0, 16, 14, bias=-2)          # filled in: dwords of the packet plus the bias
    class WriteData(Family, op=0x37, dwords=4):
        engine  = bits(1, 30, 2, Engine)            # values are shown as members of the enumeration
        address = u64(2)

    WriteData.encode(ring, offset, address=0x1000)  # -> bytes written
    WriteData.address.offset                        # -> 8, where a patch goes
    for packet in Family.stream(memory): print(packet)

Everything is little-endian. Declaring checks: fields that overlap, leave the packet or share an opcode raise
LayoutError at import, and a value that does not fit is a LayoutError that names the field and its width.

`field` has the fields, `base` what all layouts share, `compiled` and `stamp` how they become functions,
`packet` and `register` the two kinds that are found by a number.
"""
from tiny.hcq.layout.base import Layout, Struct, sequence
from tiny.hcq.layout.field import (
    Field,
    LayoutError,
    Truncated,
    bits,
    high_first,
    length,
    repeated,
    span,
    tail,
    u32,
    u64,
)
from tiny.hcq.layout.packet import Packet
from tiny.hcq.layout.register import Register, RegisterFile
from tiny.hcq.layout.stamp import stamp

__all__ = ["Field", "Layout", "LayoutError", "Packet", "Register", "RegisterFile", "Struct", "Truncated",
           "bits", "high_first", "length", "repeated", "sequence", "span", "stamp", "tail", "u32", "u64"]
