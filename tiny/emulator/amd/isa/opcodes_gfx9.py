"""Opcode numbers of gfx9 (CDNA3, gfx942), one list for each encoding.

Source: LLVM 22's disassembler, asked for every number of every encoding (tests/emulator/amd/isa/oracle.py
asks it for whole words). VOP3 lists only what has no shorter form: the numbers of the others follow from
PROMOTED.
"""
from tiny.emulator.amd.isa.encoding import numbered

# VOP3 number = number of the short form + this
PROMOTED = {"VOP1": 0x140, "VOP2": 0x100, "VOPC": 0}
# without a VOP3 form
SHORT_ONLY = frozenset("""
    v_nop v_readfirstlane_b32 v_clrexcp v_swap_b32 v_accvgpr_mov_b32 v_fmamk_f32 v_fmaak_f32 v_madmk_f16
    v_madak_f16""".split())

OPCODES = {
    "SOP2": numbered("""
    0x0 s_add_u32  0x1 s_sub_u32  0x2 s_add_i32  0x3 s_sub_i32  0x4 s_addc_u32  0x5 s_subb_u32
    0x6 s_min_i32  0x7 s_min_u32  0x8 s_max_i32  0x9 s_max_u32  0xa s_cselect_b32  0xb s_cselect_b64
    0xc s_and_b32  0xd s_and_b64  0xe s_or_b32  0xf s_or_b64  0x10 s_xor_b32  0x11 s_xor_b64
    0x12 s_andn2_b32  0x13 s_andn2_b64  0x14 s_orn2_b32  0x15 s_orn2_b64  0x16 s_nand_b32  0x17 s_nand_b64
    0x18 s_nor_b32  0x19 s_nor_b64  0x1a s_xnor_b32  0x1b s_xnor_b64  0x1c s_lshl_b32  0x1d s_lshl_b64
    0x1e s_lshr_b32  0x1f s_lshr_b64  0x20 s_ashr_i32  0x21 s_ashr_i64  0x22 s_bfm_b32  0x23 s_bfm_b64
    0x24 s_mul_i32  0x25 s_bfe_u32  0x26 s_bfe_i32  0x27 s_bfe_u64  0x28 s_bfe_i64  0x29 s_cbranch_g_fork
    0x2a s_absdiff_i32  0x2b s_rfe_restore_b64  0x2c s_mul_hi_u32  0x2d s_mul_hi_i32  0x2e s_lshl1_add_u32
    0x2f s_lshl2_add_u32  0x30 s_lshl3_add_u32  0x31 s_lshl4_add_u32  0x32 s_pack_ll_b32_b16
    0x33 s_pack_lh_b32_b16  0x34 s_pack_hh_b32_b16"""),
    "SOPC": numbered("""
    0x0 s_cmp_eq_i32  0x1 s_cmp_lg_i32  0x2 s_cmp_gt_i32  0x3 s_cmp_ge_i32  0x4 s_cmp_lt_i32
    0x5 s_cmp_le_i32  0x6 s_cmp_eq_u32  0x7 s_cmp_lg_u32  0x8 s_cmp_gt_u32  0x9 s_cmp_ge_u32
    0xa s_cmp_lt_u32  0xb s_cmp_le_u32  0xc s_bitcmp0_b32  0xd s_bitcmp1_b32  0xe s_bitcmp0_b64
    0xf s_bitcmp1_b64  0x10 s_setvskip  0x11 s_set_gpr_idx_on  0x12 s_cmp_eq_u64  0x13 s_cmp_lg_u64"""),
    "SOPP": numbered("""
    0x0 s_nop  0x1 s_endpgm  0x2 s_branch  0x3 s_wakeup  0x4 s_cbranch_scc0  0x5 s_cbranch_scc1
    0x6 s_cbranch_vccz  0x7 s_cbranch_vccnz  0x8 s_cbranch_execz  0x9 s_cbranch_execnz  0xa s_barrier
    0xb s_setkill  0xc s_waitcnt  0xd s_sethalt  0xe s_sleep  0xf s_setprio  0x10 s_sendmsg
    0x11 s_sendmsghalt  0x12 s_trap  0x13 s_icache_inv  0x14 s_incperflevel  0x15 s_decperflevel
    0x16 s_ttracedata  0x17 s_cbranch_cdbgsys  0x18 s_cbranch_cdbguser  0x19 s_cbranch_cdbgsys_or_user
    0x1a s_cbranch_cdbgsys_and_user  0x1b s_endpgm_saved  0x1c s_set_gpr_idx_off  0x1d s_set_gpr_idx_mode
    0x1e s_endpgm_ordered_ps_done"""),
    "SOPK": numbered("""
    0x0 s_movk_i32  0x1 s_cmovk_i32  0x2 s_cmpk_eq_i32  0x3 s_cmpk_lg_i32  0x4 s_cmpk_gt_i32
    0x5 s_cmpk_ge_i32  0x6 s_cmpk_lt_i32  0x7 s_cmpk_le_i32  0x8 s_cmpk_eq_u32  0x9 s_cmpk_lg_u32
    0xa s_cmpk_gt_u32  0xb s_cmpk_ge_u32  0xc s_cmpk_lt_u32  0xd s_cmpk_le_u32  0xe s_addk_i32
    0xf s_mulk_i32  0x10 s_cbranch_i_fork  0x11 s_getreg_b32  0x12 s_setreg_b32  0x14 s_setreg_imm32_b32
    0x15 s_call_b64"""),
    "SOP1": numbered("""
    0x0 s_mov_b32  0x1 s_mov_b64  0x2 s_cmov_b32  0x3 s_cmov_b64  0x4 s_not_b32  0x5 s_not_b64
    0x6 s_wqm_b32  0x7 s_wqm_b64  0x8 s_brev_b32  0x9 s_brev_b64  0xa s_bcnt0_i32_b32  0xb s_bcnt0_i32_b64
    0xc s_bcnt1_i32_b32  0xd s_bcnt1_i32_b64  0xe s_ff0_i32_b32  0xf s_ff0_i32_b64  0x10 s_ff1_i32_b32
    0x11 s_ff1_i32_b64  0x12 s_flbit_i32_b32  0x13 s_flbit_i32_b64  0x14 s_flbit_i32  0x15 s_flbit_i32_i64
    0x16 s_sext_i32_i8  0x17 s_sext_i32_i16  0x18 s_bitset0_b32  0x19 s_bitset0_b64  0x1a s_bitset1_b32
    0x1b s_bitset1_b64  0x1c s_getpc_b64  0x1d s_setpc_b64  0x1e s_swappc_b64  0x1f s_rfe_b64
    0x20 s_and_saveexec_b64  0x21 s_or_saveexec_b64  0x22 s_xor_saveexec_b64  0x23 s_andn2_saveexec_b64
    0x24 s_orn2_saveexec_b64  0x25 s_nand_saveexec_b64  0x26 s_nor_saveexec_b64  0x27 s_xnor_saveexec_b64
    0x28 s_quadmask_b32  0x29 s_quadmask_b64  0x2a s_movrels_b32  0x2b s_movrels_b64  0x2c s_movreld_b32
    0x2d s_movreld_b64  0x2e s_cbranch_join  0x30 s_abs_i32  0x32 s_set_gpr_idx_idx
    0x33 s_andn1_saveexec_b64  0x34 s_orn1_saveexec_b64  0x35 s_andn1_wrexec_b64  0x36 s_andn2_wrexec_b64
    0x37 s_bitreplicate_b64_b32"""),
    "VOP1": numbered("""
    0x0 v_nop  0x1 v_mov_b32  0x2 v_readfirstlane_b32  0x3 v_cvt_i32_f64  0x4 v_cvt_f64_i32
    0x5 v_cvt_f32_i32  0x6 v_cvt_f32_u32  0x7 v_cvt_u32_f32  0x8 v_cvt_i32_f32  0xa v_cvt_f16_f32
    0xb v_cvt_f32_f16  0xc v_cvt_rpi_i32_f32  0xd v_cvt_flr_i32_f32  0xe v_cvt_off_f32_i4  0xf v_cvt_f32_f64
    0x10 v_cvt_f64_f32  0x11 v_cvt_f32_ubyte0  0x12 v_cvt_f32_ubyte1  0x13 v_cvt_f32_ubyte2
    0x14 v_cvt_f32_ubyte3  0x15 v_cvt_u32_f64  0x16 v_cvt_f64_u32  0x17 v_trunc_f64  0x18 v_ceil_f64
    0x19 v_rndne_f64  0x1a v_floor_f64  0x1b v_fract_f32  0x1c v_trunc_f32  0x1d v_ceil_f32
    0x1e v_rndne_f32  0x1f v_floor_f32  0x20 v_exp_f32  0x21 v_log_f32  0x22 v_rcp_f32  0x23 v_rcp_iflag_f32
    0x24 v_rsq_f32  0x25 v_rcp_f64  0x26 v_rsq_f64  0x27 v_sqrt_f32  0x28 v_sqrt_f64  0x29 v_sin_f32
    0x2a v_cos_f32  0x2b v_not_b32  0x2c v_bfrev_b32  0x2d v_ffbh_u32  0x2e v_ffbl_b32  0x2f v_ffbh_i32
    0x30 v_frexp_exp_i32_f64  0x31 v_frexp_mant_f64  0x32 v_fract_f64  0x33 v_frexp_exp_i32_f32
    0x34 v_frexp_mant_f32  0x35 v_clrexcp  0x37 v_screen_partition_4se_b32  0x38 v_mov_b64
    0x39 v_cvt_f16_u16  0x3a v_cvt_f16_i16  0x3b v_cvt_u16_f16  0x3c v_cvt_i16_f16  0x3d v_rcp_f16
    0x3e v_sqrt_f16  0x3f v_rsq_f16  0x40 v_log_f16  0x41 v_exp_f16  0x42 v_frexp_mant_f16
    0x43 v_frexp_exp_i16_f16  0x44 v_floor_f16  0x45 v_ceil_f16  0x46 v_trunc_f16  0x47 v_rndne_f16
    0x48 v_fract_f16  0x49 v_sin_f16  0x4a v_cos_f16  0x4b v_exp_legacy_f32  0x4c v_log_legacy_f32
    0x4d v_cvt_norm_i16_f16  0x4e v_cvt_norm_u16_f16  0x4f v_sat_pk_u8_i16  0x51 v_swap_b32
    0x52 v_accvgpr_mov_b32  0x54 v_cvt_f32_fp8  0x55 v_cvt_f32_bf8  0x56 v_cvt_pk_f32_fp8
    0x57 v_cvt_pk_f32_bf8"""),
    "VOPC": numbered("""
    0x10 v_cmp_class_f32  0x11 v_cmpx_class_f32  0x12 v_cmp_class_f64  0x13 v_cmpx_class_f64
    0x14 v_cmp_class_f16  0x15 v_cmpx_class_f16  0x20 v_cmp_f_f16  0x21 v_cmp_lt_f16  0x22 v_cmp_eq_f16
    0x23 v_cmp_le_f16  0x24 v_cmp_gt_f16  0x25 v_cmp_lg_f16  0x26 v_cmp_ge_f16  0x27 v_cmp_o_f16
    0x28 v_cmp_u_f16  0x29 v_cmp_nge_f16  0x2a v_cmp_nlg_f16  0x2b v_cmp_ngt_f16  0x2c v_cmp_nle_f16
    0x2d v_cmp_neq_f16  0x2e v_cmp_nlt_f16  0x2f v_cmp_tru_f16  0x30 v_cmpx_f_f16  0x31 v_cmpx_lt_f16
    0x32 v_cmpx_eq_f16  0x33 v_cmpx_le_f16  0x34 v_cmpx_gt_f16  0x35 v_cmpx_lg_f16  0x36 v_cmpx_ge_f16
    0x37 v_cmpx_o_f16  0x38 v_cmpx_u_f16  0x39 v_cmpx_nge_f16  0x3a v_cmpx_nlg_f16  0x3b v_cmpx_ngt_f16
    0x3c v_cmpx_nle_f16  0x3d v_cmpx_neq_f16  0x3e v_cmpx_nlt_f16  0x3f v_cmpx_tru_f16  0x40 v_cmp_f_f32
    0x41 v_cmp_lt_f32  0x42 v_cmp_eq_f32  0x43 v_cmp_le_f32  0x44 v_cmp_gt_f32  0x45 v_cmp_lg_f32
    0x46 v_cmp_ge_f32  0x47 v_cmp_o_f32  0x48 v_cmp_u_f32  0x49 v_cmp_nge_f32  0x4a v_cmp_nlg_f32
    0x4b v_cmp_ngt_f32  0x4c v_cmp_nle_f32  0x4d v_cmp_neq_f32  0x4e v_cmp_nlt_f32  0x4f v_cmp_tru_f32
    0x50 v_cmpx_f_f32  0x51 v_cmpx_lt_f32  0x52 v_cmpx_eq_f32  0x53 v_cmpx_le_f32  0x54 v_cmpx_gt_f32
    0x55 v_cmpx_lg_f32  0x56 v_cmpx_ge_f32  0x57 v_cmpx_o_f32  0x58 v_cmpx_u_f32  0x59 v_cmpx_nge_f32
    0x5a v_cmpx_nlg_f32  0x5b v_cmpx_ngt_f32  0x5c v_cmpx_nle_f32  0x5d v_cmpx_neq_f32  0x5e v_cmpx_nlt_f32
    0x5f v_cmpx_tru_f32  0x60 v_cmp_f_f64  0x61 v_cmp_lt_f64  0x62 v_cmp_eq_f64  0x63 v_cmp_le_f64
    0x64 v_cmp_gt_f64  0x65 v_cmp_lg_f64  0x66 v_cmp_ge_f64  0x67 v_cmp_o_f64  0x68 v_cmp_u_f64
    0x69 v_cmp_nge_f64  0x6a v_cmp_nlg_f64  0x6b v_cmp_ngt_f64  0x6c v_cmp_nle_f64  0x6d v_cmp_neq_f64
    0x6e v_cmp_nlt_f64  0x6f v_cmp_tru_f64  0x70 v_cmpx_f_f64  0x71 v_cmpx_lt_f64  0x72 v_cmpx_eq_f64
    0x73 v_cmpx_le_f64  0x74 v_cmpx_gt_f64  0x75 v_cmpx_lg_f64  0x76 v_cmpx_ge_f64  0x77 v_cmpx_o_f64
    0x78 v_cmpx_u_f64  0x79 v_cmpx_nge_f64  0x7a v_cmpx_nlg_f64  0x7b v_cmpx_ngt_f64  0x7c v_cmpx_nle_f64
    0x7d v_cmpx_neq_f64  0x7e v_cmpx_nlt_f64  0x7f v_cmpx_tru_f64  0xa0 v_cmp_f_i16  0xa1 v_cmp_lt_i16
    0xa2 v_cmp_eq_i16  0xa3 v_cmp_le_i16  0xa4 v_cmp_gt_i16  0xa5 v_cmp_ne_i16  0xa6 v_cmp_ge_i16
    0xa7 v_cmp_t_i16  0xa8 v_cmp_f_u16  0xa9 v_cmp_lt_u16  0xaa v_cmp_eq_u16  0xab v_cmp_le_u16
    0xac v_cmp_gt_u16  0xad v_cmp_ne_u16  0xae v_cmp_ge_u16  0xaf v_cmp_t_u16  0xb0 v_cmpx_f_i16
    0xb1 v_cmpx_lt_i16  0xb2 v_cmpx_eq_i16  0xb3 v_cmpx_le_i16  0xb4 v_cmpx_gt_i16  0xb5 v_cmpx_ne_i16
    0xb6 v_cmpx_ge_i16  0xb7 v_cmpx_t_i16  0xb8 v_cmpx_f_u16  0xb9 v_cmpx_lt_u16  0xba v_cmpx_eq_u16
    0xbb v_cmpx_le_u16  0xbc v_cmpx_gt_u16  0xbd v_cmpx_ne_u16  0xbe v_cmpx_ge_u16  0xbf v_cmpx_t_u16
    0xc0 v_cmp_f_i32  0xc1 v_cmp_lt_i32  0xc2 v_cmp_eq_i32  0xc3 v_cmp_le_i32  0xc4 v_cmp_gt_i32
    0xc5 v_cmp_ne_i32  0xc6 v_cmp_ge_i32  0xc7 v_cmp_t_i32  0xc8 v_cmp_f_u32  0xc9 v_cmp_lt_u32
    0xca v_cmp_eq_u32  0xcb v_cmp_le_u32  0xcc v_cmp_gt_u32  0xcd v_cmp_ne_u32  0xce v_cmp_ge_u32
    0xcf v_cmp_t_u32  0xd0 v_cmpx_f_i32  0xd1 v_cmpx_lt_i32  0xd2 v_cmpx_eq_i32  0xd3 v_cmpx_le_i32
    0xd4 v_cmpx_gt_i32  0xd5 v_cmpx_ne_i32  0xd6 v_cmpx_ge_i32  0xd7 v_cmpx_t_i32  0xd8 v_cmpx_f_u32
    0xd9 v_cmpx_lt_u32  0xda v_cmpx_eq_u32  0xdb v_cmpx_le_u32  0xdc v_cmpx_gt_u32  0xdd v_cmpx_ne_u32
    0xde v_cmpx_ge_u32  0xdf v_cmpx_t_u32  0xe0 v_cmp_f_i64  0xe1 v_cmp_lt_i64  0xe2 v_cmp_eq_i64
    0xe3 v_cmp_le_i64  0xe4 v_cmp_gt_i64  0xe5 v_cmp_ne_i64  0xe6 v_cmp_ge_i64  0xe7 v_cmp_t_i64
    0xe8 v_cmp_f_u64  0xe9 v_cmp_lt_u64  0xea v_cmp_eq_u64  0xeb v_cmp_le_u64  0xec v_cmp_gt_u64
    0xed v_cmp_ne_u64  0xee v_cmp_ge_u64  0xef v_cmp_t_u64  0xf0 v_cmpx_f_i64  0xf1 v_cmpx_lt_i64
    0xf2 v_cmpx_eq_i64  0xf3 v_cmpx_le_i64  0xf4 v_cmpx_gt_i64  0xf5 v_cmpx_ne_i64  0xf6 v_cmpx_ge_i64
    0xf7 v_cmpx_t_i64  0xf8 v_cmpx_f_u64  0xf9 v_cmpx_lt_u64  0xfa v_cmpx_eq_u64  0xfb v_cmpx_le_u64
    0xfc v_cmpx_gt_u64  0xfd v_cmpx_ne_u64  0xfe v_cmpx_ge_u64  0xff v_cmpx_t_u64"""),
    "VOP2": numbered("""
    0x0 v_cndmask_b32  0x1 v_add_f32  0x2 v_sub_f32  0x3 v_subrev_f32  0x4 v_fmac_f64  0x5 v_mul_f32
    0x6 v_mul_i32_i24  0x7 v_mul_hi_i32_i24  0x8 v_mul_u32_u24  0x9 v_mul_hi_u32_u24  0xa v_min_f32
    0xb v_max_f32  0xc v_min_i32  0xd v_max_i32  0xe v_min_u32  0xf v_max_u32  0x10 v_lshrrev_b32
    0x11 v_ashrrev_i32  0x12 v_lshlrev_b32  0x13 v_and_b32  0x14 v_or_b32  0x15 v_xor_b32  0x17 v_fmamk_f32
    0x18 v_fmaak_f32  0x19 v_add_co_u32  0x1a v_sub_co_u32  0x1b v_subrev_co_u32  0x1c v_addc_co_u32
    0x1d v_subb_co_u32  0x1e v_subbrev_co_u32  0x1f v_add_f16  0x20 v_sub_f16  0x21 v_subrev_f16
    0x22 v_mul_f16  0x23 v_mac_f16  0x24 v_madmk_f16  0x25 v_madak_f16  0x26 v_add_u16  0x27 v_sub_u16
    0x28 v_subrev_u16  0x29 v_mul_lo_u16  0x2a v_lshlrev_b16  0x2b v_lshrrev_b16  0x2c v_ashrrev_i16
    0x2d v_max_f16  0x2e v_min_f16  0x2f v_max_u16  0x30 v_max_i16  0x31 v_min_u16  0x32 v_min_i16
    0x33 v_ldexp_f16  0x34 v_add_u32  0x35 v_sub_u32  0x36 v_subrev_u32  0x37 v_dot2c_f32_f16
    0x38 v_dot2c_i32_i16  0x39 v_dot4c_i32_i8  0x3a v_dot8c_i32_i4  0x3b v_fmac_f32  0x3c v_pk_fmac_f16
    0x3d v_xnor_b32"""),
    "VOP3": numbered("""
    0x1c2 v_mad_i32_i24  0x1c3 v_mad_u32_u24  0x1c4 v_cubeid_f32  0x1c5 v_cubesc_f32  0x1c6 v_cubetc_f32
    0x1c7 v_cubema_f32  0x1c8 v_bfe_u32  0x1c9 v_bfe_i32  0x1ca v_bfi_b32  0x1cb v_fma_f32  0x1cc v_fma_f64
    0x1cd v_lerp_u8  0x1ce v_alignbit_b32  0x1cf v_alignbyte_b32  0x1d0 v_min3_f32  0x1d1 v_min3_i32
    0x1d2 v_min3_u32  0x1d3 v_max3_f32  0x1d4 v_max3_i32  0x1d5 v_max3_u32  0x1d6 v_med3_f32
    0x1d7 v_med3_i32  0x1d8 v_med3_u32  0x1d9 v_sad_u8  0x1da v_sad_hi_u8  0x1db v_sad_u16  0x1dc v_sad_u32
    0x1dd v_cvt_pk_u8_f32  0x1de v_div_fixup_f32  0x1df v_div_fixup_f64  0x1e0 v_div_scale_f32
    0x1e1 v_div_scale_f64  0x1e2 v_div_fmas_f32  0x1e3 v_div_fmas_f64  0x1e4 v_msad_u8
    0x1e5 v_qsad_pk_u16_u8  0x1e6 v_mqsad_pk_u16_u8  0x1e7 v_mqsad_u32_u8  0x1e8 v_mad_u64_u32
    0x1e9 v_mad_i64_i32  0x1ea v_mad_legacy_f16  0x1eb v_mad_legacy_u16  0x1ec v_mad_legacy_i16
    0x1ed v_perm_b32  0x1ee v_fma_legacy_f16  0x1ef v_div_fixup_legacy_f16  0x1f0 v_cvt_pkaccum_u8_f32
    0x1f1 v_mad_u32_u16  0x1f2 v_mad_i32_i16  0x1f3 v_xad_u32  0x1f4 v_min3_f16  0x1f5 v_min3_i16
    0x1f6 v_min3_u16  0x1f7 v_max3_f16  0x1f8 v_max3_i16  0x1f9 v_max3_u16  0x1fa v_med3_f16
    0x1fb v_med3_i16  0x1fc v_med3_u16  0x1fd v_lshl_add_u32  0x1fe v_add_lshl_u32  0x1ff v_add3_u32
    0x200 v_lshl_or_b32  0x201 v_and_or_b32  0x202 v_or3_b32  0x203 v_mad_f16  0x204 v_mad_u16
    0x205 v_mad_i16  0x206 v_fma_f16  0x207 v_div_fixup_f16  0x208 v_lshl_add_u64  0x280 v_add_f64
    0x281 v_mul_f64  0x282 v_min_f64  0x283 v_max_f64  0x284 v_ldexp_f64  0x285 v_mul_lo_u32
    0x286 v_mul_hi_u32  0x287 v_mul_hi_i32  0x288 v_ldexp_f32  0x289 v_readlane_b32  0x28a v_writelane_b32
    0x28b v_bcnt_u32_b32  0x28c v_mbcnt_lo_u32_b32  0x28d v_mbcnt_hi_u32_b32  0x28f v_lshlrev_b64
    0x290 v_lshrrev_b64  0x291 v_ashrrev_i64  0x292 v_trig_preop_f64  0x293 v_bfm_b32
    0x294 v_cvt_pknorm_i16_f32  0x295 v_cvt_pknorm_u16_f32  0x296 v_cvt_pkrtz_f16_f32
    0x297 v_cvt_pk_u16_u32  0x298 v_cvt_pk_i16_i32  0x299 v_cvt_pknorm_i16_f16  0x29a v_cvt_pknorm_u16_f16
    0x29c v_add_i32  0x29d v_sub_i32  0x29e v_add_i16  0x29f v_sub_i16  0x2a0 v_pack_b32_f16
    0x2a1 v_mul_legacy_f32  0x2a2 v_cvt_pk_fp8_f32  0x2a3 v_cvt_pk_bf8_f32  0x2a4 v_cvt_sr_fp8_f32
    0x2a5 v_cvt_sr_bf8_f32  0x380 v_pk_mad_i16  0x381 v_pk_mul_lo_u16  0x382 v_pk_add_i16
    0x383 v_pk_sub_i16  0x384 v_pk_lshlrev_b16  0x385 v_pk_lshrrev_b16  0x386 v_pk_ashrrev_i16
    0x387 v_pk_max_i16  0x388 v_pk_min_i16  0x389 v_pk_mad_u16  0x38a v_pk_add_u16  0x38b v_pk_sub_u16
    0x38c v_pk_max_u16  0x38d v_pk_min_u16  0x38e v_pk_fma_f16  0x38f v_pk_add_f16  0x390 v_pk_mul_f16
    0x391 v_pk_min_f16  0x392 v_pk_max_f16  0x3a0 v_fma_mix_f32  0x3a1 v_fma_mixlo_f16
    0x3a2 v_fma_mixhi_f16  0x3a3 v_dot2_f32_f16  0x3a6 v_dot2_i32_i16  0x3a7 v_dot2_u32_u16
    0x3a8 v_dot4_i32_i8  0x3a9 v_dot4_u32_u8  0x3aa v_dot8_i32_i4  0x3ab v_dot8_u32_u4  0x3b0 v_pk_fma_f32
    0x3b1 v_pk_mul_f32  0x3b2 v_pk_add_f32  0x3b3 v_pk_mov_b32  0x3be v_mfma_f32_16x16x8_xf32
    0x3bf v_mfma_f32_32x32x4_xf32  0x3c0 v_mfma_f32_32x32x1_2b_f32  0x3c1 v_mfma_f32_16x16x1_4b_f32
    0x3c2 v_mfma_f32_4x4x1_16b_f32  0x3c4 v_mfma_f32_32x32x2_f32  0x3c5 v_mfma_f32_16x16x4_f32
    0x3c8 v_mfma_f32_32x32x4_2b_f16  0x3c9 v_mfma_f32_16x16x4_4b_f16  0x3ca v_mfma_f32_4x4x4_16b_f16
    0x3cc v_mfma_f32_32x32x8_f16  0x3cd v_mfma_f32_16x16x16_f16  0x3d0 v_mfma_i32_32x32x4_2b_i8
    0x3d1 v_mfma_i32_16x16x4_4b_i8  0x3d2 v_mfma_i32_4x4x4_16b_i8  0x3d6 v_mfma_i32_32x32x16_i8
    0x3d7 v_mfma_i32_16x16x32_i8  0x3d8 v_accvgpr_read_b32  0x3d9 v_accvgpr_write_b32
    0x3dd v_mfma_f32_32x32x4_2b_bf16  0x3de v_mfma_f32_16x16x4_4b_bf16  0x3df v_mfma_f32_4x4x4_16b_bf16
    0x3e0 v_mfma_f32_32x32x8_bf16  0x3e1 v_mfma_f32_16x16x16_bf16  0x3e2 v_smfmac_f32_16x16x32_f16
    0x3e4 v_smfmac_f32_32x32x16_f16  0x3e6 v_smfmac_f32_16x16x32_bf16  0x3e8 v_smfmac_f32_32x32x16_bf16
    0x3ea v_smfmac_i32_16x16x64_i8  0x3ec v_smfmac_i32_32x32x32_i8  0x3ee v_mfma_f64_16x16x4_f64
    0x3ef v_mfma_f64_4x4x4_4b_f64  0x3f0 v_mfma_f32_16x16x32_bf8_bf8  0x3f1 v_mfma_f32_16x16x32_bf8_fp8
    0x3f2 v_mfma_f32_16x16x32_fp8_bf8  0x3f3 v_mfma_f32_16x16x32_fp8_fp8  0x3f4 v_mfma_f32_32x32x16_bf8_bf8
    0x3f5 v_mfma_f32_32x32x16_bf8_fp8  0x3f6 v_mfma_f32_32x32x16_fp8_bf8  0x3f7 v_mfma_f32_32x32x16_fp8_fp8
    0x3f8 v_smfmac_f32_16x16x64_bf8_bf8  0x3f9 v_smfmac_f32_16x16x64_bf8_fp8
    0x3fa v_smfmac_f32_16x16x64_fp8_bf8  0x3fb v_smfmac_f32_16x16x64_fp8_fp8
    0x3fc v_smfmac_f32_32x32x32_bf8_bf8  0x3fd v_smfmac_f32_32x32x32_bf8_fp8
    0x3fe v_smfmac_f32_32x32x32_fp8_bf8  0x3ff v_smfmac_f32_32x32x32_fp8_fp8"""),
    "VOP3P": numbered("""
    0x0 v_pk_mad_i16  0x1 v_pk_mul_lo_u16  0x2 v_pk_add_i16  0x3 v_pk_sub_i16  0x4 v_pk_lshlrev_b16
    0x5 v_pk_lshrrev_b16  0x6 v_pk_ashrrev_i16  0x7 v_pk_max_i16  0x8 v_pk_min_i16  0x9 v_pk_mad_u16
    0xa v_pk_add_u16  0xb v_pk_sub_u16  0xc v_pk_max_u16  0xd v_pk_min_u16  0xe v_pk_fma_f16
    0xf v_pk_add_f16  0x10 v_pk_mul_f16  0x11 v_pk_min_f16  0x12 v_pk_max_f16  0x20 v_fma_mix_f32
    0x21 v_fma_mixlo_f16  0x22 v_fma_mixhi_f16  0x23 v_dot2_f32_f16  0x26 v_dot2_i32_i16
    0x27 v_dot2_u32_u16  0x28 v_dot4_i32_i8  0x29 v_dot4_u32_u8  0x2a v_dot8_i32_i4  0x2b v_dot8_u32_u4
    0x30 v_pk_fma_f32  0x31 v_pk_mul_f32  0x32 v_pk_add_f32  0x33 v_pk_mov_b32  0x3e v_mfma_f32_16x16x8_xf32
    0x3f v_mfma_f32_32x32x4_xf32  0x40 v_mfma_f32_32x32x1_2b_f32  0x41 v_mfma_f32_16x16x1_4b_f32
    0x42 v_mfma_f32_4x4x1_16b_f32  0x44 v_mfma_f32_32x32x2_f32  0x45 v_mfma_f32_16x16x4_f32
    0x48 v_mfma_f32_32x32x4_2b_f16  0x49 v_mfma_f32_16x16x4_4b_f16  0x4a v_mfma_f32_4x4x4_16b_f16
    0x4c v_mfma_f32_32x32x8_f16  0x4d v_mfma_f32_16x16x16_f16  0x50 v_mfma_i32_32x32x4_2b_i8
    0x51 v_mfma_i32_16x16x4_4b_i8  0x52 v_mfma_i32_4x4x4_16b_i8  0x56 v_mfma_i32_32x32x16_i8
    0x57 v_mfma_i32_16x16x32_i8  0x58 v_accvgpr_read_b32  0x59 v_accvgpr_write_b32
    0x5d v_mfma_f32_32x32x4_2b_bf16  0x5e v_mfma_f32_16x16x4_4b_bf16  0x5f v_mfma_f32_4x4x4_16b_bf16
    0x60 v_mfma_f32_32x32x8_bf16  0x61 v_mfma_f32_16x16x16_bf16  0x62 v_smfmac_f32_16x16x32_f16
    0x64 v_smfmac_f32_32x32x16_f16  0x66 v_smfmac_f32_16x16x32_bf16  0x68 v_smfmac_f32_32x32x16_bf16
    0x6a v_smfmac_i32_16x16x64_i8  0x6c v_smfmac_i32_32x32x32_i8  0x6e v_mfma_f64_16x16x4_f64
    0x6f v_mfma_f64_4x4x4_4b_f64  0x70 v_mfma_f32_16x16x32_bf8_bf8  0x71 v_mfma_f32_16x16x32_bf8_fp8
    0x72 v_mfma_f32_16x16x32_fp8_bf8  0x73 v_mfma_f32_16x16x32_fp8_fp8  0x74 v_mfma_f32_32x32x16_bf8_bf8
    0x75 v_mfma_f32_32x32x16_bf8_fp8  0x76 v_mfma_f32_32x32x16_fp8_bf8  0x77 v_mfma_f32_32x32x16_fp8_fp8
    0x78 v_smfmac_f32_16x16x64_bf8_bf8  0x79 v_smfmac_f32_16x16x64_bf8_fp8
    0x7a v_smfmac_f32_16x16x64_fp8_bf8  0x7b v_smfmac_f32_16x16x64_fp8_fp8
    0x7c v_smfmac_f32_32x32x32_bf8_bf8  0x7d v_smfmac_f32_32x32x32_bf8_fp8
    0x7e v_smfmac_f32_32x32x32_fp8_bf8  0x7f v_smfmac_f32_32x32x32_fp8_fp8"""),
    "SMEM": numbered("""
    0x0 s_load_dword  0x1 s_load_dwordx2  0x2 s_load_dwordx4  0x3 s_load_dwordx8  0x4 s_load_dwordx16
    0x5 s_scratch_load_dword  0x6 s_scratch_load_dwordx2  0x7 s_scratch_load_dwordx4
    0x8 s_buffer_load_dword  0x9 s_buffer_load_dwordx2  0xa s_buffer_load_dwordx4  0xb s_buffer_load_dwordx8
    0xc s_buffer_load_dwordx16  0x10 s_store_dword  0x11 s_store_dwordx2  0x12 s_store_dwordx4
    0x15 s_scratch_store_dword  0x16 s_scratch_store_dwordx2  0x17 s_scratch_store_dwordx4
    0x18 s_buffer_store_dword  0x19 s_buffer_store_dwordx2  0x1a s_buffer_store_dwordx4  0x20 s_dcache_inv
    0x21 s_dcache_wb  0x22 s_dcache_inv_vol  0x23 s_dcache_wb_vol  0x24 s_memtime  0x25 s_memrealtime
    0x26 s_atc_probe  0x27 s_atc_probe_buffer  0x28 s_dcache_discard  0x29 s_dcache_discard_x2
    0x40 s_buffer_atomic_swap  0x41 s_buffer_atomic_cmpswap  0x42 s_buffer_atomic_add
    0x43 s_buffer_atomic_sub  0x44 s_buffer_atomic_smin  0x45 s_buffer_atomic_umin
    0x46 s_buffer_atomic_smax  0x47 s_buffer_atomic_umax  0x48 s_buffer_atomic_and  0x49 s_buffer_atomic_or
    0x4a s_buffer_atomic_xor  0x4b s_buffer_atomic_inc  0x4c s_buffer_atomic_dec
    0x60 s_buffer_atomic_swap_x2  0x61 s_buffer_atomic_cmpswap_x2  0x62 s_buffer_atomic_add_x2
    0x63 s_buffer_atomic_sub_x2  0x64 s_buffer_atomic_smin_x2  0x65 s_buffer_atomic_umin_x2
    0x66 s_buffer_atomic_smax_x2  0x67 s_buffer_atomic_umax_x2  0x68 s_buffer_atomic_and_x2
    0x69 s_buffer_atomic_or_x2  0x6a s_buffer_atomic_xor_x2  0x6b s_buffer_atomic_inc_x2
    0x6c s_buffer_atomic_dec_x2  0x80 s_atomic_swap  0x81 s_atomic_cmpswap  0x82 s_atomic_add
    0x83 s_atomic_sub  0x84 s_atomic_smin  0x85 s_atomic_umin  0x86 s_atomic_smax  0x87 s_atomic_umax
    0x88 s_atomic_and  0x89 s_atomic_or  0x8a s_atomic_xor  0x8b s_atomic_inc  0x8c s_atomic_dec
    0xa0 s_atomic_swap_x2  0xa1 s_atomic_cmpswap_x2  0xa2 s_atomic_add_x2  0xa3 s_atomic_sub_x2
    0xa4 s_atomic_smin_x2  0xa5 s_atomic_umin_x2  0xa6 s_atomic_smax_x2  0xa7 s_atomic_umax_x2
    0xa8 s_atomic_and_x2  0xa9 s_atomic_or_x2  0xaa s_atomic_xor_x2  0xab s_atomic_inc_x2
    0xac s_atomic_dec_x2"""),
    "DS": numbered("""
    0x0 ds_add_u32  0x1 ds_sub_u32  0x2 ds_rsub_u32  0x3 ds_inc_u32  0x4 ds_dec_u32  0x5 ds_min_i32
    0x6 ds_max_i32  0x7 ds_min_u32  0x8 ds_max_u32  0x9 ds_and_b32  0xa ds_or_b32  0xb ds_xor_b32
    0xc ds_mskor_b32  0xd ds_write_b32  0xe ds_write2_b32  0xf ds_write2st64_b32  0x10 ds_cmpst_b32
    0x11 ds_cmpst_f32  0x12 ds_min_f32  0x13 ds_max_f32  0x14 ds_nop  0x15 ds_add_f32  0x17 ds_pk_add_f16
    0x18 ds_pk_add_bf16  0x1d ds_write_addtid_b32  0x1e ds_write_b8  0x1f ds_write_b16  0x20 ds_add_rtn_u32
    0x21 ds_sub_rtn_u32  0x22 ds_rsub_rtn_u32  0x23 ds_inc_rtn_u32  0x24 ds_dec_rtn_u32  0x25 ds_min_rtn_i32
    0x26 ds_max_rtn_i32  0x27 ds_min_rtn_u32  0x28 ds_max_rtn_u32  0x29 ds_and_rtn_b32  0x2a ds_or_rtn_b32
    0x2b ds_xor_rtn_b32  0x2c ds_mskor_rtn_b32  0x2d ds_wrxchg_rtn_b32  0x2e ds_wrxchg2_rtn_b32
    0x2f ds_wrxchg2st64_rtn_b32  0x30 ds_cmpst_rtn_b32  0x31 ds_cmpst_rtn_f32  0x32 ds_min_rtn_f32
    0x33 ds_max_rtn_f32  0x34 ds_wrap_rtn_b32  0x35 ds_add_rtn_f32  0x36 ds_read_b32  0x37 ds_read2_b32
    0x38 ds_read2st64_b32  0x39 ds_read_i8  0x3a ds_read_u8  0x3b ds_read_i16  0x3c ds_read_u16
    0x3d ds_swizzle_b32  0x3e ds_permute_b32  0x3f ds_bpermute_b32  0x40 ds_add_u64  0x41 ds_sub_u64
    0x42 ds_rsub_u64  0x43 ds_inc_u64  0x44 ds_dec_u64  0x45 ds_min_i64  0x46 ds_max_i64  0x47 ds_min_u64
    0x48 ds_max_u64  0x49 ds_and_b64  0x4a ds_or_b64  0x4b ds_xor_b64  0x4c ds_mskor_b64  0x4d ds_write_b64
    0x4e ds_write2_b64  0x4f ds_write2st64_b64  0x50 ds_cmpst_b64  0x51 ds_cmpst_f64  0x52 ds_min_f64
    0x53 ds_max_f64  0x54 ds_write_b8_d16_hi  0x55 ds_write_b16_d16_hi  0x56 ds_read_u8_d16
    0x57 ds_read_u8_d16_hi  0x58 ds_read_i8_d16  0x59 ds_read_i8_d16_hi  0x5a ds_read_u16_d16
    0x5b ds_read_u16_d16_hi  0x5c ds_add_f64  0x60 ds_add_rtn_u64  0x61 ds_sub_rtn_u64  0x62 ds_rsub_rtn_u64
    0x63 ds_inc_rtn_u64  0x64 ds_dec_rtn_u64  0x65 ds_min_rtn_i64  0x66 ds_max_rtn_i64  0x67 ds_min_rtn_u64
    0x68 ds_max_rtn_u64  0x69 ds_and_rtn_b64  0x6a ds_or_rtn_b64  0x6b ds_xor_rtn_b64  0x6c ds_mskor_rtn_b64
    0x6d ds_wrxchg_rtn_b64  0x6e ds_wrxchg2_rtn_b64  0x6f ds_wrxchg2st64_rtn_b64  0x70 ds_cmpst_rtn_b64
    0x71 ds_cmpst_rtn_f64  0x72 ds_min_rtn_f64  0x73 ds_max_rtn_f64  0x76 ds_read_b64  0x77 ds_read2_b64
    0x78 ds_read2st64_b64  0x7c ds_add_rtn_f64  0x7e ds_condxchg32_rtn_b64  0xb6 ds_read_addtid_b32
    0x98 ds_gws_sema_release_all  0x99 ds_gws_init  0x9a ds_gws_sema_v
    0x9b ds_gws_sema_br  0x9c ds_gws_sema_p  0x9d ds_gws_barrier
    0xb7 ds_pk_add_rtn_f16  0xb8 ds_pk_add_rtn_bf16  0xbd ds_consume  0xbe ds_append  0xde ds_write_b96
    0xdf ds_write_b128  0xfe ds_read_b96  0xff ds_read_b128"""),
    "FLAT": numbered("""
    0x10 flat_load_ubyte  0x11 flat_load_sbyte  0x12 flat_load_ushort  0x13 flat_load_sshort
    0x14 flat_load_dword  0x15 flat_load_dwordx2  0x16 flat_load_dwordx3  0x17 flat_load_dwordx4
    0x18 flat_store_byte  0x19 flat_store_byte_d16_hi  0x1a flat_store_short  0x1b flat_store_short_d16_hi
    0x1c flat_store_dword  0x1d flat_store_dwordx2  0x1e flat_store_dwordx3  0x1f flat_store_dwordx4
    0x20 flat_load_ubyte_d16  0x21 flat_load_ubyte_d16_hi  0x22 flat_load_sbyte_d16
    0x23 flat_load_sbyte_d16_hi  0x24 flat_load_short_d16  0x25 flat_load_short_d16_hi
    0x40 flat_atomic_swap  0x41 flat_atomic_cmpswap  0x42 flat_atomic_add  0x43 flat_atomic_sub
    0x44 flat_atomic_smin  0x45 flat_atomic_umin  0x46 flat_atomic_smax  0x47 flat_atomic_umax
    0x48 flat_atomic_and  0x49 flat_atomic_or  0x4a flat_atomic_xor  0x4b flat_atomic_inc
    0x4c flat_atomic_dec  0x4d flat_atomic_add_f32  0x4e flat_atomic_pk_add_f16  0x4f flat_atomic_add_f64
    0x50 flat_atomic_min_f64  0x51 flat_atomic_max_f64  0x52 flat_atomic_pk_add_bf16
    0x60 flat_atomic_swap_x2  0x61 flat_atomic_cmpswap_x2  0x62 flat_atomic_add_x2  0x63 flat_atomic_sub_x2
    0x64 flat_atomic_smin_x2  0x65 flat_atomic_umin_x2  0x66 flat_atomic_smax_x2  0x67 flat_atomic_umax_x2
    0x68 flat_atomic_and_x2  0x69 flat_atomic_or_x2  0x6a flat_atomic_xor_x2  0x6b flat_atomic_inc_x2
    0x6c flat_atomic_dec_x2"""),
    "SCRATCH": numbered("""
    0x10 scratch_load_ubyte  0x11 scratch_load_sbyte  0x12 scratch_load_ushort  0x13 scratch_load_sshort
    0x14 scratch_load_dword  0x15 scratch_load_dwordx2  0x16 scratch_load_dwordx3  0x17 scratch_load_dwordx4
    0x18 scratch_store_byte  0x19 scratch_store_byte_d16_hi  0x1a scratch_store_short
    0x1b scratch_store_short_d16_hi  0x1c scratch_store_dword  0x1d scratch_store_dwordx2
    0x1e scratch_store_dwordx3  0x1f scratch_store_dwordx4  0x20 scratch_load_ubyte_d16
    0x21 scratch_load_ubyte_d16_hi  0x22 scratch_load_sbyte_d16  0x23 scratch_load_sbyte_d16_hi
    0x24 scratch_load_short_d16  0x25 scratch_load_short_d16_hi  0x26 scratch_load_lds_ubyte
    0x27 scratch_load_lds_sbyte  0x28 scratch_load_lds_ushort  0x29 scratch_load_lds_sshort
    0x2a scratch_load_lds_dword"""),
    "GLOBAL": numbered("""
    0x10 global_load_ubyte  0x11 global_load_sbyte  0x12 global_load_ushort  0x13 global_load_sshort
    0x14 global_load_dword  0x15 global_load_dwordx2  0x16 global_load_dwordx3  0x17 global_load_dwordx4
    0x18 global_store_byte  0x19 global_store_byte_d16_hi  0x1a global_store_short
    0x1b global_store_short_d16_hi  0x1c global_store_dword  0x1d global_store_dwordx2
    0x1e global_store_dwordx3  0x1f global_store_dwordx4  0x20 global_load_ubyte_d16
    0x21 global_load_ubyte_d16_hi  0x22 global_load_sbyte_d16  0x23 global_load_sbyte_d16_hi
    0x24 global_load_short_d16  0x25 global_load_short_d16_hi  0x26 global_load_lds_ubyte
    0x27 global_load_lds_sbyte  0x28 global_load_lds_ushort  0x29 global_load_lds_sshort
    0x2a global_load_lds_dword  0x40 global_atomic_swap  0x41 global_atomic_cmpswap  0x42 global_atomic_add
    0x43 global_atomic_sub  0x44 global_atomic_smin  0x45 global_atomic_umin  0x46 global_atomic_smax
    0x47 global_atomic_umax  0x48 global_atomic_and  0x49 global_atomic_or  0x4a global_atomic_xor
    0x4b global_atomic_inc  0x4c global_atomic_dec  0x4d global_atomic_add_f32
    0x4e global_atomic_pk_add_f16  0x4f global_atomic_add_f64  0x50 global_atomic_min_f64
    0x51 global_atomic_max_f64  0x52 global_atomic_pk_add_bf16  0x60 global_atomic_swap_x2
    0x61 global_atomic_cmpswap_x2  0x62 global_atomic_add_x2  0x63 global_atomic_sub_x2
    0x64 global_atomic_smin_x2  0x65 global_atomic_umin_x2  0x66 global_atomic_smax_x2
    0x67 global_atomic_umax_x2  0x68 global_atomic_and_x2  0x69 global_atomic_or_x2
    0x6a global_atomic_xor_x2  0x6b global_atomic_inc_x2  0x6c global_atomic_dec_x2"""),
    "MUBUF": numbered("""
    0x0 buffer_load_format_x  0x1 buffer_load_format_xy  0x2 buffer_load_format_xyz
    0x3 buffer_load_format_xyzw  0x4 buffer_store_format_x  0x5 buffer_store_format_xy
    0x6 buffer_store_format_xyz  0x7 buffer_store_format_xyzw  0x8 buffer_load_format_d16_x
    0x9 buffer_load_format_d16_xy  0xa buffer_load_format_d16_xyz  0xb buffer_load_format_d16_xyzw
    0xc buffer_store_format_d16_x  0xd buffer_store_format_d16_xy  0xe buffer_store_format_d16_xyz
    0xf buffer_store_format_d16_xyzw  0x10 buffer_load_ubyte  0x11 buffer_load_sbyte
    0x12 buffer_load_ushort  0x13 buffer_load_sshort  0x14 buffer_load_dword  0x15 buffer_load_dwordx2
    0x16 buffer_load_dwordx3  0x17 buffer_load_dwordx4  0x18 buffer_store_byte
    0x19 buffer_store_byte_d16_hi  0x1a buffer_store_short  0x1b buffer_store_short_d16_hi
    0x1c buffer_store_dword  0x1d buffer_store_dwordx2  0x1e buffer_store_dwordx3  0x1f buffer_store_dwordx4
    0x20 buffer_load_ubyte_d16  0x21 buffer_load_ubyte_d16_hi  0x22 buffer_load_sbyte_d16
    0x23 buffer_load_sbyte_d16_hi  0x24 buffer_load_short_d16  0x25 buffer_load_short_d16_hi
    0x26 buffer_load_format_d16_hi_x  0x27 buffer_store_format_d16_hi_x  0x28 buffer_wbl2  0x29 buffer_inv
    0x40 buffer_atomic_swap  0x41 buffer_atomic_cmpswap  0x42 buffer_atomic_add  0x43 buffer_atomic_sub
    0x44 buffer_atomic_smin  0x45 buffer_atomic_umin  0x46 buffer_atomic_smax  0x47 buffer_atomic_umax
    0x48 buffer_atomic_and  0x49 buffer_atomic_or  0x4a buffer_atomic_xor  0x4b buffer_atomic_inc
    0x4c buffer_atomic_dec  0x4d buffer_atomic_add_f32  0x4e buffer_atomic_pk_add_f16
    0x4f buffer_atomic_add_f64  0x50 buffer_atomic_min_f64  0x51 buffer_atomic_max_f64
    0x60 buffer_atomic_swap_x2  0x61 buffer_atomic_cmpswap_x2  0x62 buffer_atomic_add_x2
    0x63 buffer_atomic_sub_x2  0x64 buffer_atomic_smin_x2  0x65 buffer_atomic_umin_x2
    0x66 buffer_atomic_smax_x2  0x67 buffer_atomic_umax_x2  0x68 buffer_atomic_and_x2
    0x69 buffer_atomic_or_x2  0x6a buffer_atomic_xor_x2  0x6b buffer_atomic_inc_x2
    0x6c buffer_atomic_dec_x2"""),
}
