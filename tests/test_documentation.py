"""Every Python block in README.md and docs/ runs, and prints what the comment behind each print says."""
import contextlib
import io
import re
from dataclasses import fields
from pathlib import Path

import pytest

from tests.forgetting import forget
from tiny.__main__ import COMMANDS
from tiny.config import Config
from tiny.realize import report

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_examples_run_and_print_what_they_say(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    forget(monkeypatch)                                     # a trace tells when a kernel is loaded
    names = {"__name__": page.stem}
    for code in blocks(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(page), "exec"), names)
        promised = re.findall(r"^ *print\(.*\) {2,}# (.*)$", code, re.MULTILINE)
        assert printed.getvalue().splitlines() == promised


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    missing = [link for link in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
               if not (page.parent / link).exists()]
    assert not missing


def test_every_setting_is_documented():
    page = (ROOT / "docs" / "environment.md").read_text()
    assert [field.name for field in fields(Config) if f"`{field.name.upper()}`" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page):
    named = re.findall(r"`((?:tiny|tests|docs|examples|autogen|scripts)/[\w./]*)`", page.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_first_page_leads_to_all_others_and_lists_every_command():
    first = (ROOT / "docs" / "README.md").read_text()
    numbered = re.findall(r"^\d+\. \[[\w-]+\.md\]\(([\w-]+\.md)\)", first, re.MULTILINE)
    assert sorted(numbered) == sorted(page.name for page in (ROOT / "docs").glob("*.md")
                                      if page.name != "README.md")
    rows = [line.split("|")[1] for line in first.partition("|---|")[2].splitlines() if line[:3] == "| `"]
    assert {name for row in rows for name in re.findall(r"`([\w-]+)[^`]*`", row)} == set(COMMANDS)


@pytest.mark.parametrize(("folder", "page"), [("realize", "architecture.md"), ("schedule", "schedule.md"),
                                              ("emulator/amd", "emulator.md")])
def test_every_file_of_a_folder_is_on_its_page(folder, page):
    text = (ROOT / "docs" / page).read_text()
    files = (ROOT / "tiny" / folder).glob("[a-z]*.py")
    assert [file.name for file in files if not re.search(rf"[`/]{file.name}`", text)] == []


def test_levels_of_debug_are_those_that_the_code_tells():
    page = (ROOT / "docs" / "environment.md").read_text()
    for level, text in re.findall(r"([1-7])  (\S.*?)(?=  |$)", report.__doc__, re.MULTILINE):
        assert f"| {level} | {text} |" in page
