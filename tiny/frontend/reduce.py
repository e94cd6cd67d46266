"""Reductions along axes: sums, products, extremes, their places, and the statistics made of them.

axis= and dim= are the same: an integer, several, or None for all axes. Without keepdim the reduced axes go.
NaN stays NaN. Of no elements the sum is 0, the product 1, `any` false, `all` true; `max` and `min` are the
type's lowest and highest value; the mean is NaN.
"""
import functools
import math

from tiny.frontend.elementwise import cast, number
from tiny.frontend.graph import positions, size_value
from tiny.frontend.hostdata import to_dtype
from tiny.frontend.shaping import expand, reshape
from tiny.ir import ops
from tiny.ir.dtype import DType, accumulator_dtype, dtypes, sum_dtype
from tiny.ir.integer import Integer, prod
from tiny.ir.node import Node


def takes_dim(method):
    """Accept dim= for axis=, keepdims= for keepdim=, and unbiased= for correction=."""
    @functools.wraps(method)
    def renamed(self, *args, **kwargs):
        if kwargs:
            if "dim" in kwargs:
                kwargs["axis"] = kwargs.pop("dim")
            if "keepdims" in kwargs:
                kwargs["keepdim"] = kwargs.pop("keepdims")
            if "unbiased" in kwargs:
                kwargs["correction"] = int(kwargs.pop("unbiased"))
        return method(self, *args, **kwargs)
    return renamed


