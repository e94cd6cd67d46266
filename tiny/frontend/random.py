"""Random tensors, from counters rather than from a stream.

Each call draws a key from the seed and the number of calls so far; element k is then a function of the key
and k (Threefry 2x32, the THREEFRY row). So values depend on the seed and the order of the calls, not on when
or in what order tensors are computed. A captured function draws a new key each time it is replayed.
"""
import math
import threading

import numpy as np

from tiny import config, realize
from tiny.frontend.creation import shape_from
from tiny.frontend.hostdata import to_dtype
from tiny.frontend.training import is_training
from tiny.ir import ops
from tiny.ir.dtype import DType, dtypes
from tiny.ir.integer import prod
from tiny.ir.node import Node

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15                                # 2**64 over the golden ratio


def _mixed(number: int) -> int:
    """A bijection of 64-bit integers that scatters neighbours:
    the finaliser of SplitMix64 (Steele et al., 2014).
    """
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    number = (number ^ number >> 27) * 0x94D049BB133111EB & _MASK
    return number ^ number >> 31


class Generator:
    """Gives keys: the n-th key of a seed is always the same,
    no two keys of a seed are equal. Safe between threads.
    """

    def __init__(self, seed: int | None = None):
        self._lock = threading.Lock()
        self._seed, self._calls = seed, 0

    def seed(self, seed: int) -> None:
        """Start over with a seed."""
        with self._lock:
            self._seed, self._calls = seed, 0

    def next_key(self) -> int:
        """The next key, 64 bits. The first seed, where nobody has set one, is the setting SEED."""
        with self._lock:
            if self._seed is None:
                self._seed = config.current().seed
            self._calls += 1
            return _mixed(_mixed(self._seed & _MASK) + self._calls * _GOLDEN & _MASK)

    def key_node(self, device: str) -> Node:
        """A leaf on the device that holds the next key,
        and another one whenever a captured function is replayed.
        """
        node = realize.buffer_from_host(np.array(self.next_key(), np.uint64), dtypes.uint64, (), device)
        realize.refreshed_on_replay(node.arg, lambda: self.next_key().to_bytes(8, "little"))
        return node


default_generator = Generator()


