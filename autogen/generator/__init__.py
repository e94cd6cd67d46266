"""The binding generator: header packages in, the modules beside this folder out.

Read in this order: `manifest` (what is wanted, from which package), `packages` (bring it), `libclang` (parse
it), `records` and `macros` (structs and numbers out of a parsed header), `tables` (registers and bit fields),
`emit` (Python text), `build` (one header set end to end), `provenance` (what was read), `command` (the
command line). `python -m tiny.autogen` runs it. Nothing else in tiny imports it.
"""
