// Up to seven rows by a packed panel of eight columns, on 64-bit ARM. One instruction loads eight depths of a
// row, whose lanes are the factors of sixteen products; two depths of the panel take another one. It is in
// assembly, because seven rows take all 32 registers: v0-v13 are sums, v14-v27 rows, v28-v31 the panel.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_FLOAT_GEMM_7X8_NEON_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_FLOAT_GEMM_7X8_NEON_INL_H_
#undef SINTER_PLATFORMS_SIMD_FLOAT_GEMM_7X8_NEON_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_FLOAT_GEMM_7X8_NEON_INL_H_
#endif

#include <utility>

#include "hwy/highway.h"

#if HWY_ARCH_ARM_A64
HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

constexpr int kSevenRows = 7;

// The operands of a panel's rows. Steps are in bytes, from row to row.
struct RowsOfPanel {
  const float* a;
  int64_t a_step;
  const float* b;  // eight columns of each depth
  int64_t depth;
  const float* start;   // sums begin with these eight columns, given twice
  const float* addend;  // added to the sums of the first row, with the steps of y; or null
  float* y;
  int64_t y_step;
  const float *low, *high;
  int64_t bounded;  // bit 0: from below, bit 1: from above
};

// The lists of rows: registers of a row's two sums and eight depths, its pointer and that pointer's summands.
#define SINTER_ROW_LIST1(op) op(0, 1, 14, 15, x9, "%[a]", "xzr")
#define SINTER_ROW_LIST2(op) SINTER_ROW_LIST1(op) op(2, 3, 16, 17, x10, "x9", "%[a_step]")
#define SINTER_ROW_LIST3(op) SINTER_ROW_LIST2(op) op(4, 5, 18, 19, x11, "x10", "%[a_step]")
#define SINTER_ROW_LIST4(op) SINTER_ROW_LIST3(op) op(6, 7, 20, 21, x12, "x11", "%[a_step]")
#define SINTER_ROW_LIST5(op) SINTER_ROW_LIST4(op) op(8, 9, 22, 23, x13, "x12", "%[a_step]")
#define SINTER_ROW_LIST6(op) SINTER_ROW_LIST5(op) op(10, 11, 24, 25, x14, "x13", "%[a_step]")
#define SINTER_ROW_LIST7(op) SINTER_ROW_LIST6(op) op(12, 13, 26, 27, x15, "x14", "%[a_step]")

#define SINTER_POINTERS(s0, s1, lo, hi, p, before, step) "add " #p ", " before ", " step "\n\t"
// Sums begin two rows at a time.
#define SINTER_START1 "ld1 {v0.4s, v1.4s}, [%[start]]\n\t"
#define SINTER_START2 "ld1 {v0.4s, v1.4s, v2.4s, v3.4s}, [%[start]]\n\t"
#define SINTER_START3 SINTER_START2 "ld1 {v4.4s, v5.4s}, [%[start]]\n\t"
#define SINTER_START4 SINTER_START2 "ld1 {v4.4s, v5.4s, v6.4s, v7.4s}, [%[start]]\n\t"
#define SINTER_START5 SINTER_START4 "ld1 {v8.4s, v9.4s}, [%[start]]\n\t"
#define SINTER_START6 SINTER_START4 "ld1 {v8.4s, v9.4s, v10.4s, v11.4s}, [%[start]]\n\t"
#define SINTER_START7 SINTER_START6 "ld1 {v12.4s, v13.4s}, [%[start]]\n\t"
#define SINTER_LOAD8(s0, s1, lo, hi, p, before, step) "ldp q" #lo ", q" #hi ", [" #p "], #32\n\t"
#define SINTER_LOAD4(s0, s1, lo, hi, p, before, step) "ldr q" #lo ", [" #p "], #16\n\t"
#define SINTER_LOAD2(s0, s1, lo, hi, p, before, step) "ldr d" #lo ", [" #p "], #8\n\t"
#define SINTER_LOAD1(s0, s1, lo, hi, p, before, step) "ldr s" #lo ", [" #p "], #4\n\t"
// Multiplies lane `lane` of the row's register x by depth `at` of the two depths in v28 to v31.
#define SINTER_MULTIPLY(s0, s1, b0, b1, x, lane)    \
  "fmla v" #s0 ".4s, v" #b0 ".4s, v" #x ".s[" #lane \
  "]\n\t"                                           \
  "fmla v" #s1 ".4s, v" #b1 ".4s, v" #x ".s[" #lane "]\n\t"
