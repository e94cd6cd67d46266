"""Cases of branches, jumps, waits and barriers: where control goes shows in a scalar register.

The operand stands in s8 or s[8:9], the result in s20. A case's own line is a comment; what it shows follows.
"""

import numpy as np

from tests.emulator.amd.isa.semantics import case

GFX11, GFX12, GFX9 = ("gfx1100",), ("gfx1201",), ("gfx942",)
RDNA, ALL = GFX11 + GFX12, GFX11 + GFX12 + GFX9
FLOW_CASES = []


def add(name, signature, expected, text, processors=ALL):
    more = {"spelling": "s_nop 0 //", "after": f"\n{text}", "processors": processors}
    FLOW_CASES.append(case(name, signature, expected, **more))


def low_of(mask, lanes):
    """EXEC and VCC as a wave of that size sees them."""
    return mask & np.uint64((1 << lanes) - 1)


# -- index mode: M0 is added to the numbers of registers -----------------------------------------------------
INDEXED = """v_mov_b32 v30, s8
v_mov_b32 v33, s9
s_mov_b32 s21, 3
s_set_gpr_idx_on s21, gpr_idx(SRC0)
v_mov_b32 v31, v30
s_set_gpr_idx_off
v_add_u32 v31, v31, v30
v_readfirstlane_b32 s20, v31"""
for name in ("s_set_gpr_idx_on", "s_set_gpr_idx_off"):
    add(name, "u32 = u64", lambda x: x + (x >> np.uint64(32)), INDEXED, GFX9)

# -- branches: 7 where control did not skip ------------------------------------------------------------------
SKIP = "s_mov_b32 s20, s8\n{before}\n{name} over_{name}\ns_mov_b32 s20, 7\nover_{name}:\n{behind}"
for name, when in (("s_cbranch_scc0", False), ("s_cbranch_scc1", True)):
    text = SKIP.format(name=name, before="", behind="")
    add(name, "u32 = u32 scc", lambda a, c, when=when: np.where(c == when, a, 7), text)
for register, zero, nonzero in (("vcc", "vccz", "vccnz"), ("exec", "execz", "execnz")):
    for name, when in ((f"s_cbranch_{zero}", True), (f"s_cbranch_{nonzero}", False)):
        for where, lanes in ((RDNA, 32), (GFX9, 64)):

            def taken(mask, when=when, lanes=lanes):
                return np.where((low_of(mask, lanes) == 0) == when, mask & np.uint64(0xFFFFFFFF), 7)

            text = SKIP.format(name=name, before=f"s_mov_b64 {register}, s[8:9]", behind="s_mov_b64 exec, -1")
            add(name, "u32 = u64", taken, text, where)
add("s_branch", "u32 = u32", lambda a: a, SKIP.format(name="s_branch", before="", behind=""))
COUNT = """s_mov_b32 s20, 0
s_and_b32 s21, s8, 7
back:
s_add_u32 s20, s20, 3
s_sub_u32 s21, s21, 1
s_cmp_gt_i32 s21, 0
s_cbranch_scc1 back"""
add("s_cbranch_scc1:loop", "u32 = u32", lambda a: 3 * np.maximum(a & 7, 1), COUNT)

# -- jumps through registers ---------------------------------------------------------------------------------
CALL = """s_mov_b32 s20, s8
s_call_b64 s[26:27], to_{0}
s_add_u32 s20, s20, 1
s_branch over_{0}
to_{0}:
s_lshl_b32 s20, s20, 4
s_setpc_b64 s[26:27]
over_{0}:"""
for name in ("s_call_b64", "s_setpc_b64"):
    add(name, "u32 = u32", lambda a: (a << 4) + 1, CALL.format(name))
SWAP = """s_mov_b32 s20, s8
s_getpc_b64 s[26:27]
at_{0}:
s_add_u32 s26, s26, to_{0}-at_{0}
s_addc_u32 s27, s27, 0
s_swappc_b64 s[26:27], s[26:27]
s_add_u32 s20, s20, 1
s_branch over_{0}
to_{0}:
s_lshl_b32 s20, s20, 4
s_setpc_b64 s[26:27]
over_{0}:"""
for name in ("s_getpc_b64", "s_swappc_b64"):
    add(name, "u32 = u32", lambda a: (a << 4) + 1, SWAP.format(name))

# -- what changes nothing that a kernel sees -----------------------------------------------------------------
WAITS = """s_nop 3|s_sleep 1|s_setprio 1|s_incperflevel 1|s_decperflevel 1|s_icache_inv|v_nop|s_waitcnt 0
s_wakeup|s_ttracedata|s_clause 0x1@gfx1100|s_clause 0x1@gfx1201
s_delay_alu 0@gfx1100|s_delay_alu 0@gfx1201|s_wait_idle@gfx1100|s_wait_idle@gfx1201|s_waitcnt_depctr 0@gfx1100
s_wait_event 0@gfx1100|s_wait_event 0@gfx1201|s_ttracedata_imm 0@gfx1100|s_ttracedata_imm 0@gfx1201
s_version 0x2006@gfx1100|s_version 0x2006@gfx1201|v_pipeflush@gfx1100|v_pipeflush@gfx1201|v_clrexcp@gfx942
s_set_inst_prefetch_distance 1@gfx1100|s_waitcnt_vscnt null, 0@gfx1100|s_waitcnt_vmcnt null, 0@gfx1100
s_waitcnt_expcnt null, 0@gfx1100|s_waitcnt_lgkmcnt null, 0@gfx1100|s_wait_alu 0@gfx1201|s_sleep_var s8@gfx1201
s_wait_loadcnt 0@gfx1201|s_wait_storecnt 0@gfx1201|s_wait_samplecnt 0@gfx1201|s_wait_bvhcnt 0@gfx1201
s_wait_expcnt 0@gfx1201|s_wait_dscnt 0@gfx1201|s_wait_kmcnt 0@gfx1201|s_wait_loadcnt_dscnt 0@gfx1201
s_wait_storecnt_dscnt 0@gfx1201|s_dcache_inv|s_gl1_inv@gfx1100|buffer_gl0_inv@gfx1100|buffer_gl1_inv@gfx1100
ds_nop|global_inv@gfx1201|global_wb@gfx1201|global_wbinv@gfx1201|buffer_inv@gfx942|buffer_wbl2@gfx942
s_dcache_wb@gfx942|s_dcache_inv_vol@gfx942|s_dcache_wb_vol@gfx942"""
for entry in WAITS.replace("\n", "|").split("|"):
    text, _, only = entry.partition("@")
    where = (only,) if only else ALL
    add(text.split()[0], "u32 = u32", lambda a: a, f"s_mov_b32 s20, s8\n{text}", where)
add("s_barrier", "u32 = u32", lambda a: a, "s_mov_b32 s20, s8\ns_barrier", GFX11 + GFX9)
for name in ("s_barrier_signal", "s_barrier_wait"):
    text = "s_mov_b32 s20, s8\ns_barrier_signal -1\ns_barrier_wait -1"
    add(name, "u32 = u32", lambda a: a, text, GFX12)
add("s_sendmsg", "u32 = u32", lambda a: a, "s_mov_b32 s20, s8\ns_sendmsg sendmsg(MSG_DEALLOC_VGPRS)", RDNA)
FLOW_CASES = tuple(FLOW_CASES)
COVERS = {
    name: {each.mnemonic for each in FLOW_CASES if name in each.processors} | {"s_endpgm"} for name in ALL
}
