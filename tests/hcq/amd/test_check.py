"""`hwcheck` on emulated cards, on one that is broken, and against files that it wrote on other cards."""
import json
from pathlib import Path

import pytest

from tests.hcq.amd.conftest import KINDS, opened
from tiny.emulator.amd.kernel.cards import Card
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq import device, hwcheck
from tiny.hcq.amd import check
from tiny.hcq.errors import DeviceUnavailable

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))
STEADY = ("arch", "compute_units", "dies", "vram_gib", "large_bar", "host_writes", "read_pointer")


def stages(bench, count=len(check.STAGES)):
    lines = []
    return hwcheck.check(bench, check.STAGES[:count], lines.append), lines


@pytest.mark.parametrize("kind", KINDS)
def test_every_stage_goes_well_on_emulated_cards(kind):
    with opened(EmulatedRadeon([KINDS[kind]])) as card:
        done, lines = stages(check.Bench(card))
        assert all(stage["ok"] for stage in done) and len(done) == len(lines) == len(check.STAGES)
        assert lines[0].startswith("ok    topology") and f"arch {card.card.arch}" in lines[0]


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
    assert "all well; what was found is in" in capsys.readouterr().out
    found = json.loads(path.read_text())
    assert found["target"] == "AMD:gfx1100" and found["about"] == "emulated"
    assert found["facts"]["gfx_target_version"] == 110000 and "unique_id" not in found["facts"]
    assert [stage["name"] for stage in found["stages"]] == ["topology", "timeline"]
    assert hwcheck.main([]) == hwcheck.main(["qqq"]) == 2 and hwcheck.main(["--help"]) == 0


def emulated_as(found):
    """The emulated card that has the numbers of a recorded one."""
    facts, topology = found["facts"], found["stages"][0]["found"]
    xccs = facts["num_xcc"]
    like = next(card for card in KINDS.values() if card.major == facts["gfx_target_version"] // 10000)
    return Card(topology["arch"], "as recorded", facts["gfx_target_version"], facts["device_id"],
                facts["simd_count"], facts["simd_per_cu"],
                facts["array_count"] // facts["simd_arrays_per_engine"] // xccs,
                facts["simd_arrays_per_engine"], facts["wave_front_size"], facts["max_waves_per_simd"],
                like.vgpr_per_cu, topology["vram_gib"] << 30, facts["num_sdma_engines"],
                facts["max_engine_clk_fcompute"], xccs, topology["large_bar"])


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_an_emulated_card_behaves_as_the_recorded_one(path):
    found = json.loads(path.read_text())
    card = emulated_as(found)
    assert (card.save_area_size, card.control_stack_size) == tuple(
        found["facts"].get(name, getattr(card, name_here)) for name, name_here in
        (("cwsr_size", "save_area_size"), ("ctl_stack_size", "control_stack_size")))
    with opened(EmulatedRadeon([card])) as device:
        done, _ = stages(check.Bench(device), len(found["stages"]))
    for ours, theirs in zip(done, found["stages"], strict=True):
        assert (ours["name"], ours["ok"]) == (theirs["name"], theirs["ok"])
        for name in STEADY:
            assert ours["found"].get(name) == theirs["found"].get(name), (ours["name"], name)
