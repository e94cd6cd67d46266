"""Mathematical functions of one or two tensors, right at their corners.

The op table has a few functions (EXP, LOG1P, ATAN, ...); the rest is made of them here. A half is computed in
float32 and rounded once. Where two formulas are joined, the argument of the one not chosen is put somewhere
harmless first: its value is dropped, but a NaN in its derivative would not be. Odd functions are computed
from `_magnitude_and_sign`, whose slopes multiply to 1 at 0 too, where abs() has slope 0.
"""
import functools
import math

from tiny.frontend.core import Core
from tiny.frontend.elementwise import cast, number
from tiny.ir import ops
from tiny.ir.dtype import accumulator_dtype, dtypes
from tiny.ir.node import Node


def in_float(function):
    """Run a method on a floating tensor of at least 32 bits; the result takes back a small float's type."""
    @functools.wraps(function)
    def widened(self, *args, **kwargs):
        dtype = self.dtype if self.dtype.kind == "f" else dtypes.default_float
        wide = accumulator_dtype(dtype)
        if wide is self.dtype:
            return function(self, *args, **kwargs)
        return function(self.cast(wide), *args, **kwargs).cast(dtype)
    return widened


class Functions:
    """Mathematical functions of Tensor."""

    def _float_node(self) -> Node:
        node = self.node
        return node if node.dtype.kind == "f" else cast(node, dtypes.default_float)

    def _function(self, row: ops.Op):
        """One row of the table on this tensor, as a floating type."""
        return self._wrap(Node(row, None, (self._float_node(),)))

    # -- rows of the table ----------------------------------------------------------------------------------
    def exp(self):
        return self._function(ops.EXP)

    def exp2(self):
        return self._function(ops.EXP2)

    def expm1(self):
        return self._function(ops.EXPM1)

    def log(self):
        """The natural logarithm."""
        return self._function(ops.LOG)

    def log2(self):
        return self._function(ops.LOG2)

    def log1p(self):
        return self._function(ops.LOG1P)

    def sin(self):
        return self._function(ops.SIN)

    def cos(self):
        return self._function(ops.COS)

    def tan(self):
        return self._function(ops.TAN)

    def atan(self):
        return self._function(ops.ATAN)

    def erf(self):
        return self._function(ops.ERF)

    def sqrt(self):
        return self._function(ops.SQRT)

    # -- powers ---------------------------------------------------------------------------------------------
    @in_float
    def rsqrt(self):
        return self._function(ops.SQRT).reciprocal()

    def reciprocal(self):
        node = self._float_node()
        return self._wrap(Node(ops.FDIV, None, (number(1, node.dtype), node)))

    def square(self):
        return self * self

    @in_float
    def log10(self):
        return self.log2() / math.log2(10)

    # -- signs and parts ------------------------------------------------------------------------------------
    def abs(self):
        """The distance from 0; the slope at 0 is 0."""
        if self.dtype.kind in "bu":
            return self
        node = self.node
        zero = number(0, node.dtype)
        if self.dtype.kind != "f":
            negative = Node(ops.LT, None, (node, zero))
            return self._wrap(Node(ops.WHERE, None, (negative, Node(ops.NEG, None, (node,)), node)))
        negative, positive = Node(ops.LT, None, (node, zero)), Node(ops.LT, None, (zero, node))
        # at either zero, and for NaN, the sign is the number itself: -0.0 * -0.0 is 0.0
        sign = Node(ops.WHERE, None, (negative, number(-1, node.dtype), node))
        sign = Node(ops.WHERE, None, (positive, number(1, node.dtype), sign))
        return self._wrap(Node(ops.MUL, None, (node, Node(ops.DETACH, None, (sign,)))))

    def sign(self):
        """-1, 0 or 1; NaN for NaN."""
        if self.dtype.kind == "b":
            return self
        positive = (self > 0).where(1, 0).cast(self.dtype)
        result = (self < 0).where(-1, positive) if self.dtype.kind != "u" else positive
        return self.isnan().where(self, result) if self.dtype.kind == "f" else result

    def signbit(self):
        """Whether the sign bit is set: true for -0.0 and negative NaN as well."""
        if self.dtype.kind != "f":
            return self < 0
        return self.bitcast(getattr(dtypes, f"int{self.dtype.bits}")) < 0

    def copysign(self, other):
        """The magnitude of self with the sign of `other`."""
        a, b = map(self._wrap, self._float_pair(other, "copysign"))
        magnitude = a.abs()
        return b.signbit().where(-magnitude, magnitude)

    def trunc(self):
        """Rounded towards 0."""
        return self._function(ops.TRUNC) if self.dtype.kind == "f" else self

    def floor(self):
        if self.dtype.kind != "f":
            return self
        whole = self.trunc()
        return (self < whole).where(whole - 1, whole)

    def ceil(self):
        if self.dtype.kind != "f":
            return self
        whole = self.trunc()
        return (whole < self).where(whole + 1, whole)

    def round(self):
        """To the nearest integer, halves to the even one."""
        if self.dtype.kind != "f":
            return self
        whole = self.trunc()
        fraction = (self - whole).abs()
        half = whole * 0.5
        up = (fraction > 0.5) | (fraction.eq(0.5) & half.trunc().ne(half))
        return up.where((self < 0).where(whole - 1, whole + 1), whole)

    def isnan(self):
        return self.ne(self)

    def isinf(self, detect_positive: bool = True, detect_negative: bool = True):
        """Whether it is an infinity, of the signs asked for."""
        if self.dtype.kind != "f" or not (detect_positive or detect_negative):
            return self.ne(self)
        positive, negative = self.eq(math.inf), self.eq(-math.inf)
        if detect_positive and detect_negative:
            return positive | negative
        return positive if detect_positive else negative

    def isfinite(self):
        if self.dtype.kind != "f":
            return self.eq(self)
        return (self < math.inf) & (self > -math.inf)

    def frac(self):
        """What trunc() takes away."""
        return self - self.trunc()

    # -- trigonometric and hyperbolic -----------------------------------------------------------------------
    @in_float
    def asin(self):
        return (self / ((1 - self) * (1 + self)).sqrt()).atan()

    @in_float
    def acos(self):
        return 2 * ((1 - self) / (1 + self)).sqrt().atan()

    @in_float
    def atan2(self, other):
        """The angle of the point (other, self), -pi to pi."""
        y, x = map(self._wrap, self._float_pair(other, "atan2"))
        small, large = y.abs().minimum(x.abs()), y.abs().maximum(x.abs())
        ratio = small.eq(large).where(large.eq(0).where(0.0, 1.0).cast(y.dtype), small / large)
        angle = ratio.atan()
        angle = (y.abs() > x.abs()).where(math.pi / 2 - angle, angle)
        angle = x.signbit().where(math.pi - angle, angle)
        return (x.isnan() | y.isnan()).where(math.nan, angle.copysign(y))

    @in_float
    def sinh(self):
        size, sign = self._magnitude_and_sign()
        large = size > 80
        grown = large.where(0, size).expm1()
        root = (size * 0.5).exp()
        return large.where(root * 0.5 * root, (grown + grown / (grown + 1)) * 0.5) * sign

    @in_float
    def cosh(self):
        size = self.abs()
        small = (size > 80).where(0, size).exp()
        root = (size * 0.5).exp()
        return (size > 80).where(root * 0.5 * root, (small + small.reciprocal()) * 0.5)

    @in_float
    def tanh(self):
        size, sign = self._magnitude_and_sign()
        shrunk = (size * -2).expm1()
        return -shrunk / (shrunk + 2) * sign

    def _magnitude_and_sign(self) -> tuple:
        """(self without its sign bit, -1 or 1 by that bit), with slopes that multiply to 1 everywhere."""
        negative = self.signbit()
        sign = Node(ops.WHERE, None, (negative.node, number(-1, self.dtype), number(1, self.dtype)))
        return negative.where(-self, self), self._wrap(sign)

    @in_float
    def asinh(self):
        size, sign = self._magnitude_and_sign()
        large = size > 1e4
        small = large.where(0, size)
        square = small * small
        near = (small + square / ((square + 1).sqrt() + 1)).log1p()
        far = large.where(size, 1).log() + math.log(2)
        return large.where(far, near) * sign

    @in_float
    def acosh(self):
        large = self > 1e4
        beyond = large.where(1, self) - 1
        near = (beyond + beyond.sqrt() * (beyond + 2).sqrt()).log1p()
        return large.where(large.where(self, 1).log() + math.log(2), near)

    @in_float
    def atanh(self):
        size, sign = self._magnitude_and_sign()
        return (2 * size / (1 - size)).log1p() * 0.5 * sign

    # -- of two tensors -------------------------------------------------------------------------------------
    def logaddexp(self, other):
        """log(exp(self) + exp(other)), without overflow."""
        a, b = map(self._wrap, self._float_pair(other, "logaddexp"))
        dtype = a.dtype
        wide = accumulator_dtype(dtype)
        a, b = a.cast(wide), b.cast(wide)
        distance = a.eq(b).where(0, a - b)                  # inf - inf would be NaN
        return (a.maximum(b) + (-distance.abs()).exp().log1p()).cast(dtype)

    def lerp(self, end, weight):
        """self + (end - self) * weight; exact at weight 0 and 1."""
        end = self._lift(end)
        start, end = map(self._wrap, self._float_pair(end, "lerp"))
        step = end - start
        if isinstance(weight, Core):
            return (weight < 0.5).where(start + step * weight, end - step * (1 - weight)).cast(start.dtype)
        return start + step * weight if weight < 0.5 else end - step * (1 - weight)

    def clamp(self, min=None, max=None, *, min_=None, max_=None):
        """Values below min become min, values above max become max; NaN stays."""
        low, high = (min if min_ is None else min_), (max if max_ is None else max_)
        if low is None and high is None:
            raise ValueError("clamp: neither min nor max is given; give at least one")
        result = self
        if low is not None:
            result = result.maximum(low) if isinstance(low, Core) else (result < low).where(low, result)
        if high is not None:
            result = result.minimum(high) if isinstance(high, Core) else (result > high).where(high, result)
        return result

    clip = clamp
    absolute = fabs = abs
    __abs__, __round__, __trunc__, __floor__, __ceil__ = abs, round, trunc, floor, ceil
    arcsin, arccos, arctan, arctan2, arcsinh, arccosh, arctanh = asin, acos, atan, atan2, asinh, acosh, atanh