class Reduce:
    """Reductions of Tensor."""

    def _axes(self, axis, name: str) -> tuple[int, ...]:
        """The axes meant, each once, in order."""
        if axis is None:
            return tuple(range(len(self.shape)))
        if isinstance(axis, int):
            return (self._axis(axis, name),) if self.shape or axis not in (0, -1) else ()
        axes = sorted(self._axis(a, name) for a in axis)
        if len(set(axes)) != len(axes):
            raise ValueError(f"{name}: an axis is named twice in {tuple(axis)}")
        return tuple(axes)

    def _reduced(self, row: ops.Op, node: Node, axes: tuple[int, ...], keepdim: bool) -> Node:
        result = Node(ops.REDUCE, None, (node,), (row, axes)) if axes else node
        if keepdim:
            return result
        return reshape(result, tuple(size for k, size in enumerate(result.shape) if k not in axes))

    def _count(self, axes: tuple[int, ...]) -> Integer:
        return prod(self.shape[axis] for axis in axes)

    # -- sums and products ----------------------------------------------------------------------------------
    @takes_dim
    def sum(self, axis=None, keepdim: bool = False, dtype=None):
        """Integers add up in at least 32 bits, small floats in float32; dtype sets the type of the result."""
        return self._accumulated(ops.ADD, "sum", axis, keepdim, dtype)

    @takes_dim
    def prod(self, axis=None, keepdim: bool = False, dtype=None):
        """The product; types as in sum."""
        return self._accumulated(ops.MUL, "prod", axis, keepdim, dtype)

    def _accumulated(self, row: ops.Op, name: str, axis, keepdim: bool, dtype):
        dtype = sum_dtype(self.dtype) if dtype is None else to_dtype(dtype)
        node = cast(self.node, accumulator_dtype(dtype))
        return self._wrap(cast(self._reduced(row, node, self._axes(axis, name), keepdim), dtype))

    @takes_dim
    def mean(self, axis=None, keepdim: bool = False):
        """The average; of integers as `dtypes.default_float`."""
        axes = self._axes(axis, "mean")
        dtype = self.dtype if self.dtype.is_float else dtypes.default_float
        mean = self._mean_node(cast(self.node, accumulator_dtype(dtype)), axes, keepdim)
        return self._wrap(cast(mean, dtype))

    def _mean_node(self, node: Node, axes: tuple[int, ...], keepdim: bool) -> Node:
        total = self._reduced(ops.ADD, node, axes, keepdim)
        return Node(ops.FDIV, None, (total, size_value(self._count(axes), node.dtype)))

    # -- spread ---------------------------------------------------------------------------------------------
    def _variance_node(self, axis, keepdim: bool, correction: int, name: str) -> tuple[Node, Node, DType]:
        """(variance, mean) in the accumulator's type, and the result's type. Two passes: no cancellation."""
        axes = self._axes(axis, name)
        dtype = self.dtype if self.dtype.is_float else dtypes.default_float
        node = cast(self.node, accumulator_dtype(dtype))
        mean = self._mean_node(node, axes, True)
        distance = Node(ops.SUB, None, (node, expand(mean, node.shape)))
        squares = self._reduced(ops.ADD, Node(ops.MUL, None, (distance, distance)), axes, keepdim)
        count = self._count(axes)
        if isinstance(count, Node):
            divisor = self._wrap(Node(ops.CAST, node.dtype, (count - correction,))).maximum(0).node
        else:
            divisor = number(max(count - correction, 0), node.dtype)
        return Node(ops.FDIV, None, (squares, divisor)), reshape(mean, squares.shape), dtype

    @takes_dim
    def var(self, axis=None, keepdim: bool = False, correction: int = 1):
        """The mean square distance from the mean, over count - correction."""
        variance, _, dtype = self._variance_node(axis, keepdim, correction, "var")
        return self._wrap(cast(variance, dtype))

    @takes_dim
    def var_mean(self, axis=None, keepdim: bool = False, correction: int = 1) -> tuple:
        """(variance, mean)"""
        variance, mean, dtype = self._variance_node(axis, keepdim, correction, "var_mean")
        return self._wrap(cast(variance, dtype)), self._wrap(cast(mean, dtype))

    @takes_dim
    def std(self, axis=None, keepdim: bool = False, correction: int = 1):
        """The square root of the variance."""
        variance, _, dtype = self._variance_node(axis, keepdim, correction, "std")
        return self._wrap(variance).sqrt().cast(dtype)

    @takes_dim
    def std_mean(self, axis=None, keepdim: bool = False, correction: int = 1) -> tuple:
        """(standard deviation, mean)"""
        variance, mean, dtype = self._variance_node(axis, keepdim, correction, "std_mean")
        return self._wrap(variance).sqrt().cast(dtype), self._wrap(cast(mean, dtype))

    # -- extremes -------------------------------------------------------------------------------------------
    @takes_dim
    def max(self, axis=None, keepdim: bool = False):
        """The largest element; NaN where there is one."""
        return self._wrap(self._reduced(ops.MAX, self.node, self._axes(axis, "max"), keepdim))

    @takes_dim
    def min(self, axis=None, keepdim: bool = False):
        """The smallest element; NaN where there is one."""
        return self._wrap(self._reduced(ops.MIN, self.node, self._axes(axis, "min"), keepdim))

    amax, amin = max, min

    @takes_dim
    def any(self, axis=None, keepdim: bool = False):
        """Whether an element is not 0."""
        truths = cast(self.node, dtypes.bool)
        return self._wrap(self._reduced(ops.MAX, truths, self._axes(axis, "any"), keepdim))

    @takes_dim
    def all(self, axis=None, keepdim: bool = False):
        """Whether no element is 0."""
        truths = cast(self.node, dtypes.bool)
        return self._wrap(self._reduced(ops.MIN, truths, self._axes(axis, "all"), keepdim))

    @takes_dim
    def argmax(self, axis: int | None = None, keepdim: bool = False):
        """The place of the first largest element, int32; of the first NaN where there is one."""
        return self._place(ops.MAX, "argmax", axis, keepdim)

    @takes_dim
    def argmin(self, axis: int | None = None, keepdim: bool = False):
        """The place of the first smallest element, int32; of the first NaN where there is one."""
        return self._place(ops.MIN, "argmin", axis, keepdim)

    def _place(self, row: ops.Op, name: str, axis: int | None, keepdim: bool):
        if axis is None:
            place = self.flatten()._place(row, name, 0, False)
            return place.reshape((1,) * len(self.shape)) if keepdim else place
        if not self.shape:
            self._axes(axis, name)
            return self._wrap(number(0, dtypes.int32))
        axis = self._axis(axis, name)
        size = self.shape[axis]
        if not isinstance(size, Node) and size == 0:
            raise ValueError(f"{name}: axis {axis} of {self.shape} has no elements, so none is the first")
        node = self.node
        found = Node(ops.EQ, None, (node, expand(self._reduced(row, node, (axis,), True), node.shape)))
        if self.dtype.is_float:
            found = Node(ops.OR, None, (found, Node(ops.NE, None, (node, node))))
        here, nowhere = positions(self.shape, axis), size_value(size, dtypes.int32)
        places = Node(ops.WHERE, None, (found, here, nowhere))
        return self._wrap(self._reduced(ops.MIN, places, (axis,), keepdim))

    # -- exponentials ---------------------------------------------------------------------------------------
    def _above_maximum(self, axes: tuple[int, ...]) -> tuple:
        """(self less its largest element along the axes, that element or 0 where it is infinite or NaN)."""
        largest = self._wrap(self._reduced(ops.MAX, self.node, axes, True)).detach()
        safe = largest.isfinite().where(largest, 0)
        return self - safe, safe

    def _widened(self):
        """This tensor in a floating type of at least 32 bits."""
        dtype = self.dtype if self.dtype.is_float else dtypes.default_float
        return self.cast(accumulator_dtype(dtype))

    def _float_dtype(self) -> DType:
        return self.dtype if self.dtype.is_float else dtypes.default_float

    @takes_dim
    def logsumexp(self, axis=None, keepdim: bool = False):
        """log(sum(exp(self))), without overflow; -inf of rows that are all -inf."""
        axes = self._axes(axis, "logsumexp")
        shifted, largest = self._widened()._above_maximum(axes)
        result = shifted.exp().sum(axes, keepdim=True).log() + largest
        if not keepdim:
            result = result.reshape(tuple(size for k, size in enumerate(self.shape) if k not in axes))
        return result.cast(self._float_dtype())

    @takes_dim
    def softmax(self, axis: int = -1, dtype=None):
        """exp(self) over its sum along the axis."""
        source = self if dtype is None else self.cast(dtype)
        axes = source._axes(axis, "softmax")
        exponentials = source._widened()._above_maximum(axes)[0].exp()
        return (exponentials / exponentials.sum(axes, keepdim=True)).cast(source._float_dtype())

    @takes_dim
    def log_softmax(self, axis: int = -1, dtype=None):
        """The logarithm of softmax, without underflow."""
        source = self if dtype is None else self.cast(dtype)
        axes = source._axes(axis, "log_softmax")
        shifted = source._widened()._above_maximum(axes)[0]
        return (shifted - shifted.exp().sum(axes, keepdim=True).log()).cast(source._float_dtype())

    @takes_dim
    def softmin(self, axis: int = -1, dtype=None):
        """softmax of the negative."""
        return (-self).softmax(axis, dtype)

    @takes_dim
    def normalize(self, p: float = 2.0, axis: int = 1, eps: float = 1e-12):
        """self over its p-norm along the axis, which counts as at least eps."""
        return self / self.norm(p, axis, keepdim=True).maximum(eps)

    @takes_dim
    def norm(self, p: float = 2.0, axis=None, keepdim: bool = False):
        """The p-norm: (sum |self| ** p) ** (1 / p); the largest magnitude for p = inf."""
        if p == math.inf:
            return self.abs().max(axis, keepdim)
        if p == 0:
            return self.ne(0).sum(axis, keepdim).cast(self._float_dtype())
        if p == 1:
            return self.abs().sum(axis, keepdim)
        wide = self._widened()
        total = (wide.square() if p == 2 else wide.abs().pow(p)).sum(axis, keepdim)
        return (total.sqrt() if p == 2 else total.pow(1 / p)).cast(self._float_dtype())
