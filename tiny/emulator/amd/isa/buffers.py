"""Buffer resources: what address a lane reaches, and whether it is in range, as expressions over registers.

Source: AMD, "AMD Instinct MI300 ISA" (2024) 9.1.5 and 9.1.8; "RDNA3 ISA" (2023) and "RDNA4 ISA" (2025), 9.4
"Buffer Addressing" and the tables of the buffer resource descriptor. gfx942's descriptor has no field for the
size of the elements of a swizzled buffer; it is taken as 4 bytes, as LLVM and Mesa set it for gfx9.
"""

from typing import NamedTuple

from tiny.emulator.amd.isa.expression import Value, cast, const, field, join, select
from tiny.emulator.amd.isa.lanes import lane

STRUCTURED, BY_INDEX, UNCHECKED, RAW = range(4)  # OOB_SELECT of gfx11 and gfx12


class Resource(NamedTuple):
    """The four words of a V#, in parts. All u64 but the conditions."""

    base: Value
    stride: Value
    records: Value
    swizzle: Value  # b1
    element: Value  # shift: log2 of the bytes of an element of a swizzled buffer
    index_stride: Value  # shift: log2 of the indices that stand together in a swizzled buffer
    add_lane: Value  # b1
    select: Value  # how it is checked, gfx11 and gfx12


def resource(words: list[Value], family: str) -> Resource:
    """Take the words apart."""
    low, high, records, last = words
    swizzle = field(high, 31, 1) if family == "gfx9" else field(high, 30, 2)
    add_lane = field(last, 23, 1).differs(0)
    stride = field(high, 16, 14)
    if family == "gfx9":
        stride = select(add_lane, stride | field(last, 15, 4) << 14, stride)
    wide = swizzle.equals(3)
    return Resource(
        join(low, high & 0xFFFF),
        cast(stride, "u64"),
        cast(records, "u64"),
        swizzle.differs(0),
        select(wide, const("u64", 4), const("u64", 2)),
        cast(field(last, 21, 2) + 3, "u64"),
        add_lane,
        field(last, 28, 2),
    )


class Access(NamedTuple):
    """What an instruction adds to a resource. All u64.

    scalar  the offset from an SGPR       offset  from a VGPR and the instruction
    index   from a VGPR, 0 without idxen  indexed whether it has idxen
    size    bytes of a component, each of which is checked
    """

    scalar: Value
    offset: Value
    index: Value
    indexed: bool
    size: int


def address(found: Resource, access: Access, family: str) -> Value:
    """Of the first component."""
    index = access.index + select(found.add_lane, cast(lane(), "u64"), const("u64", 0))
    linear = found.stride * index + access.offset
    inside = access.offset
    outside = access.scalar
    if family == "gfx12":  # here the scalar offset is swizzled, too
        inside, outside = access.offset + access.scalar & 0xFFFFFFFF, const("u64", 0)
        linear = linear + access.scalar
    one = const("u64", 1)
    row = index >> found.index_stride
    column = index & (one << found.index_stride) - 1
    within = inside & (one << found.element) - 1
    block = (row * found.stride + (inside >> found.element << found.element)) << found.index_stride
    swizzled = block + (column << found.element) + within
    return found.base + outside + select(found.swizzle, swizzled, linear)


def in_range(found: Resource, access: Access, place: int, family: str) -> Value:
    """Whether the component `place` bytes behind the first may be touched; b1."""
    offset = access.offset + place
    by_index = access.index < found.records
    if family == "gfx9":
        raw = offset < found.records
        structured = found.stride.differs(0) if access.indexed else const("b1", 0)
        private = const("b1", 0) if access.indexed else found.add_lane
        return private | select(structured, by_index, raw)
    end = offset + access.size
    in_stride = by_index & (end <= found.stride)
    left = select(found.records > access.scalar, found.records - access.scalar, const("u64", 0))
    raw = select(found.swizzle & found.stride.differs(0), in_stride, end <= left)
    checked = select(found.select.equals(STRUCTURED), in_stride, raw)
    checked = select(found.select.equals(BY_INDEX), by_index, checked)
    return select(found.select.equals(UNCHECKED), found.records.differs(0), checked)
