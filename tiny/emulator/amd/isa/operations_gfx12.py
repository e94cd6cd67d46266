"""Rows that gfx12 adds: floats on the scalar side, min and max by their IEEE 754-2019 names, split barriers,
waits.
"""

from tiny.emulator.amd.isa import functions as fn
from tiny.emulator.amd.isa.expression import (
    Value,
    bits,
    cast,
    ceil,
    field,
    floor,
    fma,
    is_nan,
    rint,
    select,
    sqrt,
    trunc,
)
from tiny.emulator.amd.isa.halves import pack
from tiny.emulator.amd.isa.operation import row
from tiny.emulator.amd.isa.operations_float import CONDITIONS, FLOATS, to_f16_toward_zero
from tiny.emulator.amd.isa.operations_integer import multiply_add_signed, multiply_add_unsigned
from tiny.emulator.amd.isa.operations_memory import (
    ATOMIC_SPACES,
    TOKEN,
    Access,
    atomic,
    conditional_subtract,
    ds_atomic,
    ds_rows,
    memory,
    refused,
    saturating_subtract,
)
from tiny.emulator.amd.isa.operations_scalar import scalar


def minimum(a: Value, b: Value) -> Value:
    """IEEE 754-2019 minimum: NaN wins over numbers."""
    return select(is_nan(a), fn.quiet(a), select(is_nan(b), fn.quiet(b), fn.minimum(a, b)))


def maximum(a: Value, b: Value) -> Value:
    return select(is_nan(a), fn.quiet(a), select(is_nan(b), fn.quiet(b), fn.maximum(a, b)))


# -- vector -------------------------------------------------------------------------------------------------
for t in FLOATS:
    for name, function in (
        ("min_num", fn.minimum),
        ("max_num", fn.maximum),
        ("minimum", minimum),
        ("maximum", maximum),
    ):
        row(f"v_{name}_{t}", f"{t} = {t} {t}", function)
for t in ("f16", "f32"):
    for name, first, second in (
        ("min3_num", fn.minimum, fn.minimum),
        ("max3_num", fn.maximum, fn.maximum),
        ("minimum3", minimum, minimum),
        ("maximum3", maximum, maximum),
        ("minmax_num", fn.minimum, fn.maximum),
        ("maxmin_num", fn.maximum, fn.minimum),
        ("minimummaximum", minimum, maximum),
        ("maximumminimum", maximum, minimum),
    ):
        row(f"v_{name}_{t}", f"{t} = {t} {t} {t}", lambda a, b, c, f=first, g=second: g(f(a, b), c))
    row(f"v_med3_num_{t}", f"{t} = {t} {t} {t}", fn.median)
for name, function in (
    ("min_num", fn.minimum),
    ("max_num", fn.maximum),
    ("minimum", minimum),
    ("maximum", maximum),
):
    row(f"v_pk_{name}_f16", "f16 = f16 f16", function, "packed")
for name, function in (
    ("exp", fn.exp2),
    ("log", fn.log2),
    ("rcp", fn.reciprocal),
    ("rsq", fn.reciprocal_root),
    ("sqrt", sqrt),
):
    for t in ("f32", "f16"):
        row(f"v_s_{name}_{t}", f"s32 = {t}", function)
row("v_mad_co_u64_u32", "u64 m = u32 u32 u64", multiply_add_unsigned)
row("v_mad_co_i64_i32", "i64 m = i32 i32 i64", multiply_add_signed)
for name in ("permlane16_var", "permlanex16_var"):
    row(f"v_{name}_b32", "b32 = b32 b32", None, "lanes")

# -- scalar -------------------------------------------------------------------------------------------------
scalar("s_add_nc_u64", "u64 = u64 u64", lambda a, b: a + b)
scalar("s_sub_nc_u64", "u64 = u64 u64", lambda a, b: a - b)
scalar("s_mul_u64", "u64 = u64 u64", lambda a, b: a * b)
for name, function in (
    ("add", lambda a, b: a + b),
    ("sub", lambda a, b: a - b),
    ("mul", lambda a, b: a * b),
    ("min_num", fn.minimum),
    ("max_num", fn.maximum),
    ("minimum", minimum),
    ("maximum", maximum),
):
    for t in ("f32", "f16"):
        scalar(f"s_{name}_{t}", f"{t} = {t} {t}", function)
for t in ("f32", "f16"):
    scalar(f"s_fmac_{t}", f"{t} = {t} {t} +", fma)
scalar("s_fmamk_f32", "f32 = f32 k32 f32", lambda a, k, b: fma(a, k, b))
scalar("s_fmaak_f32", "f32 = f32 f32 k32", fma)
scalar(
    "s_cvt_pk_rtz_f16_f32", "b32 = f32 f32", lambda a, b: pack(to_f16_toward_zero(a), to_f16_toward_zero(b))
)
for name, function in (("ceil", ceil), ("floor", floor), ("trunc", trunc), ("rndne", rint)):
    for t in ("f32", "f16"):
        scalar(f"s_{name}_{t}", f"{t} = {t}", function)
for to, source in (
    ("f32", "i32"),
    ("f32", "u32"),
    ("i32", "f32"),
    ("u32", "f32"),
    ("f32", "f16"),
    ("f16", "f32"),
):
    scalar(f"s_cvt_{to}_{source}", f"{to} = {source}", lambda a, to=to: cast(a, to))
scalar("s_cvt_hi_f32_f16", "f32 = b32", lambda a: cast(bits(cast(field(a, 16, 16), "u16"), "f16"), "f32"))
for name, condition in CONDITIONS.items():
    if name not in ("f", "t"):
        for t in ("f16", "f32"):
            scalar(f"s_cmp_{name}_{t}", f"scc = {t} {t}", condition)

