"""Memory instructions as C: addresses of all lanes, then one call that makes pointers of them, then the
transfer.
"""

from tiny.emulator.amd.isa.addressing import Plan, plan, scalar_plan
from tiny.emulator.amd.isa.c_text import CTYPE, Writer, reread
from tiny.emulator.amd.isa.decode import Instruction
from tiny.emulator.amd.isa.expression import WIDTH
from tiny.emulator.amd.isa.segment import EXEC, Segment, mask_text, uniform_leaf


def statements(instruction: Instruction, wave_size: int, null: int, site: int = 0) -> list[str]:
    """The statements of a vector or scalar memory instruction; they return from the kernel where one faults.
    """
    if instruction.operation.kind == "scalar memory":
        load = scalar_plan(instruction)
        writer = Writer(lambda value: uniform_leaf(value, wave_size, null))
        address = writer.expressions([load.address])[0]
        kind, count = load.access.element, load.access.count
        return [
            *writer.statements,
            f"if ((bad = scalar_{kind}(r, w, {address}, {count}, S + {load.result}))) return bad;",
        ]
    access = plan(instruction)
    lines = [f"const MASK e = {mask_text(EXEC, wave_size)};", "if (e) {"]
    for place, offset in enumerate(access.offsets):
        lines += _addresses(access, place, offset, wave_size, null)
        writing = int(access.access.action != "load")
        size = access.access.size
        lines.append(
            f"if ((bad = to_{access.space}(r, w, p{place}, e, {size}, {writing}, {site}))) return bad;"
        )
    if access.access.action == "atomic":
        return [*lines, *_atomic(access), "}"]
    for place in range(len(access.offsets)):
        if access.access.action in ("load", "exchange"):
            lines.append(_load(access, place))
        if access.access.action in ("store", "exchange"):
            lines.append(_store(access, place))
    if access.access.action == "exchange":
        lines = _exchange(access, lines)
    return [*lines, "}"]


def _addresses(access: Plan, place: int, offset: int, wave_size: int, null: int) -> list[str]:
    """`u64 pN[LANES]` with the addresses of the lanes."""
    segment = Segment(wave_size, null)
    text = segment.per_lane(access.address)
    return [
        f"u64 p{place}[LANES];",
        "{",
        *segment.before(),
        "VECTORIZE",
        "EACH_LANE {",
        *segment.inside(),
        f"p{place}[l] = {text} + {offset & (1 << 64) - 1}ul;",
        "}",
        "}",
    ]


def _load(access: Plan, place: int) -> str:
    kind, count = access.access.element, access.access.count
    register = access.result + place * count
    if kind == "u32":
        return f"load_dwords(V + {register}, p{place}, e, {count});"
    half = {None: "", 0: "low_", 1: "high_"}[access.access.half]
    return f"load_{half}{kind}(V[{register}], p{place}, e);"


def _store(access: Plan, place: int) -> str:
    kind, count = access.access.element, access.access.count
    register = access.data[place if len(access.data) > 1 else 0]
    if kind == "u32":
        return f"store_dwords(V + {register}, p{place}, e, {count});"
    return f"store_{kind}(V[{register}], p{place}, e, {16 if access.access.half else 0});"


def _exchange(access: Plan, lines: list[str]) -> list[str]:
    """Both places are read before the first is written, and the data before it is overwritten by what was
    read.
    """
    loads = [line for line in lines if line.startswith("load_")]
    stores = [line for line in lines if line.startswith("store_")]
    others = [line for line in lines if line not in loads and line not in stores]
    count = access.access.count
    keep = [
        f"u32 d{n}[{count}][LANES]; memcpy(d{n}, V + {first}, sizeof d{n});"
        for n, first in enumerate(access.data)
    ]
    stores = [
        line.replace(f"V + {first}", f"d{n}")
        for n, (line, first) in enumerate(zip(stores, access.data, strict=True))
    ]
    return [*others, *keep, *loads, *stores]


def _atomic(access: Plan) -> list[str]:
    """One lane after another: read, combine, write if nobody else wrote meanwhile."""
    action = access.access
    bits, kind = WIDTH[action.element], action.element
    inputs, result = action.combined()
    names = {id(value): f"x{n}" for n, value in enumerate(inputs)}
    writer = Writer(lambda value: names.get(id(value)))
    text = writer.expressions([result])[0]
    lines = [
        "EACH_LANE if (e >> l & 1) {",
        f"u{bits} *at = (u{bits} *)p0[l];",
        f"if ((u64)at & {bits // 8 - 1}) return fault(w, (u64)at, {bits // 8}, WRITE);",
    ]
    for n, first in enumerate(access.data, 1):
        raw = f"V[{first}][l]" if bits == 32 else f"((u64)V[{first + 1}][l] << 32 | V[{first}][l])"
        lines.append(f"const {CTYPE[kind]} x{n} = {reread(f'u{bits}', kind, raw)};")
    lines += [
        f"u{bits} old = __atomic_load_n(at, __ATOMIC_RELAXED), new;",
        "do {",
        f"const {CTYPE[kind]} x0 = {reread(f'u{bits}', kind, 'old')};",
        *writer.statements,
        f"new = {reread(kind, f'u{bits}', text)};",
        "} while (!__atomic_compare_exchange_n(at, &old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));",
    ]
    if access.result is not None:
        lines.append(
            f"V[{access.result}][l] = old;"
            + (f" V[{access.result + 1}][l] = old >> 32;" if bits == 64 else "")
        )
    return [*lines, "}"]
