"""Cases of scalar instructions: each wave of a large workgroup has inputs of its own, and keeps its results
in the lanes of vector registers until the end.

Operands stand in s[8:9], s[10:11], s[12:13] and s[14:15]; the result in s[20:21]. Sources and results may
also be scc and exec.
"""

import functools

import numpy as np

from tests.emulator.amd.isa import compiled
from tests.emulator.amd.isa.semantics import (
    DTYPE,
    ITEMS,
    LITERAL,
    Case,
    alike,
    inputs,
    kind_of,
    plain,
    span,
    values,
    words_of,
)
from tiny.emulator.amd.isa import assemble, code_object

GROUP, OPERAND, RESULT, EXEC_RESULT, FIRST_VGPR = 1024, 8, 20, 28, 40
STRIDE = 5  # between the items of `values` that neighbouring waves take


def lanes_of(processor: str) -> int:
    return 64 if processor == "gfx942" else 32


class Text:
    """The text of all cases of one processor as one kernel."""

    def __init__(self, processor: str):
        self.processor, self.name = processor, "scalar"
        self.lanes, self.waves = lanes_of(processor), GROUP // lanes_of(processor)
        self.cases: list[Case] = []
        self.loads: list[tuple[str, ...]] = []
        self.words = 0
        self.wait = "s_wait_idle" if processor == "gfx1201" else "s_waitcnt lgkmcnt(0)"
        self.lines = [
            "s_load_dwordx4 s[4:7], s[0:1], 0x0",
            "v_readfirstlane_b32 s2, v0",
            f"s_lshr_b32 s2, s2, {self.lanes.bit_length() - 1}",
            "s_lshl_b32 s3, s2, 5",
            self.wait,
            "s_add_u32 s6, s6, s3",
            "s_addc_u32 s7, s7, 0",
        ]

    @property
    def registers(self) -> int:
        """VGPRs that keep results, 32 lanes of each."""
        return -(-self.words // 32)

    def add(self, each: Case) -> None:
        kinds = operand_kinds(each)
        if not self.loads or kinds != self.loads[-1]:
            self.loads.append(kinds)
            self.lines += [
                f"s_load_dwordx8 s[{OPERAND}:{OPERAND + 7}], s[6:7], 0x0",
                self.wait,
                f"s_add_u32 s6, s6, {32 * self.waves}",
                "s_addc_u32 s7, s7, 0",
            ]
        self.cases.append(each)
        texts, before, place = [], [], 0
        for token in each.sources:
            register = span("s", OPERAND + 2 * place, words_of(each.results[0] if token == "+" else token))
            if token == "scc":
                before.append(f"s_cmp_eq_u32 {register}, 1")
            elif token == "exec":
                before.insert(0, f"s_mov_b64 exec, s[{OPERAND + 2 * place}:{OPERAND + 2 * place + 1}]")
            elif token == "+":
                before.insert(0, f"s_mov_b{32 * words_of(each.results[0])} {self._result(each)}, {register}")
            elif plain(kind_of(token)):
                texts.append(register)
            else:
                texts.append(f"{LITERAL[token]:#x}" if token in LITERAL else token)
            place += token in ("scc", "exec", "+") or plain(kind_of(token))
        results = [self._result(each)] if plain(kind_of(each.results[0])) else []
        self.lines += [*before, f"{each.spelling or each.mnemonic} {', '.join(results + texts)} {each.after}"]
        self._keep(each)

    def _result(self, each: Case) -> str:
        return span("s", RESULT, words_of(each.results[0]))

    def _keep(self, each: Case) -> None:
        if "scc" in each.results:
            self.lines.append("s_cselect_b32 s24, 1, 0")
        if "exec" in each.results:
            self.lines += [f"s_mov_b64 s[{EXEC_RESULT}:{EXEC_RESULT + 1}], exec", "s_mov_b64 exec, -1"]
        for token in each.results:
            first = {"scc": 24, "exec": EXEC_RESULT}.get(token, RESULT)
            for n in range(result_words(token)):
                register, lane = FIRST_VGPR + self.words // 32, self.words % 32
                self.lines.append(f"v_writelane_b32 v{register}, s{first + n}, {lane}")
                self.words += 1

    def text(self) -> str:
        end = [
            f"s_mul_i32 s3, s2, {128 * self.registers}",
            "s_add_u32 s4, s4, s3",
            "s_addc_u32 s5, s5, 0",
            "s_mov_b64 exec, 0xffffffff",
            f"v_and_b32 v2, {self.lanes - 1}, v0",
            "v_lshlrev_b32 v2, 2, v2",
        ]
        for n in range(self.registers):
            end.append(f"global_store_dword v2, v{FIRST_VGPR + n}, s[4:5] offset:{128 * n}")
        more = assemble.ACCUMULATORS if self.lanes == 64 else "\n.amdhsa_wavefront_size32 1"
        body = "\n".join([*self.lines, *end])
        sizes = dict(lds=0, scratch=0, arguments=16, more=more)
        return assemble.described(self.name, body, **sizes)


def operand_kinds(each: Case) -> tuple[str, ...]:
    """Of the operands in registers: scc and exec are a bit and a mask."""
    as_values = {"scc": "m", "exec": "u64", "+": kind_of(each.results[0])}
    kinds = [as_values.get(token, kind_of(token)) for token in each.sources]
    return tuple(kind for kind in kinds if kind == "m" or plain(kind))


def result_words(token: str) -> int:
    return 2 if token == "exec" else words_of(token)


@functools.cache
def assembled(processor: str, cases: tuple[Case, ...]) -> tuple[code_object.Image, Text]:
    chosen = [each for each in cases if processor in each.processors]
    text = Text(processor)
    for each in sorted(chosen, key=operand_kinds):
        text.add(each)
    return assemble.assemble(text.text(), processor), text


def items_of(text: Text, run: int) -> np.ndarray:
    """Which of the values the waves take in a run."""
    return (np.arange(text.waves) + run * text.waves) * STRIDE % ITEMS


def run(image: code_object.Image, text: Text, number: int, translated: bool) -> np.ndarray:
    """(waves, words) dwords"""
    items = items_of(text, number)
    parts = []
    for kinds in text.loads:
        record = np.zeros((text.waves, 4, 2), dtype=np.uint32)
        record[:, : len(kinds)] = inputs(kinds, 0)[:, items, :2].transpose(1, 0, 2)
        parts.append(record.reshape(-1))
    out = np.zeros((text.waves, 32 * text.registers), dtype=np.uint32)
    buffers = [out.reshape(-1), np.concatenate(parts)]
    compiled.launch(image, text.name, buffers, (1, 1, 1), (GROUP, 1, 1), translated)
    return out


def differing(each: Case, items: np.ndarray, stored: np.ndarray, lanes: int) -> str:
    """Where the results are not what is expected. The upper half of EXEC means nothing in a wave of 32."""
    kinds = operand_kinds(each)
    operands = []
    for place, kind in enumerate(kinds):
        bits = values(kind, place, len(kinds), 0)
        operands.append(bits.astype(bool) if kind == "m" else bits.view(DTYPE[kind]))
    with np.errstate(all="ignore"):
        found = each.expected(*operands)
        found = found if isinstance(found, tuple) else (found,)
        place = 0
        for token, wanted in zip(each.results, found, strict=True):
            dtype = {"scc": np.uint32, "exec": np.uint64}.get(token) or DTYPE[kind_of(token)]
            wanted = np.asarray(wanted).astype(dtype)[items]
            count = result_words(token)
            mine = np.ascontiguousarray(stored[:, place : place + count])
            place += count
            high = mine[:, 0] >> 16 if wanted.dtype.itemsize == 2 else np.zeros(len(items), np.uint32)
            narrow = mine.astype(np.uint16) if wanted.dtype.itemsize == 2 else mine
            narrow = narrow.view(wanted.dtype)[:, 0]
            if token == "exec" and lanes == 32:
                narrow, wanted = narrow & np.uint64(0xFFFFFFFF), wanted & np.uint64(0xFFFFFFFF)
            wrong = ~alike(narrow, wanted, each.ulps) | (high != 0)
            if wrong.any():
                n = int(np.flatnonzero(wrong)[0])
                shown = " ".join(str(operand[items[n]]) for operand in operands)
                return (
                    f"{each.name}: {token}: {shown} -> {narrow[n]} (upper half {high[n]:#x}), not {wanted[n]}"
                )
    return ""


def check(cases: tuple[Case, ...], processor: str, translated: bool) -> list[str]:
    """What differs from the expected values. The translation goes through all of them."""
    image, text = assembled(processor, cases)
    wrong = []
    for number in range(-(-ITEMS // text.waves) if translated else 1):
        stored, place = run(image, text, number, translated), 0
        for each in text.cases:
            count = sum(map(result_words, each.results))
            wrong.append(
                differing(each, items_of(text, number), stored[:, place : place + count], text.lanes)
            )
            place += count
    return [each for each in wrong if each]
