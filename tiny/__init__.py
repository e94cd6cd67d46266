"""tiny: a deep-learning stack in plain Python that drives GPUs, and the CPU, through their command queues.

    from tiny import Tensor
    (Tensor([[1.0, 2.0]]) @ Tensor([[3.0], [4.0]])).tolist()

Start reading at docs/README.md.
"""
import sys

from tiny.config import Context, getenv
from tiny.devices import Device
from tiny.frontend import hints
from tiny.frontend.jit import TinyJit
from tiny.frontend.tensor import Tensor
from tiny.ir.dtype import dtypes
from tiny.ir.node import Variable
from tiny.lazy import Lazy
from tiny.realize import GlobalCounters

nn = Lazy("tiny.nn")

__version__ = "0.1.0"
__all__ = ["Context", "Device", "GlobalCounters", "Tensor", "TinyJit", "Variable", "dtypes", "getenv",
           "nn"]


def __getattr__(name: str):
    raise hints.missing("module 'tiny'", name, hints.PACKAGE, sys.modules[__name__])
