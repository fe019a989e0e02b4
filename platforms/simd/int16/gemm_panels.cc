#define SINTER_SIMD_BYTE_TABLES
#include "platforms/simd/int16/gemm_panels.h"

#include <cstring>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int16/gemm_panels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8/int8-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

constexpr int64_t kPanelRows = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3 ? 8 : 4;  // by the registers

int64_t q16_panel_width() { return static_cast<int64_t>(2 * hn::Lanes(D32())); }

HWY_INLINE V16 panel_weights(const int8_t* p) { return load16(p); }
HWY_INLINE V16 panel_weights(const int16_t* p) { return hn::LoadU(D16(), p); }

// The columns of one panel.
struct Q16Panel {
  const int32_t* bias;
  const float* multipliers;
  int64_t valid;  // columns
};

// Sums kRows rows from x on; end(row, lower sums, upper sums). kVectors is 1 if the columns fit one vector.
template <int kRows, int kVectors, class W, class End>
HWY_INLINE void q16_sums(const Q16Panel& p, const Q16Rows& rows, const int16_t* x, const W* b,
                         const End& end) {
  const D32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V32 s0 = hn::LoadU(d, p.bias), s1 = hn::LoadU(d, p.bias + lanes);
  const int64_t step = rows.stride;
  V32 c00 = s0, c10 = s0, c20 = s0, c30 = s0, c40 = s0, c50 = s0, c60 = s0, c70 = s0;
  V32 c01 = s1, c11 = s1, c21 = s1, c31 = s1, c41 = s1, c51 = s1, c61 = s1, c71 = s1;
  for (int64_t line = 0; line < rows.lines; ++line, x += rows.line_step)
    for (int64_t k = 0; k < rows.line; k += 2, b += 4 * lanes) {
      const V16 w0 = panel_weights(b), w1 = kVectors == 2 ? panel_weights(b + 2 * lanes) : w0;
#define SINTER_ROW(r)                                                                \
  if constexpr (kRows > r) {                                                         \
    c##r##0 = add_pairs(x + r * step + k, w0, c##r##0);                              \
    if constexpr (kVectors == 2) c##r##1 = add_pairs(x + r * step + k, w1, c##r##1); \
  }
      SINTER_ROW(0)
      SINTER_ROW(1)
      SINTER_ROW(2) SINTER_ROW(3) SINTER_ROW(4) SINTER_ROW(5) SINTER_ROW(6) SINTER_ROW(7)
#undef SINTER_ROW
    }
#define SINTER_ROW(r) \
  if constexpr (kRows > r) end(r, c##r##0, c##r##1);
  SINTER_ROW(0)
  SINTER_ROW(1) SINTER_ROW(2) SINTER_ROW(3) SINTER_ROW(4) SINTER_ROW(5) SINTER_ROW(6) SINTER_ROW(7)
#undef SINTER_ROW
}

// Stores the results of kRows rows to y.
template <int kRows, int kVectors, class W, class T>
HWY_INLINE void q16_block(const Q16Panel& p, const Q16Rows& rows, const int16_t* x, const W* b,
                          const ProductResult& result, T* y) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D32()));
  const hn::Rebind<T, D32> to;
  Finish<T> lower(result), upper(result);
  lower.multiplier = hn::LoadU(DF(), p.multipliers),
  upper.multiplier = hn::LoadU(DF(), p.multipliers + lanes);
  const auto rest = static_cast<size_t>(p.valid - (kVectors - 1) * lanes);  // those of the last vector
  const auto store = [&](int64_t r, V32 a, V32 c) SINTER_SIMD_LAMBDA {
    T* at = y + r * rows.y_stride;
    const auto last = kVectors == 2 ? upper(c) : lower(a);
    if constexpr (kVectors == 2) hn::StoreU(lower(a), to, at);
    at += (kVectors - 1) * lanes;
    if (HWY_LIKELY(static_cast<int64_t>(rest) == lanes))
      hn::StoreU(last, to, at);
    else
      hn::StoreN(last, to, at, rest);
  };
  q16_sums<kRows, kVectors>(p, rows, x, b, store);
}

template <int kVectors, class W, class T>
HWY_NOINLINE void q16_rows(const Q16Panel& p, const Q16Rows& rows, const W* b, const ProductResult& result,
                           T* y) {
  const int16_t* x = rows.x;
  int64_t left = rows.count;
  for (; left >= kPanelRows;
       left -= kPanelRows, x += kPanelRows * rows.stride, y += kPanelRows * rows.y_stride)
    q16_block<kPanelRows, kVectors>(p, rows, x, b, result, y);
  const auto some_rows = [&](auto n) SINTER_SIMD_LAMBDA {
    if ((left & n()) == 0) return;
    q16_block<n(), kVectors>(p, rows, x, b, result, y);
    x += n() * rows.stride, y += n() * rows.y_stride;
  };
  if constexpr (kPanelRows > 4) some_rows(std::integral_constant<int, 4>());
  some_rows(std::integral_constant<int, 2>());
  some_rows(std::integral_constant<int, 1>());
}

// The depths whose products int32 holds, whatever the weights.
constexpr int64_t kHeldDepths = 510;

