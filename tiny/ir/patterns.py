"""The language of rules: what to look for, what to put in its place, and when.

    x, a, b = var("x"), constant("a"), constant("b")
    rule((x + a) + b, x + fold(a + b), when=is_integer(x))

Python's operators on patterns build patterns; numbers in them are constants of the type their neighbours
have. On the left a constant stands on the right of a commutative operation, which is where `algebra` puts it.
Operands of commutative operations that are not constants are looked for in both orders.
"""
from collections.abc import Callable
from dataclasses import dataclass, field

from tiny.ir import ops
from tiny.ir.ops import Op


class Pattern:
    """A shape of expression. Subclasses: Variable, Literal, Apply, Fold."""
    __slots__ = ()

    def __add__(self, other):
        return apply(ops.ADD, self, other)

    def __sub__(self, other):
        return apply(ops.SUB, self, other)

    def __mul__(self, other):
        return apply(ops.MUL, self, other)

    def __truediv__(self, other):
        return apply(ops.FDIV, self, other)

    def __floordiv__(self, other):
        return apply(ops.IDIV, self, other)

    def __mod__(self, other):
        return apply(ops.MOD, self, other)

    def __and__(self, other):
        return apply(ops.AND, self, other)

    def __or__(self, other):
        return apply(ops.OR, self, other)

    def __xor__(self, other):
        return apply(ops.XOR, self, other)

    def __lshift__(self, other):
        return apply(ops.SHL, self, other)

    def __rshift__(self, other):
        return apply(ops.SHR, self, other)

    def __lt__(self, other):
        return apply(ops.LT, self, other)

    def __neg__(self):
        return apply(ops.NEG, self)

    def eq(self, other) -> "Pattern":
        return apply(ops.EQ, self, other)

    def ne(self, other) -> "Pattern":
        return apply(ops.NE, self, other)


@dataclass(frozen=True, slots=True, eq=False)
class Variable(Pattern):
    """Any node, or any constant; the same name twice is the same node twice."""
    name: str
    constant: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Pattern):
    """The constant with this value; 0 is not -0.0, and True and False are those of bool only."""
    value: int | float | bool


@dataclass(frozen=True, slots=True, eq=False)
class Apply(Pattern):
    """One of the operations `rows` on operands that match `src`.
    `name` lets guards and functions refer to it.
    """
    rows: tuple[Op, ...]
    src: tuple[Pattern, ...]
    name: str = ""

    def named(self, name: str) -> "Apply":
        return Apply(self.rows, self.src, name)


@dataclass(frozen=True, slots=True, eq=False)
class Fold(Pattern):
    """On the right: the constant that an expression of constants comes to."""
    inner: Pattern


def var(name: str) -> Variable:
    """Any node."""
    return Variable(name)


def constant(name: str) -> Variable:
    """Any CONST node."""
    return Variable(name, constant=True)


def fold(pattern: Pattern) -> Fold:
    """The value of an expression of constants, computed as a device would."""
    return Fold(pattern)


def apply(rows: Op | tuple[Op, ...], *src) -> Apply:
    """An operation on patterns and numbers; given several rows, any one of them (on the left only)."""
    operands = tuple(s if isinstance(s, Pattern) else Literal(s) for s in src)
    return Apply(rows if isinstance(rows, tuple) else (rows,), operands)


def where(condition, yes, no) -> Apply:
    return apply(ops.WHERE, condition, yes, no)


def maximum(x, y) -> Apply:
    return apply(ops.MAX, x, y)


def minimum(x, y) -> Apply:
    return apply(ops.MIN, x, y)


def cast(x) -> Apply:
    """On the left a CAST to any type; on the right one to the type of the node that is replaced."""
    return apply(ops.CAST, x)


def bitcast(x) -> Apply:
    """As `cast`, for BITCAST."""
    return apply(ops.BITCAST, x)


# -- guards -----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """A condition on matched nodes, or a number to be compared:
    Python text in which {x} stands for the node x.
    """
    text: str
    functions: dict[str, Callable] = field(default_factory=dict)

    def _with(self, operator: str, other) -> "Guard":
        other = other if isinstance(other, Guard) else Guard(repr(other))
        return Guard(f"({self.text} {operator} {other.text})", self.functions | other.functions)

    def __and__(self, other):
        return self._with("and", other)

    def __or__(self, other):
        return self._with("or", other)

    def __invert__(self):
        return Guard(f"(not {self.text})", self.functions)

    def __lt__(self, other):
        return self._with("<", other)

    def __le__(self, other):
        return self._with("<=", other)

    def __gt__(self, other):
        return self._with(">", other)

    def __ge__(self, other):
        return self._with(">=", other)

    def __add__(self, other):
        return self._with("+", other)

    def __mul__(self, other):
        return self._with("*", other)

    def __mod__(self, other):
        return self._with("%", other)

    def equals(self, other) -> "Guard":
        return self._with("==", other)


def value(a: Variable) -> Guard:
    """The Python value of a constant."""
    return Guard(f"{{{a.name}}}.arg")


def highest(x: Variable) -> Guard:
    """The largest value of the type."""
    return Guard(f"{{{x.name}}}.dtype.max")


def lowest(x: Variable) -> Guard:
    """The smallest value of the type."""
    return Guard(f"{{{x.name}}}.dtype.min")


def _kind(x: Pattern, kinds: str) -> Guard:
    return Guard(f"({{{x.name}}}.dtype.kind in {kinds!r})")


def is_integer(x: Pattern) -> Guard:
    """Signed, unsigned or index; not bool."""
    return _kind(x, "iux")


def is_whole(x: Pattern) -> Guard:
    """An integer or bool."""
    return _kind(x, "iuxb")


def is_unsigned(x: Pattern) -> Guard:
    return _kind(x, "u")


def is_bool(x: Pattern) -> Guard:
    return _kind(x, "b")


def is_float(x: Pattern) -> Guard:
    return _kind(x, "f")


def holds(function: Callable[..., bool], *names: Pattern) -> Guard:
    """A condition written as a Python function of nodes."""
    arguments = ", ".join(f"{{{x.name}}}" for x in names)
    return Guard(f"{function.__name__}({arguments})", {function.__name__: function})


# -- rules ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """`left` may be replaced by `right` when the guard holds.

    right: a pattern, or a function of nodes that are named like its parameters (`node` is the whole), giving
    the replacement or None.
    """
    left: Apply
    right: Pattern | Callable
    when: Guard | None
    name: str = ""


def rule(left: Apply, right, when: Guard | None = None) -> Rule:
    """A rule whose sides are both patterns; a number on the right is a constant of the type of the left."""
    return Rule(left, right if isinstance(right, Pattern) else Literal(right), when)
