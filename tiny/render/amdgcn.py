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
from tiny.ir.node import Node
from tiny.render.c import CDialect, element

PRELUDE = """\
typedef signed char i8; typedef short i16; typedef int i32; typedef long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long u64;
typedef float f32; typedef double f64;
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


class AmdDialect(CDialect):
    """C for one work-item; see CDialect."""

    def index_kind(self, node: Node) -> str:
        """Positions are 32 bits wide where they fit: 64-bit arithmetic takes two instructions and registers.
        """
        return "i64" if self.is_wide(node) else "i32"

    def statement(self, node: Node) -> None:
        if node.op in (ops.GROUP, ops.ITEM):
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
