"""Words that hardware reads, declared once: packets, registers and memory structures.

One declaration encodes (one checked `struct.pack_into`), decodes, says where a field lies so that a template
can be patched, prints itself with names, and tells an emulator what arrived:

    class Family(Packet, key="op"):                 # what all packets of one command processor share
        op    = bits(0, 8, 8)                       # dword, lowest bit, width
        count = length(0, 16, 14, bias=-2)          # filled in: dwords of the packet plus the bias
    class WriteData(Family, op=0x37, dwords=4):
        engine  = bits(1, 30, 2, Engine)            # values are shown as members of the enumeration
        address = u64(2)

    WriteData.encode(ring, offset, address=0x1000)  # -> bytes written
    WriteData.address.offset                        # -> 8, where a patch goes
    for packet in Family.stream(memory): print(packet)

Everything is little-endian. Declaring checks: fields that overlap, leave the packet or share an opcode raise
LayoutError at import, and a value that does not fit is a LayoutError that names the field and its width.
"""
import enum
import struct
from collections.abc import Callable, Iterator


class LayoutError(ValueError):
    """A declaration that contradicts itself, a value that does not fit, or words that mean nothing known."""


class Field:
    """A run of bits in a layout; through an instance it is the value, through the class it is this object.

    dword   index of the first 32-bit word      low  lowest bit in it
    width   bits, up to 32, or 64 for a u64     kind  an Enum whose members are shown, or None
    offset  bytes from the start of the layout to the word the field lies in     (`size` bytes long: 4 or 8)
    """
    __slots__ = ("name", "dword", "low", "width", "kind", "default", "bias", "tail", "owner", "members")

    def __init__(self, dword: int, low: int, width: int, kind=None, default=0, bias: int | None = None,
                 tail: str = ""):
        self.dword, self.low, self.width, self.kind, self.default = dword, low, width, kind, default
        self.bias, self.tail = bias, tail
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
        return 8 if self.width == 64 else 4

    @property
    def mask(self) -> int:
        """The field's bits within its word."""
        return ((1 << self.width) - 1) << self.low

    def checked(self, value) -> int:
        """The value as an int; LayoutError if it is no integer or does not fit."""
        try:
            number = int(value.value) if isinstance(value, enum.Enum) else value.__index__()
        except AttributeError:
            raise LayoutError(f"{self}: an integer is needed, not {value!r}") from None
        if number >> self.width:
            highest = (1 << self.width) - 1
            raise LayoutError(f"{self}: {value!r} does not fit {self.width} bits, 0 ... {highest:#x}")
        return number

    def text(self, value) -> str:
        if self.tail:
            return "[" + ", ".join(map(hex, value)) + "]"
        return value.name if isinstance(value, enum.Enum) else hex(value)

    def __repr__(self) -> str:
        return f"{self.owner.__name__ if self.owner else '?'}.{self.name}"


def bits(dword: int, low: int, width: int, kind=None, default=0) -> Field:
    """`width` bits of word `dword` from bit `low` up; `kind`: an Enum of the values that have names."""
    return Field(dword, low, width, kind, default)


def u32(dword: int, kind=None, default=0) -> Field:
    """The whole word."""
    return Field(dword, 0, 32, kind, default)


def u64(dword: int, default=0) -> Field:
    """Two words, the low one first."""
    return Field(dword, 0, 64, None, default)


def length(dword: int, low: int, width: int, bias: int = 0) -> Field:
    """Filled in by encode: the packet's size in dwords plus `bias`. A family that has one may have tails."""
    return Field(dword, low, width, bias=bias)


def tail(dword: int, code: str = "I") -> Field:
    """Any number of items from `dword` to the packet's end; code: "I" for u32, "Q" for u64."""
    return Field(dword, 0, 64 if code == "Q" else 32, default=(), tail=code)


