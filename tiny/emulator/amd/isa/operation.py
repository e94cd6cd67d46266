"""The semantics table: a row for each mnemonic says what it reads, what it gives and how the one follows from
the other.

A signature is "results = sources", in the order of the assembly text. Tokens:

    f16 f32 f64 u16 i16 b16 u32 i32 b32 u64 i64 b64   a register (pair) or constant of that type; b: bits
    u32x4 ...   several registers                  s32 s64   an SGPR whatever the encoding says
    m           one bit for each lane, in SGPRs (VCC in the short encodings)
    vcc scc exec  implicit: VCC for each lane, SCC, the whole of EXEC
    +           implicit: what the destination held      k  a literal that the encoding always has
    lane        implicit: the number of the lane

Source of the meanings: AMD, "RDNA3 Instruction Set Architecture" (2023), chapter 16; "RDNA4" (2025); "AMD
Instinct MI300 ISA" (2024). Where they leave a rule open, the row says what was chosen.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

IMPLICIT = {"vcc", "scc", "exec", "+", "lane", "vccz"}
_TYPES = {
    "m": "b1",
    "vcc": "b1",
    "scc": "b1",
    "lane": "u32",
    "exec": "u64",
    "s32": "u32",
    "s64": "u64",
    "b16": "u16",
    "b32": "u32",
    "b64": "u64",
    "simm": "i32",
    "uimm": "u32",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One row. kind: how its operands are fetched and what runs it.

    vector   for each lane: `function` of the sources        scalar  once: the same
    packed   twice for each lane, on halves                  mix     fma_mix: a source is f32 or a half
    others   run by code of their own (memory, branch, lanes, ...); None as function: only decoded
    fields   names of the instruction's fields that the function takes as keyword arguments
    """

    name: str
    results: tuple[str, ...]
    sources: tuple[str, ...]
    kind: str
    function: Callable | None = field(compare=False)
    fields: tuple[str, ...] = ()

    @property
    def explicit_results(self) -> tuple[str, ...]:
        return tuple(each for each in self.results if each not in IMPLICIT)

    @property
    def explicit_sources(self) -> tuple[str, ...]:
        return tuple(each for each in self.sources if each not in IMPLICIT)

    def input_kinds(self) -> tuple[str, ...]:
        """Types of the expression's inputs."""
        return tuple(
            value_type(self.results[0] if each in ("+", "k16", "k32") else each) for each in self.sources
        )


def value_type(token: str) -> str:
    """The expression type of a signature's token."""
    return _TYPES.get(token, token)


def dwords(token: str) -> int:
    """Registers that an operand of this type takes; 0 for half of one."""
    if "x" in token and token != "exec":
        base, _, count = token.partition("x")
        return int(base[1:]) * int(count) // 32
    return {"16": 0, "32": 1, "64": 2}.get(token[1:], 1)


OPERATIONS: dict[str, Operation] = {}


def row(
    name: str, signature: str, function: Callable | None, kind: str = "vector", fields: tuple[str, ...] = ()
) -> None:
    """Add a row. A name that is there already is an error of the table."""
    if name in OPERATIONS:
        raise ValueError(f"two rows for {name}")
    results, _, sources = signature.partition("=")
    OPERATIONS[name] = Operation(name, tuple(results.split()), tuple(sources.split()), kind, function, fields)
