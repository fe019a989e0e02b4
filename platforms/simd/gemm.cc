#include "platforms/simd/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/gemm.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/copied_rows-inl.h"
#include "platforms/simd/dot-inl.h"
#include "platforms/simd/four_depths-inl.h"
#include "platforms/simd/seven_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

int64_t panel_width() { return static_cast<int64_t>(2 * hn::Lanes(F())); }

#if HWY_ARCH_ARM_A64
int64_t row_unit(int64_t columns) { return columns < kCopiedColumns ? kSevenRows : kEightRows; }
#else
int64_t row_unit(int64_t) { return 1; }
#endif

// Rows of the largest block: as many sums as there are registers beside those of the operands.
template <int kVectors>
constexpr int largest_block() {
  if (kVectors == 1 || (HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86)) return 12;
  return HWY_ARCH_ARM_A64 ? 10 : 6;
}

// Whether sums begin with the bias, which saves instructions; added last, it takes part in one rounding only.
constexpr bool kBiasFirst = HWY_ARCH_ARM_A64;

// Where the sums of one panel over one piece of the depth begin, and how they are stored.
struct PanelEnd {
  V bias0, bias1, low, high;
  bool clamps;
  size_t tail;          // columns of the last vector
  const float* addend;  // added to the sums: row 0 of the panel's columns, or null
  int64_t addend_stride;
  const float* next;  // what is multiplied after this panel: it is fetched meanwhile
};

// Whether blocks fetch the next panel, which is beyond the caches of a core where matrices are large: one
// cache line at each depth.
constexpr bool kFetches = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2;
constexpr int64_t kFetchedFloats = 16;

// One macro for each row, and the row whose pointer reaches it: three pointers and the row's own offset are
// what the addressing modes of x86 hold.
#define SINTER_ROWS(row)                                                                              \
  row(0, 0) row(1, 0) row(2, 0) row(3, 3) row(4, 3) row(5, 3) row(6, 6) row(7, 6) row(8, 6) row(9, 9) \
      row(10, 9) row(11, 9)

HWY_INLINE V with_bias(V sum, [[maybe_unused]] V bias) { return kBiasFirst ? sum : hn::Add(sum, bias); }

// kRows rows of one panel over one piece of the depth, the first of them row `first` of g. kVectors is 1
// where the panel's columns fit one vector, else 2. Out of line, so that each block has the registers to
// itself.
template <int kRows, int kVectors>
HWY_NOINLINE void block(const Gemm& g, int64_t first, const float* a, const float* b, int64_t b_step,
                        int64_t depth, float* y, const PanelEnd& end) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t s = g.a_stride;
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
    if (end.clamps)
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

// All rows of one panel, in blocks that differ by one row at most.
template <int kVectors>
HWY_NOINLINE void panel_rows(const Gemm& g, const float* a, const float* b, int64_t step, int64_t depth,
                             float* y, PanelEnd end) {
  constexpr int kLargest = largest_block<kVectors>();
  const int64_t parts = panel_width() / kFetchedFloats;
  const float* const next = end.next;
  int64_t r = 0;
  for (int64_t blocks = divide_up(g.rows, kLargest), i = 0; blocks > 0; --blocks, ++i) {
    const int64_t rows = divide_up(g.rows - r, blocks);
    // A block reaches a part of the panel; further blocks find it fetched.
    if (kFetches && parts > 1) end.next = next + i % parts * depth * kFetchedFloats;
    switch (rows) {
#define SINTER_BLOCK(n)                                                               \
  case n:                                                                             \
    if constexpr (n <= kLargest) block<n, kVectors>(g, r, a, b, step, depth, y, end); \
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
                  one ? valid : valid - lanes,
                  k0 > 0 ? y : nullptr,
                  g.y_stride,
                  next};
  if (last) {
    end.low = set(g.min), end.high = set(g.max);
    end.clamps = g.min > -HUGE_VALF || g.max < HUGE_VALF;
  }
  if ((kBiasFirst ? k0 == 0 : last) && g.bias != nullptr) {
    const float* bias = g.bias + column;
    end.bias0 = hn::LoadN(d, bias, one ? valid : lanes);
    if (!one) end.bias1 = hn::LoadN(d, bias + lanes, end.tail);
  }
  if (one)
    panel_rows<1>(g, g.a + k0, b, b_step, depth, y, end);
  else
    panel_rows<2>(g, g.a + k0, b, b_step, depth, y, end);
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
  // With nothing to sum there is still a bias to give.
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
HWY_EXPORT(row_unit);
HWY_EXPORT(gemm_columns);
HWY_EXPORT(gemm_piece);
HWY_EXPORT(gemv);

int64_t panel_width() { return HWY_DYNAMIC_DISPATCH(panel_width)(); }
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
  // As many rows as leave room for a panel in the first cache, and some for every thread.
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
