"""QMD layouts against those that the NAK compiler writes: Mesa's, in PyPI's tinymesa. The tables of QMD 4.0
and 5.0 have no packaged header; this is the packaged reader that they are checked against.
"""
import random

import cffi
import pytest

from tiny.autogen.generator.packages import Package, Packages
from tiny.hcq.nv import qmd

TINYMESA = Package("tinymesa", "wheel", "25.2.7.2", ("tinymesa/libtinymesa.so",))
pytestmark = [pytest.mark.oracle, pytest.mark.slow]

# nv_device_info and nak_qmd_info as in Mesa 25.0's nv_device_info.h and nak.h. nak_shader_info grew since:
# its places were
# found by changing one byte after another and watching the QMD, on 2026-11-30.
STRUCTS = """
struct nv_device_info {
  uint8_t type; uint16_t device_id, chipset; char device_name[64], chipset_name[16];
  struct { uint16_t domain; uint8_t bus, dev, func, revision_id; } pci;
  uint8_t sm, gpc_count; uint16_t tpc_count; uint8_t mp_per_tpc, max_warps_per_mp;
  uint16_t cls_copy, cls_eng2d, cls_eng3d, cls_m2mf, cls_compute; uint64_t vram_size_B, bar_size_B; uint8_t
  slack[256];
};
struct nak_shader_info {
  uint32_t stage; uint8_t sm, num_gprs, num_control_barriers, pad; uint8_t unused[28]; uint32_t slm_size,
  crs_size; uint16_t local_size[3], smem_size; uint8_t slack[2048];
};
struct nak_qmd_cbuf { uint32_t index, size; uint64_t addr; };
struct nak_qmd_info {
  uint64_t addr; uint16_t smem_size, smem_max; uint32_t global_size[3], num_cbufs; struct nak_qmd_cbuf
  cbufs[8];
};
struct sizes { uint16_t x_start, x_end, y_start, y_end, z_start, z_end; };
struct buffer { uint16_t shift, lo_start, lo_end, hi_start, hi_end; };
uint32_t nak_qmd_size_B(const struct nv_device_info *);
struct sizes nak_get_qmd_dispatch_size_layout(const struct nv_device_info *);
struct buffer nak_get_qmd_cbuf_desc_layout(const struct nv_device_info *, uint8_t);
void nak_fill_qmd(const struct nv_device_info *, const struct nak_shader_info *, const struct nak_qmd_info *,
void *, size_t);
"""
COMPUTE_STAGE = 5
GPUS = {0xc6c0: 80, 0xc7c0: 86, 0xc9c0: 89, 0xcbc0: 90, 0xcdc0: 100, 0xcec0: 120}


@pytest.fixture(scope="module")
def nak(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nak")
    unpacked = Packages(folder).bring([TINYMESA])[TINYMESA.key]
    ffi = cffi.FFI()
    ffi.cdef(STRUCTS)
    return ffi, ffi.dlopen(str(unpacked.folder / "tinymesa" / "libtinymesa.so"))


def device(ffi, compute_class: int):
    found = ffi.new("struct nv_device_info *")
    found.cls_compute, found.sm = compute_class, GPUS[compute_class]
    return found


@pytest.mark.parametrize("compute_class", GPUS, ids=hex)
def test_sizes_and_places_that_nak_tells(nak, compute_class):
    ffi, library = nak
    layout, gpu = qmd.VERSIONS[compute_class], device(ffi, compute_class)
    assert library.nak_qmd_size_B(gpu) == layout.size_bytes
    grid = library.nak_get_qmd_dispatch_size_layout(gpu)
    for name, start, end in (("grid_x", grid.x_start, grid.x_end), ("grid_y", grid.y_start, grid.y_end),
                             ("grid_z", grid.z_start, grid.z_end)):
        field = layout.fields[name]
        assert (field.dword * 32 + field.low, field.width) == (start, end - start)
    for index in range(8):
        buffer = library.nak_get_qmd_cbuf_desc_layout(gpu, index)
        field = layout.fields[f"constants_address_{index}"]
        assert field.dword * 32 + field.low == buffer.lo_start and buffer.lo_end == buffer.hi_start
        assert field.unit == 1 << buffer.shift


@pytest.mark.parametrize("compute_class", GPUS, ids=hex)
def test_qmds_that_nak_writes(nak, compute_class):
    """1,000 launches: every field that NAK sets reads back, and it sets no bit that the declaration does not
    name.
    """
    ffi, library = nak
    layout, gpu = qmd.VERSIONS[compute_class], device(ffi, compute_class)
    random_ = random.Random(compute_class)
    for _ in range(1000):
        info = ffi.new("struct nak_shader_info *", {"stage": COMPUTE_STAGE, "sm": gpu.sm})
        info.num_gprs, info.num_control_barriers = random_.randrange(1, 256), random_.randrange(17)
        info.slm_size = random_.randrange(0, 1 << 16, 16)
        info.local_size = [random_.randrange(1, 1024), random_.randrange(1, 64), random_.randrange(1, 64)]
        info.smem_size = random_.randrange(48 << 10)
        asked = ffi.new("struct nak_qmd_info *", {"smem_size": info.smem_size, "smem_max": 48 << 10})
        asked.addr = random_.randrange(0, 1 << 40, 128)
        asked.global_size = [random_.randrange(1, 1 << 31), random_.randrange(1, 1 << 16),
                             random_.randrange(1, 1 << 16)]
        asked.num_cbufs = random_.randrange(9)
        for index in range(asked.num_cbufs):
            asked.cbufs[index] = {"index": index, "size": random_.randrange(16, 1 << 16, 16),
                                  "addr": random_.randrange(0, 1 << 40, 256)}
        out = ffi.new("uint8_t[]", layout.size_bytes)
        library.nak_fill_qmd(gpu, info, asked, out, layout.size_bytes)
        found = layout.decode(bytes(ffi.buffer(out)))
        assert bytes(found) == bytes(ffi.buffer(out)), "NAK sets bits that the declaration does not name"
        assert (found.grid_x, found.grid_y, found.grid_z) == tuple(asked.global_size)
        assert (found.block_x, found.block_y, found.block_z) == tuple(info.local_size)
        assert (found.register_count, found.barrier_count) == (info.num_gprs, info.num_control_barriers)
        assert (found.program, found.local_low_bytes) == (asked.addr, info.slm_size)
        assert 0 <= found.shared_bytes - info.smem_size < 256  # NAK rounds up
        for index in range(8):
            valid = index < asked.num_cbufs
            assert getattr(found, f"constants_valid_{index}") == valid
            assert getattr(found, f"constants_address_{index}") == (asked.cbufs[index].addr if valid else 0)
            assert getattr(found, f"constants_bytes_{index}") == (asked.cbufs[index].size if valid else 0)
