"""Plans of tensors, and their kernels as source for a target that does not depend on the machine."""
from tiny import Tensor
from tiny.ir import ops
from tiny.ir.node import Node, toposort
from tiny.realize.prepare import prepare
from tiny.realize.program import Rendered
from tiny.schedule.plan import make_plan
from tiny.schedule.steps import Plan
from tiny.target import Target

TARGET = Target("CPU", "x86_64", "c", lanes=64, threads=8, features=frozenset(("avx512f", "fma")))


def plan_of(*tensors: Tensor | Node, max_inputs: int = 64) -> Plan:
    """The plan that computes tensors, all of whose leaves may be overwritten."""
    roots = [tensor.node if isinstance(tensor, Tensor) else tensor for tensor in tensors]
    order = toposort(*roots)
    return make_plan(roots, order, {node: True for node in order if node.op is ops.BUFFER}, max_inputs)


def prepared(plan: Plan, target: Target = TARGET) -> list[Rendered]:
    """What the compiler would be given for each of a plan's kernels."""
    return [prepare(step.kernel, len(step.places), target) for step in plan.steps]


def held(*shape, dtype=None) -> Tensor:
    """A tensor in memory, of whatever values."""
    return Tensor.empty(*shape, dtype=dtype) if dtype is not None else Tensor.empty(*shape)
