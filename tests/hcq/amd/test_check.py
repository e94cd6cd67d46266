"""`hwcheck` on emulated cards, on one that is broken, and against files that it wrote on other cards."""
import json
import time
from pathlib import Path

import pytest

from tests.hcq.amd.conftest import KINDS, opened
from tiny.emulator.amd.kernel import recorded
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq import device, hwcheck
from tiny.hcq.amd import check
from tiny.hcq.errors import DeviceUnavailable

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Emulated cards take as long as a busy machine lets them: compiling alone may be seconds."""
    monkeypatch.setattr(check, "LIMIT_MS", 120_000)


def stages(bench, count=len(check.STAGES)):
    lines = []
    return hwcheck.check(bench, check.STAGES[:count], lines.append), lines


@pytest.mark.parametrize("kind", KINDS)
def test_every_stage_goes_well_on_emulated_cards(kind):
    with opened(EmulatedRadeon([KINDS[kind]])) as card:
        done, lines = stages(check.Bench(card))
        assert all(stage["ok"] for stage in done) and len(done) == len(lines) == len(check.STAGES)
        assert lines[0].startswith("ok    topology") and f"arch {card.card.arch}" in lines[0]


def test_the_clock_is_right_on_a_busy_machine_and_wrong_is_wrong(amd, monkeypatch):
    """The timestamp may be taken at any moment between the host's two looks at its own clock."""
    pauses, submit = [0, 0.05, 0.05, 0], check.Bench.submit

    def slow(bench, build):
        time.sleep(pauses.pop(0))
        submit(bench, build)
        time.sleep(pauses.pop(0))
    monkeypatch.setattr(check.Bench, "submit", slow)
    assert check.clock(check.Bench(amd))["clock_mhz"] > 100
    pauses.extend([0] * 4)
    monkeypatch.setattr(amd, "clock_hz", 3 * amd.clock_hz)
    with pytest.raises(check.CheckFailed, match="the card's clock runs at"):
        check.clock(check.Bench(amd))


def test_two_cards_copy_from_each_other(pair):
    done, _ = stages(check.Bench(*pair))
    assert done[-1] == dict(name="peer_copies", ok=True, seconds=done[-1]["seconds"], found={}, problem="")


def test_the_first_stage_that_fails_ends_the_check(radeon, monkeypatch):
    monkeypatch.setattr(check, "LIMIT_MS", 30)
    with opened(radeon) as card:
        monkeypatch.setattr(radeon, "doorbell", lambda ring, position: None)
        done, lines = stages(check.Bench(card))
        monkeypatch.undo()
    assert [stage["ok"] for stage in done] == [True, False] and lines[1].startswith("FAIL  timeline")
    assert "WaitTimeout: AMD: the queues did not reach point 1 in 30 ms" in lines[1]
    assert "An empty submission moves the timeline" in lines[2]


def test_a_wrong_result_says_what_was_expected(amd, monkeypatch):
    monkeypatch.setattr(amd._transfers, "read", lambda address, size: memoryview(bytes(size)))
    done, _ = stages(check.Bench(amd))
    assert done[-1]["name"] == "video_memory"
    assert done[-1]["problem"].startswith("CheckFailed: what was written to video memory: b'")


def test_the_command_writes_what_it_found(amd, monkeypatch, tmp_path, capsys):
    def only_one(name):
        if name.endswith(":1"):
            raise DeviceUnavailable("there is one card")
        return amd
    monkeypatch.setattr(device, "open", only_one)
    monkeypatch.setattr(check, "STAGES", check.STAGES[:2])
    path = tmp_path / "found.json"
    assert hwcheck.main(["amd", str(path)]) == 0
    assert capsys.readouterr().out.endswith(f"all well; what was found is in {path}; the card is emulated\n")
    found = json.loads(path.read_text())
    assert found["target"] == "AMD:gfx1100" and found["about"] == "emulated"
    assert found["facts"]["gfx_target_version"] == 110000 and "unique_id" not in found["facts"]
    assert [stage["name"] for stage in found["stages"]] == ["topology", "timeline"]
    assert hwcheck.main([]) == hwcheck.main(["qqq"]) == 2 and hwcheck.main(["--help"]) == 0
    assert "attach it" in capsys.readouterr().out


def interrupted(bench):
    """It ends by Ctrl-C."""
    raise KeyboardInterrupt


def test_an_interrupted_check_of_a_card_still_writes_what_it_found(amd, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(device, "open", lambda name: amd)
    monkeypatch.setattr(check, "STAGES", (check.STAGES[0], interrupted, *check.STAGES[1:]))
    monkeypatch.setattr(type(amd.io), "about", "")
    path = tmp_path / "found.json"
    assert hwcheck.main(["amd", str(path)]) == 1
    assert capsys.readouterr().out.endswith(
        f"wrong; what was found is in {path}; keep it, and please attach it to an issue "
        "where you got tiny from\n")
    assert [stage["problem"] for stage in json.loads(path.read_text())["stages"]] == ["", "interrupted"]


def test_a_file_that_cannot_be_written_is_told_before_the_stages(amd, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(device, "open", lambda name: amd)
    path = tmp_path / "nowhere" / "found.json"
    assert hwcheck.main(["amd", str(path)]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err == (
        f"tiny hwcheck: {path}: No such file or directory; name another FILE\n")


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_an_emulated_card_behaves_as_the_recorded_one(path):
    """The same as `python -m tiny replay FILE`, stage by stage."""
    found = json.loads(path.read_text())
    topology = found["stages"][0]["found"]
    card = recorded.card_like(topology["arch"], found["facts"], topology["vram_gib"] << 30,
                              topology["large_bar"])
    assert (card.save_area_size, card.control_stack_size) == tuple(
        found["facts"].get(name, getattr(card, name_here)) for name, name_here in
        (("cwsr_size", "save_area_size"), ("ctl_stack_size", "control_stack_size")))
    with opened(EmulatedRadeon([card])) as device:
        done, _ = stages(check.Bench(device), len(found["stages"]))
    assert hwcheck.differences(found, done) == []
    done[0]["found"]["dies"] += 1
    done[1]["ok"] = False
    assert hwcheck.differences(found, done[:-1]) == [
        f"stage topology: dies {card.xccs + 1}, recorded {card.xccs}",
        "stage timeline: ok False, recorded True",
        f"{len(done) - 1} stages, recorded {len(done)}"]
