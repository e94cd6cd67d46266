"""The seam between tiny and the machine: every system call and doorbell of a device goes through a Provider.

The one installed at first makes real system calls. An emulator installs its own, which answers the same
calls with the driver's strictness; what it does not know it hands on. A device asks `installed()` once,
when it is opened. `watch` shows the calls of all providers to somebody else.
"""
import contextlib
import ctypes
import fcntl
import functools
import mmap as _mmap
import os
import threading
import weakref
from collections.abc import Callable, Iterator

READ, WRITE, EXECUTE = _mmap.PROT_READ, _mmap.PROT_WRITE, _mmap.PROT_EXEC
PRIVATE, SHARED, ANONYMOUS, FIXED = _mmap.MAP_PRIVATE, _mmap.MAP_SHARED, _mmap.MAP_ANONYMOUS, 0x10
PAGE = _mmap.PAGESIZE
HUGE_PAGE = 2 << 20
_ADVISE_HUGE_PAGE = 14                                       # MADV_HUGEPAGE, madvise(2)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Provider:
    """System calls as devices need them; this one makes them. Failures are OSError with the errno.

    Addresses are integers in this process. Override what you answer yourself, call `super()` for the rest.
    about: what stands behind it if not the machine's own kernel, for people: "emulated".
    """
    about = ""

    def open(self, path: str, flags: int = os.O_RDWR) -> int:
        """A file descriptor, which the caller owns."""
        return os.open(path, flags | os.O_CLOEXEC)

    def close(self, fd: int) -> None:
        os.close(fd)

    def read_text(self, path: str) -> str:
        """A small text file, as sysfs has them."""
        with open(path) as file:
            return file.read()

    def list_folder(self, path: str) -> list[str]:
        """The names in a folder, sorted."""
        return sorted(os.listdir(path))

    def ioctl(self, fd: int, request: int, argument: bytearray) -> None:
        """Ask the driver behind `fd`; it reads and writes `argument` in place."""
        fcntl.ioctl(fd, request, argument, True)

    def mmap(self, size: int, protection: int = READ | WRITE, flags: int = PRIVATE | ANONYMOUS, fd: int = -1,
             offset: int = 0, address: int = 0) -> int:
        """The address of a new mapping of `size` bytes; with FIXED it is `address`. The caller unmaps it."""
        result = _libc.mmap(address, size, protection, flags, fd, offset)
        if result == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), f"mmap of {size} bytes")
        return result

    def mmap_aligned(self, size: int, alignment: int, protection: int = READ | WRITE,
                     flags: int = PRIVATE | ANONYMOUS) -> int:
        """As mmap, for an address that is a multiple of `alignment`, a multiple of the page size."""
        start = self.mmap(size + alignment, protection, flags)
        address = -(-start // alignment) * alignment
        for low, high in ((start, address), (address + size, start + size + alignment)):
            if high > low:
                self.munmap(low, high - low)
        return address

    def munmap(self, address: int, size: int) -> None:
        _checked(_libc.munmap(address, size), "munmap", address, size)

    def protect(self, address: int, size: int, protection: int) -> None:
        """Change what may be done with the pages; nothing of ours is writable and executable at a time."""
        _checked(_libc.mprotect(address, size, protection), "mprotect", address, size)

    def advise_huge_pages(self, address: int, size: int) -> None:
        """Ask for huge pages; without effect where the system has none."""
        _libc.madvise(address, size, _ADVISE_HUGE_PAGE)

    def view(self, address: int, size: int, owner=None) -> memoryview:
        """The bytes at `address`, writable; the view keeps `owner` alive."""
        return view(address, size, owner)

    def name_code(self, address: int, name: str) -> None:
        """Say what the program is called whose first instruction is at a device address; for an emulator."""

    def doorbell(self, ring: Callable[[int], None], position: int) -> None:
        """Tell the device that its ring is filled up to `position`."""
        ring(position)


def _checked(result: int, call: str, address: int, size: int) -> None:
    if result:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), f"{call} of {size} bytes at {address:#x}")


@functools.cache
def _window(size_bits: int) -> type[ctypes.Array]:
    """An array type large enough for sizes of so many bits; making a type for each size would cost 20 us."""
    return ctypes.c_ubyte * (1 << size_bits)


def view(address: int, size: int, owner=None) -> memoryview:
    """The `size` bytes at `address` as a writable memoryview of format "B"; it keeps `owner` alive."""
    window = _window(size.bit_length()).from_address(address)
    window._owner = owner
    return memoryview(window).cast("B")[:size]


_installed: list[Provider] = [Provider()]
_watchers: list[object] = []
_wired: "weakref.WeakSet[Provider]" = weakref.WeakSet()    # those that somebody watches
_showing = threading.local()                                # .to: the watchers that see a call right now
WATCHED = ("open", "close", "ioctl", "mmap", "mmap_aligned", "munmap", "protect", "doorbell")


def installed() -> Provider:
    """The provider that devices opened from now on will use."""
    return _installed[-1]


def install(provider: Provider) -> Callable[[], None]:
    """Send the calls of devices opened from now on to `provider`;
    call what is returned to take it out again.
    """
    _installed.append(provider)
    _let_watch(provider)
    return lambda: _installed.remove(provider)


def watch(watcher: object) -> Callable[[], None]:
    """Show the calls of every installed provider to `watcher`, of open devices too; call the result to stop.

    watcher: has methods with names of WATCHED; each is called with the provider's own method in front of the
    arguments, calls that, and gives its result. What a provider calls to answer a call is not shown.
    Providers that nobody watches are left as they are: it costs nothing then.
    """
    _watchers.append(watcher)
    _let_all_watch()

    def stop() -> None:
        _watchers.remove(watcher)
        _let_all_watch()
    return stop


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """Nobody sees the calls that this thread makes inside: they belong to an emulator, not to a device."""
    before = vars(_showing).get("to", set())
    _showing.to = before | set(map(id, _watchers))
    try:
        yield
    finally:
        _showing.to = before


def _let_all_watch() -> None:
    for provider in {*_installed, *_wired}:
        _let_watch(provider)


def _let_watch(provider: Provider) -> None:
    """Put the watchers, or nobody, between a provider's callers and its methods."""
    if _watchers:
        _wired.add(provider)
    for name in WATCHED:
        vars(provider).pop(name, None)
        call = getattr(provider, name)
        for watcher in _watchers:
            if hasattr(watcher, name):
                call = functools.partial(_show, watcher, getattr(watcher, name), call)
                setattr(provider, name, call)


def _show(watcher: object, see: Callable, call: Callable, *arguments, **named):
    seeing = vars(_showing).setdefault("to", set())
    if id(watcher) in seeing:
        return call(*arguments, **named)
    seeing.add(id(watcher))
    try:
        return see(call, *arguments, **named)
    finally:
        seeing.discard(id(watcher))
