"""Simplify arithmetic without changing any value, bit for bit:
signed zeros, infinities, NaN and wrapping included.

All NaNs count as one value. Floats do not reassociate. tests/ir/test_algebra.py evaluates both sides of every
rule, in every type the rule admits.
"""
import math

from tiny.ir import ops
from tiny.ir.constants import FOLDABLE, fold_node
from tiny.ir.dtype import DType, dtypes
from tiny.ir.node import Node, const
from tiny.ir.patterns import (
    Apply,
    apply,
    bitcast,
    cast,
    constant,
    fold,
    highest,
    holds,
    is_bool,
    is_float,
    is_integer,
    is_unsigned,
    is_whole,
    lowest,
    maximum,
    minimum,
    rule,
    value,
    var,
    where,
)
from tiny.ir.rules import Rules

x, y, z, c, d = var("x"), var("y"), var("z"), var("c"), var("d")
a, b = constant("a"), constant("b")
_COMMUTATIVE = tuple(row for row in ops.TABLE.values() if row.commutative)


# -- conditions -------------------------------------------------------------------------------------
def is_all_ones(node: Node) -> bool:
    """A constant whose bits are all set: -1, the largest unsigned number, or True."""
    return node.arg == -1 or (node.dtype.kind in "ub" and node.arg == node.dtype.max)


def shifts_add(node: Node, other: Node) -> bool:
    """Two constant counts within the type, whose sum does not wrap."""
    bits = node.dtype.bits
    return 0 <= node.arg < bits and 0 <= other.arg < bits and node.arg + other.arg <= node.dtype.max


def divisors_multiply(node: Node, other: Node) -> bool:
    """Two positive constants whose product does not wrap."""
    return node.arg > 0 and other.arg > 0 and node.arg * other.arg <= node.dtype.max


def divides(node: Node, other: Node) -> bool:
    """Positive constants, the second a divisor of the first."""
    return node.arg > 0 and other.arg > 0 and node.arg % other.arg == 0


def keeps_numbers(node: Node, other: Node) -> bool:
    """The type of `other` holds every number of the type of `node`."""
    return embeds(node.dtype, other.dtype)


def embeds(source: DType, target: DType) -> bool:
    """Every number of `source`, and every NaN and infinity, is one of `target`."""
    if source is target or source.kind == "b":
        return True
    if target.kind == "b":
        return False
    if target.is_float:
        exponent, mantissa = target.exponent_mantissa
        if source.is_float:
            # fp8e4m3 keeps no infinity, but lacks one itself
            return source.exponent_mantissa[0] <= exponent and source.exponent_mantissa[1] <= mantissa and (
                target is not dtypes.fp8e4m3)
        digits = source.bits - (not source.is_unsigned)
        return digits <= mantissa + 1 and digits < 1 << (exponent - 1)
    if source.is_float:
        return False
    return source.bits < target.bits if source.kind == "u" and target.kind != "u" else (
        source.bits <= target.bits and (source.kind == "u" or target.kind != "u"))


def narrows_again(node: Node, other: Node) -> bool:
    """An integer type within the integer type of `other`, so that wrapping twice is wrapping once."""
    return node.dtype.is_integer and other.dtype.is_integer and node.dtype.bits <= other.dtype.bits


def same_type(node: Node, other: Node) -> bool:
    return node.dtype is other.dtype


def width(node: Node, depth: int = 4) -> int:
    """How many low bits of an integer may be set, as far as `depth` operations tell;
    all bits if it may be negative.
    """
    bits = node.dtype.bits if node.dtype.kind != "b" else 1
    if node.op is ops.CONST:
        return node.arg.bit_length() if node.arg >= 0 else bits
    if depth == 0:
        return bits
    if node.op is ops.AND:
        return min(width(s, depth - 1) for s in node.src)
    if node.op is ops.CAST and node.src[0].dtype.kind in "ub":
        return min(width(node.src[0], depth - 1), bits)
    if node.op is ops.SHR and node.dtype.is_unsigned and node.src[1].op is ops.CONST and node.src[1].arg >= 0:
        return max(width(node.src[0], depth - 1) - node.src[1].arg, 0)
    return bits


def mask_covers(node: Node, mask: Node) -> bool:
    """A mask 2**n - 1 that leaves every bit which may be set."""
    return mask.arg > 0 and mask.arg & (mask.arg + 1) == 0 and width(node) <= mask.arg.bit_length() and (
        width(node) < node.dtype.bits)


# -- constants --------------------------------------------------------------------------------------
constants = Rules()


def _folded(*operands: Apply) -> Apply:
    return apply(tuple(row for row in FOLDABLE if row.operands == len(operands)), *operands)


