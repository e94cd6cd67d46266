"""Object files: what parse finds, what it refuses, and relocations against what a linker makes of them."""
import ctypes
import platform
import re
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools import tool
from tiny import objfile
from tiny.hcq import io
from tiny.hcq.cpu.loader import Image, Layout, library_address
from tiny.objfile import AARCH64, X86_64, ObjectError, parse, relocate

SOURCE = """
typedef unsigned long u64;
extern void *memcpy(void *, const void *, u64);
static const float table[5] = {1, 2, 3, 4, 5};
static u64 counter = 7;
static u64 zeroed[3];
u64 visible = 1;
const char *const text = "hello";
__attribute__((noinline)) u64 helper(u64 x) { return x + counter + visible + zeroed[x % 3]; }
void kernel(const u64 *args, u64 begin, u64 end)
{
    float *out = (float *)args[0];
    for (u64 g = begin; g < end; g++) {
        switch (g % 8) {
        case 0: out[g] = 1.5f; break;
        case 1: out[g] = helper(g); break;
        case 2: out[g] = table[g % 5] * 2.25f; break;
        case 3: out[g] = text[1]; break;
        case 4: out[g] = counter++; break;
        case 5: memcpy(out + g, args + 1, end / 2); break;
        case 6: out[g] = zeroed[0]++; break;
        default: out[g] = -1;
        }
    }
}
"""
PURE = SOURCE.replace("memcpy(out + g, args + 1, end / 2)", "out[g] = args[1]")
x86_only = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="runs x86-64 code, which only such a processor can; where both "
    "machines' code is placed is tested everywhere")


def build(folder, compiler, *flags, source=SOURCE):
    command = tool("clang-22", "clang") if compiler == "clang" else tool(compiler)
    (folder / "k.c").write_text(source)
    subprocess.run([command, "-c", *flags, str(folder / "k.c"), "-o", str(folder / "k.o")], check=True)
    return (folder / "k.o").read_bytes()


def test_parse_gives_sections_symbols_and_relocations(tmp_path):
    parsed = parse(build(tmp_path, "clang", "--target=x86_64-linux-gnu", "-O1", "-fPIC"))
    assert (parsed.machine, parsed.kind) == (X86_64, objfile.RELOCATABLE)
    text = parsed.section(".text")
    assert text.kind == objfile.PROGBITS and text.flags & objfile.EXECINSTR and len(text.data) == text.size
    symbols = {symbol.name: symbol for symbol in parsed.symbols}
    assert parsed.sections[symbols["kernel"].section] is text
    assert symbols["kernel"].binding == objfile.GLOBAL and symbols["counter"].binding == objfile.LOCAL
    assert symbols["memcpy"].section == objfile.UNDEFINED
    assert {parsed.symbols[r.symbol].name for r in text.relocations} >= {"memcpy", "visible"}
    bss = parsed.section(".bss")
    assert bss.kind == objfile.NOBITS and bss.size >= 24 and len(bss.data) == 0
    with pytest.raises(ObjectError, match=r"no section \.nonsense; there are .*\.text"):
        parsed.section(".nonsense")


def test_relocations_are_those_that_readelf_lists(tmp_path):
    parsed = parse(build(tmp_path, "clang", "--target=x86_64-linux-gnu", "-O2"))
    text = subprocess.run([tool("readelf"), "-rW", tmp_path / "k.o"], capture_output=True, text=True).stdout
    ours = [relocate(X86_64, r.kind).name for s in parsed.sections for r in s.relocations]
    assert ours == re.findall(r"R_X86_64_\w+", text)


@x86_only
@pytest.mark.parametrize("compiler", ["clang", "gcc"])
@pytest.mark.parametrize("flags", [
    ("-O2", "-fPIC", "-fvisibility=hidden"), ("-O0", "-fPIC"), ("-O2", "-fPIC"), ("-O1", "-fPIC", "-fno-plt"),
    ("-O2", "-fPIC", "-fno-jump-tables"), ("-O3", "-fPIE", "-fdata-sections", "-ffunction-sections")])
def test_a_loaded_kernel_runs(tmp_path, compiler, flags):
    image = Image(build(tmp_path, compiler, *flags), X86_64, io.installed())
    bits = struct.unpack("<f", struct.pack("<I", 77))[0]
    assert call(image, 77) == [1.5, 9.0, 6.75, 101.0, 7.0, bits, 0.0, -1.0]
    assert call(image, 77)[4:7:2] == [8.0, 1.0]             # variables stay writable


def call(image, number):
    out = (ctypes.c_float * 8)()
    args = (ctypes.c_uint64 * 2)(ctypes.addressof(out), number)
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)(image.symbol("kernel"))
    kernel(ctypes.addressof(args), 0, 8)
    return list(out)


@x86_only
def test_no_page_is_writable_and_executable(tmp_path):
    image = Image(build(tmp_path, "clang", "-O1", "-fPIC"), X86_64, io.installed())
    with open("/proc/self/maps") as maps:
        pages = [(*(int(end, 16) for end in line.split()[0].split("-")), line.split()[1]) for line in maps]
    mine = [rights for start, end, rights in pages      # a line may join them with a neighbour's
            if start < image.address + image.size and end > image.address]
    assert mine == ["r-xp", "rw-p"]


