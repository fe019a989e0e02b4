// Eight rows of int8 times eight columns by dot products of bytes on 64-bit ARM, from the bias to the stored
// bytes. In assembly, for compilers copy sums between registers around the loops, which in convolutions of
// few channels takes as long as the products.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_Q_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_Q_DOTS_INL_H_
#undef SINTER_PLATFORMS_SIMD_Q_DOTS_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_Q_DOTS_INL_H_
#endif

#include "platforms/simd/q_gemm.h"
#include "platforms/simd/q_store_arm-inl.h"

#if HWY_TARGET == HWY_NEON  // with dot products of bytes (config.h)
HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Rows begin at a + rows[r] + run_offsets[t]; b and bias are those of a panel. Results are stored at
// end.y + y_rows[r], all eight columns of them. kUsual: their bounds are those of int8, and scaled sums are
// int16.
template <bool kUsual>
HWY_INLINE void multiply_eight_rows(const int8_t* a, const int32_t* rows, const int32_t* run_offsets,
                                    const QRuns& runs, const int8_t* b, const int32_t* bias,
                                    const StoreBytes& end, const int64_t* y_rows) {
// Word `lane` of a pair of rows, in v22 and v23, times the columns in v<u> and v<w>. Sums: v<c> to v<f>.
#define SINTER_WORD(c, d, e, f, u, w, lane)     \
  "sdot v" #c ".4s, v" #u ".16b, v22.4b[" #lane \
  "]\n\t"                                       \
  "sdot v" #d ".4s, v" #w ".16b, v22.4b[" #lane \
  "]\n\t"                                       \
  "sdot v" #e ".4s, v" #u ".16b, v23.4b[" #lane \
  "]\n\t"                                       \
  "sdot v" #f ".4s, v" #w ".16b, v23.4b[" #lane "]\n\t"
#define SINTER_FOUR_WORDS(p, q, c, d, e, f)                                                       \
  "ldr q22, [%[" #p "]], #16\n\tldr q23, [%[" #q "]], #16\n\t" SINTER_WORD(c, d, e, f, 24, 25, 0) \
      SINTER_WORD(c, d, e, f, 26, 27, 1) SINTER_WORD(c, d, e, f, 28, 29, 2)                       \
          SINTER_WORD(c, d, e, f, 30, 31, 3)
#define SINTER_TWO_WORDS(p, q, c, d, e, f)                                                      \
  "ldr d22, [%[" #p "]], #8\n\tldr d23, [%[" #q "]], #8\n\t" SINTER_WORD(c, d, e, f, 24, 25, 0) \
      SINTER_WORD(c, d, e, f, 26, 27, 1)
#define SINTER_ONE_WORD(p, q, c, d, e, f) \
  "ldr s22, [%[" #p "]]\n\tldr s23, [%[" #q "]]\n\t" SINTER_WORD(c, d, e, f, 24, 25, 0)
#define SINTER_PAIRS(of) \
  of(p0, p1, 0, 1, 2, 3) of(p2, p3, 4, 5, 6, 7) of(p4, p5, 8, 9, 10, 11) of(p6, p7, 12, 13, 14, 15)
#define SINTER_COPY(c, d) "mov v" #c ".16b, v0.16b\n\tmov v" #d ".16b, v1.16b\n\t"
#define SINTER_BEGIN(p, q, at)                  \
  "ldpsw %[" #p "], %[" #q "], [%[rows], #" #at \
  "]\n\t"                                       \
  "add %[" #p "], %[t], %[" #p "]\n\tadd %[" #q "], %[t], %[" #q "]\n\t"
#define SINTER_SCALE(c, m)                                             \
  "scvtf v" #c ".4s, v" #c ".4s\n\tfmul v" #c ".4s, v" #c ".4s, %[" #m \
  "].4s\n\t"                                                           \
  "fcvtns v" #c ".4s, v" #c ".4s\n\t"
// Two rows of eight int32 become int16: with saturation, or by their lower halves.
#define SINTER_SATURATE(c, d, e, f)                        \
  "sqxtn v" #c ".4h, v" #c ".4s\n\tsqxtn v" #e ".4h, v" #e \
  ".4s\n\t"                                                \
  "sqxtn2 v" #c ".8h, v" #d ".4s\n\tsqxtn2 v" #e ".8h, v" #f ".4s\n\t"
#define SINTER_HALVE(c, d, e, f) \
  "uzp1 v" #c ".8h, v" #c ".8h, v" #d ".8h\n\tuzp1 v" #e ".8h, v" #e ".8h, v" #f ".8h\n\t"
#define SINTER_BOUND(c) \
  "smax v" #c ".16b, v" #c ".16b, %[low].16b\n\tsmin v" #c ".16b, v" #c ".16b, %[high].16b\n\t"
#define SINTER_NO_BOUND(c)
#define SINTER_STORE(narrow, bound, at, c, d, e, f)                                           \
  SINTER_SCALE(c, m0)                                                                         \
  SINTER_SCALE(d, m1)                                                                         \
  SINTER_SCALE(e, m0)                                                                         \
  SINTER_SCALE(f, m1)                                                                         \
  narrow(c, d, e, f) "sqadd v" #c ".8h, v" #c ".8h, %[zero].8h\n\tsqadd v" #e ".8h, v" #e     \
                     ".8h, %[zero].8h\n\t"                                                    \
                     "sqxtn v" #c ".8b, v" #c ".8h\n\tsqxtn2 v" #c ".16b, v" #e               \
                     ".8h\n\t" bound(c) "ldp %[p0], %[p1], [%[y_rows], #" #at "]\n\tstr d" #c \
                                        ", [%[y], %[p0]]\n\t"                                 \
                                        "add %[p1], %[y], %[p1]\n\tst1 {v" #c ".d}[1], [%[p1]]\n\t"
#define SINTER_RESULTS(narrow, bound)         \
  SINTER_STORE(narrow, bound, 0, 0, 1, 2, 3)  \
  SINTER_STORE(narrow, bound, 16, 4, 5, 6, 7) \
  SINTER_STORE(narrow, bound, 32, 8, 9, 10, 11) SINTER_STORE(narrow, bound, 48, 12, 13, 14, 15)
  const int64_t depth = runs.packed_length(), blocks = depth / 16;
  int64_t count = runs.count;
  int64_t p0, p1, p2, p3, p4, p5, p6, p7, k, t;
#define SINTER_EIGHT_ROWS(results) \
  asm volatile(".arch armv8.2-a+crypto+dotprod\n\t" \
      "ldp q0, q1, [%[bias]]\n\t" \
      SINTER_COPY(2, 3) SINTER_COPY(4, 5) SINTER_COPY(6, 7) SINTER_COPY(8, 9) SINTER_COPY(10, 11) \
      SINTER_COPY(12, 13) SINTER_COPY(14, 15) \
      "1:\n\tldrsw %[t], [%[offsets]], #4\n\tmov %[k], %[blocks]\n\tadd %[t], %[a], %[t]\n\t" \
      SINTER_BEGIN(p0, p1, 0) SINTER_BEGIN(p2, p3, 8) SINTER_BEGIN(p4, p5, 16) SINTER_BEGIN(p6, p7, 24) \
      "cbz %[k], 3f\n\t" \
      "2:\n\tld1 {v24.4s, v25.4s, v26.4s, v27.4s}, [%[b]], #64\n\t" \
      "ld1 {v28.4s, v29.4s, v30.4s, v31.4s}, [%[b]], #64\n\t" \
      "sub %[k], %[k], #1\n\t" \
      SINTER_PAIRS(SINTER_FOUR_WORDS) \
      "cbnz %[k], 2b\n\t" \
      "3:\n\ttbz %[depth], #3, 4f\n\t" \
      "ld1 {v24.4s, v25.4s, v26.4s, v27.4s}, [%[b]], #64\n\t" \
      SINTER_PAIRS(SINTER_TWO_WORDS) \
      "4:\n\ttbz %[depth], #2, 5f\n\t" \
      "ld1 {v24.4s, v25.4s}, [%[b]], #32\n\t" \
      SINTER_PAIRS(SINTER_ONE_WORD) \
      "5:\n\tsub %[count], %[count], #1\n\tcbnz %[count], 1b\n\t" \
      results \
      : [p0] "=&r"(p0), [p1] "=&r"(p1), [p2] "=&r"(p2), [p3] "=&r"(p3), [p4] "=&r"(p4), [p5] "=&r"(p5), \
        [p6] "=&r"(p6), [p7] "=&r"(p7), [k] "=&r"(k), [t] "=&r"(t), [offsets] "+r"(run_offsets), [b] "+r"(b), \
        [count] "+r"(count) \
      : [a] "r"(a), [rows] "r"(rows), [blocks] "r"(blocks), [depth] "r"(depth), [bias] "r"(bias), \
        [y] "r"(end.y), [y_rows] "r"(y_rows), [m0] "w"(vld1q_f32(end.multipliers)), \
        [m1] "w"(vld1q_f32(end.multipliers + 4)), [zero] "w"(vdupq_n_s16(end.zero)), \
        [low] "w"(vdupq_n_s8(end.low)), [high] "w"(vdupq_n_s8(end.high)) \
      : "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", \
        "v15", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31")
  if constexpr (kUsual)
    SINTER_EIGHT_ROWS(SINTER_RESULTS(SINTER_HALVE, SINTER_NO_BOUND));
  else
    SINTER_EIGHT_ROWS(SINTER_RESULTS(SINTER_SATURATE, SINTER_BOUND));
#undef SINTER_EIGHT_ROWS
#undef SINTER_RESULTS
#undef SINTER_STORE
#undef SINTER_NO_BOUND
#undef SINTER_BOUND
#undef SINTER_HALVE
#undef SINTER_SATURATE
#undef SINTER_SCALE
#undef SINTER_BEGIN
#undef SINTER_COPY
#undef SINTER_PAIRS
#undef SINTER_ONE_WORD
#undef SINTER_TWO_WORDS
#undef SINTER_FOUR_WORDS
#undef SINTER_WORD
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();
#endif  // HWY_NEON

#endif  // per-target include guard
