"""A small typed expression language: what an instruction computes for one lane.

A row of the semantics table is a Python function over Values; calling it with inputs gives the expression,
which `evaluate` computes with numpy and `c_text` writes as C. So the meaning is written once.

Types: b1 (a condition), u8 i8 u16 i16 u32 i32 u64 i64, f16 f32 f64. Integers wrap. A shift takes its count
modulo the width, as the hardware does. Arithmetic on f16 happens in f32 and is rounded: that is exact to the
last bit for + - * / and sqrt, because f32 has more than twice the bits plus two (Figueroa, "When is double
rounding innocuous?", 1995). A float becomes an integer by truncation, the nearest integer where it does not
fit, 0 for NaN.
"""

from collections.abc import Callable, Collection, Sequence

WIDTH = {
    "b1": 1,
    "u8": 8,
    "i8": 8,
    "u16": 16,
    "i16": 16,
    "f16": 16,
    "u32": 32,
    "i32": 32,
    "f32": 32,
    "u64": 64,
    "i64": 64,
    "f64": 64,
}
UNSIGNED = {1: "b1", 8: "u8", 16: "u16", 32: "u32", 64: "u64"}
SIGNED = {8: "i8", 16: "i16", 32: "i32", 64: "i64"}
MANTISSA = {"f16": 10, "f32": 23, "f64": 52}


def is_float(kind: str) -> bool:
    return kind[0] == "f"


def limits(kind: str) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    width = WIDTH[kind]
    return (-(1 << width - 1), (1 << width - 1) - 1) if kind[0] == "i" else (0, (1 << width) - 1)


class Value:
    """One node: `op` applied to `args`. Immutable; arithmetic on Values makes new ones.

    op: const (args: the number, for floats too), input (its name), cast, bits, select, or the name of an
    operation.
    """

    __slots__ = ("kind", "op", "args")

    def __init__(self, kind: str, op: str, *args):
        self.kind, self.op, self.args = kind, op, args

    def _with(self, op: str, other, swap: bool = False) -> "Value":
        other = like(self, other)
        a, b = (other, self) if swap else (self, other)
        if self.kind == "f16":
            return cast(Value("f32", op, cast(a, "f32"), cast(b, "f32")), "f16")
        return Value(self.kind, op, a, b)

    def _compare(self, op: str, other, swap: bool = False) -> "Value":
        other = like(self, other)
        a, b = (other, self) if swap else (self, other)
        if self.kind == "f16":
            a, b = cast(a, "f32"), cast(b, "f32")
        return Value("b1", op, a, b)

    def __add__(self, other):
        return self._with("add", other)

    def __radd__(self, other):
        return self._with("add", other, swap=True)

    def __sub__(self, other):
        return self._with("sub", other)

    def __rsub__(self, other):
        return self._with("sub", other, swap=True)

    def __mul__(self, other):
        return self._with("mul", other)

    def __rmul__(self, other):
        return self._with("mul", other, swap=True)

    def __truediv__(self, other):
        return self._with("div", other)

    def __rtruediv__(self, other):
        return self._with("div", other, swap=True)

    def __and__(self, other):
        return self._with("and", other)

    def __or__(self, other):
        return self._with("or", other)

    def __xor__(self, other):
        return self._with("xor", other)

    def __lshift__(self, count):
        return Value(self.kind, "shl", self, _count(self, count))

    def __rshift__(self, count):
        return Value(self.kind, "shr", self, _count(self, count))

    def __lt__(self, other):
        return self._compare("lt", other)

    def __le__(self, other):
        return self._compare("le", other)

    def __gt__(self, other):
        return self._compare("lt", other, swap=True)

    def __ge__(self, other):
        return self._compare("le", other, swap=True)

    def equals(self, other):
        return self._compare("eq", other)

    def differs(self, other):
        return ~self.equals(other)

    def __invert__(self):
        return Value(self.kind, "not", self)

    def __neg__(self):
        if is_float(self.kind):  # changes the sign bit, of NaN too
            sign = 1 << WIDTH[self.kind] - 1
            return bits(bits(self, UNSIGNED[WIDTH[self.kind]]) ^ sign, self.kind)
        return const(self.kind, 0) - self

    def __abs__(self):
        if is_float(self.kind):
            return bits(bits(self, UNSIGNED[WIDTH[self.kind]]) & (1 << WIDTH[self.kind] - 1) - 1, self.kind)
        return select(self < 0, -self, self)

    def __bool__(self):
        raise TypeError("a Value has no truth of its own; use select")

    def __repr__(self) -> str:
        return f"{self.op}:{self.kind}({', '.join(map(repr, self.args))})"


