"""Files that a running program writes line by line: nothing waits in memory to be lost if it is killed."""
import errno
import fcntl
import os
import stat
import sys
import threading
from collections.abc import Iterable

from tiny.config import ConfigError


class Output:
    """Lines go to the system as they come, whole, from any thread; after a fork only the parent's.

    setting: whose value `path` is, for messages; first: lines to begin with. ConfigError if the file cannot
    be written; what cannot be written later is told once, and the file ends there.
    """

    def __init__(self, path: str, setting: str, first: Iterable[str]):
        self.path, self.setting, self._pid = path, setting, os.getpid()
        self._lock = threading.Lock()
        try:
            self._fd = _claimed(path)
            if stat.S_ISREG(os.fstat(self._fd).st_mode):
                os.ftruncate(self._fd, 0)
        except OSError as error:
            raise ConfigError(f"{setting}={path}: the file cannot be written: {error.strerror}; give one in "
                              "a folder that exists and is yours") from None
        self.write(first)

    def write(self, lines: Iterable[str]) -> None:
        data = memoryview("".join(f"{line}\n" for line in lines).encode())
        with self._lock:
            if self._fd < 0 or os.getpid() != self._pid:
                return
            try:
                while data:
                    data = data[os.write(self._fd, data):]
            except OSError as error:
                print(f"tiny: {self.setting}={self.path}: {error.strerror}; the file ends here",
                      file=sys.stderr)
                self._close()

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _claimed(path: str) -> int:
    """The file, open for writing and locked while this process lives, or one beside it if it is taken."""
    for name in (path, f"{path}.{os.getpid()}"):
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            continue
        except OSError:                                     # a file system or a pipe that has no locks
            pass
        return fd
    raise OSError(errno.EBUSY, "another recording of this process writes there")
