"""Rewriting a graph: to a fixed point, each node once, at any depth; an error for rules without end."""
import pytest

from tests.numpy_alu import leaf
from tiny.ir import ops
from tiny.ir.algebra import algebra
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node, const
from tiny.ir.patterns import apply, constant, fold, rule, var
from tiny.ir.rewrite import RewriteError, rewrite
from tiny.ir.rules import Rules

x, y, a, b = var("x"), var("y"), constant("a"), constant("b")
X = leaf("X", dtypes.int32)


def number(value):
    return const(value, dtypes.int32)


def test_a_graph_without_work_comes_back_itself():
    graph = Node(ops.MUL, None, (Node(ops.ADD, None, (X, number(1))), X))
    assert rewrite(graph, algebra) is graph
    assert rewrite(X, algebra) is X


def test_replacements_are_rewritten_too():
    """The new node's operands may match as well, and what they become lets others match."""
    rules = Rules(down=rule((x * a) * b, x * fold(a * b)), one=rule(x * 1, x), flip=rule(x - a, x * a))
    graph = Node(ops.SUB, None, (Node(ops.MUL, None, (X, number(-1))), number(-1)))
    assert rewrite(graph, rules) is X


def test_deep_graphs_need_no_recursion():
    graph = X
    for i in range(20000):
        graph = Node(ops.ADD, None, (graph, number(1))) if i % 2 else Node(ops.SUB, None, (graph, number(3)))
    assert rewrite(graph, algebra) is Node(ops.ADD, None, (X, number(-20000)))


def test_shared_parts_are_rewritten_once():
    calls, rules = [], Rules()

    @rules.rule(apply(ops.ADD, x, y))
    def count(node):
        calls.append(node)
    graph = X
    for _ in range(200):
        graph = Node(ops.ADD, None, (graph, graph))
    done = {}
    rewrite(graph, rules, done)
    assert len(calls) == 200
    rewrite(Node(ops.NEG, None, (graph,)), rules, done)
    assert len(calls) == 200


def test_rules_that_undo_each_other_are_named():
    rules = Rules(turn=rule(x + y, y - x), back=rule(x - y, y + x))
    with pytest.raises(RewriteError, match="turn -> back -> turn"):
        rewrite(Node(ops.ADD, None, (X, number(1))), rules)


def test_rules_that_grow_without_end_are_named():
    rules = Rules(grow=rule(x * y, (x * y) + x))
    with pytest.raises(RewriteError, match="grow"):
        rewrite(Node(ops.MUL, None, (X, X)), rules)
    rules = Rules(taller=rule(x * y, (x + 1) * y))
    with pytest.raises(RewriteError, match="taller"):
        rewrite(Node(ops.MUL, None, (X, X)), rules)
    deeper = Rules(deeper=rule(apply(ops.NEG, x), apply(ops.NEG, apply(ops.NEG, x * 2))))
    with pytest.raises(RewriteError, match="deeper"):
        rewrite(Node(ops.NEG, None, (X,)), deeper)


def test_arguments_and_types_of_other_operations_survive():
    index = const(0, dtypes.index)
    pointer = Node(ops.POINTER, dtypes.float32, (), 1)
    value = Node(ops.CAST, dtypes.float32, (Node(ops.ADD, None, (X, number(0))),))
    store = Node(ops.STORE, None, (pointer, index, value))
    simple = Node(ops.CAST, dtypes.float32, (X,))
    assert rewrite(store, algebra) is Node(ops.STORE, None, (pointer, index, simple))
