"""The table of operations. A new operation is a new row here, not a new branch elsewhere.

Each row names its level: TENSOR rows work on whole arrays and know their shape at birth, KERNEL rows on one
element or a few lanes inside a kernel, SHARED rows (arithmetic) on both. FUNCTION rows are SHARED ones that
`render.decompose` turns into simpler arithmetic before a dialect sees them, so that every backend computes
the same values.
"""
from collections.abc import Callable
from dataclasses import dataclass

from tiny.ir.dtype import DType, dtypes

TENSOR, KERNEL, SHARED = "tensor", "kernel", "shared"


@dataclass(frozen=True, eq=False, slots=True)
class Op:
    """One row: instances are unique, compare with `is`.

    operands     how many, or None for any number
    dtype        rule (sources, argument, asked) -> DType: the result's type, or a TypeError
    shape        rule (sources, argument) -> tuple: the result's shape, or a ValueError
    commutative  operands may change places
    function     computed from simpler operations by render.decompose
    """
    name: str
    level: str
    operands: int | None
    dtype: Callable
    shape: Callable
    commutative: bool
    function: bool
    doc: str

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self):
        return _by_name, (self.name,)


TABLE: dict[str, Op] = {}


def _by_name(name: str) -> Op:
    return TABLE[name]


def op(name: str, *, level: str, operands: int | None, dtype: Callable, shape: Callable, doc: str,
       commutative: bool = False, function: bool = False) -> Op:
    """Add a row to the table and return it."""
    row = TABLE[name] = Op(name, level, operands, dtype, shape, commutative, function, doc)
    return row


# -- dtype rules: (sources, argument, the type asked for or None) -> the result's type -----------------------
def asked(src, arg, dtype: DType | None) -> DType:
    if dtype is None:
        raise TypeError("this operation needs its dtype given")
    return dtype


def first(src, arg, dtype) -> DType:
    return src[0].dtype


def third(src, arg, dtype) -> DType:
    return src[2].dtype


def same(src, arg, dtype) -> DType:
    """All operands have one type and the result has it too."""
    if any(s.dtype is not src[0].dtype for s in src):
        raise TypeError(f"operands of different types: {', '.join(s.dtype.name for s in src)}; cast them "
                        f"first")
    return src[0].dtype


def floating(src, arg, dtype) -> DType:
    result = same(src, arg, dtype)
    if not result.is_float:
        raise TypeError(f"a floating type is needed, not {result.name}")
    return result


def whole(src, arg, dtype) -> DType:
    result = same(src, arg, dtype)
    if result.is_float:
        raise TypeError(f"an integer or bool type is needed, not {result.name}")
    return result


def compared(src, arg, dtype) -> DType:
    same(src, arg, dtype)
    return dtypes.bool


def chosen(src, arg, dtype) -> DType:
    if src[0].dtype is not dtypes.bool:
        raise TypeError(f"WHERE: the condition is {src[0].dtype.name}, not bool")
    return same(src[1:], arg, dtype)


def position(src, arg, dtype) -> DType:
    return dtypes.index


def nothing(src, arg, dtype) -> DType:
    return dtypes.void


# -- shape rules: (sources, argument) -> the result's shape --------------------------------------------------
def scalar(src, arg) -> tuple:
    return ()


def of_first(src, arg) -> tuple:
    return src[0].shape


def of_third(src, arg) -> tuple:
    return src[2].shape


def broadcast(src, arg) -> tuple:
    """Operands have one shape; scalars, shape (), go with any."""
    shape = ()
    for s in src:
        if s.shape != shape and s.shape:
            if shape:
                raise ValueError(f"operands of different shapes: {' and '.join(str(s.shape) for s in src)}")
            shape = s.shape
    return shape


def given(src, arg) -> tuple:
    return arg


def held(src, arg) -> tuple:
    return arg.shape


def second_of_argument(src, arg) -> tuple:
    return arg[1]


