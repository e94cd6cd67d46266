"""The languages kernels can be written in. A device's Target names its dialect; a new device may bring
one."""
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tiny.ir.dtype import DType
from tiny.ir.node import Node
from tiny.render import c


@dataclass(frozen=True, slots=True)
class Dialect:
    """How flat instructions become source text.

    render(name, instructions, element type of each POINTER, VARIABLEs passed behind them) -> source of one
    kernel prelude: what all kernels of a compilation share
    """
    name: str
    render: Callable[[str, Sequence[Node], Sequence[DType], Sequence[Node]], str]
    prelude: str = ""


_dialects: dict[str, Dialect] = {}


def register(dialect: Dialect) -> None:
    """Make a dialect known by its name."""
    _dialects[dialect.name] = dialect


def named(name: str) -> Dialect:
    """The dialect of that name; ValueError that lists those there are."""
    if name not in _dialects:
        raise ValueError(
            f"dialect {name!r} is not known, there are {', '.join(_dialects)}; register it first"
        )
    return _dialects[name]


register(Dialect("c", c.render, c.PRELUDE))
