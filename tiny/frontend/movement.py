"""Moving elements about without changing them: shapes, orders of axes, pieces, padding, joining.

Views (reshape, expand, permute, shrink, flip and what is made of them alone) can be written to; the rest are
copies. Axes may be negative, counted from the end.
"""
import itertools

from tiny.frontend.core import Core
from tiny.frontend.creation import shape_from
from tiny.frontend.shaping import broadcast_shape, checked_count, expand, on_axis, pad, reshape, same_size
from tiny.ir import ops
from tiny.ir.dtype import dtypes, least_upper
from tiny.ir.integer import Integer, bounds, equal, prod
from tiny.ir.node import Node


def normal_axis(axis: int, ndim: int, name: str) -> int:
    """The axis counted from the front. IndexError for one that a tensor of ndim axes has not."""
    if not -ndim <= axis < max(ndim, 1):
        raise IndexError(f"{name}: a tensor with {ndim} axes has no axis {axis}, only {-ndim} ... {ndim - 1}")
    return axis + ndim if axis < 0 else axis


def integers_from(values: tuple) -> tuple:
    """Arguments given one by one, or as one tuple or list."""
    return tuple(values[0]) if len(values) == 1 and isinstance(values[0], tuple | list) else values


def _size_or_0(size: Integer) -> Integer:
    """A plain size, 0 where it is negative or symbolic."""
    return 0 if isinstance(size, Node) else max(size, 0)


