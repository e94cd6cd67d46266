"""Programs in another process on an emulated card: our own driver, bare system calls, and AMD's own runtime.

The comparisons with AMD's runtime (ROCr) and rocminfo, which know nothing of us, are part of
`make test-oracles`. They take the packages of Debian 12, which knows no gfx11 and is shown a gfx1030, and of
Debian 13; each suite's programs run with its own C library, from a folder.
"""
import fcntl
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tiny import config
from tiny.autogen.generator.packages import Package, Packages
from tiny.emulator.amd.foreign import command
from tiny.emulator.amd.kernel.cards import CARDS, PRESENTED
from tiny.toolchain import find_compiler

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
LIMIT_S = 120
KEPT = ("PATH", "HOME", "XDG_CACHE_HOME")                    # of the environment


def emulated(card, *words, **settings):
    """What a program prints on a machine with this card: (exit code, output, messages)."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    limit = LIMIT_S + int(settings.get("TIMEOUT_MS", 0)) / 1000
    done = subprocess.run([sys.executable, "-W", "error", "-m", "tiny", "emulate", "--cards", card, "--",
                           *map(str, words)], capture_output=True, text=True, timeout=limit, cwd=ROOT,
                          env=environment | {"PYTHONPATH": str(ROOT)} | settings)
    return done.returncode, done.stdout, done.stderr


def printed(card, *words, **settings):
    """The lines that a program prints; it must end well and say nothing else."""
    code, out, messages = emulated(card, *words, **settings)
    assert (code, messages) == (0, ""), out + messages
    return out.splitlines()


def script(text):
    return sys.executable, "-W", "error", "-c", textwrap.dedent(text)


# -- our own driver ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("card", CARDS)
def test_our_driver_finds_a_card_in_another_process_and_computes(card):
    [line] = printed(card, *script("""
        import numpy as np
        from tiny import Device, Tensor
        a = np.arange(4096, dtype=np.float32).reshape(64, 64) % 7
        found = (Tensor(a) @ Tensor(a)).relu().sum(axis=0).numpy()
        print(Device.DEFAULT, Device["AMD"].target.arch, np.array_equal(found, (a @ a).sum(axis=0)))
        """), AMD="1")
    assert line == f"AMD {card} True"


def test_what_a_kernel_does_wrong_reaches_the_program():
    code, out, _ = emulated("gfx1100", *script("""
        from tiny.hcq import device
        from tiny.hcq.errors import DeviceError
        amd = device.open("AMD")
        queue = amd.queue()
        queue.copy(amd.allocate(8).address, 0xdead0000, 8)
        try:
            amd.synchronize(queue.finish().submit())
        except DeviceError as error:
            print(error)
        """))
    assert code == 0 and "0xdead0000" in out


def test_two_processes_do_not_meet():
    lines = printed("gfx1100,gfx1201", *script("""
        import subprocess, sys
        from tiny.hcq import device
        first = device.open("AMD").allocate(4096).initialize(bytes(4096))
        code = "from tiny.hcq import device; d = device.open('AMD:1'); print(d.target.arch);" \\
               "print(d.allocate(4096).initialize(bytes([7]) * 4096).host()[5])"
        print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout, end="")
        print(first.host()[5])
        """))
    assert lines == ["gfx1201", "7", "0"]


# -- bare system calls ---------------------------------------------------------------------------------------
BARE = """
import errno, os, stat
from tiny.autogen import kfd_6_12 as kfd
from tiny.hcq import io
ffi, system = kfd.ffi, io.Provider()
kfd_fd, drm_fd = system.open("/dev/kfd"), system.open("/dev/dri/renderD128")
gpu = int(system.read_text("/sys/class/kfd/kfd/topology/nodes/1/gpu_id"))

def call(name, fd=kfd_fd, **fields):
    args = ffi.new(f"struct kfd_ioctl_{name.lower()}_args *", fields)
    data = bytearray(ffi.buffer(args))
    try:
        system.ioctl(fd, getattr(kfd, f"AMDKFD_IOC_{name}"), data)
    except OSError as error:
        return errno.errorcode[error.errno]
    ffi.memmove(args, bytes(data), len(data))
    return args

