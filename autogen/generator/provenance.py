"""autogen/manifest.json: which version of each package was read, the sha256 of every file read, and which set
reads what.
"""
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tiny.autogen.generator.manifest import HeaderSet
from tiny.autogen.generator.packages import Unpacked


@dataclass
class Provenance:
    """The file's content. packages: Package.key -> what it is, with "files": path -> sha256. sets: module ->
    package keys.
    """
    packages: dict[str, dict] = field(default_factory=dict)
    sets: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Provenance":
        """The committed record; an empty one where there is none."""
        return cls(**json.loads(path.read_text())) if path.exists() else cls()

    def write(self, path: Path, known: Iterable[str]) -> None:
        """Save it, without sets that are gone and packages that no set reads."""
        sets = {name: self.sets[name] for name in sorted(self.sets) if name in set(known)}
        used = sorted({key for keys in sets.values() for key in keys})
        packages = {key: self.packages[key] | {"files": dict(sorted(self.packages[key]["files"].items()))}
                    for key in used}
        path.write_text(json.dumps({"sets": sets, "packages": packages}, indent=1) + "\n")

    def add(self, wanted: HeaderSet, folders: Mapping[str, Unpacked],
            hashes: Mapping[tuple[str, str], str]) -> None:
        """Note one set: hashes of (package key, path)."""
        self.sets[wanted.module] = [package.key for package in wanted.packages]
        for package in wanted.packages:
            unpacked = folders[package.key]
            row = self.packages.setdefault(package.key, {"files": {}})
            row |= {"package": package.name, "kind": package.kind, "suite": package.suite,
                    "version": unpacked.version,
                    "bytes": unpacked.size}
            row["files"] |= {path: digest for (key, path), digest in hashes.items() if key == package.key}

    def changed(self, hashes: Mapping[tuple[str, str], str]) -> list[str]:
        """The files among these that are not as this record has them."""
        return [f"{key}: {path}" for (key, path), digest in hashes.items()
                if self.packages.get(key, {"files": {}})["files"].get(path) != digest]

    def newer(self, other: "Provenance") -> list[str]:
        """One line for each package of this record whose version the other has differently."""
        return [f"{key} is now {row['version']}, recorded {other.packages[key]['version']}"
                for key, row in self.packages.items() if key in other.packages
                and other.packages[key]["version"] != row["version"]]

    def merged(self, newer: "Provenance") -> "Provenance":
        """This record with what another, of some sets only, says anew."""
        packages = {key: dict(row) for key, row in self.packages.items()}
        for key, row in newer.packages.items():
            packages[key] = row | {"files": packages.get(key, {"files": {}})["files"] | row["files"]}
        return Provenance(packages, self.sets | newer.sets)
