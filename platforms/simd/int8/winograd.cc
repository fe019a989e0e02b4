// 3x3 convolutions of int8 with stride 1 by Winograd's F(2x2, 3x3): four outputs take 16 products instead
// of 36.
//
// In integers the algorithm is exact. With the filter transformed by twice the usual matrix, sums are four
// times the convolution's, which fits int32 where winograd_fits; the results are the bits of
// docs/numerics.md. It pays on x86 without dot products of bytes.
//
// Source: A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks" (2016).
#include <cstring>

#include "platforms/simd/int8/conv_plan.h"
#include "platforms/simd/variant.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int8/winograd.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8/int8-inl.h"

#ifndef SINTER_SIMD_Q_WINOGRAD_ONCE
#define SINTER_SIMD_Q_WINOGRAD_ONCE
namespace sinter::simd {

// The operands and sizes of one call. Tiles are 2x2 outputs, numbered along lines over the whole batch.
struct QWinograd {
  Geometry g;
  int64_t depth = 0;             // input channels, padded to pairs
  int64_t down = 0, across = 0;  // tiles of an image
  int64_t tiles = 0, block = 0;  // of all images; of one piece of work
  int64_t x_zero = 0;
  const int8_t* x = nullptr;
  ProductResult result;
  int64_t scratch = 0;  // bytes of a thread
};

// The packed filters: 16 transforms of each panel, then per column int32 bias and float multiplier.
struct QWinogradPacked {
  int16_t* panels = nullptr;  // [panel][position][depth / kUnit][column][kUnit]
  int32_t* bias = nullptr;
  float* multipliers = nullptr;
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// The positions of a transformed tile.
constexpr int64_t kPositions = 16;
// The depths that are multiplied at a time.
constexpr int64_t kPair = 2;
// The rows that the registers hold, with two vectors of sums each.
#define SINTER_WINOGRAD_ROWS (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3 ? 8 : 4)
constexpr int64_t kTileRows = SINTER_WINOGRAD_ROWS;

int64_t winograd_panel() { return static_cast<int64_t>(2 * hn::Lanes(D32())); }

// The usual matrix is doubled on both sides, so that numbers stay integers: within +-9 * 255.
void pack_q_winograd(const QWinograd& w, const QWeights& from, const QWinogradPacked& to, int64_t first_panel,
                     int64_t end_panel) {
  const int64_t width = winograd_panel(), channels = w.g.in_channels, columns = w.g.out_channels;
  for (int64_t c = first_panel * width; c < end_panel * width; ++c) {
    const bool valid = c < columns;
    int16_t* panel = to.panels + c / width * width * kPositions * w.depth + c % width * kPair;
    const int8_t* filter = from.weights + c * from.column_step;
    const int zero = valid && from.zeros != nullptr ? from.zeros[c * from.zero_step] : 0;
    for (int64_t k = 0; k < w.depth; ++k) {
      int f[3][3] = {}, rows[4][3];
      for (int64_t t = 0; valid && k < channels && t < 9; ++t)
        f[t / 3][t % 3] = filter[(t * channels + k) * from.depth_step] - zero;
      for (int j = 0; j < 3; ++j) {
        rows[0][j] = 2 * f[0][j], rows[3][j] = 2 * f[2][j];
        rows[1][j] = f[0][j] + f[1][j] + f[2][j], rows[2][j] = f[0][j] - f[1][j] + f[2][j];
      }
      for (int64_t i = 0; i < 4; ++i) {
        const int a = rows[i][0], b = rows[i][1], d = rows[i][2];
        const int columns_of[4] = {2 * a, a + b + d, a - b + d, 2 * d};
        for (int64_t j = 0; j < 4; ++j)
          panel[((i * 4 + j) * w.depth + k / kPair * kPair) * width + k % kPair] =
              static_cast<int16_t>(columns_of[j]);
      }
    }
    to.bias[c] = valid && from.bias != nullptr ? from.bias[c] : 0;
    to.multipliers[c] = valid ? from.multipliers[c * from.multiplier_step] : 0.0f;
  }
}

// ---- input

// The 16 numbers of one tile for a vector of channels. Shifts by the zero point cancel out, except in
// position 1, 1, where they add up to four.
struct TileInput {
  V16 zero;

