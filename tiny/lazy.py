"""Modules that are loaded when they are first used, so that `import tiny` costs little more than numpy.

    planning = Lazy("tiny.schedule.plan")
    planning.make_plan(...)              # loaded here, the first time

For the way from a plan to programs, which a process may never take, and for layers and file formats.
"""
import importlib
from types import ModuleType


class Lazy:
    """Stands for the module of that name; its attributes are the module's."""
    __slots__ = ("_module", "_name")

    def __init__(self, name: str):
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str):
        module = self._module
        if module is None:
            module = self._module = importlib.import_module(self._name)
        return getattr(module, attribute)
