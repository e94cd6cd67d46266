"""Structs of NVIDIA driver versions whose headers no package carries, as tables, and Blackwell's class
numbers.

Each table was compared with libclang's layout of the named file at the named tag of NVIDIA's
open-gpu-kernel-modules on 2026-11-30; 610's one table is from a cross-read of another project's bindings
(facts of this project) and is unchecked. A version's tables hold for every later version until another table
of the same name replaces them.
"""
from tiny.autogen.generator.manifest import Declared, Numbers

_SDK = "src/common/sdk/nvidia/inc"
_TYPES = """
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
"""


def _table(name: str, source: str, members: str, size: int) -> Declared:
    """One struct; `size` is what its source says, and the C compiler checks it."""
    text = (f"typedef struct {name} {{ {members} }} {name};\n"
            f'_Static_assert(sizeof({name}) == {size}, "{name}");\n')
    return Declared(text, source, (name,))


def _open(tag: str, path: str) -> str:
    return f"open-gpu-kernel-modules {tag}, {path}"


_CHANNEL_END = """u32 engineType; u32 cid; u32 subDeviceId; u32 hObjectEccError;
    NV_MEMORY_DESC_PARAMS instanceMem; NV_MEMORY_DESC_PARAMS userdMem; NV_MEMORY_DESC_PARAMS ramfcMem;
    NV_MEMORY_DESC_PARAMS mthdbufMem; u32 hPhysChannelGroup; u32 internalFlags; NV_MEMORY_DESC_PARAMS
    errorNotifierMem; NV_MEMORY_DESC_PARAMS eccErrorNotifierMem; u32 ProcessID; u32 SubProcessID; u32
    encryptIv[3]; u32 decryptIv[3]; u32 hmacNonce[8]; u32 tpcConfigID;"""

