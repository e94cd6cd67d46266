"""TRACE: what a run asks of the driver and gives to its queues, as a file."""
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.hcq.amd.conftest import opened
from tiny import Tensor
from tiny.autogen import kfd_6_12 as kfd
from tiny.config import ConfigError, Context
from tiny.emulator.amd.kernel.cards import cards_named
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.hcq import device as devices
from tiny.hcq import events, io
from tiny.trace import command, ioctls, record

KEPT = ("PATH", "HOME", "XDG_CACHE_HOME")
ADD = """
from tiny import Tensor
print((Tensor([1.0, 2, 3]) + Tensor([4.0, 5, 6])).tolist())
"""
MULTIPLIED = ADD.replace("+", "*")


def run(code: str, path: Path, **settings) -> subprocess.CompletedProcess:
    """A process of its own, recorded."""
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    settings = {"AMD": "1", "EMULATE": "gfx1100", "TRACE": str(path), "PYTHONPATH": "."} | settings
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True,
                          timeout=120, env=environment | settings)


def shown(capsys, *arguments) -> str:
    assert command.main(["show", *map(str, arguments)]) == 0
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def added(tmp_path_factory) -> list[Path]:
    """Two runs of the addition, and one of a product."""
    folder = tmp_path_factory.mktemp("runs")
    paths = [folder / name for name in ("first", "second", "product")]
    for path, code in zip(paths, (ADD, ADD, MULTIPLIED), strict=True):
        done = run(code, path)
        assert done.returncode == 0 and done.stderr == ""
    assert done.stdout == "[4.0, 10.0, 18.0]\n"
    return paths


# -- what is written -----------------------------------------------------------------------------------------
def test_an_addition_on_an_emulated_card(added, golden, capsys):
    """All of it but what depends on the compiler: the words that describe the kernel's registers."""
    text = shown(capsys, added[0], "--names", "--kind", "open,close,ioctl,mmap,munmap,packet,doorbell",
                 "--without", "RSRC")
    golden("trace/add.txt", text)


def test_the_header_tells_what_it_was_made_with(added):
    lines = added[0].read_text().splitlines()
    assert lines[0] == "# tiny trace 1"
    assert lines[1].startswith("# tiny 0.") and f"Python {sys.version.split()[0]}" in lines[1]
    assert os.uname().release in lines[2]
    [device] = [line for line in lines if line.startswith("device ")]
    assert device.startswith('device AMD arch=gfx1100 compiler="') and 'detail="emulated 24 GiB"' in device
    assert " gfx_target_version=110000" in device and "unique_id" not in device


def test_the_dispatch_names_the_kernel_and_its_arguments(added):
    text = added[0].read_text()
    [program] = re.findall(r"^program AMD (\w+) address=(0x\w+) size=\w+ code=sha256:\w{16}$", text, re.M)
    assert f"COMPUTE_PGM={program[1]})" in text
    [dispatch] = re.findall(r"DispatchDirect\(.*kernel=(\w+) arguments=\[(.*)\]", text)
    assert dispatch[0] == program[0] and len(dispatch[1].split(", ")) == 3


def test_what_the_emulator_does_is_not_recorded(added):
    """Translated kernels of the emulated card are mapped and made executable; that is not the program's."""
    assert "EXECUTE" not in re.sub(r"ioctl .*", "", added[0].read_text())


def test_the_cpu_device_is_recorded_too(tmp_path):
    done = run(ADD, tmp_path / "run", AMD="0", EMULATE="", CPU="1")
    assert done.stdout == "[5.0, 7.0, 9.0]\n"
    text = (tmp_path / "run").read_text()
    assert re.search(r"^packet CPU compute 0x0 Execute\(program=0x\w+, groups=0x1, arguments=\[0x\w+, 0x\w+, "
                     r"0x\w+\]\) kernel=\w+\npacket CPU compute 0x30 Signal\(address=0x\w+, value=0x1\)\n"
                     r"doorbell CPU compute value=0x48$", text, re.M)
    assert "protection=READ|EXECUTE" in text


def test_two_cards_have_their_own_queues_and_objects(tmp_path, capsys):
    with opened(EmulatedRadeon(cards_named("gfx1100,gfx942")), 2) as (one, two):
        theirs, mine = (each.allocate(64).initialize(bytes([7]) * 64) for each in (two, one))
        one.reach(theirs)
        with record.recording(str(tmp_path / "run")):
            for card, target, source in ((one, mine, theirs), (two, theirs, theirs)):
                queue = card.queue()
                queue.copy(target.address, source.address + (32 if target is source else 0), 32)
                card.synchronize(queue.finish().submit())
    first, second = (shown(capsys, tmp_path / "run", "--device", name) for name in ("AMD", "AMD:1"))
    copy = rf"packet AMD copy 0x\w+ CopyLinear\(nbytes=0x20, source={theirs.address:#x}, " \
           rf"destination={mine.address:#x}\)"
    assert re.search(copy, first) and "IndirectBuffer" in first
    assert "packet AMD:1 compute 0x0 BarrierAnd(" in second and "CopyLinearGfx9(nbytes=0x20" in second
    assert "AMD:1" not in first and "doorbell AMD:1 copy value=" in second
    assert "compute" not in shown(capsys, tmp_path / "run", "--queue", "copy")


