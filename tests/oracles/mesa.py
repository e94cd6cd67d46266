"""Mesa's command stream decoders, built from Debian's source packages: an opinion that is not ours.

22.3 is Debian 12's own and knows PM4 up to gfx11; 25.0 comes from its backports and knows gfx12, SDMA copies
and push buffers up to Ada. Only the decoders' few files are compiled, with the small programs beside this
file around them.
"""
import re
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tiny.autogen.generator.packages import Package, Packages

HERE = Path(__file__).resolve().parent
_AMD = ("src/amd/common", "src/amd/registers", "src/util", "include", "src/c11")
PACKAGES = {
    22: Package("mesa", "source", "bookworm", _AMD),
    25: Package("mesa", "source", "bookworm-backports", (*_AMD, "src/nouveau/headers")),
}
_FLAGS = ["-w", "-O1", "-std=gnu11", "-ffunction-sections", "-Wl,--gc-sections", "-D_GNU_SOURCE",
          "-DHAVE_ENDIAN_H",
          "-DHAVE_PTHREAD", "-DHAVE_STRUCT_TIMESPEC", "-DHAVE_SECURE_GETENV", "-DHAVE_OPEN_MEMSTREAM"]


def _run(command: Sequence[str], **options) -> subprocess.CompletedProcess:
    done = subprocess.run(command, capture_output=True, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))[:300]}: exit "
                           f"{done.returncode}\n{done.stderr.decode()[-2000:]}")
    return done


class Mesa:
    """One Mesa version, unpacked and built in `folder`."""

    def __init__(self, version: int, folder: Path):
        package = PACKAGES[version]
        unpacked = Packages(folder / "packages").bring([package])[package.key]
        self.version, self.release = version, unpacked.version
        self.source, self.build = unpacked.folder, folder / f"mesa{version}"
        self.build.mkdir(exist_ok=True)

    def amd(self) -> Path:
        """The program that prints PM4 and, from 25 on, SDMA streams."""
        common = self.source / "src/amd/common"
        listed = re.search(r"amd_json_files = \[(.*?)\]", (common / "meson.build").read_text(), re.DOTALL)[1]
        json = [str(common / name) for name in re.findall(r"'(.*?json)'", listed)]
        tables = _run([sys.executable, str(common / "sid_tables.py"), str(common / "sid.h"), *json])
        (self.build / "sid_tables.h").write_bytes(tables.stdout)
        registers = _run([sys.executable, str(common.parent / "registers/makeregheader.py"), *json, "--sort",
                          "address",
                          "--guard", "AMDGFXREGS_H"])
        (self.build / "amdgfxregs.h").write_bytes(registers.stdout)
        files = ["ac_debug.c"] if self.version < 23 else ["ac_debug.c", "ac_parse_ib.c"]
        return self._compile("mesa_amd", [common / file for file in files],
                             [common, common.parent, self.source / "src", self.source / "include"])

    def nv(self) -> Path:
        """The program that prints push buffers."""
        headers = self.source / "src/nouveau/headers"
        listed = re.search(r"nv_classes = \[(.*?)\]", (headers / "meson.build").read_text(), re.DOTALL)[1]
        made = []
        for name in re.findall(r"'(\w+)'", listed):
            out = [str(self.build / f"nv_push_{name}.{end}") for end in "hc"]
            _run([sys.executable, str(headers / "class_parser.py"), "--in-h",
                  str(headers / f"nvidia/classes/{name}.h"),
                  "--out-h", out[0], "--out-c", out[1]])
            made.append(Path(out[1]))
        return self._compile("mesa_nv", [headers / "nv_push.c", *made],
                             [headers, headers / "nvidia/classes", self.source / "src",
                              self.source / "include"])

    def _compile(self, name: str, files: Sequence[Path], includes: Sequence[Path]) -> Path:
        program = self.build / name
        flags = [*_FLAGS, f"-DMESA={self.version}", f"-I{self.build}",
                 *(f"-I{folder}" for folder in includes)]
        _run(["cc", *flags, "-o", str(program), str(HERE / f"{name}.c"), *map(str, files), "-lm"])
        return program


def printed(program: Path, arguments: Sequence[str], streams: Sequence[bytes]) -> list[str]:
    """What the program prints of each stream."""
    data = b"".join(struct.pack("<I", len(stream) // 4) + stream for stream in streams)
    text = _run([str(program), *arguments], input=data).stdout.decode()
    parts = re.split(r"^=== \d+\n", text, flags=re.MULTILINE)[1:]
    assert len(parts) == len(streams)
    return parts
