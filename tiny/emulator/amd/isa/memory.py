"""What an emulated wave sees as memory: an address space that reads, writes and faults."""

import ctypes
from collections.abc import Sequence
from typing import NamedTuple, Protocol


class MemoryFault(RuntimeError):
    """An access to an address that is not mapped, or not for this. The emulated driver makes an event of it.
    """

    def __init__(self, address: int, size: int, action: str):
        super().__init__(f"{action} of {size} bytes at {address:#x}, which is not mapped for it")
        self.address, self.size, self.action = address, size, action

    def __reduce__(self):
        return MemoryFault, (self.address, self.size, self.action)


class Range(NamedTuple):
    """Contiguous memory: `size` bytes at `address` for the card are at `host` in this process."""

    address: int
    size: int
    host: int
    writable: bool = True


class AddressSpace(Protocol):
    """Memory as the card addresses it. Methods raise MemoryFault for what is not mapped."""

    def read(self, address: int, size: int) -> bytes:
        """The bytes there."""

    def write(self, address: int, data: bytes) -> None:
        """Put bytes there."""

    def ranges(self) -> Sequence[Range]:
        """Everything that is mapped, in order of address; translated kernels reach it directly."""


class HostMemory:
    """An address space made of ranges of this process's memory, which whoever maps them keeps alive."""

    def __init__(self, ranges: Sequence[Range] = ()):
        self._ranges = sorted(ranges)

    def map(self, address: int, size: int, host: int, writable: bool = True) -> None:
        """Add a range. ValueError if it meets another one."""
        for other in self._ranges:
            if address < other.address + other.size and other.address < address + size:
                raise ValueError(
                    f"{size} bytes at {address:#x} meet the {other.size} bytes at {other.address:#x}"
                )
        self._ranges = sorted([*self._ranges, Range(address, size, host, writable)])

    def unmap(self, address: int) -> None:
        """Take away the range that starts there."""
        self._ranges = [each for each in self._ranges if each.address != address]

    def ranges(self) -> Sequence[Range]:
        return self._ranges

    def read(self, address: int, size: int) -> bytes:
        return ctypes.string_at(self._host(address, size, "read"), size)

    def write(self, address: int, data: bytes) -> None:
        ctypes.memmove(self._host(address, len(data), "write"), bytes(data), len(data))

    def _host(self, address: int, size: int, action: str) -> int:
        for each in self._ranges:
            if each.address <= address and address + size <= each.address + each.size:
                if action == "write" and not each.writable:
                    break
                return each.host + address - each.address
        raise MemoryFault(address, size, action)