class Random:
    """Random constructors of Tensor. device=, dtype= and requires_grad= mean what they mean in Tensor()."""

    @staticmethod
    def manual_seed(seed: int = 0) -> None:
        """Start the random numbers over: the same calls then give the same values."""
        default_generator.seed(seed)

    @classmethod
    def random_bits(cls, *shape, device: str | None = None, dtype=dtypes.uint32, requires_grad=None):
        """Uniform bits as an unsigned type."""
        shape, target = shape_from(shape), to_dtype(dtype)
        if not target.is_unsigned:
            raise TypeError(f"random_bits: {target.name} is no unsigned type; take uint8 ... uint64")
        bits = cls._bits(shape, device)
        return bits if target is dtypes.uint64 else (bits >> (64 - target.bits)).cast(target)

    @classmethod
    def _bits(cls, shape: tuple, device: str | None):
        """64 random bits for each element."""
        key = default_generator.key_node(realize.canonical_device(device))
        counter = Node(ops.IOTA, dtypes.uint64, (), prod(shape))
        return cls._wrap(Node(ops.THREEFRY, None, (counter, key))).reshape(shape)

    @classmethod
    def _unit(cls, shape: tuple, device: str | None, dtype: DType):
        """Uniform in [0, 1): multiples of 2 ** -p, p the bits of the type's mantissa and the hidden one."""
        precision = dtype.exponent_mantissa[1] + 1
        wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
        steps = cls._bits(shape, device) >> (64 - precision)
        if precision <= 32:
            steps = steps.cast(dtypes.uint32)
        return (steps.cast(wide) * 2.0 ** -precision).cast(dtype)

    @classmethod
    def _started(cls, values, requires_grad):
        return cls._leaf(values.node, requires_grad)

    # -- distributions ---------------------------------------------------------------------------------------
    @classmethod
    def rand(cls, *shape, device: str | None = None, dtype=None, requires_grad: bool | None = None):
        """Uniform in [0, 1): every multiple of the type's precision there is equally likely."""
        dtype = _float_type("rand", dtype)
        return cls._started(cls._unit(shape_from(shape), device, dtype), requires_grad)

    @classmethod
    def randn(cls, *shape, device: str | None = None, dtype=None, requires_grad: bool | None = None):
        """Normal with mean 0 and standard deviation 1 (Box and Muller, 1958), up to 6.6 in magnitude."""
        dtype = _float_type("randn", dtype)
        wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
        bits = cls._bits(shape_from(shape), device)
        radius_share = ((bits >> 32).cast(dtypes.uint32).cast(wide) + 1) * 2.0 ** -32    # in (0, 1]
        turn_share = bits.cast(dtypes.uint32).cast(wide) * 2.0 ** -32
        radius = (radius_share.log() * -2).sqrt()
        return cls._started((radius * (turn_share * (2 * math.pi)).cos()).cast(dtype), requires_grad)

    @classmethod
    def randint(cls, *shape, low: int = 0, high: int | None = None, size=None, device: str | None = None,
                dtype=None, requires_grad: bool | None = None):
        """Uniform integers from low up to but not including high (10 where it is not given).

        randint(2, 3, low=0, high=10) and, as torch has it, randint(0, 10, (2, 3)) and randint(10, (2, 3)).
        """
        shape, low, high = _shape_and_range(shape, low, high, size)
        dtype = dtypes.default_int if dtype is None else to_dtype(dtype)
        if not dtype.is_integer or not dtype.min <= low < high <= dtype.max + 1:
            raise ValueError(f"randint: from {low} below {high} as {dtype.name}; low must be less than high, "
                             "both within an integer type")
        span, bits = high - low, cls._bits(shape, device)
        if span <= 1 << 32:                                 # the high part of bits * span
            chosen = ((bits >> 32) * span + ((bits & 0xFFFFFFFF) * span >> 32)) >> 32
        else:
            chosen = bits % span if span <= _MASK else bits
        return (chosen.cast(dtype) + low).cast(dtype)

    @classmethod
    def uniform(cls, *shape, low: float = 0.0, high: float = 1.0, device: str | None = None, dtype=None,
                requires_grad: bool | None = None):
        """Uniform between low and high."""
        dtype = _float_type("uniform", dtype)
        values = cls._unit(shape_from(shape), device, dtype) * (high - low) + low
        return cls._started(values, requires_grad)

    @classmethod
    def normal(cls, *shape, mean: float = 0.0, std: float = 1.0, device: str | None = None, dtype=None,
               requires_grad: bool | None = None):
        """Normal with the given mean and standard deviation."""
        return cls._started(cls.randn(*shape, device=device, dtype=dtype) * std + mean, requires_grad)

    # -- what weights start from -----------------------------------------------------------------------------
    @classmethod
    def scaled_uniform(cls, *shape, **options):
        """Uniform between -1 and 1, over the square root of the number of elements."""
        limit = max(prod(shape_from(shape)), 1) ** -0.5
        return cls.uniform(*shape, low=-limit, high=limit, **options)

    @classmethod
    def glorot_uniform(cls, *shape, **options):
        """Uniform within sqrt(6 / (fan in + fan out)) (Glorot and Bengio, 2010)."""
        sizes = shape_from(shape)
        limit = math.sqrt(6 / max(sizes[0] + prod(sizes[1:]), 1))
        return cls.uniform(*shape, low=-limit, high=limit, **options)

    @classmethod
    def kaiming_uniform(cls, *shape, a: float = 0.01, **options):
        """Uniform with the variance that keeps signals through leaky ReLUs of slope a (He et al., 2015)."""
        limit = math.sqrt(3) * _kaiming_std(shape_from(shape), a)
        return cls.uniform(*shape, low=-limit, high=limit, **options)

    @classmethod
    def kaiming_normal(cls, *shape, a: float = 0.01, **options):
        """Normal with the variance that keeps signals through leaky ReLUs of slope a (He et al., 2015)."""
        return cls.normal(*shape, mean=0.0, std=_kaiming_std(shape_from(shape), a), **options)

    # -- order and choice ------------------------------------------------------------------------------------
    @classmethod
    def randperm(cls, n: int, *, device: str | None = None, dtype=dtypes.int32, requires_grad=None):
        """The integers 0 ... n - 1 in random order."""
        return cls._bits((n,), device).argsort().cast(dtype)

    def multinomial(self, num_samples: int = 1, replacement: bool = False):
        """Indices drawn with the probabilities that this tensor's last axis gives, unnormalised; int32.

        Without replacement no index comes twice in a row: as many must have a probability.
        """
        if self.ndim not in (1, 2) or not num_samples > 0:
            raise ValueError(f"multinomial: {num_samples} samples of weights {self.shape}; weights have one "
                             "or two axes, samples are at least one")
        weights = self.reshape(1, -1) if self.ndim == 1 else self
        rows, choices = weights.shape
        if replacement or num_samples == 1:
            shares = weights.float().cumsum(1)
            drawn = self._unit((rows, num_samples, 1), self.device, dtypes.float32)
            # the first place where the running sum passes the draw: never one of weight 0
            found = (shares.reshape(rows, 1, choices) <= drawn * shares[:, -1:].reshape(rows, 1, 1)).sum(2)
            found = found.minimum(choices - 1).cast(dtypes.int32)
        else:
            if num_samples > choices:
                raise ValueError(f"multinomial: {num_samples} samples of {choices} without replacement")
            # the order of exponential waiting times (Efraimidis and Spirakis, 2006)
            drawn = -(1 - self._unit((rows, choices), self.device, dtypes.float32)).log()
            waiting = (weights > 0).where(drawn / weights.float(), math.inf)
            found = waiting.argsort(1)[:, :num_samples].cast(dtypes.int32)
        return found.reshape(num_samples) if self.ndim == 1 else found

    def dropout(self, p: float = 0.5, training: bool | None = None):
        """In training, elements become 0 with probability p and the others grow by 1 / (1 - p);
        else this tensor.
        """
        if not 0 <= p <= 1:
            raise ValueError(f"dropout: p={p} is no probability")
        if p == 0 or not (is_training() if training is None else training):
            return self
        if p == 1:
            return self.zeros_like()
        kept = self._unit(self.shape, self.device, dtypes.float32) >= p
        return kept.where(self * (1 / (1 - p)), 0)

    # -- shapes and types of others --------------------------------------------------------------------------
    def rand_like(self, **options):
        """Uniform in [0, 1), of this tensor's shape, type and device."""
        return type(self).rand(*self.shape, **{"dtype": self.dtype, "device": self.device} | options)

    def randn_like(self, **options):
        """Normal, of this tensor's shape, type and device."""
        return type(self).randn(*self.shape, **{"dtype": self.dtype, "device": self.device} | options)


def _float_type(name: str, dtype) -> DType:
    dtype = dtypes.default_float if dtype is None else to_dtype(dtype)
    if not dtype.is_float:
        raise TypeError(f"{name}: {dtype.name} is no floating type; use randint, or cast the result")
    return dtype


def _shape_and_range(sizes: tuple, low: int, high: int | None, size) -> tuple[tuple, int, int]:
    """What randint's arguments mean: with a tuple at the end or size=, the numbers before are the range."""
    if size is None and len(sizes) > 1 and isinstance(sizes[-1], tuple | list):
        *sizes, size = sizes
    if size is not None and sizes:
        low, high = sizes if len(sizes) == 2 else (low, *sizes)
    shape = shape_from(sizes if size is None else (size,))
    return shape, low, 10 if high is None else high


def _kaiming_std(shape: tuple, a: float) -> float:
    return math.sqrt(2 / (1 + a * a)) / math.sqrt(max(prod(shape[1:]), 1))
