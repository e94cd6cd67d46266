"""Code objects for the bench and the tests: an ELF file, linked or not, as one image with its kernels.

A driver has a loader of its own; this one is kept apart from it so that neither inherits the other's
mistakes. Source: LLVM, "User Guide for AMDGPU Backend", relocation records and kernel descriptor.
"""

from typing import NamedTuple

from tiny import objfile
from tiny.emulator.amd.isa.decode import Family
from tiny.emulator.amd.isa.descriptor import KernelDescriptor, UserValues, user_data
from tiny.emulator.amd.isa.families import family_of
from tiny.emulator.amd.isa.memory import AddressSpace
from tiny.emulator.amd.isa.state import Kernel
from tiny.objfile import ObjectError, ObjectFile

PAGE = 4096
# relocation -> (name, bytes, relative to the place, shift)
RELOCATIONS = {
    1: ("ABS32_LO", 4, False, 0),
    2: ("ABS32_HI", 4, False, 32),
    3: ("ABS64", 8, False, 0),
    4: ("REL32", 4, True, 0),
    5: ("REL64", 8, True, 0),
    6: ("ABS32", 4, False, 0),
    10: ("REL32_LO", 4, True, 0),
    11: ("REL32_HI", 4, True, 32),
}


class Image(NamedTuple):
    """A loaded code object: `data` belongs at `address`; symbols: name -> offset in it."""

    data: bytearray
    address: int
    symbols: dict[str, int]
    family: Family

    @property
    def kernels(self) -> list[str]:
        """The names of its kernels. ObjectError if it has none."""
        names = [each.removesuffix(".kd") for each in self.symbols if each.endswith(".kd")]
        if not names:
            raise ObjectError("the code object has no kernel; assembly needs .amdhsa_kernel, or none of it")
        return names

    def kernel(self, name: str) -> Kernel:
        """The kernel of that name. ObjectError that lists the kernels if there is none."""
        if f"{name}.kd" not in self.symbols:
            raise ObjectError(f"there is no kernel {name}; there are {', '.join(self.kernels)}")
        found = self.descriptor(name)
        return Kernel(
            name,
            self.family,
            bytes(self.data),
            self.address,
            found.pgm_rsrc1,
            found.pgm_rsrc2,
            found.entry(self.symbols[f"{name}.kd"]),
            found.wave_size,
            found.group_segment,
            found.private_segment,
        )

    def descriptor(self, name: str) -> KernelDescriptor:
        return KernelDescriptor.decode(self.data, self.symbols[f"{name}.kd"])

    def user_data(self, name: str, kernarg: int, memory: AddressSpace) -> tuple[int, ...]:
        """The user SGPRs that the kernel asks for. kernarg: address of its arguments in `memory`. No packet
        and no queue is there, their addresses are 0.
        """
        wanted = self.descriptor(name)
        values = UserValues(kernarg, private_segment_bytes=wanted.private_segment)

        def read_u32(address: int) -> int:
            return int.from_bytes(memory.read(address, 4), "little")

        return user_data(wanted, values, read_u32)


def load(data: bytes, address: int) -> Image:
    """Place the sections of a code object one after another and apply its relocations."""
    parsed = objfile.parse(data)
    if parsed.machine != objfile.AMDGPU:
        raise ObjectError(f"an object for machine {parsed.machine}, not for AMDGPU ({objfile.AMDGPU})")
    places, end = {}, 0
    for index, section in enumerate(parsed.sections):
        if not section.flags & objfile.ALLOC or section.kind == objfile.NOTE:
            continue
        places[index] = section.address if section.address else -(-end // section.align) * section.align
        end = max(end, places[index] + section.size)
    content = bytearray(-(-end // PAGE) * PAGE)
    for index, place in places.items():
        section = parsed.sections[index]
        content[place : place + len(section.data)] = section.data
    for index, place in places.items():
        for relocation in parsed.sections[index].relocations:
            _relocate(parsed, places, content, address, place, relocation)
    linked = parsed.kind != objfile.RELOCATABLE
    symbols = {
        symbol.name: symbol.value if linked else places[symbol.section] + symbol.value
        for symbol in parsed.symbols
        if symbol.section in places
    }
    return Image(content, address, symbols, family_of(parsed.flags & 0xFF))


def _relocate(
    parsed: ObjectFile, places: dict[int, int], content: bytearray, base: int, section: int, relocation
) -> None:
    rule = RELOCATIONS.get(relocation.kind)
    symbol = parsed.symbols[relocation.symbol]
    if rule is None or symbol.section not in places:
        raise ObjectError(
            f"relocation {relocation.kind} against {symbol.name or 'a section'} is not known here"
        )
    _, size, relative, shift = rule
    place = section + relocation.offset
    value = (
        base + places[symbol.section] + symbol.value + relocation.addend - (base + place if relative else 0)
    )
    content[place : place + size] = ((value >> shift) & (1 << 8 * size) - 1).to_bytes(size, "little")
