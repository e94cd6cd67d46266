"""Rows of scalar instructions, and those that steer a wave: branches, waits, barriers, messages."""

from tiny.emulator.amd.isa.expression import (
    Value,
    bits,
    cast,
    clz,
    const,
    join,
    larger,
    popcount,
    select,
    smaller,
)
from tiny.emulator.amd.isa.operation import row
from tiny.emulator.amd.isa.operations_integer import (
    borrow_subtract,
    carry_add,
    high_half,
    leading_signs,
    leading_zeros,
    reverse_bits,
    trailing_zeros,
)


def scalar(name: str, signature: str, function) -> None:
    row(name, signature, function, "scalar")


def with_flag(function):
    """The result, and SCC: whether it is not zero."""

    def apply(*operands):
        result = function(*operands)
        return result, result.differs(0)

    return apply


def signed_add(a: Value, b: Value) -> tuple[Value, Value]:
    """(sum, overflow)."""
    total = a + b
    return total, ((a ^ total) & (b ^ total)) < 0


def signed_subtract(a: Value, b: Value) -> tuple[Value, Value]:
    total = a - b
    return total, ((a ^ b) & (a ^ total)) < 0


def low_word(value: Value) -> Value:
    return cast(value, "u32")


def high_word(value: Value) -> Value:
    return cast(value >> 32, "u32")


def of_both(narrow, of_none: int):
    """A count over u64 from one over u32: `narrow` of the low word, or 32 more than that of the high word."""

    def apply(value: Value) -> Value:
        low, high = low_word(value), high_word(value)
        result = select(low.equals(0), narrow(high) + 32, narrow(low))
        return select(value.equals(0), const("i32", of_none), result)

    return apply


def leading_zeros64(value: Value) -> Value:
    low, high = low_word(value), high_word(value)
    count = select(high.equals(0), clz(low) + 32, clz(high))
    return select(value.equals(0), const("i32", -1), bits(count, "i32"))


def leading_signs64(value: Value) -> Value:
    return leading_zeros64(bits(select(value < 0, ~value, value), "u64"))


def ones(value: Value) -> Value:
    if value.kind == "u32":
        return popcount(value)
    return popcount(low_word(value)) + popcount(high_word(value))


def limited_shift_add(count: int):
    """(a << count) + b and the carry out of 32 bits."""

    def apply(a: Value, b: Value):
        total = (cast(a, "u64") << count) + cast(b, "u64")
        return low_word(total), total > 0xFFFFFFFF

    return apply


def extract(value: Value, place: Value) -> tuple[Value, Value]:
    """s_bfe: offset in the low bits of `place`, width in bits 22:16; a width that reaches the top takes all
    above.
    """
    width_bits = 64 if value.kind.endswith("64") else 32
    unsigned = "u64" if width_bits == 64 else "u32"
    offset = place & width_bits - 1
    width = place >> 16 & 127
    part = value >> cast(offset, value.kind)
    free = cast(smaller(width, width_bits), unsigned)
    drop = (const(unsigned, width_bits) - free) & width_bits - 1
    lifted = bits(part, unsigned) << drop
    result = bits(lifted, value.kind) >> cast(drop, value.kind)
    result = select(width.equals(0), const(value.kind, 0), result)
    return result, result.differs(0)


def bit_mask(kind: str):
    """s_bfm: `width` ones from bit `offset` up."""

    def apply(width: Value, offset: Value) -> Value:
        return ((const(kind, 1) << width) - 1) << offset

    return apply


def quad_any(value: Value) -> Value:
    """One bit for each four: whether one of them is set; packed."""
    kind = value.kind
    result = const(kind, 0)
    for n in range(16 if kind == "u64" else 8):
        quad = value >> 4 * n & 15
        result = result | select(quad.equals(0), const(kind, 0), const(kind, 1 << n))
    return result


def whole_quads(value: Value) -> Value:
    spread = value | value >> 1
    spread = (spread | spread >> 2) & (0x1111111111111111 if value.kind == "u64" else 0x11111111)
    return spread * 15


