"""An independent numpy evaluator of tensor-level graphs, and a stand-in for `tiny.realize` made from it.

`evaluate(node)` gives the numpy array that a graph means, one row of the op table at a time, with nothing
shared with the compiler: it is the oracle that real devices are compared with. `install()` puts it
behind `tiny.realize`, so that `.numpy()` and everything above it runs through the oracle instead of a device.
"""
import math
import weakref

import numpy as np

import tiny.realize as runtime
from tests import numpy_alu
from tests.numpy_alu import HELD, decode, encode
from tiny.ir import ops
from tiny.ir.dtype import DType
from tiny.ir.integer import evaluate as number
from tiny.ir.node import Node, toposort


# -- functions ----------------------------------------------------------------------------------------------
def threefry(counter, key):
    """Threefry 2x32 with 20 rounds: (counter, key) both uint64, low word first."""
    low = np.uint64(0xffffffff)
    counter, key = np.broadcast_arrays(counter, key)
    x0, x1 = (counter & low).astype(np.uint32), (counter >> np.uint64(32)).astype(np.uint32)
    k0, k1 = (key & low).astype(np.uint32), (key >> np.uint64(32)).astype(np.uint32)
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for group in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x0 = x0 + x1
            x1 = ((x1 << np.uint32(turn)) | (x1 >> np.uint32(32 - turn))) ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x0.astype(np.uint64) | (x1.astype(np.uint64) << np.uint64(32))


FUNCTIONS = {
    ops.EXP: np.exp, ops.EXP2: np.exp2, ops.EXPM1: np.expm1, ops.LOG: np.log, ops.LOG2: np.log2,
    ops.LOG1P: np.log1p, ops.SIN: np.sin, ops.COS: np.cos, ops.TAN: np.tan, ops.ATAN: np.arctan,
    ops.POW: np.power,
    ops.ERF: np.vectorize(math.erf, otypes=[float]),
}


def _function(node: Node, src: list[np.ndarray]) -> np.ndarray:
    """Evaluated in float64 and rounded once; what float64 itself gets is numpy's."""
    if node.op is ops.THREEFRY:
        return threefry(*src)
    value = FUNCTIONS[node.op](*(decode(x, node.dtype).astype(np.float64) for x in src))
    return _held(value, node.dtype)


def _held(value: np.ndarray, dtype: DType) -> np.ndarray:
    return encode(value, dtype) if dtype in numpy_alu.PATTERN else np.asarray(value).astype(HELD[dtype])


# -- movement -----------------------------------------------------------------------------------------------
def move(op: ops.Op, x: np.ndarray, arg) -> np.ndarray:
    """One movement row on an array."""
    if op is ops.RESHAPE:
        return x.reshape([number(size) for size in arg])
    if op is ops.EXPAND:
        return np.broadcast_to(x, [number(size) for size in arg])
    if op is ops.PERMUTE:
        return x.transpose(arg)
    if op is ops.SHRINK:
        return x[tuple(slice(number(start), number(stop)) for start, stop in arg)]
    if op is ops.PAD:
        return np.pad(x, [(number(before), number(after)) for before, after in arg]) if x.ndim else x
    if op is ops.FLIP:
        return np.flip(x, arg)
    axis, size, stride, dilation = arg
    count = (x.shape[axis] - dilation * (size - 1) - 1) // stride + 1
    taps = [np.take(x, np.arange(count) * stride + k * dilation, axis) for k in range(size)]
    return np.stack(taps, -1)


# -- whole arrays -------------------------------------------------------------------------------------------
_REDUCE = {ops.ADD: np.add, ops.MUL: np.multiply, ops.MAX: np.maximum, ops.MIN: np.minimum}


def _fold(node: Node, x: np.ndarray, running: bool) -> np.ndarray:
    """REDUCE and SCAN: sums and products of floats in float64, integers in their own type."""
    op, axes = node.arg
    wide = decode(x, node.dtype).astype(np.float64) if node.dtype.is_float else x
    if running:
        result = _REDUCE[op].accumulate(wide, axis=axes, dtype=wide.dtype) if x.size else wide
    else:
        identity = wide.dtype.type(ops.identity_of(op, node.dtype))
        result = _REDUCE[op].reduce(wide, axis=tuple(axes), keepdims=True, initial=identity, dtype=wide.dtype)
    return _held(result, node.dtype)


def _gather(data: np.ndarray, index: np.ndarray) -> np.ndarray:
    inside = (index >= 0) & (index < len(data))
    if not len(data):
        return np.zeros(index.shape + data.shape[1:], data.dtype)
    taken = data[np.where(inside, index, 0).astype(np.int64)]
    return np.where(inside.reshape(index.shape + (1,) * (data.ndim - 1)), taken, np.zeros((), data.dtype))


