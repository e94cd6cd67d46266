"""Turn one arithmetic node into operations that every dialect has, so that all backends compute the same.

What is left after this: CONST ADD SUB MUL FDIV MAX MIN AND OR XOR SHL SHR LT EQ NE NEG TRUNC SQRT WHERE FMA
CAST BITCAST, and IDIV and MOD with arg True, on bool, integers, float32 and float64, where
- IDIV and MOD are C's / and % on operands that do not trap; shifts have counts within 0 ... bits-1;
- MAX and MIN are of integers; bool has only AND OR XOR EQ NE WHERE and CASTs;
- CAST from a float to an integer has arg True: the truncated value fits;
- float16 is only cast from and to float32, bitcast, chosen by WHERE, loaded and stored;
- bfloat16 and fp8 are only bitcast from and to unsigned integers (see `small_floats`).
"""
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node
from tiny.render import exponential, integers, power, threefry, trigonometry
from tiny.render.bounds import bounds
from tiny.render.formula import Formula, where
from tiny.render.small_floats import PATTERNS, decoded, encoded, integer_to_odd

SMALL = (dtypes.float16, *PATTERNS)


def decompose(node: Node) -> Node:
    """An equivalent of `node`, whose operands are decomposed already and stay as they are;
    a basic node comes back.
    """
    if node.op is ops.CONST:
        return encoded(Formula(node), node.dtype).node if node.dtype in PATTERNS else node
    if node.op not in _RULES:
        return node
    return _RULES[node.op](node)


# -- by type --------------------------------------------------------------------------------------
def _arithmetic(node: Node) -> Node:
    """+, -, *, /, the square root, TRUNC and FMA."""
    dtype = node.dtype
    if dtype is dtypes.bool:
        return _boolean(node)
    if dtype in SMALL:
        wide = Node(node.op, None, tuple(decoded(Formula(s)).node for s in node.src))
        return encoded(Formula(wide), dtype).node
    if node.op is ops.FMA and not dtype.is_float:
        x, y, z = map(Formula, node.src)
        return (x * y + z).node
    return node


def _boolean(node: Node) -> Node:
    return integers.BOOLEAN[node.op](*map(Formula, node.src)).node


def _negate(node: Node) -> Node:
    if node.dtype is dtypes.bool:
        return _boolean(node)
    x = Formula(node.src[0])
    return x.flip_sign(x.layout.sign).node if node.dtype in SMALL else node


def _compare(node: Node) -> Node:
    """LT, EQ, NE of the numbers."""
    dtype = node.src[0].dtype
    if dtype is dtypes.bool and node.op is ops.LT:
        return _boolean(node)
    if dtype in SMALL:
        return Node(node.op, None, tuple(decoded(Formula(s)).node for s in node.src))
    return node


def _extreme(node: Node) -> Node:
    """MAX and MIN: the first of two equal ones, NaN if one is.
    One instruction where the second is a constant.
    """
    if node.dtype is dtypes.bool:
        return _boolean(node)
    if not node.dtype.is_float:
        return node
    x, y = map(Formula, node.src)
    left, right = decoded(x), decoded(y)
    second = left < right if node.op is ops.MAX else right < left
    result = _choose(second, y, x)
    if right.node.op is ops.CONST and right.node.arg == right.node.arg:
        return result.node
    return _choose(right.is_nan(), y, result).node


def _choose(condition: Formula, yes: Formula, no: Formula) -> Formula:
    """WHERE, on the bits of types that are nothing else."""
    if yes.dtype in PATTERNS:
        return where(condition, yes.bits(), no.bits()).bitcast(yes.dtype)
    return where(condition, yes, no)


def _where(node: Node) -> Node:
    return _choose(*map(Formula, node.src)).node if node.dtype in PATTERNS else node


def _divide(node: Node) -> Node:
    if node.arg is True:
        return node
    return _boolean(node) if node.dtype is dtypes.bool else integers.divide(node)


def _shift(node: Node) -> Node:
    return _boolean(node) if node.dtype is dtypes.bool else integers.shift(node)


# -- conversions ----------------------------------------------------------------------------------
def _cast(node: Node) -> Node:
    x, target = Formula(node.src[0]), node.dtype
    if x.dtype is target:
        return x.node
    x = decoded(x) if x.dtype.is_float else x
    if target is dtypes.bool:
        return x.differs(0).node
    if target in SMALL:
        return encoded(x if x.dtype.is_float else integer_to_odd(x, target), target).node
    if x.dtype.is_float and not target.is_float:
        return (x.cast(target, fits=True) if node.arg is True else integers.from_float(x, target)).node
    return node if x.node is node.src[0] else x.cast(target).node


def _bitcast(node: Node) -> Node:
    x, target = node.src[0], node.dtype
    if x.dtype is target:
        return x
    if target is dtypes.bool:
        return Formula(x).bitcast(dtypes.uint8).differs(0).node
    if x.dtype is dtypes.bool:
        return Formula(x).cast(dtypes.uint8).bitcast(target).node
    return Formula(x).bitcast(target).node


# -- functions ------------------------------------------------------------------------------------
def _function(compute):
    """A rule that computes small floats in float32 and rounds the result."""
    def rule(node: Node) -> Node:
        result = compute(*(decoded(Formula(s)) for s in node.src))
        return encoded(result, node.dtype).node
    return rule


def _of_angle(compute):
    """The same for functions that are cheaper when the angle is known to be small."""
    def rule(node: Node) -> Node:
        x = decoded(Formula(node.src[0]))
        low, high = bounds(x.node)
        return encoded(compute(x, max(-low, high)), node.dtype).node
    return rule


def _power(x: Formula, y: Formula) -> Formula:
    if y.node.op is ops.CONST:
        result = power.power_of_constant(x, y.node.arg)
        if result is not None:
            return result
    return power.power(x, y)


_RULES = {
    **dict.fromkeys((ops.ADD, ops.SUB, ops.MUL, ops.FDIV, ops.SQRT, ops.TRUNC, ops.FMA), _arithmetic),
    **dict.fromkeys((ops.LT, ops.EQ, ops.NE), _compare), **dict.fromkeys((ops.MAX, ops.MIN), _extreme),
    **dict.fromkeys((ops.IDIV, ops.MOD), _divide), **dict.fromkeys((ops.SHL, ops.SHR), _shift),
    ops.NEG: _negate, ops.WHERE: _where, ops.CAST: _cast, ops.BITCAST: _bitcast,
    ops.EXP: _function(exponential.exp), ops.EXP2: _function(exponential.exp2),
    ops.EXPM1: _function(exponential.expm1), ops.LOG: _function(exponential.log),
    ops.LOG2: _function(exponential.log2), ops.LOG1P: _function(exponential.log1p),
    ops.ERF: _function(exponential.erf),
    ops.SIN: _of_angle(trigonometry.sin), ops.COS: _of_angle(trigonometry.cos),
    ops.TAN: _of_angle(trigonometry.tan),
    ops.ATAN: _function(trigonometry.atan), ops.POW: _function(_power), ops.THREEFRY: threefry.threefry,
}
