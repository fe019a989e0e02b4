#include "platforms/simd/float/gemm_unpacked.h"

#include <cstring>

#include "runtime/core/narrow_weights.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/gemm_unpacked.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/float_formats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// ---- few rows

// With 16 registers, four rows leave room for the sums of two columns.
#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
constexpr int64_t kColumnsOfFourRows = 2;
#else
constexpr int64_t kColumnsOfFourRows = 4;
#endif
constexpr int64_t kColumns = 4;  // for fewer rows

struct FewRows {
  const float* x;
  int64_t x_step, depth;
  const float* bias;
  float min, max;
  float* y;
  int64_t y_step;
  int64_t last_row = 3;  // of a tile of four
};

// Computes kCount columns from n on, of 2 or 4 rows; of three, the last one is computed twice, because the
// weights take the time. A macro unrolls both, so that the sums are in registers.
template <class Format, int kRows, int kCount>
HWY_NOINLINE void few_rows_tile(const FewRows& p, const typename Format::Bits* weights, int64_t n) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = p.depth / lanes * lanes, step = p.depth;
  const auto rest = static_cast<size_t>(p.depth - whole);
  const auto* w = weights + n * step;
  const float *x = p.x, *last = p.x + p.last_row * p.x_step;
  V s00 = hn::Zero(d), s01 = s00, s02 = s00, s03 = s00, s10 = s00, s11 = s00, s12 = s00, s13 = s00;
  V s20 = s00, s21 = s00, s22 = s00, s23 = s00, s30 = s00, s31 = s00, s32 = s00, s33 = s00;
#define SINTER_COLUMN(c, load)                                     \
  if constexpr (kCount > c) {                                      \
    const V v = load(w + c * step);                                \
    s##c##0 = hn::MulAdd(v, x0, s##c##0);                          \
    if constexpr (kRows > 1) s##c##1 = hn::MulAdd(v, x1, s##c##1); \
    if constexpr (kRows > 2) s##c##2 = hn::MulAdd(v, x2, s##c##2); \
    if constexpr (kRows > 3) s##c##3 = hn::MulAdd(v, x3, s##c##3); \
  }
#define SINTER_STEP(load_x, load)                                     \
  const V x0 = load_x(x), x1 = kRows > 1 ? load_x(x + p.x_step) : x0; \
  const V x2 = kRows > 2 ? load_x(x + 2 * p.x_step) : x0;             \
  const V x3 = kRows > 3 ? load_x(last) : x0;                         \
  SINTER_COLUMN(0, load) SINTER_COLUMN(1, load) SINTER_COLUMN(2, load) SINTER_COLUMN(3, load)
  const auto floats = [&](const float* at) SINTER_SIMD_LAMBDA { return hn::LoadU(d, at); };
  for (int64_t k = 0; k < whole; k += lanes, w += lanes, x += lanes, last += lanes) {
    SINTER_STEP(floats, Format::load)
  }
  if (rest > 0) {
    const auto some_floats = [&](const float* at) SINTER_SIMD_LAMBDA { return hn::LoadN(d, at, rest); };
    const auto some = [&](const auto* at) SINTER_SIMD_LAMBDA { return Format::load_some(at, rest); };
    SINTER_STEP(some_floats, some)
  }
#undef SINTER_STEP
#undef SINTER_COLUMN
  const auto finish = [&](int64_t row, int64_t column, V sums) SINTER_SIMD_LAMBDA {
    float sum = hn::ReduceSum(d, sums);
    if (p.bias != nullptr) sum += p.bias[column];
    p.y[row * p.y_step + column] = sum < p.min ? p.min : sum > p.max ? p.max : sum;
  };
