"""Rows of vector instructions on integers and bits."""

from tiny.emulator.amd.isa.expression import (
    Value,
    bits,
    cast,
    clz,
    const,
    field,
    join,
    larger,
    limits,
    popcount,
    select,
    smaller,
)
from tiny.emulator.amd.isa.operation import row


def high_half(a: Value, b: Value) -> Value:
    """The upper 32 bits of the 64-bit product."""
    wide = "i64" if a.kind == "i32" else "u64"
    return cast(cast(a, wide) * cast(b, wide) >> 32, a.kind)


def low24(value: Value) -> Value:
    return value & 0xFFFFFF if value.kind == "u32" else (value << 8) >> 8


def reverse_bits(value: Value) -> Value:
    """u32 with its bits in the opposite order."""
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF)):
        value = value >> shift & mask | (value & mask) << shift
    return value >> 16 | value << 16


def trailing_zeros(value: Value) -> Value:
    """As i32; -1 for zero."""
    return select(value.equals(0), const("i32", -1), bits(31 - clz(value & -value), "i32"))


def leading_zeros(value: Value) -> Value:
    """As i32; -1 for zero."""
    return select(value.equals(0), const("i32", -1), bits(clz(value), "i32"))


def leading_signs(value: Value) -> Value:
    """How many of the highest bits equal the sign; -1 if all do. value: i32."""
    turned = bits(select(value < 0, ~value, value), "u32")
    return select(turned.equals(0), const("i32", -1), bits(clz(turned), "i32"))


def mask_of(width: Value) -> Value:
    """`width` (0 ... 31) ones."""
    return (const("u32", 1) << width) - 1


def extract_unsigned(value: Value, offset: Value, width: Value) -> Value:
    return value >> offset & mask_of(width)


def extract_signed(value: Value, offset: Value, width: Value) -> Value:
    """The field's highest bit is its sign; a field of no bits is 0."""
    width = width & 31
    part = bits(value >> cast(offset, "i32"), "u32") & mask_of(width)
    top = (const("u32", 1) << (width - 1)) & mask_of(width)
    return bits((part ^ top) - top, "i32")


def permute_bytes(high: Value, low: Value, selector: Value) -> Value:
    """v_perm_b32: each byte of the selector names a byte of the eight, a sign (8 ... 11), 0 (12) or 255."""
    both, result = join(low, high), const("u32", 0)
    for n in range(4):
        choice = field(selector, 8 * n, 8)
        octet = cast(both >> (choice & 7) * 8, "u32") & 255
        sign = cast(both >> (cast(choice & 3, "u64") * 16 + 15), "u32") & 1
        octet = select(
            choice >= 8,
            select(choice <= 11, 0 - sign, select(choice.equals(12), const("u32", 0), 255)),
            octet,
        )
        result = result | (octet & 255) << 8 * n
    return result


def carry_add(a: Value, b: Value, carry: Value | None = None) -> tuple[Value, Value]:
    """(sum, carry out) of u32."""
    total = cast(a, "u64") + cast(b, "u64")
    if carry is not None:
        total = total + cast(carry, "u64")
    return cast(total, "u32"), total > 0xFFFFFFFF


def borrow_subtract(a: Value, b: Value, borrow: Value | None = None) -> tuple[Value, Value]:
    """(difference, borrow out) of u32."""
    taken = cast(b, "u64") if borrow is None else cast(b, "u64") + cast(borrow, "u64")
    return cast(cast(a, "u64") - taken, "u32"), taken > cast(a, "u64")


def multiply_add_unsigned(a: Value, b: Value, c: Value) -> tuple[Value, Value]:
    total = cast(a, "u64") * cast(b, "u64") + c
    return total, total < c


def multiply_add_signed(a: Value, b: Value, c: Value) -> tuple[Value, Value]:
    """(low 64 bits, bit 64) of the 65-bit sum."""
    product = cast(a, "i64") * cast(b, "i64")
    total = product + c
    overflow = ((product ^ total) & (c ^ total)) < 0
    return total, (total < 0) ^ overflow


def sum_of_differences(a: Value, b: Value, c: Value, width: int, clamp: int = 0, scale: int = 0) -> Value:
    """c plus |a - b| over the unsigned fields of `width` bits, shifted left by `scale`."""
    total = const("u32", 0)
    for low in range(0, 32, width):
        x, y = field(a, low, width) if width < 32 else a, field(b, low, width) if width < 32 else b
        total = total + select(x > y, x - y, y - x)
    return added(c, total << scale, clamp)


def added(a: Value, b: Value, clamp: int) -> Value:
    """a + b in u32; with clamp the greatest u32 where that does not fit."""
    total = a + b
    return select(total < b, const("u32", 0xFFFFFFFF), total) if clamp else total


