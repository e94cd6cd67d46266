"""What the encodings of all families share: how tables of numbers are written, and modifiers that take a word
of their own.
"""

from tiny.hcq.layout import Struct, bits


def numbered(text: str) -> dict[int, str]:
    """ "0x0 s_nop  0x1 s_setkill" -> {0: "s_nop", 1: "s_setkill"}"""
    words = text.split()
    return {int(number, 16): name for number, name in zip(words[::2], words[1::2], strict=True)}


class Dpp16(Struct, dwords=1):
    """Source code 250: the first operand comes from another lane of its row of 16, or of four."""

    src0 = bits(0, 0, 8)
    dpp_ctrl = bits(0, 8, 9)
    fetch_inactive = bits(0, 18, 1)
    bound_ctrl = bits(0, 19, 1)
    src0_neg = bits(0, 20, 1)
    src0_abs = bits(0, 21, 1)
    src1_neg = bits(0, 22, 1)
    src1_abs = bits(0, 23, 1)
    bank_mask = bits(0, 24, 4)
    row_mask = bits(0, 28, 4)


class Dpp8(Struct, dwords=1):
    """Source codes 233 and 234 (inactive lanes are read too): any lane of its eight, three bits for each."""

    src0 = bits(0, 0, 8)
    lanes = bits(0, 8, 24)


DPP16, DPP8, DPP8_FI, SDWA, LITERAL = 250, 233, 234, 249, 255


class _SdwaSources(Struct, dwords=1):
    """*_sel: 0 ... 3 a byte, 4 and 5 a word, 6 all of it; *_scalar: an SGPR instead of a VGPR."""

    src0 = bits(0, 0, 8)
    src0_sel = bits(0, 16, 3)
    src0_sext = bits(0, 19, 1)
    src0_neg = bits(0, 20, 1)
    src0_abs = bits(0, 21, 1)
    src0_scalar = bits(0, 23, 1)
    src1_sel = bits(0, 24, 3)
    src1_sext = bits(0, 27, 1)
    src1_neg = bits(0, 28, 1)
    src1_abs = bits(0, 29, 1)
    src1_scalar = bits(0, 31, 1)


class Sdwa(_SdwaSources, dwords=1):
    """Source code 249 (gfx9): bytes and words of the operands. dst_sel: as of the sources.

    dst_unused: what becomes of the rest of the destination: 0 zeros, 1 the sign, 2 it stays
    """

    dst_sel = bits(0, 8, 3)
    dst_unused = bits(0, 11, 2)
    clamp = bits(0, 13, 1)
    omod = bits(0, 14, 2)


class SdwaCompare(_SdwaSources, dwords=1):
    """The same for comparisons: a scalar destination in place of the selections of a vector one."""

    sdst = bits(0, 8, 7)
    has_sdst = bits(0, 15, 1)
