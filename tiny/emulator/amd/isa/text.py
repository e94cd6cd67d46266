"""Instruction -> assembly text as LLVM writes it, so that the two can be compared and so that an error can be
read.
"""

from tiny.emulator.amd.isa.decode import (
    AGPR,
    INLINE_FLOATS,
    INLINE_INTEGERS,
    LITERAL,
    NOTHING,
    Instruction,
    Operand,
)
from tiny.emulator.amd.isa.immediates import immediate_text
from tiny.emulator.amd.isa.operands import IMMEDIATES, flat_offset, scalar_offset
from tiny.emulator.amd.isa.operation import dwords
from tiny.emulator.amd.isa.operations_memory import ACCESS
from tiny.emulator.amd.isa.sdwa import sdwa_text

FLOATS = ("0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0")
SPECIAL = {
    230: "src_flat_scratch_base_lo",
    231: "src_flat_scratch_base_hi",
    235: "src_shared_base",
    236: "src_shared_limit",
    237: "src_private_base",
    238: "src_private_limit",
    239: "src_pops_exiting_wave_id",
    251: "src_vccz",
    252: "src_execz",
    253: "src_scc",
    254: "src_lds_direct",
}


def registers(prefix: str, first: int, count: int) -> str:
    return f"{prefix}{first}" if count == 1 else f"{prefix}[{first}:{first + count - 1}]"


def scalar_register(code: int, count: int, m0: int = 125) -> str:
    """An SGPR or a special register by its code, 0 ... 127."""
    if code == NOTHING:
        return "null"
    if m0 == 124 and code in range(102, 106):  # gfx9
        name = "flat_scratch" if code < 104 else "xnack_mask"
        return name if count == 2 else f"{name}_{'hi' if code & 1 else 'lo'}"
    if code == m0:
        return "m0"
    if code == 249 - m0:
        return "null"
    for base, name in ((106, "vcc"), (126, "exec")):
        if code in (base, base + 1):
            return name if count == 2 else f"{name}_{'lo' if code == base else 'hi'}"
    return registers("ttmp", code - 108, count) if code >= 108 else registers("s", code, count)


def constant(code: int, token: str) -> str:
    if code in INLINE_INTEGERS:
        return str(code - 128 if code <= 192 else 192 - code)
    if token in ("b16", "u16", "i16"):
        return hex((0x3800, 0xB800, 0x3C00, 0xBC00, 0x4000, 0xC000, 0x4400, 0xC400, 0x3118)[code - 240])
    if code == 248:
        return "0.15915494309189532" if token.endswith("64") else "0.15915494"
    return FLOATS[code - 240]


_INLINE = {
    *range(65),
    *(-n & 0xFFFFFFFF for n in range(1, 17)),
    0x3F000000,
    0xBF000000,
    0x3F800000,
    0xBF800000,
    0x40000000,
    0xC0000000,
    0x40800000,
    0xC0800000,
    0x3E22F983,
}


def literal_text(operand: Operand) -> str:
    """The literal in hexadecimal, marked where a shorter encoding of the same value exists."""
    token = operand.token
    if token[1:] == "16":
        return hex(operand.value & 0xFFFF if token[0] != "k" else operand.value)
    marked = operand.value in _INLINE and token[0] != "k" and not token.endswith("64")
    return f"lit({operand.value:#x})" if marked else hex(operand.value)


def operand_text(operand: Operand, instruction: Instruction, wave_size: int) -> str:
    """One operand with its sign modifiers."""
    token, code = operand.token, operand.code
    if token in IMMEDIATES:
        return immediate_text(operand, instruction)
    count = wave_size // 32 if token == "m" else operand.count
    if operand.is_vgpr:
        high = operand.code >= AGPR
        text = registers("a" if high else "v", operand.register - 256 * high, count)
        if token[1:] == "16" and operand.half is not None and instruction.family.true16_text:
            text += ".h" if operand.half else ".l"
    elif code == LITERAL:
        text = literal_text(operand)
    elif code in INLINE_INTEGERS or code in INLINE_FLOATS:
        text = constant(code, token)
    elif code in SPECIAL:
        text = SPECIAL[code]
    else:
        text = scalar_register(code, count, instruction.family.m0)
    if operand.extended:
        text = f"sext({text})"
    if operand.absolute:
        text = f"|{text}|"
    if operand.negate:
        plain = operand.is_vgpr or code < 128 or operand.absolute or code in SPECIAL
        text = f"-{text}" if plain else f"neg({text})"
    return text


