"""Header sets of NVIDIA's kernel driver: resource manager (RM) and unified memory (UVM) structs and numbers.

Debian carries the headers of two driver versions. Newer versions are those headers with the changed structs
replaced by tables of ours, which name their source: the same files of NVIDIA's open-gpu-kernel-modules at
that version's tag.
"""
from tiny.autogen.generator import sets_nv_tables, tables
from tiny.autogen.generator.manifest import Constants, Folder, Header, HeaderSet, Records, Table
from tiny.autogen.generator.packages import Package

_KEEP = ("src/common/sdk/nvidia/inc", "src/common/inc", "kernel-open/nvidia-uvm/*.h",
         "kernel-open/common/inc",
         "src/nvidia/arch/nvalloc/unix/include", "src/nvidia/generated/g_allclasses.h")
V535 = Package("nvidia-open-gpu-kernel-modules", "source", "bookworm", _KEEP, component="contrib")
V555 = Package("nvidia-open-gpu-kernel-modules", "source", "experimental", _KEEP, component="contrib")
_SDK = "src/common/sdk/nvidia/inc"
_UNIX = "src/nvidia/arch/nvalloc/unix/include"

_FILES = (
    (_SDK, ("nvtypes.h", "nvgputypes.h", "nvos.h", "nvstatus.h", "nverror.h", "alloc/alloc_channel.h",
            "class/cl0000.h",
            "class/cl0005.h", "class/cl0041.h", "class/cl0070.h", "class/cl0080.h", "class/cl2080.h",
            "class/cl2080_notification.h",
            "class/cl83de.h", "class/clb0b5sw.h", "class/clc56f.h", "class/clc86f.h", "class/clc361.h",
            "ctrl/ctrl0000/ctrl0000gpu.h", "ctrl/ctrl0000/ctrl0000system.h", "ctrl/ctrl0080/ctrl0080gpu.h",
            "ctrl/ctrl2080/ctrl2080gpu.h", "ctrl/ctrl2080/ctrl2080gr.h", "ctrl/ctrl2080/ctrl2080perf.h",
            "ctrl/ctrl2080/ctrl2080tmr.h", "ctrl/ctrl2080/ctrl2080ce.h", "ctrl/ctrl2080/ctrl2080event.h",
            "ctrl/ctrl2080/ctrl2080fb.h", "ctrl/ctrlc36f.h", "ctrl/ctrla06c.h",
            "ctrl/ctrla06f/ctrla06fgpfifo.h",
            "ctrl/ctrl906f.h", "ctrl/ctrl83de/ctrl83dedebug.h")),
    (_UNIX, ("nv_escape.h", "nv-unix-nvos-params-wrappers.h")),
    ("kernel-open/common/inc", ("nv-ioctl-numbers.h", "nv-ioctl.h")),
    ("kernel-open/nvidia-uvm", ("uvm_types.h", "uvm_ioctl.h", "uvm_linux_ioctl.h")),
)
_STRUCTS = (
    # escapes: the arguments of ioctl itself
    "NVOS00_PARAMETERS", "NVOS02_PARAMETERS", "nv_ioctl_nvos02_parameters_with_fd", "NVOS21_PARAMETERS",
    "NVOS64_PARAMETERS", "NVOS33_PARAMETERS", "nv_ioctl_nvos33_parameters_with_fd", "NVOS34_PARAMETERS",
    "NVOS46_PARAMETERS", "NVOS47_PARAMETERS", "NVOS54_PARAMETERS", "NVOS55_PARAMETERS", "NVOS56_PARAMETERS",
    "NVOS57_PARAMETERS", "NVOS41_PARAMETERS", "nv_ioctl_card_info_t", "nv_ioctl_register_fd_t",
    "nv_ioctl_alloc_os_event_t", "nv_ioctl_free_os_event_t", "nv_ioctl_rm_api_version_t", "nv_ioctl_xfer_t",
    "nv_ioctl_sys_params_t",
    # what an object is allocated with
    "NV0000_ALLOC_PARAMETERS", "NV0005_ALLOC_PARAMETERS", "NV0080_ALLOC_PARAMETERS",
    "NV2080_ALLOC_PARAMETERS",
    "NV83DE_ALLOC_PARAMETERS", "NVB0B5_ALLOCATION_PARAMETERS", "NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS",
    "NV_MEMORY_ALLOCATION_PARAMS", "NV_VASPACE_ALLOCATION_PARAMETERS",
    "NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS",
    "NV_CTXSHARE_ALLOCATION_PARAMETERS", "NV_CHANNEL_ALLOC_PARAMS", "NV_GR_ALLOCATION_PARAMETERS",
    "NV_HOPPER_USERMODE_A_PARAMS",
    # controls
    "NV0000_CTRL_GPU_GET_ATTACHED_IDS_PARAMS", "NV0000_CTRL_GPU_GET_PROBED_IDS_PARAMS",
    "NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS", "NV0000_CTRL_GPU_ATTACH_IDS_PARAMS",
    "NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS", "NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS",
    "NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS", "NV2080_CTRL_GPU_GET_GID_INFO_PARAMS",
    "NV2080_CTRL_GPU_GET_ENGINES_V2_PARAMS", "NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS", "NV2080_CTRL_GR_INFO",
    "NV2080_CTRL_GR_GET_INFO_PARAMS", "NV2080_CTRL_GR_GET_TPC_MASK_PARAMS", "NV2080_CTRL_PERF_BOOST_PARAMS",
    "NV2080_CTRL_TIMER_GET_TIME_PARAMS", "NV2080_CTRL_CE_GET_CAPS_V2_PARAMS", "NV2080_CTRL_FB_INFO",
    "NV2080_CTRL_FB_GET_INFO_V2_PARAMS", "NV2080_CTRL_EVENT_SET_NOTIFICATION_PARAMS",
    "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS", "NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS",
    "NVA06F_CTRL_GPFIFO_SCHEDULE_PARAMS", "NVA06F_CTRL_BIND_PARAMS", "NV906F_CTRL_GET_MMU_FAULT_INFO_PARAMS",
    "NV83DE_CTRL_DEBUG_SET_EXCEPTION_MASK_PARAMS", "NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS",
    "NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS", "NV83DE_CTRL_DEBUG_CLEAR_ALL_SM_ERROR_STATES_PARAMS",
    # memory that the GPU or the driver writes
    "NvNotification", "Nvc56fControl", "Nvc86fControl",
    # UVM
    "UvmGpuMappingAttributes", "UVM_INITIALIZE_PARAMS", "UVM_MM_INITIALIZE_PARAMS", "UVM_REGISTER_GPU_PARAMS",
    "UVM_UNREGISTER_GPU_PARAMS", "UVM_REGISTER_GPU_VASPACE_PARAMS", "UVM_UNREGISTER_GPU_VASPACE_PARAMS",
    "UVM_REGISTER_CHANNEL_PARAMS", "UVM_UNREGISTER_CHANNEL_PARAMS", "UVM_ENABLE_PEER_ACCESS_PARAMS",
    "UVM_DISABLE_PEER_ACCESS_PARAMS", "UVM_MAP_EXTERNAL_ALLOCATION_PARAMS", "UVM_UNMAP_EXTERNAL_PARAMS",
    "UVM_FREE_PARAMS", "UVM_PAGEABLE_MEM_ACCESS_PARAMS", "UVM_ALLOC_SEMAPHORE_POOL_PARAMS",
    "UVM_VALIDATE_VA_RANGE_PARAMS", "UVM_CREATE_EXTERNAL_RANGE_PARAMS", "UVM_MAP_EXTERNAL_SPARSE_PARAMS",
)
_CLASSES = (r"NV01_(ROOT|ROOT_CLIENT|DEVICE_0|MEMORY_SYSTEM|MEMORY_LOCAL_USER|MEMORY_VIRTUAL)",
            r"NV01_(MEMORY_SYSTEM_OS_DESCRIPTOR|EVENT_OS_EVENT)", r"NV20_SUBDEVICE_0",
            r"NV50_MEMORY_VIRTUAL", r"FERMI_VASPACE_A",
            r"KEPLER_CHANNEL_GROUP_A", r"FERMI_CONTEXT_SHARE_A", r"GT200_DEBUGGER",
            r"MAXWELL_PROFILER_DEVICE",
            r"(VOLTA|TURING|AMPERE|HOPPER|ADA)_(USERMODE_A|CHANNEL_GPFIFO_A|COMPUTE_[AB]|DMA_COPY_[AB])")
