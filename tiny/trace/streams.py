"""Captured command buffers, packet by packet: what `python -m tiny decode` prints.

Each decoder yields `Found` for a packet and `Lost` for bytes that are none. After junk it goes on where
packets follow one another again, so a capture that begins in the middle, or was overwritten in part, still
tells what it can.
"""
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tiny.hcq.amd import aql, pm4, registers, sdma
from tiny.hcq.cpu import packets as cpu
from tiny.hcq.layout import Layout, LayoutError, Packet, Register, RegisterFile, Truncated
from tiny.hcq.nv import methods, push, qmd

PM4_FAMILIES = {9: pm4.Pm4Gfx9, 11: pm4.Pm4, 12: pm4.Pm4}
SDMA_FAMILIES = {9: sdma.SdmaGfx9, 11: sdma.Sdma, 12: sdma.SdmaGfx12}
# SET packets -> where their register window starts (nvd.h, PACKET3_SET_SH_REG_START,
# PACKET3_SET_UCONFIG_REG_START)
WINDOWS = {pm4.SetShReg: 0x2c00, pm4.SetShRegIndex: 0x2c00, pm4.SetUconfigReg: 0xc000}

DISPATCHES = (pm4.DispatchDirect, pm4.DispatchIndirect, pm4.DispatchDirectInterleaved)


@dataclass(frozen=True)
class Found:
    """A packet at byte `at`, `size` bytes long, and the registers or methods that it sets."""
    at: int
    size: int
    packet: Layout
    parts: tuple[Register, ...] = ()


@dataclass(frozen=True)
class Lost:
    """`size` bytes from byte `at` on that are no packet, and why the first of them is none."""
    at: int
    size: int
    reason: str


def walk(family: type[Packet], data: bytes, step: int = 4) -> Iterator[Found | Lost]:
    """The packets of one family; they start at multiples of `step` bytes."""
    offset = 0
    while offset < len(data):
        try:
            packet, size = family.decode_next(data, offset)
        except LayoutError as error:
            start, offset = offset, _resume(family, data, offset + step, step)
            yield Lost(start, offset - start, str(error))
            continue
        yield Found(offset, size, packet)
        offset += size


def _resume(family: type[Packet], data: bytes, offset: int, step: int) -> int:
    """The next offset where a packet stands with another one, or the end of the data, behind it; else the
    end.
    """
    while offset < len(data):
        try:
            _, size = family.decode_next(data, offset)
        except LayoutError:
            offset += step
            continue
        try:
            if offset + size < len(data):
                family.decode_next(data, offset + size)
            return offset
        except Truncated:
            return offset
        except LayoutError:
            offset += step
    return len(data)


def _named(file: RegisterFile, first: int, values: Iterable[int], step: int = 1) -> tuple[Register, ...]:
    """The registers of consecutive places that hold these values; those without a name are left out."""
    found = ((file.at_offset(first + i * step), value) for i, value in enumerate(values))
    return tuple(register.parse(value) for register, value in found if register is not None)


def pm4_stream(data: bytes, gfx: int = 11) -> Iterator[Found | Lost]:
    """PM4 of a graphics generation: 9 (gfx942), 11 or 12."""
    file = registers.FILES[gfx]
    for item in walk(PM4_FAMILIES[gfx], data):
        if isinstance(item, Lost):
            yield item
            continue
        packet, parts = item.packet, ()
        if type(packet) in WINDOWS:
            parts = _named(file, WINDOWS[type(packet)] + packet.register, packet.values)
        elif isinstance(packet, DISPATCHES):
            parts = (file.COMPUTE_DISPATCH_INITIATOR.parse(packet.initiator),)
        yield Found(item.at, item.size, packet, parts)


def sdma_stream(data: bytes, gfx: int = 11) -> Iterator[Found | Lost]:
    """SDMA packets of a graphics generation: 9 (gfx942), 11 or 12."""
    return walk(SDMA_FAMILIES[gfx], data)


