"""Why an instruction is not executed; `state.EmulationError` adds kernel, wave, place and disassembly."""


class UnsupportedError(RuntimeError):
    """An instruction, or a form of one, that is decoded but not executed; the text says why."""