// The same with sums in int64, for weights that are too large for int32.
template <int kRows, class T>
HWY_INLINE void q16_long_block(const Q16Packed& w, const Q16Rows& rows, int64_t row, int64_t column,
                               int64_t valid, const ProductResult& result, T* y) {
  const D32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  HWY_ALIGN static constexpr int32_t kNothing[2 * hn::MaxLanes(D32())] = {};
  HWY_ALIGN int32_t part[kRows][2 * hn::MaxLanes(D32())];
  int64_t sums[kRows][2 * hn::MaxLanes(D32())] = {};
  const Q16Panel p{kNothing, nullptr, valid};
  const int8_t* b = w.panels + column * w.depth;
  const int16_t* line = rows.x + row * rows.stride;
  for (int64_t l = 0; l < rows.lines; ++l, line += rows.line_step)
    for (int64_t k = 0; k < rows.line; k += kHeldDepths) {
      Q16Rows held = rows;
      held.lines = 1, held.line = std::min(kHeldDepths, rows.line - k);
      q16_sums<kRows, 2>(p, held, line + k, b, [&](int64_t r, V32 a, V32 c) SINTER_SIMD_LAMBDA {
        hn::Store(a, d, part[r]);
        hn::Store(c, d, part[r] + lanes);
      });
      b += held.line * 2 * lanes;
      for (int64_t r = 0; r < kRows; ++r)
        for (int64_t c = 0; c < valid; ++c) sums[r][c] += part[r][c];
    }
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t c = 0; c < valid; ++c) {
      const auto sum =
          static_cast<int64_t>(static_cast<uint64_t>(w.bias[column + c]) + static_cast<uint64_t>(sums[r][c]));
      const float v = static_cast<float>(sum) * w.multipliers[column + c];
      T& to = y[(row + r) * rows.y_stride + c];
      if constexpr (hwy::IsFloat<T>()) {
        to = v;
      } else {
        const float bounded = !(v > result.low) ? result.low : v < result.high ? v : result.high;
        constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: a sum with it is rounded
        to = static_cast<T>(static_cast<int32_t>((bounded + kMagic) - kMagic) + result.zero);
      }
    }
}
template <class T>
HWY_NOINLINE void q16_long_rows(const Q16Packed& w, const Q16Rows& rows, int64_t column, int64_t valid,
                                const ProductResult& result, T* y) {
  int64_t row = 0;
  for (; row + 4 <= rows.count; row += 4) q16_long_block<4>(w, rows, row, column, valid, result, y);
  for (; row < rows.count; ++row) q16_long_block<1>(w, rows, row, column, valid, result, y);
}

// Small panels are widened once for many rows.
constexpr int64_t kWidened16 = 1024, kManyRows16 = 16;

template <class T>
HWY_INLINE void q16_panel(const Q16Packed& w, const Q16Rows& rows, int64_t panel,
                          const ProductResult& result) {
  const int64_t width = q16_panel_width(), column = panel * width,
                valid = std::min(width, w.columns - column);
  if (valid <= 0) return;
  T* y = static_cast<T*>(result.y) + column;
  if (w.narrow[panel] == 0) return q16_long_rows(w, rows, column, valid, result, y);
  HWY_ALIGN int32_t bias[2 * hn::MaxLanes(D32())];
  for (int64_t c = 0; c < width; ++c) bias[c] = static_cast<int32_t>(w.bias[column + c]);
  const Q16Panel p{bias, w.multipliers + column, valid};
  const int8_t* b = w.panels + column * w.depth;
  const bool one = 2 * valid <= width;
  if (w.depth * width <= kWidened16 && rows.count >= kManyRows16) {
    HWY_ALIGN int16_t wide[kWidened16];
    for (int64_t i = 0; i < w.depth * width; i += width) hn::Store(load16(b + i), D16(), wide + i);
    return one ? q16_rows<1>(p, rows, wide, result, y) : q16_rows<2>(p, rows, wide, result, y);
  }
  one ? q16_rows<1>(p, rows, b, result, y) : q16_rows<2>(p, rows, b, result, y);
}

void multiply_q16(const Q16Packed& w, const Q16Rows& rows, int64_t first_panel, int64_t end_panel,
                  const ProductResult& result) {
  const auto multiply = result.type == DType::kInt8      ? q16_panel<int8_t>
                        : result.type == DType::kFloat32 ? q16_panel<float>
                                                         : q16_panel<int16_t>;
  for (int64_t panel = first_panel; panel < end_panel; ++panel) multiply(w, rows, panel, result);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(q16_panel_width);
HWY_EXPORT(multiply_q16);

bool q16_multiplies_panels() { return HWY_ARCH_X86 != 0; }
int64_t q16_panel_width() { return HWY_DYNAMIC_DISPATCH(q16_panel_width)(); }
void multiply_q16(const Q16Packed& w, const Q16Rows& rows, int64_t first_panel, int64_t end_panel,
                  const ProductResult& result) {
  HWY_DYNAMIC_DISPATCH(multiply_q16)(w, rows, first_panel, end_panel, result);
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
