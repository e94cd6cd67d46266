"""Random valid push buffers, Mesa's text of them taken apart, and both compared, method by method."""
import random
import re
from dataclasses import dataclass, field

from tests.hcq.test_round_trip import drawn
from tiny.hcq.layout import Register
from tiny.hcq.nv import compute, copy, methods, push
from tiny.trace import streams

FORMS = [value for module in (compute, copy) for value in vars(module).values()
         if isinstance(value, type) and issubclass(value, push.Push) and "method" in value.fixed
         and not (module is copy and hasattr(copy, f"{value.__name__}Ampere"))]
HEADERS = [push.Incrementing, push.NonIncrementing, push.OnceIncrementing, push.Immediate]


def random_packet(random_: random.Random) -> push.Push:
    """A form with random fields, or a header for methods around a known one."""
    kind = random_.choice([*FORMS, *HEADERS * 6])
    values = {name: drawn(f, random_) for name, f in kind.free.items()}
    if kind in HEADERS:
        subchannel, file = random_.choice([(methods.COMPUTE_SUBCHANNEL, methods.COMPUTE),
                                           (methods.COPY_SUBCHANNEL, methods.COPY_AMPERE),
                                           (0, methods.HOST_AMPERE)])
        known = [getattr(file, name).offset for name in file]
        values["method"] = random_.choice([offset for offset in known if offset != 0])
        values["subchannel"] = subchannel
    return kind(**values)


def random_stream(seed: int) -> bytes:
    random_ = random.Random(seed)
    return b"".join(bytes(random_packet(random_)) for _ in range(random_.randrange(1, 10)))


@dataclass
class Called:
    """One method in Mesa's text."""
    address: int
    name: str
    fields: dict[str, str] = field(default_factory=dict)


@dataclass
class Header:
    at: int
    word: int
    calls: list[Called] = field(default_factory=list)


def _name(text: str) -> str:
    """NVC6C0_LOAD_INLINE_QMD_DATA(3) as LOAD_INLINE_QMD_DATA_3."""
    return re.sub(r"\((\d+)\)$", r"_\1", re.sub(r"^NV[0-9A-F]{4}_", "", text))


def taken_apart(text: str) -> list[Header]:
    headers: list[Header] = []
    for line in text.splitlines():
        if found := re.match(r"\[(0x[0-9a-f]+)\] HDR ([0-9a-f]+) ", line):
            headers.append(Header(4 * int(found[1], 0), int(found[2], 16)))
        elif found := re.match(r"\tmthd ([0-9a-f]{4}) (.*)", line):
            headers[-1].calls.append(Called(int(found[1], 16), _name(found[2])))
        elif found := re.match(r"\t\t\.(\w+) = \(?(\w+)\)?", line):
            headers[-1].calls[-1].fields[found[1]] = found[2]
    return headers


class Comparison:
    """Counts what was compared and collects each kind of disagreement once, with an example."""

    def __init__(self):
        self.packets = self.facts = 0
        self.differences: dict[tuple[str, str], str] = {}
        self.only_mesa: set[str] = set()
        self.only_tiny: set[str] = set()

    def stream(self, data: bytes, ours: list[streams.Found], theirs: list[Header]) -> None:
        mine = [(item.at, int.from_bytes(data[item.at:item.at + 4], "little")) for item in ours]
        mesa = [(header.at, header.word) for header in theirs]
        self.facts += len(mine)
        if mine != mesa:
            self.differences.setdefault(("headers", "places"), f"tiny {mine}, Mesa {mesa}")
            return
        for item, header in zip(ours, theirs, strict=True):
            self.packets += 1
            self.packet(item, header)

    def packet(self, item: streams.Found, header: Header) -> None:
        packet = item.packet
        count = 1 if isinstance(packet, push.Immediate) else len(packet.values)
        step = {push.Incrementing: lambda i: 4 * i, push.OnceIncrementing: lambda i: 4 * min(i, 1)}.get(
            type(packet), lambda i: 0)
        addresses = [packet.method + step(i) for i in range(count)]
        self.equal(type(packet).__name__, "addresses", addresses, [call.address for call in header.calls])
        parts = {}
        for part in item.parts:
            parts.setdefault(type(part).offset, []).append(part)
        for call in header.calls:
            named = parts.get(call.address)
            if named is None:
                if "unknown" not in call.name:
                    self.only_mesa.add(call.name)
            elif "unknown" in call.name:
                self.only_tiny.add(type(named.pop(0)).__name__)
            else:
                self.method(named.pop(0), call)

    def method(self, ours: Register, call: Called) -> None:
        name = type(ours).__name__
        self.equal(name, "name", name, call.name)
        for key, text in call.fields.items():
            if key not in type(ours).fields:
                self.only_mesa.add(f"{name}.{key}")
                continue
            value = getattr(ours, key)
            spelled = {getattr(value, "name", ""), ("FALSE", "TRUE")[int(value) & 1] if int(value) < 2
                       else ""}
            if text[0].isdigit():
                self.equal(name, key, int(value), int(text, 0))
            else:
                self.equal(name, key, text if text in spelled else value, text)

    def equal(self, where: str, what: str, ours, theirs) -> None:
        self.facts += 1
        if ours != theirs:
            self.differences.setdefault((where, what), f"tiny {ours}, Mesa {theirs}")
