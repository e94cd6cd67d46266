"""Run fifteen programs on the CPU and on the device that a file registers: compare_devices.py FILE NAME.

What has one right answer is compared bit for bit; sums of floats, whose order is free, closely.
"""
import runpy
import sys

import numpy as np

from tiny import Context, Tensor, TinyJit, dtypes, nn

rng = np.random.default_rng(0)
X, Y = (rng.standard_normal((3, 5)).astype(np.float32) for _ in range(2))
N, M = (rng.integers(-9, 9, 12).astype(np.int32) for _ in range(2))
SPECIAL = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e-40, 3e38], np.float32)
KINDS = (dtypes.float16, dtypes.bfloat16, dtypes.int32, dtypes.uint8)


def functions() -> Tensor:
    x = Tensor(X)
    return Tensor.stack(x.exp(), x.sin(), x.abs().sqrt(), x.erf())


def integers() -> Tensor:
    n, m = Tensor(N), Tensor(M)
    return Tensor.stack(n // m, n % m, n << 3, n ^ m)


def draws() -> Tensor:
    Tensor.manual_seed(5)
    return Tensor.rand(7)


def replayed() -> Tensor:
    step = TinyJit(lambda a: (a * 2 + 1).realize())
    return [step(Tensor(X + k).realize()) for k in range(4)][-1]


def trained() -> Tensor:
    layer = nn.Linear(5, 2)
    layer.weight.assign(Tensor(X[:2])).realize()
    layer.bias.assign(Tensor(Y[0, :2])).realize()
    optimizer = nn.optim.SGD(nn.state.get_parameters(layer), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (layer(Tensor(X)) ** 2).mean().backward()
        optimizer.step()
    return layer.weight


EXACT = {
    "arithmetic": lambda: Tensor(SPECIAL) * 3 - Tensor(SPECIAL) / 7,
    "functions": functions,
    "integers": integers,
    "overflow": lambda: Tensor(N).cast(dtypes.int8) * 77,
    "casts": lambda: Tensor.stack(*(Tensor(SPECIAL).cast(kind).cast(dtypes.float32) for kind in KINDS)),
    "movement": lambda: Tensor(X).permute(1, 0).pad(((1, 2), (0, 1))).flip(0).contiguous(),
    "choice": lambda: (Tensor(X) > 0).where(Tensor(X), Tensor(Y)).max(1),
    "indexing": lambda: Tensor(X)[Tensor([2, 0, 1]), Tensor([4, 0, 1])],
    "order": lambda: Tensor(N).sort()[0],
    "random": draws,
    "replay": replayed,
}
CLOSE = {
    "matmul": lambda: Tensor(X) @ Tensor(Y).transpose(),
    "softmax": lambda: Tensor(X).softmax(1),
    "convolution": lambda: Tensor(X[None, None]).conv2d(Tensor(Y[None, None, :2, :2]), padding=1),
    "training": trained,
}


def on(device: str, function) -> np.ndarray:
    with Context(DEV=device):
        result = function()
        assert result.device == device, f"asked for {device}, got {result.device}"
        return result.numpy()


def main(file: str, name: str) -> None:
    runpy.run_path(file)
    for what, function in (EXACT | CLOSE).items():
        wanted, made = on("CPU", function), on(name, function)
        if what in EXACT:
            np.testing.assert_array_equal(made, wanted, what, strict=True)
            np.testing.assert_array_equal(np.signbit(made), np.signbit(wanted), what)
        else:
            np.testing.assert_allclose(made, wanted, 1e-5, 1e-6, err_msg=what)
    print(len(EXACT | CLOSE), "agree")


if __name__ == "__main__":
    main(*sys.argv[1:])
