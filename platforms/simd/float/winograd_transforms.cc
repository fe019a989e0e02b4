// Winograd's transforms of tiles, and the product of one of their positions.
#include "platforms/simd/float/winograd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/winograd_transforms.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/float/gemm_8x8_neon-inl.h"
#include "platforms/simd/float/winograd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// The lines that are transformed in one iteration: the registers of 64-bit ARM hold two, and it loads and
// stores pairs of vectors.
constexpr int64_t kLines = HWY_ARCH_ARM_A64 ? 2 : 1;

using SquareBits = hn::RebindToUnsigned<F>;
using SquareBitsVector = hn::Vec<SquareBits>;

// Returns the sum of the squares of a line's numbers, or `most` if that is larger, as bits: NaN of either
// sign is above infinity.
template <int kCount>
HWY_INLINE SquareBitsVector larger_squares(const WinogradLine& d, SquareBitsVector most) {
  V sum = hn::Mul(d.v[0], d.v[0]);
#define SINTER_SQUARE(k) \
  if constexpr (kCount > k) sum = hn::MulAdd(d.v[k], d.v[k], sum)
  SINTER_SQUARE(1);
  SINTER_SQUARE(2);
  SINTER_SQUARE(3);
  SINTER_SQUARE(4);
  SINTER_SQUARE(5);
  SINTER_SQUARE(6);
  SINTER_SQUARE(7);
#undef SINTER_SQUARE
  return hn::Max(hn::BitCast(SquareBits(), sum), most);
}

// Returns whether the square of some channel is above `least`.
HWY_INLINE bool exceeds(const float* x, int64_t channels, V least) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto exceed = [&](V v) SINTER_SIMD_LAMBDA { return !hn::AllFalse(d, hn::Gt(hn::Mul(v, v), least)); };
  for (; channels >= lanes; channels -= lanes, x += lanes)
    if (HWY_LIKELY(exceed(hn::LoadU(d, x)))) return true;
  return channels > 0 && exceed(hn::LoadN(d, x, static_cast<size_t>(channels)));
}

// Returns whether every window of the tiles has an input that makes it large. No square of an input is larger
// than `most`, which is at most 8 times the largest one and includes all inputs.
//
// It is enough to look at rows 2, 5, 8, ... before the last row that a window begins in, and at that one, and
// at such columns: of the three rows of a window that begins in row r one is of the first kind, or it is
// behind the last row that a window begins in, which is r or later, and so in the window.
HWY_INLINE bool has_large_windows(const WinogradPixels& x, const WinogradInputs& tiles, float most) {
  // Squares that may have been rounded to 0 or beyond the largest number need a closer look.
  if (!(most > 0x1p-100f && most < HUGE_VALF)) return false;
  // Twice the square of the limit, so that no rounding calls a window large that small_outputs would not.
  const V least = set(most * (2.0f / (1 << 2 * kWinogradSpreadBits)));
  const int64_t step = 3 * x.pixel;
  for (int64_t i = 2; i < tiles.rows + 2; i += 3) {
    const float* line = x.x + std::min(i, tiles.rows - 1) * x.row;
    const float* const last = line + (tiles.columns - 1) * x.pixel;
    for (const float* at = line + 2 * x.pixel; at < last + step; at += step)
      if (!exceeds(std::min(at, last), x.channels, least)) return false;
  }
  return true;
}