def doubled(value: Value) -> Value:
    """Each bit twice: s_bitreplicate."""
    wide = cast(value, "u64")
    for shift, mask in (
        (16, 0x0000FFFF0000FFFF),
        (8, 0x00FF00FF00FF00FF),
        (4, 0x0F0F0F0F0F0F0F0F),
        (2, 0x3333333333333333),
        (1, 0x5555555555555555),
    ):
        wide = (wide | wide << shift) & mask
    return wide | wide << 1


def halves(a_shift: int, b_shift: int):
    return lambda a, b: (a >> a_shift & 0xFFFF) | (b >> b_shift & 0xFFFF) << 16


# -- arithmetic ----------------------------------------------------------------------------------------------
for old, new, signature, function in (
    ("s_add_u32", "s_add_co_u32", "u32 scc = u32 u32", carry_add),
    ("s_sub_u32", "s_sub_co_u32", "u32 scc = u32 u32", borrow_subtract),
    ("s_add_i32", "s_add_co_i32", "i32 scc = i32 i32", signed_add),
    ("s_sub_i32", "s_sub_co_i32", "i32 scc = i32 i32", signed_subtract),
    ("s_addc_u32", "s_add_co_ci_u32", "u32 scc = u32 u32 scc", carry_add),
    ("s_subb_u32", "s_sub_co_ci_u32", "u32 scc = u32 u32 scc", borrow_subtract),
):
    for name in (old, new):
        scalar(name, signature, function)
scalar("s_absdiff_i32", "i32 scc = i32 i32", with_flag(lambda a, b: abs(a - b)))
for name, operator in (("lshl", lambda a, n: a << n), ("lshr", lambda a, n: a >> n)):
    scalar(f"s_{name}_b32", "b32 scc = b32 b32", with_flag(operator))
    scalar(f"s_{name}_b64", "b64 scc = b64 b32", with_flag(operator))
scalar("s_ashr_i32", "i32 scc = i32 b32", with_flag(lambda a, n: a >> n))
scalar("s_ashr_i64", "i64 scc = i64 b32", with_flag(lambda a, n: a >> n))
for n in range(1, 5):
    scalar(f"s_lshl{n}_add_u32", "u32 scc = u32 u32", limited_shift_add(n))
for t in ("i32", "u32"):
    scalar(f"s_min_{t}", f"{t} scc = {t} {t}", lambda a, b: (smaller(a, b), a < b))
    scalar(f"s_max_{t}", f"{t} scc = {t} {t}", lambda a, b: (larger(a, b), a >= b))
    scalar(f"s_mul_hi_{t}", f"{t} = {t} {t}", high_half)
scalar("s_mul_i32", "i32 = i32 i32", lambda a, b: a * b)
LOGIC = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
    "and_not1": lambda a, b: a & ~b,
    "or_not1": lambda a, b: a | ~b,
    "and_not0": lambda a, b: ~a & b,
    "or_not0": lambda a, b: ~a | b,
}


def save_exec(function, kind: str):
    """(old EXEC, new EXEC = function(source, EXEC), SCC); a 32-bit form leaves the upper half."""

    def apply(source: Value, mask: Value):
        old = cast(mask, kind)
        new = function(source, old)
        return old, new.differs(0), cast(new, "u64")

    return apply


def write_exec(function, kind: str):
    def apply(source: Value, mask: Value):
        new = function(source, cast(mask, kind))
        return new, new.differs(0), cast(new, "u64")

    return apply


for size, kind in (("b32", "u32"), ("b64", "u64")):
    for name, function in LOGIC.items():
        if "not0" not in name:
            scalar(f"s_{name}_{size}", f"{size} scc = {size} {size}", with_flag(function))
        scalar(f"s_{name}_saveexec_{size}", f"{size} scc exec = {size} exec", save_exec(function, kind))
    for name in ("and_not0", "and_not1"):
        scalar(f"s_{name}_wrexec_{size}", f"{size} scc exec = {size} exec", write_exec(LOGIC[name], kind))
    scalar(f"s_not_{size}", f"{size} scc = {size}", with_flag(lambda a: ~a))
    scalar(f"s_mov_{size}", f"{size} = {size}", lambda a: a)
    scalar(f"s_cmov_{size}", f"{size} = {size} + scc", lambda a, old, flag: select(flag, a, old))
    scalar(f"s_cselect_{size}", f"{size} = {size} {size} scc", lambda a, b, flag: select(flag, a, b))
    scalar(f"s_quadmask_{size}", f"{size} scc = {size}", with_flag(quad_any))
    scalar(f"s_wqm_{size}", f"{size} scc = {size}", with_flag(whole_quads))
    scalar(f"s_bcnt0_i32_{size}", f"b32 scc = {size}", with_flag(lambda a: ones(~a)))
    scalar(f"s_bcnt1_i32_{size}", f"b32 scc = {size}", with_flag(ones))
    scalar(f"s_bfm_{size}", f"{size} = b32 b32", bit_mask(kind))
    for n in (0, 1):
        scalar(f"s_bitcmp{n}_{size}", f"scc = {size} b32", lambda a, place, n=n: (a >> place & 1).equals(n))
        scalar(
            f"s_bitset{n}_{size}",
            f"{size} = b32 +",
            lambda place, old, kind=kind, n=n: (
                old | const(kind, 1) << place if n else old & ~(const(kind, 1) << place)
            ),
        )
