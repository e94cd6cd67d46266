"""Finding a compiler, compiling several sources at once, the disk cache, and what is said when it fails."""
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.tools import tool
from tiny.toolchain import (
    Cache,
    CompileError,
    Compiler,
    Source,
    ToolchainError,
    compile_objects,
    compilers,
    find_compiler,
    objects,
    process,
)

PREAMBLE = "typedef unsigned long u64;\nstatic inline float twice(float x) { return x + x; }\n"
FLAGS = ("-O1", "-w")


def kernel(name, body="((float *)a[0])[0] = twice(1);"):
    return Source(name, f"void {name}(const u64 *a, u64 begin, u64 end) {{ {body} }}\n", PREAMBLE)


@pytest.fixture
def cache(tmp_path):
    return Cache(str(tmp_path / "cache"))


@pytest.fixture
def starts(monkeypatch):
    """The commands that are run, as a list that grows."""
    seen = []

    def recording(command):
        seen.append(list(command))
        return process.start(command)
    monkeypatch.setattr(compilers, "start", recording)
    monkeypatch.setattr(objects, "start", recording)
    return seen


def path_with(tmp_path, monkeypatch, *tools):
    """A PATH whose only folder holds links to these tools."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in tools:
        (folder / name).symlink_to(tool(name))
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_the_newest_clang_on_the_path_is_taken(tmp_path, monkeypatch):
    folder = path_with(tmp_path, monkeypatch, "gcc")
    for name in ("clang-9", "clang-15", "clang-18", "clang"):
        script = folder / name
        script.write_text(f"#!/bin/sh\necho clang version {name.removeprefix('clang-')}.1.0\n")
        script.chmod(0o755)
    (folder / "sh").symlink_to("/bin/sh")
    compiler = find_compiler()
    assert (compiler.kind, compiler.version) == ("clang", "18.1.0")
    assert compiler.command == (str(folder / "clang-18"),)


def test_gcc_serves_where_there_is_no_clang(tmp_path, monkeypatch, cache):
    path_with(tmp_path, monkeypatch, "gcc", "as")
    compiler = find_compiler(cache=cache)
    assert compiler.kind == "gcc"
    assert compile_objects([kernel("k")], compiler, FLAGS, cache)[0][:4] == b"\x7fELF"


def test_without_a_compiler_the_error_says_what_where_and_what_to_install(tmp_path, monkeypatch):
    folder = path_with(tmp_path, monkeypatch)
    with pytest.raises(ToolchainError) as error:
        find_compiler()
    for part in ("clang-40 ... clang-14, clang, gcc and cc", str(folder), "apt-get install clang-22", "CC="):
        assert part in str(error.value)


def test_cc_names_the_compiler_with_arguments():
    compiler = find_compiler(f"{tool('gcc')} -DX=1")
    assert compiler.kind == "gcc" and compiler.command[1:] == ("-DX=1",)


def test_cc_that_is_missing_or_no_compiler_is_named():
    with pytest.raises(ToolchainError, match="CC=nonesuch-cc: nonesuch-cc is not on PATH"):
        find_compiler("nonesuch-cc")
    with pytest.raises(ToolchainError, match="echo --version answers .*neither clang nor gcc"):
        find_compiler("echo")


def test_a_warm_start_runs_no_process(cache, starts):
    sources = [kernel("one"), kernel("two")]
    first = compile_objects(sources, find_compiler(cache=cache), FLAGS, cache)
    assert len(starts) == 2                                     # --version, and one compilation for both
    again = Cache(cache.folder)
    assert compile_objects(sources, find_compiler(cache=again), FLAGS, again) == first
    assert len(starts) == 2


def test_sources_that_miss_together_share_one_process(cache, starts):
    compiler = find_compiler()
    del starts[:]
    objects = compile_objects([kernel(f"k{n}") for n in range(10)], compiler, FLAGS, cache)
    assert len(starts) == 1 and len({id(one) for one in objects}) == 1
    compile_objects([kernel(f"k{n}") for n in range(11)], compiler, FLAGS, cache)
    assert len(starts) == 2


def test_long_sources_are_divided_among_processes_and_short_ones_are_not():
    long = {str(n): Source(f"k{n}", "x" * 1000 * (n + 1), PREAMBLE) for n in range(10)}
    units = objects.divide(long, 4)
    lengths = [sum(len(long[key].text) for key in unit) for unit in units]
    assert len(units) == 4 and max(lengths) - min(lengths) < 5000 and sorted(sum(units, [])) == sorted(long)
    assert len(objects.divide(dict(list(long.items())[:4]), 4)) == 1
    many = {str(n): Source(f"k{n}", "x", PREAMBLE) for n in range(objects.LARGEST_UNIT * 2 + 1)}
    assert len(objects.divide(many, 1)) == 3


def test_several_compilers_at_once(cache, starts):
    compiler, padding = find_compiler(), "/* " + "x" * 9000 + " */\n"
    sources = [Source(f"k{n}", f"{padding}int k{n}(void) {{ return {n}; }}") for n in range(8)]
    del starts[:]
    results = compile_objects(sources, compiler, FLAGS, cache, processes=3)
    assert len(starts) == 3 and len({id(one) for one in results}) == 3
    bad = [*sources[:4], Source("bad", padding + "int bad(void) { return y; }"), *sources[4:]]
    with pytest.raises(CompileError, match="bad: "):
        compile_objects(bad, compiler, FLAGS, processes=3)
    assert os.listdir(cache.work_folder()) == []


def test_missed_tells_what_is_compiled(cache):
    compiler, seen = find_compiler(), []
    compile_objects([kernel("a")], compiler, FLAGS, cache)
    compile_objects([kernel("a"), kernel("b")], compiler, FLAGS, cache, missed=seen.extend)
    assert [source.name for source in seen] == ["b"]


def test_the_key_holds_flags_text_preamble_and_compiler(cache, starts):
    compiler = find_compiler()
    other = Compiler(compiler.command, compiler.kind, compiler.version, "another build")
    source = kernel("k")
    del starts[:]
    compile_objects([source], compiler, FLAGS, cache)
    compile_objects([source], compiler, ("-O2", "-w"), cache)
    compile_objects([source], other, FLAGS, cache)
    compile_objects([Source("k", source.text, PREAMBLE + "\n")], compiler, FLAGS, cache)
    assert len(starts) == 4


def test_one_name_with_two_texts_compiles_apart():
    compiler = find_compiler()
    one, two = compile_objects([kernel("k"), kernel("k", "((float *)a[0])[0] = 3;")], compiler, FLAGS)
    assert one != two


def test_helpers_that_clash_compile_apart():
    compiler = find_compiler()
    sources = [Source(name, f"static int helper(void) {{ return 1; }}\nvoid {name}(void) {{ helper(); }}")
               for name in ("a", "b")]
    assert len(set(compile_objects(sources, compiler, FLAGS))) == 2


def test_a_compile_error_shows_the_message_and_the_lines_around():
    bad = Source("bad", "void bad(void)\n{\n    int x = 1;\n    x = y;\n}\n", PREAMBLE)
    with pytest.raises(CompileError) as error:
        compile_objects([kernel("good"), bad], find_compiler(), FLAGS)
    text = str(error.value)
    assert text.startswith("bad: ") and "y" in text.splitlines()[0] and "bad:4" in text
    assert ">    4 |     x = y;" in text and "     1 | void bad(void)" in text


def test_a_compile_error_in_the_preamble_shows_the_preamble():
    bad = Source("bad", "void bad(void) {}", "typedef int t;\ntypedef nonsense u;\n")
    with pytest.raises(CompileError, match=r">    2 \| typedef nonsense u;"):
        compile_objects([bad], find_compiler(), FLAGS)


@pytest.mark.parametrize("damage", [
    lambda data: b"", lambda data: data[:-5], lambda data: data[:40] + b"\xff" + data[41:],
    lambda data: b"x" * 99])
def test_a_damaged_entry_is_compiled_again(cache, damage, starts):
    compiler = find_compiler()
    first = compile_objects([kernel("a"), kernel("b")], compiler, FLAGS, cache)
    for folder, _, files in os.walk(cache.folder):
        for name in files:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                data = file.read()
            with open(path, "wb") as file:
                file.write(damage(data))
    del starts[:]
    sources = [kernel("a"), kernel("b")]
    for _ in range(2):
        assert compile_objects(sources, compiler, FLAGS, Cache(cache.folder)) == first
    assert len(starts) == 1


def test_a_folder_that_cannot_be_written_is_said_once(tmp_path, capfd):
    (tmp_path / "file").write_text("")
    cache = Cache(str(tmp_path / "file"))
    for _ in range(2):
        compile_objects([kernel("a")], find_compiler(), FLAGS, cache)
    assert capfd.readouterr().err.count("cannot be written") == 1


def test_a_full_disk_is_said_once_and_compiled_elsewhere(tmp_path, capfd, monkeypatch):
    def full(path):
        return os.statvfs_result((4096, 4096, 1000, 0, 0, 10, 10, 10, 0, 255))
    monkeypatch.setattr(os, "statvfs", full)
    cache = Cache(str(tmp_path / "cache"))
    for _ in range(2):
        assert compile_objects([kernel("a")], find_compiler(), FLAGS, cache)
    assert capfd.readouterr().err.count("No space left on device") == 1


def test_what_killed_processes_left_is_cleared_away(cache):
    folder = cache.work_folder()
    old, new = os.path.join(folder, "tiny-old"), os.path.join(folder, "tiny-new")
    for path in (old, new):
        os.mkdir(path)
    with open(os.path.join(folder, "entry.1.0"), "w"):
        pass
    for path in (old, os.path.join(folder, "entry.1.0")):
        os.utime(path, (0, 0))
    assert Cache(cache.folder).work_folder() == folder and os.listdir(folder) == ["tiny-new"]


CHILD = """
import sys
from tiny.toolchain import Cache, Source, compile_objects, find_compiler
cache = Cache(sys.argv[1])
compiler = find_compiler(cache=cache)
for n in range(int(sys.argv[2])):
    source = Source(f"k{n}", f"unsigned long k{n}(void) {{ return {n} + 1; }}")
    data = compile_objects([source], compiler, ("-O1",), cache)[0]
    assert data[:4] == b"\\x7fELF"
    print(n, flush=True)
"""


def child(folder, count):
    command = [sys.executable, "-c", CHILD, folder, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_processes_share_a_cache(cache, starts):
    both = [child(cache.folder, 6), child(cache.folder, 6)]
    assert [one.communicate(timeout=200)[0].split() for one in both] == [[str(n) for n in range(6)]] * 2
    assert [one.returncode for one in both] == [0, 0]
    source = Source("k3", "unsigned long k3(void) { return 3 + 1; }")
    compile_objects([source], find_compiler(cache=cache), ("-O1",), cache)
    assert starts == []


def test_a_killed_process_leaves_a_usable_cache(cache):
    one = child(cache.folder, 1000)
    for _ in range(3):
        one.stdout.readline()
    time.sleep(0.01)
    one.send_signal(signal.SIGKILL)
    one.communicate()
    assert child(cache.folder, 6).communicate(timeout=200)[0].split() == [str(n) for n in range(6)]
