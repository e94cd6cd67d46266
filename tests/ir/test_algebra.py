"""Simplification never changes a value: every rule's two sides are evaluated, in every type, on edge cases.
"""
import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.numpy_alu import HELD, PATTERN, decode, encode, evaluate, leaf, same
from tiny.ir import ops
from tiny.ir.algebra import algebra, embeds
from tiny.ir.constants import FOLDABLE
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node, const, toposort
from tiny.ir.patterns import Apply, Literal, Pattern, Rule, Variable
from tiny.ir.rewrite import rewrite
from tiny.ir.rules import compile_rules

TYPES = (*dtypes.all, dtypes.index)
FLOATS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -4.0, 3.0, 0.1, 1e-40, 448.0, 65504.0, 3e38, math.inf, -math.inf,
          math.nan)
WHOLE = (0, 1, -1, 2, 3, 7, 8, 31, 63, 127, 128, 255, -128, -5, 100, "min", "max")


def numbers_of(dtype):
    """Edge cases as Python values in canonical form."""
    if dtype.is_float:
        return [n.arg for n in dict.fromkeys(const(v, dtype) for v in FLOATS)]
    if dtype.kind == "b":
        return [False, True]
    whole = WHOLE if dtype is not dtypes.index else WHOLE[:-2]               # sizes never come near 2**63
    values = [getattr(dtype, v) if isinstance(v, str) else v for v in whole]
    return [n.arg for n in dict.fromkeys(const(v, dtype) for v in values)]


def array_of(dtype, seed):
    """Edge cases and random bits in held form, in an order that depends on the seed."""
    generator = np.random.default_rng(seed)
    edges = np.array(numbers_of(dtype), np.float64 if dtype in PATTERN else HELD[dtype])
    edges = encode(edges, dtype) if dtype in PATTERN else edges
    bits = generator.integers(0, 1 << 63, 40, dtype=np.uint64) * np.uint64(2)
    if dtype is dtypes.bool:
        return generator.integers(0, 2, 100).astype(bool)
    if dtype is dtypes.index:
        return generator.integers(-1000, 1 << 20, 100)
    return generator.choice(np.concatenate([edges, bits.view(np.uint8).view(HELD[dtype])[:200]]), 100)


# -- a rule's left side in every type ---------------------------------------------------------------
class Typing:
    """Which parts of a pattern must have one type: a union of the parts, each class bool or any type."""

    def __init__(self, pattern: Pattern):
        self.parent, self.boolean = {}, set()
        self.visit(pattern)

    def find(self, key):
        while self.parent.setdefault(key, key) != key:
            key = self.parent[key]
        return key

    def unite(self, keys):
        for key in keys[1:]:
            self.parent[self.find(key)] = self.find(keys[0])

    def key(self, pattern):
        return pattern.name if isinstance(pattern, Variable) else id(pattern)

    def visit(self, pattern):
        """The class of a pattern's type, after those of its operands."""
        key = self.key(pattern)
        self.find(key)
        if isinstance(pattern, Literal) and isinstance(pattern.value, bool):
            self.boolean.add(key)
        if isinstance(pattern, Apply):
            keys = [self.visit(s) for s in pattern.src]
            row = pattern.rows[0]
            if row in (ops.LT, ops.EQ, ops.NE):
                self.unite(keys)
                self.boolean.add(key)
            elif row is ops.WHERE:
                self.boolean.add(keys[0])
                self.unite([key, *keys[1:]])
            elif row not in (ops.CAST, ops.BITCAST):
                self.unite([key, *keys])
        return key

    def assignments(self):
        """Every choice of types, as a function from a pattern to its type."""
        classes = list(dict.fromkeys(self.find(key) for key in list(self.parent)))
        boolean = {self.find(key) for key in self.boolean}
        for choice in itertools.product(*[(dtypes.bool,) if c in boolean else TYPES for c in classes]):
            table = dict(zip(classes, choice, strict=True))
            yield lambda pattern, table=table: table[self.find(self.key(pattern))]


def constants_in(pattern: Pattern) -> list[Variable]:
    if isinstance(pattern, Variable):
        return [pattern] if pattern.constant else []
    found = [c for s in getattr(pattern, "src", ()) for c in constants_in(s)]
    return list({c.name: c for c in found}.values())


def low_bits(dtype):
    """A value whose low four bits alone may be set, for a rule that looks into its operand."""
    return Node(ops.AND, None, (leaf("x", dtype), const(15, dtype)))


