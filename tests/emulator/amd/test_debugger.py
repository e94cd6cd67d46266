"""`python -m tiny debug`: sessions from scripts, whose output is the same each time."""

import os
import pty
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tiny.__main__ import main
from tiny.emulator.amd import formats
from tiny.emulator.amd.bench import argument

DOUBLING = """
  s_load_b64 s[2:3], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_b32 v2, v1, s[2:3]
  s_mov_b32 s4, 0
loop:
  v_mul_f32 v2, 2.0, v2
  s_add_u32 s4, s4, 1
  s_cmp_lt_u32 s4, 3
  s_cbranch_scc1 loop
  ds_store_b32 v1, v2
  s_barrier
  ds_load_b32 v3, v1
  global_store_b32 v1, v3, s[2:3]
"""
CALL = """
  s_getpc_b64 s[8:9]
  s_add_u32 s8, s8, function-.+0
  s_addc_u32 s9, s9, 0
  v_mov_b32 v1, 1
  s_swappc_b64 s[10:11], s[8:9]
  v_mov_b32 v3, 3
  s_endpgm
function:
  v_mov_b32 v2, 2
  s_setpc_b64 s[10:11]
"""


@pytest.fixture
def session(tmp_path, capsys):
    """Function of (assembly, commands, options) -> (exit code, what was printed)."""

    def run(text, commands, *options):
        (tmp_path / "kernel.s").write_text(text)
        (tmp_path / "commands").write_text("\n".join(commands))
        code = main(["debug", str(tmp_path / "kernel.s"), "--commands", str(tmp_path / "commands"), *options])
        return code, capsys.readouterr().out

    return run


@pytest.fixture
def doubling(session):
    """The transcript of commands on the doubling kernel, two waves, without its first two lines."""

    def run(*commands):
        options = ["--arg", "f32:0..63", "--lds", "256", "--size", "64", "--groups", "1"]
        code, out = session(DOUBLING, commands, *options)
        assert code == 0, out
        return out.split("\n", 2)[2]

    return run


def test_starts_at_the_first_instruction(session):
    code, out = session(DOUBLING, [], "--arg", "f32:0..63", "--size", "64")
    assert (code, out.splitlines()) == (0, [
        "kernel: gfx11, wave32, 1,1,1 groups of 64,1,1 work-items, 0 bytes of LDS, 0 of scratch",
        "group 0,0,0 wave 0 #0  0x0 <kernel>: s_load_b64 s[2:3], s[0:1], null",
    ])


@pytest.mark.parametrize("command, stops", [
    ("break loop", ["wave 0 #5  0x1c <loop>", "wave 0 #9  0x1c <loop>", "wave 0 #13  0x1c <loop>"]),
    ("break loop+4 wave 1", ["wave 1 #6  0x20 <loop+0x4>", "wave 1 #10  0x20 <loop+0x4>"]),
    ("break 0x38", ["wave 0 #19  0x38 <loop+0x1c>", "wave 1 #19  0x38 <loop+0x1c>", "has ended"]),
    ("break 0x7f0000000038 wave 1", ["wave 1 #19  0x38 <loop+0x1c>", "the kernel has ended"]),
    ("break #3", ["wave 0 #3  0x10 <kernel+0x10>", "wave 1 #3  0x10 <kernel+0x10>", "has ended"]),
    ("break ds_*", ["wave 0 #17  0x2c <loop+0x10>", "wave 1 #17  0x2c <loop+0x10>", "wave 0 #19 "]),
    ("break s_barrier", ["wave 0 #18 ", "wave 1 #18 ", "has ended"]),
    ("break wave 1", ["wave 1 #0  0x0 <kernel>", "has ended"]),
])
def test_breakpoints(doubling, command, stops):
    lines = [line for line in doubling(command, *["c"] * len(stops)).splitlines()
             if line.startswith(("group", "the kernel"))]
    assert all(stop in line for stop, line in zip(stops, lines, strict=True)), lines


def test_breakpoints_in_a_group(session):
    code, out = session("v_mov_b32 v1, 1", ["b group 1,1", "c", "c"], "--groups", "2,2")
    assert code == 0 and out.count("group 1,1,0 wave 0 #0") == 1 and out.endswith("the kernel has ended\n")


