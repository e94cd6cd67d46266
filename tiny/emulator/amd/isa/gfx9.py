"""The instruction set of gfx942 (CDNA3): 64 lanes, accumulation VGPRs, SDWA."""

import re

from tiny.emulator.amd.isa import encodings_gfx9 as encodings
from tiny.emulator.amd.isa import operands
from tiny.emulator.amd.isa.decode import Family
from tiny.emulator.amd.isa.gfx11 import GFX11, two_forms, with_promoted
from tiny.emulator.amd.isa.opcodes_gfx9 import OPCODES, PROMOTED, SHORT_ONLY

WITH_SGPR_RESULT = (
    "v_div_scale_f32",
    "v_div_scale_f64",
    "v_mad_u64_u32",
    "v_mad_i64_i32",
    "v_add_co_u32",
    "v_sub_co_u32",
    "v_subrev_co_u32",
    "v_addc_co_u32",
    "v_subb_co_u32",
    "v_subbrev_co_u32",
)
_lists = with_promoted(OPCODES, PROMOTED, SHORT_ONLY)
_matrix = [name for name in OPCODES["VOP3P"].values() if "mfma" in name or "accvgpr" in name]
_float8 = [name for name in _lists["VOP3"].values() if re.search("_cvt.*_(fp8|bf8)", name)]
GFX9 = Family(
    name="gfx9",
    encodings=encodings.ENCODINGS,
    graphics=encodings.GRAPHICS,
    opcodes=_lists,
    operands=GFX11.operands | {"SMEM": operands.scalar_memory_gfx9, "VOP3P": operands.vop3p_or_matrix},
    wave_sizes=(64,),
    m0=124,
    aliases={name: f"{name}@gfx9" for name in OPCODES["VOPC"].values() if name.startswith("v_cmpx_")}
    | {name: f"{name}@gfx9" for name in _float8},
    promoted=two_forms(OPCODES, PROMOTED, SHORT_ONLY),
    split={("VOP3", name): encodings.VOP3SD for name in WITH_SGPR_RESULT}
    | {("VOP3P", name): encodings.MAI for name in _matrix},
)
