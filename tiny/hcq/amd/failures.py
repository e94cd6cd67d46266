"""What went wrong on a card, as errors that name the queue, the command, the kernel and the way out."""
from tiny.hcq.amd.interrupts import Fault
from tiny.hcq.errors import CommandError, DeviceError, WaitTimeout

LONGEST_LIST = 4                                            # kernels of a submission named in an error
DROPPED = "it and the submissions behind it were dropped"


class Failures:
    """Makes the errors of one device."""

    def __init__(self, device):
        self._device = device

    def _place(self) -> tuple[str, str, str | None]:
        """(queue, command, kernel) of what is running now, as far as the queues tell."""
        device = self._device
        template, number = device.in_flight()
        queue = device.compute
        if template is None:
            return f"{device.name} {queue.name}", "none, the queue is empty", None
        if template.copies is not None and device.copies.read_position < device.copies.position:
            queue = device.copies
            copies = [str(command) for command in template.commands if command.kind == "copy"]
            return f"{device.name} {queue.name}", _some(copies), None
        command = template.commands[number] if number < len(template.commands) else None
        text = "none, before the first" if command is None else str(command)
        return f"{device.name} {queue.name}", text, command.kernel if command is not None else None

    def fault(self, fault: Fault) -> CommandError:
        """For what the kernel driver reported."""
        queue, command, kernel = self._place()
        hint = ("; look for an index out of bounds with CHECK=1" if fault.address is not None else
                "; a kernel that ran for too long? see `dmesg`")
        return CommandError(f"{queue}: {fault.text}, at {command}; {DROPPED}{hint}", queue, command, kernel)

    def refused(self, error: DeviceError) -> CommandError:
        """For a driver that does not let us wait."""
        queue, command, kernel = self._place()
        return CommandError(f"{queue}: {error}, at {command}; {DROPPED}", queue, command, kernel)

    def stopped(self, text: str, queue_name: str) -> CommandError:
        """For an emulated engine that cannot go on."""
        _, command, kernel = self._place()
        queue = f"{self._device.name} {queue_name}"
        return CommandError(f"{queue}: {text}, at {command}; {DROPPED}", queue, command, kernel)

    def timeout(self, point: int, limit_ms: int) -> WaitTimeout:
        """For a point that was not reached."""
        device = self._device
        queue, command, kernel = self._place()
        signal = device.timeline.completed
        text = (f"{device.name}: the queues did not reach point {point} in {limit_ms} ms; the signal is "
                f"{signal} and the {queue.rpartition(' ')[2]} queue is at {command} ({device.compute}; "
                f"{device.copies}). Raise TIMEOUT_MS if that is only slow; if it never ends, find its loop "
                "with CHECK=1 and its submission with JIT=2; reset() of the device drops it")
        return WaitTimeout(text, queue, command, kernel, signal, point)

    def lost(self, error: DeviceError, problem: str) -> DeviceError:
        """For a card that did not come back."""
        return DeviceError(f"{self._device.name}: the card could not be brought back ({problem}) and is of "
                           f"no use any more to this process; start it again ({error})")


def _some(texts: list[str]) -> str:
    more = f" and {len(texts) - LONGEST_LIST} more" if len(texts) > LONGEST_LIST else ""
    return ", ".join(texts[:LONGEST_LIST]) + more
