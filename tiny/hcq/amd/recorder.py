"""Records commands for an AMD card as two streams: PM4 for the compute queue, SDMA for the copy queue.

A template's image is an indirect buffer, then the arguments of its kernels, then one dword for each hand-over
between the queues. For a submission the image is copied into memory that both queues see, and the ring of the
compute queue gets a packet that runs it. Addresses inside the image are Slots of its base, which comes last
among the values.
"""
from collections.abc import Sequence
from typing import NamedTuple

from tiny.hcq.amd import pm4, sdma
from tiny.hcq.amd.dispatch import SetRestart, SetScratchBase, SetScratchSize
from tiny.hcq.amd.generation import COPY_BYTES
from tiny.hcq.amd.program import AmdProgram
from tiny.hcq.layout import Field, Packet
from tiny.hcq.queue import WORD, Recorder, Slot, Template

BASE = -1                                                   # number of the image's address until `finish`
KERNARG_ALIGNMENT = 16                                      # LLVM's User Guide for AMDGPU, "Kernarg Segment"
INDIRECT_DWORDS = (1 << 20) - 1                             # most that INDIRECT_BUFFER runs
DWORD = 4


class Command(NamedTuple):
    """What was recorded, for errors: kind, kernel or None, and numbers as they stand in the packets."""
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