for t in ("u32", "i32", "u64", "i64"):
    scalar(f"s_bfe_{t}", f"{t} scc = {t} u32", extract)
scalar("s_brev_b32", "b32 = b32", reverse_bits)
scalar("s_brev_b64", "b64 = b64", lambda a: join(reverse_bits(high_word(a)), reverse_bits(low_word(a))))
scalar("s_ctz_i32_b32", "i32 = b32", trailing_zeros)
scalar("s_ctz_i32_b64", "i32 = b64", of_both(trailing_zeros, -1))
scalar("s_clz_i32_u32", "i32 = u32", leading_zeros)
scalar("s_clz_i32_u64", "i32 = u64", leading_zeros64)
scalar("s_cls_i32", "i32 = i32", leading_signs)
scalar("s_cls_i32_i64", "i32 = i64", leading_signs64)
scalar("s_sext_i32_i8", "i32 = i32", lambda a: a << 24 >> 24)
scalar("s_sext_i32_i16", "i32 = i32", lambda a: a << 16 >> 16)
scalar("s_abs_i32", "i32 scc = i32", with_flag(abs))
scalar("s_bitreplicate_b64_b32", "b64 = b32", doubled)
for name, shifts in (("ll", (0, 0)), ("lh", (0, 16)), ("hh", (16, 16)), ("hl", (16, 0))):
    scalar(f"s_pack_{name}_b32_b16", "b32 = b32 b32", halves(*shifts))

# -- comparisons ---------------------------------------------------------------------------------------------
CONDITIONS = {
    "eq": lambda a, b: a.equals(b),
    "lg": lambda a, b: a.differs(b),
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}
for name, condition in CONDITIONS.items():
    for t in ("i32", "u32", "u64"):
        if t != "u64" or name in ("eq", "lg"):
            scalar(f"s_cmp_{name}_{t}", f"scc = {t} {t}", condition)
    scalar(f"s_cmpk_{name}_i32", "scc = s32 simm", lambda a, k, test=condition: test(bits(a, "i32"), k))
    scalar(f"s_cmpk_{name}_u32", "scc = s32 uimm", condition)

# -- with a constant of 16 bits ------------------------------------------------------------------------------
scalar("s_movk_i32", "i32 = simm", lambda k: k)
scalar("s_cmovk_i32", "i32 = simm + scc", lambda k, old, flag: select(flag, k, old))
for name in ("s_addk_i32", "s_addk_co_i32"):
    scalar(name, "i32 scc = simm +", lambda k, old: signed_add(old, k))
scalar("s_mulk_i32", "i32 = simm +", lambda k, old: old * k)

# -- flow, registers of the hardware, waits: run by code of their own ----------------------------------------
for name in (
    "s_branch",
    "s_cbranch_scc0",
    "s_cbranch_scc1",
    "s_cbranch_vccz",
    "s_cbranch_vccnz",
    "s_cbranch_execz",
    "s_cbranch_execnz",
):
    row(name, "= label", None, "branch")
for name in ("cdbgsys", "cdbguser", "cdbgsys_or_user", "cdbgsys_and_user"):
    row(f"s_cbranch_{name}", "= label", None, "unknown")
