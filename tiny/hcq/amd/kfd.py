"""/dev/kfd: one method for each ioctl, on the kernel's own structs.

Source: kfd_ioctl.h and kfd_chardev.c, Linux 6.12. The kernel looks at the number of a request and fills a
shorter argument with zeros, so these structs serve older and newer kernels of KFD version 1 alike.
"""
import errno
import os
import time
from collections.abc import Sequence

from tiny.autogen import kfd_6_12 as kfd
from tiny.hcq import io
from tiny.hcq.amd.topology import WAY_ON
from tiny.hcq.errors import DeviceError, DeviceUnavailable

PATH = "/dev/kfd"
AGAIN = (errno.EINTR, errno.EAGAIN)
MOST_TRIES, TRY_SECONDS = 100, 0.001                        # of a call that is interrupted each time
NOT_OWNER = "the file was opened by another process, before a fork"
REASONS = {  # (call or "", errno) -> what it means; kfd_chardev.c
    ("", errno.EBADF): NOT_OWNER,
    ("", errno.ENOTTY): "this kernel does not know the call; it needs amdgpu of Linux 5.10 or newer",
    ("", errno.ENODEV): "the card was removed, or is being reset",
    ("", errno.EIO): "the card is being reset",
    ("", errno.EINTR): f"a signal interrupted it {MOST_TRIES} times",
    ("", errno.EAGAIN): f"the driver was busy {MOST_TRIES} times",
    ("ACQUIRE_VM", errno.EBUSY): "this process has memory on the card through another file already",
    ("ACQUIRE_VM", errno.EINVAL): "the render node does not belong to the card",
    ("ALLOC_MEMORY_OF_GPU", errno.ENOMEM): "no memory of this kind is left; other programs use it too",
    ("ALLOC_MEMORY_OF_GPU", errno.EINVAL): "the size or the kind of memory does not exist on this card",
    ("ALLOC_MEMORY_OF_GPU", errno.EFAULT): "these pages of the host cannot be used by a device",
    ("MAP_MEMORY_TO_GPU", errno.ENOMEM): "no such memory object, or no room for page tables",
    ("UNMAP_MEMORY_FROM_GPU", errno.EBUSY): "a queue still stands on the memory",
    ("FREE_MEMORY_OF_GPU", errno.EBUSY): "the memory is still mapped",
    ("CREATE_QUEUE", errno.EINVAL): "the kernel refused the ring, a pointer page or a buffer of the queue",
    ("CREATE_QUEUE", errno.ENOMEM): "no hardware queue of this kind is left; other programs hold them",
    ("CREATE_QUEUE", errno.EBUSY): "the process has no doorbell left; close other devices",
    ("CREATE_QUEUE", errno.EPERM): "too many queues on this card",
    ("CREATE_EVENT", errno.ENOSPC): "the process has 4096 events already",
}


class KfdError(DeviceError, OSError):
    """An ioctl failed. Has `errno`; the text names the call, the errno, what it means and what was asked."""

    def __init__(self, call: str, number: int, asked: str):
        name = errno.errorcode.get(number, str(number))
        reason = REASONS.get((call, number)) or REASONS.get(("", number)) or os.strerror(number)
        # the next class in line is RuntimeError, which does not set errno
        OSError.__init__(self, number, f"{PATH}: {call} failed with {name}: {reason} ({asked})")

    def __str__(self) -> str:
        return self.strerror


def open_file(provider: io.Provider, path: str) -> int:
    """A device file; DeviceUnavailable that tells a missing file, missing rights and the rest apart."""
    try:
        return provider.open(path)
    except OSError as error:
        if error.errno == errno.ENOENT:
            text = (f"AMD: {path} does not exist though the driver is loaded; in a container, pass it in "
                    f"(docker run --device /dev/kfd --device /dev/dri); {WAY_ON}")
        elif error.errno == errno.EACCES:
            text = (f"AMD: no permission to open {path}; join its group with `sudo usermod -aG render "
                    f"$USER` and log in again; {WAY_ON}")
        elif error.errno == errno.EPERM:
            text = (f"AMD: the kernel forbids {path} to this process: a 32-bit Python, or a container's "
                    f"device rules; {WAY_ON}")
        else:
            text = f"AMD: {path} does not open: {error.strerror}; {WAY_ON}"
        raise DeviceUnavailable(text) from None