def counted(src, arg) -> tuple:
    return (arg,)


def permuted(src, arg) -> tuple:
    return tuple(src[0].shape[axis] for axis in arg)


def shrunk(src, arg) -> tuple:
    return tuple(stop - start for start, stop in arg)


def padded(src, arg) -> tuple:
    return tuple(size + before + after for size, (before, after) in zip(src[0].shape, arg, strict=True))


def windowed(src, arg) -> tuple:
    axis, size, stride, dilation = arg
    shape = list(src[0].shape)
    shape[axis] = (shape[axis] - dilation * (size - 1) - 1) // stride + 1
    return (*shape, size)


def reduced(src, arg) -> tuple:
    return tuple(1 if axis in arg[1] else size for axis, size in enumerate(src[0].shape))


def taken(src, arg) -> tuple:
    return src[1].shape + src[0].shape[1:]


def loaded(src, arg) -> tuple:
    return (arg,) if arg else broadcast(src[1:], arg)


def stored(src, arg) -> tuple:
    return broadcast(src[1:], arg)


def sliced(src, arg) -> tuple:
    return (arg[1],)


def stacked(src, arg) -> tuple:
    return (len(src),)


# -- leaves --------------------------------------------------------------------------------------------------
CONST = op("CONST", level=SHARED, operands=0, dtype=asked, shape=scalar,
           doc="arg: a Python value in canonical form; keyed by its bits, so 0.0 and -0.0 are two nodes")
VARIABLE = op("VARIABLE", level=SHARED, operands=0, dtype=position, shape=scalar,
              doc="arg: (name, min, max), both inclusive; a size known when the kernel is launched")
BIND = op("BIND", level=SHARED, operands=1, dtype=position, shape=scalar,
          doc="a VARIABLE together with arg, its value for now")
BUFFER = op("BUFFER", level=TENSOR, operands=0, dtype=asked, shape=held,
            doc="arg: the storage that holds the data, an object with an identity, a shape and a device")
PARAM = op("PARAM", level=TENSOR, operands=0, dtype=asked, shape=second_of_argument,
           doc="arg: (slot, shape, device); stands for the slot-th BUFFER in a graph as text")
IOTA = op("IOTA", level=TENSOR, operands=0, dtype=asked, shape=counted, doc="arg: n; the integers 0 ... n-1")

# -- movement: no arithmetic, no data moves ------------------------------------------------------------------
RESHAPE = op("RESHAPE", level=TENSOR, operands=1, dtype=first, shape=given,
             doc="arg: the new shape, row-major order")
EXPAND = op("EXPAND", level=TENSOR, operands=1, dtype=first, shape=given,
            doc="arg: the new shape; axes of size 1 grow")
PERMUTE = op("PERMUTE", level=TENSOR, operands=1, dtype=first, shape=permuted, doc="arg: axis order")
SHRINK = op("SHRINK", level=TENSOR, operands=1, dtype=first, shape=shrunk,
            doc="arg: (start, stop) for each axis")
PAD = op("PAD", level=TENSOR, operands=1, dtype=first, shape=padded,
         doc="arg: (before, after) for each axis; zeros")
FLIP = op("FLIP", level=TENSOR, operands=1, dtype=first, shape=of_first, doc="arg: the axes that turn round")
WINDOW = op("WINDOW", level=TENSOR, operands=1, dtype=first, shape=windowed,
            doc="arg: (axis, size, stride, dilation); result[..., o, ..., k] = x[..., o * stride + k * "
                "dilation, ...] with k a new last axis of that size")
MOVEMENT = frozenset((RESHAPE, EXPAND, PERMUTE, SHRINK, PAD, FLIP, WINDOW))

# -- whole-array operations ----------------------------------------------------------------------------------
REDUCE = op("REDUCE", level=TENSOR, operands=1, dtype=first, shape=reduced,
            doc="arg: (ADD, MUL, MAX or MIN, axes); reduced axes become 1. Order and contraction are free; "
                "small floats accumulate in float32; MAX and MIN keep NaN")
