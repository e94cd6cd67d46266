"""What this machine's processor can do, and how the compiler is told."""
import ctypes
import platform
import re

# names in /proc/cpuinfo that the compiler spells otherwise; names not listed here are left out
_X86 = {name: name for name in ("ssse3", "popcnt", "avx", "avx2", "bmi2", "fma", "f16c", "movbe", "gfni",
                                "avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl", "avx512vbmi",
                                "avx512ifma")}
_X86 |= {"pni": "sse3", "sse4_1": "sse4.1", "sse4_2": "sse4.2", "bmi1": "bmi", "abm": "lzcnt",
         "avx_vnni": "avxvnni", "avx512_vbmi2": "avx512vbmi2", "avx512_vnni": "avx512vnni",
         "avx512_bitalg": "avx512bitalg", "avx512_vpopcntdq": "avx512vpopcntdq", "avx512_bf16": "avx512bf16",
         "avx512_fp16": "avx512fp16", "amx_tile": "amx-tile", "amx_bf16": "amx-bf16", "amx_int8": "amx-int8"}
_AARCH64 = {"asimdhp": "fp16", "asimddp": "dotprod", "bf16": "bf16", "i8mm": "i8mm", "atomics": "lse",
            "sve": "sve", "sve2": "sve2"}
_SYS_ARCH_PRCTL = 158                                       # linux/arch/x86/entry/syscalls/syscall_64.tbl
_ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA = 0x1023, 18      # asm/prctl.h, asm/fpu/types.h

COMMON_FLAGS = (
    "-O2", "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-ffreestanding", "-ffp-contract=off", "-fwrapv",
    "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables", "-fno-ident", "-w", "-fdiagnostics-color=never")


def architecture() -> str:
    """x86_64 or aarch64."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def features(cpuinfo: str, arch: str) -> frozenset[str]:
    """Instruction-set extensions in the compiler's spelling, from the text of /proc/cpuinfo."""
    line = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    names = _X86 if arch == "x86_64" else _AARCH64
    return frozenset(names[word] for word in line.group(1).split() if word in names) if line else frozenset()


def read_cpuinfo() -> str:
    """The entry of the first core; empty where the system has no /proc/cpuinfo."""
    try:
        with open("/proc/cpuinfo", "rb") as file:
            return file.read(8192).decode(errors="replace")
    except OSError:
        return ""


def request_amx() -> bool:
    """Ask the kernel for AMX tiles, before any thread starts; False where it says no."""
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    return syscall(_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA) == 0


def flags(arch: str, features: frozenset[str]) -> tuple[str, ...]:
    """Compiler flags for this machine: features one by one,
    never the word `native`, so they can be a cache key.
    """
    chosen = list(COMMON_FLAGS)
    if arch == "x86_64":
        chosen += ["-m64", "-fcf-protection=none", *(f"-m{name}" for name in sorted(features))]
        if "avx512f" in features:
            chosen.append("-mprefer-vector-width=512")
    elif features:
        chosen.append("-march=armv8-a+" + "+".join(sorted(features)))
    return tuple(chosen)


def vector_bytes(arch: str, features: frozenset[str]) -> int:
    """Width of the widest vector register."""
    if "avx512f" in features:
        return 64
    return 32 if arch == "x86_64" and "avx2" in features else 16


def cache_bytes() -> tuple[int, ...]:
    """Sizes of the data caches of the first core by level,
    the last one shared; () where they are not known.
    """
    sizes = []
    for index in range(8):
        folder = f"/sys/devices/system/cpu/cpu0/cache/index{index}"
        try:
            with open(f"{folder}/type") as kind, open(f"{folder}/size") as size:
                if kind.read().strip() != "Instruction":
                    text = size.read().strip()
                    sizes.append(int(text.rstrip("KM")) << {"K": 10, "M": 20}.get(text[-1], 0))
        except OSError:
            break
    return tuple(sizes)
