"""`python -m tiny run-asm`."""

import pytest

from tiny.__main__ import main

PROGRAM = """
  s_load_b64 s[2:3], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_b32 v2, v1, s[2:3]
  s_waitcnt vmcnt(0)
  v_mul_u32_u24 v3, 3, v2
  global_store_b32 v1, v3, s[2:3]
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