#define SINTER_LANE0(s0, s1, lo, hi, p, before, step) SINTER_MULTIPLY(s0, s1, 28, 29, lo, 0)
#define SINTER_LANE1(s0, s1, lo, hi, p, before, step) SINTER_MULTIPLY(s0, s1, 30, 31, lo, 1)
#define SINTER_LANE2(s0, s1, lo, hi, p, before, step) SINTER_MULTIPLY(s0, s1, 28, 29, lo, 2)
#define SINTER_LANE3(s0, s1, lo, hi, p, before, step) SINTER_MULTIPLY(s0, s1, 30, 31, lo, 3)
#define SINTER_LANE4(s0, s1, lo, hi, p, before, step) SINTER_MULTIPLY(s0, s1, 28, 29, hi, 0)
#define SINTER_LANE5(s0, s1, lo, hi, p, before, step) SINTER_MULTIPLY(s0, s1, 30, 31, hi, 1)
#define SINTER_LANE6(s0, s1, lo, hi, p, before, step) SINTER_MULTIPLY(s0, s1, 28, 29, hi, 2)
#define SINTER_LANE7(s0, s1, lo, hi, p, before, step) SINTER_MULTIPLY(s0, s1, 30, 31, hi, 3)
#define SINTER_ADD(s0, s1, lo, hi, p, before, step)                      \
  "ldp q28, q29, [%[addend]]\n\tadd %[addend], %[addend], %[y_step]\n\t" \
  "fadd v" #s0 ".4s, v" #s0 ".4s, v28.4s\n\tfadd v" #s1 ".4s, v" #s1 ".4s, v29.4s\n\t"
#define SINTER_CLAMP_BELOW(s0, s1, lo, hi, p, before, step) \
  "fmax v" #s0 ".4s, v" #s0 ".4s, v28.4s\n\tfmax v" #s1 ".4s, v" #s1 ".4s, v28.4s\n\t"
#define SINTER_CLAMP_ABOVE(s0, s1, lo, hi, p, before, step) \
  "fmin v" #s0 ".4s, v" #s0 ".4s, v29.4s\n\tfmin v" #s1 ".4s, v" #s1 ".4s, v29.4s\n\t"
#define SINTER_STORE(s0, s1, lo, hi, p, before, step) "st1 {v" #s0 ".4s, v" #s1 ".4s}, [%[y]], %[y_step]\n\t"
#define SINTER_TWO_DEPTHS "ld1 {v28.4s, v29.4s, v30.4s, v31.4s}, [x16], #64\n\t"

#define SINTER_EIGHT_DEPTHS(n)                                                                    \
  SINTER_TWO_DEPTHS SINTER_ROW_LIST##n(SINTER_LOAD8) SINTER_ROW_LIST##n(SINTER_LANE0)             \
      SINTER_ROW_LIST##n(SINTER_LANE1) SINTER_TWO_DEPTHS SINTER_ROW_LIST##n(SINTER_LANE2)         \
          SINTER_ROW_LIST##n(SINTER_LANE3) SINTER_TWO_DEPTHS SINTER_ROW_LIST##n(SINTER_LANE4)     \
              SINTER_ROW_LIST##n(SINTER_LANE5) SINTER_TWO_DEPTHS SINTER_ROW_LIST##n(SINTER_LANE6) \
                  SINTER_ROW_LIST##n(SINTER_LANE7)

