#include "platforms/simd/float/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/gemm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/float/gemm_7x8_neon-inl.h"
#include "platforms/simd/float/gemm_copied_rows_neon-inl.h"
#include "platforms/simd/float/gemm_tile-inl.h"
#include "platforms/simd/isa/dot-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

int64_t panel_width() { return static_cast<int64_t>(2 * hn::Lanes(F())); }

#undef SINTER_GEMM_TILE
#if HWY_ARCH_ARM_A64
#define SINTER_GEMM_TILE "7x8_neon"
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#define SINTER_GEMM_TILE "12x32_avx512"
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define SINTER_GEMM_TILE "6x16_avx2"
#else
#define SINTER_GEMM_TILE "6x8"
#endif
const char* gemm_name() { return "f32_gemm_" SINTER_GEMM_TILE; }
const char* conv_gemm_name() { return "f32_conv_gemm_" SINTER_GEMM_TILE; }

#if HWY_ARCH_ARM_A64
int64_t row_unit(int64_t columns) { return columns < kCopiedColumns ? kSevenRows : kEightRows; }
#else
int64_t row_unit(int64_t) { return 1; }
#endif

// `next` is the piece of a panel that follows, or b.
HWY_INLINE void piece(const Gemm& g, int64_t column, int64_t k0, const float* b, int64_t b_step,
                      const float* next) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  const auto width = static_cast<int64_t>(2 * lanes);
  const int64_t depth = g.depth - k0 < kDepthPiece ? g.depth - k0 : kDepthPiece;
  const bool last = k0 + depth >= g.depth;
  const auto valid = static_cast<size_t>(g.columns - column < width ? g.columns - column : width);
  const bool one = valid <= lanes;
  float* y = g.y + column;
#if HWY_ARCH_ARM_A64
  if (valid == 2 * lanes && b_step == width) {
    constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
    float start[16] = {};
    if (k0 == 0 && g.bias != nullptr)
      for (size_t i = 0; i < 16; i += lanes)
        hn::StoreU(hn::LoadU(d, g.bias + column + static_cast<int64_t>(i % 8)), d, start + i);
    const int64_t bounded = !last ? 0 : (g.min > -HUGE_VALF ? 1 : 0) + (g.max < HUGE_VALF ? 2 : 0);
    multiply_panel({g.a + k0, g.a_stride * kFloat, b, depth, start, k0 > 0 ? y : nullptr, y,
                    g.y_stride * kFloat, &g.min, &g.max, bounded},
                   g.rows);
    return;
  }
#endif
  // Where the bias comes last, adding -0 changes nothing, not even the sign of a zero.
  const V none = kBiasFirst ? hn::Zero(d) : set(-0.0f);
  PanelEnd end = {none,
                  none,
                  set(-HUGE_VALF),
                  set(HUGE_VALF),
                  false,
                  false,
                  one ? valid : valid - lanes,
                  k0 > 0 ? y : nullptr,
                  g.y_stride,
                  next,
                  nullptr};
  if (last) {
    end.low = set(g.min), end.high = set(g.max);
    end.raises = g.min > -HUGE_VALF, end.lowers = g.max < HUGE_VALF;
  }
  if ((kBiasFirst ? k0 == 0 : last) && g.bias != nullptr) {
    const float* bias = g.bias + column;
    end.bias0 = hn::LoadN(d, bias, one ? valid : lanes);
    if (!one) end.bias1 = hn::LoadN(d, bias + lanes, end.tail);
  }
#if HWY_ARCH_X86
  if (g.row_at != nullptr) {
    end.depth_at = g.depth_at + k0;
    return one ? panel_rows<1, true>(g, g.a, b, b_step, depth, y, end)
               : panel_rows<2, true>(g, g.a, b, b_step, depth, y, end);
  }
#endif
  if (one)
    panel_rows<1, false>(g, g.a + k0, b, b_step, depth, y, end);
  else
    panel_rows<2, false>(g, g.a + k0, b, b_step, depth, y, end);
}

void gemm_piece(const Gemm& g, int64_t column, int64_t k0, const float* b) {
  piece(g, column, k0, b, static_cast<int64_t>(2 * hn::Lanes(F())), b);
}

void gemm_columns(const Gemm& g, int64_t first_column, int64_t end_column) {
  const auto width = static_cast<int64_t>(2 * hn::Lanes(F()));
  const int64_t end = end_column < g.columns ? end_column : g.columns;
#if HWY_ARCH_ARM_A64
  first_column = multiply_copied_rows(g, first_column, end);
#endif
  // A product of depth 0 still has a bias.
  for (int64_t k0 = 0; k0 == 0 || k0 < g.depth; k0 += kDepthPiece)
    for (int64_t c = first_column; c < end; c += width) {
      if (g.b_step == 0) {
        const float* b = g.b + c * g.depth + k0 * width;
        const float* next = c + width < end ? b + g.depth * width
                            : k0 + kDepthPiece < g.depth
                                ? g.b + first_column * g.depth + (k0 + kDepthPiece) * width
                                : b;
        piece(g, c, k0, b, width, next);
      } else {
        const float* b = g.b + k0 * g.b_step + c;
        piece(g, c, k0, b, g.b_step, b);
      }
    }
}

