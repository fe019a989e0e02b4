// Floating-point numbers of 16 bits in kernels, and mathematics. Element types are those that the runtime
// stores: float, double, and Float16 and BFloat16, whose arithmetic is float's.
#pragma once

#include <cstdint>

#include "platforms/cuda/grid/storage.h"
#ifndef __CUDACC__
#include <cmath>
#include <cstring>

#include "runtime/core/float_formats.h"
#endif

namespace sinter::cuda {

// ---- conversions, half to even

#ifdef __CUDACC__
SINTER_DEVICE float widen(Float16 v) { return __half2float(__ushort_as_half(v.bits)); }
SINTER_DEVICE float widen(BFloat16 v) { return __uint_as_float(static_cast<uint32_t>(v.bits) << 16); }
SINTER_DEVICE void narrow(float v, Float16* to) { to->bits = __half_as_ushort(__float2half_rn(v)); }
SINTER_DEVICE void narrow(float v, BFloat16* to) { to->bits = __bfloat16_as_ushort(__float2bfloat16_rn(v)); }
// Writes two numbers to a word, the first to its low half.
SINTER_DEVICE void narrow_both(float low, float high, uint32_t* to, Float16) {
  const __half2 v = __floats2half2_rn(low, high);
  *to = *reinterpret_cast<const uint32_t*>(&v);
}
SINTER_DEVICE void narrow_both(float low, float high, uint32_t* to, BFloat16) {
  const __nv_bfloat162 v = __floats2bfloat162_rn(low, high);
  *to = *reinterpret_cast<const uint32_t*>(&v);
}
SINTER_DEVICE uint32_t bits_of(float v) { return __float_as_uint(v); }
SINTER_DEVICE float float_of(uint32_t v) { return __uint_as_float(v); }
SINTER_DEVICE uint64_t bits_of(double v) { return static_cast<uint64_t>(__double_as_longlong(v)); }
SINTER_DEVICE double double_of(uint64_t v) { return __longlong_as_double(static_cast<long long>(v)); }
#else
inline float widen(Float16 v) { return float16_value(v.bits); }
inline float widen(BFloat16 v) { return bfloat16_value(v.bits); }
inline void narrow(float v, Float16* to) { to->bits = float16_bits(v); }
inline void narrow(float v, BFloat16* to) { to->bits = bfloat16_bits(v); }
template <class T>
inline void narrow_both(float low, float high, uint32_t* to, T) {
  T a, b;
  narrow(low, &a);
  narrow(high, &b);
  *to = a.bits | static_cast<uint32_t>(b.bits) << 16;
}
inline uint32_t bits_of(float v) { return std::bit_cast<uint32_t>(v); }
inline float float_of(uint32_t v) { return std::bit_cast<float>(v); }
inline uint64_t bits_of(double v) { return std::bit_cast<uint64_t>(v); }
inline double double_of(uint64_t v) { return std::bit_cast<double>(v); }
#endif
SINTER_DEVICE float widen(float v) { return v; }
SINTER_DEVICE double widen(double v) { return v; }
SINTER_DEVICE void narrow(float v, float* to) { *to = v; }
SINTER_DEVICE void narrow(double v, double* to) { *to = v; }

// ---- mathematics: the functions of <cmath> for float and double, by the same names on both sides

#ifdef __CUDACC__
#define SINTER_MATH_1(name, of_float)                             \
  SINTER_DEVICE float m_##name(float x) { return ::of_float(x); } \
  SINTER_DEVICE double m_##name(double x) { return ::name(x); }
#define SINTER_MATH_2(name, of_float)                                         \
  SINTER_DEVICE float m_##name(float x, float y) { return ::of_float(x, y); } \
  SINTER_DEVICE double m_##name(double x, double y) { return ::name(x, y); }
SINTER_DEVICE float m_fma(float a, float b, float c) { return ::fmaf(a, b, c); }
SINTER_DEVICE double m_fma(double a, double b, double c) { return ::fma(a, b, c); }
#else
#define SINTER_MATH_1(name, of_float)                     \
  inline float m_##name(float x) { return std::name(x); } \
  inline double m_##name(double x) { return std::name(x); }
#define SINTER_MATH_2(name, of_float)                                 \
  inline float m_##name(float x, float y) { return std::name(x, y); } \
  inline double m_##name(double x, double y) { return std::name(x, y); }
inline float m_fma(float a, float b, float c) { return std::fma(a, b, c); }
inline double m_fma(double a, double b, double c) { return std::fma(a, b, c); }
#endif
SINTER_MATH_1(exp, expf)
SINTER_MATH_1(expm1, expm1f)
SINTER_MATH_1(log, logf)
SINTER_MATH_1(log1p, log1pf)
SINTER_MATH_1(sqrt, sqrtf)
SINTER_MATH_1(erf, erff)
SINTER_MATH_1(erfc, erfcf)
SINTER_MATH_1(sin, sinf)
SINTER_MATH_1(cos, cosf)
SINTER_MATH_1(tan, tanf)
SINTER_MATH_1(asin, asinf)
SINTER_MATH_1(acos, acosf)
SINTER_MATH_1(atan, atanf)
SINTER_MATH_1(sinh, sinhf)
SINTER_MATH_1(cosh, coshf)
SINTER_MATH_1(tanh, tanhf)
SINTER_MATH_1(asinh, asinhf)
SINTER_MATH_1(acosh, acoshf)
SINTER_MATH_1(atanh, atanhf)
SINTER_MATH_1(floor, floorf)
SINTER_MATH_1(ceil, ceilf)
SINTER_MATH_1(rint, rintf)
SINTER_MATH_1(trunc, truncf)
SINTER_MATH_1(fabs, fabsf)
SINTER_MATH_2(pow, powf)
SINTER_MATH_2(fmod, fmodf)
SINTER_MATH_2(copysign, copysignf)
SINTER_MATH_2(fmax, fmaxf)
#undef SINTER_MATH_1
#undef SINTER_MATH_2
// Returns 2^x within 2^-22 of it, and 0 below 2^-126, for results that are rounded to 16 bits.
#ifdef __CUDACC__
SINTER_DEVICE float m_exp2_short(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#else
inline float m_exp2_short(float x) { return x < -126 ? 0 : std::exp2(x); }
#endif
SINTER_DEVICE bool m_isnan(float x) { return x != x; }
SINTER_DEVICE bool m_isnan(double x) { return x != x; }

}  // namespace sinter::cuda
