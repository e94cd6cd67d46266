"""Packets: commands in a stream, found by the number in their header."""
from collections.abc import Iterator

from tiny.hcq.layout.base import Layout
from tiny.hcq.layout.field import Field, LayoutError, Truncated


class Packet(Layout):
    """A command. A subclass with `key` starts a family: its fields are in every packet of the family, and
    `key`, a field name or a tuple of them, tells the packets apart. Other keywords fix fields of one packet,
    or in a family's declaration, of all. A family made from a family knows that one's packets too, unless it
    declares its own.

    A subclass of a packet is a form of it: more fields fixed, a tail replaced by named fields. It only
    encodes; what it wrote decodes as the packet.
    """
    __slots__ = ()
    packets: dict[tuple, type["Packet"]] = {}
    family_key: tuple[str, ...] = ()
    family_fixed: dict[str, int] = {}

    def __init_subclass__(cls, dwords: int | None = None, key: str | tuple[str, ...] = (), **fixed):
        super().__init_subclass__()
        if key:
            cls._start_family((key,) if isinstance(key, str) else tuple(key), fixed)
            return
        if dwords is None:
            raise LayoutError(f"{cls.__name__}: give its length, dwords=..., or start a family with key=...")
        base = cls.__mro__[1]
        form = base is not cls.family
        cls.declare(dwords, (base.fixed if form else cls.family_fixed) | fixed)
        missing = [name for name in cls.family_key if name not in cls.fixed]
        if missing:
            raise LayoutError(f"{cls.__name__}: a {cls.family.__name__} needs {', '.join(missing)}=...")
        number = tuple(cls.fixed[name] for name in cls.family_key)
        if form:
            if number != tuple(base.fixed[name] for name in cls.family_key):
                raise LayoutError(f"{cls.__name__}: a form of {base.__name__} keeps its "
                                  f"{', '.join(cls.family_key)}")
            return
        other = vars(cls.family)["packets"].setdefault(number, cls)
        if other is not cls:
            raise LayoutError(f"{cls.__name__}: {other.__name__} has the same {', '.join(cls.family_key)}")

    @classmethod
    def _start_family(cls, key: tuple[str, ...], fixed: dict[str, int]) -> None:
        cls.family_key, cls.packets, cls.family = key, {}, cls
        cls.family_fixed = cls.family_fixed | fixed
        own = [v for base in cls.__mro__ for v in vars(base).values() if isinstance(v, Field)]
        cls.declare(max(field.offset + field.size for field in own) // 4, {})

    @classmethod
    def packet_for(cls, number: tuple[int, ...]) -> type["Packet"] | None:
        """The packet of this family, or of the one it was made from, with those values in its key fields."""
        for base in cls.family.__mro__:
            found = vars(base).get("packets", {}).get(number)
            if found is not None:
                return found
        return None

    @classmethod
    def variant_at(cls, buffer, offset: int) -> type["Packet"]:
        """The packet that really stands there: for one that a flag of its own makes longer or shorter."""
        return cls

    @classmethod
    def size_at(cls, buffer, offset: int) -> int:
        """Bytes of this packet at `offset`, as its length field says it."""
        counter = next((f for name, f in cls.fields.items() if f.bias is not None and name not in cls.fixed),
                       None)
        if counter is None:
            return cls.size_bytes
        word = int.from_bytes(buffer[offset + counter.offset:offset + counter.offset + 4], "little")
        count = (word & counter.mask) >> counter.low
        size = (count - counter.bias & (1 << counter.width) - 1) * 4
        grows = any(field.tail for field in cls.fields.values())
        if size < cls.size_bytes or (size != cls.size_bytes and not grows):
            declared = f"{cls.size_bytes}{' or more' if grows else ''}"
            raise LayoutError(f"{cls.__name__} at offset {offset:#x}: its {counter.width}-bit "
                              f"{counter.name} says {size} bytes, declared are {declared}")
        return size

    @classmethod
    def decode_next(cls, buffer, offset: int = 0) -> tuple["Packet", int]:
        """The packet at byte `offset` and its size in bytes. LayoutError, with the place, if unknown."""
        available = len(buffer) - offset
        if available < cls.family.size_bytes:
            raise Truncated(f"{cls.family.__name__}: {available} bytes at offset {offset:#x} are no packet, "
                            f"whose header has {cls.family.size_bytes}")
        header = cls.family.decode(buffer, offset)
        number = tuple(int(getattr(v := header._values[name], "value", v)) for name in cls.family_key)
        kind = cls.packet_for(number)
        if kind is None:
            what = ", ".join(f"{name} {n:#x}" for name, n in zip(cls.family_key, number, strict=True))
            raise LayoutError(f"{cls.family.__name__}: no packet has {what}, found at offset {offset:#x}")
        kind = kind.variant_at(buffer, offset)
        if available < kind.size_bytes:
            raise Truncated(f"{kind.__name__} at offset {offset:#x}: truncated, it has {kind.size_bytes} "
                            f"bytes and {available} are left; {_cut(kind, available)}")
        size = kind.size_at(buffer, offset)
        if size > available:
            counter = next(f for f in kind.fields.values() if f.bias is not None)
            raise Truncated(f"{kind.__name__} at offset {offset:#x}: truncated, its {counter.width}-bit "
                            f"{counter.name} says {size} bytes and {available} are left")
        return kind.decode(buffer, offset, size), size

    @classmethod
    def stream(cls, buffer) -> Iterator["Packet"]:
        """Every packet in `buffer` (bytes-like), in order; each has `at`, its byte offset."""
        buffer = memoryview(buffer).cast("B")
        offset = 0
        while offset < len(buffer):
            packet, size = cls.decode_next(buffer, offset)
            yield packet
            offset += size


def _cut(kind: type[Packet], available: int) -> str:
    """Names the first field that a truncated packet lacks."""
    lost = min((f for f in kind.fields.values() if f.offset + f.size > available and not f.tail),
               key=lambda f: f.offset, default=None)
    return "nothing is lost" if lost is None else f"{lost.name} ({lost.where()}) is missing"
