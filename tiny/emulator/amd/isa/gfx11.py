"""The instruction set of gfx11."""

from tiny.emulator.amd.isa import encodings_gfx11 as encodings
from tiny.emulator.amd.isa import operands
from tiny.emulator.amd.isa.decode import Family
from tiny.emulator.amd.isa.opcodes_gfx11 import OPCODES, PROMOTED, SHORT_ONLY


def with_promoted(
    opcodes: dict[str, dict[int, str]], offsets: dict[str, int], short_only: frozenset[str]
) -> dict[str, dict[int, str]]:
    """The opcode lists with VOP3 completed by the long forms of the short encodings."""
    promoted = {
        number + offset: name
        for table, offset in offsets.items()
        for number, name in opcodes[table].items()
        if name not in short_only
    }
    return opcodes | {"VOP3": promoted | opcodes["VOP3"]}


def two_forms(
    opcodes: dict[str, dict[int, str]], offsets: dict[str, int], short_only: frozenset[str]
) -> frozenset[str]:
    """Mnemonics that have a short and a long form."""
    return frozenset(name for table in offsets for name in opcodes[table].values()) - short_only


def dual(opcodes: dict[int, str]) -> dict[int, str]:
    """VOPD's numbers with the names of the plain instructions."""
    return {number: name.replace(operands.DUAL, "v_") for number, name in opcodes.items()}


WITH_SGPR_RESULT = (
    "v_div_scale_f32",
    "v_div_scale_f64",
    "v_mad_u64_u32",
    "v_mad_i64_i32",
    "v_add_co_u32",
    "v_sub_co_u32",
    "v_subrev_co_u32",
    "v_add_co_ci_u32",
    "v_sub_co_ci_u32",
    "v_subrev_co_ci_u32",
)
_lists = with_promoted(OPCODES, PROMOTED, SHORT_ONLY)
GFX11 = Family(
    name="gfx11",
    encodings=encodings.ENCODINGS,
    graphics=encodings.GRAPHICS,
    opcodes=_lists | {"VOPD": dual(OPCODES["VOPD"])},
    operands={
        "SOP1": operands.scalar,
        "SOP2": operands.scalar,
        "SOPC": operands.scalar,
        "SOPK": operands.with_constant,
        "SOPP": operands.with_constant,
        "SMEM": operands.scalar_memory,
        "VOP1": operands.short_vector,
        "VOP2": operands.short_vector,
        "VOPC": operands.short_vector,
        "VOP3": operands.vop3,
        "VOP3P": operands.vop3p,
        "VOPD": operands.vopd,
        "DS": operands.data_share,
        "FLAT": operands.flat,
        "MUBUF": operands.buffer,
    },
    true16=True,
    true16_text=True,
    promoted=two_forms(OPCODES, PROMOTED, SHORT_ONLY),
    split={("VOP3", name): encodings.VOP3SD for name in WITH_SGPR_RESULT},
)
