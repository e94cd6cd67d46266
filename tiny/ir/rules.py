"""Sets of rules, compiled to one plain Python function for each operation at the root.

The text of those functions can be read: `print(algebra.source(ops.ADD))`. Rules are tried in the order they
were given; neighbours that begin with the same tests share them.
"""
import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tiny.ir import ops
from tiny.ir.constants import fold
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node, const
from tiny.ir.ops import Op
from tiny.ir.patterns import Apply, Fold, Guard, Literal, Pattern, Rule, Variable

Rewriter = Callable[[Node], Node | None]


class Rules:
    """Named rules. `rules.functions[op](node)` gives a replacement of the node, or None.

    Keyword arguments are data rules; `@rules.rule(pattern)` adds one whose right side is a Python function.
    Adding two sets makes one that tries the left set's rules first.
    """

    def __init__(self, **rules: Rule):
        self._rules = {name: replace(r, name=name) for name, r in rules.items()}
        self._compiled = _Functions(self)

    def rule(self, left: Apply, when: Guard | None = None) -> Callable[[Callable], Callable]:
        """Decorator: the function gets the nodes its parameters name, and may return None for "no"."""
        def add(function: Callable) -> Callable:
            self._add(Rule(left, function, when, function.__name__))
            return function
        return add

    def _add(self, r: Rule) -> None:
        if r.name in self._rules:
            raise ValueError(f"Rules: there is already a rule {r.name!r}")
        self._rules[r.name] = r
        self._compiled = _Functions(self)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules.values())

    def __add__(self, other: "Rules") -> "Rules":
        both = Rules()
        for r in (*self, *other):
            both._add(r)
        return both

    @property
    def functions(self) -> "_Functions":
        """For each operation the function compiled for it, None if it has no rule: `functions[op]`."""
        return self._compiled

    def source(self, row: Op) -> str:
        """The text of the function for an operation."""
        return generate(row, tuple(self))[0]

    def explain(self, node: Node) -> tuple[str, Node] | None:
        """(name, replacement) of the first rule that applies to the node: slow, for people."""
        for r in self:
            if node.op in r.left.rows:
                result = compile_rules(node.op, (r,))(node)
                if result is not None:
                    return r.name, result
        return None

    def apply(self, name: str, node: Node) -> Node | None:
        """What the rule of that name makes of the node; None if it does not apply."""
        r = self._rules[name]
        return compile_rules(node.op, (r,))(node) if node.op in r.left.rows else None


class _Functions(dict):
    """Compiled functions by operation, each made when first asked for. Threads may compile one twice."""

    def __init__(self, rules: Rules):
        super().__init__()
        self.rules = rules

    def __missing__(self, row: Op) -> Rewriter | None:
        rules = tuple(r for r in self.rules if row in r.left.rows)
        function = self[row] = compile_rules(row, rules) if rules else None
        return function


def compile_rules(row: Op, rules: tuple[Rule, ...]) -> Rewriter:
    """The rules with `row` at their root as one function from a node to its replacement or None.

    Its docstring is its source.
    """
    source, names = generate(row, rules)
    exec(compile(source, f"<rules for {row.name}>", "exec"), names)
    function = names[f"rewrite_{row.name}"]
    function.__doc__ = source
    return function


# -- matching: a rule as a sequence of steps --------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Step:
    """One line of a match: a test whose body is the rest, or a statement. `rule` is set on the last one."""
    text: str
    test: bool
    rule: str = ""


def generate(row: Op, rules: tuple[Rule, ...]) -> tuple[str, dict]:
    """(source text, names it uses) of the function for an operation."""
    names = {"Node": Node, "const": const, "fold": fold, "copysign": math.copysign, "dtypes": dtypes}
    names |= ops.TABLE
    variants: list[list[Step]] = []
    for r in rules:
        if row in r.left.rows:
            for left in orders(r.left):
                steps = _Variant(row, r, left, names).steps
                if all(steps[:-1] != known[:-1] for known in variants):      # else it could never be reached
                    variants.append(steps)
    lines = [f"def rewrite_{row.name}(node):"]
    if row.operands:
        lines.append(f"    {', '.join(f'n{i}' for i in range(row.operands))}, = node.src")
        lines.extend(f"    op{i} = n{i}.op" for i in range(row.operands)
                     if any(f"op{i} " in step.text for steps in variants for step in steps))
    _emit(variants, "    ", lines)
    lines.append("    return None")
    return "\n".join(lines) + "\n", names


def _emit(variants: list[list[Step]], indent: str, lines: list[str]) -> None:
    """Write out sequences of steps; neighbours that begin with the same step share it."""
    i = 0
    while i < len(variants):
        step, last = variants[i][0], i + 1
        while last < len(variants) and variants[last][0] == step and not step.rule:
            last += 1
        comment = f"  # {step.rule}" if step.rule else ""
        lines.append(f"{indent}{'if ' if step.test else ''}{step.text}{':' if step.test else ''}{comment}")
        rest = [v[1:] for v in variants[i:last] if len(v) > 1]
        _emit(rest, indent + "    " if step.test else indent, lines)
        i = last


def orders(pattern: Pattern) -> list[Pattern]:
    """The pattern with operands of commutative operations in every order that a node may have them in."""
    if not isinstance(pattern, Apply):
        return [pattern]
    combined: list[tuple] = [()]
    for s in pattern.src:
        combined = [(*before, one) for before in combined for one in orders(s)]
    result = [replace(pattern, src=src) for src in combined]
    if pattern.rows[0].commutative and len(pattern.src) == 2:
        left, right = pattern.src
        if not _always_right(right) and not (isinstance(left, Variable) and isinstance(right, Variable)):
            result += [replace(pattern, src=(src[1], src[0])) for src in combined]
    return result


