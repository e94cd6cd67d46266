"""What the engines cannot do."""


class EmulatorError(RuntimeError):
    """Something the emulator does not know or the hardware would hang on: which engine, packet, address."""