def test_stepping_and_registers(doubling):
    out = doubling("s 6", "registers s[2:3] v[1:2] scc pc", "step", "r v2 s4 u32", "r exec scc")
    assert out == """\
(tiny) s 6
group 0,0,0 wave 0 #6  0x20 <loop+0x4>: s_add_u32 s4, s4, 1
(tiny) registers s[2:3] v[1:2] scc pc
*s[2:3]   00000000 00000001
*v1       00000000 00000004 00000008 0000000c 00000010 00000014 00000018 0000001c ...
*v2       00000000 40000000 40800000 40c00000 41000000 41200000 41400000 41600000 ...
 scc      00000000
*pc       00000020
(tiny) step
group 0,0,0 wave 0 #7  0x24 <loop+0x8>: s_cmp_lt_u32 s4, 3
(tiny) r v2 s4 u32
 v2       0 1073741824 1082130432 1086324736 1090519040 1092616192 1094713344 1096810496 ...
*s4       1
(tiny) r exec scc
 exec     ffffffff
 scc      00000000
"""


def test_mode_is_that_of_the_kernel(session):
    code, out = session("s_denorm_mode 0\n s_nop 0", ["r mode", "s", "r mode"])
    assert code == 0 and re.search(r"^ mode     [0-9a-f]{6}f0$", out, re.MULTILINE)
    assert re.search(r"^\*mode     [0-9a-f]{6}00$", out, re.MULTILINE)


def test_lanes_that_are_inactive_stand_in_brackets(session):
    text = "s_mov_b32 exec_lo, -1\n v_mov_b32 v1, 0\n s_mov_b32 exec_lo, 0x3ff\n v_cvt_f32_u32 v1, v0\n" \
        "s_mov_b32 exec_lo, 5\n v_add_f32 v1, 1.0, v1"
    code, out = session(text, ["s 6", "lanes v1 f32", "r v1 f32"])
    assert code == 0 and out.split("(tiny) lanes v1 f32\n")[1] == """\
*v1
     0    1 (1)   3 (3) (4) (5) (6) (7)
     8  (8) (9) (0) (0) (0) (0) (0) (0)
    16  (0) (0) (0) (0) (0) (0) (0) (0)
    24  (0) (0) (0) (0) (0) (0) (0) (0)
(tiny) r v1 f32
*v1       1 (1) 3 (3) (4) (5) (6) (7) ...
"""


def test_memory_of_every_kind(doubling):
    out = doubling("barrier", "x lds 0x10 4 f32", "memory b0+4 3 f32", "x s[2:3] 2", "x args 1 u64", "bt",
                   "x v1@3+0x100000000 1 f32", "x lds 252")
    assert out == """\
(tiny) barrier
2 of 2 waves are at a barrier
group 0,0,0 wave 1 #19  0x38 <loop+0x1c>: ds_load_b32 v3, v1
(tiny) x lds 0x10 4 f32
0x10:  32 40 48 56
(tiny) memory b0+4 3 f32
0x100000004:  1 2 3
(tiny) x s[2:3] 2
0x100000000:  00000000 3f800000
(tiny) x args 1 u64
0x7e0000000000:  4294967296
(tiny) bt
  group 0,0,0 wave 0 #19  0x38 <loop+0x1c>: ds_load_b32 v3, v1  (at a barrier, exec 0xffffffff)
> group 0,0,0 wave 1 #19  0x38 <loop+0x1c>: ds_load_b32 v3, v1  (at a barrier, exec 0xffffffff)
(tiny) x v1@3+0x100000000 1 f32
0x10000008c:  35
(tiny) x lds 252
0xfc:  43fc0000
"""


def test_scratch_memory(session):
    text = "v_mov_b32 v1, 7\n scratch_store_b32 off, v1, off offset:4"
    code, out = session(text, ["w scratch 2 4", "c", "x scratch 2 0 2", "x scratch 2 8"], "--scratch", "8")
    assert code == 1
    assert "watchpoint 1: scratch 2 4 changed" in out and "0x0:  a5a5a5a5 00000007" in out
    assert out.endswith("error: scratch has 8 bytes; 128 at 0x8 lie outside\n")


