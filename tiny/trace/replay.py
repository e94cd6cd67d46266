"""A trace's driver calls made again, in order, to another provider: does it answer as the recorded one did?

Packets are not run again, for a trace does not hold what lay in memory.
"""
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tiny.hcq import io
from tiny.trace import ioctls
from tiny.trace.names import Name, Reader, Record
from tiny.trace.record import MAP_FLAGS, OPEN_FLAGS, PROTECTIONS, Recorder

CALLS = ("open", "close", "ioctl", "mmap", "munmap", "protect")
DOORBELL_PAGES = 8192                                       # bytes, of a process on one card; kfd_doorbell.c
UNREPEATABLE = ("AMDKFD_IOC_WAIT_EVENTS", "AMDKFD_IOC_DBG_TRAP", "AMDKFD_IOC_CRIU_OP")
FIELD = re.compile(r"(\w+)=([^,{}\[\]: ]+(?::\[[^]]*\])?)")


class Unknown(ValueError):
    """A call cannot be made again; the text says why."""


@dataclass(slots=True)
class Lines:
    """What a Recorder wrote last, in place of a file."""
    written: list[str] = field(default_factory=list)

    def write(self, lines: Iterable[str]) -> None:
        self.written += lines


@dataclass(slots=True)
class Outcome:
    """A recorded call and its repetition: the lines, with addresses of that run and of this one."""
    recorded: str
    emulated: str
    same: bool


