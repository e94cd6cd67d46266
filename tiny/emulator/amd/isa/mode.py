"""The MODE register: what of it changes results, and the values it has at the start."""

import functools
from typing import NamedTuple

from tiny.emulator.amd.isa.expression import Value
from tiny.emulator.amd.isa.functions import without_denormals
from tiny.emulator.amd.isa.rounding import NEAREST
from tiny.hcq.layout import Struct, bits


class ModeRegister(Struct, dwords=1):
    """Source: AMD, "RDNA3 ISA", table 13, "MI300 ISA", section 3.8; gfx12 has neither dx10_clamp nor ieee.

    round_*, denormals_*: 32 for f32, 64 for f16 and f64; denormals_*: bit 0 keeps those of operands, bit 1
    those of results
    index   not the hardware's: where a wave's word keeps the index mode of gfx9
    """

    round_32 = bits(0, 0, 2)
    round_64 = bits(0, 2, 2)
    denormals_32 = bits(0, 4, 2)
    denormals_64 = bits(0, 6, 2)
    dx10_clamp = bits(0, 8, 1)
    ieee = bits(0, 9, 1)
    fp16_ovfl = bits(0, 23, 1)
    index = bits(0, 28, 4)


class _Groups(Struct, dwords=1):
    """The fields that one instruction sets together: s_round_mode, s_denorm_mode."""

    rounding = bits(0, 0, 4)
    denormals = bits(0, 4, 4)


ROUNDING, DENORMALS = _Groups.fields["rounding"], _Groups.fields["denormals"]
SETTABLE = 0x8003FF  # what s_setreg may change; other bits are exceptions and debugging
INDEX = ModeRegister.fields["index"]


class Mode(NamedTuple):
    """The part of the MODE register that changes results.

    flush_*    (inputs, outputs) lose denormals       round_*    a number of rounding.py
    clamp_nan  clamping makes NaN 0                   ieee       min and max quiet signalling NaNs
    fp16_ovfl  f16 overflows to the greatest number, not to infinity
    index      gfx9: M0 is added to register numbers: bits 0 ... 2 of the sources, bit 3 of the destination
    """

    flush32: tuple[bool, bool] = (False, False)
    flush16_64: tuple[bool, bool] = (False, False)
    round32: int = NEAREST
    round16_64: int = NEAREST
    clamp_nan: bool = True
    ieee: bool = False
    fp16_ovfl: bool = False
    index: int = 0

    @classmethod
    @functools.cache
    def from_bits(cls, word: int, family: str) -> "Mode":
        """word: a wave's MODE. Asked for with every instruction; a kernel has few."""
        held = ModeRegister.decode(word.to_bytes(4, "little"))
        single, double = held.denormals_32, held.denormals_64
        return cls(
            (not single & 1, not single & 2),
            (not double & 1, not double & 2),
            held.round_32,
            held.round_64,
            family == "gfx12" or bool(held.dx10_clamp),
            family != "gfx12" and bool(held.ieee),
            bool(held.fp16_ovfl),
            held.index,
        )

    def flushed(self, value: Value, output: bool) -> Value:
        """A float without denormals, where the mode says so."""
        wanted = self.flush32 if value.kind == "f32" else self.flush16_64
        return without_denormals(value) if wanted[output] else value

    def rounding(self, kind: str) -> int:
        """In which direction results of a kind are rounded, a number of rounding.py."""
        return self.round32 if kind == "f32" else self.round16_64

    def field(self, name: str, kind: str) -> bool:
        """What a row's function wants to know of the mode; kind: of its result."""
        return self.rounding(kind) == NEAREST if name == "nearest" else getattr(self, name)

    def scales(self, kind: str) -> bool:
        """Whether output modifiers work: not with IEEE, nor where a result may be denormal."""
        return not self.ieee and (self.flush32 if kind == "f32" else self.flush16_64)[1]
