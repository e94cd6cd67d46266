"""Which bits of a value depend on what nothing has written: expressions computed with a second value beside.

For every Value there is a mask of its undefined bits: unsigned of the same width, or a bool for a condition.
Masks are exact for bitwise operations, shifts by known counts and selections, so that halves of registers and
values that a selection leaves out do no harm; for + - * everything from the lowest undefined bit up is
undefined; for other operations one undefined bit makes all of them so.
"""

from collections.abc import Callable

import numpy as np

from tiny.emulator.amd.isa.evaluate import DTYPE, compute_one
from tiny.emulator.amd.isa.expression import SIGNED, UNSIGNED, WIDTH, Value, is_float


class Traced:
    """Computes Values with their masks. leaf: Value -> (array, mask) of a register, None for what is none."""

    def __init__(self, leaf: Callable):
        self._leaf = leaf
        self._known: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def __call__(self, value: Value) -> tuple[np.ndarray, np.ndarray]:
        """(array, mask of undefined bits)."""
        found = self._known.get(id(value))
        if found is None:
            found = self._known[id(value)] = self._compute(value)
        return found

    def _compute(self, value: Value) -> tuple[np.ndarray, np.ndarray]:
        if value.op == "const":
            return np.asarray(value.args[0], dtype=DTYPE[value.kind]).reshape(1), nothing(value.kind)
        found = self._leaf(value, self)
        if found is not None:
            return found
        pairs = [self(each) for each in value.args]
        arrays, masks = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        with np.errstate(all="ignore"):
            result = compute_one(value, arrays)
        if not any(mask.any() for mask in masks):
            return result, nothing(value.kind)
        rule = _RULES.get(value.op)
        mask = rule(value, arrays, masks) if rule else None
        return result, spread(value.kind, masks) if mask is None else mask


def mask_type(kind: str) -> type:
    return DTYPE[UNSIGNED[WIDTH[kind]]]


def nothing(kind: str) -> np.ndarray:
    """The mask of a value that is defined."""
    return np.zeros(1, dtype=mask_type(kind))


def everything(kind: str, where: np.ndarray) -> np.ndarray:
    """All bits where a condition holds."""
    if kind == "b1":
        return where
    return np.where(where, ~mask_type(kind)(0), mask_type(kind)(0))


def spread(kind: str, masks: list[np.ndarray]) -> np.ndarray:
    """All bits where any operand has an undefined one."""
    where = masks[0] != 0
    for mask in masks[1:]:
        where = where | (mask != 0)
    return everything(kind, where)


def _and(value: Value, arrays: list, masks: list) -> np.ndarray:
    (a, b), (u, v) = [each.astype(mask_type(value.kind)) for each in arrays], masks
    return (u | v) & (u | a) & (v | b)  # a known 0 makes a known 0


def _or(value: Value, arrays: list, masks: list) -> np.ndarray:
    (a, b), (u, v) = [each.astype(mask_type(value.kind)) for each in arrays], masks
    return (u | v) & (u | ~a) & (v | ~b)


def _xor(value: Value, arrays: list, masks: list) -> np.ndarray:
    return masks[0] | masks[1]


def _not(value: Value, arrays: list, masks: list) -> np.ndarray:
    return masks[0]


def _upward(value: Value, arrays: list, masks: list) -> np.ndarray | None:
    """Sums and products: from the lowest undefined bit up."""
    if is_float(value.kind):
        return None
    both = masks[0] | masks[1]
    with np.errstate(over="ignore"):
        return both | (~both + both.dtype.type(1))


def _shift(value: Value, arrays: list, masks: list) -> np.ndarray | None:
    if masks[1].any():
        return None
    count = arrays[1]
    if value.op == "shl":
        return masks[0] << count.astype(masks[0].dtype)
    kind = SIGNED[WIDTH[value.kind]] if value.kind[0] == "i" else value.kind
    return (masks[0].astype(DTYPE[kind]) >> count.astype(DTYPE[kind])).astype(masks[0].dtype)


def _equal(value: Value, arrays: list, masks: list) -> np.ndarray | None:
    """Known bits that differ decide."""
    if is_float(value.args[0].kind):
        return None
    both = masks[0] | masks[1]
    differ = (arrays[0] != arrays[1]) if both.dtype == np.bool_ else (
        arrays[0].astype(both.dtype) ^ arrays[1].astype(both.dtype)
    ) & ~both
    return (both != 0) & (differ == 0) if both.dtype != np.bool_ else both


def _select(value: Value, arrays: list, masks: list) -> np.ndarray:
    chosen = np.where(arrays[0], masks[1], masks[2])
    return np.where(masks[0], everything(value.kind, np.ones(1, bool)), chosen)


def _cast(value: Value, arrays: list, masks: list) -> np.ndarray | None:
    source, target = value.args[0].kind, value.kind
    if is_float(source) or is_float(target) or target == "b1":
        return None
    mask = masks[0]
    if source[0] == "i":  # the sign is copied upward
        mask = mask.astype(DTYPE[source])
    return mask.astype(mask_type(target))


def _bits(value: Value, arrays: list, masks: list) -> np.ndarray:
    return masks[0]


_RULES = {
    "and": _and,
    "or": _or,
    "xor": _xor,
    "not": _not,
    "add": _upward,
    "sub": _upward,
    "mul": _upward,
    "shl": _shift,
    "shr": _shift,
    "eq": _equal,
    "select": _select,
    "cast": _cast,
    "bits": _bits,
}
