"""Rows that gfx942 adds, most of them older names of what gfx11 has."""

import dataclasses

from tiny.emulator.amd.isa import float_atomics
from tiny.emulator.amd.isa import functions as fn
from tiny.emulator.amd.isa.expression import fma, select
from tiny.emulator.amd.isa.operation import OPERATIONS, row
from tiny.emulator.amd.isa.operations_float import dx9_product
from tiny.emulator.amd.isa.operations_integer import dot_row
from tiny.emulator.amd.isa.operations_memory import (
    ACCESS,
    ATOMIC_SPACES,
    TOKEN,
    Access,
    ds_atomic,
    ds_rows,
    float_swap,
    memory,
    refused,
)
from tiny.emulator.amd.isa.operations_scalar import scalar


def also(old: str, new: str) -> None:
    """A row under another name."""
    if old in OPERATIONS:
        return
    OPERATIONS[old] = dataclasses.replace(OPERATIONS[new], name=old)
    if new in ACCESS:
        ACCESS[old] = ACCESS[new]


# -- memory -------------------------------------------------------------------------------------------------
_LOADS = {
    "ubyte": "u8",
    "sbyte": "i8",
    "ushort": "u16",
    "sshort": "i16",
    "ubyte_d16": "d16_u8",
    "ubyte_d16_hi": "d16_hi_u8",
    "sbyte_d16": "d16_i8",
    "sbyte_d16_hi": "d16_hi_i8",
    "short_d16": "d16_b16",
    "short_d16_hi": "d16_hi_b16",
}
_STORES = {"byte": "b8", "byte_d16_hi": "d16_hi_b8", "short": "b16", "short_d16_hi": "d16_hi_b16"}
_DWORDS = {"dword": "b32", "dwordx2": "b64", "dwordx3": "b96", "dwordx4": "b128"}
_ATOMICS = {
    "swap": "swap_b",
    "cmpswap": "cmpswap_b",
    "add": "add_u",
    "sub": "sub_u",
    "smin": "min_i",
    "umin": "min_u",
    "smax": "max_i",
    "umax": "max_u",
    "and": "and_b",
    "or": "or_b",
    "xor": "xor_b",
    "inc": "inc_u",
    "dec": "dec_u",
}
for space in ("flat", "global", "scratch", "buffer"):
    for old, new in (_LOADS | _DWORDS).items():
        also(f"{space}_load_{old}", f"{space}_load_{new}")
    for old, new in (_STORES | _DWORDS).items():
        also(f"{space}_store_{old}", f"{space}_store_{new}")
for space in ATOMIC_SPACES:
    for old, new in _ATOMICS.items():
        also(f"{space}_atomic_{old}", f"{space}_atomic_{new}32")
        also(f"{space}_atomic_{old}_x2", f"{space}_atomic_{new}64")
for old, new in (("", "b32"), ("x2", "b64"), ("x4", "b128"), ("x8", "b256"), ("x16", "b512")):
    also(f"s_load_dword{old}", f"s_load_{new}")
    also(f"s_buffer_load_dword{old}", f"s_buffer_load_{new}")
for name in ("s_dcache_wb", "s_dcache_inv_vol", "s_dcache_wb_vol", "buffer_wbl2", "buffer_inv"):
    row(name, "=", None, "wait")
for name in ("s_memtime", "s_memrealtime"):
    row(name, "b64 =", None, "clock")
for size in ("b8", "b16", "b32", "b64", "b96", "b128"):
    also(f"ds_write_{size}", f"ds_store_{size}")
for size in ("u8", "i8", "u16", "i16", "b32", "b64", "b96", "b128"):
    also(f"ds_read_{size}", f"ds_load_{size}")
for size in ("u8", "i8", "u16"):
    for half in ("d16", "d16_hi"):
        also(f"ds_read_{size}_{half}", f"ds_load_{size}_{half}")
for size in ("b8", "b16"):
    also(f"ds_write_{size}_d16_hi", f"ds_store_{size}_d16_hi")
