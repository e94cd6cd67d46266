"""What stands in front of every kernel for the CPU: types, and functions that compilers differ in.

FMA_, SQRT_ and TRUNC_ are of one number; VECTOR_fma and so on say that the compiler has a builtin for whole
vectors. float16 is held as the integer of its bits, because compilers differ in what they do with it: gcc
compares halves by a call to its library, and both do so for conversions where the processor has none. gcc
gets the processor's own instruction, other processors arithmetic on the bits.
"""

PRELUDE = """\
typedef signed char i8; typedef short i16; typedef int i32; typedef long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long u64;
typedef float f32; typedef double f64;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define FMA_f32(a, b, c) __builtin_fmaf(a, b, c)
#define FMA_f64(a, b, c) __builtin_fma(a, b, c)
#if __has_builtin(__builtin_elementwise_fma)
#define VECTOR_fma 1
#endif
#else
#define FMA_f32(a, b, c) ((a) * (b) + (c))
#define FMA_f64(a, b, c) ((a) * (b) + (c))
#endif
#define SQRT_f32(a) __builtin_sqrtf(a)
#define SQRT_f64(a) __builtin_sqrt(a)
#if __has_builtin(__builtin_elementwise_sqrt)
#define VECTOR_sqrt 1
#endif
#if defined(__SSE4_1__) || defined(__aarch64__)
#define TRUNC_f32(a) __builtin_truncf(a)
#define TRUNC_f64(a) __builtin_trunc(a)
#if __has_builtin(__builtin_elementwise_trunc)
#define VECTOR_trunc 1
#endif
#else
static inline f32 TRUNC_f32(f32 a) {
  union { f32 f; u32 u; } x = { .f = a }, t;
  if ((x.u & 0x7fffffffu) >= 0x4b000000u) return a;
  t.f = (f32)(i32)a;
  t.u |= x.u & 0x80000000u;
  return t.f;
}
static inline f64 TRUNC_f64(f64 a) {
  union { f64 f; u64 u; } x = { .f = a }, t;
  if ((x.u & ~(1UL << 63)) >= 0x4330000000000000UL) return a;
  t.f = (f64)(i64)a;
  t.u |= x.u & (1UL << 63);
  return t.f;
}
#endif
#if defined(__F16C__) && !defined(__clang__)
typedef short half_bits __attribute__((vector_size(16)));
typedef f32 four_floats __attribute__((vector_size(16)));
static inline f32 f32_of_f16(u16 a) { return __builtin_ia32_vcvtph2ps((half_bits){a})[0]; }
static inline u16 f16_of_f32(f32 a) { return __builtin_ia32_vcvtps2ph((four_floats){a}, 0)[0]; }
#elif defined(__F16C__) || defined(__aarch64__)
static inline f32 f32_of_f16(u16 a) { return ((union { u16 a; _Float16 b; }){ .a = a }).b; }
static inline u16 f16_of_f32(f32 a) { return ((union { _Float16 a; u16 b; }){ .a = (_Float16)a }).b; }
#ifdef __clang__
#define VECTOR_half 1
#endif
#else
static inline f32 f32_of_f16(u16 a) {
  union { f32 f; u32 u; } x = { .u = (u32)(a & 0x7fff) << 13 };
  if (x.u >= 0x0f800000u) x.u |= 0x7f800000u;
  else x.f *= 0x1p112f;
  x.u |= (u32)(a & 0x8000) << 16;
  return x.f;
}
static inline u16 f16_of_f32(f32 a) {
  union { f32 f; u32 u; } x = { .f = a };
  u16 sign = (x.u >> 16) & 0x8000;
  x.u &= 0x7fffffffu;
  if (x.u > 0x7f800000u) return sign | 0x7e00;
  if (x.u >= 0x477ff000u) return sign | 0x7c00;
  if (x.u >= 0x38800000u) return sign | ((x.u - 0x38000000u + 0xfff + ((x.u >> 13) & 1)) >> 13);
  x.f += 0.5f;
  return sign | (x.u - 0x3f000000u);
}
#endif
"""
