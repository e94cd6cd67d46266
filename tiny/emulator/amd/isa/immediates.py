"""How LLVM writes the 16-bit constants of SOPP and SOPK: counters, hardware registers, messages, delays."""

from tiny.emulator.amd.isa.decode import Instruction, Operand

# Source: the names llvm-mc prints for gfx11; the numbers are those of the field.
HARDWARE_REGISTERS = {
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
MESSAGES = {
    1: "INTERRUPT",
    2: "HS_TESSFACTOR",
    3: "DEALLOC_VGPRS",
    5: "STALL_WAVE_GEN",
    6: "HALT_WAVES",
    9: "GS_ALLOC_REQ",
    128: "RTN_GET_DOORBELL",
    129: "RTN_GET_DDID",
    130: "RTN_GET_TMA",
    131: "RTN_GET_REALTIME",
    132: "RTN_SAVE_WAVE",
    133: "RTN_GET_TBA",
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


def _hardware_register(value: int, instruction: Instruction) -> str:
    number, offset, width = value & 63, value >> 6 & 31, (value >> 11 & 31) + 1
    name = f"HW_REG_{HARDWARE_REGISTERS[number]}" if number in HARDWARE_REGISTERS else str(number)
    return f"hwreg({name})" if (offset, width) == (0, 32) else f"hwreg({name}, {offset}, {width})"


def _counts(value: int, instruction: Instruction) -> str:
    """s_waitcnt of gfx11: vmcnt 15:10, lgkmcnt 9:4, expcnt 2:0; a counter at its highest is not waited
    for.
    """
    found = [("vmcnt", value >> 10 & 63, 63), ("expcnt", value & 7, 7), ("lgkmcnt", value >> 4 & 63, 63)]
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
    if value in MESSAGES:
        return f"sendmsg(MSG_{MESSAGES[value]})"
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


_TEXTS = {
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
