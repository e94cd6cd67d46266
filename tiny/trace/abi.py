"""`python -m tiny abi --diff 535 595`: what changed between two NVIDIA driver versions in the structs that
tiny uses.
"""
import argparse
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType

from tiny.autogen import nv_abi


def structs(module: ModuleType) -> list[str]:
    """The names of a version's structs, each once, as C programs write them."""
    typedefs, tags, _ = module.ffi.list_types()
    return sorted(set(typedefs) | {f"struct {tag}" for tag in tags if tag not in typedefs})


def members(kind, prefix: str = "", base: int = 0) -> Iterator[tuple[str, int, str]]:
    """(dotted path, byte offset, C type) of every member, nested ones too."""
    for name, field in kind.fields:
        if name.startswith("tiny_pad"):
            continue
        if field.type.kind in ("struct", "union"):
            yield from members(field.type, f"{prefix}{name}." if name else prefix, base + field.offset)
        else:
            yield f"{prefix}{name}", base + field.offset, field.type.cname


def changes(old: ModuleType, new: ModuleType, name: str) -> list[str]:
    """One line for each change of a struct; the first tells its size. Empty if nothing changed."""
    kinds = [module.ffi.typeof(name) for module in (old, new)]
    if any(kind.kind not in ("struct", "union") for kind in kinds):
        return []
    before, after = ({path: (offset, kind) for path, offset, kind in members(each)} for each in kinds)
    sizes = [module.ffi.sizeof(name) for module in (old, new)]
    lines = [f"  - {path}: {kind} at {offset}" for path, (offset, kind) in before.items()
             if path not in after]
    lines += [f"  + {path}: {kind} at {offset}" for path, (offset, kind) in after.items()
              if path not in before]
    for path in (path for path in before if path in after and before[path] != after[path]):
        (old_offset, old_kind), (offset, kind) = before[path], after[path]
        types = "" if old_kind == kind else f", {old_kind} -> {kind}"
        lines.append(f"  ~ {path}: at {old_offset} -> {offset}{types}")
    if not lines and sizes[0] == sizes[1]:
        return []
    return [f"{name.removeprefix('struct ')}: {sizes[0]} -> {sizes[1]} bytes", *lines]


def diff(old_version: str, new_version: str) -> str:
    """The report for two versions. LookupError for one that no recorded layout covers."""
    old, new = nv_abi.select(old_version), nv_abi.select(new_version)
    if old is new:
        return f"{old_version} and {new_version} have the same layouts ({old.__name__})"
    report, known = [], set(structs(new))
    for name in structs(old):
        lines = changes(old, new, name) if name in known else [f"{name}: not in {new_version}"]
        if lines:
            origins = [f"    {version}: {nv_abi.origin(module, name)}"
                       for version, module in ((old_version, old), (new_version, new))
                       if name in structs(module)]
            report += [lines[0], *origins, *lines[1:]]
    return "\n".join(report)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status: 0 done, 2 for a version that no recorded layout covers."""
    parser = argparse.ArgumentParser(prog="python -m tiny abi", description=__doc__.partition(": ")[2])
    parser.add_argument("--diff", nargs=2, required=True, metavar="VERSION",
                        help=f"two driver versions or branches; recorded: {', '.join(_recorded())}")
    options = parser.parse_args(arguments)
    try:
        print(diff(*options.diff))
    except (LookupError, ValueError) as error:
        print(f"tiny abi: {error}", file=sys.stderr)
        return 2
    return 0


def _recorded() -> list[str]:
    return [module.removeprefix("nv_") for module in nv_abi.BRANCHES.values()]