# -- flow and memory ----------------------------------------------------------------------------------------
for name in (
    "loadcnt",
    "storecnt",
    "samplecnt",
    "bvhcnt",
    "expcnt",
    "dscnt",
    "kmcnt",
    "loadcnt_dscnt",
    "storecnt_dscnt",
):
    row(f"s_wait_{name}", "= hex", None, "wait")
row("s_wait_alu", "= depctr", None, "wait")
row("s_barrier_wait", "= hex", None, "barrier")
row("s_barrier_signal", "= b32", None, "signal")
for name in ("signal_isfirst", "init", "join"):
    row(f"s_barrier_{name}", "= b32", None, "unknown")
row("s_barrier_leave", "= hex", None, "unknown")
row("s_get_barrier_state", "b32 = b32", None, "unknown")
row("s_alloc_vgpr", "= b32", None, "unknown")
row("s_sleep_var", "= b32", None, "wait")
for name in ("inv", "wb", "wbinv"):
    row(f"global_{name}", "=", None, "wait")
memory("s_load_b96", "u32x3 = address", Access("load", "u32", 3), "scalar memory")
memory("s_buffer_load_b96", "u32x3 = buffer", Access("load", "u32", 3), "scalar memory")
for kind in ("u8", "i8", "u16", "i16"):
    memory(f"s_load_{kind}", "b32 = address", Access("load", kind), "scalar memory")
    memory(f"s_buffer_load_{kind}", "b32 = buffer", Access("load", kind), "scalar memory")
for name, source in (
    ("inst", "address"),
    ("inst_pc_rel", ""),
    ("data", "address"),
    ("data_pc_rel", ""),
):
    memory(f"s_prefetch_{name}", f"= {source} soffset length", Access("none", "u32"), "scalar memory")
memory("s_buffer_prefetch_data", "= buffer soffset length", Access("none", "u32"), "scalar memory")
for space in ATOMIC_SPACES:
    for name, combine in (("sub_clamp", saturating_subtract), ("cond_sub", conditional_subtract)):
        memory(f"{space}_atomic_{name}_u32", "b32 = address b32", Access("atomic", "u32", combine=combine))
    for name in ("min", "max"):
        memory(f"{space}_atomic_{name}_num_f32", "b32 = address b32", atomic(name, "f32"))
TRANSPOSED = "how it deals a transposed matrix out to lanes is not certain"
refused("global_load_tr_b128", "u32x4 = address", TRANSPOSED)
refused("global_load_tr_b64", "b64 = address", TRANSPOSED)
refused("global_atomic_ordered_add_b64", "b64 = address b64", "it waits for its turn in an order of graphics")
for space in ("global", "scratch"):
    memory(f"{space}_load_block", "u32x32 = address", Access("load", "u32", 32))
    memory(f"{space}_store_block", "= address u32x32", Access("store", "u32", 32))
RAYS = "a stack of ray tracing"
refused("ds_bvh_stack_push4_pop1_rtn_b32", "b32 = address b32 u32x4", RAYS)
refused("ds_bvh_stack_push8_pop1_rtn_b32", "b32 = address b32 u32x8", RAYS)
refused("ds_bvh_stack_push8_pop2_rtn_b64", "b64 = address b32 u32x8", RAYS)
ds_atomic("cond_sub", "u32", conditional_subtract)
ds_atomic("sub_clamp", "u32", saturating_subtract)
for width in (32, 64):
    for name in ("min", "max"):
        ds_rows(f"{name}_num", f"f{width}", atomic(name, f"f{width}"), TOKEN[width // 32])
row("ds_bpermute_fi_b32", f"{TOKEN[1]} = address b32", None, "lanes")

# -- matrices: here a row of A is shared by two lanes, so that fewer registers hold it ----------------------
for kind in ("f16", "bf16"):
    row(f"v_wmma_f32_16x16x16_{kind}@gfx12", "u32x8 = u32x4 u32x4 u32x8", None, "matrix")
    row(f"v_wmma_{kind}_16x16x16_{kind}@gfx12", "u32x4 = u32x4 u32x4 u32x4", None, "matrix")
for kind in ("fp8_fp8", "fp8_bf8", "bf8_fp8", "bf8_bf8"):
    row(f"v_wmma_f32_16x16x16_{kind}", "u32x8 = b64 b64 u32x8", None, "matrix")
row("v_wmma_i32_16x16x16_iu8@gfx12", "u32x8 = b64 b64 u32x8", None, "matrix")
row("v_wmma_i32_16x16x16_iu4@gfx12", "u32x8 = b32 b32 u32x8", None, "matrix")
row("v_wmma_i32_16x16x32_iu4", "u32x8 = b64 b64 u32x8", None, "matrix")
for pair in (("f32", "f16"), ("f32", "bf16"), ("f16", "f16"), ("bf16", "bf16")):  # sparse: D is C, too
    count = 8 if pair[0] == "f32" else 4
    row(f"v_swmmac_{pair[0]}_16x16x32_{pair[1]}", f"u32x{count} = u32x4 u32x8 b32 +", None, "matrix")
for name in ("i32_16x16x32_iu8", *(f"f32_16x16x32_{a}_{b}" for a in ("fp8", "bf8") for b in ("fp8", "bf8"))):
    row(f"v_swmmac_{name}", "u32x8 = b64 u32x4 b32 +", None, "matrix")
row("v_swmmac_i32_16x16x32_iu4", "u32x8 = b32 b64 b32 +", None, "matrix")
row("v_swmmac_i32_16x16x64_iu4", "u32x8 = b64 u32x4 b32 +", None, "matrix")