class Layout:
    """A fixed arrangement of fields; base of Struct, Packet and Register, which say how it is declared.

    An instance is immutable and holds its fields' values; `at` is the byte offset it was decoded from.
    """
    fields: dict[str, Field] = {}
    fixed: dict[str, int] = {}
    dwords = 0
    __slots__ = ("_values", "at")

    def __init__(self, **values):
        unknown = values.keys() - self.free.keys()
        if unknown:
            raise LayoutError(f"{type(self).__name__} has no free field {', '.join(sorted(unknown))}; it has "
                              f"{', '.join(self.free)}")
        self._values = dict.fromkeys(self.fields) | self.fixed
        self.at = 0
        for name, field in self.free.items():
            value = values.get(name, field.default)
            if field.tail:
                self._values[name] = tuple(map(field.checked, value))
            else:
                number = field.checked(value)
                self._values[name] = field.members.get(number, number)
        for name, field in self.fields.items():
            if field.bias is not None:
                self._values[name] = len(self) // 4 + field.bias

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
        """Check the fields of `cls` and compile its `encode` and `decode`."""
        cls.fields = {name: value for base in reversed(cls.__mro__) for name, value in vars(base).items()
                      if isinstance(value, Field)}
        cls.dwords, cls.size_bytes = dwords, dwords * 4
        for name in fixed:
            if name not in cls.fields:
                raise LayoutError(f"{cls.__name__}: there is no field {name} to give a value to")
        cls.fixed = {name: cls.fields[name].checked(value) for name, value in fixed.items()}
        cls.free = {name: field for name, field in cls.fields.items()
                    if name not in fixed and field.bias is None}
        _check(cls)
        cls.encode, cls.decode = _AtFirstUse(_compiled_encode), _AtFirstUse(_compiled_decode)


class _AtFirstUse:
    """A function of a layout that is compiled when it is first asked for: there are thousands of registers.
    """
    def __init__(self, compile: Callable):
        self.compile = compile

    def __get__(self, instance, owner):
        compiled = self.compile(owner)
        setattr(owner, compiled.__name__, staticmethod(compiled))
        return compiled


def _check(cls) -> None:
    taken = 0
    for name, field in cls.fields.items():
        if any(name in vars(base) for base in cls.__mro__ if base.__module__ == __name__):
            raise LayoutError(f"{cls.__name__}.{name}: the name has a meaning in a layout; call it {name}_")
        word_bits = 64 if field.width == 64 else 32
        if field.low + field.width > word_bits or field.low < 0 or field.width < 1:
            last = field.low + field.width - 1
            raise LayoutError(f"{cls.__name__}.{name}: bits {field.low} ... {last} leave the word")
        if field.tail:
            if field.dword != cls.dwords or not any(f.bias is not None for f in cls.fields.values()):
                raise LayoutError(f"{cls.__name__}.{name}: a tail starts at the end, dword {cls.dwords}, of "
                                  "a packet whose family has a length field")
            continue
        mine = field.mask << (field.dword * 32)
        if field.offset + field.size > cls.size_bytes:
            raise LayoutError(f"{cls.__name__}.{name}: dword {field.dword} is outside {cls.dwords} dwords")
        if taken & mine:
            other = next(f for f in cls.fields.values() if f is not field and f.mask << (f.dword * 32) & mine)
            raise LayoutError(f"{cls.__name__}.{name}: overlaps {other.name}")
        taken |= mine
        field.checked(field.default)


def _units(cls) -> list[tuple[str, list[Field]]]:
    """The words of `cls` in order: struct code ("I" or "Q") and the fields that lie in each."""
    units, dword = [], 0
    while dword < cls.dwords:
        inside = [field for field in cls.fields.values() if field.dword == dword and not field.tail]
        code = "Q" if any(field.width == 64 for field in inside) else "I"
        units.append((code, inside))
        dword += 2 if code == "Q" else 1
    return units


def _struct_of(cls) -> struct.Struct:
    return struct.Struct("<" + "".join(code for code, _ in _units(cls)))