  template <class Load>
  HWY_INLINE void operator()(const int8_t* const* pixels, int64_t c, Load load,
                             V16 (&out)[kPositions]) const {
    V16 t[4][4];
    for (int j = 0; j < 4; ++j) {
      const V16 d0 = load(pixels[j] + c), d1 = load(pixels[4 + j] + c);
      const V16 d2 = load(pixels[8 + j] + c), d3 = load(pixels[12 + j] + c);
      t[0][j] = hn::Sub(d0, d2), t[1][j] = hn::Add(d1, d2), t[2][j] = hn::Sub(d2, d1),
      t[3][j] = hn::Sub(d1, d3);
    }
    for (int i = 0; i < 4; ++i) {
      out[4 * i] = hn::Sub(t[i][0], t[i][2]), out[4 * i + 1] = hn::Add(t[i][1], t[i][2]);
      out[4 * i + 2] = hn::Sub(t[i][2], t[i][1]), out[4 * i + 3] = hn::Sub(t[i][1], t[i][3]);
    }
    out[5] = hn::Sub(out[5], zero);
  }
};

// Loads one tile to v[position * step + channel]. `nothing` is the pixel beyond the borders.
void load_tile(const QWinograd& w, int64_t tile, const int8_t* nothing, int64_t step, int16_t* v) {
  const D16 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Geometry& g = w.g;
  const int64_t i1 = tile / w.across % w.down * 2 - g.pad[1], i2 = tile % w.across * 2 - g.pad[2];
  const int8_t* image = w.x + tile / w.across / w.down * g.in_pixels() * g.in_channels;
  const int8_t* pixels[kPositions];
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 4; ++j) {
      const int64_t a = i1 + i, b = i2 + j;
      const bool inside = a >= 0 && a < g.in[1] && b >= 0 && b < g.in[2];
      pixels[i * 4 + j] = inside ? image + (a * g.in[2] + b) * g.in_channels : nothing;
    }
  const TileInput transform{hn::Set(d, static_cast<int16_t>(4 * w.x_zero))};
  V16 out[kPositions];
  int64_t c = 0;
  for (; c + lanes <= g.in_channels; c += lanes) {
    transform(
        pixels, c, [](const int8_t* p) SINTER_SIMD_LAMBDA { return load16(p); }, out);
    for (int64_t p = 0; p < kPositions; ++p) hn::StoreU(out[p], d, v + p * step + c);
  }
  if (c < w.depth) {
    const auto rest = static_cast<size_t>(g.in_channels - c), stored = static_cast<size_t>(w.depth - c);
    transform(
        pixels, c,
        [rest](const int8_t* p) SINTER_SIMD_LAMBDA {
          return hn::PromoteTo(D16(), hn::LoadN(hn::Rebind<int8_t, D16>(), p, rest));
        },
        out);
    for (int64_t p = 0; p < kPositions; ++p) hn::StoreN(out[p], d, v + p * step + c, stored);
  }
}

// ---- products

// Computes m[r * width + column] for kRows rows v + r * depth of one position and panel.
template <int kRows, int kVectors>
HWY_INLINE void winograd_block(const int16_t* v, const int16_t* u, int64_t depth, int32_t* m) {
  const D32 d;
  const D16 d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V32 c00 = hn::Zero(d), c10 = c00, c20 = c00, c30 = c00, c40 = c00, c50 = c00, c60 = c00, c70 = c00;
  V32 c01 = c00, c11 = c00, c21 = c00, c31 = c00, c41 = c00, c51 = c00, c61 = c00, c71 = c00;
  for (int64_t k = 0; k < depth; k += kPair, u += 4 * lanes) {
    const V16 w0 = hn::LoadU(d16, u), w1 = kVectors == 2 ? hn::LoadU(d16, u + 2 * lanes) : w0;
#define SINTER_ROW(r)                                                                 \
  if constexpr (kRows > r) {                                                          \
    c##r##0 = add_pairs(v + r * depth + k, w0, c##r##0);                              \
    if constexpr (kVectors == 2) c##r##1 = add_pairs(v + r * depth + k, w1, c##r##1); \
  }
    SINTER_ROW(0)
    SINTER_ROW(1) SINTER_ROW(2) SINTER_ROW(3) SINTER_ROW(4) SINTER_ROW(5) SINTER_ROW(6) SINTER_ROW(7)
#undef SINTER_ROW
  }
#define SINTER_ROW(r)                                                             \
  if constexpr (kRows > r) {                                                      \
    hn::StoreU(c##r##0, d, m + r * 2 * lanes);                                    \
    if constexpr (kVectors == 2) hn::StoreU(c##r##1, d, m + (r * 2 + 1) * lanes); \
  }
  SINTER_ROW(0)
  SINTER_ROW(1) SINTER_ROW(2) SINTER_ROW(3) SINTER_ROW(4) SINTER_ROW(5) SINTER_ROW(6) SINTER_ROW(7)
#undef SINTER_ROW
}

template <int kVectors>
HWY_NOINLINE void winograd_rows(const int16_t* v, int64_t rows, const int16_t* u, int64_t depth, int32_t* m) {
  const int64_t width = winograd_panel();
  for (; rows >= kTileRows; rows -= kTileRows, v += kTileRows * depth, m += kTileRows * width)
    winograd_block<kTileRows, kVectors>(v, u, depth, m);
  switch (rows) {
#define SINTER_ROWS(r) \
  case r:              \
    return winograd_block<r, kVectors>(v, u, depth, m);
    SINTER_ROWS(1)
    SINTER_ROWS(2)
    SINTER_ROWS(3)
#if SINTER_WINOGRAD_ROWS > 4
    SINTER_ROWS(4)
    SINTER_ROWS(5)
    SINTER_ROWS(6)
    SINTER_ROWS(7)
#endif
#undef SINTER_ROWS
    default:
      return;
  }
}

// ---- results

// Computes the outputs of `tiles` tiles from `first` on, columns from `column` on, from m[(position * tiles +
// tile) * width + column].
template <class T>
HWY_NOINLINE void store_tiles(const QWinograd& w, const QWinogradPacked& packed, int64_t first, int64_t tiles,
                              int64_t column, const int32_t* m) {
  const D32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const hn::Rebind<T, D32> to;
  const Geometry& g = w.g;
  const int64_t width = 2 * lanes, step = tiles * width, valid = std::min(width, g.out_channels - column);
  Finish<T> value(w.result);
  for (int64_t c = 0; c < valid; c += lanes) {
    const V32 bias = hn::LoadU(d, packed.bias + column + c);
    value.multiplier = hn::LoadU(DF(), packed.multipliers + column + c);
    const auto count = static_cast<size_t>(valid - c);
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t at = first + tile, i1 = at / w.across % w.down * 2, i2 = at % w.across * 2;
      T* y = static_cast<T*>(w.result.y) +
             ((at / w.across / w.down * g.out[1] + i1) * g.out[2] + i2) * g.out_channels + column + c;
      const int32_t* from = m + tile * width + c;
      V32 rows[2][4];
      for (int64_t j = 0; j < 4; ++j) {
        const V32 m0 = hn::LoadU(d, from + j * step), m1 = hn::LoadU(d, from + (4 + j) * step);
        const V32 m2 = hn::LoadU(d, from + (8 + j) * step), m3 = hn::LoadU(d, from + (12 + j) * step);
        const V32 middle = hn::Add(m1, m2);
        rows[0][j] = hn::Add(m0, middle), rows[1][j] = hn::Sub(hn::Sub(m1, m2), m3);
      }
      for (int64_t i = 0; i < 2 && i1 + i < g.out[1]; ++i, y += g.out[2] * g.out_channels) {
        const V32 *r = rows[i], middle = hn::Add(r[1], r[2]);
        const V32 sums[2] = {hn::Add(r[0], middle), hn::Sub(hn::Sub(r[1], r[2]), r[3])};
        for (int64_t j = 0; j < 2 && i2 + j < g.out[2]; ++j) {
          const auto v = value(hn::Add(hn::ShiftRight<2>(sums[j]), bias));
          if (valid - c >= lanes)
            hn::StoreU(v, to, y + j * g.out_channels);
          else
            hn::StoreN(v, to, y + j * g.out_channels, count);
        }
      }
    }
  }
}

void run_q_winograd(const QWinograd& w, const QWinogradPacked& packed, int64_t first, int64_t end,
                    int64_t first_panel, int64_t end_panel, std::byte* scratch) {
  const int64_t width = winograd_panel(), tiles = end - first;
  auto* v = reinterpret_cast<int16_t*>(scratch);
  auto* m = reinterpret_cast<int32_t*>(v + kPositions * w.block * w.depth);
  auto* nothing = reinterpret_cast<int8_t*>(m + kPositions * w.block * kQPanel);
  std::memset(nothing, static_cast<int>(w.x_zero), static_cast<size_t>(w.g.in_channels));
  for (int64_t t = 0; t < tiles; ++t) load_tile(w, first + t, nothing, tiles * w.depth, v + t * w.depth);
  const auto store = w.result.type == DType::kInt8      ? store_tiles<int8_t>
                     : w.result.type == DType::kFloat32 ? store_tiles<float>
                                                        : store_tiles<int16_t>;
  for (int64_t panel = first_panel; panel < end_panel; ++panel) {
    const int16_t* u = packed.panels + panel * width * kPositions * w.depth;
    const auto rows = 2 * (w.g.out_channels - panel * width) <= width ? winograd_rows<1> : winograd_rows<2>;
    for (int64_t p = 0; p < kPositions; ++p)
      rows(v + p * tiles * w.depth, tiles, u + p * width * w.depth, w.depth, m + p * tiles * width);
    store(w, packed, first, tiles, panel * width, m);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(pack_q_winograd);
HWY_EXPORT(run_q_winograd);

namespace {

constexpr int64_t kPositionCount = 16;
// Below these, the transforms cost as much as the products save.
constexpr int64_t kMinChannels = 24, kMinColumns = 16, kMinPixels = 16;
constexpr int64_t kMinTiles = 8, kMaxTiles = 64;
// The tiles from which filters that the inner caches do not hold are worth reading.
constexpr int64_t kLargeFilters = 65536, kWorthwhileTiles = 32;

int64_t wide_columns(const QWinograd& w) { return divide_up(w.g.out_channels, kQPanel) * kQPanel; }

// Returns whether the algorithm is exact, and faster for a QConv's window and channels on some instruction
// set.
bool winograd_fits(const Geometry& g, bool weight_zeros) {
  if (g.kernel[0] != 1 || g.in[0] != 1 || g.out[0] != 1 || g.pad[0] != 0 || g.group != 1) return false;
  for (int i = 1; i < 3; ++i)
    if (g.kernel[i] != 3 || g.stride[i] != 1 || g.dilation[i] != 1) return false;
  const int64_t tiles = divide_up(g.out[1], 2) * divide_up(g.out[2], 2) * g.batch;
  if (g.in_channels * g.out_channels >= kLargeFilters && tiles < kWorthwhileTiles) return false;
  // Four times the largest sum is below 2^31.
  const int64_t most = 4 * 9 * 255 * (weight_zeros ? 255 : 128);
  return g.in_channels >= kMinChannels && g.out_channels >= kMinColumns && g.out_pixels() >= kMinPixels &&
         g.in_channels <= INT32_MAX / most;
}

// Blocks take about as much scratch as the direct convolution's boxes, unless 8 tiles take more. Returns
// false on overflow.
bool plan_q_winograd(const QPlan& p, QWinograd* w) {
  const Geometry& g = w->g = p.g;
  w->x_zero = p.x_zero, w->result = p.result;
  w->depth = divide_up(g.in_channels, 2) * 2;
  w->down = divide_up(g.out[1], 2), w->across = divide_up(g.out[2], 2);
  w->tiles = g.batch * w->down * w->across;
  const int64_t each = kPositionCount * (w->depth * 2 + kQPanel * 4);
  int64_t of_boxes = 0, bytes = 0;
  if (!QScratch::bytes(p, &of_boxes)) of_boxes = 0;
  w->block = std::min(w->tiles, std::clamp(of_boxes / each / 8 * 8, kMinTiles, kMaxTiles));
  if (!checked_mul(each, w->block, &bytes) ||
      !checked_add<int64_t>(bytes, w->depth + static_cast<int64_t>(kBufferAlignment), &bytes))
    return false;
  w->scratch = static_cast<int64_t>(align_up(static_cast<size_t>(bytes), kBufferAlignment));
  return true;
}

// Counts the bytes of packed filters; false on overflow.
bool q_winograd_packed_bytes(const QWinograd& w, int64_t* bytes) {
  return checked_mul<int64_t>(kPositionCount * 2, w.depth, bytes) && checked_add<int64_t>(*bytes, 8, bytes) &&
         checked_mul(*bytes, wide_columns(w), bytes);
}

QWinogradPacked q_winograd_packed(const QWinograd& w, std::byte* memory) {
  const int64_t wide = wide_columns(w);
  QWinogradPacked packed;
  packed.panels = reinterpret_cast<int16_t*>(memory);
  packed.bias = reinterpret_cast<int32_t*>(memory + wide * kPositionCount * 2 * w.depth);
  packed.multipliers = reinterpret_cast<float*>(packed.bias + wide);
  return packed;
}

bool plan_call(const OpCall& call, QWinograd* w, QPlan* p) {
  return call.in(0).dtype == DType::kInt8 && has_constant_rest(call) && call.out(0).size() > 0 &&
         q_plan_of(call, p) && winograd_fits(p->g, call.has_input(4)) && plan_q_winograd(*p, w);
}

Fit takes_q_winograd(const OpCall& call, int threads, VariantNeeds* needs) {
  QPlan p;
  QWinograd w;
  int64_t filters = 0, scratch = 0;
  if (!plan_call(call, &w, &p) || !q_winograd_packed_bytes(w, &filters) ||
      !checked_mul<int64_t>(w.scratch, std::max(threads, 1), &scratch))
    return Fit::kNever;
  const bool zeros = call.has_input(4);
  needs->workspace = static_cast<size_t>(scratch);
  needs->packing = form_of(filters, zeros ? 0b11110u : 0b1110u,
                           {p.columns, p.g.in_channels, call.in(3).size(), zeros ? call.in(4).size() : 0});
  return HWY_ARCH_X86 && !multiplies_bytes() ? Fit::kHere : Fit::kElsewhere;
}

void pack_winograd_panels(const OpCall& call, std::byte* memory, ThreadPool* threads) {
  QPlan p;
  QWinograd w;
  if (!plan_call(call, &w, &p)) return;
  const QWinogradPacked packed = q_winograd_packed(w, memory);
  const auto pack = HWY_DYNAMIC_POINTER(pack_q_winograd);
  parallel_for(threads, divide_up(p.columns, q_panel_width()), 1,
               [&](int64_t begin, int64_t end) { pack(w, q_weights_of(call, p, 0), packed, begin, end); });
}

bool plan_winograd_step(const OpCall& call, const Preparation&, void* plan) {
  QPlan p;
  return plan_call(call, new (plan) QWinograd(), &p);
}

Status run_winograd_step(const VariantStep& step, const OpCall& call, RunContext& context) {
  auto w = step.plan<QWinograd>();
  w.x = call.in(0).as<const int8_t>(), w.result.y = call.out(0).data;
  const QWinogradPacked packed = q_winograd_packed(w, step.packed);
  const int64_t threads = threads_of(context.threads), panels = divide_up(w.g.out_channels, q_panel_width());
  const int64_t blocks = divide_up(w.tiles, w.block);
  // If there are too few blocks, panels are shared out as well.
  const int64_t parts = blocks >= threads ? 1 : std::min(panels, divide_up(threads, blocks));
  const int64_t units = blocks * parts, slots = std::min(units, threads);
  const auto run = HWY_DYNAMIC_POINTER(run_q_winograd);
  parallel_slots(context.threads, slots, units, [&](int64_t slot, int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t block = unit / parts, part = unit % parts;
      run(w, packed, w.tiles * block / blocks, w.tiles * (block + 1) / blocks, panels * part / parts,
          panels * (part + 1) / parts, context.workspace.data() + slot * w.scratch);
    }
  });
  return ok_status();
}

}  // namespace

const Variant qs8_conv_winograd_2x2 = {.takes = takes_q_winograd,
                                       .pack = pack_winograd_panels,
                                       .plan_bytes = sizeof(QWinograd),
                                       .plan = plan_winograd_step,
                                       .run = run_winograd_step};

}  // namespace sinter::simd
#endif  // HWY_ONCE
