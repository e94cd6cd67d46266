"""The encodings of gfx942 that differ from those of gfx11.

Source: AMD, "AMD Instinct MI300 Instruction Set Architecture" (2024), "Microcode Formats". sc0, sc1 and nt
say how to use the caches; an atomic returns what was there where sc0 is set. `acc`: the data are accumulation
VGPRs.
"""

from tiny.emulator.amd.isa import encodings_gfx11 as gfx11
from tiny.hcq.layout import Struct, bits


class SMEM(Struct, dwords=2, encoding=0b110000):
    """imm: `offset` counts; soffset_en: soffset too. Without imm the low 7 bits of offset name an SGPR."""

    sbase = bits(0, 0, 6)
    sdata = bits(0, 6, 7)
    soffset_en = bits(0, 14, 1)
    nv = bits(0, 15, 1)
    glc = bits(0, 16, 1)
    imm = bits(0, 17, 1)
    op = bits(0, 18, 8)
    encoding = bits(0, 26, 6)
    offset = bits(1, 0, 21)
    soffset = bits(1, 25, 7)


class VOP3(gfx11.VOP3, dwords=2, encoding=0b110100):
    """VOP3A of the manual."""


class VOP3SD(gfx11.VOP3SD, dwords=2, encoding=0b110100):
    """VOP3B of the manual."""


class VOP3P(gfx11.VOP3P, dwords=2, encoding=0b110100111):
    encoding = bits(0, 23, 9)


class MAI(Struct, dwords=2, encoding=0b110100111):
    """Matrix instructions, among VOP3P's opcodes. acc_cd: C and D are accumulation VGPRs; acc: A, B are."""

    vdst = bits(0, 0, 8)
    cbsz = bits(0, 8, 3)
    abid = bits(0, 11, 4)
    acc_cd = bits(0, 15, 1)
    op = bits(0, 16, 7)
    encoding = bits(0, 23, 9)
    src0 = bits(1, 0, 9)
    src1 = bits(1, 9, 9)
    src2 = bits(1, 18, 9)
    acc = bits(1, 27, 2)
    blgp = bits(1, 29, 3)


class DS(Struct, dwords=2, encoding=0b110110):
    offset0 = bits(0, 0, 8)
    offset1 = bits(0, 8, 8)
    gds = bits(0, 16, 1)
    op = bits(0, 17, 8)
    acc = bits(0, 25, 1)
    encoding = bits(0, 26, 6)
    addr = bits(1, 0, 8)
    data0 = bits(1, 8, 8)
    data1 = bits(1, 16, 8)
    vdst = bits(1, 24, 8)


class FLAT(Struct, dwords=2, encoding=0b110111):
    """sve: scratch has a VGPR in its address."""

    offset = bits(0, 0, 13)
    sve = bits(0, 13, 1)
    segment = bits(0, 14, 2)
    sc0 = bits(0, 16, 1)
    nt = bits(0, 17, 1)
    op = bits(0, 18, 7)
    sc1 = bits(0, 25, 1)
    encoding = bits(0, 26, 6)
    addr = bits(1, 0, 8)
    data = bits(1, 8, 8)
    saddr = bits(1, 16, 7)
    acc = bits(1, 23, 1)
    vdst = bits(1, 24, 8)


class MUBUF(Struct, dwords=2, encoding=0b111000):
    offset = bits(0, 0, 12)
    offen = bits(0, 12, 1)
    idxen = bits(0, 13, 1)
    sc0 = bits(0, 14, 1)
    sc1 = bits(0, 15, 1)
    lds = bits(0, 16, 1)
    nt = bits(0, 17, 1)
    op = bits(0, 18, 7)
    encoding = bits(0, 26, 6)
    vaddr = bits(1, 0, 8)
    vdata = bits(1, 8, 8)
    srsrc = bits(1, 16, 5)
    acc = bits(1, 23, 1)
    soffset = bits(1, 24, 8)


_OWN = {layout.__name__: layout for layout in (SMEM, VOP3, VOP3P, DS, FLAT, MUBUF)}
_ORDER = (
    "SOP1",
    "SOPC",
    "SOPP",
    "VOP3P",
    "VOP1",
    "VOPC",
    "VOP3",
    "SMEM",
    "DS",
    "FLAT",
    "MUBUF",
    "SOPK",
    "SOP2",
    "VOP2",
)
ENCODINGS = tuple(_OWN.get(name, getattr(gfx11, name)) for name in _ORDER)
GRAPHICS = {
    (26, 0b111010): "MTBUF, a typed buffer",
    (26, 0b111100): "MIMG, an image",
    (26, 0b110001): "EXP, an export",
    (26, 0b110101): "VINTRP, interpolation",
}
