"""A graph's plan, made once for each structure, and its submission with the memory of this graph."""
import contextlib
import gc
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tiny import config
from tiny.hcq import device as devices
from tiny.hcq import events
from tiny.hcq.memory import Buffer
from tiny.hcq.queue import Slot, Template
from tiny.ir import ops
from tiny.ir.integer import bindings, compile_function, evaluate, substitute
from tiny.ir.node import Node
from tiny.lazy import Lazy
from tiny.realize import kept, observe
from tiny.realize.counters import GlobalCounters
from tiny.realize.program import Compiled, compile_kernels
from tiny.realize.storage import Storage, allocate, buffer_node
from tiny.schedule.steps import ARENA, INPUT, OUTPUT, Place, Plan, bytes_of, structure

planning = Lazy("tiny.schedule.plan")                      # not where the plan is known from the disk
report = Lazy("tiny.realize.report")                       # only where DEBUG asks for it
verification = Lazy("tiny.ir.verify")                      # only in checked mode


@dataclass(slots=True)
class Prepared:
    """A plan with its programs, and the template recorded from them.

    The template's slots are: input addresses, output addresses, the arena's, then the variables, then the
    group counts that depend on them.
    """
    plan: Plan
    compiled: list[Compiled]
    inputs: int
    outputs: list[int]                                       # roots that get memory of their own
    written: list[int]                                       # inputs that are overwritten
    group_counts: list                                       # symbolic group counts, in slot order
    count_groups: object                                     # their function of the variables
    template: Template | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class Run:
    """One submission: the plan, the memory of each place, and the variables' values. Kept by a capture."""
    prepared: Prepared
    device: str
    inputs: tuple[Storage, ...]
    outputs: tuple[Storage, ...]
    variables: dict[Node, int]
    results: tuple[Node, ...]


UNREAD = "before it was read; this is a fault of tiny, please report it"
_plans: dict[tuple, Prepared] = {}
_arenas: dict[str, Buffer] = {}


def prepare(
    roots: list[Node], order: list[Node], leaves: list[Node], device: str, writable: dict[Node, bool]
) -> Prepared:
    """The plan of a graph of this structure, from the cache or made now with all its programs."""
    opened = devices.open(device)
    index = {node: number for number, node in enumerate(order)}
    key = (
        structure(order),
        tuple(index[root] for root in roots),
        tuple(writable[leaf] for leaf in leaves),
        device,
        _most_inputs(opened),
        config.current().noopt,
        config.current().beam,
    )
    prepared = _plans.get(key)
    if prepared is None:
        if config.current().check:
            verification.verify(roots, verification.TENSOR)
        plan, compiled = _planned(key, roots, order, writable, opened)
        outputs = sorted(
            {step.places[0].number for step in plan.steps if step.places[0].kind == OUTPUT}
            | {place.number for place in plan.results if place.kind == OUTPUT}
        )
        written = sorted({step.places[0].number for step in plan.steps if step.places[0].kind == INPUT})
        symbolic = [one.rendered.groups for one in compiled if isinstance(one.rendered.groups, Node)]
        count_groups = compile_function(symbolic, plan.variables)
        prepared = Prepared(plan, compiled, len(leaves), outputs, written, symbolic, count_groups)
        prepared = _plans.setdefault(key, prepared)
        if config.current().debug:
            report.planned(prepared.plan, prepared.compiled, roots, opened)
    return prepared


def _planned(key: tuple, roots: list[Node], order: list[Node], writable: dict[Node, bool],
             device: devices.Device) -> tuple[Plan, list[Compiled]]:
    """A plan and its programs: the plan from the disk, or made and kept there."""
    start = time.monotonic_ns()
    place = kept.place_of(key, device.target)
    found = kept.load(place) if place else None
    with collector_paused():
        plan, known = found or (planning.make_plan(roots, order, writable, _most_inputs(device)), ())
        if events.listeners:
            observe.took(f"plan {len(plan.steps)} kernels", "plan", start, nodes=len(order))
        kernels = [(step.kernel, len(step.places)) for step in plan.steps]
        compiled = compile_kernels(kernels, device.name, dict(zip(kernels, known, strict=False)))
    if place and found is None and time.monotonic_ns() - start > 1e9 * kept.WORTH_KEEPING_S:
        kept.keep(place, plan, [one.rendered for one in compiled])
    return plan, compiled


def _most_inputs(device: devices.Device) -> int:
    return max(device.target.max_buffers - 1, 1)