for size in ("b32", "b64"):
    for old, new in (("2", "2addr"), ("2st64", "2addr_stride64")):
        also(f"ds_read{old}_{size}", f"ds_load_{new}_{size}")
        also(f"ds_write{old}_{size}", f"ds_store_{new}_{size}")
        also(f"ds_wrxchg{old}_rtn_{size}", f"ds_storexchg_{new}_rtn_{size}")
    also(f"ds_wrxchg_rtn_{size}", f"ds_storexchg_rtn_{size}")
for size in ("b32", "b64"):  # the operands stand the other way round
    ds_atomic("cmpst", size, lambda old, compare, data: select(old.equals(compare), data, old), 2)
for width in (32, 64):

    def compare_store(old, compare, data, flush):
        return float_atomics.compare_swap(old, data, compare, flush)

    swap = dataclasses.replace(float_swap(f"f{width}"), combine=compare_store)
    ds_rows("cmpst", f"f{width}", swap, TOKEN[width // 32], 2)
for space in ("global", "scratch"):
    for size, element in (*list(_LOADS.items())[:4], ("dword", "u32")):
        memory(f"{space}_load_lds_{size}", "= address", Access("load lds", element))
for old, new in (("write", "store"), ("read", "load")):
    also(f"ds_{old}_addtid_b32", f"ds_{new}_addtid_b32")
for name in ("x", "xy", "xyz", "xyzw"):
    for action in ("load", "store"):
        also(f"buffer_{action}_format_d16_{name}", f"buffer_{action}_d16_format_{name}")
for action in ("load", "store"):
    also(f"buffer_{action}_format_d16_hi_x", f"buffer_{action}_d16_hi_format_x")
for count, size in ((1, "dword"), (2, "dwordx2"), (4, "dwordx4")):
    token = TOKEN[count]
    memory(f"s_store_{size}", f"= {token} address", Access("store", "u32", count), "scalar memory")
    memory(f"s_buffer_store_{size}", f"= {token} buffer", Access("store", "u32", count), "scalar memory")
    for action, signature in (("load", f"{token} = address"), ("store", f"= {token} address")):
        refused(
            f"s_scratch_{action}_{size}",
            signature,
            "the scratch of a whole wave is not laid out as the card's, only that of each lane",
            "scalar memory",
        )
for old, new in _ATOMICS.items():
    for size, width in (("", 32), ("_x2", 64)):
        access = ACCESS[f"global_atomic_{new}{width}"]
        count = access.operands * width // 32
        for space, source in (("s", "address"), ("s_buffer", "buffer")):
            signature = f"{TOKEN[width // 32]} = {TOKEN[count]} {source}"
            memory(f"{space}_atomic_{old}{size}", signature, access, "scalar memory")
for name in ("s_dcache_discard", "s_dcache_discard_x2"):
    memory(name, "= address", Access("none", "u32"), "scalar memory")

# -- scalar -------------------------------------------------------------------------------------------------
for size in ("b32", "b64"):
    for old, new in (("andn2", "and_not1"), ("orn2", "or_not1")):
        also(f"s_{old}_{size}", f"s_{new}_{size}")
    also(f"s_ff1_i32_{size}", f"s_ctz_i32_{size}")
    scalar(f"s_ff0_i32_{size}", f"i32 = {size}", lambda a, f=OPERATIONS[f"s_ctz_i32_{size}"].function: f(~a))
for old, new in (
    ("s_flbit_i32_b32", "s_clz_i32_u32"),
    ("s_flbit_i32_b64", "s_clz_i32_u64"),
    ("s_flbit_i32", "s_cls_i32"),
    ("s_flbit_i32_i64", "s_cls_i32_i64"),
):
    also(old, new)
for old, new in (("andn1", "and_not0"), ("andn2", "and_not1"), ("orn1", "or_not0"), ("orn2", "or_not1")):
    also(f"s_{old}_saveexec_b64", f"s_{new}_saveexec_b64")
    if old.startswith("and"):
        also(f"s_{old}_wrexec_b64", f"s_{new}_wrexec_b64")
row("s_set_gpr_idx_on", "= b32 gpr_idx", None, "mode")
row("s_set_gpr_idx_off", "=", None, "mode")
row("s_set_gpr_idx_mode", "= hex", None, "unknown")
row("s_set_gpr_idx_idx", "= b32", None, "unknown")

# -- vector -------------------------------------------------------------------------------------------------
for old, new in (
    ("ffbh_u32", "clz_i32_u32"),
    ("ffbl_b32", "ctz_i32_b32"),
    ("ffbh_i32", "cls_i32"),
    ("cvt_rpi_i32_f32", "cvt_nearest_i32_f32"),
    ("cvt_flr_i32_f32", "cvt_floor_i32_f32"),
    ("addc_co_u32", "add_co_ci_u32"),
    ("subb_co_u32", "sub_co_ci_u32"),
    ("subbrev_co_u32", "subrev_co_ci_u32"),
    ("cvt_pkrtz_f16_f32", "cvt_pk_rtz_f16_f32"),
    ("cvt_pknorm_i16_f32", "cvt_pk_norm_i16_f32"),
    ("cvt_pknorm_u16_f32", "cvt_pk_norm_u16_f32"),
    ("cvt_pknorm_i16_f16", "cvt_pk_norm_i16_f16"),
    ("cvt_pknorm_u16_f16", "cvt_pk_norm_u16_f16"),
):
    also(f"v_{old}", f"v_{new}")
for name in ("add", "sub", "subrev"):
    also(f"v_{name}_u32", f"v_{name}_nc_u32")
for name in ("add", "sub"):
    for t in ("i32", "i16", "u16"):
        also(f"v_{name}_{t}", f"v_{name}_nc_{t}")
row("v_subrev_u16", "u16 = u16 u16", lambda a, b: b - a)
row("v_mul_legacy_f32", "f32 = f32 f32", dx9_product)
row("v_fmac_f64", "f64 = f64 f64 +", fma)
row("v_lshl_add_u64", "u64 = u64 b32 u64", lambda a, n, c: (a << (n & 7)) + c)
for name in ("mad", "mad_legacy"):  # unfused: the product is rounded before the sum
    row(f"v_{name}_f16", "f16 = f16 f16 f16", lambda a, b, c: a * b + c)
row("v_mac_f16", "f16 = f16 f16 +", lambda a, b, c: a * b + c)
row("v_madmk_f16", "f16 = f16 k16 f16", lambda a, k, b: a * k + b)
row("v_madak_f16", "f16 = f16 f16 k16", lambda a, b, k: a * b + k)
for name in ("fma_legacy_f16", "div_fixup_legacy_f16", "mad_legacy_u16", "mad_legacy_i16"):
    also(f"v_{name}", f"v_{name.replace('_legacy', '')}")
for t in ("f16", "f32", "f64"):
    also(f"v_cmp_tru_{t}", f"v_cmp_t_{t}")
    also(f"v_cmpx_tru_{t}", f"v_cmpx_t_{t}")
_comparisons = [name for name in OPERATIONS if name.startswith("v_cmpx_") and "_t_f" not in name]
for name in _comparisons:  # here they write a mask, too
    compare = OPERATIONS[name]
    row(
        f"{name}@gfx9",
        f"m exec = {' '.join(compare.sources)}",
        lambda *operands, f=compare.function: (f(*operands), f(*operands)),
    )
for name, width in (("dot2c_i32_i16", 16), ("dot4c_i32_i8", 8), ("dot8c_i32_i4", 4)):
    dot_row(f"v_{name}", width, "i32 = b32 b32 +", 3, "vector")
for name, width in (("dot2_i32_i16", 16), ("dot4_i32_i8", 8), ("dot8_i32_i4", 4)):
    dot_row(f"v_{name}", width, "i32 = b32 b32 i32", 3, "dot")
dot_row("v_dot2_u32_u16", 16, "u32 = b32 b32 u32", 0, "dot")
also("v_dot2c_f32_f16", "v_dot2acc_f32_f16")
for name, count, function in (
    ("fma", 3, fma),
    ("mul", 2, lambda a, b: a * b),
    ("add", 2, lambda a, b: a + b),
):
    row(f"v_pk_{name}_f32", f"f32 = {'f32 ' * count}", function, "packed")
row("v_pk_mov_b32", "u32 = u32 u32", None, "packed move")
row("v_exp_legacy_f32", "f32 = f32", fn.exp2)
row("v_log_legacy_f32", "f32 = f32", fn.log2)
row("v_screen_partition_4se_b32", "b32 = b32", None)  # of rasterizers that this card does not have
row("v_accvgpr_mov_b32", "b32 = b32", lambda a: a)
row("v_accvgpr_read_b32", "b32 = b32", lambda a: a, "matrix move")
row("v_accvgpr_write_b32", "b32 = b32", lambda a: a, "matrix move")
row(
    "v_cvt_pkaccum_u8_f32",
    "b32 = f32 u32 +",
    lambda a, place, old: OPERATIONS["v_cvt_pk_u8_f32"].function(a, place, old),
)

# -- matrices -----------------------------------------------------------------------------------------------
MATRICES = {  # name -> (registers of A and B, of C and D)
    "f32_16x16x16_f16": ("b64", 4),
    "f32_16x16x16_bf16": ("b64", 4),
    "f32_16x16x4_f32": ("b32", 4),
    "f32_32x32x8_f16": ("b64", 16),
    "f32_32x32x8_bf16": ("b64", 16),
    "f32_32x32x2_f32": ("b32", 16),
    "i32_16x16x32_i8": ("b64", 4),
    "i32_32x32x16_i8": ("b64", 16),
    "f32_4x4x4_16b_f16": ("b64", 4),
    "f32_4x4x1_16b_f32": ("b32", 4),
    "f32_4x4x4_16b_bf16": ("b64", 4),
    "f32_32x32x4_2b_f16": ("b64", 32),
    "f32_16x16x4_4b_f16": ("b64", 16),
    "f32_32x32x1_2b_f32": ("b32", 32),
    "f32_16x16x1_4b_f32": ("b32", 16),
    "f32_32x32x4_2b_bf16": ("b64", 32),
    "f32_16x16x4_4b_bf16": ("b64", 16),
    "i32_32x32x4_2b_i8": ("b32", 32),
    "i32_16x16x4_4b_i8": ("b32", 16),
    "i32_4x4x4_16b_i8": ("b32", 4),
    "f32_16x16x8_xf32": ("b64", 4),
    "f32_32x32x4_xf32": ("b64", 16),
}
for name, (source, count) in MATRICES.items():
    row(f"v_mfma_{name}", f"u32x{count} = {source} {source} u32x{count}", None, "matrix")
for size, count in (("16x16x32", 4), ("32x32x16", 16)):
    for pair in ("bf8_bf8", "bf8_fp8", "fp8_bf8", "fp8_fp8"):
        row(f"v_mfma_f32_{size}_{pair}", f"u32x{count} = b64 b64 u32x{count}", None, "matrix")
row("v_mfma_f64_16x16x4_f64", "f64x4 = f64 f64 f64x4", None, "matrix")
row("v_mfma_f64_4x4x4_4b_f64", "f64 = f64 f64 f64", None, "matrix")
SPARSE = {  # kinds -> sizes, the one with 4 registers of D and the one with 16
    ("f32_{}_f16", "f32_{}_bf16"): ("16x16x32", "32x32x16"),
    ("i32_{}_i8", *(f"f32_{{}}_{pair}" for pair in ("bf8_bf8", "bf8_fp8", "fp8_bf8", "fp8_fp8"))): (
        "16x16x64",
        "32x32x32",
    ),
}
for kinds, sizes in SPARSE.items():
    for kind in kinds:
        for size, count in zip(sizes, (4, 16), strict=True):
            row(f"v_smfmac_{kind.format(size)}", f"u32x{count} = b64 u32x4 b32 +", None, "matrix")
