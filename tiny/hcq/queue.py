"""Commands recorded once and submitted many times: bytes, and a list of places that change.

    queue = device.queue()
    queue.execute(program, [out.address, Slot(0)], groups=Slot(1))
    template = queue.finish()
    point = template.submit([buffer.address, 16])       # one copy into the ring, one doorbell
    device.synchronize(point)

A device's own queue class adds the methods that record its packets; recording and patching are the same for all.
"""
import struct
from collections.abc import Sequence
from typing import NamedTuple

from tiny.hcq.layout import Field, LayoutError, Packet

WORD = (1 << 64) - 1


class Slot(NamedTuple):
    """A value known when the template is submitted: values[number] + offset."""
    number: int
    offset: int = 0


class Program:
    """A kernel in a device's memory. address: what an execute command names; image: keeps the code mapped."""
    __slots__ = ("name", "address", "device", "image", "__weakref__")

    def __init__(self, name: str, address: int, device, image):
        self.name, self.address, self.device, self.image = name, address, device, image

    def __repr__(self) -> str:
        return f"Program({self.name}, {self.device.name}, {self.address:#x})"


class Recorder:
    """Collects packets; the base of each device's queue. Not safe between threads: one thread records."""

    def __init__(self, device):
        self.device = device
        self.image = bytearray()
        self.programs: list[Program] = []
        self.urgent = False                                 # worth waking another core or a sleeping device for
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
    programs  kept alive with the template            starts  byte offset of each packet
    """
    def __init__(self, recorder: Recorder):
        self.device, self.programs, self.urgent = recorder.device, recorder.programs, recorder.urgent
        self.image, self.starts = recorder.image, recorder._starts
        self.words = memoryview(self.image).cast("Q")
        self._wide: list[list[tuple[int, int]]] = []        # for each slot: (index of a 64-bit word, offset)
        self._narrow: list[tuple[Field, int, Slot]] = []    # fields that share a word with others
        self._values: list[int | None] = []
        for field, start, slot in recorder._patches:
            if field.size == 8 and (start + field.offset) % 8 == 0:
                self._add(start + field.offset, slot)
            else:
                self._narrow.append((field, start, slot))
                self._grow(slot.number)
        for offset, slot in recorder._tails:
            self._add(offset, slot)

    @property
    def slot_count(self) -> int:
        """How many values `submit` needs."""
        return len(self._values)

    def submit(self, values: Sequence[int] = ()) -> int:
        """Fill in the values and hand the commands to the device. Returns the point its timeline will reach."""
        return self.device.submit(self, values)

    def fill(self, values: Sequence[int]) -> None:
        """Rewrite what changed since the last time; the caller holds the device's submission lock."""
        last = self._values
        if len(values) != len(last):
            raise ValueError(f"Template.submit: {len(values)} values given, {len(last)} slots recorded")
        words = self.words
        for number, (new, old) in enumerate(zip(values, last, strict=True)):
            if new != old:
                for index, offset in self._wide[number]:
                    words[index] = new + offset & WORD
                last[number] = new
        for field, start, slot in self._narrow:
            self._fill_narrow(field, start, field.checked(last[slot.number] + slot.offset))

    def _fill_narrow(self, field: Field, start: int, number: int) -> None:
        code = "<Q" if field.size == 8 else "<I"
        place = start + field.offset
        rest = struct.unpack_from(code, self.image, place)[0] & ~field.mask
        struct.pack_into(code, self.image, place, rest | number << field.low)

    def _grow(self, number: int) -> None:
        while len(self._values) <= number:
            self._values.append(None)
            self._wide.append([])

    def _add(self, offset: int, slot: Slot) -> None:
        self._grow(slot.number)
        self._wide[slot.number].append((offset // 8, slot.offset))
