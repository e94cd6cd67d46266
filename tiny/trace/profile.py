"""PROFILE=FILE: when everything happened, for https://ui.perfetto.dev or chrome://tracing; see docs/trace.md.

    with profiling("run.json"):              # realize records timed queues only for the setting PROFILE
        ...

The file is Chrome's JSON array of events, one a line. Devices are processes with a lane for each queue, the
program's own process has a lane for each thread. Where a process was killed the last bracket is missing,
which viewers forgive. Format: "Trace Event Format", the document that chrome://tracing names.
"""
import atexit
import json
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from tiny.hcq import events
from tiny.trace.output import Output

HOST = 1                                                    # number of this process in the file
QUEUES = {"compute": 1, "copy": 2}                          # numbers of a device's lanes


def start(path: str) -> Callable[[], None]:
    """Write a profile from now on; call what is returned to end it, else the end of the process does.

    ConfigError if the file cannot be written.
    """
    profile = Profile(Output(path, "PROFILE", ["["]))
    unsubscribe = events.subscribe(profile.heard)

    def stop() -> None:
        atexit.unregister(stop)
        events.flush()
        unsubscribe()
        profile.finish()
    return atexit.register(stop)


class _Ring(NamedTuple):
    """A doorbell that was rung and whose submission is not told yet."""
    queue: str
    time_ns: int
    nbytes: int


class Profile:
    """Turns hcq's events into those of the file. Times are microseconds since it was made."""

    def __init__(self, output: Output):
        self._output = output
        self._start_ns = time.monotonic_ns()
        self._lock = threading.RLock()
        self._devices: dict[str, int] = {}                  # name -> number of its process in the file
        self._threads: dict[int, int] = {}                  # identity -> number of its lane
        self._rung: dict[tuple[int, str], list[_Ring]] = {}  # thread, device -> its doorbells
        self._ends: dict[tuple[int, int], int] = {}         # lane of a device -> where its last span ended
        self._first = True
        self._name("process_name", HOST, 0, "program")

    def finish(self) -> None:
        """Close the list of events."""
        with self._lock:
            self._output.write(["]"])
            self._output.close()

    def heard(self, event: object) -> None:
        """Write what an event of hcq means."""
        handler = HANDLERS.get(type(event))
        if handler is not None:
            with self._lock:
                handler(self, event)

    # -- events ------------------------------------------------------------------------------------------
    def _compiled(self, event: events.Compiled) -> None:
        end = time.monotonic_ns()
        about = {"kernels": len(event.names), "not in the cache": len(event.missing), "device": event.device}
        name = f"compile {event.names[0]}" if len(event.names) == 1 else f"compile {len(event.names)} kernels"
        self._span(HOST, self._thread(), name, "compile", end - int(event.seconds * 1e9), end, about)

    def _ringing(self, event: events.Ringing) -> None:
        ring = _Ring(event.queue, time.monotonic_ns(), len(event.commands))
        self._rung.setdefault((threading.get_ident(), event.device), []).append(ring)

    def _submitted(self, event: events.Submitted) -> None:
        rings = self._rung.pop((threading.get_ident(), event.device), [])
        if not rings:                                       # the second queue of one submission
            return
        start, lane = rings[0].time_ns, self._thread()
        about = {"point": event.point, "doorbells": len(rings), "bytes": sum(ring.nbytes for ring in rings)}
        self._span(HOST, lane, f"submit to {event.device}", "submit", start, time.monotonic_ns(), about)
        self._write(ph="s", id=self._flow(event.device, event.point), name="submission", cat="submit",
                    pid=HOST, tid=lane, ts=self._microseconds(start))

    def _waited(self, event: events.Waited) -> None:
        self._span(HOST, self._thread(), f"wait for {event.device}", "wait", event.start_ns, event.end_ns,
                   {"point": event.point})

    def _spanned(self, event: events.Span) -> None:
        self._span(HOST, self._thread(), event.name, event.where, event.start_ns, event.end_ns, event.details)

    def _allocated(self, event: events.Allocated) -> None:
        self._write(ph="C", name="memory", pid=self._device(event.device.removesuffix(" commands")),
                    ts=self._microseconds(time.monotonic_ns()),
                    args={"commands" if event.device.endswith(" commands") else "bytes": event.held})

    def _ran(self, event: events.Ran) -> None:
        process = self._device(event.device)
        lane = process, QUEUES["compute"]
        start = max(event.start_ns, self._ends.get(lane, 0))
        end = self._ends[lane] = max(start, event.end_ns)
        self._span(*lane, f"submission {event.point}", "submission", start, end,
                   {"commands": len(event.commands)})
        self._write(ph="f", bp="e", id=self._flow(event.device, event.point), name="submission", cat="submit",
                    pid=process, tid=lane[1], ts=self._microseconds(start))
        for one in event.commands:
            begin, finish = (min(max(time_ns, start), end) for time_ns in (one.start_ns, one.end_ns))
            self._span(process, QUEUES.get(one.where, lane[1]), one.name, one.where, begin, finish,
                       _with_rates(one.details, finish - begin))

    def _failed(self, event: events.Failed) -> None:
        self._write(ph="i", s="p", name=f"{event.queue} failed", cat="failure",
                    pid=self._device(event.queue.rpartition(" ")[0]), tid=QUEUES["compute"],
                    ts=self._microseconds(time.monotonic_ns()), args={"error": event.text})

    # -- how they are written ----------------------------------------------------------------------------
    def _span(self, process: int, lane: int, name: str, kind: str, start: int, end: int, about: dict) -> None:
        self._write(ph="X", name=name, cat=kind, pid=process, tid=lane, ts=self._microseconds(start),
                    dur=round((end - start) / 1000, 3), args=about)

    def _write(self, **event) -> None:
        text = json.dumps(event)
        self._output.write([text if self._first else f",{text}"])
        self._first = False

    def _microseconds(self, time_ns: int) -> float:
        return round((time_ns - self._start_ns) / 1000, 3)

    def _name(self, what: str, process: int, lane: int, name: str) -> None:
        self._write(ph="M", name=what, pid=process, tid=lane, args={"name": name})

    def _device(self, name: str) -> int:
        if name not in self._devices:
            number = self._devices[name] = HOST + 1 + len(self._devices)
            self._name("process_name", number, 0, name)
            for queue, lane in QUEUES.items():
                self._name("thread_name", number, lane, f"{queue} queue")
        return self._devices[name]

    def _thread(self) -> int:
        identity = threading.get_ident()
        if identity not in self._threads:
            self._threads[identity] = 1 + len(self._threads)
            self._name("thread_name", HOST, self._threads[identity], threading.current_thread().name)
        return self._threads[identity]

    def _flow(self, device: str, point: int) -> str:
        return f"{self._device(device)}.{point}"


def _with_rates(details: dict[str, int], nanoseconds: int) -> dict:
    """The numbers of a command, and how many bytes and operations a second that is."""
    rates = {name: round(details[of] / nanoseconds, 3)
             for name, of in (("GB/s", "bytes"), ("GFLOP/s", "operations")) if nanoseconds and of in details}
    return details | rates


HANDLERS = {events.Compiled: Profile._compiled, events.Ringing: Profile._ringing,
            events.Submitted: Profile._submitted, events.Waited: Profile._waited,
            events.Span: Profile._spanned, events.Failed: Profile._failed,
            events.Allocated: Profile._allocated, events.Ran: Profile._ran}