def disassemble(instruction: Instruction, wave_size: int | None = None) -> str:
    """The whole line. wave_size: of the kernel, the family's first by default."""
    wave_size = wave_size or instruction.family.wave_sizes[0]
    if instruction.second is not None:
        return " :: ".join(
            _line(part, f"v_dual_{part.name[2:]}", wave_size) for part in (instruction, instruction.second)
        )
    if instruction.encoding in _BY_ENCODING:
        return _BY_ENCODING[instruction.encoding](instruction, wave_size)
    return _line(instruction, instruction.name + _suffix(instruction), wave_size) + _modifiers(instruction)


def _line(instruction: Instruction, name: str, wave_size: int) -> str:
    operands = (*instruction.results, *instruction.sources)
    texts = [
        operand_text(each, instruction, wave_size)
        for each in operands
        if each.token != "m" or instruction.encoding != "VOPD"
    ]
    return f"{name} {', '.join(text for text in texts if text)}".rstrip()


def _suffix(instruction: Instruction) -> str:
    dpp = instruction.dpp is not None
    if instruction.sdwa is not None:
        return "_sdwa"
    if instruction.encoding in ("VOP1", "VOP2", "VOPC"):
        if dpp:  # LLVM leaves it out for comparisons
            return "" if instruction.encoding == "VOPC" else "_dpp"
        return "_e32" if instruction.name in instruction.family.promoted else ""
    if instruction.encoding == "VOP3":
        return "_e64_dpp" if dpp else "_e64" if instruction.name in instruction.family.promoted else ""
    return "_e64_dpp" if dpp and instruction.encoding == "VOP3P" else ""


def _array(name: str, flags: int, count: int) -> str:
    return f" {name}:[{','.join(str(flags >> n & 1) for n in range(count))}]"


def _modifiers(instruction: Instruction) -> str:
    if instruction.sdwa is not None:
        return sdwa_text(instruction)
    if "acc_cd" in instruction.words.fields and instruction.operation.kind == "matrix":
        texts = {name: instruction.get(name) for name in ("cbsz", "abid", "blgp")}
        signs = texts.pop("blgp") if "_f64" in instruction.name else 0
        text = "".join(f" {name}:{number}" for name, number in texts.items() if number)
        return text + (_array("neg", signs, 3) if signs else "")
    if instruction.encoding == "VOP3":
        return _vop3_modifiers(instruction) + _dpp_text(instruction)
    if instruction.encoding == "VOP3P" and instruction.operation.kind != "matrix move":
        return _vop3p_modifiers(instruction) + _dpp_text(instruction)
    return _dpp_text(instruction)


def _vop3_modifiers(instruction: Instruction) -> str:
    text = ""
    operands = (*instruction.results, *instruction.sources)
    op_sel = instruction.get("op_sel")
    halves = any(each.token[1:] == "16" for each in operands) and instruction.name != "v_cndmask_b16"
    if op_sel and (halves or "permlane" in instruction.name):
        count = len(instruction.sources)
        flags = op_sel & (1 << count) - 1
        if "permlane" in instruction.name:
            text += _array("op_sel", op_sel, 2)
        else:
            text += _array("op_sel", flags | (op_sel >> 3 & 1) << count, count + 1)
    byte = _chosen_byte(instruction, op_sel)
    if byte and instruction.family.name == "gfx12":
        text += f" byte_sel:{byte}"
    elif op_sel and instruction.name.startswith("v_cvt_sr_"):
        text += _array("op_sel", op_sel, 4)
    if instruction.get("clamp"):
        text += " clamp"
    return text + ("", " mul:2", " mul:4", " div:2")[instruction.get("omod")]


def _chosen_byte(instruction: Instruction, op_sel: int) -> int:
    """The byte that a conversion of 8-bit floats reads or writes."""
    if instruction.name.startswith("v_cvt_sr_"):
        return op_sel >> 2
    if instruction.name in ("v_cvt_f32_fp8", "v_cvt_f32_bf8"):
        return (op_sel & 1) << 1 | op_sel >> 1 & 1
    return 0


def _vop3p_modifiers(instruction: Instruction) -> str:
    count = len(instruction.sources)
    every = (1 << count) - 1
    get = instruction.get
    op_sel_hi = get("op_sel_hi") | get("op_sel_hi2") << 2
    text = ""
    if instruction.name.startswith("v_swmmac"):  # op_sel is a number there
        text += f" index_key:{get('op_sel')}" if get("op_sel") else ""
    elif get("op_sel") & every:
        text += _array("op_sel", get("op_sel"), count)
    normal = 0 if instruction.operation.kind == "mix" else every
    by_bytes = instruction.name.startswith(("v_dot4", "v_dot8", "v_wmma_f32", "v_wmma_i32", "v_swmmac"))
    if not by_bytes and op_sel_hi & every != normal:
        text += _array("op_sel_hi", op_sel_hi, count)
    if instruction.operation.kind != "mix":
        text += _array("neg_lo", get("neg_lo"), count) if get("neg_lo") & every else ""
        text += _array("neg_hi", get("neg_hi"), count) if get("neg_hi") & every else ""
    return text + (" clamp" if get("clamp") else "")


