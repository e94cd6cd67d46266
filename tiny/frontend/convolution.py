"""Convolutions in 1 to 3 dimensions, their transposes, and resizing.

A convolution is windows of the padded input times the weight, summed: nothing is copied, the scheduler sees
out * stride + tap * dilation as the input's index.
"""
from collections.abc import Sequence

from tiny.frontend.elementwise import cast
from tiny.frontend.hostdata import to_dtype
from tiny.frontend.shaping import expand, pad, permute, reshape, shrink, window
from tiny.ir import ops
from tiny.ir.dtype import accumulator_dtype, dtypes, least_upper
from tiny.ir.integer import Integer
from tiny.ir.node import Node


def per_axis(value, count: int, name: str, least: int = 1) -> tuple[int, ...]:
    """One number for every spatial axis, or one for each; none below `least`."""
    values = (value,) * count if isinstance(value, int) else tuple(value)
    if len(values) != count:
        raise ValueError(f"{name}: {values} has {len(values)} numbers, there are {count} spatial axes")
    if any(number < least for number in values):
        raise ValueError(f"{name}: kernel sizes, strides and dilations are at least 1, these are {values}"
                         if least else f"{name}: output_padding is at least 0, this is {values}")
    return values


def padding_pairs(padding, count: int, name: str) -> list[tuple[int, int]]:
    """(before, after) of each spatial axis, from a number, one an axis, or torch's list, last axis first."""
    if isinstance(padding, int):
        return [(padding, padding)] * count
    padding = tuple(padding)
    if len(padding) == count and all(isinstance(pair, tuple | list) for pair in padding):
        return [tuple(pair) for pair in padding]
    if len(padding) == count:
        return [(amount, amount) for amount in padding]
    if len(padding) == 2 * count:
        return list(zip(padding[::2], padding[1::2], strict=True))[::-1]
    raise ValueError(f"{name}: padding {padding} is not one number, {count} or {2 * count} of them")


def windows(node: Node, first: int, sizes: Sequence[int], strides: Sequence[int],
            dilations: Sequence[int]) -> Node:
    """Windows along the axes from `first` on: those become their numbers, new last axes hold the elements."""
    for k, (size, stride, dilation) in enumerate(zip(sizes, strides, dilations, strict=True)):
        node = window(node, first + k, size, stride, dilation)
    return node


