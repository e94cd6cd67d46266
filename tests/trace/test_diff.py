"""`tiny trace diff`: two runs are the same but for numbers that no run chooses, or it says where they differ."""
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trace.test_record import added  # noqa: F401 - a fixture
from tiny.trace import command, diff

# one record a line, however long
# ruff: noqa: E501
HEADER = "# tiny trace 1\n# tiny 0\n"
RUN = """\
open "/dev/kfd" flags=RDWR -> fd=5
mmap size=0x2000 protection=NONE flags=PRIVATE|ANONYMOUS -> address=0x7f1000000000
mmap size=0x1000 protection=READ|WRITE flags=SHARED|FIXED fd=5 offset=0x40000 at=0x7f1000001000 -> address=0x7f1000001000
mmap size=0x1000 protection=NONE flags=PRIVATE|ANONYMOUS -> address=0x7f2000000000
ioctl fd=5 AMDKFD_IOC_MAP_MEMORY_TO_GPU {handle=0x9, device_ids_array_ptr=0x55aa00000000:[0x77], n_devices=0x1} -> {}
ioctl fd=5 AMDKFD_IOC_GET_CLOCK_COUNTERS {gpu_clock_counter=0x0, gpu_id=0x77} -> {gpu_clock_counter=0x1234}
packet AMD copy 0x0 CopyLinear(nbytes=0x20, source=0x7f1000001010, destination=0x7f2000000004)
packet AMD copy 0x20 Fence(address=0x7f2000000ff8, value=0x1)
doorbell AMD copy value=0x30
"""
MOVED = [("0x7f1", "0x7e5"), ("0x7f2", "0x7dc"), ("fd=5", "fd=8"), ("0x9,", "0xa,"), ("[0x77]", "[0x99]"),
         ("gpu_id=0x77", "gpu_id=0x99"), ("0x55aa", "0x5678"), ("0x1234", "0x9876"), ("0x40000 ", "0x50000 ")]


def moved(text: str) -> str:
    """The same run with other addresses, descriptors, handles and times."""
    for old, new in MOVED:
        text = text.replace(old, new)
    return text


def differ(tmp_path, capsys, first: str, second: str, *options: str) -> tuple[int, list[str]]:
    """The exit code, and the lines that differ."""
    for name, text in (("a", first), ("b", second)):
        (tmp_path / name).write_text(HEADER + text)
    code = command.main(["diff", str(tmp_path / "a"), str(tmp_path / "b"), *options])
    lines = capsys.readouterr().out.splitlines()
    return code, [line for line in lines if line[:1] in "+-" and line[:3] not in ("---", "+++")]


def test_addresses_handles_and_times_do_not_count(tmp_path, capsys):
    assert moved(RUN) != RUN
    assert differ(tmp_path, capsys, RUN, moved(RUN)) == (0, [])


@pytest.mark.parametrize("old, new", [
    ("nbytes=0x20", "nbytes=0x21"), ("0x7f1000001010", "0x7f1000001018"), ("value=0x30", "value=0x38"),
    ("at=0x7f1000001000", "at=0x7f1000000000"), ("n_devices=0x1", "n_devices=0x2"), ("-> fd=5", "-> ENOENT"),
    ("[0x77]", "[0x77, 0x78]"), ("SHARED|FIXED", "PRIVATE|FIXED"),
])
def test_what_a_run_chooses_counts(tmp_path, capsys, old, new):
    code, lines = differ(tmp_path, capsys, RUN, moved(RUN.replace(old, new)))
    assert code == 1 and [line[0] for line in lines] == ["-", "+"]
    [changed] = [line for line in RUN.splitlines() if old in line]
    assert all(line[1:].partition(" ")[0] == changed.partition(" ")[0] for line in lines)


def test_memory_taken_for_other_memory_counts(tmp_path, capsys):
    """The texts are equal but for addresses: only following the names shows it."""
    swapped = RUN.replace("Fence(address=0x7f2000000ff8", "Fence(address=0x7f1000000ff8")
    assert differ(tmp_path, capsys, RUN, moved(swapped)) == (1, [
        "-packet AMD copy 0x20 Fence(address=map2+0xff8, value=0x1)",
        "+packet AMD copy 0x20 Fence(address=map1+0xff8, value=0x1)"])


def test_more_memory_in_one_run_does_not_spoil_the_names_behind_it(tmp_path, capsys):
    lines = RUN.splitlines(keepends=True)
    extra = "mmap size=0x5000 protection=NONE flags=PRIVATE|ANONYMOUS -> address=0x7d0000000000\n"
    longer = "".join([*lines[:1], extra, *lines[1:]])
    assert differ(tmp_path, capsys, RUN, moved(longer)) == (1, [
        "+mmap size=0x5000 protection=NONE flags=PRIVATE|ANONYMOUS -> address=map1*"])


def test_memory_mapped_where_other_memory_was_is_something_else(tmp_path, capsys):
    again = ("munmap address=0x7f2000000000 size=0x1000\n"
             "mmap size=0x1000 protection=NONE flags=PRIVATE|ANONYMOUS -> address={}\n"
             "packet AMD copy 0x40 Fence(address={}, value=0x2)\n")
    same, elsewhere = (RUN + again.format(place, place) for place in ("0x7f2000000000", "0x7f3000000000"))
    assert differ(tmp_path, capsys, same, elsewhere) == (0, [])


