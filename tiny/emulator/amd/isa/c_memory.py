"""Memory instructions as C: addresses of all lanes, then one call that makes pointers of them, then the
transfer.
"""

from tiny.emulator.amd.isa.addressing import Plan, ScalarPlan, plan, scalar_plan
from tiny.emulator.amd.isa.c_text import CTYPE, Writer, reread
from tiny.emulator.amd.isa.decode import Instruction
from tiny.emulator.amd.isa.expression import WIDTH, Value
from tiny.emulator.amd.isa.mode import Mode
from tiny.emulator.amd.isa.operations_memory import Access
from tiny.emulator.amd.isa.segment import EXEC, Segment, mask_text, uniform_leaf

RETURN = "return bad;"


def statements(
    instruction: Instruction, wave_size: int, null: int, mode: Mode = Mode(), site: int = 0
) -> list[str]:
    """The statements of a vector or scalar memory instruction; they return from the kernel where one faults.
    """
    if instruction.operation.kind == "scalar memory":
        return _scalar(scalar_plan(instruction), wave_size, null)
    access = plan(instruction, mode)
    if access.access.action == "count":
        return _count(access, wave_size, null)
    lines = [f"const MASK e = {mask_text(EXEC, wave_size)};", "if (e) {"]
    for place in range(len(access.offsets)):
        lines += _addresses(access, place, wave_size, null)
        writing = int(access.access.action in ("store", "exchange", "atomic"))
        call = f"to_{access.space}(r, w, p{place}, m{place}, {access.access.size}, {writing}, {site})"
        some = f"m{place} && " if access.valid else ""
        lines.append(f"if ({some}(bad = {call})) {RETURN}")
    if access.access.action == "exchange":
        return [*lines, *_exchange(access), "}"]
    for place in range(len(access.offsets)):
        lines += _guarded(access, place, _transfer(access, place))
    return [*lines, "}"]


def _addresses(access: Plan, place: int, wave_size: int, null: int) -> list[str]:
    """`u64 pN[LANES]` with the addresses of the lanes, `mN` with those that touch memory; for loads into LDS
    `qN` with the addresses there.
    """
    segment = Segment(wave_size, null)
    text = segment.per_lane(access.address)
    offset = access.offsets[place] & (1 << 64) - 1
    valid = access.checked(place)
    inside = [f"p{place}[l] = {text} + {offset}ul;"]
    if valid is not None:
        inside.append(f"m{place} |= (MASK){segment.per_lane(valid)} << l;")
    if access.target is not None:
        inside.append(f"q{place}[l] = {segment.per_lane(access.target)};")
    return [
        f"u64 p{place}[LANES]{f', q{place}[LANES]' if access.target is not None else ''};",
        f"MASK m{place} = {'e' if valid is None else 0};",
        "{",
        *segment.before(),
        "VECTORIZE",
        "EACH_LANE {",
        *segment.inside(),
        *inside,
        "}",
        "}",
        *([f"m{place} &= e;"] if valid is not None else []),
    ]


def _guarded(access: Plan, place: int, lines: list[str]) -> list[str]:
    """The transfer, for the lanes that touch memory; the others that load get 0."""
    if not access.valid:
        return lines
    guarded = [f"if (m{place}) {{", *lines, "}"]
    if access.result is None or access.kept or access.access.action == "load lds":
        return guarded
    count = access.access.count if access.access.action == "load" else access.access.size // 4
    for n in range(count):
        register = access.result + place * count + n
        keep = {None: 0, 0: 0xFFFF0000, 1: 0xFFFF}[access.access.half]
        guarded.append(f"clear_lanes(V[{register}], e & ~m{place}, {keep:#x}u);")
    return guarded


def _transfer(access: Plan, place: int) -> list[str]:
    action = access.access.action
    if action == "load":
        return [_load(access, place)]
    if action == "store":
        return [_store(access, place)]
    if action == "load lds":
        return _into_lds(access, place)
    return _atomic(access)


def _load(access: Plan, place: int) -> str:
    kind, count = access.access.element, access.access.count
    register = access.result + place * count
    if kind == "u32":
        return f"load_dwords(V + {register}, p{place}, m{place}, {count});"
    half = {None: "", 0: "low_", 1: "high_"}[access.access.half]
    return f"load_{half}{kind}(V[{register}], p{place}, m{place});"


def _store(access: Plan, place: int) -> str:
    kind, count = access.access.element, access.access.count
    register = access.data[place if len(access.data) > 1 else 0]
    if kind == "u32":
        return f"store_dwords(V + {register}, p{place}, m{place}, {count});"
    return f"store_{kind}(V[{register}], p{place}, m{place}, {16 if access.access.half else 0});"


def _into_lds(access: Plan, place: int) -> list[str]:
    """A dword of LDS for each active lane, 0 where nothing was loaded."""
    kind = access.access.element
    name, count = ("dwords", ", 1") if kind == "u32" else (kind, "")
    return [
        "u32 x[1][LANES] = {0};",
        f"load_{name}({'x' if count else 'x[0]'}, p{place}, m{place}{count});",
        f"if ((bad = to_lds(r, w, q{place}, e, 4, 1, 0))) {RETURN}",
        f"store_dwords(x, q{place}, e, 1);",
    ]