EXAMPLES = {"and_covering_mask": low_bits}


def build(pattern: Pattern, row, type_of, bound: dict[str, Node]) -> Node:
    """The left side as a node; TypeError or ValueError where these types cannot be combined."""
    if isinstance(pattern, Literal):
        return const(pattern.value, type_of(pattern))
    if isinstance(pattern, Variable):
        return bound.setdefault(pattern.name, leaf(pattern.name, type_of(pattern)))
    operands = tuple(build(s, s.rows[0] if isinstance(s, Apply) else None, type_of,
                           bound) for s in pattern.src)
    if row is ops.BITCAST and operands[0].dtype.bits != type_of(pattern).bits:
        raise TypeError("BITCAST between sizes")
    return Node(row, type_of(pattern), operands)


def instances(r: Rule):
    """(left side, right side) in every type and with every choice of constants that the rule accepts."""
    typing, constants = Typing(r.left), constants_in(r.left)
    for row in r.left.rows:
        function = compile_rules(row, (r,))
        for type_of in typing.assignments():
            choices = list(itertools.product(*[numbers_of(type_of(c)) for c in constants]))
            for values in choices if len(choices) < 80 else random.Random(0).sample(choices, 80):
                bound = {c.name: const(v, type_of(c)) for c, v in zip(constants, values, strict=True)}
                try:
                    if r.name in EXAMPLES:
                        bound["x"] = EXAMPLES[r.name](type_of(r.left))
                    left = build(r.left, row, type_of, bound)
                except (TypeError, ValueError):
                    break
                right = function(left)
                if right is not None:
                    yield left, right, [n for n in toposort(left) if n.op is ops.LOAD]


@pytest.mark.parametrize("r", [r for r in algebra if not r.name.startswith("fold_")], ids=lambda r: r.name)
def test_both_sides_of_a_rule_are_equal(r):
    applied = 0
    for left, right, variables in instances(r):
        leaves = {x: array_of(x.dtype, seed) for seed, x in enumerate(variables)}
        assert right.dtype is left.dtype and right is not left
        wanted, got = evaluate(left, leaves), evaluate(right, leaves)
        equal = same(*np.broadcast_arrays(wanted, got), left.dtype)
        if not np.all(equal):
            at = int(np.argmin(np.broadcast_to(equal, (100,))))
            inputs = {x: decode(v[at], x.dtype) for x, v in leaves.items()}
            raise AssertionError(f"{r.name}: {describe(left)} is not {describe(right)} for {inputs}")
        applied += 1
    assert applied, "no type or constant was found for which the rule applies"


def describe(node: Node) -> str:
    if node.op is ops.LOAD:
        return node.src[0].arg
    if not node.src:
        return repr(node)
    return f"{node.op.name}:{node.dtype.name}({', '.join(map(describe, node.src))})"


# -- folding ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("row", FOLDABLE, ids=lambda row: row.name)
def test_folding_equals_computing(row):
    """Constants are folded as a device computes: in the type's own precision, wrapping, keeping -0.0 and NaN.
    """
    for dtype in TYPES:
        for target in TYPES if row in (ops.CAST, ops.BITCAST) else (None,):
            if row is ops.BITCAST and dtype.bits != target.bits:
                continue
            for values in itertools.islice(operand_values(row, dtype), 300):
                try:
                    node = Node(row, target, tuple(values))
                except TypeError:
                    break
                folded = rewrite(node, algebra)
                if folded.op is ops.CONST:
                    assert same(evaluate(node, {}), evaluate(folded, {}), node.dtype).all(), describe(node)
                else:
                    assert row is ops.BITCAST or (row is ops.FMA and dtype.is_float), describe(node)


def operand_values(row, dtype):
    numbers = [const(v, dtype) for v in numbers_of(dtype)]
    others = np.random.default_rng(1).permutation(array_of(dtype, 9))
    numbers += [const(v.item(), dtype) for v in decode(others, dtype)[:20]]
    operands = [numbers] * row.operands
    if row is ops.WHERE:
        operands[0] = [const(False, dtypes.bool), const(True, dtypes.bool)]
    return itertools.product(*operands)


