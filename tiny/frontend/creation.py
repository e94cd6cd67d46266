"""Tensors made from a description: zeros, ones, ranges, identity matrices."""
import ctypes
import gzip
import math

import tiny.realize as runtime
from tiny.frontend.core import Core
from tiny.frontend.graph import size_value
from tiny.frontend.hostdata import to_dtype
from tiny.frontend.shaping import checked_count, expand, reshape
from tiny.ir import ops
from tiny.ir.dtype import DType, dtypes
from tiny.ir.integer import Integer
from tiny.ir.node import Node, const
from tiny.lazy import Lazy

request = Lazy("urllib.request")                            # 15 ms that `import tiny` need not take


def shape_from(sizes: tuple) -> tuple[Integer, ...]:
    """A shape given as separate sizes, or as one tuple or list."""
    if len(sizes) == 1 and isinstance(sizes[0], tuple | list):
        sizes = sizes[0]
    for size in sizes:
        if not isinstance(size, Node) and (not hasattr(size, "__index__") or size < 0):
            raise ValueError(f"shape {tuple(sizes)}: {size!r} is no size; sizes are integers from 0 up")
    return checked_count(tuple(size if isinstance(size, Node) else int(size) for size in sizes))


class Creation:
    """Static constructors of Tensor. device=, dtype= and requires_grad= mean what they mean in Tensor()."""

    @classmethod
    def full(cls, shape, fill_value, *, device: str | None = None, dtype=None,
             requires_grad: bool | None = None):
        """Every element is `fill_value`, a number."""
        shape = shape_from(shape if isinstance(shape, tuple | list) else (shape,))
        if isinstance(fill_value, Core):
            wide = fill_value.reshape((1,) * len(shape)).expand(shape)
            return wide if dtype is None else wide.cast(dtype)
        dtype = dtypes.from_py(fill_value) if dtype is None else to_dtype(dtype)
        return cls._constant_leaf(expand(const(fill_value, dtype), shape), device, requires_grad)

    @classmethod
    def zeros(cls, *shape, device: str | None = None, dtype=None, requires_grad: bool | None = None):
        return cls.full(shape_from(shape), 0, device=device, dtype=dtype or dtypes.default_float,
                        requires_grad=requires_grad)

    @classmethod
    def ones(cls, *shape, device: str | None = None, dtype=None, requires_grad: bool | None = None):
        return cls.full(shape_from(shape), 1, device=device, dtype=dtype or dtypes.default_float,
                        requires_grad=requires_grad)

    @classmethod
    def empty(cls, *shape, device: str | None = None, dtype=None, requires_grad: bool | None = None):
        """Memory that is not set to anything."""
        dtype = dtypes.default_float if dtype is None else to_dtype(dtype)
        node = runtime.empty_buffer(shape_from(shape), dtype, runtime.canonical_device(device))
        return cls._leaf(node, requires_grad)

    @classmethod
    def arange(cls, start, stop=None, step=1, *, device: str | None = None, dtype=None,
               requires_grad: bool | None = None):
        """start, start + step, ... up to but not including stop; from 0 up to `start` where it is alone."""
        if stop is None:
            start, stop = 0, start
        if step == 0:
            raise ValueError("arange: the step is 0; give one that leads from start to stop")
        floating = any(isinstance(value, float) for value in (start, stop, step))
        dtype = to_dtype(dtype) if dtype is not None else dtypes.default_float if floating else None
        symbolic = any(isinstance(value, Node) for value in (start, stop, step))
        count = (stop - start + step - 1) // step if symbolic else max(0, math.ceil((stop - start) / step))
        checked_count((count,))
        if dtype is None:
            ends = (0,) if symbolic else (start, start + step * count)
            small = -2**31 <= min(ends) and max(ends) <= 2**31
            dtype = dtypes.default_int if small else dtypes.int64
        return cls._constant_leaf(_progression(start, step, count, dtype), device, requires_grad)

    @classmethod
    def linspace(cls, start, stop, steps: int, *, device: str | None = None, dtype=None,
                 requires_grad: bool | None = None):
        """`steps` evenly spaced numbers from start to stop, both included."""
        if steps < 0:
            raise ValueError(f"linspace: {steps} steps; give 0 or more")
        dtype = dtypes.default_float if dtype is None else to_dtype(dtype)
        wide = dtypes.float32 if dtype.bits < 32 or not dtype.is_float else dtype
        step = (stop - start) / (steps - 1) if steps > 1 else 0
        index = Node(ops.IOTA, dtypes.int32, (), steps)
        rising = _progression(start, step, steps, wide)
        falling = cls._wrap(Node(ops.IOTA, wide, (), steps)).sub(steps - 1).mul(step).add(stop)._node
        half = Node(ops.LT, None, (index, const((steps + 1) // 2, dtypes.int32)))
        # from both ends, so that both come out exact
        node = cls._wrap(Node(ops.WHERE, None, (half, rising, falling))).cast(dtype)._node
        return cls._constant_leaf(node, device, requires_grad)

    @classmethod
    def eye(cls, n: int, m: int | None = None, *, device: str | None = None, dtype=None,
            requires_grad: bool | None = None):
        """The n x m matrix (n x n without m) with ones on the diagonal."""
        shape = shape_from((n, n if m is None else m))
        row = expand(reshape(Node(ops.IOTA, dtypes.int32, (), shape[0]), (shape[0], 1)), shape)
        column = expand(reshape(Node(ops.IOTA, dtypes.int32, (), shape[1]), (1, shape[1])), shape)
        dtype = dtypes.default_float if dtype is None else to_dtype(dtype)
        diagonal = Node(ops.EQ, None, (row, column))
        return cls._constant_leaf(cls._wrap(diagonal).cast(dtype)._node, device, requires_grad)

    def full_like(self, fill_value, *, dtype=None, device: str | None = None,
                  requires_grad: bool | None = None):
        """A tensor of this shape, type and device with every element `fill_value`."""
        return type(self).full(self.shape, fill_value, dtype=dtype or self.dtype,
                               device=device or self.device, requires_grad=requires_grad)

    def zeros_like(self, **options):
        return self.full_like(0, **options)

    def ones_like(self, **options):
        return self.full_like(1, **options)

    def empty_like(self, *, dtype=None, device: str | None = None, requires_grad: bool | None = None):
        return type(self).empty(self.shape, dtype=dtype or self.dtype, device=device or self.device,
                                requires_grad=requires_grad)

    @classmethod
    def from_blob(cls, ptr: int, shape, *, dtype=None, device: str | None = None):
        """A tensor of memory that somebody else owns, at address `ptr`, of which nothing is copied.

        The memory must stay valid, C-contiguous, and of this type and shape as long as the tensor lives.
        """
        dtype = dtypes.default_float if dtype is None else to_dtype(dtype)
        shape = shape_from((shape,))
        memory = (ctypes.c_ubyte * (math.prod(shape) * dtype.itemsize)).from_address(ptr)
        target = runtime.canonical_device(device)
        return cls._leaf(runtime.buffer_from_host(memory, dtype, shape, target, copy=False))

    @classmethod
    def from_url(cls, url: str, gunzip: bool = False, **options):
        """The bytes at an address on the web, as uint8."""
        with request.urlopen(url) as response:
            content = response.read()
        return cls(gzip.decompress(content) if gunzip else content, **options)


def _progression(start, step, count: Integer, dtype: DType) -> Node:
    """start + step * k for k from 0 to count - 1, in `dtype`; fractions are computed in a float type."""
    integral = all(isinstance(value, int | Node) for value in (start, step))
    wide = dtype if integral and not dtype.kind == "b" else dtypes.float32 if dtype.bits < 32 else dtype
    if not integral and not dtype.is_float:
        wide = dtypes.float64
    node = Node(ops.IOTA, wide, (), count)
    if step != 1:
        node = Node(ops.MUL, None, (node, size_value(step, wide)))
    if isinstance(start, Node) or start != 0:
        node = Node(ops.ADD, None, (node, size_value(start, wide)))
    return node if wide is dtype else Node(ops.CAST, dtype, (node,))
