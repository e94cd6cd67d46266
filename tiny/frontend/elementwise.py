"""Operators: arithmetic, comparison, bits, choice, and the change of type.

Types. Tensors of two types meet in the least one that holds both. A Python number takes the tensor's type,
except that a float makes an integer or bool tensor `dtypes.default_float`, and an int makes a bool tensor
`dtypes.default_int`; integers past the type's range wrap.
"""
import functools

from tiny.frontend.core import Core
from tiny.frontend.hostdata import to_dtype
from tiny.frontend.shaping import broadcast, broadcast_shape
from tiny.ir import ops
from tiny.ir.dtype import DType, dtypes, least_upper
from tiny.ir.node import Node, const

_NUMBERS = (bool, int, float)
_CATEGORY = {"b": 0, "u": 1, "i": 1, "x": 1, "f": 2}


def number_dtype(value, dtype: DType) -> DType:
    """The type in which a Python number meets a tensor of `dtype`."""
    kind = type(value)
    if kind is float:
        return dtype if dtype.kind == "f" else dtypes.default_float
    if kind is int and dtype.kind == "b":
        return dtypes.default_int if -2**31 <= value < 2**31 else dtypes.int64
    return dtype


@functools.lru_cache(2048, typed=True)
def _kept_constant(value, dtype: DType) -> Node:
    if type(value) is int and dtype.is_integer and not -1 << dtype.bits - 1 <= value < 1 << dtype.bits:
        raise OverflowError(f"the number {value} does not fit into {dtype.name}, the tensor's type; cast the "
                            "tensor to a larger one first")
    return const(value, dtype)


def number(value, dtype: DType) -> Node:
    """A constant node; the usual ones are kept, but not float zeros: 0.0 and -0.0 are one key."""
    return _kept_constant(value, dtype) if value or type(value) is not float else const(value, dtype)


def cast(node: Node, dtype: DType) -> Node:
    """The node in another type, if it has not that one already."""
    if node.dtype is dtype:
        return node
    if node.op is ops.CONST and node.dtype.kind != "f":
        return const(node.arg, dtype)
    return Node(ops.CAST, dtype, (node,))


