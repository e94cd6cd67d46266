"""Run a plan's kernels under any schedules on the real CPU device, and what numpy says of the same graph."""
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from tests import evaluate
from tests.numpy_alu import HELD
from tiny.hcq import device as devices
from tiny.ir import ops
from tiny.ir.dtype import DType
from tiny.ir.integer import bindings, substitute
from tiny.ir.integer import evaluate as number
from tiny.ir.node import Node, toposort
from tiny.ir.text import print_graph
from tiny.ir.verify import verify_instructions
from tiny.realize.prepare import pointer_types, variables_in
from tiny.render import dialects
from tiny.render.decompose import decompose
from tiny.render.lower import lower
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import Schedule, ScheduleError, check
from tiny.schedule.plan import make_plan
from tiny.schedule.steps import ARENA, INPUT, Place, Plan, bytes_of
from tiny.schedule.text import plan_text
from tiny.toolchain import Source

Choose = Callable[[Kernel], tuple[Kernel, Schedule]]
Build = Callable[[Sequence[Source]], list[bytes]]
_names = itertools.count()
RUBBISH = b"\xa5"                                           # what memory holds that was not written yet
GUARD = 256                                                 # bytes around results that nobody may write


def leaf(array: np.ndarray, dtype: DType) -> Node:
    """A leaf of a graph that holds the array."""
    held = np.ascontiguousarray(array, HELD[dtype])
    return evaluate.buffer_from_host(held.reshape(-1).view(np.uint8), dtype, held.shape, "CPU")


def planned(*roots: Node, max_inputs: int = 64) -> tuple[Plan, list[Node]]:
    """The plan of a graph and its leaves, numbered as the plan's inputs. Every leaf may be overwritten."""
    order = toposort(*roots)
    leaves = [node for node in order if node.op is ops.BUFFER]
    return make_plan(list(roots), order, dict.fromkeys(leaves, True), max_inputs), leaves


def source_of(name: str, kernel: Kernel, schedule: Schedule, pointers: int, dialect: str = "c") -> tuple:
    """(C source, the VARIABLEs it takes, how many groups, work-items of one) of a kernel under a schedule."""
    check(kernel, schedule)
    lowered = lower(kernel, schedule, decompose)
    verify_instructions(lowered.instructions)
    variables = sorted(variables_in(lowered.instructions, lowered.groups), key=lambda v: v.arg)
    speaks = dialects.named(dialect)
    text = speaks.render(name, lowered.instructions, pointer_types(kernel, pointers), variables,
                         lowered.threads)
    return Source(name, text, speaks.prelude), variables, lowered.groups, lowered.threads


def run_plan(plan: Plan, leaves: Sequence[Node], roots: Sequence[Node], choose: Choose,
             build: Build | None = None, device: devices.Device | None = None) -> list[np.ndarray]:
    """The values of the roots, each kernel scheduled by `choose`. Memory outside results stays untouched.

    device: runs them, the CPU if none is given; build: makes objects of sources in its place.
    """
    device = device or devices.open("CPU")
    values: dict[Node, int] = {}
    for node in toposort(*roots):
        for part in (node.arg if isinstance(node.arg, tuple) else (node.arg,)):
            for piece in part if isinstance(part, tuple) else (part,):
                values.update(bindings(piece) if isinstance(piece, Node) else {})
    made = []
    for step in plan.steps:
        kernel, schedule = choose(step.kernel)
        made.append(source_of(f"kernel{next(_names)}", kernel, schedule, len(step.places),
                              device.target.dialect))
    objects = (build or device.compile)([source for source, *_ in made])
    memory: dict[Place, tuple] = {Place(INPUT, n): _guarded(device, node.arg.array().tobytes())
                                  for n, node in enumerate(leaves)}
    arena = device.allocate(plan.arena_size + 1)
    arena.copyin(RUBBISH * (plan.arena_size + 1))
    queue = device.queue()
    for step, (source, variables, groups, threads), code in zip(plan.steps, made, objects, strict=True):
        addresses = []
        for place in step.places:
            if place.kind == ARENA:
                addresses.append(arena.address + place.number)
                continue
            if place not in memory:
                root = roots[place.number]
                memory[place] = _guarded(device, RUBBISH * bytes_of(root.shape, root.dtype))
            addresses.append(memory[place][0].address + GUARD)
        count = number(substitute(groups, values))
        program = device.load(code, source.name, *(() if threads == 1 else (threads,)))
        queue.execute(program, [*addresses, *(values[v] for v in variables)], count)
    device.synchronize(queue.finish().submit([]))
    for buffer, size in memory.values():
        view = buffer.host()
        assert not any(view[:GUARD]) and not any(view[GUARD + size:size + 2 * GUARD]), "written outside"
    return [_result(root, place, memory) for root, place in zip(roots, plan.results, strict=True)]


def _guarded(device, data: bytes) -> tuple:
    buffer = device.allocate(len(data) + 2 * GUARD)
    buffer.copyin(bytes(GUARD) + data + bytes(GUARD))
    return buffer, len(data)


def _result(root: Node, place: Place, memory: dict) -> np.ndarray:
    shape = tuple(number(size) for size in root.shape)
    if 0 in shape:
        return np.zeros(shape, HELD[root.dtype])
    buffer, _ = memory[place]
    data = np.frombuffer(buffer.host(), HELD[root.dtype], offset=GUARD, count=int(np.prod(shape)))
    return data.reshape(shape).copy()


def compare(roots: Sequence[Node], choose: Choose, rtol: float = 0.0, build: Build | None = None,
            device: devices.Device | None = None) -> None:
    """Every root under the schedules has numpy's value; rtol 0 means equal."""
    plan, leaves = planned(*roots)
    chosen: list[tuple[str, Kernel, Schedule]] = []

    def choose_and_note(kernel: Kernel) -> tuple[Kernel, Schedule]:
        chosen.append(("", *choose(kernel)))
        return chosen[-1][1:]
    try:
        results = run_plan(plan, leaves, roots, choose_and_note, build, device)
        for got, expected in zip(results, evaluate.evaluate(*roots), strict=True):
            np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol)
    except ScheduleError:
        raise
    except Exception as error:
        if len(chosen) == len(plan.steps):
            error.add_note(plan_text(plan, chosen))
        error.add_note(print_graph(*roots))
        raise
