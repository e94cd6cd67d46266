"""`python -m tiny run-asm`."""

import os
import subprocess
import sys

import pytest

from tiny.__main__ import main
from tiny.emulator.amd.isa.assemble import compiled
from tiny.toolchain import Source

PROGRAM = """
  s_load_b64 s[2:3], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_b32 v2, v1, s[2:3]
  s_waitcnt vmcnt(0)
  v_mul_u32_u24 v3, 3, v2
  global_store_b32 v1, v3, s[2:3]
"""

FIRST_WAVE = "v_readfirstlane_b32 s4, v0\n s_cmp_eq_u32 s4, 0\n"
FULL = """
.text
.globl plain
.p2align 8
.type plain,@function
plain:
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel plain
.amdhsa_next_free_vgpr 8
.amdhsa_next_free_sgpr 8
.end_amdhsa_kernel
"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "kernel.s"
    path.write_text(PROGRAM)
    return str(path)


@pytest.mark.parametrize("translate", [[], ["--translate"]])
def test_shows_registers_and_memory(source, capsys, translate):
    assert main(["run-asm", source, "--buffer", "64", "--size", "16", *translate]) == 0
    text = capsys.readouterr().out
    assert "00000000 00000003 00000006 00000009" in text.split("buffer 0")[1]
    assert translate or "v3\n       0 00000000 00000003" in text
    assert "a5a5a5a5" not in text                           # lanes that no work-item of the group has


def test_shows_each_instruction(source, capsys):
    assert main(["run-asm", source, "--buffer", "64", "--size", "16", "--trace"]) == 0
    assert "     8  v_lshlrev_b32_e32 v1, 2, v0" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text, message",
    [
        ("v_bogus v0", "invalid instruction"),
        ("v_mov_b32 v0, 1\n s_sethalt 1", "s_sethalt"),
        ("v_mov_b32 v0, 0\n v_mov_b32 v1, 0\n global_load_b32 v2, v[0:1], off", "read of 4 bytes at 0x0"),
    ],
)
def test_says_what_is_wrong(tmp_path, capsys, text, message):
    path = tmp_path / "wrong.s"
    path.write_text(text)
    assert main(["run-asm", str(path)]) == 2
    assert message in capsys.readouterr().err


def test_checked_mode(tmp_path, capsys):
    path = tmp_path / "unwritten.s"
    path.write_text("v_mov_b32 v1, v9")
    assert main(["run-asm", str(path), "--checked"]) == 2
    assert "v9 is read in lane 0 and was never written" in capsys.readouterr().err


def test_typed_arguments_are_shown_as_they_were_given(tmp_path, capsys):
    path = tmp_path / "kernel.s"
    path.write_text("""
      s_load_b128 s[4:7], s[0:1], 0x0
      v_lshlrev_b32 v1, 1, v0
      s_waitcnt lgkmcnt(0)
      global_load_u16 v2, v1, s[4:5]
      s_waitcnt vmcnt(0)
      v_mad_u32_u24 v2, v2, 1, s6
      global_store_b16 v1, v2, s[4:5]
    """)
    assert main(["run-asm", str(path), "--size", "4", "--arg", "u16:1..4", "--arg", "=100"]) == 0
    assert capsys.readouterr().out.endswith("buffer 0\n  0x0:  101 102 103 104\n")


def test_a_code_object_instead_of_assembly(tmp_path, capsys):
    path = tmp_path / "kernel.co"
    path.write_bytes(compiled(Source("kernel", PROGRAM), "gfx1100", arguments=8))
    assert main(["run-asm", str(path), "--size", "4", "--arg", "u32:1..4"]) == 0
    assert capsys.readouterr().out.endswith("buffer 0\n  0x0:   3  6  9 12\n")


@pytest.mark.parametrize("card", ["gfx1100", "gfx1201"])
def test_on_a_card_by_way_of_its_queues(tmp_path, card):
    """AMD=1: through the driver, here to an emulated card; the address of the arguments is in s[0:1] too."""
    path = tmp_path / "kernel.s"
    path.write_text(PROGRAM.replace("s_waitcnt", "//"))      # gfx1201 has other ones; emulated loads are over
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME") if name in os.environ}
    command = [sys.executable, "-m", "tiny", "run-asm", str(path), "--size", "32", "--groups", "1", "--arg",
               "u32:0..31"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200,
                          env=kept | {"AMD": "1", "EMULATE": card})
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:2] == [f"ran on AMD, emulated {card}", "buffer 0"]
    shown = [f"{4 * n:#x}: " * (not n % 8) + str(3 * n) for n in range(32)]
    assert " ".join(lines[2:]).split() == " ".join(shown).split()


@pytest.mark.parametrize("options, message", [
    (["--trace"], "--trace needs the interpreter; unset AMD"),
    (["--groups", "1,2"], "--groups and --size go along x only on a card"),
    ([], "takes 0 bytes of arguments, 1 of 8 bytes were given"),
])
def test_what_a_card_cannot_do_is_said(tmp_path, options, message):
    path = tmp_path / "kernel.s"
    path.write_text(FULL)
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME") if name in os.environ}
    command = [sys.executable, "-m", "tiny", "run-asm", str(path), "--arg", "64", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200,
                          env=kept | {"AMD": "1", "EMULATE": "1"})
    assert done.returncode == 2 and done.stderr.startswith("run-asm: ") and message in done.stderr


def test_checked_mode_knows_barriers_and_undefined_bits(tmp_path, capsys):
    path = tmp_path / "kernel.s"
    path.write_text(FIRST_WAVE + "s_cbranch_scc1 end\n s_barrier\n end:")
    assert main(["run-asm", str(path), "--size", "64"]) == 0
    assert main(["run-asm", str(path), "--size", "64", "--checked"]) == 2
    assert "a barrier that 1 of 2 waves never reach" in capsys.readouterr().err


def test_an_error_of_the_assembler_names_the_file_and_its_own_line(tmp_path, capsys):
    path = tmp_path / "bad.s"
    path.write_text("  s_nop 0\n  v_nonsense v1\n")
    assert main(["run-asm", str(path)]) == 2
    told = capsys.readouterr().err
    assert told.startswith("run-asm: bad.s: ") and "\nbad.s:2\n" in told and ">    2 |   v_nonsense" in told


@pytest.mark.parametrize("command", ["run-asm", "debug"])
def test_a_file_that_is_not_there_is_named(command, tmp_path, capsys):
    path = str(tmp_path / "nothing.s")
    assert main([command, path]) == 2
    assert capsys.readouterr().err == f"{command}: {path}: No such file or directory\n"


@pytest.mark.parametrize("command", ["run-asm", "debug"])
def test_a_file_that_is_neither_text_nor_a_code_object_is_named(command, tmp_path, capsys):
    path = tmp_path / "picture.s"
    path.write_bytes(b"s_\xff\xd8")
    assert main([command, str(path)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"{command}: {path}: neither text nor a code object: byte 0xff at 2")


@pytest.mark.parametrize("size", ["0", "-4", "99999999999999999"])
def test_a_buffer_of_a_size_that_no_memory_has_is_refused(size, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["run-asm", "kernel.s", f"--arg={size}"])
    assert ended.value.code == 2
    assert f"a buffer of {size} bytes; 1 to 1073741824 go" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("command", ["run-asm", "debug"])
def test_help_shows_the_forms_of_an_argument_one_below_the_other(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["=5", "=f32:1.5", "a", "value,", "not", "a", "buffer"] in lines


ASKING = """
.text
.globl asking
.p2align 8
.type asking,@function
asking:
  s_mov_b32 s20, s{register}
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel asking
.amdhsa_next_free_vgpr 8
.amdhsa_next_free_sgpr 32
.amdhsa_user_sgpr_kernarg_segment_ptr 1
.amdhsa_private_segment_fixed_size 48
{more}
.end_amdhsa_kernel
"""
PRELOAD = """.amdhsa_accum_offset 8
.amdhsa_user_sgpr_kernarg_preload_length 2
.amdhsa_user_sgpr_kernarg_preload_offset 1"""


@pytest.mark.parametrize("processor, register, more, value", [
    ("gfx1100", 2, ".amdhsa_user_sgpr_private_segment_size 1", 48),
    ("gfx942", 3, PRELOAD, 0x22222222),
])
def test_a_kernel_finds_every_register_it_asks_for(tmp_path, capsys, processor, register, more, value):
    path = tmp_path / "asking.s"
    path.write_text(ASKING.format(register=register, more=more))
    arguments = ["--arg", "=0x1111111100000000", "--arg", "=0x22222222"]
    assert main(["run-asm", str(path), "--mcpu", processor, *arguments]) == 0
    assert f"s20 {value:#010x}" in capsys.readouterr().out


def test_a_damaged_code_object_is_named(tmp_path, capsys):
    path = tmp_path / "cut.o"
    path.write_bytes(compiled(Source("cut", "s_nop 0"), "gfx1100")[:200])
    assert main(["run-asm", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"run-asm: {path}: the section table, ")
