"""Layouts: what a declaration checks, and that encode, decode, patch places and text agree."""
import enum
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiny.hcq.layout import (
    LayoutError,
    Packet,
    Register,
    RegisterFile,
    Struct,
    bits,
    high_first,
    length,
    repeated,
    sequence,
    span,
    tail,
    u32,
    u64,
)


class DataSel(enum.IntEnum):
    NONE, U32, U64, CLOCK = range(4)


class Command(Packet, key="op"):
    op = bits(0, 8, 8)
    count = length(0, 16, 14, bias=-2)
    type = bits(0, 30, 2)


class Release(Command, op=0x49, type=3, dwords=8):
    event_type = bits(1, 0, 6, default=20)
    event_index = bits(1, 8, 4, default=5)
    data_sel = bits(2, 29, 3, DataSel)
    address = u64(3)
    value = u64(5)


class SetRegisters(Command, op=0x76, type=3, dwords=2):
    first = bits(1, 0, 16)
    values = tail(2)


class Pointers(Command, op=0x77, type=3, dwords=2):
    mark = u32(1)
    pointers = tail(2, "Q")


class Copy(Packet, key=("op", "sub_op")):
    op = bits(0, 0, 8)
    sub_op = bits(0, 8, 8)


class CopyLinear(Copy, op=1, sub_op=0, dwords=3):
    source = u64(1)


def test_encode_writes_the_words_the_declaration_says():
    memory = bytearray(40)
    written = Release.encode(memory, 4, data_sel=DataSel.U64, address=0x7f0000001000, value=7)
    header = 3 << 30 | 6 << 16 | 0x49 << 8
    assert written == 32
    assert struct.unpack_from("<IIIQQI", memory, 4) == (header, 20 | 5 << 8, 2 << 29, 0x7f0000001000, 7, 0)
    assert memory[:4] == memory[36:] == bytes(4)


def test_text_names_fields_and_members_and_leaves_defaults_out():
    packet = Release(data_sel=DataSel.U64, address=0x7f0000001000, value=7)
    assert str(packet) == "Release(data_sel=U64, address=0x7f0000001000, value=0x7)"
    assert str(SetRegisters(values=(1, 0x20))) == "SetRegisters(values=[0x1, 0x20])"


@given(st.integers(0, 63), st.integers(0, 15), st.sampled_from(DataSel), st.integers(0, 2**64 - 1),
       st.integers(0, 2**64 - 1))
def test_decode_gives_back_what_encode_took(event_type, event_index, data_sel, address, value):
    packet = Release(event_type=event_type, event_index=event_index, data_sel=data_sel, address=address,
                     value=value)
    again = Release.decode(bytes(packet))
    assert again == packet and hash(again) == hash(packet)
    assert (again.event_type, again.data_sel, again.value, again.op) == (event_type, data_sel, value, 0x49)