def test_records_can_be_left_out(tmp_path, capsys):
    other = RUN.replace("nbytes=0x20", "nbytes=0x21")
    assert differ(tmp_path, capsys, RUN, other, "--kind", "ioctl,doorbell") == (0, [])
    assert differ(tmp_path, capsys, RUN, other, "--without", "CopyLinear") == (0, [])
    assert differ(tmp_path, capsys, RUN, other, "--queue", "compute") == (0, [])


def test_context_and_numbers_of_lines(tmp_path, capsys):
    (tmp_path / "a").write_text(HEADER + RUN)
    (tmp_path / "b").write_text(HEADER.replace("0", "1") + RUN.replace("nbytes=0x20", "nbytes=0x21"))
    assert command.main(["diff", str(tmp_path / "a"), str(tmp_path / "b"), "--context", "1"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[:6] == [f"--- {tmp_path / 'a'}", f"+++ {tmp_path / 'b'}", "-# tiny 0", "+# tiny 1", "@@ 8 9 @@",
                       " ioctl fd=fd1 AMDKFD_IOC_GET_CLOCK_COUNTERS {gpu_clock_counter=<time>, gpu_id=gpu1} -> "
                       "{gpu_clock_counter=<time>}"]
    assert out[-1] == " packet AMD copy 0x20 Fence(address=map2+0xff8, value=0x1)"


def test_a_recorded_addition_is_like_itself_and_unlike_a_product(added, capsys):  # noqa: F811
    first, second, product = map(str, added)
    assert command.main(["diff", first, first]) == command.main(["diff", first, second]) == 0
    assert capsys.readouterr().out == ""
    assert command.main(["diff", first, product]) == 1
    changed = [line for line in capsys.readouterr().out.splitlines() if line[:1] in "+-"][2:]
    assert [line.partition(" address")[0] for line in changed if "program" in line] == [
        "-program AMD map_3_float32", "+program AMD map_3_float32"]


def test_what_is_no_trace_is_told_in_one_line(tmp_path, capsys):
    (tmp_path / "a").write_text("{}\n")
    assert command.main(["show", str(tmp_path / "a")]) == 2
    assert "its first line is not `# tiny trace 1`; record one with TRACE=FILE" in capsys.readouterr().err
    assert command.main(["diff", str(tmp_path / "a"), str(tmp_path / "absent")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


# -- alignment -----------------------------------------------------------------------------------------------
items = st.lists(st.sampled_from("abcdefgh"), max_size=60)


@given(items, items)
def test_an_alignment_covers_both_and_says_equal_of_equals(first, second):
    a = b = 0
    for start, end, other, other_end, equal in diff._aligned(first, second):
        assert (start, other) == (a, b)
        assert (first[start:end] == second[other:other_end]) or not equal
        a, b = end, other_end
    assert (a, b) == (len(first), len(second))


@given(st.lists(st.integers(0, 400), min_size=1, max_size=300), st.sets(st.integers(0, 299)))
def test_what_was_taken_out_is_all_that_differs(first, taken):
    """Whatever repeats: no more records are called different than were taken out."""
    second = [item for place, item in enumerate(first) if place not in taken]
    lost = sum(end - start for start, end, _, _, equal in diff._aligned(first, second) if not equal)
    gained = sum(end - start for _, _, start, end, equal in diff._aligned(first, second) if not equal)
    assert lost - gained == len(first) - len(second)
    if len(set(first)) == len(first):
        assert gained == 0


def test_long_runs_are_aligned_in_time_that_grows_with_them():
    """Most records of a long run are repetitions; the work is counted in comparisons, not in seconds."""
    count = [0]

    class Item(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            count[0] += 1
            return str.__eq__(self, other)
    first = [Item(f"repeated {place % 10}" if place % 5 else f"point {place}") for place in range(20_000)]
    second = [item for place, item in enumerate(first) if place % 7]
    different = [each for each in diff._aligned(first, second) if not each[4]]
    assert sum(end - start for start, end, *_ in different) < 4000
    assert count[0] < 60 * len(first)


def test_a_filter_that_nothing_passes_is_told(tmp_path, capsys):
    path = tmp_path / "a"
    path.write_text(HEADER + RUN)
    with pytest.raises(SystemExit):
        command.main(["show", "--kind", "ioctl,packets", str(path)])
    assert "no record is of kind 'packets'; there are open, close, ioctl" in capsys.readouterr().err
    for names in ([], ["--names"]):
        assert command.main(["show", "--device", "AMD:1", str(path), *names]) == 0
        assert capsys.readouterr().err.startswith(f"tiny trace: {path}: no record is as --kind, --device")
    assert command.main(["show", "--kind", "packet", str(path)]) == 0
    told = capsys.readouterr()
    assert told.out.count("packet AMD") == 2 and told.err == ""


def test_kinds_are_those_of_the_manual():
    page = (Path(__file__).resolve().parents[2] / "docs" / "trace.md").read_text()
    rows = [line for line in page.partition("| record |")[2].splitlines() if line.startswith("| `")]
    listed = {kind for row in rows for kind in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert listed == set(command.KINDS)


def test_a_file_that_is_not_there_is_named(tmp_path, capsys):
    assert command.main(["show", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == f"tiny trace: {tmp_path / 'none'}: No such file or directory\n"
