"""Compute registers of each graphics generation, as `GFX11.COMPUTE_PGM_RSRC1.word(VGPRS=3)`.

They come whole from the kernel's headers (tiny.autogen.amd_gc_*). A register's `offset` is its absolute dword
index: the header's offset plus the base of its segment (vega10_ip_offset.h, navi10_ip_offset.h). SET_SH_REG
and SET_UCONFIG_REG count from the start of their windows: `sh`, `uconfig`.
"""
from types import ModuleType

from tiny.autogen import amd_gc_9_4_3, amd_gc_11_0_0, amd_gc_12_0_0, amd_pm4
from tiny.hcq.layout import LayoutError, Register, RegisterFile


def _file(name: str, header: ModuleType) -> RegisterFile:
    return RegisterFile(name, {register: (getattr(header, f"GC_BASE__INST0_SEG{segment}") + offset, fields)
                               for register, (offset, segment, fields) in header.REGISTERS.items()})


GFX9 = _file("GFX9", amd_gc_9_4_3)
GFX11 = _file("GFX11", amd_gc_11_0_0)
GFX12 = _file("GFX12", amd_gc_12_0_0)
# the one place where a generation's registers are chosen: major version of gfx_target_version -> file
FILES = {9: GFX9, 11: GFX11, 12: GFX12}


def _window(register: type[Register], name: str, start: int, end: int) -> int:
    if not start <= register.offset < end:
        raise LayoutError(f"{register.__name__} at dword {register.offset:#x} is outside of the {name} "
                          f"window, "
                          f"{start:#x} ... {end - 1:#x}")
    return register.offset - start


def sh(register: type[Register]) -> int:
    """Where SET_SH_REG finds the register (nvd.h, PACKET3_SET_SH_REG_START: dword 0x2c00)."""
    return _window(register, "SH", amd_pm4.PACKET3_SET_SH_REG_START, amd_pm4.PACKET3_SET_SH_REG_END)


def uconfig(register: type[Register]) -> int:
    """Where SET_UCONFIG_REG finds the register (nvd.h, PACKET3_SET_UCONFIG_REG_START: dword 0xc000)."""
    return _window(register, "UCONFIG", amd_pm4.PACKET3_SET_UCONFIG_REG_START,
                   amd_pm4.PACKET3_SET_UCONFIG_REG_END)
