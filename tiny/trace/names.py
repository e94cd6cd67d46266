"""A record without what differs from run to run: addresses, handles and file descriptors are taken out.

An address is a number inside a mapping that the trace told of: the mapping is taken out, the offset in it
stays. Handles, ids and descriptors are known by the names of their fields. Times, and pointers to memory of
the process itself, mean nothing to anyone else and are dropped.
"""
import bisect
import re
from typing import NamedTuple

KINDS = {"fd": "fd", "drm_fd": "fd", "dmabuf_fd": "fd", "handle": "handle", "event_page_offset": "handle",
         "mmap_offset": "offset", "doorbell_offset": "offset", "offset": "offset", "gpu_id": "gpu",
         "device_ids_array_ptr": "gpu", "queue_id": "queue", "event_id": "event",
         "event_trigger_data": "trigger"}                   # field -> what its number names; 0 names nothing
DROPPED = {"gpu_clock_counter": "time", "cpu_clock_counter": "time", "system_clock_counter": "time"}
PROCESS = range(1 << 40, 1 << 47)                           # addresses of a process on x86-64, by their size
NUMBER = re.compile(r'(\w+)=(?=0x|\d)|\b(0x[0-9a-f]+|\d+)\b|"[^"]*"|(?:arch|detail|compiler)=\S*')
ADDRESS = re.compile(r"address=(0x[0-9a-f]+)")
SIZE = re.compile(r"size=(0x[0-9a-f]+)")


class Name(NamedTuple):
    """Something that has another number in each run: its kind, and the number, or which mapping it is."""
    kind: str
    number: int


class Record(NamedTuple):
    """A line's text in pieces, with the names that stand between them: there is one more piece."""
    line: int
    pieces: tuple[str, ...]
    names: tuple[Name, ...]

    @property
    def shape(self) -> tuple[str, ...]:
        """What must be equal for two records to be about the same."""
        return self.pieces + tuple(name.kind for name in self.names)

    def text(self, shown: dict[Name, str]) -> str:
        words = [self.pieces[0]]
        for name, piece in zip(self.names, self.pieces[1:], strict=True):
            words += [shown[name], piece]
        return "".join(words)


class Reader:
    """Takes the records of one trace apart, in their order."""

    def __init__(self):
        self._starts: list[int] = []                        # of mappings, sorted
        self._maps: list[tuple[int, int]] = []              # their ends, and their numbers
        self.starts: dict[int, int] = {}                    # number of a mapping -> where it began

    def record(self, line: int, text: str) -> Record:
        """The record that stands on a line."""
        kind = text.partition(" ")[0]
        if kind == "mmap":
            self._mapped(text)
        pieces, names, end, key = [""], [], 0, ""
        for match in NUMBER.finditer(text):
            if match[1]:
                key = match[1]
            if not match[2]:
                continue
            name, rest = self._name(key, int(match[2], 0), text[match.start() - 1] == "=")
            if name is None and rest is None:
                continue
            pieces[-1] += text[end:match.start()]
            end = match.end()
            if name is None:
                pieces[-1] += rest
            else:
                names.append(name)
                pieces.append(rest)
        pieces[-1] += text[end:]
        if kind == "munmap":
            self._unmapped(text)
        return Record(line, tuple(pieces), tuple(names))

    def _name(self, key: str, number: int, first: bool) -> tuple[Name | None, str | None]:
        """(what a number names, text behind that); (None, text) to drop it, (None, None) to leave it."""
        if key in DROPPED:
            return None, f"<{DROPPED[key]}>"
        if key.endswith("_ptr") and first:
            return None, "<pointer>"
        if key in KINDS:
            return (Name(KINDS[key], number), "") if number else (None, None)
        found = self._find(number)
        if found is not None:
            start, mapping = found
            return Name("map", mapping), f"+{number - start:#x}" if number > start else ""
        return (None, "<process>") if number in PROCESS else (None, None)

    # -- mappings ------------------------------------------------------------------------------------------
    def _find(self, address: int) -> tuple[int, int] | None:
        """(start, number) of the mapping with that address in it, its end included."""
        place = bisect.bisect_right(self._starts, address) - 1
        if place < 0 or address > self._maps[place][0]:
            return None
        return self._starts[place], self._maps[place][1]

    def holds(self, address: int, size: int) -> bool:
        """Whether so many bytes from the address on are mapped."""
        place = bisect.bisect_right(self._starts, address) - 1
        return place >= 0 and address + size <= self._maps[place][0]

    def _mapped(self, text: str) -> None:
        address, size = ADDRESS.search(text.partition("->")[2]), SIZE.search(text)
        if address is None or size is None:
            return
        start, end = int(address[1], 16), int(address[1], 16) + int(size[1], 16)
        inside = self._find(start)
        if inside is not None and start < self._maps[self._starts.index(inside[0])][0]:
            return                                          # a part of what is mapped becomes something else
        number = len(self.starts) + 1
        self.starts[number] = start
        place = bisect.bisect_left(self._starts, start)
        self._starts.insert(place, start)
        self._maps.insert(place, (end, number))

    def _unmapped(self, text: str) -> None:
        start, size = ADDRESS.search(text), SIZE.search(text)
        if start is not None and size is not None and "->" not in text:
            place = bisect.bisect_left(self._starts, int(start[1], 16))
            if place < len(self._starts) and self._starts[place] == int(start[1], 16):
                del self._starts[place], self._maps[place]


def numbered(records: list[Record]) -> dict[Name, str]:
    """What each name is shown as: its kind, and its place in the order of appearance."""
    shown: dict[Name, str] = {}
    counts: dict[str, int] = {}
    for record in records:
        for name in record.names:
            if name not in shown:
                counts[name.kind] = counts.get(name.kind, 0) + 1
                shown[name] = f"{name.kind}{counts[name.kind]}"
    return shown