// Transforms position by position. Channels are rounded up to whole vectors.
template <int kPairs>
HWY_NOINLINE bool transform_input(const WinogradPixels& x, float* lines, const WinogradInputs& tiles) {
  constexpr int kInputs = Winograd<kPairs>::kInputs, kTile = Winograd<kPairs>::kTile;
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t columns = tiles.count * kTile + kInputs - kTile, position = tiles.position,
                vector = kTilesTogether ? tiles.vector : lanes;
  // These are copies, because a compiler reads fields again after every vector that is stored.
  const int64_t row = x.row, pixel = x.pixel, channels = x.channels, count = tiles.count, tile = tiles.tile;
  const auto load = [&](const float* p) SINTER_SIMD_LAMBDA { return hn::LoadU(d, p); };
  SquareBitsVector most = hn::Zero(SquareBits());
  const auto column = [&](auto load_from, const float* from, int64_t j) SINTER_SIMD_LAMBDA {
    const WinogradLine line = load_line<kInputs>(load_from, from, row);
    most = larger_squares<kInputs>(line, most);
    store_line<kInputs>(transformed_input<kPairs>(line), lines + j * kInputs * lanes, lanes);
  };
  float* to = tiles.to;
  for (int64_t c = 0; c < channels; c += lanes, to += vector) {
    const int64_t left = channels - c;
    const float* from = x.x + c;
    if (left >= lanes) {
      for (int64_t j = 0; j < columns; j += kLines, from += kLines * pixel) {
        column(load, from, j);
        if constexpr (kLines == 2) column(load, from + pixel, j + 1);
      }
    } else {
      const auto load_some = [&](const float* p)
                                 SINTER_SIMD_LAMBDA { return hn::LoadN(d, p, static_cast<size_t>(left)); };
      for (int64_t j = 0; j < columns; ++j, from += pixel) column(load_some, from, j);
    }
    for (int64_t t = 0; t < count; ++t) {
      const float* line = lines + t * kTile * kInputs * lanes;
      float* at = to + t * tile;
      for (int64_t i = 0; i < kInputs; i += kLines, at += kLines * kInputs * position) {
        const WinogradLine a = load_line<kInputs>(load, line + i * lanes, kInputs * lanes);
        WinogradLine b;
        if constexpr (kLines == 2) b = load_line<kInputs>(load, line + (i + 1) * lanes, kInputs * lanes);
        store_line<kInputs>(transformed_input<kPairs>(a), at, position);
        if constexpr (kLines == 2)
          store_line<kInputs>(transformed_input<kPairs>(b), at + kInputs * position, position);
      }
    }
  }
  return has_large_windows(x, tiles, hwy::BitCastScalar<float>(hn::ReduceMax(SquareBits(), most)));
}

// Finishes and stores one vector of outputs of a pixel: `count` channels from the tile's channel c on.
HWY_INLINE void store(V v, V bias, V low, V high, float* y, size_t count) {
  const F d;
  v = hn::Add(v, bias);
  v = clamp(v, low, high);
  if (count == hn::Lanes(d))
    hn::StoreU(v, d, y);
  else
    hn::StoreN(v, d, y, count);
}

