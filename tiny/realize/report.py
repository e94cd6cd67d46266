"""What DEBUG shows of plans and kernels, on standard error."""
import sys
from collections.abc import Sequence

from tiny import config
from tiny.ir.integer import bounds, prod
from tiny.ir.node import Node, toposort
from tiny.realize.counters import GlobalCounters
from tiny.schedule.plan import Plan, Step


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def planned(plan: Plan, compiled: Sequence, order: Sequence[Node]) -> None:
    """A new plan: one line from level 1, its graph from level 5."""
    level = config.current().debug
    if level >= 1:
        _say(f"plan: {len(plan.steps)} kernels, {len(plan.results)} results, arena {plan.arena_size} bytes")
    if level >= 5:
        for number, node in enumerate(order):
            _say(f"  %{number} {node!r} {node.shape}")
    if level >= 4:
        for one in dict.fromkeys(compiled):
            _say(one.source)


def ran(step: Step, one, seconds: float, operations: int) -> None:
    """A kernel that ran by itself: name, time, rates."""
    loads = {node.src[0].arg: node for node in toposort(step.kernel.value) if node.op.name == "LOAD"}
    memory = sum(bounds(prod(node.shape))[1] * node.dtype.itemsize for node in loads.values())
    points = bounds(prod(axis.src[0] for axis in step.kernel.axes))[1]
    memory += points * step.kernel.dtype.itemsize
    GlobalCounters.global_ops += operations
    GlobalCounters.global_mem += memory
    GlobalCounters.time_sum_s += seconds
    _say(f"{one.name:40} {seconds * 1e6:10.1f} us  {operations / seconds / 1e9:8.2f} GFLOP/s")
