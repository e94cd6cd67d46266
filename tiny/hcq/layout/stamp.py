"""Recorded packets written again with some of their fields changed: one plain function for each recording."""
import struct
from collections.abc import Callable, Sequence

from tiny.hcq.layout.field import Field, LayoutError


def stamp(image: bytes, places: Sequence[tuple[Field, int]]) -> Callable[..., int]:
    """A function (buffer, offset, values) -> bytes written,
    which copies `image` to the buffer and fills its places.

    image: packets as `encode` wrote them. places: (field, byte offset of its packet in the image), a value
    for each in the same order. buffer: a writable byte buffer. LayoutError for a value that does not fit,
    before anything is written.
    """
    image = bytes(image)
    names = [f"_{i}" for i in range(len(places))]

    def complain(values) -> None:
        if len(values) != len(places):
            raise LayoutError(f"stamp: {len(values)} values given for {len(places)} places")
        for (field, _), value in zip(places, values, strict=True):
            field.checked(value)

    checks, writes = [], []
    for start, code, members in _words(places):
        size = 8 if code == "Q" else 4
        word = int.from_bytes(image[start:start + size], "little")
        terms = []
        for index, shift in members:
            field = places[index][0]
            word &= ~(field.mask >> field.low << shift if not field.high_first else field.mask)
            stored = names[index]
            if field.less or field.scale:
                stored = f"({stored} - {field.less} >> {field.scale})"
            placed = f"{stored} << {shift}" if shift else stored
            terms.append(f"({stored} >> 32 | ({stored} & 0xffffffff) << 32)" if field.high_first else placed)
            whole = field.width == size * 8 and field.unit == 1 and not field.less and not field.high_first
            checks += [] if whole else _checks(field, names[index])
        writes.append(f"        _{code}(buffer, offset + {start}, "
                      f"{' | '.join([hex(word)] * (word != 0) + terms)})")
    body = ["def write(buffer, offset, values):", "    try:",
            *([f"        {', '.join(names)}, = values"] if names else []),
            *([f"        if {' or '.join(checks)}:", "            _complain(values)"] if checks else []),
            f"        buffer[offset:offset + {len(image)}] = _image", *writes,
            "    except (TypeError, ValueError, _error):", "        _complain(values)", "        raise",
            f"    return {len(image)}"]
    scope = {"_image": image, "_complain": complain, "_error": struct.error,
             "_I": struct.Struct("<I").pack_into,
             "_Q": struct.Struct("<Q").pack_into}
    exec("\n".join(body), scope)
    return scope["write"]


def _checks(field: Field, name: str) -> list[str]:
    value = f"({name} - {field.less})" if field.less else name
    return [f"{value} >> {field.width + field.scale}", *([f"{value} & {field.unit - 1}"] * (field.unit > 1))]


def _words(places: Sequence[tuple[Field, int]]) -> list[tuple[int, str, list[tuple[int, int]]]]:
    """The words to write: (byte offset, "I" or "Q", [(index of the place, lowest bit in the word)]).

    Fields in one word are written together; a word that is half of a 64-bit one belongs to that.
    """
    wide = {start + field.offset for field, start in places if field.size == 8}
    words: dict[int, list[tuple[int, int]]] = {}
    for index, (field, start) in enumerate(places):
        at, shift = start + field.offset, field.low
        if field.size == 4 and at not in wide and at - 4 in wide:
            at, shift = at - 4, field.low + 32
        words.setdefault(at, []).append((index, shift))
    return [(at, "Q" if at in wide else "I", members) for at, members in words.items()]