@constants.rule(_folded(a))
def fold_one(node: Node) -> Node | None:
    """An operation on a constant."""
    return fold_node(node)


@constants.rule(_folded(a, b))
def fold_two(node: Node) -> Node | None:
    """An operation on two constants."""
    return fold_node(node)


@constants.rule(apply(ops.FMA, a, b, constant("e")))
def fold_three(node: Node) -> Node | None:
    """Multiply and add of whole constants."""
    return fold_node(node)


@constants.rule(apply(_COMMUTATIVE, a, x))
def constant_right(node: Node, a: Node, x: Node) -> Node | None:
    """Constants stand on the right. Zeros in MAX and MIN of floats stay: of 0.0 and -0.0 the first is taken.
    """
    if x.op is ops.CONST or (node.op in (ops.MAX, ops.MIN) and a.dtype.is_float and a.arg == 0):
        return None
    return Node(node.op, None, (x, a), node.arg)


# -- arithmetic -------------------------------------------------------------------------------------
_ones = holds(is_all_ones, a)
neutral = Rules(
    add_zero=rule(x + 0, x, when=is_whole(x)),              # x + 0.0 turns -0.0 into 0.0
    add_minus_zero=rule(x + -0.0, x, when=is_float(x)),
    sub_zero=rule(x - 0, x),
    mul_one=rule(x * 1, x),
    mul_zero=rule(x * 0, 0, when=is_whole(x)),
    mul_minus_one=rule(x * -1, -x),
    mul_all_ones=rule(x * a, -x, when=is_unsigned(x) & _ones),
    fdiv_one=rule(x / 1, x),
    idiv_one=rule(x // 1, x),
    idiv_zero=rule(x // 0, 0),
    mod_one=rule(x % 1, 0),
    mod_zero=rule(x % 0, 0),
    and_zero=rule(x & 0, 0),
    and_ones=rule(x & a, x, when=_ones),
    and_covering_mask=rule(x & a, x, when=is_integer(x) & holds(mask_covers, x, a)),
    or_zero=rule(x | 0, x),
    or_ones=rule(x | a, a, when=_ones),
    xor_zero=rule(x ^ 0, x),
    shl_zero=rule(x << 0, x),
    shr_zero=rule(x >> 0, x),
    max_with_lowest=rule(maximum(x, a), x, when=value(a).equals(lowest(a))),
    min_with_highest=rule(minimum(x, a), x, when=value(a).equals(highest(a))),
    max_with_highest=rule(maximum(x, a), a, when=is_whole(x) & value(a).equals(highest(a))),
    min_with_lowest=rule(minimum(x, a), a, when=is_whole(x) & value(a).equals(lowest(a))),
)

chains = Rules(
    add_chain=rule((x + a) + b, x + fold(a + b), when=is_whole(x)),
    add_sub_chain=rule((x + a) - b, x + fold(a - b), when=is_integer(x)),
    sub_add_chain=rule((x - a) + b, x + fold(b - a), when=is_integer(x)),
    sub_sub_chain=rule((x - a) - b, x - fold(a + b), when=is_integer(x)),
    sub_from_sub_chain=rule((a - x) - b, fold(a - b) - x, when=is_integer(x)),
    sub_from_chain=rule((a - x) + b, fold(a + b) - x, when=is_integer(x)),
    mul_chain=rule((x * a) * b, x * fold(a * b), when=is_whole(x)),
    and_chain=rule((x & a) & b, x & fold(a & b)),
    or_chain=rule((x | a) | b, x | fold(a | b)),
    xor_chain=rule((x ^ a) ^ b, x ^ fold(a ^ b)),
    max_chain=rule(maximum(maximum(x, a), b), maximum(x, fold(maximum(a, b)))),
    min_chain=rule(minimum(minimum(x, a), b), minimum(x, fold(minimum(a, b)))),
    common_factor=rule((x * a) + (x * b), x * fold(a + b), when=is_integer(x)),
    shl_chain=rule((x << a) << b, x << fold(a + b), when=is_integer(x) & holds(shifts_add, a, b)),
    shr_chain=rule((x >> a) >> b, x >> fold(a + b), when=is_integer(x) & holds(shifts_add, a, b)),
    idiv_chain=rule((x // a) // b, x // fold(a * b), when=is_integer(x) & holds(divisors_multiply, a, b)),
    mod_of_mod=rule((x % a) % b, x % b, when=is_integer(x) & holds(divides, a, b)),
)

operands = Rules(
    double_negation=rule(apply(ops.NEG, -x), x),
    negate_difference=rule(-(x - y), y - x, when=is_integer(x)),
    negate_product=rule(-(x * a), x * fold(-a), when=is_integer(x) | is_float(x)),
    add_negated=rule(x + -y, x - y, when=is_integer(x) | is_float(x)),
    sub_negated=rule(x - (-y), x + y, when=is_integer(x) | is_float(x)),
    sub_itself=rule(x - x, 0, when=is_whole(x)),
    sub_what_was_added=rule((x + y) - y, x, when=is_integer(x)),
    add_what_was_subtracted=rule((x - y) + y, x, when=is_integer(x)),
    xor_itself=rule(x ^ x, 0),
    xor_twice=rule((x ^ y) ^ y, x),
    and_itself=rule(x & x, x),
    or_itself=rule(x | x, x),
    max_itself=rule(maximum(x, x), x),
    min_itself=rule(minimum(x, x), x),
    and_absorbs=rule(x & (x | y), x),
    or_absorbs=rule(x | (x & y), x),
    and_with_not=rule(x & (x ^ True), False),
    or_with_not=rule(x | (x ^ True), True),
    trunc_twice=rule(apply(ops.TRUNC, apply(ops.TRUNC, x)), apply(ops.TRUNC, x)),
    trunc_of_whole=rule(apply(ops.TRUNC, cast(x).named("t")), var("t"), when=is_whole(x)),
    multiply_add_one=rule(apply(ops.FMA, x, 1, y), x + y),
)


@operands.rule(x / a)
def divide_by_power_of_two(x: Node, a: Node) -> Node | None:
    """A product instead of a quotient, where the reciprocal is exact and in the normal range."""
    fraction, exponent = math.frexp(a.arg)
    if abs(fraction) != 0.5 or abs(exponent) >= (1 << (a.dtype.exponent_mantissa[0] - 1)) - 1:
        return None
    return Node(ops.MUL, None, (x, const(1.0 / a.arg, a.dtype)))


# -- comparison and choice --------------------------------------------------------------------------
_node = var("node")                                         # the whole, in guards
comparisons = Rules(
    lt_itself=rule(x < x, False),
    eq_itself=rule(x.eq(x), True, when=is_whole(x)),        # NaN is not equal to itself
    ne_itself=rule(x.ne(x), False, when=is_whole(x)),
    lt_lowest=rule(x < a, False, when=value(a).equals(lowest(a))),
    highest_lt=rule(a < x, False, when=value(a).equals(highest(a))),
    eq_true=rule(x.eq(True), x),
    eq_false=rule(x.eq(False), x ^ True),
    ne_true=rule(x.ne(True), x ^ True),
    ne_false=rule(x.ne(False), x),
    not_equal=rule(x.eq(y) ^ True, x.ne(y)),
    not_unequal=rule(x.ne(y) ^ True, x.eq(y)),
    bool_as_number_ne_zero=rule(cast(c).ne(0), c, when=is_bool(c)),
    bool_as_number_eq_zero=rule(cast(c).eq(0), c ^ True, when=is_bool(c)),
    bool_as_number_eq_one=rule(cast(c).eq(1), c, when=is_bool(c)),
)

choices = Rules(
    where_true=rule(where(True, x, y), x),
    where_false=rule(where(False, x, y), y),
    where_same=rule(where(c, x, x), x),
    where_not=rule(where(c ^ True, x, y), where(c, y, x)),
    where_is_condition=rule(where(c, True, False), c),
    where_is_not_condition=rule(where(c, False, True), c ^ True),
    where_or_false=rule(where(c, x, False), c & x),
    where_true_or=rule(where(c, True, x), c | x),
    where_known_true=rule(where(c, where(c, x, y), z), where(c, x, z)),
    where_known_false=rule(where(c, x, where(c, y, z)), where(c, x, z)),
    where_both=rule(where(c, where(d, x, y), y), where(c & d, x, y)),
    where_either=rule(where(c, x, where(d, x, y)), where(c | d, x, y)),
)

# -- conversions ------------------------------------------------------------------------------------
_middle = var("t")
conversions = Rules(
    cast_to_own_type=rule(cast(x), x, when=holds(same_type, x, _node)),
    cast_of_exact_cast=rule(cast(cast(x).named("t")), cast(x), when=holds(keeps_numbers, x, _middle)),
    bitcast_to_own_type=rule(bitcast(x), x, when=holds(same_type, x, _node)),
    bitcast_of_bitcast=rule(bitcast(bitcast(x).named("t")), bitcast(x), when=~is_bool(_middle)),
)


@conversions.rule(cast(cast(x).named("t")), when=holds(narrows_again, _node, _middle))
def cast_narrows_again(node: Node, x: Node) -> Node:
    """Wrapping to a type within a type is wrapping once; a promise about the wrapped value is none about x.
    """
    return Node(ops.CAST, node.dtype, (x,))


algebra = constants + neutral + chains + operands + comparisons + choices + conversions