def _compiled_encode(cls):
    """encode(buffer, offset=0, *, field=default, ...) -> bytes written, as one plain function without loops.

    buffer: writable, at least offset + size bytes. LayoutError for a value that does not fit.
    """
    tail_name = next((name for name, field in cls.free.items() if field.tail), None)
    step = 0 if tail_name is None else cls.free[tail_name].size // 4
    total = f"({cls.dwords} + {step} * len({tail_name}))" if tail_name else str(cls.dwords)
    words = []
    for _, inside in _units(cls):
        constant = sum(cls.fixed[f.name] << f.low for f in inside if f.name in cls.fixed)
        terms = [f"{f.name} << {f.low}" if f.low else f.name for f in inside if f.name in cls.free]
        counted = (f for f in inside if f.bias is not None and f.name not in cls.fixed)
        terms += [f"({total} + {f.bias}) << {f.low}" for f in counted]
        words.append(" | ".join([hex(constant)] * (constant != 0 or not terms) + terms))
    parameters = ", ".join(f"{name}=_default_{name}" for name in cls.free)
    checks = " or ".join(f"{name} >> {f.width}" for name, f in cls.free.items() if not f.tail) or "False"
    given = ", ".join(f"{name}={name}" for name in cls.free)
    body = [f"def encode(_buffer, _offset=0, /{', *, ' if parameters else ''}{parameters}):",
            "    try:",
            f"        if {checks}:",
            f"            _complain({given})",
            f"        _pack(_buffer, _offset, {', '.join(words)})"]
    if tail_name:
        body.append(f"        _pack_tail(f'<{{len({tail_name})}}{cls.free[tail_name].tail}', _buffer, "
                    f"_offset + {cls.size_bytes}, *{tail_name})")
    body += ["    except (TypeError, _struct_error):",
             f"        _complain({given})",
             "        raise",
             f"    return {total} * 4"]
    scope = {f"_default_{name}": field.default if field.tail else field.checked(field.default)
             for name, field in cls.free.items()}
    scope |= {"_pack": _struct_of(cls).pack_into, "_pack_tail": struct.pack_into, "_complain": cls,
              "_struct_error": struct.error}
    exec("\n".join(body), scope)                # as dataclasses do: one function for each declaration
    return scope["encode"]


def _compiled_decode(cls):
    """decode(buffer, offset=0, size=None) -> instance. size: bytes of the packet, if it has a tail."""
    names = [f"_{i}" for i in range(len(_units(cls)))]
    parts, scope = [], {"_new": object.__new__, "_cls": cls, "_unpack_tail": struct.unpack_from}
    for name, (_, inside) in zip(names, _units(cls), strict=True):
        for field in inside:
            value = f"{name} >> {field.low}" if field.low else name
            if field.width not in (32, 64) and field.low + field.width < 32:
                value = f"({value}) & {hex((1 << field.width) - 1)}"
            if field.kind is not None:
                scope[f"_kind_{field.name}"] = field.members.get
                value = f"_kind_{field.name}({value}, {value})"
            parts.append(f"{field.name!r}: {value}")
    for field in cls.fields.values():
        if field.tail:
            count = f"(_size - {cls.size_bytes}) // {field.size}"
            parts.append(f"{field.name!r}: _unpack_tail(f'<{{{count}}}{field.tail}', _buffer, "
                         f"_offset + {cls.size_bytes})")
    scope["_unpack"] = _struct_of(cls).unpack_from
    body = ["def decode(_buffer, _offset=0, _size=None):",
            f"    _size = {cls.size_bytes} if _size is None else _size",
            f"    ({', '.join(names)},) = _unpack(_buffer, _offset)" if names else "",
            "    _self = _new(_cls)",
            "    _self.at = _offset",
            f"    _self._values = {{{', '.join(parts)}}}",
            "    return _self"]
    exec("\n".join(body), scope)
    return scope["decode"]


class Struct(Layout):
    """A structure in memory, `class Descriptor(Struct, dwords=16)`: `encode` writes it, `decode` reads it."""
    __slots__ = ()

    def __init_subclass__(cls, dwords: int, **fixed):
        super().__init_subclass__()
        cls.declare(dwords, fixed)


