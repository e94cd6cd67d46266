"""Pieces of assembly run on registers and memory that a case gives, many of them in one code object.

What a piece finds: the VGPRs its case names; s[8:9] the address of the case's memory, s[12:15] a buffer
resource for it, v0 and v101 the number of the lane, v100 four times that. s20 and up are its own.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tests.emulator.amd.isa import compiled
from tiny.emulator.amd.isa import assemble, code_object

PROCESSORS = ("gfx1100", "gfx1201", "gfx942")
LANES = {"gfx1100": 32, "gfx1201": 32, "gfx942": 64}
LDS_BYTES, SCRATCH_BYTES = 2048, 64
MEMORY_WORDS = 1024


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
    equal: Callable = field(default=np.array_equal, hash=False)

    @property
    def mnemonic(self) -> str:
        return self.name.partition(":")[0]


def covered(cases) -> dict[str, set[str]]:
    """Processor -> mnemonics that have a case."""
    return {name: {each.mnemonic for each in cases if name in each.processors} for name in PROCESSORS}


def kernel_text(case: Case, number: int, processor: str) -> str:
    """A kernel that loads the case's registers, runs its text and stores what it leaves."""
    wait = "s_wait_idle" if processor == "gfx1201" else "s_waitcnt vmcnt(0) lgkmcnt(0)"
    step = 4 * LANES[processor]
    lines = [
        "s_load_dwordx4 s[4:7], s[0:1], 0x0",
        "s_load_dwordx2 s[8:9], s[0:1], 0x10",
        "s_load_dwordx4 s[12:15], s[0:1], 0x18",
        wait,
        "v_lshlrev_b32 v100, 2, v0",
        "v_mov_b32 v101, v0",
    ]
    for register in case.vgprs:
        lines += [f"global_load_dword v{register}, v100, s[6:7]", *advanced(6, step)]
    lines += [wait, case.text, wait, f"s_mov_b{'64 exec' if step == 256 else '32 exec_lo'}, -1"]
    for register in case.expected:
        lines += [f"global_store_dword v100, v{register}, s[4:5]", *advanced(4, step)]
    more = assemble.ACCUMULATORS if processor == "gfx942" else ".amdhsa_wavefront_size32 1"
    sizes = {"lds": LDS_BYTES, "scratch": SCRATCH_BYTES, "arguments": 40, "more": more}
    return assemble.HEADER.format(name=f"case{number}", body="\n".join(lines), **sizes)


def advanced(register: int, size: int) -> list[str]:
    """The address in a pair of SGPRs goes on."""
    return [f"s_add_u32 s{register}, s{register}, {size}", f"s_addc_u32 s{register + 1}, s{register + 1}, 0"]


@functools.cache
def image(cases: tuple[Case, ...], processor: str) -> code_object.Image:
    """All these cases in one code object."""
    texts = [kernel_text(each, number, processor) for number, each in enumerate(cases)]
    return assemble.assemble("\n".join(texts), processor)


def resource(address: int, processor: str, size: int, stride: int = 0) -> list[int]:
    """A raw buffer, the four words of its description, as two u64. Out of range: beyond `size` bytes.

    Source: the manuals' tables "Buffer Resource Descriptor"; format and out-of-bounds select of gfx11 and
    gfx12 are 3 (raw), of gfx942 the data format is 32 bits.
    """
    last = {"gfx942": 0x00027000}.get(processor, 0x31016000)
    return [address | stride << 48, size | last << 32]


def run(cases: tuple[Case, ...], number: int, processor: str, translated: bool) -> str:
    """What is not as the case says; empty where all is."""
    case, lanes = cases[number], LANES[processor]
    loaded = np.concatenate([np.asarray(each, dtype=np.uint32) for each in case.vgprs.values()] or [[0]])
    out = np.zeros(max(len(case.expected) * lanes, 1), dtype=np.uint32)
    memory = np.zeros(MEMORY_WORDS, dtype=np.uint32)
    if case.memory is not None:
        memory[: len(case.memory)] = case.memory
    wanted = memory.copy()
    if case.written is not None:
        wanted[: len(case.written)] = case.written
    constants = resource(memory.ctypes.data, processor, memory.nbytes)
    compiled.launch(
        image(cases, processor),
        f"case{number}",
        [out, loaded.astype(np.uint32), memory],
        (1, 1, 1),
        (lanes, 1, 1),
        translated,
        constants=tuple(constants),
    )
    for place, (register, expected) in enumerate(case.expected.items()):
        mine = out[place * lanes : (place + 1) * lanes]
        expected = np.asarray(expected(lanes) if callable(expected) else expected).astype(np.uint32)
        if not case.equal(mine, np.broadcast_to(expected, (lanes,))):
            return f"{case.name}: v{register} is {shown(mine)}, not {shown(expected)}"
    if not np.array_equal(memory, wanted):
        place = int(np.flatnonzero(memory != wanted)[0])
        return f"{case.name}: memory at {4 * place:#x} is {memory[place]:#x}, not {wanted[place]:#x}"
    return ""


def shown(words: np.ndarray) -> str:
    return " ".join(f"{int(word):x}" for word in np.atleast_1d(words))


def check(cases: tuple[Case, ...], processor: str, translated: bool) -> None:
    """AssertionError with all that differs."""
    chosen = tuple(each for each in cases if processor in each.processors)
    wrong = [run(chosen, number, processor, translated) for number in range(len(chosen))]
    wrong = [each for each in wrong if each]
    assert not wrong, f"{len(wrong)} of {len(chosen)} cases:\n" + "\n".join(wrong)
