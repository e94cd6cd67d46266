"""Opcode numbers of gfx11 (RDNA3, gfx1100 ... gfx1153), one list for each encoding.

Source: LLVM 22's disassembler, asked for every number of every encoding (tests/emulator/amd/isa/oracle.py
asks it for whole words). VOP3 lists only what has no shorter form: the numbers of the others follow from
PROMOTED.
"""
from tiny.emulator.amd.isa.encoding import numbered

# VOP3 number = number of the short form + this
PROMOTED = {"VOP1": 0x180, "VOP2": 0x100, "VOPC": 0}
# without a VOP3 form
SHORT_ONLY = frozenset("""
    v_nop v_readfirstlane_b32 v_pipeflush v_swap_b32 v_swap_b16 v_permlane64_b32 v_swaprel_b32
    v_dot2acc_f32_f16 v_fmamk_f32 v_fmaak_f32 v_fmamk_f16 v_fmaak_f16 v_pk_fmac_f16""".split())

OPCODES = {
    "SOP2": numbered("""
    0x0 s_add_u32  0x1 s_sub_u32  0x2 s_add_i32  0x3 s_sub_i32  0x4 s_addc_u32  0x5 s_subb_u32
    0x6 s_absdiff_i32  0x8 s_lshl_b32  0x9 s_lshl_b64  0xa s_lshr_b32  0xb s_lshr_b64  0xc s_ashr_i32
    0xd s_ashr_i64  0xe s_lshl1_add_u32  0xf s_lshl2_add_u32  0x10 s_lshl3_add_u32  0x11 s_lshl4_add_u32
    0x12 s_min_i32  0x13 s_min_u32  0x14 s_max_i32  0x15 s_max_u32  0x16 s_and_b32  0x17 s_and_b64
    0x18 s_or_b32  0x19 s_or_b64  0x1a s_xor_b32  0x1b s_xor_b64  0x1c s_nand_b32  0x1d s_nand_b64
    0x1e s_nor_b32  0x1f s_nor_b64  0x20 s_xnor_b32  0x21 s_xnor_b64  0x22 s_and_not1_b32
    0x23 s_and_not1_b64  0x24 s_or_not1_b32  0x25 s_or_not1_b64  0x26 s_bfe_u32  0x27 s_bfe_i32
    0x28 s_bfe_u64  0x29 s_bfe_i64  0x2a s_bfm_b32  0x2b s_bfm_b64  0x2c s_mul_i32  0x2d s_mul_hi_u32
    0x2e s_mul_hi_i32  0x30 s_cselect_b32  0x31 s_cselect_b64  0x32 s_pack_ll_b32_b16
    0x33 s_pack_lh_b32_b16  0x34 s_pack_hh_b32_b16  0x35 s_pack_hl_b32_b16"""),
    "SOPC": numbered("""
    0x0 s_cmp_eq_i32  0x1 s_cmp_lg_i32  0x2 s_cmp_gt_i32  0x3 s_cmp_ge_i32  0x4 s_cmp_lt_i32
    0x5 s_cmp_le_i32  0x6 s_cmp_eq_u32  0x7 s_cmp_lg_u32  0x8 s_cmp_gt_u32  0x9 s_cmp_ge_u32
    0xa s_cmp_lt_u32  0xb s_cmp_le_u32  0xc s_bitcmp0_b32  0xd s_bitcmp1_b32  0xe s_bitcmp0_b64
    0xf s_bitcmp1_b64  0x10 s_cmp_eq_u64  0x11 s_cmp_lg_u64"""),
    "SOPP": numbered("""
    0x0 s_nop  0x1 s_setkill  0x2 s_sethalt  0x3 s_sleep  0x4 s_set_inst_prefetch_distance  0x5 s_clause
    0x7 s_delay_alu  0x8 s_waitcnt_depctr  0x9 s_waitcnt  0xa s_wait_idle  0xb s_wait_event  0x10 s_trap
    0x11 s_round_mode  0x12 s_denorm_mode  0x1f s_code_end  0x20 s_branch  0x21 s_cbranch_scc0
    0x22 s_cbranch_scc1  0x23 s_cbranch_vccz  0x24 s_cbranch_vccnz  0x25 s_cbranch_execz
    0x26 s_cbranch_execnz  0x27 s_cbranch_cdbgsys  0x28 s_cbranch_cdbguser  0x29 s_cbranch_cdbgsys_or_user
    0x2a s_cbranch_cdbgsys_and_user  0x30 s_endpgm  0x31 s_endpgm_saved  0x32 s_endpgm_ordered_ps_done
    0x34 s_wakeup  0x35 s_setprio  0x36 s_sendmsg  0x37 s_sendmsghalt  0x38 s_incperflevel
    0x39 s_decperflevel  0x3a s_ttracedata  0x3b s_ttracedata_imm  0x3c s_icache_inv  0x3d s_barrier"""),
    "SOPK": numbered("""
    0x0 s_movk_i32  0x1 s_version  0x2 s_cmovk_i32  0x3 s_cmpk_eq_i32  0x4 s_cmpk_lg_i32  0x5 s_cmpk_gt_i32
    0x6 s_cmpk_ge_i32  0x7 s_cmpk_lt_i32  0x8 s_cmpk_le_i32  0x9 s_cmpk_eq_u32  0xa s_cmpk_lg_u32
    0xb s_cmpk_gt_u32  0xc s_cmpk_ge_u32  0xd s_cmpk_lt_u32  0xe s_cmpk_le_u32  0xf s_addk_i32
    0x10 s_mulk_i32  0x11 s_getreg_b32  0x12 s_setreg_b32  0x13 s_setreg_imm32_b32  0x14 s_call_b64
    0x16 s_subvector_loop_begin  0x17 s_subvector_loop_end  0x18 s_waitcnt_vscnt  0x19 s_waitcnt_vmcnt
    0x1a s_waitcnt_expcnt  0x1b s_waitcnt_lgkmcnt"""),
    "SOP1": numbered("""
    0x0 s_mov_b32  0x1 s_mov_b64  0x2 s_cmov_b32  0x3 s_cmov_b64  0x4 s_brev_b32  0x5 s_brev_b64
    0x8 s_ctz_i32_b32  0x9 s_ctz_i32_b64  0xa s_clz_i32_u32  0xb s_clz_i32_u64  0xc s_cls_i32
    0xd s_cls_i32_i64  0xe s_sext_i32_i8  0xf s_sext_i32_i16  0x10 s_bitset0_b32  0x11 s_bitset0_b64
    0x12 s_bitset1_b32  0x13 s_bitset1_b64  0x14 s_bitreplicate_b64_b32  0x15 s_abs_i32
    0x16 s_bcnt0_i32_b32  0x17 s_bcnt0_i32_b64  0x18 s_bcnt1_i32_b32  0x19 s_bcnt1_i32_b64
    0x1a s_quadmask_b32  0x1b s_quadmask_b64  0x1c s_wqm_b32  0x1d s_wqm_b64  0x1e s_not_b32  0x1f s_not_b64
    0x20 s_and_saveexec_b32  0x21 s_and_saveexec_b64  0x22 s_or_saveexec_b32  0x23 s_or_saveexec_b64
    0x24 s_xor_saveexec_b32  0x25 s_xor_saveexec_b64  0x26 s_nand_saveexec_b32  0x27 s_nand_saveexec_b64
    0x28 s_nor_saveexec_b32  0x29 s_nor_saveexec_b64  0x2a s_xnor_saveexec_b32  0x2b s_xnor_saveexec_b64
    0x2c s_and_not0_saveexec_b32  0x2d s_and_not0_saveexec_b64  0x2e s_or_not0_saveexec_b32
    0x2f s_or_not0_saveexec_b64  0x30 s_and_not1_saveexec_b32  0x31 s_and_not1_saveexec_b64
    0x32 s_or_not1_saveexec_b32  0x33 s_or_not1_saveexec_b64  0x34 s_and_not0_wrexec_b32
    0x35 s_and_not0_wrexec_b64  0x36 s_and_not1_wrexec_b32  0x37 s_and_not1_wrexec_b64  0x40 s_movrels_b32
    0x41 s_movrels_b64  0x42 s_movreld_b32  0x43 s_movreld_b64  0x44 s_movrelsd_2_b32  0x47 s_getpc_b64
    0x48 s_setpc_b64  0x49 s_swappc_b64  0x4a s_rfe_b64  0x4c s_sendmsg_rtn_b32  0x4d s_sendmsg_rtn_b64"""),
    "VOP1": numbered("""
    0x0 v_nop  0x1 v_mov_b32  0x2 v_readfirstlane_b32  0x3 v_cvt_i32_f64  0x4 v_cvt_f64_i32
    0x5 v_cvt_f32_i32  0x6 v_cvt_f32_u32  0x7 v_cvt_u32_f32  0x8 v_cvt_i32_f32  0xa v_cvt_f16_f32
    0xb v_cvt_f32_f16  0xc v_cvt_nearest_i32_f32  0xd v_cvt_floor_i32_f32  0xe v_cvt_off_f32_i4
    0xf v_cvt_f32_f64  0x10 v_cvt_f64_f32  0x11 v_cvt_f32_ubyte0  0x12 v_cvt_f32_ubyte1
    0x13 v_cvt_f32_ubyte2  0x14 v_cvt_f32_ubyte3  0x15 v_cvt_u32_f64  0x16 v_cvt_f64_u32  0x17 v_trunc_f64
    0x18 v_ceil_f64  0x19 v_rndne_f64  0x1a v_floor_f64  0x1b v_pipeflush  0x1c v_mov_b16  0x20 v_fract_f32
    0x21 v_trunc_f32  0x22 v_ceil_f32  0x23 v_rndne_f32  0x24 v_floor_f32  0x25 v_exp_f32  0x27 v_log_f32
    0x2a v_rcp_f32  0x2b v_rcp_iflag_f32  0x2e v_rsq_f32  0x2f v_rcp_f64  0x31 v_rsq_f64  0x33 v_sqrt_f32
    0x34 v_sqrt_f64  0x35 v_sin_f32  0x36 v_cos_f32  0x37 v_not_b32  0x38 v_bfrev_b32  0x39 v_clz_i32_u32
    0x3a v_ctz_i32_b32  0x3b v_cls_i32  0x3c v_frexp_exp_i32_f64  0x3d v_frexp_mant_f64  0x3e v_fract_f64
    0x3f v_frexp_exp_i32_f32  0x40 v_frexp_mant_f32  0x42 v_movreld_b32  0x43 v_movrels_b32
    0x44 v_movrelsd_b32  0x48 v_movrelsd_2_b32  0x50 v_cvt_f16_u16  0x51 v_cvt_f16_i16  0x52 v_cvt_u16_f16
    0x53 v_cvt_i16_f16  0x54 v_rcp_f16  0x55 v_sqrt_f16  0x56 v_rsq_f16  0x57 v_log_f16  0x58 v_exp_f16
    0x59 v_frexp_mant_f16  0x5a v_frexp_exp_i16_f16  0x5b v_floor_f16  0x5c v_ceil_f16  0x5d v_trunc_f16
    0x5e v_rndne_f16  0x5f v_fract_f16  0x60 v_sin_f16  0x61 v_cos_f16  0x62 v_sat_pk_u8_i16
    0x63 v_cvt_norm_i16_f16  0x64 v_cvt_norm_u16_f16  0x65 v_swap_b32  0x66 v_swap_b16
    0x67 v_permlane64_b32  0x68 v_swaprel_b32  0x69 v_not_b16  0x6a v_cvt_i32_i16  0x6b v_cvt_u32_u16"""),
    "VOPC": numbered("""
    0x0 v_cmp_f_f16  0x1 v_cmp_lt_f16  0x2 v_cmp_eq_f16  0x3 v_cmp_le_f16  0x4 v_cmp_gt_f16
    0x5 v_cmp_lg_f16  0x6 v_cmp_ge_f16  0x7 v_cmp_o_f16  0x8 v_cmp_u_f16  0x9 v_cmp_nge_f16
    0xa v_cmp_nlg_f16  0xb v_cmp_ngt_f16  0xc v_cmp_nle_f16  0xd v_cmp_neq_f16  0xe v_cmp_nlt_f16
    0xf v_cmp_t_f16  0x10 v_cmp_f_f32  0x11 v_cmp_lt_f32  0x12 v_cmp_eq_f32  0x13 v_cmp_le_f32
    0x14 v_cmp_gt_f32  0x15 v_cmp_lg_f32  0x16 v_cmp_ge_f32  0x17 v_cmp_o_f32  0x18 v_cmp_u_f32
    0x19 v_cmp_nge_f32  0x1a v_cmp_nlg_f32  0x1b v_cmp_ngt_f32  0x1c v_cmp_nle_f32  0x1d v_cmp_neq_f32
    0x1e v_cmp_nlt_f32  0x1f v_cmp_t_f32  0x20 v_cmp_f_f64  0x21 v_cmp_lt_f64  0x22 v_cmp_eq_f64
    0x23 v_cmp_le_f64  0x24 v_cmp_gt_f64  0x25 v_cmp_lg_f64  0x26 v_cmp_ge_f64  0x27 v_cmp_o_f64
    0x28 v_cmp_u_f64  0x29 v_cmp_nge_f64  0x2a v_cmp_nlg_f64  0x2b v_cmp_ngt_f64  0x2c v_cmp_nle_f64
    0x2d v_cmp_neq_f64  0x2e v_cmp_nlt_f64  0x2f v_cmp_t_f64  0x31 v_cmp_lt_i16  0x32 v_cmp_eq_i16
    0x33 v_cmp_le_i16  0x34 v_cmp_gt_i16  0x35 v_cmp_ne_i16  0x36 v_cmp_ge_i16  0x39 v_cmp_lt_u16
    0x3a v_cmp_eq_u16  0x3b v_cmp_le_u16  0x3c v_cmp_gt_u16  0x3d v_cmp_ne_u16  0x3e v_cmp_ge_u16
    0x40 v_cmp_f_i32  0x41 v_cmp_lt_i32  0x42 v_cmp_eq_i32  0x43 v_cmp_le_i32  0x44 v_cmp_gt_i32
    0x45 v_cmp_ne_i32  0x46 v_cmp_ge_i32  0x47 v_cmp_t_i32  0x48 v_cmp_f_u32  0x49 v_cmp_lt_u32
    0x4a v_cmp_eq_u32  0x4b v_cmp_le_u32  0x4c v_cmp_gt_u32  0x4d v_cmp_ne_u32  0x4e v_cmp_ge_u32
    0x4f v_cmp_t_u32  0x50 v_cmp_f_i64  0x51 v_cmp_lt_i64  0x52 v_cmp_eq_i64  0x53 v_cmp_le_i64
    0x54 v_cmp_gt_i64  0x55 v_cmp_ne_i64  0x56 v_cmp_ge_i64  0x57 v_cmp_t_i64  0x58 v_cmp_f_u64
    0x59 v_cmp_lt_u64  0x5a v_cmp_eq_u64  0x5b v_cmp_le_u64  0x5c v_cmp_gt_u64  0x5d v_cmp_ne_u64
    0x5e v_cmp_ge_u64  0x5f v_cmp_t_u64  0x7d v_cmp_class_f16  0x7e v_cmp_class_f32  0x7f v_cmp_class_f64
    0x80 v_cmpx_f_f16  0x81 v_cmpx_lt_f16  0x82 v_cmpx_eq_f16  0x83 v_cmpx_le_f16  0x84 v_cmpx_gt_f16
    0x85 v_cmpx_lg_f16  0x86 v_cmpx_ge_f16  0x87 v_cmpx_o_f16  0x88 v_cmpx_u_f16  0x89 v_cmpx_nge_f16
    0x8a v_cmpx_nlg_f16  0x8b v_cmpx_ngt_f16  0x8c v_cmpx_nle_f16  0x8d v_cmpx_neq_f16  0x8e v_cmpx_nlt_f16
    0x8f v_cmpx_t_f16  0x90 v_cmpx_f_f32  0x91 v_cmpx_lt_f32  0x92 v_cmpx_eq_f32  0x93 v_cmpx_le_f32
    0x94 v_cmpx_gt_f32  0x95 v_cmpx_lg_f32  0x96 v_cmpx_ge_f32  0x97 v_cmpx_o_f32  0x98 v_cmpx_u_f32
    0x99 v_cmpx_nge_f32  0x9a v_cmpx_nlg_f32  0x9b v_cmpx_ngt_f32  0x9c v_cmpx_nle_f32  0x9d v_cmpx_neq_f32
    0x9e v_cmpx_nlt_f32  0x9f v_cmpx_t_f32  0xa0 v_cmpx_f_f64  0xa1 v_cmpx_lt_f64  0xa2 v_cmpx_eq_f64
    0xa3 v_cmpx_le_f64  0xa4 v_cmpx_gt_f64  0xa5 v_cmpx_lg_f64  0xa6 v_cmpx_ge_f64  0xa7 v_cmpx_o_f64
    0xa8 v_cmpx_u_f64  0xa9 v_cmpx_nge_f64  0xaa v_cmpx_nlg_f64  0xab v_cmpx_ngt_f64  0xac v_cmpx_nle_f64
    0xad v_cmpx_neq_f64  0xae v_cmpx_nlt_f64  0xaf v_cmpx_t_f64  0xb1 v_cmpx_lt_i16  0xb2 v_cmpx_eq_i16
    0xb3 v_cmpx_le_i16  0xb4 v_cmpx_gt_i16  0xb5 v_cmpx_ne_i16  0xb6 v_cmpx_ge_i16  0xb9 v_cmpx_lt_u16
    0xba v_cmpx_eq_u16  0xbb v_cmpx_le_u16  0xbc v_cmpx_gt_u16  0xbd v_cmpx_ne_u16  0xbe v_cmpx_ge_u16
    0xc0 v_cmpx_f_i32  0xc1 v_cmpx_lt_i32  0xc2 v_cmpx_eq_i32  0xc3 v_cmpx_le_i32  0xc4 v_cmpx_gt_i32
    0xc5 v_cmpx_ne_i32  0xc6 v_cmpx_ge_i32  0xc7 v_cmpx_t_i32  0xc8 v_cmpx_f_u32  0xc9 v_cmpx_lt_u32
    0xca v_cmpx_eq_u32  0xcb v_cmpx_le_u32  0xcc v_cmpx_gt_u32  0xcd v_cmpx_ne_u32  0xce v_cmpx_ge_u32
    0xcf v_cmpx_t_u32  0xd0 v_cmpx_f_i64  0xd1 v_cmpx_lt_i64  0xd2 v_cmpx_eq_i64  0xd3 v_cmpx_le_i64
    0xd4 v_cmpx_gt_i64  0xd5 v_cmpx_ne_i64  0xd6 v_cmpx_ge_i64  0xd7 v_cmpx_t_i64  0xd8 v_cmpx_f_u64
    0xd9 v_cmpx_lt_u64  0xda v_cmpx_eq_u64  0xdb v_cmpx_le_u64  0xdc v_cmpx_gt_u64  0xdd v_cmpx_ne_u64
    0xde v_cmpx_ge_u64  0xdf v_cmpx_t_u64  0xfd v_cmpx_class_f16  0xfe v_cmpx_class_f32
    0xff v_cmpx_class_f64"""),
    "VOP2": numbered("""
    0x1 v_cndmask_b32  0x2 v_dot2acc_f32_f16  0x3 v_add_f32  0x4 v_sub_f32  0x5 v_subrev_f32
    0x6 v_fmac_dx9_zero_f32  0x7 v_mul_dx9_zero_f32  0x8 v_mul_f32  0x9 v_mul_i32_i24  0xa v_mul_hi_i32_i24
    0xb v_mul_u32_u24  0xc v_mul_hi_u32_u24  0xf v_min_f32  0x10 v_max_f32  0x11 v_min_i32  0x12 v_max_i32
    0x13 v_min_u32  0x14 v_max_u32  0x18 v_lshlrev_b32  0x19 v_lshrrev_b32  0x1a v_ashrrev_i32
    0x1b v_and_b32  0x1c v_or_b32  0x1d v_xor_b32  0x1e v_xnor_b32  0x20 v_add_co_ci_u32
    0x21 v_sub_co_ci_u32  0x22 v_subrev_co_ci_u32  0x25 v_add_nc_u32  0x26 v_sub_nc_u32
    0x27 v_subrev_nc_u32  0x2b v_fmac_f32  0x2c v_fmamk_f32  0x2d v_fmaak_f32  0x2f v_cvt_pk_rtz_f16_f32
    0x32 v_add_f16  0x33 v_sub_f16  0x34 v_subrev_f16  0x35 v_mul_f16  0x36 v_fmac_f16  0x37 v_fmamk_f16
    0x38 v_fmaak_f16  0x39 v_max_f16  0x3a v_min_f16  0x3b v_ldexp_f16  0x3c v_pk_fmac_f16"""),
    "VOP3": numbered("""
    0x209 v_fma_dx9_zero_f32  0x20a v_mad_i32_i24  0x20b v_mad_u32_u24  0x20c v_cubeid_f32
    0x20d v_cubesc_f32  0x20e v_cubetc_f32  0x20f v_cubema_f32  0x210 v_bfe_u32  0x211 v_bfe_i32
    0x212 v_bfi_b32  0x213 v_fma_f32  0x214 v_fma_f64  0x215 v_lerp_u8  0x216 v_alignbit_b32
    0x217 v_alignbyte_b32  0x218 v_mullit_f32  0x219 v_min3_f32  0x21a v_min3_i32  0x21b v_min3_u32
    0x21c v_max3_f32  0x21d v_max3_i32  0x21e v_max3_u32  0x21f v_med3_f32  0x220 v_med3_i32
    0x221 v_med3_u32  0x222 v_sad_u8  0x223 v_sad_hi_u8  0x224 v_sad_u16  0x225 v_sad_u32
    0x226 v_cvt_pk_u8_f32  0x227 v_div_fixup_f32  0x228 v_div_fixup_f64  0x237 v_div_fmas_f32
    0x238 v_div_fmas_f64  0x239 v_msad_u8  0x23a v_qsad_pk_u16_u8  0x23b v_mqsad_pk_u16_u8
    0x23d v_mqsad_u32_u8  0x240 v_xor3_b32  0x241 v_mad_u16  0x244 v_perm_b32  0x245 v_xad_u32
    0x246 v_lshl_add_u32  0x247 v_add_lshl_u32  0x248 v_fma_f16  0x249 v_min3_f16  0x24a v_min3_i16
    0x24b v_min3_u16  0x24c v_max3_f16  0x24d v_max3_i16  0x24e v_max3_u16  0x24f v_med3_f16
    0x250 v_med3_i16  0x251 v_med3_u16  0x253 v_mad_i16  0x254 v_div_fixup_f16  0x255 v_add3_u32
    0x256 v_lshl_or_b32  0x257 v_and_or_b32  0x258 v_or3_b32  0x259 v_mad_u32_u16  0x25a v_mad_i32_i16
    0x25b v_permlane16_b32  0x25c v_permlanex16_b32  0x25d v_cndmask_b16  0x25e v_maxmin_f32
    0x25f v_minmax_f32  0x260 v_maxmin_f16  0x261 v_minmax_f16  0x262 v_maxmin_u32  0x263 v_minmax_u32
    0x264 v_maxmin_i32  0x265 v_minmax_i32  0x266 v_dot2_f16_f16  0x267 v_dot2_bf16_bf16
    0x2fc v_div_scale_f32  0x2fd v_div_scale_f64  0x2fe v_mad_u64_u32  0x2ff v_mad_i64_i32
    0x300 v_add_co_u32  0x301 v_sub_co_u32  0x302 v_subrev_co_u32  0x303 v_add_nc_u16  0x304 v_sub_nc_u16
    0x305 v_mul_lo_u16  0x306 v_cvt_pk_i16_f32  0x307 v_cvt_pk_u16_f32  0x309 v_max_u16  0x30a v_max_i16
    0x30b v_min_u16  0x30c v_min_i16  0x30d v_add_nc_i16  0x30e v_sub_nc_i16  0x311 v_pack_b32_f16
    0x312 v_cvt_pk_norm_i16_f16  0x313 v_cvt_pk_norm_u16_f16  0x31c v_ldexp_f32  0x31d v_bfm_b32
    0x31e v_bcnt_u32_b32  0x31f v_mbcnt_lo_u32_b32  0x320 v_mbcnt_hi_u32_b32  0x321 v_cvt_pk_norm_i16_f32
    0x322 v_cvt_pk_norm_u16_f32  0x323 v_cvt_pk_u16_u32  0x324 v_cvt_pk_i16_i32  0x325 v_sub_nc_i32
    0x326 v_add_nc_i32  0x327 v_add_f64  0x328 v_mul_f64  0x329 v_min_f64  0x32a v_max_f64
    0x32b v_ldexp_f64  0x32c v_mul_lo_u32  0x32d v_mul_hi_u32  0x32e v_mul_hi_i32  0x32f v_trig_preop_f64
    0x338 v_lshlrev_b16  0x339 v_lshrrev_b16  0x33a v_ashrrev_i16  0x33c v_lshlrev_b64  0x33d v_lshrrev_b64
    0x33e v_ashrrev_i64  0x360 v_readlane_b32  0x361 v_writelane_b32  0x362 v_and_b16  0x363 v_or_b16
    0x364 v_xor_b16"""),
    "VOP3P": numbered("""
    0x0 v_pk_mad_i16  0x1 v_pk_mul_lo_u16  0x2 v_pk_add_i16  0x3 v_pk_sub_i16  0x4 v_pk_lshlrev_b16
    0x5 v_pk_lshrrev_b16  0x6 v_pk_ashrrev_i16  0x7 v_pk_max_i16  0x8 v_pk_min_i16  0x9 v_pk_mad_u16
    0xa v_pk_add_u16  0xb v_pk_sub_u16  0xc v_pk_max_u16  0xd v_pk_min_u16  0xe v_pk_fma_f16
    0xf v_pk_add_f16  0x10 v_pk_mul_f16  0x11 v_pk_min_f16  0x12 v_pk_max_f16  0x13 v_dot2_f32_f16
    0x16 v_dot4_i32_iu8  0x17 v_dot4_u32_u8  0x18 v_dot8_i32_iu4  0x19 v_dot8_u32_u4  0x1a v_dot2_f32_bf16
    0x20 v_fma_mix_f32  0x21 v_fma_mixlo_f16  0x22 v_fma_mixhi_f16  0x40 v_wmma_f32_16x16x16_f16
    0x41 v_wmma_f32_16x16x16_bf16  0x42 v_wmma_f16_16x16x16_f16  0x43 v_wmma_bf16_16x16x16_bf16
    0x44 v_wmma_i32_16x16x16_iu8  0x45 v_wmma_i32_16x16x16_iu4"""),
    "SMEM": numbered("""
    0x0 s_load_b32  0x1 s_load_b64  0x2 s_load_b128  0x3 s_load_b256  0x4 s_load_b512  0x8 s_buffer_load_b32
    0x9 s_buffer_load_b64  0xa s_buffer_load_b128  0xb s_buffer_load_b256  0xc s_buffer_load_b512
    0x20 s_gl1_inv  0x21 s_dcache_inv  0x22 s_atc_probe  0x23 s_atc_probe_buffer"""),
    "DS": numbered("""
    0x0 ds_add_u32  0x1 ds_sub_u32  0x2 ds_rsub_u32  0x3 ds_inc_u32  0x4 ds_dec_u32  0x5 ds_min_i32
    0x6 ds_max_i32  0x7 ds_min_u32  0x8 ds_max_u32  0x9 ds_and_b32  0xa ds_or_b32  0xb ds_xor_b32
    0xc ds_mskor_b32  0xd ds_store_b32  0xe ds_store_2addr_b32  0xf ds_store_2addr_stride64_b32
    0x10 ds_cmpstore_b32  0x11 ds_cmpstore_f32  0x12 ds_min_f32  0x13 ds_max_f32  0x14 ds_nop
    0x15 ds_add_f32  0x18 ds_gws_sema_release_all  0x19 ds_gws_init  0x1a ds_gws_sema_v  0x1b ds_gws_sema_br
    0x1c ds_gws_sema_p  0x1d ds_gws_barrier  0x3f ds_ordered_count  0x7a ds_add_gs_reg_rtn
    0x7b ds_sub_gs_reg_rtn  0x1e ds_store_b8  0x1f ds_store_b16  0x20 ds_add_rtn_u32  0x21 ds_sub_rtn_u32
    0x22 ds_rsub_rtn_u32  0x23 ds_inc_rtn_u32  0x24 ds_dec_rtn_u32  0x25 ds_min_rtn_i32  0x26 ds_max_rtn_i32
    0x27 ds_min_rtn_u32  0x28 ds_max_rtn_u32  0x29 ds_and_rtn_b32  0x2a ds_or_rtn_b32  0x2b ds_xor_rtn_b32
    0x2c ds_mskor_rtn_b32  0x2d ds_storexchg_rtn_b32  0x2e ds_storexchg_2addr_rtn_b32
    0x2f ds_storexchg_2addr_stride64_rtn_b32  0x30 ds_cmpstore_rtn_b32  0x31 ds_cmpstore_rtn_f32
    0x32 ds_min_rtn_f32  0x33 ds_max_rtn_f32  0x34 ds_wrap_rtn_b32  0x35 ds_swizzle_b32  0x36 ds_load_b32
    0x37 ds_load_2addr_b32  0x38 ds_load_2addr_stride64_b32  0x39 ds_load_i8  0x3a ds_load_u8
    0x3b ds_load_i16  0x3c ds_load_u16  0x3d ds_consume  0x3e ds_append  0x40 ds_add_u64  0x41 ds_sub_u64
    0x42 ds_rsub_u64  0x43 ds_inc_u64  0x44 ds_dec_u64  0x45 ds_min_i64  0x46 ds_max_i64  0x47 ds_min_u64
    0x48 ds_max_u64  0x49 ds_and_b64  0x4a ds_or_b64  0x4b ds_xor_b64  0x4c ds_mskor_b64  0x4d ds_store_b64
    0x4e ds_store_2addr_b64  0x4f ds_store_2addr_stride64_b64  0x50 ds_cmpstore_b64  0x51 ds_cmpstore_f64
    0x52 ds_min_f64  0x53 ds_max_f64  0x60 ds_add_rtn_u64  0x61 ds_sub_rtn_u64  0x62 ds_rsub_rtn_u64
    0x63 ds_inc_rtn_u64  0x64 ds_dec_rtn_u64  0x65 ds_min_rtn_i64  0x66 ds_max_rtn_i64  0x67 ds_min_rtn_u64
    0x68 ds_max_rtn_u64  0x69 ds_and_rtn_b64  0x6a ds_or_rtn_b64  0x6b ds_xor_rtn_b64  0x6c ds_mskor_rtn_b64
    0x6d ds_storexchg_rtn_b64  0x6e ds_storexchg_2addr_rtn_b64  0x6f ds_storexchg_2addr_stride64_rtn_b64
    0x70 ds_cmpstore_rtn_b64  0x71 ds_cmpstore_rtn_f64  0x72 ds_min_rtn_f64  0x73 ds_max_rtn_f64
    0x76 ds_load_b64  0x77 ds_load_2addr_b64  0x78 ds_load_2addr_stride64_b64  0x79 ds_add_rtn_f32
    0x7e ds_condxchg32_rtn_b64  0xa0 ds_store_b8_d16_hi  0xa1 ds_store_b16_d16_hi  0xa2 ds_load_u8_d16
    0xa3 ds_load_u8_d16_hi  0xa4 ds_load_i8_d16  0xa5 ds_load_i8_d16_hi  0xa6 ds_load_u16_d16
    0xa7 ds_load_u16_d16_hi  0xad ds_bvh_stack_rtn_b32  0xb0 ds_store_addtid_b32  0xb1 ds_load_addtid_b32
    0xb2 ds_permute_b32  0xb3 ds_bpermute_b32  0xde ds_store_b96  0xdf ds_store_b128  0xfe ds_load_b96
    0xff ds_load_b128"""),
    "FLAT": numbered("""
    0x10 flat_load_u8  0x11 flat_load_i8  0x12 flat_load_u16  0x13 flat_load_i16  0x14 flat_load_b32
    0x15 flat_load_b64  0x16 flat_load_b96  0x17 flat_load_b128  0x18 flat_store_b8  0x19 flat_store_b16
    0x1a flat_store_b32  0x1b flat_store_b64  0x1c flat_store_b96  0x1d flat_store_b128
    0x1e flat_load_d16_u8  0x1f flat_load_d16_i8  0x20 flat_load_d16_b16  0x21 flat_load_d16_hi_u8
    0x22 flat_load_d16_hi_i8  0x23 flat_load_d16_hi_b16  0x24 flat_store_d16_hi_b8
    0x25 flat_store_d16_hi_b16  0x33 flat_atomic_swap_b32  0x34 flat_atomic_cmpswap_b32
    0x35 flat_atomic_add_u32  0x36 flat_atomic_sub_u32  0x38 flat_atomic_min_i32  0x39 flat_atomic_min_u32
    0x3a flat_atomic_max_i32  0x3b flat_atomic_max_u32  0x3c flat_atomic_and_b32  0x3d flat_atomic_or_b32
    0x3e flat_atomic_xor_b32  0x3f flat_atomic_inc_u32  0x40 flat_atomic_dec_u32  0x41 flat_atomic_swap_b64
    0x42 flat_atomic_cmpswap_b64  0x43 flat_atomic_add_u64  0x44 flat_atomic_sub_u64
    0x45 flat_atomic_min_i64  0x46 flat_atomic_min_u64  0x47 flat_atomic_max_i64  0x48 flat_atomic_max_u64
    0x49 flat_atomic_and_b64  0x4a flat_atomic_or_b64  0x4b flat_atomic_xor_b64  0x4c flat_atomic_inc_u64
    0x4d flat_atomic_dec_u64  0x50 flat_atomic_cmpswap_f32  0x51 flat_atomic_min_f32
    0x52 flat_atomic_max_f32  0x56 flat_atomic_add_f32"""),
    "SCRATCH": numbered("""
    0x10 scratch_load_u8  0x11 scratch_load_i8  0x12 scratch_load_u16  0x13 scratch_load_i16
    0x14 scratch_load_b32  0x15 scratch_load_b64  0x16 scratch_load_b96  0x17 scratch_load_b128
    0x18 scratch_store_b8  0x19 scratch_store_b16  0x1a scratch_store_b32  0x1b scratch_store_b64
    0x1c scratch_store_b96  0x1d scratch_store_b128  0x1e scratch_load_d16_u8  0x1f scratch_load_d16_i8
    0x20 scratch_load_d16_b16  0x21 scratch_load_d16_hi_u8  0x22 scratch_load_d16_hi_i8
    0x23 scratch_load_d16_hi_b16  0x24 scratch_store_d16_hi_b8  0x25 scratch_store_d16_hi_b16"""),
    "GLOBAL": numbered("""
    0x10 global_load_u8  0x11 global_load_i8  0x12 global_load_u16  0x13 global_load_i16
    0x14 global_load_b32  0x15 global_load_b64  0x16 global_load_b96  0x17 global_load_b128
    0x18 global_store_b8  0x19 global_store_b16  0x1a global_store_b32  0x1b global_store_b64
    0x1c global_store_b96  0x1d global_store_b128  0x1e global_load_d16_u8  0x1f global_load_d16_i8
    0x20 global_load_d16_b16  0x21 global_load_d16_hi_u8  0x22 global_load_d16_hi_i8
    0x23 global_load_d16_hi_b16  0x24 global_store_d16_hi_b8  0x25 global_store_d16_hi_b16
    0x28 global_load_addtid_b32  0x29 global_store_addtid_b32  0x33 global_atomic_swap_b32
    0x34 global_atomic_cmpswap_b32  0x35 global_atomic_add_u32  0x36 global_atomic_sub_u32
    0x37 global_atomic_csub_u32  0x38 global_atomic_min_i32  0x39 global_atomic_min_u32
    0x3a global_atomic_max_i32  0x3b global_atomic_max_u32  0x3c global_atomic_and_b32
    0x3d global_atomic_or_b32  0x3e global_atomic_xor_b32  0x3f global_atomic_inc_u32
    0x40 global_atomic_dec_u32  0x41 global_atomic_swap_b64  0x42 global_atomic_cmpswap_b64
    0x43 global_atomic_add_u64  0x44 global_atomic_sub_u64  0x45 global_atomic_min_i64
    0x46 global_atomic_min_u64  0x47 global_atomic_max_i64  0x48 global_atomic_max_u64
    0x49 global_atomic_and_b64  0x4a global_atomic_or_b64  0x4b global_atomic_xor_b64
    0x4c global_atomic_inc_u64  0x4d global_atomic_dec_u64  0x50 global_atomic_cmpswap_f32
    0x51 global_atomic_min_f32  0x52 global_atomic_max_f32  0x56 global_atomic_add_f32"""),
    "MUBUF": numbered("""
    0x0 buffer_load_format_x  0x1 buffer_load_format_xy  0x2 buffer_load_format_xyz
    0x3 buffer_load_format_xyzw  0x4 buffer_store_format_x  0x5 buffer_store_format_xy
    0x6 buffer_store_format_xyz  0x7 buffer_store_format_xyzw  0x8 buffer_load_d16_format_x
    0x9 buffer_load_d16_format_xy  0xa buffer_load_d16_format_xyz  0xb buffer_load_d16_format_xyzw
    0xc buffer_store_d16_format_x  0xd buffer_store_d16_format_xy  0xe buffer_store_d16_format_xyz
    0xf buffer_store_d16_format_xyzw  0x10 buffer_load_u8  0x11 buffer_load_i8  0x12 buffer_load_u16
    0x13 buffer_load_i16  0x14 buffer_load_b32  0x15 buffer_load_b64  0x16 buffer_load_b96
    0x17 buffer_load_b128  0x18 buffer_store_b8  0x19 buffer_store_b16  0x1a buffer_store_b32
    0x1b buffer_store_b64  0x1c buffer_store_b96  0x1d buffer_store_b128  0x1e buffer_load_d16_u8
    0x1f buffer_load_d16_i8  0x20 buffer_load_d16_b16  0x21 buffer_load_d16_hi_u8
    0x22 buffer_load_d16_hi_i8  0x23 buffer_load_d16_hi_b16  0x24 buffer_store_d16_hi_b8
    0x25 buffer_store_d16_hi_b16  0x26 buffer_load_d16_hi_format_x  0x27 buffer_store_d16_hi_format_x
    0x2b buffer_gl0_inv  0x2c buffer_gl1_inv  0x33 buffer_atomic_swap_b32  0x34 buffer_atomic_cmpswap_b32
    0x35 buffer_atomic_add_u32  0x36 buffer_atomic_sub_u32  0x37 buffer_atomic_csub_u32
    0x38 buffer_atomic_min_i32  0x39 buffer_atomic_min_u32  0x3a buffer_atomic_max_i32
    0x3b buffer_atomic_max_u32  0x3c buffer_atomic_and_b32  0x3d buffer_atomic_or_b32
    0x3e buffer_atomic_xor_b32  0x3f buffer_atomic_inc_u32  0x40 buffer_atomic_dec_u32
    0x41 buffer_atomic_swap_b64  0x42 buffer_atomic_cmpswap_b64  0x43 buffer_atomic_add_u64
    0x44 buffer_atomic_sub_u64  0x45 buffer_atomic_min_i64  0x46 buffer_atomic_min_u64
    0x47 buffer_atomic_max_i64  0x48 buffer_atomic_max_u64  0x49 buffer_atomic_and_b64
    0x4a buffer_atomic_or_b64  0x4b buffer_atomic_xor_b64  0x4c buffer_atomic_inc_u64
    0x4d buffer_atomic_dec_u64  0x50 buffer_atomic_cmpswap_f32  0x51 buffer_atomic_min_f32
    0x52 buffer_atomic_max_f32  0x56 buffer_atomic_add_f32"""),
    "VOPD": numbered("""
    0x0 v_dual_fmac_f32  0x1 v_dual_fmaak_f32  0x2 v_dual_fmamk_f32  0x3 v_dual_mul_f32  0x4 v_dual_add_f32
    0x5 v_dual_sub_f32  0x6 v_dual_subrev_f32  0x7 v_dual_mul_dx9_zero_f32  0x8 v_dual_mov_b32
    0x9 v_dual_cndmask_b32  0xa v_dual_max_f32  0xb v_dual_min_f32  0xc v_dual_dot2acc_f32_f16
    0xd v_dual_dot2acc_f32_bf16  0x10 v_dual_add_nc_u32  0x11 v_dual_lshlrev_b32  0x12 v_dual_and_b32"""),
}
