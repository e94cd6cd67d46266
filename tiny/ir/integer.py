"""Symbolic integers: sizes, positions and offsets, simplified as they are built, with bounds.

A symbolic integer is a Node of dtype index. Each has one linear form, constant + sum of coefficient * atom,
where an atom is a VARIABLE, RANGE, LANES, quotient, remainder, product of atoms, or any other index node.
Sums are built from that form in one order, so equal expressions are the same node. Division and remainder
round towards minus infinity, as in Python. Importing this module gives index nodes their arithmetic
operators.
"""
import math
from collections.abc import Callable, Iterable, Sequence

from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node, const, toposort

Integer = int | Node
COUNTERS = frozenset((ops.RANGE, ops.LOOP, ops.GROUP, ops.ITEM))   # from 0 to their operand - 1
_set = object.__setattr__
_PYTHON_OPERATOR = {ops.ADD: "+", ops.SUB: "-", ops.MUL: "*", ops.IDIV: "//", ops.MOD: "%"}


def as_node(value: Integer) -> Node:
    """A symbolic integer as a node, also when it is a plain int."""
    return value if isinstance(value, Node) else const(value, dtypes.index)


# -- order and linear form -----------------------------------------------------------------------------------
def _order(node: Node) -> tuple:
    """A key that sorts atoms the same way in every process: by structure, never by address."""
    try:
        return node._order
    except AttributeError:
        name = node.op.name if node.op is not ops.RANGE else "  RANGE"      # ranges first, in nest order
        key = (name, repr(node.arg), tuple(_order(s) for s in node.src))
        _set(node, "_order", key)
        return key


def linear(value: Integer) -> tuple[int, dict[Node, int]]:
    """(constant, {atom: coefficient}) of a symbolic integer; the dict is shared, do not change it."""
    if not isinstance(value, Node):
        return value, {}
    try:
        return value._linear
    except AttributeError:
        pass
    if value.op is ops.CONST:
        form = value.arg, {}
    elif value.op is ops.ADD:
        form = _merge(linear(value.src[0]), linear(value.src[1]), 1)
    elif value.op is ops.MUL and value.src[1].op is ops.CONST:
        form = 0, {value.src[0]: value.src[1].arg}
    else:
        form = 0, {value: 1}
    _set(value, "_linear", form)
    return form


def _merge(a: tuple[int, dict], b: tuple[int, dict], factor: int) -> tuple[int, dict[Node, int]]:
    terms = dict(a[1])
    for atom, coefficient in b[1].items():
        total = terms.get(atom, 0) + coefficient * factor
        if total:
            terms[atom] = total
        else:
            del terms[atom]
    return a[0] + b[0] * factor, terms


def _build(constant: int, terms: dict[Node, int]) -> Integer:
    """The node of a linear form; a plain int when nothing symbolic is left."""
    if not terms:
        return constant
    total = None
    for atom in sorted(terms, key=_order) if len(terms) > 1 else terms:
        coefficient = terms[atom]
        term = atom if coefficient == 1 else Node(ops.MUL, None, (atom, const(coefficient, dtypes.index)))
        total = term if total is None else Node(ops.ADD, None, (total, term))
    if constant:
        total = Node(ops.ADD, None, (total, const(constant, dtypes.index)))
    return total


def _recombine(constant: int, terms: dict[Node, int]) -> Integer:
    """Build, with every c * (x % d) + c * d * (x // d) put together again as c * x."""
    for atom, coefficient in terms.items():
        if atom.op is ops.MOD and atom.src[1].op is ops.CONST:
            divisor = atom.src[1].arg
            quotient = floor_divide(atom.src[0], divisor)
            factor = coefficient * divisor
            form = linear(quotient)
            if form[1] and all(terms.get(a) == c * factor for a, c in form[1].items()):
                rest = dict(terms)
                for a in (*form[1], atom):
                    del rest[a]
                whole = linear(multiply(atom.src[0], coefficient))
                return _recombine(*_merge((constant - form[0] * factor, rest), whole, 1))
    return _build(constant, terms)


