"""Emulated AMD cards as devices that run kernels, and graphs whose products are exact."""
import contextlib
from collections.abc import Iterator

import numpy as np

from tests.numpy_alu import PATTERN, encode
from tests.schedule.running import leaf
from tiny.emulator.amd.isa.code_object import load
from tiny.emulator.amd.isa.decode import decode
from tiny.emulator.amd.kernel.cards import cards_named
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq import io
from tiny.hcq.amd.device import AmdDevice
from tiny.ir import ops
from tiny.ir.dtype import DType, dtypes
from tiny.ir.node import Node

NAMES = ("gfx1100", "gfx1201", "gfx942")


@contextlib.contextmanager
def opened() -> Iterator[dict[str, AmdDevice]]:
    """One card of each generation by its name, closed at the end."""
    remove = io.install(EmulatedRadeon(cards_named(",".join(NAMES))))
    found = {}
    try:
        for number, name in enumerate(NAMES):
            found[name] = AmdDevice(number)
        yield found
    finally:
        remove()
        for device in found.values():
            device.close()


def numbers(random: np.random.Generator, shape: tuple, dtype: DType) -> Node:
    """A leaf of small whole numbers, whose products and sums are exact in any order."""
    values = random.integers(0 if dtype.kind == "u" else -3, 4, shape)
    return leaf(encode(values.astype(np.float64), dtype) if dtype in PATTERN else values, dtype)


def product(rows: int, columns: int, inner: int, dtype: DType, turned: bool = False) -> Node:
    """(rows, columns): a matrix of that type by another one, added up in 32 bits. turned: the second one lies
    in memory as (inner, columns).
    """
    random = np.random.default_rng(rows * columns + inner)
    left = numbers(random, (rows, 1, inner), dtype)
    if turned:
        right = Node(ops.PERMUTE, None, (numbers(random, (inner, columns, 1), dtype),), (2, 1, 0))
    else:
        right = numbers(random, (1, columns, inner), dtype)
    wide = dtypes.float32 if dtype.is_float else dtypes.int32
    sides = [Node(ops.EXPAND, None, (side,), (rows, columns, inner)) for side in (left, right)]
    if dtype is not wide:
        sides = [Node(ops.CAST, wide, (side,)) for side in sides]
    return Node(ops.REDUCE, None, (Node(ops.MUL, None, tuple(sides)),), (ops.ADD, (2,)))


def mnemonics(code: bytes, name: str) -> set[str]:
    """The names of a kernel's instructions."""
    kernel = load(code, 0x10000).kernel(name)
    place, found = kernel.entry, set()
    while "s_endpgm" not in found:
        instruction = decode(kernel.family, kernel.code, place)
        found.add(instruction.name)
        place += instruction.size
    return found