@given(st.integers(0, 2**16 - 1), st.lists(st.integers(0, 2**32 - 1), max_size=20),
       st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_a_stream_decodes_packets_of_any_length_in_order(first, values, pointers):
    packets = [SetRegisters(first=first, values=values), Release(value=1), Pointers(pointers=pointers)]
    data = b"".join(map(bytes, packets))
    decoded = list(Command.stream(data))
    assert decoded == packets
    assert [p.at for p in decoded] == [0, len(bytes(packets[0])), len(bytes(packets[0])) + 32]


def test_a_field_says_where_a_patch_goes():
    data = bytearray(bytes(Release()))
    struct.pack_into("<Q", data, Release.value.offset, 99)
    assert Release.decode(data).value == 99
    assert (Release.value.offset, Release.value.size) == (20, 8)
    assert (Release.data_sel.offset, Release.data_sel.size, Release.data_sel.mask) == (8, 4, 0xe0000000)


def test_a_family_may_have_a_key_of_several_fields():
    assert list(Copy.stream(bytes(CopyLinear(source=5)))) == [CopyLinear(source=5)]


@pytest.mark.parametrize("values, text", [
    (dict(event_type=99), "Release.event_type: 99 does not fit 6 bits, 0 ... 0x3f"),
    (dict(value=-1), "Release.value: -1 does not fit 64 bits"),
    (dict(address=1.5), "Release.address: an integer is needed, not 1.5"),
])
def test_a_value_that_does_not_fit_names_its_field(values, text):
    for attempt in (lambda: Release(**values), lambda: Release.encode(bytearray(32), 0, **values)):
        with pytest.raises(LayoutError, match=text.replace(".", r"\.")):
            attempt()


def test_a_bad_item_of_a_tail_names_its_field():
    with pytest.raises(LayoutError, match="SetRegisters.values: 4294967296 does not fit 32 bits"):
        SetRegisters.encode(bytearray(64), 0, values=[1 << 32])


def test_an_unknown_field_is_an_error_that_lists_the_known():
    with pytest.raises(LayoutError, match="no free field adress; it has event_type, .* address"):
        Release(adress=1)


def test_encode_past_the_end_of_the_buffer_is_an_error():
    with pytest.raises(struct.error, match="requires a buffer of at least"):
        Release.encode(bytearray(40), 16)


def test_instances_are_immutable():
    with pytest.raises(AttributeError, match="immutable"):
        Release().value = 1


def declare_overlap():
    class Bad(Struct, dwords=2):
        low = bits(0, 0, 9)
        high = bits(0, 8, 4)


def declare_overlap_of_u64():
    class Bad(Struct, dwords=3):
        address = u64(0)
        flag = bits(1, 31, 1)


def declare_outside():
    class Bad(Struct, dwords=2):
        address = u64(1)


def declare_leaving_the_word():
    class Bad(Struct, dwords=1):
        field = bits(0, 30, 3)


def declare_leaving_two_words():
    class Bad(Struct, dwords=4):
        field = bits(0, 30, 35)


def declare_three_words():
    class Bad(Struct, dwords=3):
        low = span(20, 20)
        high = span(60, 10)


def declare_a_form_with_another_opcode():
    class Bad(Release, op=0x50, dwords=8):
        pass


def declare_same_opcode():
    class Bad(Command, op=0x49, type=3, dwords=2):
        pass


def declare_without_opcode():
    class Bad(Command, type=3, dwords=2):
        pass


def declare_over_the_header():
    class Bad(Command, op=0x11, type=3, dwords=2):
        field = bits(0, 10, 2)


def declare_a_tail_in_the_middle():
    class Bad(Command, op=0x11, type=3, dwords=3):
        values = tail(2)


def declare_a_reserved_name():
    class Bad(Struct, dwords=1):
        items = u32(0)


def declare_a_default_that_does_not_fit():
    class Bad(Struct, dwords=1):
        field = bits(0, 0, 3, default=8)


@pytest.mark.parametrize("declare, text", [
    (declare_overlap, "Bad.high: overlaps low"),
    (declare_overlap_of_u64, "Bad.flag: overlaps address"),
    (declare_outside, "Bad.address: dword 1 is outside 2 dwords"),
    (declare_leaving_the_word,
     "Bad.field: dword 0 is outside 1 dwords; it has 3 bits from bit 30 of dword 0"),
    (declare_leaving_two_words, "Bad.field: bits 30 ... 64 leave the word"),
    (declare_three_words, "Bad: fields cross from dword 0 to 1 and on to 2"),
    (declare_a_form_with_another_opcode, "Bad: a form of Release keeps its op"),
    (declare_same_opcode, "Bad: Release has the same op"),
    (declare_without_opcode, "Bad: a Command needs op=..."),
    (declare_over_the_header, "Bad.field: overlaps op"),
    (declare_a_tail_in_the_middle, "Bad.values: a tail starts at the end, dword 3"),
    (declare_a_reserved_name, "Bad.items: the name has a meaning"),
    (declare_a_default_that_does_not_fit, "Bad.field: 8 does not fit 3 bits"),
])
def test_a_declaration_that_contradicts_itself_fails_at_once(declare, text):
    with pytest.raises(LayoutError, match=text):
        declare()


def test_words_that_are_no_packet_are_an_error_with_the_place():
    good = bytes(SetRegisters(values=[1]))
    with pytest.raises(LayoutError, match="Command: no packet has op 0x0, found at offset 0xc"):
        list(Command.stream(good + bytes(4)))
    with pytest.raises(LayoutError, match="2 bytes at offset 0xc are no packet"):
        list(Command.stream(good + bytes(2)))
    with pytest.raises(LayoutError, match=r"Release at offset 0x0: truncated, it has 32 bytes and 8 are "
                                          r"left; data_sel "
                                          r"\(3 bits from bit 29 of dword 2\) is missing"):
        list(Command.stream(bytes(Release())[:8]))
    with pytest.raises(LayoutError, match="SetRegisters at offset 0x0: truncated, its 14-bit count says 12 "
                                          "bytes and 8"):
        list(Command.stream(good[:8]))
    with pytest.raises(LayoutError, match="Release at offset 0x0: its 14-bit count says 12 bytes, declared "
                                          "are 32"):
        list(Command.stream(struct.pack("<I", 3 << 30 | 1 << 16 | 0x49 << 8) + bytes(40)))


def test_an_unknown_member_of_an_enumeration_stays_a_number():
    data = bytearray(bytes(Release()))
    data[11] = 0xff
    assert Release.decode(data).data_sel == 7
    assert "data_sel=0x7" in str(Release.decode(data))


class Gc(Register):
    """A register file."""


class RSRC1(Gc, offset=0x1bb2):
    VGPRS = 5, 0
    SGPRS = 9, 6
    MODE = 31, 30, DataSel


def test_a_register_reads_like_the_manual_page():
    word = RSRC1.word(VGPRS=3, SGPRS=2, MODE=DataSel.U64)
    assert word == 3 | 2 << 6 | 2 << 30
    assert str(RSRC1.parse(word)) == "RSRC1(VGPRS=0x3, SGPRS=0x2, MODE=U64)"
    assert Gc.at_offset(0x1bb2) is RSRC1 and Gc.at_offset(1) is None
    with pytest.raises(LayoutError, match="RSRC1.VGPRS: 64 does not fit 6 bits"):
        RSRC1.word(VGPRS=64)


class Wide(Struct, dwords=4):
    """Fields at any bit: in units, across words, upper half first, repeated."""
    address = span(2, 38, unit=4)
    size = span(42, 21)
    target = high_first(2, 49)


class Table(Struct, dwords=4):
    valid = repeated(4, span(0, 1), stride=1)
    start = repeated(2, span(32, 24, unit=256), stride=32)


def test_fields_lie_across_words_and_in_units():
    data = bytes(Wide(address=0x12_3456_789c, size=0x1f_ffff, target=0x1_2345_6789_abcd))
    low, high_word, low_word = struct.unpack("<QII", data)
    assert low == 0x12_3456_789c | 0x1f_ffff << 42
    assert (high_word, low_word) == (0x12345, 0x6789abcd)
    assert Wide.decode(data) == Wide(address=0x12_3456_789c, size=0x1f_ffff, target=0x1_2345_6789_abcd)
    assert (Wide.address.size, Wide.target.mask) == (8, 0xffffffff_0001ffff)
    with pytest.raises(LayoutError, match="Wide.address: 0x6 is no multiple of 4, the unit of its 38 bits"):
        Wide.encode(bytearray(16), address=6)
    with pytest.raises(LayoutError, match="Wide.address: .* does not fit 38 bits, 0 ... 0xfffffffffc"):
        Wide(address=1 << 40)
    with pytest.raises(LayoutError, match="Wide.target: .* does not fit 49 bits"):
        Wide.encode(bytearray(16), target=1 << 49)


def test_repeated_fields_are_numbered():
    assert list(Table.fields) == ["valid_0", "valid_1", "valid_2", "valid_3", "start_0", "start_1"]
    assert struct.unpack("<4I", bytes(Table(valid_2=1, start_1=0x1200))) == (4, 0, 0x12, 0)


def test_a_form_of_a_packet_names_its_tail_and_decodes_as_the_packet():
    class SetPair(SetRegisters, dwords=4, first=7):
        values = None
        low = u32(2)
        high = u32(3)

    data = bytes(SetPair(low=1, high=2))
    assert list(Command.stream(data)) == [SetRegisters(first=7, values=(1, 2))]


def test_a_sequence_is_its_packets_one_after_another():
    class SetPair(SetRegisters, dwords=4, first=7):
        values = None
        low = u32(2)
        high = u32(3)

    joined = sequence("Joined", SetPair, Release)
    data = bytearray(joined.size_bytes)
    assert joined.encode(data, low=3, value=9) == 48
    assert list(Command.stream(data)) == [SetRegisters(first=7, values=(3, 0)), Release(value=9)]
    assert joined.fields["value"].offset == 16 + Release.value.offset
    with pytest.raises(LayoutError, match="Joined: Release.event_type is a field of an earlier part too"):
        sequence("Joined", Release, Release)
    with pytest.raises(LayoutError, match="Joined: SetRegisters.values is a tail"):
        sequence("Joined", SetRegisters)


def test_a_family_made_from_a_family_knows_its_packets_and_may_replace_them():
    class Newer(Command, key="op"):
        """The same headers, one packet changed."""

    class NewerRelease(Newer, op=0x49, type=3, dwords=9):
        more = u32(8)

    data = bytes(SetRegisters(values=[1])) + bytes(NewerRelease(more=5))
    assert list(Newer.stream(data)) == [SetRegisters(values=[1]), NewerRelease(more=5)]
    assert list(Command.stream(bytes(Release()))) == [Release()]


def test_a_length_wraps_as_hardware_has_it():
    class Nop(Command, op=0x10, type=3, dwords=1):
        payload = tail(1)

    assert bytes(Nop()) == struct.pack("<I", 3 << 30 | 0x3fff << 16 | 0x10 << 8)
    assert list(Command.stream(bytes(Nop()) + bytes(Nop(payload=[1, 2])))) == [Nop(), Nop(payload=[1, 2])]


def test_a_register_file_is_declared_from_a_table_as_it_is_used():
    gfx = RegisterFile("gfx", {"RSRC1": (0x2e12, {"VGPRS": (0, 6), "64BIT": (31, 1)}), "DIM_X": (0x2e01, {})})
    assert gfx.RSRC1.word(VGPRS=5, x64BIT=1) == 5 | 1 << 31
    assert gfx.RSRC1.offset == 0x2e12 and gfx.at_offset(0x2e12) is gfx.RSRC1 and gfx.at_offset(3) is None
    assert list(gfx) == ["RSRC1", "DIM_X"]
    with pytest.raises(AttributeError, match="gfx has no register RSRC9; the generated table has 2"):
        _ = gfx.RSRC9
