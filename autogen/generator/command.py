"""The command line of the generator, and the record of versions and hashes beside the generated modules."""
import argparse
import difflib
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tiny import config
from tiny.autogen.generator import libclang, sets_amd, sets_linux, sets_metal, sets_nv, sets_nv_class
from tiny.autogen.generator.build import Built, build
from tiny.autogen.generator.manifest import HeaderSet
from tiny.autogen.generator.packages import PackageError, Packages
from tiny.autogen.generator.provenance import Provenance

HERE = Path(__file__).resolve().parent.parent
RECORD = HERE / "manifest.json"
SETS: tuple[HeaderSet, ...] = (*sets_linux.SETS, *sets_amd.SETS, *sets_nv.SETS, *sets_nv_class.SETS,
                               *sets_metal.SETS)


@dataclass
class Run:
    """What one run saw: what manifest.json should say, and the lines that `--check` complains with."""
    provenance: Provenance = field(default_factory=Provenance)
    differences: list[str] = field(default_factory=list)


def chosen(names: Sequence[str], small: bool) -> list[HeaderSet]:
    """The sets named, or all; `small` leaves only those with small packages."""
    known = {wanted.module: wanted for wanted in SETS}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 3)
            raise SystemExit(f"no header set {name!r}; near: {', '.join(near) or 'none'}; all: "
                             f"{', '.join(known)}")
    return [known[name] for name in names or known if not small or known[name].small]


def compare(wanted: HeaderSet, built: Built, recorded: Provenance, run: Run) -> None:
    """Note where a regenerated set differs from the committed one. A newer package with the same files is no
    difference.
    """
    module = HERE / f"{wanted.module}.py"
    old = module.read_text() if module.exists() else ""
    if old != built.text:
        lines = difflib.unified_diff(old.splitlines(), built.text.splitlines(), f"{module.name} (committed)",
                                     f"{module.name} (from the headers)", n=0, lineterm="")
        run.differences += [line[:200] for line in list(lines)[:20]]
    run.differences += [f"{wanted.module}: {file} is not the file recorded in manifest.json"
                        for file in recorded.changed(built.hashes)]


def generate(wanted_sets: Sequence[HeaderSet], folder: Path, check: bool) -> Run:
    """Regenerate sets into this package's folder, or with `check` only compare."""
    packages, run, recorded = Packages(folder), Run(), Provenance.read(RECORD)
    packages.bring([package for wanted in wanted_sets for package in wanted.packages])
    for wanted in wanted_sets:
        start = time.perf_counter()
        folders = packages.bring(wanted.packages)
        built = build(wanted, folders, folder / "links")
        run.provenance.add(wanted, folders, built.hashes)
        if check:
            compare(wanted, built, recorded, run)
        else:
            (HERE / f"{wanted.module}.py").write_text(built.text)
        print(f"{wanted.module}: {len(built.text) // 1024} KiB, {len(built.records)} structs, "
              f"{time.perf_counter() - start:.2f} s", flush=True)
    return run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the generator; the exit status: 0 done, 1 the committed modules differ, 2 a package or header is
    missing.
    """
    parser = argparse.ArgumentParser(prog="python -m tiny.autogen",
                                     description="Generate tiny's bindings from header packages.")
    parser.add_argument("sets", nargs="*", metavar="SET",
                        help="header sets, named as their modules; default: all")
    parser.add_argument("--check", action="store_true",
                        help="change nothing; exit 1 if the committed modules differ")
    parser.add_argument("--small", action="store_true", help="only sets whose packages are small")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="keep downloads there and use them again")
    parser.add_argument("--libclang", metavar="FILE",
                        help="the libclang to use; default: LIBCLANG, or the newest one found")
    options = parser.parse_args(arguments)
    wanted_sets = chosen(options.sets, options.small)
    start = time.perf_counter()
    try:
        library = libclang.load(options.libclang or config.current().libclang)
        print(f"libclang {library.major}: {library.path}")
        with tempfile.TemporaryDirectory(prefix="tiny-bindings-") as temporary:
            run = generate(wanted_sets, options.keep or Path(temporary), options.check)
    except (PackageError, libclang.HeaderError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return report(run, options.check, time.perf_counter() - start)


def report(run: Run, check: bool, seconds: float) -> int:
    """Print what the run did; write manifest.json unless checking. Returns the exit status."""
    recorded = Provenance.read(RECORD)
    for key, package in sorted(run.provenance.packages.items()):
        print(f"{key}: {package['version']}, {package['bytes'] / 1e6:.1f} MB")
    print(f"{len(run.provenance.sets)} sets from {len(run.provenance.packages)} packages, "
          f"{sum(p['bytes'] for p in run.provenance.packages.values()) / 1e6:.0f} MB, in {seconds:.0f} s")
    for line in run.provenance.newer(recorded):
        print(f"note: {line}")
    if not check:
        known = [wanted.module for wanted in SETS]
        # of some sets only: the others stay as they are
        if set(run.provenance.sets) != set(known):
            run.provenance = recorded.merged(run.provenance)
        run.provenance.write(RECORD, known)
        return 0
    for line in run.differences:
        print(line, file=sys.stderr)
    if run.differences:
        print("the committed bindings differ from their headers; run `make bindings`, review the diff and "
              "commit it",
              file=sys.stderr)
        return 1
    print("no difference")
    return 0
