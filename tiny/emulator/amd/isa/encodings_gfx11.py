"""The encodings of gfx11, field by field.

Source: AMD, "RDNA3 Instruction Set Architecture" (2023), chapter 15, "Microcode Formats". Only those a
compute kernel can meet: no exports, images, interpolation or LDS-direct.
"""

from tiny.hcq.layout import Struct, bits


class SOP2(Struct, dwords=1, encoding=0b10):
    ssrc0 = bits(0, 0, 8)
    ssrc1 = bits(0, 8, 8)
    sdst = bits(0, 16, 7)
    op = bits(0, 23, 7)
    encoding = bits(0, 30, 2)


class SOPK(Struct, dwords=1, encoding=0b1011):
    simm16 = bits(0, 0, 16)
    sdst = bits(0, 16, 7)
    op = bits(0, 23, 5)
    encoding = bits(0, 28, 4)


class SOP1(Struct, dwords=1, encoding=0b101111101):
    ssrc0 = bits(0, 0, 8)
    op = bits(0, 8, 8)
    sdst = bits(0, 16, 7)
    encoding = bits(0, 23, 9)


class SOPC(Struct, dwords=1, encoding=0b101111110):
    ssrc0 = bits(0, 0, 8)
    ssrc1 = bits(0, 8, 8)
    op = bits(0, 16, 7)
    encoding = bits(0, 23, 9)


class SOPP(Struct, dwords=1, encoding=0b101111111):
    simm16 = bits(0, 0, 16)
    op = bits(0, 16, 7)
    encoding = bits(0, 23, 9)


class SMEM(Struct, dwords=2, encoding=0b111101):
    sbase = bits(0, 0, 6)
    sdata = bits(0, 6, 7)
    dlc = bits(0, 13, 1)
    glc = bits(0, 14, 1)
    op = bits(0, 18, 8)
    encoding = bits(0, 26, 6)
    offset = bits(1, 0, 21)
    soffset = bits(1, 25, 7)


class VOP2(Struct, dwords=1, encoding=0):
    src0 = bits(0, 0, 9)
    vsrc1 = bits(0, 9, 8)
    vdst = bits(0, 17, 8)
    op = bits(0, 25, 6)
    encoding = bits(0, 31, 1)


class VOP1(Struct, dwords=1, encoding=0b0111111):
    src0 = bits(0, 0, 9)
    op = bits(0, 9, 8)
    vdst = bits(0, 17, 8)
    encoding = bits(0, 25, 7)


class VOPC(Struct, dwords=1, encoding=0b0111110):
    src0 = bits(0, 0, 9)
    vsrc1 = bits(0, 9, 8)
    op = bits(0, 17, 8)
    encoding = bits(0, 25, 7)


class VOP3(Struct, dwords=2, encoding=0b110101):
    """Some opcodes have an SGPR for a second result where others have abs and op_sel: class VOP3SD."""

    vdst = bits(0, 0, 8)
    abs = bits(0, 8, 3)
    op_sel = bits(0, 11, 4)
    clamp = bits(0, 15, 1)
    op = bits(0, 16, 10)
    encoding = bits(0, 26, 6)
    src0 = bits(1, 0, 9)
    src1 = bits(1, 9, 9)
    src2 = bits(1, 18, 9)
    omod = bits(1, 27, 2)
    neg = bits(1, 29, 3)


class VOP3SD(Struct, dwords=2, encoding=0b110101):
    vdst = bits(0, 0, 8)
    sdst = bits(0, 8, 7)
    clamp = bits(0, 15, 1)
    op = bits(0, 16, 10)
    encoding = bits(0, 26, 6)
    src0 = bits(1, 0, 9)
    src1 = bits(1, 9, 9)
    src2 = bits(1, 18, 9)
    omod = bits(1, 27, 2)
    neg = bits(1, 29, 3)


class VOP3P(Struct, dwords=2, encoding=0b11001100):
    """op_sel_hi of the third operand stands apart, at bit 14."""

    vdst = bits(0, 0, 8)
    neg_hi = bits(0, 8, 3)
    op_sel = bits(0, 11, 3)
    op_sel_hi2 = bits(0, 14, 1)
    clamp = bits(0, 15, 1)
    op = bits(0, 16, 7)
    encoding = bits(0, 24, 8)
    src0 = bits(1, 0, 9)
    src1 = bits(1, 9, 9)
    src2 = bits(1, 18, 9)
    op_sel_hi = bits(1, 27, 2)
    neg_lo = bits(1, 29, 3)


class VOPD(Struct, dwords=2, encoding=0b110010):
    """Two instructions at once. vdsty lacks its lowest bit, which is the opposite of vdstx's."""

    srcx0 = bits(0, 0, 9)
    vsrcx1 = bits(0, 9, 8)
    opy = bits(0, 17, 5)
    op = bits(0, 22, 4)
    encoding = bits(0, 26, 6)
    srcy0 = bits(1, 0, 9)
    vsrcy1 = bits(1, 9, 8)
    vdsty = bits(1, 17, 7)
    vdstx = bits(1, 24, 8)


class DS(Struct, dwords=2, encoding=0b110110):
    offset0 = bits(0, 0, 8)
    offset1 = bits(0, 8, 8)
    gds = bits(0, 17, 1)
    op = bits(0, 18, 8)
    encoding = bits(0, 26, 6)
    addr = bits(1, 0, 8)
    data0 = bits(1, 8, 8)
    data1 = bits(1, 16, 8)
    vdst = bits(1, 24, 8)


class FLAT(Struct, dwords=2, encoding=0b110111):
    """segment: 0 flat, 1 scratch, 2 global. sve: scratch has a VGPR in its address."""

    offset = bits(0, 0, 13)
    dlc = bits(0, 13, 1)
    glc = bits(0, 14, 1)
    slc = bits(0, 15, 1)
    segment = bits(0, 16, 2)
    op = bits(0, 18, 7)
    encoding = bits(0, 26, 6)
    addr = bits(1, 0, 8)
    data = bits(1, 8, 8)
    saddr = bits(1, 16, 7)
    sve = bits(1, 23, 1)
    vdst = bits(1, 24, 8)


class MUBUF(Struct, dwords=2, encoding=0b111000):
    offset = bits(0, 0, 12)
    slc = bits(0, 12, 1)
    dlc = bits(0, 13, 1)
    glc = bits(0, 14, 1)
    op = bits(0, 18, 8)
    encoding = bits(0, 26, 6)
    vaddr = bits(1, 0, 8)
    vdata = bits(1, 8, 8)
    srsrc = bits(1, 16, 5)
    tfe = bits(1, 21, 1)
    offen = bits(1, 22, 1)
    idxen = bits(1, 23, 1)
    soffset = bits(1, 24, 8)


# the longest prefix first, so that the first match is the right one
ENCODINGS = (SOP1, SOPC, SOPP, VOP3P, VOP1, VOPC, VOP3, VOPD, SMEM, DS, FLAT, MUBUF, SOPK, SOP2, VOP2)

# encodings that are known by name and refused: (lowest bit, prefix) of the first word -> what it is
GRAPHICS = {
    (26, 0b111010): "MTBUF, a typed buffer",
    (26, 0b111100): "MIMG, an image",
    (26, 0b111110): "EXP, an export",
    (24, 0b11001110): "LDSDIR, parameters of pixels",
    (24, 0b11001101): "VINTERP, interpolation",
}