#define SINTER_BLOCK_OF(n, last) \
  if constexpr (kRows == n)      \
  asm volatile("1:\n\t" SINTER_ROW_LIST##n(SINTER_POINTERS)                                                   \
      "add %[a], " #last ", %[a_step]\n\tmov x16, %[b]\n\t" SINTER_START##n                                   \
      "subs x17, %[depth], #16\n\tb.lt 4f\n\t"                                                               \
      "3:\n\t" SINTER_EIGHT_DEPTHS(n) SINTER_EIGHT_DEPTHS(n) "subs x17, x17, #16\n\tb.ge 3b\n\t"             \
      "4:\n\ttbz x17, #3, 5f\n\t" SINTER_EIGHT_DEPTHS(n)                                                     \
      "5:\n\tcbz %[rest], 8f\n\ttbz x17, #2, 6f\n\t" SINTER_TWO_DEPTHS SINTER_ROW_LIST##n(SINTER_LOAD4)      \
      SINTER_ROW_LIST##n(SINTER_LANE0) SINTER_ROW_LIST##n(SINTER_LANE1) SINTER_TWO_DEPTHS                     \
      SINTER_ROW_LIST##n(SINTER_LANE2) SINTER_ROW_LIST##n(SINTER_LANE3)                                       \
      "6:\n\ttbz x17, #1, 7f\n\t" SINTER_TWO_DEPTHS SINTER_ROW_LIST##n(SINTER_LOAD2)                         \
      SINTER_ROW_LIST##n(SINTER_LANE0) SINTER_ROW_LIST##n(SINTER_LANE1)                                       \
      "7:\n\ttbz x17, #0, 8f\n\tldp q28, q29, [x16]\n\t" SINTER_ROW_LIST##n(SINTER_LOAD1)                    \
      SINTER_ROW_LIST##n(SINTER_LANE0)                                                                        \
      "8:\n\tcbz %[finish], 11f\n\ttbz %[finish], #2, 9f\n\t" SINTER_ROW_LIST##n(SINTER_ADD)                  \
      "9:\n\ttbz %[finish], #0, 10f\n\tld1r {v28.4s}, [%[low]]\n\t" SINTER_ROW_LIST##n(SINTER_CLAMP_BELOW)          \
      "10:\n\ttbz %[finish], #1, 11f\n\tld1r {v29.4s}, [%[high]]\n\t" SINTER_ROW_LIST##n(SINTER_CLAMP_ABOVE)        \
      "11:\n\t" SINTER_ROW_LIST##n(SINTER_STORE) "subs %[blocks], %[blocks], #1\n\tb.ne 1b"                  \
      : [a] "+r"(p.a), [addend] "+r"(p.addend), [y] "+r"(p.y), [blocks] "+r"(blocks)                          \
      : [a_step] "r"(p.a_step), [b] "r"(p.b), [depth] "r"(p.depth), [rest] "r"(p.depth & 7),                  \
        [start] "r"(p.start), [y_step] "r"(p.y_step), [low] "r"(p.low), [high] "r"(p.high),                   \
        [finish] "r"(p.bounded | (p.addend != nullptr ? 4 : 0))                                               \
      : "memory", "cc", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "v0", "v1", "v2",       \
        "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17",     \
        "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31")

// Computes `blocks` blocks of kRows rows.
template <int kRows>
HWY_INLINE void multiply_blocks(RowsOfPanel& p, int64_t blocks) {
  SINTER_BLOCK_OF(1, x9);
  SINTER_BLOCK_OF(2, x10);
  SINTER_BLOCK_OF(3, x11);
  SINTER_BLOCK_OF(4, x12);
  SINTER_BLOCK_OF(5, x13);
  SINTER_BLOCK_OF(6, x14);
  SINTER_BLOCK_OF(7, x15);
}

// Computes all rows, in blocks that differ by one row at most.
HWY_NOINLINE void multiply_panel(RowsOfPanel p, int64_t rows) {
  if (rows <= 0) return;
  const int64_t blocks = (rows + kSevenRows - 1) / kSevenRows, fewer = rows / blocks,
                larger = rows - fewer * blocks;  // blocks that have a row more
  for (const auto& [n, count] : {std::pair(fewer + 1, larger), std::pair(fewer, blocks - larger)}) {
    if (count == 0) continue;
    switch (n) {
#define SINTER_CASE(n)            \
  case n:                         \
    multiply_blocks<n>(p, count); \
    break;
      SINTER_CASE(1)
      SINTER_CASE(2)
      SINTER_CASE(3)
      SINTER_CASE(4)
      SINTER_CASE(5)
      SINTER_CASE(6)
      SINTER_CASE(7)
#undef SINTER_CASE
    }
  }
}

#include "platforms/simd/isa/undef_assembly.h"

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();
#endif  // HWY_ARCH_ARM_A64

#endif  // per-target include guard
