"""Write an expression as C statements, one temporary for each node that is used."""

from collections.abc import Callable

from tiny.emulator.amd.isa.expression import WIDTH, Value, is_float, limits

CTYPE = {
    "b1": "_Bool",
    "u8": "u8",
    "i8": "i8",
    "u16": "u16",
    "i16": "i16",
    "u32": "u32",
    "i32": "i32",
    "u64": "u64",
    "i64": "i64",
    "f16": "f16",
    "f32": "f32",
    "f64": "f64",
}
_BINARY = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "shr": ">>",
    "lt": "<",
    "le": "<=",
    "eq": "==",
}
_MATH = {"sqrt", "floor", "ceil", "trunc", "rint"}


class Writer:
    """Writes the statements of one scope.

    leaf: (Value) -> the C text of a register, in the Value's type, or None for what is no leaf; it is asked
    once for each
    """

    def __init__(self, leaf: Callable[[Value], str | None], prefix: str = "t"):
        self.statements: list[str] = []
        self._leaf, self._prefix = leaf, prefix
        self._count = 0

    def expressions(self, values: list[Value]) -> list[str]:
        """The C expressions of these values; shared parts are computed once."""
        known: dict[int, str] = {}
        return [self._value(value, known) for value in values]

    def temporary(self, kind: str, text: str) -> str:
        name = f"{self._prefix}{self._count}"
        self._count += 1
        self.statements.append(f"{CTYPE[kind]} {name} = {text};")
        return name

    def _value(self, value: Value, known: dict[int, str]) -> str:
        found = known.get(id(value))
        if found is not None:
            return found
        if value.op == "const":
            found = literal(value.kind, value.args[0])
        else:
            found = self._leaf(value)
            if found is None:
                operands = [self._value(each, known) for each in value.args if isinstance(each, Value)]
                found = self.temporary(value.kind, _text(value, operands))
        known[id(value)] = found
        return found


def literal(kind: str, number) -> str:
    """A constant of the type; floats by their exact value."""
    if is_float(kind):
        if number != number or number in (float("inf"), float("-inf")):
            raise ValueError(f"{kind} constant {number}: write it as bits of an integer")
        return f"({kind}){float(number).hex()}"
    number &= (1 << WIDTH[kind]) - 1
    return f"({CTYPE[kind]}){number:#x}{'ul' if WIDTH[kind] == 64 else 'u'}"


def _text(value: Value, operands: list[str]) -> str:
    op, kind = value.op, value.kind
    if op in ("add", "sub", "mul") and kind[0] == "i":  # wraps: signed overflow is undefined in C
        unsigned = f"u{WIDTH[kind]}"
        a, b = operands
        return f"({kind})(({unsigned}){a} {_BINARY[op]} ({unsigned}){b})"
    if op == "mul" and kind == "u16":
        return f"(u16)((u32){operands[0]} * (u32){operands[1]})"
    if op == "shl" and kind[0] == "i":
        return f"({kind})((u{WIDTH[kind]}){operands[0]} << {operands[1]})"
    if op in _BINARY:
        return f"({CTYPE[kind]})({operands[0]} {_BINARY[op]} {operands[1]})"
    if op == "not":
        return f"!{operands[0]}" if kind == "b1" else f"({kind})~{operands[0]}"
    if op == "select":
        return "{} ? {} : {}".format(*operands)
    if op == "fma":
        return f"__builtin_fma{'f' if kind == 'f32' else ''}({', '.join(operands)})"
    if op in _MATH:
        return f"__builtin_{op}{'f' if kind == 'f32' else ''}({operands[0]})"
    if op == "clz":
        return f"clz32({operands[0]})"
    if op == "popcount":
        return f"(u32)__builtin_popcount({operands[0]})"
    if op == "bits":
        return reread(value.args[0].kind, kind, operands[0])
    if op == "cast":
        return _cast(value.args[0].kind, kind, operands[0])
    raise ValueError(f"no C for operation {op}")


def reread(source: str, kind: str, text: str) -> str:
    """The same bits in another type."""
    if is_float(source) == is_float(kind):
        return f"({CTYPE[kind]}){text}"
    if is_float(kind):
        return f"{kind}_of((u{WIDTH[kind]}){text})"
    return f"({kind})u{WIDTH[kind]}_of({text})"


def _cast(source: str, kind: str, text: str) -> str:
    if not is_float(source) or is_float(kind):
        return f"({CTYPE[kind]}){text}"
    lowest, highest = limits(kind)
    above, below = (f"({source}){float(bound).hex()}" for bound in (highest + 1, lowest))
    return (
        f"{text} != {text} ? 0 : {text} >= {above} ? {literal(kind, highest)} : {text} <= {below} ? "
        f"{literal(kind, lowest)} : ({kind}){text}"
    )