def aql_stream(data: bytes, gfx: int = 11) -> Iterator[Found | Lost]:
    """AQL packets: 64 bytes each."""
    return walk(aql.Aql, data, step=64)


def cpu_stream(data: bytes, gfx: int = 0) -> Iterator[Found | Lost]:
    """Commands of the CPU device; they have no generations."""
    return walk(cpu.Command, data)


def push_stream(data: bytes, compute_class: int = 0xcbc0) -> Iterator[Found | Lost]:
    """A push buffer. Until a SET_OBJECT says otherwise, subchannel 1 has the compute class and 4 the copy
    class.
    """
    host = methods.HOST_AMPERE if compute_class < 0xcbc0 else methods.HOST
    bound = {methods.COMPUTE_SUBCHANNEL: methods.COMPUTE,
             methods.COPY_SUBCHANNEL: methods.COPY_AMPERE if compute_class < 0xcbc0 else methods.COPY}
    for item in walk(push.Push, data):
        if isinstance(item, Lost) or isinstance(item.packet, push.Nop | push.EndSegment):
            yield item
            continue
        packet = item.packet
        values = (packet.value,) if isinstance(packet, push.Immediate) else packet.values
        if packet.method == push.SetObject.fixed["method"] and values:
            bound[packet.subchannel] = methods.CLASSES.get(values[0] & push.SetObject.class_number.mask)
        yield Found(item.at, item.size, packet, _methods(packet, values, host, bound.get(packet.subchannel)))


def _methods(packet: push.Push, values: tuple[int, ...], host: RegisterFile,
             file: RegisterFile | None) -> tuple[Register, ...]:
    """The methods that a header and its values call."""
    file = host if packet.method < methods.HOST_END else file
    if file is None:
        return ()
    if isinstance(packet, push.NonIncrementing):
        return _named(file, packet.method, values, 0)
    if isinstance(packet, push.OnceIncrementing):
        return _named(file, packet.method, values[:1]) + _named(file, packet.method + 4, values[1:], 0)
    return _named(file, packet.method, values, 4)


def gpfifo_stream(data: bytes, compute_class: int = 0xcbc0) -> Iterator[Found | Lost]:
    """The entries of a channel's ring, 8 bytes each: those without a length are operations."""
    for at in range(0, len(data) - len(data) % 8, 8):
        entry = push.GpfifoEntry.decode(data, at)
        yield Found(at, 8, entry if entry.length_dwords else push.GpfifoControl.decode(data, at))
    if len(data) % 8:
        at = len(data) - len(data) % 8
        yield Lost(at, len(data) % 8, f"GpfifoEntry at offset {at:#x}: truncated, it has 8 bytes and "
                                      f"{len(data) % 8} are left")


def qmd_stream(data: bytes, compute_class: int = 0xcbc0) -> Iterator[Found | Lost]:
    """QMDs one after another; each says its version itself."""
    at = 0
    while at < len(data):
        kind = next((kind for kind in (qmd.QmdV5, qmd.QmdV4, qmd.QmdV3) if _is_qmd(kind, data, at)), None)
        if kind is None:
            size = min(256, len(data) - at)
            yield Lost(at, size, f"no QMD of version 3.0, 4.0 or 5.0 at offset {at:#x}, or a truncated one")
        else:
            size = kind.size_bytes
            yield Found(at, size, kind.decode(data, at))
        at += size


def _is_qmd(kind: type[Layout], data: bytes, at: int) -> bool:
    if len(data) - at < kind.size_bytes:
        return False
    found = kind.decode(data, at)
    return (found.major, found.minor) == (kind.fixed["major"], kind.fixed["minor"])


# kind on the command line -> (decoder, takes a graphics generation rather than a compute class)
KINDS: dict[str, tuple[Callable[..., Iterator[Found | Lost]], bool]] = {
    "pm4": (pm4_stream, True), "sdma": (sdma_stream, True), "aql": (aql_stream, True),
    "cpu": (cpu_stream, True),
    "nv-push": (push_stream, False), "gpfifo": (gpfifo_stream, False), "qmd": (qmd_stream, False),
}
