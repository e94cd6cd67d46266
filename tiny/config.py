"""Configuration: the environment, read once into a frozen dataclass, and `Context` to change a copy of it.

    from tiny.config import current, Context
    if current().debug >= 2: ...                 # library code asks for the settings in force
    with Context(DEBUG=2, TRAINING=1): ...       # users change them for a block, or as a decorator

This is the only file that reads `os.environ`. The names are those of the manual page `docs/environment.md`.
"""
import contextvars
import difflib
import functools
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

DEVICE_NAMES = ("AMD", "NV", "METAL", "CPU")
# settings of the closest peer that have no meaning here; programs that set them keep running
PEER_NAMES = frozenset(("WINO", "IMAGE", "FUSE_ARANGE", "SPLIT_REDUCEOP", "USE_TC", "TC", "TC_OPT", "SPEC",
                        "JIT_BATCH_SIZE", "NO_MEMORY_PLANNER", "CACHELEVEL", "FUSE_OPTIM", "TRACEMETA"))


class ConfigError(ValueError):
    """A setting has a value it cannot have; the text names the setting, the value and the way out."""


def _setting(default, kind, doc: str):
    """A field of Config: `kind` (text, name, value) -> value parses the environment's text."""
    return field(default=default, metadata={"parse": kind, "doc": doc})


def _integer(name: str, text: str) -> int:
    try:
        return int(text or "0", 0)
    except ValueError:
        raise ConfigError(f"{name}={text!r}: an integer is needed, for example {name}=1") from None


def _count(name: str, text: str) -> int:
    return _not_negative(name, text, _integer(name, text))


def _not_negative(name: str, text: str, number: int) -> int:
    if number < 0:
        raise ConfigError(f"{name}={text!r}: at least 0 is needed")
    return number


def _text(name: str, text: str) -> str:
    return text


_SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _size(name: str, text: str) -> int:
    """Bytes: a number, optionally with K, M, G or T behind it (powers of 1024), then optionally B or iB."""
    digits = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = _SIZES.get(digits[-1:], 1)
    number = digits[:-1] if unit > 1 else digits
    try:
        size = int(float(number or "0") * unit)
    except (ValueError, OverflowError):
        raise ConfigError(f"{name}={text!r}: a size is needed, for example {name}=8G") from None
    return _not_negative(name, text, size)


