"""Python values and numpy arrays to bytes of an element type, and back.

numpy has no bfloat16 and no fp8: those go through their bit patterns, `encode` and `decode`, rounded once.
"""
import numpy as np

from tiny.ir.dtype import DType, dtypes

_PATTERN = {dtypes.bfloat16: np.dtype(np.uint16), dtypes.fp8e4m3: np.dtype(np.uint8),
            dtypes.fp8e5m2: np.dtype(np.uint8)}
_STORED = {dtype: _PATTERN.get(dtype) or np.dtype(dtype.name) for dtype in dtypes.all}
_BY_NAME = {dtype.name: dtype for dtype in dtypes.all} | {
    name: getattr(dtypes, name) for name in
    ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "double")}
# types of the ml_dtypes package, which numpy arrays of other libraries may have
_BY_NAME |= {"float8_e4m3fn": dtypes.fp8e4m3, "float8_e5m2": dtypes.fp8e5m2}


def stored(dtype: DType) -> np.dtype:
    """The numpy type with the bytes of `dtype`: for bfloat16 and fp8 the unsigned integer of that size."""
    return _STORED[dtype]


def to_dtype(dtype) -> DType:
    """A DType from what users write for one: a DType, "half", numpy.float32, float."""
    if isinstance(dtype, DType):
        return dtype
    if dtype is bool:
        return dtypes.bool
    if dtype is int or dtype is float:                      # not ==, which numpy's types answer for their own
        return dtypes.default_int if dtype is int else dtypes.default_float
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", getattr(dtype, "__name__", str(dtype)))
    name = name.removeprefix("torch.").removeprefix("dtypes.")
    if name not in _BY_NAME:
        raise TypeError(f"dtype: {dtype!r} is none that tensors have; they have {', '.join(_BY_NAME)}")
    return _BY_NAME[name]


# -- numbers and patterns -----------------------------------------------------------------------------------
def encode(numbers: np.ndarray, dtype: DType) -> np.ndarray:
    """Numbers as the stored form of `dtype`: rounded to nearest even once, integers wrapping."""
    if dtype.is_integer and numbers.dtype.kind == "f":
        inside = (numbers >= -2.0**63) & (numbers < 2.0**63)
        numbers = np.where(inside, numbers, 0).astype(np.int64)
    if dtype not in _PATTERN:
        with np.errstate(over="ignore"):
            return numbers.astype(_STORED[dtype], copy=False)
    return _encode_pattern(numbers.astype(np.float64), dtype)


def _encode_pattern(numbers: np.ndarray, dtype: DType) -> np.ndarray:
    exponent_bits, mantissa_bits = dtype.exponent_mantissa
    bias = (1 << (exponent_bits - 1)) - 1
    magnitude = np.where(np.isfinite(numbers), np.abs(numbers), 0.0)
    exponent = np.where(magnitude == 0, 1 - bias, np.maximum(np.frexp(magnitude)[1] - 1, 1 - bias))
    steps = np.rint(np.ldexp(magnitude, mantissa_bits - exponent)).astype(np.int64)
    # a subnormal has fewer than 2**mantissa_bits steps and so field 0; a carry moves into the exponent
    pattern = steps + ((exponent + bias - 1).astype(np.int64) << mantissa_bits)
    not_a_number = (1 << (dtype.bits - 1)) - 1
    infinity = not_a_number if dtype is dtypes.fp8e4m3 else ((1 << exponent_bits) - 1) << mantissa_bits
    largest = infinity - 1
    pattern = np.where((pattern > largest) | np.isinf(numbers), infinity, pattern)
    pattern = np.where(np.isnan(numbers), not_a_number, pattern)
    return (pattern | (np.signbit(numbers).astype(np.int64) << (dtype.bits - 1))).astype(_PATTERN[dtype])