def _scatter(node: Node, base: np.ndarray, index: np.ndarray, updates: np.ndarray) -> np.ndarray:
    result, op = decode(base, node.dtype).copy(), node.arg
    for position, update in zip(index.tolist(), decode(updates, node.dtype), strict=True):
        if 0 <= position < len(base):
            result[position] = update if op is None else _REDUCE[op](result[position], update)
    return _held(result, node.dtype)


def _assign(base: np.ndarray, value: np.ndarray, chain) -> np.ndarray:
    positions = np.arange(base.size).reshape(base.shape)
    for op, arg in chain:
        positions = move(op, positions, arg)
    result = base.copy().reshape(-1)
    result[positions.reshape(-1)] = np.broadcast_to(value, positions.shape).reshape(-1)
    return result.reshape(base.shape)


def _value(node: Node, src: list[np.ndarray]) -> np.ndarray:
    op = node.op
    if op is ops.BUFFER:
        return node.arg.array()
    if op is ops.IOTA:
        return _held(np.arange(number(node.arg)), node.dtype)
    if op in ops.MOVEMENT:
        return move(op, src[0], node.arg)
    if op is ops.REDUCE or op is ops.SCAN:
        return _fold(node, src[0], op is ops.SCAN)
    if op is ops.GATHER:
        return _gather(*src)
    if op is ops.SCATTER:
        return _scatter(node, *src)
    if op is ops.ASSIGN:
        return _assign(*src, node.arg)
    if op in (ops.CONTIGUOUS, ops.DETACH, ops.COPY):
        return src[0]
    if op.function:
        return _function(node, src)
    return numpy_alu.evaluate(node, dict(zip(node.src, src, strict=True)))


def evaluate(*roots: Node) -> list[np.ndarray]:
    """The arrays that the graphs mean, in numpy_alu's held form. Sizes must be bound."""
    values: dict[Node, np.ndarray] = {}
    with np.errstate(all="ignore"):
        for node in toposort(*roots):
            if node.op is ops.VARIABLE:
                continue                                    # its BIND holds the value
            if node.op is ops.BIND:
                values[node] = np.array(node.arg, np.int64)
                continue
            values[node] = _value(node, [values[s] for s in node.src])
            shape = tuple(number(size) for size in node.shape)
            if values[node].shape != shape:
                raise AssertionError(f"{node!r}: the row says {shape}, its value has {values[node].shape}")
    return [values[root] for root in roots]


# -- the stand-in for tiny.realize --------------------------------------------------------------------------
class Storage:
    """Host memory with an identity: what a BUFFER node's arg must offer."""

    def __init__(self, data: bytearray | memoryview, dtype: DType, shape: tuple[int, ...], device: str):
        self.data, self.dtype, self.shape, self.device = data, dtype, shape, device

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def array(self) -> np.ndarray:
        return np.frombuffer(self.data, HELD[self.dtype]).reshape(self.shape)


_memo: "weakref.WeakKeyDictionary[Node, Node]" = weakref.WeakKeyDictionary()


def buffer_from_host(data, dtype: DType, shape: tuple[int, ...], device: str, copy: bool = True) -> Node:
    """A BUFFER node that holds the bytes of `data`; copy=False keeps a reference to them."""
    view = memoryview(data).cast("B") if math.prod(shape) else memoryview(b"")
    if view.nbytes != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"buffer_from_host: {view.nbytes} bytes for {shape} of {dtype.name}")
    return Node(ops.BUFFER, dtype, (), Storage(bytearray(view) if copy else view, dtype, shape, device))


def empty_buffer(shape: tuple[int, ...], dtype: DType, device: str) -> Node:
    data = bytearray(math.prod(shape) * dtype.itemsize)
    return Node(ops.BUFFER, dtype, (), Storage(data, dtype, shape, device))


def realized(node: Node) -> Node | None:
    return node if node.op is ops.BUFFER else _memo.get(node)


def realize(nodes: list[Node]) -> list[Node]:
    missing = [node for node in nodes if realized(node) is None]
    for node, value in zip(missing, evaluate(*missing), strict=True):
        flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        _memo[node] = buffer_from_host(flat, node.dtype, value.shape, node.device or runtime.default_device())
    return [realized(node) for node in nodes]


def read(node: Node) -> memoryview:
    return memoryview(node.arg.data).toreadonly().cast("B")


def refreshed_on_replay(storage: Storage, fill) -> None:
    """Nothing is captured here."""


def install() -> None:
    """Put this evaluator behind the entry points of `tiny.realize`, for every tensor made from now on."""
    for entry in (Storage, buffer_from_host, empty_buffer, realized, realize, read, refreshed_on_replay):
        setattr(runtime, entry.__name__, entry)
