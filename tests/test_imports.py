"""The shape of the source: imports run one way, files stay short, the environment is read in one place.

The table is that of docs/architecture.md. `config`, `lazy`, `target`, `objfile` and `toolchain` are ground:
open to all, and importing only one another and the standard library.
"""
import ast
import graphlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GROUND = {"config", "lazy", "target", "objfile", "toolchain"}
EVERYTHING = {"ir", "schedule", "render", "hcq", "emulator", "trace", "realize", "frontend", "nn", "llm",
              "autogen"}
MAY_IMPORT = {  # a folder, or a module of tiny/ -> what it may import
    **{name: set() for name in (*GROUND, "ir", "autogen")},
    "schedule": {"ir"},
    "render": {"ir", "schedule"},
    "hcq": {"autogen"},
    "emulator": {"hcq", "autogen"},
    "trace": {"hcq", "autogen", "ir"},
    "realize": {"ir", "schedule", "render", "hcq", "emulator", "trace"},
    "frontend": {"ir", "realize"},
    "nn": {"frontend"},  # the public names of frontend's layers, under tiny.nn
    "__init__": {"frontend", "nn", "ir", "realize", "devices"},
    "llm": EVERYTHING - {"emulator"},
    "devices": {"hcq"},
    "run_asm": {"hcq", "emulator"},
    "replay": {"trace", "hcq", "emulator"},
    "profile": {"realize"},
    "__main__": EVERYTHING | {"devices", "run_asm", "replay", "profile"},
}
HCQ_ISLANDS = {"cpu", "amd", "nv", "metal"}                 # never see each other
HCQ_FOR_OTHERS = {"emulator": {"layout", "io"}, "trace": {"layout", "events", "io"}}   # and these:
DECLARATIONS = {"packets", "aql", "pm4", "registers", "sdma", "compute", "copy", "methods", "push", "qmd"}
HOST_CODE = (["hcq", "cpu", "host"], ["hcq", "cpu", "loader"])   # the emulator's translated kernels run there
# a kernel, its loops, and matrix instructions: data that lowering reads
SCHEDULE_FOR_RENDER = {"kernel", "loops", "tensorcore"}
LOADERS = {"Lazy", "import_module", "__import__", "DeviceKind"}     # they take a module's name as text
MODULE_NAME = re.compile(r"tiny(\.\w+)+(:\w+)?")
LAZY_IMPORTS = {"__main__.py"}  # the command line loads what the command needs, no more
SOURCES = sorted((ROOT / "tiny").rglob("*.py"))


def imported_modules(tree: ast.AST) -> list[tuple[int, str]]:
    """(line, dotted name) of everything imported from tiny, once for each name of a `from` import.

    Where a module may be loaded by a name that is text, every such text of the file counts.
    """
    found = []
    loads = any(isinstance(node, ast.Name | ast.Attribute)
                and (node.id if isinstance(node, ast.Name) else node.attr) in LOADERS
                for node in ast.walk(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import; write the full name"
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
        elif loads and isinstance(node, ast.Constant) and MODULE_NAME.fullmatch(str(node.value)):
            found.append((node.lineno, node.value.partition(":")[0]))
    return found


def part_of(path: Path) -> str:
    """The folder of tiny/ that a file belongs to, or its own name when it stands in tiny/ itself."""
    return path.relative_to(ROOT / "tiny").parts[0].removesuffix(".py")


def forbidden(path: Path, dotted: str) -> str | None:
    """Why this file may not import that name, or None where it may."""
    names = dotted.split(".")
    part = part_of(path)
    if names[0] != "tiny":
        known = names[0] in sys.stdlib_module_names
        return f"{part} may import only the standard library" if part in GROUND and not known else None
    assert part in MAY_IMPORT, f"{path}: no row in the table for {part!r}; say what it may import"
    target = names[1]
    public = part in ("llm", "__main__") and not (ROOT / "tiny" / target).exists() \
        and not (ROOT / "tiny" / f"{target}.py").exists()   # `from tiny import Tensor`
    if public or target == part or target in GROUND or target in MAY_IMPORT[part]:
        island = part == "hcq" and len(names) > 2 and names[2] in HCQ_ISLANDS
        here = path.relative_to(ROOT / "tiny").parts[1] if part == "hcq" else ""
        if island and here in HCQ_ISLANDS and names[2] != here:
            return f"hcq/{here} must not see hcq/{names[2]}"
        if target == "schedule" and part == "render" and names[2] not in SCHEDULE_FOR_RENDER:
            return f"render may import of schedule only {sorted(SCHEDULE_FOR_RENDER)}"
        declared = len(names) > 3 and names[2] in HCQ_ISLANDS and names[3] in DECLARATIONS
        declared |= part == "emulator" and names[1:4] in HOST_CODE
        others = HCQ_FOR_OTHERS.get(part)
        if target == "hcq" and others and names[2] not in others and not declared:
            return f"{part} may import of hcq only {sorted(others)} and packet declarations"
        return None
    return f"{part} may import {sorted(MAY_IMPORT[part]) or 'nothing'} of tiny"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_one_way(path):
    problems = [f"{path.relative_to(ROOT)}:{line}: imports {name}; {reason}"
                for line, name in imported_modules(ast.parse(path.read_text()))
                if (reason := forbidden(path, name))]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_stand_at_the_top_and_name_what_they_bring(path):
    tree = ast.parse(path.read_text())
    functions = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    ]
    inside = [node.lineno for function in functions for node in ast.walk(function)
              if isinstance(node, ast.Import | ast.ImportFrom)]
    assert not inside or path.name in LAZY_IMPORTS, f"import inside a function at lines {inside}"
    stars = [node.lineno for node in ast.walk(tree)
             if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)]
    assert not stars, f"star import at lines {stars}"


