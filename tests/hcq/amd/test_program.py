"""Code objects and launches: what a dispatch tells the card. Nothing is executed here."""
import subprocess

import pytest

from tests.hcq.amd.conftest import filled, opened
from tests.tools import tool
from tiny.autogen import amd_kernel_descriptor as descriptor
from tiny.emulator.amd.engines import aql as aql_engine
from tiny.emulator.amd.engines import pm4 as pm4_engine
from tiny.emulator.amd.kernel.cards import cards_named
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq.amd.pm4_queue import INDIRECT_BYTES
from tiny.hcq.amd.program import CodeImage
from tiny.hcq.errors import CommandError
from tiny.hcq.queue import Slot
from tiny.objfile import ObjectError
from tiny.toolchain import CompileError, Source

PREAMBLE = """\
typedef long i64; typedef float f32;
#define KERNEL(name, threads) __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(threads, threads))) \\
    void name
#define GROUP __builtin_amdgcn_workgroup_id_x()
#define ITEM __builtin_amdgcn_workitem_id_x()
"""
SOURCES = [Source(name, f"KERNEL({name}, {threads}){text}", PREAMBLE) for name, threads, text in (
    ("add", 64, "(f32 *a, const f32 *b, const i64 n) {"
                "i64 i = GROUP * 64 + ITEM; if (i < n) a[i] += b[i]; }"),
    ("lookup", 32, "(int *a, const int *b) {"
                   "static const int table[5] = {7, 1, 2, 9, 4}; a[ITEM] = table[*b]; }"),
    ("local", 128, "(int *a) { static __attribute__((address_space(3), loader_uninitialized)) int t[300];"
                   "t[ITEM] = a[ITEM]; __builtin_amdgcn_s_barrier(); a[ITEM] = t[127 - ITEM]; }"),
    ("private", 32, "(int *a, i64 n) { int t[64]; for (int i = 0; i < 64; i++) t[i] = a[i];"
                    "int s = 0; for (int i = 0; i < n; i++) s += t[a[i] & 63]; a[0] = s; }"),
    ("sizes", 32, "(int *a) { a[0] = __builtin_amdgcn_workgroup_size_x(); }"),
)]


@pytest.fixture
def objects(card):
    """{name: object code}."""
    return dict(zip((source.name for source in SOURCES), card.compile(SOURCES), strict=True))


def executed_by(monkeypatch, function):
    """Let the engines hand dispatches to a function."""
    for engine in (pm4_engine, aql_engine):
        monkeypatch.setattr(engine, "execute", lambda work, card, table, _: function(work, card, table))


@pytest.fixture
def dispatches(monkeypatch):
    """What the engine would execute: (dispatch, its arguments as 64-bit words)."""
    seen = []

    def keep(dispatch, card, table):
        kernarg = dispatch.user_data[0] | dispatch.user_data[1] << 32
        seen.append((dispatch, memoryview(table.read(kernarg, 32)).cast("Q").tolist()))
    executed_by(monkeypatch, keep)
    return seen


def test_relocations_lead_to_their_targets(card, objects):
    base = 0x7f0000123400
    for name in ("add", "lookup"):
        image = CodeImage(objects[name], 256)
        content = image.link(base)
        kernel = image.kernel(name, content)
        words = descriptor.ffi.from_buffer("struct kernel_descriptor_t *", bytes(content[kernel.descriptor:]))
        assert kernel.descriptor + words.kernel_code_entry_byte_offset == kernel.entry == image.symbols[name]
        assert kernel.entry % 256 == 0 and len(content) == image.size
    relocations = [relocation for section in image.parsed.sections for relocation in section.relocations
                   if section.name == ".text"]
    low, high = sorted(relocations, key=lambda one: one.offset)[:2]
    text = image._places[image.parsed.sections.index(image.parsed.section(".text"))]
    value = (int.from_bytes(content[text + low.offset:][:4], "little")
             | int.from_bytes(content[text + high.offset:][:4], "little") << 32)
    # s_getpc gives the address of the next instruction; on gfx12 another one stands before the literal
    behind = 8 if card.card.version[0] == 12 else 4
    target = text + low.offset - behind + value - (1 << 64 if value >> 63 else 0)
    table = [int.from_bytes(content[target + at:][:4], "little") for at in range(0, 20, 4)]
    assert table == [7, 1, 2, 9, 4]


def test_a_linked_code_object_loads_as_the_relocatable_one(card, objects, tmp_path):
    (tmp_path / "k.o").write_bytes(objects["lookup"])
    lld = tool("ld.lld-22", "ld.lld")
    subprocess.run([lld, "-shared", tmp_path / "k.o", "-o", tmp_path / "k.so"], check=True)
    linked = CodeImage((tmp_path / "k.so").read_bytes(), 0)
    plain = CodeImage(objects["lookup"], 0)
    first, second = (image.kernel("lookup", image.link(0x10000)) for image in (plain, linked))
    assert (first.rsrc1, first.rsrc2, first.rsrc3, first.kernarg_bytes) == \
        (second.rsrc1, second.rsrc2, second.rsrc3, second.kernarg_bytes)
    assert plain.link(0)[first.entry:first.entry + 16] == linked.link(0)[second.entry:second.entry + 16]


