"""Every declared packet and structure: random values go in and come out, and wrong ones are refused by
name."""
import importlib
import inspect
import random

import pytest

from tiny.hcq.layout import Layout, LayoutError, Packet, Register, Struct

MODULES = ("amd.pm4", "amd.dispatch", "amd.sdma", "amd.aql", "nv.push", "nv.compute", "nv.copy", "nv.qmd")
FAMILIES = "a family: its packets are tested"


def declared() -> list[type[Layout]]:
    """All packets and structures of the packet files, each once."""
    found = []
    for name in MODULES:
        module = importlib.import_module(f"tiny.hcq.{name}")
        found += [value for value in vars(module).values() if inspect.isclass(value)
                  and issubclass(value, Layout)
                  and value not in (Layout, Packet, Register, Struct)
                  and getattr(value, "family", None) is not value]
    return list(dict.fromkeys(found))


LAYOUTS = declared()


def drawn(field, random_: random.Random):
    """A value that fits: often the lowest or the highest."""
    if field.tail:
        return tuple(random_.getrandbits(field.width) for _ in range(random_.randrange(1, 6)))
    stored = random_.choice([0, (1 << field.width) - 1, random_.getrandbits(field.width)])
    return field.shown(stored)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout.__module__[9:]}.{layout.__name__}")
def test_random_values_come_back(layout):
    random_ = random.Random(layout.__name__)
    for _ in range(25):
        values = {name: drawn(field, random_) for name, field in layout.free.items()}
        packet = layout(**values)
        data = bytes(packet)
        assert layout.decode(data, 0, len(data)) == packet
        buffer = bytearray(len(data) + 8)
        assert layout.encode(buffer, 8, **values) == len(data) and buffer[8:] == data
        for name, value in values.items():
            assert getattr(packet, name) == value


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout.__module__[9:]}.{layout.__name__}")
def test_a_value_too_large_names_packet_field_and_width(layout):
    for name, field in layout.free.items():
        if field.tail:
            value, text = [1 << field.width], f"{name}: .* does not fit {field.width} bits"
        else:
            value = ((1 << field.width) << field.scale) + field.less
            text = f"{name}: .* does not fit {field.width} bits"
        with pytest.raises(LayoutError, match=rf"{layout.__name__}\.{text}|\w+\.{text}"):
            layout.encode(bytearray(1024), 0, **{name: value})


PACKETS = [layout for layout in LAYOUTS if issubclass(layout, Packet)]


@pytest.mark.parametrize("packet", PACKETS, ids=lambda packet: f"{packet.__module__[9:]}.{packet.__name__}")
def test_its_family_finds_it_and_a_truncated_one_is_an_error(packet):
    tail = {name: (1, 2) for name, field in packet.free.items() if field.tail}
    data = bytes(packet(**tail))
    (found,) = packet.family.stream(data)
    assert bytes(found) == data
    if len(data) > 4:
        with pytest.raises(LayoutError, match="truncated|are no packet"):
            list(packet.family.stream(data[:-4]))
