"""Graphs as text: what is printed, and that reading it gives the very same nodes."""
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node, const, variable
from tiny.ir.text import TextError, buffers_in, parse_graph, print_graph
from tiny.ir.verify import TENSOR, verify


class Storage:
    """Stands for what a BUFFER holds."""
    def __init__(self, shape, device="CPU"):
        self.shape, self.device = shape, device


def test_a_graph_reads_like_this():
    x = Node(ops.PARAM, dtypes.float32, (), (0, (4, 3), "CPU"))
    product = Node(ops.MUL, None, (x, const(2.0, dtypes.float32)))
    total = Node(ops.REDUCE, None, (product,), (ops.ADD, (1,)))
    text = """\
%0 = PARAM((0, (4, 3), 'CPU')) : float32    # (4, 3)
%1 = CONST(2.0) : float32
%2 = MUL(%0, %1) : float32    # (4, 3)
%3 = REDUCE(%2; (ADD, (1,))) : float32    # (4, 1)
return %3
"""
    assert print_graph(total) == text
    assert parse_graph(text) == [total]


def test_symbolic_sizes_are_nodes_too():
    n = variable("n", 1, 16)
    data = Node(ops.BUFFER, dtypes.int32, (), Storage((16, 2)))
    part = Node(ops.SHRINK, None, (data,), ((0, n.bind(5)), (0, 2)))
    text = print_graph(part, n)
    assert "SHRINK(%0; ((0, %2), (0, 2))) : int32    # (%2, 2)" in text
    assert parse_graph(text, buffers_in(part, n)) == [part, n]


def test_buffers_keep_their_identity_or_become_parameters():
    """Two buffers alike in everything stay two."""
    a, b = (Node(ops.BUFFER, dtypes.float32, (), Storage((3,))) for _ in range(2))
    total = Node(ops.ADD, None, (Node(ops.ADD, None, (a, b)), a))
    text = print_graph(total)
    assert text.count("@0") == 1 and text.count("@1") == 1
    assert parse_graph(text, [a.arg, b.arg]) == [total]
    shape_only = parse_graph(text)[0]
    assert shape_only.src[0].src[1] is Node(ops.PARAM, dtypes.float32, (), (1, (3,), None))


@pytest.mark.parametrize("value", (0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45, 3.4e38, 0.1))
def test_floats_come_back_bit_for_bit(value):
    for dtype in (dtypes.float32, dtypes.float64):
        node = const(value, dtype)
        assert parse_graph(print_graph(node)) == [node]


@pytest.mark.parametrize("arg", ((), (1,), (("a b", -1), None, True), "it's", 'say "so"', "naïve \\ text",
                                 (dtypes.float16,
                                 ops.ADD, 1.5, -math.inf), "%0; (x)"))
def test_arguments_come_back(arg):
    node = Node(ops.COPY, None, (const(1, dtypes.int8),), arg)
    assert parse_graph(print_graph(node)) == [node]


def test_an_argument_without_text_is_named():
    with pytest.raises(TypeError, match="COPY has an argument of type object"):
        print_graph(Node(ops.COPY, None, (const(1, dtypes.int8),), object()))


@pytest.mark.parametrize("text, message", [
    ("%0 = CONST(1) : int32\n", "the last line must be"),
    ("%1 = CONST(1) : int32\n", "line 1: %0 expected, not %1"),
    ("%0 = CONSTANT(1) : int32\n", "line 1: there is no operation CONSTANT"),
    ("%0 = CONST(1) : int33\n", "line 1: there is no type int33"),
    ("%0 = CONST(1 2) : int32\n", "line 1: 'the end' expected, not '2'"),
    ("%0 = CONST(~) : int32\n", "line 1: cannot read '~'"),
    ("%0 = CONST(1) : int32\n%1 = NEG(%4) : int32\n", "line 2: '%4' is no node above"),
    ("%0 = CONST(1) : int32\n%1 = ADD(%0) : int32\n", "line 2: ADD: 2 operands expected, 1 given"),
    ("%0 = CONST(1) : int32\n%1 = NEG(%0) : int8\n", "line 2: NEG of these operands is int32, not int8"),
    ("hello\n", "line 1: %number = OPERATION"), ("return %0\n", "line 1: '%0' is no node above")])
def test_errors_name_the_line_and_what_is_wrong(text, message):
    with pytest.raises(TextError) as caught:
        parse_graph(text)
    assert message in str(caught.value)


@st.composite
def graphs(draw):
    """A random graph of whole-array operations over buffers and constants."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    types = st.sampled_from(dtypes.all)
    nodes = [Node(ops.BUFFER, draw(types), (), Storage(shape)) for _ in range(2)]
    numbers = st.one_of(st.integers(-300, 300), st.floats())
    nodes += [const(draw(numbers), draw(types)) for _ in range(2)]
    for _ in range(draw(st.integers(1, 12))):
        x = draw(st.sampled_from(nodes))
        alike = [n for n in nodes if n.dtype is x.dtype and n.shape in (x.shape, ())]
        y = draw(st.sampled_from([*alike, x]))
        nodes.append(draw(st.sampled_from([
            Node(ops.ADD, None, (x, y)), Node(ops.LT, None, (x, y)), Node(ops.CAST, draw(types), (x,)),
            Node(ops.FLIP, None, (x,), tuple(range(x.ndim))), Node(ops.CONTIGUOUS, None, (x,)),
            Node(ops.PERMUTE, None, (x,), tuple(reversed(range(x.ndim)))),
            Node(ops.PAD, None, (x,), ((1, 2),) * x.ndim), Node(ops.COPY, None, (x,), "CPU"),
            Node(ops.REDUCE, None, (x,), (ops.MAX, tuple(range(x.ndim)))) if x.shape else x])))
    return tuple(draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=3)))


@given(graphs())
@settings(max_examples=150, deadline=None)
def test_random_graphs_come_back_as_the_same_nodes(roots):
    verify(roots, TENSOR)
    found = parse_graph(print_graph(*roots), buffers_in(*roots))
    assert len(found) == len(roots) and all(a is b for a, b in zip(found, roots, strict=True))
