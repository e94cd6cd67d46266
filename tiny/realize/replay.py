"""Submit again, as one, what a capture recorded.

    replay = Replay(capture, fresh)          # fresh: storages with new memory on each replay, the results
    buffers = replay(buffers_of_inputs, {variable: value})

A replay is one command template, one doorbell: arguments, fresh results, random keys and variables are
patched, everything else has fixed addresses.
"""
import time
from collections.abc import Sequence

from tiny import config
from tiny.hcq import device as devices
from tiny.hcq import events
from tiny.hcq.memory import Buffer
from tiny.hcq.queue import Slot, Template
from tiny.ir.integer import compile_function
from tiny.ir.node import Node
from tiny.realize import observe
from tiny.realize.capture import Capture, GraphException
from tiny.realize.counters import GlobalCounters
from tiny.realize.execute import Run, submit_one
from tiny.realize.storage import Storage, allocate
from tiny.schedule.steps import ARENA, INPUT, Place


class Replay:
    """Recorded submissions as one template.

    fixed           ids of buffers that every replay uses      fixed_written  of those that it overwrites
    written_inputs  numbers of the arguments it overwrites
    """

    def __init__(self, capture: Capture, fresh: Sequence[Storage]):
        runs = capture.runs
        devices_used = dict.fromkeys(run.device for run in runs)
        if len(devices_used) > 1:
            raise GraphException(
                f"a captured function uses several devices, {', '.join(devices_used)}; capture one for each"
            )
        self.device = next(iter(devices_used), None)
        self.variables = tuple(dict.fromkeys(v for run in runs for v in run.prepared.plan.variables))
        self._captured_values = {v: value for run in runs for v, value in run.variables.items()}
        self._sizes = [max(storage.buffer.size, 1) for storage in fresh]
        self._refills = [(storage.refill, storage.nbytes) for storage in capture.refilled]
        self._slots: dict[int, int] = {}  # id of a buffer -> slot
        for storage in (*capture.refilled, *fresh, *capture.inputs):
            self._slots.setdefault(id(storage.buffer), len(self._slots))
        self._patched = [self._slots[id(storage.buffer)]
                         for storage in (*capture.refilled, *fresh, *capture.inputs)]
        counts = [count for run in runs for count in run.prepared.group_counts]
        self._count_groups = compile_function(counts, self.variables)
        self._sort_buffers(runs, capture.inputs)
        if runs:
            self._arena = allocate(self.device, max(run.prepared.plan.arena_size for run in runs))
        self._commands = self._flatten(runs)
        self._template = self._record()

    def _sort_buffers(self, runs: list[Run], inputs: list[Storage]) -> None:
        written = {id(run.inputs[step.places[0].number].buffer) for run in runs
                   for step in run.prepared.plan.steps if step.places[0].kind == INPUT}
        written.update(id(storage.buffer) for run in runs for storage in run.outputs)
        storages = [storage for run in runs for storage in (*run.inputs, *run.outputs)]
        buffers = {id(storage.buffer): storage.buffer for storage in storages}
        self._kept = [buffer for key, buffer in buffers.items() if key not in self._slots]
        self.fixed = buffers.keys() - self._slots.keys()
        self.fixed_written = self.fixed & written
        self.written_inputs = [n for n, storage in enumerate(inputs) if id(storage.buffer) in written]

    def _flatten(self, runs: list[Run]) -> list[tuple]:
        """(what to run, its arguments, groups) of every kernel; arguments and groups are numbers or Slots."""
        commands: list[tuple] = []
        first_variable = len(self._slots)
        group = first_variable + len(self.variables)
        variable = {node: Slot(first_variable + number) for number, node in enumerate(self.variables)}
        for run in runs:
            outputs = dict(zip(run.prepared.outputs, run.outputs, strict=True))

            def argument(place: Place, run: Run = run, outputs: dict = outputs) -> int | Slot:
                if place.kind == ARENA:
                    return self._arena.address + place.number
                buffer = (run.inputs if place.kind == INPUT else outputs)[place.number].buffer
                number = self._slots.get(id(buffer))
                return buffer.address if number is None else Slot(number)

            for step, one in zip(run.prepared.plan.steps, run.prepared.compiled, strict=True):
                groups = one.rendered.groups
                if isinstance(groups, Node):
                    groups, group = Slot(group), group + 1
                arguments = [*map(argument, step.places), *(variable[v] for v in one.rendered.variables)]
                commands.append((one, arguments, groups))
        return commands

    def _record(self) -> Template | None:
        if not self._commands:
            return None
        queue = observe.queue(devices.open(self.device))
        for one, arguments, groups in self._commands:
            observe.execute(queue, one, arguments, groups)
        return queue.finish()

    def __call__(self, inputs: Sequence[Buffer], values: dict[Node, int]) -> list[Buffer]:
        """Submit again with other arguments and variables;
        returns the memory of the fresh storages, in their order.
        """
        start = time.monotonic_ns() if events.listeners else 0
        made = [allocate(self.device, size) for size in self._sizes]
        if self._template is None:
            return made
        keys = [allocate(self.device, nbytes).initialize(refill()) for refill, nbytes in self._refills]
        slots = [0] * len(self._slots)
        for number, buffer in zip(self._patched, (*keys, *made, *inputs), strict=True):
            slots[number] = buffer.address
        variables = ()
        if self.variables:
            variables = [values.get(node, self._captured_values[node]) for node in self.variables]
            slots += [*variables, *self._count_groups(*variables)]
        GlobalCounters.kernel_count += len(self._commands)
        settings = config.current()
        if settings.jit == 2 or settings.debug >= 2:
            self._submit_each(slots)
            return made
        template = self._template
        if template.timed != bool(settings.profile):
            template = self._template = self._record()
        about = (dict(zip(self.variables, variables, strict=True)),) if template.timed else ()
        template.submit(slots[:template.slot_count], *about)
        GlobalCounters.submission_count += 1
        if events.listeners:
            observe.took("replay", "replay", start or time.monotonic_ns(), kernels=len(self._commands))
        return made

    def _submit_each(self, slots: list[int]) -> None:
        """Each kernel as a submission of its own, shown with its time if DEBUG asks for it."""
        variables = dict(zip(self.variables, slots[len(self._slots):], strict=False))
        for one, arguments, groups in self._commands:
            filled = [slots[a.number] + a.offset if isinstance(a, Slot) else a for a in arguments]
            count = slots[groups.number] if isinstance(groups, Slot) else groups
            submit_one(self.device, one, filled, count, variables)