def user(address, size):
    return call("ALLOC_MEMORY_OF_GPU", gpu_id=gpu, va_addr=address, mmap_offset=address, size=size,
                flags=kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE)

call("ACQUIRE_VM", drm_fd=drm_fd, gpu_id=gpu)
"""


def bare(text, card="gfx1100"):
    return printed(card, sys.executable, "-W", "error", "-c", BARE + textwrap.dedent(text))


def test_device_files_look_like_devices_and_may_be_duplicated():
    assert bare("""
        for info in (os.stat("/dev/kfd"), os.fstat(drm_fd), os.stat("/dev/dri/renderD128")):
            print(stat.S_ISCHR(info.st_mode), os.minor(info.st_rdev))
        print(os.listdir("/dev/dri"), os.path.realpath("/sys/dev/char/226:128"))
        print(call("GET_VERSION", fd=os.dup(kfd_fd)).minor_version)
        print(call("ACQUIRE_VM", drm_fd=os.dup(drm_fd), gpu_id=gpu).gpu_id == gpu)
        print(call("ACQUIRE_VM", drm_fd=0, gpu_id=gpu))
        print(call("ACQUIRE_VM", drm_fd=os.open("/dev/dri/renderD128", os.O_RDWR), gpu_id=gpu))
        for path in ("/dev/dri/renderD129", "/sys/class/kfd/nothing"):
            try:
                os.open(path, os.O_RDWR)
            except OSError as error:
                print(error.strerror)
        """) == ["True 0", "True 128", "True 128", "['renderD128'] /sys/class/drm/renderD128", "17",
                 "True", "EINVAL", "EBUSY", *["No such file or directory"] * 2]


def test_a_forked_child_is_refused_and_the_parent_goes_on():
    assert bare("""
        child = os.fork()
        if child == 0:
            print(call("GET_VERSION"), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        print(call("GET_VERSION").major_version)
        """) == ["EBADF", "1"]


def test_which_memory_of_its_own_a_program_may_give():
    """Its pages keep their contents, also those given twice; what it cannot write, or has not, is refused."""
    assert bare("""
        import mmap
        page = 4096
        address = system.mmap(8 * page)
        own = system.view(address, 8 * page)
        own[page:page + 3] = b"abc"
        first, again, inner = user(address, 8 * page), user(address, 8 * page), user(address + page, 2 * page)
        print(len({first.handle, again.handle, inner.handle}), bytes(own[page:page + 4]))
        mixed = system.mmap(2 * page)
        system.mmap(page, flags=io.PRIVATE | io.ANONYMOUS | io.FIXED, address=mixed + page)
        print(user(mixed, page).mmap_offset == mixed, user(mixed, 2 * page))
        read_only = system.mmap(page, io.READ)
        print(user(read_only, page), user(0x10000, page), user(system.mmap(page, 0), page))
        file = os.open("/tmp", os.O_TMPFILE | os.O_RDWR)
        os.ftruncate(file, page)
        print(user(system.mmap(page, flags=io.SHARED, fd=file), page))
        for handle in (first.handle, again.handle, inner.handle):
            call("FREE_MEMORY_OF_GPU", handle=handle)
        own[page + 3] = 100
        print(bytes(own[page:page + 4]))
        """) == ["3 b'abc\\x00'", "True EFAULT", "EFAULT EFAULT EFAULT", "EFAULT", "b'abcd'"]


def test_the_server_outlives_clients_that_are_killed():
    lines = printed("gfx1100", *script("""
        import os, signal, subprocess, sys
        code = "import os, signal; from tiny.hcq import device; device.open('AMD').allocate(1 << 20);" \\
               "os.kill(os.getpid(), signal.SIGKILL)"
        for _ in range(3):
            print(subprocess.run([sys.executable, "-c", code]).returncode)
        from tiny.hcq import device
        print(device.open("AMD").target.arch)
        """))
    assert lines == ["-9", "-9", "-9", "gfx1100"]


# -- the command ---------------------------------------------------------------------------------------------
def test_the_command_hands_on_the_exit_code_and_refuses_what_it_does_not_know():
    assert emulated("gfx1100", "sh", "-c", "echo out; exit 3") == (3, "out\n", "")
    assert emulated("gfx1100", "sh", "-c", "kill -9 $$")[0] == 137
    assert emulated("gfx1100", "no-such-program")[0] == 127
    code, _, messages = emulated("gfx999", "true")
    assert code == 2 and "there are gfx1100, gfx1201, gfx942, gfx1030" in messages


def test_the_shim_brings_no_new_names_of_the_c_library(tmp_path):
    """It must load into programs that come with an older one."""
    library = command.build_shim(tmp_path)
    versions = {tuple(map(int, found.split("."))) for found in
                re.findall(r"GLIBC_([\d.]+)", library.read_bytes().decode("latin-1"))}
    assert versions and max(versions) <= (2, 34)


# -- AMD's runtime -------------------------------------------------------------------------------------------
LIBRARIES = ("usr/lib/x86_64-linux-gnu/*",)
OLD_LIBRARIES = ("lib/x86_64-linux-gnu/*",)                  # where some of Debian 12 still are
COMMON = ("libhsa-runtime64-1", "libhsakmt1", "libdrm2", "libdrm-amdgpu1", "libnuma1", "libstdc++6")
NEW = (*COMMON, "libelf1t64", "libc6", "libgcc-s1", "zlib1g", "libzstd1")
HIP = ("libamdhip64-5", "libamd-comgr2", "libllvm17t64", "libz3-4", "libxml2", "libedit2", "libbsd0",
       "libmd0", "libffi8", "libtinfo6", "liblzma5", "librocrand1")
SUITES = {  # suite -> (the card it is shown, {packages: where their libraries are})
    "bookworm": (PRESENTED["gfx1030"], {(*COMMON, "libelf1"): LIBRARIES,
                                        ("libc6", "libgcc-s1", "zlib1g"): OLD_LIBRARIES}),
    "trixie": (CARDS["gfx1100"], {NEW: LIBRARIES}),
    "trixie with HIP": (CARDS["gfx1100"], {(*NEW, *HIP): LIBRARIES}),
}
RANDOM_TESTS = Package("librocrand1-tests", "deb", "trixie", ("usr/libexec/rocm/librocrand1-tests/*",))
HEADERS = Package("libhsa-runtime-dev", "deb", "bookworm", ("usr/include/hsa/*",))


class Suite:
    """A suite's ROCr, rocminfo and C library, unpacked in a folder."""

    def __init__(self, name, folder):
        self.card, listed = SUITES[name]
        name = name.partition(" ")[0]
        packages = [Package(each, "deb", name, keep) for names, keep in listed.items() for each in names]
        programs = Package("rocminfo", "deb", name, ("usr/bin/*",))
        brought = [*packages, programs]
        if HIP[0] in [package.name for package in packages]:
            brought.append(RANDOM_TESTS)
        unpacked = Packages(folder / name).bring(brought)
        self.headers = Packages(folder / "headers").bring([HEADERS])[HEADERS.key].folder
        self.libraries = [unpacked[package.key].folder / package.keep[0].removesuffix("/*")
                          for package in packages]
        self.rocminfo = unpacked[programs.key].folder / "usr/bin/rocminfo"
        if RANDOM_TESTS in brought:
            self.random_tests = next((unpacked[RANDOM_TESTS.key].folder / "usr/libexec/rocm").iterdir())

    def run(self, program, *words, cards="", **settings):
        """The lines that a program of this suite prints on a machine with its card, or with others."""
        loader = next(folder / "ld-linux-x86-64.so.2" for folder in self.libraries
                      if (folder / "ld-linux-x86-64.so.2").exists())
        path = f"PATH={self.rocminfo.parent}:{os.environ['PATH']}"
        return printed(cards or self.card.name, "env", path, loader, "--library-path",
                       ":".join(map(str, self.libraries)), program, *words, **settings)


@pytest.fixture(scope="session", params=["bookworm", "trixie"])
def suite(request):
    """A suite of SUITES. Packages stay in build/ for the next time; delete the folder to get them anew."""
    folder = ROOT / "build" / "oracles" / "rocr"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = Suite(request.param, folder)
        lsmod = found.rocminfo.with_name("lsmod")            # rocminfo starts it; the machine may have none
        lsmod.write_text("#!/bin/sh\nexec cat /proc/modules\n")
        lsmod.chmod(0o755)
    return found


def built(suite, folder, card):
    """foreign_client.c for a suite, and its kernel for a card."""
    settings = config.current()
    compiler = find_compiler(settings.cc)
    client, kernel = folder / "client", folder / "kernel.so"
    runtime = next(path for library in suite.libraries for path in library.glob("libhsa-runtime64.so.1"))
    options = ["-O1", "-Wall", "-Werror", "-isystem", suite.headers / "usr/include"]
    subprocess.run([*compiler.command, *options, "-o", client, HERE / "foreign_client.c", runtime,
                    "-Wl,--allow-shlib-undefined"], check=True)
    if card.runs_code:
        options = ["-std=gnu2x", "--target=amdgcn-amd-amdhsa", f"-mcpu={card.name}", "-nogpulib", "-O3",
                   "-mcode-object-version=5", "-ffp-contract=off"]
        subprocess.run([*compiler.command, *options, "-o", kernel, HERE / "foreign_kernel.c"], check=True)
    return client, kernel


WAITED_AND_COPIED = ["queue of 64 packets", "barriers done", "copies: 0 of 600002 values wrong"]
COMPUTED = ["loaded", "dispatch: 0 of 1000 values wrong"]


@pytest.mark.oracle
def test_rocminfo_lists_the_card(suite):
    lines = suite.run(suite.rocminfo)
    assert lines[-1].startswith("*** Done ***")
    agent = "\n".join(lines[lines.index("Agent 2                  "):])
    card = suite.card

    def told(key):
        return re.search(rf"^ *{re.escape(key)}: *(\S+)", agent, re.MULTILINE)[1]
    assert (told("Name"), told("Device Type")) == (card.name, "GPU")
    assert told("Chip ID").partition("(")[0] == str(card.device_id)
    assert told("Compute Unit") == str(card.compute_units)
    assert told("SIMDs per CU") == str(card.simd_per_cu)
    assert told("Max Clock Freq. (MHz)") == str(card.clock_mhz)
    assert told("Wavefront Size").partition("(")[0] == str(card.wave_size)
    assert told("Size").partition("(")[0] == str(card.vram // 1024)
    assert f"amdgcn-amd-amdhsa--{card.name}" in agent


@pytest.mark.oracle
def test_rocr_waits_copies_and_computes(suite, tmp_path):
    """Barrier packets on a queue once around its ring, copies by SDMA, and where the card runs code: copies
    by the runtime's kernels and a kernel of ours, on memory of the program's own.
    """
    client, kernel = built(suite, tmp_path, suite.card)
    lines = suite.run(client, *[kernel] * suite.card.runs_code)
    assert lines == [f"agent {suite.card.name}", *WAITED_AND_COPIED, *COMPUTED * suite.card.runs_code, "end"]


@pytest.mark.oracle
@pytest.mark.parametrize("suite", ["trixie"], indirect=True)
@pytest.mark.parametrize("cards", ["gfx942", "gfx1100,gfx1100"])
def test_other_cards_with_a_runtime_that_knows_them(suite, tmp_path, cards):
    """Waves of 64 lanes and the older SDMA; two cards that copy from each other."""
    names = cards.split(",")
    client, kernel = built(suite, tmp_path, CARDS[names[0]])
    lines = suite.run(client, kernel, cards=cards)
    peers = ["peers: 0 of 100001 values wrong"] * (len(names) - 1)
    assert lines == [f"agent {names[0]}", *WAITED_AND_COPIED, *COMPUTED, *peers, "end"]


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize("suite", ["trixie with HIP"], indirect=True)
@pytest.mark.parametrize("name", ["kernel_philox4x32_10", "kernel_threefry4x64_20"])
def test_random_numbers_of_a_hip_library(suite, name):
    """rocRAND's own tests of kernels, as Debian built them for gfx1100: machine code that is none of ours."""
    lines = suite.run(suite.random_tests / f"test_rocrand_{name}", TIMEOUT_MS="300000")
    passed = next(line for line in lines if line.startswith("[  PASSED  ]"))
    assert int(passed.split()[3]) >= 18 and not any("FAILED" in line for line in lines)
