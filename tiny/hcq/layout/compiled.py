"""How a layout's fields become two plain functions:
one that packs all of its words at once, one that unpacks them.

As dataclasses do, the text of each function is written and executed once for each declaration, when it is
first used.
"""
import struct
from collections.abc import Callable
from typing import NamedTuple

from tiny.hcq.layout.field import Field, LayoutError


class Unit(NamedTuple):
    """One number for `struct`: code "I" or "Q", its first dword, and the fields in it."""
    code: str
    dword: int
    fields: list[Field]

    def shift(self, field: Field) -> int:
        """The field's lowest bit in this unit."""
        return (field.dword - self.dword) * 32 + field.low

    @property
    def width(self) -> int:
        return 64 if self.code == "Q" else 32


class AtFirstUse:
    """A function of a layout that is compiled when it is first asked for:
    there are thousands of registers.
    """

    def __init__(self, compile: Callable):
        self.compile = compile

    def __get__(self, instance, owner):
        compiled = self.compile(owner)
        setattr(owner, compiled.__name__, staticmethod(compiled))
        return compiled


def units(cls) -> list[Unit]:
    """The words of `cls` in order; two of them are one unit where a field lies in both."""
    found, dword = [], 0
    crossing = {field.dword for field in cls.fields.values() if field.size == 8 and not field.tail}
    while dword < cls.dwords:
        code, words = ("Q", (dword, dword + 1)) if dword in crossing else ("I", (dword,))
        if code == "Q" and dword + 1 in crossing:
            raise LayoutError(f"{cls.__name__}: fields cross from dword {dword} to {dword + 1} and on to "
                              f"{dword + 2}")
        inside = [f for f in cls.fields.values() if f.dword in words and not f.tail]
        found.append(Unit(code, dword, inside))
        dword += len(words)
    return found


def _struct_of(found: list[Unit]) -> struct.Struct:
    return struct.Struct("<" + "".join(unit.code for unit in found))


def _term(field: Field, shift: int) -> str:
    """The expression that puts a field's value in its place."""
    stored = f"({field.name} - {field.less})" if field.less else field.name
    stored = f"({stored} >> {field.scale})" if field.scale else stored
    if field.high_first:
        return f"({stored} >> 32 | ({stored} & 0xffffffff) << 32)"
    return f"{stored} << {shift}" if shift else stored


def _word(cls, unit: Unit, total: str) -> str:
    """The expression for one unit: its constant bits and its fields."""
    constant, terms = 0, []
    for field in unit.fields:
        shift = unit.shift(field)
        if field.name in cls.fixed:
            placed = field.placed(field.checked(cls.fixed[field.name]))
            constant |= placed << shift - field.low
        elif field.bias is not None:
            mask = (1 << field.width) - 1
            if total.isdigit():
                constant |= (int(total) + field.bias & mask) << shift
            else:
                terms.append(f"({total} + {field.bias} & {mask}) << {shift}")
        else:
            terms.append(_term(field, shift))
    return " | ".join([hex(constant)] * (constant != 0 or not terms) + terms)


def _checks(cls, found: list[Unit]) -> str:
    """The condition that some value does not fit. struct itself refuses what does not fit a whole unit."""
    alone = {unit.fields[0].name for unit in found if len(unit.fields) == 1
             and unit.fields[0].width == unit.width and not unit.fields[0].high_first
             and unit.fields[0].unit == 1}
    checks = []
    for name, field in cls.free.items():
        if not field.tail and name not in alone:
            value = f"({name} - {field.less})" if field.less else name
            checks.append(f"{value} >> {field.width + field.scale}")
            checks += [f"{value} & {field.unit - 1}"] * (field.unit > 1)
    return " or ".join(checks)


def compiled_encode(cls):
    """encode(buffer, offset=0, *, field=default, ...) -> bytes written, as one plain function without loops.

    buffer: writable, at least offset + size bytes. LayoutError for a value that does not fit.
    """
    found = units(cls)
    tail_name = next((name for name, field in cls.free.items() if field.tail), None)
    step = 0 if tail_name is None else cls.free[tail_name].size // 4
    total = f"({cls.dwords} + {step} * len({tail_name}))" if tail_name else str(cls.dwords)
    parameters = ", ".join(f"{name}=_default_{name}" for name in cls.free)
    given = ", ".join(f"{name}={name}" for name in cls.free)
    checks = _checks(cls, found)
    body = [f"def encode(_buffer, _offset=0, /{', *, ' if parameters else ''}{parameters}):", "    try:"]
    if checks:
        body += [f"        if {checks}:", f"            _complain({given})"]
    body.append(f"        _pack(_buffer, _offset, {', '.join(_word(cls, unit, total) for unit in found)})")
    if tail_name:
        body.append(f"        _pack_tail(f'<{{len({tail_name})}}{cls.free[tail_name].tail}', _buffer, "
                    f"_offset + {cls.size_bytes}, *{tail_name})")
    body += ["    except (TypeError, _struct_error):", f"        _complain({given})", "        raise",
             f"    return {total} * 4"]
    scope = {f"_default_{name}": field.default if field.tail else field.number(field.default)
             for name, field in cls.free.items()}
    scope |= {"_pack": _struct_of(found).pack_into, "_pack_tail": struct.pack_into, "_complain": cls,
              "_struct_error": struct.error}
    exec("\n".join(body), scope)
    return scope["encode"]


def _value(field: Field, unit: Unit, name: str) -> str:
    """The expression that takes a field's value out of its unit."""
    if field.high_first:
        value = f"({name} >> 32 | ({name} & {(1 << field.width - 32) - 1}) << 32)"
        return f"({value} << {field.scale})" if field.scale else value
    shift = unit.shift(field)
    value = f"{name} >> {shift}" if shift else name
    if shift + field.width < unit.width:
        value = f"({value}) & {hex((1 << field.width) - 1)}"
    value = f"(({value}) << {field.scale})" if field.scale else value
    return f"(({value}) + {field.less})" if field.less else value


def compiled_decode(cls):
    """decode(buffer, offset=0, size=None) -> instance. size: bytes of the packet, if it has a tail."""
    found = units(cls)
    names = [f"_{i}" for i in range(len(found))]
    parts, scope = {}, {"_new": object.__new__, "_cls": cls, "_unpack_tail": struct.unpack_from,
                        "_unpack": _struct_of(found).unpack_from}
    for name, unit in zip(names, found, strict=True):
        for field in unit.fields:
            value = _value(field, unit, name)
            if field.kind is not None:
                scope[f"_kind_{field.name}"] = field.members.get
                value = f"_kind_{field.name}({value}, {value})"
            parts[field.name] = value
    for field in cls.fields.values():
        if field.tail:
            count = f"(_size - {cls.size_bytes}) // {field.size}"
            parts[field.name] = (f"_unpack_tail(f'<{{{count}}}{field.tail}', _buffer, "
                                 f"_offset + {cls.size_bytes})")
    values = ", ".join(f"{name!r}: {parts[name]}" for name in cls.fields)
    body = ["def decode(_buffer, _offset=0, _size=None):",
            f"    _size = {cls.size_bytes} if _size is None else _size",
            f"    ({', '.join(names)},) = _unpack(_buffer, _offset)" if names else "",
            "    _self = _new(_cls)",
            "    _self.at = _offset",
            f"    _self._values = {{{values}}}",
            "    return _self"]
    exec("\n".join(body), scope)
    return scope["decode"]
