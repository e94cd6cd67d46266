"""The debugger's session in docs/emulator.md runs, and prints what stands there."""

import re
import shlex
from pathlib import Path

from tiny.__main__ import main

PAGE = Path(__file__).resolve().parents[3] / "docs" / "emulator.md"


def block(language: str) -> str:
    return re.search(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)[1]


def test_the_session_of_the_manual(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first, _, promised = block("console").partition("\n")
    commands = re.findall(r"^\(tiny\) (.*)$", promised, re.MULTILINE)
    arguments = shlex.split(first.removeprefix("$ python -m tiny "))
    Path("scale.s").write_text(block("asm"))
    Path(arguments[arguments.index("--commands") + 1]).write_text("\n".join(commands))
    assert len(commands) > 10 and main(arguments) == 0
    assert capsys.readouterr().out == promised


def test_checked_mode_stops_at_the_slip_by_itself(tmp_path, capsys):
    (tmp_path / "scale.s").write_text(block("asm"))
    (tmp_path / "commands").write_text("continue")
    arguments = ["--arg", "f32:0*16", "--arg", "f32:0..15", "--size", "16"]
    arguments += ["--checked", "--commands", str(tmp_path / "commands")]
    main(["debug", str(tmp_path / "scale.s"), *arguments])
    message = "global_store_b32 v1, v3, s[4:5]: v3 is read in lane 0 and was never written"
    assert message in capsys.readouterr().out
