#include "platforms/simd/float/winograd.h"

#include <cstring>

#include "platforms/simd/variant.h"
#include "runtime/backend/winograd.h"

namespace sinter::simd {
namespace {

// The approximate floats of a block's transformed inputs and products, for an L2 cache of 1 MB; never more
// than the operands take, so that the workspace of a small call does not decide how large the arena is.
constexpr int64_t kBlockFloats = 192 * 1024;
constexpr int64_t kChunk = 64;
constexpr int64_t kFewTiles = 12;  // rows from which a product is fast
constexpr int64_t kTilesAtOnce = 8;
constexpr int64_t kTilesInRow = 4;  // they share columns of transformed inputs

int64_t whole_vectors(int64_t channels) { return divide_up(channels, kWinogradVector) * kWinogradVector; }

// Gathers the inputs of the tile whose first pixel is (top, left), with zeros around the image.
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
    if (first > 0) std::memset(to, 0, bytes(first));
    if (g.in_pixel() == channels)
      std::memcpy(to + first * channels, line, bytes(end - first));
    else
      for (int64_t j = first; j < end; ++j, line += g.in_pixel())
        std::memcpy(to + j * channels, line, bytes(1));
    if (end < inputs) std::memset(to + end * channels, 0, bytes(inputs - end));
  }
}

// The place of a tile: its image, and its row and column among its tiles.
struct TilePlace {
  int64_t image, row, column;

  // Moves `count` tiles further, at most to the end of the row.
  void advance(const WinogradPlan& p, int64_t count) {
    column += count;
    if (column < p.columns) return;
    column = 0, ++row;
    if (row == p.rows) row = 0, ++image;
  }
};
TilePlace place_of(const WinogradPlan& p, int64_t tile) {
  return {tile / p.columns / p.rows, tile / p.columns % p.rows, tile % p.columns};
}

struct WinogradSlot {
  float *lines, *patch, *inputs, *products;
  WinogradSlot(const WinogradPlan& p, float* memory)
      : lines(memory),
        patch(lines + p.line_floats),
        inputs(patch + p.positions * p.input_tile),
        products(inputs + p.positions * p.input_position) {}
};

// Returns the tiles from this place on, at most `most`, that are next to each other with all inputs in the
// image.
int64_t inner_tiles(const Geometry& g, const WinogradPlan& p, const TilePlace& at, int64_t most) {
  const int64_t top = at.row * p.tile - g.pad[1], left = at.column * p.tile - g.pad[2];
  if (top < 0 || top + p.inputs > g.in[1] || left < 0) return 0;
  int64_t count = std::min({kTilesInRow, p.columns - at.column, most});
  while (count > 0 && left + (count - 1) * p.tile + p.inputs > g.in[2]) --count;
  return count;
}

// The small outputs of each of a thread's tiles of a block.
struct SmallOutputs {
  uint64_t of_tile[kMostBlockTiles];
};

void transform_inputs(const Geometry& g, const WinogradPlan& p, int64_t block, const float* x,
                      const WinogradSlot& slot, SmallOutputs* small) {
  const InputTransform transform = input_transform(p.tile);
  const int64_t first = p.first_tile(block), end = p.first_tile(block + 1), pixel = g.in_pixel();
  WinogradInputs to;
  to.tile = kTilesTogether ? 4 : p.input_tile;
  to.position = p.input_position, to.vector = (end - first) * 4;
  TilePlace at = place_of(p, first);
  for (int64_t t = first; t < end; t += to.count, at.advance(p, to.count)) {
    const int64_t top = at.row * p.tile - g.pad[1], left = at.column * p.tile - g.pad[2];
    const float* image = x + at.image * g.in_pixels() * pixel;
    const int64_t inner = inner_tiles(g, p, at, end - t);
    WinogradPixels from{slot.patch, p.inputs * g.in_channels, g.in_channels, g.in_channels};
    if (inner > 0)
      from = {image + (top * g.in[2] + left) * pixel, g.in[2] * pixel, pixel, g.in_channels};
    else
      gather_tile(g, image, p.inputs, top, left, slot.patch);
    to.to = slot.inputs + (t - first) * to.tile;
    to.count = std::max<int64_t>(inner, 1);
    to.rows = std::min(p.tile, g.out[1] - at.row * p.tile);
    to.columns = std::min(to.count * p.tile, g.out[2] - at.column * p.tile);
    const bool large = transform(from, slot.lines, to);
    for (int64_t i = 0; i < to.count; ++i, from.x += p.tile * from.pixel)
      small->of_tile[t - first + i] =
          large ? 0 : small_outputs(p.tile, from, to.rows, std::min(p.tile, to.columns - i * p.tile));
  }
}