class Convolution:
    """Convolutions of Tensor."""

    def conv2d(self, weight, bias=None, groups: int = 1, stride=1, dilation=1, padding=0, dtype=None):
        """Convolution with as many spatial axes as the weight has.

        self (N, Cin, *spatial), weight (Cout, Cin / groups, *kernel), bias (Cout,); the result is
        (N, Cout, *out). padding: a number, one an axis, torch's flat list, "same" or "valid".
        """
        weight = self._lift(weight)
        kernel = weight.shape[2:]
        if len(self.shape) == len(weight.shape) - 1:
            return self.unsqueeze(0).conv2d(weight, bias, groups, stride, dilation, padding, dtype).squeeze(0)
        self._check_channels(weight, groups, weight.shape[1] * groups, "conv2d")
        strides, dilations = (per_axis(value, len(kernel), "conv2d") for value in (stride, dilation))
        pairs = _named_padding(padding, kernel, strides, dilations)
        out_dtype = least_upper(self.dtype, weight.dtype) if dtype is None else to_dtype(dtype)
        padded = pad(self.node, [(0, 0), (0, 0), *pairs])
        for k, (size, dilation_, whole) in enumerate(zip(kernel, dilations, padded.shape[2:], strict=True)):
            if not isinstance(whole, Node) and whole < dilation_ * (size - 1) + 1:
                raise ValueError(f"conv2d: a kernel of {size} taps {dilation_} apart is larger than axis "
                                 f"{k + 2} of the input {self.shape}, {whole} with its padding")
        result = _convolve(padded, weight.node, groups, strides, dilations, out_dtype)
        return self._with_bias(self._wrap(result), bias)

    def _check_channels(self, weight, groups: int, channels: int, name: str) -> None:
        if len(self.shape) != len(weight.shape):
            raise ValueError(f"{name}: an input of shape {self.shape} and a weight of shape {weight.shape} "
                             "have different numbers of axes")
        if self.shape[1] != channels or weight.shape[0] % groups:
            raise ValueError(f"{name}: an input of shape {self.shape} and a weight of shape {weight.shape} "
                             f"do not fit with groups={groups}: the input must have {channels} channels, and "
                             "the weight's first axis be a multiple of groups")

    def _with_bias(self, result, bias):
        if bias is None:
            return result
        bias = self._lift(bias)
        return result + bias.reshape(1, -1, *(1,) * (len(result.shape) - 2))

    conv1d = conv3d = conv2d

    def conv_transpose2d(self, weight, bias=None, groups: int = 1, stride=1, dilation=1, padding=0,
                         output_padding=0):
        """The transpose of conv2d, what takes its output's gradient to its input.

        self (N, Cin, *spatial), weight (Cin, Cout / groups, *kernel); the result has
        (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1 elements an axis.
        """
        weight = self._lift(weight)
        self._check_channels(weight, groups, weight.shape[0], "conv_transpose2d")
        kernel = weight.shape[2:]
        count = len(kernel)
        strides, dilations = (per_axis(value, count, "conv_transpose2d") for value in (stride, dilation))
        extra = per_axis(output_padding, count, "conv_transpose2d", least=0)
        pairs = padding_pairs(padding, count, "conv_transpose2d")
        spread = self.node
        for k, step in enumerate(strides):
            spread = _spread_out(spread, k + 2, step)
        margins = [(d * (size - 1) - before, d * (size - 1) - after + more) for d, size, (before, after), more
                   in zip(dilations, kernel, pairs, extra, strict=True)]
        padded = self._wrap(spread).pad([None, None, *margins]).node
        # taps reversed, input and output channels exchanged within each group
        shape = weight.shape
        split = reshape(weight.node, (groups, shape[0] // groups, *shape[1:]))
        order = (0, 2, 1, *range(3, 3 + count))
        turned = reshape(permute(split, order), (groups * shape[1], shape[0] // groups, *kernel))
        turned = Node(ops.FLIP, None, (turned,), tuple(range(2, 2 + count)))
        dtype = least_upper(self.dtype, weight.dtype)
        result = _convolve(padded, turned, groups, (1,) * count, dilations, dtype)
        return self._with_bias(self._wrap(result), bias)

    conv_transpose1d = conv_transpose3d = conv_transpose2d

    # -- resizing -------------------------------------------------------------------------------------------
    def interpolate(self, size=None, mode: str = "linear", align_corners: bool = False, scale_factor=None):
        """The last axes resized to `size`, or by scale_factor.

        mode: "nearest", "nearest-exact", or "linear" in any number of axes (also "bilinear", "trilinear").
        """
        linear = mode in ("linear", "bilinear", "trilinear")
        if not linear and mode not in ("nearest", "nearest-exact"):
            raise ValueError(f'interpolate: mode={mode!r}; it is "linear", "nearest" or "nearest-exact"')
        if size is None:
            axes = self.shape[2:]
            one = isinstance(scale_factor, int | float)
            factors = (scale_factor,) * len(axes) if one else scale_factor
            size = tuple(int(extent * factor) for extent, factor in zip(axes, factors, strict=True))
        sizes = (size,) * (len(self.shape) - 2) if isinstance(size, int) else tuple(size)
        if not all(sizes + self.shape[-len(sizes):]):
            raise ValueError(f"interpolate: from shape {self.shape} to the sizes {sizes}; none may be 0")
        result = self if self.dtype.is_float or not linear else self.float()
        for k, target in enumerate(sizes):
            axis = len(self.shape) - len(sizes) + k
            if linear:
                result = result._resized_linear(axis, target, align_corners)
            else:
                result = result._resized_nearest(axis, target, 0.5 if mode == "nearest-exact" else 0.0)
        return result

    def _resized_nearest(self, axis: int, size: int, offset: float):
        steps = self._wrap(Node(ops.IOTA, dtypes.float32, (), size))
        source = ((steps + offset) * (self.shape[axis] / size)).floor().cast(dtypes.int32)
        return self.index_select(axis, source.minimum(self.shape[axis] - 1))

    def _resized_linear(self, axis: int, size: int, align_corners: bool):
        extent = self.shape[axis]
        steps = self._wrap(Node(ops.IOTA, dtypes.float32, (), size))
        if align_corners:
            place = steps * ((extent - 1) / (size - 1) if size > 1 else 0.0)
        else:
            place = ((steps + 0.5) * (extent / size) - 0.5).clamp(0, extent - 1)
        low = place.cast(dtypes.int32)
        wide = accumulator_dtype(self.dtype)
        share = (place - low.cast(dtypes.float32)).cast(wide)
        share = share.reshape(tuple(size if k == axis else 1 for k in range(len(self.shape))))
        below = self.index_select(axis, low).cast(wide)
        above = self.index_select(axis, (low + 1).minimum(extent - 1)).cast(wide)
        return (below + (above - below) * share).cast(self.dtype)


def _named_padding(padding, kernel: tuple, strides: tuple, dilations: tuple) -> list[tuple[int, int]]:
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding != "same":
        return padding_pairs(padding, len(kernel), "conv2d")
    if any(stride != 1 for stride in strides):
        raise ValueError(f'conv2d: padding="same" with stride {strides}: the sizes cannot stay the same')
    totals = [dilation * (size - 1) for size, dilation in zip(kernel, dilations, strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


def _convolve(padded: Node, weight: Node, groups: int, strides: tuple, dilations: tuple, dtype) -> Node:
    """(N, Cin, *in) with (Cout, Cin / groups, *kernel) to (N, Cout, *out), in groups of channels."""
    kernel, count = weight.shape[2:], len(weight.shape) - 2
    wide = accumulator_dtype(dtype)
    taps = windows(cast(padded, wide), 2, kernel, strides, dilations)
    batch, channels, out = taps.shape[0], taps.shape[1], taps.shape[2:2 + count]
    inside, per_group = channels // groups, weight.shape[0] // groups
    split = reshape(taps, (batch, groups, 1, inside, *out, *kernel))
    # (batch, group, 1, *out, channel, *taps): what is summed comes last
    order = (0, 1, 2, *range(4, 4 + count), 3, *range(4 + count, 4 + 2 * count))
    columns = permute(split, order)
    rows = reshape(cast(weight, wide), (1, groups, per_group, *(1,) * count, inside, *kernel))
    shape = (batch, groups, per_group, *out, inside, *kernel)
    product = Node(ops.MUL, None, (expand(columns, shape), expand(rows, shape)))
    axes = tuple(range(3 + count, 4 + 2 * count))
    total = Node(ops.REDUCE, None, (product,), (ops.ADD, axes))
    return cast(reshape(total, (batch, groups * per_group, *out)), dtype)


def _spread_out(node: Node, axis: int, step: int) -> Node:
    """step - 1 zeros between the elements along an axis."""
    size: Integer = node.shape[axis]
    if step == 1:
        return node
    front, back = node.shape[:axis], node.shape[axis + 1:]
    apart = reshape(node, (*front, size, 1, *back))
    filled = pad(apart, [(0, step - 1) if k == axis + 1 else (0, 0) for k in range(len(apart.shape))])
    line = reshape(filled, (*front, size * step, *back))
    kept = [(0, extent - (step - 1) if k == axis else extent) for k, extent in enumerate(line.shape)]
    return shrink(line, kept)
