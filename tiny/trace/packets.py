"""Commands as a trace shows them: one line for each packet, indirect buffers followed, kernels named."""
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tiny.hcq.amd import aql, pm4, sdma
from tiny.hcq.cpu import packets as cpu
from tiny.hcq.layout import Register
from tiny.hcq.nv import push
from tiny.trace.ioctls import Read
from tiny.trace.streams import DISPATCHES, KINDS, WINDOWS, Found, Lost

# packet that runs another buffer -> the kind of that one
INDIRECT = {pm4.IndirectBuffer: "pm4", sdma.Indirect: "sdma", push.GpfifoEntry: "nv-push"}
MOST_LOST = 64                                              # bytes that are shown of what is no packet
DEEPEST = 4                                                 # buffers in one another
# registers that hold an address in two words: name of the first -> (of both, bits it is shifted by)
HALVES = {"COMPUTE_PGM_LO": ("COMPUTE_PGM", 8),
          "COMPUTE_DISPATCH_SCRATCH_BASE_LO": ("COMPUTE_DISPATCH_SCRATCH_BASE", 8)}
USER_DATA = re.compile(r"COMPUTE_USER_DATA_(\d*[02468])")
ARGUMENT_BYTES = 8                                          # of one argument of a kernel


def named(programs: Iterable) -> dict[int, object]:
    """hcq's programs by the addresses that commands name them by."""
    return {address: program for program in programs for address in program.entries}


@dataclass(slots=True)
class Decoder:
    """Packets of a device's queues as text. read: memory; programs: see `named`."""
    read: Read
    programs: dict[int, object] = field(default_factory=dict)

    def lines(self, kind: str, number: int, data: bytes, at: int = 0) -> Iterator[str]:
        """A line for each packet: its byte offset, inside of which other ones, then the packet.

        kind, number: as KINDS takes them; at: the offset of the first byte.
        """
        yield from self._lines(kind, number, data, at, "", {})

    def _lines(self, kind: str, number: int, data: bytes, at: int, outer: str, state: dict) -> Iterator[str]:
        """state: register words that later packets stand on."""
        for item in KINDS[kind][0](data, number):
            place = f"{outer}{at + item.at:#x}"
            if isinstance(item, Lost):
                shown = data[item.at:item.at + min(item.size, MOST_LOST)].hex()
                yield f"{place} lost {item.size} bytes, {shown}: {item.reason}"
                continue
            yield f"{place} {packet_text(item)}{self._launched(item, state)}"
            inner = INDIRECT.get(type(item.packet))
            if inner is not None and outer.count("/") < DEEPEST:
                yield from self._inside(inner, number, item.packet, f"{place}/", state)

    def _inside(self, kind: str, number: int, packet, outer: str, state: dict) -> Iterator[str]:
        size = 4 * (packet.length_dwords if kind == "nv-push" else packet.size_dwords)
        data = self.read(packet.address, size)
        if data is None:
            yield f"{outer}0x0 lost {size} bytes: they cannot be read at {packet.address:#x}"
        else:
            yield from self._lines(kind, number, data, 0, outer, state)

    def _launched(self, item: Found, state: dict) -> str:
        """The kernel that a packet starts, and its arguments, as far as they are known."""
        packet = item.packet
        if isinstance(packet, cpu.Execute):
            program = self.programs.get(packet.program)
            return "" if program is None else f" kernel={program.name}"
        if isinstance(packet, aql.KernelDispatch):
            return self._kernel(packet.kernel_object, packet.kernarg)
        if type(packet) in WINDOWS:
            state.update(zip((type(part).__name__ for part in item.parts), packet.values, strict=False))
        if not isinstance(packet, DISPATCHES):
            return ""
        code = (state.get("COMPUTE_PGM_HI", 0) << 32 | state.get("COMPUTE_PGM_LO", 0)) << 8
        arguments = state.get("COMPUTE_USER_DATA_1", 0) << 32 | state.get("COMPUTE_USER_DATA_0", 0)
        return self._kernel(code, arguments)

    def _kernel(self, address: int, arguments: int) -> str:
        program = self.programs.get(address)
        if program is None:
            return ""
        data = self.read(arguments, program.argument_bytes) if program.argument_bytes else None
        if data is None:
            return f" kernel={program.name}"
        words = [int.from_bytes(data[start:start + ARGUMENT_BYTES], "little")
                 for start in range(0, len(data), ARGUMENT_BYTES)]
        return f" kernel={program.name} arguments=[{', '.join(map(hex, words))}]"


def packet_text(item: Found) -> str:
    """A packet; one that sets registers as those, where all have names, and addresses in one piece."""
    if not item.parts:
        return str(item.packet)
    if type(item.packet) in WINDOWS and len(item.parts) == len(item.packet.values):
        words = list(zip(item.parts, item.packet.values, strict=True))
        return f"{type(item.packet).__name__}({', '.join(_registers(words))})"
    return f"{item.packet} {', '.join(map(str, item.parts))}"


def _registers(words: list[tuple[Register, int]]) -> Iterator[str]:
    """Each register with its fields; two that hold the halves of an address as that."""
    place = 0
    while place < len(words):
        register, word = words[place]
        name, whole = type(register).__name__, None
        even = USER_DATA.fullmatch(name)
        if name in HALVES:
            whole = HALVES[name]
        elif even:
            whole = f"COMPUTE_USER_DATA_{even[1]}_{int(even[1]) + 1}", 0
        if whole is not None and place + 1 < len(words):
            yield f"{whole[0]}={(words[place + 1][1] << 32 | word) << whole[1]:#x}"
            place += 2
            continue
        exact = int.from_bytes(bytes(register), "little") == word
        yield str(register) if exact else f"{register}={word:#x}"
        place += 1