_CHANGES = {
    "550": (
        _table("NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS",
               _open("550.54.14", f"{_SDK}/ctrl/ctrl0080/ctrl0080gpu.h"),
               "u32 numClasses; u32 classList[174];", 700),),
    "555": (),
    "570": (
        _table("NV0000_ALLOC_PARAMETERS", _open("570.124.04", f"{_SDK}/class/cl0000.h"),
               "u32 hClient; u32 processID; char processName[100]; void *pOsPidInfo;", 120),
        _table("NV_CHANNEL_ALLOC_PARAMS", _open("570.124.04", f"{_SDK}/alloc/alloc_channel.h"),
               "u32 hObjectError; u32 hObjectBuffer; u64 gpFifoOffset; u32 gpFifoEntries; u32 flags; u32 "
               "hContextShare; "
               f"u32 hVASpace; u32 hUserdMemory[8]; u64 userdOffset[8]; {_CHANNEL_END}", 368),
        _table("NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS",
               _open("570.124.04", f"{_SDK}/ctrl/ctrl0000/ctrl0000system.h"),
               "char driverVersionBuffer[256]; char versionBuffer[256]; char driverBranch[256]; char "
               "titleBuffer[256]; "
               "u32 changelistNumber; u32 officialChangelistNumber;", 1032),
        _table("NV2080_CTRL_GPU_GET_ENGINES_V2_PARAMS",
               _open("570.124.04", f"{_SDK}/ctrl/ctrl2080/ctrl2080gpu.h"),
               "u32 engineCount; u32 engineList[84];", 340),
        _table("NV2080_CTRL_FB_GET_INFO_V2_PARAMS", _open("570.124.04", f"{_SDK}/ctrl/ctrl2080/ctrl2080fb.h"),
               "u32 fbInfoListSize; NV2080_CTRL_FB_INFO fbInfoList[57];", 460)),
    "575": (
        _table("NVA06F_CTRL_GPFIFO_SCHEDULE_PARAMS",
               _open("575.64.05", f"{_SDK}/ctrl/ctrla06f/ctrla06fgpfifo.h"),
               "u8 bEnable; u8 bSkipSubmit; u8 bSkipEnable;", 3),
        _table("NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS", _open("575.64.05", f"{_SDK}/ctrl/ctrla06c.h"),
               "u8 bEnable; u8 bSkipSubmit; u8 bSkipEnable;", 3)),
    "580": (
        _table("NVOS46_PARAMETERS", _open("580.65.06", f"{_SDK}/nvos.h"),
               "u32 hClient; u32 hDevice; u32 hDma; u32 hMemory; u64 offset; u64 length; u32 flags; u32 "
               "flags2; "
               "u32 kindOverride; u64 dmaOffset; u32 status;", 64),
        _table("NV_VASPACE_ALLOCATION_PARAMETERS", _open("580.65.06", f"{_SDK}/nvos.h"),
               "u32 index; u32 flags; u64 vaSize; u64 vaStartInternal; u64 vaLimitInternal; u32 "
               "bigPageSize; u64 vaBase; "
               "u32 pasid;", 56),
        _table("NV0000_CTRL_GPU_GET_PROBED_IDS_PARAMS",
               _open("580.65.06", f"{_SDK}/ctrl/ctrl0000/ctrl0000gpu.h"),
               "u32 gpuIds[32]; u32 excludedGpuIds[32]; u32 gpuFlags[32];", 384),
        _table("NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS",
               _open("580.65.06", f"{_SDK}/ctrl/ctrl0080/ctrl0080gpu.h"),
               "u32 numClasses; u32 classList[200];", 804),
        _table("NV2080_CTRL_FB_GET_INFO_V2_PARAMS", _open("580.65.06", f"{_SDK}/ctrl/ctrl2080/ctrl2080fb.h"),
               "u32 fbInfoListSize; NV2080_CTRL_FB_INFO fbInfoList[128];", 1028)),
    "590": (
        _table("UVM_UNREGISTER_CHANNEL_PARAMS", _open("590.48.01", "kernel-open/nvidia-uvm/uvm_ioctl.h"),
               "u32 hClient; u32 hChannel; u32 rmStatus;", 12),
        _table("UVM_FREE_PARAMS", _open("590.48.01", "kernel-open/nvidia-uvm/uvm_ioctl.h"),
               "u64 base; u32 rmStatus;", 16)),
    "595": (
        _table("NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS",
               _open("595.45.04", f"{_SDK}/ctrl/ctrl2080/ctrl2080gpu.h"),
               "u32 gpuNameStringFlags; struct { u8 ascii[64]; } gpuNameString;", 68),),
    "610": (
        _table("NV_CHANNEL_ALLOC_PARAMS", "a cross-read of another project's generated bindings for driver "
                                          "610; unchecked",
               "u32 hObjectError; u32 hObjectBuffer; u64 gpFifoOffset; u32 gpFifoEntries; u32 flags; u32 "
               "hContextShare; "
               f"u32 hVASpace; u32 hHandleVASpace; u32 hUserdMemory[8]; u64 userdOffset[8]; {_CHANNEL_END}",
               376),),
}
SPAN = {"535": "before 550", "550": "550 to 554", "555": "555 to 569", "570": "570 to 574",
        "575": "575 to 579",
        "580": "580 to 589", "590": "590 to 594", "595": "595 to 609", "610": "610 and later"}


def tables_of(version: str) -> tuple[Declared, ...]:
    """All tables that hold for a version newer than the packaged headers, and the types they are written
    in.
    """
    current: dict[str, Declared] = {}
    for since, tables in _CHANGES.items():
        if since == "550" or int(since) > int(version):       # 550's one difference ended with 555
            continue
        current |= {table.names[0]: table for table in tables}
    tables = _CHANGES["550"] if version == "550" else tuple(current.values())
    return (Declared(_TYPES, "", ()), *tables)


# Blackwell's classes, which the packaged headers end before
BLACKWELL = Numbers((
    ("BLACKWELL_USERMODE_A", 0xc761), ("BLACKWELL_CHANNEL_GPFIFO_A", 0xc96f),
    ("BLACKWELL_CHANNEL_GPFIFO_B", 0xca6f),
    ("BLACKWELL_COMPUTE_A", 0xcdc0), ("BLACKWELL_COMPUTE_B", 0xcec0),
    ("BLACKWELL_DMA_COPY_A", 0xc9b5), ("BLACKWELL_DMA_COPY_B", 0xcab5),
), "open-gpu-kernel-modules 595.45.04, src/nvidia/generated/g_allclasses.h")
