"""The committed bindings against their headers, freshly downloaded: layouts, numbers, and the modules' very
text.

The sets with small packages run in CI; the others belong to `make test-oracles`.
"""
import os

import pytest

from tests.autogen import agreement
from tests.tools import tool
from tiny.autogen.generator import command, libclang
from tiny.autogen.generator.build import build
from tiny.autogen.generator.packages import PackageError, Packages
from tiny.autogen.generator.provenance import Provenance

SMALL = [wanted for wanted in command.SETS if wanted.small]
LARGE = [wanted for wanted in command.SETS if not wanted.small]


def disagreements(sets, folder) -> list[str]:
    """Every difference between the committed modules and what their headers give now."""
    for program in ("apt-get", "dpkg-deb"):
        tool(program)                                       # the headers are those of Debian's packages
    libclang.load()
    packages, recorded, run = Packages(folder), Provenance.read(command.RECORD), command.Run()
    try:
        packages.bring([package for wanted in sets for package in wanted.packages])
    except PackageError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"the headers to compare with could not be downloaded: {error}; every other test runs "
                    "without a network, and CI=1 makes this a failure")
    for wanted in sets:
        folders = packages.bring(wanted.packages)
        built = build(wanted, folders, folder / "links")
        command.compare(wanted, built, recorded, run)
        run.differences += agreement.layouts(wanted, built)
        if wanted.language == "c" and (built.records or built.constants):
            run.differences += agreement.compiled(built, folder)
    return run.differences


def test_small_sets_are_what_their_headers_say(tmp_path):
    assert disagreements(SMALL, tmp_path) == []


@pytest.mark.oracle
@pytest.mark.slow
def test_large_sets_are_what_their_headers_say(tmp_path):
    assert disagreements(LARGE, tmp_path) == []
