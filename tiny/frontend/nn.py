"""Layers: plain objects that hold their weights as attributes and are called with a tensor.

Names of weights, their shapes and what they start from are those that PyTorch users know, so state dicts fit.
"""
import math

import numpy as np

from tiny.frontend.convolution import per_axis
from tiny.frontend.tensor import Tensor
from tiny.frontend.training import is_training
from tiny.ir.dtype import dtypes
from tiny.ir.integer import prod


def _weight(limit: float, *shape: int) -> Tensor:
    """A parameter that starts uniform between -limit and limit."""
    return Tensor.uniform(*shape, low=-limit, high=limit, requires_grad=True)


def _scale_and_shift(affine: bool, *shape: int) -> tuple[Tensor | None, Tensor | None]:
    """(ones, zeros) as parameters, or (None, None)."""
    if not affine:
        return None, None
    return Tensor.ones(*shape, requires_grad=True), Tensor.zeros(*shape, requires_grad=True)


class Linear:
    """x @ weight^T + bias. weight (out_features, in_features)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True):
        limit = 1 / math.sqrt(max(in_features, 1))
        self.weight = _weight(limit, out_features, in_features)
        self.bias = _weight(limit, out_features) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        return x.linear(self.weight.transpose(), self.bias)


class _Convolution:
    """A convolution over `axes` spatial axes. weight (out_channels, in_channels / groups, *kernel)."""
    axes = 2

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, dilation=1,
                 groups: int = 1, bias: bool = True):
        name = type(self).__name__
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{name}: {in_channels} input and {out_channels} output channels are not both "
                             f"multiples of groups={groups}")
        self.kernel_size = per_axis(kernel_size, self.axes, name)
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        limit = 1 / math.sqrt(max(in_channels // groups * prod(self.kernel_size), 1))
        self.weight = _weight(limit, *self._weight_shape(in_channels, out_channels))
        self.bias = _weight(limit, out_channels) if bias else None

    def _weight_shape(self, inputs: int, outputs: int) -> tuple[int, ...]:
        return (outputs, inputs // self.groups, *self.kernel_size)

    def __call__(self, x: Tensor) -> Tensor:
        return x.conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding)


class Conv1d(_Convolution):
    """A convolution over one axis; see Tensor.conv2d."""
    axes = 1


class Conv2d(_Convolution):
    """A convolution over two axes; see Tensor.conv2d."""


class Conv3d(_Convolution):
    """A convolution over three axes; see Tensor.conv2d."""
    axes = 3


class _TransposedConvolution(_Convolution):
    """The transpose of a convolution. weight (in_channels, out_channels / groups, *kernel)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0,
                 output_padding=0, dilation=1, groups: int = 1, bias: bool = True):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
        self.output_padding = output_padding

    def _weight_shape(self, inputs: int, outputs: int) -> tuple[int, ...]:
        return (inputs, outputs // self.groups, *self.kernel_size)

    def __call__(self, x: Tensor) -> Tensor:
        return x.conv_transpose2d(self.weight, self.bias, self.groups, self.stride, self.dilation,
                                  self.padding, self.output_padding)


class ConvTranspose1d(_TransposedConvolution):
    """A transposed convolution over one axis; see Tensor.conv_transpose2d."""
    axes = 1


class ConvTranspose2d(_TransposedConvolution):
    """A transposed convolution over two axes; see Tensor.conv_transpose2d."""


class ConvTranspose3d(_TransposedConvolution):
    """A transposed convolution over three axes; see Tensor.conv_transpose2d."""
    axes = 3


# -- normalisation -------------------------------------------------------------------------------------------
class BatchNorm:
    """Normalises each channel, axis 1, by mean and variance over the other axes.

    In training those are the batch's, and running averages of them move by `momentum` towards them;
    otherwise the running averages serve, where they are tracked.
    """

    def __init__(self, sz: int, eps: float = 1e-5, affine: bool = True, track_running_stats: bool = True,
                 momentum: float = 0.1):
        self.eps, self.track_running_stats, self.momentum = eps, track_running_stats, momentum
        self.weight, self.bias = _scale_and_shift(affine, sz)
        if track_running_stats:
            dtype = dtypes.default_float
            self.running_mean = Tensor(np.zeros(sz), dtype=dtype, requires_grad=False)
            self.running_var = Tensor(np.ones(sz), dtype=dtype, requires_grad=False)
            self.num_batches_tracked = Tensor(np.zeros((), np.int64))

    def calc_stats(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(mean, variance) to normalise by, each (channels,); the variance is uncorrected."""
        if self.track_running_stats and not is_training():
            return self.running_mean, self.running_var
        axes = (0, *range(2, x.ndim))
        variance, mean = x.var_mean(axes, correction=0)
        return mean, variance

    def __call__(self, x: Tensor) -> Tensor:
        mean, variance = self.calc_stats(x)
        if self.track_running_stats and is_training():
            count = x.numel() // x.shape[1]
            self._move(self.running_mean, mean)
            self._move(self.running_var, variance * (count / max(count - 1, 1)))
            self.num_batches_tracked.assign(self.num_batches_tracked + 1)
        return x.batchnorm(self.weight, self.bias, mean, (variance + self.eps).rsqrt())

    def _move(self, running: Tensor, batch: Tensor) -> None:
        running.assign(running * (1 - self.momentum) + batch.detach() * self.momentum)


BatchNorm1d = BatchNorm2d = BatchNorm3d = BatchNorm


class GroupNorm:
    """Normalises groups of neighbouring channels, axis 1, together with all later axes."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True):
        if num_channels % num_groups:
            raise ValueError(f"GroupNorm: {num_channels} channels do not make {num_groups} equal groups")
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight, self.bias = _scale_and_shift(affine, num_channels)

    def __call__(self, x: Tensor) -> Tensor:
        result = x.reshape(x.shape[0], self.num_groups, -1).layernorm(eps=self.eps).reshape(x.shape)
        if self.weight is None:
            return result
        shape = (1, self.num_channels, *(1,) * (x.ndim - 2))
        return result * self.weight.reshape(shape) + self.bias.reshape(shape)


class InstanceNorm(GroupNorm):
    """Normalises each channel, axis 1, of each example over all later axes."""

    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True):
        super().__init__(num_features, num_features, eps, affine)


class LayerNorm:
    """Normalises over the last axes, those of `normalized_shape`."""

    def __init__(self, normalized_shape: int | tuple[int, ...], eps: float = 1e-5,
                 elementwise_affine: bool = True):
        alone = isinstance(normalized_shape, int)
        self.normalized_shape = (normalized_shape,) if alone else tuple(normalized_shape)
        self.axis, self.eps = tuple(range(-len(self.normalized_shape), 0)), eps
        self.weight, self.bias = _scale_and_shift(elementwise_affine, *self.normalized_shape)

    def __call__(self, x: Tensor) -> Tensor:
        if tuple(x.shape[-len(self.normalized_shape):]) != self.normalized_shape:
            raise ValueError(f"LayerNorm: the shape {x.shape} does not end in {self.normalized_shape}")
        result = x.layernorm(self.axis, self.eps)
        return result if self.weight is None else result * self.weight + self.bias


class LayerNorm2d(LayerNorm):
    """LayerNorm over the channels, axis 1, of images (N, C, H, W)."""

    def __call__(self, x: Tensor) -> Tensor:
        return super().__call__(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class RMSNorm:
    """Divides by the root of the mean square over the last axis."""

    def __init__(self, dim: int, eps: float = 1e-6, elementwise_affine: bool = True):
        self.eps = eps
        self.weight = _scale_and_shift(elementwise_affine, dim)[0]

    def __call__(self, x: Tensor) -> Tensor:
        result = x.rms_norm(-1, self.eps)
        return result if self.weight is None else result * self.weight


# -- others --------------------------------------------------------------------------------------------------
class Embedding:
    """Rows of a table by number. weight (vocab_size, embed_size)."""

    def __init__(self, vocab_size: int | None = None, embed_size: int | None = None, *,
                 num_embeddings: int | None = None, embedding_dim: int | None = None):
        rows, width = vocab_size or num_embeddings, embed_size or embedding_dim
        if rows is None or width is None:
            raise TypeError("Embedding: two sizes are needed, Embedding(vocab_size, embed_size)")
        self.vocab_size, self.embed_size = rows, width
        self.weight = Tensor.glorot_uniform(rows, width, requires_grad=True)

    def __call__(self, idx: Tensor) -> Tensor:
        return self.weight[idx]


class LSTMCell:
    """One step of a long short-term memory: (input, (hidden, cell)) -> (hidden, cell).

    weight_ih (4 * hidden, input), weight_hh (4 * hidden, hidden), gates in the order input, forget, cell,
    output.
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True):
        limit = 1 / math.sqrt(max(hidden_size, 1))
        self.hidden_size = hidden_size
        self.weight_ih = _weight(limit, hidden_size * 4, input_size)
        self.weight_hh = _weight(limit, hidden_size * 4, hidden_size)
        self.bias_ih, self.bias_hh = (_weight(limit, hidden_size * 4) if bias else None for _ in range(2))

    def __call__(self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        if hc is None:
            shape = x.shape[0], self.hidden_size
            hc = (Tensor.zeros(*shape, dtype=x.dtype, device=x.device, requires_grad=False),) * 2
        hidden, cell = hc
        gates = (x.linear(self.weight_ih.transpose(), self.bias_ih)
                 + hidden.linear(self.weight_hh.transpose(), self.bias_hh))
        enter, forget, new, leave = gates.chunk(4, dim=1)
        cell = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
        return leave.sigmoid() * cell.tanh(), cell


class Dropout:
    """In training, zeros in random places; see Tensor.dropout."""

    def __init__(self, p: float = 0.5):
        self.p = p

    def __call__(self, x: Tensor) -> Tensor:
        return x.dropout(self.p)


class Sequential(list):
    """Layers called one after another; weights are named by number: 0.weight."""

    def __init__(self, *layers):
        super().__init__(layers[0] if len(layers) == 1 and isinstance(layers[0], list | tuple) else layers)

    def __call__(self, x: Tensor) -> Tensor:
        return x.sequential(self)


ModuleList = list


class MultiheadAttention:
    """Attention with several heads, batch first: (query, key, value), each (N, positions, embed_dim).

    Weights as torch has them: in_proj_weight (3 * embed_dim, embed_dim) of queries, keys and values, and
    out_proj.
    """

    def __init__(self, embed_dim: int, num_heads: int, bias: bool = True, dropout: float = 0.0):
        if embed_dim % num_heads:
            raise ValueError(f"MultiheadAttention: {embed_dim} features do not make {num_heads} equal heads")
        self.num_heads, self.dropout = num_heads, dropout
        self.in_proj_weight = Tensor.glorot_uniform(3 * embed_dim, embed_dim, requires_grad=True)
        self.in_proj_bias = Tensor.zeros(3 * embed_dim, requires_grad=True) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias)

    def __call__(self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None,
                 attn_mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        key = query if key is None else key
        value = key if value is None else value
        weights = self.in_proj_weight.chunk(3)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        q, k, v = (self._split(x.linear(weight.transpose(), bias)) for x, weight, bias
                   in zip((query, key, value), weights, biases, strict=True))
        mixed = q.scaled_dot_product_attention(k, v, attn_mask, self.dropout, is_causal)
        return self.out_proj(mixed.transpose(1, 2).reshape(query.shape))

    def _split(self, x: Tensor) -> Tensor:
        """(N, positions, embed_dim) to (N, heads, positions, size of a head)."""
        return x.reshape(*x.shape[:2], self.num_heads, -1).transpose(1, 2)
