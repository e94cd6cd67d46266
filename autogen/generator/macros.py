"""Macros of a header, with the values that the compiler gives them.

Each macro becomes one enum constant in a generated C text, so `sizeof`, casts and nested macros mean what the
compiler says they mean. A macro that is no constant expression is skipped. Three forms are tried:

    #define KFD_IOC_QUEUE_TYPE_SDMA 0x1                 a number
    #define NVC6C0_SET_OBJECT_CLASS_ID 15:0             a bit range, `high:low`, also wrapped as
    `MW(high:low)`
    #define PACKET3_ACQUIRE_MEM_ENGINE(x) ((x) << 31)   a macro of one argument: tried with numbers
"""
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from clang.cindex import CursorKind, Diagnostic

from tiny.autogen.generator import libclang

_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(\([ \t]*\w+[ \t]*\))?(?=[ \t]|$)(?!\()", re.MULTILINE)


def names(headers: Iterable[Path]) -> dict[str, bool]:
    """Macro name -> whether it takes one argument, in the order of the headers' text."""
    found: dict[str, bool] = {}
    for header in headers:
        for match in _DEFINE.finditer(header.read_text(errors="replace")):
            found.setdefault(match[1], bool(match[2]))
    return found


def evaluate(expressions: Sequence[str], preamble: str, includes: Sequence[str],
             guards: Sequence[str] | None = None,
             language: str = "c") -> list[int | None]:
    """The value of each C expression after `preamble`, or None where it is no integer constant.

    guards: macro names, one for each expression, without which the expression is skipped.
    """
    lines = [f"enum {{ tiny_{i} = ({expression}) }};" for i, expression in enumerate(expressions)]
    if guards is not None:
        lines = [f"#ifdef {guard}\n{line}\n#endif" for guard, line in zip(guards, lines, strict=True)]
    text = preamble + "\n" + "\n".join(lines) + "\n"
    unit = libclang.parse(text, includes, language=language, tolerant=True)
    first = preamble.count("\n") + 2
    wrong = set()
    for diagnostic in unit.diagnostics:
        if diagnostic.severity >= Diagnostic.Error:
            if diagnostic.location.file is None or diagnostic.location.file.name != "tiny_headers.h" \
                    or diagnostic.location.line < first:
                raise libclang.HeaderError(f"{diagnostic.location}: {diagnostic.spelling}")
            wrong.add(diagnostic.location.line)
    values: list[int | None] = [None] * len(expressions)
    for cursor in unit.cursor.get_children():
        if cursor.kind == CursorKind.ENUM_DECL and cursor.location.line not in wrong:
            for constant in cursor.get_children():
                if constant.spelling.startswith("tiny_") and constant.spelling[5:].isdigit():
                    values[int(constant.spelling[5:])] = constant.enum_value
    return values


def constants(macros: Sequence[str], preamble: str, includes: Sequence[str]) -> dict[str, int]:
    """Those of the macros that are integer constants."""
    values = evaluate(macros, preamble, includes, macros)
    return {name: value for name, value in zip(macros, values, strict=True) if value is not None}


def ranges(macros: Sequence[str], preamble: str, includes: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Those of the macros that are bit ranges, as (lowest bit, width). `1 ? 7:4` is 7 and `0 ? 7:4` is 4."""
    expressions = [f"{which} ? {name}" for name in macros for which in (1, 0)]
    values = evaluate(expressions, preamble, includes, [name for name in macros for _ in (1, 0)])
    found = {}
    for name, high, low in zip(macros, values[::2], values[1::2], strict=True):
        if high is not None and low is not None and high >= low:
            found[name] = (low, high - low + 1)
    return found


def indexed_ranges(macros: Sequence[str], preamble: str,
                   includes: Sequence[str]) -> dict[str, tuple[int, int, int]]:
    """Bit ranges with an index, `NAME(i)`, as (lowest bit of element 0, width, bits between elements)."""
    expressions = [f"{which} ? {name}({i})" for name in macros for i in (0, 1) for which in (1, 0)]
    values = evaluate(expressions, preamble, includes, [name for name in macros for _ in range(4)])
    found = {}
    for position, name in enumerate(macros):
        high, low, next_high, next_low = values[4 * position:4 * position + 4]
        if None not in (high, low, next_high, next_low) and high >= low:
            found[name] = (low, high - low + 1, next_low - low)
    return found


def indexed_constants(macros: Sequence[str], preamble: str,
                      includes: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Macros of one argument that are base + step * argument, as (base, step)."""
    expressions = [f"{name}({i})" for name in macros for i in (0, 1, 2)]
    values = evaluate(expressions, preamble, includes, [name for name in macros for _ in range(3)])
    found = {}
    for position, name in enumerate(macros):
        base, one, two = values[3 * position:3 * position + 3]
        if None not in (base, one, two) and two - one == one - base:
            found[name] = (base, one - base)
    return found


def shifts(macros: Sequence[str], preamble: str,
           includes: Sequence[str]) -> dict[str, tuple[int, int | None]]:
    """Macros of one argument that move it to a bit position, as (shift, width); width None where the header
    masks nothing.

    Found by value: NAME(1) is 1 << shift, and NAME(all ones) shows the mask.
    """
    expressions = [f"(unsigned long long){name}({argument})" for name in macros
                   for argument in ("1ull", "0xffffffffull")]
    values = evaluate(expressions, preamble, includes, [name for name in macros for _ in (0, 1)])
    found = {}
    for name, one, ones in zip(macros, values[::2], values[1::2], strict=True):
        if one is None or ones is None or one <= 0 or one & (one - 1):
            continue
        shift = one.bit_length() - 1
        mask = (ones >> shift) & 0xffffffff
        if mask & (mask + 1) == 0 and mask:
            found[name] = (shift, None if mask == 0xffffffff else mask.bit_length())
    return found
