"""Activation functions: finite, with their slopes, where they should be.

Those of exponentials are computed in at least float32. Where a formula has two sides, both have the slope of
the function where they meet.
"""
import math

from tiny.frontend.functions import in_float
from tiny.ir import ops
from tiny.ir.node import Node


class Activation:
    """Activation functions of Tensor."""

    def relu(self):
        """max(self, 0); NaN stays, and the slope at 0 is 0."""
        return self.maximum(0)

    def relu6(self):
        return self.maximum(0).minimum(6)

    @in_float
    def sigmoid(self):
        """1 / (1 + exp(-self))."""
        below = self < 0
        small = below.where(self, -self).exp()              # of the negative side: never overflows
        return below.where(small, 1) / (small + 1)

    def hardsigmoid(self, alpha: float = 1 / 6, beta: float = 0.5):
        """alpha * self + beta, between 0 and 1."""
        return (self * alpha + beta).clamp(0, 1)

    @in_float
    def silu(self):
        """self * sigmoid(self)."""
        return self * self.sigmoid()

    swish = silu

    @in_float
    def gelu(self, approximate: str = "tanh"):
        """self times the normal distribution's share below it; approximate: "tanh", or "none" for exact."""
        if approximate == "none":
            return 0.5 * self * (1 + (self * math.sqrt(0.5)).erf())
        if approximate != "tanh":
            raise ValueError(f'gelu: approximate={approximate!r}; it is "tanh" or "none"')
        return 0.5 * self * (1 + (math.sqrt(2 / math.pi) * (self + 0.044715 * self * self * self)).tanh())

    @in_float
    def quick_gelu(self):
        return self * (self * 1.702).sigmoid()

    @in_float
    def elu(self, alpha: float = 1.0):
        """self above 0, alpha * (exp(self) - 1) below."""
        return (self > 0).where(self, alpha * (self > 0).where(0, self).expm1())

    @in_float
    def celu(self, alpha: float = 1.0):
        """max(self, 0) + min(alpha * (exp(self / alpha) - 1), 0)."""
        return (self > 0).where(self, alpha * ((self > 0).where(0, self) / alpha).expm1())

    @in_float
    def selu(self, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805):
        return gamma * self.elu(alpha)

    @in_float
    def mish(self):
        """self * tanh(softplus(self))."""
        return self * self.softplus().tanh()

    def leaky_relu(self, neg_slope: float = 0.01, negative_slope: float | None = None):
        """self above 0, self times the slope below."""
        slope = neg_slope if negative_slope is None else negative_slope
        return (self > 0).where(self, self * slope)

    @in_float
    def softplus(self, beta: float = 1.0, threshold: float = math.inf):
        """log(1 + exp(beta * self)) / beta; self itself where beta * self is above the threshold."""
        scaled = self * beta
        below = scaled < 0
        value = (below.where(0, scaled) + below.where(scaled, -scaled).exp().log1p()) / beta
        return value if threshold == math.inf else (scaled > threshold).where(self, value)

    @in_float
    def softsign(self):
        return self / (self.abs() + 1)

    @in_float
    def logsigmoid(self):
        """log(sigmoid(self)), without underflow."""
        return -(-self).softplus()

    log_sigmoid = logsigmoid

    def hardswish(self):
        """self * relu6(self + 3) / 6."""
        return self * (self + 3).relu6() * (1 / 6)

    def hardtanh(self, min_val: float = -1, max_val: float = 1):
        return self.clamp(min_val, max_val)

    def threshold(self, threshold: float, value: float):
        """self above the threshold, `value` elsewhere."""
        condition = Node(ops.LT, None, self._pair(threshold, "threshold")[::-1])
        return self._wrap(condition).where(self, value)
