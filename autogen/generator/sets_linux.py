"""Header sets of Linux: the KFD and amdgpu interfaces of two kernel generations, and the C library's
numbers."""
from tiny.autogen.generator.manifest import Constants, Folder, Header, HeaderSet, Records
from tiny.autogen.generator.packages import Package

_UAPI = ("usr/include/linux/*", "usr/include/asm-generic/*", "usr/include/x86_64-linux-gnu/asm/*")
UAPI_6_1 = Package("linux-libc-dev", "deb", "bookworm", _UAPI)
UAPI_6_12 = Package("linux-libc-dev", "deb", "bookworm-backports",
                    (*_UAPI, "usr/include/drm/*", "usr/lib/linux/uapi/x86/*"))
LIBDRM = Package("libdrm-dev", "deb", "bookworm", ("usr/include/libdrm/*",))
LIBC = Package("libc6-dev", "deb", "bookworm", ("usr/include/*",))

_KFD = (
    Constants((r"KFD_IOC.*", r"KFD_(MAX|MIN)_QUEUE.*", r"KFD_SIGNAL_EVENT_LIMIT", r"KFD_HW_EXCEPTION.*",
               r"KFD_MEM_ERR.*",
               r"AMDKFD_IOC_.*", r"HSA_CAP_.*", r"HSA_MEM_.*", r"HSA_CACHE_TYPE_.*", r"HSA_IOLINK_.*"),
              unsigned=(r"KFD_IOC_ALLOC_MEM_FLAGS_.*",)),
    Records(patterns=(r"kfd_.*",), enums=(r"kfd_(ioctl_svm|smi|mmio).*",)),
)
_DRM = (
    Constants((r"DRM_IOCTL_AMDGPU_.*", r"DRM_AMDGPU_.*", r"AMDGPU_GEM_DOMAIN_.*", r"AMDGPU_GEM_CREATE_.*",
               r"AMDGPU_VA_OP_.*",
               r"AMDGPU_VM_.*", r"AMDGPU_HW_IP_.*",
               r"AMDGPU_INFO_(ACCEL_WORKING|HW_IP_INFO|FW_VERSION|DEV_INFO|MEMORY|VRAM_GTT|"
               r"TIMESTAMP|SENSOR.*|READ_MMR_REG)", r"AMDGPU_FAMILY_.*", r"AMDGPU_IDS_FLAGS_.*")),
    Records(names=("drm_amdgpu_info", "drm_amdgpu_info_device", "drm_amdgpu_memory_info",
                   "drm_amdgpu_info_hw_ip",
                   "drm_amdgpu_info_firmware", "drm_amdgpu_gem_create", "drm_amdgpu_gem_mmap",
                   "drm_amdgpu_gem_va",
                   "drm_amdgpu_gem_userptr", "drm_amdgpu_ctx", "drm_version")),
)
_CORE_DRM = Constants((r"DRM_IOCTL_(VERSION|GET_CAP|GEM_CLOSE|PRIME_.*|GET_CLIENT)",))


def _kfd(module: str, uapi: Package, folders: tuple[Folder, ...], notes: str) -> HeaderSet:
    return HeaderSet(module, f"KFD ioctls, structs and topology constants of Linux "
                             f"{module[4:].replace('_', '.')}.",
                     (Header(uapi, "usr/include/linux/kfd_ioctl.h", "linux/kfd_ioctl.h"),
                      Header(uapi, "usr/include/linux/kfd_sysfs.h", "linux/kfd_sysfs.h")),
                     folders, _KFD, small=True, notes=notes)


def _folders(uapi: Package) -> tuple[Folder, ...]:
    return (Folder(uapi, "usr/include"), Folder(uapi, "usr/include/x86_64-linux-gnu"))


SETS = (
    _kfd("kfd_6_1", UAPI_6_1, (*_folders(UAPI_6_1), Folder(LIBDRM, "usr/include/libdrm", "drm")),
         "Debian 12's own kernel headers lack drm/, which kfd_ioctl.h includes: that folder is libdrm's."),
    _kfd("kfd_6_12", UAPI_6_12, _folders(UAPI_6_12), ""),
    HeaderSet("amdgpu_drm_6_1", "amdgpu DRM ioctls and structs as libdrm of Debian 12 has them.",
              (Header(LIBDRM, "usr/include/libdrm/amdgpu_drm.h", "drm/amdgpu_drm.h"),
               Header(LIBDRM, "usr/include/libdrm/drm.h")),
              (*_folders(UAPI_6_1), Folder(LIBDRM, "usr/include/libdrm", "drm")), (*_DRM, _CORE_DRM),
              small=True),
    HeaderSet("amdgpu_drm_6_12", "amdgpu DRM ioctls and structs of Linux 6.12.",
              (Header(UAPI_6_12, "usr/include/drm/amdgpu_drm.h", "drm/amdgpu_drm.h"),
               Header(UAPI_6_12, "usr/include/drm/drm.h")),
              _folders(UAPI_6_12), (*_DRM, _CORE_DRM), small=True),
)
