"""Matrix instructions as data: sizes, element types, and where each element stands.

An instruction computes c + a b, with a of m rows and k columns, b of k rows and n columns. The items of a
wave hold the three together, each item some elements of each. A Layout says which: the number of a lane, and
that of an element inside it, are counted in digits, and every digit is a step along one of m, n, k. What a
core with matrix registers does fits too: one lane, many elements (AMX: 16 rows of 16 pairs).

Sources of the layouts: AMD, "RDNA3 Instruction Set Architecture" 7.9, "RDNA4" 7.12, "AMD Instinct MI300 ISA"
7.1.5, and AMD's Matrix Instruction Calculator. Of RDNA3's instructions the forms for waves of 32 are listed;
those that add up in 16 bits are not, because sums of small floats are made in float32 (docs/numerics.md).
"""
from dataclasses import dataclass
from math import prod

from tiny.ir import ops
from tiny.ir.dtype import DType, dtypes
from tiny.ir.node import Node, toposort
from tiny.target import Target


@dataclass(frozen=True, slots=True)
class Digit:
    """Counts to `size`, and moves `stride` along `axis` (m, n, k) each time. Without an axis it moves
    nothing: lanes that differ in it hold the same.
    """
    size: int
    axis: str = ""
    stride: int = 0


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the elements of a matrix stand: digits of the lane's number and of the element's, both from the
    least significant one on.
    """
    lane: tuple[Digit, ...]
    element: tuple[Digit, ...]

    @property
    def elements(self) -> int:
        """How many elements a lane holds."""
        return prod(digit.size for digit in self.element)


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix instruction. factors: element types that a and b may have, each for itself where `mixed`;
    total: that of c; lanes: items of the wave that runs it; name: what dialects know it by.
    """
    name: str
    m: int
    n: int
    k: int
    lanes: int
    factors: tuple[DType, ...]
    total: DType
    a: Layout
    b: Layout
    c: Layout
    mixed: bool = False

    def __repr__(self) -> str:
        return self.name

    def problem(self, total: Node | None, m: Node, n: Node, k: Node) -> str | None:
        """Why it cannot compute a reduction with its m, n and k along these axes, None if it can."""
        sides = None if total is None else factors(total, m, n)
        if sides is None:
            return "it adds up products of one factor along m and one along n, which the kernel does not"
        if any(k not in toposort(side) for side in sides):
            return "both factors must depend on the reduced axis"
        types = tuple(side.dtype for side in sides)
        if any(dtype not in self.factors for dtype in types) or (types[0] is not types[1] and not self.mixed):
            return f"it multiplies {' or '.join(dtype.name for dtype in self.factors)}, not " + \
                " by ".join(dtype.name for dtype in types)
        exact = total.dtype is self.total if self.total.is_float else \
            not total.dtype.is_float and total.dtype.bits <= self.total.bits
        return None if exact else f"it adds up {self.total.name}, not {total.dtype.name}"


# -- what a kernel multiplies --------------------------------------------------------------------------------
def factors(total: Node, m: Node, n: Node) -> tuple[Node, Node] | None:
    """The factors along m and along n of a reduction that adds up products of the two; None for others.

    They come as they are before they are widened, which loses nothing: products of 16-bit floats are exact in
    float32, and sums of integers wrap, however wide they are on the way.
    """
    term = total.src[0]
    if total.arg is not ops.ADD or term.op is not ops.MUL:
        return None
    a, b = (_narrow(factor, total.dtype) for factor in term.src)
    with_m, with_n = ([side for side in (a, b) if axis in toposort(side)] for axis in (m, n))
    if len(with_m) != 1 or len(with_n) != 1 or with_m[0] is with_n[0]:
        return None
    return with_m[0], with_n[0]


def _narrow(factor: Node, wide: DType) -> Node:
    narrow = (dtypes.float16, dtypes.bfloat16) if wide is dtypes.float32 else (dtypes.int8, dtypes.uint8)
    exact = wide is dtypes.float32 or (wide.kind in "iu" and wide.bits <= 32)
    return factor.src[0] if exact and factor.op is ops.CAST and factor.src[0].dtype in narrow else factor


