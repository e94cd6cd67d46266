"""The emulated machine's files as a folder: sysfs, the device nodes, the list of kernel modules."""
import os
from collections.abc import Sequence
from pathlib import Path

from tiny.emulator.amd.kernel import topology
from tiny.emulator.amd.kernel.cards import Card

DRM_MAJOR = 226                                              # include/drm/drm_file.h
MODULE = "amdgpu 19357696 0 - Live 0x0000000000000000\n"     # a line of /proc/modules


def write_tree(root: Path, cards: Sequence[Card]) -> None:
    """Write everything below `root`. Device nodes are empty files: the shim opens them."""
    def write(path: str, text: str) -> None:
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    for path, text in topology.files(cards).items():
        write(path, text)
    for number in range(len(cards)):
        minor = topology.render_minor_of(number)
        write(f"/dev/dri/renderD{minor}", "")
        device = root / f"sys/class/drm/renderD{minor}/device"
        for node in (f"renderD{minor}", f"card{number}"):    # libdrm tells cards apart by the second one
            (device / "drm" / node).mkdir(parents=True)
        (root / f"sys/class/drm/card{number}").symlink_to(f"renderD{minor}")
        (device / "subsystem").symlink_to("../../../../bus/pci")
        by_number = root / f"sys/dev/char/{DRM_MAJOR}:{minor}"
        by_number.parent.mkdir(parents=True, exist_ok=True)
        by_number.symlink_to(f"../../class/drm/renderD{minor}")
    (root / "sys/bus/pci").mkdir(parents=True)
    write("/dev/kfd", "")
    write("/sys/module/amdgpu/initstate", "live\n")
    (root / "sys/module/amdgpu/holders").mkdir()
    modules = Path("/proc/modules")
    others = modules.read_text() if os.access(modules, os.R_OK) else ""
    write("/proc/modules", others + MODULE)