_DPP_CONTROLS = {0x140: "row_mirror", 0x141: "row_half_mirror"}
_DPP_GFX9 = {
    0x130: "wave_shl:1",
    0x134: "wave_rol:1",
    0x138: "wave_shr:1",
    0x13C: "wave_ror:1",
    0x142: "row_bcast:15",
    0x143: "row_bcast:31",
} | {0x150 + n: f"row_newbcast:{n}" for n in range(16)}
_DPP_RANGES = (
    (0x100, "row_shl"),
    (0x110, "row_shr"),
    (0x120, "row_ror"),
    (0x150, "row_share"),
    (0x160, "row_xmask"),
)


def _dpp_text(instruction: Instruction) -> str:
    dpp = instruction.dpp
    if dpp is None:
        return ""
    if "lanes" in dpp.fields:
        lanes = ",".join(str(dpp.lanes >> 3 * n & 7) for n in range(8))
        return f" dpp8:[{lanes}]" + (" fi:1" if instruction.fetch_inactive else "")
    control = dpp.dpp_ctrl
    if control < 256:
        text = f" quad_perm:[{','.join(str(control >> 2 * n & 3) for n in range(4))}]"
    elif instruction.family.name == "gfx9" and control in _DPP_GFX9:
        text = f" {_DPP_GFX9[control]}"
    else:
        text = " " + next(
            (f"{name}:{control & 15}" for base, name in _DPP_RANGES if control & ~15 == base),
            _DPP_CONTROLS.get(control, f"dpp_ctrl:{control:#x}"),
        )
    text += f" row_mask:{dpp.row_mask:#x} bank_mask:{dpp.bank_mask:#x}"
    return text + (" bound_ctrl:1" if dpp.bound_ctrl else "") + (" fi:1" if dpp.fetch_inactive else "")


# -- memory --------------------------------------------------------------------------------------------------
CACHE_BITS = ("glc", "slc", "dlc", "sc0", "nt", "sc1")
SCOPES = ("", "SCOPE_SE", "SCOPE_DEV", "SCOPE_SYS")
LOAD_HINTS = ("", "LOAD_NT", "LOAD_HT", "LOAD_LU", "LOAD_NT_RT", "LOAD_RT_NT", "LOAD_NT_HT", "0x7")
STORE_HINTS = (
    "",
    "STORE_NT",
    "STORE_HT",
    "STORE_WB",
    "STORE_NT_RT",
    "STORE_RT_NT",
    "STORE_NT_HT",
    "STORE_NT_WB",
)
ATOMIC_HINTS = (
    "",
    "ATOMIC_RETURN",
    "ATOMIC_NT",
    "ATOMIC_NT_RETURN",
    "ATOMIC_0x4",
    "ATOMIC_0x5",
    "ATOMIC_0x6",
    "ATOMIC_0x7",
)


def _cache_flags(instruction: Instruction) -> str:
    if "th" not in instruction.words.fields:
        return "".join(f" {name}" for name in CACHE_BITS if instruction.get(name))
    name = instruction.name
    hints = ATOMIC_HINTS if "atomic" in name else STORE_HINTS if "store" in name else LOAD_HINTS
    hint, scope = hints[instruction.get("th")], SCOPES[instruction.get("scope")]
    shown = f" th:{'' if hint[0] == '0' else 'TH_'}{hint}" if hint else ""
    return shown + (f" scope:{scope}" if scope else "")


def _scalar_memory(instruction: Instruction, wave_size: int) -> str:
    if not instruction.sources:
        results = [operand_text(each, instruction, wave_size) for each in instruction.results]
        return f"{instruction.name} {', '.join(results)}".rstrip()
    if "prefetch" in instruction.name:
        return _prefetch(instruction, wave_size)
    results = instruction.results if "atomic" not in instruction.name else ()
    *first, base, soffset = (*results, *instruction.sources)
    width = instruction.words.fields["offset"].width
    offset = scalar_offset(instruction)
    texts = [operand_text(each, instruction, wave_size) for each in (*first, base)]
    shown = f"-{-offset:#x}" if offset < 0 else hex(offset)
    place = operand_text(soffset, instruction, wave_size)
    flags = _cache_flags(instruction)
    if soffset.code == NOTHING:
        last = shown if offset or width > 21 or "imm" in instruction.words.fields else place
        return f"{instruction.name} {', '.join([*texts, last])}{flags}"
    return (
        f"{instruction.name} {', '.join([*texts, place])}"
        + (f" offset:{shown}" if offset or width > 21 or instruction.get("imm") else "")
        + flags
    )


