"""A content-addressed cache on disk that is safe between processes."""
import contextlib
import errno
import hashlib
import itertools
import os
import shutil
import time
from collections.abc import Sequence

MAGIC = b"tiny1\n"
KEY_BYTES = 20
CHECKSUM_BYTES = 16
STALE_S = 3600
LEAST_FREE_BYTES = 4 << 20                          # on the disk, for the compiler's files and the entries
DATA, SHARED = b"d", b"s"                           # what follows: the data, or the key of the entry with it
_reported: set[str] = set()                         # folders that cannot be written, as this process has said


def digest(*parts: str) -> str:
    """A key: the parts' hash in hexadecimal."""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=KEY_BYTES).hexdigest()


class Cache:
    """Entries in `folder`, content-addressed, safe between processes.

    An entry is a file named by its key: magic, a checksum, then the data. It is written beside its place and
    renamed into it, so a reader sees all of it or nothing; a damaged entry counts as missing and is written
    again. A killed process leaves at most a file in `work/`, which a later process clears away.

    part: a folder in it for entries of one kind. A folder that cannot be written, or a part of it, is
    reported once by a process on stderr; then entries are only read.
    """
    def __init__(self, folder: str, part: str = ""):
        self.folder, self._whole = os.path.join(folder, part) if part else folder, folder
        self._numbers = itertools.count()
        self._writable = True
        self._cleared = False
        self._shared: dict[str, bytes] = {}         # objects that several keys share, as read in this process

    def get(self, key: str) -> bytes | None:
        """The entry's data, None if there is none or it is damaged."""
        body = self._read(key)
        if body is None:
            return None
        if body[:1] == DATA:
            return body[1:]
        shared_key = body[1:].decode()
        if shared_key not in self._shared:
            shared = self._read(shared_key)
            if shared is None or shared[:1] != DATA:
                return None
            self._shared[shared_key] = shared[1:]
        return self._shared[shared_key]

    def put(self, key: str, data: bytes) -> None:
        """Keep `data`; another process may do the same at the same time, the later one wins."""
        self._write(key, DATA + data)

    def put_shared(self, keys: Sequence[str], data: Sequence[bytes]) -> None:
        """Keep one object for each key; an object that several keys share is stored once."""
        for key, one in zip(keys, data, strict=True):
            if sum(other is one for other in data) == 1:
                self.put(key, one)
                continue
            place = hashlib.blake2b(one, digest_size=KEY_BYTES).hexdigest()
            if place not in self._shared:
                self._shared[place] = one
                self.put(place, one)
            self._write(key, SHARED + place.encode())

    def keys(self) -> list[str]:
        """The keys of all entries, sorted."""
        found = []
        with contextlib.suppress(FileNotFoundError):
            for start in os.listdir(self.folder):
                path = os.path.join(self.folder, start)
                if len(start) == 2 and os.path.isdir(path):
                    found += [start + rest for rest in os.listdir(path)]
        return sorted(found)

    def work_folder(self) -> str | None:
        """A folder for temporary files on the same file system, None if there is none to write in."""
        folder = os.path.join(self.folder, "work")
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            self._give_up(error)
            return None
        if not os.access(folder, os.W_OK):
            return None
        disk = os.statvfs(folder)
        if disk.f_bavail * disk.f_frsize < LEAST_FREE_BYTES:    # the compiler writes there, too
            self._give_up(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
            return None
        if not self._cleared:
            self._cleared = True
            _clear_stale(folder)
        return folder

    def _path(self, key: str) -> str:
        return os.path.join(self.folder, key[:2], key[2:])

    def _read(self, key: str) -> bytes | None:
        try:
            with open(self._path(key), "rb") as file:
                entry = file.read()
        except OSError:
            return None
        start = len(MAGIC) + CHECKSUM_BYTES
        if entry[:len(MAGIC)] != MAGIC or entry[len(MAGIC):start] != _checksum(entry[start:]):
            return None
        return entry[start:]

    def _write(self, key: str, body: bytes) -> None:
        if not self._writable:
            return
        folder, path = self.work_folder(), self._path(key)
        if folder is None:
            return
        temporary = os.path.join(folder, f"{key}.{os.getpid()}.{next(self._numbers)}")
        try:
            with open(temporary, "wb") as file:
                file.write(MAGIC + _checksum(body) + body)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.replace(temporary, path)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._writable = False
        if self._whole not in _reported:
            _reported.add(self._whole)
            os.write(2, f"tiny: {self.folder} cannot be written ({error.strerror}), compiled kernels are not "
                        "kept; set CACHE to a folder that can, or CACHE=0 to do without\n".encode())


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=CHECKSUM_BYTES).digest()


def _clear_stale(folder: str) -> None:
    """Remove what processes that were killed left behind."""
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if time.time() - entry.stat(follow_symlinks=False).st_mtime < STALE_S:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)
            except OSError:
                continue                            # another process was faster, or it is not ours to remove
