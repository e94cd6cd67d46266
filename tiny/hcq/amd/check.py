"""What `python -m tiny hwcheck amd` tries on a card: small stages, each of which stands on those before it.

Every stage is safe on a card that others use too: it touches only memory and queues of its own, and waits
with a limit. A stage returns what it found out: rates, times, and answers to what no document says.
"""
import statistics
import struct
import threading
import time
from collections.abc import Callable

from tiny.hcq.amd.device import AmdDevice
from tiny.hcq.amd.program import AmdProgram
from tiny.hcq.memory import Buffer
from tiny.hcq.queue import Slot
from tiny.toolchain import Source

LIMIT_MS = 5000                                             # of every wait
COPIED_BYTES = 64 << 20
PREAMBLE = """\
typedef unsigned int u32; typedef float f32; typedef long i64;
#define KERNEL(name, threads) __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(threads, threads))) \\
    void name
#define GROUP __builtin_amdgcn_workgroup_id_x()
#define ITEM __builtin_amdgcn_workitem_id_x()
"""
KERNELS = {  # name -> (work-items of a group, text)
    "number": (64, "(u32 *out) { out[GROUP * 64 + ITEM] = GROUP * 64 + ITEM; }"),
    "reverse": (128, """(u32 *x) {
        static __attribute__((address_space(3), loader_uninitialized)) u32 tile[128];
        tile[ITEM] = x[GROUP * 128 + ITEM];
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); __builtin_amdgcn_s_barrier();
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
        x[GROUP * 128 + ITEM] = tile[127 - ITEM]; }"""),
    "scattered": (64, """(u32 *x, i64 n) {
        u32 place[64]; for (int i = 0; i < 64; i++) place[i] = x[i] * 3;
        u32 sum = 0; for (int i = 0; i < n; i++) sum += place[(x[i] + ITEM) & 63]; x[64 + ITEM] = sum; }"""),
    "polynomial": (64, """(f32 *x) {
        i64 i = GROUP * 64 + ITEM; f32 v = x[i]; x[i] = __builtin_fmaf(v, 0.5f, 3.0f) * v - 1.0f / v; }"""),
    "increment": (64, "(u32 *x) { x[ITEM] += 1; }"),
}


class CheckFailed(Exception):
    """A stage found something wrong; the text says what was expected."""


class Bench:
    """A card under test: the device, and what stages need again and again."""

    def __init__(self, device: AmdDevice, second: AmdDevice | None = None):
        self.device, self.second = device, second
        self._programs: dict[str, AmdProgram] = {}

    def program(self, name: str) -> AmdProgram:
        """A kernel of KERNELS; all are compiled together."""
        if not self._programs:
            sources = [Source(each, f"KERNEL({each}, {threads}){text}", PREAMBLE)
                       for each, (threads, text) in KERNELS.items()]
            for source, code in zip(sources, self.device.compile(sources), strict=True):
                self._programs[source.name] = self.device.load(code, source.name, KERNELS[source.name][0])
        return self._programs[name]

    def filled(self, data: bytes) -> Buffer:
        return self.device.allocate(len(data)).initialize(data)

    def submit(self, *commands: Callable, values: tuple = ()) -> None:
        """Record the commands, each a function of the queue, submit them and wait."""
        queue = self.device.queue()
        for command in commands:
            command(queue)
        self.device.synchronize(queue.finish().submit(values), LIMIT_MS)

    def run(self, name: str, arguments: list, groups: int) -> None:
        self.submit(lambda queue: queue.execute(self.program(name), arguments, groups))


def expect(found, wanted, what: str) -> None:
    """CheckFailed unless both are equal."""
    if found != wanted:
        raise CheckFailed(f"{what}: {found!r}, expected {wanted!r}"[:300])


def median_us(times: list[float]) -> float:
    return round(1e6 * statistics.median(times), 1)


# -- stages --------------------------------------------------------------------------------------------------
def topology(bench: Bench) -> dict:
    """What sysfs says of the card."""
    card = bench.device.card
    return dict(arch=card.arch, compute_units=card.compute_units, dies=card.xccs, vram_gib=card.vram >> 30,
                large_bar=card.large_bar, kfd=".".join(map(str, bench.device.memory.kfd.version)))


