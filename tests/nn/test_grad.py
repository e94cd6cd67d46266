"""Every derivative rule against central differences in float64, by the numpy oracle; then the corners."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import evaluate
from tiny.frontend import graph, shaping
from tiny.frontend.grad import GradientError, gradient, vjp
from tiny.frontend.history import STOPS
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node, const, toposort


def leaf(array) -> Node:
    """A float64 leaf that holds the array."""
    array = np.array(array, np.float64)
    return evaluate.buffer_from_host(array.reshape(-1), dtypes.float64, array.shape, "CPU")


def make(op, *src, arg=None) -> Node:
    return Node(op, None, src, arg)


def one(shape=()) -> Node:
    return shaping.expand(const(1.0, dtypes.float64), shape)


def slope(function, arrays, weights, which: int) -> np.ndarray:
    """Central differences of sum(function * weights) by each element of one of the arrays."""
    result = np.zeros(arrays[which].shape)
    for place in np.ndindex(result.shape):
        ends = []
        for step in (1e-5, -1e-5):
            moved = [array.copy() for array in arrays]
            moved[which][place] += step
            ends.append((evaluate.evaluate(function(*map(leaf, moved)))[0] * weights).sum())
        result[place] = (ends[0] - ends[1]) / 2e-5
    return result


def check(function, arrays, random, orders=2) -> None:
    """Compare gradients with differences; then take the first gradient as the function: the next order."""
    arrays = [np.asarray(array, np.float64) for array in arrays]
    for _ in range(orders):
        leaves = [leaf(array) for array in arrays]
        root = function(*leaves)
        weights = random.normal(size=root.shape)
        found = gradient(root, leaf(weights), leaves)
        for which, node in enumerate(found):
            got = np.zeros(arrays[which].shape) if node is None else evaluate.evaluate(node)[0]
            assert node is None or node.shape == arrays[which].shape
            np.testing.assert_allclose(got, slope(function, arrays, weights, which), rtol=2e-5, atol=2e-6)
        if all(node is None for node in found):
            return
        number = next(number for number, node in enumerate(found) if node is not None)
        function = _next_order(function, weights, number)


def _next_order(function, weights, number):
    def derivative(*leaves):
        found = gradient(function(*leaves), leaf(weights), list(leaves))[number]
        return found if found is not None else graph.zeros(leaves[number].shape, dtypes.float64)
    return derivative


def squared(node: Node) -> Node:
    """So that a linear operation has a second derivative to get wrong."""
    return make(ops.MUL, node, node)


def spaced(random, *shape) -> np.ndarray:
    """Random numbers no two of which are closer than a difference step can bridge."""
    count = int(np.prod(shape))
    return (random.permutation(count) * 0.37 + random.uniform(0, 0.2, count) - count * 0.185).reshape(shape)


def index_of(numbers) -> Node:
    array = np.array(numbers, np.int32)
    return evaluate.buffer_from_host(array.reshape(-1), dtypes.int32, array.shape, "CPU")


CONDITION = [[True, False, True], [False, False, True]]


def condition() -> Node:
    return graph.equal(index_of(CONDITION), const(1, dtypes.int32))


VIEW = ((ops.SHRINK, ((1, 3), (0, 2))), (ops.PERMUTE, (1, 0)), (ops.FLIP, (0,)), (ops.RESHAPE, (4,)))
SOME = index_of([0, 2, 2, 1, 0, 3])
BINARY = (ops.ADD, ops.SUB, ops.MUL, ops.FDIV, ops.MAX, ops.MIN)
UNARY = (ops.EXP, ops.EXP2, ops.EXPM1, ops.LOG, ops.LOG2, ops.LOG1P, ops.SIN, ops.COS, ops.TAN, ops.ATAN,
         ops.ERF, ops.SQRT, ops.NEG)
MOVES = {
    "reshape": lambda x: make(ops.RESHAPE, x, arg=(6, 4)),
    "permute": lambda x: make(ops.PERMUTE, x, arg=(2, 0, 1)),
    "shrink": lambda x: make(ops.SHRINK, x, arg=((0, 1), (1, 3), (0, 4))),
    "pad": lambda x: make(ops.PAD, x, arg=((0, 1), (2, 3), (0, 0))),
    "flip": lambda x: make(ops.FLIP, x, arg=(0, 2)),
    "contiguous": lambda x: make(ops.CONTIGUOUS, x),
    "copy": lambda x: make(ops.COPY, x, arg="CPU"),
    "expand": lambda x: make(ops.EXPAND, graph.reduce(ops.ADD, x, (1,)), arg=(2, 5, 4)),
    "cast": lambda x: Node(ops.CAST, dtypes.float64, (x,)),
}
WINDOWS = ((7, 3, 1, 1), (8, 3, 2, 1), (9, 2, 2, 1), (10, 2, 3, 1), (11, 3, 1, 2), (12, 3, 2, 2),
           (9, 2, 5, 3), (5, 1, 2, 1), (13, 4, 3, 1), (7, 2, 4, 2))         # length; size, stride, dilation


def normal(*shapes):
    """What makes arrays of normal numbers, one of each shape."""
    return lambda random: [random.normal(size=shape) for shape in shapes]


def apart(*shape):
    """What makes one array whose elements are far enough apart for a difference step; see `spaced`."""
    return lambda random: [spaced(random, *shape)]


def base_and_updates(random) -> list[np.ndarray]:
    return np.split(spaced(random, 10, 2), [4])


def with_zeros(random) -> list[np.ndarray]:
    return [random.normal(size=(3, 4)) * [[1, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 0]]]


def arithmetic_cases():
    shapes = {"arrays": ((2, 3), (2, 3)), "array and scalar": ((2, 3), ()), "scalar and array": ((), (3,))}
    for op in BINARY:
        for name, (left, right) in shapes.items():
            yield (f"{op} {name}", lambda x, y, op=op: make(op, x, y),
                   lambda r, left=left, right=right: (r.uniform(-2, 2, left), r.uniform(2.1, 4, right)))
    for op in UNARY:
        yield f"{op}", lambda x, op=op: make(op, x), lambda r: [r.uniform(0.3, 1.2, (4,))]
    two = const(2.0, dtypes.float64)
    half = const(0.5, dtypes.float64)
    yield "POW", lambda x, y: make(ops.POW, x, y), lambda r: (r.uniform(0.5, 2, (3,)), r.normal(size=3))
    yield "POW of a constant", lambda x: make(ops.POW, two, x), normal(3)
    yield "POW by a constant", lambda x: make(ops.POW, x, two), normal(3)
    yield "WHERE", lambda x, y: squared(make(ops.WHERE, condition(), x, y)), normal((2, 3), (2, 3))
    yield "WHERE with a scalar", lambda x, y: squared(make(ops.WHERE, condition(), x, y)), normal((), (2, 3))
    yield "MAX with a constant", lambda x: make(ops.MAX, squared(x), half), normal((2, 3))
    yield "mean", lambda x: graph.scale(graph.total(squared(x)), 1 / 6), normal((2, 3))


def movement_cases():
    for name, move in MOVES.items():
        yield name, lambda x, move=move: squared(move(x)), normal((2, 3, 4))
        yield f"total of {name}", lambda x, move=move: graph.total(move(x)), normal((2, 3, 4))
    for length, *window in WINDOWS:
        argument = (1, *window)
        yield (f"WINDOW {window} over {length}",
               lambda x, arg=argument: squared(make(ops.WINDOW, x, arg=arg)), normal((2, length, 2)))


def array_cases():
    for row in (ops.ADD, ops.MUL, ops.MAX, ops.MIN):
        for axes in ((0,), (1,), (0, 2), (0, 1, 2)):
            yield (f"REDUCE {row} {axes}", lambda x, row=row, axes=axes: squared(graph.reduce(row, x, axes)),
                   apart(2, 3, 2))
        for axis in (0, 1, 2):
            yield (f"SCAN {row} {axis}", lambda x, row=row, axis=axis: squared(graph.scan(row, x, axis)),
                   apart(2, 3, 2))
    for row in (None, ops.ADD, ops.MUL, ops.MAX, ops.MIN):
        yield (f"SCATTER {row}", lambda x, y, row=row: squared(graph.scatter(x, SOME, y, row)),
               base_and_updates)
    yield "GATHER", lambda x: squared(graph.gather(x, shaping.reshape(SOME, (2, 3)))), normal((4, 2))
    yield "ASSIGN", lambda x, y: squared(make(ops.ASSIGN, x, y, arg=VIEW)), normal((4, 3), (4,))
    yield "ASSIGN all", lambda x, y: make(ops.MUL, make(ops.ASSIGN, x, y, arg=()), x), normal((2, 3), (2, 3))
    yield "product with zeros", lambda x: graph.reduce(ops.MUL, x, (1,)), with_zeros
    yield "running product with zeros", lambda x: graph.scan(ops.MUL, x, 1), with_zeros


CASES = {name: (function, arrays) for group in (arithmetic_cases, movement_cases, array_cases)
         for name, function, arrays in group()}


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=3)
@given(seed=st.integers(0, 2**32 - 1))
def test_gradient_equals_central_difference(name, seed):
    function, arrays = CASES[name]
    random = np.random.default_rng(seed)
    check(function, arrays(random), random)


def test_every_rule_is_compared_with_a_difference():
    random = np.random.default_rng(0)
    met = {node.op for function, arrays in CASES.values()
           for node in toposort(function(*map(leaf, arrays(random))))}
    assert set(vjp) - met <= {ops.FMA}, "FMA is made inside kernels only"


def grad_of(function, numbers, weights=None):
    x = leaf(numbers)
    root = function(x)
    found = gradient(root, leaf(weights) if weights is not None else const(1.0, dtypes.float64), [x])[0]
    return evaluate.evaluate(found)[0].tolist()


def test_product_gradient_where_elements_are_zero():
    product = lambda x: graph.reduce(ops.MUL, x, (0,))
    assert grad_of(product, [0, 2, 3]) == [6, 0, 0]
    assert grad_of(product, [0, 0, 3]) == [0, 0, 0]
    assert grad_of(lambda x: graph.scan(ops.MUL, x, 0), [2, 0, 3]) == [1, 8, 0]


def test_scatter_product_gradient_where_updates_are_zero():
    function = lambda x: graph.scatter(one((2,)), index_of([0, 0, 1, 1, 1]), x, ops.MUL)
    assert grad_of(function, [0, 5, 0, 2, 0], [1, 1]) == [5, 0, 0, 0, 0]


def test_power_gradient_at_zero():
    x, y = leaf([0.0, 0.0, 0.0]), leaf([0.0, 1.0, 2.0])
    by_x, by_y = gradient(make(ops.POW, x, y), const(1.0, dtypes.float64), [x, y])
    assert evaluate.evaluate(by_x, by_y)[0].tolist() == [0, 1, 0]
    assert evaluate.evaluate(by_y)[0].tolist() == [0, 0, 0]
    second, = gradient(by_x, const(1.0, dtypes.float64), [x])
    assert evaluate.evaluate(second)[0].tolist() == [0, 0, 2]


def test_ties_share_the_gradient():
    assert grad_of(lambda x: graph.reduce(ops.MAX, x, (0,)), [3, 1, 3, 3]) == [1 / 3, 0, 1 / 3, 1 / 3]
    x, y = leaf([1.0, 2.0]), leaf([1.0, 0.0])
    found = gradient(make(ops.MAX, x, y), const(1.0, dtypes.float64), [x, y])
    assert [part.tolist() for part in evaluate.evaluate(*found)] == [[0.5, 1], [0.5, 0]]


def test_relu_has_slope_zero_at_zero():
    assert grad_of(lambda x: make(ops.MAX, x, const(0.0, dtypes.float64)), [-1, 0, 2]) == [0, 0, 1]


def test_ties_are_counted_in_float32():
    """70000 equal halves: a count held in a half would be infinite, and every gradient zero."""
    array = np.ones(70000, np.float16)
    x = evaluate.buffer_from_host(array, dtypes.float16, array.shape, "CPU")
    found, = gradient(graph.reduce(ops.MAX, x, (0,)), const(1.0, dtypes.float16), [x])
    np.testing.assert_allclose(evaluate.evaluate(found)[0].astype(np.float64), 1 / 70000, rtol=2e-3)


def test_cumulative_maximum_sends_ties_to_the_last():
    assert grad_of(lambda x: graph.scan(ops.MAX, x, 0), [1, 3, 3, 2, 5]) == [1, 1, 2, 0, 1]


def test_the_last_of_several_writes_takes_the_gradient():
    base, updates = leaf([1, 2, 3]), leaf([4, 5, 6, 7])
    root = graph.scatter(base, index_of([1, 1, 9, 2]), updates, None)
    by_base, by_updates = gradient(root, leaf([10, 20, 30]), [base, updates])
    assert evaluate.evaluate(by_base)[0].tolist() == [10, 0, 0]
    assert evaluate.evaluate(by_updates)[0].tolist() == [0, 20, 0, 30]


def test_writing_through_an_overlapping_view_is_an_error():
    base = leaf([1, 2, 3])
    root = make(ops.ASSIGN, base, leaf([[1, 2], [3, 4]]), arg=((ops.WINDOW, (0, 2, 1, 1)),))
    with pytest.raises(GradientError, match="write through WINDOW"):
        gradient(root, leaf([1, 1, 1]), [base])


def test_nothing_passes_steps_and_detached_nodes():
    x = leaf([1.5, 2.5])
    for op in STOPS:
        stopped = Node(op, dtypes.float64, (x,))
        assert gradient(stopped, one((2,)), [x]) == [None]
        assert gradient(make(ops.ADD, stopped, x), one((2,)), [x]) == [one((2,))]


def test_third_order():
    x = leaf([1.0, 2.0, 3.0])
    node = make(ops.MUL, make(ops.MUL, x, x), x)
    for expected in ([3, 12, 27], [6, 12, 18], [6, 6, 6]):
        node, = gradient(node, const(1.0, dtypes.float64), [x])
        assert evaluate.evaluate(node)[0].tolist() == expected


def test_second_order_by_a_value_in_between():
    """What is left out of a gradient's graph must not leave out a node that somebody differentiates by."""
    x = leaf([1.0, 2.0, 3.0, 4.0])
    flat = make(ops.NEG, graph.reshape(x, (2, 2)))
    first, = gradient(graph.reduce(ops.MUL, flat, (0, 1)), one(), [flat])
    second, = gradient(first, one(), [flat])
    assert evaluate.evaluate(first)[0].tolist() == [[-24, -12], [-8, -6]]
    assert evaluate.evaluate(second)[0].tolist() == [[26, 19], [14, 11]]