def _always_right(pattern: Pattern) -> bool:
    return isinstance(pattern, Literal) or (isinstance(pattern, Variable) and pattern.constant)


class _Variant:
    """The steps that match one rule, in one order of operands, and build its replacement."""

    def __init__(self, row: Op, r: Rule, left: Apply, names: dict):
        self.row, self.names = row, names
        self.steps: list[Step] = []
        self.places: dict[str, str] = {"node": "node"}      # name in the rule -> expression for the node
        if left.name:
            self.places[left.name] = "node"
        self._test_argument(row, "node")
        self._match_operands(left, "")
        if r.when is not None:
            self.names.update(r.when.functions)
            self._test(r.when.text.format(**self.places))
        self._replace(r)

    def _test(self, text: str) -> None:
        self.steps.append(Step(text, test=True))

    def _test_argument(self, row: Op, here: str) -> None:
        if row in (ops.IDIV, ops.MOD):                      # with an argument they round another way
            self._test(f"{here}.arg is None")

    def _match_operands(self, pattern: Apply, place: str) -> None:
        """Tests that are cheap and seldom pass come first:
        operations of all operands, then what is inside them.
        """
        indexed = list(enumerate(pattern.src))
        for i, s in sorted(indexed, key=lambda pair: not _always_right(pair[1])):
            here = f"n{place}{i}"
            op = f"op{i}" if not place else f"{here}.op"
            if isinstance(s, Literal) or (isinstance(s, Variable) and s.constant):
                self._test(f"{op} is CONST")
            elif isinstance(s, Apply):
                tests = " or ".join(f"{op} is {row.name}" for row in s.rows)
                self._test(tests)
        for i, s in indexed:
            self._match(s, f"{place}{i}")

    def _match(self, pattern: Pattern, place: str) -> None:
        here = f"n{place}"
        if isinstance(pattern, Literal):
            self._test(_literal_test(pattern.value, here))
        elif isinstance(pattern, Variable):
            if pattern.name in self.places:
                self._test(f"{here} is {self.places[pattern.name]}")
            self.places.setdefault(pattern.name, here)
        elif isinstance(pattern, Apply):
            if pattern.name:
                self.places[pattern.name] = here
            self._test_argument(pattern.rows[0], here)
            inner = ", ".join(f"{here}{i}" for i in range(len(pattern.src)))
            self.steps.append(Step(f"{inner}, = {here}.src", test=False))
            self._match_operands(pattern, place)
        else:
            raise TypeError(f"{pattern!r} cannot stand on the left of a rule")

    # -- the right side
    def _replace(self, r: Rule) -> None:
        if isinstance(r.right, Pattern):
            text = self._build(r.right, "node.dtype")
            self.steps.append(Step(f"return {text}", test=False, rule=r.name))
            return
        wanted = inspect.signature(r.right).parameters
        function = f"rule_{r.name}"
        self.names[function] = r.right
        call = f"{function}({', '.join(self.places[p] for p in wanted)})"
        self._test(f"(found := {call}) is not None")
        self.steps.append(Step("return found", test=False, rule=r.name))

    def _build(self, pattern: Pattern, dtype: str) -> str:
        """Python text that makes the node; `dtype` is the text for the type a literal here would have."""
        if isinstance(pattern, Literal):
            return f"const({pattern.value!r}, {dtype})"
        if isinstance(pattern, Variable):
            return self.places[pattern.name]
        if isinstance(pattern, Fold):
            return f"const({self._value(pattern.inner, dtype)}, {dtype})"
        row, (first, *rest) = pattern.rows[0], pattern.src
        if row in (ops.CAST, ops.BITCAST):
            return f"Node({row.name}, node.dtype, ({self._build(first, dtype)},), node.arg)"
        inside = self._dtype(pattern.src[1:] if row is ops.WHERE else pattern.src) or dtype
        operands = [self._build(s, inside) for s in rest]
        operands.insert(0, self._build(first, "dtypes.bool" if row is ops.WHERE else inside))
        return f"Node({row.name}, None, ({', '.join(operands)},))"

    def _dtype(self, patterns: tuple[Pattern, ...]) -> str | None:
        """Text for the type that operands of one operation share, from the first that has one of its own."""
        for pattern in patterns:
            if isinstance(pattern, Variable):
                return f"{self.places[pattern.name]}.dtype"
            if isinstance(pattern, Fold):
                found = self._dtype((pattern.inner,))
            elif isinstance(pattern, Apply) and pattern.rows[0] in (ops.LT, ops.EQ, ops.NE):
                return "dtypes.bool"
            else:
                found = self._dtype(pattern.src[-2:]) if isinstance(pattern, Apply) else None
            if found is not None:
                return found
        return None

    def _value(self, pattern: Pattern, dtype: str) -> str:
        """Python text for the value of an expression of constants."""
        if isinstance(pattern, Literal):
            return f"const({pattern.value!r}, {dtype}).arg"
        if isinstance(pattern, Variable):
            return f"{self.places[pattern.name]}.arg"
        values = [self._value(s, dtype) for s in pattern.src]
        inside = self._dtype(pattern.src) or dtype
        return f"fold({pattern.rows[0].name}, {inside}, {', '.join(values)})"


def _literal_test(value: int | float | bool, here: str) -> str:
    """That a constant equals a literal. True and False are those of bool; a plain 0 is the zero without sign.
    """
    if isinstance(value, bool):
        return f"{here}.arg is {value}"
    if value != 0:
        return f"{here}.arg == {value!r}"
    sign = "<" if math.copysign(1.0, value) < 0 else ">"
    return f"{here}.arg == 0 and (not {here}.dtype.is_float or copysign(1.0, {here}.arg) {sign} 0)"
