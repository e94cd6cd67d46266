"""The dialect of AMD GPUs: C for clang's amdgcn target, without any ROCm library.

    clang -x c --target=amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -c

Arguments are the kernel's own, 8 bytes each: pointers, then variables. Groups are workgroups along x,
work-items lie along x too; no hidden argument is used. Vectors of GCC's extension become vector registers and
wide loads. Facts: LLVM's User Guide for AMDGPU Backend, "Kernel Dispatch" and "Initial Kernel Execution
State".
"""
from collections.abc import Sequence

from tiny.ir import ops
from tiny.ir.dtype import DType
from tiny.ir.integer import linear
from tiny.ir.node import Node
from tiny.render.c import CDialect, element

PRELUDE = """\
typedef signed char i8; typedef short i16; typedef int i32; typedef long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long u64;
typedef float f32; typedef double f64; typedef _Float16 h16;
#define LOCAL __attribute__((address_space(3)))
#define NOT_INITIALISED __attribute__((loader_uninitialized))
#if __clang_major__ >= 20
#define FENCE(order) __builtin_amdgcn_fence(order, "workgroup", "local")
#else
#define FENCE(order) __builtin_amdgcn_fence(order, "workgroup")
#endif
#define BARRIER() do { \
  FENCE(__ATOMIC_RELEASE); __builtin_amdgcn_s_barrier(); FENCE(__ATOMIC_ACQUIRE); } while (0)
#define FMA_f32(a, b, c) __builtin_fmaf(a, b, c)
#define FMA_f64(a, b, c) __builtin_fma(a, b, c)
#define SQRT_f32(a) __builtin_sqrtf(a)
#define SQRT_f64(a) __builtin_sqrt(a)
#define TRUNC_f32(a) __builtin_truncf(a)
#define TRUNC_f64(a) __builtin_trunc(a)
#define f32_of_f16(x) ((f32)((union { u16 a; _Float16 b; }){ .a = (x) }).b)
#define f16_of_f32(x) (((union { _Float16 a; u16 b; }){ .a = (_Float16)(x) }).b)
#define VECTOR_fma 1
#define VECTOR_sqrt 1
#define VECTOR_trunc 1
#define VECTOR_half 1
"""

# a matrix instruction -> (element type of its builtin's operands, the builtin). The last argument of WMMA on
# integers is whether to saturate, those of MFMA broadcast or permute blocks.
_WMMA = ("f32_16x16x16_f16", "h16"), ("f32_16x16x16_bf16", "i16"), ("i32_16x16x16_iu8", "i32")
_MFMA = (("f32_32x32x8f16", "h16"), ("f32_16x16x16f16", "h16"), ("f32_32x32x8bf16_1k", "i16"),
         ("f32_16x16x16bf16_1k", "i16"), ("f32_32x32x2f32", "f32"), ("f32_16x16x4f32", "f32"),
         ("i32_32x32x16_i8", "i64"), ("i32_16x16x32_i8", "i64"))
_WITH_SIGNS = "({a_signed}, {a}, {b_signed}, {b}, {c}, 0)"
_MATRIX = {
    f"wmma_{name}{suffix}": (kind, f"wmma_{name}_w32{suffix}" + (_WITH_SIGNS if kind == "i32" else
                                                                 "({a}, {b}, {c})"))
    for name, kind in _WMMA for suffix in ("", "_gfx12")
} | {f"mfma_{name}": (kind, f"mfma_{name}({{a}}, {{b}}, {{c}}, 0, 0, 0)") for name, kind in _MFMA}


class AmdDialect(CDialect):
    """C for one work-item; see CDialect."""

    def index_kind(self, node: Node) -> str:
        """Positions are 32 bits wide where they fit: 64-bit arithmetic takes two instructions and registers.
        """
        return "i64" if self.is_wide(node) else "i32"

    def neighbours(self, pointer: Node, index: Node, lanes: int) -> str:
        """Elements from an index on; in local memory they are aligned where the index says so."""
        if pointer.op is not ops.LOCAL:
            return super().neighbours(pointer, index, lanes)
        constant, terms = linear(index)
        aligned = not lanes & (lanes - 1) and not any(n % lanes for n in (constant, *terms.values()))
        kind = self.vector(element(pointer.dtype), lanes, unaligned=not aligned)
        return f"*(LOCAL {kind} *)({self.ref(pointer)} + {self.ref(index)})"

    def local(self, node: Node) -> str:
        """Memory of the group."""
        return f"static LOCAL NOT_INITIALISED {super().local(node)}"

    def matmul(self, node: Node) -> str:
        """A matrix instruction's builtin; it takes a and b as vectors of other types of the same size."""
        kind, call = _MATRIX[node.arg]
        *sides, c = node.src
        fields = {"c": self.ref(c)}
        for letter, side in zip("ab", sides, strict=True):
            lanes = side.dtype.bits * (side.shape[0] if side.shape else 1) // int(kind[1:])
            wanted = self.vector(kind, lanes) if lanes > 1 else kind
            fields[letter] = f"({wanted}){self.ref(side)}"
            fields[f"{letter}_signed"] = int(side.dtype.kind == "i")
        return f"__builtin_amdgcn_{call.format(**fields)}"

    def expression(self, node: Node) -> str:
        return self.matmul(node) if node.op is ops.MATMUL else super().expression(node)

    def statement(self, node: Node) -> None:
        if node.op is ops.BARRIER:
            self.line("BARRIER();")
        elif node.op is ops.TOGETHER:
            # clang 22 moves a matrix instruction to where its result is used, into a branch that other lanes
            # skip, and leaves theirs out of a and b; past this it cannot (seen on gfx1100, 2026-11)
            name = self.name(node, "v")
            self.line(f"{self.type(node)} {name} = {self.ref(node.src[0])};")
            self.line(f'__asm__ volatile("" : "+v"({name}));')
        elif node.op in (ops.GROUP, ops.ITEM):
            what = "workgroup" if node.op is ops.GROUP else "workitem"
            self.line("{")
            self.depth += 1
            kind = self.index_kind(node)
            self.line(f"const {kind} {self.name(node, 'g')} = ({kind})__builtin_amdgcn_{what}_id_x();")
        else:
            super().statement(node)

    def function_head(
        self, name: str, pointers: Sequence[DType], variables: Sequence[Node], threads: int
    ) -> str:
        """Declare the kernel with its arguments as parameters."""
        parameters = [
            f"{'' if number == 0 else 'const '}{element(dtype)} *restrict p{number}"
            for number, dtype in enumerate(pointers)
        ]
        parameters += [f"const i64 {self.name(variable, 'n')}" for variable in variables]
        return (
            f"__attribute__((amdgpu_kernel, amdgpu_flat_work_group_size({threads}, {threads})))\n"
            f"void {name}({', '.join(parameters)}) {{"
        )


def render(
    name: str,
    instructions: Sequence[Node],
    pointers: Sequence[DType],
    variables: Sequence[Node],
    threads: int = 1,
) -> str:
    """The source of one kernel; arguments as for render.c.render. threads: work-items of a group."""
    return AmdDialect().source(name, instructions, pointers, variables, threads)
