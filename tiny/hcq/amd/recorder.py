"""Records commands for an AMD card as two streams: for the compute queue, and SDMA for the copy queue.

A template's image is the compute queue's commands, then the arguments of its kernels, then a place for each
hand-over between the queues. For a submission the image is copied into memory that both queues see. Addresses
inside the image are Slots of its base, which comes behind the values that `submit` is given.

`pm4_recorder` and `aql_recorder` record the commands of the two kinds of compute queue.
"""
import abc
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tiny.hcq.amd import sdma
from tiny.hcq.amd.program import AmdProgram
from tiny.hcq.layout import Field, Packet
from tiny.hcq.queue import WORD, Recorder, Slot, Template

# numbers of Slots until `finish`: addresses in the image's argument and hand-over areas, products of values
ARGUMENTS, HANDOVERS, PRODUCTS = -1, -2, -3
AREA_ALIGNMENT = 64
KERNARG_ALIGNMENT = 16                                      # LLVM's User Guide for AMDGPU, "Kernarg Segment"


class Command(NamedTuple):
    """What was recorded, for errors. kernel: its name, or None."""
    kind: str
    kernel: str | None
    text: str

    def __str__(self) -> str:
        return f"{self.kind} {self.text}"


class _CopyStream(Recorder):
    """The packets of the copy queue."""

    def place(self, packet: type[Packet], field: Field, **values) -> None:
        """Append a packet so that 64-bit `field` is aligned: patching it is then one store."""
        if (len(self.image) + field.offset) % 8:
            self.emit(sdma.Nop)
        self.emit(packet, **values)


class AmdRecorder(Recorder, abc.ABC):
    """A queue of an AMD device: commands run one after another, each sees what those before it wrote.

    Where an int is expected, a Slot stands for a value given at submission. A subclass for each kind of
    compute queue gives the abstract methods.
    """
    def __init__(self, device):
        super().__init__(device)
        self.generation = device.generation
        self.commands: list[Command] = []
        self.marks: list[int] = []                          # number of the command of each AQL packet
        self.kept: list[object] = []                        # scratch memory that the packets name
        self.products: list[tuple[Slot, int]] = []          # values times a factor, computed at submission
        self.copies = _CopyStream(device)
        self._arguments = bytearray()
        self._argument_slots: list[tuple[int, Slot]] = []   # byte offset of a word, what goes there
        self._handovers = bytearray()
        self._copying = False                               # the copy queue works, the compute queue waits

    # -- commands --------------------------------------------------------------------------------------
    def execute(self, program: AmdProgram, arguments: Sequence[int | Slot], groups: int | Slot = 1) -> None:
        """Run workgroups 0 ... groups-1 along x. arguments: addresses and integers, 8 bytes each, in order.

        ValueError if there are more or fewer of them than the kernel takes.
        """
        kernel = program.kernel
        if kernel.kernarg_bytes != 8 * len(arguments):
            raise ValueError(f"kernel {program.name} takes {kernel.kernarg_bytes} bytes of arguments, "
                             f"{len(arguments)} of 8 bytes were given")
        self.programs.append(program)
        self._to_compute()
        command = Command("kernel", program.name, f"{program.name}, {groups} groups of {program.threads}")
        self.launch(program, command, self._put_arguments(arguments), groups)

    def copy(self, destination: int | Slot, source: int | Slot, nbytes: int | Slot) -> None:
        """Copy between addresses that the card can reach, by the copy engine; the ranges must not overlap.

        A Slot for `nbytes` may stand for at most 4 MiB.
        """
        self._to_copies(Command("copy", None, f"of {nbytes} bytes"))
        packet, most = self.generation.copy, self.generation.copy_bytes
        if type(nbytes) is Slot:
            self.copies.place(packet, packet.source, source=source, destination=destination, nbytes=1)
            self.copies.patch(packet.nbytes, nbytes)
            return
        for done in range(0, nbytes, most):
            self.copies.place(packet, packet.source, source=_moved(source, done),
                              destination=_moved(destination, done), nbytes=min(nbytes - done, most))

    @abc.abstractmethod
    def signal(self, address: int | Slot, value: int | Slot) -> None:
        """Store a 64-bit value once everything before has finished."""

    @abc.abstractmethod
    def wait(self, address: int | Slot, value: int | Slot) -> None:
        """Hold the queue until the low 32 bits of the word at the address are at least the value."""

    @abc.abstractmethod
    def timestamp(self, address: int | Slot) -> None:
        """Store the card's 64-bit clock, `device.clock_hz` ticks a second, once everything before is done."""

    def barrier(self) -> None:
        """Everything before is finished before what follows; always so on this device."""
        self._to_compute()

    # -- what kinds of compute queue do differently ----------------------------------------------------
    @abc.abstractmethod
    def launch(self, program: AmdProgram, command: Command, kernarg: Slot, groups: int | Slot) -> None:
        """Record a kernel on the compute queue, behind everything before it."""

    @abc.abstractmethod
    def tell_copies(self) -> None:
        """Let the copy queue wait for everything the compute queue was given so far."""

    @abc.abstractmethod
    def await_copies(self) -> None:
        """Let the compute queue wait for everything the copy queue was given so far."""

    # -- how they are made -----------------------------------------------------------------------------
    def _put_arguments(self, arguments: Sequence[int | Slot]) -> Slot:
        """The place of a launch's arguments."""
        start = len(self._arguments)
        for number, value in enumerate(arguments):
            if type(value) is Slot:
                self._argument_slots.append((start + 8 * number, value))
                value = 0
            self._arguments += (value & WORD).to_bytes(8, "little")
        self._arguments += bytes(-len(self._arguments) % KERNARG_ALIGNMENT)
        return Slot(ARGUMENTS, start)

    def handover(self, initial: bytes) -> Slot:
        """A new place, with these bytes in it whenever the template starts."""
        self._handovers += initial
        return Slot(HANDOVERS, len(self._handovers) - len(initial))

    def product(self, value: int | Slot, factor: int) -> int | Slot:
        """A value times a factor."""
        if type(value) is not Slot:
            return value * factor
        if (value, factor) not in self.products:
            self.products.append((value, factor))
        return Slot(PRODUCTS - self.products.index((value, factor)))

    def _to_copies(self, command: Command) -> None:
        if not self._copying:
            self._copying = True
            self.tell_copies()
        self.commands.append(command)

    def _to_compute(self) -> None:
        if self._copying:
            self._copying = False
            self.await_copies()

    def finish(self) -> "AmdTemplate":
        self._to_compute()
        self.commands_bytes = len(self.image)
        self.image += bytes(-len(self.image) % AREA_ALIGNMENT)
        starts = {ARGUMENTS: len(self.image)}
        self._tails += [(len(self.image) + at, slot) for at, slot in self._argument_slots]
        self.image += self._arguments
        self.image += bytes(-len(self.image) % AREA_ALIGNMENT)
        starts[HANDOVERS] = len(self.image)
        self.image += self._handovers
        self.image += bytes(-len(self.image) % 8)
        self._number_slots(starts)
        return AmdTemplate(self, self.copies if self.copies.image else None)

    def _number_slots(self, starts: dict[int, int]) -> None:
        """Turn the numbers of addresses and products into those of values: behind what `submit` is given."""
        patches = [patch for stream in (self, self.copies) for patch in stream._patches]
        slots = [slot for _, _, slot in patches] + [slot for _, slot in self._argument_slots]
        slots += [slot for slot, _ in self.products]
        base = self.values_needed = max([0, *(slot.number + 1 for slot in slots)])

        def numbered(slot: Slot) -> Slot:
            if slot.number >= 0:
                return slot
            if slot.number > PRODUCTS:
                return Slot(base, starts[slot.number] + slot.offset)
            return Slot(base + 1 + PRODUCTS - slot.number, slot.offset)
        for stream in (self, self.copies):
            stream._patches = [(field, at, numbered(slot)) for field, at, slot in stream._patches]


