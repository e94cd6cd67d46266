"""Reading and writing by index.

Integers, slices, None and Ellipsis make views, which can be written to. Lists, arrays and integer tensors
take elements, negative ones counted from the end; several broadcast against each other. Their axes stand
where the first one was when they are next to each other, else in front; integers are applied before, as torch
does. A bool mask takes the elements where it is true: how many is computed at once.

An index that is outside: an IndexError where Python knows it (integers, lists, arrays). Where only the device
does (tensors), reading gives 0 and a write is left out; in checked mode (CHECK=1) it is an error there too.
Where a place is written twice, the last write stays.
"""
import numpy as np

from tiny import config
from tiny.frontend.core import Core
from tiny.frontend.elementwise import cast, number
from tiny.frontend.graph import size_value
from tiny.frontend.shaping import broadcast, broadcast_shape, expand, permute, reshape
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.integer import bounds, evaluate, expression, prod
from tiny.ir.node import Node

_PLAIN = {int, slice, type(None), type(Ellipsis)}


def _is_integer(item) -> bool:
    other = isinstance(item, Core | bool | np.ndarray)
    return isinstance(item, Node) or (hasattr(item, "__index__") and not other)


class Indexing:
    """Reading and writing of Tensor by index."""

    def __getitem__(self, index):
        """See the module's text."""
        items = self._index_items(index)
        view, taken = self._basic(items)
        return view._taken(taken) if taken else view

    def __setitem__(self, index, value) -> None:
        """See the module's text."""
        if self._set_by_mask(index, value):
            return
        items = self._index_items(index)
        view, taken = self._basic(items)
        view.assign(view._with_written(taken, value) if taken else value)

    # -- understanding an index -----------------------------------------------------------------------------
    def _index_items(self, index) -> list:
        """One item for each axis, and None for each new one: masks as integer arrays, Ellipsis as slices."""
        items = list(index) if isinstance(index, tuple) else [index]
        if not all(type(item) in _PLAIN for item in items):
            items = [part for item in items for part in self._without_mask(item)]
        dots = [k for k, item in enumerate(items) if item is Ellipsis]
        if len(dots) > 1:
            raise IndexError(f"index {index!r}: more than one ...")
        used = sum(item is not None and item is not Ellipsis for item in items)
        missing = len(self.shape) - used
        if missing < 0:
            raise IndexError(f"index {index!r}: {used} axes are indexed, a tensor of shape {self.shape} has "
                             f"{len(self.shape)}")
        place = dots[0] if dots else len(items)
        return items[:place] + [slice(None)] * missing + items[place + bool(dots):]

    def _without_mask(self, item) -> tuple:
        """A bool mask as one array of places for each of its axes; anything else as it is."""
        if isinstance(item, range):
            item = list(item)
        if isinstance(item, list | tuple):
            item = self._lift(item) if any(isinstance(part, Core) for part in item) else np.array(item)
            if isinstance(item, np.ndarray) and not item.size:
                item = item.astype(np.int64)
        if isinstance(item, bool | np.bool_):
            raise IndexError(f"index {item}: one truth value is no index; use a mask of the tensor's shape")
        if isinstance(item, np.ndarray) and item.dtype.kind not in "iub":
            raise IndexError(f"index of type {item.dtype}: only integers and bool can index")
        known = item is None or item is Ellipsis or isinstance(item, Core | np.ndarray | slice)
        if not known and not _is_integer(item):
            raise IndexError(f"index {item!r}: integers, slices, None, ..., lists, arrays, tensors can index")
        if isinstance(item, Core) and item.dtype.is_float:
            raise IndexError(f"index of type {item.dtype.name}: only integers and bool can index; cast it")
        if isinstance(item, Core) and item.dtype is dtypes.bool:
            return np.nonzero(item.numpy())
        return np.nonzero(item) if isinstance(item, np.ndarray) and item.dtype.kind == "b" else (item,)

    def _basic(self, items: list) -> tuple:
        """(the view that integers, slices and None make, [(its axis, what is to be taken along it)])."""
        ranges, flips, steps, shape, taken = [], [], [], [], []
        axis = 0
        for item in items:
            if item is None:
                shape.append(1)
                continue
            size = self.shape[axis]
            if isinstance(item, slice):
                start, count, step = _slice_of(item, size)
                low = start if step > 0 else start + (count - 1) * step
                ranges.append((low, low + (count - 1) * abs(step) + 1))
                flips += [axis] if step < 0 else []
                steps += [(axis, abs(step))] if abs(step) > 1 else []
                shape.append(count)
            elif _is_integer(item):
                start = _place_of(item, size, axis, self.shape)
                ranges.append((start, start + 1))
            else:
                taken.append((len(shape), item))
                ranges.append((0, size))
                shape.append(size)
            axis += 1
        whole = [(0, size) for size in self.shape]
        view = self if ranges == whole else self._view(ops.SHRINK, tuple(ranges))
        view = view.flip(*flips) if flips else view
        for strided_axis, step in steps:
            view = view._strided(strided_axis, step)
        shape = tuple(shape)
        return (view if view.shape == shape else view._view(ops.RESHAPE, shape)), taken

    # -- taking elements ------------------------------------------------------------------------------------
    def _linear_index(self, taken: list) -> tuple[Node, tuple, tuple]:
        """(index into the flattened indexed axes, axes with those first, (place, number) of the new axes)."""
        axes = [axis for axis, _ in taken]
        sizes = [self.shape[axis] for axis in axes]
        nodes = [self._index_node(item, size, axis) for (axis, item), size in zip(taken, sizes, strict=True)]
        wide = dtypes.int64 if bounds(prod(sizes))[1] >= 2**31 else dtypes.int32
        shape = broadcast_shape("index", *(node.shape for node in nodes))
        linear, valid = None, None
        for node, size in zip(nodes, sizes, strict=True):
            index = self._wrap(broadcast(cast(node, wide), shape))
            extent = self._wrap(size_value(size, wide))
            index = (index < 0).where(index + extent, index)
            inside = (index >= 0) & (index < extent)
            linear = index if linear is None else linear * extent + index
            valid = inside if valid is None else valid & inside
        if len(nodes) > 1:
            linear = valid.where(linear, -1)
        rest = [axis for axis in range(len(self.shape)) if axis not in axes]
        together = axes == list(range(axes[0], axes[0] + len(axes)))
        front = axes[0] if together else 0
        return linear.node, (*axes, *rest), (front, len(shape))

    def _index_node(self, item, size, axis: int) -> Node:
        """The index as an integer node. IndexError for a number known here that is outside."""
        if isinstance(item, Core):
            item._check_as_index("index", axis, size, -size)
            return item.node
        high = bounds(size)[1]
        if item.size and (item.min() < -high or item.max() >= high):
            wrong = item.max() if item.max() >= high else item.min()
            raise IndexError(f"index {wrong} is outside axis {axis} of {self.shape}: {-high} ... {high - 1}")
        return self._lift(item.astype(np.int32 if high < 2**31 else np.int64)).node

    def _check_as_index(self, name: str, axis: int, size, low=0) -> None:
        """In checked mode compute this index and raise an IndexError for a place not in low ... size - 1."""
        if not config.current().check:
            return
        places, low, high = self.numpy(), evaluate(low), evaluate(size)
        wrong = places[(places < low) | (places >= high)]
        if wrong.size:
            raise IndexError(f"{name}: the place {wrong[0]} is outside axis {axis} of size {high}: "
                             f"{low} ... {high - 1}")

    def _flat_for(self, order: tuple, count: int) -> Node:
        """The node with the first `count` axes of `order` flattened in front."""
        moved = permute(self.node, order)
        return reshape(moved, (prod(moved.shape[:count]), *moved.shape[count:]))

    def _taken(self, taken: list):
        """The elements at integer indices along some axes."""
        index, order, (front, ndim) = self._linear_index(taken)
        result = Node(ops.GATHER, None, (self._flat_for(order, len(taken)), index))
        rest = list(range(ndim, len(result.shape)))
        return self._wrap(permute(result, [*rest[:front], *range(ndim), *rest[front:]]))

    def _with_written(self, taken: list, value):
        """This tensor with `value` at integer indices along some axes."""
        index, order, (front, ndim) = self._linear_index(taken)
        flat = self._flat_for(order, len(taken))
        rest = flat.shape[1:]
        shape = (*rest[:front], *index.shape, *rest[front:])
        target = self._wrap(expand(number(0, self.dtype), shape))
        value = value if type(value) in (bool, int, float) else self._lift(value)
        moved = permute(target._value_to_write(value),
                        [*range(front, front + ndim), *range(front), *range(front + ndim, len(shape))])
        count = prod(index.shape)
        operands = (flat, reshape(index, (count,)), reshape(moved, (count, *rest)))
        written = Node(ops.SCATTER, None, operands, None)
        back = sorted(range(len(order)), key=order.__getitem__)
        return self._wrap(permute(reshape(written, tuple(self.shape[axis] for axis in order)), back))

    def _set_by_mask(self, index, value) -> bool:
        """Write one number where a mask over the first axes is true; False if it is another kind of write."""
        mask = index
        if isinstance(index, np.ndarray) and index.dtype.kind == "b":
            mask = self._lift(index)
        if not (isinstance(mask, Core) and mask.dtype is dtypes.bool and mask.ndim):
            return False
        if not isinstance(value, int | float):
            value = self._lift(value)
            if value.numel() != 1:
                return False
            value = value.reshape(())
        if mask.shape != self.shape[:mask.ndim]:
            raise IndexError(f"index: a mask of shape {mask.shape} on a tensor of shape {self.shape}")
        wide = mask.reshape(*mask.shape, *(1,) * (self.ndim - mask.ndim))
        self.assign(wide.where(value, self))
        return True


