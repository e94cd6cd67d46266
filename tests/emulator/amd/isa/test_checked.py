"""What checked mode finds, and what it leaves alone."""

import argparse

import numpy as np
import pytest

from tests.emulator.amd.isa import test_execute
from tiny.emulator.amd import bench
from tiny.emulator.amd.isa import interpreter, run
from tiny.emulator.amd.isa.checked import Checked
from tiny.emulator.amd.isa.state import EmulationError, Group, iter_groups

LOAD = "s_load_b64 s[2:3], s[0:1], 0x0\n v_lshlrev_b32 v1, 2, v0\n"
EXEC = "s_mov_b32 exec_lo, {}\n"
FIRST_WAVE = "v_readfirstlane_b32 s4, v0\n s_cmp_eq_u32 s4, 0\n"
STORE = "global_store_b32 v1, {}, s[2:3]\n"


def made(text, arguments=("256",), size=64, lds=256, scratch=16, groups=1, mcpu="gfx1100"):
    options = argparse.Namespace(
        mcpu=mcpu, kernel=None, groups=(groups, 1, 1), size=(size, 1, 1), lds=lds, scratch=scratch,
        arguments=[bench.argument(each) for each in arguments],
    )
    return bench.Bench(bench.object_code("kernel.s", text, options), options)


def check(text, **options):
    """Run it; the bench."""
    loaded = made(text, **options)
    dispatch = loaded.dispatch()
    for place in iter_groups(dispatch.groups):
        Checked(Group(dispatch, place)).run()
    return loaded


