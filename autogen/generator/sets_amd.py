"""Header sets of AMD GPUs: PM4 and SDMA packets, compute registers, AQL structs and the kernel descriptor."""
from tiny.autogen.generator import tables
from tiny.autogen.generator.manifest import Constants, Folder, Header, HeaderSet, Records, Table
from tiny.autogen.generator.packages import Package
from tiny.autogen.generator.sets_linux import LIBC, UAPI_6_12

_AMD = "drivers/gpu/drm/amd"
KERNEL = Package("linux-source-6.12", "deb", "bookworm-backports",
                 (f"{_AMD}/amdgpu/*.h", f"{_AMD}/include/*.h", f"{_AMD}/include/asic_reg/gc/*.h"),
                 inner="usr/src/linux-source-6.12.tar.xz")
HSA = Package("libhsa-runtime-dev", "deb", "bookworm", ("usr/include/hsa/*",))
LLVM = Package("llvm-22-dev", "deb", "bookworm-security",
               ("usr/include/llvm-22/llvm/Support/AMDHSAKernelDescriptor.h",))

_LIBC = (Folder(LIBC, "usr/include"), Folder(LIBC, "usr/include/x86_64-linux-gnu"),
         Folder(UAPI_6_12, "usr/include"),
         Folder(UAPI_6_12, "usr/include/x86_64-linux-gnu"))
_SDMA = ("NOP", "COPY_LINEAR", "WRITE_UNTILED", "CONSTANT_FILL", "FENCE", "POLL_REGMEM",
         "TIMESTAMP_GET_GLOBAL", "TRAP",
         "INDIRECT", "ATOMIC", "SRBM_WRITE", "COND_EXE")
_REGISTERS = (r"COMPUTE_.*", r"GRBM_GFX_INDEX", r"SH_MEM_(BASES|CONFIG)", r"CP_COHER_.*",
              r"SQ_THREAD_TRACE_.*")


def _kernel(path: str, include: bool = True) -> Header:
    return Header(KERNEL, f"{_AMD}/{path}", path.rsplit("/", 1)[-1] if include else "")


def _pm4(module: str, title: str, header: str, flags: tuple[str, ...]) -> HeaderSet:
    return HeaderSet(module, title, (_kernel(f"amdgpu/{header}"),), (Folder(KERNEL, f"{_AMD}/amdgpu"),),
                     (Constants((r"PACKET3_\w+", r"PACKET_TYPE\d", *flags)),
                      Table("FIELDS", tables.field_macros,
                            (r"PACKET3_\w+", r"(WRITE_DATA|WAIT_REG_MEM|INDIRECT_BUFFER)_\w+",
                             r"EVENT_(TYPE|INDEX)",
                             r"(DATA|INT|DST)_SEL"))))


def _sdma(module: str, title: str, header: str, packets: tuple[str, ...] = _SDMA) -> HeaderSet:
    return HeaderSet(module, title, (_kernel(f"amdgpu/{header}"),), (Folder(KERNEL, f"{_AMD}/amdgpu"),),
                     (Constants((r"SDMA_OP_(NOP|COPY|WRITE|INDIRECT|FENCE|TRAP|POLL_REGMEM|COND_EXE|ATOMIC)",
                                 r"SDMA_OP_(CONST_FILL|TIMESTAMP|SRBM_WRITE|GCR_REQ)",
                                 r"SDMA_SUBOP_(COPY_LINEAR|WRITE_LINEAR|TIMESTAMP\w*)")),
                      Table("PACKETS", tables.sdma_packets, packets)))


def _gc(version: str, chips: str, bases: str, events: str) -> HeaderSet:
    stem = f"include/asic_reg/gc/gc_{version}"
    return HeaderSet(f"amd_gc_{version}", f"Compute registers and events of {chips} (graphics core "
                     f"{version.replace('_', '.')}).",
                     (_kernel(f"{stem}_offset.h", False), _kernel(f"{stem}_sh_mask.h", False),
                      _kernel(f"include/{bases}", True), _kernel(f"include/{events}", True)),
                     (Folder(KERNEL, f"{_AMD}/include"),),
                     (Constants((r"GC_BASE__INST0_SEG\d",)), Records(enums=("VGT_EVENT_TYPE",)),
                      Table("REGISTERS", tables.registers, _REGISTERS)),
                     preamble="#define __maybe_unused")


SETS = (
    _pm4("amd_pm4", "PM4 packets of GFX10 and later: opcodes and bit fields.", "nvd.h",
         (r"WR_(ONE_ADDR|CONFIRM)", r"INDIRECT_BUFFER_VALID")),
    _pm4("amd_pm4_gfx9", "PM4 packets of GFX9 (gfx942): opcodes and bit fields.", "soc15d.h",
         (r"WR_(ONE_ADDR|CONFIRM)", r"INDIRECT_BUFFER_VALID", r"EOP_\w+")),
    _sdma("amd_sdma_6", "SDMA packets of gfx11 and gfx12: opcodes and bit fields.", "sdma_v6_0_0_pkt_open.h",
          (*_SDMA, "GCR_REQ")),
    _sdma("amd_sdma_4", "SDMA packets of gfx942: opcodes and bit fields.", "vega10_sdma_pkt_open.h"),
    _gc("9_4_3", "gfx942", "vega10_ip_offset.h", "vega10_enum.h"),
    _gc("11_0_0", "gfx1100 to gfx1103", "navi10_ip_offset.h", "soc21_enum.h"),
    _gc("12_0_0", "gfx1200 and gfx1201", "navi10_ip_offset.h", "soc24_enum.h"),
    HeaderSet("amd_hsa", "HSA structs that a GPU reads: AQL packets, queues, signals.",
              (Header(HSA, "usr/include/hsa/hsa.h", "hsa/hsa.h"),
               Header(HSA, "usr/include/hsa/amd_hsa_queue.h", "hsa/amd_hsa_queue.h"),
               Header(HSA, "usr/include/hsa/amd_hsa_signal.h", "hsa/amd_hsa_signal.h")),
              (Folder(HSA, "usr/include"), *_LIBC),
              (Records(names=("hsa_kernel_dispatch_packet_t", "hsa_agent_dispatch_packet_t",
                              "hsa_barrier_and_packet_t",
                              "hsa_barrier_or_packet_t", "amd_queue_t", "amd_signal_t"),
                       enums=(r"hsa_packet_.*", r"hsa_kernel_dispatch_packet_setup.*", r"hsa_fence_scope_t",
                              r"amd_queue_properties_t", r"AMD_QUEUE_PROPERTIES_.*", r"amd_signal_kind_t",
                              r"AMD_SIGNAL_KIND_.*")),),
              small=True),
    HeaderSet("amd_kernel_descriptor", "The 64 bytes that describe a compiled kernel, and the bits in them.",
              (Header(LLVM, "usr/include/llvm-22/llvm/Support/AMDHSAKernelDescriptor.h",
                      "llvm/Support/AMDHSAKernelDescriptor.h"),),
              (Folder(LLVM, "usr/include/llvm-22"),),
              (Records(names=("kernel_descriptor_t",), enums=(r".*",)),), language="c++",
              stubs=(("cstddef", "#include <stddef.h>\n"), ("cstdint", "#include <stdint.h>\n"))),
)
