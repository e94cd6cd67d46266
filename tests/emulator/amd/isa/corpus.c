// Small kernels, compiled for the card and for the host: the host's results are what the emulated card must give.
// ID is the number of the work item; on the host a loop sets it. Every kernel reads in0, in1, in2 and writes out, arrays of
// whatever type it likes.
typedef _Float16 half;
typedef __bf16 bf16;
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned u32; typedef long i64; typedef unsigned long u64;
typedef half half2 __attribute__((ext_vector_type(2)));
typedef short short2v __attribute__((ext_vector_type(2)));
typedef unsigned short ushort2v __attribute__((ext_vector_type(2)));
typedef float float4v __attribute__((ext_vector_type(4)));
#ifdef __AMDGCN__
#define KERNEL(name) __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(1, 256))) void name
#define ID ((int)(__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x()))
#else
static int ID;
#define KERNEL(name) void name
void set_id(int id) { ID = id; }
// the compiler's helper for double -> half: to float with the last bit set where anything was lost, then to half
half __truncdfhf2(double x) {
  float near = (float)x;
  u32 pattern = __builtin_bit_cast(u32, near);
  if (near != x && x == x) {
    if (__builtin_fabs((double)near) > __builtin_fabs(x)) pattern--;
    near = __builtin_bit_cast(float, pattern | 1);
  }
  return (half)near;
}
#endif

#define UNARY(name, from, to, expression) \
  KERNEL(name)(to *out, const from *in0) { from x = in0[ID]; out[ID] = (to)(expression); }
#define BINARY(name, from, to, expression) \
  KERNEL(name)(to *out, const from *in0, const from *in1) { from x = in0[ID], y = in1[ID]; out[ID] = (to)(expression); }
#define TERNARY(name, from, to, expression) \
  KERNEL(name)(to *out, const from *in0, const from *in1, const from *in2) { \
    from x = in0[ID], y = in1[ID], z = in2[ID]; out[ID] = (to)(expression); }

