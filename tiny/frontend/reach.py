"""Which tensors a function can reach besides its arguments: through what it closes over, globals it names,
defaults, and attributes and items of all these.
"""
import types
from collections.abc import Callable, Iterable, Iterator

from tiny.frontend.core import Core

MOST_OBJECTS = 20_000                                       # looked at; beyond, nothing more is found


def tensors_reached(function: Callable, others: Iterable = ()) -> Iterator[Core]:
    """The tensors, each once; others: objects the function is given, such as the instance of a method."""
    stack = [function, *others]
    seen: set[int] = set()
    while stack and len(seen) < MOST_OBJECTS:
        one = stack.pop()
        if id(one) in seen or isinstance(one, (str, bytes, int, float, type, types.ModuleType)):
            continue
        seen.add(id(one))
        if isinstance(one, Core):
            yield one
        else:
            stack.extend(_parts(one))


def _parts(one) -> Iterable:
    if isinstance(one, dict):
        return one.values()
    if isinstance(one, (list, tuple, set, frozenset)):
        return one
    if isinstance(one, types.MethodType):
        return one.__self__, one.__func__
    if isinstance(one, types.FunctionType):
        cells = [cell.cell_contents for cell in one.__closure__ or () if _is_filled(cell)]
        named = [one.__globals__[name] for name in _names(one.__code__) if name in one.__globals__]
        return [*cells, *named, *(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values()]
    return vars(one).values() if hasattr(one, "__dict__") else ()


def _is_filled(cell) -> bool:
    try:
        cell.cell_contents                                  # noqa: B018
    except ValueError:
        return False
    return True


def _names(code: types.CodeType) -> set[str]:
    """Names that the code, and functions defined in it, may look up as globals."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names
