// Eight rows of int8 times eight columns, or four times sixteen, by dot products of bytes on 64-bit ARM, from
// the bias to the stored bytes. It is in assembly, because compilers copy sums between registers around the
// loops, which in convolutions of few channels takes as long as the products. Sixteen columns load fewer rows
// for as many products, and store whole vectors.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_INT8_GEMM_8X8_NEON_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_INT8_GEMM_8X8_NEON_INL_H_
#undef SINTER_PLATFORMS_SIMD_INT8_GEMM_8X8_NEON_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_INT8_GEMM_8X8_NEON_INL_H_
#endif

#include <type_traits>

#include "platforms/simd/int8/gemm.h"
#include "platforms/simd/int8/store_neon-inl.h"

#if HWY_TARGET == HWY_NEON  // with dot products of bytes (isa/config.h)
HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Steps at the end of sums. SINTER_TIMES scales an int32 vector by m,
#define SINTER_TIMES(s, m) "scvtf v" #s ".4s, v" #s ".4s\n\tfmul v" #s ".4s, v" #s ".4s, " m ".4s\n\t"
// SINTER_SCALE rounds it as well.
#define SINTER_SCALE(s, m) SINTER_TIMES(s, m) "fcvtns v" #s ".4s, v" #s ".4s\n\t"
// Four vectors become two of int16, by saturation or by their lower halves.
#define SINTER_SATURATE(i, j, k, l)                        \
  "sqxtn v" #i ".4h, v" #i ".4s\n\tsqxtn v" #k ".4h, v" #k \
  ".4s\n\t"                                                \
  "sqxtn2 v" #i ".8h, v" #j ".4s\n\tsqxtn2 v" #k ".8h, v" #l ".4s\n\t"
#define SINTER_HALVE(i, j, k, l) \
  "uzp1 v" #i ".8h, v" #i ".8h, v" #j ".8h\n\tuzp1 v" #k ".8h, v" #k ".8h, v" #l ".8h\n\t"
// These become one of int8 with the zero point added, which may have bounds of its own.
#define SINTER_BOUND(i, low, high) \
  "smax v" #i ".16b, v" #i ".16b, " low ".16b\n\tsmin v" #i ".16b, v" #i ".16b, " high ".16b\n\t"
#define SINTER_NO_BOUND(i, low, high)
#define SINTER_BYTES(narrow, bound, i, j, k, l, zero, low, high)                                        \
  narrow(i, j, k, l) "sqadd v" #i ".8h, v" #i ".8h, " zero ".8h\n\tsqadd v" #k ".8h, v" #k ".8h, " zero \
                     ".8h\n\t"                                                                          \
                     "sqxtn v" #i ".8b, v" #i ".8h\n\tsqxtn2 v" #i ".16b, v" #k                         \
                     ".8h\n\t" bound(i, low, high)

// The data that all blocks of a panel share, as copies: a compiler would read fields anew for every block.
struct DotRuns {
  const int8_t* a;
  const int32_t* offsets;
  int64_t count, depth;  // runs, and the packed depth of each

  HWY_INLINE DotRuns(const QRows& rows, const QRuns& runs)
      : a(reinterpret_cast<const int8_t*>(rows.buffer)),
        offsets(rows.runs),
        count(runs.count),
        depth(runs.packed_length()) {}
};