// -- floats: arithmetic
#define FLOAT_KERNELS(t, suffix) \
  BINARY(add_##suffix, t, t, x + y) BINARY(sub_##suffix, t, t, x - y) BINARY(mul_##suffix, t, t, x * y) \
  BINARY(div_##suffix, t, t, x / y) BINARY(less_##suffix, t, i32, (x < y) + 2 * (x <= y) + 4 * (x == y) + 8 * (x != y)) \
  BINARY(order_##suffix, t, i32, __builtin_isunordered(x, y) + 2 * !(x > y) + 4 * !(x >= y) + 8 * __builtin_islessgreater(x, y)) \
  BINARY(choose_##suffix, t, t, x > y ? x : -y) UNARY(negate_##suffix, t, t, -x)
FLOAT_KERNELS(float, f32)
FLOAT_KERNELS(double, f64)
FLOAT_KERNELS(half, f16)
BINARY(min_f32, float, float, __builtin_fminf(x, y))
BINARY(max_f32, float, float, __builtin_fmaxf(x, y))
BINARY(min_f64, double, double, __builtin_fmin(x, y))
BINARY(max_f64, double, double, __builtin_fmax(x, y))
TERNARY(fma_f32, float, float, __builtin_fmaf(x, y, z))
TERNARY(fma_negated_f32, float, float, __builtin_fmaf(-x, __builtin_fabsf(y), -z))
TERNARY(fma_f64, double, double, __builtin_fma(x, y, z))
TERNARY(max3_f32, float, float, __builtin_fmaxf(__builtin_fmaxf(x, y), z))
UNARY(sqrt_f32, float, float, __builtin_sqrtf(x))
UNARY(sqrt_f64, double, double, __builtin_sqrt(x))
UNARY(floor_f32, float, float, __builtin_floorf(x))
UNARY(ceil_f32, float, float, __builtin_ceilf(x))
UNARY(trunc_f32, float, float, __builtin_truncf(x))
UNARY(rint_f32, float, float, __builtin_rintf(x))
UNARY(round_f32, float, float, __builtin_roundf(x))
UNARY(floor_f64, double, double, __builtin_floor(x))
UNARY(ceil_f64, double, double, __builtin_ceil(x))
UNARY(trunc_f64, double, double, __builtin_trunc(x))
UNARY(rint_f64, double, double, __builtin_rint(x))
UNARY(abs_f32, float, float, __builtin_fabsf(x))
BINARY(copysign_f32, float, float, __builtin_copysignf(x, y))
KERNEL(ldexp_f32)(float *out, const float *in0, const i32 *in1) { out[ID] = __builtin_ldexpf(in0[ID], in1[ID]); }
KERNEL(ldexp_f64)(double *out, const double *in0, const i32 *in1) { out[ID] = __builtin_ldexp(in0[ID], in1[ID]); }
UNARY(class_f32, float, i32, __builtin_isnan(x) + 2 * __builtin_isinf(x) + 4 * __builtin_isnormal(x) + 8 * __builtin_signbit(x))
UNARY(class_f64, double, i32, __builtin_isnan(x) + 2 * !!__builtin_isinf(x) + 4 * __builtin_isnormal(x))
UNARY(exp2_f32, float, float, __builtin_exp2f(x))
UNARY(log2_f32, float, float, __builtin_log2f(x))
UNARY(exp_f32, float, float, __builtin_expf(x))
UNARY(log_f32, float, float, __builtin_logf(x))

// -- conversions
UNARY(f32_from_f16, half, float, x)
UNARY(f16_from_f32, float, half, x)
UNARY(f32_from_f64, double, float, x)
UNARY(f64_from_f32, float, double, x)
UNARY(f32_from_bf16, bf16, float, x)
#ifdef __AMDGCN__  // without the host's instructions for them: numpy says what they must give
UNARY(f16_from_f64, double, half, x)
UNARY(bf16_from_f32, float, bf16, x)
#endif
UNARY(f32_from_i32, i32, float, x)
UNARY(f32_from_u32, u32, float, x)
UNARY(f32_from_i64, i64, float, x)
UNARY(f32_from_u64, u64, float, x)
UNARY(f64_from_i32, i32, double, x)
UNARY(f64_from_u32, u32, double, x)
UNARY(f64_from_i64, i64, double, x)
UNARY(f16_from_i16, i16, half, x)
UNARY(f16_from_u16, u16, half, x)
UNARY(f32_from_u8, u8, float, x)
UNARY(f32_from_i8, i8, float, x)
UNARY(i32_from_f32, float, i32, x > -2e9f && x < 2e9f ? x : 7)
UNARY(u32_from_f32, float, u32, x > -1.0f && x < 4e9f ? x : 7)
UNARY(i64_from_f32, float, i64, x > -9e18f && x < 9e18f ? x : 7)
UNARY(i32_from_f64, double, i32, x > -2e9 && x < 2e9 ? x : 7)
UNARY(u32_from_f64, double, u32, x > -1.0 && x < 4e9 ? x : 7)
UNARY(i64_from_f64, double, i64, x > -9e18 && x < 9e18 ? x : 7)
UNARY(i16_from_f16, half, i16, x > -30000 && x < 30000 ? x : 7)
UNARY(u8_from_u32, u32, u8, x)
UNARY(i64_from_i8, i8, i64, x)
UNARY(u64_from_u16, u16, u64, x)
UNARY(bits_from_f32, float, u32, __builtin_bit_cast(u32, x))

// -- integers
#define INTEGER_KERNELS(t, u, suffix, width) \
  BINARY(add_##suffix, t, t, (u)x + (u)y) BINARY(sub_##suffix, t, t, (u)x - (u)y) BINARY(mul_##suffix, t, t, (u64)x * (u64)y) \
  BINARY(logic_##suffix, t, t, (x & y) ^ (x | ~y)) BINARY(shl_##suffix, t, t, (u)x << (y & (width - 1))) \
  BINARY(shr_##suffix, t, t, x >> (y & (width - 1))) BINARY(less_##suffix, t, i32, (x < y) + 2 * (x <= y) + 4 * (x == y)) \
  BINARY(min_##suffix, t, t, x < y ? x : y) BINARY(max_##suffix, t, t, x > y ? x : y) \
  BINARY(div_##suffix, t, t, y == 0 || (t)(y + 1) == 0 ? x : x / y) BINARY(rem_##suffix, t, t, y == 0 || (t)(y + 1) == 0 ? x : x % y)
INTEGER_KERNELS(i8, u8, i8, 8)
INTEGER_KERNELS(u8, u8, u8, 8)
INTEGER_KERNELS(i16, u16, i16, 16)
INTEGER_KERNELS(u16, u16, u16, 16)
INTEGER_KERNELS(i32, u32, i32, 32)
INTEGER_KERNELS(u32, u32, u32, 32)
INTEGER_KERNELS(i64, u64, i64, 64)
INTEGER_KERNELS(u64, u64, u64, 64)
BINARY(mulhi_u32, u32, u32, ((u64)x * y) >> 32)
BINARY(mulhi_i32, i32, i32, ((i64)x * y) >> 32)
BINARY(mulhi_u64, u64, u64, (unsigned __int128)x * y >> 64)
TERNARY(mad_u64, u32, u64, (u64)x * y + ((u64)z << 32 | x))
TERNARY(mad24, u32, u32, (x & 0xffffff) * (y & 0xffffff) + z)
TERNARY(add3, u32, u32, x + y + z)
TERNARY(shift_add, u32, u32, (x << (y & 31)) + z)
TERNARY(and_or, u32, u32, (x & y) | z)
TERNARY(xor3, u32, u32, x ^ y ^ z)
TERNARY(select_bits, u32, u32, (x & y) | (~x & z))
TERNARY(median_i32, i32, i32, (x > y ? x : y) < z ? (x > y ? x : y) : ((x < y ? x : y) > z ? (x < y ? x : y) : z))
UNARY(popcount_u32, u32, u32, __builtin_popcount(x))
UNARY(popcount_u64, u64, u32, __builtin_popcountl(x))
UNARY(clz_u32, u32, u32, x ? __builtin_clz(x) : 32)
UNARY(ctz_u32, u32, u32, x ? __builtin_ctz(x) : 32)
UNARY(clz_u64, u64, u32, x ? __builtin_clzl(x) : 64)
UNARY(ctz_u64, u64, u32, x ? __builtin_ctzl(x) : 64)
UNARY(reverse_u32, u32, u32, __builtin_bitreverse32(x))
UNARY(swap_u32, u32, u32, __builtin_bswap32(x))
UNARY(swap_u64, u64, u64, __builtin_bswap64(x))
BINARY(rotate_u32, u32, u32, (x << (y & 31)) | (x >> (-y & 31)))
BINARY(rotate_u64, u64, u64, (x << (y & 63)) | (x >> (-y & 63)))
UNARY(field_u32, u32, u32, (x >> 5) & 0x7ff)
UNARY(field_i32, i32, i32, (i32)((u32)x << 9) >> 21)
UNARY(sign_extend_8, i32, i32, (i8)x)
UNARY(abs_i32, i32, i32, x < 0 ? 0u - (u32)x : x)
BINARY(saturate_i16, i32, i16, x > 32767 ? 32767 : x < -32768 ? -32768 : x)
BINARY(difference_u8, u32, u32, (x & 255) > (y & 255) ? (x & 255) - (y & 255) : (y & 255) - (x & 255))

// -- several at once
BINARY(pk_add_f16, half2, half2, x + y)
BINARY(pk_mul_f16, half2, half2, x * y)
TERNARY(pk_fma_f16, half2, half2, __builtin_elementwise_fma(x, y, z))
BINARY(pk_max_f16, half2, half2, __builtin_elementwise_max(x, y))
BINARY(pk_add_i16, ushort2v, ushort2v, x + y)
BINARY(pk_mul_i16, ushort2v, ushort2v, x * y)
BINARY(pk_shift_i16, ushort2v, ushort2v, x << (y & 15))
BINARY(pk_shift_right_i16, short2v, short2v, x >> (y & 15))
BINARY(pk_min_i16, short2v, short2v, __builtin_elementwise_min(x, y))
BINARY(pk_max_u16, ushort2v, ushort2v, __builtin_elementwise_max(x, y))
BINARY(vector_f32, float4v, float4v, x * y + x)
TERNARY(mix_f32, half, float, __builtin_fmaf((float)x, (float)y, (float)z))
KERNEL(dot_i8)(i32 *out, const u32 *in0, const u32 *in1) {
  i32 total = 0;
  for (int n = 0; n < 4; n++) total += (i8)(in0[ID] >> 8 * n) * (i8)(in1[ID] >> 8 * n);
  out[ID] = total;
}

// -- control flow and memory
KERNEL(collatz)(u32 *out, const u32 *in0) {
  u32 x = (in0[ID] & 0xffff) + 1, steps = 0;
  while (x != 1 && steps < 200) { x = x & 1 ? 3 * x + 1 : x >> 1; steps++; }
  out[ID] = steps;
}
KERNEL(nested)(u32 *out, const u32 *in0) {
  u32 x = in0[ID], total = 0;
  for (u32 i = 0; i < (x & 15); i++) {
    if (x >> i & 1) { for (u32 j = 0; j <= i; j++) { total += j * x; if (total & 64) break; } }
    else if (i & 2) continue;
    total ^= i << 3;
  }
  switch (x & 7) { case 0: total += 5; break; case 1: total *= 3; break; case 4: total ^= 9; }
  out[ID] = total;
}
KERNEL(private_array)(u32 *out, const u32 *in0) {
  u32 slots[32];
  for (int i = 0; i < 32; i++) slots[i] = in0[ID] * (i + 1);
  u32 at = in0[ID] & 31, total = 0;
  for (int i = 0; i < 5; i++) { slots[at] += i; total += slots[(at * 7 + i) & 31]; at = total & 31; }
  out[ID] = total;
}
KERNEL(byte_memory)(u8 *out, const u8 *in0, const i8 *in1, const u16 *in2) {
  out[ID] = in0[ID] + (in1[ID] >> 1) + (in2[ID] >> 3);
}
KERNEL(unpack_nibbles)(float *out, const u8 *in0, const half *in1) {
  int id = ID;
  out[id] = (float)(((in0[id >> 1] >> (id & 1) * 4) & 15) - 8) * (float)in1[id >> 5];
}
KERNEL(matmul)(float *out, const float *in0, const float *in1) {
  int row = ID / 16, column = ID % 16;
  float total = 0;
  for (int k = 0; k < 16; k++) total = __builtin_fmaf(in0[(row & 15) * 16 + k], in1[k * 16 + column], total);
  out[ID] = total;
}
KERNEL(threefry)(u64 *out, const u64 *in0) {
  u32 key0 = (u32)in0[ID], key1 = in0[ID] >> 32, key2 = key0 ^ key1 ^ 0x1bd11bda, x0 = ID + key0, x1 = key1;
  const u32 rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  for (int i = 0; i < 20; i++) {
    x0 += x1; u32 r = rotations[i & 7]; x1 = (x1 << r | x1 >> (32 - r)) ^ x0;
    if (i % 4 == 3) { u32 n = i / 4 + 1; x0 += n % 3 == 0 ? key0 : n % 3 == 1 ? key1 : key2; x1 += (n % 3 == 0 ? key1 : n % 3 == 1 ? key2 : key0) + n; }
  }
  out[ID] = (u64)x1 << 32 | x0;
}
