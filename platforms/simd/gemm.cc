#include "platforms/simd/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/gemm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/dot-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

int64_t panel_width() { return static_cast<int64_t>(2 * hn::Lanes(F())); }

// kRows rows of one panel over one piece of the depth. `valid` columns are stored; kVectors is 1 where they
// fit one vector, else 2.
template <int kRows, int kVectors>
HWY_INLINE void block(const Gemm& g, const float* a, const float* b, int64_t b_step, int64_t depth, float* y,
                      size_t valid, const float* bias, bool first, bool last) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V c00 = hn::Zero(d), c01 = c00, c10 = c00, c11 = c00, c20 = c00, c21 = c00;
  V c30 = c00, c31 = c00, c40 = c00, c41 = c00, c50 = c00, c51 = c00;
  const int64_t s = g.a_stride;
  for (int64_t k = 0; k < depth; ++k, b += b_step) {
    const V b0 = hn::LoadU(d, b), b1 = kVectors == 2 ? hn::LoadU(d, b + lanes) : b0;
#define SINTER_ROW(r)                                                  \
  if constexpr (kRows > r) {                                           \
    const V x = hn::Set(d, a[r * s + k]);                              \
    c##r##0 = hn::MulAdd(x, b0, c##r##0);                              \
    if constexpr (kVectors == 2) c##r##1 = hn::MulAdd(x, b1, c##r##1); \
  }
    SINTER_ROW(0) SINTER_ROW(1) SINTER_ROW(2) SINTER_ROW(3) SINTER_ROW(4) SINTER_ROW(5)
#undef SINTER_ROW
  }
  const auto width = static_cast<size_t>(lanes);
  const size_t n0 = valid < width ? valid : width, n1 = valid - n0;
  const V low = set(g.min), high = set(g.max);
  const auto finish = [&](V v, float* at, const float* shift, size_t n) SINTER_SIMD_LAMBDA {
    if (n == width) {
      if (!first) v = hn::Add(v, hn::LoadU(d, at));
      if (last && shift != nullptr) v = hn::Add(v, hn::LoadU(d, shift));
      if (last) v = clamp(v, low, high);
      return hn::StoreU(v, d, at);
    }
    if (n == 0) return;
    if (!first) v = hn::Add(v, hn::LoadN(d, at, n));
    if (last && shift != nullptr) v = hn::Add(v, hn::LoadN(d, shift, n));
    if (last) v = clamp(v, low, high);
    hn::StoreN(v, d, at, n);
  };
  const float* bias1 = bias != nullptr ? bias + n0 : nullptr;