def timeline(bench: Bench) -> dict:
    """An empty submission moves the timeline: rings, pointers, doorbell, indirect buffer, RELEASE_MEM."""
    template = bench.device.queue().finish()
    times = []
    for _ in range(100):
        start = time.perf_counter()
        bench.device.synchronize(template.submit(), LIMIT_MS)
        times.append(time.perf_counter() - start)
    return dict(round_trip_us=median_us(times))


def video_memory(bench: Bench) -> dict:
    """Bytes written by the host, read back through the copy engine, and the other way round."""
    device = bench.device
    data = bytes(range(256)) * 64
    buffer = bench.filled(data)
    expect(bytes(device.view(buffer)), data, "what was written to video memory")
    small = bench.filled(data[:100])
    bench.submit(lambda queue: queue.copy(small.address, buffer.address + 7, 100))
    expect(bytes(small.host()), data[7:107], "what the copy engine wrote")
    return dict(host_writes="in place" if device.card.large_bar else "by the copy engine")


def copy_engine(bench: Bench) -> dict:
    """Copies at odd places and of odd sizes; how fast a large one is."""
    data = bytes(range(251)) * 100
    source, target = bench.filled(data), bench.filled(bytes(len(data) + 64))
    for to, start, size in ((0, 0, 1), (1, 2, 31), (3, 0, 4097), (61, 5, 20000)):
        bench.submit(lambda queue, to=to, start=start, size=size:
                     queue.copy(target.address + to, source.address + start, size))
        expect(bytes(target.host())[to:to + size], data[start:start + size], f"a copy of {size} bytes")
    large, other = bench.device.allocate(COPIED_BYTES), bench.device.allocate(COPIED_BYTES)
    begin = time.perf_counter()
    bench.submit(lambda queue: queue.copy(large.address, other.address, COPIED_BYTES))
    return dict(copy_gb_s=round(COPIED_BYTES / (time.perf_counter() - begin) / 1e9, 1))


