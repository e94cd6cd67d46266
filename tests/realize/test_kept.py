"""Plans on disk: a second process plans nothing, and gets the values that the first got."""
import json
import subprocess
import sys

import numpy as np
import pytest

from tests import forgetting
from tiny import Context, Tensor, Variable, nn
from tiny.realize import kept
from tiny.realize.execute import planning

PROGRAM = """
import json, sys
import numpy as np
from tiny import Tensor, nn
x = Tensor(np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6))
layer = Tensor(np.linspace(0, 1, 18, dtype=np.float32).reshape(6, 3))
(x @ layer).softmax().square().sum().backward()
gradient = layer.grad.tolist()
made = [name for name in ("tiny.schedule.plan", "tiny.schedule.fuse", "tiny.render.lower", "tiny.ir.algebra")
        if name in sys.modules]
print(json.dumps([gradient, made]))
"""


def run(tmp_path) -> list:
    """[the gradient, the modules that making a plan needs, if it needed them] of a process of its own."""
    environment = {"CACHE": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment,
                          check=True)
    return json.loads(done.stdout)


def test_a_second_process_plans_nothing(tmp_path):
    first, second = run(tmp_path), run(tmp_path)
    assert first[0] == second[0]
    assert len(first[1]) == 4 and second[1] == []


def forget(monkeypatch):
    """As a new process, to which every plan is worth keeping."""
    forgetting.forget(monkeypatch)
    monkeypatch.setattr(kept, "WORTH_KEEPING_S", 0)


def planned_again(monkeypatch, compute) -> bool:
    """Whether `compute`, run twice as in two processes, made a plan the second time; the values are equal."""
    forget(monkeypatch)
    first = compute()
    forget(monkeypatch)
    calls = []
    real = planning.make_plan
    with monkeypatch.context() as patch:
        patch.setattr("tiny.schedule.plan.make_plan", lambda *some: calls.append(1) or real(*some))
        np.testing.assert_array_equal(compute(), first)
    return bool(calls)


def attention() -> np.ndarray:
    x = Tensor(np.random.default_rng(1).standard_normal((2, 5, 8), np.float32))
    return x.scaled_dot_product_attention(x, x, is_causal=True).numpy()


def symbolic() -> np.ndarray:
    n = Variable("n", 1, 9).bind(6)
    x = Tensor(np.arange(36, dtype=np.float32).reshape(9, 4))
    return x[:n].sum(0).numpy()


def written_in_place() -> np.ndarray:
    x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4)).realize()
    x[1:3] = x[0:2] * 2
    return x.numpy()


def training() -> np.ndarray:
    layer = Tensor(np.ones((3, 2), np.float32), requires_grad=True)
    optimizer = nn.optim.Adam([layer], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)) @ layer).square().mean().backward()
        optimizer.step()
    return layer.numpy()


@pytest.mark.parametrize("compute", [attention, symbolic, written_in_place, training],
                         ids=lambda one: one.__name__)
def test_values_of_a_plan_from_the_disk(compute, tmp_path, monkeypatch):
    with Context(CACHE=str(tmp_path), NOOPT=0, BEAM=0, CHECK=0):
        assert not planned_again(monkeypatch, compute)


@pytest.mark.parametrize("settings", [{"NOOPT": 1}, {"CHECK": 1}, {"BEAM": 1}, {"CACHE": "0"}],
                         ids=lambda one: next(iter(one)))
def test_settings_under_which_nothing_is_kept(settings, tmp_path, monkeypatch):
    monkeypatch.setattr("tiny.schedule.search.ROUNDS", 0)
    with Context(**{"CACHE": str(tmp_path), "NOOPT": 0, "BEAM": 0, "CHECK": 0} | settings):
        assert planned_again(monkeypatch, attention)
    assert not (tmp_path / kept.FOLDER).exists()


def test_a_change_of_the_sources_plans_anew(tmp_path, monkeypatch):
    states = iter("abcdefgh")
    monkeypatch.setattr(kept, "_state_of_sources", lambda: next(states))
    with Context(CACHE=str(tmp_path), NOOPT=0, BEAM=0, CHECK=0):
        assert planned_again(monkeypatch, attention)


def test_the_state_of_the_sources_is_that_of_every_file(monkeypatch):
    before = kept._state_of_sources()
    assert before == kept._state_of_sources.__wrapped__()
    monkeypatch.setattr(kept, "DECIDING", kept.DECIDING[:-1])
    assert kept._state_of_sources.__wrapped__() != before


@pytest.mark.parametrize("settings", [{}, {"AMD": "1", "EMULATE": "1"}], ids=["CPU", "emulated"])
def test_a_cache_that_cannot_be_written_is_reported_once(settings, tmp_path):
    """By all that is kept in it: objects, plans, an emulated card's kernels."""
    (tmp_path / "file").write_text("")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True,
                          env={"CACHE": str(tmp_path / "file"), "PATH": "/usr/bin:/bin"} | settings)
    assert done.returncode == 0 and done.stderr == (
        f"tiny: {tmp_path / 'file'} cannot be written (Not a directory), compiled kernels are not kept; set "
        "CACHE to a folder that can, or CACHE=0 to do without\n")


def test_an_entry_that_cannot_be_read_is_made_again(tmp_path, monkeypatch):
    with Context(CACHE=str(tmp_path), NOOPT=0, BEAM=0, CHECK=0):
        forget(monkeypatch)
        first = attention()
        cache = kept._cache(str(tmp_path))
        assert cache.keys()
        for key in cache.keys():
            cache.put(key, b"cno.such.module\nname\n.")
        forget(monkeypatch)
        np.testing.assert_array_equal(attention(), first)
        assert all(kept.load((cache, key)) for key in cache.keys())
