"""Capture what a function submits, and submit it again as one: the ground that TinyJit stands on.

    with recording(inputs) as capture:       # inputs: the storages of the function's tensor arguments
        ...                                  # whatever is realized here is recorded
    replay = Replay(capture, fresh)          # fresh: storages with new memory on each replay, the results
    buffers = replay(buffers_of_inputs, {variable: value})

A replay is one command template, one doorbell: arguments, fresh results, random keys and variables are
patched, everything else has fixed addresses.
"""
import contextlib
import threading
from collections.abc import Iterable, Iterator, Sequence

from tiny import config
from tiny.hcq import device as devices
from tiny.hcq.memory import Buffer
from tiny.hcq.queue import Slot
from tiny.ir.integer import compile_function
from tiny.ir.node import Node
from tiny.realize.counters import GlobalCounters
from tiny.realize.execute import Run, record
from tiny.realize.storage import Storage, allocate, serial
from tiny.schedule.plan import ARENA, INPUT, Place


class JitError(RuntimeError):
    """A function cannot be captured or replayed as it was called; the text names the argument or the
    operation.
    """


class GraphException(JitError):
    """A captured graph cannot be submitted on this device."""


class Capture:
    """What was submitted while recording.

    inputs  the arguments' storages                   began  serial of the first newer holder
    nodes   all that was computed or read             homes  written holders from outside, and their memory
    """

    def __init__(self, inputs: Sequence[Storage]):
        self.inputs = list(inputs)
        self.runs: list[Run] = []
        self.began = serial()
        self.refilled: list[Storage] = []
        self.nodes: set[Node] = set()
        self.homes: dict[int, tuple[object, Storage]] = {}
        self.paused = False


_state = threading.local()


def active() -> Capture | None:
    """The capture that this thread records, None outside one."""
    capture = getattr(_state, "capture", None)
    return None if capture is None or capture.paused else capture


@contextlib.contextmanager
def recording(inputs: Sequence[Storage]) -> Iterator[Capture]:
    """Record every submission of this thread. JitError when it records already."""
    if active() is not None:
        raise JitError(
            "a captured function calls another TinyJit while it is captured; call the plain function inside"
        )
    _state.capture = Capture(inputs)
    try:
        yield _state.capture
    finally:
        _state.capture = None


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """What is computed inside is not recorded."""
    capture = active()
    if capture is not None:
        capture.paused = True
    try:
        yield
    finally:
        if capture is not None:
            capture.paused = False


def ran(run: Run, nodes: Iterable[Node]) -> None:
    """Add a submission, and the nodes it computed or read, to the capture, if there is one."""
    capture = active()
    if capture is not None:
        capture.runs.append(run)
        capture.nodes.update(nodes)


def refilled(storage: Storage) -> None:
    """Note a storage whose bytes are given anew on each replay."""
    capture = active()
    if capture is not None:
        capture.refilled.append(storage)


def forbid_reading() -> None:
    """A value read while capturing would be the same on every replay: JitError."""
    if active() is not None:
        raise JitError(
            "a value is read (item, tolist, numpy, bool, ...) inside a captured function; its replays would "
            "all "
            "see the same one. Return the tensor and read it outside, or keep the decision on the device "
            "with where()"
        )


class Replay:
    """Recorded submissions as one template."""

    def __init__(self, capture: Capture, fresh: Sequence[Storage]):
        self.runs = capture.runs
        devices_used = dict.fromkeys(run.device for run in self.runs)
        if len(devices_used) > 1:
            raise GraphException(
                f"a captured function uses several devices, {', '.join(devices_used)}; capture one for each"
            )
        self.device = next(iter(devices_used), None)
        self.fresh = list(fresh)
        self.refilled = list(capture.refilled)
        self.variables = tuple(dict.fromkeys(v for run in self.runs for v in run.prepared.plan.variables))
        self.captured_values = {v: value for run in self.runs for v, value in run.variables.items()}
        self.kernels = sum(len(run.prepared.plan.steps) for run in self.runs)
        self._sizes = [max(storage.buffer.size, 1) for storage in self.fresh]
        self._slots: dict[int, int] = {}  # id of a buffer -> slot
        for storage in (*capture.inputs, *self.fresh, *self.refilled):
            self._slots.setdefault(id(storage.buffer), len(self._slots))
        self._inputs = capture.inputs
        self._input_slots = [self._slots[id(s.buffer)] for s in capture.inputs]
        self._fresh_slots = [self._slots[id(s.buffer)] for s in self.fresh]
        self._refilled_slots = [self._slots[id(s.buffer)] for s in self.refilled]
        self._arena = (
            allocate(self.device, max(run.prepared.plan.arena_size for run in self.runs))
            if self.runs
            else None
        )
        groups = [groups for run in self.runs for groups in run.prepared.group_counts]
        self._count_groups = compile_function(groups, self.variables)
        self._template = self._record() if self.kernels else None
        self._find_buffers()

    def _record(self):
        queue = devices.open(self.device).queue()
        first_variable = len(self._slots)
        first_group = first_variable + len(self.variables)
        variable = {node: Slot(first_variable + number) for number, node in enumerate(self.variables)}
        for run in self.runs:
            outputs = dict(zip(run.prepared.outputs, run.outputs, strict=True))

            def argument(place: Place | Node, run: Run = run, outputs: dict = outputs):
                if isinstance(place, Node):
                    return variable[place]
                if place.kind == ARENA:
                    return self._arena.address + place.number
                buffer = (run.inputs if place.kind == INPUT else outputs)[place.number].buffer
                number = self._slots.get(id(buffer))
                return buffer.address if number is None else Slot(number)

            record(run.prepared, queue, argument, lambda number, first=first_group: Slot(first + number))
            first_group += len(run.prepared.group_counts)
        return queue.finish()

    def _find_buffers(self) -> None:
        """Sort the buffers that were there before into fixed ones and arguments, read and overwritten ones.
        """
        used = {id(storage.buffer) for run in self.runs for storage in run.inputs}
        written = {id(run.inputs[step.places[0].number].buffer) for run in self.runs
                   for step in run.prepared.plan.steps if step.places[0].kind == INPUT}
        own = set(self._slots)
        self.fixed = used - own
        self.fixed_written = written - own
        self.written_inputs = [n for n, s in enumerate(self._inputs) if id(s.buffer) in written]

    def __call__(self, inputs: Sequence[Buffer], values: dict[Node, int]) -> list[Buffer]:
        """Submit again with other arguments and variables; returns the memory of the fresh storages, in their
        order.
        """
        made = [allocate(self.device, size) for size in self._sizes]
        if self._template is None:
            return made
        keys = [allocate(self.device, s.nbytes).initialize(s.refill()) for s in self.refilled]
        addresses = [0] * len(self._slots)
        for slots, buffers in (
            (self._refilled_slots, keys),
            (self._fresh_slots, made),
            (self._input_slots, inputs),
        ):
            for slot, buffer in zip(slots, buffers, strict=True):
                addresses[slot] = buffer.address
        variables = [values.get(node, self.captured_values[node]) for node in self.variables]
        addresses += [*variables, *self._count_groups(*variables)]
        self._template.submit(addresses[: self._template.slot_count])
        GlobalCounters.kernel_count += self.kernels
        GlobalCounters.submission_count += 1
        return made


def enabled() -> int:
    """The JIT setting: 0 off, 1 on, 2 captured but submitted kernel by kernel."""
    return config.current().jit