def test_a_launch_carries_registers_arguments_and_the_grid(card, objects, dispatches):
    program = card.load(objects["add"], "add", 64)
    assert program.address % 256 == 0 and program.threads == 64
    queue = card.queue()
    queue.execute(program, [Slot(0), Slot(1, 4), 77], Slot(2))
    queue.execute(program, [0x1234, -1, Slot(3)], 3)
    template = queue.finish()
    template.submit([0x1000, 0x2000, 5, -2])
    card.synchronize(template.submit([0x3000, 0x4000, 6, 9]))
    found = [(dispatch.groups, words[:3]) for dispatch, words in dispatches]
    minus_one = (1 << 64) - 1
    assert found == [((5, 1, 1), [0x1000, 0x2004, 77]), ((3, 1, 1), [0x1234, minus_one, minus_one - 1]),
                     ((6, 1, 1), [0x3000, 0x4004, 77]), ((3, 1, 1), [0x1234, minus_one, 9])]
    dispatch = dispatches[0][0]
    assert (dispatch.threads, dispatch.wave_size, dispatch.code) == ((64, 1, 1), card.card.wave_size,
                                                                     program.address)
    kernel = program.kernel
    extra = 1 << 20 if card.card.arch == "gfx1100" else 0    # PRIV
    assert (dispatch.rsrc1, dispatch.rsrc2) == (kernel.rsrc1 | extra, kernel.rsrc2)
    assert dispatch.rsrc3 == kernel.rsrc3 or card.card.version[0] == 9
    assert (dispatch.lds, dispatch.scratch) == (0, 0)


def test_local_memory_and_scratch_reach_the_registers(card, objects, dispatches):
    local, private = card.load(objects["local"], "local", 128), card.load(objects["private"], "private", 32)
    queue = card.queue()
    queue.execute(local, [0], 2)
    queue.execute(private, [0, 0], 1)
    template = queue.finish()
    card.synchronize(template.submit())
    (first, _), (second, _) = dispatches
    with_registers = card.compute.unit == 4                  # PM4: AQL leaves them to the processor
    assert local.kernel.local_bytes == 1200 and first.lds == (1536 if with_registers else 1200)
    need = private.kernel.private_bytes * card.card.wave_size
    assert need > 256 * 32 and need <= second.scratch < need + 1024
    [memory] = template.kept
    waves = card.card.compute_units * card.card.scratch_slots
    assert memory.size >= min(waves, 0xfff) * need
    if with_registers:
        assert memory.address <= second.scratch_base <= memory.address + 256
        assert second.scratch_base % 256 == 0


def test_a_kernel_that_is_wrong_or_called_wrongly(card, objects):
    program = card.load(objects["add"], "add", 64)
    with pytest.raises(ValueError, match="kernel add takes 24 bytes of arguments, 2 of 8 bytes were given"):
        card.queue().execute(program, [1, 2])
    with pytest.raises(ValueError, match="kernel sizes takes 264 bytes of arguments, 1 of 8 bytes"):
        card.queue().execute(card.load(objects["sizes"], "sizes", 32), [1])
    with pytest.raises(ObjectError, match="the code object has no kernel nothing; it has .*add"):
        card.load(objects["add"], "nothing")
    with pytest.raises(CompileError, match="broken: .*\n(.*\n)*>    1 . void broken"):
        card.compile([Source("broken", "void broken(void) { nonsense; }")])
    undefined = card.compile([Source("calls", "void other(void); KERNEL(calls, 32)(void) { other(); }",
                                     PREAMBLE)])
    with pytest.raises(ObjectError, match="other is not defined by the code object"):
        card.load(undefined[0], "calls")


def test_the_kernel_that_faults_is_named(card, objects, dispatches, monkeypatch):
    programs = [card.load(objects[name], name, threads) for name, threads in
                (("add", 64), ("lookup", 32), ("local", 128))]

    def fault(dispatch, card, table):
        if dispatch.code == programs[1].address:
            table.write_u32(0xdead0000, 1)
    executed_by(monkeypatch, fault)
    queue = card.queue()
    for program in programs:
        queue.execute(program, [0] * (program.kernel.kernarg_bytes // 8))
    with pytest.raises(CommandError, match="at kernel lookup, 1 groups of 32") as error:
        card.synchronize(queue.finish().submit())
    assert error.value.kernel == "lookup" and "0xdead0000" in str(error.value)
    queue = card.queue()
    queue.execute(programs[0], [0, 0, 0])
    card.synchronize(queue.finish().submit())


def test_a_template_shows_its_packets(card, objects):
    queue = card.queue()
    queue.execute(card.load(objects["add"], "add", 64), [Slot(0), 2, 3], 5)
    queue.copy(0x5000, 0x6000, 77)
    names = [type(packet).__name__ for packet in queue.finish().packets()]
    launch = "KernelDispatch" if "Aql" in type(card.compute).__name__ else "DispatchDirect"
    assert names.index(launch) < names.index("PollRegMem") < next(
        number for number, name in enumerate(names) if name.startswith("CopyLinear"))


def test_programs_and_their_code_go_with_the_last_reference(card, objects, dispatches):
    program = card.load(objects["add"], "add", 64)
    again = card.load(objects["add"], "add", 64)
    assert program.image is again.image
    held = card.allocator.held
    del program, again
    card.synchronize()
    card.allocate(8)
    card.allocate(8)
    assert card.allocator.held < held


def test_a_template_longer_than_an_indirect_buffer_is_run_in_parts(dispatches, monkeypatch):
    monkeypatch.setattr("tiny.hcq.amd.pm4_queue.INDIRECT_BYTES", 800)
    with opened(EmulatedRadeon(cards_named("gfx1100"))) as amd:
        results = filled(amd, bytes(8 * 100))
        queue = amd.queue()
        for number in range(100):
            queue.signal(results.address + 8 * number, number)
        template = queue.finish()
        parts = template.parts(800)
        assert len(parts) > 4 and max(size for _, size in parts) <= 800 < INDIRECT_BYTES
        assert sum(size for _, size in parts) == template.commands_bytes and template.commands_bytes % 32 == 0
        amd.synchronize(template.submit())
        assert len(template.instances[0].ring) == 16 * len(parts)
        assert list(results.host().cast("Q")) == list(range(100))