_NUMBERS = (
    r"NV_ESC_\w+", r"NV_IOCTL_(MAGIC|BASE)", r"NV_RM_API_VERSION_\w+", r"UVM_(DE|MM_)?INITIALIZE",
    r"UVM_(UN)?REGISTER_(GPU|GPU_VASPACE|CHANNEL)", r"UVM_(EN|DIS)ABLE_PEER_ACCESS",
    r"UVM_MAP_EXTERNAL_(ALLOCATION|SPARSE)", r"UVM_UNMAP_EXTERNAL", r"UVM_FREE", r"UVM_PAGEABLE_MEM_ACCESS",
    r"UVM_(ALLOC_SEMAPHORE_POOL|VALIDATE_VA_RANGE|CREATE_EXTERNAL_RANGE|MAX_GPUS_V\d)",
    r"NV0000_CTRL_CMD_(GPU_GET_(ATTACHED_IDS|PROBED_IDS|ID_INFO_V2)|GPU_ATTACH_IDS)",
    r"NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2",
    r"NV0080_CTRL_CMD_GPU_GET_CLASSLIST(_V2)?",
    r"NV2080_CTRL_CMD_GPU_GET_(GID_INFO|ENGINES_V2|NAME_STRING)", r"NV2080_CTRL_CMD_GR_GET_(INFO|TPC_MASK)",
    r"NV2080_CTRL_CMD_(PERF_BOOST|TIMER_GET_TIME|CE_GET_CAPS_V2|FB_GET_INFO_V2|EVENT_SET_NOTIFICATION)",
    r"NV2080_CTRL_GR_INFO_INDEX_(SM_VERSION|MAX_WARPS_PER_SM|LITTER_NUM_(GPCS|TPC_PER_GPC|SM_PER_TPC))",
    r"NV2080_CTRL_EVENT_SET_NOTIFICATION_ACTION_\w+", r"NV2080_NOTIFIERS_RC_ERROR",
    r"NV2080_ENGINE_TYPE_(NULL|GRAPHICS|GR0|COPY\d)", r"NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_\w+",
    r"NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN", r"NVA06C_CTRL_CMD_GPFIFO_SCHEDULE",
    r"NVA06F_CTRL_CMD_(GPFIFO_SCHEDULE|BIND)", r"NV906F_CTRL_CMD_GET_MMU_FAULT_INFO",
    r"NV83DE_CTRL_CMD_DEBUG_(SET_EXCEPTION_MASK|READ_ALL_SM_ERROR_STATES|READ_MMU_FAULT_INFO)",
    r"NV83DE_CTRL_CMD_DEBUG_CLEAR_ALL_SM_ERROR_STATES",
    r"ROBUST_CHANNEL_(GR_EXCEPTION|FIFO_ERROR_MMU_ERR_FLT|PBDMA_ERROR|RESETCHANNEL_VERIF_ERROR)",
    r"ROBUST_CHANNEL_(PREEMPTIVE_REMOVAL|GR_ERROR_SW_NOTIFY|CONTAINED_ERROR|GPU_HAS_FALLEN_OFF_THE_BUS)",
    r"NVC361_(NOTIFY_CHANNEL_PENDING|TIME_[01])",
)
_FLAGS = (r"NVOS02_FLAGS_(PHYSICALITY|LOCATION|COHERENCY|MAPPING)\w*",
          r"NVOS33_FLAGS_(CACHING_TYPE|MAPPING)\w*",
          r"NVOS46_FLAGS_(PAGE_SIZE|CACHE_SNOOP|DMA_OFFSET_FIXED)\w*",
          r"NVOS32_ATTR_(PAGE_SIZE|LOCATION|PHYSICALITY|COHERENCY)\w*",
          r"NVOS32_ATTR2_(ZBC|GPU_CACHEABLE|PAGE_SIZE_HUGE|PROTECTION_USER)\w*")
