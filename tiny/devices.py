"""`Device`, the users' table of opened devices, and `python -m tiny devices`, which lists every kind."""
import sys

import tiny.hcq as hcq
from tiny.config import ConfigError
from tiny.hcq.device import Device as OpenDevice
from tiny.hcq.device import DeviceStatus
from tiny.hcq.errors import DeviceUnavailable

OPENS, FAILS = "opens", "-"


class Devices:
    """Device.DEFAULT is the name of the device in force;
    Device["CPU"] opens a device, the same object each time.

    Raises DeviceUnavailable, which says what there is, for a device that is unknown, not built or absent.
    """

    @property
    def DEFAULT(self) -> str:
        return hcq.device.canonical()

    def __getitem__(self, name: str) -> OpenDevice:
        return hcq.device.open(name)


Device = Devices()


def listing(found: list[DeviceStatus], default: str) -> str:
    """One line for each kind; the default device is marked with a star."""
    ready = next((status.name for status in found if status.opens), None)
    lines = []
    for status in found:
        mark = "*" if default.partition(":")[0] == status.name else " "
        way_out = f"; meanwhile DEV={ready} runs everything"
        if status.opens or ready is None or f"DEV={ready}" in status.reason:
            way_out = ""
        lines.append(f"{mark} {status.name:6} {OPENS if status.opens else FAILS:6} {status.reason}{way_out}")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Print the listing; 0 if the default device opens, otherwise 2."""
    if arguments:
        print("usage: python -m tiny devices", "", "Every kind of device, whether it opens, and if not, why.",
              "A star marks the default, which DEV=NAME changes.", sep="\n")
        return 0 if arguments in (["-h"], ["--help"]) else 2
    try:
        default, problem = Device.DEFAULT, None
    except (DeviceUnavailable, ConfigError) as error:
        default, problem = "", error
    found = hcq.device.describe()
    print(listing(found, default))
    if problem is not None:
        print(f"tiny devices: {problem}", file=sys.stderr)
    return 0 if any(status.opens and status.name == default.partition(":")[0] for status in found) else 2