def averages(a: Value, b: Value, rounding: Value) -> Value:
    """v_lerp_u8: for each byte (a + b + the lowest bit of rounding's byte) / 2."""
    result = const("u32", 0)
    for low in range(0, 32, 8):
        total = field(a, low, 8) + field(b, low, 8) + field(rounding, low, 1)
        result = result | (total >> 1) << low
    return result


def lanes_below(mask: Value, base: Value, lane: Value, first: int) -> Value:
    """v_mbcnt: base plus the ones of `mask` that belong to lanes first ... lane - 1 of 32."""
    below = lane - first
    ones = select(below >= 32, const("u32", 0xFFFFFFFF), mask_of(below))
    ones = select(lane < first, const("u32", 0), ones)
    return base + popcount(mask & ones)


# -- moves and bits ------------------------------------------------------------------------------------------
row("v_mov_b32", "b32 = b32", lambda a: a)
row("v_mov_b16", "b16 = b16", lambda a: a)
row("v_mov_b64", "b64 = b64", lambda a: a)
row("v_not_b32", "b32 = b32", lambda a: ~a)
row("v_not_b16", "b16 = b16", lambda a: ~a)
row("v_bfrev_b32", "b32 = b32", reverse_bits)
row("v_clz_i32_u32", "i32 = u32", leading_zeros)
row("v_ctz_i32_b32", "i32 = b32", trailing_zeros)
row("v_cls_i32", "i32 = i32", leading_signs)
for size in ("b16", "b32"):
    row(f"v_and_{size}", f"{size} = {size} {size}", lambda a, b: a & b)
    row(f"v_or_{size}", f"{size} = {size} {size}", lambda a, b: a | b)
    row(f"v_xor_{size}", f"{size} = {size} {size}", lambda a, b: a ^ b)
    row(f"v_cndmask_{size}", f"{size} = {size} {size} m", lambda a, b, c: select(c, b, a))
row("v_xnor_b32", "b32 = b32 b32", lambda a, b: ~(a ^ b))
for size in ("16", "32", "64"):
    row(f"v_lshlrev_b{size}", f"b{size} = b{'16' if size == '16' else '32'} b{size}", lambda n, a: a << n)
    row(f"v_lshrrev_b{size}", f"b{size} = b{'16' if size == '16' else '32'} b{size}", lambda n, a: a >> n)
    row(f"v_ashrrev_i{size}", f"i{size} = b{'16' if size == '16' else '32'} i{size}", lambda n, a: a >> n)
row("v_xor3_b32", "b32 = b32 b32 b32", lambda a, b, c: a ^ b ^ c)
row("v_or3_b32", "b32 = b32 b32 b32", lambda a, b, c: a | b | c)
row("v_and_or_b32", "b32 = b32 b32 b32", lambda a, b, c: a & b | c)
row("v_lshl_or_b32", "b32 = b32 b32 b32", lambda a, n, c: a << n | c)
row("v_bfi_b32", "b32 = b32 b32 b32", lambda mask, a, b: mask & a | ~mask & b)
row("v_bfm_b32", "b32 = b32 b32", lambda width, low: mask_of(width) << low)
row("v_bfe_u32", "u32 = u32 u32 u32", extract_unsigned)
row("v_bfe_i32", "i32 = i32 u32 u32", extract_signed)
row("v_perm_b32", "b32 = b32 b32 b32", permute_bytes)
row("v_alignbit_b32", "b32 = b32 b32 b16", lambda a, b, n: cast(join(b, a) >> (cast(n, "u64") & 31), "u32"))
row(
    "v_alignbyte_b32",
    "b32 = b32 b32 b16",
    lambda a, b, n: cast(join(b, a) >> (cast(n, "u64") & 3) * 8, "u32"),
)
row("v_bcnt_u32_b32", "u32 = b32 u32", lambda a, b: popcount(a) + b)
row("v_mbcnt_lo_u32_b32", "u32 = b32 u32 lane", lambda a, b, lane: lanes_below(a, b, lane, 0))
row("v_mbcnt_hi_u32_b32", "u32 = b32 u32 lane", lambda a, b, lane: lanes_below(a, b, lane, 32))

# -- arithmetic ----------------------------------------------------------------------------------------------
row("v_add_nc_u32", "u32 = u32 u32", lambda a, b: a + b)
row("v_sub_nc_u32", "u32 = u32 u32", lambda a, b: a - b)
row("v_subrev_nc_u32", "u32 = u32 u32", lambda a, b: b - a)
row("v_add_nc_i32", "i32 = i32 i32", lambda a, b: a + b)
row("v_sub_nc_i32", "i32 = i32 i32", lambda a, b: a - b)
for t in ("u16", "i16"):
    row(f"v_add_nc_{t}", f"{t} = {t} {t}", lambda a, b: a + b)
    row(f"v_sub_nc_{t}", f"{t} = {t} {t}", lambda a, b: a - b)
    row(f"v_mad_{t}", f"{t} = {t} {t} {t}", lambda a, b, c: a * b + c)