def _prefetch(instruction: Instruction, wave_size: int) -> str:
    """The base if there is one, the offset, a scalar offset, the length."""
    texts = [operand_text(each, instruction, wave_size) for each in instruction.sources]
    offset = scalar_offset(instruction)
    texts.insert(len(texts) - 2, f"-{-offset:#x}" if offset < 0 else hex(offset))
    return f"{instruction.name} {', '.join(texts)}"


def _data_share(instruction: Instruction, wave_size: int) -> str:
    low, high = instruction.get("offset0"), instruction.get("offset1")
    text = _line(instruction, instruction.name, wave_size)
    access = ACCESS.get(instruction.operation.name)
    if access is not None and access.places == 2:
        text += (f" offset0:{low}" if low else "") + (f" offset1:{high}" if high else "")
    elif instruction.name == "ds_swizzle_b32":
        text += swizzle_text(low | high << 8)
    elif low or high:
        text += f" offset:{low | high << 8}"
    return text + (" gds" if instruction.get("gds") else "")


def swizzle_text(offset: int) -> str:
    """The offset of ds_swizzle: four lanes of a quad, or and/or/xor masks on the five bits of the lane
    number.
    """
    if offset & 0x8000:
        return (
            f" offset:swizzle(QUAD_PERM,{','.join(str(offset >> 2 * n & 3) for n in range(4))})"
            if not offset & 0x7F00
            else f" offset:{offset}"
        )
    and_mask, or_mask, xor_mask = offset & 31, offset >> 5 & 31, offset >> 10 & 31
    if not offset:
        return ""
    if and_mask == 31 and not or_mask and xor_mask and not xor_mask & xor_mask - 1:
        return f" offset:swizzle(SWAP,{xor_mask})"
    if and_mask == 31 and not or_mask and xor_mask and not xor_mask & xor_mask + 1:
        return f" offset:swizzle(REVERSE,{xor_mask + 1})"
    group = 32 - and_mask
    if and_mask and not group & group - 1 and not xor_mask and or_mask < group:
        return f" offset:swizzle(BROADCAST,{group},{or_mask})"
    bits = "".join(
        _swizzle_bit(and_mask >> n & 1, or_mask >> n & 1, xor_mask >> n & 1) for n in range(4, -1, -1)
    )
    return f' offset:swizzle(BITMASK_PERM,"{bits}")'


def _swizzle_bit(keep: int, force: int, flip: int) -> str:
    if force:
        return "0" if flip else "1"
    if not keep:
        return "1" if flip else "0"
    return "i" if flip else "p"


def _flat(instruction: Instruction, wave_size: int) -> str:
    operands = (*instruction.results, *instruction.sources)
    if not operands:
        return instruction.name + _cache_flags(instruction)
    offset = flat_offset(instruction)
    texts = [
        "off" if each.code == NOTHING else operand_text(each, instruction, wave_size) for each in operands
    ]
    if instruction.encoding == "FLAT":
        texts = texts[:-1]
    elif "addtid" in instruction.name:
        texts = [*texts[:-2][:1], texts[-1]] if instruction.results else texts[1:]
    shown = f" offset:{offset}" if offset else ""
    return f"{instruction.name} {', '.join(texts)}{shown}{_cache_flags(instruction)}"


def _buffer(instruction: Instruction, wave_size: int) -> str:
    if not instruction.sources and not instruction.results:
        return instruction.name + _cache_flags(instruction)
    texts = [
        operand_text(each, instruction, wave_size) for each in (*instruction.results, *instruction.sources)
    ]
    if "atomic" in instruction.name and instruction.results:
        texts = texts[1:]
    if instruction.get("tfe"):
        data = (*instruction.results, *instruction.sources)[0]
        texts[0] = registers("v", data.register, dwords(data.token) + 1)
    place = -3
    texts[place] = "off" if texts[place] == "null" else texts[place]
    text = f"{instruction.name} {', '.join(texts)}"
    for name in ("idxen", "offen"):
        text += f" {name}" if instruction.get(name) else ""
    offset = flat_offset(instruction)
    text += f" offset:{offset}" if offset else ""
    text += _cache_flags(instruction)
    return text + "".join(f" {name}" for name in ("lds", "tfe") if instruction.get(name))


_BY_ENCODING = {
    "SMEM": _scalar_memory,
    "DS": _data_share,
    "FLAT": _flat,
    "GLOBAL": _flat,
    "SCRATCH": _flat,
    "MUBUF": _buffer,
}
