// Kernels that use what only the card has: local memory, barriers, atomics, other lanes, matrices. The tests say in Python
// what they must give. One workgroup has 64 work items, except where the name says otherwise.
typedef _Float16 half;
typedef int i32; typedef unsigned u32; typedef long i64; typedef unsigned long u64;
typedef half half16 __attribute__((ext_vector_type(16)));
typedef half half8 __attribute__((ext_vector_type(8)));
typedef half half4 __attribute__((ext_vector_type(4)));
typedef short short16 __attribute__((ext_vector_type(16)));
typedef short short8 __attribute__((ext_vector_type(8)));
typedef short short4 __attribute__((ext_vector_type(4)));
typedef float float8 __attribute__((ext_vector_type(8)));
typedef float float4v __attribute__((ext_vector_type(4)));
typedef int int4v __attribute__((ext_vector_type(4)));
typedef int int8v __attribute__((ext_vector_type(8)));
#define KERNEL(name) __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(1, 256))) void name
#define LDS static __attribute__((address_space(3), loader_uninitialized))
#define LANE ((int)__builtin_amdgcn_workitem_id_x())
#define GROUP ((int)__builtin_amdgcn_workgroup_id_x())
#define ID (GROUP * 64 + LANE)
static inline void barrier(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

LDS float tile[256];
LDS u32 words[64];
LDS u64 longs[64];

KERNEL(reverse)(float *out, const float *in0) {
  tile[LANE] = in0[ID];
  barrier();
  out[ID] = tile[63 - LANE];
}
KERNEL(group_sum)(float *out, const float *in0) {
  tile[LANE] = in0[ID];
  barrier();
  for (int step = 32; step > 0; step >>= 1) {
    if (LANE < step) tile[LANE] += tile[LANE + step];
    barrier();
  }
  if (LANE == 0) out[GROUP] = tile[0];
}
KERNEL(ids)(u32 *out) {
  int x = __builtin_amdgcn_workitem_id_x(), y = __builtin_amdgcn_workitem_id_y(), z = __builtin_amdgcn_workitem_id_z();
  int gx = __builtin_amdgcn_workgroup_id_x(), gy = __builtin_amdgcn_workgroup_id_y(), gz = __builtin_amdgcn_workgroup_id_z();
  out[((gz * 2 + gy) * 2 + gx) * 16 + (z * 2 + y) * 4 + x] = x | y << 4 | z << 8 | gx << 12 | gy << 16 | gz << 20;
}
KERNEL(local_atomics)(u32 *out, const u32 *in0) {
  words[LANE] = LANE == 3 ? 0xffffffff : 0;
  longs[LANE] = 0;
  barrier();
  __scoped_atomic_fetch_add(&words[0], in0[ID], __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
  __scoped_atomic_fetch_max(&words[1], in0[ID], __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
  __scoped_atomic_fetch_xor(&words[2], in0[ID], __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
  __scoped_atomic_fetch_min(&words[3], in0[ID], __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
  __scoped_atomic_fetch_add(&longs[0], (u64)in0[ID] << 20, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
  barrier();
  if (LANE < 4) out[GROUP * 8 + LANE] = words[LANE];
  if (LANE == 4) out[GROUP * 8 + 4] = longs[0];
  if (LANE == 5) out[GROUP * 8 + 5] = longs[0] >> 32;
}
KERNEL(global_atomics)(u32 *out, const u32 *in0) {
  u32 x = in0[ID];
  __scoped_atomic_fetch_add(out + 0, x, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  __scoped_atomic_fetch_max((i32 *)out + 1, (i32)x, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  __scoped_atomic_fetch_or(out + 2, x, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  __scoped_atomic_fetch_add((u64 *)(out + 4), (u64)x << 8, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  u32 expected = 7;
  __scoped_atomic_compare_exchange_n(out + 6, &expected, x, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  __builtin_amdgcn_global_atomic_fadd_f32((__attribute__((address_space(1))) float *)(out + 7), 0.5f);
  out[8 + ID] = __scoped_atomic_fetch_sub(out + 3, 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}
KERNEL(lanes)(u32 *out, const u32 *in0) {
  u32 x = in0[ID];
  out[ID * 8] = __builtin_amdgcn_ds_bpermute(((LANE * 5 + 3) & 31) * 4, x);
  out[ID * 8 + 1] = __builtin_amdgcn_readlane(x, 5);
  out[ID * 8 + 2] = __builtin_amdgcn_readfirstlane(x);
  out[ID * 8 + 3] = __builtin_amdgcn_ds_swizzle(x, 0x041f);
  out[ID * 8 + 4] = __builtin_amdgcn_mbcnt_lo(x, 1);
  out[ID * 8 + 5] = __builtin_amdgcn_update_dpp(77, x, 0x111, 0xf, 0xf, 0);
  out[ID * 8 + 6] = __builtin_amdgcn_update_dpp(77, x, 0x1b, 0xf, 0xf, 1);
  out[ID * 8 + 7] = __builtin_amdgcn_ds_permute(((LANE * 5 + 3) & 31) * 4, x);
}
KERNEL(generic_pointer)(u32 *out, const u32 *in0) {
  u32 mine[4] = {in0[ID], 2, 3, 4};
  u32 *place = in0[ID] & 1 ? mine : out + ID;
  if (!(in0[ID] & 1)) *place = 11;
  *(volatile u32 *)place += 5;
  out[ID] = in0[ID] & 1 ? mine[0] + mine[LANE & 3] : *place;
}
#if defined(__gfx1100__)
KERNEL(wmma_f16)(float *out, const half *in0, const half *in1) {
  half16 a, b;
  for (int k = 0; k < 16; k++) { a[k] = in0[(LANE & 15) * 16 + k]; b[k] = in1[k * 16 + (LANE & 15)]; }
  float8 c;
  for (int i = 0; i < 8; i++) c[i] = i;
  c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c);
  for (int i = 0; i < 8; i++) out[(2 * i + LANE / 16) * 16 + (LANE & 15)] = c[i];
}
KERNEL(wmma_bf16)(float *out, const short *in0, const short *in1) {
  short16 a, b;
  for (int k = 0; k < 16; k++) { a[k] = in0[(LANE & 15) * 16 + k]; b[k] = in1[k * 16 + (LANE & 15)]; }
  float8 c = 0;
  c = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, c);
  for (int i = 0; i < 8; i++) out[(2 * i + LANE / 16) * 16 + (LANE & 15)] = c[i];
}
KERNEL(wmma_i8)(i32 *out, const int *in0, const int *in1) {
  int4v a, b;
  for (int k = 0; k < 4; k++) { a[k] = in0[(LANE & 15) * 4 + k]; b[k] = in1[(LANE & 15) * 4 + k]; }
  int8v c = 0;
  c = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(1, a, 0, b, c, 0);
  for (int i = 0; i < 8; i++) out[(2 * i + LANE / 16) * 16 + (LANE & 15)] = c[i];
}
#elif defined(__gfx1201__)
KERNEL(wmma_f16)(float *out, const half *in0, const half *in1) {
  half8 a, b;
  for (int k = 0; k < 8; k++) { int kk = LANE / 16 * 8 + k; a[k] = in0[(LANE & 15) * 16 + kk]; b[k] = in1[kk * 16 + (LANE & 15)]; }
  float8 c;
  for (int i = 0; i < 8; i++) c[i] = i;
  c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, c);
  for (int i = 0; i < 8; i++) out[(i + LANE / 16 * 8) * 16 + (LANE & 15)] = c[i];
}
KERNEL(wmma_bf16)(float *out, const short *in0, const short *in1) {
  short8 a, b;
  for (int k = 0; k < 8; k++) { int kk = LANE / 16 * 8 + k; a[k] = in0[(LANE & 15) * 16 + kk]; b[k] = in1[kk * 16 + (LANE & 15)]; }
  float8 c = 0;
  c = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(a, b, c);
  for (int i = 0; i < 8; i++) out[(i + LANE / 16 * 8) * 16 + (LANE & 15)] = c[i];
}
#elif defined(__gfx942__)
KERNEL(mfma_f16)(float *out, const half *in0, const half *in1) {
  half4 a, b;
  for (int k = 0; k < 4; k++) { int kk = LANE / 16 * 4 + k; a[k] = in0[(LANE & 15) * 16 + kk]; b[k] = in1[kk * 16 + (LANE & 15)]; }
  float4v c = {0, 1, 2, 3};
  c = __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, 0, 0, 0);
  for (int i = 0; i < 4; i++) out[(LANE / 16 * 4 + i) * 16 + (LANE & 15)] = c[i];
}
KERNEL(mfma_bf16)(float *out, const short *in0, const short *in1) {
  short4 a, b;
  for (int k = 0; k < 4; k++) { int kk = LANE / 16 * 4 + k; a[k] = in0[(LANE & 15) * 16 + kk]; b[k] = in1[kk * 16 + (LANE & 15)]; }
  float4v c = {0, 0, 0, 0};
  c = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, c, 0, 0, 0);
  for (int i = 0; i < 4; i++) out[(LANE / 16 * 4 + i) * 16 + (LANE & 15)] = c[i];
}
#endif
