"""Write arithmetic on Nodes as formulas: `r * r * q + r` instead of nested `Node(ops.ADD, ...)`.

Used to spell out functions and conversions in terms of basic operations. A Formula builds exactly the
operations that are written, in the order written; nothing is simplified, for a rounding may hide in every
step. Python numbers become constants of the other operand's type.
"""
from collections.abc import Sequence
from dataclasses import dataclass

from tiny.ir import ops
from tiny.ir.dtype import DType, dtypes
from tiny.ir.node import Node, const


@dataclass(frozen=True)
class Layout:
    """Where the fields of a floating type lie: sign on top,
    then the exponent with its bias, then the mantissa.
    """
    dtype: DType
    word: DType                                             # unsigned integer of the same size
    mantissa: int                                           # stored bits
    bias: int

    @property
    def sign(self) -> int:
        return 1 << (self.word.bits - 1)

    @property
    def infinity(self) -> int:
        """The pattern of +inf; every larger one without sign is a NaN."""
        return (2 * self.bias + 1) << self.mantissa

    @property
    def magic(self) -> float:
        """Added to a small number, it leaves no room for a fraction:
        the sum's low bits hold the nearest integer.
        """
        return 1.5 * 2.0**self.mantissa

    @property
    def magic_bits(self) -> int:
        return ((self.bias + self.mantissa) << self.mantissa) + (1 << (self.mantissa - 1))


LAYOUTS = {dtypes.float32: Layout(dtypes.float32, dtypes.uint32, 23, 127),
           dtypes.float64: Layout(dtypes.float64, dtypes.uint64, 52, 1023),
           dtypes.float16: Layout(dtypes.float16, dtypes.uint16, 10, 15),
           dtypes.bfloat16: Layout(dtypes.bfloat16, dtypes.uint16, 7, 127),
           dtypes.fp8e4m3: Layout(dtypes.fp8e4m3, dtypes.uint8, 3, 7),
           dtypes.fp8e5m2: Layout(dtypes.fp8e5m2, dtypes.uint8, 2, 15)}


class Formula:
    """A Node with operators. `node` is what was built so far."""
    __slots__ = ("node",)

    def __init__(self, node: Node):
        self.node = node

    @property
    def dtype(self) -> DType:
        return self.node.dtype

    @property
    def layout(self) -> Layout:
        """Of a floating value; KeyError otherwise."""
        return LAYOUTS[self.node.dtype]

    def _with(self, row: ops.Op, other, swapped: bool = False) -> "Formula":
        right = other.node if isinstance(other, Formula) else const(other, self.node.dtype)
        return Formula(Node(row, None, (right, self.node) if swapped else (self.node, right)))

    def __add__(self, other):
        return self._with(ops.ADD, other)

    def __radd__(self, other):
        return self._with(ops.ADD, other, swapped=True)

    def __sub__(self, other):
        return self._with(ops.SUB, other)

    def __rsub__(self, other):
        return self._with(ops.SUB, other, swapped=True)

    def __mul__(self, other):
        return self._with(ops.MUL, other)

    def __rmul__(self, other):
        return self._with(ops.MUL, other, swapped=True)

    def __truediv__(self, other):
        return self._with(ops.FDIV, other)

    def __rtruediv__(self, other):
        return self._with(ops.FDIV, other, swapped=True)

    def __and__(self, other):
        return self._with(ops.AND, other)

    def __or__(self, other):
        return self._with(ops.OR, other)

    def __xor__(self, other):
        return self._with(ops.XOR, other)

    def __lshift__(self, other):
        return self._with(ops.SHL, other)

    def __rshift__(self, other):
        return self._with(ops.SHR, other)

    def __lt__(self, other):
        return self._with(ops.LT, other)

    def __gt__(self, other):
        return self._with(ops.LT, other, swapped=True)

    def __neg__(self):
        return Formula(Node(ops.NEG, None, (self.node,)))

    def __invert__(self):
        """Not, of a bool."""
        return self ^ True

    def equals(self, other) -> "Formula":
        return self._with(ops.EQ, other)

    def differs(self, other) -> "Formula":
        return self._with(ops.NE, other)

    def is_nan(self) -> "Formula":
        return self.differs(self)

    def sqrt(self) -> "Formula":
        return Formula(Node(ops.SQRT, None, (self.node,)))

    def trunc(self) -> "Formula":
        return Formula(Node(ops.TRUNC, None, (self.node,)))

    def cast(self, dtype: DType, fits: bool = False) -> "Formula":
        """The value in another type; `fits` promises that the type can hold it."""
        if dtype is self.node.dtype:
            return self
        return Formula(Node(ops.CAST, dtype, (self.node,), True if fits else None))

    def bitcast(self, dtype: DType) -> "Formula":
        """The bits as another type; a bitcast of a bitcast skips the one between."""
        node = self.node
        while node.op is ops.BITCAST:
            node = node.src[0]
        return Formula(node if node.dtype is dtype else Node(ops.BITCAST, dtype, (node,)))

    def bits(self) -> "Formula":
        """The pattern of a floating value as an unsigned integer."""
        return self.bitcast(self.layout.word)

    def magnitude(self) -> "Formula":
        """The floating value without its sign."""
        return (self.bits() & (self.layout.sign - 1)).bitcast(self.dtype)

    def sign_bit(self) -> "Formula":
        """The pattern with everything but the sign cleared."""
        return self.bits() & self.layout.sign

    def flip_sign(self, sign: "Formula") -> "Formula":
        """The sign turned where the pattern `sign` has it set."""
        return (self.bits() ^ sign).bitcast(self.dtype)

    def clamp(self, low: float, high: float) -> "Formula":
        """Within low ... high; NaN stays."""
        floor = where(self < low, low, self)
        return where(floor > high, high, floor)

    def high_half(self) -> "Formula":
        """The upper half of the significant bits, so that the product of two halves is exact."""
        dropped = (self.layout.mantissa + 2) // 2
        mask = (1 << self.layout.word.bits) - (1 << dropped)
        return (self.bits() & mask).bitcast(self.dtype)


def where(condition: Formula, yes, no) -> Formula:
    """condition ? yes : no; one of the two may be a Python number."""
    dtype = yes.dtype if isinstance(yes, Formula) else no.dtype
    return Formula(Node(ops.WHERE, None, (condition.node, *(_node(v, dtype) for v in (yes, no)))))


def fma(x, y, z) -> Formula:
    """x * y + z, where it does not matter for correctness whether the product is rounded first."""
    dtype = next(v.dtype for v in (x, y, z) if isinstance(v, Formula))
    return Formula(Node(ops.FMA, None, tuple(_node(v, dtype) for v in (x, y, z))))


def constant(value, dtype: DType) -> Formula:
    return Formula(const(value, dtype))


def polynomial(x: Formula, coefficients: Sequence[float]) -> Formula:
    """c[0] + c[1] x + c[2] x**2 ... by Horner's rule."""
    total = constant(coefficients[-1], x.dtype)
    for c in reversed(coefficients[:-1]):
        total = fma(total, x, c)
    return total


def _node(value, dtype: DType) -> Node:
    return value.node if isinstance(value, Formula) else const(value, dtype)
