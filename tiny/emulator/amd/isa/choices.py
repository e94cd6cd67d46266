"""What the instruction set documents leave open, and what was chosen: the only such list.

- Approximations. The documents give the accuracy of v_rcp, v_rsq, v_sqrt, v_exp, v_log, v_sin and v_cos, not
  their bits. Here they are computed in double precision and rounded to nearest once, whatever the rounding
  mode, so a card may differ from the emulator by what TOLERANCE says, in units in the last place.
- Those of f32 flush denormals whatever the mode says (FLUSHED).
- Which NaN: an operation that makes a NaN, or has one as an operand, gives a quiet one; its payload is that
  of the host's arithmetic.
- Rounding: the field of MODE.ROUND that belongs to the type of the result. v_fma_mixlo and v_fma_mixhi round
  twice, as f32 and then as f16.
- Output modifiers do nothing with MODE.IEEE or where the mode keeps denormal results. gfx12 has no IEEE.
- Clamping of the results of conversions to integers does nothing: they fit already.
- v_div_fmas scales before it rounds.
- s_memtime and SHADER_CYCLES: a core clock of 1 GHz (clock.py).
- Normalized integers (v_cvt_norm, v_cvt_pk_norm) and v_cvt_pk_u8_f32 are rounded to nearest even; NaN is 0.
- FP16_OVFL: an f16 result that overflows from finite operands is the greatest number of its sign.
- 16-bit floats in scalar registers (s_add_f16, v_s_exp_f16, ...): the upper half of the result is 0.
- v_dot2_f16_f16, v_dot2_bf16_bf16: products and sums in f32, from c and the low halves on, then rounded once
  more; the bf16 form flushes denormals. v_dot4_f32 likewise, the lowest byte first.

Source of some: the comments of goc.h in github.com/bjacob/goc, an emulator of gfx12, which say of flushing,
normalized integers, v_div_fmas, v_cvt_pk_u8_f32, upper halves, the sums of dot products, overflow and NaN of
8-bit floats what its author saw on a Radeon RX 9000. Only that description was read; we have measured none of
it, and for gfx11 and gfx942 it is no more than likely. All else in the list is our choice.
"""

TOLERANCE = {
    "v_rcp_f16": 1,
    "v_rcp_f32": 1,
    "v_rcp_iflag_f32": 1,
    "v_rcp_f64": 1,
    "v_rsq_f16": 1,
    "v_rsq_f32": 1,
    "v_rsq_f64": 1,
    "v_sqrt_f16": 1,
    "v_sqrt_f32": 1,
    "v_sqrt_f64": 1,
    "v_exp_f16": 1,
    "v_exp_f32": 1,
    "v_exp_legacy_f32": 1,
    "v_log_f16": 1,
    "v_log_f32": 1,
    "v_log_legacy_f32": 1,
    "v_sin_f16": 1,
    "v_sin_f32": 1,
    "v_cos_f16": 1,
    "v_cos_f32": 1,
}

_SCALAR = {f"v_s_{name}_{t}": 1 for name in ("rcp", "rsq", "sqrt", "exp", "log") for t in ("f16", "f32")}
TOLERANCE |= _SCALAR
APPROXIMATE = frozenset(TOLERANCE)
FLUSHED = frozenset(name for name in TOLERANCE if name.endswith("f32"))
