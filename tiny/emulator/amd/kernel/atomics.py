"""Read-modify-write of memory that somebody else may change at the same moment: Python has no such operation.

A signal is counted down by a card and by the program that waits for it. The function is compiled by the
system's compiler at its first use, and cached like a kernel.
"""
import ctypes
import functools
import threading
from collections.abc import Callable

from tiny import config
from tiny.hcq import io
from tiny.hcq.cpu import host
from tiny.hcq.cpu.loader import MACHINES, Image
from tiny.toolchain import Cache, Source, compile_objects, find_compiler

ADD = Source("add_u64", """
unsigned long add_u64(unsigned long *at, unsigned long value) {
  return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
}
""")
MASK_64 = (1 << 64) - 1
_one_at_a_time = threading.Lock()                            # a second copy would be freed while it is called


def add_u64(address: int, value: int) -> int:
    """Add to the aligned quadword at an address of this process; what was there before."""
    with _one_at_a_time:
        _, function = _compiled()
    return function(address, value & MASK_64)


@functools.cache
def _compiled() -> tuple[Image, Callable[[int, int], int]]:
    """The function, and the memory it is in, which must live as long."""
    settings = config.current()
    arch = host.architecture()
    cache = Cache(settings.cache_folder) if settings.cache_folder else None
    compiler = find_compiler(settings.cc, cache)
    flags = host.flags(arch, host.features(host.read_cpuinfo(), arch))
    data = compile_objects([ADD], compiler, [*flags, "-fvisibility=default"], cache)[0]
    image = Image(data, MACHINES[arch], io.installed())
    return image, ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)(image.symbol(ADD.name))