def _slice_of(item: slice, size) -> tuple:
    """(first place, count, step) of a slice of an axis; places may be symbolic, then the step is 1."""
    if not any(isinstance(value, Node) for value in (item.start, item.stop, size)):
        start, stop, step = item.indices(size)
        count = len(range(start, stop, step))
        return (start, count, step) if count else (0, 0, 1)
    if item.step not in (None, 1):
        raise IndexError(f"index {item}: a slice with symbolic places has the step 1")
    start, stop = (0 if item.start is None else item.start), (size if item.stop is None else item.stop)
    start, stop = (at if isinstance(at, Node) or at >= 0 else at + size for at in (start, stop))
    if any(bounds(over)[1] > 0 and evaluate(over) > 0 for over in (stop - size, start - stop, 0 - start)):
        raise IndexError(f"index {expression(start)}:{expression(stop)} does not fit in an axis of size "
                         f"{expression(size)}")
    return start, stop - start, 1


def _place_of(item, size, axis: int, shape: tuple):
    """An integer index counted from the front. IndexError where it is outside."""
    if isinstance(item, Node):
        return item
    place = item.__index__()
    low, high = -bounds(size)[1], bounds(size)[1]
    if not low <= place < high:
        raise IndexError(f"index {place} is outside axis {axis} of {shape}: {low} ... {high - 1}")
    return place if place >= 0 else place + size
