"""Hand-written kernels: assembly in LLVM's syntax to a code object.

A text without `.amdhsa_kernel` is taken as the instructions of one kernel: a descriptor is written around
them, s_endpgm is added, and s[0:1] holds the address of the kernel's arguments, 8 bytes each.
"""

from tiny import config
from tiny.emulator.amd.isa import code_object
from tiny.toolchain import Cache, Source, compile_objects, find_compiler

CODE_ADDRESS = 0x7F00_0000_0000
BEFORE = """\
.text
.globl {name}
.p2align 8
.type {name},@function
{name}:"""
BEHIND = """
s_endpgm
.rodata
.p2align 6
.amdhsa_kernel {name}
.amdhsa_user_sgpr_kernarg_segment_ptr 1
.amdhsa_kernarg_size {arguments}
.amdhsa_next_free_vgpr 128
.amdhsa_next_free_sgpr 100
.amdhsa_group_segment_fixed_size {lds}
.amdhsa_private_segment_fixed_size {scratch}
.amdhsa_float_denorm_mode_32 3
{more}
.end_amdhsa_kernel
"""
ACCUMULATORS = ".amdhsa_accum_offset 128"  # gfx942 divides its VGPRs at this one


def described(name: str, body: str, **sizes) -> str:
    """The text of a kernel of that name. sizes: lds, scratch and arguments, in bytes as in `compiled`, and
    `more`: further lines of the descriptor.
    """
    return f"{BEFORE.format(name=name)}\n{body}{BEHIND.format(name=name, **sizes)}"


def compiled(source: Source, processor: str, lds: int = 0, scratch: int = 0, arguments: int = 0) -> bytes:
    """The code object of an assembly text. lds: bytes of a workgroup; scratch: of a lane; arguments: of the
    kernarg segment. CompileError with the assembler's message for text it refuses.
    """
    if ".amdhsa_kernel" not in source.text:
        more = ACCUMULATORS if processor == "gfx942" else ""
        behind = BEHIND.format(name="kernel", lds=lds, scratch=scratch, arguments=arguments, more=more)
        before = BEFORE.format(name="kernel")  # apart, so that errors count the text's own lines
        source = Source(source.name, source.text + behind, preamble=before)
    folder = config.current().cache_folder
    cache = Cache(folder) if folder else None
    flags = ["-x", "assembler-with-cpp", "--target=amdgcn-amd-amdhsa", f"-mcpu={processor}"]
    compiler = find_compiler(config.current().cc, cache)
    return compile_objects([source], compiler, flags, cache)[0]


def assemble(text: str, processor: str, lds: int = 0, scratch: int = 0) -> code_object.Image:
    """A loaded code object; see `compiled`."""
    return code_object.load(compiled(Source("assembly", text), processor, lds, scratch), CODE_ADDRESS)