class Elementwise:
    """Operators of Tensor."""

    # -- operands -------------------------------------------------------------------------------------------
    def _pair(self, other, name: str) -> tuple[Node, Node]:
        """The nodes of self and `other`, of one type; of one shape, or one of them a scalar."""
        a = self.node
        if isinstance(other, Core):
            b = other.node
        elif type(other) in _NUMBERS:
            dtype = number_dtype(other, a.dtype)
            return (a if dtype is a.dtype else Node(ops.CAST, dtype, (a,))), number(other, dtype)
        else:
            b = self._lift(other).node
        if a.dtype is not b.dtype:
            dtype = least_upper(a.dtype, b.dtype)
            a, b = cast(a, dtype), cast(b, dtype)
        if a.shape != b.shape and a.shape and b.shape:
            shape = broadcast_shape(name, a.shape, b.shape)
            a, b = broadcast(a, shape), broadcast(b, shape)
        return a, b

    def _float_pair(self, other, name: str) -> tuple[Node, Node]:
        """As `_pair`, in a floating type."""
        a, b = self._pair(other, name)
        if a.dtype.kind == "f":
            return a, b
        return cast(a, dtypes.default_float), cast(b, dtypes.default_float)

    def _binary(self, row: ops.Op, other):
        """The result of one row on self and other."""
        return self._wrap(Node(row, None, self._pair(other, row.name.lower())))

    def _update(self, name: str, result):
        """Write the result of an in-place operator into self. TypeError where it is of a wider kind."""
        if result.dtype is not self.dtype and _CATEGORY[result.dtype.kind] > _CATEGORY[self.dtype.kind]:
            raise TypeError(f"{name}: the result is {result.dtype.name} and does not fit in a tensor of "
                            f"{self.dtype.name}; write x = x {name[:-1]} y instead")
        return self.assign(result)

    # -- arithmetic -----------------------------------------------------------------------------------------
    def add(self, other):
        return self._wrap(Node(ops.ADD, None, self._pair(other, "add")))

    def sub(self, other):
        return self._wrap(Node(ops.SUB, None, self._pair(other, "sub")))

    def mul(self, other):
        return self._wrap(Node(ops.MUL, None, self._pair(other, "mul")))

    def div(self, other, rounding_mode: str | None = None):
        """self / other. rounding_mode "trunc" or "floor" rounds the quotient and keeps integer types."""
        if rounding_mode is None:
            return self._wrap(Node(ops.FDIV, None, self._float_pair(other, "div")))
        if rounding_mode not in ("trunc", "floor"):
            raise ValueError(f'div: rounding_mode={rounding_mode!r}; it is None, "trunc" or "floor"')
        a, b = map(self._wrap, self._pair(other, "div"))
        if a.dtype.is_float:
            return a._float_quotient(b) if rounding_mode == "floor" else a.div(b).trunc()
        quotient = a._binary(ops.IDIV, b)
        if rounding_mode == "floor" or not a.dtype.kind == "i":
            return quotient
        inexact = (quotient * b).ne(a) & b.ne(0)
        return ((quotient < 0) & inexact).where(quotient + 1, quotient)

    def floordiv(self, other):
        """The quotient rounded down; for integers 0 where `other` is 0."""
        return self.div(other, rounding_mode="floor")

    def mod(self, other):
        """What floor division leaves: the sign of `other`. For integers 0 where `other` is 0."""
        a, b = self._pair(other, "mod")
        if not a.dtype.is_float:
            return self._wrap(Node(ops.MOD, None, (a, b)))
        a, b = self._wrap(a), self._wrap(b)
        rest = a.fmod(b)
        wrong_sign = (rest < 0).ne(b < 0) & rest.ne(0)
        return wrong_sign.where(rest + b, rest.eq(0).where(rest.abs().copysign(b), rest))

    def fmod(self, other):
        """What division towards zero leaves: the sign of self.

        Of floats it is exact while the quotient is below 2**29, of float64 below 2**53.
        """
        a, b = map(self._wrap, self._pair(other, "fmod"))
        if not a.dtype.is_float:
            return a - a.div(b, rounding_mode="trunc") * b if a.dtype.kind == "i" else a.mod(b)
        wide, size = a.cast(dtypes.float64), b.cast(dtypes.float64).abs()
        quotient = wide.div(size).trunc()
        rest = wide - quotient * size
        if a.dtype is dtypes.float64:
            rest = rest - quotient._product_error(size)
        rest = (rest.ne(0) & (rest < 0).ne(wide < 0)).where(rest + size * wide.sign(), rest)
        rest = size.isinf().where(wide.isinf().where(float("nan"), wide), rest)
        return rest.copysign(wide).cast(a.dtype)

    def _product_error(self, other):
        """What self * other rounds off in float64, exactly (Dekker, 1971)."""
        def halves(x):
            shifted = x * 134217729.0                       # 2**27 + 1: the upper half of the mantissa stays
            upper = shifted - (shifted - x)
            return upper, x - upper
        (a, b), (c, d) = halves(self), halves(other)
        return b * d - (((self * other - a * c) - b * c) - a * d)

    def _float_quotient(self, other):
        """floor(self / other) of floats, from the exact remainder: 1.0 // 0.1 is 9."""
        quotient = ((self - self.mod(other)).div(other)).round()
        return other.eq(0).where(self.div(other), quotient)

    def pow(self, exponent):
        """self ** exponent. Integers to integer powers stay integers and wrap."""
        if type(exponent) in _NUMBERS:
            return self._power_of_number(exponent)
        a, b = map(self._wrap, self._pair(exponent, "pow"))
        return a._binary(ops.POW, b) if a.dtype.is_float else a._integer_power(b)

    def _power_of_number(self, exponent):
        if not self.dtype.is_float and type(exponent) is not float:
            if exponent < 0:
                raise ValueError(f"pow: a {self.dtype.name} tensor to the power of {exponent} is no integer; "
                                 "use .float() ** n")
            base = self.cast(number_dtype(exponent, self.dtype))
            return base._repeated_product(int(exponent))
        base = self if self.dtype.is_float else self.cast(dtypes.default_float)
        if exponent in (1, 2, 3, 4):
            return base._repeated_product(int(exponent))
        if exponent in (-1, -2):
            return base._repeated_product(int(-exponent)).reciprocal()
        if exponent == 0.5:                                 # as pow has it: +0 of -0, and inf of -inf
            return base.eq(-float("inf")).where(float("inf"), base.sqrt() + 0.0)
        return base._binary(ops.POW, float(exponent))

    def _repeated_product(self, exponent: int):
        result, power = None, self
        while exponent:
            if exponent & 1:
                result = power if result is None else result * power
            exponent >>= 1
            power = power * power if exponent else power
        return result if result is not None else self._wrap(broadcast(number(1, self.dtype), self.shape))

    def _integer_power(self, exponent):
        """By squaring, for every bit of the exponent's type. A negative power is 0, but of 1 and -1."""
        result, power = self._wrap(number(1, self.dtype)), self
        for bit in range(self.dtype.bits - (self.dtype.kind == "i")):
            result = (exponent.rshift(bit) & 1).ne(0).where(result * power, result)
            power = power * power
        if self.dtype.kind != "i":
            return result
        odd = (exponent & 1).ne(0)
        inverse = self.eq(1).where(1, self.eq(-1).where(odd.where(-1, 1), 0)).cast(self.dtype)
        return (exponent < 0).where(inverse, result)

    def maximum(self, other):
        """The larger of the two; NaN where one is."""
        return self._binary(ops.MAX, other)

    def minimum(self, other):
        """The smaller of the two; NaN where one is."""
        return self._binary(ops.MIN, other)

    def neg(self):
        return self._wrap(Node(ops.NEG, None, (self.node,)))

    # -- comparison -----------------------------------------------------------------------------------------
    def lt(self, other):
        return self._wrap(Node(ops.LT, None, self._pair(other, "lt")))

    def gt(self, other):
        a, b = self._pair(other, "gt")
        return self._wrap(Node(ops.LT, None, (b, a)))

    def le(self, other):
        return self._at_most(*self._pair(other, "le"))

    def ge(self, other):
        a, b = self._pair(other, "ge")
        return self._at_most(b, a)

    def _at_most(self, a: Node, b: Node):
        """a <= b, false where one is NaN."""
        if a.dtype.kind != "f":
            return self._wrap(Node(ops.XOR, None, (Node(ops.LT, None, (b, a)), number(True, dtypes.bool))))
        return self._wrap(Node(ops.OR, None, (Node(ops.LT, None, (a, b)), Node(ops.EQ, None, (a, b)))))

    def eq(self, other):
        return self._wrap(Node(ops.EQ, None, self._pair(other, "eq")))

    def ne(self, other):
        return self._wrap(Node(ops.NE, None, self._pair(other, "ne")))

    def isclose(self, other, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False):
        """|self - other| <= atol + rtol * |other|; infinities are close to themselves only."""
        a, b = map(self._wrap, self._float_pair(other, "isclose"))
        near = ((a - b).abs() <= atol + rtol * b.abs()) & b.isfinite() & a.isfinite()
        close = near | a.eq(b)
        return close | (a.isnan() & b.isnan()) if equal_nan else close

    def allclose(self, other, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
        """Whether every element is close to the other's; computes it now."""
        return bool(self.isclose(other, rtol, atol, equal_nan).all().item())

    # -- bits -----------------------------------------------------------------------------------------------
    def bitwise_and(self, other):
        return self._binary(ops.AND, other)

    def bitwise_or(self, other):
        return self._binary(ops.OR, other)

    def bitwise_xor(self, other):
        return self._binary(ops.XOR, other)

    def lshift(self, other):
        return self._binary(ops.SHL, other)

    def rshift(self, other):
        return self._binary(ops.SHR, other)

    def bitwise_not(self):
        """Every bit turned; for bool the other truth value."""
        if self.dtype.is_float:
            raise TypeError(f"bitwise_not: a {self.dtype.name} tensor has no bits to turn; bitcast it first")
        ones = number(True if self.dtype.kind == "b" else -1, self.dtype)
        return self._wrap(Node(ops.XOR, None, (self.node, ones)))

    def logical_not(self):
        """True where the element is 0."""
        return self.bitwise_not() if self.dtype.kind == "b" else self.eq(0)

    def logical_and(self, other):
        return self.bool() & self._lift(other).bool()

    def logical_or(self, other):
        return self.bool() | self._lift(other).bool()

    def logical_xor(self, other):
        return self.bool() ^ self._lift(other).bool()

    # -- choice ---------------------------------------------------------------------------------------------
    def where(self, x, y):
        """x where this tensor is true, y elsewhere; each a tensor or a number."""
        condition = self.node if self.dtype.kind == "b" else self.bool().node
        if isinstance(x, Core):
            a, b = x._pair(y, "where")
        elif isinstance(y, Core):
            b, a = y._pair(x, "where")
        elif type(x) in _NUMBERS and type(y) in _NUMBERS:
            dtype = number_dtype(y, dtypes.from_py(x))
            a, b = number(x, dtype), number(y, dtype)
        else:
            a, b = self._lift(x)._pair(y if type(y) in _NUMBERS else self._lift(y), "where")
        outer, inner = condition.shape, a.shape or b.shape
        if outer != inner and outer and inner:
            shape = broadcast_shape("where", outer, inner)
            condition, a, b = (broadcast(node, shape) if node.shape else node for node in (condition, a, b))
        return self._wrap(Node(ops.WHERE, None, (condition, a, b)))

    def masked_fill(self, mask, value):
        """`value` where the mask is true, this tensor elsewhere."""
        return self._lift(mask).where(value, self)

    # -- types ----------------------------------------------------------------------------------------------
    def cast(self, dtype):
        """The same numbers in another type; see the CAST row for what does not fit."""
        dtype = to_dtype(dtype)
        return self if dtype is self.dtype else self._wrap(Node(ops.CAST, dtype, (self.node,)))

    def bitcast(self, dtype):
        """The same bits as another type. Where sizes differ the last axis shrinks or grows, low bits first.

        ValueError where the last axis does not divide.
        """
        dtype = to_dtype(dtype)
        own = self.dtype
        if own.itemsize == dtype.itemsize:
            return self if dtype is own else self._wrap(Node(ops.BITCAST, dtype, (self.node,)))
        unsigned, target = (getattr(dtypes, f"uint{size * 8}") for size in (own.itemsize, dtype.itemsize))
        bits = self.bitcast(unsigned)
        ratio = max(own.itemsize, dtype.itemsize) // min(own.itemsize, dtype.itemsize)
        if not self.shape or (own.itemsize < dtype.itemsize and self.shape[-1] % ratio):
            raise ValueError(f"bitcast: {own.name} of shape {self.shape} to {dtype.name}: the last axis must "
                             f"be a multiple of {ratio} elements")
        small = min(own.itemsize, dtype.itemsize) * 8
        shifts = self._wrap(Node(ops.IOTA, dtypes.uint64, (), ratio)) * small
        if own.itemsize > dtype.itemsize:
            parts = bits.unsqueeze(-1).rshift(shifts.cast(unsigned)).cast(target)
            return parts.reshape(*self.shape[:-1], self.shape[-1] * ratio).bitcast(dtype)
        parts = bits.reshape(*self.shape[:-1], self.shape[-1] // ratio, ratio).cast(target)
        return parts.lshift(shifts.cast(target)).sum(-1, dtype=target).bitcast(dtype)

    def float(self):
        return self.cast(dtypes.float32)

    def half(self):
        return self.cast(dtypes.float16)

    def double(self):
        return self.cast(dtypes.float64)

    def bfloat16(self):
        return self.cast(dtypes.bfloat16)

    def int(self):
        return self.cast(dtypes.int32)

    def short(self):
        return self.cast(dtypes.int16)

    def long(self):
        return self.cast(dtypes.int64)

    def bool(self):
        return self.cast(dtypes.bool)

    # -- Python's operators and other spellings -------------------------------------------------------------
    __add__ = __radd__ = add
    __sub__, __mul__ = sub, mul
    __rmul__ = mul
    __truediv__, __floordiv__, __mod__, __pow__ = div, floordiv, mod, pow
    __and__ = __rand__ = bitwise_and
    __or__ = __ror__ = bitwise_or
    __xor__ = __rxor__ = bitwise_xor
    __lshift__, __rshift__ = lshift, rshift
    __neg__, __invert__ = neg, bitwise_not
    __lt__, __le__, __gt__, __ge__ = lt, le, gt, ge
    subtract, multiply, divide, true_divide, floor_divide = sub, mul, div, div, floordiv
    remainder, negative, less, greater = mod, neg, lt, gt
    less_equal, greater_equal, not_equal = le, ge, ne
    type = cast
    __hash__ = object.__hash__                              # __eq__ below is elementwise; a tensor is itself

    def __pos__(self):
        return self

    def __rsub__(self, other):
        a, b = self._pair(other, "sub")
        return self._wrap(Node(ops.SUB, None, (b, a)))

    def __rtruediv__(self, other):
        a, b = self._float_pair(other, "div")
        return self._wrap(Node(ops.FDIV, None, (b, a)))

    def _reversed(self, other) -> tuple:
        """(other, self) as tensors of one type."""
        a, b = self._pair(other, "operator")
        return self._wrap(b), self._wrap(a)

    def __rfloordiv__(self, other):
        a, b = self._reversed(other)
        return a.floordiv(b)

    def __rmod__(self, other):
        a, b = self._reversed(other)
        return a.mod(b)

    def __rpow__(self, other):
        a, b = self._reversed(other)
        return a.pow(b)

    def __rlshift__(self, other):
        a, b = self._reversed(other)
        return a.lshift(b)

    def __rrshift__(self, other):
        a, b = self._reversed(other)
        return a.rshift(b)

    def __eq__(self, other):
        return NotImplemented if other is None or isinstance(other, str) else self.eq(other)

    def __ne__(self, other):
        return NotImplemented if other is None or isinstance(other, str) else self.ne(other)

    def __iadd__(self, other):
        return self._update("+=", self.add(other))

    def __isub__(self, other):
        return self._update("-=", self.sub(other))

    def __imul__(self, other):
        return self._update("*=", self.mul(other))

    def __itruediv__(self, other):
        return self._update("/=", self.div(other))

    def __ifloordiv__(self, other):
        return self._update("//=", self.floordiv(other))

    def __imod__(self, other):
        return self._update("%=", self.mod(other))

    def __ipow__(self, other):
        return self._update("**=", self.pow(other))

    def __iand__(self, other):
        return self._update("&=", self.bitwise_and(other))

    def __ior__(self, other):
        return self._update("|=", self.bitwise_or(other))

    def __ixor__(self, other):
        return self._update("^=", self.bitwise_xor(other))

    def __ilshift__(self, other):
        return self._update("<<=", self.lshift(other))

    def __irshift__(self, other):
        return self._update(">>=", self.rshift(other))
