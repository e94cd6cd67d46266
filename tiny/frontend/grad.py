"""Gradients: for each operation, how a change of its operands reaches the result; the walk that chains them.

`vjp[op](n, g)` gives, for each operand of node n, the gradient of the result with respect to it (None where
there is none to give). g is the gradient with respect to n itself: an array of n's shape, or a scalar, shape
(), that stands for the same number at every element; that keeps the graph of a loss such as x.mean() small.
Gradients are nodes like any others, so differentiating them again gives higher orders.
"""
import math
from collections.abc import Callable, Iterable, Sequence

from tiny.frontend.graph import (
    add,
    cast,
    contiguous,
    divide,
    equal,
    flip,
    function,
    gather,
    iota,
    is_const,
    keep_where,
    less,
    merge_axes,
    multiply,
    negate,
    positions,
    reduce,
    resize,
    scale,
    scan,
    scatter,
    shift,
    spread_out,
    subtract,
    times_size,
    total,
    unpermute,
    where,
    zeros,
)
from tiny.frontend.history import differentiable_sources, origin
from tiny.frontend.padding import pad_factor
from tiny.frontend.shaping import expand, on_axis, pad, permute, reshape, shrink
from tiny.ir import ops
from tiny.ir.dtype import accumulator_dtype, dtypes
from tiny.ir.integer import prod
from tiny.ir.node import Node, const


class GradientError(RuntimeError):
    """There is no gradient through an operation as it was used; the text says which, and the way round it."""


Rule = Callable[[Node, Node], tuple[Node | None, ...]]
vjp: dict[ops.Op, Rule] = {}


# -- arithmetic ---------------------------------------------------------------------------------------------
vjp[ops.ADD] = lambda n, g: (g, g)
vjp[ops.SUB] = lambda n, g: (g, negate(g))
vjp[ops.MUL] = lambda n, g: (multiply(g, n.src[1]), multiply(g, n.src[0]))
vjp[ops.NEG] = lambda n, g: (negate(g),)
vjp[ops.FMA] = lambda n, g: (multiply(g, n.src[1]), multiply(g, n.src[0]), g)
vjp[ops.SQRT] = lambda n, g: (divide(scale(g, 0.5), n),)
vjp[ops.WHERE] = lambda n, g: (None, keep_where(n.src[0], g), where(n.src[0], const(0, g.dtype), g))
vjp[ops.CAST] = lambda n, g: (cast(g, n.src[0].dtype),)


def _fdiv(n: Node, g: Node) -> tuple[Node, Node]:
    part = divide(g, n.src[1])
    return part, negate(multiply(part, n))


def _larger(n: Node, g: Node) -> tuple[Node, Node]:
    """MAX and MIN of two: to the operand that won, in halves where both are equal.

    Against a constant an equal operand counts as lost, so the slope of relu at 0 is 0.
    """
    x, y = n.src
    wins = (lambda a, b: less(b, a)) if n.op is ops.MAX else less
    if is_const(y):
        return keep_where(wins(x, y), g), None
    if is_const(x):
        return None, keep_where(wins(y, x), g)
    tie, half = equal(x, y), scale(g, 0.5)
    return where(tie, half, keep_where(wins(x, y), g)), where(tie, half, keep_where(wins(y, x), g))


def _pow(n: Node, g: Node) -> tuple[Node | None, Node | None]:
    """x ** y; at 0 ** 0 both slopes are 0, and 0 ** y with y > 0 does not change with y."""
    x, y = n.src
    one, zero = const(1, x.dtype), const(0, x.dtype)
    if is_const(y):
        if y.arg == 0:
            return None, None
        factor = x if y.arg == 2 else function(ops.POW, x, const(y.arg - 1, y.dtype))
        return multiply(g, multiply(factor, y)), None
    x_is_zero = equal(x, zero)
    base = where(function(ops.AND, x_is_zero, equal(y, zero)), one, x)
    by_x = multiply(multiply(g, y), function(ops.POW, base, subtract(y, one)))
    flat = function(ops.AND, x_is_zero, function(ops.XOR, less(y, zero), const(True, dtypes.bool)))
    by_y = multiply(multiply(g, n), function(ops.LOG, where(flat, one, x)))
    return by_x, by_y


vjp[ops.FDIV] = _fdiv
vjp[ops.MAX] = vjp[ops.MIN] = _larger
vjp[ops.POW] = _pow


# -- functions ----------------------------------------------------------------------------------------------
def _one_plus(x: Node) -> Node:
    return add(x, const(1, x.dtype))


