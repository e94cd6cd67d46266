"""How kernels for AMD cards are compiled: plain C by clang's amdgcn target, without any ROCm library.

Source: LLVM's User Guide for AMDGPU Backend. `-nogpulib` keeps clang from looking for ROCm's device library.
"""
from tiny.toolchain import Compiler, ToolchainError

WITH_GNU23 = 18                                             # the first clang that spells it so
INSTALL = "apt-get install clang-22   (or: apt-get install clang)"
MISSING_TARGET = "No available targets are compatible with triple"


def flags(arch: str, compiler: Compiler) -> tuple[str, ...]:
    """The compiler's arguments for `arch`. ToolchainError for a compiler that is not clang."""
    if compiler.kind != "clang":
        raise ToolchainError(f"AMD: kernels are compiled by clang, {compiler.kind} has no target for AMD's "
                             f"cards; install it with\n    {INSTALL}\nand unset CC, or set it to clang")
    standard = "gnu23" if int(compiler.version.partition(".")[0]) >= WITH_GNU23 else "gnu2x"
    return ("-x", "c", f"-std={standard}", "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-nogpulib", "-O2",
            "-ffp-contract=off", "-fwrapv", "-fno-math-errno", "-fno-strict-aliasing", "-fno-ident",
            "-fvisibility=hidden", "-w", "-fdiagnostics-color=never")


def without_target(message: str, compiler: Compiler) -> ToolchainError | None:
    """The error for a clang that was built without amdgcn, if that is what its message says."""
    if MISSING_TARGET not in message:
        return None
    return ToolchainError(f"AMD: {compiler} was built without the amdgcn target; install one that has it:\n"
                          f"    {INSTALL}\nand name it with CC=clang-22")