@contextlib.contextmanager
def collector_paused():
    """No search for reference cycles meanwhile: planning makes much and no cycles, and each search would walk
    the whole graph again, up to half of the time where there are 100,000 nodes.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def record(prepared: Prepared, queue, argument, group_slot) -> None:
    """Record a plan's kernels. argument(place) and group_slot(number)
    give addresses and counts, or Slots for them.
    """
    number = 0
    for step, one in zip(prepared.plan.steps, prepared.compiled, strict=True):
        groups = one.rendered.groups
        if isinstance(groups, Node):
            groups = group_slot(number)
            number += 1
        variables = [argument(variable) for variable in one.rendered.variables]
        observe.execute(queue, one, [*map(argument, step.places), *variables], groups)


def _template(prepared: Prepared, device: str) -> Template:
    plan = prepared.plan
    first_output = prepared.inputs
    arena = first_output + len(prepared.outputs)
    first_variable = arena + 1
    first_group = first_variable + len(plan.variables)
    output = {number: first_output + n for n, number in enumerate(prepared.outputs)}
    variable = {node: first_variable + n for n, node in enumerate(plan.variables)}

    def argument(place: Place | Node) -> Slot:
        if isinstance(place, Node):
            return Slot(variable[place])
        if place.kind == ARENA:
            return Slot(arena, place.number)
        return Slot(place.number if place.kind == INPUT else output[place.number])

    queue = observe.queue(devices.open(device))
    record(prepared, queue, argument, lambda number: Slot(first_group + number))
    return queue.finish()


def arena(device: str, size: int) -> Buffer:
    """The memory that plans of a device use in turn for what they hold only for a while."""
    held = _arenas.get(device)
    if held is None or held.size < size:
        held = _arenas[device] = allocate(device, size)
    return held


def execute(roots: list[Node], order: list[Node], device: str, writable: dict[Node, bool]) -> Run:
    """Compute the roots, which are distinct and not in memory; returns before the device has finished.

    order: toposort(*roots). Written storages are marked lost; results stand for their new versions.
    """
    start = time.monotonic_ns()
    leaves = [node for node in order if node.op is ops.BUFFER]
    for leaf in leaves:
        if leaf.arg.lost:
            raise RuntimeError(f"{leaf.arg} was overwritten {leaf.arg.failure or UNREAD}")
    prepared = prepare(roots, order, leaves, device, {leaf: writable.get(leaf, False) for leaf in leaves})
    plan = prepared.plan
    values = bound_values(order) if plan.variables else {}
    outputs = {number: _output(device, roots[number]) for number in prepared.outputs}
    inputs = tuple(leaf.arg for leaf in leaves)
    results = tuple(_result(*one, inputs, outputs) for one in zip(plan.results, roots, strict=True))
    for number in prepared.written:
        inputs[number].lost = True
    run = Run(prepared, device, inputs, tuple(outputs.values()), values, results)
    try:
        submit(run)
    except Exception as error:
        for number in prepared.written:
            inputs[number].failure = f"by a computation that failed: {error}"
        raise
    if events.listeners:
        observe.took("realize", "realize", start, kernels=len(plan.steps))
    return run


def _output(device: str, root: Node) -> Storage:
    """Memory for a result; a symbolic size gets its upper bound, so that it may grow later."""
    return Storage(device, root.dtype, root.shape, allocate(device, bytes_of(root.shape, root.dtype)))


def _result(place: Place, root: Node, inputs: tuple[Storage, ...], outputs: dict[int, Storage]) -> Node:
    if place.kind == OUTPUT:
        return buffer_node(outputs[place.number])
    old = inputs[place.number]
    return buffer_node(Storage(old.device, old.dtype, root.shape, old.buffer))


def submit(run: Run) -> None:
    """Hand a plan's kernels to the device in one submission; one at a time and timed where DEBUG asks for it.
    """
    prepared, plan = run.prepared, run.prepared.plan
    GlobalCounters.kernel_count += len(plan.steps)
    if not plan.steps:
        return
    variables = [run.variables[node] for node in plan.variables]
    values = [storage.buffer.address for storage in (*run.inputs, *run.outputs)]
    with prepared.lock:
        held = arena(run.device, plan.arena_size)
        values += [held.address, *variables, *prepared.count_groups(*variables)]
        if config.current().debug >= 2:
            _submit_each(run, held)
            return
        template = prepared.template
        if template is None or template.timed != observe.profiling():
            template = prepared.template = _template(prepared, run.device)
        about = (run.variables,) if template.timed else ()
        template.submit(values[: template.slot_count], *about)  # the last slots may be unused
        GlobalCounters.submission_count += 1


def _submit_each(run: Run, held: Buffer) -> None:
    """Each kernel by itself."""
    output = dict(zip(run.prepared.outputs, run.outputs, strict=True))

    def address(place: Place) -> int:
        if place.kind == ARENA:
            return held.address + place.number
        return (run.inputs if place.kind == INPUT else output)[place.number].buffer.address

    for step, one in zip(run.prepared.plan.steps, run.prepared.compiled, strict=True):
        arguments = [*map(address, step.places), *(run.variables[v] for v in one.rendered.variables)]
        groups = evaluate(substitute(one.rendered.groups, run.variables))
        submit_one(run.device, one, arguments, groups, run.variables)


def submit_one(name: str, one: Compiled, arguments: list[int], groups: int, values: dict) -> None:
    """A kernel as a submission of its own; with DEBUG=2 waited for and reported with its time."""
    device = devices.open(name)
    queue = observe.queue(device)
    observe.execute(queue, one, arguments, groups)
    template = queue.finish()
    GlobalCounters.submission_count += 1
    about = (values,) if template.timed else ()
    if config.current().debug < 2:
        template.submit([], *about)
        return
    device.synchronize()
    start = time.perf_counter()
    device.synchronize(template.submit([], *about))
    report.ran(one, time.perf_counter() - start, values)
    report.submitted(template)


def bound_values(order: Sequence[Node]) -> dict[Node, int]:
    """{VARIABLE: value} of all BINDs in a graph; ValueError when one variable has two values."""
    found: dict[Node, int] = {}
    for node in order:
        if node.op is ops.BIND:
            parts = [node]
        elif node.op.level == ops.TENSOR:
            parts = _symbolic_parts(node.shape if node.op is ops.BUFFER else node.arg)
        else:
            continue
        for part in parts:
            for variable, value in bindings(part).items():
                if found.setdefault(variable, value) != value:
                    raise ValueError(
                        f"Variable {variable.arg[0]} is bound to {found[variable]} and to {value} in one "
                        "computation; realize in between, or use two variables"
                    )
    return found


def _symbolic_parts(arg) -> list[Node]:
    if isinstance(arg, Node):
        return [arg]
    return [part for inner in arg for part in _symbolic_parts(inner)] if isinstance(arg, tuple) else []