def test_failures_are_recorded_with_their_number(tmp_path):
    with opened(EmulatedRadeon(cards_named("gfx1100"))) as card, record.recording(str(tmp_path / "run")):
        with pytest.raises(OSError):
            card.memory.kfd.free(0x77)
        with pytest.raises(OSError):
            card.io.open("/dev/absent")
    lines = (tmp_path / "run").read_text().splitlines()[3:]
    assert lines == [f"ioctl fd={card.memory.kfd.fd} AMDKFD_IOC_FREE_MEMORY_OF_GPU {{handle=0x77}} -> EINVAL",
                     'open "/dev/absent" flags=RDWR -> ENOENT']


def test_a_failure_of_a_queue_is_recorded(tmp_path, capsys):
    cpu = devices.open("CPU")
    flag = cpu.allocate(8).initialize(bytes(8))
    queue = cpu.queue()
    queue.wait(flag.address, 1)
    with Context(TRACE=str(tmp_path / "run"), PROFILE=str(tmp_path / "run.json"), TIMEOUT_MS=100):
        queue.finish().submit()
        cpu.reset()
    assert shown(capsys, tmp_path / "run", "--kind", "failed", "--queue", "compute").splitlines()[3:] == [
        "failed CPU compute CPU: the submission was dropped by reset()"]
    found = json.loads((tmp_path / "run.json").read_text())
    assert [event["name"] for event in found if event["ph"] == "i"] == ["CPU compute failed"]


# -- ioctls against the headers ------------------------------------------------------------------------------
class AllocMemory(ctypes.Structure):
    """struct kfd_ioctl_alloc_memory_of_gpu_args, include/uapi/linux/kfd_ioctl.h of Linux 6.12."""
    _fields_ = [("va_addr", ctypes.c_uint64), ("size", ctypes.c_uint64), ("handle", ctypes.c_uint64),
                ("mmap_offset", ctypes.c_uint64), ("gpu_id", ctypes.c_uint32), ("flags", ctypes.c_uint32)]


class MapMemory(ctypes.Structure):
    """struct kfd_ioctl_map_memory_to_gpu_args, the same."""
    _fields_ = [("handle", ctypes.c_uint64), ("device_ids_array_ptr", ctypes.c_uint64),
                ("n_devices", ctypes.c_uint32), ("n_success", ctypes.c_uint32)]


def nothing(address: int, size: int) -> None:
    return None


def test_fields_flags_and_arrays_have_their_names():
    argument = AllocMemory(0x7f0000000000, 0x2000, 3, 4, 5, 1 << 31 | 1 << 29 | 2 | 1 << 10)
    assert ioctls.call_text(0xC0284B16, bytes(argument), nothing) == ("AMDKFD_IOC_ALLOC_MEMORY_OF_GPU", {
        "va_addr": "0x7f0000000000", "size": "0x2000", "handle": "0x3", "mmap_offset": "0x4", "gpu_id": "0x5",
        "flags": "GTT|PUBLIC|WRITABLE|0x400"})
    ids = (ctypes.c_uint32 * 2)(17, 18)
    argument = MapMemory(1, ctypes.addressof(ids), 2, 0)
    _, fields = ioctls.call_text(0xC0184B18, bytes(argument), ctypes.string_at)
    assert fields["device_ids_array_ptr"] == f"{ctypes.addressof(ids):#x}:[0x11, 0x12]"
    assert ioctls.call_text(0x40045A01, b"\1\2", nothing) == ("0x40045a01", {"bytes": "0102"})


@pytest.mark.parametrize("number, request_", ioctls._requests().items(),
                         ids=lambda value: getattr(value, "name", ""))
def test_every_field_of_every_known_request_is_read_from_its_place(number, request_):
    """Numbers are compared with the bytes at the offset that the header's struct gives them."""
    ffi = request_.module.ffi
    data = np.random.default_rng(number).integers(0, 256, ffi.sizeof(request_.struct), np.uint8).tobytes()
    name, fields = ioctls.call_text(number, data, nothing)
    assert name == request_.name
    compared = 0
    for field, member in ffi.typeof(request_.struct).fields:
        if field in fields and member.type.kind == "primitive" and re.fullmatch("0x[0-9a-f]+", fields[field]):
            place = data[member.offset:member.offset + ffi.sizeof(member.type)]
            signed = member.type.cname.startswith("int")
            assert int(fields[field], 16) == int.from_bytes(place, "little", signed=signed), field
            compared += 1
    assert compared or request_.name == "AMDKFD_IOC_DBG_TRAP" or "union" in request_.struct


