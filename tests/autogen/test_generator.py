"""The generator on small headers of our own: layouts, macros, tables, archives. Nothing is downloaded."""
from pathlib import Path

import pytest

import tiny.autogen
from tests.autogen import agreement
from tiny.autogen.generator import command, emit, libclang, macros, packages, tables
from tiny.autogen.generator.build import Built, Source
from tiny.autogen.generator.provenance import Provenance
from tiny.autogen.generator.records import Declarations

STRUCTS = """
typedef unsigned int u32; typedef unsigned long long u64; typedef unsigned char u8;
enum color { RED, BLUE = 7 };
struct inner { u8 a; u32 b; };
typedef struct { u64 x; struct inner in; } unnamed_t;
struct all {
  u8 first;
  union { u32 whole; struct { u8 low; u8 high; }; float f; };
  struct { u32 nested; struct { u64 deep; } again; } named;
  u32 three : 3; u32 : 5; u32 twenty : 20; u32 over : 12;
  u8 tail_of_bits : 4;
  void *pointer; int (*function)(int); enum color color; _Bool flag;
  u32 matrix[2][3]; struct inner items[2]; unnamed_t t;
};
struct flexible { u32 count; struct inner items[]; };
struct packed { u8 a; u32 b; u64 c; } __attribute__((packed));
struct aligned { u8 a; u32 b __attribute__((aligned(16))); u8 c; };
struct rounded { u8 a; } __attribute__((aligned(8)));
"""
MACROS = """
#define SMALL 3
#define WORD 0x80084b01
#define HUGE_ 0xfffffffffffffff0ull
#define NEGATIVE (-2)
#define SIGN (1 << 31)
#define TEXT "no number"
#define SIZE_OF sizeof(struct { long a; int b; })
#define NVX_LAUNCH 0x1b0
#define NVX_LAUNCH_MODE 5:4
#define NVX_LAUNCH_MODE_ON 0x1
#define NVX_LAUNCH_ENABLE 8:8
#define NVX_LAUNCH_ENABLE_FALSE 0
#define NVX_LAUNCH_ENABLE_TRUE 1
#define NVX_DATA(i) (0x320+(i)*4)
#define NVX_DATA_V 31:0
#define MW(x) x
#define NVX_QMD_FIELD MW(583:580)
#define NVX_QMD_BUFFER(i) MW((1055+(i)*64):(1024+(i)*64))
#define ENGINE(x) ((x) << 31)
#define COUNT(x) (((x) & 0x3fff) << 16)
#define NOT_A_FIELD(x) ((x) + 1)
"""


@pytest.fixture(scope="module")
def declarations():
    libclang.load()
    return Declarations(libclang.parse(STRUCTS, []))


@pytest.fixture
def source(tmp_path):
    libclang.load()
    (tmp_path / "macros.h").write_text(MACROS)
    return Source("#include <macros.h>\n", [str(tmp_path)], [tmp_path / "macros.h"], "c")


@pytest.mark.parametrize("name", ["all", "inner", "unnamed_t", "flexible", "packed", "aligned", "rounded"])
def test_cffi_lays_a_record_out_as_libclang_does(declarations, name):
    declarations.take(name)
    records = list(declarations.records.values())
    emit.check(emit.ffi_for(records, [], {}), records)


def test_a_record_tells_its_members(declarations):
    record = declarations.take("all")
    places = {path: (offset, width) for path, offset, width, _ in record.paths()}
    assert places["whole"] == places["low"] == (32, None) and places["high"] == (40, None)
    assert places["named.again.deep"] == (128, None)
    assert places["three"] == (192, 3) and places["twenty"] == (200, 20)
    # it would cross its 32-bit unit, so it starts the next
    assert places["over"] == (224, 12)
    assert declarations.take("flexible").size == 4


def test_a_c_program_agrees(declarations, tmp_path):
    for name in ("all", "flexible", "packed", "aligned", "rounded"):
        declarations.take(name)
    built = Built("", list(declarations.records.values()), {}, Source(STRUCTS, [], [], "c"), {})
    assert agreement.compiled(built, tmp_path) == []


def test_a_missing_record_names_its_neighbours(declarations):
    with pytest.raises(libclang.HeaderError, match="no definition of 'flexibel'.*near: struct "
                                                   "flexible|near: nothing"):
        declarations.take("flexibel")


def test_integer_macros_have_the_values_of_the_compiler(source):
    found = macros.constants(source.names([r"[A-Z_]+"]), source.text, source.includes)
    assert found == {"SMALL": 3, "WORD": 0x80084b01, "HUGE_": 0xfffffffffffffff0, "NEGATIVE": -2,
                     "SIGN": -(1 << 31),
                     "SIZE_OF": 16, "NVX_LAUNCH": 0x1b0, "NVX_LAUNCH_MODE_ON": 1,
                     "NVX_LAUNCH_ENABLE_FALSE": 0,
                     "NVX_LAUNCH_ENABLE_TRUE": 1}


