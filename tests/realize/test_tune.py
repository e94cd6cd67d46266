"""BEAM: right values, searched once, kept on disk, shared by files; a bad candidate costs only itself."""
import json
from math import inf

import numpy as np
import pytest

from tests.forgetting import forget
from tiny import Context, Tensor
from tiny.__main__ import main
from tiny.hcq import device as devices
from tiny.realize import tune
from tiny.realize.measure import Job, Worker
from tiny.render import c_prelude
from tiny.toolchain import Source

CRASHES = "void crashes(const u64 *args, u64 begin, u64 end) { *(volatile int *)8 = 1; }"
HANGS = "void hangs(const u64 *args, u64 begin, u64 end) { for (volatile int i = 1; i; ); }"
FILLS = """void fills(const u64 *args, u64 begin, u64 end) {
  float *out = (float *)args[0];
  for (u64 i = begin; i < end; i++) out[i] = (float)args[1];
}"""
# slow as long as its memory holds what it is handed over with
STARTS = """void starts(const u64 *args, u64 begin, u64 end) {
  volatile u32 *state = (u32 *)args[0];
  if (*state == 0x3c3c3c3c) for (volatile u32 i = 0; i < 1500000000; i++);
  *state = 0;
}"""


def job(text: str, name: str, **changes) -> Job:
    """A kernel of our own as the search would send it."""
    code, = devices.open("CPU").compile([Source(name, text, c_prelude.PRELUDE)])
    return Job(code, name, 1, (1 << 16,), (True,), (7,), changes.pop("groups", 1 << 14), **changes)


@pytest.fixture
def worker():
    one = Worker("CPU", first_s=10, limit_s=0.5)
    yield one
    one.close()


def test_a_kernel_that_crashes_or_hangs_costs_only_itself(worker):
    assert 0 < worker.measure(job(FILLS, "fills")) < 1
    assert worker.measure(job(CRASHES, "crashes")) == inf
    assert 0 < worker.measure(job(FILLS, "fills")) < 1
    assert worker.measure(job(HANGS, "hangs", groups=1)) == inf
    assert 0 < worker.measure(job(FILLS, "fills")) < 1


def test_a_first_launch_may_take_longer_than_the_others(worker):
    """As on an emulated card, which translates a kernel when it first runs it."""
    assert 0 < worker.measure(job(STARTS, "starts", groups=1)) < 0.1


def graphs():
    """(name, tensor, numpy's value) of some typical work."""
    random = np.random.default_rng(3)
    a, b = (random.standard_normal((40, 40), np.float32) for _ in range(2))
    x, y = Tensor(a), Tensor(b)
    e = np.exp(a - a.max(1, keepdims=True))
    return [("matmul", (x @ y).relu(), np.maximum(a @ b, 0)),
            ("softmax", x.softmax(), e / e.sum(1, keepdims=True)),
            ("column sums", (x * 2).sum(0), (a * 2).sum(0)), ("scan", x.cumsum(1), a.cumsum(1))]


@pytest.fixture
def fewer_rounds(monkeypatch):
    """A search that is over soon, of a process that has compiled nothing yet."""
    forget(monkeypatch)
    monkeypatch.setattr(tune, "WORTH_SEARCHING_S", 0)
    monkeypatch.setattr("tiny.schedule.search.ROUNDS", 1)
    monkeypatch.setattr("tiny.schedule.search.CANDIDATES", 6)


def test_results_are_right_and_a_second_process_does_not_search(tmp_path, fewer_rounds, monkeypatch):
    with Context(BEAM=2, CACHE=str(tmp_path), NOOPT=0):
        for name, tensor, expected in graphs():
            np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-5, atol=1e-5, err_msg=name)
        forget(monkeypatch)
        monkeypatch.setattr(tune, "search", lambda *_: pytest.fail("searched again"))
        for name, tensor, expected in graphs():
            np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-5, atol=1e-5, err_msg=name)