def test_an_event_that_came_is_shown():
    events_ = kfd.ffi.new("struct kfd_event_data[2]")
    events_[0].event_id, events_[1].event_id = 3, 4
    events_[1].memory_exception_data.va = 0x1000
    address = int(kfd.ffi.cast("uintptr_t", events_))
    argument = kfd.ffi.new("struct kfd_ioctl_wait_events_args *", dict(events_ptr=address, num_events=2,
                                                                       wait_result=1))
    argument = bytes(kfd.ffi.buffer(argument))
    _, fields = ioctls.call_text(kfd.AMDKFD_IOC_WAIT_EVENTS, argument, ctypes.string_at)
    assert fields["wait_result"] == "TIMEOUT"
    came = "{memory_exception_data={va=0x1000}"
    assert fields["events_ptr"].startswith(f"{address:#x}:[{{event_id=0x3}}, {came}")


# -- when it is on, and when it is off -----------------------------------------------------------------------
def test_a_killed_process_leaves_what_it_did(tmp_path, capsys):
    code = ADD + "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    done = run(code, tmp_path / "run")
    assert done.returncode == -signal.SIGKILL
    assert shown(capsys, tmp_path / "run").endswith("doorbell AMD compute value=0xc\n")
    with open(tmp_path / "run", "a") as file:
        file.write("packet AMD comp")
    assert shown(capsys, tmp_path / "run").endswith("doorbell AMD compute value=0xc\n")


def test_a_context_records_while_it_lasts_also_open_devices(tmp_path):
    (Tensor([1, 2]) + 1).tolist()
    provider = devices.open("CPU").io
    with Context(TRACE=str(tmp_path / "run")):
        assert "ioctl" in vars(provider) and events.listeners
        (Tensor([1, 2]) + 1).tolist()
    text = (tmp_path / "run").read_text()
    assert text.count("doorbell CPU compute") == 1 and "\ndevice CPU arch=" in text
    assert " kernel=map_2_int32" in text                    # which was loaded before
    (Tensor([1, 2]) + 1).tolist()
    assert (tmp_path / "run").read_text() == text
    assert not vars(provider).keys() & set(io.WATCHED) and not events.listeners


def test_a_provider_that_was_taken_out_meanwhile_is_let_go(tmp_path):
    with record.recording(str(tmp_path / "run")):
        with opened(EmulatedRadeon(cards_named("gfx1100"))) as card:
            assert "ioctl" in vars(card.io)
        card.io.munmap(card.io.mmap(4096), 4096)
    text = (tmp_path / "run").read_text()
    assert re.search(r"mmap size=0x1000 .* -> address=(0x\w+)\nmunmap address=\1 size=0x1000\n$", text)
    assert not vars(card.io).keys() & set(io.WATCHED)


def test_a_decorated_function_is_recorded_at_each_call(tmp_path):
    @Context(TRACE=str(tmp_path / "run"))
    def increment(value):
        return (Tensor([value]) + 1).item()
    assert [increment(1), increment(2)] == [2, 3]
    assert (tmp_path / "run").read_text().count("doorbell CPU compute") == 1


def test_a_file_that_cannot_be_written_is_one_error(tmp_path):
    with pytest.raises(ConfigError, match="TRACE=.*/absent/run: the file cannot be written: No such file or "
                                          "directory; give one in a folder that exists and is yours"):
        record.start(str(tmp_path / "absent" / "run"))
    assert not events.listeners
    done = run(ADD, tmp_path / "absent" / "run")
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("tiny.config.ConfigError: TRACE=")


def test_two_processes_that_are_told_the_same_file_write_two(tmp_path):
    path = tmp_path / "run"
    with record.recording(str(path)):
        done = run(ADD, path)
    assert done.stdout == "[5.0, 7.0, 9.0]\n"
    [other] = tmp_path.glob("run.*")
    assert len(path.read_text().splitlines()) == 3 and "doorbell AMD" in other.read_text()


def test_a_full_disk_ends_the_trace_and_not_the_program():
    done = run(ADD, Path("/dev/full"))
    assert done.stdout == "[5.0, 7.0, 9.0]\n"
    assert done.stderr == "tiny: TRACE=/dev/full: No space left on device; the file ends here\n"


def test_a_forked_child_does_not_write_into_the_file(tmp_path):
    path = tmp_path / "run"
    with record.recording(str(path)):
        child = os.fork()
        if child == 0:
            io.installed().munmap(io.installed().mmap(4096), 4096)
            os._exit(0)
        os.waitpid(child, 0)
    assert len(path.read_text().splitlines()) == 3