@dataclass(frozen=True, slots=True)
class Config:
    """Every setting, each with the environment variable of the same name in capitals. Immutable."""
    amd: int = _setting(0, _count, "1 selects the AMD device")
    nv: int = _setting(0, _count, "1 selects the NVIDIA device")
    metal: int = _setting(0, _count, "1 selects the Metal device")
    cpu: int = _setting(0, _count, "1 selects the CPU device")
    dev: str = _setting("", _text, "the default device by name, optionally with an architecture: AMD:gfx1201")
    device: str = _setting("", _text, "the same as DEV")
    emulate: str = _setting("", _text, "1, or the cards to emulate: gfx1100,gfx1100")
    visible_devices: str = _setting("", _text, "numbers of the cards to use, separated by commas")
    debug: int = _setting(0, _count, "0 quiet ... 7 machine code and packets")
    profile: str = _setting("", _text, "file for a Perfetto trace")
    trace: str = _setting("", _text, "file for ioctls and packets")
    no_color: str = _setting("", _text, "anything: text without colours")
    check: int = _setting(0, _count, "1: verify graphs at every stage, refuse an index outside its axis, "
                         "look for errors on emulated cards (2: in every workgroup)")
    jit: int = _setting(1, _count, "0 off, 1 on, 2 replay without one submission")
    beam: int = _setting(0, _count, "schedules kept from one round of the search to the next, 0: no search")
    noopt: int = _setting(0, _count, "1: kernels as written, no schedule heuristics")
    parallel: int = _setting(0, _count, "processes for compiling and searching, 0: one for each core")
    threads: int = _setting(0, _count, "threads of the CPU device, 0: one for each core")
    timeout_ms: int = _setting(30_000, _count, "limit of every wait for a device, in milliseconds")
    memory_limit: int = _setting(0, _size, "bytes a device may hold, 0: no limit; K, M, G allowed")
    default_float: str = _setting("float32", _text, "dtype of floating tensors made without one")
    training: int = _setting(0, _count, "1: layers such as dropout and batch norm act as in training")
    seed: int = _setting(0, _integer, "seed of the random numbers")
    cache: str = _setting("", _text, "folder of compiled kernels, 0: no cache on disk")
    xdg_cache_home: str = _setting("", _text, "folder that holds `tiny/` if CACHE names none; else ~/.cache")
    cc: str = _setting("", _text, "the C compiler; else the newest clang, else gcc")
    libclang: str = _setting("", _text, "libclang's shared library, for the binding generator")
    ptxas: str = _setting("", _text, "NVIDIA's assembler")

    @property
    def device_chosen(self) -> bool:
        """Whether a setting names the default device."""
        return bool(self.dev or self.device or any(getattr(self, name.lower()) for name in DEVICE_NAMES))

    @property
    def device_name(self) -> str:
        """The default device as the user named it, CPU if nobody did. ConfigError if two names are set."""
        chosen = {f"{name}=1": name for name in DEVICE_NAMES if getattr(self, name.lower())}
        chosen |= {f"DEV={self.dev}": self.dev} if self.dev else {}
        chosen |= {f"DEVICE={self.device}": self.device} if self.device else {}
        if len({value.upper().partition(":")[0] for value in chosen.values()}) > 1:
            raise ConfigError(f"two devices are selected, {' and '.join(chosen)}; unset all but one")
        return max(chosen.values(), key=len, default="CPU")     # the one with an architecture or a number

    @property
    def cache_folder(self) -> str | None:
        """Where compiled kernels are kept, None for nowhere. The folder may not exist yet."""
        if self.cache:
            return None if self.cache == "0" else os.path.expanduser(self.cache)
        return os.path.join(self.xdg_cache_home or os.path.expanduser("~/.cache"), "tiny")

    @property
    def core_count(self) -> int:
        """Cores this process may use: those it may run on, or fewer if a container limits its time."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        try:
            with open("/sys/fs/cgroup/cpu.max") as file:
                quota, period = file.read().split()
            return cores if quota == "max" else max(1, min(cores, -(-int(quota) // int(period))))
        except (OSError, ValueError):
            return cores


_FIELDS = {f.name.upper(): f for f in fields(Config)}


def read_environment(environment: dict[str, str]) -> tuple[Config, list[str]]:
    """The settings in `environment` and hints about names in it that look meant for us but are not known.

    Raises ConfigError for a value of the wrong kind.
    """
    values, hints = {}, []
    for name, text in environment.items():
        if name in _FIELDS:
            setting = _FIELDS[name]
            values[setting.name] = setting.metadata["parse"](name, text)
        elif name.startswith("TINY_"):
            hints.append(f"{name} is not a setting of tiny{_nearest(name.removeprefix('TINY_'))}")
    return Config(**values), hints


def _nearest(name: str) -> str:
    if name in _FIELDS:
        return f"; write {name}, without TINY_"
    close = difflib.get_close_matches(name.upper(), _FIELDS, n=1)
    return f"; did you mean {close[0]}?" if close else f"; the settings are {', '.join(_FIELDS)}"


_current: contextvars.ContextVar[Config] = contextvars.ContextVar("tiny.config")


# setting -> starts what a value of it asks for, and gives how to end that; `Context` calls them
effects: dict[str, Callable[[str], Callable[[], None]]] = {}


@functools.cache
def environment() -> Config:
    """The settings of the process's environment, whatever a `Context` says."""
    config, hints = read_environment(os.environ)
    for hint in hints:
        os.write(2, f"tiny: {hint}\n".encode())
    return config


def current() -> Config:
    """The settings in force: the environment's, or those of the innermost `Context`."""
    config = _current.get(None)
    return config if config is not None else environment()


class Context:
    """Settings changed for a `with` block or, as a decorator, for a function's calls.

    Names are the environment's: `Context(DEBUG=2, BEAM=0)`. Local to the thread and to the asynchronous task.
    Raises ConfigError for a name that is no setting. Reusable and reentrant.
    """
    def __init__(self, **settings):
        self._settings = settings
        self._changes = {}
        for name, value in settings.items():
            if name in _FIELDS:
                kind = type(_FIELDS[name].default)
                parse = _FIELDS[name].metadata["parse"]
                self._changes[name.lower()] = parse(name, value) if isinstance(value, str) else kind(value)
            elif name not in PEER_NAMES:
                raise ConfigError(f"Context: {name} is not a setting{_nearest(name)}")
        self._tokens = []

    def __enter__(self) -> "Context":
        before = current()
        ends = [effects[name](value) for name, value in self._changes.items()
                if name in effects and value and value != getattr(before, name)]
        self._tokens.append((_current.set(replace(before, **self._changes)), ends))
        return self

    def __exit__(self, *_) -> None:
        token, ends = self._tokens.pop()
        _current.reset(token)
        for end in ends:
            end()

    def __call__(self, function):
        @functools.wraps(function)
        def inside(*args, **kwargs):
            with Context(**self._settings):
                return function(*args, **kwargs)
        return inside


def getenv(name: str, default=0):
    """The environment variable `name` in the type of `default`; for users' programs (ours: `current()`)."""
    text = os.environ.get(name)
    return default if text is None else type(default)(text)


def may_colour(stream) -> bool:
    """Whether text for a stream may have colours: it is a terminal, and NO_COLOR is not set."""
    return not current().no_color and stream.isatty()
