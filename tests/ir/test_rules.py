"""The language of rules: what patterns match, how sets compile, and what a person can read of it."""
import pytest

from tests.numpy_alu import leaf
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node, const
from tiny.ir.patterns import (
    apply,
    cast,
    constant,
    fold,
    holds,
    is_float,
    is_integer,
    maximum,
    rule,
    value,
    var,
    where,
)
from tiny.ir.rules import Rules

x, y, a, b = var("x"), var("y"), constant("a"), constant("b")
X, Y, C = leaf("X", dtypes.int32), leaf("Y", dtypes.int32), leaf("C", dtypes.bool)


def number(value, dtype=dtypes.int32):
    return const(value, dtype)


def add(*operands):
    return Node(ops.ADD, None, operands)


def test_a_rule_gives_its_right_side_or_none():
    rules = Rules(add_zero=rule(x + 0, x, when=is_integer(x)))
    function = rules.functions[ops.ADD]
    assert function(add(X, number(0))) is X
    assert function(add(X, number(1))) is None
    assert rules.functions[ops.MUL] is None
    z = leaf("Z", dtypes.float32)
    assert function(add(z, number(0.0, dtypes.float32))) is None


def test_literals_have_the_type_of_their_neighbours():
    rules = Rules(twice=rule(x + x, x * 2))
    assert rules.apply("twice", add(X, X)) is Node(ops.MUL, None, (X, number(2)))
    byte = leaf("B", dtypes.uint8)
    assert rules.apply("twice", add(byte, byte)).src[1] is number(2, dtypes.uint8)


def test_zero_is_not_minus_zero_and_true_is_not_one():
    rules = Rules(plain=rule(x + 0, x), signed=rule(x + -0.0, x), true=rule(x & True, x))
    z = leaf("Z", dtypes.float32)
    plus, minus = (add(z, number(v, dtypes.float32)) for v in (0.0, -0.0))
    assert rules.apply("plain", plus) is z and rules.apply("plain", minus) is None
    assert rules.apply("signed", minus) is z and rules.apply("signed", plus) is None
    assert rules.apply("true", Node(ops.AND, None, (X, number(1)))) is None
    assert rules.apply("true", Node(ops.AND, None, (C, number(True, dtypes.bool)))) is C


def test_a_name_that_is_used_twice_is_one_node():
    rules = Rules(itself=rule(x - x, 0))
    assert rules.apply("itself", Node(ops.SUB, None, (X, X))) is number(0)
    assert rules.apply("itself", Node(ops.SUB, None, (X, Y))) is None


def test_commutative_operands_are_found_in_both_orders_and_others_not():
    rules = Rules(undo=rule((x - y) + y, x), absorb=rule(x - (x - y), y))
    difference = Node(ops.SUB, None, (X, Y))
    assert rules.apply("undo", add(difference, Y)) is X
    assert rules.apply("undo", add(Y, difference)) is X
    assert rules.apply("absorb", Node(ops.SUB, None, (X, difference))) is Y
    assert rules.apply("absorb", Node(ops.SUB, None, (difference, X))) is None


def test_constants_are_expected_on_the_right():
    rules = Rules(add_zero=rule(x + 0, x))
    assert rules.apply("add_zero", add(number(0), X)) is None


def test_fold_computes_as_a_device_would():
    rules = Rules(chain=rule((x + a) + b, x + fold(a + b)))
    byte = leaf("B", dtypes.uint8)
    nested = add(add(byte, number(200, dtypes.uint8)), number(100, dtypes.uint8))
    assert rules.apply("chain", nested) is add(byte, number(44, dtypes.uint8))


def test_guards_compare_and_combine():
    rules = Rules(some=rule(x * a, x, when=((value(a) > 3) & ~(value(a) >= 6)) | value(a).equals(9)))
    found = [v for v in range(12) if rules.apply("some", Node(ops.MUL, None, (X, number(v)))) is X]
    assert found == [4, 5, 9]


def test_guards_may_be_functions_of_nodes():
    def is_first(node, other):
        return node is X and other is number(7)
    rules = Rules(some=rule(x * a, x, when=holds(is_first, x, a)))
    assert rules.apply("some", Node(ops.MUL, None, (X, number(7)))) is X
    assert rules.apply("some", Node(ops.MUL, None, (Y, number(7)))) is None


def test_named_parts_can_be_spoken_of():
    rules = Rules(keep=rule(cast(cast(x).named("inner")), var("inner"), when=is_float(var("inner"))))
    inner = Node(ops.CAST, dtypes.float32, (X,))
    assert rules.apply("keep", Node(ops.CAST, dtypes.int8, (inner,))) is inner


def test_the_right_side_may_be_a_function():
    rules = Rules()

    @rules.rule(where(x, a, b))
    def swap(node, x, b):
        return None if b.arg else Node(ops.WHERE, None, (x, b, node.src[1]))
    chosen = Node(ops.WHERE, None, (C, number(5), number(0)))
    assert rules.functions[ops.WHERE](chosen) is Node(ops.WHERE, None, (C, number(0), number(5)))
    assert rules.functions[ops.WHERE](Node(ops.WHERE, None, (C, number(5), number(6)))) is None


def test_several_operations_may_stand_at_the_root():
    rules = Rules()

    @rules.rule(apply((ops.ADD, ops.MUL), x, a))
    def strip(x):
        return x
    for row in (ops.ADD, ops.MUL):
        assert rules.functions[row](Node(row, None, (X, number(3)))) is X


def test_rules_are_tried_in_order_and_sets_can_be_joined():
    first, second = Rules(one=rule(x + 1, x)), Rules(two=rule(x + a, 2), three=rule(maximum(x, x), x))
    both, other = first + second, second + first
    assert both.explain(add(X, number(1))) == ("one", X)
    assert other.explain(add(X, number(1))) == ("two", number(2))
    assert [r.name for r in both] == ["one", "two", "three"]
    with pytest.raises(ValueError, match="already a rule 'one'"):
        first + first


def test_the_compiled_function_can_be_read():
    rules = Rules(add_zero=rule(x + 0, x, when=is_integer(x)), chain=rule((a - x) + b, b))
    assert rules.source(ops.ADD) == """\
def rewrite_ADD(node):
    n0, n1, = node.src
    op0 = n0.op
    op1 = n1.op
    if op1 is CONST:
        if n1.arg == 0 and (not n1.dtype.is_float or copysign(1.0, n1.arg) > 0):
            if (n0.dtype.kind in 'iux'):
                return n0  # add_zero
        if op0 is SUB:
            n00, n01, = n0.src
            if n00.op is CONST:
                return n1  # chain
    return None
"""
    assert rules.functions[ops.ADD].__doc__ == rules.source(ops.ADD)


def test_division_that_rounds_like_c_is_another_operation():
    rules = Rules(one=rule(x // 1, x))
    assert rules.apply("one", Node(ops.IDIV, None, (X, number(1)))) is X
    assert rules.apply("one", Node(ops.IDIV, None, (X, number(1)), True)) is None
