"""Header sets of Linux: the KFD and amdgpu interfaces of two kernel generations, and the C library's
numbers.
"""
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
_LIBC_FILES = ("fcntl.h", "poll.h", "time.h", "unistd.h", "string.h", "errno.h")
_LIBC_NUMBERS = tuple((LIBC, f"usr/include/x86_64-linux-gnu/{file}", include) for file, include in (
    ("sys/mman.h", "sys/mman.h"), ("sys/ioctl.h", "sys/ioctl.h"), ("sys/eventfd.h", "sys/eventfd.h"),
    ("sys/syscall.h", "sys/syscall.h"), ("bits/eventfd.h", ""), ("bits/mman-linux.h", ""),
    ("bits/mman-map-flags-generic.h", ""),
    ("bits/mman-shared.h", ""), ("bits/fcntl-linux.h", ""), ("bits/poll.h", ""), ("bits/time.h", ""))) + (
    (UAPI_6_12, "usr/include/asm-generic/ioctl.h", "asm-generic/ioctl.h"),
    (UAPI_6_12, "usr/include/linux/futex.h", "linux/futex.h"),
    (UAPI_6_12, "usr/lib/linux/uapi/x86/asm/prctl.h", "asm/prctl.h"),
    (UAPI_6_12, "usr/lib/linux/uapi/x86/asm/unistd_64.h", ""))
_LIBC_FUNCTIONS = (
    "void *mmap(void *address, size_t length, int protection, int flags, int fd, long offset)",
    "int munmap(void *address, size_t length)", "int madvise(void *address, size_t length, int advice)",
    "int mprotect(void *address, size_t length, int protection)",
    "int open(const char *path, int flags, ...)",
    "int close(int fd)", "int ioctl(int fd, unsigned long request, ...)",
    "long syscall(long number, ...)", "int poll(struct pollfd *fds, unsigned long count, int timeout_ms)",
    "int eventfd(unsigned int value, int flags)", "int memfd_create(const char *name, unsigned int flags)",
    "void *memcpy(void *destination, const void *source, size_t length)",
    "void *memset(void *destination, int byte, size_t length)",
    "int mlock(const void *address, size_t length)",
)


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
    HeaderSet("libc", "The C library's memory, file and waiting calls, and their numbers.",
              tuple(Header(LIBC, f"usr/include/{file}", file) for file in _LIBC_FILES)
              + tuple(Header(package, path, include) for package, path, include in _LIBC_NUMBERS),
              (Folder(LIBC, "usr/include"), Folder(LIBC, "usr/include/x86_64-linux-gnu"),
               *_folders(UAPI_6_12)),
              (Constants((r"PROT_(NONE|READ|WRITE|EXEC)", r"MAP_\w+", r"MADV_\w+", r"MFD_\w+",
                          r"O_(RDONLY|WRONLY|RDWR|CLOEXEC|"
                          r"CREAT|EXCL|NONBLOCK|DIRECT|SYNC|DSYNC)", r"EFD_\w+",
                          r"POLL(IN|OUT|PRI|ERR|HUP|NVAL)",
                          r"CLOCK_(REALTIME|MONOTONIC|MONOTONIC_RAW|BOOTTIME)", r"_IOC_\w+",
                          r"ARCH_(REQ|GET)_XCOMP_\w+",
                          r"__NR_(arch_prctl|futex|membarrier|memfd_create|mbind)",
                          r"FUTEX_(WAIT|WAKE|PRIVATE_FLAG)"), unsigned=(r"MAP_HUGE_\w+",)),
               Records(names=("pollfd", "timespec"), functions=_LIBC_FUNCTIONS)),
              preamble="#define _GNU_SOURCE", small=True,
              notes="Call them through `ffi.dlopen(None)`."),
)
