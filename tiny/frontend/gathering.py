"""Reading and writing along an axis by tensors of places, and by masks.

A place that is outside reads 0, and a write to it is left out; in checked mode (CHECK=1) it is an error.
Places are counted from the front only. Where a place is written twice, the last write stays.
"""
import math

import numpy as np

from tiny.frontend.core import Core
from tiny.frontend.elementwise import number
from tiny.frontend.graph import positions
from tiny.frontend.shaping import expand, reshape
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.integer import prod
from tiny.ir.node import Node

_REDUCTIONS = {"sum": ops.ADD, "add": ops.ADD, "prod": ops.MUL, "multiply": ops.MUL, "amax": ops.MAX,
               "amin": ops.MIN, "mean": ops.ADD}


class Gathering:
    """Gathering and scattering of Tensor."""

    def _positions(self, dim: int, index) -> Node:
        """For each element of `index`, the place in the flattened self that it means along an axis, or -1."""
        shape, own = index.shape, self.shape
        sizes = enumerate(zip(shape, own, strict=False))
        longer = [k for k, (size, whole) in sizes if size > whole and k != dim]
        if len(shape) != len(own) or longer:
            raise IndexError(f"gather, scatter: an index of shape {shape} for axis {dim} of a tensor of "
                             f"shape {own}; it needs as many axes, none but that one longer")
        index._check_as_index("gather, scatter", dim, own[dim])
        wide = dtypes.int64 if self.numel() >= 2**31 else dtypes.int32
        along = index.cast(wide)
        total = None
        for k in range(len(shape)):
            stride = math.prod(own[k + 1:])
            line = along if k == dim else self._wrap(positions(shape, k, wide))
            term = line * stride if stride != 1 else line
            total = term if total is None else total + term
        return ((along >= 0) & (along < own[dim])).where(total, -1).node

    def gather(self, dim: int, index):
        """For each element of `index` the one of self there along the axis, in the same place otherwise."""
        index = self._lift(index)
        if not self.shape:
            return self.reshape(1).gather(0, index.reshape(1)).reshape(())
        dim = self._axis(dim, "gather")
        flat = reshape(self.node, (self.numel(),))
        return self._wrap(Node(ops.GATHER, None, (flat, self._positions(dim, index))))

    def _scattered(self, base: Node, dim: int, index, src, row: ops.Op | None) -> Node:
        """SCATTER of `src` into `base`, of self's shape, at places given along an axis."""
        positions = self._positions(dim, index)
        count = prod(index.shape)
        if isinstance(src, Core):
            smaller = [a for a, b in zip(src.shape, index.shape, strict=False) if a < b]
            if len(src.shape) != len(index.shape) or smaller:
                raise ValueError(f"scatter: a source of shape {src.shape} for an index of shape "
                                 f"{index.shape}; it must be at least as large")
            updates = src.shrink([(0, size) for size in index.shape]).cast(base.dtype).node
        else:
            updates = expand(number(src, base.dtype), index.shape)
        flat = reshape(base, (prod(base.shape),))
        operands = (flat, reshape(positions, (count,)), reshape(updates, (count,)))
        return reshape(Node(ops.SCATTER, None, operands, row), base.shape)

    def scatter(self, dim: int, index, src, reduce: str | None = None):
        """Self with the elements of `src` (or one number) written at the places `index` names along the axis.

        reduce: "add" or "multiply" combines with what is there; without it the last write to a place stays.
        """
        if reduce not in (None, "add", "multiply"):
            raise ValueError(f'scatter: reduce={reduce!r}; it is None, "add" or "multiply"')
        row = None if reduce is None else _REDUCTIONS[reduce]
        dim = self._axis(dim, "scatter")
        return self._wrap(self._scattered(self.node, dim, self._lift(index), src, row))

    def scatter_add(self, dim: int, index, src):
        """Self with the elements of `src` added at the places `index` names along the axis."""
        return self.scatter_reduce(dim, index, src, "sum")

    def scatter_reduce(self, dim: int, index, src, reduce: str, include_self: bool = True):
        """As scatter, combining all that meet in a place: "sum", "prod", "mean", "amax" or "amin".

        include_self=False: what self holds in a place that is written to does not count.
        """
        if reduce not in ("sum", "prod", "mean", "amax", "amin"):
            raise ValueError(f'scatter_reduce: reduce={reduce!r}; "sum", "prod", "mean", "amax" or "amin"')
        dim, index, row = self._axis(dim, "scatter_reduce"), self._lift(index), _REDUCTIONS[reduce]
        base = self
        if not include_self:
            untouched = expand(number(False, dtypes.bool), self.shape)
            touched = self._wrap(self._scattered(untouched, dim, index, True, None))
            base = touched.where(self._wrap(number(ops.identity_of(row, self.dtype), self.dtype)), self)
        result = self._wrap(self._scattered(base.node, dim, index, src, row))
        if reduce != "mean":
            return result
        start = expand(number(1 if include_self else 0, dtypes.int32), self.shape)
        count = self._wrap(self._scattered(start, dim, index, 1, ops.ADD)).maximum(1)
        return result.div(count, rounding_mode=None if self.dtype.is_float else "floor").cast(self.dtype)

    def index_select(self, dim: int, index):
        """The parts of self at these places along an axis."""
        return self[(slice(None),) * self._axis(dim, "index_select") + (self._lift(index),)]

    def take(self, index):
        """The elements of the flattened self at these places."""
        return self.flatten()[self._lift(index)]

    # -- masks ----------------------------------------------------------------------------------------------
    def masked_select(self, mask, size: int | None = None, fill_value=0):
        """The elements where the mask is true, in one axis.

        With size: that many, filled up or cut, and nothing is computed for it.
        """
        mask = self._lift(mask)
        values, mask = type(self).broadcast_tensors(self, mask)
        if size is None:
            return values.flatten()[mask.numpy().reshape(-1)]
        base = expand(number(fill_value, self.dtype), (size,))
        return values.flatten()._packed(mask.flatten(), base)

    def _packed(self, mask, base: Node):
        """The rows where the one-axis mask is true, written to `base` one after another from its start."""
        places = mask.where(mask.cumsum(0) - 1, -1)
        return self._wrap(Node(ops.SCATTER, None, (base, places.node, self.node), None))

    def nonzero(self, size: int | None = None, fill_value: int = 0):
        """The places of the elements that are not 0, a row of indices for each.

        With size: that many rows, filled up or cut, nothing computed.
        """
        ndim = len(self.shape)
        if size is None:
            return self._lift(np.argwhere(self.numpy()).astype(np.int32).reshape(-1, ndim))
        lines = [self._wrap(Node(ops.IOTA, dtypes.int32, (), extent)) for extent in self.shape]
        grids = [grid.flatten() for grid in lines[0].meshgrid(*lines[1:])]
        rows = grids[0].stack(*grids[1:], dim=1)
        return rows._packed(self.bool().flatten(), expand(number(fill_value, dtypes.int32), (size, ndim)))

    def one_hot(self, num_classes: int = -1):
        """A new last axis with 1 at the place that the element names and 0 elsewhere, int32.

        num_classes=-1 takes one more than the largest element, which is computed for it.
        """
        if self.dtype.is_float:
            raise TypeError(f"one_hot: classes are integers, not {self.dtype.name}")
        if num_classes == -1:
            num_classes = int(self.max().item()) + 1
        classes = self._wrap(Node(ops.IOTA, self.dtype, (), num_classes))
        return self.unsqueeze(-1).eq(classes).cast(dtypes.int32)
