"""A compute queue that reads PM4.

On a card with several compute dies such a queue runs on the first one (queue_percentage, bits 15:8).
"""
from tiny.autogen import kfd_6_12 as kfd
from tiny.hcq import io
from tiny.hcq.amd.pm4 import DataSel, IndirectBuffer, IntSel
from tiny.hcq.amd.queues import ComputeQueue
from tiny.hcq.timeline import Timeline

TIMELINE, PROGRESS = 0, 64                                  # byte offsets in the page of signals
INDIRECT_BYTES = 4 * ((1 << 20) - 1)                        # most that one INDIRECT_BUFFER runs
KEPT_FREE = 64                                              # bytes of the ring, for `wake`


class Pm4Queue(ComputeQueue):
    """A submission is an INDIRECT_BUFFER that runs the template's image, then a RELEASE_MEM.

    progress_address: where templates note which of their commands they are at
    """
    kind = kfd.KFD_IOC_QUEUE_TYPE_COMPUTE
    unit = 4
    packets = "pm4"

    def make_timeline(self, name: str, provider: io.Provider) -> Timeline:
        self.progress_address = self._signals + PROGRESS
        self._progress = provider.view(self.progress_address, 4).cast("I")
        self._counter = provider.view(self._signals + TIMELINE, 8).cast("Q")
        self._release = bytearray(self.generation.release.size_bytes)
        return Timeline(name, self._signals + TIMELINE, provider)

    def set_timeline(self, point: int) -> None:
        self._counter[0], self._progress[0] = point, 0

    def room(self) -> int:
        """Judged by the points that have passed: how the processor reports its read pointer, wrapped or not,
        is not documented.
        """
        return self.ring_bytes - KEPT_FREE - (self.position - self.released)

    def prepare(self, template, address: int) -> bytes:
        return b"".join(bytes(IndirectBuffer(address=address + start, size_dwords=size // 4))
                        for start, size in template.parts(INDIRECT_BYTES))

    def pieces(self, template, instance) -> list:
        return [instance.ring]

    def end(self, point: int) -> bytes:
        return self._released(self.timeline.address, point)

    def wake(self) -> bytes:
        """An interrupt that follows what was put so far; none if the ring is full."""
        if self.room() < 0:
            return b""
        event = self.interrupts.event_id
        return self._released(self.interrupts.slot, event, interrupt=IntSel.AFTER_WRITE,
                              interrupt_id=self.generation.interrupt_id(event))

    def _released(self, address: int, value: int, **fields) -> bytes:
        self.generation.release.encode(self._release, 0, address=address, value=value, data_sel=DataSel.U64,
                                       **self.generation.write_back, **fields)
        return bytes(self._release)

    def command_number(self, template, end: int) -> int:
        return self._progress[0]
