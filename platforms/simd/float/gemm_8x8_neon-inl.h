// Up to eight rows by packed panels of eight columns, on 64-bit ARM, where four depths of neighbouring rows
// are beside each other: one instruction loads four rows, whose lanes are the factors of 32 products. It is
// in assembly, because eight rows take all 32 registers: v0-v15 are sums, v16-v23 rows, v24-v31 the panel.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_FLOAT_GEMM_8X8_NEON_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_FLOAT_GEMM_8X8_NEON_INL_H_
#undef SINTER_PLATFORMS_SIMD_FLOAT_GEMM_8X8_NEON_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_FLOAT_GEMM_8X8_NEON_INL_H_
#endif

#include "hwy/highway.h"

#if HWY_ARCH_ARM_A64
HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

constexpr int64_t kEightRows = 8;
constexpr float kZeroSums[8] = {};

// The operands of a block of rows. Steps are in bytes.
struct BlockedRows {
  const float* a;  // [depth / 4, rounded up][rows][4]
  int64_t a_step;  // from four depths to the next four
  const float* b;  // panels: eight columns of each depth
  int64_t b_skip;  // from the end of a panel to the next
  int64_t depth, panels;
  const float* start;  // sums begin with these eight columns
  int64_t start_step;  // from panel to panel, or 0
  float* y;
  int64_t y_step;  // from row to row
  const float *low, *high;
  int64_t finish;  // bit 0: bounded from below, bit 1: from above, bit 2: added to y
};

// The lists of rows: registers of a row's two sums and of its four depths.
#define SINTER_ROW_LIST1(op) op(0, 1, 16)
#define SINTER_ROW_LIST2(op) SINTER_ROW_LIST1(op) op(2, 3, 17)
#define SINTER_ROW_LIST3(op) SINTER_ROW_LIST2(op) op(4, 5, 18)
#define SINTER_ROW_LIST4(op) SINTER_ROW_LIST3(op) op(6, 7, 19)
#define SINTER_ROW_LIST5(op) SINTER_ROW_LIST4(op) op(8, 9, 20)
#define SINTER_ROW_LIST6(op) SINTER_ROW_LIST5(op) op(10, 11, 21)
#define SINTER_ROW_LIST7(op) SINTER_ROW_LIST6(op) op(12, 13, 22)
#define SINTER_ROW_LIST8(op) SINTER_ROW_LIST7(op) op(14, 15, 23)

#define SINTER_FOUR_ROWS "ld1 {v16.4s-v19.4s}, [x9], #64\n\t"
#define SINTER_LOAD1 "ld1 {v16.4s}, [x9], %[step]\n\t"
#define SINTER_LOAD2 "ld1 {v16.4s-v17.4s}, [x9], %[step]\n\t"
#define SINTER_LOAD3 "ld1 {v16.4s-v18.4s}, [x9], %[step]\n\t"
#define SINTER_LOAD4 "ld1 {v16.4s-v19.4s}, [x9], %[step]\n\t"
#define SINTER_LOAD5 SINTER_FOUR_ROWS "ld1 {v20.4s}, [x9], %[step]\n\t"
#define SINTER_LOAD6 SINTER_FOUR_ROWS "ld1 {v20.4s-v21.4s}, [x9], %[step]\n\t"
#define SINTER_LOAD7 SINTER_FOUR_ROWS "ld1 {v20.4s-v22.4s}, [x9], %[step]\n\t"
#define SINTER_LOAD8 SINTER_FOUR_ROWS "ld1 {v20.4s-v23.4s}, [x9], %[step]\n\t"
#define SINTER_START(s0, s1, x) "ldp q" #s0 ", q" #s1 ", [%[start]]\n\t"
// Multiplies lane `lane` of the row's register x by that depth of the panel.
#define SINTER_MULTIPLY(s0, s1, b0, b1, x, lane)    \
  "fmla v" #s0 ".4s, v" #b0 ".4s, v" #x ".s[" #lane \
  "]\n\t"                                           \
  "fmla v" #s1 ".4s, v" #b1 ".4s, v" #x ".s[" #lane "]\n\t"
#define SINTER_LANE0(s0, s1, x) SINTER_MULTIPLY(s0, s1, 24, 25, x, 0)
#define SINTER_LANE1(s0, s1, x) SINTER_MULTIPLY(s0, s1, 26, 27, x, 1)
#define SINTER_LANE2(s0, s1, x) SINTER_MULTIPLY(s0, s1, 28, 29, x, 2)
#define SINTER_LANE3(s0, s1, x) SINTER_MULTIPLY(s0, s1, 30, 31, x, 3)
#define SINTER_ADD(s0, s1, x)                          \
  "ldp q24, q25, [x13]\n\tadd x13, x13, %[y_step]\n\t" \
  "fadd v" #s0 ".4s, v" #s0 ".4s, v24.4s\n\tfadd v" #s1 ".4s, v" #s1 ".4s, v25.4s\n\t"
#define SINTER_CLAMP_BELOW(s0, s1, x) \
  "fmax v" #s0 ".4s, v" #s0 ".4s, v24.4s\n\tfmax v" #s1 ".4s, v" #s1 ".4s, v24.4s\n\t"
#define SINTER_CLAMP_ABOVE(s0, s1, x) \
  "fmin v" #s0 ".4s, v" #s0 ".4s, v25.4s\n\tfmin v" #s1 ".4s, v" #s1 ".4s, v25.4s\n\t"
