"""How LLVM writes the 16-bit constants of SOPP and SOPK: counters, hardware registers, messages, delays."""

from tiny.emulator.amd.isa.decode import Instruction, Operand
from tiny.hcq.layout import Struct, bits

# Source: the names llvm-mc prints for gfx11; the numbers are those of the field.
HARDWARE_REGISTERS = {
    "gfx11": {
        1: "MODE",
        2: "STATUS",
        3: "TRAPSTS",
        5: "GPR_ALLOC",
        6: "LDS_ALLOC",
        7: "IB_STS",
        15: "SH_MEM_BASES",
        18: "PERF_SNAPSHOT_PC_LO",
        19: "PERF_SNAPSHOT_PC_HI",
        20: "FLAT_SCR_LO",
        21: "FLAT_SCR_HI",
        23: "HW_ID1",
        24: "HW_ID2",
        27: "PERF_SNAPSHOT_DATA",
        29: "SHADER_CYCLES",
    },
    "gfx12": {
        1: "WAVE_MODE",
        2: "WAVE_STATUS",
        4: "WAVE_STATE_PRIV",
        5: "WAVE_GPR_ALLOC",
        6: "WAVE_LDS_ALLOC",
        7: "IB_STS",
        10: "PERF_SNAPSHOT_DATA",
        11: "PERF_SNAPSHOT_PC_LO",
        12: "PERF_SNAPSHOT_PC_HI",
        15: "PERF_SNAPSHOT_DATA1",
        16: "PERF_SNAPSHOT_DATA2",
        17: "WAVE_EXCP_FLAG_PRIV",
        18: "WAVE_EXCP_FLAG_USER",
        19: "WAVE_TRAP_CTRL",
        20: "WAVE_SCRATCH_BASE_LO",
        21: "WAVE_SCRATCH_BASE_HI",
        23: "WAVE_HW_ID1",
        24: "WAVE_HW_ID2",
        26: "WAVE_SCHED_MODE",
        29: "SHADER_CYCLES_LO",
        30: "SHADER_CYCLES_HI",
        31: "WAVE_DVGPR_ALLOC_LO",
        32: "WAVE_DVGPR_ALLOC_HI",
    },
    "gfx9": {
        1: "MODE",
        2: "STATUS",
        3: "TRAPSTS",
        4: "HW_ID",
        5: "GPR_ALLOC",
        6: "LDS_ALLOC",
        7: "IB_STS",
        15: "SH_MEM_BASES",
        16: "TBA_LO",
        17: "TBA_HI",
        18: "TMA_LO",
        19: "TMA_HI",
        20: "XCC_ID",
        21: "SQ_PERF_SNAPSHOT_DATA",
        22: "SQ_PERF_SNAPSHOT_DATA1",
        23: "SQ_PERF_SNAPSHOT_PC_LO",
        24: "SQ_PERF_SNAPSHOT_PC_HI",
    },
}
DELAYS = (
    "NO_DEP",
    "VALU_DEP_1",
    "VALU_DEP_2",
    "VALU_DEP_3",
    "VALU_DEP_4",
    "TRANS32_DEP_1",
    "TRANS32_DEP_2",
    "TRANS32_DEP_3",
    "FMA_ACCUM_CYCLE_1",
    "SALU_CYCLE_1",
    "SALU_CYCLE_2",
    "SALU_CYCLE_3",
)
SKIPS = ("SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4")
_RETURNING = {
    128: "RTN_GET_DOORBELL",
    129: "RTN_GET_DDID",
    130: "RTN_GET_TMA",
    131: "RTN_GET_REALTIME",
    132: "RTN_SAVE_WAVE",
    133: "RTN_GET_TBA",
}
MESSAGES = {
    "gfx11": {
        1: "INTERRUPT",
        2: "HS_TESSFACTOR",
        3: "DEALLOC_VGPRS",
        5: "STALL_WAVE_GEN",
        6: "HALT_WAVES",
        9: "GS_ALLOC_REQ",
    }
    | _RETURNING,
    "gfx12": {
        1: "INTERRUPT",
        2: "HS_TESSFACTOR",
        3: "DEALLOC_VGPRS",
        9: "GS_ALLOC_REQ",
        134: "RTN_GET_TBA_TO_PC",
        135: "RTN_GET_SE_AID_ID",
    }
    | _RETURNING,
    "gfx9": {
        1: "INTERRUPT",
        4: "SAVEWAVE",
        5: "STALL_WAVE_GEN",
        6: "HALT_WAVES",
        7: "ORDERED_PS_DONE",
        8: "EARLY_PRIM_DEALLOC",
        9: "GS_ALLOC_REQ",
        10: "GET_DOORBELL",
    },
}
# name, lowest bit, width, in the order of the text
DEPENDENCY_COUNTERS = (
    ("hold_cnt", 7, 1),
    ("sa_sdst", 0, 1),
    ("va_vdst", 12, 4),
    ("va_sdst", 9, 3),
    ("va_ssrc", 8, 1),
    ("va_vcc", 1, 1),
    ("vm_vsrc", 2, 3),
)
DEPENDENCY_BITS = sum((1 << width) - 1 << low for _, low, width in DEPENDENCY_COUNTERS)


