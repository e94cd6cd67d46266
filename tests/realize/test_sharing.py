"""Threads and processes that use tensors at once, and a forked or killed process among them."""
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from tests.tools import tool
from tiny import Tensor, TinyJit, nn

KEPT = ("PATH", "HOME", "XDG_CACHE_HOME")
WORK = """
import os, sys
import numpy as np
from tiny import Tensor, TinyJit, dtypes
rng = np.random.default_rng(0)
x, w = (Tensor(rng.normal(size=shape).astype(np.float32)) for shape in ((9, 40), (40, 33)))
image, kernel = (Tensor(rng.normal(size=shape).astype(np.float32)) for shape in ((2, 3, 9, 9), (4, 3, 3, 3)))
def work():
    return [x @ w, (x @ w).softmax(), x.exp().sum(1), image.conv2d(kernel, padding=1).relu(),
            x.half().float() * 3, (x * 10).cast(dtypes.int8), x.sort(1)[0], x.cumsum(1),
            (x > 0).where(x.sin(), x.cast(dtypes.bfloat16))]
"""


def start(code: str, **settings) -> subprocess.Popen:
    """A process that runs WORK and then the code."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    return subprocess.Popen([sys.executable, "-W", "error", "-c", WORK + code],
                            env=environment | {"PYTHONPATH": "."} | settings,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def output(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    return out


# -- threads -------------------------------------------------------------------------------------------------
def together(*functions) -> None:
    """Run each function in a thread of its own, all at once; the first exception of any of them is raised."""
    failures, barrier = [], threading.Barrier(len(functions))

    def run(function):
        try:
            barrier.wait()
            function()
        except BaseException as error:
            failures.append(error)
    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)                             # threads meet in more places
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(usual)
    if failures:
        raise failures[0]


def test_threads_build_and_compute_graphs_at_the_same_time():
    """The same graphs, so that they share nodes, plans and kernels, and ones of their own."""
    def work(seed):
        rng = np.random.default_rng(seed)
        for size in range(1, 25):
            a, b = (rng.normal(size=(size, 8)).astype(np.float32) for _ in range(2))
            x, y = Tensor(a), Tensor(b)
            np.testing.assert_allclose((x + y * 2).sum(1).numpy(), (a + b * 2).sum(1), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose((x @ y.T).numpy(), a @ b.T, rtol=1e-4, atol=1e-5)
            x += seed
            np.testing.assert_allclose(x.numpy(), a + seed)
    together(*(lambda seed=seed: work(seed) for seed in range(3)))


def test_threads_read_one_lazy_tensor():
    def read(shared, into):
        into.append(shared.tolist())
    for n in range(20):
        shared = (Tensor(np.arange(50, dtype=np.float32)) * n + 1).relu()
        seen = []
        together(*[lambda shared=shared, seen=seen: read(shared, seen)] * 3)
        assert seen == [[k * n + 1 for k in range(50)]] * 3


def test_threads_call_one_captured_function():
    """Captured by one thread while another captures or replays it."""
    f = TinyJit(lambda x: (x * 2 + 1).relu())

    def work(seed):
        for n in range(60):
            array = np.full(16, seed * 100 + n, np.float32)
            np.testing.assert_array_equal(f(Tensor(array)).numpy(), array * 2 + 1)
    together(lambda: work(1), lambda: work(2))


def test_threads_train_models_of_their_own():
    """Each with gradients and an optimiser, to the same values as alone."""
    def train(losses):
        layer = nn.Linear(6, 3)
        layer.weight = Tensor(np.linspace(-1, 1, 18, dtype=np.float32).reshape(3, 6))
        layer.bias = Tensor(np.zeros(3, np.float32))
        optimiser = nn.optim.SGD([layer.weight, layer.bias], lr=0.1)
        x = Tensor(np.linspace(0, 1, 24, dtype=np.float32).reshape(4, 6))
        for _ in range(8):
            optimiser.zero_grad()
            loss = layer(x).square().mean()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    alone, one, two = [], [], []
    train(alone)
    for _ in range(8):
        one.clear()
        two.clear()
        together(lambda: train(one), lambda: train(two))
        assert one == two == alone
    assert alone[-1] < alone[0]


# -- processes -----------------------------------------------------------------------------------------------
def test_two_processes_compute_with_one_empty_cache(tmp_path):
    code = "print([float(t.sum().item()) for t in work()])"
    processes = [start(code, CACHE=str(tmp_path)) for _ in range(2)]
    first, second = map(output, processes)
    assert first == second != ""


def test_a_process_killed_in_the_middle_leaves_a_usable_cache(tmp_path):
    endless = "print(1, flush=True)\nfor n in range(10**6): (x * n).clone().realize(); work()[n % 9].numpy()"
    process = start(endless, CACHE=str(tmp_path))
    process.stdout.readline()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.7)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert output(start("print(len([t.numpy() for t in work()]))", CACHE=str(tmp_path))) == "9\n"


def test_a_child_forked_after_first_use_gets_a_clear_error():
    """Computing, reading and making tensors: each says what happened and what to do; the parent goes on."""
    out = output(start("""
done = (x + 1).realize()
child = os.fork()
if child == 0:
    for use in (lambda: (x * 2).numpy(), lambda: done.numpy(), lambda: Tensor([1.0]), lambda: Tensor.rand(3)):
        try:
            use()
        except Exception as error:
            print(type(error).__name__, "start children with the `spawn` method" in str(error), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print((x - x).sum().item())
"""))
    assert out == "ForkedError True\n" * 4 + "0.0\n"


@pytest.mark.parametrize("compiler", ["gcc"])
def test_another_compiler_gives_equal_bytes(compiler, tmp_path):
    """Every operation rounds by itself, so which compiler made a kernel cannot be seen, sums included."""
    code = "print([t.numpy().tobytes().hex() for t in work()])"
    assert output(start(code, CC=tool(compiler), CACHE=str(tmp_path))) == output(start(code))