struct WinogradOperands {
  const float *x, *direct;  // the input, and filters as they are in the file
  const float *filters, *bias;
  float min, max;
  float* y;
};

// Computes output channels channel .. channel + count - 1 of a block whose inputs are transformed.
void compute_chunk(const Geometry& g, const WinogradPlan& p, int64_t block, int64_t channel, int64_t count,
                   const WinogradOperands& with, const SmallOutputs& small, const WinogradSlot& slot) {
  const OutputTransform transform = output_transform(p.tile);
  const int64_t first = p.first_tile(block), end = p.first_tile(block + 1);
  Gemm product;
  product.rows = end - first, product.columns = count, product.depth = g.in_channels;
  product.a_stride = p.input_tile, product.y_stride = p.product_tile;
  for (int64_t i = 0; i < p.positions; ++i) {
    product.a = slot.inputs + i * p.input_position;
    product.b = with.filters + i * p.filter_floats + channel * g.in_channels;
    product.y = slot.products + i * p.product_position;
    multiply_tiles(product);
  }
  TilePlace at = place_of(p, first);
  for (int64_t t = first; t < end; ++t, at.advance(p, 1)) {
    const int64_t top = at.row * p.tile, left = at.column * p.tile,
                  pixel = (at.image * g.out[1] + top) * g.out[2] + left;
    const WinogradStore to{with.bias != nullptr ? with.bias + channel : nullptr,
                           with.min,
                           with.max,
                           with.y + pixel * g.out_pixel() + channel,
                           g.out[2] * g.out_pixel(),
                           g.out_pixel(),
                           std::min(p.tile, g.out[1] - top),
                           std::min(p.tile, g.out[2] - left)};
    transform(slot.products + (t - first) * p.product_tile, p.product_position, count, slot.lines, to);
    if (const uint64_t outputs = small.of_tile[t - first]; outputs != 0)
      compute_small_outputs(g, outputs, p.tile, with.x + at.image * g.in_pixels() * g.in_pixel(),
                            top - g.pad[1], left - g.pad[2], with.direct + channel * 9 * g.in_channels, count,
                            to, slot.patch);
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
  p.blocks = divide_up(p.tiles, std::clamp(fit, kFewTiles, kMostBlockTiles));
  if (p.blocks < threads) p.blocks = std::max(p.blocks, std::min(threads, divide_up(p.tiles, kFewTiles)));
  // Fewer channels are computed at a time where blocks and chunks are too few for the threads.
  const int64_t wanted = p.blocks > 0 ? divide_up(threads, p.blocks) : 1,
                panels = divide_up(g.out_channels, kMaxPanel);
  if (divide_up(g.out_channels, p.chunk) < wanted)
    p.product_tile = p.chunk = std::max<int64_t>(panels / wanted, 1) * kMaxPanel;
  p.parts = p.blocks >= threads || p.blocks == 0
                ? 1
                : std::min(divide_up(g.out_channels, p.chunk), divide_up(threads, p.blocks));
  p.slots = std::min(p.units(), threads);
  // There is a vector more than the tiles, so that positions are not a power of two apart, where they would
  // share few cache lines.
  const int64_t block_tiles = p.blocks > 0 ? divide_up(p.tiles, p.blocks) : 0;
  p.input_position = block_tiles * p.input_tile + kWinogradVector;
  p.product_position = block_tiles * p.product_tile + kWinogradVector;
  // Whole blocks of rows of a product take the same memory, unless they leave few tiles for the last block.
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

// Returns the threads that make do with the memory of one, by smaller blocks.
int64_t most_sharing(int64_t threads) { return std::clamp<int64_t>(threads, 1, 3); }

struct WinogradStep {
  Geometry g;
  WinogradPlan p;
};

// Accepts calls whose attribute permits the algorithm.
template <int64_t kTile>
Fit takes_winograd(const OpCall& call, int threads, VariantNeeds* needs) {
  if (call.attrs<ConvAttrs>().winograd != kTile) return Fit::kNever;
  const Geometry g = window_geometry<ConvAttrs>(call);
  WinogradPlan one, p;
  int64_t packed = 0, scratch = 0;
  if (!plan_winograd(g, kTile, 1, 1, &one) || !plan_winograd(g, kTile, threads, most_sharing(threads), &p) ||
      !checked_mul(p.filter_floats, p.positions, &packed) ||
      !checked_mul<int64_t>(packed, sizeof(float), &packed) || !checked_mul(p.slot_floats, p.slots, &scratch))
    return Fit::kNever;
  // One thread may run with the memory of several.
  scratch = std::max(scratch, one.slots * one.slot_floats);
  if (!checked_mul<int64_t>(scratch, sizeof(float), &scratch) ||
      static_cast<uint64_t>(std::max(packed, scratch)) > SIZE_MAX / 2)
    return Fit::kNever;
  needs->packing = form_of(packed, 0b10, {g.out_channels, g.in_channels});
  needs->workspace = static_cast<size_t>(scratch);
  return Fit::kEverywhere;
}

// The plan has the largest blocks that there is room for.
bool plan_winograd_step(const OpCall& call, const Preparation& with, void* plan) {
  auto* step = new (plan) WinogradStep{window_geometry<ConvAttrs>(call), {}};
  if (call.out(0).size() == 0) return true;
  const int64_t threads = threads_of(with.threads);
  const auto room = static_cast<int64_t>(with.workspace.size() / sizeof(float));
  const WinogradPlan& p = step->p;
  for (int64_t sharing = 1; sharing == 1 || p.slot_floats > room / p.slots; ++sharing)
    if (sharing > most_sharing(threads) ||
        !plan_winograd(step->g, call.attrs<ConvAttrs>().winograd, threads, sharing, &step->p))
      return false;
  return true;
}

Status run_winograd(const VariantStep& step, const OpCall& call, RunContext& context) {
  const auto& attrs = call.attrs<ConvAttrs>();
  const Geometry& g = step.plan<WinogradStep>().g;
  const WinogradPlan& p = step.plan<WinogradStep>().p;
  if (call.out(0).size() == 0) return ok_status();
  const auto* x = call.in(0).as<const float>();
  const WinogradOperands with{x,
                              call.in(1).as<const float>(),
                              reinterpret_cast<const float*>(step.packed),
                              call.has_input(2) ? call.in(2).as<const float>() : nullptr,
                              static_cast<float>(attrs.act_min),
                              static_cast<float>(attrs.act_max),
                              call.out(0).as<float>()};
  const int64_t chunks = divide_up(g.out_channels, p.chunk);
  parallel_slots(context.threads, p.slots, p.units(), [&](int64_t number, int64_t begin, int64_t end) {
    const WinogradSlot slot(p, reinterpret_cast<float*>(context.workspace.data()) + number * p.slot_floats);
    SmallOutputs small;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t block = unit / p.parts, part = unit % p.parts;
      if (unit == begin || part == 0) transform_inputs(g, p, block, x, slot, &small);
      for (int64_t c = chunks * part / p.parts; c < chunks * (part + 1) / p.parts; ++c)
        compute_chunk(g, p, block, c * p.chunk, std::min(p.chunk, g.out_channels - c * p.chunk), with, small,
                      slot);
    }
  });
  return ok_status();
}

template <int64_t kTile>
constexpr Variant kWinograd = {.takes = takes_winograd<kTile>,
                               .pack = pack_winograd,
                               .plan_bytes = sizeof(WinogradStep),
                               .plan = plan_winograd_step,
                               .run = run_winograd,
                               .keeps_weights = true};

}  // namespace

const Variant f32_conv_winograd_2x2 = kWinograd<2>;
const Variant f32_conv_winograd_4x4 = kWinograd<4>;
const Variant f32_conv_winograd_6x6 = kWinograd<6>;

}  // namespace sinter::simd