// Rows begin at runs.a + rows[r] + runs.offsets[t]; b and bias are those of a panel. All eight columns of
// results are stored at end.y + y_rows[r]. With kUsual, their bounds are those of int8, and scaled sums are
// int16.
template <bool kUsual>
HWY_INLINE void multiply_eight_rows(DotRuns runs, const int32_t* rows, const int8_t* b, const int32_t* bias,
                                    const StoreBytes& end, const int64_t* y_rows) {
// Multiplies word `lane` of a pair of rows, in v22 and v23, by the columns in v<u> and v<w>, into v<c>-v<f>.
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
#define SINTER_STORE(narrow, bound, at, c, d, e, f)                       \
  SINTER_SCALE(c, "%[m0]")                                                \
  SINTER_SCALE(d, "%[m1]")                                                \
  SINTER_SCALE(e, "%[m0]")                                                \
  SINTER_SCALE(f, "%[m1]")                                                \
  SINTER_BYTES(narrow, bound, c, d, e, f, "%[zero]", "%[low]", "%[high]") \
  "ldp %[p0], %[p1], [%[y_rows], #" #at "]\n\tstr d" #c                   \
  ", [%[y], %[p0]]\n\t"                                                   \
  "add %[p1], %[y], %[p1]\n\tst1 {v" #c ".d}[1], [%[p1]]\n\t"
#define SINTER_RESULTS(narrow, bound)         \
  SINTER_STORE(narrow, bound, 0, 0, 1, 2, 3)  \
  SINTER_STORE(narrow, bound, 16, 4, 5, 6, 7) \
  SINTER_STORE(narrow, bound, 32, 8, 9, 10, 11) SINTER_STORE(narrow, bound, 48, 12, 13, 14, 15)
  int64_t p0, p1, p2, p3, p4, p5, p6, p7, k, t;
#define SINTER_EIGHT_ROWS(results) \
  asm volatile(".arch armv8.2-a+crypto+dotprod\n\t" \
      "ldp q0, q1, [%[bias]]\n\t" \
      SINTER_COPY(2, 3) SINTER_COPY(4, 5) SINTER_COPY(6, 7) SINTER_COPY(8, 9) SINTER_COPY(10, 11) \
      SINTER_COPY(12, 13) SINTER_COPY(14, 15) \
      "1:\n\tldrsw %[t], [%[offsets]], #4\n\tlsr %[k], %[depth], #4\n\tadd %[t], %[a], %[t]\n\t" \
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
        [p6] "=&r"(p6), [p7] "=&r"(p7), [k] "=&r"(k), [t] "=&r"(t), [offsets] "+r"(runs.offsets), [b] "+r"(b), \
        [count] "+r"(runs.count) \
      : [a] "r"(runs.a), [rows] "r"(rows), [depth] "r"(runs.depth), [bias] "r"(bias), \
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
#undef SINTER_BEGIN
#undef SINTER_COPY
#undef SINTER_PAIRS
#undef SINTER_ONE_WORD
#undef SINTER_TWO_WORDS
#undef SINTER_FOUR_WORDS
#undef SINTER_WORD
}

// The form in which sums are stored.
enum class DotsEnd {
  kUsual,    // int8, whose bounds are those of int8; scaled sums are int16
  kBounded,  // int8
  kFloats,   // float32
};

// The places of two neighbouring panels' results: row r at y + y_rows[r], in elements.
struct DotsResult {
  const float* multipliers;
  std::byte* y;
  int32_t zero, low, high;  // those of int8
};

// Rows begin at runs.a + rows[r] + runs.offsets[t]; b and c are two panels whose biases follow each other.
// All sixteen columns are stored.
template <DotsEnd kEnd>
HWY_INLINE void multiply_four_rows(DotRuns runs, const int32_t* rows, const int8_t* b, const int8_t* c,
                                   const int32_t* bias, const DotsResult& end, const int64_t* y_rows) {
// Multiplies word `lane` of all rows, in v<a> to v<d>, by the columns in v<u> and v<w>, two vectors of the
// sixteen. The sums of the first row are v<i> and v<j>, and so on by fours.
#define SINTER_WORD_OF(s, u, x, lane) "sdot v" #s ".4s, v" #u ".16b, v" #x ".4b[" #lane "]\n\t"
#define SINTER_WORD(a, b, c, d, u, w, lane, i, j, k, l, m, n, o, p) \
  SINTER_WORD_OF(i, u, a, lane)                                     \
  SINTER_WORD_OF(j, w, a, lane)                                     \
  SINTER_WORD_OF(k, u, b, lane)                                     \
  SINTER_WORD_OF(l, w, b, lane)                                     \
  SINTER_WORD_OF(m, u, c, lane)                                     \
  SINTER_WORD_OF(n, w, c, lane) SINTER_WORD_OF(o, u, d, lane) SINTER_WORD_OF(p, w, d, lane)
#define SINTER_FIRST(a, b, c, d, u, w, lane) SINTER_WORD(a, b, c, d, u, w, lane, 0, 1, 4, 5, 8, 9, 12, 13)
#define SINTER_SECOND(a, b, c, d, u, w, lane) SINTER_WORD(a, b, c, d, u, w, lane, 2, 3, 6, 7, 10, 11, 14, 15)
#define SINTER_SIXTEEN_OF(of, a, b, c, d) \
  of(a, b, c, d, 20, 21, 0) of(a, b, c, d, 22, 23, 1) of(a, b, c, d, 24, 25, 2) of(a, b, c, d, 26, 27, 3)
// Multiplies sixteen depths of both panels, of rows in v<x0> to v<x3>.
#define SINTER_SIXTEEN(x0, x1, x2, x3)            \
  SINTER_PANEL(b)                                 \
  SINTER_SIXTEEN_OF(SINTER_FIRST, x0, x1, x2, x3) \
  SINTER_PANEL(c) SINTER_SIXTEEN_OF(SINTER_SECOND, x0, x1, x2, x3)
#define SINTER_PANEL(p)                          \
  "ld1 {v20.4s, v21.4s, v22.4s, v23.4s}, [%[" #p \
  "]], #64\n\t"                                  \
  "ld1 {v24.4s, v25.4s, v26.4s, v27.4s}, [%[" #p "]], #64\n\t"
#define SINTER_ROWS(load, step)                                     \
  "ldr " load "16, [%[p0]]" step "\n\tldr " load "17, [%[p1]]" step \
  "\n\t"                                                            \
  "ldr " load "18, [%[p2]]" step "\n\tldr " load "19, [%[p3]]" step "\n\t"
#define SINTER_STORE(narrow, bound, at, i, j, k, l)            \
  SINTER_SCALE(i, "v20")                                       \
  SINTER_SCALE(j, "v21")                                       \
  SINTER_SCALE(k, "v22")                                       \
  SINTER_SCALE(l, "v23")                                       \
  SINTER_BYTES(narrow, bound, i, j, k, l, "v24", "v25", "v26") \
  "ldr %[p0], [%[y_rows], #" #at "]\n\tstr q" #i ", [%[y], %[p0]]\n\t"
#define SINTER_FLOATS(at, i, j, k, l)       \
  SINTER_TIMES(i, "v20")                    \
  SINTER_TIMES(j, "v21")                    \
  SINTER_TIMES(k, "v22")                    \
  SINTER_TIMES(l, "v23")                    \
  "ldr %[p0], [%[y_rows], #" #at            \
  "]\n\tadd %[p0], %[y], %[p0], lsl #2\n\t" \
  "st1 {v" #i ".4s, v" #j ".4s, v" #k ".4s, v" #l ".4s}, [%[p0]]\n\t"
#define SINTER_FLOAT_RESULTS   \
  SINTER_FLOATS(0, 0, 1, 2, 3) \
  SINTER_FLOATS(8, 4, 5, 6, 7) SINTER_FLOATS(16, 8, 9, 10, 11) SINTER_FLOATS(24, 12, 13, 14, 15)
#define SINTER_RESULTS(narrow, bound)        \
  SINTER_STORE(narrow, bound, 0, 0, 1, 2, 3) \
  SINTER_STORE(narrow, bound, 8, 4, 5, 6, 7) \
  SINTER_STORE(narrow, bound, 16, 8, 9, 10, 11) SINTER_STORE(narrow, bound, 24, 12, 13, 14, 15)
  int64_t p0, p1, p2, p3, k, t;
#define SINTER_FOUR_ROWS(bounds, results) \
  asm volatile(".arch armv8.2-a+crypto+dotprod\n\t" \
      "ld1 {v0.4s, v1.4s, v2.4s, v3.4s}, [%[bias]]\n\tld1 {v4.4s, v5.4s, v6.4s, v7.4s}, [%[bias]]\n\t" \
      "ld1 {v8.4s, v9.4s, v10.4s, v11.4s}, [%[bias]]\n\tld1 {v12.4s, v13.4s, v14.4s, v15.4s}, [%[bias]]\n\t" \
      "1:\n\tldrsw %[t], [%[offsets]], #4\n\tlsr %[k], %[depth], #5\n\tadd %[t], %[a], %[t]\n\t" \
      "ldpsw %[p0], %[p1], [%[rows]]\n\tldpsw %[p2], %[p3], [%[rows], #8]\n\t" \
      "add %[p0], %[t], %[p0]\n\tadd %[p1], %[t], %[p1]\n\t" \
      "add %[p2], %[t], %[p2]\n\tadd %[p3], %[t], %[p3]\n\t" \
      "cbz %[k], 6f\n\t" \
      "2:\n\tldp q16, q28, [%[p0]], #32\n\tldp q17, q29, [%[p1]], #32\n\t" \
      "ldp q18, q30, [%[p2]], #32\n\tldp q19, q31, [%[p3]], #32\n\tsub %[k], %[k], #1\n\t" \
      SINTER_SIXTEEN(16, 17, 18, 19) SINTER_SIXTEEN(28, 29, 30, 31) \
      "cbnz %[k], 2b\n\t" \
      "6:\n\ttbz %[depth], #4, 3f\n\t" SINTER_ROWS("q", ", #16") SINTER_SIXTEEN(16, 17, 18, 19) \
      "3:\n\ttbz %[depth], #3, 4f\n\t" SINTER_ROWS("d", ", #8") \
      "ld1 {v20.4s, v21.4s, v22.4s, v23.4s}, [%[b]], #64\n\tld1 {v24.4s, v25.4s, v26.4s, v27.4s}, [%[c]], #64\n\t" \
      SINTER_FIRST(16, 17, 18, 19, 20, 21, 0) SINTER_FIRST(16, 17, 18, 19, 22, 23, 1) \
      SINTER_SECOND(16, 17, 18, 19, 24, 25, 0) SINTER_SECOND(16, 17, 18, 19, 26, 27, 1) \
      "4:\n\ttbz %[depth], #2, 5f\n\t" SINTER_ROWS("s", "") \
      "ld1 {v20.4s, v21.4s}, [%[b]], #32\n\tld1 {v22.4s, v23.4s}, [%[c]], #32\n\t" \
      SINTER_FIRST(16, 17, 18, 19, 20, 21, 0) SINTER_SECOND(16, 17, 18, 19, 22, 23, 0) \
      "5:\n\tsub %[count], %[count], #1\n\tcbnz %[count], 1b\n\t" \
      "ld1 {v20.4s, v21.4s, v22.4s, v23.4s}, [%[multipliers]]\n\tdup v24.8h, %w[zero]\n\t" bounds results \
      : [p0] "=&r"(p0), [p1] "=&r"(p1), [p2] "=&r"(p2), [p3] "=&r"(p3), [k] "=&r"(k), [t] "=&r"(t), \
        [offsets] "+r"(runs.offsets), [b] "+r"(b), [c] "+r"(c), [count] "+r"(runs.count) \
      : [a] "r"(runs.a), [rows] "r"(rows), [depth] "r"(runs.depth), [bias] "r"(bias), \
        [y] "r"(end.y), [y_rows] "r"(y_rows), [multipliers] "r"(end.multipliers), [zero] "r"(end.zero), \
        [low] "r"(end.low), [high] "r"(end.high) \
      : "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", \
        "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", \
        "v28", "v29", "v30", "v31")
  if constexpr (kEnd == DotsEnd::kFloats)
    SINTER_FOUR_ROWS("", SINTER_FLOAT_RESULTS);
  else if constexpr (kEnd == DotsEnd::kUsual)
    SINTER_FOUR_ROWS("", SINTER_RESULTS(SINTER_HALVE, SINTER_NO_BOUND));
  else
    SINTER_FOUR_ROWS("dup v25.16b, %w[low]\n\tdup v26.16b, %w[high]\n\t",
                     SINTER_RESULTS(SINTER_SATURATE, SINTER_BOUND));
#undef SINTER_FOUR_ROWS
#undef SINTER_FLOAT_RESULTS
#undef SINTER_FLOATS
#undef SINTER_RESULTS
#undef SINTER_STORE
#undef SINTER_ROWS
#undef SINTER_PANEL
#undef SINTER_SIXTEEN
#undef SINTER_SIXTEEN_OF
#undef SINTER_SECOND
#undef SINTER_FIRST
#undef SINTER_WORD
#undef SINTER_WORD_OF
}

#undef SINTER_BYTES
#undef SINTER_NO_BOUND
#undef SINTER_BOUND
#undef SINTER_HALVE
#undef SINTER_SATURATE
#undef SINTER_SCALE
#undef SINTER_TIMES

constexpr int64_t kFourRows = 4;

// Returns whether multiply_two_panels takes the two panels from `column` on.
HWY_INLINE bool takes_two_panels(const QPacked& w, const QRows& rows, int64_t column,
                                 const ProductResult& result) {
  return rows.count >= kFourRows && w.runs.count > 0 && w.zeros == nullptr && w.columns - column >= 16 &&
         (result.type == DType::kFloat32 ||
          (result.type == DType::kInt8 && StoreBytes::takes(w.multipliers + column, 16)));
}

HWY_INLINE DotsEnd dots_end(const QPacked& w, int64_t column, const ProductResult& result) {
  if (result.type == DType::kFloat32) return DotsEnd::kFloats;
  const auto fit = [&](int64_t c) SINTER_SIMD_LAMBDA {
    return scaled_sums_fit(w.bias + c, w.multipliers + c, w.runs.depth());
  };
  return lowest(result) == -128 && highest(result) == 127 && fit(column) && fit(column + 8)
             ? DotsEnd::kUsual
             : DotsEnd::kBounded;
}

// Multiplies the two panels from `column` on, for all rows or all but the last. Returns how many are left.
HWY_NOINLINE int64_t multiply_two_panels(const QPacked& w, const QRows& rows, int64_t column,
                                         const ProductResult& result, const int64_t* y_rows) {
  const DotRuns runs(rows, w.runs);
  const int8_t *b = w.panels + column * w.runs.packed_depth(), *c = b + 8 * w.runs.packed_depth();
  const int32_t *row = rows.rows, *bias = w.bias + column;
  const auto element = static_cast<int64_t>(byte_width(result.type));
  const DotsResult end{w.multipliers + column, static_cast<std::byte*>(result.y) + column * element,
                       result.zero, lowest(result), highest(result)};
  int64_t left = rows.count;
  const auto fours = [&](auto kind) SINTER_SIMD_LAMBDA {
    for (; left >= kFourRows; left -= kFourRows, row += kFourRows, y_rows += kFourRows)
      multiply_four_rows<kind()>(runs, row, b, c, bias, end, y_rows);
    if (left < 2) return;
    // Two or three rows take as long as four, some of them again.
    const int64_t again = kFourRows - left;
    multiply_four_rows<kind()>(runs, row - again, b, c, bias, end, y_rows - again);
    left = 0;
  };
  switch (dots_end(w, column, result)) {
    case DotsEnd::kUsual:
      fours(std::integral_constant<DotsEnd, DotsEnd::kUsual>());
      break;
    case DotsEnd::kBounded:
      fours(std::integral_constant<DotsEnd, DotsEnd::kBounded>());
      break;
    case DotsEnd::kFloats:
      fours(std::integral_constant<DotsEnd, DotsEnd::kFloats>());
      break;
  }
  return left;
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();
#endif  // HWY_NEON

#endif  // per-target include guard
