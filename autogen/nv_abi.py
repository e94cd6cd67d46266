"""Which struct layouts NVIDIA's driver has: chosen by the version that it reports when it is opened.

Written by hand; the modules it chooses among are generated. A driver's RM and UVM structs change with its
branch, and a wrong size is refused ("invalid structure parameter") or, worse, read past its end.
"""
import importlib
import re
from types import ModuleType

# first driver branch -> module; each holds until the next one begins
BRANCHES = {0: "nv_535", 550: "nv_550", 555: "nv_555", 570: "nv_570", 575: "nv_575", 580: "nv_580",
            590: "nv_590",
            595: "nv_595", 610: "nv_610"}
# branches whose headers, or tables, were looked at
OLDEST, NEWEST = 535, 610


def branch_of(version: str) -> int:
    """580 of "580.65.06". ValueError for text that is no driver version."""
    found = re.fullmatch(r"(\d{3,4})(\.\d+)*\s*", version)
    if not found:
        raise ValueError(f"{version!r} is no NVIDIA driver version; it looks like 580.65.06")
    return int(found[1])


def select(version: str, force: bool = False) -> ModuleType:
    """The module whose `ffi` has the structs of driver `version`, as CHECK_VERSION_STR reports it.

    Outside of the range that was looked at this is a LookupError, unless `force`: then the nearest layouts
    are taken.
    """
    branch = branch_of(version)
    if not force and not OLDEST <= branch < NEWEST + 10:
        raise LookupError(f"NVIDIA driver {version}: struct layouts are known for branches {OLDEST} to "
                          f"{NEWEST}; pass "
                          "force=True to try those of the nearest one")
    first = max(start for start in BRANCHES if start <= branch)
    return importlib.import_module(f"tiny.autogen.{BRANCHES[first]}")


def origin(module: ModuleType, struct: str) -> str:
    """Whether a header or a table stands behind one struct of one version's module, and which."""
    name = struct.removeprefix("struct ")
    table = getattr(module, "TABLE", {}).get(name)
    if table:
        return f"table: {table}"
    source = re.search(r"From ([\w.-]+) \((\w+)\)", module.__doc__)
    own = "" if module.__name__.endswith(("535", "555")) else ", unchanged since"
    return f"header: {source[1]} ({source[2]}){own}"
