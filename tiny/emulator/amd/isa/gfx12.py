"""The instruction set of gfx12."""

from tiny.emulator.amd.isa import encodings_gfx11, encodings_gfx12, operands
from tiny.emulator.amd.isa.decode import Family
from tiny.emulator.amd.isa.gfx11 import GFX11, WITH_SGPR_RESULT, dual, two_forms, with_promoted
from tiny.emulator.amd.isa.opcodes_gfx12 import OPCODES, PROMOTED, SHORT_ONLY

_lists = with_promoted(OPCODES, PROMOTED, SHORT_ONLY)
_matrix = (
    "f32_16x16x16_f16",
    "f32_16x16x16_bf16",
    "f16_16x16x16_f16",
    "bf16_16x16x16_bf16",
    "i32_16x16x16_iu8",
    "i32_16x16x16_iu4",
)
GFX12 = Family(
    name="gfx12",
    encodings=encodings_gfx12.ENCODINGS,
    graphics=encodings_gfx12.GRAPHICS,
    opcodes=_lists | {"VOPD": dual(OPCODES["VOPD"])},
    operands=GFX11.operands | {"MUBUF": operands.buffer},
    true16=True,
    promoted=two_forms(OPCODES, PROMOTED, SHORT_ONLY),
    split={
        ("VOP3", name): encodings_gfx11.VOP3SD
        for name in (*WITH_SGPR_RESULT, "v_mad_co_u64_u32", "v_mad_co_i64_i32")
    },
    aliases={f"v_wmma_{name}": f"v_wmma_{name}@gfx12" for name in _matrix},
)
