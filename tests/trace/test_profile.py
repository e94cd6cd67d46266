"""PROFILE: a file of spans, when each kernel ran by the device's clock, and what the host did meanwhile."""
import json
import os
import signal
import time
from collections import defaultdict

import pytest

from tests.trace.test_record import run
from tiny import Tensor, TinyJit, Variable
from tiny.config import ConfigError, Context
from tiny.hcq import device as devices
from tiny.hcq import events, io
from tiny.trace import profile

PROGRAM = """
from tiny import Tensor, TinyJit
weight = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
@TinyJit
def layer(x):
    return ((x @ weight).relu() + 1).sum(axis=1).realize()
for row in range(4):
    print(layer(Tensor([[row, 1.0], [2.0, row]]).realize()).tolist())
"""
DEVICES = {"CPU": dict(AMD="0", EMULATE="", CPU="1"), "gfx1100": {}, "gfx942": dict(EMULATE="gfx942")}


def spans_of(path) -> dict[tuple[str, str], list[dict]]:
    """(process, thread) -> its spans, in order of time, outer ones first."""
    found = json.loads(path.read_text())
    names = {(e["pid"], e["tid"], e["name"]): e["args"]["name"] for e in found if e["ph"] == "M"}
    lanes = defaultdict(list)
    for event in found:
        if event["ph"] == "X":
            key = names[event["pid"], 0, "process_name"], names[event["pid"], event["tid"], "thread_name"]
            lanes[key].append(event)
    return {key: sorted(some, key=lambda e: (e["ts"], -e["dur"])) for key, some in lanes.items()}


def depth_checked(lane: list[dict]) -> int:
    """How deep spans lie in one another; none may overlap another one in part."""
    outer, deepest = [], 0
    for span in lane:
        start, end = span["ts"], span["ts"] + span["dur"]
        assert start >= 0 and span["dur"] >= 0
        while outer and start >= outer[-1] - 0.0005:        # times are rounded to nanoseconds
            outer.pop()
        assert not outer or end <= outer[-1] + 0.0015, span
        outer.append(end)
        deepest = max(deepest, len(outer))
    return deepest


@pytest.mark.parametrize("name", DEVICES)
def test_a_program_has_its_kernels_on_the_queue_and_its_work_on_the_thread(name, tmp_path):
    done = run(PROGRAM, tmp_path / "unused", TRACE="", PROFILE=str(tmp_path / "run.json"),
               CACHE=str(tmp_path / "empty"), **DEVICES[name])
    assert done.returncode == 0 and done.stderr == "" and len(done.stdout.splitlines()) == 4
    lanes = spans_of(tmp_path / "run.json")
    device = "CPU" if name == "CPU" else "AMD"
    queue, thread = lanes[device, "compute queue"], lanes["program", "MainThread"]
    assert depth_checked(queue) == depth_checked(thread) == 2
    submissions = [span for span in queue if span["cat"] == "submission"]
    kernels = [span for span in queue if span["cat"] == "compute"]
    assert len(submissions) == 4 and len(kernels) == 4 * submissions[0]["args"]["commands"]
    assert all(span["args"]["bytes"] > 0 and span["args"]["groups"] > 0 for span in kernels)
    timed = [span for span in kernels if span["dur"]]
    assert timed
    for span in timed:
        assert span["args"]["GB/s"] == pytest.approx(span["args"]["bytes"] / span["dur"] / 1e3, abs=0.01)
    kinds = {span["cat"] for span in thread}
    assert {"realize", "plan", "schedule", "compile", "submit", "transfer"} <= kinds
    scheduled = {span["name"].removeprefix("schedule ") for span in thread if span["cat"] == "schedule"}
    assert {span["name"] for span in kernels} == scheduled


