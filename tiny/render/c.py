"""The C dialect: flat instructions become one C function with explicit vector types, for clang and gcc alike.

    void NAME(const uint64_t *args, uint64_t begin, uint64_t end)

args holds the pointers, then the variables; the function runs groups begin ... end-1. Every value is a
constant of its own, so each operation rounds by itself; the text assumes -ffp-contract=off and -fwrapv.
Vectors use GCC's vector extension; what only clang has is guarded. A vector of bool is a mask, an integer
vector of 0 and -1 whose lanes are as wide as what was compared.
"""
import math
import struct
from collections.abc import Sequence

from tiny.ir import ops
from tiny.ir.dtype import DType, dtypes
from tiny.ir.integer import bounds, fits_32_bits
from tiny.ir.node import Node
from tiny.ir.ops import Op

_BINARY = {ops.ADD: "+", ops.SUB: "-", ops.MUL: "*", ops.FDIV: "/", ops.IDIV: "/", ops.MOD: "%", ops.AND: "&",
           ops.OR: "|", ops.XOR: "^", ops.SHL: "<<", ops.SHR: ">>"}
_COMPARE = {ops.LT: "<", ops.EQ: "==", ops.NE: "!="}

# what went past the caches must be in memory before anyone is told that the kernel is done
STREAM = """\
#ifndef STREAM
#if __has_builtin(__builtin_nontemporal_store)
#define STREAM(whole, anywhere, place, value) do { \\
  if ((u64)(place) % sizeof(whole)) *(anywhere *)(place) = (value); \\
  else __builtin_nontemporal_store((value), (whole *)(place)); } while (0)
#else
#define STREAM(whole, anywhere, place, value) (*(anywhere *)(place) = (value))
#endif
#if defined(__x86_64__)
#define STREAMED() __builtin_ia32_sfence()
#else
#define STREAMED() __atomic_thread_fence(__ATOMIC_RELEASE)
#endif
#endif"""


def element(dtype: DType) -> str:
    """C's name for an element in memory; bfloat16 and fp8 are held as the integer of their bits."""
    if dtype is dtypes.bool or dtype in dtypes.fp8s:
        return "u8"
    return "u16" if dtype in (dtypes.bfloat16, dtypes.float16) else f"{dtype.kind}{dtype.bits}"