# -- AMD -----------------------------------------------------------------------------------------------------
def _operands(side: int, k: int, parts: int) -> tuple[Layout, Layout]:
    """a and b: a lane holds neighbours along k, of one row or column; the next `parts` - 1 times `side` lanes
    hold those that follow.
    """
    own = k // parts
    return tuple(Layout((Digit(side, axis, 1), Digit(parts, "k", own)), (Digit(own, "k", 1),))
                 for axis in "mn")


def _rdna3(kind: str, types: tuple[DType, ...], total: DType) -> Matrix:
    """Lanes 16 to 31 hold a and b once more; c has even rows in the lower half, odd ones in the upper."""
    a, b = (Layout((Digit(16, axis, 1), Digit(2)), (Digit(16, "k", 1),)) for axis in "mn")
    c = Layout((Digit(16, "n", 1), Digit(2, "m", 1)), (Digit(8, "m", 2),))
    return Matrix(f"wmma_{kind}", 16, 16, 16, 32, types, total, a, b, c, mixed=len(types) > 1)


def _rdna4(kind: str, types: tuple[DType, ...], total: DType) -> Matrix:
    """The halves of the wave hold the halves of k, and rows 0 to 7 and 8 to 15 of c."""
    c = Layout((Digit(16, "n", 1), Digit(2, "m", 8)), (Digit(8, "m", 1),))
    return Matrix(f"wmma_{kind}_gfx12", 16, 16, 16, 32, types, total, *_operands(16, 16, 2), c,
                  mixed=len(types) > 1)


def _mfma(kind: str, side: int, k: int, dtype: DType, total: DType) -> Matrix:
    """Each group of lanes holds four rows of c in turn."""
    parts = 64 // side
    rows = (Digit(4, "m", 1), Digit(side * side // 256, "m", 4 * parts))
    c = Layout((Digit(side, "n", 1), Digit(parts, "m", 4)), rows)
    return Matrix(f"mfma_{kind}", side, side, k, 64, (dtype,), total, *_operands(side, k, parts), c)


_BYTES = (dtypes.int8, dtypes.uint8)
GFX11 = (_rdna3("f32_16x16x16_f16", (dtypes.float16,), dtypes.float32),
         _rdna3("f32_16x16x16_bf16", (dtypes.bfloat16,), dtypes.float32),
         _rdna3("i32_16x16x16_iu8", _BYTES, dtypes.int32))
GFX12 = (_rdna4("f32_16x16x16_f16", (dtypes.float16,), dtypes.float32),
         _rdna4("f32_16x16x16_bf16", (dtypes.bfloat16,), dtypes.float32),
         _rdna4("i32_16x16x16_iu8", _BYTES, dtypes.int32))
GFX942 = (_mfma("f32_32x32x8f16", 32, 8, dtypes.float16, dtypes.float32),
          _mfma("f32_16x16x16f16", 16, 16, dtypes.float16, dtypes.float32),
          _mfma("f32_32x32x8bf16_1k", 32, 8, dtypes.bfloat16, dtypes.float32),
          _mfma("f32_16x16x16bf16_1k", 16, 16, dtypes.bfloat16, dtypes.float32),
          _mfma("f32_32x32x2f32", 32, 2, dtypes.float32, dtypes.float32),
          _mfma("f32_16x16x4f32", 16, 4, dtypes.float32, dtypes.float32),
          _mfma("i32_32x32x16_i8", 32, 16, dtypes.int8, dtypes.int32),
          _mfma("i32_16x16x32_i8", 16, 32, dtypes.int8, dtypes.int32))
_BY_ARCH = {"gfx11": GFX11, "gfx12": GFX12, "gfx942": GFX942}


def instructions(target: Target) -> tuple[Matrix, ...]:
    """The matrix instructions of a target, those that do more at once first; () for one that has none."""
    found = next((rows for arch, rows in _BY_ARCH.items() if target.arch.startswith(arch)), ())
    return tuple(row for row in found if row.lanes == target.lanes)


def named(name: str) -> Matrix:
    """The instruction of that name; KeyError if there is none."""
    return {row.name: row for rows in _BY_ARCH.values() for row in rows}[name]
