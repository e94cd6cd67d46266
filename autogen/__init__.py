"""Struct layouts, numbers and register tables of kernel interfaces and GPUs, generated from their headers.

Each module is one header set; `autogen/manifest.json` says which files of which package stand behind it.
Structs come as a cffi `ffi`, numbers as plain integers, registers and bit fields as tables of tuples. Nothing
here imports anything but cffi's backend, and each module imports in a few milliseconds. docs/autogen.md tells
how to regenerate and extend them.
"""