class Movement:
    """Movement of Tensor."""

    def _axis(self, axis: int, name: str) -> int:
        ndim = len(self.shape)
        return axis if 0 <= axis < ndim else normal_axis(axis, ndim, name)

    # -- shape ----------------------------------------------------------------------------------------------
    def reshape(self, *shape):
        """The same elements, in row-major order, in another shape.

        One size may be -1, for what is left; None keeps the size of that axis.
        """
        own = self.shape
        wanted = integers_from(shape)
        if None in wanted:
            wanted = tuple(own[k] if size is None else size for k, size in enumerate(wanted))
        unknown = [k for k, size in enumerate(wanted) if not isinstance(size, Node) and size == -1]
        count = prod(own)
        if len(unknown) == 1:
            known = prod(wanted[:unknown[0]] + wanted[unknown[0] + 1:])
            if not isinstance(known, Node) and known == 0 or not equal(count % known, 0):
                raise ValueError(f"reshape: {own} does not go into {wanted}: {count} elements, no multiple "
                                 f"of {known}")
            wanted = (*wanted[:unknown[0]], count // known, *wanted[unknown[0] + 1:])
        wanted = shape_from((wanted,))
        if wanted == own:
            return self
        if not same_size(prod(wanted), count):
            raise ValueError(f"reshape: {own} does not go into {wanted}: {count} elements")
        return self._view(ops.RESHAPE, wanted)

    def view(self, *shape):
        """The same as reshape."""
        return self.reshape(*shape)

    def flatten(self, start_dim: int = 0, end_dim: int = -1):
        """The axes from start_dim to end_dim, both included, as one; a single number as one axis."""
        if not self.shape:
            return self.reshape(1)
        start, end = self._axis(start_dim, "flatten"), self._axis(end_dim, "flatten")
        shape = self.shape
        return self.reshape(*shape[:start], prod(shape[start:end + 1]), *shape[end + 1:])

    def unflatten(self, dim: int, sizes):
        """One axis as several; one of the sizes may be -1."""
        dim = self._axis(dim, "unflatten")
        sizes = tuple(sizes)
        if -1 in sizes:
            known = prod(size for size in sizes if size != -1)
            sizes = tuple(self.shape[dim] // known if size == -1 else size for size in sizes)
        return self.reshape(*self.shape[:dim], *sizes, *self.shape[dim + 1:])

    def squeeze(self, dim: int | None = None):
        """Without the axes of size 1, or without that one if its size is 1."""
        if dim is None:
            return self.reshape(tuple(size for size in self.shape if not equal(size, 1)))
        dim = self._axis(dim, "squeeze")
        return self.reshape(self.shape[:dim] + self.shape[dim + 1:]) if equal(self.shape[dim], 1) else self

    def unsqueeze(self, dim: int):
        """A new axis of size 1 at that place in the result."""
        dim = normal_axis(dim, len(self.shape) + 1, "unsqueeze")
        return self._view(ops.RESHAPE, (*self.shape[:dim], 1, *self.shape[dim:]))

    def expand(self, *shape):
        """Axes of size 1 repeated to the sizes given; -1 or None keeps an axis. Nothing is copied."""
        wanted = integers_from(shape)
        own = self.shape
        if len(wanted) < len(own):
            raise ValueError(f"expand: {own} has more axes than {wanted}; expand keeps or adds axes")
        padded = (1,) * (len(wanted) - len(own)) + own
        target = tuple(size if new is None or (not isinstance(new, Node) and new == -1) else new
                       for size, new in zip(padded, wanted, strict=True))
        for k, (size, new) in enumerate(zip(padded, target, strict=True)):
            if not same_size(size, new) and not same_size(size, 1):
                raise ValueError(f"expand: {own} does not expand to {wanted}: axis {k} has {size} elements, "
                                 "not 1")
        result = self if padded == own else self._view(ops.RESHAPE, padded)
        return result if target == padded else result._view(ops.EXPAND, checked_count(target))

    def expand_as(self, other):
        return self.expand(other.shape)

    def view_as(self, other):
        return self.reshape(other.shape)

    # -- order of axes --------------------------------------------------------------------------------------
    def permute(self, *order):
        """The axes in another order."""
        order = tuple(self._axis(axis, "permute") for axis in integers_from(order))
        if sorted(order) != list(range(len(self.shape))):
            raise ValueError(f"permute: {order} is no order of the {len(self.shape)} axes of {self.shape}; "
                             "each must be named once")
        return self if order == tuple(range(len(order))) else self._view(ops.PERMUTE, order)

    def transpose(self, dim0: int = 1, dim1: int = 0):
        """Two axes exchanged."""
        order = list(range(len(self.shape)))
        first, second = self._axis(dim0, "transpose"), self._axis(dim1, "transpose")
        order[first], order[second] = order[second], order[first]
        return self.permute(order)

    swapaxes = transpose

    @property
    def T(self):
        """The axes in reverse order, the transpose of a matrix."""
        return self.permute(tuple(reversed(range(len(self.shape)))))

    def t(self):
        """A matrix transposed; one axis or none stays as it is."""
        if len(self.shape) > 2:
            raise ValueError(f"t: a tensor of shape {self.shape} is no matrix; use transpose or permute")
        return self.T

    def dim(self) -> int:
        """How many axes."""
        return len(self.shape)

    def movedim(self, source: int, destination: int):
        """One axis put at another place."""
        source, destination = self._axis(source, "movedim"), self._axis(destination, "movedim")
        order = [axis for axis in range(len(self.shape)) if axis != source]
        order.insert(destination, source)
        return self.permute(order)

    moveaxis = movedim

    def flip(self, *axis):
        """Turned round along the axes."""
        axes = tuple(sorted(self._axis(a, "flip") for a in integers_from(axis)))
        if len(set(axes)) != len(axes):
            raise ValueError(f"flip: an axis is named twice in {axis}")
        return self._view(ops.FLIP, axes) if axes else self

    # -- pieces and padding ---------------------------------------------------------------------------------
    def shrink(self, ranges):
        """For each axis (start, stop), or None to keep it."""
        ranges = tuple(ranges)
        if len(ranges) != len(self.shape):
            raise ValueError(f"shrink: {len(ranges)} ranges for the {len(self.shape)} axes of {self.shape}")
        whole = tuple((0, size) for size in self.shape)
        ranges = tuple(own if pair is None else tuple(pair) for own, pair in zip(whole, ranges, strict=True))
        for (start, stop), size in zip(ranges, self.shape, strict=True):
            if bounds(start)[0] < 0 or bounds(stop - start)[1] < 0 or bounds(size - stop)[1] < 0:
                raise ValueError(f"shrink: {start} ... {stop} is no part of an axis of size {size} in "
                                 f"{self.shape}")
        return self if ranges == whole else self._view(ops.SHRINK, ranges)

    def narrow(self, dim: int, start: int, length: int):
        """`length` elements of one axis from `start` on."""
        dim = self._axis(dim, "narrow")
        return self.shrink([(start, start + length) if k == dim else None for k in range(len(self.shape))])

    def shrink_to(self, *shape):
        """The first elements of each axis, down to these sizes; None keeps an axis."""
        return self.shrink([None if size is None else (0, size) for size in integers_from(shape)])

    def pad_to(self, *shape):
        """Zeros behind each axis, up to these sizes; None keeps an axis."""
        sizes = integers_from(shape)
        return self.pad([(0, 0) if new is None else (0, new - size)
                         for size, new in zip(self.shape, sizes, strict=True)])

    def pad(self, padding, mode: str = "constant", value: float = 0.0):
        """Elements added before and after each axis; a negative number takes that many away.

        padding: for each axis (before, after) or None; or torch's flat list, (before, after) of the last axis
        first. mode: "constant" adds `value`; "reflect", "replicate" and "circular" the tensor's own elements.
        """
        pairs = self._padding_pairs(padding)
        if mode == "constant":
            taken = [(_size_or_0(-a), size - _size_or_0(-b))
                     for (a, b), size in zip(pairs, self.shape, strict=True)]
            added = [tuple(n if isinstance(n, Node) else max(n, 0) for n in pair) for pair in pairs]
            return self._wrap(pad(self.shrink(taken).node, added, value))
        if mode not in ("reflect", "replicate", "circular"):
            raise ValueError(f'pad: mode={mode!r}; it is "constant", "reflect", "replicate" or "circular"')
        result = self
        for axis, (before, after) in enumerate(pairs):
            result = result._padded_by_itself(axis, before, after, mode)
        return result

    def _padding_pairs(self, padding) -> list[tuple[Integer, Integer]]:
        padding = list(padding)
        if all(pair is None or isinstance(pair, tuple | list) for pair in padding):
            if len(padding) != len(self.shape):
                raise ValueError(f"pad: {len(padding)} pairs for the {len(self.shape)} axes of {self.shape}")
            return [(0, 0) if pair is None else tuple(pair) for pair in padding]
        if len(padding) % 2 or len(padding) > 2 * len(self.shape):
            raise ValueError(f"pad: the flat list {padding} is not (before, after) of at most "
                             f"{len(self.shape)} axes")
        pairs = list(zip(padding[::2], padding[1::2], strict=True))[::-1]
        return [(0, 0)] * (len(self.shape) - len(pairs)) + pairs

    def _padded_by_itself(self, axis: int, before: int, after: int, mode: str):
        size = self.shape[axis]
        whole = [None] * len(self.shape)

        def piece(start: int, stop: int):
            return self.shrink([*whole[:axis], (start, stop), *whole[axis + 1:]])
        if before < 0 or after < 0:
            return piece(max(-before, 0), size - max(-after, 0))._padded_by_itself(
                axis, max(before, 0), max(after, 0), mode)
        if before == after == 0:
            return self
        room = {"reflect": size - 1, "circular": size, "replicate": size and max(before, after)}[mode]
        if max(before, after) > room:
            raise ValueError(f"pad: {before} before and {after} after axis {axis} of {self.shape} in mode "
                             f"{mode!r}: at most {room} fit")
        if mode == "reflect":
            front, back = piece(1, before + 1).flip(axis), piece(size - 1 - after, size - 1).flip(axis)
        elif mode == "circular":
            front, back = piece(size - before, size), piece(0, after)
        else:
            sizes = list(self.shape)
            front, back = (piece(at, at + 1).expand([*sizes[:axis], n, *sizes[axis + 1:]])
                           for at, n in ((0, before), (size - 1, after)))
        return front.cat(self, back, dim=axis)

    # -- repeating ------------------------------------------------------------------------------------------
    def repeat(self, *repeats):
        """The whole tensor several times along each axis."""
        times = integers_from(repeats)
        if len(times) < len(self.shape):
            raise ValueError(f"repeat: {len(times)} numbers for the {len(self.shape)} axes of {self.shape}")
        own = (1,) * (len(times) - len(self.shape)) + self.shape
        single = tuple(itertools.chain(*((1, size) for size in own)))
        many = tuple(itertools.chain(*zip(times, own, strict=True)))
        final = tuple(n * size for n, size in zip(times, own, strict=True))
        return self._wrap(reshape(expand(reshape(self.node, single), many), final))

    tile = repeat

    def repeat_interleave(self, repeats: int, dim: int | None = None):
        """Each element several times, next to each other."""
        if dim is None:
            return self.flatten().repeat_interleave(repeats, 0)
        dim = self._axis(dim, "repeat_interleave")
        shape = self.shape
        apart = reshape(self.node, (*shape[:dim + 1], 1, *shape[dim + 1:]))
        many = expand(apart, (*shape[:dim + 1], repeats, *shape[dim + 1:]))
        return self._wrap(reshape(many, (*shape[:dim], shape[dim] * repeats, *shape[dim + 1:])))

    # -- joining and taking apart ---------------------------------------------------------------------------
    def cat(self, *others, dim: int = 0, axis: int | None = None):
        """This tensor and the others, one after another along an axis. Tensor.cat(a, b) is the same."""
        tensors = [self, *others] if isinstance(self, Core) else [*self, *others]
        first = tensors[0]
        dim = first._axis(dim if axis is None else axis, "cat")
        for tensor in tensors[1:]:
            pairs = list(itertools.zip_longest(first.shape, tensor.shape))
            if any(None in pair or (k != dim and not same_size(*pair)) for k, pair in enumerate(pairs)):
                raise ValueError(f"cat: shapes {first.shape} and {tensor.shape} differ beside axis {dim}")
        if len(tensors) == 1:
            return first
        dtype = least_upper(*(tensor.dtype for tensor in tensors))
        total = sum((tensor.shape[dim] for tensor in tensors[1:]), first.shape[dim])
        result, start = None, 0
        # a sum of terms that are zero outside their own places would lose -0.0, so each is chosen
        for tensor in tensors:
            stop = start + tensor.shape[dim]
            node = pad(tensor.cast(dtype).node, on_axis(tensor.node, dim, (start, total - stop), (0, 0)))
            result = node if result is None else first._joined(result, node, dim, start)
            start = stop
        return first._wrap(result)

    def _joined(self, front: Node, back: Node, dim: int, start: Integer) -> Node:
        """`front` before `start` along the axis, `back` from there on."""
        index = self._wrap(Node(ops.IOTA, dtypes.int32, (), front.shape[dim]))
        line = (index < self._size_as_tensor(start)).node
        shape = tuple(size if k == dim else 1 for k, size in enumerate(front.shape))
        return Node(ops.WHERE, None, (expand(reshape(line, shape), front.shape), front, back))

    def _size_as_tensor(self, size: Integer):
        """A size, symbolic or not, as a number or a scalar int32 tensor."""
        return self._wrap(Node(ops.CAST, dtypes.int32, (size,))) if isinstance(size, Node) else size

    def stack(self, *others, dim: int = 0, axis: int | None = None):
        """Tensors of one shape along a new axis. Tensor.stack(a, b) is the same."""
        tensors = [self, *others] if isinstance(self, Core) else [*self, *others]
        first = tensors[0]
        dim = normal_axis(dim if axis is None else axis, len(first.shape) + 1, "stack")
        wrong = [tensor.shape for tensor in tensors if tensor.shape != first.shape]
        if wrong:
            raise ValueError(f"stack: shapes {first.shape} and {wrong[0]} differ; all must be the same")
        return first.unsqueeze(dim).cat(*(tensor.unsqueeze(dim) for tensor in tensors[1:]), dim=dim)

    def split(self, sizes: int | list, dim: int = 0) -> tuple:
        """Pieces along an axis: of this size each (the last may be smaller), or of these sizes."""
        dim = self._axis(dim, "split")
        size = self.shape[dim]
        if isinstance(sizes, int):
            if sizes <= 0:
                raise ValueError(f"split: pieces of {sizes} elements; give 1 or more")
            sizes = [min(sizes, size - start) for start in range(0, size, sizes)] or [0]
        if not equal(sum(sizes), size):
            raise ValueError(f"split: {list(sizes)} is {sum(sizes)} in all, axis {dim} has {size}")
        starts = itertools.accumulate(sizes, initial=0)
        return tuple(self.narrow(dim, start, length) for start, length in zip(starts, sizes, strict=False))

    def chunk(self, chunks: int, dim: int = 0) -> list:
        """At most that many pieces of equal size, the last one smaller."""
        if chunks <= 0:
            raise ValueError(f"chunk: {chunks} pieces; give 1 or more")
        dim = self._axis(dim, "chunk")
        size = self.shape[dim]
        return list(self.split(-(-size // chunks) if size else [0] * chunks, dim))

    def unbind(self, dim: int = 0) -> tuple:
        """The tensors along an axis, without it."""
        dim = self._axis(dim, "unbind")
        return tuple(piece.squeeze(dim) for piece in self.split(1, dim)) if self.shape[dim] else ()

    @staticmethod
    def broadcast_tensors(*tensors) -> tuple:
        """All tensors expanded to the one shape they broadcast to."""
        shape = broadcast_shape("broadcast_tensors", *(tensor.shape for tensor in tensors))
        return tuple(tensor.expand(shape) for tensor in tensors)

    def broadcast_to(self, shape):
        return self.expand(shape)
