"""Bring header packages into one folder, without touching what the machine has installed.

Debian packages come through a private apt state. Its sources are derived from the archive that this machine
is configured for, so suites and components that the machine does not follow (backports, contrib, sources) are
reached through the same mirror and no host name is written down here. Wheels come through pip.
"""
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


class PackageError(Exception):
    """A package, or the archive it should come from, cannot be reached."""


@dataclass(frozen=True)
class Package:
    """One package of headers.

    kind   "deb" a binary package, "source" the upstream tarball of a source package, "wheel" from PyPI
    suite  the Debian suite that pins a deb or source; for a wheel its exact version
    keep   tar or zip patterns of the files wanted, relative to the package's root
    inner  a tarball inside the package to unpack `keep` from (Debian ships the kernel's source so); a pattern
    """
    name: str
    kind: str
    suite: str
    keep: tuple[str, ...]
    component: str = "main"
    inner: str = ""
    platform: str = ""

    @property
    def key(self) -> str:
        """Names the package uniquely in one run: the same package may be wanted from two suites."""
        return f"{self.name}-{self.suite}"


@dataclass(frozen=True)
class Unpacked:
    """A package on disk: the folder that `Package.keep` paths are relative to, its version, and its bytes
    downloaded.
    """
    folder: Path
    version: str
    size: int


@dataclass(frozen=True)
class _Archive:
    """One line of the machine's apt sources: the key that signs it may be unnamed."""
    uri: str
    suites: tuple[str, ...]
    signed_by: str


def _configured_archives(etc: Path = Path("/etc/apt")) -> list[_Archive]:
    """What the machine's apt sources name, in both file formats."""
    found = []
    files = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]
    for file in (f for f in files if f.is_file()):
        text = re.sub(r"^\s*#.*\n?", "", file.read_text(), flags=re.MULTILINE)
        if file.suffix == ".sources":
            for stanza in re.split(r"\n\s*\n", text):
                entry = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", stanza, re.MULTILINE))
                if "URIs" in entry:
                    found.append(_Archive(entry["URIs"].split()[0], tuple(entry.get("Suites", "").split()),
                                          entry.get("Signed-By", "")))
        else:
            for line in re.findall(r"^deb(?:-src)?[ \t]+(\[[^\]]*\][ \t]+)?(\S+)[ \t]+(\S+)", text,
                                   re.MULTILINE):
                signed = re.search(r"signed-by=(\S+?)[\s\]]", line[0])
                found.append(_Archive(line[1], (line[2],), signed[1] if signed else ""))
    return found


def _codename() -> str:
    found = re.search(r"^VERSION_CODENAME=\"?(\w+)", Path("/etc/os-release").read_text(), re.MULTILINE)
    return found[1] if found else ""


def _archive_for(suite: str, archives: Sequence[_Archive], codename: str) -> _Archive:
    """The configured archive that also serves `suite`: the security one for NAME-security, else the main
    one."""
    own = f"{codename}-security" if suite.endswith("-security") else codename
    for archive in archives:
        if own in archive.suites:
            return archive
    raise PackageError(f"suite {suite}: no archive for {own} among this machine's apt sources; bindings "
                       f"come from "
                       "Debian's packages, so run this on Debian with its archive configured")