void gemv(const float* matrix, int64_t columns, int64_t depth, const float* x, const float* bias, float min,
          float max, float* y) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = depth / lanes * lanes;
  const auto rest = static_cast<size_t>(depth - whole);
  const auto finish = [&](int64_t n, float sum) {
    if (bias != nullptr) sum += bias[n];
    y[n] = sum < min ? min : sum > max ? max : sum;
  };
  int64_t n = 0;
  for (; n + 4 <= columns; n += 4) {
    float sums[4];
    four_dots(matrix + n * depth, static_cast<size_t>(depth), x, sums);
    for (int64_t k = 0; k < 4; ++k) finish(n + k, sums[k]);
  }
  for (; n < columns; ++n) {
    const float* m = matrix + n * depth;
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    int64_t i = 0;
    for (; i + 4 * lanes <= whole; i += 4 * lanes) {
      s0 = hn::MulAdd(hn::LoadU(d, m + i), hn::LoadU(d, x + i), s0);
      s1 = hn::MulAdd(hn::LoadU(d, m + i + lanes), hn::LoadU(d, x + i + lanes), s1);
      s2 = hn::MulAdd(hn::LoadU(d, m + i + 2 * lanes), hn::LoadU(d, x + i + 2 * lanes), s2);
      s3 = hn::MulAdd(hn::LoadU(d, m + i + 3 * lanes), hn::LoadU(d, x + i + 3 * lanes), s3);
    }
    for (; i < whole; i += lanes) s0 = hn::MulAdd(hn::LoadU(d, m + i), hn::LoadU(d, x + i), s0);
    if (rest > 0) s1 = hn::MulAdd(hn::LoadN(d, m + whole, rest), hn::LoadN(d, x + whole, rest), s1);
    finish(n, sum4(s0, s1, s2, s3));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

constexpr int64_t kTileFloats = 8192;  // of the rows of a tile

}  // namespace

HWY_EXPORT(panel_width);
HWY_EXPORT(gemm_name);
HWY_EXPORT(conv_gemm_name);
HWY_EXPORT(row_unit);
HWY_EXPORT(gemm_columns);
HWY_EXPORT(gemm_piece);
HWY_EXPORT(gemv);

int64_t panel_width() { return HWY_DYNAMIC_DISPATCH(panel_width)(); }
const char* gemm_name() { return HWY_DYNAMIC_DISPATCH(gemm_name)(); }
const char* conv_gemm_name() { return HWY_DYNAMIC_DISPATCH(conv_gemm_name)(); }
int64_t row_unit(int64_t columns) { return HWY_DYNAMIC_DISPATCH(row_unit)(columns); }

void gemm_columns(const Gemm& g, int64_t first, int64_t end) {
  HWY_DYNAMIC_DISPATCH(gemm_columns)(g, first, end);
}

void gemm_piece(const Gemm& g, int64_t column, int64_t k0, const float* b) {
  HWY_DYNAMIC_DISPATCH(gemm_piece)(g, column, k0, b);
}

void gemv(const float* matrix, int64_t columns, int64_t depth, const float* x, const float* bias, float min,
          float max, float* y) {
  HWY_DYNAMIC_DISPATCH(gemv)(matrix, columns, depth, x, bias, min, max, y);
}

void gemm_parallel(const Gemm& g, ThreadPool* threads) {
  const int64_t pool = threads_of(threads);
  // The most rows that leave room for a panel in the first cache, and some for every thread.
  const int64_t most = std::max(kRowTile, kTileFloats / std::max<int64_t>(g.depth, 1));
  const int64_t width = panel_width(), panels = divide_up(g.columns, width),
                tiles = std::max(divide_up(g.rows, most),
                                 pool <= 1 ? 1 : std::min(divide_up(g.rows, kRowTile), 4 * pool));
  const int64_t groups = pool <= 1 ? 1
                                   : std::clamp<int64_t>(divide_up(3 * pool, std::max<int64_t>(tiles, 1)), 1,
                                                         std::max<int64_t>(panels, 1));
  const int64_t unit_rows = row_unit(g.columns), units = tiles * groups,
                slots = std::min(units, std::max<int64_t>(pool, 1));
  parallel_slots(threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t t = unit / groups, row = tile_row(g.rows, t, tiles, unit_rows), group = unit % groups;
      Gemm tile = g;
      if (g.copies != nullptr) tile.copies = g.copies + slot * copied_floats(g.columns, g.depth);
      tile.rows = tile_row(g.rows, t + 1, tiles, unit_rows) - row;
      tile.a += row * g.a_stride, tile.y += row * g.y_stride;
      gemm_columns(tile, panels * group / groups * width, panels * (group + 1) / groups * width);
    }
  });
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
