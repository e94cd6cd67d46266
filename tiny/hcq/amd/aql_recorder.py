"""Records commands for an AQL queue: kernels as 64-byte packets that all dies of a card share.

What AQL has no packet for, storing a value, waiting for one, the clock, is done by the copy queue.
"""
from tiny.hcq.amd import aql, sdma
from tiny.hcq.amd.aql_queue import SIGNAL_VALUE, signal_bytes
from tiny.hcq.amd.program import AmdProgram
from tiny.hcq.amd.recorder import AmdRecorder, Command, shown
from tiny.hcq.queue import Slot

PENDING = signal_bytes(1)                                   # a hand-over is done when the value is 0
HIGH_DWORD = 4                                              # byte offset in a 64-bit word


class AqlRecorder(AmdRecorder):
    """Packets of a template. Each waits for the one before: its barrier bit is set."""

    def __init__(self, device):
        super().__init__(device)
        self._scope = aql.Scope.SYSTEM                      # of the next packet's acquire

    def _packet(self, packet: type[aql.Aql], **values) -> None:
        # results stay in the caches of the card until something else is to see them
        release = aql.Scope.AGENT if packet is aql.KernelDispatch else aql.Scope.SYSTEM
        self.marks.append(max(len(self.commands) - 1, 0))
        self.emit(packet, barrier=1, acquire=self._scope, release=release, **values)
        self._scope = aql.Scope.AGENT

    def launch(self, program: AmdProgram, command: Command, kernarg: Slot, groups: int | Slot) -> None:
        self.commands.append(command)
        if groups == 0 and type(groups) is int:
            return
        kernel = program.kernel
        if kernel.private_bytes:
            self.kept.append(self.device.scratch_for(kernel.private_bytes, kernel.lanes)[0])
        self._packet(aql.KernelDispatch, dimensions=1, workgroup_x=program.threads,
                     grid_x=self.product(groups, program.threads), kernel_object=program.descriptor,
                     kernarg=kernarg, group_segment_bytes=kernel.local_bytes,
                     private_segment_bytes=kernel.private_bytes)

    def signal(self, address: int | Slot, value: int | Slot) -> None:
        self._to_copies(Command("signal", None, f"of {value} at {shown(address)}"))
        fence = self.generation.fence
        low, high = (value, 0) if type(value) is Slot else (value & 0xffffffff, value >> 32 & 0xffffffff)
        self.copies.place(fence, fence.address, address=address, value=low)
        behind = Slot(address.number, address.offset + HIGH_DWORD) if type(address) is Slot else \
            address + HIGH_DWORD
        self.copies.emit(fence, address=behind, value=high)

    def wait(self, address: int | Slot, value: int | Slot) -> None:
        self._to_copies(Command("wait", None, f"for {value} at {shown(address)}"))
        self.copies.place(sdma.PollRegMem, sdma.PollRegMem.address, address=address, reference=value)

    def timestamp(self, address: int | Slot) -> None:
        self._to_copies(Command("timestamp", None, f"at {shown(address)}"))
        self.copies.emit(sdma.Timestamp, address=address)

    def tell_copies(self) -> None:
        signal = self.handover(PENDING)
        self._packet(aql.BarrierAnd, completion_signal=signal)
        value = Slot(signal.number, signal.offset + SIGNAL_VALUE)
        self.copies.place(sdma.PollRegMem, sdma.PollRegMem.address, address=value, reference=0,
                          function=sdma.Compare.EQUAL)

    def await_copies(self) -> None:
        signal, fence = self.handover(PENDING), self.generation.fence
        value = Slot(signal.number, signal.offset + SIGNAL_VALUE)
        self.copies.place(fence, fence.address, address=value, value=0)
        self._packet(aql.BarrierAnd, signals_0=signal)
        self._scope = aql.Scope.SYSTEM
