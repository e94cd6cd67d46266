"""Normalisation by statistics: over a batch, over features."""
from tiny.frontend.elementwise import cast
from tiny.ir.dtype import accumulator_dtype


class Normalization:
    """Normalisation of Tensor."""

    def layernorm(self, axis=-1, eps: float = 1e-5):
        """(self - mean) / sqrt(variance + eps) over the axes, the variance with correction 0."""
        wide = self.cast(accumulator_dtype(self.dtype))
        distance = wide - wide.mean(axis, keepdim=True)
        return (distance * (distance.square().mean(axis, keepdim=True) + eps).rsqrt()).cast(self.dtype)

    def rms_norm(self, axis=-1, eps: float = 1e-5):
        """self / sqrt(mean square + eps) over the axes."""
        wide = self.cast(accumulator_dtype(self.dtype))
        return (wide * (wide.square().mean(axis, keepdim=True) + eps).rsqrt()).cast(self.dtype)

    def batchnorm(self, weight, bias, mean, invstd, axis=1):
        """(self - mean) * invstd * weight + bias, each along the axes; weight and bias may be None."""
        axes = self._axes(axis, "batchnorm")
        shape = tuple(size if k in axes else 1 for k, size in enumerate(self.shape))
        result = self - self._lift(mean).reshape(shape)
        if weight is not None:
            result = result * weight.reshape(shape)
        spread = self._lift(invstd)
        result = result * (spread.reshape(shape) if len(spread.shape) == len(axes) else spread)
        return self._wrap(cast((result if bias is None else result + bias.reshape(shape)).node, self.dtype))