class Packages:
    """A folder that packages are downloaded and unpacked into, each once."""

    def __init__(self, folder: Path):
        self.folder = folder.resolve()
        self._unpacked: dict[str, Unpacked] = {}
        self._updated: set[tuple[str, str, str]] = set()

    def bring(self, wanted: Iterable[Package]) -> dict[str, Unpacked]:
        """Download and unpack what is wanted: Package.key -> Unpacked. What this folder has is used again."""
        packages = list(wanted)
        missing = [p for p in packages if p.kind != "wheel"
                   and not (self.folder / p.key / "version").exists()]
        if missing:
            self._update(missing)
        for package in packages:
            if package.key not in self._unpacked:
                self._unpacked[package.key] = self._bring(package)
        return {package.key: self._unpacked[package.key] for package in packages}

    def _update(self, packages: Sequence[Package]) -> None:
        """Write the private sources for these packages and fetch their indexes."""
        archives, codename = _configured_archives(), _codename()
        lines = set()
        for package in packages:
            archive = _archive_for(package.suite, archives, codename)
            key = archive.signed_by or (str(_KEYRING) if _KEYRING.exists() else "")
            option = f"[signed-by={key}] " if key else ""
            word = "deb-src" if package.kind == "source" else "deb"
            lines.add(f"{word} {option}{archive.uri} {package.suite} {package.component}\n")
        for part in ("state/lists/partial", "cache/archives/partial"):
            (self.folder / "apt" / part).mkdir(parents=True, exist_ok=True)
        (self.folder / "apt" / "sources.list").write_text("".join(sorted(lines)))
        self._apt("apt-get", "update")

    def _apt(self, *command: str, where: Path | None = None) -> None:
        apt = self.folder / "apt"
        options = {"Dir::State": apt / "state", "Dir::Cache": apt / "cache",
                   "Dir::Etc::SourceList": apt / "sources.list",
                   "Dir::Etc::SourceParts": "/dev/null", "Dir::Etc::Preferences": "/dev/null",
                   "Dir::Etc::PreferencesParts": "/dev/null", "Acquire::Languages": "none",
                   "APT::Sandbox::User": "root"}
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        _run([command[0], "-q", *words, *command[1:]], where or self.folder)

    def _bring(self, package: Package) -> Unpacked:
        place = self.folder / package.key
        if not (place / "version").exists():
            shutil.rmtree(place, ignore_errors=True)
            (place / "download").mkdir(parents=True)
            (place / "files").mkdir()
            file = self._download(package, place / "download")
            _unpack(package, file, place / "files")
            (place / "version").write_text(f"{_version(package, file)} {file.stat().st_size}")
            shutil.rmtree(place / "download")
        version, size = (place / "version").read_text().split()
        return Unpacked(place / "files", version, int(size))

    def _download(self, package: Package, place: Path) -> Path:
        if package.kind == "wheel":
            platform = ["--platform", package.platform, "--only-binary=:all:"] if package.platform else []
            _run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", *platform, "-d", ".",
                  f"{package.name}=={package.suite}"], place)
        elif package.kind == "source":
            self._apt("apt-get", "source", "--download-only", "--tar-only",
                      f"{package.name}/{package.suite}", where=place)
        else:
            self._apt("apt-get", "download", f"{package.name}/{package.suite}", where=place)
        return max(place.iterdir(), key=lambda file: file.stat().st_size)


def _version(package: Package, file: Path) -> str:
    """The version in a file's name: NAME_VERSION_ARCH.deb, NAME_VERSION.orig.tar.xz,
    NAME-VERSION-TAGS.whl."""
    if package.kind == "wheel":
        return file.name.split("-")[1]
    return file.name.split("_")[1].split(".orig")[0].replace("%3a", ":")


def _unpack(package: Package, file: Path, into: Path) -> None:
    if package.kind == "wheel":
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                if any(Path(name).match(pattern) for pattern in package.keep):
                    archive.extract(name, into)
        return
    patterns = [f"*/{pattern}" for pattern in package.keep]
    tar = ["tar", "-x", "--wildcards", "--no-wildcards-match-slash", "-C", str(into)]
    if package.kind == "source":
        _run([*tar, "--strip-components=1", "-f", str(file), *patterns], into)
    elif package.inner:
        _pipe(["dpkg-deb", "--fsys-tarfile", str(file)], [*tar, f"*/{package.inner}"])
        tarball = next(into.rglob(package.inner.rsplit("/", 1)[-1]))
        _run([*tar, "--strip-components=1", "-f", str(tarball), *patterns], into)
        tarball.unlink()
    else:
        _pipe(["dpkg-deb", "--fsys-tarfile", str(file)], [*tar, *patterns])


def _run(command: Sequence[str], where: Path) -> None:
    done = subprocess.run(command, cwd=where, capture_output=True, text=True)
    if done.returncode:
        raise PackageError(f"{' '.join(command[:2])} ... {command[-1]}: exit "
                           f"{done.returncode}\n{done.stderr[-2000:]}")


def _pipe(first: Sequence[str], second: Sequence[str]) -> None:
    with subprocess.Popen(first, stdout=subprocess.PIPE) as source:
        done = subprocess.run(second, stdin=source.stdout, capture_output=True, text=True)
    if done.returncode:
        raise PackageError(f"{' '.join(second)}: exit {done.returncode}\n{done.stderr[-2000:]}")
