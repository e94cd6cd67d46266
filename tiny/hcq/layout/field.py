"""Fields: runs of bits in a layout, and the words to declare them with."""
import enum


class LayoutError(ValueError):
    """A declaration that contradicts itself, a value that does not fit, or words that mean nothing known."""


class Truncated(LayoutError):
    """A packet that is known, and cut off by the end of the data."""


class Field:
    """A run of bits in a layout; through an instance it is the value, through the class it is this object.

    dword   index of the first 32-bit word      low  lowest bit in it
    width   bits; low + width is at most 64     kind  an Enum whose members are shown, or None
    unit    a power of two: values are multiples of it, and value // unit is what is stored
    less    what is subtracted from a value before it is stored: 1 where hardware counts from 0
    high_first  the upper half lies in the first word, as NVIDIA's method pairs have it
    offset  bytes from the start of the layout to the word the field lies in     (`size` bytes long: 4 or 8)
    """
    __slots__ = ("name", "dword", "low", "width", "kind", "default", "bias", "tail", "owner", "members",
                 "unit", "less", "high_first")

    def __init__(self, dword: int, low: int, width: int, kind=None, default=0, bias: int | None = None,
                 tail: str = "", unit: int = 1, less: int = 0, high_first: bool = False):
        self.dword, self.low, self.width, self.kind, self.default = dword, low, width, kind, default
        self.bias, self.tail, self.unit, self.less, self.high_first = bias, tail, unit, less, high_first
        self.members = {} if kind is None else {int(member.value): member for member in kind}
        self.name, self.owner = "", None

    def __set_name__(self, owner, name: str):
        self.name, self.owner = name, owner

    def __get__(self, instance, owner):
        return self if instance is None else instance._values[self.name]

    def __set__(self, instance, value):
        raise AttributeError(f"{self}: layouts are immutable; make another one")

    @property
    def offset(self) -> int:
        return self.dword * 4

    @property
    def size(self) -> int:
        return 8 if self.low + self.width > 32 else 4

    @property
    def scale(self) -> int:
        """Bits that a value is moved right by before it is stored."""
        return self.unit.bit_length() - 1

    @property
    def mask(self) -> int:
        """The field's bits within its word."""
        return self.placed((1 << self.width) - 1)

    def placed(self, stored: int) -> int:
        """What `checked` gave, where it belongs in the field's word."""
        if self.high_first:
            return stored >> 32 | (stored & 0xffffffff) << 32
        return stored << self.low

    def moved(self, dwords: int) -> "Field":
        """The same field that many words further on, for another layout."""
        return Field(self.dword + dwords, self.low, self.width, self.kind, self.default, self.bias, self.tail,
                     self.unit, self.less, self.high_first)

    def number(self, value) -> int:
        """The value as an int; LayoutError if it is none."""
        try:
            return int(value.value) if isinstance(value, enum.Enum) else value.__index__()
        except AttributeError:
            raise LayoutError(f"{self}: an integer is needed, not {value!r}") from None

    def checked(self, value) -> int:
        """What is stored for the value; LayoutError if it is no integer or does not fit."""
        number = self.number(value)
        number -= self.less
        if number >> self.width + self.scale:
            highest = ((1 << self.width) - 1 << self.scale) + self.less
            raise LayoutError(f"{self}: {value!r} does not fit {self.width} bits, {self.less} ... "
                              f"{highest:#x}")
        if number & self.unit - 1:
            raise LayoutError(f"{self}: {number:#x} is no multiple of {self.unit}, the unit of its "
                              f"{self.width} bits")
        return number >> self.scale

    def shown(self, stored: int):
        """The value that a stored number stands for:
        a member of the field's enumeration where there is one.
        """
        value = (stored << self.scale) + self.less
        return self.members.get(value, value)

    def text(self, value) -> str:
        if self.tail:
            return "[" + ", ".join(map(hex, value)) + "]"
        return value.name if isinstance(value, enum.Enum) else hex(value)

    def where(self) -> str:
        """For messages: `4 bits from bit 8 of dword 1`."""
        return f"{self.width} bits from bit {self.low} of dword {self.dword}"

    def __repr__(self) -> str:
        return f"{self.owner.__name__ if self.owner else '?'}.{self.name}"


def bits(dword: int, low: int, width: int, kind=None, default=0, unit: int = 1, less: int = 0) -> Field:
    """`width` bits of word `dword` from bit `low` up; `kind`: an Enum of the values that have names."""
    return Field(dword, low, width, kind, default or less, unit=unit, less=less)


def span(bit: int, width: int, kind=None, default=0, unit: int = 1) -> Field:
    """`width` bits from bit `bit` of the whole layout up, as NVIDIA's `MW(high:low)` counts them."""
    return Field(bit // 32, bit % 32, width, kind, default, unit=unit)


def u32(dword: int, kind=None, default=0) -> Field:
    """The whole word."""
    return Field(dword, 0, 32, kind, default)


def u64(dword: int, default=0) -> Field:
    """Two words, the low one first."""
    return Field(dword, 0, 64, None, default)


def high_first(dword: int, width: int, default=0, unit: int = 1) -> Field:
    """Two words, the high one first: `width` - 32 bits of word `dword`, all of the next."""
    return Field(dword, 0, width, None, default, unit=unit, high_first=True)


def length(dword: int, low: int, width: int, bias: int = 0) -> Field:
    """Filled in by encode: the packet's size in dwords plus `bias`, modulo the width."""
    return Field(dword, low, width, bias=bias)


def tail(dword: int, code: str = "I") -> Field:
    """Any number of items from `dword` to the packet's end; code: "I" for u32, "Q" for u64."""
    return Field(dword, 0, 64 if code == "Q" else 32, default=(), tail=code)


class Repeated:
    """Fields at a distance, see `repeated`."""

    def __init__(self, count: int, first: Field, stride: int):
        self.count, self.first, self.stride = count, first, stride

    def fields(self, name: str) -> dict[str, Field]:
        """name_0 ... : the fields it stands for."""
        start = self.first.dword * 32 + self.first.low
        return {f"{name}_{i}": span(start + i * self.stride, self.first.width, self.first.kind,
                                    self.first.default,
                                    self.first.unit) for i in range(self.count)}


def repeated(count: int, first: Field, stride: int) -> Repeated:
    """`valid = repeated(8, span(640, 1), stride=1)` declares valid_0 ... valid_7, `stride` bits apart."""
    return Repeated(count, first, stride)