SCAN = op("SCAN", level=TENSOR, operands=1, dtype=first, shape=of_first,
          doc="arg: (ADD, MUL, MAX or MIN, axis); inclusive running reduction along the axis")
GATHER = op("GATHER", level=TENSOR, operands=2, dtype=first, shape=taken,
            doc="data (n, *rest), index of any shape S: result (*S, *rest) takes data[index]; 0 where the "
                "index is outside 0 ... n-1 (an error in checked mode)")
SCATTER = op("SCATTER", level=TENSOR, operands=3, dtype=first, shape=of_first,
             doc="base (n, *rest), index (m,), updates (m, *rest); arg: None to set, or ADD, MUL, MAX, MIN. "
                 "Updates are made in index order, so the last write wins; indices outside are left out")
ASSIGN = op("ASSIGN", level=TENSOR, operands=2, dtype=first, shape=of_first,
            doc="base with the part that arg, a tuple of (movement op, its arg), reaches replaced by the "
                "value; written in place where no other reader of the base is alive")
CONTIGUOUS = op("CONTIGUOUS", level=TENSOR, operands=1, dtype=first, shape=of_first,
                doc="the value, held in memory")
DETACH = op("DETACH", level=TENSOR, operands=1, dtype=first, shape=of_first,
            doc="the value; no gradient passes")
COPY = op("COPY", level=TENSOR, operands=1, dtype=first, shape=of_first,
          doc="arg: the device the value moves to")

# -- arithmetic ----------------------------------------------------------------------------------------------
ADD = op("ADD", level=SHARED, operands=2, dtype=same, shape=broadcast, commutative=True,
         doc="x + y, wrapping for integers, or for bool")
SUB = op("SUB", level=SHARED, operands=2, dtype=same, shape=broadcast, doc="x - y, wrapping for integers")
MUL = op("MUL", level=SHARED, operands=2, dtype=same, shape=broadcast, commutative=True,
         doc="x * y, wrapping for integers, and for bool")
FDIV = op("FDIV", level=SHARED, operands=2, dtype=floating, shape=broadcast, doc="x / y, correctly rounded")
IDIV = op("IDIV", level=SHARED, operands=2, dtype=whole, shape=broadcast,
          doc="floor(x / y); 0 where y is 0; wraps for the lowest integer by -1")
MOD = op("MOD", level=SHARED, operands=2, dtype=whole, shape=broadcast,
         doc="x - y * floor(x / y), the sign of y; 0 where y is 0")
MAX = op("MAX", level=SHARED, operands=2, dtype=same, shape=broadcast, commutative=True,
         doc="the larger; NaN if one is")
MIN = op("MIN", level=SHARED, operands=2, dtype=same, shape=broadcast, commutative=True,
         doc="the smaller; NaN if one is")
AND = op("AND", level=SHARED, operands=2, dtype=whole, shape=broadcast, commutative=True, doc="bitwise x & y")
OR = op("OR", level=SHARED, operands=2, dtype=whole, shape=broadcast, commutative=True, doc="bitwise x | y")
XOR = op("XOR", level=SHARED, operands=2, dtype=whole, shape=broadcast, commutative=True, doc="bitwise x ^ y")
SHL = op("SHL", level=SHARED, operands=2, dtype=whole, shape=broadcast,
         doc="x << y; 0 where y is not in 0 ... bits-1")
SHR = op("SHR", level=SHARED, operands=2, dtype=whole, shape=broadcast,
         doc="x >> y, arithmetic for signed; the sign's fill where y is not in 0 ... bits-1")
LT = op("LT", level=SHARED, operands=2, dtype=compared, shape=broadcast, doc="x < y")
EQ = op("EQ", level=SHARED, operands=2, dtype=compared, shape=broadcast, commutative=True, doc="x == y")
NE = op("NE", level=SHARED, operands=2, dtype=compared, shape=broadcast, commutative=True,
        doc="x != y, true for NaN")
