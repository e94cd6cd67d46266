"""LLVM's disassembler, through the C interface of libLLVM: about 4 us an instruction."""

import ctypes
import ctypes.util
import functools
import re

from tests.tools import library

NAMES = ("libLLVM.so.22.1", "libLLVM-22.so", "libLLVM.so.23.1", "libLLVM.so.21.1")
# text of encodings that LLVM prints but calls wrong
REFUSED = re.compile(r"Warning|[Ii]nvalid|not supported|Error")

SOP1, LITERAL, BARRIERS = 0b101111101, 255, range(0x4E, 0x54)


class Disassembler:
    """For one processor. Called with words, gives (bytes, text); 0 bytes where they are no instruction."""

    def __init__(self, library: ctypes.CDLL, processor: str):
        self._decode = library.LLVMDisasmInstruction
        self._decode.restype = ctypes.c_size_t
        self._decode.argtypes = [
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.c_uint64,
            ctypes.c_uint64,
            ctypes.c_char_p,
            ctypes.c_size_t,
        ]
        library.LLVMCreateDisasmCPU.restype = ctypes.c_void_p
        self._context = library.LLVMCreateDisasmCPU(
            b"amdgcn-amd-amdhsa", processor.encode(), None, 0, None, None
        )
        self._text = ctypes.create_string_buffer(2048)

    def __call__(self, code: bytes) -> tuple[int, str]:
        word = int.from_bytes(code[:4], "little")
        if word >> 23 == SOP1 and word & 0xFF == LITERAL and word >> 8 & 0xFF in BARRIERS:
            return 0, ""  # LLVM 22 crashes on a barrier with a literal
        size = self._decode(self._context, code, len(code), 0, self._text, len(self._text))
        text = self._text.value.decode().strip().replace("\t", " ")
        return (0, text) if not size or REFUSED.search(text) else (size, text)


@functools.cache
def disassembler(processor: str) -> Disassembler:
    """The oracle, from a libLLVM that knows the processor."""
    llvm = library(*NAMES)
    for part in ("TargetInfo", "Target", "TargetMC", "Disassembler"):
        getattr(llvm, f"LLVMInitializeAMDGPU{part}")()
    return Disassembler(llvm, processor)
