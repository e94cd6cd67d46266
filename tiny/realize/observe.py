"""TRACE and PROFILE: recorders that listen to devices, started when a setting asks for one.

The environment's are started before the first device is opened and run to the end of the process; those of a
`Context` run while it lasts, for the whole process. Their modules are loaded only then.
"""
import functools
import importlib
import threading
from collections.abc import Callable

from tiny import config

# setting -> module with start(path)
RECORDERS = {"trace": "tiny.trace.record"}
_lock = threading.Lock()
_started: set[str] = set()


def start(setting: str, path: str) -> Callable[[], None]:
    """Start a recorder; call what is returned to end it. ConfigError if the file cannot be written."""
    return importlib.import_module(RECORDERS[setting]).start(path)


def start_recorders(kind: str) -> None:
    """Start what the environment asks for, once, before a device of any kind is opened."""
    with _lock:
        for setting in RECORDERS.keys() - _started:
            path = getattr(config.environment(), setting)
            if path:
                start(setting, path)
            _started.add(setting)


config.effects.update({setting: functools.partial(start, setting) for setting in RECORDERS})
