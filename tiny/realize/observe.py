"""TRACE and PROFILE: recorders that listen to devices, started when a setting asks for one.

The environment's are started before the first device is opened and run to the end of the process; those of a
`Context` run while it lasts, for the whole process. Their modules are loaded only then.
"""
import functools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from tiny import config
from tiny.hcq import device as devices
from tiny.hcq import events
from tiny.hcq.device import Device
from tiny.hcq.queue import Recorder, Template
from tiny.ir.integer import evaluate, substitute
from tiny.ir.node import Node
from tiny.lazy import Lazy

# setting -> module with start(path)
RECORDERS = {"trace": Lazy("tiny.trace.record"), "profile": Lazy("tiny.trace.profile")}
packets = Lazy("tiny.trace.packets")                        # only where DEBUG shows them
timed = Lazy("tiny.hcq.timed")                              # only where PROFILE asks for times
_lock = threading.Lock()
_started: set[str] = set()


def start(setting: str, path: str) -> Callable[[], None]:
    """Start a recorder; call what is returned to end it. ConfigError if the file cannot be written."""
    stop = RECORDERS[setting].start(path)
    for device in devices.opened():
        devices.tell_opened(device)
    return stop


def start_recorders(kind: str) -> None:
    """Start what the environment asks for, once, before a device of any kind is opened."""
    with _lock:
        for setting in RECORDERS.keys() - _started:
            path = getattr(config.environment(), setting)
            if path:
                start(setting, path)
            _started.add(setting)


def forgo() -> None:
    """Record nothing in this process, whatever its environment says: it works for one that does."""
    _started.update(RECORDERS)


def packet_lines(template: Template) -> Iterator[str]:
    """The packets of a template as a trace has them, with the values submitted last: `compute 0x0 Nop()`.

    For a device whose packets no trace knows, as they print.
    """
    streams = list(template.streams())
    if not streams:
        yield from map(str, template.packets())
        return
    decoder = packets.Decoder(lambda address, size: None, packets.named(template.programs))
    for queue, kind, gfx, data in streams:
        for line in decoder.lines(kind, gfx, data):
            yield f"{queue} {line}"


# -- what profiles hear --------------------------------------------------------------------------------------
def profiling() -> bool:
    """Whether the kernels of a submission are to be timed."""
    return bool(config.current().profile)


def queue(device: Device) -> Recorder:
    """A recorder of commands; one that times them while a profile is made."""
    return timed.TimedQueue(device.queue()) if profiling() else device.queue()


def execute(queue: Recorder, one, arguments: Sequence, groups) -> None:
    """Record a kernel, a program.Compiled, with the numbers that a profile shows of it."""
    if queue.timed:
        queue.execute(one.program, arguments, groups, functools.partial(_work, one))
    else:
        queue.execute(one.program, arguments, groups)


def _work(one, variables: Mapping[Node, int]) -> dict[str, int]:
    """What a kernel does, given the values of variables."""
    one = one.rendered
    counts = {"operations": one.operations, "bytes": one.memory, "groups": one.groups}
    return {name: evaluate(substitute(count, dict(variables))) for name, count in counts.items()}


def took(name: str, kind: str, start_ns: int, **details: int) -> None:
    """Tell of work of this thread that began then and ends now. Callers look at `events.listeners` first."""
    events.emit(events.Span(name, kind, start_ns, time.monotonic_ns(), details))


config.effects.update({setting: functools.partial(start, setting) for setting in RECORDERS})
