"""Records commands for the CPU device."""
from collections.abc import Sequence

from tiny.hcq.cpu.packets import Barrier, Copy, Execute, Signal, Timestamp, Wait
from tiny.hcq.queue import Program, Recorder, Slot, Template

FEW_COMMANDS = 8                                            # up to here, waking another core does not pay
SMALL_COPY = 1 << 18                                        # bytes that one thread copies faster than two


class CpuRecorder(Recorder):
    """A queue of the CPU device: commands run one after the other, each sees what those before it wrote.

    Where an int is expected, a Slot stands for a value given at submission.
    """
    def __init__(self, device, timeline: int):
        super().__init__(device)
        self._timeline = timeline

    def execute(self, program: Program, arguments: Sequence[int | Slot], groups: int | Slot = 1,
                checked: bool = False) -> None:
        """Run groups 0 ... groups-1 of a program. arguments: addresses and integers, in the kernel's order.

        checked: the kernel reports through `device.fault_address`; stop the queue if it does.
        """
        self.programs.append(program)
        self.urgent = self.urgent or type(groups) is Slot or groups > 1
        self.emit(Execute, checked=checked, program=program.address, groups=groups, arguments=arguments)

    def copy(self, destination: int | Slot, source: int | Slot, nbytes: int | Slot) -> None:
        """Copy between addresses; the ranges must not overlap."""
        self.urgent = self.urgent or type(nbytes) is Slot or nbytes > SMALL_COPY
        self.emit(Copy, destination=destination, source=source, nbytes=nbytes)

    def signal(self, address: int | Slot, value: int | Slot) -> None:
        """Store a 64-bit value once everything before has finished."""
        self.emit(Signal, address=address, value=value)

    def wait(self, address: int | Slot, value: int | Slot) -> None:
        """Hold the queue until the 64-bit word at the address is at least the value."""
        self.urgent = True
        self.emit(Wait, address=address, value=value)

    def timestamp(self, address: int | Slot) -> None:
        """Store the clock in nanoseconds, 64 bits."""
        self.emit(Timestamp, address=address)

    def barrier(self) -> None:
        """Everything before is finished before what follows; always so on this device."""
        self.emit(Barrier)

    def finish(self) -> Template:
        self.urgent = self.urgent or len(self._starts) > FEW_COMMANDS
        self.emit(Signal, address=self._timeline)           # its value is filled in at each submission
        return super().finish()