class AmdRecorder(Recorder):
    """A queue of an AMD device: commands run one after another, each sees what those before it wrote.

    Where an int is expected, a Slot stands for a value given at submission.
    """

    def __init__(self, device):
        super().__init__(device)
        self.generation = device.generation
        self.commands: list[Command] = []
        self.kept: list[object] = []                        # scratch memory that the packets name
        self._copies = _CopyStream(device)
        self._arguments = bytearray()
        self._argument_slots: list[tuple[int, Slot]] = []   # byte offset of a word, what goes there
        self._handovers = 0
        self._running = False                               # a kernel may still run, caches may be stale
        self._copying = False                               # the copy queue works, the compute queue waits
        self._marked = 0
        # the signal of the submission before does not hold up the processor: wait for its kernels here
        self.emit(pm4.EventWrite)
        self.generation.acquire(self.emit, everything=True)
        self.emit(SetRestart)

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
        self._separate()
        self._mark(Command("kernel", program.name, f"{program.name}, {groups} groups of {program.threads}"))
        if groups == 0 and type(groups) is int:
            return
        if kernel.private_bytes:
            self._use_scratch(kernel)
        launch = self.generation.launch
        self._place(launch, launch.kernarg, code=program.address, rsrc1=program.rsrc1, rsrc2=program.rsrc2,
                    rsrc3=kernel.rsrc3, kernarg=self._put_arguments(arguments), threads_x=program.threads,
                    threads_y=1, threads_z=1, groups_x=groups, groups_y=1, groups_z=1,
                    initiator=program.initiator)
        self._running = True

    def copy(self, destination: int | Slot, source: int | Slot, nbytes: int | Slot) -> None:
        """Copy between addresses that the card can reach, by the copy engine; the ranges must not overlap.

        A Slot for `nbytes` may stand for at most 4 MiB.
        """
        self._to_copies()
        self.commands.append(Command("copy", None, f"of {nbytes} bytes"))
        packet = self.generation.copy
        if type(nbytes) is Slot:
            self._copies.place(packet, packet.source, source=source, destination=destination, nbytes=1)
            self._copies.patch(packet.nbytes, nbytes)
            return
        for done in range(0, nbytes, COPY_BYTES):
            self._copies.place(packet, packet.source, source=_moved(source, done),
                               destination=_moved(destination, done), nbytes=min(nbytes - done, COPY_BYTES))

    def signal(self, address: int | Slot, value: int | Slot) -> None:
        """Store a 64-bit value once everything before has finished."""
        self._to_compute()
        self.commands.append(Command("signal", None, f"of {value} at {_shown(address)}"))
        self._release(address=address, value=value, data_sel=pm4.DataSel.U64)

    def wait(self, address: int | Slot, value: int | Slot) -> None:
        """Hold the queue until the low 32 bits of the word at the address are at least the value."""
        self._to_compute()
        self._mark(Command("wait", None, f"for {value} at {_shown(address)}"))
        self._await(address, value)

    def timestamp(self, address: int | Slot) -> None:
        """Store the card's 64-bit clock, `device.clock_hz` ticks a second, once everything before is done."""
        self._to_compute()
        self.commands.append(Command("timestamp", None, f"at {_shown(address)}"))
        self._release(address=address, data_sel=pm4.DataSel.CLOCK)

    def barrier(self) -> None:
        """Everything before is finished before what follows; always so on this device."""
        self._to_compute()
        self._separate()

    # -- how they are made -----------------------------------------------------------------------------
    def _place(self, packet: type[Packet], field: Field, **values) -> None:
        """Append a packet so that 64-bit `field` is aligned: patching it is then one store."""
        if (len(self.image) + field.offset) % 8:
            self.emit(pm4.Nop)
        self.emit(packet, **values)

    def _release(self, **values) -> None:
        packet = self.generation.release
        self._place(packet, packet.address, **self.generation.write_back, **values)

    def _await(self, address: int | Slot, value: int | Slot) -> None:
        self._place(pm4.WaitRegMem, pm4.WaitRegMem.address, address=address, reference=value)
        self.generation.acquire(self.emit, everything=True)

    def _separate(self) -> None:
        """Wait for the kernels before, and drop what caches of the compute units hold."""
        if self._running:
            self.emit(pm4.EventWrite)
            self.generation.acquire(self.emit, everything=False)
            self._running = False

    def _mark(self, command: Command) -> None:
        """Note where the queue is, for errors; the first command is where a queue is without a note."""
        number = len(self.commands)
        self.commands.append(command)
        if number:
            self._marked = number
            self.emit(pm4.WriteData, address=self.device.progress_address, values=[number])

    def _use_scratch(self, kernel) -> None:
        memory, size_word = self.device.scratch_for(kernel.private_bytes, 32 if kernel.wave32 else 64)
        self.kept.append(memory)
        self.emit(SetScratchBase, scratch=memory.address)
        self.emit(SetScratchSize, tmpring_size=size_word)

    def _put_arguments(self, arguments: Sequence[int | Slot]) -> Slot:
        """The place of a launch's arguments, as an offset of the argument area until `finish`."""
        start = len(self._arguments)
        for number, value in enumerate(arguments):
            if type(value) is Slot:
                self._argument_slots.append((start + 8 * number, value))
                value = 0
            self._arguments += (value & WORD).to_bytes(8, "little")
        self._arguments += bytes(-len(self._arguments) % KERNARG_ALIGNMENT)
        return Slot(BASE, start)

    def _handover(self) -> Slot:
        """A dword that is 0 when the template starts, as an offset of the hand-over area until `finish`."""
        self._handovers += 1
        return Slot(BASE - 1, DWORD * (self._handovers - 1))

    def _to_copies(self) -> None:
        if not self._copying:
            self._copying = True
            place = self._handover()
            self._release(address=place, value=1, data_sel=pm4.DataSel.U32)
            self._running = False
            self._copies.place(sdma.PollRegMem, sdma.PollRegMem.address, address=place, reference=1)

    def _to_compute(self) -> None:
        if self._copying:
            self._copying = False
            place, fence = self._handover(), self.generation.fence
            self._copies.place(fence, fence.address, address=place, value=1)
            self._await(place, 1)

    def finish(self) -> "AmdTemplate":
        self._to_compute()
        if self._marked:
            self._separate()
            self.emit(pm4.WriteData, address=self.device.progress_address, values=[0])
        self.commands_bytes = len(self.image)
        self.image += bytes(-len(self.image) % KERNARG_ALIGNMENT)
        arguments_at = len(self.image)
        self.image += self._arguments
        handovers_at = len(self.image)
        self.image += bytes(-(-self._handovers * DWORD // 8) * 8)
        slots = [slot for stream in (self, self._copies) for _, _, slot in stream._patches]
        slots += [slot for _, slot in self._argument_slots]
        self.values_needed = max([0, *(slot.number + 1 for slot in slots)])
        starts = {BASE: arguments_at, BASE - 1: handovers_at}
        for stream in (self, self._copies):
            stream._patches = [(field, at, self._resolved(slot, starts))
                               for field, at, slot in stream._patches]
        self._tails += [(arguments_at + at, slot) for at, slot in self._argument_slots]
        return AmdTemplate(self, self._copies if self._copies.image else None)

    def _resolved(self, slot: Slot, starts: dict[int, int]) -> Slot:
        if slot.number < 0:
            return Slot(self.values_needed, starts[slot.number] + slot.offset)
        return slot


def _shown(address: int | Slot) -> str:
    return repr(address) if type(address) is Slot else hex(address)


def _moved(address: int | Slot, by: int) -> int | Slot:
    return Slot(address.number, address.offset + by) if type(address) is Slot else address + by


class AmdTemplate(Template):
    """Recorded commands of an AMD device; see Template. Each submission that is in flight has its own copy.

    commands_bytes: of the image, what the compute queue runs; copies: the copy queue's packets, or None
    """

    def __init__(self, recorder: AmdRecorder, copies: Recorder | None):
        super().__init__(recorder)
        self.commands, self.kept = recorder.commands, recorder.kept
        self.commands_bytes = recorder.commands_bytes
        self.values_needed = recorder.values_needed
        if copies is not None:
            copies.image += bytes(-len(copies.image) % 8)   # zeros are NOPs
        self.copies = Template(copies) if copies is not None else None
        self.instances: list[Instance] = []

    @property
    def slot_count(self) -> int:
        return self.values_needed

    def fill_all(self, values: Sequence[int], base: int) -> None:
        """Fill in the values, and addresses for an image at `base`; the caller holds the device's lock."""
        complete = [*values[:self.values_needed], base]
        self.fill(complete[:len(self._values)])
        if self.copies is not None:
            self.copies.fill(complete[:len(self.copies._values)])

    def indirect_parts(self) -> list[tuple[int, int]]:
        """(byte offset, dwords) of the pieces that INDIRECT_BUFFER packets run: whole packets each."""
        ends = [start for start in self.starts[1:] if start < self.commands_bytes] + [self.commands_bytes]
        parts, begin, last = [], 0, 0
        for end in ends:
            if (end - begin) // DWORD > INDIRECT_DWORDS:
                parts.append((begin, (last - begin) // DWORD))
                begin = last
            last = end
        return [*parts, (begin, (last - begin) // DWORD)]

    def __del__(self):
        for instance in getattr(self, "instances", ()):
            self.device.command_memory.give_back(instance.address, instance.block)


class Instance:
    """A copy of a template's image in memory the card sees. point: of the last submission that used it."""
    __slots__ = ("address", "block", "view", "point", "ring")

    def __init__(self, address: int, block: int, view: memoryview, ring: bytes):
        self.address, self.block, self.view, self.ring = address, block, view, ring
        self.point = 0