def _exchange(access: Plan) -> list[str]:
    """Both places are read before the first is written, and the data before it is overwritten by what was
    read.
    """
    count = access.access.count
    keep = [
        f"u32 d{n}[{count}][LANES]; memcpy(d{n}, V + {first}, sizeof d{n});"
        for n, first in enumerate(access.data)
    ]
    places = range(len(access.offsets))
    loads = [_load(access, place) for place in places]
    stores = [f"store_dwords(d{place}, p{place}, m{place}, {count});" for place in places]
    return [*keep, *loads, *stores]


# -- atomics -------------------------------------------------------------------------------------------------
def _combined(action: Access, flush) -> tuple[list[str], str]:
    """(statements, new bits) of an atomic on inputs called x0, x1, ..."""
    inputs, result = action.combined(flush)
    names = {id(value): f"x{n}" for n, value in enumerate(inputs)}
    writer = Writer(lambda value: names.get(id(value)), "c")
    text = writer.expressions([result])[0]
    return writer.statements, text


def _replaced(action: Access, flush) -> list[str]:
    """`at` points to memory, x1 and up are the operands: read, combine, write if nobody else wrote meanwhile;
    `old` is what was there.
    """
    bits, kind = WIDTH[action.element], action.element
    lines, text = _combined(action, flush)
    return [
        f"u{bits} old = __atomic_load_n(at, __ATOMIC_RELAXED), new;",
        "do {",
        f"const {CTYPE[kind]} x0 = {reread(f'u{bits}', kind, 'old')};",
        *lines,
        f"new = {reread(kind, f'u{bits}', text)};",
        "} while (!__atomic_compare_exchange_n(at, &old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));",
    ]


def _operands(action: Access, words: list[tuple[str, str]]) -> list[str]:
    """x1 and up from the texts of their low and high words."""
    bits, kind = WIDTH[action.element], action.element
    lines = []
    for n, (low, high) in enumerate(words, 1):
        raw = low if bits == 32 else f"((u64){high} << 32 | {low})"
        lines.append(f"const {CTYPE[kind]} x{n} = {reread(f'u{bits}', kind, raw)};")
    return lines


def _atomic(access: Plan) -> list[str]:
    """One lane after another."""
    action = access.access
    bits = WIDTH[action.element]
    lines = [
        "EACH_LANE if (m0 >> l & 1) {",
        f"u{bits} *at = (u{bits} *)p0[l];",
        f"if ((u64)at & {bits // 8 - 1}) return fault(w, (u64)at, {bits // 8}, WRITE);",
        *_operands(action, [(f"V[{first}][l]", f"V[{first + 1}][l]") for first in access.data]),
        *_replaced(action, access.flush),
    ]
    if access.result is not None:
        lines.append(f"V[{access.result}][l] = old;")
        if bits == 64:
            lines.append(f"V[{access.result + 1}][l] = old >> 32;")
    return [*lines, "}"]


def _count(access: Plan, wave_size: int, null: int) -> list[str]:
    """ds_append and ds_consume: one dword for the whole wave, which no other wave changes meanwhile."""
    writer = Writer(lambda value: uniform_leaf(value, wave_size, null))
    address = writer.expressions([access.address])[0]
    lines, text = _combined(access.access, None)
    return [
        f"const MASK e = {mask_text(EXEC, wave_size)};",
        "if (e) {",
        *writer.statements,
        "u64 p0[LANES];",
        f"EACH_LANE p0[l] = {address} + {access.offsets[0]}ul;",
        f"if ((bad = to_lds(r, w, p0, e, 4, 1, 0))) {RETURN}",
        "word *at = (word *)p0[__builtin_ctzl(e)];",
        "const u32 x0 = *at, x1 = __builtin_popcountl(e);",
        *lines,
        f"*at = {text};",
        f"EACH_LANE V[{access.result}][l] = e >> l & 1 ? x0 : V[{access.result}][l];",
        "}",
    ]


# -- scalar memory -------------------------------------------------------------------------------------------
def _scalar(access: ScalarPlan, wave_size: int, null: int) -> list[str]:
    action = access.access
    if action.action == "none":
        return []
    writer = Writer(lambda value: uniform_leaf(value, wave_size, null))
    wanted: list[Value] = [access.address] if access.count is None else [access.address, access.count]
    address, *count = writer.expressions(wanted)
    first, valid = access.register, count[0] if count else action.count
    if action.action == "atomic":
        return [*writer.statements, f"if ({valid}) {{", *_scalar_atomic(access, address), "}"]
    if action.action == "store":
        call = f"scalar_store(r, w, {address}, {valid}, S + {first})"
    else:
        call = f"scalar_{action.element}(r, w, {address}, {valid}, S + {first})"
    lines = [*writer.statements, f"if ({valid} && (bad = {call})) {RETURN}"]
    if count and action.action == "load":
        lines.append(f"for (u32 n = {valid}; n < {action.count}; n++) S[{first} + n] = 0;")
    return lines


def _scalar_atomic(access: ScalarPlan, address: str) -> list[str]:
    action, first = access.access, access.register
    bits = WIDTH[action.element]
    size, step = bits // 8, bits // 32
    words = [(f"S[{first + step * n}]", f"S[{first + step * n + 1}]") for n in range(action.operands)]
    lines = [
        f"const u64 place = {address};",
        f"const u64 host = locate(r, place, {size}, 1);",
        f"if (host == NOWHERE || place & {size - 1}) return fault(w, place, {size}, WRITE);",
        f"u{bits} *at = (u{bits} *)(place + host);",
        *_operands(action, words),
        *_replaced(action, lambda value: value),
    ]
    if access.returned:
        lines.append(f"S[{first}] = old;" + (f" S[{first + 1}] = old >> 32;" if bits == 64 else ""))
    return lines
