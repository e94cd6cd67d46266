"""Quantised weights as GGUF files hold them: blocks of bytes, made numbers by ordinary operations.

Nothing is computed when a file is loaded: the operations fuse into whatever reads the weight, which so reads
the file's bytes. Layouts: ggml's ggml-common.h (block_q4_0 and so on); scales are half floats, small fields
are packed low bits first. Each function takes the blocks of a tensor, uint8 (blocks, bytes of one), and
gives float32 (blocks, elements). The arithmetic is that of ggml's dequantize_row functions, so results equal
theirs bit for bit.
"""
from collections.abc import Callable

from tiny.frontend.tensor import Tensor
from tiny.ir.dtype import dtypes

_E2M1 = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)      # 4-bit floats, doubled
_IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def _half(two_bytes: Tensor) -> Tensor:
    """(blocks, 2) bytes as one half float each, float32 (blocks, 1)."""
    wide = two_bytes.cast(dtypes.uint16)
    return (wide[:, 0:1] | (wide[:, 1:2] << 8)).bitcast(dtypes.float16).cast(dtypes.float32)


def _fields(packed: Tensor, bits: int, run: int) -> Tensor:
    """Unpack fields of 1, 2 or 4 bits, uint8 (blocks, fields).

    Each run of that many bytes holds first the lowest field of all its bytes, then the next of all, and so
    on.
    """
    blocks, size = packed.shape
    count = 8 // bits
    shifts = (Tensor.arange(count, dtype=dtypes.uint8) * bits).reshape(1, 1, count, 1)
    fields = (packed.reshape(blocks, size // run, 1, run) >> shifts) & ((1 << bits) - 1)
    return fields.reshape(blocks, size * count)


def _number(fields: Tensor, offset: int = 0) -> Tensor:
    """Small unsigned fields as float32, less an offset."""
    return fields.cast(dtypes.float32) - offset if offset else fields.cast(dtypes.float32)


def _signed(some_bytes: Tensor) -> Tensor:
    return some_bytes.bitcast(dtypes.int8).cast(dtypes.float32)


def _scaled(numbers: Tensor, scales: Tensor, minima: Tensor | None = None) -> Tensor:
    """Each of a block's groups times its scale, less its minimum. scales, minima: (blocks, groups)."""
    blocks, groups = scales.shape
    grouped = numbers.reshape(blocks, groups, numbers.shape[1] // groups) * scales.reshape(blocks, groups, 1)
    if minima is not None:
        grouped = grouped - minima.reshape(blocks, groups, 1)
    return grouped.reshape(numbers.shape)


def _looked_up(fields: Tensor, values: tuple[int, ...]) -> Tensor:
    return Tensor(values, dtype=dtypes.float32, device=fields.device)[fields.cast(dtypes.int32)]


# -- blocks of 32 -------------------------------------------------------------------------------------------
def _q4_0(b: Tensor) -> Tensor:
    return _half(b[:, :2]) * _number(_fields(b[:, 2:], 4, 16), 8)


def _q4_1(b: Tensor) -> Tensor:
    return _half(b[:, :2]) * _number(_fields(b[:, 4:], 4, 16)) + _half(b[:, 2:4])


def _five_bits(high: Tensor, low: Tensor) -> Tensor:
    """Four low bits in nibbles, the fifth in one 32-bit mask."""
    return _fields(low, 4, 16) | (_fields(high, 1, 1) << 4)


def _q5_0(b: Tensor) -> Tensor:
    return _half(b[:, :2]) * _number(_five_bits(b[:, 2:6], b[:, 6:]), 16)


def _q5_1(b: Tensor) -> Tensor:
    return _half(b[:, :2]) * _number(_five_bits(b[:, 4:8], b[:, 8:])) + _half(b[:, 2:4])


def _q8_0(b: Tensor) -> Tensor:
    return _half(b[:, :2]) * _signed(b[:, 2:])


def _iq4_nl(b: Tensor) -> Tensor:
    return _half(b[:, :2]) * _looked_up(_fields(b[:, 2:], 4, 16), _IQ4)


def _mxfp4(b: Tensor) -> Tensor:
    """The scale is a power of two, half of 2 ** (byte - 127) because the table holds doubled values."""
    exponent = b[:, :1].cast(dtypes.uint32)
    normal = ((exponent - 1) << 23).bitcast(dtypes.float32)
    subnormal = (exponent + 1).cast(dtypes.float32) * 2.0 ** -128
    return (exponent < 2).where(subnormal, normal) * _looked_up(_fields(b[:, 1:], 4, 16), _E2M1)


# -- blocks of 256, whose groups have scales of their own ---------------------------------------------------
def _six_bit_pairs(b: Tensor) -> tuple[Tensor, Tensor]:
    """The 8 scales and 8 minima of Q4_K and Q5_K, 6 bits each in 12 bytes.

    Bytes 0-3 and 4-7 hold the first four scales and minima in their low bits; the second four have two bits
    at the top of those and four in bytes 8-11, scale low, minimum high.
    """
    blocks = b.shape[0]
    second = Tensor.arange(2, dtype=dtypes.uint8).reshape(1, 2, 1)     # 0: the first four, 1: the rest
    scales, minima, mixed = (b[:, k:k + 4].reshape(blocks, 1, 4) for k in (0, 4, 8))
    shift, kept, low_bits = second * 2, 63 - second * 15, second * 15
    return ((((scales >> shift) & kept) | (mixed & low_bits)).reshape(blocks, 8),
            (((minima >> shift) & kept) | ((mixed >> 4) & low_bits)).reshape(blocks, 8))


def _q2_k(b: Tensor) -> Tensor:
    scales = b[:, :16]
    return _scaled(_number(_fields(b[:, 16:80], 2, 32)), _half(b[:, 80:82]) * _number(scales & 15),
                   _half(b[:, 82:84]) * _number(scales >> 4))


def _q3_k(b: Tensor) -> Tensor:
    """The third bit's mask is the other way round: where it is 0, 4 is taken off."""
    scales = _fields(b[:, 96:104], 4, 8) | (_fields(b[:, 104:108], 2, 4) << 4)
    numbers = _number(_fields(b[:, 32:96], 2, 32) | (_fields(b[:, :32], 1, 32) << 2), 4)
    return _scaled(numbers, _half(b[:, 108:110]) * _number(scales, 32))


def _q4_k(b: Tensor) -> Tensor:
    scales, minima = _six_bit_pairs(b[:, 4:16])
    return _scaled(_number(_fields(b[:, 16:], 4, 32)), _half(b[:, :2]) * _number(scales),
                   _half(b[:, 2:4]) * _number(minima))


def _q5_k(b: Tensor) -> Tensor:
    scales, minima = _six_bit_pairs(b[:, 4:16])
    numbers = _number(_fields(b[:, 48:], 4, 32) | (_fields(b[:, 16:48], 1, 32) << 4))
    return _scaled(numbers, _half(b[:, :2]) * _number(scales), _half(b[:, 2:4]) * _number(minima))


def _q6_k(b: Tensor) -> Tensor:
    numbers = _number(_fields(b[:, :128], 4, 64) | (_fields(b[:, 128:192], 2, 32) << 4), 32)
    return _scaled(numbers, _half(b[:, 208:]) * _signed(b[:, 192:208]))


def _iq4_xs(b: Tensor) -> Tensor:
    scales = _fields(b[:, 4:8], 4, 1) | (_fields(b[:, 2:4], 2, 1) << 4)
    return _scaled(_looked_up(_fields(b[:, 8:], 4, 16), _IQ4), _half(b[:, :2]) * _number(scales, 32))


def _tq2_0(b: Tensor) -> Tensor:
    return _half(b[:, 64:]) * _number(_fields(b[:, :64], 2, 32), 1)


DEQUANTISE: dict[str, Callable[[Tensor], Tensor]] = {
    "Q4_0": _q4_0, "Q4_1": _q4_1, "Q5_0": _q5_0, "Q5_1": _q5_1, "Q8_0": _q8_0, "Q2_K": _q2_k, "Q3_K": _q3_k,
    "Q4_K": _q4_k, "Q5_K": _q5_k, "Q6_K": _q6_k, "IQ4_NL": _iq4_nl, "IQ4_XS": _iq4_xs, "MXFP4": _mxfp4,
    "TQ2_0": _tq2_0,
}
