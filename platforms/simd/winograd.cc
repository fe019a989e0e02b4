#include "platforms/simd/winograd.h"

#include <cstring>

#include "platforms/simd/packed.h"
#include "runtime/backend/winograd.h"

#ifndef SINTER_SIMD_WINOGRAD_ONCE
#define SINTER_SIMD_WINOGRAD_ONCE
namespace sinter::simd {

// Whether four channels of all tiles of a block are beside each other, or all channels of a tile.
#if defined(__aarch64__)
constexpr bool kTilesTogether = true;
#else
constexpr bool kTilesTogether = false;
#endif

}  // namespace sinter::simd
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/winograd.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/eight_rows-inl.h"
#include "platforms/simd/winograd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Lines that are transformed in one iteration: the registers of 64-bit ARM hold two, and it loads and stores
// pairs of vectors.
constexpr int64_t kLines = HWY_ARCH_ARM_A64 ? 2 : 1;

// The inputs of neighbouring tiles from x on, `row` and `pixel` floats apart, to `to`, position by position.
// Vectors of channels are `vector` floats apart there, tiles to.tile. Channels are rounded up to whole
// vectors. `lines`: a vector for each position of the tiles, which share columns.
template <int kPairs>
HWY_NOINLINE void transform_input(const float* x, int64_t row, int64_t pixel, int64_t channels, float* lines,
                                  const WinogradInputs& tiles, int64_t vector) {
  constexpr int kInputs = Winograd<kPairs>::kInputs, kTile = Winograd<kPairs>::kTile;
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t columns = tiles.count * kTile + kInputs - kTile, position = tiles.position;
  const auto load = [&](const float* p) SINTER_SIMD_LAMBDA { return hn::LoadU(d, p); };
  const auto column = [&](auto load_from, const float* from, int64_t j) SINTER_SIMD_LAMBDA {
    store_line<kInputs>(transformed_input<kPairs>(load_line<kInputs>(load_from, from, row)),
                        lines + j * kInputs * lanes, lanes);
  };
  float* to = tiles.to;
  for (int64_t c = 0; c < channels; c += lanes, to += vector) {
    const int64_t left = channels - c;
    const float* from = x + c;
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
    for (int64_t t = 0; t < tiles.count; ++t) {
      const float* line = lines + t * kTile * kInputs * lanes;
      float* at = to + t * tiles.tile;
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
}

// One vector of outputs of a pixel, finished: `count` channels from the tile's channel c on.
HWY_INLINE void store(V v, V bias, V low, V high, float* y, size_t count) {
  const F d;
  v = hn::Add(v, bias);
  v = clamp(v, low, high);
  if (count == hn::Lanes(d))
    hn::StoreU(v, d, y);
  else
    hn::StoreN(v, d, y, count);
}

// The products of one tile at m, position by position, to its outputs.
template <int kPairs>
HWY_NOINLINE void transform_output(const float* m, int64_t position, int64_t channels, float* lines,
                                   const WinogradStore& to) {
  constexpr int kInputs = Winograd<kPairs>::kInputs, kTile = Winograd<kPairs>::kTile;
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V low = set(to.min), high = set(to.max);
  // Copies, for a compiler reads fields anew after every vector that is stored.
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
    // Of whole vectors, for products are of whole panels.
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

void transform_tile_inputs(int64_t tile, const float* x, int64_t row, int64_t pixel, int64_t channels,
                           float* lines, const WinogradInputs& to) {
  const int64_t vector = kTilesTogether ? to.vector : static_cast<int64_t>(hn::Lanes(F()));
  if (tile == 2) return transform_input<1>(x, row, pixel, channels, lines, to, vector);
  if (tile == 4) return transform_input<2>(x, row, pixel, channels, lines, to, vector);
  return transform_input<3>(x, row, pixel, channels, lines, to, vector);
}

void transform_tile_output(int64_t tile, const float* m, int64_t position, int64_t channels, float* lines,
                           const WinogradStore& to) {
  if (tile == 2) return transform_output<1>(m, position, channels, lines, to);
  if (tile == 4) return transform_output<2>(m, position, channels, lines, to);
  return transform_output<3>(m, position, channels, lines, to);
}

// The products of one position, of a block of tiles. On 64-bit ARM, inputs of four channels of all tiles are
// together; elsewhere those of all channels of a tile.
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
namespace {

HWY_EXPORT(transform_tile_inputs);
HWY_EXPORT(transform_tile_output);
HWY_EXPORT(multiply_tiles);

// About: transformed inputs and products of a block, in an L2 cache of 1 MB. No more than the operands take,
// so that the workspace of a small call does not decide how large the arena is.
constexpr int64_t kBlockFloats = 192 * 1024;
constexpr int64_t kChunk = 64;
constexpr int64_t kFewTiles = 12;  // rows of a product from which it is fast
constexpr int64_t kTilesAtOnce = 8;
constexpr int64_t kTilesInRow = 4;  // that share columns of transformed inputs

int64_t whole_vectors(int64_t channels) { return divide_up(channels, kWinogradVector) * kWinogradVector; }

// The inputs of the tile whose first pixel is (top, left) of the image, with zeros around the image.
void gather_tile(const Geometry& g, const float* image, int64_t inputs, int64_t top, int64_t left,
                 float* to) {
  const int64_t channels = g.in_channels;
  const auto bytes = [&](int64_t pixels) { return static_cast<size_t>(pixels * channels) * sizeof(float); };
  const int64_t first = std::clamp<int64_t>(-left, 0, inputs),
                end = std::clamp<int64_t>(g.in[2] - left, first, inputs);
  for (int64_t i = 0; i < inputs; ++i, to += inputs * channels) {
    if (top + i < 0 || top + i >= g.in[1] || first == end) {
      std::memset(to, 0, bytes(inputs));
      continue;
    }
    const float* line = image + ((top + i) * g.in[2] + left + first) * g.in_pixel();
    std::memset(to, 0, bytes(first));
    if (g.in_pixel() == channels)
      std::memcpy(to + first * channels, line, bytes(end - first));
    else
      for (int64_t j = first; j < end; ++j, line += g.in_pixel())
        std::memcpy(to + j * channels, line, bytes(1));
    std::memset(to + end * channels, 0, bytes(inputs - end));
  }
}

// A tile's place: its image, and its first output pixel.
struct TilePlace {
  int64_t image, top, left;
};
TilePlace place_of(const WinogradPlan& p, int64_t tile) {
  const int64_t in_image = tile % (p.rows * p.columns);
  return {tile / (p.rows * p.columns), in_image / p.columns * p.tile, in_image % p.columns * p.tile};
}

// A thread's workspace.
struct WinogradSlot {
  float *lines, *patch, *inputs, *products;
  WinogradSlot(const WinogradPlan& p, float* memory)
      : lines(memory),
        patch(lines + p.line_floats),
        inputs(patch + p.positions * p.input_tile),
        products(inputs + p.positions * p.input_position) {}
};

// The tiles from `tile` on, at most kTilesInRow, that are next to each other and whose inputs are in the
// image.
int64_t inner_tiles(const Geometry& g, const WinogradPlan& p, int64_t tile, int64_t top, int64_t left) {
  const int64_t room = g.in[2] - left - p.inputs;
  if (top < 0 || top + p.inputs > g.in[1] || left < 0 || room < 0) return 0;
  return std::min({kTilesInRow, p.columns - tile % p.columns, room / p.tile + 1});
}

void transform_inputs(const Geometry& g, const WinogradPlan& p, int64_t block, const float* x,
                      const WinogradSlot& slot) {
  const auto transform = HWY_DYNAMIC_POINTER(transform_tile_inputs);
  const int64_t first = p.first_tile(block), end = p.first_tile(block + 1), pixel = g.in_pixel();
  WinogradInputs to;
  to.tile = kTilesTogether ? 4 : p.input_tile;
  to.position = p.input_position, to.vector = (end - first) * 4;
  for (int64_t t = first; t < end; t += to.count) {
    const TilePlace at = place_of(p, t);
    const int64_t top = at.top - g.pad[1], left = at.left - g.pad[2];
    const float* image = x + at.image * g.in_pixels() * pixel;
    to.to = slot.inputs + (t - first) * to.tile;
    to.count = std::min(inner_tiles(g, p, t, top, left), end - t);
    if (to.count > 0) {
      transform(p.tile, image + (top * g.in[2] + left) * pixel, g.in[2] * pixel, pixel, g.in_channels,
                slot.lines, to);
    } else {
      to.count = 1;
      gather_tile(g, image, p.inputs, top, left, slot.patch);
      transform(p.tile, slot.patch, p.inputs * g.in_channels, g.in_channels, g.in_channels, slot.lines, to);
    }
  }
}

struct WinogradOperands {
  const float *filters, *bias;
  float min, max;
  float* y;
};

// Output channels channel .. channel + count - 1 of a block whose inputs are transformed.
void compute_chunk(const Geometry& g, const WinogradPlan& p, int64_t block, int64_t channel, int64_t count,
                   const WinogradOperands& with, const WinogradSlot& slot) {
  const auto transform = HWY_DYNAMIC_POINTER(transform_tile_output);
  const auto multiply = HWY_DYNAMIC_POINTER(multiply_tiles);
  const int64_t first = p.first_tile(block), end = p.first_tile(block + 1);
  Gemm product;
  product.rows = end - first, product.columns = count, product.depth = g.in_channels;
  product.a_stride = p.input_tile, product.y_stride = p.product_tile;
  for (int64_t i = 0; i < p.positions; ++i) {
    product.a = slot.inputs + i * p.input_position;
    product.b = with.filters + i * p.filter_floats + channel * g.in_channels;
    product.y = slot.products + i * p.product_position;
    multiply(product);
  }
  for (int64_t t = first; t < end; ++t) {
    const TilePlace at = place_of(p, t);
    const int64_t pixel = (at.image * g.out[1] + at.top) * g.out[2] + at.left;
    transform(p.tile, slot.products + (t - first) * p.product_tile, p.product_position, count, slot.lines,
              {with.bias != nullptr ? with.bias + channel : nullptr, with.min, with.max,
               with.y + pixel * g.out_pixel() + channel, g.out[2] * g.out_pixel(), g.out_pixel(),
               std::min(p.tile, g.out[1] - at.top), std::min(p.tile, g.out[2] - at.left)});
  }
}

}  // namespace

bool plan_winograd(const Geometry& g, int64_t tile, int64_t threads, int64_t sharing, WinogradPlan* plan) {
  WinogradPlan& p = *plan;
  int64_t shared = 0;  // floats of one thread's workspace
  if (sharing > 1) {
    if (!plan_winograd(g, tile, 1, 1, plan)) return false;
    shared = p.slot_floats;
  }
  p = {};
  threads = std::max<int64_t>(threads, 1);
  p.tile = tile, p.inputs = tile + 2, p.positions = p.inputs * p.inputs;
  p.rows = divide_up(g.out[1], tile), p.columns = divide_up(g.out[2], tile);
  p.tiles = g.batch * p.rows * p.columns;
  p.chunk = std::min(kChunk, std::max<int64_t>(divide_up(g.out_channels, kMaxPanel), 1) * kMaxPanel);
  p.input_tile = whole_vectors(g.in_channels), p.product_tile = p.chunk;
  const int64_t operands = g.batch * (g.in_pixels() * g.in_channels + g.out_pixels() * g.out_channels);
  p.line_floats = (kTilesInRow * tile + 2) * p.inputs * kWinogradVector;
  const int64_t of_tile = p.positions * (p.input_tile + p.product_tile),
                besides = p.positions * (p.input_tile + 2 * kWinogradVector) + p.line_floats,
                room = sharing > 1 ? shared / sharing - besides : std::min(kBlockFloats, operands);
  const int64_t fit = room / of_tile / kFewTiles * kFewTiles;
  p.blocks = divide_up(p.tiles, std::clamp(fit, kFewTiles, 8 * kFewTiles));
  if (p.blocks < threads) p.blocks = std::max(p.blocks, std::min(threads, divide_up(p.tiles, kFewTiles)));
  // Fewer channels at a time where blocks and chunks are too few for the threads.
  const int64_t wanted = p.blocks > 0 ? divide_up(threads, p.blocks) : 1,
                panels = divide_up(g.out_channels, kMaxPanel);
  if (divide_up(g.out_channels, p.chunk) < wanted)
    p.product_tile = p.chunk = std::max<int64_t>(panels / wanted, 1) * kMaxPanel;
  p.parts = p.blocks >= threads || p.blocks == 0
                ? 1
                : std::min(divide_up(g.out_channels, p.chunk), divide_up(threads, p.blocks));
  p.slots = std::min(p.units(), threads);
  // A vector more than the tiles, so that positions are not a power of two apart, which would make them share
  // few lines of a cache.
  const int64_t block_tiles = p.blocks > 0 ? divide_up(p.tiles, p.blocks) : 0;
  p.input_position = block_tiles * p.input_tile + kWinogradVector;
  p.product_position = block_tiles * p.product_tile + kWinogradVector;
  // The same memory for whole blocks of rows of a product, unless these leave few tiles for the last block.
  if (kTilesTogether && block_tiles > kTilesAtOnce) {
    const int64_t whole = block_tiles / kTilesAtOnce * kTilesAtOnce, blocks = divide_up(p.tiles, whole);
    if (2 * (p.tiles - (blocks - 1) * whole) > whole) p.block_tiles = whole, p.blocks = blocks;
  }
  const int64_t of_position = p.input_tile + p.input_position + p.product_position;
  return packed_floats(g.out_channels, g.in_channels, &p.filter_floats) &&
         checked_mul(p.positions, of_position, &p.slot_floats) &&
         checked_add(p.slot_floats, p.line_floats, &p.slot_floats);
}

namespace {

// Threads that make do with the memory of one, by smaller blocks.
int64_t most_sharing(int64_t threads) { return std::clamp<int64_t>(threads, 1, 3); }

}  // namespace

bool winograd_packing(const OpCall& call, int threads, Packing* packing, size_t* workspace) {
  const auto& attrs = call.attrs<ConvAttrs>();
  if (attrs.winograd == 0) return false;
  const Geometry g = window_geometry<ConvAttrs>(call);
  WinogradPlan one, p;
  int64_t packed = 0, scratch = 0;
  if (!plan_winograd(g, attrs.winograd, 1, 1, &one) ||
      !plan_winograd(g, attrs.winograd, threads, most_sharing(threads), &p) ||
      !checked_mul(p.filter_floats, p.positions, &packed) ||
      !checked_mul<int64_t>(packed, sizeof(float), &packed) || !checked_mul(p.slot_floats, p.slots, &scratch))
    return false;
  // One thread may run with what several have.
  scratch = std::max(scratch, one.slots * one.slot_floats);
  if (!checked_mul<int64_t>(scratch, sizeof(float), &scratch) ||
      static_cast<uint64_t>(std::max(packed, scratch)) > SIZE_MAX / 2)
    return false;
  *packing = {
      static_cast<size_t>(packed), 0b10, {kWinogradPanels, attrs.winograd, g.out_channels, g.in_channels}};
  *workspace = static_cast<size_t>(scratch);
  return true;
}

Status run_winograd(void* packed, const OpCall& call, RunContext& context) {
  const auto& attrs = call.attrs<ConvAttrs>();
  const Geometry g = window_geometry<ConvAttrs>(call);
  if (call.out(0).size() == 0) return ok_status();
  WinogradPlan p;
  const int64_t threads = threads_of(context.threads);
  const auto room = static_cast<int64_t>(context.workspace.size() / sizeof(float));
  // The largest blocks that there is room for.
  for (int64_t sharing = 1; sharing == 1 || p.slot_floats > room / p.slots; ++sharing)
    if (sharing > most_sharing(threads) || !plan_winograd(g, attrs.winograd, threads, sharing, &p))
      return error(Code::kInternal, "a step that was measured cannot be planned");
  const auto* x = call.in(0).as<const float>();
  const WinogradOperands with{
      static_cast<const float*>(packed), call.has_input(2) ? call.in(2).as<const float>() : nullptr,
      static_cast<float>(attrs.act_min), static_cast<float>(attrs.act_max), call.out(0).as<float>()};
  const int64_t chunks = divide_up(g.out_channels, p.chunk);
  parallel_slots(context.threads, p.slots, p.units(), [&](int64_t number, int64_t begin, int64_t end) {
    const WinogradSlot slot(p, reinterpret_cast<float*>(context.workspace.data()) + number * p.slot_floats);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t block = unit / p.parts, part = unit % p.parts;
      if (unit == begin || part == 0) transform_inputs(g, p, block, x, slot);
      for (int64_t c = chunks * part / p.parts; c < chunks * (part + 1) / p.parts; ++c)
        compute_chunk(g, p, block, c * p.chunk, std::min(p.chunk, g.out_channels - c * p.chunk), with, slot);
    }
  });
  return ok_status();
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