_ALLOCATE = (r"NVOS32_TYPE_(IMAGE|DMA|NOTIFIER)", r"NVOS32_ALLOC_FLAGS_ALIGNMENT_(HINT|FORCE)",
             r"NVOS32_ALLOC_FLAGS_(IGNORE_BANK_PLACEMENT|FIXED_ADDRESS_ALLOCATE|MEMORY_HANDLE_PROVIDED)",
             r"NVOS32_ALLOC_FLAGS_(MAP_NOT_REQUIRED|PERSISTENT_VIDMEM|VIRTUAL)",
             r"NV_VASPACE_ALLOCATION_FLAGS_(IS_EXTERNALLY_OWNED|ENABLE_PAGE_FAULTING|NONE)",
             r"NV_CTXSHARE_ALLOCATION_(FLAGS_)?SUBCONTEXT_\w+")


def _headers(package: Package) -> tuple[Header, ...]:
    return tuple(Header(package, f"{folder}/{file}", file) for folder, files in _FILES for file in files)


def _folders(package: Package) -> tuple[Folder, ...]:
    return tuple(Folder(package, path) for path in (_SDK, f"{_SDK}/ctrl", "src/common/inc",
                                                    "kernel-open/nvidia-uvm",
                                                    "kernel-open/common/inc", _UNIX))


def _structs(version: str, package: Package, headers: bool) -> HeaderSet:
    """The structs of one version, from its own headers or from the newest packaged ones and our tables."""
    declared = () if headers else sets_nv_tables.tables_of(version)
    notes = "" if headers else ("No package carries this version's headers: the structs in TABLE are tables "
                                "of ours, the others "
                                "are those of nv_555.")
    return HeaderSet(f"nv_{version}",
                     f"RM and UVM structs of NVIDIA's driver, versions {sets_nv_tables.SPAN[version]}.",
                     _headers(package), _folders(package), (*declared, Records(names=_STRUCTS)), notes=notes)


SETS = (
    HeaderSet("nv_rm", "Numbers of NVIDIA's driver: escapes, classes, controls, flags, status codes.",
              (*_headers(V555), Header(V555, "src/nvidia/generated/g_allclasses.h", "g_allclasses.h")),
              (*_folders(V555), Folder(V555, "src/nvidia/generated")),
              (Constants((*_CLASSES, *_NUMBERS, *_ALLOCATE)), sets_nv_tables.BLACKWELL,
               Records(enums=("NV_OK", r"UvmGpu(Mapping|Caching|Format|Compression)Type")),
               Table("FLAGS", tables.bit_ranges, _FLAGS))),
    _structs("535", V535, headers=True),
    _structs("555", V555, headers=True),
    *(_structs(version, V555, headers=False)
      for version in ("550", "570", "575", "580", "590", "595", "610")),
)
