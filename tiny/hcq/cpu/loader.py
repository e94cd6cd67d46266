"""Put a relocatable object into this process's memory: place its sections,
resolve symbols, apply relocations.

One mapping for each object: first what is executed or only read (sections, jumps to the C library, table of
pointers), then what is written, each page either writable or executable, never both.
"""
import ctypes
import functools
import struct
from collections.abc import Callable

from tiny import objfile
from tiny.hcq import io
from tiny.objfile import ObjectError, ObjectFile, Section, Symbol

JUMP_BYTES = 16
# jump to the address in the 8 bytes behind it: jmp [rip+0]; nop2           ldr x16, #8; br x16
_JUMPS = {objfile.X86_64: bytes.fromhex("ff25020000006690"),
          objfile.AARCH64: struct.pack("<II", 0x58000050, 0xd61f0200)}
MACHINES = {"x86_64": objfile.X86_64, "aarch64": objfile.AARCH64}


class Image:
    """An object in memory; unmapped when the last reference is gone.

    address, size: of the whole mapping. `symbols`: name -> address of what the object defines.
    """
    def __init__(self, data: bytes, machine: int, provider: io.Provider):
        parsed = objfile.parse(data)
        if parsed.machine != machine or parsed.kind != objfile.RELOCATABLE:
            raise ObjectError(f"an object of kind {parsed.kind} for machine {parsed.machine}; this device "
                              f"loads kind {objfile.RELOCATABLE} for machine {machine}")
        layout = Layout(parsed)
        self._io, self.size = provider, layout.size
        self.address = provider.mmap(layout.size)
        content = layout.link(self.address, library_address)
        provider.view(self.address, layout.size)[:] = content
        provider.protect(self.address, layout.writable_from, io.READ | io.EXECUTE)
        nowhere = (objfile.UNDEFINED, objfile.ABSOLUTE)
        self.symbols = {symbol.name: self.address + layout.offset(symbol) for symbol in parsed.symbols
                        if symbol.binding != objfile.LOCAL and symbol.section not in nowhere}

    def __del__(self):
        if hasattr(self, "symbols"):
            self._io.munmap(self.address, self.size)

    def symbol(self, name: str) -> int:
        """The address of a function or variable; ObjectError that lists what there is."""
        if name not in self.symbols:
            raise ObjectError(f"the object defines no {name}; it has {', '.join(self.symbols) or 'nothing'}")
        return self.symbols[name]


class Layout:
    """Where each section of a relocatable object goes, relative to a base that is not known yet.

    size: bytes of the whole; writable_from: offset, on a page, from which on it stays writable.
    places: number of a section -> its offset.
    """
    def __init__(self, parsed: ObjectFile):
        self.parsed = parsed
        self.places: dict[int, int] = {}
        loaded = [(index, section) for index, section in enumerate(parsed.sections)
                  if section.flags & objfile.ALLOC and section.kind != objfile.NOTE]
        if any(section.flags & objfile.TLS for _, section in loaded):
            raise ObjectError("thread-local variables are not supported; use static ones")
        end = 0
        for index, section in loaded:
            if not section.flags & objfile.WRITE:
                end = self._place(index, section, end)
        self._jumps, self._pointers = _targets(parsed)
        self._jumps_at = _align(end, JUMP_BYTES)
        self._pointers_at = self._jumps_at + len(self._jumps) * JUMP_BYTES
        end = self.writable_from = _align(self._pointers_at + len(self._pointers) * 8, io.PAGE)
        for index, section in loaded:
            if section.flags & objfile.WRITE:
                end = self._place(index, section, end)
        self.size = max(_align(end, io.PAGE), io.PAGE)

    def _place(self, index: int, section: Section, end: int) -> int:
        self.places[index] = _align(end, section.align)
        return self.places[index] + section.size

    def offset(self, symbol: Symbol) -> int:
        """Where a defined symbol lies."""
        if symbol.section not in self.places:
            raise ObjectError(f"symbol {symbol.name or '(section)'} lies in section {symbol.section}, which "
                              "is not loaded")
        return self.places[symbol.section] + symbol.value

    def link(self, base: int, resolve: Callable[[str], int]) -> bytearray:
        """The bytes for address `base`, relocations applied.
        resolve: name -> address of an undefined symbol.
        """
        content = bytearray(self.size)
        parsed = self.parsed
        for index, start in self.places.items():
            data = parsed.sections[index].data
            content[start:start + len(data)] = data
        for number, position in self._jumps.items():
            address = self._address(number, base, resolve)
            place = self._jumps_at + position * JUMP_BYTES
            struct.pack_into("<8sQ", content, place, _JUMPS[parsed.machine], address)
        for number, position in self._pointers.items():
            address = self._address(number, base, resolve)
            struct.pack_into("<Q", content, self._pointers_at + position * 8, address)
        for index, start in self.places.items():
            for relocation in parsed.sections[index].relocations:
                rule = objfile.relocate(parsed.machine, relocation.kind)
                place = start + relocation.offset
                target = self._target(relocation.symbol, rule.through, base, resolve) + relocation.addend
                rule.write(content, place, rule.value(target, base + place), rule.name)
        return content

    def _target(self, number: int, through: str, base: int, resolve: Callable[[str], int]) -> int:
        if through == "call" and number in self._jumps:
            return base + self._jumps_at + self._jumps[number] * JUMP_BYTES
        if through == "pointer":
            return base + self._pointers_at + self._pointers[number] * 8
        return self._address(number, base, resolve)

    def _address(self, number: int, base: int, resolve: Callable[[str], int]) -> int:
        symbol = self.parsed.symbols[number]
        if symbol.section == objfile.UNDEFINED:
            return resolve(symbol.name)
        if symbol.section == objfile.COMMON:
            raise ObjectError(f"{symbol.name} is a common symbol; compile with -fno-common")
        return symbol.value if symbol.section == objfile.ABSOLUTE else base + self.offset(symbol)


def _targets(parsed: ObjectFile) -> tuple[dict[int, int], dict[int, int]]:
    """Symbols that need a jump (called, but elsewhere)
    and those that need a pointer, numbered in order of use.
    """
    jumps: dict[int, int] = {}
    pointers: dict[int, int] = {}
    for section in parsed.sections:
        if not section.flags & objfile.ALLOC:
            continue
        for relocation in section.relocations:
            through = objfile.relocate(parsed.machine, relocation.kind).through
            if through == "pointer":
                pointers.setdefault(relocation.symbol, len(pointers))
            elif through == "call" and parsed.symbols[relocation.symbol].section == objfile.UNDEFINED:
                jumps.setdefault(relocation.symbol, len(jumps))
    return jumps, pointers


def _align(value: int, to: int) -> int:
    return -(-value // to) * to


@functools.cache
def library_address(name: str) -> int:
    """The address of a function of the C library; ObjectError if it has none of that name."""
    try:
        return ctypes.cast(ctypes.CDLL(None)[name], ctypes.c_void_p).value
    except AttributeError:
        raise ObjectError(f"{name} is neither defined by the object nor in the C library; define it in the "
                          "source (kernels may use memcpy, memmove and memset)") from None
