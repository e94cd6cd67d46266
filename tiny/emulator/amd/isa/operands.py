"""Where the operands of each encoding stand. Each function takes (reader, table, operation, words) and makes
the Instruction.
"""

from tiny.emulator.amd.isa.decode import AGPR, NOTHING, NULL, VCC, VGPR, Instruction, Operand, Reader
from tiny.emulator.amd.isa.operation import OPERATIONS, Operation
from tiny.emulator.amd.isa.sdwa import checked
from tiny.hcq.layout import Struct

IMMEDIATES = {
    "gpr_idx",
    "simm",
    "uimm",
    "hex",
    "number",
    "label",
    "hwreg",
    "counts",
    "depctr",
    "delay",
    "message",
    "end",
    "probe",
}
DUAL = "v_dual_"
SHARED_BY_ALL = ("ds_gws_", "ds_ordered_count", "ds_add_gs_reg", "ds_sub_gs_reg")  # global data share only
WITH_SIGNS = {"v_cndmask_b32", "v_cndmask_b16", "v_mov_b32", "v_mov_b16", "v_movrels_b32", "v_movreld_b32"}


def signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> width - 1 else value


def immediate(token: str, value: int) -> Operand:
    return Operand(-1, token, value=signed(value, 16) if token in ("simm", "label") else value)


# -- scalar --------------------------------------------------------------------------------------------------
def scalar(reader: Reader, table: str, operation: Operation, words: Struct) -> Instruction:
    """SOP1, SOP2, SOPC: results in sdst, sources in ssrc0 and ssrc1, a literal where the row has one."""
    codes = [getattr(words, name) for name in ("ssrc0", "ssrc1") if name in words.fields]
    sources = []
    for token in operation.explicit_sources:
        if token[0] == "k":
            sources.append(Operand(255, token, value=reader.literal()))
        elif token in IMMEDIATES:
            sources.append(immediate(token, codes.pop(0)))
        else:
            sources.append(reader.source(codes.pop(0), token))
    results = [reader.scalar(words.sdst, token) for token in operation.explicit_results[:1]]
    return reader.made(table, operation, words, results, sources)


def with_constant(reader: Reader, table: str, operation: Operation, words: Struct) -> Instruction:
    """SOPK and SOPP: a 16-bit constant, and in SOPK a register that is read or written."""
    sources = []
    for token in operation.explicit_sources:
        if token in IMMEDIATES:
            sources.append(immediate(token, words.simm16))
        elif token == "k32":
            sources.append(Operand(255, token, value=reader.literal()))
        else:
            sources.append(Operand(words.sdst, token))
    results = [reader.scalar(words.sdst, token) for token in operation.explicit_results]
    return reader.made(table, operation, words, results, sources)


def scalar_memory(reader: Reader, table: str, operation: Operation, words: Struct) -> Instruction:
    """SMEM: base in an aligned SGPR pair (or a buffer in four), an SGPR offset or none, a constant offset."""
    soffset = NOTHING if words.soffset == NULL else words.soffset
    return _scalar_memory(reader, table, operation, words, soffset)


def scalar_memory_gfx9(reader: Reader, table: str, operation: Operation, words: Struct) -> Instruction:
    """SMEM of gfx9: imm and soffset_en say which of the constant and the SGPR are added."""
    soffset = words.soffset if words.soffset_en else NOTHING if words.imm else words.offset & 127
    return _scalar_memory(reader, table, operation, words, soffset)


def _scalar_memory(
    reader: Reader, table: str, operation: Operation, words: Struct, soffset: int
) -> Instruction:
    """The data first, where they are stored; then the base and the offset."""
    results = [reader.scalar(words.sdata, token) for token in operation.explicit_results]
    sources = []
    for token in operation.explicit_sources:
        if token in ("probe", "length"):
            sources.append(immediate("number", words.sdata))
        elif token == "soffset":
            sources[1:] = [Operand(words.soffset, "b32")]
        elif token in ("address", "buffer"):
            sources.append(reader.scalar(words.sbase * 2, "u32x4" if token == "buffer" else "b64"))
            sources.append(Operand(soffset, "b32"))
        else:
            sources.append(reader.scalar(words.sdata, token))
    if "atomic" in operation.name and not returns(words):
        results = []
    return reader.made(table, operation, words, results, sources)


