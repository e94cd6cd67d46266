"""The corpus as code objects for a card and as functions of the host, compiled once and kept in the
compiler's cache.
"""

import ctypes
import functools
from pathlib import Path

import numpy as np

from tiny import config
from tiny.emulator.amd.isa import code_object, interpreter, run
from tiny.emulator.amd.isa.memory import HostMemory
from tiny.emulator.amd.isa.state import Dispatch
from tiny.hcq import io
from tiny.hcq.cpu import host
from tiny.hcq.cpu.loader import MACHINES
from tiny.hcq.cpu.loader import Image as HostImage
from tiny.toolchain import Cache, Source, compile_objects, find_compiler

FOLDER = Path(__file__).parent
ADDRESS = 0x7F00_0000_0000
KERNEL_FLAGS = ("-x", "c", "-std=gnu23", "--target=amdgcn-amd-amdhsa", "-nogpulib", "-ffp-contract=off", "-w")
POISON = 0xA5


def cache() -> Cache | None:
    folder = config.current().cache_folder
    return Cache(folder) if folder else None


@functools.cache
def card_object(file: str, processor: str, level: int) -> bytes:
    """The object code of a file of the corpus for a card."""
    source = Source(file, (FOLDER / file).read_text())
    flags = [*KERNEL_FLAGS, f"-mcpu={processor}", f"-O{level}"]
    return compile_objects([source], find_compiler("", cache()), flags, cache())[0]


@functools.cache
def card_image(file: str, processor: str, level: int) -> code_object.Image:
    return code_object.load(card_object(file, processor, level), ADDRESS)


@functools.cache
def host_functions() -> dict:
    """Name -> function of the corpus on this machine; `set_id` says which work item it is."""
    arch = host.architecture()
    features = run.host_features(arch)
    source = Source("corpus_host", (FOLDER / "corpus.c").read_text())
    flags = [*host.flags(arch, features), "-fvisibility=default", "-std=gnu2x"]
    image = HostImage(
        compile_objects([source], find_compiler("", cache()), flags, cache())[0],
        MACHINES[arch],
        io.installed(),
    )
    pointers = [ctypes.c_void_p] * 4
    found = {name: ctypes.CFUNCTYPE(None, *pointers)(address) for name, address in image.symbols.items()}
    found["set_id"] = ctypes.CFUNCTYPE(None, ctypes.c_int)(image.symbol("set_id"))
    found["image"] = image
    return found


def launch(
    image: code_object.Image,
    name: str,
    buffers: list[np.ndarray],
    groups=(1, 1, 1),
    size=(64, 1, 1),
    translated: bool = False,
    grid=None,
    checked: bool = False,
    constants: tuple[int, ...] = (),
) -> None:
    """Run a kernel whose arguments are pointers to these arrays, which it changes in place."""
    code = np.frombuffer(bytes(image.data), dtype=np.uint8)
    arguments = np.array([each.ctypes.data for each in buffers] + list(constants), dtype=np.uint64)
    memory = HostMemory()
    for each in (*buffers, arguments):
        memory.map(each.ctypes.data, each.nbytes, each.ctypes.data)
    memory.map(image.address, len(code), code.ctypes.data, writable=False)
    kernel = image.kernel(name)
    dispatch = Dispatch(
        kernel, memory, image.user_data(name, arguments.ctypes.data, memory), groups, size, grid, checked
    )
    (run.run if translated else interpreter.run)(dispatch)


def output(nbytes: int) -> np.ndarray:
    """Memory that no kernel has written."""
    return np.full(nbytes, POISON, dtype=np.uint8)
