"""Ioctls as text: the request's name and its struct's fields, from the bindings of the kernel's headers.

    AMDKFD_IOC_FREE_MEMORY_OF_GPU {handle=0x3f4400000001}

Known are those of /dev/kfd and of amdgpu's render nodes; others are shown as bytes. Numbers are hexadecimal,
flags and enumerations have the names of the header.
"""
import functools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import NamedTuple

from tiny.autogen import amdgpu_drm_6_12 as drm
from tiny.autogen import kfd_6_12 as kfd

STRUCTS = {"AMDKFD_IOC_AVAILABLE_MEMORY": "struct kfd_ioctl_get_available_memory_args",
           "AMDKFD_IOC_CRIU_OP": "struct kfd_ioctl_criu_args"}
FLAGS = {("ALLOC_MEMORY_OF_GPU", "flags"): "KFD_IOC_ALLOC_MEM_FLAGS_"}
ENUMS = {("CREATE_QUEUE", "queue_type"): "KFD_IOC_QUEUE_TYPE_",
         ("CREATE_EVENT", "event_type"): "KFD_IOC_EVENT_",
         ("WAIT_EVENTS", "wait_result"): "KFD_IOC_WAIT_RESULT_"}
ARRAYS = {  # pointer field -> (its items' type, the field that counts them)
    "device_ids_array_ptr": ("uint32_t", "n_devices"),
    "events_ptr": ("struct kfd_event_data", "num_events"),
    "kfd_process_device_apertures_ptr": ("struct kfd_process_device_apertures", "num_of_nodes"),
}
MOST_ITEMS = 64                                             # of an array
MAGIC_MASK = 0xffff                                         # asm-generic/ioctl.h: number, driver's letter

Read = Callable[[int, int], bytes | None]                   # (address, size) -> the bytes, if any are there


class Request(NamedTuple):
    """A known ioctl. struct: of its argument."""
    name: str
    module: ModuleType
    struct: str

    @property
    def short(self) -> str:
        """The name without the driver's prefix."""
        return self.name.partition("_IOC_")[2] or self.name


@functools.cache
def _requests() -> dict[int, Request]:
    """Number and letter of each known request -> what it is."""
    found = {}
    for name in dir(kfd):
        if name.startswith("AMDKFD_IOC_") and not name.endswith("DEPRECATED"):
            struct = STRUCTS.get(name, f"struct kfd_ioctl_{name.removeprefix('AMDKFD_IOC_').lower()}_args")
            found[getattr(kfd, name) & MAGIC_MASK] = Request(name, kfd, struct)
    tags = {tag: kind for kind, some in zip(("struct", "union"), drm.ffi.list_types()[1:], strict=True)
            for tag in some}
    for name in dir(drm):
        tag = f"drm_amdgpu_{name.removeprefix('DRM_IOCTL_AMDGPU_').lower()}"
        if name.startswith("DRM_IOCTL_AMDGPU_") and tag in tags:
            found[getattr(drm, name) & MAGIC_MASK] = Request(name, drm, f"{tags[tag]} {tag}")
    return found


def request_of(number: int) -> Request | None:
    """The request with that number; the size of its struct, which the number holds too, may be another."""
    return _requests().get(number & MAGIC_MASK)


def fields_of(request: Request, argument: bytes, read: Read) -> dict[str, str]:
    """Field -> its text, in the struct's order, without padding; behind a pointer to an array, its items."""
    ffi = request.module.ffi
    value = ffi.new(f"{request.struct} *")
    data = bytes(argument[:ffi.sizeof(request.struct)])
    ffi.memmove(value, data, len(data))
    found = {}
    for name, inner, kind in _members(value[0], ffi.typeof(request.struct)):
        found[name] = _text(request, name, inner, kind)
        if name in ARRAYS:
            item, counter = ARRAYS[name]
            found[name] += _items(ffi, inner, item, getattr(value, counter), read)
    return found


def _members(value, kind) -> Iterator[tuple[str, object, object]]:
    """(name, value, type) of a struct's members; those of nameless unions too, no padding."""
    for name, member in kind.fields or ():
        if not name:
            yield from _members(value, member.type)
        elif "pad" not in name:
            yield name, getattr(value, name), member.type


def _items(ffi, address: int, kind: str, count: int, read: Read) -> str:
    """The items of an array in memory, those that are not zero by their names."""
    if not address or not 0 < count <= MOST_ITEMS:
        return ""
    size = ffi.sizeof(kind)
    data = read(address, size * count)
    if data is None:
        return ""
    items = ffi.new(f"{kind}[]", count)
    ffi.memmove(items, data, len(data))
    return f":[{', '.join(_plain(item, ffi.typeof(kind)) for item in items)}]"


def _plain(value, kind) -> str:
    if kind.kind in ("struct", "union"):
        inside = ((name, _plain(inner, each)) for name, inner, each in _members(value, kind))
        return "{" + ", ".join(f"{name}={text}" for name, text in inside if text not in ("0x0", "{}")) + "}"
    if kind.kind == "array":
        return f"[{', '.join(_plain(item, kind.item) for item in value)}]"
    return hex(int(value)) if kind.kind == "primitive" else str(value)


def _text(request: Request, name: str, value, kind) -> str:
    key = request.short, name
    if key in FLAGS:
        return _flags(request.module, FLAGS[key], int(value))
    if key in ENUMS:
        names = _names(request.module, ENUMS[key])
        return names.get(int(value), hex(int(value)))
    return _plain(value, kind)


@functools.cache
def _names(module: ModuleType, prefix: str) -> dict[int, str]:
    return {getattr(module, name): name.removeprefix(prefix) for name in sorted(dir(module), reverse=True)
            if name.startswith(prefix)}


def _flags(module: ModuleType, prefix: str, value: int) -> str:
    parts = [name for bit, name in sorted(_names(module, prefix).items()) if bit & value]
    rest = value & ~sum(bit for bit in _names(module, prefix) if bit & value)
    return "|".join([*parts, *([hex(rest)] if rest or not parts else [])])


def call_text(number: int, argument: bytes, read: Read) -> tuple[str, dict[str, str]]:
    """(name, field texts) of a request; an unknown one is its number, and its argument the field `bytes`."""
    request = request_of(number)
    if request is None:
        return hex(number), {"bytes": bytes(argument).hex()}
    return request.name, fields_of(request, argument, read)


def number_of(request: Request, name: str, text: str) -> int:
    """What a field's text stands for: the inverse of `fields_of`, for single numbers."""
    prefix = FLAGS.get((request.short, name)) or ENUMS.get((request.short, name))
    numbers = {} if prefix is None else {text: bit for bit, text in _names(request.module, prefix).items()}
    return sum(numbers[part] if part in numbers else sum(int(each, 0) for each in part.split("+"))
               for part in text.split("|"))
