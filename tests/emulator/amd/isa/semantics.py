"""Cases of the semantics table, and how many of them become one kernel.

A case is one instruction applied to many values at once: each lane has inputs of its own, special values
crossed with one another and random ones. Cases of one processor are assembled together and run by the
interpreter and by the translation to C; expected values come from functions over numpy arrays that know
nothing of the table.
"""

import functools
import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from tests.emulator.amd.isa import compiled
from tiny.emulator.amd.isa import assemble, code_object

PROCESSORS = ("gfx1100", "gfx1201", "gfx942")
ITEMS, SPECIALS = 192, 12
KERNEL_CASES = 40  # in one kernel
REGISTERS = (4, 8, 12, 16)  # of the operands a, b, c and of what the destination held
RESULT, MASK_RESULT, EXEC_RESULT = 24, 28, 29  # where results are, and masks as 0 or 1
DTYPE = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "b16": np.uint16,
    "u16": np.uint16,
    "i16": np.int16,
    "u32": np.uint32,
    "i32": np.int32,
    "u64": np.uint64,
    "i64": np.int64,
}
DEFAULT_MODE = 0x3F0  # to nearest, denormals kept
MASKS = ("m", "vcc")
LITERAL = {"k32": 0x40490FDB, "k16": 0x4248}
INTEGERS = (0, 1, -1, 2, 31, 33, 1 << 63, (1 << 63) - 1, 0x80, 0x7FFF8000FFFF, 0x0D0B0903_0C0A0802, 0x55AA)
FLOATS = {  # zeros, one, infinities, quiet and signalling NaN, denormals, the largest, an odd integer
    "f16": (0, 0x8000, 0x3C00, 0xBE00, 0x7C00, 0xFC00, 0x7E01, 0xFC01, 1, 0x83FF, 0x7BFF, 0x6401),
    "f32": (
        *(0, 0x80000000, 0x3F800000, 0xBFC00000, 0x7F800000, 0xFF800000),
        *(0x7FC00001, 0xFF800001, 1, 0x807FFFFF, 0x7F7FFFFF, 0x4B000001),
    ),
    "f64": (
        *(0, 1 << 63, 0x3FF << 52, 0xBFF8 << 48, 0x7FF << 52, 0xFFF << 52),
        *(
            0x7FF8000000000001,
            0xFFF0000000000001,
            1,
            0x800FFFFFFFFFFFFF,
            0x7FEFFFFFFFFFFFFF,
            0x4340000000000001,
        ),
    ),
}