def immediate_text(operand: Operand, instruction: Instruction) -> str:
    """The constant as it stands in the line; empty where it is left out."""
    return _TEXTS[operand.token](operand.value, instruction)


def _hexadecimal(value: int, instruction: Instruction) -> str:
    return hex(value & 0xFFFF)


def _number(value: int, instruction: Instruction) -> str:
    return str(value) if value <= 64 else hex(value)


def _label(value: int, instruction: Instruction) -> str:
    return str(value & 0xFFFF)


def _end(value: int, instruction: Instruction) -> str:
    return str(value) if value else ""


class RegisterPart(Struct, dwords=1):
    """The 16 bits by which s_getreg and s_setreg name a part of a hardware register: its number, the lowest
    bit, how many bits. Source: AMD, "RDNA3 ISA", S_GETREG_B32.
    """

    number = bits(0, 0, 6)
    low = bits(0, 6, 5)
    width = bits(0, 11, 5, less=1)


def register_part(value: int) -> RegisterPart:
    """The part of a hardware register that an instruction's constant names."""
    return RegisterPart.decode((value & 0xFFFF).to_bytes(4, "little"))


def _hardware_register(value: int, instruction: Instruction) -> str:
    part = register_part(value)
    known = HARDWARE_REGISTERS[instruction.family.name].get(part.number)
    name = f"HW_REG_{known}" if known else str(part.number)
    whole = (part.low, part.width) == (0, 32)
    return f"hwreg({name})" if whole else f"hwreg({name}, {part.low}, {part.width})"


# s_waitcnt: (name, (lowest bit, width) of its parts, the low one first); a counter at its highest is not
# waited for
COUNTERS = {
    "gfx11": (("vmcnt", ((10, 6),)), ("expcnt", ((0, 3),)), ("lgkmcnt", ((4, 6),))),
    "gfx9": (("vmcnt", ((0, 4), (14, 2))), ("expcnt", ((4, 3),)), ("lgkmcnt", ((8, 4),))),
}
COUNTERS["gfx12"] = COUNTERS["gfx11"]


def _counts(value: int, instruction: Instruction) -> str:
    found = []
    for name, parts in COUNTERS[instruction.family.name]:
        count, width = 0, 0
        for low, size in parts:
            count |= (value >> low & (1 << size) - 1) << width
            width += size
        found.append((name, count, (1 << width) - 1))
    shown = [f"{name}({count})" for name, count, highest in found if count != highest]
    return " ".join(shown or [f"{name}({count})" for name, count, _ in found])


def _dependencies(value: int, instruction: Instruction) -> str:
    if value & ~DEPENDENCY_BITS:
        return hex(value)
    counts = [
        (name, value >> low & (1 << width) - 1, (1 << width) - 1) for name, low, width in DEPENDENCY_COUNTERS
    ]
    shown = [f"depctr_{name}({count})" for name, count, highest in counts if count != highest]
    return " ".join(shown or [f"depctr_{name}({count})" for name, count, _ in counts])


def _message(value: int, instruction: Instruction) -> str:
    known = MESSAGES[instruction.family.name].get(value)
    if known:
        return f"sendmsg(MSG_{known})"
    return f"sendmsg({value}, 0, 0)" if value < 256 else str(value)


def _delay(value: int, instruction: Instruction) -> str:
    if not value:
        return "0x0"
    first, skip, second = value & 15, value >> 4 & 7, value >> 7 & 15
    parts = [f"instid0({_named(DELAYS, first, 'instid')})"] if first else []
    parts += [f"instskip({_named(SKIPS, skip, 'instskip')})"] if skip else []
    parts += [f"instid1({_named(DELAYS, second, 'instid')})"] if second else []
    return " | ".join(parts)


def _named(names: tuple[str, ...], number: int, what: str) -> str:
    return names[number] if number < len(names) else f"/* invalid {what} value */"


def _index_modes(value: int, instruction: Instruction) -> str:
    if value > 15:
        return hex(value)
    names = ("SRC0", "SRC1", "SRC2", "DST")
    return f"gpr_idx({','.join(name for n, name in enumerate(names) if value >> n & 1)})"


_TEXTS = {
    "gpr_idx": _index_modes,
    "simm": _hexadecimal,
    "uimm": _hexadecimal,
    "hex": _hexadecimal,
    "number": _number,
    "label": _label,
    "hwreg": _hardware_register,
    "counts": _counts,
    "depctr": _dependencies,
    "delay": _delay,
    "message": _message,
    "end": _end,
    "probe": _number,
}
SENDMSG_DEALLOC_VGPRS = 3