#define SINTER_ROW(r)                                                                    \
  if constexpr (kRows > r) {                                                             \
    finish(c##r##0, y + r * g.y_stride, bias, n0);                                       \
    if constexpr (kVectors == 2) finish(c##r##1, y + r * g.y_stride + lanes, bias1, n1); \
  }
  SINTER_ROW(0) SINTER_ROW(1) SINTER_ROW(2) SINTER_ROW(3) SINTER_ROW(4) SINTER_ROW(5)
#undef SINTER_ROW
}

// All rows of one panel. Out of line: inlined into its callers, this would take clang 20 minutes with
// sanitizers.
template <int kVectors>
HWY_NOINLINE void panel_rows(const Gemm& g, const float* a, const float* b, int64_t step, int64_t depth,
                             float* y, size_t valid, const float* bias, bool first, bool last) {
  int64_t r = 0;
  for (; r + 6 <= g.rows; r += 6, a += 6 * g.a_stride, y += 6 * g.y_stride)
    block<6, kVectors>(g, a, b, step, depth, y, valid, bias, first, last);
  switch (g.rows - r) {
    case 1:
      return block<1, kVectors>(g, a, b, step, depth, y, valid, bias, first, last);
    case 2:
      return block<2, kVectors>(g, a, b, step, depth, y, valid, bias, first, last);
    case 3:
      return block<3, kVectors>(g, a, b, step, depth, y, valid, bias, first, last);
    case 4:
      return block<4, kVectors>(g, a, b, step, depth, y, valid, bias, first, last);
    case 5:
      return block<5, kVectors>(g, a, b, step, depth, y, valid, bias, first, last);
    default:
      return;
  }
}

HWY_INLINE void piece(const Gemm& g, int64_t column, int64_t k0, const float* b, int64_t b_step) {
  const F d;
  const auto width = static_cast<int64_t>(2 * hn::Lanes(d));
  const int64_t depth = g.depth - k0 < kDepthPiece ? g.depth - k0 : kDepthPiece;
  const bool first = k0 == 0, last = k0 + depth >= g.depth;
  const auto valid = static_cast<size_t>(g.columns - column < width ? g.columns - column : width);
  const float* bias = g.bias != nullptr ? g.bias + column : nullptr;
  if (valid <= static_cast<size_t>(hn::Lanes(d)))
    panel_rows<1>(g, g.a + k0, b, b_step, depth, g.y + column, valid, bias, first, last);
  else
    panel_rows<2>(g, g.a + k0, b, b_step, depth, g.y + column, valid, bias, first, last);
}

void gemm_piece(const Gemm& g, int64_t column, int64_t k0, const float* b) {
  piece(g, column, k0, b, static_cast<int64_t>(2 * hn::Lanes(F())));
}

void gemm_columns(const Gemm& g, int64_t first_column, int64_t end_column) {
  const auto width = static_cast<int64_t>(2 * hn::Lanes(F()));
  const int64_t end = end_column < g.columns ? end_column : g.columns;
  // With nothing to sum there is still a bias to give.
  for (int64_t k0 = 0; k0 == 0 || k0 < g.depth; k0 += kDepthPiece)
    for (int64_t c = first_column; c < end; c += width) {
      if (g.b_step == 0)
        piece(g, c, k0, g.b + c * g.depth + k0 * width, width);
      else
        piece(g, c, k0, g.b + k0 * g.b_step + c, g.b_step);
    }
}

void pack_panels(const float* b, int64_t depth_step, int64_t column_step, int64_t columns, int64_t depth,
                 int64_t total_depth, float* packed, int64_t first_panel, int64_t end_panel) {
  const hn::FixedTag<float, 4> q;
  const int64_t width = panel_width();
  for (int64_t p = first_panel; p < end_panel; ++p) {
    float* to = packed + p * width * total_depth;
    const int64_t c0 = p * width, valid = columns - c0 < width ? columns - c0 : width;
    if (column_step == 1) {
      for (int64_t k = 0; k < depth; ++k) {
        const float* from = b + k * depth_step + c0;
        int64_t n = 0;
        for (; n + 4 <= valid; n += 4) hn::StoreU(hn::LoadU(q, from + n), q, to + k * width + n);
        for (; n < valid; ++n) to[k * width + n] = from[n];
        for (; n < width; ++n) to[k * width + n] = 0;
      }
      continue;
    }
    int64_t n = 0;
    for (; n + 4 <= valid; n += 4) {
      const float* from = b + (c0 + n) * column_step;
      int64_t k = 0;
      for (; k + 4 <= depth; k += 4) {
        const auto r0 = hn::LoadU(q, from + k), r1 = hn::LoadU(q, from + column_step + k);
        const auto r2 = hn::LoadU(q, from + 2 * column_step + k),
                   r3 = hn::LoadU(q, from + 3 * column_step + k);
        const auto e = hn::InterleaveLower(q, r0, r2), f = hn::InterleaveLower(q, r1, r3);
        const auto g = hn::InterleaveUpper(q, r0, r2), h = hn::InterleaveUpper(q, r1, r3);
        hn::StoreU(hn::InterleaveLower(q, e, f), q, to + k * width + n);
        hn::StoreU(hn::InterleaveUpper(q, e, f), q, to + (k + 1) * width + n);
        hn::StoreU(hn::InterleaveLower(q, g, h), q, to + (k + 2) * width + n);
        hn::StoreU(hn::InterleaveUpper(q, g, h), q, to + (k + 3) * width + n);
      }
      for (; k < depth; ++k)
        for (int64_t i = 0; i < 4; ++i) to[k * width + n + i] = from[i * column_step + k];
    }
    for (; n < width; ++n)
      for (int64_t k = 0; k < depth; ++k)
        to[k * width + n] = n < valid ? b[(c0 + n) * column_step + k] : 0.0f;
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

HWY_EXPORT(panel_width);
HWY_EXPORT(gemm_columns);
HWY_EXPORT(gemm_piece);
HWY_EXPORT(pack_panels);
HWY_EXPORT(gemv);

int64_t panel_width() { return HWY_DYNAMIC_DISPATCH(panel_width)(); }

void gemm_columns(const Gemm& g, int64_t first, int64_t end) {
  HWY_DYNAMIC_DISPATCH(gemm_columns)(g, first, end);
}

void gemm_piece(const Gemm& g, int64_t column, int64_t k0, const float* b) {
  HWY_DYNAMIC_DISPATCH(gemm_piece)(g, column, k0, b);
}

void pack_panels(const float* b, int64_t depth_step, int64_t column_step, int64_t columns, int64_t depth,
                 int64_t total_depth, float* packed, int64_t first_panel, int64_t end_panel) {
  HWY_DYNAMIC_DISPATCH(pack_panels)
  (b, depth_step, column_step, columns, depth, total_depth, packed, first_panel, end_panel);
}

void gemv(const float* matrix, int64_t columns, int64_t depth, const float* x, const float* bias, float min,
          float max, float* y) {
  HWY_DYNAMIC_DISPATCH(gemv)(matrix, columns, depth, x, bias, min, max, y);
}

void gemm_parallel(const Gemm& g, ThreadPool* threads) {
  const int64_t pool = threads_of(threads);
  const int64_t width = panel_width(), panels = divide_up(g.columns, width),
                tiles = divide_up(g.rows, kRowTile);
  const int64_t groups = pool <= 1 ? 1
                                   : std::clamp<int64_t>(divide_up(3 * pool, std::max<int64_t>(tiles, 1)), 1,
                                                         std::max<int64_t>(panels, 1));
  parallel_for(threads, tiles * groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t row = unit / groups * kRowTile, group = unit % groups;
      Gemm tile = g;
      tile.rows = std::min(kRowTile, g.rows - row);
      tile.a += row * g.a_stride, tile.y += row * g.y_stride;
      gemm_columns(tile, panels * group / groups * width, panels * (group + 1) / groups * width);
    }
  });
}

void pack_parallel(const float* b, int64_t depth_step, int64_t column_step, int64_t columns, int64_t depth,
                   float* packed, ThreadPool* threads) {
  const int64_t panels = divide_up(columns, panel_width());
  parallel_for(threads, panels, std::max<int64_t>(16384 / std::max<int64_t>(depth * kMaxPanel, 1), 1),
               [&](int64_t begin, int64_t end) {
                 pack_panels(b, depth_step, column_step, columns, depth, depth, packed, begin, end);
               });
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
