"""The decoder against LLVM's disassembler: all that clang emits for the corpus, and random words."""

import random
import re
import struct
from collections import Counter

import pytest

from tests.emulator.amd.isa import compiled, oracle
from tiny import objfile
from tiny.emulator.amd.isa.decode import DecodeError, decode
from tiny.emulator.amd.isa.families import family_named
from tiny.emulator.amd.isa.text import disassemble

PROCESSORS = ("gfx1100", "gfx1201", "gfx942")
CRASHING = {"gfx942"}  # LLVM 22's disassembler ends the process on many words that are no instruction
FILES = ("corpus.c", "corpus_card.c")
# Where LLVM and the decoder differ on random words, and why that is all right; clang emits none of these
# forms.
EXCUSES = (
    ("bits that no field has are refused here where they are not zero", re.compile(r"\|.*reserved bits")),
    (
        "opcodes without a row: graphics, sparse matrices, 8-bit floats",
        re.compile("not in the semantics table"),
    ),
    (
        "cache hints of atomics that LLVM names by their scope",
        re.compile(r"TH_ATOMIC_CASCADE|TH_(LOAD|STORE)_\w*(BYPASS|RT_WB|NT_WB)|th:0x"),
    ),
    (
        "sign modifiers on integers are refused here, LLVM passes over some",
        re.compile(r"\|.*(sign modifier|neg_lo or neg_hi)"),
    ),
    (
        "LLVM takes some words for an encoding without halves of registers",
        re.compile(r"^((?!v\d+\.[lh]).)*  \|.*v\d+\.[lh]|^((?!op_sel).)*  \|.*op_sel"),
    ),
    ("LLVM writes f16 constants of scalar comparisons as bits", re.compile(r"^s_(cmp_\w+|cvt_f32)_f16 ")),
    ("LLVM writes two 8-bit floats as a constant", re.compile(r"^v_cvt_pk_f32_(fp8|bf8)\w* v\S+, -?\d\.")),
    ("typed buffers, which are refused, have formats that LLVM names", re.compile("^tbuffer_")),
    (
        "hints of scalar loads and probes that no compiler emits",
        re.compile(r"TH_LOAD_BYPASS|^s_(atc_probe|dcache_discard)"),
    ),
    (
        "LLVM names bits of s_version and unknown upper bits of messages",
        re.compile(r"^s_(version|sendmsg|sendmsghalt) "),
    ),
    (
        "LLVM takes constants where only a register makes sense",
        re.compile(r"\|.*(is no scalar register|reads a VGPR)"),
    ),
)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(
    "level",
    [
        1,
        pytest.param(0, marks=pytest.mark.slow),
        pytest.param(2, marks=pytest.mark.slow),
        pytest.param(3, marks=pytest.mark.slow),
    ],
)
def test_everything_that_clang_emits_is_decoded_alike(processor, level):
    llvm, family = oracle.disassembler(processor), family_named(processor)
    count, wrong = 0, []
    for file in FILES:
        code = bytes(objfile.parse(compiled.card_object(file, processor, level)).section(".text").data)
        offset = 0
        while offset < len(code):
            size, text = llvm(code[offset : offset + 20])
            assert size, f"LLVM cannot decode {code[offset : offset + 8].hex()} at {offset:#x} of {file}"
            try:
                instruction = decode(family, code, offset)
                mine = disassemble(instruction), instruction.size
            except DecodeError as error:
                mine = str(error), 0
            if mine != (text, size):
                wrong.append(f"{text}  |  {mine[0]}")
            offset, count = offset + size, count + 1
    assert not wrong, "\n".join(wrong[:20])
    assert count > 5000


def random_words(family, count: int, seed: int):
    """Words that start with the prefix of one of the family's encodings."""
    choose = random.Random(seed)
    prefixes = family.prefixes()
    for _ in range(count):
        mask, value, _ = choose.choice(prefixes)
        yield struct.pack(
            "<4I", choose.getrandbits(32) & ~mask | value, *(choose.getrandbits(32) for _ in range(3))
        )


def disagreements(processor: str, count: int, seed: int) -> tuple[Counter, list[tuple[str, str]]]:
    """How often the two agree, and (LLVM's text, ours) wherever both, or only LLVM, decode and the texts
    differ.
    """
    llvm, family = oracle.disassembler(processor), family_named(processor)
    counts, differing = Counter(), []
    for code in random_words(family, count, seed):
        try:
            instruction = decode(family, code)
            mine, own_size = disassemble(instruction), instruction.size
        except DecodeError as error:
            mine, own_size = str(error), 0
        if not own_size and processor in CRASHING:
            counts["refused here, LLVM not asked"] += 1
            continue
        size, text = llvm(code)
        if not size:
            counts["refused by both" if not own_size else "decoded here, refused by LLVM"] += 1
        elif (mine, own_size) == (text, size):
            counts["alike"] += 1
        else:
            counts["different"] += 1
            differing.append((text, mine))
    return counts, differing


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("count", [4000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_random_words_are_decoded_alike(processor, count):
    counts, differing = disagreements(processor, count, seed=count)
    lines = [f"{text}  |  {mine}" for text, mine in differing]
    reasons = Counter(
        next((reason for reason, pattern in EXCUSES if pattern.search(line)), line) for line in lines
    )
    print(processor, dict(counts), *(f"{number} x {reason}" for reason, number in reasons.items()), sep="\n")
    strange = [reason for reason in reasons if "|" in reason]
    assert not strange, "\n".join(strange[:20])
    assert counts["alike"] > count // 5


def test_words_without_a_meaning_are_an_error_with_their_place():
    family = family_named("gfx1100")
    with pytest.raises(DecodeError, match=r"SOP1 opcode 0xff at 0x4 is not defined"):
        decode(family, struct.pack("<2I", 0, 0xBE80FF00), 4)
    with pytest.raises(DecodeError, match="inside the instruction at 0x0|ends at 0x2"):
        decode(family, b"\0\0")
    with pytest.raises(DecodeError, match="literal is missing"):
        decode(family, struct.pack("<I", 0xBE8000FF))
    with pytest.raises(DecodeError, match="not aligned"):
        decode(family, struct.pack("<I", 0xBE800103))
