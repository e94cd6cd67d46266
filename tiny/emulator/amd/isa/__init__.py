"""Instruction sets of the emulated Radeon: gfx11, gfx12 and gfx942, and what executes them.

    expression   what an instruction computes, as a typed expression
    operations*  the semantics table: one row for each mnemonic
    evaluate     numpy computes an expression         c_text     C computes it
    encodings*   the words of each encoding           opcodes_*  numbers -> mnemonics
    decode       words -> Instruction                 text       Instruction -> LLVM's assembly
    state        registers of a wave, a dispatch      memory     address spaces and faults
    interpreter  one instruction at a time            translate  a whole kernel as a C function
    assemble     run-asm: the bench for hand-written kernels

A family (gfx11, gfx12, gfx9) is a table of encodings and a table of numbers; all share the semantics table.
"""