vjp[ops.EXP] = lambda n, g: (multiply(g, n),)
vjp[ops.EXP2] = lambda n, g: (scale(multiply(g, n), math.log(2)),)
vjp[ops.EXPM1] = lambda n, g: (multiply(g, function(ops.EXP, n.src[0])),)
vjp[ops.LOG] = lambda n, g: (divide(g, n.src[0]),)
vjp[ops.LOG2] = lambda n, g: (divide(scale(g, 1 / math.log(2)), n.src[0]),)
vjp[ops.LOG1P] = lambda n, g: (divide(g, _one_plus(n.src[0])),)
vjp[ops.SIN] = lambda n, g: (multiply(g, function(ops.COS, n.src[0])),)
vjp[ops.COS] = lambda n, g: (negate(multiply(g, function(ops.SIN, n.src[0]))),)
vjp[ops.TAN] = lambda n, g: (multiply(g, _one_plus(multiply(n, n))),)
vjp[ops.ATAN] = lambda n, g: (divide(g, _one_plus(multiply(n.src[0], n.src[0]))),)


def _erf(n: Node, g: Node) -> tuple[Node]:
    bell = function(ops.EXP, negate(multiply(n.src[0], n.src[0])))
    return (scale(multiply(g, bell), 2 / math.sqrt(math.pi)),)


vjp[ops.ERF] = _erf


# -- movement: the gradient moves back ----------------------------------------------------------------------
def _reshape(n: Node, g: Node) -> tuple[Node]:
    return (reshape(g, n.src[0].shape) if g.shape else g,)


def _expand(n: Node, g: Node) -> tuple[Node]:
    source = n.src[0].shape
    grown = [k for k, (before, after) in enumerate(zip(source, n.shape, strict=True)) if before is not after
             and before != after]
    if not g.shape:
        return (times_size(g, tuple(n.shape[k] for k in grown)),)
    return (reduce(ops.ADD, g, grown),)


def _shrink(n: Node, g: Node) -> tuple[Node]:
    sizes = n.src[0].shape
    return (pad(expand(g, n.shape), [(start, size - stop)
                                     for size, (start, stop) in zip(sizes, n.arg, strict=True)]),)


def _pad(n: Node, g: Node) -> tuple[Node]:
    kept = [(before, before + size) for size, (before, _) in zip(n.src[0].shape, n.arg, strict=True)]
    return (shrink(g, kept) if g.shape else g,)


def _window(n: Node, g: Node) -> tuple[Node]:
    """Windows add up where they overlap.

    An element is in up to `size` windows, once at each place of one. With the places of all windows in one
    line, those of one element are a window themselves: `size` of them, `size * dilation + 1` apart.
    """
    axis, size, stride, dilation = n.arg
    length = n.src[0].shape[axis]
    last = n.ndim - 1
    g = permute(expand(g, n.shape), (*range(axis + 1), last, *range(axis + 1, last)))
    if stride > (size - 1) * dilation:                      # no overlap: an element is in one window at most
        places = resize(spread_out(g, axis + 1, dilation), axis + 1, stride)
        return (resize(merge_axes(places, axis), axis, length),)
    reach = (size - 1) * dilation
    places = flip(g, (axis + 1,))
    if stride == 1 and not isinstance(length, Node):
        padded = pad_factor(places, axis, (reach, reach))
    else:
        spaced = resize(spread_out(places, axis, stride), axis, length)
        padded = pad(spaced, on_axis(spaced, axis, (reach, 0), (0, 0)))
    windows = Node(ops.WINDOW, None, (merge_axes(padded, axis),), (axis, size, size, size * dilation + 1))
    return (reshape(reduce(ops.ADD, windows, (last,)), n.src[0].shape),)


vjp[ops.RESHAPE] = _reshape
vjp[ops.EXPAND] = _expand
vjp[ops.PERMUTE] = lambda n, g: (unpermute(g, n.arg) if g.shape else g,)
vjp[ops.SHRINK] = _shrink
vjp[ops.PAD] = _pad
vjp[ops.FLIP] = lambda n, g: (flip(g, n.arg) if g.shape else g,)
vjp[ops.WINDOW] = _window
vjp[ops.CONTIGUOUS] = lambda n, g: (g,)
vjp[ops.COPY] = lambda n, g: (Node(ops.COPY, None, (g,), n.src[0].device) if g.shape else g,)


# -- reductions and running reductions ----------------------------------------------------------------------
def _reduce(n: Node, g: Node) -> tuple[Node]:
    row, axes = n.arg
    x = n.src[0]
    if row is ops.ADD:
        return (expand(g, x.shape) if g.shape else g,)
    if row is ops.MUL:
        return (_product_of_others(x, axes, expand(g, n.shape)),)
    wide = accumulator_dtype(x.dtype)                       # a count of ties may not fit a half
    winner = equal(x, expand(n, x.shape))
    share = cast(divide(cast(g, wide), reduce(ops.ADD, cast(winner, wide), axes)), x.dtype)
    return (keep_where(winner, expand(share, x.shape)),)


