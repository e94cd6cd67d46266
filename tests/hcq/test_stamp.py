"""Recorded packets with fields changed are what encoding them with those values gives."""
import random

import pytest

from tests.hcq.test_round_trip import drawn
from tiny.hcq.amd import dispatch, pm4
from tiny.hcq.layout import LayoutError, stamp
from tiny.hcq.nv import compute, push, qmd

RECORDED = [dispatch.Launch, pm4.ReleaseMem, pm4.WaitRegMem, push.GpfifoEntry, compute.Launch, qmd.QmdV3,
            qmd.QmdV5]


@pytest.mark.parametrize("layouts", [[layout] for layout in RECORDED] + [RECORDED],
                         ids=[layout.__name__ for layout in RECORDED] + ["all"])
def test_a_stamp_is_an_encoding(layouts):
    random_ = random.Random(1)
    for _ in range(20):
        image, places, values, expected = b"", [], [], b""
        for layout in layouts:
            old = {name: drawn(field, random_) for name, field in layout.free.items()}
            changed = random_.sample(sorted(layout.free), random_.randrange(1, min(9, len(layout.free)) + 1))
            new = {name: drawn(layout.fields[name], random_) for name in changed}
            places += [(layout.fields[name], len(image)) for name in changed]
            values += [new[name] for name in changed]
            image += bytes(layout(**old))
            expected += bytes(layout(**old | new))
        buffer = bytearray(len(image) + 16)
        assert stamp(image, places)(buffer, 8, values) == len(image)
        assert buffer[8:8 + len(image)] == expected and not any(buffer[:8]) and not any(buffer[-8:])


def test_a_value_that_does_not_fit_is_named_and_nothing_is_written():
    places = [(pm4.ReleaseMem.data_sel, 0), (pm4.ReleaseMem.address, 0)]
    write, buffer = stamp(bytes(pm4.ReleaseMem()), places), bytearray(32)
    with pytest.raises(LayoutError, match="ReleaseMem.data_sel: 8 does not fit 3 bits"):
        write(buffer, 0, (8, 0))
    assert not any(buffer)
    with pytest.raises(LayoutError, match="ReleaseMem.address: .* does not fit 64 bits"):
        write(buffer, 0, (1, 1 << 64))
    with pytest.raises(LayoutError, match="stamp: 1 values given for 2 places"):
        write(buffer, 0, (1,))
