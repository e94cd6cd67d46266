"""Sorting. Stable; NaN counts as larger than everything; -0.0 and 0.0 are equal.

Elements become unsigned keys in the same order. A short axis is ranked by counting, for each element, those
that go before it; a long one is sorted digit by digit: a running count of each digit gives each element its
place.
"""
from tiny.frontend.elementwise import number
from tiny.frontend.graph import positions
from tiny.frontend.shaping import expand
from tiny.ir import ops
from tiny.ir.dtype import DType, dtypes
from tiny.ir.integer import prod
from tiny.ir.node import Node

RANKED_AXIS = 512                                           # longer axes are sorted by digits
DIGIT_BITS = 4


class Ordering:
    """Sorting of Tensor."""

    def sort(self, dim: int = -1, descending: bool = False) -> tuple:
        """(the elements in order along an axis, the places they come from, int32)."""
        if not self.shape:
            return self, self._wrap(number(0, dtypes.int32))
        dim = self._axis(dim, "sort")
        places = self.argsort(dim, descending)
        return self.gather(dim, places), places

    def argsort(self, dim: int = -1, descending: bool = False):
        """The places, int32, that bring an axis into order; equal elements keep theirs."""
        if not self.shape:
            return self._wrap(number(0, dtypes.int32))
        dim = self._axis(dim, "argsort")
        size = self.shape[dim]
        if isinstance(size, Node):
            raise ValueError(f"sort: axis {dim} of {self.shape} has a symbolic size; pad it to a fixed one")
        last = self.transpose(dim, -1)
        keys = last._sort_keys(descending).reshape(prod(last.shape[:-1]), size)
        order = keys._order_by_rank() if size <= RANKED_AXIS else keys._order_by_digits(self._key_bits())
        return order.reshape(last.shape).transpose(dim, -1)

    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True, *,
             sorted: bool = True) -> tuple:
        """(the k largest or smallest elements along an axis, their places, int32); always in order."""
        dim = self._axis(dim, "topk")
        if not 0 <= k <= self.shape[dim]:
            raise ValueError(f"topk: {k} of the {self.shape[dim]} elements along axis {dim} of {self.shape}")
        places = self.argsort(dim, descending=largest).narrow(dim, 0, k)
        return self.gather(dim, places), places

    def _key_bits(self) -> int:
        return 1 if self.dtype is dtypes.bool else self.dtype.bits

    def _sort_keys(self, descending: bool):
        """Unsigned integers in the order of the elements."""
        dtype = self.dtype
        if dtype is dtypes.bool:
            keys = self.cast(dtypes.uint8)
            return keys ^ 1 if descending else keys
        unsigned: DType = getattr(dtypes, f"uint{dtype.bits}")
        top = 1 << (dtype.bits - 1)
        if dtype.is_float:
            clean = self.isnan().where(self._wrap(number(0, dtype)), self.eq(0).where(0, self))
            bits = clean.bitcast(unsigned)
            # a negative number's bits count downwards: turn them all; else set the top bit to come above
            keys = (bits >= top).where(~bits, bits | top)
            keys = self.isnan().where(self._wrap(number(-1, unsigned)), keys)
        else:
            keys = self if dtype.is_unsigned else self.bitcast(unsigned) ^ top
        return ~keys if descending else keys

    def _order_by_rank(self):
        """For each row of keys the places in order: place k goes to the element with k others before it."""
        rows, size = self.shape
        line = self._wrap(Node(ops.IOTA, dtypes.int32, (), size))
        mine, other = self.unsqueeze(2), self.unsqueeze(1)
        before = (other < mine) | (other.eq(mine) & (line.unsqueeze(0) < line.unsqueeze(1)))
        rank = before.sum(2)
        at_rank = rank.unsqueeze(1).eq(line.unsqueeze(1))    # (row, rank, element)
        return at_rank.where(line, 0).sum(2)

    def _order_by_digits(self, bits: int):
        """For each row of keys the places in order, by a stable pass over each digit from the lowest."""
        rows, size = self.shape
        count = rows * size
        wide = dtypes.int64 if count >= 2**31 else dtypes.int32
        start_of_row = self._wrap(Node(ops.IOTA, wide, (), rows)).unsqueeze(1) * size
        order = self._wrap(positions((rows, size), 1))
        digits = self._wrap(Node(ops.IOTA, self.dtype, (), 1 << DIGIT_BITS)).reshape(1, -1, 1)
        keys = self.contiguous()
        for shift in range(0, bits, DIGIT_BITS):
            digit = (keys >> shift) & ((1 << DIGIT_BITS) - 1)
            member = digit.unsqueeze(1).eq(digits).cast(dtypes.int32)      # (row, digit, element)
            upto = member.reshape(rows, -1).cumsum(1).reshape(member.shape)
            # the running count holds both what comes first: smaller digits, and equal ones before this
            place = (member * upto).sum(1) - 1
            target = (place.cast(wide) + start_of_row).flatten().node
            keys = self._moved_to(target, keys)
            order = self._moved_to(target, order)
        return order

    def _moved_to(self, target: Node, values):
        """Every element of a matrix at the place in the flattened matrix that `target` names."""
        flat = values.flatten().node
        base = expand(number(0, values.dtype), flat.shape)
        moved = Node(ops.SCATTER, None, (base, target, flat), None)
        return self._wrap(moved).reshape(values.shape).contiguous()