def test_a_target_between_and_one_not_reached():
    x, other = leaf([1.0, 2.0]), leaf([1.0])
    inner = squared(x)
    found = gradient(squared(inner), const(1.0, dtypes.float64), [inner, x, other])
    assert [part.tolist() for part in evaluate.evaluate(*found[:2])] == [[2, 8], [4, 32]]
    assert found[2] is None


def test_the_graph_of_a_mean_stays_small():
    """The gradient of mean(x) is one constant, spread: no array of ones is multiplied on the way."""
    x = leaf(np.ones((3, 4)))
    found, = gradient(graph.scale(graph.total(x), 1 / 12), const(1.0, dtypes.float64), [x])
    assert [node.op for node in toposort(found)] == [ops.CONST, ops.RESHAPE, ops.EXPAND]


def test_deep_graphs_need_no_recursion():
    x = node = leaf([1.0])
    for _ in range(5000):
        node = make(ops.ADD, node, x)
    found, = gradient(node, one((1,)), [x])
    assert evaluate.evaluate(found)[0].tolist() == [5001]


def test_errors_name_what_is_wrong():
    integers = index_of([1, 2])
    with pytest.raises(TypeError, match="int32"):
        gradient(integers, const(1, dtypes.int32), [])
    x = leaf([1.0, 2.0])
    with pytest.raises(ValueError, match=r"float64 \(3,\)"):
        gradient(x, leaf([1.0, 2.0, 3.0]), [x])
