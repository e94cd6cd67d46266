"""Kernels of the corpus on the emulated card, compared with the same C on the host, bit for bit.

What may differ: the sign and payload of NaN, the sign of zero from min and max (IEEE leaves it open), and the
last bit of exponentials and logarithms.
"""

import ctypes
import re

import numpy as np
import pytest

from tests.emulator.amd.isa import compiled

pytestmark = pytest.mark.usefixtures("optimized_translations")
ITEMS = 128
PROCESSORS = ["gfx1100", "gfx1201", "gfx942"]
SOURCE = (compiled.FOLDER / "corpus.c").read_text()
FLOATS = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": np.uint16}
INTEGER_RESULTS = re.compile(r"^(less|order|class|bits)_")
NEAR = {"exp2_f32": 1, "log2_f32": 1, "exp_f32": 2, "log_f32": 2}
# clang -O0 copies 32 bits with v_mov_b16 in it and loses the upper half
MISCOMPILED = {("swap_u64", 0)}
# one for each kind of translated code; all of them are translated in the slow test
TRANSLATED = [
    "add_f32",
    "div_f32",
    "div_f64",
    "div_f16",
    "fma_f64",
    "copysign_f32",
    "exp2_f32",
    "log2_f32",
    "class_f32",
    "f16_from_f64",
    "f32_from_u64",
    "i64_from_f64",
    "mul_i8",
    "rem_i32",
    "div_i64",
    "shr_i64",
    "less_u64",
    "mulhi_u64",
    "popcount_u64",
    "swap_u64",
    "rotate_u64",
    "median_i32",
    "pk_fma_f16",
    "pk_shift_right_i16",
    "mix_f32",
    "dot_i8",
    "collatz",
    "nested",
    "private_array",
    "byte_memory",
    "unpack_nibbles",
    "matmul",
    "threefry",
]
SPECIAL = np.array(
    [
        0,
        1,
        5,
        0x8000,
        0x3C00,
        0x7C00FC00,
        0x3C003C00,
        0x3F800000,
        0xBF800000,
        0x7F800000,
        0xFF800000,
        0x7FC00000,
        0x80000000,
        0x80000001,
        0x7FFFFFFF,
        0xFFFFFFFF,
        0x00800000,
        0x7F7FFFFF,
        0x40000000,
        0x4F000000,
        1 << 63,
        0x7FF << 52,
        0x3FF << 52,
        0x7FF8 << 48,
    ],
    dtype=np.uint64,
)


def kernel_names() -> list[str]:
    image = compiled.card_image("corpus.c", "gfx1100", 1)
    return sorted(name.removesuffix(".kd") for name in image.symbols if name.endswith(".kd"))


def result_kind(name: str) -> str:
    """f16, f32, f64 where the result is a float, else u8."""
    head, _, _ = name.partition("_from_")
    if head != name:
        return head if head in FLOATS else "u8"
    if INTEGER_RESULTS.match(name):
        return "u8"
    if name in ("matmul", "unpack_nibbles"):
        return "f32"
    found = re.search(r"_(f16|f32|f64)$", name)
    return found.group(1) if found else "u8"


def inputs(name: str, seed: int) -> list[np.ndarray]:
    """Three arrays: a third special values, a third random bits, a third moderate floats of the kernel's
    type.
    """
    rng = np.random.default_rng(seed)
    arrays = []
    kind = re.search(r"(f16|f64|bf16|f32)$", name)
    dtype = {"f16": np.float16, "f64": np.float64}.get(kind.group(1) if kind else "f32", np.float32)
    for _ in range(3):
        words = rng.integers(0, 1 << 64, 2 * ITEMS, dtype=np.uint64)
        words[::3] = rng.choice(SPECIAL, len(words[::3]))
        moderate = (10 * rng.normal(size=len(words[1::3]))).astype(dtype)
        words[1::3] = moderate.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype().itemsize])
        arrays.append(words)
    return arrays


def on_host(name: str, arrays: list[np.ndarray], out: np.ndarray) -> None:
    """What the kernel must write, in place."""
    if name == "f16_from_f64":
        with np.errstate(all="ignore"):
            out.view(np.float16)[:ITEMS] = arrays[0].view(np.float64)[:ITEMS].astype(np.float16)
        return
    if name == "bf16_from_f32":
        words = arrays[0].view(np.uint32)[:ITEMS].astype(np.uint64)
        near = words + 0x7FFF + (words >> np.uint64(16) & np.uint64(1)) >> np.uint64(16)
        nan = (words & np.uint64(0x7FFFFFFF)) > 0x7F800000
        out.view(np.uint16)[:ITEMS] = np.where(nan, words >> np.uint64(16) | np.uint64(0x40), near)
        return
    functions = compiled.host_functions()
    pointers = [ctypes.c_void_p(each.ctypes.data) for each in (out, *arrays)]
    for number in range(ITEMS):
        functions["set_id"](number)
        functions[name](*pointers)


def assert_alike(name: str, mine: np.ndarray, expected: np.ndarray) -> None:
    kind = result_kind(name)
    if kind == "u8":
        different = mine != expected
    else:
        bits = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64}[kind]
        a, b = mine.view(bits), expected.view(bits)
        if kind == "bf16":
            nan = ((a & 0x7FFF) > 0x7F80) & ((b & 0x7FFF) > 0x7F80)
        else:
            x, y = a.view(FLOATS[kind]), b.view(FLOATS[kind])
            nan = np.isnan(x) & np.isnan(y)
        different = (a != b) & ~nan
        if "min" in name or "max" in name:
            different &= (x != 0) | (y != 0)
        if name in NEAR:
            different &= np.abs(a.astype(np.int64) - b.astype(np.int64)) > NEAR[name]
    where = np.flatnonzero(different)
    assert not len(where), f"{name}: {len(where)} differ, first at {where[0]}: {mine.view(np.uint32)[:8]}"


def check(name: str, processor: str, level: int, translated: bool, seed: int = 1) -> np.ndarray:
    arrays = inputs(name, seed)
    mine, expected = compiled.output(32 * ITEMS), compiled.output(32 * ITEMS)
    compiled.launch(
        compiled.card_image("corpus.c", processor, level),
        name,
        [mine, *arrays],
        (2, 1, 1),
        (64, 1, 1),
        translated,
    )
    on_host(name, arrays, expected)
    assert_alike(name, mine, expected)
    return mine


def check_all(names, processor: str, level: int, translated: bool) -> None:
    wrong = []
    for name in names:
        if (name, level) in MISCOMPILED:
            continue
        try:
            check(name, processor, level, translated)
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {error}")
    assert not wrong, f"{len(wrong)} kernels:\n" + "\n".join(wrong)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("level", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 2, 3))])
def test_interpreter_computes_what_the_host_does(processor, level):
    check_all(kernel_names(), processor, level, translated=False)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_translation_computes_what_the_host_does(processor):
    check_all(TRANSLATED, processor, 1, translated=True)


@pytest.mark.slow
@pytest.mark.parametrize("processor", PROCESSORS)
def test_translation_equals_interpreter_bit_for_bit(processor):
    for name in kernel_names():
        arrays = inputs(name, 7)
        results = []
        for translated in (False, True):
            out = compiled.output(32 * ITEMS)
            compiled.launch(
                compiled.card_image("corpus.c", processor, 2),
                name,
                [out, *arrays],
                (2, 1, 1),
                (64, 1, 1),
                translated,
            )
            results.append(out)
        assert_alike(name, *results)
