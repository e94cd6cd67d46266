"""Losses: how far predictions are from what was expected. Lower is better.

`reduction` is "mean", "sum" or "none". Where rows are ignored or weighted, the mean is over what counts.
"""

import math

REDUCTIONS = ("mean", "sum", "none")


class Losses:
    """Losses of Tensor, which holds the predictions."""

    def cross_entropy(self, Y, reduction: str = "mean", label_smoothing: float = 0.0,
                      ignore_index: int = -100, weight=None):
        """The negative log of the softmax along axis 1 (the last, where there is one only), at the targets.

        Y: class indices, integers of this shape without axis 1; or probabilities of this shape.
        label_smoothing: the share of each target that is spread evenly over all classes.
        ignore_index: targets of this value count nowhere, not in the mean's divisor and not in the smoothing.
        weight: a factor for each class.
        """
        Y, axis = self._lift(Y), 1 if self.ndim > 1 else 0
        if not 0 <= label_smoothing <= 1:
            raise ValueError(f"cross_entropy: label_smoothing={label_smoothing} is no share of 1")
        logs = self.log_softmax(axis)
        if Y.shape == self.shape and Y.dtype.is_float:
            return _probabilities_loss(logs, Y, axis, weight, label_smoothing, reduction)
        return _class_loss(logs, Y, axis, weight, label_smoothing, ignore_index, reduction, "cross_entropy")

    def nll_loss(self, Y, weight=None, ignore_index: int | None = -100, reduction: str = "mean"):
        """The negative of this tensor, log-probabilities of classes along axis 1, at the target classes."""
        axis = 1 if self.ndim > 1 else 0
        return _class_loss(self, self._lift(Y), axis, weight, 0.0, ignore_index, reduction, "nll_loss")

    def sparse_categorical_crossentropy(self, Y, ignore_index: int = -1, label_smoothing: float = 0.0,
                                        reduction: str = "mean"):
        """Cross entropy of logits along the last axis, Y class indices of this shape without it."""
        logs, Y = self.log_softmax(-1), self._lift(Y)
        return _class_loss(logs, Y, self.ndim - 1, None, label_smoothing, ignore_index, reduction,
                           "sparse_categorical_crossentropy")

    def binary_crossentropy(self, Y, reduction: str = "mean"):
        """Cross entropy of probabilities; logarithms are not let below -100, so 0 and 1 give finite losses.
        """
        Y = self._lift(Y)
        wrong, right = (1 - self).log().maximum(-100), self.log().maximum(-100)
        return _reduced(-Y * right - (1 - Y) * wrong, reduction, "binary_crossentropy")

    def binary_crossentropy_logits(self, Y, reduction: str = "mean", pos_weight=None):
        """Cross entropy of logits. pos_weight: a factor for the part of the positive targets."""
        Y = self._lift(Y)
        positive = Y if pos_weight is None else Y * pos_weight
        loss = (1 - Y) * self.softplus() + positive * (-self).softplus()
        return _reduced(loss, reduction, "binary_crossentropy_logits")

    def mse_loss(self, Y, reduction: str = "mean"):
        """The square of the difference."""
        return _reduced((self - Y).square(), reduction, "mse_loss")

    def l1_loss(self, Y, reduction: str = "mean"):
        """The magnitude of the difference."""
        return _reduced((self - Y).abs(), reduction, "l1_loss")

    def smooth_l1_loss(self, Y, reduction: str = "mean", beta: float = 1.0):
        """Half the square over beta for differences below beta, the magnitude less half of beta above."""
        distance = (self - Y).abs()
        if beta == 0:
            return _reduced(distance, reduction, "smooth_l1_loss")
        small = distance < beta
        loss = small.where(distance.square() * (0.5 / beta), distance - 0.5 * beta)
        return _reduced(loss, reduction, "smooth_l1_loss")

    def kl_div(self, Y, reduction: str = "mean", log_target: bool = False):
        """Y * (log Y - self) of log-probabilities; Y is of probabilities or, with log_target, logarithms."""
        Y = self._lift(Y)
        if log_target:
            return _reduced(Y.exp() * (Y - self), reduction, "kl_div")
        loss = (Y > 0).where(Y * ((Y > 0).where(Y, 1).log() - self), 0)
        return _reduced(loss, reduction, "kl_div")

    binary_cross_entropy, binary_cross_entropy_with_logits = binary_crossentropy, binary_crossentropy_logits


def _reduced(loss, reduction: str, name: str, divisor=None):
    if reduction not in REDUCTIONS:
        raise ValueError(f"{name}: reduction={reduction!r}; it is one of {', '.join(REDUCTIONS)}")
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    return loss.mean() if divisor is None else loss.sum() / divisor


def _along(axis: int, weight, like):
    """Class weights in the shape that broadcasts along the class axis of `like`; 1 without weights."""
    return 1 if weight is None else weight.reshape(tuple(-1 if k == axis else 1 for k in range(like.ndim)))


def _class_loss(logs, Y, axis: int, weight, smoothing: float, ignore_index: int | None, reduction: str,
                name: str):
    """The loss of log-probabilities at class indices; NaN where one is no class, so that nobody trains on it.
    """
    rows = logs.shape[:axis] + logs.shape[axis + 1:]
    if Y.dtype.is_float or Y.shape != rows:
        raise ValueError(f"{name}: targets are {Y.dtype.name} {Y.shape}, predictions {logs.shape}; class "
                         f"indices are integers of shape {rows}")
    classes = logs.shape[axis]
    counted = Y.ne(ignore_index) if ignore_index is not None else Y.eq(Y)
    numbers = type(logs).arange(classes, device=logs.device)
    hit = (_along(axis, numbers, logs) == Y.unsqueeze(axis)) & counted.unsqueeze(axis)
    factor = _along(axis, weight, logs)
    weighted = logs * factor
    loss = -hit.where(weighted, 0).sum(axis)
    stray = counted & ((Y < 0) | (Y >= classes))
    loss = loss + stray.where(Y.full_like(math.nan, dtype=loss.dtype), 0)
    if smoothing:
        even = counted.where(-weighted.sum(axis) / classes, 0)
        loss = loss * (1 - smoothing) + even * smoothing
    return _reduced(loss, reduction, name, hit.where(factor, 0).sum().cast(loss.dtype))


def _probabilities_loss(logs, Y, axis: int, weight, smoothing: float, reduction: str):
    """The loss of log-probabilities against probabilities; the mean is over rows."""
    classes = logs.shape[axis]
    target = Y * (1 - smoothing) + smoothing / classes if smoothing else Y
    loss = -(logs * target * _along(axis, weight, logs)).sum(axis)
    return _reduced(loss, reduction, "cross_entropy")