def test_watchpoints(doubling):
    out = doubling("watch s4", "w b0+4 8", "w lds 0x80", "c", "c", "delete 1", "c", "c", "breakpoints")
    assert [line for line in out.splitlines() if line.startswith(("watch", "group"))] == [
        "watchpoint 1: s4",
        "watchpoint 2: 8 bytes of global at 0x100000004",
        "watchpoint 3: 4 bytes of lds at 0x80",
        "watchpoint 1: s4 changed",
        "group 0,0,0 wave 0 #5  0x1c <loop>: v_mul_f32_e32 v2, 2.0, v2",
        "watchpoint 1: s4 changed",
        "group 0,0,0 wave 0 #7  0x24 <loop+0x8>: s_cmp_lt_u32 s4, 3",
        "watchpoint 3: lds 0x80 changed",
        "group 0,0,0 wave 1 #18  0x34 <loop+0x18>: s_barrier",
        "watchpoint 2: b0+4 8 changed",
        "group 0,0,0 wave 0 #21  0x48 <loop+0x2c>: s_endpgm",
    ]
    assert out.endswith("2: watch b0+4 8\n3: watch lds 0x80\n")


def test_the_listing_marks_where_it_is(doubling):
    assert doubling("b 0x20", "s 5", "list", "l loop 2") == """\
(tiny) b 0x20
breakpoint 1: 0x20 at 0x20 <loop+0x4>
(tiny) s 5
group 0,0,0 wave 0 #5  0x1c <loop>: v_mul_f32_e32 v2, 2.0, v2
(tiny) list
loop:
=>      1c  v_mul_f32_e32 v2, 2.0, v2
  B     20  s_add_u32 s4, s4, 1
        24  s_cmp_lt_u32 s4, 3
        28  s_cbranch_scc1 65532 -> loop
        2c  ds_store_b32 v1, v2
        34  s_barrier
        38  ds_load_b32 v3, v1
        40  global_store_b32 v1, v3, s[2:3]
        48  s_endpgm
        4c  s_endpgm
(tiny) l loop 2
loop:
=>      1c  v_mul_f32_e32 v2, 2.0, v2
  B     20  s_add_u32 s4, s4, 1
""".replace("        4c  s_endpgm\n", doubling("list 0x4c 1").partition("\n")[2])


def test_next_steps_over_a_call(session):
    text = CALL.replace("function-.+0", "function-kernel-4")
    code, out = session(text, ["s 4", "n", "r v2", "s", "q"])
    assert code == 0 and ">: v_mov_b32_e32 v3, 3\n" in out and "*v2       00000002 00000002" in out


def test_set_changes_what_follows(session):
    commands = ["set s4 7", "set v1 1.5 f32", "set v2@3 -1", "s", "r s5 u32", "r v1 f32", "lanes v2 i32"]
    code, out = session("s_add_u32 s5, s4, 1\n v_mov_b32 v9, 0", commands)
    assert code == 0 and "*s5       8" in out and " v1       1.5 1.5" in out and " -1 " in out


def test_accumulation_registers_and_64_lanes_of_gfx942(session):
    text = "v_accvgpr_write_b32 a3, 7\n v_mov_b32 v1, 2.0\n s_mov_b64 exec, 3\n v_mov_b32 v1, 1.0"
    commands = ["s 4", "r a3 u32", "r exec", "lanes v1 f32"]
    code, out = session(text, commands, "--mcpu", "gfx942", "--size", "64")
    assert code == 0 and "gfx9, wave64" in out
    assert "\n*a3       7 7 (7)" in out and "\n*exec     00000003 00000000\n" in out
    lines = out.splitlines()
    assert lines[-8].split() == ["0", "1", "1", *["(2)"] * 6] and lines[-1].split() == ["56", *["(2)"] * 8]


def test_checked_mode_shows_a_barrier_that_a_wave_misses(session):
    text = "v_readfirstlane_b32 s4, v0\n s_cmp_eq_u32 s4, 0\n s_cbranch_scc1 end\n s_barrier\nend:"
    code, out = session(text, ["c", "bt"], "--size", "64", "--checked")
    assert "error: kernel, workgroup (0, 0, 0), wave 1, at 0xc (0x7f000000000c): s_barrier: a barrier" in out
    assert "wave 0 #4" in out and "(ended, exec" in out and "(at a barrier, exec" in out and code == 0
    assert session(text, ["c"], "--size", "64")[1].endswith("the kernel has ended\n")


