// A product on 64-bit ARM whose blocks of rows are copied first, so that one instruction loads four rows. It
// pays with enough panels. Copies are in assembly, because an instruction stores four registers only if they
// are neighbours.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_FLOAT_GEMM_COPIED_ROWS_NEON_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_FLOAT_GEMM_COPIED_ROWS_NEON_INL_H_
#undef SINTER_PLATFORMS_SIMD_FLOAT_GEMM_COPIED_ROWS_NEON_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_FLOAT_GEMM_COPIED_ROWS_NEON_INL_H_
#endif

#include "platforms/simd/float/gemm.h"
#include "platforms/simd/float/gemm_8x8_neon-inl.h"
#include "platforms/simd/isa/math-inl.h"

#if HWY_ARCH_ARM_A64
HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

constexpr int64_t kCopiedFloats = 8 * 112;  // of a block on the stack
constexpr int64_t kPanelFloats =
    64 * 1024;  // bytes of panels that are multiplied with one block after the other
constexpr int64_t kFewPanels = kCopiedColumns / 8;  // panels that outweigh the copy of a block

// The lists of rows: registers of four depths and of the next four, the pointer, and the two summands of it.
#define SINTER_ROW_LIST1(op) op(0, 8, x9, "%[a]", "xzr")
#define SINTER_ROW_LIST2(op) SINTER_ROW_LIST1(op) op(1, 9, x10, "x9", "%[stride]")
#define SINTER_ROW_LIST3(op) SINTER_ROW_LIST2(op) op(2, 10, x11, "x10", "%[stride]")
#define SINTER_ROW_LIST4(op) SINTER_ROW_LIST3(op) op(3, 11, x12, "x11", "%[stride]")
#define SINTER_ROW_LIST5(op) SINTER_ROW_LIST4(op) op(4, 12, x13, "x12", "%[stride]")
#define SINTER_ROW_LIST6(op) SINTER_ROW_LIST5(op) op(5, 13, x14, "x13", "%[stride]")
#define SINTER_ROW_LIST7(op) SINTER_ROW_LIST6(op) op(6, 14, x15, "x14", "%[stride]")
#define SINTER_ROW_LIST8(op) SINTER_ROW_LIST7(op) op(7, 15, x16, "x15", "%[stride]")

#define SINTER_POINTERS(lo, hi, p, before, step) "add " #p ", " before ", " step "\n\t"
#define SINTER_LOAD8(lo, hi, p, before, step) "ldp q" #lo ", q" #hi ", [" #p "], #32\n\t"
#define SINTER_LOAD4(lo, hi, p, before, step) "ldr q" #lo ", [" #p "], #16\n\t"
#define SINTER_STORE_FOUR(first, last) "st1 {v" #first ".4s-v" #last ".4s}, [%[to]], #64\n\t"
#define SINTER_STORE_LOW1 "st1 {v0.4s}, [%[to]], #16\n\t"
#define SINTER_STORE_LOW2 "st1 {v0.4s-v1.4s}, [%[to]], #32\n\t"
#define SINTER_STORE_LOW3 "st1 {v0.4s-v2.4s}, [%[to]], #48\n\t"
#define SINTER_STORE_LOW4 SINTER_STORE_FOUR(0, 3)
#define SINTER_STORE_LOW5 SINTER_STORE_LOW4 "st1 {v4.4s}, [%[to]], #16\n\t"
#define SINTER_STORE_LOW6 SINTER_STORE_LOW4 "st1 {v4.4s-v5.4s}, [%[to]], #32\n\t"
#define SINTER_STORE_LOW7 SINTER_STORE_LOW4 "st1 {v4.4s-v6.4s}, [%[to]], #48\n\t"
#define SINTER_STORE_LOW8 SINTER_STORE_LOW4 SINTER_STORE_FOUR(4, 7)
#define SINTER_STORE_HIGH1 "st1 {v8.4s}, [%[to]], #16\n\t"
#define SINTER_STORE_HIGH2 "st1 {v8.4s-v9.4s}, [%[to]], #32\n\t"
#define SINTER_STORE_HIGH3 "st1 {v8.4s-v10.4s}, [%[to]], #48\n\t"
#define SINTER_STORE_HIGH4 SINTER_STORE_FOUR(8, 11)
#define SINTER_STORE_HIGH5 SINTER_STORE_HIGH4 "st1 {v12.4s}, [%[to]], #16\n\t"
#define SINTER_STORE_HIGH6 SINTER_STORE_HIGH4 "st1 {v12.4s-v13.4s}, [%[to]], #32\n\t"
#define SINTER_STORE_HIGH7 SINTER_STORE_HIGH4 "st1 {v12.4s-v14.4s}, [%[to]], #48\n\t"
#define SINTER_STORE_HIGH8 SINTER_STORE_HIGH4 SINTER_STORE_FOUR(12, 15)

