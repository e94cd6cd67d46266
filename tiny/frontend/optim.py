"""Optimisers: they turn the gradients that `backward` left in `.grad` into new values of the parameters.

A step is built lazily and computed at once, with one submission, in the parameters' own memory. Inside a
TinyJit it is part of the captured function. The learning rate is a tensor, so it can change between replays:
`optimizer.lr = 0.01`. Arithmetic and state of parameters with less than 32 bits are float32.
"""
import math

import numpy as np

from tiny import realize
from tiny.frontend.tensor import Tensor
from tiny.ir.dtype import accumulator_dtype, least_upper


class Optimizer:
    """What all optimisers have in common.

    A subclass gives `_update(number, param, grad, lr)`, all at least float32: the new value of parameter
    `number`, and the tensors of its state that changed.
    params: floating tensors; those with requires_grad=False and others are passed over, so a model's
    `get_parameters` can be given as it is. device, fused: accepted for compatibility; a step is always one
    submission.
    """

    def __init__(self, params, lr: float, device: str | None = None, fused: bool = False):
        distinct = {id(param): param for param in params}.values()
        self.params = [param for param in distinct
                       if param.is_floating_point() and param.requires_grad is not False]
        if not self.params:
            raise ValueError(f"{type(self).__name__}: of the {len(distinct)} tensors given none is floating "
                             "and takes gradients")
        if isinstance(lr, int | float) and not lr >= 0:
            raise ValueError(f"{type(self).__name__}: lr={lr}; a learning rate is a number from 0 up, "
                             "since a step goes against the gradient by itself")
        for param in self.params:
            param.requires_grad = True
        wide = least_upper(*(accumulator_dtype(param.dtype) for param in self.params))
        self._lr = Tensor(np.array(lr), dtype=wide, device=self.params[0].device, requires_grad=False)

    @property
    def lr(self) -> Tensor:
        """The learning rate, of shape (). Set it to a number or a tensor."""
        return self._lr

    @lr.setter
    def lr(self, value) -> None:
        self._lr.assign(value).realize()                    # a captured step reads it in its memory

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for param in self.params:
            param.grad = None

    def step(self) -> None:
        """Update the parameters, and compute whatever else was written to meanwhile,
        such as running averages.
        """
        realize.settle_pending(self.schedule_step())

    def schedule_step(self) -> list[Tensor]:
        """Build the step without computing it; the tensors to realize for it."""
        with_gradient = [k for k, param in enumerate(self.params) if param.grad is not None]
        if not with_gradient:
            raise RuntimeError(f"{type(self).__name__}.step: no parameter has a gradient; call .backward() "
                               "on a loss first")
        shared = self._advance()
        changed = []
        for number in with_gradient:
            param = self.params[number]
            dtype = accumulator_dtype(param.dtype)
            value, state = self._update(number, param.cast(dtype), param.grad.cast(dtype),
                                        self._lr.cast(dtype))
            param.assign(value.cast(param.dtype))
            changed += [param, *state]
        return shared + changed

    def _advance(self) -> list[Tensor]:
        """Change what all parameters share, once a step; the tensors that changed."""
        return []

    def _zeros(self) -> list[Tensor]:
        """State of zeros for every parameter."""
        return [Tensor.zeros(*param.shape, dtype=accumulator_dtype(param.dtype), device=param.device,
                             requires_grad=False) for param in self.params]


class OptimizerGroup(Optimizer):
    """Several optimisers used as one."""

    def __init__(self, *optimizers: Optimizer):
        self.optimizers = optimizers
        self.params = [param for optimizer in optimizers for param in optimizer.params]

    def __getitem__(self, number: int) -> Optimizer:
        return self.optimizers[number]

    @property
    def lr(self) -> Tensor:
        """The learning rate of the first; setting it sets all."""
        return self.optimizers[0].lr

    @lr.setter
    def lr(self, value) -> None:
        for optimizer in self.optimizers:
            optimizer.lr = value

    def schedule_step(self) -> list[Tensor]:
        """Build the steps of all, without computing them."""
        return [tensor for optimizer in self.optimizers for tensor in optimizer.schedule_step()]


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum as torch has it.

    classic: the learning rate goes into the momentum, so that a change of it takes effect gradually.
    """

    def __init__(self, params, lr: float = 0.001, momentum: float = 0.0, weight_decay: float = 0.0,
                 nesterov: bool = False, classic: bool = False, dampening: float = 0.0,
                 device: str | None = None, fused: bool = False):
        super().__init__(params, lr, device, fused)
        self.momentum, self.weight_decay, self.nesterov = momentum, weight_decay, nesterov
        self.classic, self.dampening = classic, dampening
        self.b = self._zeros() if momentum else []

    def _update(self, number, param, grad, lr):
        if self.weight_decay:
            grad = grad + param * self.weight_decay
        return self._descend(number, param, grad, lr)

    def _descend(self, number: int, param: Tensor, grad: Tensor, lr: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Momentum, then the step down."""
        if self.classic:
            grad = grad * lr
        state = []
        if self.momentum:
            velocity = self.b[number]
            velocity.assign(velocity * self.momentum + grad * (1 - self.dampening))
            grad = grad + velocity * self.momentum if self.nesterov else velocity
            state = [velocity]
        return param - (grad if self.classic else grad * lr), state


