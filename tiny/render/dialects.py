"""The languages kernels can be written in. A device's Target names its dialect;
a new device may bring one."""
from collections.abc import Callable
from dataclasses import dataclass

from tiny.render import amdgcn, c, c_prelude


@dataclass(frozen=True, slots=True)
class Dialect:
    """How flat instructions become source text.

    render(name, instructions, element type of each POINTER, VARIABLEs passed behind them) -> source of one
    kernel; where groups have work-items, their number comes last
    prelude: what all kernels of a compilation share
    """
    name: str
    render: Callable[..., str]
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


register(Dialect("c", c.render, c_prelude.PRELUDE))
register(Dialect("amdgcn", amdgcn.render, amdgcn.PRELUDE))
