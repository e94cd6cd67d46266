"""Products of matrices: each is a broadcast multiplication and a sum, which the scheduler recognises."""
import string

from tiny.frontend.core import Core
from tiny.frontend.elementwise import cast
from tiny.frontend.hostdata import to_dtype
from tiny.frontend.shaping import broadcast, broadcast_shape, expand, permute, reshape, same_size
from tiny.ir import ops
from tiny.ir.dtype import accumulator_dtype, least_upper
from tiny.ir.node import Node


class Linalg:
    """Products of Tensor."""

    def matmul(self, other, reverse: bool = False, dtype=None):
        """The matrix product over the last axis of self and the last but one of other. Others are batches.

        dtype: the type of the result; small floats add up in float32 in any case.
        """
        first, second = (self._lift(other), self) if reverse else (self, self._lift(other))
        a, b = first.node, second.node
        if not a.shape or not b.shape:
            raise ValueError(f"matmul: shapes {a.shape} and {b.shape}: a number is no matrix; use *")
        result_dtype = least_upper(a.dtype, b.dtype) if dtype is None else to_dtype(dtype)
        inner = b.shape[-2] if len(b.shape) > 1 else b.shape[0]
        if not same_size(a.shape[-1], inner):
            raise ValueError(f"matmul: shapes {a.shape} and {b.shape}: the last axis of the first has the "
                             f"size {a.shape[-1]}, the axis it meets in the second has {inner}")
        matrix = reshape(a, (1, *a.shape)) if len(a.shape) == 1 else a
        turned = reshape(b, (1, *b.shape)) if len(b.shape) == 1 else permute(
            b, (*range(len(b.shape) - 2), len(b.shape) - 1, len(b.shape) - 2))
        first_batch, second_batch = matrix.shape[:-2], turned.shape[:-2]
        batch = broadcast_shape("matmul", first_batch, second_batch)
        m, k, n = matrix.shape[-2], matrix.shape[-1], turned.shape[-2]
        shape = (*batch, m, n, k)
        wide = accumulator_dtype(result_dtype)
        rows = broadcast(reshape(cast(matrix, wide), (*first_batch, m, 1, k)), shape)
        columns = broadcast(reshape(cast(turned, wide), (*second_batch, 1, n, k)), shape)
        total = Node(ops.REDUCE, None, (Node(ops.MUL, None, (rows, columns)),), (ops.ADD, (len(batch) + 2,)))
        kept = (*batch, *((m,) if len(a.shape) > 1 else ()), *((n,) if len(b.shape) > 1 else ()))
        return self._wrap(cast(reshape(total, kept), result_dtype))

    dot = matmul
    mm = bmm = mv = matmul

    def __matmul__(self, other):
        return self.matmul(other)

    def __rmatmul__(self, other):
        return self.matmul(other, reverse=True)

    def __imatmul__(self, other):
        return self.assign(self.matmul(other))

    def linear(self, weight, bias=None, dtype=None):
        """self @ weight + bias; with a weight of one axis, self * weight + bias."""
        weight = self._lift(weight)
        result = self * weight if len(weight.shape) == 1 else self.matmul(weight, dtype=dtype)
        return result if bias is None else result + bias

    def outer(self, other):
        """Every product of an element of self with one of other, both with one axis."""
        return self.reshape(-1, 1) * self._lift(other).reshape(1, -1)

    @staticmethod
    def einsum(formula: str, *operands, dtype=None):
        """A sum of products over named axes: "ij,jk->ik".

        Without "->" the names that occur once remain, sorted. "..." stands for axes that broadcast; a name
        twice in one operand takes its diagonal.
        """
        tensors = list(operands[0]) if isinstance(operands[0], tuple | list) else list(operands)
        inputs, output = _parse_einsum(formula, tensors)
        common = least_upper(*(tensor.dtype for tensor in tensors))
        result_dtype = common if dtype is None else to_dtype(dtype)
        pairs = [_without_repeats(tensor, names) for tensor, names in zip(tensors, inputs, strict=True)]
        sizes = _sizes_of_names(formula, pairs)
        summed = [name for name in sizes if name not in output]
        order = [*output, *summed]
        shape = tuple(sizes[name] for name in order)
        wide = accumulator_dtype(result_dtype)
        product = None
        for tensor, names in pairs:
            present = [name for name in order if name in names]
            node = permute(cast(tensor.node, wide), [names.index(name) for name in present])
            dims = dict(zip(present, node.shape, strict=True))
            node = expand(reshape(node, tuple(dims.get(name, 1) for name in order)), shape)
            product = node if product is None else Node(ops.MUL, None, (product, node))
        axes = tuple(range(len(output), len(order)))
        total = Node(ops.REDUCE, None, (product,), (ops.ADD, axes)) if axes else product
        return tensors[0]._wrap(reshape(cast(total, result_dtype), shape[:len(output)]))


def _sizes_of_names(formula: str, pairs: list[tuple[Core, str]]) -> dict:
    """The size of each named axis; ValueError where operands disagree and none of them is 1."""
    sizes = {}
    for tensor, names in pairs:
        for name, size in zip(names, tensor.shape, strict=True):
            known = sizes.get(name, 1)
            if same_size(known, 1):
                sizes[name] = size
            elif not same_size(size, 1) and not same_size(size, known):
                raise ValueError(f"einsum {formula!r}: the axis {name!r} has the sizes {known} and {size}")
    return sizes


def _parse_einsum(formula: str, tensors: list[Core]) -> tuple[list[str], str]:
    """(the names of each operand's axes, those of the result), with "..." as letters of its own."""
    left, arrow, right = formula.replace(" ", "").partition("->")
    inputs = left.split(",")
    if len(inputs) != len(tensors):
        raise ValueError(f"einsum {formula!r}: {len(inputs)} operands are named, {len(tensors)} given")
    free = [letter for letter in string.ascii_letters if letter not in formula]
    hidden = [len(tensor.shape) - len(names.replace("...", ""))
              for tensor, names in zip(tensors, inputs, strict=True)]
    for tensor, names, count in zip(tensors, inputs, hidden, strict=True):
        if count < 0 or (count and "..." not in names):
            raise ValueError(f"einsum {formula!r}: {names!r} does not name the axes of a tensor of shape "
                             f"{tensor.shape}")
    most = max(count for count, names in zip(hidden, inputs, strict=True)) if "..." in left else 0
    dots = "".join(free[:most])
    inputs = [names.replace("...", dots[most - count:]) for names, count in zip(inputs, hidden, strict=True)]
    if not arrow:
        used = "".join(inputs)
        once = (name for name in set(used) if used.count(name) == 1 and name not in dots)
        right = dots + "".join(sorted(once))
    output = right.replace("...", dots)
    unknown = [name for name in output if not any(name in names for names in inputs)]
    if unknown or len(set(output)) != len(output):
        raise ValueError(f"einsum {formula!r}: the result's axes {right!r} must occur before, once each")
    return inputs, output


def _without_repeats(tensor: Core, names: str) -> tuple[Core, str]:
    """An operand with each name once: where one is named twice, the diagonal of those axes."""
    for name in set(names):
        while names.count(name) > 1:
            first, second = names.index(name), names.rindex(name)
            tensor = tensor.diagonal(dim1=first, dim2=second)
            names = names[:first] + names[first + 1:second] + names[second + 1:] + name
    return tensor, names