@dataclass(frozen=True)
class Case:
    """name      the mnemonic, and after a colon what is particular
    results   kinds of the results: f32, u16, b16 (bfloat16), ..., u32x4, f16x2 (one register), m (a mask),
              exec (a mask written to EXEC)
    sources   kinds of the operands; m: a mask; vcc: VCC, not written; +: what the destination held; k16, k32:
              the literal LITERAL; anything else is text of the assembly
    expected  arrays of the operands (not of literals or text) -> array of the result, or a tuple
    after     modifiers at the end of the line
    spelling  the mnemonic as this form spells it, if not by the name
    ulps      how far a float may be off
    mode      MODE: rounding, denormals, bits 8 and 9 DX10_CLAMP and IEEE, which gfx12 lacks, 23 FP16_OVFL

    A kind may have a form behind a colon, the text of the operand with {} for the register: f32:-|{}|.
    """

    name: str
    results: tuple[str, ...]
    sources: tuple[str, ...]
    expected: Callable
    after: str = ""
    spelling: str = ""
    ulps: float = 0
    mode: int = DEFAULT_MODE
    processors: tuple[str, ...] = PROCESSORS

    @property
    def mnemonic(self) -> str:
        return self.name.partition(":")[0]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of what `expected` is given."""
        kinds = [kind_of(self.results[0] if token == "+" else token) for token in self.sources]
        return tuple(kind for kind in kinds if kind in MASKS or plain(kind))


def kind_of(token: str) -> str:
    return token.partition(":")[0]


def plain(kind: str) -> bool:
    """Whether it is the kind of a value in registers."""
    return kind.partition("x")[0] in DTYPE


def case(name: str, signature: str, expected: Callable, **more) -> Case:
    """signature: "results = sources"."""
    results, _, sources = signature.partition(" = ")
    return Case(name, tuple(results.split()), tuple(sources.split()), expected, **more)


def words_of(token: str) -> int:
    """Registers that a value takes."""
    kind = kind_of(token)
    base, _, count = kind.partition("x")
    return max(int(base[1:]) * int(count or 1) // 32, 1) if plain(kind) else 1


KEEPS_UPPER = {"v_mac_f16", "v_madak_f16", "v_madmk_f16", "v_fmac_f16"}


# -- values --------------------------------------------------------------------------------------------------
@functools.cache
def values(kind: str, place: int, count: int, block: int) -> np.ndarray:
    """Operand number `place` of `count`: its bits as unsigned integers, (ITEMS,) or (ITEMS, registers).

    Block 0 starts with all pairs of special values; later ones are random, a part of them special.
    """
    base, _, many = kind.partition("x")
    rng = np.random.default_rng(zlib.crc32(f"{kind} {place} {block}".encode()))
    shape = (ITEMS, int(many)) if many else (ITEMS,)
    if base in MASKS:
        return rng.integers(0, 2, ITEMS, dtype=np.uint32)
    width = int(base[1:])
    unsigned = np.dtype(f"u{width // 8}")
    found = rng.integers(0, 1 << width, shape, dtype=np.uint64).astype(unsigned)
    special = np.array([each & (1 << width) - 1 for each in FLOATS.get(base, INTEGERS)], dtype=unsigned)
    if base in FLOATS:
        moderate = (rng.normal(size=shape) * 4.0 ** rng.integers(-2, 5, shape)).astype(DTYPE[base])
        found[1::2] = moderate.view(unsigned)[1::2]
    else:
        found[1::2] >>= rng.integers(0, width, found[1::2].shape).astype(unsigned)
    if block == 0 and count > 1:
        item = np.arange(SPECIALS**2)
        order = (
            item // SPECIALS,
            item % SPECIALS,
            (item // SPECIALS + 5 * item) % SPECIALS,
            7 * item % SPECIALS,
        )
        chosen = special[order[place] % SPECIALS]
        found[: len(item)] = chosen[:, None] if many else chosen
    else:
        found[::4] = rng.choice(special, found[::4].shape)
    return found


def typed(kind: str, bits: np.ndarray) -> np.ndarray:
    if kind in MASKS:
        return bits.astype(bool)
    return bits.view(DTYPE[kind.partition("x")[0]])


@functools.cache
def inputs(kinds: tuple[str, ...], block: int) -> np.ndarray:
    """(operands, ITEMS, 4) dwords as they are loaded into the registers."""
    loaded = np.zeros((len(kinds), ITEMS, 4), dtype=np.uint32)
    for place, kind in enumerate(kinds):
        bits = values(kind, place, len(kinds), block)
        if bits.dtype.itemsize == 2 and bits.ndim == 1:  # the upper half is something else
            bits = bits.astype(np.uint32) | np.arange(ITEMS, dtype=np.uint32) * 0x01010000
        words = np.ascontiguousarray(bits).view(np.uint32).reshape(ITEMS, -1)
        loaded[place, :, : words.shape[1]] = words
    return loaded


# -- text ----------------------------------------------------------------------------------------------------
def span(prefix: str, first: int, count: int) -> str:
    return f"{prefix}{first}" if count == 1 else f"{prefix}[{first}:{first + count - 1}]"


def vector(token: str, first: int, processor: str) -> str:
    """A VGPR operand of that kind."""
    kind, _, form = token.partition(":")
    half = ".l" if kind[1:] == "16" and processor == "gfx1100" else ""
    register = span("v", first, words_of(kind))
    return form.format(register) if form else register + half


class Text:
    """The text of one kernel for one processor, and where its cases find inputs and leave results."""

    def __init__(self, processor: str, name: str):
        self.processor, self.name = processor, name
        self.wide = processor == "gfx942"
        self.pair = 2 if self.wide else 1
        self.cases: list[Case] = []
        self.kinds: tuple[str, ...] | None = None
        self.loads: list[tuple[str, ...]] = []  # in the order of the input buffer
        self.words = 0  # stored so far, of each item
        self.mode = DEFAULT_MODE
        self.lines = [
            "s_load_dwordx4 s[4:7], s[0:1], 0x0",
            "v_lshlrev_b32 v2, 2, v0",
            "v_lshlrev_b32 v1, 4, v0",
            self.wait(),
        ]

    def wait(self) -> str:
        return "s_wait_idle" if self.processor == "gfx1201" else "s_waitcnt vmcnt(0) lgkmcnt(0)"

    def advance(self, register: int, size: int) -> list[str]:
        return [
            f"s_add_u32 s{register}, s{register}, {size}",
            f"s_addc_u32 s{register + 1}, s{register + 1}, 0",
        ]

    def load(self, kinds: tuple[str, ...]) -> None:
        if kinds == self.kinds:
            return
        self.kinds = kinds
        self.loads.append(kinds)
        mask = None
        for place, kind in enumerate(kinds):
            register = REGISTERS[place]
            self.lines.append(f"global_load_dwordx4 v[{register}:{register + 3}], v1, s[6:7]")
            self.lines += self.advance(6, 16 * ITEMS)
            mask = register if kind in MASKS else mask
        self.lines.append(self.wait())
        if mask is not None:
            self.lines += [f"v_cmp_eq_u32 vcc, 1, v{mask}".replace("vcc", span("s", 20, self.pair), 1)]

    def add(self, each: Case) -> None:
        """Append a case: inputs, the instruction, stores."""
        self.load(each.kinds)
        self.cases.append(each)
        if each.mode != self.mode:
            self.mode = each.mode
            width = 8 if self.processor == "gfx1201" else 10
            self.lines.append(f"s_setreg_imm32_b32 hwreg(1, 0, {width}), {each.mode & (1 << width) - 1}")
            self.lines.append(f"s_setreg_imm32_b32 hwreg(1, 23, 1), {each.mode >> 23}")
        mask = span("s", 20, self.pair)
        lines, operands, place = [], [], 0
        for token in each.sources:
            kind = kind_of(token)
            if kind == "vcc":
                lines.append(f"s_mov_b{32 * self.pair} {'vcc' if self.wide else 'vcc_lo'}, {mask}")
            elif kind == "m":
                operands.append(mask)
            elif plain(kind):
                operands.append(vector(token, REGISTERS[place], self.processor))
            elif token != "+":
                operands.append(f"{LITERAL[kind]:#x}" if kind in LITERAL else token)
            place += kind in MASKS or plain(kind) or token == "+"
        lines += self._destination(each)
        results = []
        for kind in each.results:
            if kind == "m":
                results.append(span("s", 30, self.pair))
            elif kind != "exec":
                results.append(vector(kind, RESULT, self.processor))
        lines.append(f"{each.spelling or each.mnemonic} {', '.join(results + operands)} {each.after}")
        self.lines += lines + self._store(each)

    def _destination(self, each: Case) -> list[str]:
        """What the destination holds before: an accumulator, or something to be seen where parts stay."""
        if "exec" in each.results:
            return [f"v_mov_b32 v{EXEC_RESULT}, 0"]
        if not plain(kind_of(each.results[0])):
            return []
        source = REGISTERS[accumulator(each)] if "+" in each.sources else None
        return [
            f"v_mov_b32 v{RESULT + n}, v{1 if source is None else source + n}"
            for n in range(words_of(each.results[0]))
        ]

    def _store(self, each: Case) -> list[str]:
        lines = []
        if "exec" in each.results:
            lines.append(f"v_mov_b32 v{EXEC_RESULT}, 1")
            lines.append(f"s_mov_b{32 * self.pair} {'exec' if self.wide else 'exec_lo'}, -1")
        for kind in each.results:
            if kind == "m":
                lines.append(f"v_cndmask_b32 v{MASK_RESULT}, 0, 1, {span('s', 30, self.pair)}")
            first = {"m": MASK_RESULT, "exec": EXEC_RESULT}.get(kind, RESULT)
            for n in range(words_of(kind)):
                self.words += 1
                lines.append(f"global_store_dword v2, v{first + n}, s[4:5]")
                lines += self.advance(4, 4 * ITEMS)
        return lines

    def text(self) -> str:
        more = assemble.ACCUMULATORS if self.wide else ""
        if not self.wide:
            more += "\n.amdhsa_wavefront_size32 1"
        sizes = {"lds": 0, "scratch": 0, "arguments": 16, "more": more}
        return assemble.described(self.name, "\n".join(self.lines), **sizes)


def accumulator(each: Case) -> int:
    """The number of the operand that the destination holds."""
    return sum(token in MASKS or plain(kind_of(token)) for token in each.sources[: each.sources.index("+")])


def kernels(cases: Iterable[Case], processor: str) -> list[Text]:
    """The cases that this processor has, in order of their operands, shared out to kernels."""
    chosen = sorted(
        (each for each in cases if processor in each.processors),
        key=lambda each: (each.mode, each.kinds, each.results),
    )
    return [
        functools.reduce(
            lambda text, each: text.add(each) or text,
            chosen[n : n + KERNEL_CASES],
            Text(processor, f"kernel{n}"),
        )
        for n in range(0, len(chosen), KERNEL_CASES)
    ]


# -- running -------------------------------------------------------------------------------------------------
def run(image: code_object.Image, kernel: Text, block: int, translated: bool) -> np.ndarray:
    """(words, ITEMS) dwords, as the cases stored them."""
    loaded = np.concatenate([inputs(kinds, block).reshape(-1) for kinds in kernel.loads])
    out = np.zeros(kernel.words * ITEMS, dtype=np.uint32)
    compiled.launch(image, kernel.name, [out, loaded], (1, 1, 1), (ITEMS, 1, 1), translated)
    return out.reshape(kernel.words, ITEMS)


@functools.cache
def expected(each: Case, block: int) -> list[np.ndarray]:
    """What the case's function says, one array for each result, in the result's type."""
    operands = [
        typed(kind, values(kind, place, len(each.kinds), block)) for place, kind in enumerate(each.kinds)
    ]
    with np.errstate(all="ignore"):
        found = each.expected(*operands)
        found = found if isinstance(found, tuple) else (found,)
        assert len(found) == len(each.results), each.name
        return [
            np.broadcast_to(array, (ITEMS, *array.shape[1:])).astype(
                DTYPE.get(re.split("[x:]", kind)[0], np.uint32)
            )
            for kind, array in zip(each.results, map(np.asarray, found), strict=True)
        ]


def differing(each: Case, processor: str, block: int, stored: np.ndarray) -> str:
    """Where the words that were stored are not what is expected; empty where they are."""
    place = 0
    for kind, wanted in zip(each.results, expected(each, block), strict=True):
        count = words_of(kind)
        words = stored[place : place + count]
        place += count
        mine = np.ascontiguousarray(words.T)
        if kind_of(kind)[1:] == "16":
            upper = mine[:, 0] >> 16
            held = upper_half(each, processor, block)
            wrong = upper != held
            mine = mine[:, 0].astype(np.uint16).view(wanted.dtype)
        else:
            mine = mine.view(wanted.dtype).reshape(wanted.shape)
            wrong = np.zeros(ITEMS, dtype=bool)
        if kind_of(kind) == "b16":
            mine, wanted = ((each.astype(np.uint32) << 16).view(np.float32) for each in (mine, wanted))
        wrong = wrong | ~alike(mine, wanted, each.ulps).reshape(ITEMS, -1).all(axis=1)
        if wrong.any():
            return described(each, block, int(np.flatnonzero(wrong)[0]), mine, wanted, words)
    return ""


def upper_half(each: Case, processor: str, block: int) -> np.ndarray:
    """What must stand above a 16-bit result: what was there, but on gfx942 zero for most instructions."""
    if processor == "gfx942" and each.mnemonic not in KEEPS_UPPER:
        return np.zeros(ITEMS, dtype=np.uint32)
    if "+" in each.sources:
        return inputs(each.kinds, block)[accumulator(each), :, 0] >> 16
    return 16 * np.arange(ITEMS, dtype=np.uint32) >> 16


def alike(mine: np.ndarray, wanted: np.ndarray, ulps: float) -> np.ndarray:
    """Equal bits, or both NaN, or near enough."""
    unsigned = f"u{wanted.dtype.itemsize}"
    same = mine.view(unsigned) == wanted.view(unsigned)
    if wanted.dtype.kind != "f":
        return same
    same |= np.isnan(mine) & np.isnan(wanted)
    if ulps:
        with np.errstate(all="ignore"):
            unit = np.spacing(np.abs(wanted)).astype(np.float64)
            same |= np.abs(mine.astype(np.float64) - wanted.astype(np.float64)) <= ulps * unit
    return same


def described(
    each: Case, block: int, item: int, mine: np.ndarray, wanted: np.ndarray, words: np.ndarray
) -> str:
    operands = [inputs(each.kinds, block)[place, item] for place in range(len(each.kinds))]
    shown = " ".join(
        "".join(f"{word:08x}" for word in reversed(operand[: words_of(kind)]))
        for kind, operand in zip(each.kinds, operands, strict=True)
    )
    bits = " ".join(f"{word:08x}" for word in words[::-1, item])
    place = f"{each.name} {each.after}: item {item} of block {block}"
    return f"{place}: {shown} -> {bits} = {mine[item]}, not {wanted[item]}"


@functools.cache
def assembled(processor: str, cases: tuple[Case, ...]) -> tuple[code_object.Image, list[Text]]:
    """All the cases of a processor in one code object."""
    texts = kernels(cases, processor)
    return assemble.assemble("\n".join(each.text() for each in texts), processor), texts


def check(cases: tuple[Case, ...], processor: str, translated: bool) -> list[str]:
    """What differs from the expected values; the translation, being fast, gets more of them."""
    image, texts = assembled(processor, cases)
    wrong = []
    for kernel in texts:
        for block in range(4 if translated else 1):
            stored, place = run(image, kernel, block, translated), 0
            for each in kernel.cases:
                count = sum(words_of(kind) for kind in each.results)
                wrong.append(differing(each, processor, block, stored[place : place + count]))
                place += count
    return [each for each in wrong if each]
