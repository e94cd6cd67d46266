"""Memory of a Python object that a card uses in place."""
from tiny.hcq.amd.memory import CardMemory
from tiny.hcq.memory import HostMemory


class PinnedMemory(HostMemory):
    """As HostMemory, with its pages pinned for a card while this lives."""

    def __init__(self, source, memory: CardMemory):
        super().__init__(source)
        self._memory = memory
        self._mapping = memory.pin(self.address, self.size) if self.size else None

    def __del__(self):
        if getattr(self, "_mapping", None) is not None:
            self._memory.free(self._mapping)
        super().__del__()