# -- arithmetic ----------------------------------------------------------------------------------------------
def add(a: Integer, b: Integer) -> Integer:
    """a + b"""
    if not isinstance(a, Node) and not isinstance(b, Node):
        return a + b
    constant, terms = _merge(linear(a), linear(b), 1)
    return _recombine(constant, terms) if len(terms) > 1 else _build(constant, terms)


def subtract(a: Integer, b: Integer) -> Integer:
    """a - b"""
    if not isinstance(a, Node) and not isinstance(b, Node):
        return a - b
    constant, terms = _merge(linear(a), linear(b), -1)
    return _recombine(constant, terms) if len(terms) > 1 else _build(constant, terms)


def multiply(a: Integer, b: Integer) -> Integer:
    """a * b, distributed over sums so that the linear form stays flat."""
    if not isinstance(a, Node):
        a, b = b, a
    if not isinstance(a, Node):
        return a * b
    if not isinstance(b, Node) or not linear(b)[1]:
        factor = b if not isinstance(b, Node) else linear(b)[0]
        if factor == 0:
            return 0
        constant, terms = linear(a)
        return _build(constant * factor, {atom: c * factor for atom, c in terms.items()})
    total: Integer = 0
    (ca, ta), (cb, tb) = linear(a), linear(b)
    for x, cx in ta.items():
        for y, cy in tb.items():
            total = add(total, _build(0, {_product(x, y): cx * cy}))
        total = add(total, _build(0, {x: cx * cb}) if cb else 0)
    for y, cy in tb.items():
        total = add(total, _build(0, {y: cy * ca}) if ca else 0)
    return add(total, ca * cb)


def _product(x: Node, y: Node) -> Node:
    factors = sorted([*_factors(x), *_factors(y)], key=_order)
    result = factors[0]
    for factor in factors[1:]:
        result = Node(ops.MUL, None, (result, factor))
    return result


def _factors(atom: Node) -> list[Node]:
    if atom.op is ops.MUL:
        return _factors(atom.src[0]) + _factors(atom.src[1])
    return [atom]