@x86_only
def test_the_mapping_goes_with_the_image(tmp_path):
    image = Image(build(tmp_path, "clang", "-O1", "-fPIC"), X86_64, io.installed())
    start = f"{image.address:x}-"
    del image
    with open("/proc/self/maps") as maps:
        assert not any(line.startswith(start) for line in maps)


@pytest.mark.parametrize("target, machine, linker_emulation", [
    ("x86_64-linux-gnu", X86_64, "elf_x86_64"), ("aarch64-linux-gnu", AARCH64, "aarch64linux")])
@pytest.mark.parametrize("flags", [("-O2",), ("-O0",), ("-O2", "-fPIC", "-fvisibility=hidden")])
def test_the_bytes_are_those_of_a_linker(tmp_path, target, machine, linker_emulation, flags):
    lld = tool("ld.lld", "ld.lld-22")
    parsed = parse(build(tmp_path, "clang", f"--target={target}", *flags, source=PURE))
    base, layout = 0x200000, Layout(parsed)
    ours = layout.link(base, library_address)
    placed = {parsed.sections[index].name: base + start for index, start in layout.places.items()}
    places = "\n".join(f"{name} {address:#x} : {{ *({name}) }}" for name, address in
                       sorted(placed.items(), key=lambda item: item[1]) if not name.startswith(".eh_frame"))
    (tmp_path / "script").write_text(f"SECTIONS {{ {places} /DISCARD/ : {{ *(.eh_frame) }} }}")
    subprocess.run([lld, "-m", linker_emulation, "-T", tmp_path / "script", "--no-relax", "--no-gc-sections",
                    "-O0", "-o", tmp_path / "k", tmp_path / "k.o", "-e", "kernel"], check=True)
    for section in parse((tmp_path / "k").read_bytes()).sections:
        if section.name in placed and section.kind == objfile.PROGBITS and section.name != ".eh_frame":
            start = section.address - base
            assert ours[start:start + section.size] == section.data, section.name


def test_calls_out_of_the_object_go_through_a_jump(tmp_path):
    jumps = {"x86_64": (X86_64, "ff2502000000"), "aarch64": (AARCH64, "5000005800021fd6")}
    for target, (machine, code) in jumps.items():
        parsed = parse(build(tmp_path, "clang", f"--target={target}-linux-gnu", "-O1", "-fPIC"))
        assert parsed.machine == machine
        linked = bytes(Layout(parsed).link(0x10000, {"memcpy": 0x123456789abc}.__getitem__))
        jump = linked.index(bytes.fromhex(code))
        assert jump % 16 == 0 and struct.unpack_from("<Q", linked, jump + 8) == (0x123456789abc,)


@given(st.integers(-(1 << 32), 1 << 32), st.integers(0, (1 << 47) - 1))
def test_relative_relocations_reach_two_gigabytes_or_say_so(distance, place):
    rule, data = relocate(X86_64, 2), bytearray(8)
    number = rule.value(place + distance, place)
    if -(1 << 31) <= distance < 1 << 31:
        rule.write(data, 2, number, rule.name)
        assert struct.unpack_from("<i", data, 2) == (distance,) and data[6:] == b"\0\0"
    else:
        with pytest.raises(ObjectError, match="R_X86_64_PC32 at 0x2: .* too far away"):
            rule.write(data, 2, number, rule.name)


@given(st.integers(-(1 << 27), (1 << 27) - 1))
def test_an_aarch64_call_keeps_its_opcode(distance):
    rule, data = relocate(AARCH64, 283), bytearray(struct.pack("<I", 0x94000000))
    if distance % 4:
        with pytest.raises(ObjectError, match="not aligned to 4"):
            rule.write(data, 0, distance, rule.name)
    else:
        rule.write(data, 0, distance, rule.name)
        word = struct.unpack("<I", data)[0]
        assert word >> 26 == 0x25 and ((word & 0x3ffffff) ^ 0x2000000) - 0x2000000 == distance // 4


def test_what_is_not_understood_is_named(tmp_path):
    data = build(tmp_path, "clang", "--target=x86_64-linux-gnu", "-O1", "-fPIC")
    for broken, text in ((b"MZ" + data[2:], "not an ELF file"), (b"", "not an ELF file: 0 bytes"),
                         (data[:4] + b"\1" + data[5:], "only 64-bit little-endian"),
                         (data[:len(data) // 2], "damaged or cut off")):
        with pytest.raises(ObjectError, match=text):
            parse(broken)
    with pytest.raises(ObjectError, match="relocation 999 of machine 62 is not known; add it to"):
        relocate(X86_64, 999)
    with pytest.raises(ObjectError, match="for machine 62; this device loads kind 1 for machine 183"):
        Image(data, AARCH64, io.installed())


@x86_only
def test_a_missing_function_is_named(tmp_path):
    source = "int nonesuch_function(void); int kernel(void) { return nonesuch_function(); }"
    with pytest.raises(ObjectError, match="nonesuch_function is neither defined .* nor in the C library"):
        Image(build(tmp_path, "clang", "-fPIC", source=source), X86_64, io.installed())
    image = Image(build(tmp_path, "clang", "-fPIC"), X86_64, io.installed())
    with pytest.raises(ObjectError, match="the object defines no kernal; it has .*kernel"):
        image.symbol("kernal")


def test_thread_local_variables_are_refused(tmp_path):
    source = "__thread int x; int kernel(void) { return x++; }"
    with pytest.raises(ObjectError, match="thread-local"):
        Layout(parse(build(tmp_path, "clang", "-fPIC", source=source)))
