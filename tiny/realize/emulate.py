"""EMULATE: a software card behind hcq.io, plugged in before a device of its kind is opened.

An emulator is large, so its module is loaded only when the setting asks for it.
"""
import atexit
import os

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
    if kind in _plugged or settings.emulate in ("", "0"):
        return
    if kind not in EMULATORS:
        if not settings.device_chosen:
            atexit.unregister(_say_unused)                  # once, for all devices of such kinds
            atexit.register(_say_unused, settings.emulate)
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


def _say_unused(setting: str) -> None:
    """At the end of a process, for until then it may open a card by its name."""
    if not _plugged:
        os.write(2, f"tiny: EMULATE={setting} had no effect, all ran on the CPU, the default device; AMD=1 "
                    f"EMULATE={setting} runs on an emulated card\n".encode())
