"""A graph as text, one node a line, and back to the very same nodes.

    %0 = PARAM((0, (4, 3), 'CPU')) : float32    # (4, 3)
    %1 = CONST(2.0) : float32
    %2 = MUL(%0, %1) : float32    # (4, 3)
    %3 = REDUCE(%2; (ADD, (1,))) : float32    # (4, 1)
    return %3

In the brackets stand the operands, then after a semicolon the argument, in Python's notation: numbers,
strings, tuples, names of operations and types, and %n for a node (a symbolic size). What follows # is for the
reader. A BUFFER holds an object that text cannot: it is written @0, @1 ... in order of appearance, and
`buffers_in` gives the objects in that order.
"""
import ast
import math
import re
from collections.abc import Sequence

from tiny.ir import ops
from tiny.ir.dtype import DType, dtypes
from tiny.ir.node import Node
from tiny.ir.ops import Op

_TYPES = {dtype.name: dtype for dtype in vars(dtypes).values() if isinstance(dtype, DType)}


# -- to text ----------------------------------------------------------------------------------------
def print_graph(*roots: Node) -> str:
    """The graph below the roots, operands before users; TypeError for an argument that text cannot hold."""
    numbers: dict[Node, int] = {}
    buffers: dict[object, int] = {}
    lines = []
    for node in ordered(*roots):
        if node.op is ops.BUFFER:
            inside = f"@{buffers.setdefault(node.arg, len(buffers))}"
        else:
            inside = ", ".join(f"%{numbers[s]}" for s in node.src)
            if node.arg is not None:
                inside += ("; " if inside else "") + _print_value(node.arg, numbers, node)
        shape = f"    # {_print_value(node.shape, numbers, node)}" if node.shape else ""
        lines.append(f"%{len(numbers)} = {node.op.name}({inside}) : {node.dtype.name}{shape}")
        numbers[node] = len(numbers)
    lines.append(f"return {', '.join(f'%{numbers[root]}' for root in roots)}")
    return "\n".join(lines) + "\n"


def buffers_in(*roots: Node) -> list[object]:
    """The objects behind @0, @1 ... in the text of the same roots."""
    return list(dict.fromkeys(node.arg for node in ordered(*roots) if node.op is ops.BUFFER))


def ordered(*roots: Node) -> list[Node]:
    """Every node below the roots, those in arguments too (symbolic sizes), each after what it needs."""
    order: list[Node] = []
    done: set[Node] = set()
    stack = list(reversed(roots))
    while stack:
        node = stack[-1]
        waiting = [s for s in (*node.src, *_nodes_in(node.arg)) if s not in done] if node not in done else []
        if waiting:
            stack.extend(reversed(waiting))
            continue
        if stack.pop() not in done:
            done.add(node)
            order.append(node)
    return order


def _nodes_in(value) -> list[Node]:
    if isinstance(value, Node):
        return [value]
    return [n for item in value for n in _nodes_in(item)] if isinstance(value, tuple) else []


def _print_value(value, numbers: dict[Node, int], node: Node) -> str:
    if isinstance(value, Node):
        return f"%{numbers[value]}" if value in numbers else "?"             # unknown only in a comment
    if isinstance(value, (Op, DType)):
        return value.name
    if isinstance(value, tuple):
        inside = ", ".join(_print_value(item, numbers, node) for item in value)
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    raise TypeError(f"print_graph: {node.op.name} has an argument of type {type(value).__name__}, which "
                    "has no text form; numbers, strings, tuples, operations, types and nodes have one")


# -- from text --------------------------------------------------------------------------------------
class TextError(ValueError):
    """Text that is no graph: the message gives the line, what was found and what was expected."""


