// Up to eight rows by a packed panel of eight columns, on 64-bit ARM, where four depths of neighbouring rows
// are beside each other: one instruction loads four rows, whose lanes are the factors of 32 products. In
// assembly, for eight rows take all 32 registers: v0 to v15 are sums, v16 to v23 rows, v24 to v31 the panel.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_EIGHT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_EIGHT_ROWS_INL_H_
#undef SINTER_PLATFORMS_SIMD_EIGHT_ROWS_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_EIGHT_ROWS_INL_H_
#endif

#include <utility>

#include "hwy/highway.h"

#if HWY_ARCH_ARM_A64
HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

constexpr int kEightRows = 8;
constexpr float kZeroSums[16] = {};

// Steps are in bytes.
struct BlockedRows {
  const float* a;  // [depth / 4, rounded up][rows][4]
  int64_t a_step;  // from four depths to the next four
  const float* b;  // eight columns of each depth
  int64_t depth;
  float* y;
  int64_t y_step;  // from row to row
};

// A row's registers of its two sums and of its four depths.
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
// Sums begin with zeros, those of two rows at a time.
#define SINTER_START1 "ld1 {v0.4s-v1.4s}, [%[zeros]]\n\t"
#define SINTER_START2 "ld1 {v0.4s-v3.4s}, [%[zeros]]\n\t"
#define SINTER_START3 SINTER_START2 "ld1 {v4.4s-v5.4s}, [%[zeros]]\n\t"
#define SINTER_START4 SINTER_START2 "ld1 {v4.4s-v7.4s}, [%[zeros]]\n\t"
#define SINTER_START5 SINTER_START4 "ld1 {v8.4s-v9.4s}, [%[zeros]]\n\t"
#define SINTER_START6 SINTER_START4 "ld1 {v8.4s-v11.4s}, [%[zeros]]\n\t"
#define SINTER_START7 SINTER_START6 "ld1 {v12.4s-v13.4s}, [%[zeros]]\n\t"
#define SINTER_START8 SINTER_START6 "ld1 {v12.4s-v15.4s}, [%[zeros]]\n\t"
// Lane `lane` of the row's register x, times that depth of the panel.
#define SINTER_MULTIPLY(s0, s1, b0, b1, x, lane)    \
  "fmla v" #s0 ".4s, v" #b0 ".4s, v" #x ".s[" #lane \
  "]\n\t"                                           \
  "fmla v" #s1 ".4s, v" #b1 ".4s, v" #x ".s[" #lane "]\n\t"
#define SINTER_LANE0(s0, s1, x) SINTER_MULTIPLY(s0, s1, 24, 25, x, 0)
#define SINTER_LANE1(s0, s1, x) SINTER_MULTIPLY(s0, s1, 26, 27, x, 1)
#define SINTER_LANE2(s0, s1, x) SINTER_MULTIPLY(s0, s1, 28, 29, x, 2)
#define SINTER_LANE3(s0, s1, x) SINTER_MULTIPLY(s0, s1, 30, 31, x, 3)
#define SINTER_STORE(s0, s1, x) "st1 {v" #s0 ".4s, v" #s1 ".4s}, [%[y]], %[y_step]\n\t"
#define SINTER_FOUR_DEPTHS(n)                                                                      \
  SINTER_LOAD##n                                                                                   \
      "ld1 {v24.4s-v27.4s}, [x10], #64\n\tld1 {v28.4s-v31.4s}, [x10], #64\n\t" SINTER_ROW_LIST##n( \
          SINTER_LANE0) SINTER_ROW_LIST##n(SINTER_LANE1) SINTER_ROW_LIST##n(SINTER_LANE2)          \
          SINTER_ROW_LIST##n(SINTER_LANE3)

