// Dot products of float32 rows, summed in an order that depends on the vector's width alone.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_ISA_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_ISA_DOT_INL_H_
#undef SINTER_PLATFORMS_SIMD_ISA_DOT_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_ISA_DOT_INL_H_
#endif

#include "platforms/simd/isa/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

#if HWY_ARCH_ARM_A64
// Adds sixteen products of four rows at a time, `blocks` (at least one) times; rows and x move on. It is in
// assembly, because an instruction loads four registers in a row.
HWY_INLINE void sixteen_of_four(const float*& m0, const float*& m1, const float*& m2, const float*& m3,
                                const float*& x, size_t blocks, V& s0, V& s1, V& s2, V& s3) {
#define SINTER_ROW(m, a, b, v0, v1, v2, v3)                          \
  "ld1 {v" #v0 ".4s, v" #v1 ".4s, v" #v2 ".4s, v" #v3 ".4s}, [%[" #m \
  "]], #64\n\t"                                                      \
  "fmla %[" #a "].4s, v" #v0 ".4s, v16.4s\n\tfmla v" #b ".4s, v" #v1 \
  ".4s, v17.4s\n\t"                                                  \
  "fmla %[" #a "].4s, v" #v2 ".4s, v18.4s\n\tfmla v" #b ".4s, v" #v3 ".4s, v19.4s\n\t"
  asm("movi v4.4s, #0\n\tmovi v5.4s, #0\n\tmovi v6.4s, #0\n\tmovi v7.4s, #0\n\t"
      "1:\n\tld1 {v16.4s, v17.4s, v18.4s, v19.4s}, [%[x]], #64\n\t" SINTER_ROW(m0, s0, 4, 20, 21, 22, 23)
          SINTER_ROW(m1, s1, 5, 24, 25, 26, 27) SINTER_ROW(m2, s2, 6, 28, 29, 30, 31)
              SINTER_ROW(m3, s3, 7, 20, 21, 22, 23) "subs %[blocks], %[blocks], #1\n\tb.ne 1b\n\t"
      "fadd %[s0].4s, %[s0].4s, v4.4s\n\tfadd %[s1].4s, %[s1].4s, v5.4s\n\t"
      "fadd %[s2].4s, %[s2].4s, v6.4s\n\tfadd %[s3].4s, %[s3].4s, v7.4s"
      : [m0] "+r"(m0), [m1] "+r"(m1), [m2] "+r"(m2), [m3] "+r"(m3), [x] "+r"(x), [blocks] "+r"(blocks),
        [s0] "+w"(s0.raw), [s1] "+w"(s1.raw), [s2] "+w"(s2.raw), [s3] "+w"(s3.raw)
      :
      : "memory", "cc", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",
        "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
#undef SINTER_ROW
}
#endif

// Computes sums[k] = row k of `matrix` . x, for four rows of n numbers.
HWY_INLINE void four_dots(const float* matrix, size_t n, const float* x, float* HWY_RESTRICT sums) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  const float *m0 = matrix, *m1 = m0 + n, *m2 = m1 + n, *m3 = m2 + n;
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
#if HWY_ARCH_ARM_A64
  if (n >= 16) sixteen_of_four(m0, m1, m2, m3, x, n / 16, s0, s1, s2, s3), n %= 16;
#endif
  const size_t whole = n / lanes * lanes, rest = n - whole;
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
