"""Pieces of assembly run on registers and memory that a case gives, many of them in one code object.

What a piece finds: the VGPRs its case names; s[8:9] the address of the case's memory, s[12:15] a buffer
resource for it, v0 and v101 the number of the lane, v100 and v99 4 and 16 times that. s20 ... s90 and
v102 ... v127 are its own; local memory and scratch hold what the case before left there.
"""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from tests.emulator.amd.isa import compiled
from tiny.emulator.amd.isa import assemble, code_object

PROCESSORS = ("gfx1100", "gfx1201", "gfx942")
LANES = {"gfx1100": 32, "gfx1201": 32, "gfx942": 64}
LDS_BYTES, SCRATCH_BYTES = 2048, 64
MEMORY_WORDS = 256
KERNEL_CASES = 16  # in one kernel


@dataclass(frozen=True)
class Case:
    """name      the mnemonic, and after a colon what is particular
    text      instructions
    vgprs     register -> what it holds, an array of u32 with an element for each lane
    memory    u32, at most MEMORY_WORDS of them; what follows is zero
    expected  register -> array of u32, or function of lanes that gives it
    written   what the memory holds afterwards; None: what it held before
    """

    name: str
    text: str
    processors: tuple[str, ...] = PROCESSORS
    vgprs: dict = field(default_factory=dict, hash=False)
    memory: np.ndarray | None = field(default=None, hash=False)
    expected: dict = field(default_factory=dict, hash=False)
    written: np.ndarray | None = field(default=None, hash=False)
    equal: Callable = field(default=np.equal, hash=False)

    @property
    def mnemonic(self) -> str:
        return self.name.partition(":")[0]


def covered(cases) -> dict[str, set[str]]:
    """Processor -> mnemonics that have a case."""
    return {name: {each.mnemonic for each in cases if name in each.processors} for name in PROCESSORS}


def wait(processor: str) -> str:
    return "s_wait_idle" if processor == "gfx1201" else "s_waitcnt vmcnt(0) lgkmcnt(0)"


def kernel_text(cases: tuple[Case, ...], number: int, processor: str) -> str:
    """A kernel that for each case loads its registers, runs its text and stores what it leaves."""
    lines = [
        "s_load_dwordx4 s[4:7], s[0:1], 0x0",
        "s_load_dwordx2 s[16:17], s[0:1], 0x10",
        "s_load_dwordx2 s[18:19], s[0:1], 0x18",
        wait(processor),
        "v_lshlrev_b32 v99, 4, v0",
        "v_lshlrev_b32 v100, 2, v0",
        "v_mov_b32 v101, v0",
    ]
    for case in cases:
        lines += case_text(case, processor)
    more = assemble.ACCUMULATORS if processor == "gfx942" else ".amdhsa_wavefront_size32 1"
    sizes = {"lds": LDS_BYTES, "scratch": SCRATCH_BYTES, "arguments": 32, "more": more}
    return assemble.described(f"kernel{number}", "\n".join(lines), **sizes)


def case_text(case: Case, processor: str) -> list[str]:
    """One case: what is loaded and stored goes on in s[6:7] and s[4:5], the memory in s[16:17]."""
    step = 4 * LANES[processor]
    lines = [
        "s_mov_b64 s[8:9], s[16:17]",
        "s_mov_b64 s[12:13], s[16:17]",
        "s_mov_b64 s[14:15], s[18:19]",
        *advanced(16, 4 * MEMORY_WORDS),
        "v_mov_b32 v0, v101",
    ]
    for first, count in spans(case.vgprs):
        line = f"v[{first}:{first + 3}], v99" if count == 4 else f"v{first}, v100"
        lines += [f"global_load_dword{'x4' * (count == 4)} {line}, s[6:7]", *advanced(6, count * step)]
    everyone = f"s_mov_b{'64 exec' if step == 256 else '32 exec_lo'}, -1"
    lines += [wait(processor), case.text, wait(processor), everyone]
    for first, count in spans(case.expected):
        line = f"v99, v[{first}:{first + 3}]" if count == 4 else f"v100, v{first}"
        lines += [f"global_store_dword{'x4' * (count == 4)} {line}, s[4:5]", *advanced(4, count * step)]
    return lines


def spans(registers: Iterable[int]) -> list[tuple[int, int]]:
    """(first, 4 or 1) of registers that are moved together."""
    left, found = sorted(registers), []
    while left:
        count = 4 if left[:4] == list(range(left[0], left[0] + 4)) and left[0] % 2 == 0 else 1
        found.append((left[0], count))
        left = left[count:]
    return found