row("v_mul_lo_u16", "u16 = u16 u16", lambda a, b: a * b)
row("v_add_co_u32", "u32 m = u32 u32", carry_add)
row("v_sub_co_u32", "u32 m = u32 u32", borrow_subtract)
row("v_subrev_co_u32", "u32 m = u32 u32", lambda a, b: borrow_subtract(b, a))
row("v_add_co_ci_u32", "u32 m = u32 u32 m", carry_add)
row("v_sub_co_ci_u32", "u32 m = u32 u32 m", borrow_subtract)
row("v_subrev_co_ci_u32", "u32 m = u32 u32 m", lambda a, b, c: borrow_subtract(b, a, c))
row("v_mul_lo_u32", "u32 = u32 u32", lambda a, b: a * b)
row("v_mul_hi_u32", "u32 = u32 u32", high_half)
row("v_mul_hi_i32", "i32 = i32 i32", high_half)
for t in ("u32", "i32"):
    row(f"v_mul_{t}_{t[0]}24", f"{t} = {t} {t}", lambda a, b: low24(a) * low24(b))
    row(f"v_mul_hi_{t}_{t[0]}24", f"{t} = {t} {t}", lambda a, b: high_half(low24(a), low24(b)))
    row(f"v_mad_{t}_{t[0]}24", f"{t} = {t} {t} {t}", lambda a, b, c: low24(a) * low24(b) + c)
    row(
        f"v_mad_{t}_{t[0]}16",
        f"{t} = {t[0]}16 {t[0]}16 {t}",
        lambda a, b, c: cast(a, c.kind) * cast(b, c.kind) + c,
    )
row("v_mad_u64_u32", "u64 m = u32 u32 u64", multiply_add_unsigned)
row("v_mad_i64_i32", "i64 m = i32 i32 i64", multiply_add_signed)
row("v_add3_u32", "u32 = u32 u32 u32", lambda a, b, c: a + b + c)
row("v_xad_u32", "u32 = u32 u32 u32", lambda a, b, c: (a ^ b) + c)
row("v_lshl_add_u32", "u32 = u32 u32 u32", lambda a, n, c: (a << n) + c)
row("v_add_lshl_u32", "u32 = u32 u32 u32", lambda a, b, n: (a + b) << n)
for name, width, scale in (("sad_u8", 8, 0), ("sad_hi_u8", 8, 16), ("sad_u16", 16, 0), ("sad_u32", 32, 0)):
    row(
        f"v_{name}",
        "u32 = u32 u32 u32",
        lambda a, b, c, clamp, n=width, s=scale: sum_of_differences(a, b, c, n, clamp, s),
        fields=("clamp",),
    )
row("v_lerp_u8", "u32 = u32 u32 u32", averages)
row(
    "v_sat_pk_u8_i16",
    "b16 = b32",
    lambda a: cast(cast(_octet(a), "u32") | cast(_octet(a >> 16), "u32") << 8, "u16"),
)


def _octet(value: Value) -> Value:
    """The low i16 as the nearest byte."""
    return cast(larger(smaller(bits(cast(value, "u16"), "i16"), 255), 0), "u8")


for t in ("u16", "i16", "u32", "i32"):
    row(f"v_min3_{t}", f"{t} = {t} {t} {t}", lambda a, b, c: smaller(smaller(a, b), c))
    row(f"v_max3_{t}", f"{t} = {t} {t} {t}", lambda a, b, c: larger(larger(a, b), c))
    row(f"v_med3_{t}", f"{t} = {t} {t} {t}", lambda a, b, c: larger(smaller(a, b), smaller(larger(a, b), c)))
    row(f"v_min_{t}", f"{t} = {t} {t}", smaller)
    row(f"v_max_{t}", f"{t} = {t} {t}", larger)
for t in ("u32", "i32"):
    row(f"v_maxmin_{t}", f"{t} = {t} {t} {t}", lambda a, b, c: smaller(larger(a, b), c))
    row(f"v_minmax_{t}", f"{t} = {t} {t} {t}", lambda a, b, c: larger(smaller(a, b), c))

