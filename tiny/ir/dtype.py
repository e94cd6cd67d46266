"""Element types, how they mix, and how a Python value becomes one of them."""
import functools
import math
import struct
from dataclasses import dataclass

from tiny import config

# how each type's numbers are made: exponent and mantissa bits, for the floating ones
_FLOAT_BITS = {"float64": (11, 52), "float32": (8, 23), "float16": (5, 10), "bfloat16": (8, 7),
               "fp8e4m3": (4, 3), "fp8e5m2": (5, 2)}


@dataclass(frozen=True, eq=False, slots=True)
class DType:
    """One element type. Instances are unique: compare with `is`.

    kind  'b' bool, 'i' signed, 'u' unsigned, 'f' floating, 'x' the symbolic-integer type of index arithmetic
    bits  storage size in bits (bool is stored in 8)
    """
    name: str
    kind: str
    bits: int

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory."""
        return self.bits // 8

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_integer(self) -> bool:
        """True for signed, unsigned and index integers; bool is not one."""
        return self.kind in "iux"

    @property
    def is_unsigned(self) -> bool:
        return self.kind == "u"

    @property
    def min(self) -> int | float | bool:
        """The lowest value: -inf for floating types that have it, -448.0 for fp8e4m3, which has no infinity.
        """
        if self.kind == "f":
            return -448.0 if self.name == "fp8e4m3" else -math.inf
        if self.kind == "b":
            return False
        return 0 if self.kind == "u" else -(1 << (self.bits - 1))

    @property
    def max(self) -> int | float | bool:
        """The highest value, see `min`."""
        if self.kind == "f":
            return -self.min
        if self.kind == "b":
            return True
        return (1 << self.bits) - 1 if self.kind == "u" else (1 << (self.bits - 1)) - 1

    @property
    def exponent_mantissa(self) -> tuple[int, int]:
        """Bits of exponent and of stored mantissa; ValueError for a type that is not floating."""
        if self.name not in _FLOAT_BITS:
            raise ValueError(f"{self.name} has no mantissa: it is not a floating type")
        return _FLOAT_BITS[self.name]

    def __repr__(self) -> str:
        return f"dtypes.{self.name}"

    def __reduce__(self):
        return _by_name, (self.name,)


def _by_name(name: str) -> DType:
    return getattr(dtypes, name)


class _Defaults(type):
    """The type of `dtypes`: `default_float` is the setting DEFAULT_FLOAT as it is now, here."""

    @property
    def default_float(cls) -> DType:
        return _floating_type(config.current().default_float)

    @default_float.setter
    def default_float(cls, dtype: DType) -> None:
        config.Context(DEFAULT_FLOAT=dtype.name).__enter__()   # from here on; a surrounding Context ends it


@functools.cache
def _floating_type(name: str) -> DType:
    found = vars(dtypes).get(name.lower().removeprefix("dtypes."))
    if found not in dtypes.floats:
        raise config.ConfigError(f"DEFAULT_FLOAT={name}: a floating type is needed, one of "
                                 f"{', '.join(dtype.name for dtype in dtypes.floats)}")
    return found


class dtypes(metaclass=_Defaults):
    """The namespace users import: `dtypes.float32`, `dtypes.half`, `dtypes.is_float(x)`..."""
    bool = DType("bool", "b", 8)
    int8 = DType("int8", "i", 8)
    uint8 = DType("uint8", "u", 8)
    int16 = DType("int16", "i", 16)
    uint16 = DType("uint16", "u", 16)
    int32 = DType("int32", "i", 32)
    uint32 = DType("uint32", "u", 32)
    int64 = DType("int64", "i", 64)
    uint64 = DType("uint64", "u", 64)
    fp8e4m3 = DType("fp8e4m3", "f", 8)
    fp8e5m2 = DType("fp8e5m2", "f", 8)
    float16 = DType("float16", "f", 16)
    bfloat16 = DType("bfloat16", "f", 16)
    float32 = DType("float32", "f", 32)
    float64 = DType("float64", "f", 64)
    index = DType("index", "x", 64)          # sizes and positions: 32 or 64 bits once bounds are known
    void = DType("void", "v", 0)              # of a node that gives no value, such as a store

    char, short, int, long = int8, int16, int32, int64
    uchar, ushort, uint, ulong = uint8, uint16, uint32, uint64
    half, float, double = float16, float32, float64

    fp8s = (fp8e4m3, fp8e5m2)
    floats = (*fp8s, float16, bfloat16, float32, float64)
    uints = (uint8, uint16, uint32, uint64)
    sints = (int8, int16, int32, int64)
    ints = (*uints, *sints)
    all = (bool, *ints, *floats)

    default_int = int32

    @staticmethod
    def is_float(dtype: DType) -> "bool":
        return dtype.kind == "f"

    @staticmethod
    def is_int(dtype: DType) -> "bool":
        return dtype.is_integer

    @staticmethod
    def is_unsigned(dtype: DType) -> "bool":
        return dtype.kind == "u"

    @staticmethod
    def is_bool(dtype: DType) -> "bool":
        return dtype.kind == "b"

    @staticmethod
    def from_py(value) -> DType:
        """The type a Python scalar takes when nothing else decides it."""
        if isinstance(value, bool):
            return dtypes.bool
        if isinstance(value, int):
            if not -(2**63) <= value < 2**64:
                raise OverflowError(f"the number {value} fits into no integer type; give a floating dtype")
            return (dtypes.default_int if -(2**31) <= value < 2**31 else
                    dtypes.int64 if value < 2**63 else dtypes.uint64)
        if isinstance(value, float):
            return dtypes.default_float
        raise TypeError(f"dtypes.from_py: {value!r} of type {type(value).__name__} is not a bool, int or "
                        "float")

    @staticmethod
    def finfo(dtype: DType) -> "tuple[int, int]":
        """(exponent bits, mantissa bits) of a floating type."""
        return dtype.exponent_mantissa


# -- promotion -----------------------------------------------------------------------------------------------
# The next wider types of each, narrow types first. Two types meet in the first one above both: 16-bit floats
# of different make in float32, and uint64 with a signed type in float32 too.
_PARENTS = {
    dtypes.bool: (dtypes.int8, dtypes.uint8),
    dtypes.int8: (dtypes.int16,),
    dtypes.uint8: (dtypes.int16, dtypes.uint16),
    dtypes.int16: (dtypes.int32,),
    dtypes.uint16: (dtypes.int32, dtypes.uint32),
    dtypes.int32: (dtypes.int64,),
    dtypes.uint32: (dtypes.int64, dtypes.uint64),
    dtypes.int64: (dtypes.fp8e4m3, dtypes.fp8e5m2),
    dtypes.uint64: (dtypes.fp8e4m3, dtypes.fp8e5m2),
    dtypes.fp8e4m3: (dtypes.float16, dtypes.bfloat16),
    dtypes.fp8e5m2: (dtypes.float16, dtypes.bfloat16),
    dtypes.float16: (dtypes.float32,),
    dtypes.bfloat16: (dtypes.float32,),
    dtypes.float32: (dtypes.float64,),
    dtypes.float64: (),
}
_RANK = {dtype: rank for rank, dtype in enumerate(_PARENTS)}
_ANCESTORS: dict[DType, set[DType]] = {}
for _dtype in reversed(_PARENTS):
    _ANCESTORS[_dtype] = {_dtype}.union(*(_ANCESTORS[parent] for parent in _PARENTS[_dtype]))


@functools.cache
def _meet(a: DType, b: DType) -> DType:
    common = _ANCESTORS[a] & _ANCESTORS[b]
    if a.is_integer and b.is_integer and all(dtype.is_float for dtype in common):
        return dtypes.float32                   # uint64 with a signed type: no integer holds both
    return min(common, key=_RANK.__getitem__)


def least_upper(*types: DType) -> DType:
    """The type in which values of all `types` meet in arithmetic."""
    return functools.reduce(_meet, types)


def sum_dtype(dtype: DType) -> DType:
    """The type of a sum: at least 32 bits for integers, float types keep theirs (but accumulate in float32).
    """
    if dtype.kind == "u":
        return least_upper(dtype, dtypes.uint32)
    if dtype.kind in "bi":
        return least_upper(dtype, dtypes.int32)
    return dtype


def accumulator_dtype(dtype: DType) -> DType:
    """The type a reduction adds up in before it rounds to `dtype` once."""
    return dtypes.float32 if dtype.is_float and dtype.bits < 32 else dtype


# -- Python values as bits -----------------------------------------------------------------------------------
_FORMAT = {dtypes.float64: "<d", dtypes.float32: "<f", dtypes.float16: "<e"}


def _round_to_small_float(value: float, dtype: DType) -> float:
    """Nearest-even rounding to a float type that `struct` does not know;
    values past the largest become inf or NaN.
    """
    exponent_bits, mantissa_bits = dtype.exponent_mantissa
    if value == 0.0 or not math.isfinite(value):
        return math.copysign(math.nan, value) if dtype is dtypes.fp8e4m3 and math.isinf(value) else value
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = max(math.frexp(value)[1] - 1, 1 - bias)
    step = math.ldexp(1.0, exponent - mantissa_bits)
    rounded = math.copysign(round(abs(value) / step) * step, value)  # round() is half to even
    largest = {"fp8e4m3": 448.0, "fp8e5m2": 57344.0, "bfloat16": 3.3895313892515355e38}[dtype.name]
    if abs(rounded) > largest:
        return math.copysign(math.nan if dtype is dtypes.fp8e4m3 else math.inf, value)
    return rounded


def canonical(value, dtype: DType) -> int | float | bool:
    """`value` as an element of `dtype` holds it: integers wrap, floats round to nearest even once.

    A float becomes an integer by truncation; NaN and infinities become 0.
    """
    if dtype.kind == "b":
        return bool(value)
    if dtype.kind in "iux":
        if isinstance(value, float) and not math.isfinite(value):
            return 0
        number = int(value)
        if dtype.kind == "x":
            return number
        number &= (1 << dtype.bits) - 1
        return number - (1 << dtype.bits) if dtype.kind == "i" and number >> (dtype.bits - 1) else number
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if dtype is dtypes.float64:
        return number
    if dtype in _FORMAT:
        try:
            return struct.unpack(_FORMAT[dtype], struct.pack(_FORMAT[dtype], number))[0]
        except OverflowError:
            return math.copysign(math.inf, number)
    return _round_to_small_float(number, dtype)