NEG = op("NEG", level=SHARED, operands=1, dtype=same, shape=broadcast,
         doc="-x, the sign bit flipped for floats")
TRUNC = op("TRUNC", level=SHARED, operands=1, dtype=floating, shape=broadcast, doc="towards zero; keeps -0.0")
SQRT = op("SQRT", level=SHARED, operands=1, dtype=floating, shape=broadcast,
          doc="correctly rounded; NaN below 0")
WHERE = op("WHERE", level=SHARED, operands=3, dtype=chosen, shape=broadcast, doc="condition ? x : y")
FMA = op("FMA", level=SHARED, operands=3, dtype=same, shape=broadcast,
         doc="x * y + z rounded once where the target has it, twice where not; only where contraction is "
             "allowed")
CAST = op("CAST", level=SHARED, operands=1, dtype=asked, shape=broadcast,
          doc="the same number in another type: floats round to nearest even; float to integer truncates, "
              "then wraps from int64 (NaN and what int64 cannot hold give 0); arg True promises that the "
              "value fits")
BITCAST = op("BITCAST", level=SHARED, operands=1, dtype=asked, shape=broadcast,
             doc="the same bits; sizes must be equal")

# -- functions, made of arithmetic before a dialect sees them ------------------------------------------------
EXP = op("EXP", level=SHARED, operands=1, dtype=floating, shape=broadcast, function=True, doc="e ** x")
EXP2 = op("EXP2", level=SHARED, operands=1, dtype=floating, shape=broadcast, function=True, doc="2 ** x")
EXPM1 = op("EXPM1", level=SHARED, operands=1, dtype=floating, shape=broadcast, function=True,
           doc="e ** x - 1")
LOG = op("LOG", level=SHARED, operands=1, dtype=floating, shape=broadcast, function=True,
         doc="natural logarithm")
LOG2 = op("LOG2", level=SHARED, operands=1, dtype=floating, shape=broadcast, function=True,
          doc="logarithm to base 2")
LOG1P = op("LOG1P", level=SHARED, operands=1, dtype=floating, shape=broadcast, function=True,
           doc="log(1 + x)")
SIN = op("SIN", level=SHARED, operands=1, dtype=floating, shape=broadcast, function=True,
         doc="sine of radians")
COS = op("COS", level=SHARED, operands=1, dtype=floating, shape=broadcast, function=True,
         doc="cosine of radians")
TAN = op("TAN", level=SHARED, operands=1, dtype=floating, shape=broadcast, function=True,
         doc="tangent of radians")
ATAN = op("ATAN", level=SHARED, operands=1, dtype=floating, shape=broadcast, function=True, doc="arc tangent")
ERF = op("ERF", level=SHARED, operands=1, dtype=floating, shape=broadcast, function=True,
         doc="error function")
POW = op("POW", level=SHARED, operands=2, dtype=floating, shape=broadcast, function=True,
         doc="x ** y with C's rules for signs, zeros, infinities and NaN")
THREEFRY = op("THREEFRY", level=SHARED, operands=2, dtype=same, shape=broadcast, function=True,
              doc="(counter, key), both uint64: 64 random bits, Threefry 2x32 with 20 rounds; low word "
                  "first")

# -- inside a kernel -----------------------------------------------------------------------------------------
RANGE = op("RANGE", level=KERNEL, operands=1, dtype=position, shape=scalar,
           doc="arg: a number unique in the kernel; an axis, from 0 to its operand - 1, not yet scheduled")
LANES = op("LANES", level=KERNEL, operands=0, dtype=position, shape=counted,
           doc="arg: n; the vector (0, 1, ... n-1)")
POINTER = op("POINTER", level=KERNEL, operands=0, dtype=asked, shape=scalar,
             doc="arg: the kernel's argument slot, 0 is the result")
