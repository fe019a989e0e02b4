// Rows of a product by one packed panel, in blocks whose sums are in registers.
//
// Per-target header: included again for every instruction set.
#if defined(SINTER_PLATFORMS_SIMD_FLOAT_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SINTER_PLATFORMS_SIMD_FLOAT_GEMM_TILE_INL_H_
#undef SINTER_PLATFORMS_SIMD_FLOAT_GEMM_TILE_INL_H_
#else
#define SINTER_PLATFORMS_SIMD_FLOAT_GEMM_TILE_INL_H_
#endif

#include "hwy/highway.h"
#include "platforms/simd/float/gemm.h"
#include "platforms/simd/float/gemm_four_depths_neon-inl.h"
#include "platforms/simd/isa/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// The rows of the largest block: its sums take the registers that the operands leave. Nine listed rows take
// all registers for pointers.
template <int kVectors, bool kListed>
constexpr int largest_block() {
  if (HWY_ARCH_ARM_A64 && kVectors == 2) return 10;
  const int most = kVectors == 1 || (HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86) ? 12 : 6;
  return kListed && most > 9 ? 9 : most;
}

// True if sums begin with the bias, which saves instructions; added last, it takes part in one rounding only.
constexpr bool kBiasFirst = HWY_ARCH_ARM_A64;

// The beginning of the sums of one panel over one piece of the depth, and the way they are stored.
struct PanelEnd {
  V bias0, bias1, low, high;
  bool raises, lowers;
  size_t tail;          // columns of the last vector
  const float* addend;  // added to the sums: row 0 of the panel's columns, or null
  int64_t addend_stride;
  const float* next;        // the operand after this panel, which is fetched meanwhile
  const int32_t* depth_at;  // the places of the piece's depths, if rows and depths are listed
};

// True if blocks fetch the next panel, which is beyond the caches of a core where matrices are large: one
// cache line at each depth.
constexpr bool kFetches = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2;
constexpr int64_t kFetchedFloats = 16;

// Lists each row and the row whose pointer reaches it: the addressing modes of x86 reach three rows from a
// pointer.
#define SINTER_ROWS(row)                                                                              \
  row(0, 0) row(1, 0) row(2, 0) row(3, 3) row(4, 3) row(5, 3) row(6, 6) row(7, 6) row(8, 6) row(9, 9) \
      row(10, 9) row(11, 9)

HWY_INLINE V with_bias(V sum, [[maybe_unused]] V bias) { return kBiasFirst ? sum : hn::Add(sum, bias); }

// Computes kRows rows of one panel over one piece of the depth, the first of them row `first` of g. kVectors
// is 1 where the panel's columns fit one vector, else 2; with kListed, rows and depths of a are at listed
// places. It is out of line, so that each block has all registers.
template <int kRows, int kVectors, bool kListed>
HWY_NOINLINE void block(const Gemm& g, int64_t first, const float* a, const float* b, int64_t b_step,
                        int64_t depth, float* y, const PanelEnd& end) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t s = kListed ? 0 : g.a_stride;
  a += first * s;
#define SINTER_ROW(r, base)                                          \
  [[maybe_unused]] V c##r##0 = kBiasFirst ? end.bias0 : hn::Zero(d), \
                     c##r##1 = kBiasFirst ? end.bias1 : hn::Zero(d);
  SINTER_ROWS(SINTER_ROW)
#undef SINTER_ROW
  int64_t k = 0;
#if HWY_ARCH_ARM_A64
#define SINTER_ROW(r, base) [[maybe_unused]] const float* p##r = a + (kRows > r ? r : 0) * s;
  SINTER_ROWS(SINTER_ROW)