def decode(array: np.ndarray, dtype: DType) -> np.ndarray:
    """Stored form to numbers: bfloat16 and fp8 become float32, everything else stays as it is."""
    if dtype is dtypes.bfloat16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    if dtype not in _PATTERN:
        return array
    exponent_bits, mantissa_bits = dtype.exponent_mantissa
    bits = np.arange(256)
    field, mantissa = bits >> mantissa_bits & ((1 << exponent_bits) - 1), bits & ((1 << mantissa_bits) - 1)
    hidden = np.where(field == 0, 0, 1 << mantissa_bits)
    shift = np.maximum(field, 1) - (1 << (exponent_bits - 1)) + 1 - mantissa_bits
    table = np.ldexp((mantissa + hidden).astype(np.float32), shift)
    if dtype is dtypes.fp8e4m3:
        table = np.where((bits & 0x7F) == 0x7F, np.nan, table)
    else:
        table = np.where(field == 31, np.where(mantissa == 0, np.inf, np.nan), table)
    return np.copysign(table, np.where(bits & 0x80, -1, 1)).astype(np.float32)[array]


# -- from Python --------------------------------------------------------------------------------------------
def from_sequence(data: list | tuple, dtype: DType | None) -> tuple[np.ndarray, DType]:
    """A nested list or tuple of Python numbers as (stored array, its type).

    ValueError where rows differ in length, TypeError for what is no number.
    """
    try:
        array = np.array(data)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"Tensor: the nested list has rows of different lengths ({error})") from None
    if array.dtype.kind == "O" or (array.dtype.kind == "f" and any_large_integer(data)):
        return _from_large_integers(data, dtype)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"Tensor: a list of {array.dtype} is no list of numbers")
    natural = _natural_type(array)
    return encode(array, dtype or natural), dtype or natural


def any_large_integer(data) -> bool:
    """Whether numpy made floats of integers past 64 bits, or of int64 next to uint64, only."""
    if isinstance(data, list | tuple):
        return bool(data) and all(any_large_integer(item) for item in data)
    return isinstance(data, int)


def _from_large_integers(data, dtype: DType | None) -> tuple[np.ndarray, DType]:
    array = np.array(data, dtype=object)
    if not all(isinstance(item, int | float) for item in array.reshape(-1)):
        kinds = sorted({type(item).__name__ for item in array.reshape(-1)})
        raise TypeError(f"Tensor: a list of {', '.join(kinds)} is no list of numbers")
    target = dtype or dtypes.int64
    if target.is_float:
        return encode(array.astype(np.float64), target), target
    if dtype is None and any(not -2**63 <= item < 2**63 for item in array.reshape(-1)):
        raise OverflowError("Tensor: the list has integers that fit into no type together; give a dtype")
    wrapped = [int(item) & ((1 << 64) - 1) for item in array.reshape(-1)]
    return encode(np.array(wrapped, np.uint64).reshape(array.shape), target), target


def _natural_type(array: np.ndarray) -> DType:
    if array.dtype.kind == "b":
        return dtypes.bool
    if array.dtype.kind == "f":
        return dtypes.default_float
    if array.size and (array.min() < -2**31 or array.max() >= 2**31):
        return dtypes.uint64 if array.dtype.kind == "u" else dtypes.int64
    return dtypes.default_int


def from_numpy(array: np.ndarray, dtype: DType | None) -> tuple[np.ndarray, DType]:
    """An array of any byte order and layout as (C-contiguous native stored array, its type)."""
    own = to_dtype(array.dtype)
    if own in _PATTERN:
        array = array.view(_PATTERN[own])
    elif not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if dtype is not None and dtype is not own:
        array, own = encode(decode(array, own), dtype), dtype
    return np.require(array, requirements="C"), own


def from_bytes(data, dtype: DType | None) -> tuple[np.ndarray, DType]:
    """Bytes taken as elements of `dtype` (uint8 where none is given), one-dimensional, without a copy."""
    dtype = dtype or dtypes.uint8
    size = memoryview(data).nbytes
    if size % dtype.itemsize:
        raise ValueError(f"Tensor: {size} bytes are no whole number of {dtype.name}, {dtype.itemsize} each")
    return np.frombuffer(data, _STORED[dtype]), dtype