# -- vector --------------------------------------------------------------------------------------------------
def short_vector(reader: Reader, table: str, operation: Operation, words: Struct) -> Instruction:
    """VOP1, VOP2, VOPC: 8-bit destination, 9-bit first source, 8-bit second; lane masks are VCC."""
    codes = [reader.modifier_word(words.src0, table == "VOPC")]
    sdwa = reader.sdwa
    if sdwa is not None and not checked(sdwa):
        raise reader.fail(f"SDWA selections {sdwa!r}")
    if "vsrc1" in words.fields:
        scalar_second = sdwa is not None and sdwa.src1_scalar
        codes.append(words.vsrc1 if scalar_second else VGPR + words.vsrc1)
    reader.signs = operation.name in WITH_SIGNS
    sources, place = [], 0
    for token in operation.explicit_sources:
        if token == "m":
            sources.append(Operand(VCC, token))
        elif token[0] == "k":
            sources.append(Operand(255, token, value=reader.literal()))
        else:
            negate, absolute = dpp_modifiers(sdwa or reader.dpp, place)
            operand = reader.source(codes[place], whole(operation, token), negate, absolute, short=True)
            extended = sdwa is not None and bool(getattr(sdwa, f"src{place}_sext"))
            sources.append(operand._replace(extended=extended))
            place += 1
    results = []
    for token in operation.explicit_results:
        code = VCC if token == "m" else words.vdst
        if sdwa is not None and "sdst" in sdwa.fields and sdwa.has_sdst:
            code = sdwa.sdst
        results.append(reader.result(code, whole(operation, token), short=True))
    if operation.name == "v_accvgpr_mov_b32":
        if not sources[0].is_vgpr:
            raise reader.fail(f"{operation.name} reads a VGPR, not source code {sources[0].code}")
        results, sources = (
            [each._replace(code=each.code + 256) for each in some] for some in (results, sources)
        )
    return reader.made(table, operation, words, results, sources)


def dpp_modifiers(dpp: Struct | None, place: int) -> tuple[int, int]:
    """(negate, absolute) that a DPP16 or SDWA word gives to operand number `place`."""
    if dpp is None or place > 1 or "src0_neg" not in dpp.fields:
        return 0, 0
    return getattr(dpp, f"src{place}_neg"), getattr(dpp, f"src{place}_abs")


def vop3(reader: Reader, table: str, operation: Operation, words: Struct) -> Instruction:
    """VOP3: three 9-bit sources with sign modifiers; op_sel chooses halves of 16-bit operands."""
    codes = [reader.modifier_word(words.src0), words.src1, words.src2]
    op_sel = words.op_sel if "op_sel" in words.fields else 0
    absolute = words.abs if "abs" in words.fields else 0
    reader.signs = operation.name in WITH_SIGNS
    sources = []
    for n, token in enumerate(operation.explicit_sources):
        negate, magnitude = dpp_modifiers(reader.dpp, n)
        sources.append(
            reader.source(
                codes[n],
                token,
                words.neg >> n & 1 | negate,
                absolute >> n & 1 | magnitude,
                half=op_sel >> n & 1,
            )
        )
    results = []
    for n, token in enumerate(operation.explicit_results):
        code = words.sdst if n and "sdst" in words.fields else words.vdst
        results.append(reader.result(code, token, half=op_sel >> 3 & 1))
    if operation.results == ("exec",) and words.vdst != 126:
        raise reader.fail(f"{operation.name} writes EXEC; its destination field is {words.vdst}, not 126")
    return reader.made(table, operation, words, results, sources)


