"""What only the card has: local memory, barriers, atomics, other lanes, matrices, faults. Python says what
must come out.
"""

import numpy as np
import pytest

from tests.emulator.amd.isa import compiled
from tiny.emulator.amd.isa import assemble, run
from tiny.emulator.amd.isa.memory import HostMemory, MemoryFault
from tiny.emulator.amd.isa.state import Dispatch, EmulationError

pytestmark = pytest.mark.usefixtures("optimized_translations")
PROCESSORS = ["gfx1100", "gfx1201", "gfx942"]
BOTH = pytest.mark.parametrize("translated", [False, True], ids=["interpreter", "translation"])
EACH = pytest.mark.parametrize("processor", PROCESSORS)


def launch(processor, name, buffers, groups=(2, 1, 1), size=(64, 1, 1), translated=False, level=1, **more):
    compiled.launch(
        compiled.card_image("corpus_card.c", processor, level),
        name,
        buffers,
        groups,
        size,
        translated,
        **more,
    )


def random_words(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 32, count, dtype=np.uint32)


@EACH
@BOTH
def test_local_memory_and_barriers(processor, translated):
    data = np.random.default_rng(1).normal(size=128).astype(np.float32)
    out = np.zeros(128, dtype=np.float32)
    launch(processor, "reverse", [out, data], translated=translated)
    assert (out.reshape(2, 64) == data.reshape(2, 64)[:, ::-1]).all()
    sums = np.zeros(2, dtype=np.float32)
    launch(processor, "group_sum", [sums, data], translated=translated)
    assert np.allclose(sums, data.reshape(2, 64).sum(1), rtol=1e-5)


@EACH
@BOTH
def test_work_item_and_workgroup_ids(processor, translated):
    out = np.zeros(8 * 16, dtype=np.uint32)
    launch(processor, "ids", [out], (2, 2, 2), (4, 2, 2), translated)
    groups = np.arange(8)
    items = np.arange(16)
    packed_groups = (groups % 2) << 12 | (groups // 2 % 2) << 16 | (groups // 4) << 20
    packed_items = items % 4 | items // 4 % 2 << 4 | items // 8 << 8
    assert (out.reshape(8, 16) == packed_groups[:, None] | packed_items).all()


@EACH
@BOTH
def test_last_workgroup_may_be_smaller(processor, translated):
    data = np.arange(128, dtype=np.float32)
    out = np.full(128, -1, dtype=np.float32)
    launch(
        processor,
        "lanes",
        [np.zeros(1024, np.uint32), data.view(np.uint32)],
        translated=translated,
        grid=(70, 1, 1),
    )
    launch(processor, "reverse", [out, data], translated=translated, grid=(100, 1, 1))
    assert (out[:64] == data[63::-1]).all()
    assert (out[100:] == -1).all()


@EACH
@BOTH
def test_local_atomics(processor, translated):
    data = random_words(128)
    out = np.zeros(16, dtype=np.uint32)
    launch(processor, "local_atomics", [out, data], translated=translated)
    for group, part in enumerate(data.reshape(2, 64)):
        total = int(part.astype(object).sum())
        wide = (total << 20) & (1 << 64) - 1
        expected = [
            total & 0xFFFFFFFF,
            part.max(),
            np.bitwise_xor.reduce(part),
            part.min(),
            wide & 0xFFFFFFFF,
            wide >> 32,
        ]
        assert out[8 * group : 8 * group + 6].tolist() == [int(x) for x in expected]


@EACH
@BOTH
def test_global_atomics(processor, translated):
    data = random_words(128)
    out = np.zeros(8 + 128, dtype=np.uint32)
    out[[1, 3, 6]] = 0x80000000, 1000, 7
    launch(processor, "global_atomics", [out, data], translated=translated)
    total = int(data.astype(object).sum())
    assert out[0] == total & 0xFFFFFFFF
    assert out[1:2].view(np.int32)[0] == data.view(np.int32).max()
    assert out[2] == np.bitwise_or.reduce(data)
    assert out[4:6].view(np.uint64)[0] == (total << 8) & (1 << 64) - 1
    assert out[6] in data
    assert out[7:8].view(np.float32)[0] == 64.0
    assert sorted(out[8:]) == list(range(1000 - 127, 1001)) and out[3] == 1000 - 128


@EACH
@BOTH
def test_other_lanes(processor, translated):
    data = random_words(64)
    out = np.zeros((64, 8), dtype=np.uint32)
    launch(processor, "lanes", [out.reshape(-1), data], (1, 1, 1), translated=translated)
    size = 64 if processor == "gfx942" else 32
    lanes = np.arange(64)
    place, wave = lanes % size, lanes // size * size
    wanted = (lanes * 5 + 3) % 32
    assert (out[:, 0] == data[wave + wanted]).all()
    assert (out[:, 1] == data[wave + 5]).all() and (out[:, 2] == data[wave]).all()
    assert (out[:, 3] == data[lanes ^ 1]).all()
    below = [int(word) & (1 << min(p, 32)) - 1 for word, p in zip(data, place, strict=True)]
    bits = np.array([each.bit_count() + 1 for each in below])
    assert (out[:, 4] == bits).all()
    assert (out[:, 5] == np.where(lanes % 16 == 0, 77, data[lanes - 1])).all()
    assert (out[:, 6] == data[lanes ^ 3]).all()
    pushed = np.zeros(64, dtype=np.uint32)
    pushed[wave + wanted] = data
    assert (out[:, 7] == pushed).all()


@EACH
@BOTH
@pytest.mark.parametrize("level", [0, 1])
def test_pointers_into_any_memory(processor, translated, level):
    data = random_words(64)
    out = np.zeros(64, dtype=np.uint32)
    launch(processor, "generic_pointer", [out, data], (1, 1, 1), translated=translated, level=level)
    mine = np.stack([data + 5, *(np.full(64, n, np.uint32) for n in (2, 3, 4))])
    lanes = np.arange(64)
    assert (out == np.where(data & 1, mine[0] + mine[lanes & 3, lanes], 16)).all()


def bfloat(array: np.ndarray) -> np.ndarray:
    return (array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


@EACH
@BOTH
def test_matrix_products(processor, translated):
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 16, 16)).astype(np.float16)
    out = np.zeros((16, 16), dtype=np.float32)
    lanes = 64 if processor == "gfx942" else 32
    kind = "mfma" if processor == "gfx942" else "wmma"
    launch(
        processor,
        f"{kind}_f16",
        [out.reshape(-1), a.reshape(-1), b.reshape(-1)],
        (1, 1, 1),
        (lanes, 1, 1),
        translated,
    )
    rows = np.arange(16)[:, None]
    start = {"gfx1100": rows // 2, "gfx1201": rows % 8, "gfx942": rows % 4}[processor]
    assert np.allclose(out, a.astype(np.float64) @ b.astype(np.float64) + start, atol=1e-4)
    x, y = bfloat(a), bfloat(b)
    launch(
        processor,
        f"{kind}_bf16",
        [out.reshape(-1), x.reshape(-1), y.reshape(-1)],
        (1, 1, 1),
        (lanes, 1, 1),
        translated,
    )
    exact = [(each.astype(np.uint32) << 16).view(np.float32).astype(np.float64) for each in (x, y)]
    assert np.allclose(out, exact[0] @ exact[1], atol=1e-4)


@BOTH
def test_integer_matrix_product(translated):
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 256, (2, 16, 16), dtype=np.uint8)
    out = np.zeros((16, 16), dtype=np.int32)
    launch(
        "gfx1100",
        "wmma_i8",
        [out.reshape(-1), a.reshape(-1), b.reshape(-1)],
        (1, 1, 1),
        (32, 1, 1),
        translated,
    )
    assert (out == a.view(np.int8).astype(np.int32) @ b.astype(np.int32).T).all()


