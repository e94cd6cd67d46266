"""What float atomics write. Each function takes (old, data, flush), flush being what the place does to
denormals: nothing, or what MODE says.

Source: AMD, "AMD Instinct MI300 ISA" (2024) 9.2, "Float Memory Atomics". Additions round to nearest even.
Of a minimum the result is one of the inputs as it is, though they are compared without denormals where these
are flushed; a signalling NaN wins and becomes quiet, a quiet one loses, and -0 is less than +0. A swap takes
place where both are numbers and equal, +0 and -0 too.
"""

from collections.abc import Callable

from tiny.emulator.amd.isa.expression import Value, is_nan, select
from tiny.emulator.amd.isa.functions import is_signalling, less, quiet
from tiny.emulator.amd.isa.halves import from_half, narrowed

Flush = Callable[[Value], Value]


def add(old: Value, data: Value, flush: Flush) -> Value:
    """old + data; a NaN in memory wins over one in the data, and both become quiet."""
    total = flush(old) + flush(data)
    total = select(is_nan(old), quiet(old), select(is_nan(data), quiet(data), total))
    return flush(total)


def _selected(old: Value, data: Value, takes_data: Value) -> Value:
    chosen = select(is_nan(old), data, select(is_nan(data), old, select(takes_data, data, old)))
    chosen = select(is_signalling(data), quiet(data), chosen)
    return select(is_signalling(old), quiet(old), chosen)


def minimum(old: Value, data: Value, flush: Flush) -> Value:
    """The lesser one, as it is."""
    return _selected(old, data, less(flush(data), flush(old)))


def maximum(old: Value, data: Value, flush: Flush) -> Value:
    """The greater one, as it is."""
    return _selected(old, data, less(flush(old), flush(data)))


def compare_swap(old: Value, data: Value, compare: Value, flush: Flush) -> Value:
    """The data where memory holds what it is compared with, else what it holds."""
    return select(flush(old).equals(flush(compare)), flush(data), old)


def packed_add(kind: str) -> Callable[[Value, Value, Flush], Value]:
    """Addition of the two halves of a u32, each rounded to `kind`: f16 or bf16."""

    def combine(old: Value, data: Value, flush: Flush) -> Value:
        low, high = (
            narrowed(add(from_half(old >> shift, kind), from_half(data >> shift, kind), flush), kind)
            for shift in (0, 16)
        )
        return low | high << 16

    return combine
