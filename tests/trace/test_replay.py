"""`tiny replay`: the emulated driver is asked what a recorded one was asked, and answers the same."""
import json
from pathlib import Path

import pytest

from tests.hcq.amd.conftest import opened
from tests.trace.test_record import ADD, added, run  # noqa: F401 - a fixture
from tiny import replay
from tiny.emulator.amd.kernel.cards import cards_named
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq import io
from tiny.trace import record

RECORDED = Path(__file__).parents[1] / "hcq" / "amd" / "recorded"


def replayed(capsys, path: Path) -> tuple[int, list[str]]:
    code = replay.main([str(path)])
    return code, capsys.readouterr().out.splitlines()


@pytest.fixture(params=["gfx1100", "gfx942", "gfx1100,gfx1201"])
def recorded(request, tmp_path) -> Path:
    path = tmp_path / "run.trace"
    code = ADD if "," not in request.param else ADD + """
from tiny.hcq import device
one, two = device.open("AMD"), device.open("AMD:1")
mine, theirs = one.allocate(4096), two.allocate(4096)
one.reach(theirs)
pinned = one.from_host(bytearray(10000))
"""
    done = run(code, path, EMULATE=request.param)
    assert done.returncode == 0, done.stderr
    return path


def test_the_calls_of_a_run_are_answered_as_they_were(recorded, capsys):
    code, lines = replayed(capsys, recorded)
    calls = sum(line.split(" ")[0] in ("open", "close", "ioctl", "mmap", "munmap", "protect")
                for line in recorded.read_text().splitlines())
    made, skipped = int(lines[-1].split()[0]), int(lines[-1].split()[-4])
    assert code == 0 and " 0 ended otherwise" in lines[-1] and len(lines) == 1
    assert made + skipped == calls and skipped <= 4


@pytest.mark.parametrize("old, new, call", [
    ("-> {major_version=0x1, minor_version=0x11}", "-> {major_version=0x1}", "GET_VERSION"),
    ("ring_size=0x40000", "ring_size=0x30000", "CREATE_QUEUE"),
    ("gpu_id=0x4a10, queue_type=SDMA", "gpu_id=0x4a10, queue_type=0x63", "CREATE_QUEUE"),
    ("n_devices=0x1", "n_devices=0x0", "MAP_MEMORY_TO_GPU"),
    ("size=0x100000, handle=0x0", "size=0x0, handle=0x0", "ALLOC_MEMORY_OF_GPU"),
])
def test_a_card_that_answers_otherwise_is_told(added, tmp_path, capsys, old, new, call):  # noqa: F811
    """As if the recorded driver had said yes where the emulated one says no, or something else."""
    text = added[0].read_text()
    assert old in text
    (tmp_path / "run").write_text(text.replace(old, new, 1))
    code, lines = replayed(capsys, tmp_path / "run")
    assert code == 1
    first = lines.index(next(line for line in lines if f"AMDKFD_IOC_{call} " in line))
    assert lines[first][0] == "-" and lines[first + 1][0] == "+" and call in lines[first + 1]


def test_errors_are_answers_too(tmp_path, capsys):
    path = tmp_path / "run"
    with opened(EmulatedRadeon(cards_named("gfx1100"))) as card, record.recording(str(path)):
        fd = card.io.open("/dev/kfd")
        with pytest.raises(OSError):
            card.io.ioctl(fd, 0xC0284B16, bytearray(40))
    text = path.read_text()
    assert "-> EINVAL" in text
    facts = "".join(f" {name}={value}" for name, value in card.facts.items())
    path.write_text(text.replace("open ", f'device AMD arch=gfx1100 detail="24 GiB"{facts}\nopen ', 1))
    assert replayed(capsys, path) == (0, ["2 calls made again, 0 ended otherwise, 0 cannot be repeated"])
    path.write_text(path.read_text().replace("-> EINVAL", "-> ENOMEM"))
    code, lines = replayed(capsys, path)
    assert code == 1 and lines[0].endswith("-> ENOMEM") and lines[1].endswith("-> EINVAL")


def test_a_file_of_hwcheck_is_checked_by_the_same_command(tmp_path, capsys):
    found = json.loads((RECORDED / "emulated-gfx1100.json").read_text())
    found["stages"] = found["stages"][:3]
    (tmp_path / "found.json").write_text(json.dumps(found))
    code, lines = replayed(capsys, tmp_path / "found.json")
    assert code == 0 and lines[-1] == "3 stages run again, 0 answers differ"
    found["stages"][2]["found"]["host_writes"] = "by pigeon"
    (tmp_path / "found.json").write_text(json.dumps(found))
    code, lines = replayed(capsys, tmp_path / "found.json")
    assert code == 1
    assert lines[-2:] == ["stage video_memory: host_writes in place, recorded by pigeon",
                          "3 stages run again, 1 answers differ"]
    assert not isinstance(io.installed(), EmulatedRadeon)


def test_a_trace_without_a_card_is_told_in_one_line(tmp_path, capsys):
    (tmp_path / "run").write_text("# tiny trace 1\nopen \"/dev/kfd\" flags=RDWR -> fd=3\n")
    assert replay.main([str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == (
        "tiny replay: the trace has no record of an AMD device; there is nothing to replay it on\n")
