"""What rewriting costs, and what compiling rules gains over walking their patterns. Run with `make bench`."""
import random
import timeit

from tests.benchmarks.report import report
from tests.numpy_alu import leaf
from tiny.ir import ops
from tiny.ir.algebra import algebra
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node, const, toposort
from tiny.ir.patterns import Apply, Literal, Variable
from tiny.ir.rewrite import rewrite
from tiny.ir.rules import orders

ROWS = (ops.ADD, ops.MUL, ops.SUB, ops.MAX, ops.FDIV, ops.ADD, ops.MUL)


def graph(size: int) -> Node:
    """A graph of about `size` nodes on which no rule applies."""
    choose = random.Random(1)
    nodes = [leaf(f"x{i}", dtypes.float32) for i in range(10)]
    while len(nodes) < size:
        nodes.append(Node(choose.choice(ROWS), None, tuple(choose.sample(nodes[-40:], 2))))
        if choose.random() < 0.2:
            nodes.append(Node(ops.MUL, None, (nodes[-1], const(choose.random(), dtypes.float32))))
    return rewrite(Node(ops.STACK, None, tuple(nodes)), algebra)


def matches(pattern, node: Node, bound: dict) -> bool:
    """One pattern against one node, by walking it: what the compiled functions save."""
    if isinstance(pattern, Literal):
        return node.op is ops.CONST and node.arg == pattern.value
    if isinstance(pattern, Variable):
        return (not pattern.constant or node.op is ops.CONST) and bound.setdefault(pattern.name, node) is node
    return node.op in pattern.rows and all(map(matches, pattern.src, node.src, [bound] * len(pattern.src)))


def test_rewriting_a_graph_that_needs_nothing(benchmark):
    root = graph(1000)
    count = len(toposort(root))
    benchmark.pedantic(rewrite, (root, algebra), rounds=50, warmup_rounds=2)
    report("rewrite, nothing to do, per node", benchmark.stats["min"] / count * 1e6, "us", 1.0)


def test_compiled_rules_against_walking_patterns(benchmark):
    nodes = toposort(graph(1000))
    functions = algebra.functions
    patterns: dict[ops.Op, list[Apply]] = {}
    for r in algebra:
        for row in r.left.rows:
            patterns.setdefault(row, []).extend(orders(r.left))

    def walk():
        for node in nodes:
            for pattern in patterns.get(node.op, ()):
                matches(pattern, node, {})

    def compiled():
        for node in nodes:
            function = functions[node.op]
            if function is not None:
                function(node)
    compiled()
    benchmark.pedantic(compiled, rounds=50)
    fast = benchmark.stats["min"]
    slow = min(timeit.repeat(walk, number=1, repeat=5))
    report("rules compiled, per node", fast / len(nodes) * 1e6, "us")
    report("rules compiled against patterns walked", slow / fast, "times", least=3)