def shown(address: int | Slot) -> str:
    """An address in errors."""
    return repr(address) if type(address) is Slot else hex(address)


def _moved(address: int | Slot, by: int) -> int | Slot:
    return Slot(address.number, address.offset + by) if type(address) is Slot else address + by


class AmdTemplate(Template):
    """Recorded commands of an AMD device; see Template. Each submission that is in flight has its own copy.

    commands_bytes: of the image, what the compute queue runs; copies: the copy queue's packets, or None
    """

    def __init__(self, recorder: AmdRecorder, copies: Recorder | None):
        super().__init__(recorder)
        self.commands, self.kept, self._products = recorder.commands, recorder.kept, recorder.products
        self.marks, self.commands_bytes = recorder.marks, recorder.commands_bytes
        self.values_needed = recorder.values_needed
        if copies is not None:
            copies.image += bytes(-len(copies.image) % 8)   # zeros are NOPs
        self.copies = Template(copies) if copies is not None else None
        self.instances: list[Instance] = []

    @property
    def slot_count(self) -> int:
        return self.values_needed

    def packets(self) -> Iterator[Packet]:
        """The compute queue's, then the copy queue's."""
        generation = self.device.generation
        yield from generation.packets.stream(memoryview(self.image)[:self.commands_bytes])
        if self.copies is not None:
            yield from generation.copy_packets.stream(self.copies.image)

    def streams(self) -> Iterator[tuple[str, str, int, bytes]]:
        compute, copies, gfx = self.device.compute, self.device.copies, self.device.generation.gfx
        yield compute.name, compute.packets, gfx, bytes(self.image[:self.commands_bytes])
        if self.copies is not None:
            yield copies.name, copies.packets, gfx, bytes(self.copies.image)

    def fill_all(self, values: Sequence[int], base: int) -> None:
        """Fill in the values, and addresses for an image at `base`; the caller holds the device's lock."""
        complete = [*values[:self.values_needed], base]
        if self._products:
            complete += [(values[slot.number] + slot.offset) * factor for slot, factor in self._products]
        self.fill(complete[:len(self._values)])
        if self.copies is not None:
            self.copies.fill(complete[:len(self.copies._values)])

    def parts(self, most: int) -> list[tuple[int, int]]:
        """(byte offset, bytes) of pieces of the commands, at most that long, of whole packets each."""
        ends = [start for start in self.starts[1:] if start < self.commands_bytes] + [self.commands_bytes]
        found, begin, last = [], 0, 0
        for end in ends:
            if end - begin > most:
                found.append((begin, last - begin))
                begin = last
            last = end
        return [*found, (begin, last - begin)]

    def __del__(self):
        for instance in getattr(self, "instances", ()):
            self.device.command_memory.give_back(instance.address, instance.block)


class Instance:
    """A copy of a template's image in memory the card sees. point: of the last submission that used it.

    ring: what the compute queue prepared for this copy.
    """
    __slots__ = ("address", "block", "view", "point", "ring")

    def __init__(self, address: int, block: int, view: memoryview, ring: bytes):
        self.address, self.block, self.view, self.ring = address, block, view, ring
        self.point = 0