FOUND = {
    "a vector register is stored": (LOAD + STORE.format("v9"), "what is stored depends on v9, which nothing"),
    "a register is copied, then stored": (
        LOAD + "v_mov_b32 v2, v9\n v_add_u32 v3, 1, v2\n" + STORE.format("v3"),
        "lane 0: what is stored depends on v3, which depends on v9, which nothing has written",
    ),
    "a lane that was not active": (
        LOAD + EXEC.format(1) + "v_mov_b32 v2, 0\n" + EXEC.format(3) + STORE.format("v2"),
        "lane 1: what is stored depends on v2",
    ),
    "a scalar register is stored": (
        LOAD + "v_mov_b32 v2, s9\n" + STORE.format("v2"),
        "v2, which depends on s9, which nothing has written",
    ),
    "half of a register": (
        LOAD + "v_mov_b16 v2.l, 0\n" + STORE.format("v2"), "what is stored depends on v2",
    ),
    "an address": ("global_load_b32 v2, v[4:5], off", "the address in lane 0 depends on v5 and v4"),
    "the address of a scalar load": ("s_load_b32 s4, s[8:9], 0x0", "the address depends on s9 and s8"),
    "a branch on SCC": (
        "s_cmp_eq_u32 s9, 0\n s_cbranch_scc0 end\n end:", "the branch depends on scc, which depends on s9",
    ),
    "a branch on VCC": (
        "v_cmp_lt_f32 vcc_lo, v9, v0\n s_cbranch_vccz end\n end:",
        "the branch depends on vcc, which depends on v9",
    ),
    "EXEC": ("v_cmpx_lt_u32 v9, v0", "EXEC depends on v9"),
    "EXEC from a scalar register": ("s_mov_b32 exec_lo, s9", "EXEC depends on s9"),
    "the number of a lane": ("v_writelane_b32 v2, 0, s9", "the number of a lane or register depends on s9"),
    "LDS": (
        LOAD + "ds_load_b32 v2, v1\n" + STORE.format("v2"),
        "what is stored depends on v2, which depends on lds memory at 0x0, which nothing has written",
    ),
    "a byte of LDS": (
        LOAD + "v_mov_b32 v3, 0\n ds_store_b8 v1, v3\n ds_load_b32 v2, v1\n" + STORE.format("v2"),
        "v2, which depends on lds memory",
    ),
    "scratch": (
        LOAD + "scratch_load_b32 v2, off, off offset:4\n" + STORE.format("v2"), "scratch memory at 0x4",
    ),
    "an atomic's operand": (LOAD + "global_atomic_add_u32 v1, v9, s[2:3]", "what is stored depends on v9"),
    "a jump": ("s_setpc_b64 s[8:9]", "the jump depends on s8"),
    "a misaligned atomic": (
        LOAD + "v_mov_b32 v1, 2\n v_mov_b32 v2, 0\n global_atomic_add_u32 v1, v2, s[2:3]",
        "lane 0: an atomic at 0x100000002, which is not aligned to 4",
    ),
    "a misaligned atomic of LDS": (
        "v_mov_b32 v1, 4\n v_mov_b32 v2, 0\n v_mov_b32 v3, 0\n ds_add_u64 v1, v[2:3]",
        "an atomic at 0x4, which is not aligned to 8",
    ),
    "a misaligned wide access of LDS": (
        "v_mov_b32 v1, 2\n ds_load_b64 v[2:3], v1",
        "an LDS access of 8 bytes at 0x2, which is not aligned to 4",
    ),
    "a misaligned scalar load": (
        "s_load_b64 s[2:3], s[0:1], 0x0\n s_or_b32 s2, s2, 2\n s_load_b32 s4, s[2:3], 0x0",
        "a scalar load at 0x100000002, which is not aligned to 4; its low bits are dropped",
    ),
    "a barrier that a wave passes by": (
        FIRST_WAVE + "s_cbranch_scc1 end\n s_barrier\n end:",
        "wave 1, at 0xc (0x7f000000000c): s_barrier: a barrier that 1 of 2 waves never reach: wave 1 at 0xc, "
        "wave 0 ended at 0x14",
    ),
    "waves at different barriers": (
        FIRST_WAVE + "s_cbranch_scc1 end\n s_barrier\n s_endpgm\n end:\n s_barrier",
        "waves wait at different barriers: wave 0 at 0x14, wave 1 at 0xc",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_finds(name):
    text, message = FOUND[name]
    with pytest.raises(EmulationError) as error:
        check(text)
    assert message in str(error.value), str(error.value)
    assert str(error.value).startswith("kernel, workgroup (0, 0, 0), wave ")


ALLOWED = {
    "a register that is copied and not used": (
        "v_mov_b32 v2, v9\n s_mov_b64 s[4:5], s[8:9]\n v_add_f32 v3, v2, v9"
    ),
    "what a selection leaves out": (
        LOAD + "s_mov_b32 vcc_lo, 0\n v_cndmask_b32 v2, 1.0, v9, vcc_lo\n" + STORE.format("v2")
    ),
    "bits that are masked": LOAD + "v_and_b32 v2, 0, v9\n" + STORE.format("v2"),
    "bits that are shifted out": (
        LOAD + "v_mov_b16 v2.l, 7\n v_lshlrev_b32 v3, 16, v2\n" + STORE.format("v3")
    ),
    "the defined half": LOAD + "v_mov_b16 v2.l, 7\n global_store_b16 v1, v2, s[2:3]\n",
    "both halves": LOAD + "v_mov_b16 v2.l, 7\n v_mov_b16 v2.h, 7\n" + STORE.format("v2"),
    "spilled and read back": (
        "scratch_store_b32 off, v9, off\n scratch_load_b32 v2, off, off\n v_mov_b32 v3, v2"
    ),
    "LDS that another wave wrote": (
        LOAD + "v_mov_b32 v3, v0\n ds_store_b32 v1, v3\n s_barrier\n v_xor_b32 v2, 0x80, v1\n"
        "ds_load_b32 v2, v2\n" + STORE.format("v2")
    ),
    "an inactive lane": (
        LOAD + "s_mov_b32 exec_lo, 3\n v_mov_b32 v2, 0\n" + STORE.format("v2") + "s_cbranch_execz end\n end:"
    ),
    "a comparison in active lanes": "v_cmp_eq_u32 vcc_lo, 0, v0\n s_cbranch_vccz end\n end:",
    "a dword at an odd address of LDS": (
        "v_mov_b32 v1, 2\n v_mov_b32 v2, 0\n ds_store_b32 v1, v2\n ds_load_b32 v3, v1"
    ),
    "unaligned global access": (
        "s_load_b64 s[2:3], s[0:1], 0x0\n v_mov_b32 v1, 2\n global_load_b64 v[2:3], v1, s[2:3]"
    ),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_leaves_alone(name):
    check(ALLOWED[name])


@pytest.mark.parametrize("processor", test_execute.PROCESSORS)
@pytest.mark.parametrize("level", [pytest.param(0, marks=pytest.mark.slow), 1, 2])
def test_compiled_kernels_are_clean_and_compute_the_same(processor, level, monkeypatch):
    """What clang emits reads undefined registers, and nothing depends on them."""

    def checked(dispatch, cancelled=None, first=0):
        for place in iter_groups(dispatch.groups):
            Checked(Group(dispatch, place)).run()

    monkeypatch.setattr(interpreter, "run", checked)
    test_execute.check_all(test_execute.kernel_names()[level::12], processor, level, translated=False)


@pytest.mark.parametrize("groups", [1, 3])
def test_what_is_left_runs_translated_when_time_is_up(groups):
    """From the middle of a loop, of a barrier, of a workgroup: the result is that of the interpreter."""
    text = LOAD + """
      s_mov_b32 s9, 0
      v_mov_b32 v2, 1.0
    loop:
      v_fma_f32 v2, v2, 0.5, 1.0
      ds_store_b32 v1, v2
      s_barrier
      ds_load_b32 v3, v1
      scratch_store_b32 off, v3, off
      scratch_load_b32 v2, off, off
      s_add_u32 s9, s9, 1
      s_cmp_lt_u32 s9, 100
      s_cbranch_scc1 loop
    """ + STORE.format("v2")
    results = []
    for seconds in (None, 0.0):
        loaded = made(text, groups=groups)
        run.run_checked(loaded.dispatch(), 1, None, seconds)
        results.append(loaded.arguments[0].data.copy())
    assert results[0].tobytes() == results[1].tobytes()
    assert np.allclose(results[0].view(np.float32), 2.0)


def test_an_endless_loop_is_stopped_in_either():
    for seconds in (None, 0.0):
        calls = []

        def cancelled(calls=calls):
            calls.append(0)
            return len(calls) > 3

        loaded = made("again:\n s_branch again")
        with pytest.raises(EmulationError, match="s_branch .*: stopped"):
            run.run_checked(loaded.dispatch(), 1, cancelled, seconds)