row("s_getpc_b64", "s64 =", None, "jump")
row("s_setpc_b64", "= b64", None, "jump")
row("s_swappc_b64", "s64 = b64", None, "jump")
row("s_call_b64", "s64 = label", None, "jump")
row("s_rfe_b64", "= b64", None, "unknown")
row("s_getreg_b32", "s32 = hwreg", None, "register")
row("s_setreg_b32", "= hwreg s32", None, "register")
row("s_setreg_imm32_b32", "= hwreg k32", None, "register")
row("s_endpgm", "= end", None, "end")
row("s_barrier", "=", None, "barrier")
for name in (
    "s_endpgm_saved",
    "s_endpgm_ordered_ps_done",
    "s_ttracedata",
    "s_wakeup",
    "s_wait_idle",
    "s_icache_inv",
    "s_code_end",
):
    row(
        name,
        "=",
        None,
        "wait" if name in ("s_wakeup", "s_wait_idle", "s_icache_inv", "s_ttracedata") else "unknown",
    )
for name in ("s_nop", "s_sleep", "s_setprio"):
    row(name, "= number", None, "wait")
for name in ("s_set_inst_prefetch_distance", "s_clause", "s_wait_event", "s_ttracedata_imm"):
    row(name, "= hex", None, "wait")
for name in ("s_incperflevel", "s_decperflevel"):
    row(name, "= number", None, "wait")
for name in ("s_setkill", "s_sethalt", "s_trap"):
    row(name, "= number", None, "unknown")
row("s_round_mode", "= hex", None, "mode")
row("s_denorm_mode", "= number", None, "mode")
row("s_delay_alu", "= delay", None, "wait")
row("s_waitcnt", "= counts", None, "wait")
row("s_waitcnt_depctr", "= depctr", None, "wait")
for name in ("vscnt", "vmcnt", "expcnt", "lgkmcnt"):
    row(f"s_waitcnt_{name}", "= s32 hex", None, "wait")
row("s_sendmsg", "= message", None, "message")
row("s_sendmsghalt", "= message", None, "unknown")
row("s_sendmsg_rtn_b32", "s32 = message", None, "clock")
row("s_sendmsg_rtn_b64", "s64 = message", None, "clock")
row("s_version", "= hex", None, "wait")
for name in ("begin", "end"):
    row(f"s_subvector_loop_{name}", "s32 = label", None, "unknown")
for size in ("b32", "b64"):
    row(f"s_movrels_{size}", f"{size} = {size}", None, "indirect")
    row(f"s_movreld_{size}", f"{size} = {size}", None, "indirect")
row("s_movrelsd_2_b32", "b32 = b32", None, "indirect")

# -- vector instructions that move between lanes or registers ------------------------------------------------
row("v_nop", "=", None, "wait")
row("v_pipeflush", "=", None, "wait")
row("v_clrexcp", "=", None, "wait")
row("v_readfirstlane_b32", "s32 = b32", None, "lanes")
row("v_readlane_b32", "s32 = b32 s32", None, "lanes")
row("v_writelane_b32", "b32 = s32 s32", None, "lanes")
row("v_permlane16_b32", "b32 = b32 s32 s32", None, "lanes")
row("v_permlanex16_b32", "b32 = b32 s32 s32", None, "lanes")
row("v_permlane64_b32", "b32 = b32", None, "lanes")
row("v_swap_b32", "b32 = b32", None, "lanes")
row("v_swap_b16", "b16 = b16", None, "lanes")
for name in ("movreld_b32", "movrels_b32", "movrelsd_b32", "movrelsd_2_b32", "swaprel_b32"):
    row(f"v_{name}", "b32 = b32", None, "indirect")

# -- matrices: 16x16x16 over a wave --------------------------------------------------------------------------
for name, signature in (
    ("f32_16x16x16_f16", "u32x8 = u32x8 u32x8 u32x8"),
    ("f32_16x16x16_bf16", "u32x8 = u32x8 u32x8 u32x8"),
    ("f16_16x16x16_f16", "u32x8 = u32x8 u32x8 u32x8"),
    ("bf16_16x16x16_bf16", "u32x8 = u32x8 u32x8 u32x8"),
    ("i32_16x16x16_iu8", "u32x8 = u32x4 u32x4 u32x8"),
    ("i32_16x16x16_iu4", "u32x8 = b64 b64 u32x8"),
):
    row(f"v_wmma_{name}", signature, None, "matrix")
