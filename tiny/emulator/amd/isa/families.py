"""The one place where a generation's instruction set is chosen."""

from tiny.emulator.amd.isa.decode import Family
from tiny.emulator.amd.isa.gfx9 import GFX9
from tiny.emulator.amd.isa.gfx11 import GFX11
from tiny.emulator.amd.isa.gfx12 import GFX12

# EF_AMDGPU_MACH, the low byte of e_flags -> (processor, family). Source: LLVM, "User Guide for AMDGPU
# Backend".
MACHINES = {
    0x41: ("gfx1100", GFX11),
    0x46: ("gfx1101", GFX11),
    0x47: ("gfx1102", GFX11),
    0x44: ("gfx1103", GFX11),
    0x43: ("gfx1150", GFX11),
    0x4A: ("gfx1151", GFX11),
    0x48: ("gfx1200", GFX12),
    0x4E: ("gfx1201", GFX12),
    0x4C: ("gfx942", GFX9),
}


def family_of(machine: int) -> Family:
    """The family of a code object. ValueError for one that is not emulated."""
    if machine not in MACHINES:
        known = ", ".join(name for name, _ in MACHINES.values())
        raise ValueError(f"machine {machine:#x} is not emulated; {known} are")
    return MACHINES[machine][1]


def family_named(processor: str) -> Family:
    """The family of a processor by its name."""
    for name, family in MACHINES.values():
        if name == processor:
            return family
    raise ValueError(f"{processor} is not emulated; {', '.join(name for name, _ in MACHINES.values())} are")
