"""Tables out of headers that describe registers, packets and methods as macros. Rows are tuples; the first
line of each function's docstring goes into the generated module as the description of its rows.
"""
import re
from collections.abc import Sequence

from tiny.autogen.generator import macros
from tiny.autogen.generator.libclang import HeaderError


def _matching(name: str, patterns: Sequence[str]) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def registers(source, patterns: Sequence[str], prefix: str = "reg") -> dict[str, tuple]:
    """name: (dword offset in its segment, segment, {field: (lowest bit, width)})

    Reads the kernel's asic_reg pairs: `regNAME` and `regNAME_BASE_IDX` in an _offset.h, `NAME__FIELD__SHIFT`
    and `NAME__FIELD_MASK` in a _sh_mask.h. They are plain numbers, so their text is read directly.
    """
    numbers: dict[str, int] = {}
    for path in source.paths:
        text = path.read_text(errors="replace")
        defines = re.finditer(r"^#define\s+(\w+)\s+(0x[0-9a-fA-F]+|\d+)L?\s*$", text, re.M)
        numbers |= {match[1]: int(match[2], 0) for match in defines}
    rows: dict[str, tuple] = {}
    for name, offset in numbers.items():
        register = name.removeprefix(prefix)
        if name.startswith(prefix) and f"{name}_BASE_IDX" in numbers and _matching(register, patterns):
            rows[register] = (offset, numbers[f"{name}_BASE_IDX"], {})
    for name, shift in numbers.items():
        register, _, field = name.removesuffix("__SHIFT").partition("__")
        if name.endswith("__SHIFT") and register in rows:
            mask = numbers[f"{register}__{field}_MASK"] >> shift
            if mask & (mask + 1):
                raise HeaderError(f"{register}.{field}: mask {mask:#x} is not one run of bits")
            rows[register][2][field] = (shift, mask.bit_length())
    if not rows:
        raise HeaderError(f"no register matches {patterns}; correct the manifest")
    return rows


def field_macros(source, patterns: Sequence[str], strip: str = "") -> dict[str, tuple]:
    """macro of one argument: (shift, width; None where the header does not mask)"""
    found = macros.shifts(source.names(patterns, taking_argument=True), source.text, source.includes)
    return {name.removeprefix(strip): row for name, row in found.items()}


def sdma_packets(source, patterns: Sequence[str]) -> dict[str, dict]:
    """packet: {field: (dword, lowest bit, width)}

    Reads `SDMA_PKT_PACKET_WORD_field_{offset,mask,shift}`. A comment before each packet gives its name, which
    its words' names may extend; words are in capitals, fields are not.
    """
    text = "".join(path.read_text(errors="replace") for path in source.paths)
    known = set(re.findall(r"Definitions for SDMA_PKT_(\w+) packet", text))
    numbers = {m[1]: int(m[2], 0) for m in re.finditer(r"^#define (\w+)\s+(0x[0-9a-fA-F]+|\d+)\s*$", text,
                                                       re.M)}
    missing = [packet for packet in patterns if packet not in known]
    if missing:
        raise HeaderError(f"no SDMA packet {', '.join(missing)} in this header; correct the manifest")
    rows: dict[str, dict] = {packet: {} for packet in patterns}
    for name, dword in numbers.items():
        match = re.fullmatch(r"SDMA_PKT_([A-Z0-9_]+?)_([a-z]\w*)_offset", name)
        packet = max((p for p in known if match and f"{match[1]}_".startswith(f"{p}_")), key=len,
                     default=None)
        if packet in rows:
            stem = name.removesuffix("_offset")
            rows[packet][match[2]] = (dword, numbers[f"{stem}_shift"], numbers[f"{stem}_mask"].bit_length())
    return rows


def methods(source, patterns: Sequence[str], prefix: str, words: Sequence[str] = ()) -> dict[str, tuple]:
    """method: (address, step between its elements or 0, {field: (lowest bit, width, {value: number})})

    Reads NVIDIA class headers. A macro with a number begins a method, bit ranges whose names extend it are
    its fields, and numbers whose names extend a field are that field's values. `words`: names of memory words
    that have fields and no address.
    """
    plain = source.names([f"{prefix}.*"])
    indexed = source.names([f"{prefix}.*"], taking_argument=True)
    numbers = macros.constants(plain, source.text, source.includes)
    ranges = macros.ranges([name for name in plain if name not in numbers], source.text, source.includes)
    arrays = macros.indexed_constants(indexed, source.text, source.includes)
    rows: dict[str, tuple] = {word: (None, 0, {}) for word in words}
    method, field = "", ""
    for full in macros.names(source.paths):
        name = full.removeprefix(prefix)
        if full in ranges:
            owner = max((w for w in words if name.startswith(f"{w}_")), key=len, default=method)
            if not name.startswith(f"{owner}_"):
                owner = max((row for row in rows if name.startswith(f"{row}_")), key=len, default=None)
            if owner is not None:
                method, field = owner, name
                rows[owner][2][name[len(owner) + 1:]] = (*ranges[full], {})
        elif full in arrays:
            method, field = name, ""
            rows[name] = (*arrays[full], {})
        elif full in numbers and field and name.startswith(f"{field}_"):
            rows[method][2][field[len(method) + 1:]][2][name[len(field) + 1:]] = numbers[full]
        elif full in numbers:
            method, field = name, ""
            rows[name] = (numbers[full], 0, {})
    chosen = {name: row for name, row in rows.items() if _matching(name, patterns)}
    for _, _, fields in chosen.values():
        for _, _, values in fields.values():
            if values.keys() <= {"TRUE", "FALSE"}:            # says nothing that a one-bit field does not say
                values.clear()
    for pattern in patterns:
        if not any(re.fullmatch(pattern, name) for name in chosen):
            raise HeaderError(f"no method of {prefix}* matches {pattern!r}; correct the manifest")
    return chosen


def structure_bits(source, patterns: Sequence[str], prefix: str) -> dict[str, tuple]:
    """field: (lowest bit in the structure, width, bits between its elements or 0, {value: number})

    Reads the `MW(high:low)` macros of a QMD header: bit 0 is the lowest bit of the structure's first byte.
    """
    plain = source.names([f"{prefix}.*"])
    indexed = source.names([f"{prefix}.*"], taking_argument=True)
    numbers = macros.constants(plain, source.text, source.includes)
    ranges = macros.ranges([name for name in plain if name not in numbers], source.text, source.includes)
    arrays = macros.indexed_ranges(indexed, source.text, source.includes)
    rows: dict[str, tuple] = {}
    field = ""
    for full in macros.names(source.paths):
        name = full.removeprefix(prefix)
        if full in ranges or full in arrays:
            field = name
            rows[name] = (*ranges[full], 0, {}) if full in ranges else (*arrays[full], {})
        elif full in numbers and field and name.startswith(f"{field}_"):
            rows[field][3][name[len(field) + 1:]] = numbers[full]
    return {name: row for name, row in rows.items() if _matching(name, patterns)}


def bit_ranges(source, patterns: Sequence[str]) -> dict[str, tuple]:
    """field: (lowest bit, width, {value: number}) of flag words that RM parameters hold"""
    plain = source.names(patterns)
    numbers = macros.constants(plain, source.text, source.includes)
    ranges = macros.ranges([name for name in plain if name not in numbers], source.text, source.includes)
    rows = {name: (*row, {}) for name, row in ranges.items()}
    for name, value in numbers.items():
        owner = max((row for row in rows if name.startswith(f"{row}_")), key=len, default=None)
        if owner is not None:
            rows[owner][2][name[len(owner) + 1:]] = value
    return rows