class Packet(Layout):
    """A command. A direct subclass with `key` starts a family: its fields are in every packet of the family,
    and `key`, a field name or a tuple of them, tells the packets apart. Other keywords fix family fields.
    """
    __slots__ = ()
    packets: dict[tuple, type["Packet"]] = {}
    family_key: tuple[str, ...] = ()

    def __init_subclass__(cls, dwords: int | None = None, key: str | tuple[str, ...] = (), **fixed):
        super().__init_subclass__()
        if key:
            cls.family_key, cls.packets, cls.family = (key,) if isinstance(key, str) else tuple(key), {}, cls
            own = [value for value in vars(cls).values() if isinstance(value, Field)]
            cls.declare(max(field.offset + field.size for field in own) // 4, {})
            return
        if dwords is None:
            raise LayoutError(f"{cls.__name__}: give its length, dwords=..., or start a family with key=...")
        cls.declare(dwords, fixed)
        missing = [name for name in cls.family_key if name not in cls.fixed]
        if missing:
            raise LayoutError(f"{cls.__name__}: a {cls.family.__name__} needs {', '.join(missing)}=...")
        number = tuple(cls.fixed[name] for name in cls.family_key)
        other = cls.packets.setdefault(number, cls)
        if other is not cls:
            raise LayoutError(f"{cls.__name__}: {other.__name__} has the same {', '.join(cls.family_key)}")

    @classmethod
    def decode_next(cls, buffer, offset: int = 0) -> tuple["Packet", int]:
        """The packet at byte `offset` and its size in bytes. LayoutError, with the place, if unknown."""
        available = len(buffer) - offset
        if available < cls.family.size_bytes:
            raise LayoutError(f"{cls.family.__name__}: {available} bytes at offset {offset:#x} are no packet")
        header = cls.family.decode(buffer, offset)
        number = tuple(int(header._values[name]) for name in cls.family_key)
        kind = cls.packets.get(number)
        if kind is None:
            what = ", ".join(f"{name} {n:#x}" for name, n in zip(cls.family_key, number, strict=True))
            raise LayoutError(f"{cls.family.__name__}: no packet has {what}, found at offset {offset:#x}")
        counter = next((field for field in kind.fields.values() if field.bias is not None), None)
        size = kind.size_bytes if counter is None else (header._values[counter.name] - counter.bias) * 4
        grows = any(field.tail for field in kind.fields.values())
        if size > available or size < kind.size_bytes or (size != kind.size_bytes and not grows):
            declared = f"{kind.size_bytes}{' or more' if grows else ''}"
            raise LayoutError(f"{kind.__name__} at offset {offset:#x}: its header says {size} bytes, "
                              f"declared are {declared}, {available} are left")
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


class Register(Layout):
    """One 32-bit register: `class COMPUTE_PGM_RSRC1(GcRegister, offset=0x1bb2): VGPRS = 5, 0` (highest and
    lowest bit, optionally an Enum). A direct subclass without an offset starts a register file, which finds
    its registers: `GcRegister.at_offset(0x1bb2)`.
    """
    __slots__ = ()
    registers: dict[int, type["Register"]] = {}
    offset = None

    def __init_subclass__(cls, offset: int | None = None):
        super().__init_subclass__()
        if offset is None:
            cls.registers = {}
            return
        for name, value in list(vars(cls).items()):
            if isinstance(value, tuple) and not name.startswith("_"):
                high, low, *kind = value
                field = Field(0, low, high - low + 1, *kind)
                field.__set_name__(cls, name)
                setattr(cls, name, field)
        cls.offset = offset
        cls.declare(1, {})
        other = cls.registers.setdefault(offset, cls)
        if other is not cls:
            raise LayoutError(f"{cls.__name__}: {other.__name__} has the same offset {offset:#x}")

    @classmethod
    def at_offset(cls, offset: int) -> type["Register"] | None:
        return cls.registers.get(offset)

    @classmethod
    def word(cls, **fields) -> int:
        """The register's word with these fields set."""
        return int.from_bytes(bytes(cls(**fields)), "little")

    @classmethod
    def parse(cls, word: int) -> "Register":
        """The register that holds `word`."""
        return cls.decode(word.to_bytes(4, "little"))