def test_methods_have_fields_and_fields_have_values(source):
    assert tables.methods(source, [r"LAUNCH", r"DATA"], prefix="NVX_") == {
        "LAUNCH": (0x1b0, 0, {"MODE": (4, 2, {"ON": 1}), "ENABLE": (8, 1, {})}),
        "DATA": (0x320, 4, {"V": (0, 32, {})}),
    }


def test_structure_bits_may_repeat(source):
    assert tables.structure_bits(source, [r".*"], prefix="NVX_QMD_") == {
        "FIELD": (580, 4, 0, {}), "BUFFER": (1024, 32, 64, {})}


def test_macros_of_one_argument_are_fields_if_they_shift(source):
    assert tables.field_macros(source, [r"ENGINE", r"COUNT", r"NOT_A_FIELD"]) == {"ENGINE": (31, None),
        "COUNT": (16, 14)}


def test_registers_pair_offsets_with_masks(tmp_path):
    (tmp_path / "offset.h").write_text("#define regA 0x1bb2\n#define regA_BASE_IDX 0\n#define regB 0x2\n"
                                       "#define regB_BASE_IDX 1\n")
    (tmp_path / "mask.h").write_text("#define A__VGPRS__SHIFT 0x0\n#define A__SGPRS__SHIFT 0x6\n"
                                     "#define A__VGPRS_MASK 0x0000003FL\n#define A__SGPRS_MASK 0x000003C0L\n")
    paths = [tmp_path / "offset.h", tmp_path / "mask.h"]
    assert tables.registers(Source("", [], paths, "c"), ["A"]) == {
        "A": (0x1bb2, 0, {"VGPRS": (0, 6), "SGPRS": (6, 4)})}
    with pytest.raises(libclang.HeaderError, match="no register matches"):
        tables.registers(Source("", [], paths, "c"), ["C"])


def test_archives_are_derived_from_either_form_of_source_list(tmp_path):
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text("# comment\ndeb [arch=amd64 signed-by=/k.gpg] http://one/debian "
                                           "stable main\n")
    (tmp_path / "sources.list.d" / "more.sources").write_text(
        "Types: deb\nURIs: http://two/debian-security\nSuites: stable-security\nComponents: "
        "main\nSigned-By: /s.gpg\n")
    archives = packages._configured_archives(tmp_path)
    assert packages._archive_for("newer-backports", archives, "stable").uri == "http://one/debian"
    assert packages._archive_for("older-security", archives, "stable").uri == "http://two/debian-security"
    assert {archive.signed_by for archive in archives} == {"/k.gpg", "/s.gpg"}
    with pytest.raises(packages.PackageError, match="suite testing: no archive for other among"):
        packages._archive_for("testing", archives, "other")


def test_every_set_has_its_module_and_its_record_and_no_other_stands_beside_them():
    folder = Path(tiny.autogen.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__", "nv_abi"}
    recorded = Provenance.read(command.RECORD)
    assert modules == {wanted.module for wanted in command.SETS} == set(recorded.sets)
    assert {key for keys in recorded.sets.values() for key in keys} == set(recorded.packages)
    for name in recorded.sets:
        size = (folder / f"{name}.py").stat().st_size
        assert size < 48 << 10, f"{name} has {size} bytes: take less in the manifest"


def test_no_host_is_named():
    folder = Path(tiny.autogen.__file__).parent
    for path in [*folder.rglob("*.py"), folder / "manifest.json"]:
        assert "http" + "://" not in path.read_text() and "https" + "://" not in path.read_text(), path


def test_an_unknown_set_proposes_one():
    with pytest.raises(SystemExit, match="no header set 'kfd_6_13'; near: kfd_6_1, kfd_6_12"):
        command.chosen(["kfd_6_13"], False)


def test_provenance_notes_changed_files_and_newer_versions(tmp_path):
    wanted = command.SETS[0]
    key = wanted.packages[0].key
    folders = {package.key: packages.Unpacked(tmp_path, "1.0", 10) for package in wanted.packages}
    old, new = Provenance(), Provenance()
    old.add(wanted, folders, {(key, "a.h"): "1", (key, "b.h"): "2"})
    new.add(wanted, folders | {key: packages.Unpacked(tmp_path, "1.1", 10)}, {(key, "a.h"): "3"})
    assert old.changed({(key, "a.h"): "1"}) == [] and old.changed({(key, "a.h"): "3"}) == [f"{key}: a.h"]
    assert new.newer(old) == [f"{key} is now 1.1, recorded 1.0"]
    assert old.merged(new).packages[key]["files"] == {"a.h": "3", "b.h": "2"}
    old.write(tmp_path / "manifest.json", [wanted.module])
    assert Provenance.read(tmp_path / "manifest.json") == old
