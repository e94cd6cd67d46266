"""From a code object to a kernel in video memory: sections, relocations, the 64-byte descriptor.

The compiler's relocatable object is loaded without a linker: a kernel has one relocation, REL64 from its
descriptor to its code, and more only where it uses constant tables. Sources: LLVM's User Guide for AMDGPU
Backend, "Code Object" and "Kernel Descriptor"; AMDHSAKernelDescriptor.h.
"""
from dataclasses import dataclass

from tiny import objfile
from tiny.autogen import amd_kernel_descriptor as descriptor
from tiny.hcq.queue import Program
from tiny.objfile import ObjectError, ObjectFile

DESCRIPTOR_BYTES = descriptor.ffi.sizeof("struct kernel_descriptor_t")
CODE_ALIGNMENT = 256                                        # COMPUTE_PGM_LO counts in it
NOWHERE = (objfile.UNDEFINED, objfile.ABSOLUTE)
KERNARG_POINTER = descriptor.KERNEL_CODE_PROPERTY_ENABLE_SGPR_KERNARG_SEGMENT_PTR
USER_SGPRS = {  # what else a descriptor may ask for in user registers, and what a source does to cause it
    descriptor.KERNEL_CODE_PROPERTY_ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER: "a private segment buffer",
    descriptor.KERNEL_CODE_PROPERTY_ENABLE_SGPR_DISPATCH_PTR: "the dispatch packet (a builtin for sizes)",
    descriptor.KERNEL_CODE_PROPERTY_ENABLE_SGPR_QUEUE_PTR: "the queue (an address of a private variable)",
    descriptor.KERNEL_CODE_PROPERTY_ENABLE_SGPR_DISPATCH_ID: "the dispatch's number",
    descriptor.KERNEL_CODE_PROPERTY_ENABLE_SGPR_FLAT_SCRATCH_INIT: "flat scratch set-up",
    descriptor.KERNEL_CODE_PROPERTY_ENABLE_SGPR_PRIVATE_SEGMENT_SIZE: "the private segment's size",
}


@dataclass(frozen=True, slots=True)
class Kernel:
    """What a descriptor says. entry: of the code; descriptor: both as offsets in the image.

    local_bytes: LDS of a workgroup; private_bytes: scratch of a lane; kernarg_bytes: of the arguments.
    """
    name: str
    entry: int
    descriptor: int
    rsrc1: int
    rsrc2: int
    rsrc3: int
    local_bytes: int
    private_bytes: int
    kernarg_bytes: int
    wave32: bool

    @property
    def lanes(self) -> int:
        """Of a wave."""
        return 32 if self.wave32 else 64