#undef SINTER_ROW
  const auto add = [&](const FourFloats& f) SINTER_SIMD_LAMBDA {
#define SINTER_PAIR(q, r)                                                                    \
  if constexpr (kRows > r)                                                                   \
    f.add<kVectors>(p##q, p##r, (c##q##0).raw, (c##q##1).raw, (c##r##0).raw, (c##r##1).raw); \
  else if constexpr (kRows > q)                                                              \
    f.add<kVectors>(p##q, (c##q##0).raw, (c##q##1).raw);
    SINTER_PAIR(0, 1)
    SINTER_PAIR(2, 3) SINTER_PAIR(4, 5) SINTER_PAIR(6, 7) SINTER_PAIR(8, 9) SINTER_PAIR(10, 11)
#undef SINTER_PAIR
  };
  FourFloats f;
  if (kVectors == 2 && b_step == 2 * lanes) {
    for (; k + 4 <= depth; k += 4) f.load_panel(b), add(f);
  } else {
    for (; k + 4 <= depth; k += 4) {
#define SINTER_DEPTH(i)             \
  f.v[2 * i] = hn::LoadU(d, b).raw; \
  f.v[2 * i + 1] = kVectors == 2 ? hn::LoadU(d, b + lanes).raw : f.v[2 * i], b += b_step;
      SINTER_DEPTH(0)
      SINTER_DEPTH(1)
      SINTER_DEPTH(2)
      SINTER_DEPTH(3)
#undef SINTER_DEPTH
      add(f);
    }
  }
#endif
#if HWY_ARCH_X86
  if constexpr (kListed) {
    // The pointers are kept: compilers would replace them by one pointer and sums of two offsets.
#define SINTER_ROW(r, base)                                                       \
  [[maybe_unused]] const float* p##r = a + (kRows > r ? g.row_at[first + r] : 0); \
  if constexpr (kRows > r) asm("" : "+r"(p##r));
    SINTER_ROWS(SINTER_ROW)
#undef SINTER_ROW
    for (; k < depth; ++k, b += b_step) {
      const int64_t at = end.depth_at[k];
      const V b0 = hn::LoadU(d, b);
      [[maybe_unused]] const V b1 = kVectors == 2 ? hn::LoadU(d, b + lanes) : b0;
#define SINTER_ROW(r, base)                                            \
  if constexpr (kRows > r) {                                           \
    const V x = hn::Set(d, p##r[at]);                                  \
    c##r##0 = hn::MulAdd(x, b0, c##r##0);                              \
    if constexpr (kVectors == 2) c##r##1 = hn::MulAdd(x, b1, c##r##1); \
  }
      SINTER_ROWS(SINTER_ROW)
#undef SINTER_ROW
    }
  }
#endif
  const float* a0 = a + k;
  [[maybe_unused]] const float* a3 = a0 + (kRows > 3 ? 3 * s : 0);
  [[maybe_unused]] const float* a6 = a0 + (kRows > 6 ? 6 * s : 0);
  [[maybe_unused]] const float* a9 = a0 + (kRows > 9 ? 9 * s : 0);
  [[maybe_unused]] const float* next = end.next;
  for (; k < depth; ++k, b += b_step) {
    const V b0 = hn::LoadU(d, b);
    if constexpr (kFetches) {
      __builtin_prefetch(next, 0, 2);
      next += kFetchedFloats;
    }
    [[maybe_unused]] const V b1 = kVectors == 2 ? hn::LoadU(d, b + lanes) : b0;
#define SINTER_ROW(r, base)                                            \
  if constexpr (kRows > r) {                                           \
    const V x = hn::Set(d, a##base[(r - base) * s]);                   \
    c##r##0 = hn::MulAdd(x, b0, c##r##0);                              \
    if constexpr (kVectors == 2) c##r##1 = hn::MulAdd(x, b1, c##r##1); \
  }
    SINTER_ROWS(SINTER_ROW)
#undef SINTER_ROW
    ++a0;
    if constexpr (kRows > 3) ++a3;
    if constexpr (kRows > 6) ++a6;
    if constexpr (kRows > 9) ++a9;
  }
  const bool whole = end.tail == static_cast<size_t>(lanes);
  y += first * g.y_stride;
  if (whole && end.addend == nullptr) {
    const auto store_rows = [&](auto finish) SINTER_SIMD_LAMBDA {
      float* to = y;
#define SINTER_ROW(r, base)                                                             \
  if constexpr (kRows > r) {                                                            \
    hn::StoreU(finish(c##r##0, end.bias0), d, to);                                      \
    if constexpr (kVectors == 2) hn::StoreU(finish(c##r##1, end.bias1), d, to + lanes); \
    to += g.y_stride;                                                                   \
  }
      SINTER_ROWS(SINTER_ROW)
#undef SINTER_ROW
    };
    const V low = end.low, high = end.high;
    if (end.raises && !end.lowers)
      store_rows([&](V v, V bias) SINTER_SIMD_LAMBDA { return at_least(with_bias(v, bias), low); });
    else if (end.lowers)
      store_rows([&](V v, V bias) SINTER_SIMD_LAMBDA { return clamp(with_bias(v, bias), low, high); });
    else
      store_rows([](V v, V bias) SINTER_SIMD_LAMBDA { return with_bias(v, bias); });
    return;
  }
  const float* addend = end.addend != nullptr ? end.addend + first * end.addend_stride : nullptr;
  const auto store = [&](V v, V bias, int64_t row, int64_t column) SINTER_SIMD_LAMBDA {
    float* to = y + row * g.y_stride + column;
    const float* more = addend + (addend != nullptr ? row * end.addend_stride + column : 0);
    if (whole || column + lanes < kVectors * lanes) {
      if (addend != nullptr) v = hn::Add(v, hn::LoadU(d, more));
      hn::StoreU(clamp(with_bias(v, bias), end.low, end.high), d, to);
    } else {
      if (addend != nullptr) v = hn::Add(v, hn::LoadN(d, more, end.tail));
      hn::StoreN(clamp(with_bias(v, bias), end.low, end.high), d, to, end.tail);
    }
  };
#define SINTER_ROW(r, base)                                           \
  if constexpr (kRows > r) {                                          \
    store(c##r##0, end.bias0, r, 0);                                  \
    if constexpr (kVectors == 2) store(c##r##1, end.bias1, r, lanes); \
  }
  SINTER_ROWS(SINTER_ROW)
#undef SINTER_ROW
}

#undef SINTER_ROWS

// Computes all rows of one panel, in blocks that differ by one row at most.
template <int kVectors, bool kListed>
HWY_NOINLINE void panel_rows(const Gemm& g, const float* a, const float* b, int64_t step, int64_t depth,
                             float* y, PanelEnd end) {
  constexpr int kLargest = largest_block<kVectors, kListed>();
  const int64_t parts = std::max<int64_t>(static_cast<int64_t>(2 * hn::Lanes(F())) / kFetchedFloats, 1);
  const float* const next = end.next;
  const int64_t blocks = divide_up(g.rows, kLargest), fewer = g.rows / std::max<int64_t>(blocks, 1),
                larger = g.rows - fewer * blocks;  // blocks that have a row more
  int64_t r = 0;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t rows = fewer + (i < larger ? 1 : 0);
    // A block fetches a part of the next panel; further blocks find it fetched.
    if (kFetches && parts > 1) end.next = next + i % parts * depth * kFetchedFloats;
    switch (rows) {
#define SINTER_BLOCK(n)                                                                        \
  case n:                                                                                      \
    if constexpr (n <= kLargest) block<n, kVectors, kListed>(g, r, a, b, step, depth, y, end); \
    break;
      SINTER_BLOCK(1)
      SINTER_BLOCK(2)
      SINTER_BLOCK(3)
      SINTER_BLOCK(4)
      SINTER_BLOCK(5)
      SINTER_BLOCK(6)
      SINTER_BLOCK(7)
      SINTER_BLOCK(8)
      SINTER_BLOCK(9)
      SINTER_BLOCK(10)
      SINTER_BLOCK(11)
      SINTER_BLOCK(12)
#undef SINTER_BLOCK
    }
    r += rows;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