#define SINTER_FINISH(c)                                         \
  if constexpr (kCount > c) {                                    \
    finish(0, n + c, s##c##0);                                   \
    if constexpr (kRows > 1) finish(1, n + c, s##c##1);          \
    if constexpr (kRows > 2) finish(2, n + c, s##c##2);          \
    if constexpr (kRows > 3) finish(p.last_row, n + c, s##c##3); \
  }
  SINTER_FINISH(0) SINTER_FINISH(1) SINTER_FINISH(2) SINTER_FINISH(3)
#undef SINTER_FINISH
}

// Computes one row, column after column as they are in memory: one stream of addresses for the processor to
// read ahead. Eight sums hide the latency of an addition.
template <class Format>
HWY_NOINLINE void one_row(const FewRows& p, const typename Format::Bits* weights, int64_t n) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* w = weights + n * p.depth;
  const float* x = p.x;
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
  int64_t k = 0;
#define SINTER_PART(i) \
  s##i = hn::MulAdd(Format::load(w + k + i * lanes), hn::LoadU(d, x + k + i * lanes), s##i);
  for (; k + 8 * lanes <= p.depth; k += 8 * lanes) {
    SINTER_PART(0)
    SINTER_PART(1) SINTER_PART(2) SINTER_PART(3) SINTER_PART(4) SINTER_PART(5) SINTER_PART(6) SINTER_PART(7)
  }
  for (; k + lanes <= p.depth; k += lanes) {
    SINTER_PART(0)
  }
#undef SINTER_PART
  if (k < p.depth) {
    const auto rest = static_cast<size_t>(p.depth - k);
    s1 = hn::MulAdd(Format::load_some(w + k, rest), hn::LoadN(d, x + k, rest), s1);
  }
  const V low = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), high = hn::Add(hn::Add(s4, s5), hn::Add(s6, s7));
  float sum = hn::ReduceSum(d, hn::Add(low, high));
  if (p.bias != nullptr) sum += p.bias[n];
  p.y[n] = sum < p.min ? p.min : sum > p.max ? p.max : sum;
}

// Computes kCount columns from n on of up to kMost rows.
template <class Format, int kMost, int kCount>
HWY_INLINE void few_rows_tile_of(const FewRows& p, int64_t rows, const typename Format::Bits* weights,
                                 int64_t n) {
  if (rows == 1) {  // the last of five, say
    for (int64_t c = n; c < n + kCount; ++c) one_row<Format>(p, weights, c);
  } else if (rows == 2) {
    few_rows_tile<Format, 2, kCount>(p, weights, n);
  } else if constexpr (kMost > 2) {
    FewRows tile = p;
    tile.last_row = rows - 1;
    few_rows_tile<Format, 4, kCount>(tile, weights, n);
  }
}

// Formats that few models have go without tiles of rows, which take 6 KB of code for an instruction set.
template <class Format>
constexpr bool kTiled = true;
template <const FloatFormat& kFormat>
constexpr bool kTiled<SmallFloat<kFormat>> = false;

// Four rows at a time use a few columns before the next ones, so that weights are read from memory once.
template <class Format>
void few_rows_product(const UnpackedWeights& w, FewRows p, int64_t rows, int64_t first, int64_t last) {
  const auto* weights = reinterpret_cast<const typename Format::Bits*>(w.data);
  constexpr int64_t kFour = 4;
  const auto all_rows = [&](auto&& of) {
    FewRows part = p;
    for (int64_t r = 0; r < rows; r += kFour) {
      part.x = p.x + r * p.x_step, part.y = p.y + r * p.y_step;
      of(part, rows - r < kFour ? rows - r : kFour);
    }
  };
  int64_t n = first;
  if constexpr (kTiled<Format>) {
    constexpr bool kSame = kColumnsOfFourRows == kColumns;
    if (rows == 1) {
    } else if (rows == 2 || kSame) {
      for (; n + kColumns <= last; n += kColumns)
        all_rows([&](const FewRows& part, int64_t count) {
          few_rows_tile_of<Format, kSame ? 4 : 2, kColumns>(part, count, weights, n);
        });
    } else {
      for (; n + kColumnsOfFourRows <= last; n += kColumnsOfFourRows)
        all_rows([&](const FewRows& part, int64_t count) {
          few_rows_tile_of<Format, 4, kColumnsOfFourRows>(part, count, weights, n);
        });
    }
  }
  for (; n < last; ++n) {
    FewRows part = p;
    for (int64_t r = 0; r < rows; ++r, part.x += p.x_step, part.y += p.y_step)
      one_row<Format>(part, weights, n);
  }
}

void unpacked_products(const UnpackedWeights& w, const float* x, int64_t x_step, int64_t rows, int64_t first,
                       int64_t last, const float* bias, float min, float max, float* y, int64_t y_step) {
  const FewRows p = {x, x_step, w.depth, bias, min, max, y, y_step};
  for_format(w.type, [&](auto format) { few_rows_product<decltype(format)>(w, p, rows, first, last); });
}

// ---- panels

constexpr int64_t kLine = 64;  // bytes of a row that are taken at a time
constexpr int64_t kWord = 4;   // bytes that are transposed together: one, two or four weights

// Writes words 0 .. kLine / kWord - 1 of the columns, in rows of kMaxPanel.
template <class Bits>
HWY_INLINE void transpose_line(const Bits* from, int64_t depth, int64_t columns, int64_t bytes,
                               uint32_t* to) {
  const hn::FixedTag<uint32_t, 4> q;
  HWY_ALIGN uint8_t rows[4 * kLine];
  for (int64_t c = 0; c < columns; c += 4) {
    const Bits* at = from + c * depth;
    const uint8_t* row[4];
    const bool direct = bytes == kLine && c + 4 <= columns;
    for (int64_t i = 0; i < 4; ++i) {
      const auto* source = reinterpret_cast<const uint8_t*>(at + i * depth);
      row[i] = direct ? source : rows + i * kLine;
      if (direct) continue;
      std::memset(rows + i * kLine, 0, kLine);
      if (c + i < columns) std::memcpy(rows + i * kLine, source, static_cast<size_t>(bytes));
    }
    for (int64_t b = 0; b < kLine; b += 4 * kWord) {
      const auto r0 = hn::BitCast(q, hn::LoadU(hn::FixedTag<uint8_t, 16>(), row[0] + b));
      const auto r1 = hn::BitCast(q, hn::LoadU(hn::FixedTag<uint8_t, 16>(), row[1] + b));
      const auto r2 = hn::BitCast(q, hn::LoadU(hn::FixedTag<uint8_t, 16>(), row[2] + b));
      const auto r3 = hn::BitCast(q, hn::LoadU(hn::FixedTag<uint8_t, 16>(), row[3] + b));
      const auto e = hn::InterleaveLower(q, r0, r2), f = hn::InterleaveLower(q, r1, r3);
      const auto g = hn::InterleaveUpper(q, r0, r2), h = hn::InterleaveUpper(q, r1, r3);
      uint32_t* word = to + b / kWord * kMaxPanel + c;
      hn::StoreU(hn::InterleaveLower(q, e, f), q, word);
      hn::StoreU(hn::InterleaveUpper(q, e, f), q, word + kMaxPanel);
      hn::StoreU(hn::InterleaveLower(q, g, h), q, word + 2 * kMaxPanel);
      hn::StoreU(hn::InterleaveUpper(q, g, h), q, word + 3 * kMaxPanel);
    }
  }
}

template <class Format>
HWY_NOINLINE void widen_piece(const UnpackedWeights& w, int64_t column, int64_t k0, int64_t k1, float* to) {
  using Bits = typename Format::Bits;
  constexpr int64_t kEach = kWord / int64_t{sizeof(Bits)}, kAtOnce = kLine / int64_t{sizeof(Bits)};
  const F d;
  const hn::RebindToUnsigned<F> words;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), width = 2 * lanes;
  const int64_t columns = w.columns - column < width ? w.columns - column : width;
  const auto* from = reinterpret_cast<const Bits*>(w.data) + column * w.depth;
  HWY_ALIGN uint32_t line[kLine / kWord * kMaxPanel] = {};  // columns beyond the last: zeros
  for (int64_t k = k0; k < k1; k += kAtOnce) {
    const int64_t n = k1 - k < kAtOnce ? k1 - k : kAtOnce;
    transpose_line(from + k, w.depth, columns, n * int64_t{sizeof(Bits)}, line);
    for (int64_t i = 0; i < n; i += kEach) {
      const int64_t each = n - i < kEach ? n - i : kEach;
      float* row = to + (k - k0 + i) * width;
      for (int64_t l = 0; l < width; l += lanes) {
        auto word = hn::LoadU(words, line + i / kEach * kMaxPanel + l);
        for (int64_t e = 0; e < each; ++e) {
          hn::StoreU(Format::of_words(word), d, row + e * width + l);
          if constexpr (kEach > 1) word = hn::ShiftRight<8 * sizeof(Bits) % 32>(word);
        }
      }
    }
  }
}

