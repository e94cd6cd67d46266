"""Records commands for a PM4 compute queue."""
from tiny.hcq.amd import pm4, sdma
from tiny.hcq.amd.dispatch import SetRestart, SetScratchBase, SetScratchSize
from tiny.hcq.amd.program import AmdProgram
from tiny.hcq.amd.recorder import AmdRecorder, Command, shown
from tiny.hcq.layout import Field, Packet
from tiny.hcq.queue import Slot

NOT_YET = bytes(4)                                          # of a hand-over, which is done with 1
INDIRECT_UNIT = 8           # dwords; amdgpu_kms.c, ib_size_alignment of compute: what Mesa pads buffers to


class Pm4Recorder(AmdRecorder):
    """The indirect buffer of a template. Hand-overs are dwords that change from 0 to 1."""

    def __init__(self, device):
        super().__init__(device)
        self._running = False                               # a kernel may still run, caches may be stale
        self._marked = False
        # the signal of the submission before does not hold up the processor: wait for its kernels here
        self.emit(pm4.EventWrite)
        self.generation.acquire(self.emit, everything=True)
        self.emit(SetRestart)

    def launch(self, program: AmdProgram, command: Command, kernarg: Slot, groups: int | Slot) -> None:
        self._separate()
        self._mark(command)
        if groups == 0 and type(groups) is int:
            return
        kernel, packets = program.kernel, self.generation.launch
        if kernel.private_bytes:
            memory, base, size_word = self.device.scratch_for(kernel.private_bytes, kernel.lanes)
            self.kept.append(memory)
            self.emit(SetScratchBase, scratch=base)
            self.emit(SetScratchSize, tmpring_size=size_word)
        self._place(packets, packets.kernarg, code=program.address, rsrc1=program.rsrc1, rsrc2=program.rsrc2,
                    rsrc3=kernel.rsrc3, kernarg=kernarg, threads_x=program.threads, threads_y=1, threads_z=1,
                    groups_x=groups, groups_y=1, groups_z=1, initiator=program.initiator)
        self._running = True

    def signal(self, address: int | Slot, value: int | Slot) -> None:
        self._to_compute()
        self.commands.append(Command("signal", None, f"of {value} at {shown(address)}"))
        self._release(address=address, value=value, data_sel=pm4.DataSel.U64)

    def wait(self, address: int | Slot, value: int | Slot) -> None:
        self._to_compute()
        self._mark(Command("wait", None, f"for {value} at {shown(address)}"))
        self._await(address, value)

    def timestamp(self, address: int | Slot) -> None:
        self._to_compute()
        self.commands.append(Command("timestamp", None, f"at {shown(address)}"))
        self._release(address=address, data_sel=pm4.DataSel.CLOCK)

    def barrier(self) -> None:
        super().barrier()
        self._separate()

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
            self._marked = True
            self.emit(pm4.WriteData, address=self.device.compute.progress_address, values=[number])

    def tell_copies(self) -> None:
        place = self.handover(NOT_YET)
        self._release(address=place, value=1, data_sel=pm4.DataSel.U32)
        self._running = False
        self.copies.place(sdma.PollRegMem, sdma.PollRegMem.address, address=place, reference=1)

    def await_copies(self) -> None:
        place, fence = self.handover(NOT_YET), self.generation.fence
        self.copies.place(fence, fence.address, address=place, value=1)
        self._await(place, 1)

    def finish(self):
        self._to_compute()
        if self._marked:
            self._separate()
            self.emit(pm4.WriteData, address=self.device.compute.progress_address, values=[0])
        missing = -len(self.image) // 4 % INDIRECT_UNIT
        if missing:
            self.emit(pm4.Nop, payload=[0] * (missing - 1))
        return super().finish()
