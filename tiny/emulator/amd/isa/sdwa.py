"""SDWA (gfx9): operands that are bytes or words of registers, results that go to a byte or a word."""

from tiny.emulator.amd.isa.decode import Instruction
from tiny.emulator.amd.isa.expression import Value, bits, field

BYTES, WORDS, WHOLE = range(4), range(4, 6), 6
NAMES = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
UNUSED = ("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE")
PAD, SIGN, PRESERVE = range(3)


def place_of(selection: int) -> tuple[int, int]:
    """(lowest bit, width)"""
    if selection in BYTES:
        return 8 * selection, 8
    return (16 * (selection - 4), 16) if selection in WORDS else (0, 32)


def selected(word: Value, instruction: Instruction, number: int) -> Value:
    """Operand number 0 or 1, taken out of its register and extended to u32."""
    sdwa = instruction.sdwa
    low, width = place_of(getattr(sdwa, f"src{number}_sel"))
    if width == 32:
        return word
    if getattr(sdwa, f"src{number}_sext"):
        return bits(bits(word << 32 - width - low, "i32") >> 32 - width, "u32")
    return field(word, low, width)


def placed(word: Value, old: Value, instruction: Instruction) -> Value:
    """The destination's register, a result's low bits put where dst_sel says."""
    sdwa = instruction.sdwa
    low, width = place_of(sdwa.dst_sel)
    if width == 32:
        return word
    mask = (1 << width) - 1 << low
    shifted = word << low & mask
    if sdwa.dst_unused == PRESERVE:
        return old & ~mask & 0xFFFFFFFF | shifted
    if sdwa.dst_unused == SIGN:
        signed = bits(bits(word << 32 - width, "i32") >> 32 - width, "u32")
        return signed << low
    return shifted


def sdwa_text(instruction: Instruction) -> str:
    """The modifiers at the end of the line."""
    sdwa = instruction.sdwa
    text = ""
    if "dst_sel" in sdwa.fields:
        text += " clamp" if sdwa.clamp else ""
        text += ("", " mul:2", " mul:4", " div:2")[sdwa.omod]
        if instruction.results and instruction.results[0].is_vgpr:
            text += f" dst_sel:{NAMES[sdwa.dst_sel]} dst_unused:{UNUSED[sdwa.dst_unused]}"
    for number in range(min(2, sum(each.token != "m" for each in instruction.sources))):
        text += f" src{number}_sel:{NAMES[getattr(sdwa, f'src{number}_sel')]}"
    return text


def checked(sdwa) -> bool:
    """Whether its selections mean something."""
    names = [name for name in ("dst_sel", "src0_sel", "src1_sel") if name in sdwa.fields]
    unused = sdwa.dst_unused if "dst_unused" in sdwa.fields else 0
    return all(getattr(sdwa, name) <= WHOLE for name in names) and unused < len(UNUSED)