_LINE = re.compile(r"%(\d+) = ([A-Z0-9_]+)\((.*)\) : (\w+)")
_TOKEN = re.compile(r"""\s*(?:(%\d+)|(@\d+)|('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
                    r"""|(-?(?:inf|nan|\d[\w.]*(?:(?<=e)[+-]\d+)?))|([A-Za-z_]\w*)|([(),;]))""")


def parse_graph(text: str, buffers: Sequence = ()) -> list[Node]:
    """The roots that `print_graph` was given: the same objects, if they are still alive.

    buffers: the objects for @0, @1 ...; where one is missing, a PARAM of that slot stands for it, with the
    shape in the comment. Raises TextError.
    """
    nodes: list[Node] = []
    for number, line in enumerate(text.splitlines(), 1):
        code, _, comment = line.partition("    # ")
        if not code.strip():
            continue
        if code.startswith("return "):
            return [_reference(word.strip(), nodes, number) for word in code[7:].split(",")]
        match = _LINE.fullmatch(code.strip())
        if match is None:
            raise TextError(f"line {number}: %number = OPERATION(...) : type expected, not {line!r}")
        if int(match[1]) != len(nodes):
            raise TextError(f"line {number}: %{len(nodes)} expected, not %{match[1]}")
        nodes.append(_parse_node(match, nodes, buffers, comment, number))
    raise TextError("the last line must be: return %number")


def _parse_node(match: re.Match, nodes: list[Node], buffers: Sequence, comment: str, number: int) -> Node:
    row, dtype = ops.TABLE.get(match[2]), _TYPES.get(match[4])
    if row is None or dtype is None:
        what, name = ("operation", match[2]) if row is None else ("type", match[4])
        raise TextError(f"line {number}: there is no {what} {name}")
    values = _Values(match[3], nodes, number)
    if row is ops.BUFFER:
        slot = values.buffer()
        if slot < len(buffers):
            return Node(row, dtype, (), buffers[slot])
        shape = _Values(comment or "()", nodes, number).value()
        return Node(ops.PARAM, dtype, (), (slot, shape, None))
    src, arg = values.operands_and_argument(row)
    try:
        node = Node(row, dtype, src, arg)
    except (TypeError, ValueError) as error:
        raise TextError(f"line {number}: {error}") from None
    if node.dtype is not dtype:
        raise TextError(f"line {number}: {row.name} of these operands is {node.dtype.name}, not {dtype.name}")
    return node


def _reference(word: str, nodes: list[Node], number: int) -> Node:
    if not re.fullmatch(r"%\d+", word) or int(word[1:]) >= len(nodes):
        raise TextError(f"line {number}: {word!r} is no node above")
    return nodes[int(word[1:])]


class _Values:
    """Reads what stands between the brackets of one line, token by token."""

    def __init__(self, text: str, nodes: list[Node], number: int):
        self.nodes, self.number = nodes, number
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise TextError(f"line {number}: cannot read {text[at:]!r}")
            kind = ("node", "buffer", "string", "number", "name", "mark")[match.lastindex - 1]
            self.tokens.append((kind, match[match.lastindex]))
            at = match.end()
        self.tokens.append(("end", "the end"))
        self.at = 0

    def next(self, mark: str | None = None) -> tuple[str, str]:
        token = self.tokens[self.at]
        if mark is not None and token[1] != mark:
            raise TextError(f"line {self.number}: {mark!r} expected, not {token[1]!r}")
        self.at += 1
        return token

    def is_next(self, mark: str) -> bool:
        return self.tokens[self.at] == ("mark", mark)

    def buffer(self) -> int:
        kind, text = self.next()
        if kind != "buffer":
            raise TextError(f"line {self.number}: @number expected, not {text!r}")
        return int(text[1:])

    def operands_and_argument(self, row: Op) -> tuple[tuple[Node, ...], object]:
        """Operands up to a semicolon, and the value after it; a row without operands has its value first."""
        src: list[Node] = []
        has_operands = self.tokens[self.at][0] == "node" and row.operands != 0
        while has_operands and not self.is_next(";"):
            src.append(_reference(self.next()[1], self.nodes, self.number))
            if self.tokens[self.at][0] == "end":
                return tuple(src), None
            if not self.is_next(";"):
                self.next(",")
        if src:
            self.next(";")
        arg = None if self.tokens[self.at][0] == "end" else self.value()
        self.next("the end")
        return tuple(src), arg

    def value(self):
        kind, text = self.next()
        if kind == "node":
            return _reference(text, self.nodes, self.number)
        if kind == "string":
            return ast.literal_eval(text)
        if kind == "number":
            return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
        if text == "(":
            return self._tuple()
        constants = {"None": None, "True": True, "False": False, "inf": math.inf, "nan": math.nan}
        for table in (constants, ops.TABLE, _TYPES):
            if text in table:
                return table[text]
        raise TextError(f"line {self.number}: a value expected, not {text!r}")

    def _tuple(self) -> tuple:
        items = []
        while not self.is_next(")"):
            items.append(self.value())
            if not self.is_next(")"):
                self.next(",")
        self.next(")")
        return tuple(items)