def _product_of_others(x: Node, axes: tuple[int, ...], g: Node) -> Node:
    """For a product over axes: g times all the other elements. Nothing is divided, so zeros are exact."""
    order = [k for k in range(x.ndim) if k not in axes] + list(axes)
    moved = permute(x, order)
    kept = moved.shape[:x.ndim - len(axes)]
    flat = reshape(moved, (*kept, prod(moved.shape[len(kept):])))
    others = multiply(_product_before(flat, len(kept)),
                      flip(_product_before(flip(flat, (len(kept),)), len(kept)), (len(kept),)))
    return multiply(expand(g, x.shape), unpermute(reshape(others, moved.shape), order))


def _product_before(x: Node, axis: int) -> Node:
    """The product of all elements before each one along the axis, 1 for the first."""
    first = equal(positions(x.shape, axis), const(0, dtypes.int32))
    return scan(ops.MUL, where(first, const(1, x.dtype), shift(x, axis, 1)), axis)


def _scan(n: Node, g: Node) -> tuple[Node]:
    row, axis = n.arg
    g = expand(g, n.shape)
    if row is ops.ADD:
        return (_sum_after(g, axis),)
    if row is ops.MUL:
        return (multiply(_product_before(n.src[0], axis), _running_product_tail(n.src[0], g, axis)),)
    return (_running_extreme(n, g, axis),)


def _sum_after(g: Node, axis: int) -> Node:
    return flip(scan(ops.ADD, flip(g, (axis,)), axis), (axis,))


def _running_product_tail(x: Node, g: Node, axis: int) -> Node:
    """r[i] = g[i] + x[i+1] * r[i+1]: what the elements from i on add up to, without the product before i.

    Solved by doubling the reach of each element log2(size) times: nothing is divided, so zeros are exact.
    """
    size = x.shape[axis]
    if isinstance(size, Node):
        raise GradientError("gradient of cumprod: the axis has a symbolic size; use a fixed one")
    factor, reach = shift(x, axis, -1), 1
    while reach < size:
        g = contiguous(add(g, multiply(factor, shift(g, axis, -reach))))
        factor = contiguous(multiply(factor, shift(factor, axis, -reach)))
        reach *= 2
    return g


def _running_extreme(n: Node, g: Node, axis: int) -> Node:
    """cummax, cummin: each result's gradient goes to the element it came from, the last one among equals."""
    x, shape = n.src[0], n.shape
    here = positions(shape, axis)
    came_from = scan(ops.MAX, keep_where(equal(x, n), here), axis)
    inner, count = prod(shape[axis + 1:]), prod(shape)
    if isinstance(count, Node):
        raise GradientError("gradient of cummax, cummin: an axis has a symbolic size; use fixed ones")
    steps_forward = reshape(subtract(came_from, here), (count,))
    target = add(iota(count), multiply(steps_forward, const(inner, here.dtype)))
    return reshape(scatter(zeros((count,), g.dtype), target, reshape(g, (count,)), ops.ADD), shape)


vjp[ops.REDUCE] = _reduce
vjp[ops.SCAN] = _scan


# -- reading and writing by index ---------------------------------------------------------------------------
def _gather(n: Node, g: Node) -> tuple[Node, None]:
    data, index = n.src
    count = prod(index.shape)
    updates = reshape(expand(g, n.shape), (count, *data.shape[1:]))
    return scatter(zeros(data.shape, g.dtype), reshape(index, (count,)), updates, ops.ADD), None


def _over_rest(per_update: Node, shape: tuple) -> Node:
    """One value for each update, spread over the rest of its row."""
    return expand(reshape(per_update, (per_update.shape[0],) + (1,) * (len(shape) - 1)), shape)


def _scatter(n: Node, g: Node) -> tuple[Node | None, None, Node | None]:
    base, index, updates = n.src
    g = expand(g, n.shape)
    if n.arg is ops.ADD:
        return g, None, gather(g, index)
    if n.arg is ops.MUL:
        return _scatter_product(n, g)
    if n.arg is not None:
        return _scatter_extreme(n, g)
    turn = iota(index.shape[0])                             # the last write to a place is the one that stands
    last = scatter(expand(const(-1, turn.dtype), (n.shape[0],)), index, turn, None)
    stands = _over_rest(equal(gather(last, index), turn), updates.shape)
    return scatter(g, index, zeros(updates.shape, g.dtype), None), None, keep_where(stands, gather(g, index))


