"""What goes wrong between us and a device. Each text names the thing, the value and the way out."""


class DeviceError(RuntimeError):
    """Something a device could not do; the base of the errors here."""


class DeviceUnavailable(DeviceError):
    """No such device here: unknown, not built yet, or not present."""


class ForkedError(DeviceError):
    """A device opened before fork() is used in the child."""


class WaitTimeout(DeviceError, TimeoutError):
    """A queue did not get to a point in time. Has `queue`, `command`, `kernel`, `signal` and `wanted`."""

    def __init__(self, text: str, queue: str, command: str, kernel: str | None, signal: int, wanted: int):
        super().__init__(text)
        self.queue, self.command, self.kernel = queue, command, kernel
        self.signal, self.wanted = signal, wanted


class CommandError(DeviceError):
    """A device stopped at a command. Has `queue`, `command` (its text) and `kernel` (None if it is none)."""

    def __init__(self, text: str, queue: str, command: str, kernel: str | None):
        super().__init__(text)
        self.queue, self.command, self.kernel = queue, command, kernel


class KernelFault(CommandError):
    """A kernel in checked mode found something wrong: `code`, never 0, and up to three numbers, `details`."""

    def __init__(self, text: str, queue: str, command: str, kernel: str | None, code: int,
                 details: tuple[int, ...]):
        super().__init__(text, queue, command, kernel)
        self.code, self.details = code, details


class OutOfMemory(DeviceError, MemoryError):
    """A device has no room for a buffer, or MEMORY_LIMIT forbids it."""