@pytest.mark.parametrize("source", [
    'nn = Lazy("tiny.nn")', 'importlib.import_module("tiny.nn")', '__import__("tiny.nn")',
    'TABLE = {"nn": "tiny.nn"}\ndef load(name): return importlib.import_module(TABLE[name])',
    'NN = "tiny.nn:Linear"\nfrom importlib import import_module\nload = import_module(NN)',
])
def test_a_module_loaded_by_its_name_counts_as_imported(source):
    assert "tiny.nn" in dict(map(reversed, imported_modules(ast.parse(source))))
    assert forbidden(ROOT / "tiny" / "ir" / "node.py", "tiny.nn") == "ir may import nothing of tiny"


def test_only_the_loaders_themselves_load_by_computed_names():
    """Others say the name, to Lazy or in a table of one of these, where the test above sees it."""
    loaders = {str(path.relative_to(ROOT / "tiny")) for path in SOURCES
               if "import_module" in path.read_text()}
    assert loaders == {"lazy.py", "__main__.py", "hcq/device.py"}


def loaded_first(path: Path, modules: dict[str, Path]) -> set[str]:
    """The modules of tiny that a file imports, and the package around each."""
    named = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    named |= {name.rpartition(".")[0] for name in named if name.count(".") > 1}
    return named & modules.keys()


def test_no_module_has_to_be_loaded_before_itself():
    """Else it depends on which one is imported first whether that works."""
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
               for path in SOURCES if path.name not in LAZY_IMPORTS}
    graph = {name: {first for first in loaded_first(path, modules) if not f"{name}.".startswith(f"{first}.")}
             for name, path in modules.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        raise AssertionError(f"an import cycle: {' <- '.join(error.args[1])}; move what both need") from None


def test_only_config_reads_the_environment():
    readers = [f"{path.relative_to(ROOT)}:{node.lineno}" for path in SOURCES if path.name != "config.py"
               for node in ast.walk(ast.parse(path.read_text()))
               if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb")]
    assert not readers, f"the environment is read once, in config.py; not in {readers}"


def test_files_and_functions_fit_a_reader():
    long_files = [f"{path.relative_to(ROOT)}: {lines} lines" for path in SOURCES
                  if (lines := len(path.read_text().splitlines())) > 800]
    assert not long_files, f"a file has one subject and at most 500 lines, 800 in need: {long_files}"
    long_functions = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}, {lines} lines"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and (lines := node.end_lineno - node.lineno + 1) > 60
    ]
    assert not long_functions, f"a function fits a screen, 50 lines, 60 in need: {long_functions}"


def test_the_package_holds_every_file():
    patterns = re.search(r"package_data={\"\": (\[.*\])}", (ROOT / "setup.py").read_text())[1]
    suffixes = {".py", *(pattern.removeprefix("*") for pattern in ast.literal_eval(patterns))}
    left_out = [
        str(path.relative_to(ROOT))
        for folder in ("tiny", "autogen")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix not in suffixes | {".pyc"}
    ]
    assert not left_out, f"setup.py packs {sorted(suffixes)}, which leaves out {left_out}"