def vop3p(reader: Reader, table: str, operation: Operation, words: Struct) -> Instruction:
    """VOP3P: operands are whole registers, pairs of halves; the signature's 16-bit types are those of one
    half.
    """
    codes = [reader.modifier_word(words.src0), words.src1, words.src2]
    sources = []
    for n, token in enumerate(operation.explicit_sources):
        mixed = operation.kind == "mix"
        sources.append(
            reader.source(
                codes[n],
                whole(operation, token),
                mixed and words.neg_lo >> n & 1,
                mixed and words.neg_hi >> n & 1,
            )
        )
    if operation.kind == "packed" and operation.sources[0][0] != "f" and (words.neg_lo or words.neg_hi):
        raise reader.fail(f"{operation.name} has integer operands and neg_lo or neg_hi")
    results = [reader.result(words.vdst, whole(operation, token)) for token in operation.explicit_results]
    return reader.made(table, operation, words, results, sources)


def vop3p_or_matrix(reader: Reader, table: str, operation: Operation, words: Struct) -> Instruction:
    """VOP3P of gfx9, where matrix instructions have a layout of their own, with accumulation VGPRs."""
    if "acc_cd" not in words.fields:
        return vop3p(reader, table, operation, words)
    sparse = "smfmac" in operation.name  # the third operand is an index then
    flags = (words.acc & 1, words.acc >> 1, words.acc_cd and not sparse)
    if operation.kind == "matrix move":
        flags = (operation.name == "v_accvgpr_read_b32", 0, 0)
    sources = []
    for code, token, high in zip(
        (words.src0, words.src1, words.src2), operation.explicit_sources, flags, strict=False
    ):
        operand = reader.source(code, token)
        sources.append(operand._replace(code=code + 256) if high and operand.is_vgpr else operand)
    into = operation.name == "v_accvgpr_write_b32" or operation.kind == "matrix" and words.acc_cd
    results = [vgpr(words.vdst, token, into) for token in operation.explicit_results]
    return reader.made(table, operation, words, results, sources)


def whole(operation: Operation, token: str) -> str:
    """What an operand of a packed row takes: a register for two 16-bit halves, a pair for two of 32 bits."""
    if not operation.kind.startswith("packed"):
        return token
    return "u32x2" if token.endswith("32") else "b32"


def vopd(reader: Reader, table: str, operation: Operation, words: Struct) -> Instruction:
    """VOPD: X and Y at once. The operations are the rows of the plain instructions."""
    second = OPERATIONS.get(reader.family.opcodes["VOPD"].get(words.opy, "").replace("v_dual_", "v_"))
    if second is None:
        raise reader.fail(f"VOPD: Y opcode {words.opy:#x} is not defined")
    y = words.vdsty << 1 | (words.vdstx & 1 ^ 1)
    parts = []
    for row, vdst, src0, vsrc1 in (
        (operation, words.vdstx, words.srcx0, words.vsrcx1),
        (second, y, words.srcy0, words.vsrcy1),
    ):
        codes, place, sources = [src0, VGPR + vsrc1], 0, []
        for token in row.explicit_sources:
            if token == "m":
                sources.append(Operand(VCC, token))
            elif token[0] == "k":
                sources.append(Operand(255, token, value=reader.literal()))
            else:
                sources.append(reader.source(codes[place], token))
                place += 1
        parts.append((row, [Operand(VGPR + vdst, row.explicit_results[0])], sources))
    other = reader.made(table, parts[1][0], words, *parts[1][1:])
    return reader.made(table, parts[0][0], words, *parts[0][1:], second=other)


# -- memory --------------------------------------------------------------------------------------------------
def vgpr(register: int, token: str, accumulation: int = 0) -> Operand:
    return Operand((AGPR if accumulation else VGPR) + register, token)


def accumulation(words: Struct) -> int:
    """Whether the data of a memory instruction are accumulation VGPRs."""
    return words.acc if "acc" in words.fields else 0


