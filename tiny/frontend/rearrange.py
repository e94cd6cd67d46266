"""Movement with a pattern: windows, rolls, diagonals, triangles, grids, and rearrangement by formula."""
import re

from tiny.frontend.elementwise import number
from tiny.frontend.shaping import expand, pad, reshape, shrink
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.integer import prod
from tiny.ir.node import Node


class Rearrange:
    """Patterned movement of Tensor."""

    def unfold(self, dim: int, size: int, step: int = 1):
        """Windows along an axis, `step` apart: it becomes their number, a new last axis holds each."""
        dim = self._axis(dim, "unfold")
        if size < 0 or step <= 0 or size > self.shape[dim]:
            raise ValueError(f"unfold: windows of {size} every {step} do not fit axis {dim} of {self.shape}")
        return self._view(ops.WINDOW, (dim, size, step, 1))

    def roll(self, shifts, dims=None):
        """Moved along axes, what falls off coming in at the other end; without dims along all in a row."""
        if dims is None:
            if not isinstance(shifts, int):
                raise ValueError(f"roll: {shifts} needs dims of the same length")
            return self.flatten().roll(shifts, 0).reshape(self.shape)
        shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
        dims = (dims,) if isinstance(dims, int) else tuple(dims)
        if len(shifts) != len(dims):
            raise ValueError(f"roll: {len(shifts)} shifts for {len(dims)} axes")
        result = self
        for shift, dim in zip(shifts, dims, strict=True):
            dim = self._axis(dim, "roll")
            size = self.shape[dim]
            shift = shift % size if size else 0
            if shift:
                end, start = result.narrow(dim, size - shift, shift), result.narrow(dim, 0, size - shift)
                result = end.cat(start, dim=dim)
        return result

    # -- diagonals and triangles ----------------------------------------------------------------------------
    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1):
        """The elements whose places along the two axes differ by `offset`, as a new last axis. A view."""
        first, second = self._axis(dim1, "diagonal"), self._axis(dim2, "diagonal")
        if first == second:
            raise ValueError(f"diagonal: axes {dim1} and {dim2} of {self.shape} are the same; give two")
        rest = [axis for axis in range(len(self.shape)) if axis not in (first, second)]
        matrix = self.permute(*rest, first, second)
        *batch, rows, columns = matrix.shape
        length = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
        start = offset if offset >= 0 else -offset * columns
        flat = matrix.reshape(*batch, rows * columns)
        if length == 0:
            return flat.narrow(-1, 0, 0)
        return flat.narrow(-1, start, (length - 1) * (columns + 1) + 1)._strided(len(batch), columns + 1)

    def _strided(self, axis: int, step: int):
        """Every step-th element along an axis, from the first on. A view."""
        if step == 1:
            return self
        windows = self._view(ops.WINDOW, (axis, 1, step, 1))
        return windows._view(ops.RESHAPE, windows.shape[:-1])

    def diag(self, diagonal: int = 0):
        """Of one axis the matrix with it on the diagonal, of a matrix its diagonal."""
        if len(self.shape) == 2:
            return self.diagonal(diagonal)
        if len(self.shape) != 1:
            raise ValueError(f"diag: a tensor of shape {self.shape}; it takes 1 or 2 axes, see diagonal()")
        size = self.shape[0]
        wide = pad(reshape(self.node, (size, 1)), [(0, 0), (0, size)])
        flat = shrink(reshape(wide, (size * (size + 1),)), [(0, size * size)])
        square = reshape(flat, (size, size))                # element k is at k * (size + 1), so at (k, k)
        above, left = max(-diagonal, 0), max(diagonal, 0)
        return self._wrap(pad(square, [(above, left), (left, above)]))

    def _triangle(self, diagonal: int, name: str):
        """For each element of the last two axes, whether its column is at most its row + diagonal."""
        if len(self.shape) < 2:
            raise ValueError(f"{name}: a tensor of shape {self.shape} is no matrix; it takes 2 axes or more")
        rows, columns = self.shape[-2:]
        lines = []
        for size, shape in ((rows, (rows, 1)), (columns, (1, columns))):
            line = reshape(Node(ops.IOTA, dtypes.int32, (), size), shape)
            lines.append(expand(line, (rows, columns)))
        return self._wrap(lines[0]).add(diagonal) >= self._wrap(lines[1])

    def tril(self, diagonal: int = 0):
        """The last two axes with zeros above the diagonal."""
        return self._triangle(diagonal, "tril").where(self, self._wrap(number(0, self.dtype)))

    def triu(self, diagonal: int = 0):
        """The last two axes with zeros below the diagonal."""
        return self._triangle(diagonal - 1, "triu").where(self._wrap(number(0, self.dtype)), self)

    # -- grids and formulas ---------------------------------------------------------------------------------
    def meshgrid(self, *others, indexing: str = "ij") -> tuple:
        """One tensor for each line given, expanded over all the others; "xy" exchanges the first two axes."""
        if indexing not in ("ij", "xy"):
            raise ValueError(f'meshgrid: indexing={indexing!r}; it is "ij" or "xy"')
        lines = [self, *others]
        order = [1, 0, *range(2, len(lines))] if indexing == "xy" and len(lines) > 1 else range(len(lines))
        shape = tuple(lines[k].numel() for k in order)
        grids = []
        for k, line in enumerate(lines):
            sizes = tuple(line.numel() if place == k else 1 for place in order)
            grids.append(line.reshape(sizes).expand(shape))
        return tuple(grids)

    def rearrange(self, formula: str, **sizes):
        """Axes taken apart, reordered and joined by a formula: "b (h w) c -> b c h w", h=8.

        Names in brackets are one axis; "..." stands for any axes, 1 or () for an axis of size 1.
        """
        left, arrow, right = formula.partition("->")
        if not arrow:
            raise ValueError(f'rearrange {formula!r}: there is no "->" between what is and what shall be')
        before, after = _groups(left, formula), _groups(right, formula)
        if ["..."] in before:
            dots = [f"...{k}" for k in range(len(self.shape) - len(before) + 1)]
            before, after = _spread(before, dots), _spread(after, dots)
        if len(before) != len(self.shape):
            raise ValueError(f"rearrange {formula!r}: {len(before)} axes named, the tensor is {self.shape}")
        known = dict(sizes)
        for group, size in zip(before, self.shape, strict=True):
            unknown = [name for name in group if name not in known]
            rest = prod(known[name] for name in group if name in known)
            if len(unknown) > 1:
                raise ValueError(f"rearrange {formula!r}: the sizes of {', '.join(unknown)} are not known; "
                                 "give all but one")
            if unknown:
                known[unknown[0]] = size // rest
        names = [name for group in before for name in group]
        wanted = [name for group in after for name in group]
        if sorted(names) != sorted(wanted) or len(set(names)) != len(names):
            raise ValueError(f"rearrange {formula!r}: both sides must name the same axes, each once")
        apart = self.reshape(tuple(known[name] for name in names))
        moved = apart.permute(tuple(names.index(name) for name in wanted))
        return moved.reshape(tuple(prod(known[name] for name in group) for group in after))


def _groups(side: str, formula: str) -> list[list[str]]:
    """The axes of one side of a formula, each a list of names; an axis of size 1 is an empty list."""
    groups = []
    for match in re.finditer(r"\(([^()]*)\)|(\S+)", side.strip()):
        inside, single = match.groups()
        names = inside.split() if inside is not None else [] if single == "1" else [single]
        if any(not (name == "..." or name.isidentifier()) for name in names):
            raise ValueError(f"rearrange {formula!r}: {match.group()!r} is no name of an axis")
        groups.append(["(...)"] if inside is not None and names == ["..."] else names)
    return groups


def _spread(groups: list[list[str]], dots: list[str]) -> list[list[str]]:
    """"..." as the axes it stands for: alone they stay apart, in brackets they are joined."""
    result = []
    for group in groups:
        if group == ["..."]:
            result.extend([name] for name in dots)
        else:
            result.append([part for name in group for part in (dots if "..." in name else [name])])
    return result