class CDialect:
    """Renders one kernel; one method an operation, each giving a C expression."""

    def __init__(self):
        self.names: dict[Node, str] = {}
        self.mask_bits: dict[Node, int] = {}
        self.wide: dict[Node, bool] = {}                     # index nodes that need 64 bits
        self.vectors: dict[str, str] = {}                    # typedefs by name
        self.helpers: dict[str, str] = {}
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0

    # -- types -----------------------------------------------------------------------------------------------
    def vector(self, kind: str, lanes: int, unaligned: bool = False) -> str:
        """The vector type of an element type name, declared on first use."""
        name = f"{kind}x{lanes}" + ("_at" if unaligned else "")
        size = int(kind[1:]) // 8
        extra = f", aligned({size}), may_alias" if unaligned else ""
        self.vectors[name] = f"typedef {kind} {name} __attribute__((vector_size({size * lanes}){extra}));"
        return name

    def kind(self, node: Node) -> str:
        """The element type name of a value."""
        if node.dtype is dtypes.index:
            return self.index_kind(node)
        if node.dtype is dtypes.bool:
            return f"i{self.mask_bits.get(node, 8)}" if node.shape else "u8"
        return element(node.dtype)

    def index_kind(self, node: Node) -> str:
        """The element type of a position. A scalar becomes an address offset, so it is that wide."""
        return "i64" if not node.shape or self.is_wide(node) else "i32"

    def is_wide(self, node: Node) -> bool:
        """Whether an index value, or one it is made of, needs 64 bits."""
        found = self.wide.get(node)
        if found is None:
            inner = (
                node.src
                if node.op in (ops.ADD, ops.MUL, ops.IDIV, ops.MOD, ops.MAX, ops.MIN, ops.BROADCAST)
                else ()
            )
            found = self.wide[node] = not fits_32_bits(node) or any(self.is_wide(s) for s in inner)
        return found

    def type(self, node: Node) -> str:
        return self.vector(self.kind(node), node.shape[0]) if node.shape else self.kind(node)

    # -- operands --------------------------------------------------------------------------------------------
    def ref(self, node: Node) -> str:
        """An operand: a name or a literal."""
        if node.op is ops.CONST:
            return self.literal(node)
        if node.op is ops.POINTER:
            return f"p{node.arg}"
        if node.op is ops.LOCAL:
            return f"local{node.arg[0]}"
        return self.names[node]

    def literal(self, node: Node) -> str:
        value, dtype = node.arg, node.dtype
        if dtype is dtypes.bool:
            return "1" if value else "0"
        if dtype is dtypes.index:
            return f"{value}" if fits_32_bits(value) and value > -(2**31) else f"{value}L"
        if dtype is dtypes.float16:
            return f"((u16){int.from_bytes(struct.pack('<e', value), 'little'):#x})"
        if dtype.kind == "f":
            suffix = "f" if dtype is dtypes.float32 else ""
            if math.isnan(value):
                text = f'__builtin_nan{suffix}("")'
            elif math.isinf(value):
                text = f"{'-' if value < 0 else ''}__builtin_inf{suffix}()"
            else:
                text = value.hex() + suffix
            return f"({text})" if text.startswith("-") else text
        if dtype.kind == "u":
            return f"(({element(dtype)}){value}UL)"
        return (
            f"(({element(dtype)}){value}L)"
            if value > dtypes.int64.min
            else "((i64)(-9223372036854775807L - 1))"
        )

    def spread(self, node: Node, like: Node, kind: str | None = None) -> str:
        """An operand as a vector of as many lanes as `like`; masks in the width of `kind`."""
        lanes = like.shape[0]
        text = self.ref(node)
        if node.dtype is dtypes.bool:
            wanted = self.vector(kind, lanes)
            if node.shape:
                return text if self.kind(node) == kind else f"__builtin_convertvector({text}, {wanted})"
            return f"(({wanted}){{0}} - ({kind})({text}))"
        kind = kind or self.kind(node)
        if node.shape:
            return (
                text
                if self.kind(node) == kind
                else f"__builtin_convertvector({text}, {self.vector(kind, lanes)})"
            )
        zero = f"({self.vector(kind, lanes)}){{0}}"
        return f"(({kind})({text}) - {zero})" if kind[0] == "f" else f"({zero} + ({kind})({text}))"

    # -- expressions -----------------------------------------------------------------------------------------
    def expression(self, node: Node) -> str:
        op = node.op
        if op in _BINARY:
            return self.index_arithmetic(node) if node.dtype is dtypes.index else self.binary(node)
        if op in _COMPARE:
            return self.compare(node)
        return _METHODS[op](self, node)

    def binary(self, node: Node) -> str:
        a, b = node.src
        sign = _BINARY[node.op]
        if not node.shape:
            if node.op is ops.SHL and node.dtype.kind == "i":
                unsigned = f"u{node.dtype.bits}"
                return f"({self.kind(node)})(({unsigned}){self.ref(a)} << {self.ref(b)})"
            return f"({self.kind(node)})({self.ref(a)} {sign} {self.ref(b)})"
        if node.dtype is dtypes.bool:
            kind = self.kind(a if a.shape else b)
            self.mask_bits[node] = int(kind[1:])
            return f"{self.spread(a, node, kind)} {sign} {self.spread(b, node, kind)}"
        return f"{self.spread(a, node)} {sign} {self.spread(b, node)}"

    def index_arithmetic(self, node: Node) -> str:
        kind = self.kind(node)
        if not node.shape and node.op in (ops.IDIV, ops.MOD) and not self.is_wide(node):
            kind = "i32"  # the quicker division
        a, b = (self.spread(s, node, kind) if node.shape else f"({kind}){self.ref(s)}" for s in node.src)
        text = f"({a} {_BINARY[node.op]} {b})"
        if node.op not in (ops.IDIV, ops.MOD) or bounds(node.src[0])[0] >= 0:
            return text
        negative = f"(({a} % {b}) < 0)"  # round towards minus infinity; the divisor is positive
        if node.shape:  # a true lane is -1
            return f"{text} + {negative}" if node.op is ops.IDIV else f"{text} - {b} * {negative}"
        return f"{text} - {negative}" if node.op is ops.IDIV else f"{text} + {b} * {negative}"

    def compare(self, node: Node) -> str:
        a, b = node.src
        sign = _COMPARE[node.op]
        if not node.shape:
            return f"{self.ref(a)} {sign} {self.ref(b)}"
        kind = self.kind(a if a.shape else b)
        if a.dtype is dtypes.index:
            kind = "i64" if self.is_wide(a) or self.is_wide(b) else "i32"
        self.mask_bits[node] = int(kind[1:])
        mask = self.vector(kind.replace("f", "i").replace("u", "i"), node.shape[0])
        return f"({mask})({self.spread(a, node, kind)} {sign} {self.spread(b, node, kind)})"

    def choose(self, node: Node) -> str:
        condition, a, b = node.src
        if not condition.shape and not node.shape:
            return f"{self.ref(condition)} ? {self.ref(a)} : {self.ref(b)}"
        kind = self.kind(a if a.shape else b) if node.dtype is dtypes.bool else self.kind(node)
        if node.dtype is dtypes.bool:
            kind = kind if a.shape or b.shape else self.kind(condition)
            self.mask_bits[node] = int(kind[1:])
        if not condition.shape:
            return f"{self.ref(condition)} ? {self.spread(a, node, kind)} : {self.spread(b, node, kind)}"
        mask = self.spread(condition, node, f"i{kind[1:]}")
        bits = self.vector(f"i{kind[1:]}", node.shape[0])
        result = self.vector(kind, node.shape[0])
        return (
            f"({result})(({mask} & ({bits}){self.spread(a, node, kind)}) | "
            f"(~{mask} & ({bits}){self.spread(b, node, kind)}))"
        )

    def cast(self, node: Node) -> str:
        (source,) = node.src
        if dtypes.float16 in (node.dtype, source.dtype) and node.dtype is not source.dtype:
            return self.half(node)
        if not node.shape:
            return (
                f"({self.ref(source)}) != 0"
                if node.dtype is dtypes.bool
                else f"({self.kind(node)}){self.ref(source)}"
            )
        if node.dtype is dtypes.bool:
            kind = self.kind(source)
            self.mask_bits[node] = int(kind[1:])
            return f"({self.vector('i' + kind[1:], node.shape[0])})({self.ref(source)} != 0)"
        result = self.vector(self.kind(node), node.shape[0])
        if source.dtype is dtypes.bool:
            return f"__builtin_convertvector({self.ref(source)} & 1, {result})"
        return f"__builtin_convertvector({self.ref(source)}, {result})"

    def bitcast(self, node: Node) -> str:
        (source,) = node.src
        if node.shape:
            return f"({self.type(node)}){self.ref(source)}"
        return f"((union {{ {self.kind(source)} a; {self.kind(node)} b; }}){{ .a = {self.ref(source)} }}).b"

    def negate(self, node: Node) -> str:
        return f"({self.type(node)})(-{self.ref(node.src[0])})"

    def fused_multiply_add(self, node: Node) -> str:
        return self.function(node, "fma", "abc")

    def square_root(self, node: Node) -> str:
        return self.function(node, "sqrt", "a")

    def truncate(self, node: Node) -> str:
        return self.function(node, "trunc", "a")

    def function(self, node: Node, word: str, parameters: str) -> str:
        """Of a scalar a macro; of vectors a builtin of clang, or lane by lane, which gcc makes one
        instruction.
        """
        scalar = f"{word.upper()}_{self.kind(node)}"
        operands = ", ".join(self.spread(s, node) if node.shape else self.ref(s) for s in node.src)
        if not node.shape:
            return f"{scalar}({operands})"
        vector = self.type(node)
        name = f"{word}_{vector}"
        self.helper(name, f"VECTOR_{word}", f"{name} __builtin_elementwise_{word}", vector,
                    [(vector, letter) for letter in parameters], scalar)
        return f"{name}({operands})"

    def half(self, node: Node) -> str:
        """A CAST from float16, which is held as its bits, to float32, or back."""
        (source,) = node.src
        narrow = node.dtype is dtypes.float16
        scalar = "f16_of_f32" if narrow else "f32_of_f16"
        if not node.shape:
            return f"{scalar}({self.ref(source)})"
        lanes, result = node.shape[0], self.type(node)
        name = f"{scalar}x{lanes}"
        halves = f"_Float16 __attribute__((vector_size({2 * lanes})))"
        convert = f"(a), {halves}" if narrow else f"({halves})(a), {result}"
        self.helper(name, "VECTOR_half", f"{name}(a) ({result})__builtin_convertvector({convert})", result,
                    [(self.type(source), "a")], scalar)
        return f"{name}({self.ref(source)})"

    def helper(
        self, name: str, condition: str, macro: str, result: str, parameters: list, scalar: str
    ) -> None:
        """Define a function of vectors: a macro where the condition holds, else lane by lane."""
        declared = ", ".join(f"{kind} {letter}" for kind, letter in parameters)
        lanes = ", ".join(f"{letter}[i]" for _, letter in parameters)
        count = "(int)(sizeof(r) / sizeof(r[0]))"
        self.helpers[name] = (
            f"#ifndef HAVE_{name}\n#define HAVE_{name}\n#if {condition}\n#define {macro}\n#else\n"
            f"static inline {result} {name}({declared}) {{\n  {result} r;\n"
            f"  for (int i = 0; i < {count}; i++) r[i] = {scalar}({lanes});\n  return r;\n}}\n"
            "#endif\n#endif")

    def extreme(self, node: Node) -> str:
        """MAX and MIN of integers, as positions need them."""
        sign = ">" if node.op is ops.MAX else "<"
        if not node.shape:
            a, b = (self.ref(s) for s in node.src)
            return f"{a} {sign} {b} ? {a} : {b}"
        a, b = (self.spread(s, node, self.kind(node)) for s in node.src)
        bits = self.vector(f"i{self.kind(node)[1:]}", node.shape[0])
        mask = f"({bits})({a} {sign} {b})"
        return f"({self.type(node)})(({mask} & ({bits}){a}) | (~{mask} & ({bits}){b}))"

    def lanes(self, node: Node) -> str:
        return f"({self.type(node)}){{{', '.join(str(n) for n in range(node.arg))}}}"

    def broadcast(self, node: Node) -> str:
        if node.dtype is dtypes.bool:
            self.mask_bits[node] = 8
        return self.spread(node.src[0], node, self.kind(node))

    def extract(self, node: Node) -> str:
        text = f"{self.ref(node.src[0])}[{node.arg}]"
        return f"{text} != 0" if node.dtype is dtypes.bool else text

    def slice(self, node: Node) -> str:
        (source,) = node.src
        if node.dtype is dtypes.bool:
            self.mask_bits[node] = self.mask_bits.get(source, 8)
        start, count = node.arg
        text = self.ref(source)
        return f"__builtin_shufflevector({text}, {text}, {', '.join(str(start + n) for n in range(count))})"

    def stack(self, node: Node) -> str:
        sign = ""
        if node.dtype is dtypes.bool:
            self.mask_bits[node] = 8
            sign = "-(i8)"
        return f"({self.type(node)}){{{', '.join(sign + self.ref(s) for s in node.src)}}}"

    def neighbours(self, pointer: Node, index: Node, lanes: int) -> str:
        """Elements in memory from an index on, as a vector."""
        kind = self.vector(element(pointer.dtype), lanes, unaligned=True)
        return f"*({kind} *)({self.ref(pointer)} + {self.ref(index)})"

    def load(self, node: Node) -> str:
        pointer, index, *gate = node.src
        kind = element(pointer.dtype)
        if not node.shape:
            text = f"{self.ref(pointer)}[{self.ref(index)}]"
            zero = "0"
        else:
            lanes = node.shape[0]
            text = self.neighbours(pointer, index, lanes)
            zero = f"({self.vector(kind, lanes)}){{0}}"
            if node.dtype is dtypes.bool:
                self.mask_bits[node] = 8
                text = f"({self.vector('i8', lanes)})({text} != 0)"
                zero = f"({self.vector('i8', lanes)}){{0}}"
            elif gate:
                text = f"({self.vector(kind, lanes)})({text})"
        return f"{self.ref(gate[0])} ? {text} : {zero}" if gate else text

    def read(self, node: Node) -> str:
        if node.src[0] in self.mask_bits:
            self.mask_bits[node] = self.mask_bits[node.src[0]]
        return self.ref(node.src[0])

    # -- statements ------------------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def name(self, node: Node, letter: str) -> str:
        self.count += 1
        self.names[node] = f"{letter}{self.count}"
        return self.names[node]

    def statement(self, node: Node) -> None:
        op = node.op
        if op is ops.GROUP:
            name = self.name(node, "g")
            self.line(f"for (i64 {name} = (i64)begin; {name} < (i64)end; {name}++) {{")
            self.depth += 1
        elif op is ops.LOOP:
            name = self.name(node, "k")
            kind = self.kind(node.src[0])
            self.line(f"for ({kind} {name} = 0; {name} < {self.ref(node.src[0])}; {name}++) {{")
            self.depth += 1
        elif op is ops.IF:
            self.line(f"if ({self.ref(node.src[0])}) {{")
            self.depth += 1
        elif op is ops.END:
            self.depth -= 1
            self.line("}")
        elif op is ops.STORE:
            self.store(node)
        elif op is ops.REGISTER:
            source = node.src[0]
            if source.dtype is dtypes.bool and source.shape:
                self.mask_bits[node] = 8
                text = self.spread(source, source, "i8")
            else:
                text = self.ref(source)
            self.line(f"{self.type(node)} {self.name(node, 'r')} = {text};")
        elif op is ops.SET:
            register, value = node.src
            text = self.spread(value, register, self.kind(register)) if register.shape else self.ref(value)
            self.line(f"{self.names[register]} = {text};")
        else:
            text = self.expression(node)
            self.line(f"const {self.type(node)} {self.name(node, 'v')} = {text};")

    def store(self, node: Node) -> None:
        pointer, index, value, *gate = node.src
        if value.shape:
            lanes = value.shape[0]
            text = self.ref(value)
            if value.dtype is dtypes.bool:
                text = f"({self.vector('u8', lanes)})({self.spread(value, value, 'i8')} & 1)"
            if node.arg and value.dtype is not dtypes.bool:
                self.stream(element(pointer.dtype), lanes, f"{self.ref(pointer)} + {self.ref(index)}", text)
                return
            text = f"{self.neighbours(pointer, index, lanes)} = {text};"
        else:
            text = f"{self.ref(pointer)}[{self.ref(index)}] = {self.ref(value)};"
        self.line(f"if ({self.ref(gate[0])}) {text}" if gate else text)

    def stream(self, kind: str, lanes: int, place: str, value: str) -> None:
        """Store a vector past the caches, where the compiler can and the address is a multiple of its size.
        """
        self.helpers["stream"] = STREAM
        whole, anywhere = self.vector(kind, lanes), self.vector(kind, lanes, True)
        self.line(f"STREAM({whole}, {anywhere}, {place}, {value});")

    # -- the whole kernel ------------------------------------------------------------------------------------
    def function_head(
        self, name: str, pointers: Sequence[DType], variables: Sequence[Node], threads: int
    ) -> str:
        """Open the function and take its arguments apart."""
        for number, dtype in enumerate(pointers):
            kind = ("" if number == 0 else "const ") + element(dtype)
            self.line(f"{kind} *restrict p{number} = ({kind} *)args[{number}];")
        for number, variable in enumerate(variables):
            kind = self.kind(variable)
            self.line(f"const {kind} {self.name(variable, 'n')} = ({kind})args[{len(pointers) + number}];")
        return f"void {name}(const u64 *restrict args, u64 begin, u64 end) {{"

    def local(self, node: Node) -> str:
        """Declare local memory."""
        return f"{element(node.dtype)} {self.ref(node)}[{node.arg[1]}] __attribute__((aligned(64)))"

    def source(
        self,
        name: str,
        instructions: Sequence[Node],
        pointers: Sequence[DType],
        variables: Sequence[Node],
        threads: int = 1,
    ) -> str:
        """The C text of a kernel: the types and helpers it uses, then the function."""
        head = self.function_head(name, pointers, variables, threads)
        for local in dict.fromkeys(s for node in instructions for s in node.src if s.op is ops.LOCAL):
            self.line(f"{self.local(local)};")
        for node in instructions:
            if node.op is not ops.VARIABLE:
                self.statement(node)
        if "stream" in self.helpers:
            self.line("STREAMED();")
        return "\n".join((*self.vectors.values(), *self.helpers.values(), head, *self.lines, "}", ""))