def test_a_kernel_runs_between_its_submission_and_the_end_of_the_wait(tmp_path):
    """The device's clock and the host's are put into one."""
    done = run(PROGRAM, tmp_path / "unused", TRACE="", PROFILE=str(tmp_path / "run.json"))
    assert done.returncode == 0
    lanes = spans_of(tmp_path / "run.json")
    submits = [span for span in lanes["program", "MainThread"] if span["cat"] == "submit"]
    runs = [span for span in lanes["AMD", "compute queue"] if span["cat"] == "submission"]
    assert len(submits) >= len(runs)
    places = {span["args"]["point"]: span for span in submits}
    for span in runs:
        submit = places[int(span["name"].split()[1])]       # the emulated card works inside the doorbell
        assert submit["ts"] - 100 <= span["ts"]
        assert span["ts"] + span["dur"] <= submit["ts"] + submit["dur"] + 100


def test_submissions_are_tied_to_what_they_run(tmp_path):
    done = run(PROGRAM, tmp_path / "unused", TRACE="", PROFILE=str(tmp_path / "run.json"), **DEVICES["CPU"])
    assert done.returncode == 0
    found = json.loads((tmp_path / "run.json").read_text())
    begun, ended = ({e["id"] for e in found if e["ph"] == kind} for kind in "sf")
    assert len(ended) == 4 and ended <= begun
    assert any(e["ph"] == "C" and e["args"].get("bytes", 0) > 0 for e in found)


def test_a_killed_process_leaves_whole_lines(tmp_path):
    code = PROGRAM + "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    done = run(code, tmp_path / "unused", TRACE="", PROFILE=str(tmp_path / "run.json"), **DEVICES["CPU"])
    assert done.returncode == -signal.SIGKILL
    assert len(json.loads((tmp_path / "run.json").read_text() + "]")) > 20


def test_a_context_profiles_what_runs_in_it_and_plans_made_before(tmp_path):
    @TinyJit
    def double(x):
        return (x * 2).realize()
    inputs = [Tensor([value, 1.0]).realize() for value in range(6)]
    for each in inputs[:3]:
        double(each)
    with Context(PROFILE=str(tmp_path / "run.json")):
        results = [double(each).tolist() for each in inputs[3:]]
    assert results == [[6.0, 2.0], [8.0, 2.0], [10.0, 2.0]]
    assert double(inputs[0]).tolist() == [0.0, 2.0] and not events.listeners
    [queue] = [lane for (_, name), lane in spans_of(tmp_path / "run.json").items() if name == "compute queue"]
    assert [span["cat"] for span in queue] == ["submission", "compute"] * 3
    assert not vars(devices.open("CPU").io).keys() & set(io.WATCHED)


def test_the_work_of_a_kernel_follows_its_variables(tmp_path):
    length = Variable("length", 1, 64)
    data = Tensor(list(range(64)), dtype="float32").realize()
    with Context(PROFILE=str(tmp_path / "run.json")):
        sums = [data[:length.bind(n)].sum().item() for n in (4, 32)]
    assert sums == [6.0, 496.0]
    [queue] = [lane for (_, name), lane in spans_of(tmp_path / "run.json").items() if name == "compute queue"]
    small, large = [span["args"]["bytes"] for span in queue if span["cat"] == "compute"]
    assert large - small == 4 * 28


def test_a_file_that_cannot_be_written_is_one_error(tmp_path):
    with pytest.raises(ConfigError, match="PROFILE=.*/absent/run: the file cannot be written: No such file"):
        profile.start(str(tmp_path / "absent" / "run"))
    assert not events.listeners


def test_trace_and_profile_go_together(tmp_path):
    with Context(TRACE=str(tmp_path / "run.trace"), PROFILE=str(tmp_path / "run.json")):
        assert (Tensor([1, 2]) * 3).tolist() == [3, 6]
    assert (tmp_path / "run.trace").read_text().count(" Timestamp(") == 2
    assert spans_of(tmp_path / "run.json")
    assert os.path.getmtime(tmp_path / "run.json") <= time.time()