def _scatter_product(n: Node, g: Node) -> tuple[Node, None, Node]:
    """Products of each place's updates but one: by division, with the zeros counted apart.

    Exact at zeros for a first derivative; a second one misses the terms between a zero and another factor.
    """
    base, index, updates = n.src
    one, zero = const(1, g.dtype), const(0, g.dtype)
    by_base = multiply(g, scatter(expand(one, base.shape), index, updates, ops.MUL))
    is_zero = equal(updates, zero)
    nonzero = where(is_zero, one, updates)
    zeros_at = scatter(zeros(base.shape, g.dtype), index, cast(is_zero, g.dtype), ops.ADD)
    other_zeros = subtract(gather(zeros_at, index), cast(is_zero, g.dtype))
    product = gather(multiply(g, scatter(base, index, nonzero, ops.MUL)), index)
    return by_base, None, keep_where(equal(other_zeros, zero), divide(product, nonzero))


def _scatter_extreme(n: Node, g: Node) -> tuple[Node, None, Node]:
    """To whatever holds the place's largest (smallest) value, in equal shares where several do."""
    base, index, updates = n.src
    wide = accumulator_dtype(g.dtype)
    base_wins, update_wins = equal(base, n), equal(updates, gather(n, index))
    count = scatter(cast(base_wins, wide), index, cast(update_wins, wide), ops.ADD)
    share = cast(divide(cast(g, wide), count), g.dtype)
    return keep_where(base_wins, share), None, keep_where(update_wins, gather(share, index))


def _assign(n: Node, g: Node) -> tuple[Node | None, Node]:
    """The part that was written takes its gradient to the value; the base keeps the rest."""
    value, chain = n.src[1], n.arg or ()
    g = expand(g, n.shape)
    if not chain:
        return None, g
    part = g
    for row, arg in chain:
        if row not in (ops.RESHAPE, ops.PERMUTE, ops.SHRINK, ops.FLIP, ops.PAD):
            raise GradientError(f"gradient of a write through {row.name}: a place may have been "
                                "written twice; write to the original tensor instead")
        part = Node(row, None, (part,), arg)
    return Node(ops.ASSIGN, None, (g, zeros(value.shape, g.dtype)), n.arg), part


vjp[ops.GATHER] = _gather
vjp[ops.SCATTER] = _scatter
vjp[ops.ASSIGN] = _assign


# -- the walk -----------------------------------------------------------------------------------------------
def gradient(root: Node, cotangent: Node, targets: Sequence[Node]) -> list[Node | None]:
    """The gradient of sum(root * cotangent) by each target, None where root does not depend on it.

    cotangent: a node of root's dtype and shape, or a scalar for the same number everywhere. Targets may be
    leaves or nodes in between. Only nodes that lie on a way from root to a target are looked at.
    Raises TypeError when root is not floating, GradientError when a node on the way has no derivative.
    """
    if not root.dtype.is_float:
        raise TypeError(f"gradient: the result is {root.dtype.name}, which has no slope; cast it first")
    if cotangent.shape not in ((), root.shape) or cotangent.dtype is not root.dtype:
        raise ValueError(f"gradient: given is {cotangent.dtype.name} {cotangent.shape}, the result is "
                         f"{root.dtype.name} {root.shape}; they must agree")
    places = [origin(target) or target for target in targets]   # a value in memory stands for its graph
    wanted, found, pending = set(places), {}, {root: cotangent}
    between, on_path = _between(root, wanted)
    for node in reversed(between):
        g = pending.pop(node, None)
        if g is None:
            continue
        if node in wanted:
            found[node] = expand(g, node.shape)
        if not any(source in on_path for source in differentiable_sources(node)):
            continue
        for source, part in _parts(node, g):
            if part is not None and source in on_path:
                part = _fitted(part, source, node)
                pending[source] = add(pending[source], part) if source in pending else part
    return [found.get(place) for place in places]


def _parts(node: Node, g: Node) -> Iterable[tuple[Node, Node | None]]:
    """(operand, what reaches it of the gradient g) by the node's rule."""
    if node.op is ops.BUFFER:
        return ((origin(node), g),)
    if node.op not in vjp:
        raise GradientError(f"gradient: {node.op.name} has no derivative; detach() its operands")
    return zip(node.src, vjp[node.op](node, g), strict=True)


def _between(root: Node, targets: set[Node]) -> tuple[list[Node], set[Node]]:
    """The nodes on a way from root to a target, operands before users, as a list and as a set."""
    order, on_path, seen = [], set(), set()
    stack = [(root, False)]
    while stack:
        node, finished = stack.pop()
        if finished:
            if node in targets or any(source in on_path for source in differentiable_sources(node)):
                on_path.add(node)
                order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((source, False) for source in differentiable_sources(node) if source not in seen)
    return order, on_path


def _fitted(part: Node, source: Node, node: Node) -> Node:
    """A scalar operand that went with every element collects the gradients of all of them."""
    if source.shape:
        return part
    if part.shape:
        return total(part)
    return times_size(part, node.shape) if node.shape and node.op.level is ops.SHARED else part
