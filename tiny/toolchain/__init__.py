"""Find a C compiler, run it on kernels, keep what it made in a content-addressed cache on disk.

A start with a warm cache runs no process at all: object code is found by a key of everything that could
change it (source, flags, compiler and its version), and the compiler's version is itself cached by the file's
path, size and time. Sources that miss the cache are joined into a few translation units, because starting a
compiler costs as much as two or three kernels.
"""
from tiny.toolchain.cache import Cache
from tiny.toolchain.compilers import Compiler, find_compiler
from tiny.toolchain.objects import CompileError, Source, compile_objects
from tiny.toolchain.process import ToolchainError

__all__ = ["Cache", "CompileError", "Compiler", "Source", "ToolchainError", "compile_objects",
           "find_compiler"]