def test_waves_can_be_selected(doubling):
    out = doubling("wave 1", "s 2", "wave 0", "s")
    assert [line for line in out.splitlines() if line.startswith("group")] == [
        "group 0,0,0 wave 1 #0  0x0 <kernel>: s_load_b64 s[2:3], s[0:1], null",
        "group 0,0,0 wave 1 #2  0xc <kernel+0xc>: s_waitcnt lgkmcnt(0)",
        "group 0,0,0 wave 0 #0  0x0 <kernel>: s_load_b64 s[2:3], s[0:1], null",
        "group 0,0,0 wave 0 #1  0x8 <kernel+0x8>: v_lshlrev_b32_e32 v1, 2, v0",
    ]


def test_an_error_of_the_kernel_is_looked_at_and_not_passed(session):
    text = "v_mov_b32 v0, 0\n v_mov_b32 v1, 0\n global_load_b32 v2, v[0:1], off\n s_nop 0"
    code, out = session(text, ["c", "r v0", "s", "c", "list"])
    assert "error: kernel, workgroup (0, 0, 0), wave 0, at 0x8 (0x7f0000000008): global_load_b32 v2" in out
    assert "read of 4 bytes at 0x0, which is not mapped" in out and "*v0       00000000" in out
    assert "list" not in out and code == 0                  # `continue` left it


@pytest.mark.parametrize("command, message", [
    ("brek loop", "unknown command 'brek'; did you mean break?"),
    ("frobnicate", "unknown command 'frobnicate'; there are barrier, break"),
    ("break lop", "break lop: neither a label nor a mnemonic; did you mean loop?"),
    ("break v_mul_f33", "did you mean v_mul_f32?"),
    ("break 0x10000000", "0x10000000: the code has 0x1000 bytes at 0x7f0000000000"),
    ("break loop wave 2", "wave 2: a workgroup has 2 waves"),
    ("break loop twice", "break loop twice: one place"),
    ("break loop group x", "group 'x': one to three numbers"),
    ("break #x", "'x' is no number"),
    ("registers v256", "v256: v registers are numbered 0 to 255"),
    ("registers v[3:2]", "the lower number first"),
    ("registers exex", "'exex' is no register; there are v3, v[3:6], s2"),
    ("lanes s3", "s3 is one value for all lanes; `registers s3` shows it"),
    ("lanes v3 f31", "there is no format 'f31'; there are hex"),
    ("lanes v3 f64", "v3 as f64 needs 2 registers a value"),
    ("lanes", "lanes: which register?"),
    ("memory b1", "there is no buffer b1; 1 were given with --arg"),
    ("memory 0x0", "read of 128 bytes at 0x0, which is not mapped"),
    ("memory lds 0x100", "lds has 256 bytes; 128 at 0x100 lie outside"),
    ("memory v1", "v1 differs from lane to lane; write v1@0 for lane 0"),
    ("memory v1@32", "lane '32': a wave has the lanes 0 to 31"),
    ("memory scratch", "scratch: of which lane, and where?"),
    ("memory", "where in global memory?"),
    ("memory b0 4 f33", "'f33': no format"),
    ("watch", "watch what?"),
    ("watch b0+256", "read of 4 bytes at 0x100000100"),
    ("delete 9", "there is no breakpoint or watchpoint '9'"),
    ("wave 5", "wave '5': the workgroup has the waves 0 to 1"),
    ("set v1", "set: a register, a value and maybe a format"),
    ("set v1 1.5", "'1.5' is no u32 value"),
    ("set v1 1 f64", "v1 has 4 bytes, a f64 value 8"),
    ("step x", "'x' is no number"),
    ("help brek", "unknown command 'brek'; did you mean break?"),
])
def test_a_refused_command_says_why_and_the_rest_goes_on(session, command, message):
    code, out = session(DOUBLING, [command, "where"], "--arg", "f32:0..63", "--lds", "256", "--size", "64")
    assert code == 1
    lines = out.splitlines()
    assert lines[2] == f"(tiny) {command}" and lines[3].startswith("error: ") and message in lines[3]
    assert lines[-1].startswith("group 0,0,0 wave 0 #0")