# -- comparisons ---------------------------------------------------------------------------------------------
CONDITIONS = {
    "lt": lambda a, b: a < b,
    "eq": lambda a, b: a.equals(b),
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ne": lambda a, b: a.differs(b),
    "ge": lambda a, b: a >= b,
    "f": lambda a, b: const("b1", 0),
    "t": lambda a, b: const("b1", 1),
}
for t in ("i16", "u16", "i32", "u32", "i64", "u64"):
    for name, condition in CONDITIONS.items():
        row(f"v_cmp_{name}_{t}", f"m = {t} {t}", condition)
        row(f"v_cmpx_{name}_{t}", f"exec = {t} {t}", condition)

# -- halves of registers: VOP3P ------------------------------------------------------------------------------
for t in ("u16", "i16"):
    row(f"v_pk_mad_{t}", f"{t} = {t} {t} {t}", lambda a, b, c: a * b + c, "packed")
    row(f"v_pk_add_{t}", f"{t} = {t} {t}", lambda a, b: a + b, "packed")
    row(f"v_pk_sub_{t}", f"{t} = {t} {t}", lambda a, b: a - b, "packed")
    row(f"v_pk_min_{t}", f"{t} = {t} {t}", smaller, "packed")
    row(f"v_pk_max_{t}", f"{t} = {t} {t}", larger, "packed")
row("v_pk_mul_lo_u16", "u16 = u16 u16", lambda a, b: a * b, "packed")
row("v_pk_lshlrev_b16", "u16 = u16 u16", lambda n, a: a << n, "packed")
row("v_pk_lshrrev_b16", "u16 = u16 u16", lambda n, a: a >> n, "packed")
row("v_pk_ashrrev_i16", "i16 = i16 i16", lambda n, a: a >> n, "packed")


def dot(a: Value, b: Value, c: Value, width: int, neg_lo: int = 0, clamp: int = 0) -> Value:
    """c plus the products of the fields; bit n of neg_lo: operand n is signed. clamp: the nearest value that
    fits the type of c.
    """
    total = cast(c, "i64")
    for low in range(0, 32, width):
        parts = []
        for n, operand in enumerate((a, b)):
            lifted = operand << (32 - width - low)
            parts.append(
                bits(lifted, "i32") >> 32 - width if neg_lo >> n & 1 else bits(lifted >> 32 - width, "i32")
            )
        total = total + cast(parts[0], "i64") * cast(parts[1], "i64")
    if clamp:
        lowest, highest = limits(c.kind)
        total = smaller(larger(total, lowest), highest)
    return cast(total, c.kind)


def dot_row(name: str, width: int, signature: str, signs: int | None, kind: str) -> None:
    """signs: bit n says that operand n is signed; None where the instruction says so, by neg_lo."""

    def apply(a: Value, b: Value, c: Value, clamp: int, neg_lo: int | None = signs) -> Value:
        return dot(a, b, c, width, neg_lo, clamp)

    row(name, signature, apply, kind, ("clamp",) if signs is not None else ("neg_lo", "clamp"))


for width in (8, 4):
    dot_row(f"v_dot{32 // width}_i32_iu{width}", width, "i32 = b32 b32 i32", None, "dot")
    dot_row(f"v_dot{32 // width}_u32_u{width}", width, "u32 = b32 b32 u32", 0, "dot")


# -- with the clamp bit: the nearest value that fits ---------------------------------------------------------
def saturating(function, result: str | None = None):
    """The same in 64 bits, limited to what that type holds, by default that of the operands."""

    def apply(*operands: Value, clamp: int = 1) -> Value:
        kind = result or operands[0].kind
        lowest, highest = limits(kind)
        wide = function(*(cast(operand, "i64") for operand in operands))
        return cast(smaller(larger(wide, lowest), highest), kind)

    return apply


SATURATING = {
    f"v_{pack}{name}_{t}": saturating(function)
    for name, function in (
        ("add", lambda a, b: a + b),
        ("sub", lambda a, b: a - b),
        ("mad", lambda a, b, c: a * b + c),
    )
    for t in ("u16", "i16", "u32", "i32")
    for pack in ("", "pk_")
}
for kind, low in (("u32", lambda x: x & 0xFFFFFF), ("i32", lambda x: x << 40 >> 40)):
    SATURATING[f"v_mad_{kind}_{kind[0]}24"] = saturating(lambda a, b, c, low=low: low(a) * low(b) + c, kind)
    SATURATING[f"v_mad_{kind}_{kind[0]}16"] = saturating(lambda a, b, c: a * b + c, kind)
    short = f"{kind[0]}16"
    SATURATING[f"v_mad_legacy_{short}"] = SATURATING[f"v_mad_{short}"]
SATURATING |= {
    name.replace("_add_", "_add_nc_").replace("_sub_", "_sub_nc_"): function
    for name, function in SATURATING.items()
    if "pk" not in name
}
