// Dot products of float32 rows, summed in an order that depends on the vector's width alone.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_DOT_INL_H_
#undef SINTER_PLATFORMS_SIMD_DOT_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_DOT_INL_H_
#endif

#include "platforms/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// sums[k] = row k of `matrix` . x, for four rows of n numbers.
HWY_INLINE void four_dots(const float* matrix, size_t n, const float* x, float* HWY_RESTRICT sums) {
  const F d;
  const size_t lanes = hn::Lanes(d), whole = n / lanes * lanes, rest = n - whole;
  const float *m0 = matrix, *m1 = m0 + n, *m2 = m1 + n, *m3 = m2 + n;
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (size_t i = 0; i < whole; i += lanes) {
    const V v = hn::LoadU(d, x + i);
    s0 = hn::MulAdd(hn::LoadU(d, m0 + i), v, s0);
    s1 = hn::MulAdd(hn::LoadU(d, m1 + i), v, s1);
    s2 = hn::MulAdd(hn::LoadU(d, m2 + i), v, s2);
    s3 = hn::MulAdd(hn::LoadU(d, m3 + i), v, s3);
  }
  if (rest > 0) {
    const V v = hn::LoadN(d, x + whole, rest);
    s0 = hn::MulAdd(hn::LoadN(d, m0 + whole, rest), v, s0);
    s1 = hn::MulAdd(hn::LoadN(d, m1 + whole, rest), v, s1);
    s2 = hn::MulAdd(hn::LoadN(d, m2 + whole, rest), v, s2);
    s3 = hn::MulAdd(hn::LoadN(d, m3 + whole, rest), v, s3);
  }
  sums[0] = hn::ReduceSum(d, s0), sums[1] = hn::ReduceSum(d, s1);
  sums[2] = hn::ReduceSum(d, s2), sums[3] = hn::ReduceSum(d, s3);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
