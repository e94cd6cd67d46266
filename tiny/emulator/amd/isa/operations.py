"""The whole semantics table: importing this fills `operation.OPERATIONS`."""

from tiny.emulator.amd.isa import (  # noqa: F401
    operations_convert,
    operations_float,
    operations_gfx9,
    operations_gfx12,
    operations_integer,
    operations_memory,
    operations_scalar,
    operations_video,
)
from tiny.emulator.amd.isa.operation import OPERATIONS

__all__ = ["OPERATIONS"]