#define SINTER_BLOCK_OF(n)  \
  if constexpr (kRows == n) \
  asm volatile("1:\n\tmov x9, %[a]\n\tadd %[a], %[a], #16 * " #n                                            \
      "\n\tmov x10, %[b]\n\t" SINTER_START##n                                                               \
      "subs x11, %[depth], #16\n\tb.lt 4f\n\t"                                                              \
      "3:\n\t" SINTER_FOUR_DEPTHS(n) SINTER_FOUR_DEPTHS(n) SINTER_FOUR_DEPTHS(n) SINTER_FOUR_DEPTHS(n)      \
      "subs x11, x11, #16\n\tb.ge 3b\n\t"                                                                   \
      "4:\n\ttbz x11, #3, 5f\n\t" SINTER_FOUR_DEPTHS(n) SINTER_FOUR_DEPTHS(n)                               \
      "5:\n\ttbz x11, #2, 6f\n\t" SINTER_FOUR_DEPTHS(n)                                                     \
      "6:\n\tands x11, x11, #3\n\tb.eq 7f\n\t" SINTER_LOAD##n                                               \
      "ld1 {v24.4s-v25.4s}, [x10], #32\n\t" SINTER_ROW_LIST##n(SINTER_LANE0)                                \
      "subs x11, x11, #1\n\tb.eq 7f\n\tld1 {v26.4s-v27.4s}, [x10], #32\n\t" SINTER_ROW_LIST##n(SINTER_LANE1) \
      "subs x11, x11, #1\n\tb.eq 7f\n\tld1 {v28.4s-v29.4s}, [x10], #32\n\t" SINTER_ROW_LIST##n(SINTER_LANE2) \
      "7:\n\t" SINTER_ROW_LIST##n(SINTER_STORE) "subs %[blocks], %[blocks], #1\n\tb.ne 1b"                  \
      : [a] "+r"(p.a), [y] "+r"(p.y), [blocks] "+r"(blocks)                                                 \
      : [step] "r"(p.a_step - (n > 4 ? 64 : 0)), [b] "r"(p.b), [depth] "r"(p.depth), [y_step] "r"(p.y_step), \
        [zeros] "r"(kZeroSums)                                                                              \
      : "memory", "cc", "x9", "x10", "x11", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9",     \
        "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",   \
        "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31")

// `blocks` blocks of kRows rows.
template <int kRows>
HWY_INLINE void multiply_blocked(BlockedRows& p, int64_t blocks) {
  SINTER_BLOCK_OF(1);
  SINTER_BLOCK_OF(2);
  SINTER_BLOCK_OF(3);
  SINTER_BLOCK_OF(4);
  SINTER_BLOCK_OF(5);
  SINTER_BLOCK_OF(6);
  SINTER_BLOCK_OF(7);
  SINTER_BLOCK_OF(8);
}

// All rows, in blocks that differ by one row at most.
HWY_NOINLINE void multiply_blocked_rows(BlockedRows p, int64_t rows) {
  if (rows <= 0) return;
  const int64_t blocks = (rows + kEightRows - 1) / kEightRows, fewer = rows / blocks,
                larger = rows - fewer * blocks;  // blocks that have a row more
  for (const auto& [n, count] : {std::pair(fewer + 1, larger), std::pair(fewer, blocks - larger)}) {
    if (count == 0) continue;
    switch (n) {
#define SINTER_CASE(n)             \
  case n:                          \
    multiply_blocked<n>(p, count); \
    break;
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
}

#undef SINTER_BLOCK_OF
#undef SINTER_FOUR_DEPTHS
#undef SINTER_STORE
#undef SINTER_LANE3
#undef SINTER_LANE2
#undef SINTER_LANE1
#undef SINTER_LANE0
#undef SINTER_MULTIPLY
#undef SINTER_START8
#undef SINTER_START7
#undef SINTER_START6
#undef SINTER_START5
#undef SINTER_START4
#undef SINTER_START3
#undef SINTER_START2
#undef SINTER_START1
#undef SINTER_LOAD8
#undef SINTER_LOAD7
#undef SINTER_LOAD6
#undef SINTER_LOAD5
#undef SINTER_LOAD4
#undef SINTER_LOAD3
#undef SINTER_LOAD2
#undef SINTER_LOAD1
#undef SINTER_FOUR_ROWS
#undef SINTER_ROW_LIST8
#undef SINTER_ROW_LIST7
#undef SINTER_ROW_LIST6
#undef SINTER_ROW_LIST5
#undef SINTER_ROW_LIST4
#undef SINTER_ROW_LIST3
#undef SINTER_ROW_LIST2
#undef SINTER_ROW_LIST1

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();
#endif  // HWY_ARCH_ARM_A64

#endif  // per-target include guard
