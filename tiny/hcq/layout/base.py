"""What packets, registers and structures in memory have in common."""
from tiny.hcq.layout.compiled import AtFirstUse, compiled_decode, compiled_encode, units
from tiny.hcq.layout.field import Field, LayoutError, Repeated


class Layout:
    """A fixed arrangement of fields; base of Struct, Packet and Register, which say how it is declared.

    An instance is immutable and holds its fields' values; `at` is the byte offset it was decoded from.
    """
    fields: dict[str, Field] = {}
    fixed: dict[str, int] = {}
    free: dict[str, Field] = {}
    dwords = 0
    __slots__ = ("_values", "at")

    def __init__(self, **values):
        unknown = values.keys() - self.free.keys()
        if unknown:
            raise LayoutError(f"{type(self).__name__} has no free field {', '.join(sorted(unknown))}; it has "
                              f"{', '.join(self.free)}")
        self._values = dict.fromkeys(self.fields)
        self.at = 0
        for name, field in self.fields.items():
            if name in self.fixed:
                self._values[name] = field.shown(field.checked(self.fixed[name]))
            elif field.tail:
                self._values[name] = tuple(map(field.checked, values.get(name, field.default)))
            elif field.bias is None:
                self._values[name] = field.shown(field.checked(values.get(name, field.default)))
        for name, field in self.fields.items():
            if field.bias is not None and name not in self.fixed:
                self._values[name] = len(self) // 4 + field.bias & (1 << field.width) - 1

    def __len__(self) -> int:
        """Bytes, the tail included."""
        tails = (field for field in self.free.values() if field.tail)
        return self.size_bytes + sum(len(self._values[field.name]) * field.size for field in tails)

    def __bytes__(self) -> bytes:
        data = bytearray(len(self))
        self.encode(data, 0, **{name: self._values[name] for name in self.free})
        return bytes(data)

    def items(self):
        """(field name, value) of every field in the order of declaration."""
        return self._values.items()

    def __eq__(self, other) -> bool:
        return type(self) is type(other) and self._values == other._values

    def __hash__(self) -> int:
        return hash((type(self), tuple(self._values.items())))

    def __repr__(self) -> str:
        shown = (f"{name}={field.text(self._values[name])}" for name, field in self.free.items()
                 if self._values[name] != field.default)
        return f"{type(self).__name__}({', '.join(shown)})"

    @classmethod
    def declare(cls, dwords: int, fixed: dict) -> None:
        """Check the fields of `cls`; its `encode` and `decode` are compiled at their first use."""
        cls.fields = {}
        for base in reversed(cls.__mro__):
            for name, value in list(vars(base).items()):
                if isinstance(value, Repeated):
                    for each, field in value.fields(name).items():
                        field.__set_name__(base, each)
                        setattr(base, each, field)
                        cls.fields[each] = field
                    delattr(base, name)
                elif isinstance(value, Field):
                    cls.fields[name] = value
                else:
                    # a form of a packet leaves its tail out: `values = None`
                    cls.fields.pop(name, None)
        cls.dwords, cls.size_bytes = dwords, dwords * 4
        for name in fixed:
            if name not in cls.fields:
                raise LayoutError(f"{cls.__name__}: there is no field {name} to give a value to")
        cls.fixed = {name: cls.fields[name].number(value) for name, value in fixed.items()}
        cls.free = {name: field for name, field in cls.fields.items()
                    if name not in fixed and field.bias is None}
        _check(cls)
        cls.encode, cls.decode = AtFirstUse(compiled_encode), AtFirstUse(compiled_decode)


_RESERVED = {name for name in vars(Layout) if not name.startswith("__")} | {
    "decode", "encode", "size_bytes", "packets", "family", "family_key", "family_fixed", "decode_next",
    "stream", "size_at", "registers", "at_offset", "word", "parse"}


def _check(cls) -> None:
    """Refuse fields that leave their words or the layout, overlap, or take a name that a layout needs."""
    taken = 0
    for name, field in cls.fields.items():
        if name in _RESERVED:
            raise LayoutError(f"{cls.__name__}.{name}: the name has a meaning in a layout; call it {name}_")
        limit = 64 if field.size == 8 else 32
        if field.low + field.width > limit or field.low < 0 or field.width < 1:
            last = field.low + field.width - 1
            raise LayoutError(f"{cls.__name__}.{name}: bits {field.low} ... {last} leave the word")
        if field.tail:
            if field.dword != cls.dwords or not any(f.bias is not None for f in cls.fields.values()):
                raise LayoutError(f"{cls.__name__}.{name}: a tail starts at the end, dword {cls.dwords}, of "
                                  "a packet with a length field")
            continue
        if field.offset + field.size > cls.size_bytes:
            raise LayoutError(f"{cls.__name__}.{name}: dword {field.dword} is outside {cls.dwords} dwords; "
                              f"it has {field.where()}")
        mine = field.mask << (field.dword * 32)
        if taken & mine:
            other = next(f for f in cls.fields.values() if f is not field and f.mask << (f.dword * 32) & mine)
            raise LayoutError(f"{cls.__name__}.{name}: overlaps {other.name}: {field.where()}, and "
                              f"{other.where()}")
        taken |= mine
        field.checked(cls.fixed.get(name, field.default))
    units(cls)


class Struct(Layout):
    """A structure in memory, `class Descriptor(Struct, dwords=16)`: `encode` writes it, `decode` reads it."""
    __slots__ = ()

    def __init_subclass__(cls, dwords: int, **fixed):
        super().__init_subclass__()
        cls.declare(dwords, fixed)


def sequence(name: str, *parts: type[Layout], doc: str = "") -> type[Struct]:
    """Several packets, one after another, as one layout: all their words are written by one call.

    Free fields keep their names, which must differ; what all packets of a family have, such as a predicate
    bit, keeps its default; fixed fields and lengths are filled in. No part may have a tail.
    """
    fields, fixed, place = {}, {}, 0
    for index, part in enumerate(parts):
        header = getattr(part, "family", Layout).fields
        for field_name, field in part.fields.items():
            if field.tail:
                raise LayoutError(f"{name}: {part.__name__}.{field_name} is a tail; give its items names in "
                                  f"a form of it")
            moved = field.moved(place)
            free = field_name in part.free and field_name not in header
            key = field_name if free else f"{field_name}_of_{index}"
            if key in fields:
                raise LayoutError(f"{name}: {part.__name__}.{field_name} is a field of an earlier part too")
            if field_name in part.fixed:
                fixed[key] = part.fixed[field_name]
            elif field.bias is not None:
                fixed[key], moved.bias = part.dwords + field.bias & (1 << field.width) - 1, None
            elif field_name in header:
                fixed[key] = field.default
            fields[key] = moved
        place += part.dwords
    body = {"__slots__": (), "__doc__": doc, "parts": parts, **fields}
    return type(Struct)(name, (Struct,), body, dwords=place, **fixed)