def test_commands_after_the_end_are_refused(session):
    code, out = session("v_mov_b32 v1, 1", ["c", "s"])
    assert code == 1 and out.endswith("error: the kernel has ended; `quit` leaves, or start it again\n")


def test_every_command_has_help(session):
    code, out = session(DOUBLING, ["help", "help examples", "h x"])
    listed = out.split("(tiny) help\n")[1].split("(tiny)")[0]
    for name in ("break", "step", "next", "continue", "barrier", "registers", "lanes", "memory", "list",
                 "waves", "watch", "quit"):
        assert f"\n{name}" in f"\n{listed}"
    assert code == 0 and "COUNT is 32 by default" in out


@pytest.mark.parametrize("file, options, message", [
    ("none.s", [], "No such file or directory"),
    ("wrong.s", [], "v_bogus"),
    ("right.s", ["--kernel", "other"], "right.s: there is no kernel other; there are kernel"),
    ("short.o", [], "short.o: not an ELF file: 4 bytes that start with 7f 45 4c 46"),
    ("program.py", [], "program.py: which kernel? --kernel NAME"),
    ("program.py", ["--kernel", "x:0"], "dispatches are counted from 1"),
])
def test_what_cannot_be_debugged(tmp_path, capsys, file, options, message):
    (tmp_path / "wrong.s").write_text("v_bogus v0")
    (tmp_path / "right.s").write_text("s_nop 0")
    (tmp_path / "short.o").write_bytes(b"\x7fELF")
    (tmp_path / "program.py").write_text("pass")
    (tmp_path / "commands").write_text("")
    options += ["--commands", str(tmp_path / "commands")]
    assert main(["debug", str(tmp_path / file), *options]) == 2
    error = capsys.readouterr().err
    assert error.startswith("debug: ") and message in error


# -- programs ------------------------------------------------------------------------------------------------
PROGRAM = """
import sys
from tiny import Tensor
a = Tensor([1.0, 2.0, 3.0, 4.0]).realize()
for _ in range(2):
    print((a * 3 + 1).tolist(), sys.argv[1:], flush=True)
"""


def debug_program(tmp_path, commands, *options, **settings):
    (tmp_path / "program.py").write_text(PROGRAM)
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", "tiny", "debug", str(tmp_path / "program.py"), *options],
        input="\n".join(commands), capture_output=True, text=True, timeout=200, env=kept | settings,
    )


@pytest.mark.parametrize("card", ["gfx1100", "gfx1201", "gfx942"])
def test_a_kernel_of_a_program(tmp_path, card):
    commands = ["b *_store_*", "c", "r v1 f32", "c", "c"]
    done = debug_program(tmp_path, commands, "--kernel", "map_*:2", "--", "x", EMULATE=card)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0] == lines[-1] == "[4.0, 7.0, 10.0, 13.0] ['x']"
    assert lines[1].startswith("map_4_float32: gfx")
    assert any(line.startswith("*v1       4 7 10 13 (") for line in lines)


def test_quit_ends_the_program_and_the_end_of_commands_does_not(tmp_path):
    done = debug_program(tmp_path, ["s 2", "q"], "--kernel", "map_4_float32")
    assert done.returncode == 0 and "[4.0" not in done.stdout
    done = debug_program(tmp_path, ["s 2"], "--kernel", "map_4_float32")
    assert done.returncode == 0 and done.stdout.count("[4.0, 7.0, 10.0, 13.0]") == 2


def test_a_kernel_that_never_runs_lists_those_that_did(tmp_path):
    done = debug_program(tmp_path, [], "--kernel", "softmax")
    assert done.returncode == 2
    assert "kernel softmax was dispatched never, 1 wanted; the program ran map_4_float32 (2)" in done.stderr


def test_a_person_at_a_terminal_has_prompt_and_editing(tmp_path):
    (tmp_path / "kernel.s").write_text("v_mov_b32 v1, 1")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tiny", "debug", str(tmp_path / "kernel.s")]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, b"s\n\nr v1\nq\n")                        # an empty line: the same again
    text = until(ours)
    assert process.wait(timeout=200) == 0
    assert b"`help` lists the commands" in text and b"the kernel has ended" in text
    assert b"v1       00000001" in text


