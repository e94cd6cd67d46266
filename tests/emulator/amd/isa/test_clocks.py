"""Clocks and hardware registers that a wave reads, and what it may not change."""

import time

import numpy as np
import pytest

from tests.emulator.amd.isa import compiled
from tiny.emulator.amd.isa import assemble
from tiny.emulator.amd.isa.clock import REALTIME_HZ
from tiny.emulator.amd.isa.state import EmulationError

STORE = """
v_mov_b32 v2, s20
v_mov_b32 v3, s21
v_mov_b32 v4, s22
v_mov_b32 v5, s23
v_mov_b32 v1, 0
global_store_dwordx4 v1, v[2:5], s[4:5]
"""
START = "s_load_dwordx2 s[4:5], s[0:1], 0x0\n"
REALTIME = "s_sendmsg_rtn_b64 {}, sendmsg(MSG_RTN_GET_REALTIME)"
READS = {
    "gfx1100": ("s_waitcnt lgkmcnt(0)", REALTIME),
    "gfx1201": ("s_wait_kmcnt 0", REALTIME),
    "gfx942": ("s_waitcnt lgkmcnt(0)", "s_memrealtime {}"),
}


def run(processor: str, body: str, translated: bool) -> np.ndarray:
    image = assemble.assemble(START + body + STORE, processor)
    out = np.zeros(4, dtype=np.uint32)
    compiled.launch(image, "kernel", [out], (1, 1, 1), (1, 1, 1), translated)
    return out


@pytest.mark.parametrize("processor", READS)
@pytest.mark.parametrize("translated", [False, True], ids=["interpreted", "translated"])
def test_the_constant_clock_runs_at_100_mhz(processor, translated):
    wait, read = READS[processor]
    body = "\n".join((read.format("s[20:21]"), wait, read.format("s[22:23]"), wait, ""))
    run(processor, body, translated)  # translated and compiled now
    before = time.monotonic_ns() * REALTIME_HZ // 10**9
    first, second = map(int, run(processor, body, translated).view(np.uint64))
    after = time.monotonic_ns() * REALTIME_HZ // 10**9
    assert before <= first <= second <= after


@pytest.mark.parametrize("translated", [False, True], ids=["interpreted", "translated"])
def test_the_core_clock_counts(translated):
    body = "s_memtime s[20:21]\ns_waitcnt lgkmcnt(0)\ns_memtime s[22:23]\ns_waitcnt lgkmcnt(0)\n"
    first, second = map(int, run("gfx942", body, translated).view(np.uint64))
    assert 0 < first < second
    halves = (20, "LO"), (21, "HI")
    wide = "".join(f"s_getreg_b32 s{n}, hwreg(HW_REG_SHADER_CYCLES_{half})\n" for n, half in halves)
    wide += wide.replace("s20", "s22").replace("s21", "s23")
    first, second = map(int, run("gfx1201", wide, translated).view(np.uint64))
    assert first >> 32 and second - first & (1 << 64) - 1 < 1 << 33
    narrow = "s_getreg_b32 s20, hwreg(HW_REG_SHADER_CYCLES)\ns_mov_b32 s21, 0\ns_mov_b64 s[22:23], 0\n"
    assert run("gfx1100", narrow, translated)[0] < 1 << 20


@pytest.mark.parametrize("processor", READS)
@pytest.mark.parametrize("translated", [False, True], ids=["interpreted", "translated"])
def test_mode_is_read_as_it_was_set(processor, translated):
    body = """s_setreg_imm32_b32 hwreg(1, 0, 8), 0x5a
s_getreg_b32 s20, hwreg(1, 0, 8)
s_mov_b32 s21, 0x3
s_setreg_b32 hwreg(1, 2, 2), s21
s_getreg_b32 s21, hwreg(1, 0, 8)
s_round_mode 0x1
s_getreg_b32 s22, hwreg(1, 0, 4)
s_denorm_mode 2
s_getreg_b32 s23, hwreg(1, 4, 4)
"""
    if processor == "gfx942":
        body = body.replace("s_round_mode 0x1", "s_setreg_imm32_b32 hwreg(1, 0, 4), 1")
        body = body.replace("s_denorm_mode 2", "s_setreg_imm32_b32 hwreg(1, 4, 4), 2")
    assert run(processor, body, translated).tolist() == [0x5A, 0x5E, 1, 2]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("s_getreg_b32 s20, hwreg(HW_REG_HW_ID1)", "hardware register 23"),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 12, 4), 1", "bits 0x1000 of MODE"),
        ("s_setreg_imm32_b32 hwreg(HW_REG_STATUS, 0, 4), 1", "hardware register 2"),
        ("s_sendmsg_rtn_b64 s[20:21], sendmsg(MSG_RTN_GET_TMA)", "only MSG_RTN_GET_REALTIME"),
    ],
)
@pytest.mark.parametrize("translated", [False, True], ids=["interpreted", "translated"])
def test_what_is_not_emulated_is_an_error_with_kernel_wave_and_instruction(text, reason, translated):
    with pytest.raises(EmulationError, match=reason) as caught:
        run("gfx1100", text + "\n", translated)
    assert "kernel, workgroup (0, 0, 0), wave 0, at 0x8" in str(caught.value)
    assert text.split()[0] in str(caught.value)


def test_other_messages_are_refused():
    with pytest.raises(EmulationError, match="only MSG_RTN_GET_REALTIME as b64"):
        run("gfx1100", "s_sendmsg_rtn_b32 s20, sendmsg(MSG_RTN_GET_REALTIME)\n", False)
    with pytest.raises(EmulationError, match="this message"):
        run("gfx942", "s_sendmsg sendmsg(MSG_INTERRUPT)\n", False)
