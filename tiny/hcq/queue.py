"""Commands recorded once and submitted many times: bytes, and a list of places that change.

    queue = device.queue()
    queue.execute(program, [out.address, Slot(0)], groups=Slot(1))
    template = queue.finish()
    point = template.submit([buffer.address, 16])       # one copy into the ring, one doorbell
    device.synchronize(point)

A device's own queue class adds the methods that record its packets; recording and patching are the same for
all.
"""
import operator
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tiny.hcq.layout import Field, LayoutError, Packet

WORD = (1 << 64) - 1
FEW_SLOTS = 64                                              # up to here places are rewritten one by one


class Slot(NamedTuple):
    """A value known when the template is submitted: values[number] + offset."""
    number: int
    offset: int = 0


class Program:
    """A kernel in a device's memory. address: what an execute command names; image: keeps the code mapped."""
    __slots__ = ("name", "address", "device", "image", "__weakref__")

    def __init__(self, name: str, address: int, device, image):
        self.name, self.address, self.device, self.image = name, address, device, image

    @property
    def entries(self) -> tuple[int, ...]:
        """The addresses by which commands name it."""
        return (self.address,)

    @property
    def argument_bytes(self) -> int:
        """What a launch has in memory; 0 where arguments stand in the commands."""
        return 0

    def __del__(self):
        if self.device is not None:
            self.device.allocator.retire(self.image)        # commands in flight may still run it

    def __repr__(self) -> str:
        return f"Program({self.name}, {self.device.name}, {self.address:#x})"


class Recorder:
    """Collects packets; the base of each device's queue. Not safe between threads: one thread records.

    timed: it notes when its commands run, see `timed`.
    """
    timed = False

    def __init__(self, device):
        self.device = device
        self.image = bytearray()
        self.programs: list[Program] = []
        self.urgent = False                                 # worth waking a core or a device for
        self._patches: list[tuple[Field, int, Slot]] = []   # field, offset of its packet, what goes there
        self._tails: list[tuple[int, Slot]] = []            # byte offset of a 64-bit word, what goes there
        self._starts: list[int] = []

    def emit(self, packet: type[Packet], **fields) -> None:
        """Append a packet; a field, or an item of a 64-bit tail, may be a Slot."""
        start = len(self.image)
        self._starts.append(start)
        extra = 0
        for name, value in fields.items():
            if type(value) is Slot:
                self._patches.append((packet.fields[name], start, value))
                fields[name] = 0
            elif packet.fields[name].tail:
                fields[name], extra = self._tail(packet.fields[name], start + packet.size_bytes, value)
        self.image += bytes(packet.size_bytes + extra)
        packet.encode(self.image, start, **fields)

    def _tail(self, field: Field, start: int, items: Sequence) -> tuple[list[int], int]:
        plain = []
        for index, item in enumerate(items):
            if type(item) is Slot:
                if field.size != 8:
                    raise LayoutError(f"{field}: a Slot needs a tail of 64-bit words")
                self._tails.append((start + index * 8, item))
                item = 0
            plain.append(item & WORD if field.size == 8 else item)
        return plain, len(plain) * field.size

    def patch(self, field: Field, slot: Slot) -> None:
        """Let `field` of the packet recorded last be filled at submission."""
        self._patches.append((field, self._starts[-1], slot))

    def finish(self) -> "Template":
        """What was recorded, ready to submit. The recorder must not be used any more."""
        return Template(self)