class Kfd:
    """The open /dev/kfd of this process; all its cards share it. Every method raises KfdError."""

    def __init__(self, provider: io.Provider):
        self.io, self.pid = provider, os.getpid()
        self.fd = open_file(provider, PATH)
        major, minor = self.version = self.get_version()
        if major != kfd.KFD_IOCTL_MAJOR_VERSION:
            raise DeviceUnavailable(f"AMD: {PATH} speaks version {major}.{minor}, this driver version "
                                    f"{kfd.KFD_IOCTL_MAJOR_VERSION}; {WAY_ON}")

    def _call(self, name: str, **fields):
        """Send AMDKFD_IOC_<name> with these fields; the struct as the kernel left it.

        A call that a signal interrupts is made again, as xf86drm's drmIoctl does. The kernel keeps in the
        struct how far it came (n_success of MAP_MEMORY_TO_GPU), so the same bytes are sent.
        """
        args = kfd.ffi.new(f"struct kfd_ioctl_{_STRUCTS.get(name, name.lower())}_args *", fields)
        data = bytearray(kfd.ffi.buffer(args))
        for left in reversed(range(MOST_TRIES)):
            try:
                self.io.ioctl(self.fd, getattr(kfd, f"AMDKFD_IOC_{name}"), data)
                break
            except OSError as error:
                if error.errno in AGAIN and left and name != "WAIT_EVENTS":
                    time.sleep(TRY_SECONDS)                 # lets Python's signal handlers run, too
                    continue
                asked = ", ".join(f"{key}={value:#x}" for key, value in fields.items()
                                  if isinstance(value, int))
                raise KfdError(name, error.errno or 0, asked) from error
        kfd.ffi.memmove(args, data, len(data))
        return args

    def get_version(self) -> tuple[int, int]:
        args = self._call("GET_VERSION")
        return args.major_version, args.minor_version

    def acquire_vm(self, gpu_id: int, render_fd: int) -> None:
        """Make the render node's address space the one of this process on the card; before any allocation."""
        self._call("ACQUIRE_VM", gpu_id=gpu_id, drm_fd=render_fd)

    def clock_counters(self, gpu_id: int) -> tuple[int, int, int]:
        """(the GPU's counter, CLOCK_MONOTONIC_RAW in ns, CLOCK_BOOTTIME in ns), read together."""
        args = self._call("GET_CLOCK_COUNTERS", gpu_id=gpu_id)
        return args.gpu_clock_counter, args.cpu_clock_counter, args.system_clock_counter

    # -- memory ----------------------------------------------------------------------------------------
    def allocate(self, gpu_id: int, address: int, size: int, flags: int, host: int = 0) -> tuple[int, int]:
        """(handle, mmap offset) of a memory object for GPU address `address`. host: address of USERPTR."""
        args = self._call("ALLOC_MEMORY_OF_GPU", va_addr=address, size=size, gpu_id=gpu_id, flags=flags,
                          mmap_offset=host)
        return args.handle, args.mmap_offset

    def free(self, handle: int) -> None:
        """Give an object back; it must not be mapped any more."""
        self._call("FREE_MEMORY_OF_GPU", handle=handle)

    def map(self, handle: int, gpu_ids: Sequence[int]) -> None:
        """Let cards see an object at its address."""
        ids = kfd.ffi.new("uint32_t[]", list(gpu_ids))
        self._call("MAP_MEMORY_TO_GPU", handle=handle, device_ids_array_ptr=_address(ids),
                   n_devices=len(gpu_ids))

    def unmap(self, handle: int, gpu_ids: Sequence[int]) -> None:
        """Take an object away from cards; it must not be in use."""
        ids = kfd.ffi.new("uint32_t[]", list(gpu_ids))
        self._call("UNMAP_MEMORY_FROM_GPU", handle=handle, device_ids_array_ptr=_address(ids),
                   n_devices=len(gpu_ids))

    def available_memory(self, gpu_id: int) -> int:
        """Bytes of video memory that are left."""
        return self._call("AVAILABLE_MEMORY", gpu_id=gpu_id).available

    # -- queues ----------------------------------------------------------------------------------------
    def create_queue(self, **fields: int) -> tuple[int, int]:
        """(queue id, mmap offset of its doorbell). fields: of struct kfd_ioctl_create_queue_args."""
        args = self._call("CREATE_QUEUE", **fields)
        return args.queue_id, args.doorbell_offset

    def destroy_queue(self, queue_id: int) -> None:
        """Stop a queue, whatever it is doing."""
        self._call("DESTROY_QUEUE", queue_id=queue_id)

    # -- events ----------------------------------------------------------------------------------------
    def create_event(self, kind: int, page_handle: int = 0) -> tuple[int, int]:
        """(event id, slot in the event page). kind: KFD_IOC_EVENT_*; it resets itself when it is waited for.

        page_handle: of the object that becomes the event page; once, with the first event of a process.
        """
        args = self._call("CREATE_EVENT", event_type=kind, auto_reset=1, event_page_offset=page_handle)
        return args.event_id, args.event_slot_index

    def destroy_event(self, event_id: int) -> None:
        self._call("DESTROY_EVENT", event_id=event_id)

    def wait_events(self, event_ids: Sequence[int], timeout_ms: int):
        """Sleep until any of the events; an array of kfd_event_data in that order, None when time is up."""
        table = kfd.ffi.new("struct kfd_event_data[]", [{"event_id": number} for number in event_ids])
        try:
            args = self._call("WAIT_EVENTS", events_ptr=_address(table), num_events=len(event_ids),
                              wait_for_all=0, timeout=timeout_ms)
        except KfdError as error:
            if error.errno == errno.EINTR:                  # a signal; Python's handlers run on return
                return None
            raise
        return table if args.wait_result == kfd.KFD_IOC_WAIT_RESULT_COMPLETE else None


_STRUCTS = {"AVAILABLE_MEMORY": "get_available_memory"}     # where the struct's name is not the call's


def _address(array) -> int:
    return int(kfd.ffi.cast("uintptr_t", array))