LOCAL = op("LOCAL", level=KERNEL, operands=0, dtype=asked, shape=scalar,
           doc="arg: (name, elements); memory of one thread or workgroup, not initialised")
LOAD = op("LOAD", level=KERNEL, operands=None, dtype=first, shape=loaded,
          doc="pointer, index in elements, optional gate: 0 and no access where the gate is false. With a "
              "scalar index and arg n: n elements from there on")
STORE = op("STORE", level=KERNEL, operands=None, dtype=nothing, shape=stored,
           doc="pointer, index in elements, value, optional gate: no access where it is false; lanes go to "
               "consecutive elements from a scalar index on. arg True: past the caches, where that can be "
               "done")
ACCUMULATE = op("ACCUMULATE", level=KERNEL, operands=None, dtype=first, shape=of_first,
                doc="value, RANGEs it runs over; arg: ADD, MUL, MAX or MIN")

# -- the flat form a dialect walks: control, registers and lanes ---------------------------------------------
GROUP = op("GROUP", level=KERNEL, operands=1, dtype=position, shape=scalar,
           doc="the number of this group, 0 to its operand - 1; opens the body that runs once a group")
ITEM = op("ITEM", level=KERNEL, operands=1, dtype=position, shape=scalar,
          doc="the number of this work-item in its group, 0 to its operand - 1; all items of a group run "
              "together")
LOOP = op("LOOP", level=KERNEL, operands=1, dtype=position, shape=scalar,
          doc="counts from 0 to its operand - 1; arg: a number unique in the kernel")
END = op("END", level=KERNEL, operands=1, dtype=nothing, shape=scalar, doc="closes a GROUP, LOOP or IF")
IF = op("IF", level=KERNEL, operands=1, dtype=nothing, shape=scalar,
        doc="runs where the operand is true; arg: a number unique in the kernel")
BARRIER = op("BARRIER", level=KERNEL, operands=0, dtype=nothing, shape=scalar,
             doc="all work-items of a group wait here for one another, and see what the others stored in "
                 "LOCAL memory; no item may miss it. arg: a number unique in the kernel")
REGISTER = op("REGISTER", level=KERNEL, operands=1, dtype=first, shape=of_first,
              doc="a variable that starts as its operand; arg: a number unique in the kernel")
SET = op("SET", level=KERNEL, operands=2, dtype=nothing, shape=scalar,
         doc="REGISTER, its new value; arg: a number unique in the kernel")
READ = op("READ", level=KERNEL, operands=1, dtype=first, shape=of_first,
          doc="the value of a REGISTER; arg: a number unique in the kernel")
BROADCAST = op("BROADCAST", level=KERNEL, operands=1, dtype=first, shape=counted, doc="arg: n; n equal lanes")
EXTRACT = op("EXTRACT", level=KERNEL, operands=1, dtype=first, shape=scalar, doc="arg: the lane")
SLICE = op("SLICE", level=KERNEL, operands=1, dtype=first, shape=sliced,
           doc="arg: (start, n); n neighbouring lanes")
STACK = op("STACK", level=KERNEL, operands=None, dtype=same, shape=stacked, doc="scalars to lanes")
MATMUL = op("MATMUL", level=KERNEL, operands=3, dtype=third, shape=of_third,
            doc="a, b, c: the elements of three small matrices that a work-item holds; c + a b, made by all "
                "items of a wave together. arg: the instruction's name, which says where elements stand")
TOGETHER = op("TOGETHER", level=KERNEL, operands=1, dtype=first, shape=of_first,
              doc="its operand, computed before any work-item goes a way of its own; around a sum of MATMULs")

IDENTITY = {ADD: 0, MUL: 1, MAX: "min", MIN: "max"}


def identity_of(row: Op, dtype: DType):
    """The value a reduction with `row` starts from."""
    value = IDENTITY[row]
    return getattr(dtype, value) if isinstance(value, str) else value
