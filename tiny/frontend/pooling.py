"""Pooling over windows: averages, largest elements with their places, and putting them back.

The spatial axes are the last ones, as many as kernel_size has numbers.
"""
import math

from tiny.frontend.convolution import padding_pairs, per_axis, windows
from tiny.frontend.elementwise import number
from tiny.frontend.shaping import expand, pad, reshape
from tiny.ir import ops
from tiny.ir.dtype import accumulator_dtype, dtypes
from tiny.ir.node import Node


class Pooling:
    """Pooling of Tensor."""

    def _pool_plan(self, kernel_size, stride, dilation, padding, ceil_mode: bool, name: str) -> tuple:
        """(kernel, strides, dilations, (before, after) pairs, further elements after for ceil_mode)."""
        count = 2 if isinstance(kernel_size, int) else len(kernel_size)
        kernel = per_axis(kernel_size, count, name)
        strides = kernel if stride is None else per_axis(stride, count, name)
        dilations = per_axis(dilation, count, name)
        pairs = padding_pairs(padding, count, name)
        if len(self.shape) < count:
            raise ValueError(f"{name}: a kernel of {kernel} on a tensor of shape {self.shape}: too few axes")
        more = []
        extents = self.shape[len(self.shape) - count:]
        for extent, size, step, apart, (before, after) in zip(
                extents, kernel, strides, dilations, pairs, strict=True):
            reach = extent + before + after - apart * (size - 1) - 1
            if reach < 0:
                raise ValueError(f"{name}: a kernel of {kernel} on a tensor of shape {self.shape} with "
                                 f"padding {pairs}: larger than the axis of {extent}")
            last = -(-reach // step) * step if ceil_mode else reach
            if ceil_mode and last >= extent + before:        # a window may not start in the padding behind
                last -= step
            more.append(max(last - reach, 0))
        return kernel, strides, dilations, pairs, more

    def _windows(self, plan: tuple, fill) -> Node:
        """(..., *out, *kernel), `fill` standing in the padding."""
        kernel, strides, dilations, pairs, more = plan
        lead = len(self.shape) - len(kernel)
        whole = [(before, after + extra) for (before, after), extra in zip(pairs, more, strict=True)]
        return windows(pad(self.node, [(0, 0)] * lead + whole, fill), lead, kernel, strides, dilations)

    def avg_pool2d(self, kernel_size=(2, 2), stride=None, dilation=1, padding=0, ceil_mode: bool = False,
                   count_include_pad: bool = True):
        """The average of each window; count_include_pad=False leaves the padding out of the count."""
        plan = self._pool_plan(kernel_size, stride, dilation, padding, ceil_mode, "avg_pool2d")
        dtype = self.dtype if self.dtype.is_float else dtypes.default_float
        wide = accumulator_dtype(dtype)
        total = self.cast(wide)._pooled(plan, ops.ADD, 0)
        kernel, _, _, pairs, more = plan
        if not any(more) and (count_include_pad or not any(map(any, pairs))):
            return (total / math.prod(kernel)).cast(dtype)
        # how many elements of each window count, from a tensor of ones of one image
        lead = len(self.shape) - len(kernel)
        ones = self._wrap(expand(number(1, wide), (1,) * lead + self.shape[lead:]))
        if count_include_pad:
            ones = self._wrap(pad(ones.node, [(0, 0)] * lead + pairs, 1))
            plan = (*plan[:3], [(0, 0)] * len(kernel), more)
        return (total / ones._pooled(plan, ops.ADD, 0)).cast(dtype)

    def _pooled(self, plan: tuple, row: ops.Op, fill):
        taps = self._windows(plan, fill)
        kept = len(taps.shape) - len(plan[0])
        total = Node(ops.REDUCE, None, (taps,), (row, tuple(range(kept, len(taps.shape)))))
        return self._wrap(reshape(total, total.shape[:kept]))

    def max_pool2d(self, kernel_size=(2, 2), stride=None, dilation=1, padding=0, ceil_mode: bool = False,
                   return_indices: bool = False):
        """The largest element of each window, NaN where there is one.

        return_indices: (values, places), the place int32 in the flattened spatial axes of self.
        """
        plan = self._pool_plan(kernel_size, stride, dilation, padding, ceil_mode, "max_pool2d")
        values = self._pooled(plan, ops.MAX, self.dtype.min)
        if not return_indices:
            return values
        lead = len(self.shape) - len(plan[0])
        spatial = self.shape[lead:]
        count = math.prod(spatial)
        taps = self._wrap(self._windows(plan, self.dtype.min))
        line = reshape(Node(ops.IOTA, dtypes.int32, (), count), (*(1,) * lead, *spatial))
        places = self._wrap(line)._windows(plan, count)      # padding counts as behind all elements
        best = values.reshape(*values.shape, *(1,) * len(plan[0])).eq(taps)
        best = best | taps.isnan() if self.dtype.is_float else best
        candidates = best.where(self._wrap(expand(places, taps.shape)), count)
        axes = tuple(range(len(values.shape), len(taps.shape)))
        return values, candidates.min(axes).minimum(count - 1)

    def max_unpool2d(self, indices, kernel_size=(2, 2), stride=None, dilation=1, padding=0, output_size=None):
        """The elements put back at the places that max_pool2d returned, zeros elsewhere."""
        count = 2 if isinstance(kernel_size, int) else len(kernel_size)
        kernel = per_axis(kernel_size, count, "max_unpool2d")
        lead = len(self.shape) - count
        if output_size is None:
            strides = kernel if stride is None else per_axis(stride, count, "max_unpool2d")
            dilations = per_axis(dilation, count, "max_unpool2d")
            pairs = padding_pairs(padding, count, "max_unpool2d")
            output_size = [(size - 1) * step - before - after + apart * (taps - 1) + 1
                           for size, step, apart, taps, (before, after)
                           in zip(self.shape[lead:], strides, dilations, kernel, pairs, strict=True)]
        spatial = tuple(output_size)[-count:]
        batch = math.prod(self.shape[:lead])
        zeros = self._wrap(expand(number(0, self.dtype), (batch, math.prod(spatial))))
        places = self._lift(indices).reshape(batch, -1)
        return zeros.scatter(1, places, self.reshape(batch, -1)).reshape(*self.shape[:lead], *spatial)
