"""Symbolic integers equal plain Python arithmetic at every point and stay within their bounds."""
import itertools
import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.integer import (
    add,
    bounds,
    compile_function,
    equal,
    evaluate,
    expression,
    floor_divide,
    less,
    modulo,
    multiply,
    prod,
    subtract,
)
from tiny.ir.node import Node, const, variable

SIZES = (5, 8, 3)


def axis(number: int, size: int) -> Node:
    return Node(ops.RANGE, None, (const(size, dtypes.index),), number)


AXES = [axis(number, size) for number, size in enumerate(SIZES)]
LEAVES = st.one_of(st.integers(-8, 20).map(lambda c: (c, lambda *x: c)),
                   st.integers(0, 2).map(lambda n: (AXES[n], lambda *x: x[n])))


def combined(children):
    """Sums and differences of two expressions; products, quotients and remainders with a constant."""
    def sums(pair, difference):
        (a, f), (b, g) = pair
        symbolic, plain = (subtract, operator.sub) if difference else (add, operator.add)
        return symbolic(a, b), lambda *x: plain(f(*x), g(*x))

    def with_constant(pair, number, kind):
        a, f = pair
        symbolic, plain = {"*": (multiply, operator.mul), "/": (floor_divide, operator.floordiv),
                           "%": (modulo, operator.mod)}[kind]
        return symbolic(a, number), lambda *x: plain(f(*x), number)
    return st.one_of(st.builds(sums, st.tuples(children, children), st.booleans()),
                     st.builds(with_constant, children, st.integers(1, 16), st.sampled_from("*/%")))


@settings(max_examples=400, deadline=None)
@given(st.recursive(LEAVES, combined, max_leaves=8))
def test_simplified_expressions_keep_their_value_and_bounds(case):
    symbolic, plain = case
    function = compile_function([symbolic], AXES)
    low, high = bounds(symbolic)
    for point in itertools.product(*map(range, SIZES)):
        value = plain(*point)
        assert function(*point) == (value,), expression(symbolic)
        assert low <= value <= high


def test_what_a_quotient_and_a_remainder_take_apart_is_put_together_again():
    r = axis(0, 64)
    assert r // 4 * 4 + r % 4 is r
    assert (r * 32 + axis(1, 32)) // 32 is r
    assert (r * 32 + axis(1, 32)) % 32 is axis(1, 32)


def test_whole_multiples_leave_a_quotient_whose_divisor_does_not_divide_them():
    k = axis(0, 100)
    assert k * 4 // 3 is k + k // 3


def test_symbolic_sizes_split_off():
    n = variable("n", 1, 100)
    inner = Node(ops.RANGE, None, (n,), 1)
    flat = axis(0, 7) * n + inner
    assert flat // n is axis(0, 7)
    assert flat % n is inner
    assert less(inner, n) is True
    assert equal(prod((n, 3)), n * 3)


def test_a_bound_variable_has_its_value_and_its_bounds():
    n = variable("n", 1, 10)
    assert evaluate(n.bind(4) * 2 + 1) == 9
    with pytest.raises(ValueError, match=r"Variable n: 11 is outside 1 \.\.\. 10"):
        n.bind(11)
    with pytest.raises(ValueError, match="depends on n"):
        evaluate(n + 1)


def test_division_by_what_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="divisor is 0"):
        floor_divide(AXES[0], 0)
    with pytest.raises(ValueError, match="divisor is -2"):
        modulo(AXES[0], -2)