def arranged(registers: dict, lanes: int) -> list[np.ndarray]:
    """The registers' arrays in the order in which they are moved."""
    found = []
    for first, count in spans(registers):
        rows = [np.broadcast_to(np.uint32(registers[first + n]), lanes) for n in range(count)]
        found.append(np.stack(rows, axis=1).reshape(-1))
    return found


def advanced(register: int, size: int) -> list[str]:
    """The address in a pair of SGPRs goes on."""
    return [f"s_add_u32 s{register}, s{register}, {size}", f"s_addc_u32 s{register + 1}, s{register + 1}, 0"]


@functools.cache
def image(cases: tuple[Case, ...], processor: str) -> code_object.Image:
    """All these cases in one code object."""
    firsts = range(0, len(cases), KERNEL_CASES)
    texts = [kernel_text(cases[n : n + KERNEL_CASES], n, processor) for n in firsts]
    return assemble.assemble("\n".join(texts), processor)


def resource_end(processor: str) -> int:
    """The upper half of a raw buffer's description; out of range is what lies beyond MEMORY_WORDS.

    Source: the manuals' tables "Buffer Resource Descriptor"; format and out-of-bounds select of gfx11 and
    gfx12 are 3 (raw), of gfx942 the data format is 32 bits.
    """
    return 4 * MEMORY_WORDS | {"gfx942": 0x00027000}.get(processor, 0x31016000) << 32


def run(cases: tuple[Case, ...], first: int, processor: str, translated: bool) -> list[str]:
    """What is not as the cases of one kernel say."""
    lanes, part = LANES[processor], cases[first : first + KERNEL_CASES]
    loaded = [each for case in part for each in arranged(case.vgprs, lanes)]
    loaded = np.concatenate(loaded or [np.zeros(1, dtype=np.uint32)])
    out = np.zeros(max(sum(len(case.expected) for case in part) * lanes, 1), dtype=np.uint32)
    memory = np.zeros((len(part), MEMORY_WORDS), dtype=np.uint32)
    wanted = memory.copy()
    for number, case in enumerate(part):
        for array, words in ((memory, case.memory), (wanted, case.memory), (wanted, case.written)):
            if words is not None:
                array[number, : len(words)] = words
    compiled.launch(
        image(cases, processor),
        f"kernel{first}",
        [out, loaded, memory.reshape(-1)],
        (1, 1, 1),
        (lanes, 1, 1),
        translated,
        constants=(resource_end(processor),),
    )
    wrong, place = [], 0
    for number, case in enumerate(part):
        size = len(case.expected) * lanes
        wrong.append(differing(case, out[place : place + size], memory[number], wanted[number], lanes))
        place += size
    return [each for each in wrong if each]


def differing(case: Case, stored: np.ndarray, memory: np.ndarray, wanted: np.ndarray, lanes: int) -> str:
    """What a case left that is not expected; empty where all is."""
    wrong = []
    for first, count in spans(case.expected):
        for n, mine in enumerate(stored[: count * lanes].reshape(lanes, count).T):
            expected = case.expected[first + n]
            expected = np.asarray(expected(lanes) if callable(expected) else expected).astype(np.uint32)
            expected = np.broadcast_to(expected, (lanes,))
            wrong.append(first_difference(case, f"v{first + n} of lane", mine, expected))
        stored = stored[count * lanes :]
    wrong.append(first_difference(case, "dword of memory", memory, wanted))
    return "; ".join(each for each in wrong if each)


def first_difference(case: Case, what: str, mine: np.ndarray, wanted: np.ndarray) -> str:
    """Where two arrays differ first; empty where they are the same."""
    places = np.flatnonzero(~case.equal(mine, wanted))
    if not len(places):
        return ""
    place = int(places[0])
    return f"{case.name}: {what} {place} is {mine[place]:#x}, not {wanted[place]:#x} ({len(places)} differ)"


def check(cases: tuple[Case, ...], processor: str, translated: bool) -> None:
    """AssertionError with all that differs."""
    chosen = tuple(each for each in cases if processor in each.processors)
    wrong = []
    for first in range(0, len(chosen), KERNEL_CASES):
        wrong += run(chosen, first, processor, translated)
    assert not wrong, f"{len(wrong)} of {len(chosen)} cases:\n" + "\n".join(wrong)