@given(st.integers(-2**63, 2**64 - 1), st.sampled_from(dtypes.floats))
def test_large_integers_round_once(number, target):
    dtype = dtypes.uint64 if number >= 2**63 else dtypes.int64
    node = Node(ops.CAST, target, (const(number, dtype),))
    assert same(evaluate(rewrite(node, algebra), {}), evaluate(node, {}), target).all()


# -- whole expressions ------------------------------------------------------------------------------
UNARY = (ops.NEG, ops.TRUNC, ops.SQRT, ops.CAST, ops.BITCAST)
BINARY = (ops.ADD, ops.SUB, ops.MUL, ops.FDIV, ops.IDIV, ops.MOD, ops.MAX, ops.MIN, ops.AND, ops.OR, ops.XOR,
          ops.SHL,
          ops.SHR, ops.LT, ops.EQ, ops.NE)


@st.composite
def expressions(draw):
    """A random expression of a few leaves and constants, and its leaves."""
    main = draw(st.sampled_from(dtypes.all))
    leaves = [leaf(name, dtype) for name, dtype in (("x", main), ("y", main), ("c", dtypes.bool))]
    nodes = list(leaves) + [const(draw(st.sampled_from(numbers_of(main))), main) for _ in range(2)]
    for _ in range(draw(st.integers(1, 14))):
        row = draw(st.sampled_from((*UNARY, *BINARY, ops.WHERE, ops.WHERE)))
        first = draw(st.sampled_from(nodes))
        alike = [n for n in nodes if n.dtype is first.dtype]
        sizes = (first.dtype.bits,) if row is ops.BITCAST else (8, 16, 32, 64)
        target = draw(st.sampled_from([t for t in dtypes.all if t.bits in sizes]))
        operands = (first,) if row in UNARY else (first, draw(st.sampled_from(alike)))
        if row is ops.WHERE:
            operands = (draw(st.sampled_from([n for n in nodes if n.dtype is dtypes.bool])), *operands)
        try:
            nodes.append(Node(row, target, operands))
        except TypeError:
            continue
    return nodes[-1], leaves


@given(expressions())
@settings(max_examples=250, deadline=None)
def test_a_simplified_expression_has_the_same_value(expression):
    root, leaves = expression
    simple = rewrite(root, algebra)
    arrays = {x: array_of(x.dtype, seed) for seed, x in enumerate(leaves)}
    wanted, got = evaluate(root, arrays), evaluate(simple, arrays)
    assert np.all(same(*np.broadcast_arrays(wanted, got), root.dtype)), (describe(root), describe(simple))
    assert rewrite(simple, algebra) is simple


# -- what must and what must not be done ------------------------------------------------------------
def test_rounding_to_a_shorter_float_and_back_stays():
    x = leaf("x", dtypes.float32)
    for short in (dtypes.float16, dtypes.bfloat16, dtypes.fp8e4m3):
        there_and_back = Node(ops.CAST, dtypes.float32, (Node(ops.CAST, short, (x,)),))
        assert rewrite(there_and_back, algebra) is there_and_back
    wider = Node(ops.CAST, dtypes.float32, (Node(ops.CAST, dtypes.float64, (x,)),))
    assert rewrite(wider, algebra) is x


@pytest.mark.parametrize("source", TYPES, ids=lambda d: d.name)
def test_embedding_of_types_is_exact(source):
    x = leaf("x", source)
    values = array_of(source, 3)
    for middle in TYPES:
        if embeds(source, middle):
            back = Node(ops.CAST, source, (Node(ops.CAST, middle, (x,)),))
            assert same(evaluate(back, {x: values}), values, source).all(), middle


def test_adding_float_zero_stays_and_minus_zero_goes():
    x = leaf("x", dtypes.float32)
    plus = Node(ops.ADD, None, (x, const(0.0, dtypes.float32)))
    minus = Node(ops.ADD, None, (const(-0.0, dtypes.float32), x))
    assert rewrite(plus, algebra) is plus
    assert rewrite(minus, algebra) is x


def test_lanes_are_not_lost():
    x = leaf("x", dtypes.int32, lanes=4)
    product = Node(ops.MUL, None, (x, const(0, dtypes.int32)))
    assert rewrite(product, algebra).shape == (4,)


def test_constants_move_right_and_combine():
    x = leaf("x", dtypes.int32)
    nested = x
    for value in (3, 4, 5):
        nested = Node(ops.ADD, None, (const(value, dtypes.int32), nested))
    assert rewrite(nested, algebra) is Node(ops.ADD, None, (x, const(12, dtypes.int32)))
