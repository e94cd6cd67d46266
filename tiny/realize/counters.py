"""What has been done since the start or the last reset."""
from tiny.hcq import device as devices


class Counters:
    """Counts for the whole process; `reset()` sets all but the memory to zero.

    kernel_count, submission_count  kernels run, and times a device's doorbell rang for them
    compile_time_s                  waiting for the compiler or its cache
    global_ops, global_mem          operations and bytes of kernels that DEBUG=2 timed
    time_sum_s                      their time
    """

    def __init__(self):
        self.reset()

    def reset(self) -> None:
        """Start counting anew; memory in use stays."""
        self.kernel_count = self.submission_count = self.global_ops = self.global_mem = 0
        self.time_sum_s = self.compile_time_s = 0.0

    @property
    def mem_used_per_device(self) -> dict[str, int]:
        """Bytes handed out by each opened device."""
        return {device.name: device.allocator.held for device in devices.opened()}

    @property
    def mem_used(self) -> int:
        """Bytes handed out by all devices."""
        return sum(self.mem_used_per_device.values())


GlobalCounters = Counters()
