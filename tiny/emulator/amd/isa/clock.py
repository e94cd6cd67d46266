"""Time as an emulated card sees it: the host's monotonic clock.

The constant clock of an AMD card runs at 100 MHz; it is what timestamps of packets, s_memrealtime and
s_sendmsg_rtn(MSG_RTN_GET_REALTIME) show. The core clock that s_memtime and SHADER_CYCLES count runs at 1 GHz
here.
"""

import time

REALTIME_HZ = 100_000_000


def realtime() -> int:
    """Ticks of the constant clock."""
    return time.monotonic_ns() // (10**9 // REALTIME_HZ)


def cycles() -> int:
    """Ticks of the core clock."""
    return time.monotonic_ns()
