"""Vector arithmetic."""

import numpy as np

from tests.emulator.amd.isa.semantics import case

CASES = (
    case("v_add_f32", "f32 = f32 f32", lambda a, b: a + b),
    case("v_add_f16", "f16 = f16 f16", lambda a, b: a + b),
    case("v_fma_f32", "f32 = f32 f32 f32", lambda a, b, c: (a.astype(np.float64) * b + c).astype(np.float32)),
    case("v_cmp_lt_f64", "m = f64 f64", lambda a, b: a < b),
    case("v_cmp_lt_f32", "m = f32 f32", lambda a, b: a < b),
    case("v_cmpx_lt_f32", "exec = f32 f32", lambda a, b: a < b, processors=("gfx1100", "gfx1201")),
    case("v_cmpx_lt_f32", "m exec = f32 f32", lambda a, b: (a < b, a < b), processors=("gfx942",)),
    case("v_cndmask_b32", "u32 = u32 u32 m", lambda a, b, m: np.where(m, b, a)),
)
