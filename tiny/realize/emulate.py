"""EMULATE: a software card behind hcq.io, plugged in before a device of its kind is opened.

An emulator is large, so its module is loaded only when the setting asks for it.
"""
from tiny import config
from tiny.hcq import io
from tiny.hcq.errors import DeviceUnavailable
from tiny.lazy import Lazy

EMULATORS = {"AMD": Lazy("tiny.emulator.amd.kernel.provider")}  # kind -> module with emulate(setting, system)
_plugged: set[str] = set()


def plug_in(kind: str) -> None:
    """Install the emulator of a device kind, once, if EMULATE asks for it.

    EMULATE=1 with DEV=AMD:gfx1201 emulates that card. DeviceUnavailable for a card nobody emulates.
    """
    settings = config.current()
    if kind not in EMULATORS or kind in _plugged or settings.emulate in ("", "0"):
        return
    asked, _, arch = settings.device_name.partition(":")
    named = settings.emulate == "1" and asked.upper() == kind and arch and not arch.isdigit()
    try:
        with io.unseen():
            provider = EMULATORS[kind].emulate(arch if named else settings.emulate, io.installed())
    except ValueError as error:
        raise DeviceUnavailable(str(error)) from None
    io.install(provider)
    _plugged.add(kind)