def found_in(folder):
    with Context(BEAM=1, CACHE=str(folder), NOOPT=0):
        (Tensor(np.ones((24, 31), np.float32)) * 3).sum(1).numpy()


def test_what_was_found_travels_in_a_file(tmp_path, fewer_rounds, capsys):
    here, there, file = tmp_path / "here", tmp_path / "there", str(tmp_path / "tuned.json")
    found_in(here)
    with Context(CACHE=str(here)):
        assert main(["tune", "export", file]) == 0
        assert main(["tune", "list"]) == 0
    assert "reduce_24_r31_float32" in capsys.readouterr().out
    with Context(CACHE=str(there)):
        assert main(["tune", "import", file]) == 0
        assert capsys.readouterr().out == "1 of 1 schedules added\n"
        assert main(["tune", "import", file]) == 0
        assert capsys.readouterr().out.startswith("0 of 1 schedules added; the others are no faster than")
        assert main(["tune", "clear"]) == 0
        assert capsys.readouterr().out == "1 schedules forgotten\n"
        assert main(["tune", "list"]) == 0
        told = capsys.readouterr()
        assert told.out == "" and "holds no schedules; BEAM=4 python PROGRAM finds some" in told.err


def test_a_kernel_that_is_mostly_its_launch_is_left_as_it_is(tmp_path, monkeypatch):
    forget(monkeypatch)
    monkeypatch.setattr(tune, "WORTH_SEARCHING_S", 10)
    monkeypatch.setattr(tune, "search", lambda *_: pytest.fail("searched"))
    found_in(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"tiny schedules": "1", "entries": {"a": 3}}',
                                  '{"tiny schedules": "1", "entries": {"a": {"time_s": 1}}}'])
def test_a_file_of_another_kind_is_refused(tmp_path, text, capsys):
    (tmp_path / "file").write_text(text)
    with Context(CACHE=str(tmp_path / "cache")):
        assert main(["tune", "import", str(tmp_path / "file")]) == 2
    assert "was not written by `tune export`" in capsys.readouterr().err


def test_a_file_whose_entries_would_lie_elsewhere_is_refused(tmp_path, fewer_rounds, capsys):
    file = tmp_path / "tuned.json"
    found_in(tmp_path)
    with Context(CACHE=str(tmp_path)):
        main(["tune", "export", str(file)])
        read = json.loads(file.read_text())
        entry, = read["entries"].values()
        read["entries"] = {"../../elsewhere": entry}
        file.write_text(json.dumps(read))
        assert main(["tune", "import", str(file)]) == 2
    assert "was not written by `tune export`" in capsys.readouterr().err


def test_a_file_that_is_not_there_and_a_cache_that_is_off_are_told(tmp_path, capsys):
    with Context(CACHE=str(tmp_path)):
        assert main(["tune", "import", str(tmp_path / "none")]) == 2
    assert "No such file" in capsys.readouterr().err
    with Context(CACHE="0"):
        assert main(["tune", "list"]) == 2
    assert "CACHE=0" in capsys.readouterr().err


@pytest.mark.parametrize("entry", [{"schedule": {"loops": [], "packs": []}}, {"time_s": "soon"}, [1], {}])
def test_a_damaged_entry_is_passed_over_and_searched_for_again(tmp_path, fewer_rounds, monkeypatch, capsys,
                                                               entry):
    found_in(tmp_path)
    kept, file = tune.Cache(str(tmp_path / tune.FOLDER)), str(tmp_path / "tuned.json")
    with Context(CACHE=str(tmp_path)):
        assert main(["tune", "export", file]) == 0
    key, = kept.keys()
    kept.put(key, json.dumps(entry).encode())
    with Context(CACHE=str(tmp_path)):
        capsys.readouterr()
        assert main(["tune", "list"]) == 0
        assert capsys.readouterr().out == ""
        assert main(["tune", "import", file]) == 0
    assert "time_s" in json.loads(kept.get(key))
    kept.put(key, json.dumps(entry).encode())
    forget(monkeypatch)
    found_in(tmp_path)
    assert "time_s" in json.loads(kept.get(key))