class Replayer:
    """Makes recorded calls again on another provider, with its addresses, handles and descriptors.

    cards: for each path of a render node in the trace, its gpu_id and path here: these come from sysfs, which
    a trace does not hold.
    """

    def __init__(self, provider: io.Provider, cards: Mapping[str, tuple[int, str]]):
        self._provider, self._cards = provider, cards
        self._nodes: dict[Name, str] = {}                   # descriptor -> path of a render node in the trace
        self._lines = Lines()
        self._undo = io.install(provider), io.watch(Recorder(self._lines))
        self._theirs, self._ours = Reader(), Reader()
        self._known: dict[Name, int] = {}                   # name in the trace -> our number
        self._kept: list[object] = []                       # memory that calls point to
        self.skipped = 0

    def close(self) -> None:
        """Stop; what was mapped stays so."""
        for undo in reversed(self._undo):
            undo()

    def calls(self, lines: Iterable[tuple[int, str]]) -> Iterator[Outcome]:
        """Each call that can be made again, and how it ended; the others are counted in `skipped`."""
        for number, text in lines:
            record = self._theirs.record(number, text)
            if text.partition(" ")[0] not in CALLS:
                continue
            try:
                outcome = self._again(number, text, record)
            except Unknown:
                self.skipped += 1
                continue
            yield outcome

    def _again(self, number: int, text: str, record: Record) -> Outcome:
        if " AMDKFD_IOC_ACQUIRE_VM " in text:
            _, node, gpu = record.names
            self._known.setdefault(gpu, self._cards[self._nodes[node]][0])
        asked = record.text({name: str(self._number(name)) for name in record.names})
        asked = asked.partition(" ->")[0]
        if "?" in asked:
            raise Unknown("it names what is not known: a file that was opened in another way")
        del self._lines.written[:]
        try:
            self._call(asked)
        except Unknown:
            raise
        except Exception as error:                          # its line says which
            if not self._lines.written:
                raise Unknown(str(error)) from error
        if not self._lines.written:
            raise Unknown("the provider was not asked")
        line = self._lines.written[-1]
        for theirs, (_, mine) in self._cards.items():       # paths are compared as the trace has them
            line = line.replace(f'open "{mine}"', f'open "{theirs}"')
        ours = self._ours.record(number, line)
        same = ours.shape == record.shape
        if same:
            for theirs, mine in zip(record.names, ours.names, strict=True):
                place = self._ours.starts.get(mine.number, 0) if mine.kind == "map" else mine.number
                same &= self._known.setdefault(theirs, place) == place
            if text.startswith("open "):
                self._nodes.update((name, text.split('"')[1]) for name in record.names)
        return Outcome(text, line, same)

    def _number(self, name: Name) -> int | str:
        """Our number for a name, "?" for one that is new. Doorbells are mapped from the start of the pages in
        which CREATE_QUEUE said that a queue's is.
        """
        if name in self._known or name.kind != "offset":
            return self._known.get(name, "?")
        for other, ours in self._known.items():
            if other.kind == "offset" and 0 < other.number - name.number < DOORBELL_PAGES:
                return ours - (other.number - name.number)
        return "?"

    # -- one method for each kind of record ----------------------------------------------------------------
    def _call(self, text: str) -> None:
        kind, _, rest = text.partition(" ")
        if kind == "ioctl":
            return self._ioctl(rest)
        fields = dict(FIELD.findall(rest))
        number = {name: _number(value) for name, value in fields.items()
                  if name not in ("flags", "protection")}
        if kind == "open":
            path = rest.split('"')[1]
            self._provider.open(self._cards[path][1] if path in self._cards else path,
                                _bits(fields["flags"], OPEN_FLAGS))
        elif kind == "close":
            self._provider.close(number["fd"])
        elif kind == "munmap":
            self._provider.munmap(number["address"], number["size"])
        elif kind == "protect":
            self._provider.protect(number["address"], number["size"],
                                   _bits(fields["protection"], PROTECTIONS))
        else:
            self._mmap(number, _bits(fields["protection"], PROTECTIONS), _bits(fields["flags"], MAP_FLAGS))
        return None

    def _mmap(self, number: dict[str, int], protection: int, flags: int) -> None:
        if "alignment" in number:
            self._provider.mmap_aligned(number["size"], number["alignment"], protection, flags)
            return
        if flags & io.FIXED and not self._ours.holds(number["at"], number["size"]):
            raise Unknown("it replaces memory that this replay has not mapped")
        self._provider.mmap(number["size"], protection, flags, number.get("fd", -1), number.get("offset", 0),
                            number.get("at", 0))

    def _ioctl(self, text: str) -> None:
        first, name, rest = text.split(" ", 2)
        module = next((each for each in (ioctls.kfd, ioctls.drm) if hasattr(each, name)), None)
        if module is None or name in UNREPEATABLE or "{" in rest[1:]:
            raise Unknown(f"{name} cannot be made again")
        number = getattr(module, name)
        request = ioctls.request_of(number)
        value = module.ffi.new(f"{request.struct} *")
        for key, shown in FIELD.findall(rest):
            setattr(value, key, self._value(request, key, shown))
        argument = bytearray(module.ffi.buffer(value))
        self._kept.append(value)
        self._provider.ioctl(_number(first.partition("=")[2]), number, argument)

    def _value(self, request: ioctls.Request, key: str, shown: str) -> int:
        """A field's number; an array behind a pointer is made anew."""
        plain, _, items = shown.partition(":")
        if items:
            kind, _ = ioctls.ARRAYS[key]
            array = request.module.ffi.new(f"{kind}[]", [_number(item) for item in items[1:-1].split(", ")])
            self._kept.append(array)
            return int(request.module.ffi.cast("uintptr_t", array))
        if "<" in plain:
            raise Unknown("it names memory of the recorded process")
        return ioctls.number_of(request, key, plain)


def _number(text: str) -> int:
    """A number, or an address and an offset: 0x7f00+0x40."""
    try:
        return sum(int(part, 0) for part in text.split("+"))
    except ValueError:
        raise Unknown(f"{text} is no number") from None


def _bits(text: str, names: dict[int, str]) -> int:
    """Flags from their names."""
    bits = {name: bit for bit, name in names.items()} | {"NONE": 0, "RDONLY": 0}
    return sum(bits[name] if name in bits else int(name, 0) for name in text.split("|"))
