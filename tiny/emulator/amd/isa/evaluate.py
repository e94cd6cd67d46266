"""Compute an expression with numpy: arrays with one element for each lane, or for a scalar one element.

Slow and plain on purpose: it is the reference that the C of `c_text` is compared with.
"""

import ctypes
import ctypes.util
from collections.abc import Callable

import numpy as np

from tiny.emulator.amd.isa.expression import Value, is_float, limits

DTYPE = {
    "b1": np.bool_,
    "u8": np.uint8,
    "i8": np.int8,
    "u16": np.uint16,
    "i16": np.int16,
    "f16": np.float16,
    "u32": np.uint32,
    "i32": np.int32,
    "f32": np.float32,
    "u64": np.uint64,
    "i64": np.int64,
    "f64": np.float64,
}

_libm = ctypes.CDLL(ctypes.util.find_library("m") or None)
_libm.fma.restype, _libm.fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3
_libm.fmaf.restype, _libm.fmaf.argtypes = ctypes.c_float, [ctypes.c_float] * 3
_fma = {"f32": np.frompyfunc(_libm.fmaf, 3, 1), "f64": np.frompyfunc(_libm.fma, 3, 1)}


def evaluate(values: list[Value], leaf: Callable) -> list[np.ndarray]:
    """The values as arrays, of one element where they are the same for all lanes.

    leaf: (Value, evaluate one) -> the array of a register or None for what is no leaf.
    """
    known: dict[int, np.ndarray] = {}

    def compute(value: Value) -> np.ndarray:
        found = known.get(id(value))
        if found is None:
            if value.op == "const":
                found = np.asarray(value.args[0], dtype=DTYPE[value.kind]).reshape(1)
            else:
                found = leaf(value, compute)
                if found is None:
                    found = _OPERATIONS[value.op](value, *[compute(each) for each in value.args])
            known[id(value)] = found
        return found

    with np.errstate(all="ignore"):
        return [compute(value) for value in values]


def compute_one(value: Value, arrays: list[np.ndarray]) -> np.ndarray:
    """One operation, no leaf, on its operands' arrays."""
    return _OPERATIONS[value.op](value, *arrays)


def _cast(value: Value, operand: np.ndarray) -> np.ndarray:
    source, target = value.args[0].kind, value.kind
    if source == "f32" and target == "f16":
        return _halves(operand)
    if not is_float(source) or is_float(target):
        return operand.astype(DTYPE[target])
    lowest, highest = limits(target)
    wide = np.nan_to_num(np.trunc(operand.astype(np.float64)), nan=0.0, posinf=np.inf, neginf=-np.inf)
    inside = np.clip(wide, lowest, _below(highest))
    result = inside.astype(DTYPE[target])
    return np.where(wide > _below(highest), DTYPE[target](highest), result).astype(DTYPE[target])


def _halves(operand: np.ndarray) -> np.ndarray:
    """f32 -> f16. numpy keeps a signalling NaN signalling; processors quiet it and keep the payload's top."""
    raw = np.ascontiguousarray(operand).view(np.uint32)
    nan = (raw >> 16 & 0x8000 | 0x7E00 | raw >> 13 & 0x1FF).astype(np.uint16).view(np.float16)
    return np.where(np.isnan(operand), nan, operand.astype(np.float16))


def _below(highest: int) -> float:
    """The greatest f64 that is not above `highest`."""
    return float(highest) if float(highest) <= highest else np.nextafter(float(highest), 0.0)


def _shl(value: Value, operand: np.ndarray, count: np.ndarray) -> np.ndarray:
    return operand << count


def _fused(value: Value, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return np.asarray(_fma[value.kind](a, b, c)).astype(DTYPE[value.kind])


def _clz(value: Value, operand: np.ndarray) -> np.ndarray:
    """f64 holds any u32 exactly, so its exponent tells the highest bit."""
    exponent = np.frexp(operand.astype(np.float64))[1]
    return (32 - exponent).astype(np.uint32)


def _popcount(value: Value, operand: np.ndarray) -> np.ndarray:
    octets = np.ascontiguousarray(operand).view(np.uint8).reshape(-1, 4)
    return np.unpackbits(octets, axis=1).sum(axis=1, dtype=np.uint32)


_OPERATIONS = {
    "add": lambda v, a, b: a + b,
    "sub": lambda v, a, b: a - b,
    "mul": lambda v, a, b: a * b,
    "div": lambda v, a, b: a / b,
    "and": lambda v, a, b: a & b,
    "or": lambda v, a, b: a | b,
    "xor": lambda v, a, b: a ^ b,
    "shl": _shl,
    "shr": lambda v, a, b: a >> b,
    "not": lambda v, a: ~a,
    "lt": lambda v, a, b: a < b,
    "le": lambda v, a, b: a <= b,
    "eq": lambda v, a, b: a == b,
    "select": lambda v, c, a, b: np.where(c, a, b),
    "cast": _cast,
    "bits": lambda v, a: np.ascontiguousarray(a).view(DTYPE[v.kind]),
    "fma": _fused,
    "sqrt": lambda v, a: np.sqrt(a),
    "floor": lambda v, a: np.floor(a),
    "ceil": lambda v, a: np.ceil(a),
    "trunc": lambda v, a: np.trunc(a),
    "rint": lambda v, a: np.rint(a),
    "clz": _clz,
    "popcount": _popcount,
}