class LARS(SGD):
    """Layer-wise adaptive rates (You et al., 2017).

    Each parameter's step is scaled by tcoef times its norm over that of its gradient.
    """

    def __init__(self, params, lr: float = 0.001, momentum: float = 0.9, weight_decay: float = 1e-4,
                 nesterov: bool = False, classic: bool = True, tcoef: float = 0.001,
                 device: str | None = None, fused: bool = False):
        super().__init__(params, lr, momentum, weight_decay, nesterov, classic, 0.0, device, fused)
        self.tcoef = tcoef

    def _update(self, number, param, grad, lr):
        size, slope = param.square().sum().sqrt(), grad.square().sum().sqrt()
        scale = size * self.tcoef / (slope + size * self.weight_decay)
        scale = ((size > 0) & (slope > 0)).where(scale, 1)
        return self._descend(number, param, (grad + param * self.weight_decay) * scale, lr)


class Muon(Optimizer):
    """Momentum whose steps are made orthogonal (Jordan et al., 2024), for parameters with two axes or more.

    The arithmetic is that of torch.optim.Muon, with a step longer by sqrt(rows / columns) for tall matrices.
    """

    def __init__(self, params, lr: float = 0.02, momentum: float = 0.95, weight_decay: float = 0.1,
                 ns_steps: int = 5, ns_coefficients: tuple = (3.4445, -4.775, 2.0315), nesterov: bool = True,
                 device: str | None = None, fused: bool = False):
        super().__init__(params, lr, device, fused)
        flat = [param.shape for param in self.params if param.ndim < 2]
        if flat:
            raise ValueError(f"Muon: a parameter of shape {flat[0]} is no matrix; give those with fewer than "
                             "two axes to AdamW, and join the two in an OptimizerGroup")
        self.momentum, self.weight_decay, self.nesterov = momentum, weight_decay, nesterov
        self.ns_steps, self.ns_coefficients = ns_steps, ns_coefficients
        self.b = self._zeros()

    def _update(self, number, param, grad, lr):
        velocity = self.b[number]
        velocity.assign(velocity * self.momentum + grad * (1 - self.momentum))
        step = grad * (1 - self.momentum) + velocity * self.momentum if self.nesterov else velocity
        matrix = step.reshape(step.shape[0], -1)
        step = self._orthogonal(matrix).reshape(param.shape)
        longer = math.sqrt(max(1, matrix.shape[0] / matrix.shape[1]))
        return param * (1 - lr * self.weight_decay) - step * (lr * longer), [velocity]

    def _orthogonal(self, matrix: Tensor) -> Tensor:
        """The nearest matrix with orthogonal rows (or columns), about, by Newton and Schulz's iteration."""
        a, b, c = self.ns_coefficients
        tall = matrix.shape[0] > matrix.shape[1]
        x = matrix.transpose() if tall else matrix
        x = (x / x.square().sum().sqrt().maximum(1e-7)).contiguous()
        for _ in range(self.ns_steps):
            gram = (x @ x.transpose()).contiguous()
            x = (x * a + (gram * b + gram @ gram * c) @ x).contiguous()
        return x.transpose() if tall else x


class LAMB(Optimizer):
    """Adam's steps, scaled layer by layer with the parameter's norm over the step's (You et al., 2019).

    adam: leave that scale out. Weight decay is decoupled from the gradient: part of the step.
    """

    def __init__(self, params, lr: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-6,
                 weight_decay: float = 0.0, adam: bool = False, betas: tuple[float, float] | None = None,
                 device: str | None = None, fused: bool = False):
        super().__init__(params, lr, device, fused)
        self.b1, self.b2 = betas or (b1, b2)
        self.eps, self.weight_decay, self.adam = eps, weight_decay, adam
        # what m and v lack for having started at 0: 1 - b ** steps, accurate from the first step on
        self.m_share, self.v_share = (self._lr.zeros_like(requires_grad=False) for _ in range(2))
        self.m, self.v = self._zeros(), self._zeros()

    def _advance(self) -> list[Tensor]:
        self.m_share.assign(self.m_share * self.b1 + (1 - self.b1))
        self.v_share.assign(self.v_share * self.b2 + (1 - self.b2))
        return [self.m_share, self.v_share]

    def _update(self, number, param, grad, lr):
        m, v = self.m[number], self.v[number]
        m.assign(m * self.b1 + grad * (1 - self.b1))
        v.assign(v * self.b2 + grad.square() * (1 - self.b2))
        spread = (v / self.v_share.cast(v.dtype)).sqrt() + self.eps
        step = m / self.m_share.cast(m.dtype) / spread
        if self.weight_decay:
            step = step + param * self.weight_decay
        if not self.adam:
            size, length = param.square().sum().sqrt(), step.square().sum().sqrt()
            step = step * ((size > 0) & (length > 0)).where(size / length, 1)
        return param - step * lr, [m, v]


class AdamW(LAMB):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017).
    betas= is torch's spelling of b1=, b2=.
    """

    def __init__(self, params, lr: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
                 weight_decay: float = 0.01, betas: tuple[float, float] | None = None,
                 device: str | None = None, fused: bool = False):
        super().__init__(params, lr, b1, b2, eps, weight_decay, True, betas, device, fused)


class Adam(LAMB):
    """Adam (Kingma and Ba, 2014). weight_decay adds to the gradient, as torch has it."""

    def __init__(self, params, lr: float = 0.001, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
                 weight_decay: float = 0.0, betas: tuple[float, float] | None = None,
                 device: str | None = None, fused: bool = False):
        super().__init__(params, lr, b1, b2, eps, 0.0, True, betas, device, fused)
        self.l2 = weight_decay

    def _update(self, number, param, grad, lr):
        return super()._update(number, param, grad + param * self.l2 if self.l2 else grad, lr)