#define SINTER_STORE(s0, s1, x) "st1 {v" #s0 ".4s, v" #s1 ".4s}, [x12], %[y_step]\n\t"
#define SINTER_FOUR_DEPTHS(n)                                                                        \
  SINTER_LOAD##n                                                                                     \
      "ld1 {v24.4s-v27.4s}, [%[b]], #64\n\tld1 {v28.4s-v31.4s}, [%[b]], #64\n\t" SINTER_ROW_LIST##n( \
          SINTER_LANE0) SINTER_ROW_LIST##n(SINTER_LANE1) SINTER_ROW_LIST##n(SINTER_LANE2)            \
          SINTER_ROW_LIST##n(SINTER_LANE3)

#define SINTER_BLOCK_OF(n)  \
  if constexpr (kRows == n) \
  asm volatile("1:\n\tmov x9, %[a]\n\tmov x12, %[y]\n\tadd %[y], %[y], #32\n\t" SINTER_ROW_LIST##n(           \
      SINTER_START) "add %[start], %[start], %[start_step]\n\tsubs x11, %[depth], #16\n\tb.lt 4f\n\t"           \
      "3:\n\t" SINTER_FOUR_DEPTHS(n) SINTER_FOUR_DEPTHS(n) SINTER_FOUR_DEPTHS(n) SINTER_FOUR_DEPTHS(n)       \
      "subs x11, x11, #16\n\tb.ge 3b\n\t"                                                                    \
      "4:\n\ttbz x11, #3, 5f\n\t" SINTER_FOUR_DEPTHS(n) SINTER_FOUR_DEPTHS(n)                                \
      "5:\n\ttbz x11, #2, 6f\n\t" SINTER_FOUR_DEPTHS(n)                                                      \
      "6:\n\tands x11, x11, #3\n\tb.eq 7f\n\t" SINTER_LOAD##n                                                \
      "ld1 {v24.4s-v25.4s}, [%[b]], #32\n\t" SINTER_ROW_LIST##n(SINTER_LANE0)                                \
      "subs x11, x11, #1\n\tb.eq 7f\n\tld1 {v26.4s-v27.4s}, [%[b]], #32\n\t" SINTER_ROW_LIST##n(             \
      SINTER_LANE1) "subs x11, x11, #1\n\tb.eq 7f\n\tld1 {v28.4s-v29.4s}, [%[b]], #32\n\t"                    \
      SINTER_ROW_LIST##n(SINTER_LANE2)                                                                       \
      "7:\n\tadd %[b], %[b], %[b_skip]\n\tcbz %[finish], 10f\n\ttbz %[finish], #2, 8f\n\tmov x13, x12\n\t"      \
      SINTER_ROW_LIST##n(SINTER_ADD) "8:\n\ttbz %[finish], #0, 9f\n\tld1r {v24.4s}, [%[low]]\n\t"               \
      SINTER_ROW_LIST##n(SINTER_CLAMP_BELOW)                                                                       \
      "9:\n\ttbz %[finish], #1, 10f\n\tld1r {v25.4s}, [%[high]]\n\t" SINTER_ROW_LIST##n(SINTER_CLAMP_ABOVE)        \
      "10:\n\t" SINTER_ROW_LIST##n(SINTER_STORE) "subs %[panels], %[panels], #1\n\tb.ne 1b"                   \
      : [b] "+r"(p.b), [y] "+r"(p.y), [start] "+r"(p.start), [panels] "+r"(p.panels)                         \
      : [a] "r"(p.a), [step] "r"(p.a_step - (n > 4 ? 64 : 0)), [depth] "r"(p.depth),                         \
        [start_step] "r"(p.start_step), [y_step] "r"(p.y_step), [low] "r"(p.low), [high] "r"(p.high),        \
        [finish] "r"(p.finish), [b_skip] "r"(p.b_skip)                                                       \
      : "memory", "cc", "x9", "x11", "x12", "x13", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8",     \
        "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22",     \
        "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31")

template <int kRows>
HWY_INLINE void multiply_block(BlockedRows p) {
  SINTER_BLOCK_OF(1);
  SINTER_BLOCK_OF(2);
  SINTER_BLOCK_OF(3);
  SINTER_BLOCK_OF(4);
  SINTER_BLOCK_OF(5);
  SINTER_BLOCK_OF(6);
  SINTER_BLOCK_OF(7);
  SINTER_BLOCK_OF(8);
}

// Computes one block of `rows` rows by all panels, of which there is one at least.
static HWY_NOINLINE void multiply_block_of(int64_t rows, const BlockedRows& p) {
  switch (rows) {
#define SINTER_CASE(n) \
  case n:              \
    return multiply_block<n>(p);
    SINTER_CASE(1)
    SINTER_CASE(2)
    SINTER_CASE(3)
    SINTER_CASE(4)
    SINTER_CASE(5)
    SINTER_CASE(6)
    SINTER_CASE(7)
    SINTER_CASE(8)
#undef SINTER_CASE
  }
}

// The rows of one of `blocks` blocks of `rows` rows, which differ by one row at most.
struct RowBlock {
  int64_t first, count;
};
HWY_INLINE RowBlock row_block(int64_t rows, int64_t blocks, int64_t i) {
  const int64_t first = rows * i / blocks;
  return {first, rows * (i + 1) / blocks - first};
}

#include "platforms/simd/isa/undef_assembly.h"

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();
#endif  // HWY_ARCH_ARM_A64

#endif  // per-target include guard