def scalar_offset(instruction: Instruction) -> int:
    """The constant part of a scalar load's address."""
    if instruction.get("imm", 1):
        return signed(instruction.get("offset"), instruction.words.fields["offset"].width)
    return 0


def flat_offset(instruction: Instruction) -> int:
    """The constant part of an address: signed in all encodings but FLAT and MUBUF before gfx12."""
    width = instruction.words.fields["offset"].width
    offset = instruction.get("offset")
    return offset if instruction.encoding in ("FLAT", "MUBUF") and width < 24 else signed(offset, width)


def returns(words: Struct) -> int:
    """Whether an atomic gives back what was in memory."""
    name = next(name for name in ("th", "glc", "sc0") if name in words.fields)
    return getattr(words, name) & 1


def data_share(reader: Reader, table: str, operation: Operation, words: Struct) -> Instruction:
    """DS: an address VGPR and up to two data operands."""
    shared = operation.name.startswith(SHARED_BY_ALL)
    if words.gds and reader.family.name == "gfx9" and not shared:
        raise reader.fail("reserved bits: this card has no GDS")
    if shared and not words.gds:
        raise reader.fail(f"reserved bits: {operation.name} without gds")
    data, sources = [words.data0, words.data1], []
    for token in operation.explicit_sources:
        sources.append(
            vgpr(words.addr, "b32") if token == "address" else vgpr(data.pop(0), token, accumulation(words))
        )
    results = [vgpr(words.vdst, token, accumulation(words)) for token in operation.explicit_results]
    return reader.made(table, operation, words, results, sources)


def flat(reader: Reader, table: str, operation: Operation, words: Struct) -> Instruction:
    """FLAT, GLOBAL, SCRATCH: sources are the vector address, the data, the scalar address; NULL stands for
    none.
    """
    none = (0x7F,) if reader.family.name == "gfx9" else (NULL, 0x7F)
    has_scalar = words.saddr not in none and table != "FLAT"
    sources = []
    for token in operation.explicit_sources:
        if token != "address":
            sources.append(vgpr(words.data, token, accumulation(words)))
        elif table == "SCRATCH":
            sources.append(vgpr(words.addr, "b32") if words.sve else Operand(NOTHING, "b32"))
        else:
            sources.append(vgpr(words.addr, "b32" if has_scalar else "b64"))
    if "address" in operation.sources:
        sources.append(
            reader.scalar(words.saddr, "b32" if table == "SCRATCH" else "b64")
            if has_scalar
            else Operand(NOTHING, "b64")
        )
    results = [vgpr(words.vdst, token, accumulation(words)) for token in operation.explicit_results]
    if "atomic" in operation.name and not returns(words):
        results = []
    return reader.made(table, operation, words, results, sources)


def buffer(reader: Reader, table: str, operation: Operation, words: Struct) -> Instruction:
    """MUBUF: sources are the data (stores, atomics), index and offset VGPRs, the resource, the scalar offset.
    """
    into_lds = "lds" in words.fields and words.lds
    if into_lds and not operation.results:
        raise reader.fail(f"reserved bits: {operation.name} with lds")
    sources = []
    for token in operation.explicit_sources:
        if token != "address":
            sources.append(vgpr(words.vdata, token, accumulation(words)))
    if operation.sources or operation.results:
        resource = words.rsrc if "rsrc" in words.fields else words.srsrc * 4
        both = words.offen and words.idxen
        vector = (
            vgpr(words.vaddr, "b64" if both else "b32")
            if words.offen or words.idxen
            else Operand(NOTHING, "b32")
        )
        sources += [vector, reader.scalar(resource, "u32x4"), reader.source(words.soffset, "b32")]
    results = [vgpr(words.vdata, token, accumulation(words)) for token in operation.explicit_results]
    if into_lds or "atomic" in operation.name and not returns(words):
        results = []
    return reader.made(table, operation, words, results, sources)