def test_control_c_stops_a_loop_and_not_the_debugger(tmp_path):
    (tmp_path / "kernel.s").write_text("again:\n s_add_u32 s4, s4, 1\n s_branch again")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tiny", "debug", str(tmp_path / "kernel.s")]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = until(ours, b"(tiny) ")
    os.write(ours, b"c\n")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    text = until(ours, b"interrupted", b"(tiny) ")
    assert b"<kernel" in text                                # at either of its two instructions
    os.write(ours, b"r s4\nq\n")
    assert b"*s4" in until(ours, b"*s4")
    until(ours)
    assert process.wait(timeout=200) == 0


def until(terminal, *wanted):
    """What a terminal says, up to these texts; all of it without any."""
    text = b""
    try:
        while not wanted or not all(each in text for each in wanted):
            text += os.read(terminal, 4096)
    except OSError:
        pass
    return text


# -- arguments -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text, expected", [
    ("16", np.arange(4, dtype=np.uint32)),
    ("f32:1,2.5,-1", np.array([1, 2.5, -1], np.float32)),
    ("u8:0..3,255*2", np.array([0, 1, 2, 3, 255, 255], np.uint8)),
    ("i16:-1..1", np.array([-1, 0, 1], np.int16)),
    ("u32:-1", np.array([0xFFFFFFFF], np.uint32)),
    ("f16:1.5*2", np.array([1.5, 1.5], np.float16)),
    ("bf16:1,nan", np.array([0x3F80, 0x7FC0], np.uint16)),
    ("f64:0.1", np.array([0.1])),
    ("hex:0xdeadbeef", np.array([0xDEADBEEF], np.uint32)),
    ("=5", np.array([5], np.uint64)),
    ("=-1", np.array([-1], np.int64)),
    ("=f32:1.5", np.array([1.5, 0], np.float32)),
])
def test_arguments(text, expected):
    found = argument(text)
    assert found.data.tobytes() == expected.tobytes() and found.by_value == text.startswith("=")


def test_an_argument_from_a_file(tmp_path):
    (tmp_path / "data").write_bytes(b"abcd")
    assert argument(f"u8@{tmp_path / 'data'}").data.tobytes() == b"abcd"


@pytest.mark.parametrize("text, message", [
    ("x", "invalid literal"), ("f33:1", "did you mean f32?"), ("u8:256", "'256' is no u8 value"),
    ("f32:", "a buffer of 0 bytes"), ("u8:3..1", "is -1 values"), ("u8:1*0", "is 0 values"),
    ("@/nowhere", "No such file"), ("=x", "'x' is no i64 value"), ("0", "a buffer of 0 bytes"),
])
def test_wrong_arguments(text, message):
    with pytest.raises(Exception, match="write 64 .bytes., f32:1,2,0..7") as error:
        argument(text)
    assert message in str(error.value)


def test_formats_show_what_they_read():
    data = np.array([1.5, -2.0], np.float32).tobytes()
    assert formats.texts(data, "f32") == ["1.5", "-2"]
    assert formats.texts(data, "hex") == ["3fc00000", "c0000000"]
    assert formats.texts(data, "bf16") == ["0", "1.5", "0", "-2"]
    assert formats.texts(data[:5], "f32") == ["1.5"]


def test_an_error_of_the_program_itself_is_shown_with_its_traceback(tmp_path, capsys, monkeypatch):
    program = tmp_path / "wrong.py"
    program.write_text("raise ValueError('of the program')\n")
    monkeypatch.setattr("sys.argv", ["tiny"])
    monkeypatch.setattr("sys.path", sys.path[:])
    assert main(["debug", str(program), "--kernel", "any"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("Traceback") and 'wrong.py", line 1' in told
    assert told.endswith("ValueError: of the program\n")
    assert main(["debug", str(tmp_path / "none.py"), "--kernel", "any"]) == 2
    assert capsys.readouterr().err.startswith(f"debug: {tmp_path / 'none.py'}: no such file; name a")