@EACH
@BOTH
def test_a_fault_names_everything(processor, translated):
    data = np.zeros(16, dtype=np.float32)
    with pytest.raises(
        MemoryFault, match=r"reverse, workgroup \(0, 0, 0\), wave 0, at 0x\w+ .*global_.*: read of 4 bytes"
    ):
        launch(processor, "reverse", [np.zeros(64, np.float32), data], (1, 1, 1), translated=translated)


def test_a_kernel_that_never_ends_can_be_stopped():
    image = assemble.assemble("forever: s_branch forever", "gfx1100")
    dispatch = Dispatch(image.kernel("kernel"), HostMemory(), (0, 0), (4, 1, 1), (32, 1, 1))
    asked = []
    with pytest.raises(
        EmulationError, match=r"kernel, workgroup \(0, 0, 0\), wave 0, at 0x0 .*s_branch.*stopped"
    ):
        run.run(dispatch, 2, lambda: asked.append(1) or len(asked) > 3)


UNWRITTEN = {
    "v_add_u32 v1, v0, v7": r"v7 is read in lane 0 and was never written",
    "s_add_u32 s5, s0, s9": r"s9 is read and was never written",
    "v_mov_b32 v1, 0\n ds_load_b32 v2, v1": r"lane 0: local memory at 0x0 was never written",
}


@pytest.mark.parametrize("code", UNWRITTEN)
def test_checked_mode_finds_what_was_never_written(code):
    image = assemble.assemble(code.replace("v_add_u32", "v_add_nc_u32"), "gfx1100", lds=16)
    dispatch = Dispatch(image.kernel("kernel"), HostMemory(), (0, 0), (1, 1, 1), (32, 1, 1), checked=True)
    with pytest.raises(EmulationError, match=UNWRITTEN[code]):
        run.run(dispatch)


@EACH
@pytest.mark.parametrize("name", ["reverse", "group_sum"])
def test_checked_mode_accepts_what_is_in_order(processor, name):
    data = np.arange(128, dtype=np.float32)
    launch(processor, name, [np.zeros(128, np.float32), data], checked=True)