// Copies the depths that are a multiple of four.
#define SINTER_COPY_OF(n) \
  if (rows == n)          \
  asm volatile(SINTER_ROW_LIST##n(SINTER_POINTERS) "subs %[depth], %[depth], #8\n\tb.lt 2f\n\t"              \
      "1:\n\t" SINTER_ROW_LIST##n(SINTER_LOAD8) SINTER_STORE_LOW##n SINTER_STORE_HIGH##n                     \
      "subs %[depth], %[depth], #8\n\tb.ge 1b\n\t"                                                           \
      "2:\n\ttbz %[depth], #2, 3f\n\t" SINTER_ROW_LIST##n(SINTER_LOAD4) SINTER_STORE_LOW##n "3:"             \
      : [to] "+r"(to), [depth] "+r"(left)                                                                    \
      : [a] "r"(a), [stride] "r"(stride * static_cast<int64_t>(sizeof(float)))                               \
      : "memory", "cc", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "v0", "v1", "v2", "v3", "v4", \
        "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15")

// Copies `rows` rows at a, `stride` floats apart, to [depth / 4, rounded up][rows][4]; absent depths are 0.
HWY_INLINE void copy_block(const float* a, int64_t stride, int64_t rows, int64_t depth, float* to) {
  int64_t left = depth;
  SINTER_COPY_OF(1);
  SINTER_COPY_OF(2);
  SINTER_COPY_OF(3);
  SINTER_COPY_OF(4);
  SINTER_COPY_OF(5);
  SINTER_COPY_OF(6);
  SINTER_COPY_OF(7);
  SINTER_COPY_OF(8);
  const int64_t whole = depth / 4 * 4;
  if (whole == depth) return;
  const F d;
  for (int64_t r = 0; r < rows; ++r)
    hn::StoreU(hn::LoadN(d, a + r * stride + whole, static_cast<size_t>(depth - whole)), d, to + r * 4);
}

#include "platforms/simd/isa/undef_assembly.h"

// Computes columns column .. column + 8 * panels - 1, from packed panels. Blocks of `most` rows go to
// `block`.
static HWY_NOINLINE void multiply_blocks_of(const Gemm& g, int64_t column, int64_t panels, int64_t most,
                                            float* block) {
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  const int64_t blocks = divide_up(g.rows, most),
                bounded = (g.min > -HUGE_VALF ? 1 : 0) + (g.max < HUGE_VALF ? 2 : 0);
  for (int64_t k0 = 0; k0 < g.depth; k0 += kDepthPiece) {
    const int64_t depth = std::min(kDepthPiece, g.depth - k0);
    const bool biased = k0 == 0 && g.bias != nullptr;
    const int64_t finish = (k0 + depth == g.depth ? bounded : 0) + (k0 > 0 ? 4 : 0);
    for (int64_t i = 0; i < blocks; ++i) {
      const RowBlock rows = row_block(g.rows, blocks, i);
      copy_block(g.a + rows.first * g.a_stride + k0, g.a_stride, rows.count, depth, block);
      multiply_block_of(
          rows.count,
          {block, rows.count * 4 * kFloat, g.b + column * g.depth + k0 * 8, (g.depth - depth) * 8 * kFloat,
           depth, panels, biased ? g.bias + column : kZeroSums, biased ? 8 * kFloat : 0,
           g.y + rows.first * g.y_stride + column, g.y_stride * kFloat, &g.min, &g.max, finish});
    }
  }
}

static HWY_NOINLINE void multiply_small_blocks(const Gemm& g, int64_t column, int64_t panels) {
  HWY_ALIGN float block[kCopiedFloats];
  multiply_blocks_of(g, column, panels, std::min(kEightRows, kCopiedFloats / (divide_up(g.depth, 4) * 4)),
                     block);
}

// Computes columns from `column` on, of whole panels before `end`, as many as this takes. Returns the first
// that is left.
HWY_INLINE int64_t multiply_copied_rows(const Gemm& g, int64_t column, int64_t end) {
  int64_t panels = (end - column) / 8;
  if (g.b_step != 0 || panels < kFewPanels || g.depth == 0) return column;
  if (g.depth <= kSmallDepth) {
    multiply_small_blocks(g, column, panels);
    return column + 8 * panels;
  }
  if (g.copies == nullptr) return column;
  const int64_t most = std::max(kFewPanels, kPanelFloats / (8 * std::min(g.depth, kDepthPiece)));
  for (int64_t groups = divide_up(panels, most); groups > 0; --groups) {
    const int64_t count = divide_up(panels, groups);
    multiply_blocks_of(g, column, count, kEightRows, g.copies);
    column += 8 * count, panels -= count;
  }
  return column;
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();
#endif  // HWY_ARCH_ARM_A64

#endif  // per-target include guard
