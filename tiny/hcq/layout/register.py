"""Registers: 32-bit words with a place of their own, one by one or a whole file from a generated table."""
import enum
from collections.abc import Iterator, Mapping

from tiny.hcq.layout.base import Layout
from tiny.hcq.layout.field import Field, LayoutError


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


class RegisterFile:
    """Registers of a generated table, each declared when it is first asked for:
    `gfx11.COMPUTE_PGM_RSRC1.word(VGPRS=3)`.

    rows: name -> (offset, {field: (lowest bit, width)}); offsets are in whatever unit the file's owner
    counts.
    """

    def __init__(self, name: str, rows: Mapping[str, tuple[int, Mapping[str, tuple[int, int]]]]):
        self._name, self._rows = name, rows
        self._file = type(Register)(name, (Register,), {"__slots__": (), "__doc__": f"Registers of {name}."})
        self._by_offset = {offset: register for register, (offset, _) in reversed(rows.items())}

    def __getattr__(self, name: str) -> type[Register]:
        row = self._rows.get(name)
        if row is None:
            raise AttributeError(f"{self._name} has no register {name}; the generated table has "
                                 f"{len(self._rows)}")
        offset, fields = row
        known = self._file.at_offset(offset)
        if known is not None and known.__name__ == name:
            return known
        file = self._file if known is None else type(Register)(self._name, (Register,), {"__slots__": ()})
        ranges, taken = {}, 0
        for field, (low, width, *values) in fields.items():
            mask = (1 << width) - 1 << low
            # some headers read a word in several ways: the first counts
            if not taken & mask:
                ranges[_legal(field)] = (low + width - 1, low, *_values(field, *values))
                taken |= mask
        register = type(Register)(name, (file,), {"__slots__": (), **ranges}, offset=offset)
        self.__dict__[name] = register
        return register

    def __iter__(self) -> Iterator[str]:
        """The names of all registers."""
        return iter(self._rows)

    def at_offset(self, offset: int) -> type[Register] | None:
        """The register at that place, or None."""
        name = self._by_offset.get(offset)
        return None if name is None else getattr(self, name)


def _values(field: str, names: Mapping[str, int] | None = None) -> list[type[enum.IntEnum]]:
    """The enumeration of a field's named values, if it has any."""
    return [enum.IntEnum(field, {_legal(name): value for name, value in names.items()})] if names else []


def _legal(name: str) -> str:
    """A header's field name as a Python one."""
    return f"x{name}" if name[0].isdigit() else name