void widen_panel_piece(const UnpackedWeights& w, int64_t column, int64_t k0, int64_t k1, float* to) {
  for_format(w.type, [&](auto format) { widen_piece<decltype(format)>(w, column, k0, k1, to); });
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {

// The rows that use a panel: few enough for their part of the depth to stay in the second cache, and enough
// to make widening the panel again cheap.
constexpr int64_t kRowsOfPanel = 256;

// AVX-512 takes some more, because 16 sums are in registers. float8 has too many instructions for that,
// except e5m2, which is half a float16.
int64_t few_rows(DType weights) {
  constexpr int64_t kMore = 32;
  const bool cheap = byte_width(weights) != 1 || weights == DType::kFloat8E5M2;
  return cheap && panel_width() == kMaxPanel ? kMore : kFewRows;
}

}  // namespace

HWY_EXPORT(unpacked_products);
HWY_EXPORT(widen_panel_piece);

void unpacked_products(const UnpackedWeights& w, const float* x, int64_t x_step, int64_t rows, int64_t first,
                       int64_t last, const float* bias, float min, float max, float* y, int64_t y_step) {
  HWY_DYNAMIC_DISPATCH(unpacked_products)
  (w, x, x_step, rows, first, last, bias, min, max, y, y_step);
}
void widen_panel_piece(const UnpackedWeights& w, int64_t column, int64_t k0, int64_t k1, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_panel_piece)(w, column, k0, k1, to);
}

