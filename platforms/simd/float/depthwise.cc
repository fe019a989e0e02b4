// DepthwiseConv: divided into blocks if its window is one that blocks serve, else computed pixel by pixel.
#include "platforms/simd/float/depthwise.h"

namespace sinter::simd {
namespace {

constexpr int64_t kPieceWork = 16384;     // multiply-adds
constexpr int64_t kMinPieceLines = 4;     // neighbouring lines read the same input
constexpr int64_t kLargeBytes = 1 << 20;  // input and output that exceed a core's caches

Status accept_depthwise(const OpCall& call) {
  const TensorView &x = call.in(0), &y = call.out(0);
  SINTER_RETURN_UNLESS(x.dims[x.rank - 1] == y.dims[y.rank - 1],
                       unsupported("the simd kernel has one output channel per input channel"));
  return accept_float_pixels(call);
}

// Part `index` of `parts` parts of 0 .. length - 1 that begin at multiples of `unit`.
struct Part {
  int64_t begin, end;
};
Part part_of(int64_t length, int64_t unit, int64_t index, int64_t parts) {
  const int64_t units = divide_up(length, unit);
  return {units * index / parts * unit, std::min(units * (index + 1) / parts * unit, length)};
}

constexpr int64_t kChannelUnit = 16;     // a line of the cache
constexpr int64_t kFewestChannels = 32;  // of a thread

// Computes all blocks of some lines of a plane and some of their channels.
void compute_band(const Depthwise& d, int64_t plane, Part lines, Part channels, bool fetch) {
  const int64_t across = divide_up(d.g.out[2], kDepthwiseColumns);
  const int64_t parts = divide_up(channels.end - channels.begin, kDepthwiseChannels);
  DepthwiseBlock b;
  b.plane = plane, b.line = lines.begin, b.lines = lines.end - lines.begin;
  b.fetch = fetch;
  for (int64_t i = 0; i < parts; ++i) {
    const Part some = part_of(channels.end - channels.begin, kChannelUnit, i, parts);
    b.channel = channels.begin + some.begin, b.channels = some.end - some.begin;
    for (int64_t k = 0; k < across; ++k) {
      const Part columns = part_of(d.g.out[2], 1, k, across);
      b.column = columns.begin, b.columns = columns.end - columns.begin;
      compute_depthwise_block(d, b);
    }
  }
}

// Each thread gets neighbouring lines, as in most other kernels, so that its earlier results are in its own
// caches. Channels are divided as well where there are fewer bands of lines than threads.
void run_depthwise_blocks(const Depthwise& d, ThreadPool* threads) {
  const Geometry& g = d.g;
  const int64_t pool = threads_of(threads), planes = g.batch * g.out[0];
  const int64_t line_work = std::max<int64_t>(g.in_channels * g.taps() * g.out[2], 1);
  const int64_t fewest = std::max({kPieceWork / line_work, kMinPieceLines, divide_up(g.out[1], 4 * pool)});
  int64_t bands = pool > 1 ? std::max<int64_t>(g.out[1] / fewest, 1) : 1;
  if (bands > pool) bands -= bands % pool;
  const int64_t parts =
      std::clamp<int64_t>(pool / (planes * bands), 1, std::max<int64_t>(g.in_channels / kFewestChannels, 1));
  const int64_t bytes = (g.in_pixels() * g.in_pixel() + g.out_pixels() * g.out_pixel()) * 4;
  const bool fetch = parts == 1 && g.in_channels <= kDepthwiseChannels && bytes > kLargeBytes;
  parallel_for(threads, planes * bands * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t band = unit / parts;
      compute_band(d, band / bands, part_of(g.out[1], 1, band % bands, bands),
                   part_of(g.in_channels, kChannelUnit, unit % parts, parts), fetch);
    }
  });
}

// Computes lines whose input and output stay in the second cache while one vector of channels after the other
// is computed.
void run_depthwise_lines(const Depthwise& d, ThreadPool* threads) {
  constexpr int64_t kPieceFloats = 32768;
  const Geometry& g = d.g;
  const int64_t of_line = g.stride[1] * g.in[2] * g.in_pixel() + g.out[2] * g.out_pixel();
  const int64_t lines =
      std::clamp(kPieceFloats / std::max<int64_t>(of_line, 1), std::min(kMinPieceLines, g.out[1]), g.out[1]);
  const int64_t pieces = divide_up(g.out[1], lines);
  parallel_for(threads, g.batch * g.out[0] * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t piece = i % pieces;
      compute_whole_depthwise_lines(d, i / pieces, g.out[1] * piece / pieces,
                                    g.out[1] * (piece + 1) / pieces);
    }
  });
}

Status run_depthwise(const OpCall& call, RunContext& context) {
  if (call.out(0).size() == 0) return ok_status();
  const auto& a = call.attrs<DepthwiseConvAttrs>();
  Depthwise d;
  d.g = window_geometry<DepthwiseConvAttrs>(call);
  d.x = call.in(0).as<const float>(), d.filter = call.in(1).as<const float>();
  d.bias = call.has_input(2) ? call.in(2).as<const float>() : nullptr;
  d.min = static_cast<float>(a.act_min), d.max = static_cast<float>(a.act_max);
  d.y = call.out(0).as<float>();
  const Geometry& g = d.g;
  if (has_depthwise_lines(g)) {
    run_depthwise_lines(d, context.threads);
    return ok_status();
  }
  if (has_depthwise_blocks(g) && g.in_channels >= depthwise_channels()) {
    run_depthwise_blocks(d, context.threads);
    return ok_status();
  }
  const int64_t work = std::max<int64_t>(g.in_channels * g.taps() * g.out[2], 1);
  parallel_for(context.threads, g.batch * g.out[0] * g.out[1], std::max<int64_t>(kPieceWork / work, 1),
               [&](int64_t begin, int64_t end) { compute_depthwise_lines(d, begin, end); });
  return ok_status();
}

}  // namespace

const Kernel kDepthwiseConvKernel = {Op::kDepthwiseConv, nullptr, nullptr, run_depthwise, accept_depthwise};

}  // namespace sinter::simd
