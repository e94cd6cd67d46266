"""What has been done since the start or the last reset."""


class GlobalCounters:
    """Counts for the whole process; plain attributes, `reset()` sets all but the memory to zero."""
    kernel_count = 0
    submission_count = 0
    global_ops = 0
    global_mem = 0
    time_sum_s = 0.0
    mem_used = 0
    mem_used_per_device: dict[str, int] = {}

    @classmethod
    def reset(cls) -> None:
        """Start counting anew; memory in use stays."""
        cls.kernel_count = cls.submission_count = cls.global_ops = cls.global_mem = 0
        cls.time_sum_s = 0.0