bool reads_unpacked(const OpCall& call) {
  const TensorView& w = call.in(1);
  return is_narrow_weight(w.dtype) ||
         (w.dtype == DType::kFloat32 && w.constant && w.dense_bytes() > kMostPackedBytes);
}

bool unpacked_workspace(int64_t rows, int threads, size_t* bytes) {
  *bytes = 0;
  return rows <= kFewRows || checked_mul<size_t>(kPanelPieceFloats * sizeof(float),
                                                 static_cast<size_t>(std::max(threads, 1)), bytes);
}

void run_unpacked(const UnpackedWeights& w, const Gemm& g, RunContext& context) {
  if (g.rows <= few_rows(w.type)) {
    const int64_t grain = std::max<int64_t>(65536 / std::max<int64_t>(w.depth, 1), 1);
    parallel_for(context.threads, divide_up(w.columns, 4), divide_up(grain, 4),
                 [&](int64_t begin, int64_t end) {
                   unpacked_products(w, g.a, g.a_stride, g.rows, 4 * begin, std::min(4 * end, w.columns),
                                     g.bias, g.min, g.max, g.y, g.y_stride);
                 });
    return;
  }
  const auto room = static_cast<int64_t>(context.workspace.size() / (kPanelPieceFloats * sizeof(float)));
  const int64_t slots = std::clamp<int64_t>(threads_of(context.threads), 1, std::max<int64_t>(room, 1));
  const int64_t width = panel_width(), panels = divide_up(w.columns, width),
                tiles = divide_up(g.rows, kRowsOfPanel), unit_rows = row_unit(g.columns);
  parallel_slots(context.threads, slots, panels * tiles, [&](int64_t slot, int64_t begin, int64_t end) {
    float* piece = reinterpret_cast<float*>(context.workspace.data()) + slot * kPanelPieceFloats;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t t = unit / panels, column = unit % panels * width;
      const int64_t row = tile_row(g.rows, t, tiles, unit_rows);
      Gemm tile = g;
      tile.rows = tile_row(g.rows, t + 1, tiles, unit_rows) - row;
      tile.a += row * g.a_stride, tile.y += row * g.y_stride;
      // A product of depth 0 still has a bias.
      for (int64_t k0 = 0; k0 == 0 || k0 < w.depth; k0 += kDepthPiece) {
        widen_panel_piece(w, column, k0, std::min(k0 + kDepthPiece, w.depth), piece);
        gemm_piece(tile, column, k0, piece);
      }
    }
  });
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