class CodeImage:
    """A code object laid out: sections at offsets, symbols, relocations done for the address it will get.

    size: of the whole, `padding` bytes behind the last section included. ObjectError for what cannot be
    loaded.
    """
    def __init__(self, data: bytes, padding: int):
        self.parsed = parsed = objfile.parse(data)
        if parsed.machine != objfile.AMDGPU:
            raise ObjectError(f"an object for machine {parsed.machine}; this device loads machine "
                              f"{objfile.AMDGPU}, AMDGPU code objects")
        self._linked = parsed.kind != objfile.RELOCATABLE
        self._places: dict[int, int] = {}
        end = 0
        for index, section in enumerate(parsed.sections):
            if section.flags & objfile.ALLOC and section.kind != objfile.NOTE:
                end = section.address if self._linked else -(-end // section.align) * section.align
                self._places[index] = end
                end += section.size
        self._pointers = _pointers(parsed)
        self._pointers_at = -(-end // 8) * 8
        self.size = self._pointers_at + 8 * len(self._pointers) + padding
        self.symbols = {symbol.name: self._offset(symbol) for symbol in parsed.symbols
                        if symbol.section in self._places and symbol.name}

    def _offset(self, symbol: objfile.Symbol) -> int:
        return symbol.value + (0 if self._linked else self._places[symbol.section])

    def link(self, base: int) -> bytearray:
        """The bytes for address `base`, which is aligned to 256."""
        content = bytearray(self.size)
        for index, start in self._places.items():
            data = self.parsed.sections[index].data
            content[start:start + len(data)] = data
        if self._linked:
            return content
        for number, position in self._pointers.items():
            start = self._pointers_at + 8 * position
            content[start:start + 8] = self._address(number, base).to_bytes(8, "little")
        for index, start in self._places.items():
            for relocation in self.parsed.sections[index].relocations:
                rule = objfile.relocate(objfile.AMDGPU, relocation.kind)
                place = start + relocation.offset
                if rule.through == "pointer":
                    target = base + self._pointers_at + 8 * self._pointers[relocation.symbol]
                else:
                    target = self._address(relocation.symbol, base)
                rule.write(content, place, rule.value(target + relocation.addend, base + place), rule.name)
        return content

    def _address(self, number: int, base: int) -> int:
        symbol = self.parsed.symbols[number]
        if symbol.section not in self._places:
            raise ObjectError(f"{symbol.name or 'a section'} is not defined by the code object; a kernel can "
                              "call only what its own source defines")
        return base + self._offset(symbol)

    def kernel(self, name: str, content: bytes) -> Kernel:
        """The kernel of that name, from its descriptor NAME.kd. content: what `link` gave.

        ObjectError that lists the kernels there are, or says what this one wants in vain.
        """
        place = self.symbols.get(f"{name}.kd")
        if place is None:
            known = ", ".join(s.removesuffix(".kd") for s in self.symbols if s.endswith(".kd"))
            raise ObjectError(f"the code object has no kernel {name}; it has {known or 'none'}")
        raw = bytes(content[place:place + DESCRIPTOR_BYTES])
        words = descriptor.ffi.from_buffer("struct kernel_descriptor_t *", raw)
        properties = words.kernel_code_properties
        for bit, what in USER_SGPRS.items():
            if properties & bit:
                raise ObjectError(f"kernel {name} wants {what}, which is not given; use its arguments only")
        entry = place + words.kernel_code_entry_byte_offset
        return Kernel(name, entry, place, words.compute_pgm_rsrc1, words.compute_pgm_rsrc2,
                      words.compute_pgm_rsrc3, words.group_segment_fixed_size,
                      words.private_segment_fixed_size,
                      words.kernarg_size if properties & KERNARG_POINTER else 0,
                      bool(properties & descriptor.KERNEL_CODE_PROPERTY_ENABLE_WAVEFRONT_SIZE32))


def _pointers(parsed: ObjectFile) -> dict[int, int]:
    """Symbols that are reached through a table of addresses, numbered."""
    found: dict[int, int] = {}
    for section in parsed.sections:
        for relocation in section.relocations if section.flags & objfile.ALLOC else ():
            if objfile.relocate(objfile.AMDGPU, relocation.kind).through == "pointer":
                found.setdefault(relocation.symbol, len(found))
    return found


class AmdProgram(Program):
    """A loaded kernel. address: of its code; descriptor: address of that; threads: items of a workgroup.

    rsrc1, rsrc2, rsrc3: register words, LDS filled in; initiator: COMPUTE_DISPATCH_INITIATOR.
    """
    __slots__ = ("kernel", "threads", "descriptor", "rsrc1", "rsrc2", "initiator")

    def __init__(self, kernel: Kernel, base: int, threads: int, device, image):
        super().__init__(kernel.name, base + kernel.entry, device, image)
        generation = device.generation
        self.kernel, self.threads, self.descriptor = kernel, threads, base + kernel.descriptor
        self.rsrc1 = kernel.rsrc1 | generation.extra_rsrc1
        self.rsrc2 = generation.with_lds(kernel.rsrc2, kernel.local_bytes)
        self.initiator = generation.initiator(kernel.wave32)

    @property
    def entries(self) -> tuple[int, ...]:
        """PM4 names the code, AQL its descriptor."""
        return self.address, self.descriptor

    @property
    def argument_bytes(self) -> int:
        """See Program."""
        return self.kernel.kernarg_bytes