def _split(value: Integer, divisor: int) -> tuple[Integer, int, dict[Node, int]]:
    """value = divisor * whole + rest, where rest holds what is not a plain multiple,
    its constant in 0 ... divisor-1.
    """
    constant, terms = linear(value)
    whole = {atom: c // divisor for atom, c in terms.items() if c % divisor == 0}
    rest = {atom: c for atom, c in terms.items() if c % divisor}
    return _build(constant // divisor, whole), constant % divisor, rest


def floor_divide(a: Integer, b: Integer) -> Integer:
    """floor(a / b); b is positive."""
    if isinstance(b, Node):
        return _divide_symbolic(a, b)[0]
    if b <= 0:
        raise ValueError(f"floor_divide: the divisor is {b}, not positive")
    if not isinstance(a, Node):
        return a // b
    if b == 1:
        return a
    whole, constant, rest = _split(a, b)
    low, high = _range(constant, rest)
    if low // b == high // b:
        return add(whole, low // b)
    common = math.gcd(b, *rest.values())
    if common > 1:                                          # floor((g*x + c) / (g*d)) = floor((x + c//g) / d)
        inner = _build(constant // common, {atom: c // common for atom, c in rest.items()})
        return add(whole, floor_divide(inner, b // common))
    if not constant and len(rest) == 1:
        (atom, coefficient), = rest.items()
        if coefficient == 1 and atom.op is ops.IDIV and atom.src[1].op is ops.CONST:
            return add(whole, floor_divide(atom.src[0], atom.src[1].arg * b))
    apart = _apart(constant, rest, b)
    if apart is not None:
        return add(whole, floor_divide(apart[0], b))
    larger = {atom: c // b for atom, c in rest.items() if not -b < c < b}
    if larger:                                              # floor((q*b + r) * x / b) = q*x + floor(r*x / b)
        smaller = {atom: c % b if atom in larger else c for atom, c in rest.items()}
        return add(add(whole, _build(0, larger)), floor_divide(_build(constant, smaller), b))
    return add(whole, Node(ops.IDIV, None, (_build(constant, rest), const(b, dtypes.index))))


def _apart(constant: int, rest: dict[Node, int], divisor: int) -> tuple[Integer, Integer] | None:
    """(g*x, r) of g*x + r where g divides the divisor and r, all small terms together, stays in 0 ... g-1;
    then floor((g*x + r) / d) = floor(g*x / d) and (g*x + r) % d = g*x % d + r. None if there is no such g.
    """
    for g in sorted({math.gcd(c, divisor) for c in rest.values()} - {1}, reverse=True):
        large = {atom: c for atom, c in rest.items() if c % g == 0}
        small = {atom: c for atom, c in rest.items() if c % g}
        low, high = _range(constant % g, small)
        if small and 0 <= low and high < g:
            return _build(constant - constant % g, large), _build(constant % g, small)
    return None


def modulo(a: Integer, b: Integer) -> Integer:
    """a - b * floor(a / b); b is positive."""
    if isinstance(b, Node):
        return _divide_symbolic(a, b)[1]
    if b <= 0:
        raise ValueError(f"modulo: the divisor is {b}, not positive")
    if not isinstance(a, Node):
        return a % b
    if b == 1:
        return 0
    _, constant, rest = _split(a, b)
    low, high = _range(constant, rest)
    if low // b == high // b:
        return _build(constant - low // b * b, rest)
    common = math.gcd(b, *rest.values())
    if common > 1:                                          # (g*x + c) % (g*d) = g * ((x + c//g) % d) + c%g
        inner = _build(constant // common, {atom: c // common for atom, c in rest.items()})
        return add(multiply(modulo(inner, b // common), common), constant % common)
    if not constant and len(rest) == 1:
        (atom, coefficient), = rest.items()
        nested = atom.op is ops.MOD and atom.src[1].op is ops.CONST
        if coefficient == 1 and nested and atom.src[1].arg % b == 0:
            return modulo(atom.src[0], b)
    apart = _apart(constant, rest, b)
    if apart is not None:
        return add(modulo(apart[0], b), apart[1])
    reduced = {atom: c % b for atom, c in rest.items()}
    low, high = _range(constant, reduced)
    if low // b == high // b:
        return _build(constant - low // b * b, reduced)
    return Node(ops.MOD, None, (_build(constant, reduced), const(b, dtypes.index)))


def _divide_symbolic(a: Integer, b: Node) -> tuple[Integer, Integer]:
    """(quotient, remainder) by a symbolic divisor that is positive: multiples of it are split off."""
    if not linear(b)[1]:
        return floor_divide(a, linear(b)[0]), modulo(a, linear(b)[0])
    whole: Integer = 0
    rest = a
    if len(linear(b)[1]) == 1 and not linear(b)[0]:
        ((atom, scale),) = linear(b)[1].items()
        for term, coefficient in linear(a)[1].items():
            factors = _factors(term)
            if atom in factors and coefficient % scale == 0:
                factors.remove(atom)
                piece: Integer = coefficient // scale
                for factor in factors:
                    piece = multiply(piece, factor)
                whole = add(whole, piece)
                rest = subtract(rest, _build(0, {term: coefficient}))
    if equal(rest, 0):
        return whole, 0
    if bounds(rest)[0] >= 0 and less(rest, b) is True:
        return whole, rest
    if not isinstance(rest, Node):
        rest = const(rest, dtypes.index)
    return (add(whole, Node(ops.IDIV, None, (rest, b))), Node(ops.MOD, None, (rest, b)))


# -- bounds --------------------------------------------------------------------------------------------------
def _range(constant: int, terms: dict[Node, int]) -> tuple[int, int]:
    low = high = constant
    for atom, coefficient in terms.items():
        a, b = bounds(atom)
        low += min(a * coefficient, b * coefficient)
        high += max(a * coefficient, b * coefficient)
    return low, high


def bounds(value: Integer) -> tuple[int, int]:
    """(lowest, highest) value it can take, both inclusive."""
    if not isinstance(value, Node):
        return value, value
    try:
        return value._bounds
    except AttributeError:
        pass
    result = _bounds_of(value)
    _set(value, "_bounds", result)
    return result


def _bounds_of(node: Node) -> tuple[int, int]:
    op = node.op
    if op is ops.CONST:
        return node.arg, node.arg
    if op is ops.VARIABLE:
        return node.arg[1], node.arg[2]
    if op is ops.BIND:
        return node.src[0].arg[1], node.src[0].arg[2]
    if op in COUNTERS:
        return 0, max(bounds(node.src[0])[1] - 1, 0)
    if op is ops.LANES:
        return 0, node.arg - 1
    if op is ops.ADD or (op is ops.MUL and node.src[1].op is ops.CONST):
        return _range(*linear(node))
    if op in (ops.MUL, ops.IDIV, ops.MOD, ops.MAX, ops.MIN, ops.WHERE) and node.dtype is dtypes.index:
        return _bounds_of_operands(op, *(bounds(s) for s in node.src[-2:]))
    if op is ops.CAST and node.dtype is dtypes.index and node.src[0].dtype.kind in "iubx":
        inner = node.src[0]
        if inner.op is ops.MOD and inner.src[1].op is ops.CONST and inner.src[1].arg > 0:
            return 0, inner.src[1].arg - 1
        return int(inner.dtype.min), int(inner.dtype.max)
    return dtypes.index.min, dtypes.index.max


def _bounds_of_operands(op, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    if op is ops.MUL:
        corners = [x * y for x in a for y in b]
        return min(corners), max(corners)
    if op is ops.IDIV:
        corners = [x // y for x in a for y in (max(b[0], 1), max(b[1], 1))]
        return min(corners), max(corners)
    if op is ops.MOD:
        return (0, min(a[1], b[1] - 1)) if a[0] >= 0 else (0, b[1] - 1)
    if op is ops.MAX:
        return max(a[0], b[0]), max(a[1], b[1])
    if op is ops.MIN:
        return min(a[0], b[0]), min(a[1], b[1])
    return min(a[0], b[0]), max(a[1], b[1])  # WHERE: either of the two


def fits_32_bits(value: Integer) -> bool:
    """Whether 32-bit signed arithmetic can hold the value."""
    low, high = bounds(value)
    return -(2**31) <= low and high < 2**31


# -- comparisons ---------------------------------------------------------------------------------------------
def equal(a: Integer, b: Integer) -> bool:
    """Whether the two are the same integer whatever the variables; a BIND stands for its variable."""
    if a is b:
        return True
    difference = subtract(unbound(a), unbound(b))
    return not isinstance(difference, Node) and difference == 0


def less(a: Integer, b: Integer) -> bool | Node:
    """a < b: True or False where it is certain, otherwise a bool node."""
    difference = subtract(a, b)
    low, high = bounds(difference)
    if high < 0 or _certainly_negative(difference):
        return True
    if low >= 0:
        return False
    constant, terms = linear(difference)  # a < b as (the terms) < (minus the constant)
    positive = {atom: c for atom, c in terms.items() if c > 0}
    negative = {atom: -c for atom, c in terms.items() if c < 0}
    left, right = (_build(0, positive), _build(-constant, negative))
    return Node(ops.LT, None, (as_node(left), as_node(right)))


def _certainly_negative(difference: Integer) -> bool:
    """Put the largest, symbolic, value for every RANGE of symbolic size that counts up, and look again."""
    for _ in range(4):
        constant, terms = linear(difference)
        symbolic = [
            atom for atom, c in terms.items() if atom.op is ops.RANGE and c > 0 and linear(atom.src[0])[1]
        ]
        if not symbolic:
            return False
        for atom in symbolic:
            difference = add(difference, multiply(subtract(subtract(atom.src[0], 1), atom), terms[atom]))
        if bounds(difference)[1] < 0:
            return True
    return False


def maximum(a: Integer, b: Integer) -> Integer:
    """The larger of two integers."""
    if less(a, b) is True:
        return b
    if less(b, a) is True or equal(a, b):
        return a
    return Node(ops.MAX, None, (as_node(a), as_node(b)))


def minimum(a: Integer, b: Integer) -> Integer:
    """The smaller of two integers."""
    if less(a, b) is True:
        return a
    if less(b, a) is True or equal(a, b):
        return b
    return Node(ops.MIN, None, (as_node(a), as_node(b)))


def prod(sizes: Iterable[Integer]) -> Integer:
    """The product of sizes, 1 of none."""
    result: Integer = 1
    for size in sizes:
        result = multiply(result, size)
    return result


# -- leaving the symbolic world ------------------------------------------------------------------------------
def substitute(value: Integer, replacements: dict[Node, Integer]) -> Integer:
    """The integer with nodes replaced, simplified again on the way up."""
    if not isinstance(value, Node):
        return value
    done: dict[Node, Integer] = dict(replacements)
    for node in toposort(value):
        if node not in done:
            done[node] = _rebuild(node, [done[s] for s in node.src]) if node.src else node
    return done[value]


def _rebuild(node: Node, src: Sequence[Integer]) -> Integer:
    if node.op in COUNTERS or node.op is ops.BIND or node.dtype is not dtypes.index:
        return node
    if all(a is b for a, b in zip(src, node.src, strict=True)):
        return node
    if node.op in ARITHMETIC:
        return ARITHMETIC[node.op](*src)
    return Node(node.op, node.dtype, tuple(map(as_node, src)), node.arg)


def unbound(value: Integer) -> Integer:
    """The integer with every BIND replaced by its VARIABLE."""
    if not isinstance(value, Node):
        return value
    binds = {node: node.src[0] for node in toposort(value) if node.op is ops.BIND}
    return substitute(value, binds) if binds else value


def bindings(value: Integer) -> dict[Node, int]:
    """{VARIABLE: its value} of the BINDs inside; ValueError when one variable has two values."""
    found: dict[Node, int] = {}
    for node in toposort(value) if isinstance(value, Node) else ():
        if node.op is ops.BIND and found.setdefault(node.src[0], node.arg) != node.arg:
            raise ValueError(
                f"Variable {node.src[0].arg[0]} is bound to {found[node.src[0]]} and to {node.arg} at once"
            )
    return found


def evaluate(value: Integer, values: dict[Node, int] | None = None) -> int:
    """The number, given {VARIABLE: value}; BINDs bring their own values."""
    if not isinstance(value, Node):
        return value
    known = {node: node.arg for node in toposort(value) if node.op is ops.BIND}
    result = substitute(value, known | (values or {}))
    if isinstance(result, Node):
        names = sorted(node.arg[0] for node in toposort(result) if node.op is ops.VARIABLE)
        raise ValueError(
            f"the size {expression(value)} depends on {', '.join(names)}, which is not bound to a value"
        )
    return result


def expression(value: Integer, names: dict[Node, str] | None = None) -> str:
    """The integer as a Python expression. names: what to call nodes; variables have their own names."""
    if not isinstance(value, Node):
        return str(value)
    if names and value in names:
        return names[value]
    if value.op is ops.CONST:
        return str(value.arg)
    if value.op is ops.VARIABLE:
        return value.arg[0]
    if value.op is ops.BIND:
        return f"{value.src[0].arg[0]}={value.arg}"
    inner = [expression(s, names) for s in value.src]
    if value.op in _PYTHON_OPERATOR:
        return f"({inner[0]} {_PYTHON_OPERATOR[value.op]} {inner[1]})"
    return f"{value.op.name.lower()}({', '.join(inner)})"


def compile_function(values: Sequence[Integer], variables: Sequence[Node]) -> Callable[..., tuple[int, ...]]:
    """A plain Python function of the variables' values that returns all the integers as a tuple."""
    names = {variable: f"v{number}" for number, variable in enumerate(variables)}
    body = "".join(f"{expression(value, names)}, " for value in values)
    return eval(f"lambda {', '.join(names.values())}: ({body})", {"max": max, "min": min})


ARITHMETIC = {
    ops.ADD: add,
    ops.SUB: subtract,
    ops.MUL: multiply,
    ops.IDIV: floor_divide,
    ops.MOD: modulo,
    ops.MAX: maximum,
    ops.MIN: minimum,
}

Node.__add__ = Node.__radd__ = add
Node.__sub__ = subtract
Node.__rsub__ = lambda self, other: subtract(other, self)
Node.__mul__ = Node.__rmul__ = multiply
Node.__floordiv__ = floor_divide
Node.__mod__ = modulo
Node.__neg__ = lambda self: multiply(self, -1)
