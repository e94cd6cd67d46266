"""What a launch on an AMD card costs in Python: a captured graph's replay, without what the card does. `make
bench`.

The doorbell rings nobody, and the timeline is moved by hand, so that only the driver's own work is measured.
"""
import pytest

from tests.benchmarks.report import report
from tests.hcq.amd.conftest import KINDS, opened
from tests.hcq.amd.test_program import SOURCES
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq.queue import Slot


@pytest.fixture(params=["gfx1100", "gfx942"])
def quiet(request):
    """(a device whose engines sleep, its kernel of three arguments)."""
    provider = EmulatedRadeon([KINDS[request.param]])
    with opened(provider) as device:
        names = [source.name for source in SOURCES]
        add = device.load(device.compile(SOURCES)[names.index("add")], "add", 64)
        provider.doorbell = lambda ring, position: ring(position)
        yield device, add


def finish(device, point):
    """As if the card had done everything."""
    device.compute.set_timeline(point)
    for queue in (device.compute, device.copies):
        queue._read[0] = queue.position // queue.unit


@pytest.mark.parametrize("count, changing, budget", [(1, True, 30), (100, False, 250), (100, True, 250)])
def test_replay(benchmark, quiet, count, changing, budget):
    device, add = quiet
    queue = device.queue()
    for number in range(count):
        queue.execute(add, [Slot(0), Slot(1), number], 4)
    template = queue.finish()
    calls = iter(range(1 << 40))

    def arguments():
        finish(device, device.timeline.submitted)
        return ([0x1000 + 64 * next(calls) * changing, 0x2000],), {}
    benchmark.pedantic(template.submit, setup=arguments, rounds=300)
    name = f"{device.card.arch}: replay {count} kernels, {'new' if changing else 'the same'} addresses"
    report(name, 1e6 * benchmark.stats.stats.median, "us", budget)


def test_record(benchmark, quiet):
    device, add = quiet

    def record():
        queue = device.queue()
        for number in range(100):
            queue.execute(add, [Slot(0), Slot(1), number], 4)
        queue.finish()
    benchmark.pedantic(record, rounds=20)
    report(f"{device.card.arch}: record 100 kernels", 1e3 * benchmark.stats.stats.median, "ms", 10)