// Transforms the products of one tile at m, position by position, to its outputs.
template <int kPairs>
HWY_NOINLINE void transform_output(const float* m, int64_t position, int64_t channels, float* lines,
                                   const WinogradStore& to) {
  constexpr int kInputs = Winograd<kPairs>::kInputs, kTile = Winograd<kPairs>::kTile;
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V low = set(to.min), high = set(to.max);
  // These are copies, because a compiler reads fields again after every vector that is stored.
  const float* const biases = to.bias;
  const int64_t row = to.row, pixel = to.pixel, rows = to.rows, columns = to.columns;
  const auto load = [&](const float* p) SINTER_SIMD_LAMBDA { return hn::LoadU(d, p); };
  const bool bounded = to.max < HUGE_VALF;
  const auto within = [&](V v) SINTER_SIMD_LAMBDA { return clamp(v, low, high); };
  const auto raised = [&](V v) SINTER_SIMD_LAMBDA { return at_least(v, low); };
  float* y = to.y;
  for (int64_t c = 0; c < channels; c += lanes, m += lanes, y += lanes) {
    const auto count = static_cast<size_t>(channels - c < lanes ? channels - c : lanes);
    const bool whole = count == static_cast<size_t>(lanes);
    const V bias = biases == nullptr ? hn::Zero(d) : hn::LoadN(d, biases + c, count);
    // Columns have whole vectors, because products have whole panels.
    const auto column = [&](int64_t j) SINTER_SIMD_LAMBDA {
      const WinogradLine line = load_line<kInputs>(load, m + j * position, kInputs * position);
      store_line<kTile>(transformed_output<kPairs>(line), lines + j * kTile * lanes, lanes);
    };
    for (int64_t j = 0; j < kInputs; j += kLines) {
      column(j);
      if constexpr (kLines == 2) column(j + 1);
    }
    const bool inside = whole && columns == kTile;
    const auto finish = [&](const WinogradLine& line, float* at) SINTER_SIMD_LAMBDA {
      const WinogradLine results = transformed_output<kPairs>(line);
#define SINTER_COLUMNS(end) \
  SINTER_COLUMN(end, 0)     \
  SINTER_COLUMN(end, 1)     \
  SINTER_COLUMN(end, 2) SINTER_COLUMN(end, 3) SINTER_COLUMN(end, 4) SINTER_COLUMN(end, 5)
#define SINTER_COLUMN(end, q) \
  if constexpr (kTile > q) hn::StoreU(end(hn::Add(results.v[q], bias)), d, at), at += pixel;
#define SINTER_SOME_COLUMN(q) \
  if constexpr (kTile > q)    \
    if (q < columns) store(results.v[q], bias, low, high, at + q * pixel, count);
      if (inside && bounded) {
        SINTER_COLUMNS(within)
      } else if (inside) {
        SINTER_COLUMNS(raised)
      } else {
        SINTER_SOME_COLUMN(0)
        SINTER_SOME_COLUMN(1)
        SINTER_SOME_COLUMN(2)
        SINTER_SOME_COLUMN(3)
        SINTER_SOME_COLUMN(4)
        SINTER_SOME_COLUMN(5)
      }
#undef SINTER_SOME_COLUMN
#undef SINTER_COLUMN
#undef SINTER_COLUMNS
    };
    int64_t k = 0;
    float* at = y;
    for (; k + kLines <= rows; k += kLines, at += kLines * row) {
      const WinogradLine a = load_line<kInputs>(load, lines + k * lanes, kTile * lanes);
      WinogradLine b;
      if constexpr (kLines == 2) b = load_line<kInputs>(load, lines + (k + 1) * lanes, kTile * lanes);
      finish(a, at);
      if constexpr (kLines == 2) finish(b, at + row);
    }
    if (k < rows) finish(load_line<kInputs>(load, lines + k * lanes, kTile * lanes), at);
  }
}

InputTransform input_transform(int64_t tile) {
  return tile == 2 ? transform_input<1> : tile == 4 ? transform_input<2> : transform_input<3>;
}
OutputTransform output_transform(int64_t tile) {
  return tile == 2 ? transform_output<1> : tile == 4 ? transform_output<2> : transform_output<3>;
}

// Multiplies one position of a block of tiles. On 64-bit ARM, inputs of four channels of all tiles are
// together; elsewhere, those of all channels of a tile.
void multiply_tiles(const Gemm& g) {
#if HWY_ARCH_ARM_A64
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  const int64_t blocks = divide_up(g.rows, kEightRows), panels = divide_up(g.columns, 8);
  for (int64_t i = 0; i < blocks && panels > 0; ++i) {
    const RowBlock rows = row_block(g.rows, blocks, i);
    multiply_block_of(rows.count,
                      {g.a + rows.first * 4, g.rows * 4 * kFloat, g.b, 0, g.depth, panels, kZeroSums, 0,
                       g.y + rows.first * g.y_stride, g.y_stride * kFloat, nullptr, nullptr, 0});
  }
#else
  gemm_columns(g, 0, g.columns);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(input_transform);
HWY_EXPORT(output_transform);
HWY_EXPORT(multiply_tiles);

InputTransform input_transform(int64_t tile) { return HWY_DYNAMIC_DISPATCH(input_transform)(tile); }
OutputTransform output_transform(int64_t tile) { return HWY_DYNAMIC_DISPATCH(output_transform)(tile); }
void multiply_tiles(const Gemm& g) { HWY_DYNAMIC_DISPATCH(multiply_tiles)(g); }

}  // namespace sinter::simd
#endif  // HWY_ONCE
