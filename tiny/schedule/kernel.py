"""What one kernel computes, before anything is decided about loops."""
from dataclasses import dataclass

from tiny.ir.dtype import DType
from tiny.ir.integer import Integer
from tiny.ir.node import Node
from tiny.ir.ops import Op


@dataclass(frozen=True, slots=True)
class Kernel:
    """For every point of `axes`, store `value` at element `index` of the destination, which is POINTER 0.

    axes         RANGEs of the result, outermost first; ACCUMULATE inside `value` brings further ones
    value        scalar Node over RANGE, VARIABLE, LOAD and arithmetic, of the destination's dtype
    index        element of the destination to write
    gate         bool Node: write only where it is true; None writes always
    sequential   the one axis whose points must be visited in order, or None
    combine      with `sequential`: how the new value meets what came before. None replaces it.
    carried      True: what came before is the last value along `sequential` (a running reduction);
                 False: it is what the destination holds (scattered updates)
    """
    axes: tuple[Node, ...]
    value: Node
    index: Integer
    dtype: DType
    gate: Node | None = None
    sequential: Node | None = None
    combine: Op | None = None
    carried: bool = False