def const(kind: str, number) -> Value:
    """A constant; integers are taken modulo the width."""
    if not is_float(kind):
        number = int(number) & (1 << WIDTH[kind]) - 1
        if kind[0] == "i" and number >> WIDTH[kind] - 1:
            number -= 1 << WIDTH[kind]
    return Value(kind, "const", number)


def like(value: Value, other) -> Value:
    if isinstance(other, Value):
        if other.kind != value.kind:
            raise TypeError(f"{value.kind} meets {other.kind} in {value!r} and {other!r}; cast one of them")
        return other
    return const(value.kind, other)


def _count(value: Value, count) -> Value:
    """A shift's count, masked, in the type of what is shifted."""
    count = cast(count, value.kind) if isinstance(count, Value) else const(value.kind, count)
    return count & (WIDTH[value.kind] - 1)


def cast(value: Value, kind: str) -> Value:
    """The number in another type; see the module's text for what does not fit."""
    if value.kind == kind:
        return value
    if value.op == "const" and not is_float(value.kind) and not is_float(kind):
        return const(kind, value.args[0])
    if value.kind == "f16" and kind != "f32":
        return cast(cast(value, "f32"), kind)
    if kind == "f16" and value.kind != "f32":
        exact = value.kind in ("u16", "i16", "u8", "i8")
        return cast(cast(value, "f32") if exact else to_odd(cast(value, "f64")), "f16")
    return Value(kind, "cast", value)


def bits(value: Value, kind: str) -> Value:
    """The same bits read as another type of the same width."""
    if value.kind == kind:
        return value
    if WIDTH[value.kind] != WIDTH[kind]:
        raise TypeError(f"{value.kind} and {kind} have different widths in {value!r}")
    return Value(kind, "bits", value)


def to_odd(value: Value) -> Value:
    """f64 -> f32 by truncation, the last bit set where anything was lost: rounding that again to f16 is
    exact.
    """
    near = cast(value, "f32")
    back = cast(near, "f64")
    pattern = bits(near, "u32")
    too_far = abs(value) < abs(back)
    toward_zero = select(too_far, pattern - 1, pattern)
    odd = bits(toward_zero | 1, "f32")
    return select(back.equals(value) | value.differs(value), near, odd)


def select(condition: Value, yes, no) -> Value:
    """`yes` where the condition holds, else `no`; one of them may be a Python number."""
    if not isinstance(yes, Value):
        yes = like(no, yes)
    return Value(yes.kind, "select", condition, yes, like(yes, no))


def fma(a: Value, b: Value, c: Value) -> Value:
    """a * b + c, rounded once."""
    if a.kind == "f16":  # exact in f64 wherever it matters: 22 bits meet 11, 40 apart at most
        wide = cast(a, "f64") * cast(b, "f64") + cast(c, "f64")
        return cast(to_odd(wide), "f16")
    return Value(a.kind, "fma", a, b, c)


def unary(op: str) -> Callable[[Value], Value]:
    def applied(value: Value) -> Value:
        return (
            cast(Value("f32", op, cast(value, "f32")), "f16")
            if value.kind == "f16"
            else Value(value.kind, op, value)
        )

    return applied


sqrt, floor, ceil, trunc, rint = map(unary, ("sqrt", "floor", "ceil", "trunc", "rint"))
clz, popcount = unary("clz"), unary("popcount")  # of u32; clz(0) is 32


def is_nan(value: Value) -> Value:
    return value.differs(value)


def smaller(a: Value, b) -> Value:
    b = like(a, b)
    return select(a < b, a, b)


def larger(a: Value, b) -> Value:
    b = like(a, b)
    return select(a > b, a, b)


def join(low: Value, high: Value) -> Value:
    """Two u32 as one u64."""
    return cast(low, "u64") | cast(high, "u64") << 32


def field(value: Value, low: int, width: int) -> Value:
    """`width` bits from bit `low` up, unsigned."""
    return (value >> low) & (1 << width) - 1


def apply(function: Callable, operands: list[Value], known: dict) -> tuple[Value, ...]:
    """A row's function applied to these Values."""
    results = function(*operands, **known)
    return results if isinstance(results, tuple) else (results,)


def parts_of(values: Sequence[Value], ops: Collection[str]) -> list[Value]:
    """What occurs in expressions and is one of these operations or leaves, each once."""
    found, seen, todo = [], set(), list(values)
    while todo:
        value = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if value.op in ops:
            found.append(value)
        todo += [each for each in value.args if isinstance(each, Value)]
    return found
