"""Model files as mapped memory: their bytes are read when a kernel reads them, and never copied on the CPU.
"""
import mmap
import os
from pathlib import Path

import numpy as np

from tiny import realize
from tiny.ir.dtype import DType
from tiny.ir.integer import prod
from tiny.ir.node import Node


class FormatError(ValueError):
    """A file that is not what it should be; the message names the file, the place in it and the way out."""


class MappedFile:
    """A file's bytes. What is written into the mapping stays in this process; the file never changes.

    The mapping lives as long as this object or any slice of it. FileNotFoundError where there is no such
    file.
    """

    def __init__(self, path: str | os.PathLike):
        self.path = Path(path)
        with self.path.open("rb") as file:
            self.size = os.fstat(file.fileno()).st_size
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if self.size else b""
            self._view = memoryview(mapped)

    def error(self, message: str) -> FormatError:
        """A FormatError about this file."""
        return FormatError(f"{self.path}: {message}")

    def slice(self, start: int, nbytes: int, what: str) -> memoryview:
        """Bytes of the file, without a copy; FormatError where the file ends before them."""
        if start < 0 or nbytes < 0 or start + nbytes > self.size:
            raise self.error(f"{what} needs bytes {start} to {start + nbytes}, the file has {self.size}; "
                             "it is cut short or damaged, fetch it again")
        return self._view[start:start + nbytes]

    def node(self, start: int, dtype: DType, shape: tuple[int, ...], device: str, what: str) -> Node:
        """The BUFFER of an array that lies in the file in row-major order, little-endian, at byte `start`."""
        view = self.slice(start, prod(shape) * dtype.itemsize, what)
        if start % dtype.itemsize:                          # kernels load aligned elements only
            view = np.frombuffer(view, np.uint8).copy()
        return realize.buffer_from_host(view, dtype, shape, device, copy=False)
