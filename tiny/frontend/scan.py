"""Running reductions along an axis: each element becomes the reduction of those up to it."""
import math

from tiny.frontend.elementwise import cast, number
from tiny.frontend.graph import positions
from tiny.frontend.hostdata import to_dtype
from tiny.frontend.reduce import takes_dim
from tiny.frontend.shaping import on_axis, pad, shrink
from tiny.ir import ops
from tiny.ir.dtype import accumulator_dtype, dtypes, sum_dtype
from tiny.ir.node import Node


class Scan:
    """Running reductions of Tensor."""

    def _scan(self, row: ops.Op, axis: int, name: str, dtype):
        """Computed in the accumulator's type and rounded once an element."""
        if not self.shape:
            self._axes(axis, name)
            return self.cast(dtype)
        node = cast(self.node, accumulator_dtype(dtype))
        return self._wrap(cast(Node(ops.SCAN, None, (node,), (row, self._axis(axis, name))), dtype))

    @takes_dim
    def cumsum(self, axis: int = 0, dtype=None):
        """Running sums; integers add up in at least 32 bits."""
        dtype = sum_dtype(self.dtype) if dtype is None else to_dtype(dtype)
        return self._scan(ops.ADD, axis, "cumsum", dtype)

    @takes_dim
    def cumprod(self, axis: int = 0, dtype=None):
        """Running products; integers multiply in at least 32 bits."""
        dtype = sum_dtype(self.dtype) if dtype is None else to_dtype(dtype)
        return self._scan(ops.MUL, axis, "cumprod", dtype)

    @takes_dim
    def cummax(self, axis: int = 0) -> tuple:
        """(running largest elements, the place of the last one equal to it); a NaN stays the largest."""
        return self._running_extreme(ops.MAX, axis, "cummax")

    @takes_dim
    def cummin(self, axis: int = 0) -> tuple:
        """(running smallest elements, the place of the last one equal to it); a NaN stays the smallest."""
        return self._running_extreme(ops.MIN, axis, "cummin")

    def _running_extreme(self, row: ops.Op, axis: int, name: str) -> tuple:
        values = self._scan(row, axis, name, self.dtype)
        if not self.shape:
            return values, self._wrap(number(0, dtypes.int32))
        axis = self._axis(axis, name)
        here = self.eq(values) | self.isnan() if self.dtype.is_float else self.eq(values)
        places = here.where(self._wrap(positions(self.shape, axis)), 0)
        return values, places._scan(ops.MAX, axis, name, dtypes.int32)

    @takes_dim
    def logcumsumexp(self, axis: int = 0):
        """log(cumsum(exp(self))), without overflow or underflow.

        Made by doubling: after step k each element holds the result over the 2 ** k elements up to it.
        """
        if not self.shape:
            self._axes(axis, "logcumsumexp")
            return self
        axis = self._axis(axis, "logcumsumexp")
        size, result, reach = self.shape[axis], self._widened(), 1
        while reach < size:
            kept = shrink(result.node, on_axis(result.node, axis, (0, size - reach)))
            before = pad(kept, on_axis(kept, axis, (reach, 0), (0, 0)), -math.inf)
            result = result.logaddexp(self._wrap(before)).contiguous()
            reach *= 2
        return result.cast(self._float_dtype())