def hand_overs(bench: Bench) -> dict:
    """Two queues in turn, fifty times in one submission: waits and fences in both directions."""
    buffer = bench.filled(bytes(8 * 101))
    queue = bench.device.queue()
    for number in range(50):
        queue.signal(buffer.address + 16 * number, Slot(0, number))
        queue.copy(buffer.address + 16 * number + 8, buffer.address + 16 * number, 8)
    bench.device.synchronize(queue.finish().submit([5]), LIMIT_MS)
    wanted = [5 + number // 2 for number in range(100)]
    expect(list(buffer.host().cast("Q"))[:100], wanted, "handed-over values")
    return {}


def clock(bench: Bench) -> dict:
    """The card's timestamps against the host's clock."""
    buffer = bench.filled(bytes(16))
    taken = []                                               # (before, after, timestamp)
    for _ in range(2):
        begin = time.monotonic()
        bench.submit(lambda queue: queue.timestamp(buffer.address))
        taken.append((begin, time.monotonic(), buffer.host().cast("Q")[0]))
        time.sleep(0.1)
    (begin, after, first), (before, end, second) = taken
    slowest, fastest = (second - first) / (end - begin), (second - first) / (before - after)
    expected = bench.device.clock_hz
    if fastest < 0.9 * expected or slowest > 1.1 * expected:
        raise CheckFailed(f"the card's clock runs at {slowest:.4g} to {fastest:.4g} Hz, expected {expected}")
    rate = 2 * (second - first) / (end + before - begin - after)
    return dict(clock_mhz=round(rate / 1e6, 1))


def interrupts(bench: Bench) -> dict:
    """A thread that sleeps is woken by the card: event page, mailbox, interrupt."""
    device = bench.device
    flag = device.from_host(bytearray(8))
    queue = device.queue()
    queue.wait(flag.address, 1)
    point = queue.finish().submit()
    woken = []

    def let_go() -> None:
        woken.append(time.monotonic())
        device.view(flag)[0] = 1
    timer = threading.Timer(0.12, let_go)
    timer.start()
    device.synchronize(point, LIMIT_MS)
    delay = time.monotonic() - woken[0]
    timer.join()
    return dict(woken_after_us=round(1e6 * delay, 1))


def first_kernel(bench: Bench) -> dict:
    """One workgroup stores its numbers: code object, descriptor, registers, arguments."""
    buffer = bench.filled(bytes(4 * 128))
    bench.run("number", [buffer.address], 1)
    expect(list(buffer.host().cast("I")), [*range(64), *[0] * 64], "what one workgroup stored")
    return {}


def many_groups(bench: Bench) -> dict:
    """Ten thousand workgroups, on all compute units."""
    buffer = bench.filled(bytes(4 * 640_000))
    bench.run("number", [buffer.address], 10_000)
    expect(list(buffer.host().cast("I")) == list(range(640_000)), True, "all numbers are in their places")
    return {}


def local_memory(bench: Bench) -> dict:
    """LDS and barriers between the waves of a group."""
    values = list(range(1280))
    buffer = bench.filled(struct.pack("1280I", *values))
    bench.run("reverse", [buffer.address], 10)
    wanted = [value for first in range(0, 1280, 128) for value in reversed(values[first:first + 128])]
    expect(list(buffer.host().cast("I")), wanted, "groups that were turned round")
    return {}


def scratch_memory(bench: Bench) -> dict:
    """Arrays of single work-items, which lie in scratch memory."""
    values = [number * 7 % 64 for number in range(64)]
    buffer = bench.filled(struct.pack("128I", *values, *[0] * 64))
    bench.run("scattered", [buffer.address, 20], 1)
    wanted = [sum(3 * values[(value + item) & 63] for value in values[:20]) for item in range(64)]
    expect(list(buffer.host().cast("I"))[64:], wanted, "sums of scattered reads")
    return dict(private_bytes=bench.program("scattered").kernel.private_bytes)


def arithmetic(bench: Bench) -> dict:
    """Products, sums and quotients of float32 are those of IEEE 754."""
    values = [(number - 300) / 7 + 1e-3 for number in range(640)]
    values = struct.unpack("640f", struct.pack("640f", *values))
    buffer = bench.filled(struct.pack("640f", *values))
    bench.run("polynomial", [buffer.address], 10)

    def rounded(value: float) -> float:
        return struct.unpack("f", struct.pack("f", value))[0]
    wanted = [rounded(rounded(rounded(v * 0.5 + 3.0) * v) - rounded(1.0 / v)) for v in values]
    expect(struct.unpack("640f", buffer.host()) == tuple(wanted), True, "all results are equal to the host's")
    return {}


def many_launches(bench: Bench) -> dict:
    """A thousand kernels in one submission, each after the one before."""
    buffer, program = bench.filled(bytes(256)), bench.program("increment")
    queue = bench.device.queue()
    for _ in range(1000):
        queue.execute(program, [buffer.address], 1)
    template = queue.finish()
    begin = time.perf_counter()
    bench.device.synchronize(template.submit(), LIMIT_MS)
    each = 1e6 * (time.perf_counter() - begin) / 1000
    expect(list(buffer.host().cast("I")), [1000] * 64, "a counter that a thousand kernels increment")
    return dict(launch_us=round(each, 2))


def ring_end(bench: Bench) -> dict:
    """Submissions until the ring has wrapped around twice; how the card reports its read pointer then."""
    compute, template = bench.device.compute, bench.device.queue().finish()
    while compute.position < 2 * compute.ring_bytes + 64:
        point = template.submit()
    bench.device.synchronize(point, LIMIT_MS)
    reported = compute.read_position
    kind = "running" if reported == compute.position else \
        "wrapped" if reported == compute.position % compute.ring_bytes else "something else"
    return dict(read_pointer=kind)


def peer_copies(bench: Bench) -> dict:
    """Another card's memory, read and written by this card's copy engine."""
    second = bench.second
    if second is None:
        return dict(skipped="there is one card")
    theirs, mine = second.allocate(4096).initialize(bytes(range(256)) * 16), bench.filled(bytes(4096))
    bench.device.reach(theirs)
    bench.submit(lambda queue: queue.copy(mine.address, theirs.address, 4096))
    expect(bytes(mine.host()), bytes(range(256)) * 16, "what was copied from the other card")
    return {}


STAGES: tuple[Callable[[Bench], dict], ...] = (
    topology, timeline, video_memory, copy_engine, hand_overs, clock, interrupts, first_kernel, many_groups,
    local_memory, scratch_memory, arithmetic, many_launches, ring_end, peer_copies)
