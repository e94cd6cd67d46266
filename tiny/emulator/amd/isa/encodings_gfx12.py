"""The encodings of gfx12 that differ from those of gfx11.

Source: AMD, "RDNA4 Instruction Set Architecture" (2025), "Microcode Formats". Memory instructions say how to
use the caches by `th` (temporal hint) and `scope`; an atomic returns what was there where the lowest bit of
`th` is set.
"""

from tiny.emulator.amd.isa import encodings_gfx11 as gfx11
from tiny.hcq.layout import Struct, bits


class SMEM(Struct, dwords=2, encoding=0b111101):
    sbase = bits(0, 0, 6)
    sdata = bits(0, 6, 7)
    op = bits(0, 13, 6)
    scope = bits(0, 21, 2)
    th = bits(0, 23, 2)
    encoding = bits(0, 26, 6)
    offset = bits(1, 0, 24)
    soffset = bits(1, 25, 7)


class FLAT(Struct, dwords=3, encoding=0b111011):
    """VFLAT, VSCRATCH and VGLOBAL of the manual."""

    saddr = bits(0, 0, 7)
    op = bits(0, 14, 8)
    segment = bits(0, 24, 2)
    encoding = bits(0, 26, 6)
    vdst = bits(1, 0, 8)
    sve = bits(1, 17, 1)
    scope = bits(1, 18, 2)
    th = bits(1, 20, 3)
    data = bits(1, 23, 8)
    addr = bits(2, 0, 8)
    offset = bits(2, 8, 24)


class MUBUF(Struct, dwords=3, encoding=0b110001):
    """VBUFFER of the manual."""

    soffset = bits(0, 0, 7)
    op = bits(0, 14, 8)
    tfe = bits(0, 22, 1)
    encoding = bits(0, 26, 6)
    vdata = bits(1, 0, 8)
    rsrc = bits(1, 9, 9)
    scope = bits(1, 18, 2)
    th = bits(1, 20, 3)
    format = bits(1, 23, 7)
    offen = bits(1, 30, 1)
    idxen = bits(1, 31, 1)
    vaddr = bits(2, 0, 8)
    offset = bits(2, 8, 24)


_REPLACED = {"SMEM": SMEM, "FLAT": FLAT, "MUBUF": MUBUF}
ENCODINGS = tuple(_REPLACED.get(layout.__name__, layout) for layout in gfx11.ENCODINGS)
GRAPHICS = {
    (26, 0b110100): "VIMAGE, an image",
    (26, 0b111001): "VSAMPLE, an image",
    (26, 0b111110): "VEXPORT, an export",
    (24, 0b11001110): "VDSDIR, parameters of pixels",
    (24, 0b11001101): "VINTERP, interpolation",
}