_METHODS: dict[Op, object] = {
    ops.WHERE: CDialect.choose,
    ops.CAST: CDialect.cast,
    ops.BITCAST: CDialect.bitcast,
    ops.NEG: CDialect.negate,
    ops.FMA: CDialect.fused_multiply_add,
    ops.SQRT: CDialect.square_root,
    ops.TRUNC: CDialect.truncate,
    ops.MAX: CDialect.extreme,
    ops.MIN: CDialect.extreme,
    ops.LANES: CDialect.lanes,
    ops.BROADCAST: CDialect.broadcast,
    ops.EXTRACT: CDialect.extract,
    ops.SLICE: CDialect.slice,
    ops.STACK: CDialect.stack,
    ops.LOAD: CDialect.load,
    ops.READ: CDialect.read,
}


def render(
    name: str,
    instructions: Sequence[Node],
    pointers: Sequence[DType],
    variables: Sequence[Node],
    threads: int = 1,
) -> str:
    """The C source of one kernel. pointers: element type of each POINTER; variables: VARIABLEs, passed after
    them. threads: work-items of a group, which on a CPU is 1.
    """
    if threads != 1:
        raise ValueError(f"{name}: a group of {threads} work-items; the CPU runs one at a time")
    return CDialect().source(name, instructions, pointers, variables)