class Template:
    """Recorded commands of one queue. `submit` may be called again before the last submission has finished.

    image     the commands as bytes, with the values submitted last filled in
    words     the same as 64-bit words             starts  byte offset of each packet
    programs  kept alive with the template             timed   its submissions tell when they ran
    """
    timed = False

    def __init__(self, recorder: Recorder):
        self.device, self.programs, self.urgent = recorder.device, recorder.programs, recorder.urgent
        self.image, self.starts = recorder.image, recorder._starts
        self.words = memoryview(self.image).cast("Q")
        self._places: list[list[tuple[int, int]]] = []      # for each slot: (index of a 64-bit word, offset)
        self._narrow: list[tuple[Field, int, Slot]] = []    # fields that share a word with others
        self._values: list[int | None] = []                 # as submitted last
        for field, start, slot in recorder._patches:
            if field.width == 64 and not field.high_first and (start + field.offset) % 8 == 0:
                self._add(start + field.offset, slot)
            else:
                self._grow(slot.number)
                self._narrow.append((field, start, slot))
        for offset, slot in recorder._tails:
            self._add(offset, slot)
        self._gather = self._bulk() if len(self._values) > FEW_SLOTS else None

    @property
    def slot_count(self) -> int:
        """How many values `submit` needs."""
        return len(self._values)

    def submit(self, values: Sequence[int] = ()) -> int:
        """Fill in the values and hand the commands to the device.
        Returns the point its timeline will reach.
        """
        return self.device.submit(self, values)

    def packets(self) -> Iterator[Packet]:
        """The commands, with the values submitted last; nothing where the device's are not declared."""
        return iter(()) if self.device.packets is None else self.device.packets.stream(self.image)

    def streams(self) -> Iterator[tuple[str, str, int, bytes]]:
        """(queue, kind, graphics generation, bytes) of each queue used, as events.Ringing names them;
        nothing where the device's packets have no name there.
        """
        if self.device.stream is not None:
            yield "compute", *self.device.stream, bytes(self.image)

    def fill(self, values: Sequence[int]) -> None:
        """Rewrite what changed since the last time; the caller holds the device's submission lock.

        ValueError if there are not as many values as slots. Values are taken modulo 2 ** 64.
        """
        last = self._values
        if len(values) < len(last):
            raise ValueError(f"Template.submit: {len(values)} values given, {len(last)} slots recorded")
        if values == last:
            return
        self._values = values = list(values)
        try:
            if self._gather is not None:
                return self._gather(values)
        except struct.error:                                # a value above 2 ** 63
            last = [None] * len(values)
        words = self.words
        for new, old, places in zip(values, last, self._places, strict=True):
            if new != old:
                for index, offset in places:
                    words[index] = new + offset & WORD
        for field, start, slot in self._narrow:
            _fill_narrow(self.image, field, start, field.checked(values[slot.number] + slot.offset))

    def _bulk(self) -> Callable[[list[int]], None] | None:
        """A function that writes the whole image at once: with many slots faster than one place at a time.

        The words are picked from the values, the values plus an offset, and the constants, then packed.
        """
        if self._narrow:
            return None
        offsets = sorted({(number, offset) for number, places in enumerate(self._places)
                          for _, offset in places if offset})
        constants = list(self.words.cast("B").cast("q"))
        first_constant = len(self._values) + len(offsets)
        picks = list(range(first_constant, first_constant + len(constants)))
        position = {pair: len(self._values) + index for index, pair in enumerate(offsets)}
        for number, places in enumerate(self._places):
            for index, offset in places:
                picks[index] = position[number, offset] if offset else number
        pick = operator.itemgetter(*picks)
        pack_into = struct.Struct(f"<{len(picks)}q").pack_into

        def gather(values: list[int]) -> None:
            moved = [values[number] + offset for number, offset in offsets]
            pack_into(self.image, 0, *pick(values + moved + constants))
        return gather

    def _grow(self, number: int) -> None:
        while len(self._values) <= number:
            self._values.append(None)
            self._places.append([])

    def _add(self, offset: int, slot: Slot) -> None:
        self._grow(slot.number)
        self._places[slot.number].append((offset // 8, slot.offset))


def _fill_narrow(image: bytearray, field: Field, start: int, number: int) -> None:
    code = "<Q" if field.size == 8 else "<I"
    place = start + field.offset
    rest = struct.unpack_from(code, image, place)[0] & ~field.mask
    struct.pack_into(code, image, place, rest | field.placed(number))
