#include "platforms/simd/int8/conv_plan.h"

namespace sinter::simd {
namespace {

constexpr int64_t kBoxElements = 49152;  // of the input, where one pixel's window is not larger
// Single taps by one panel read a box once: the inner cache then holds its input and the copy.
constexpr int64_t kPanelBoxElements = 16384;
// Other single taps read weights again for each box, which has a quarter of all rows, within bounds.
constexpr int64_t kFewestBoxRows = kManyQRows, kMostBoxRows = 32;
constexpr int64_t kBoxPixels = 512;

// Makes rows that are read in order the pixels of one line.
void flatten(int64_t rows, Geometry* g) {
  g->batch = 1;
  for (int i = 0; i < 3; ++i) g->in[i] = g->out[i] = i == 2 ? rows : 1;
}

// Counts the elements of a box's input; false on overflow.
[[nodiscard]] bool box_elements(const QPlan& p, int64_t* elements) {
  *elements = kBoxElements;
  if (!pointwise(p.g)) return true;
  if (p.columns <= kQPanel) return *elements = kPanelBoxElements, true;
  int64_t of_rows = 0;
  const int64_t rows = std::clamp(p.g.out[2] / 4, kFewestBoxRows, kMostBoxRows);
  if (!checked_mul(rows, p.g.in_channels, &of_rows)) return false;
  return *elements = std::max(*elements, of_rows), true;
}

}  // namespace

bool q_plan_of(const OpCall& call, QPlan* p) {
  Geometry& g = p->g;
  if (call.op == Op::kQFullyConnected) {
    const auto& a = call.attrs<QFullyConnectedAttrs>();
    p->result = product_result(call, a), p->x_zero = a.x_zero;
    const TensorView& x = call.in(0);
    int64_t rows = 1;
    for (int i = 0; i + 1 < x.rank; ++i) rows *= x.dims[i];
    g.in_channels = x.dims[x.rank - 1], g.out_channels = call.in(1).dims[0];
    flatten(rows, &g);
  } else {
    const auto& a = call.attrs<QConvAttrs>();
    p->result = product_result(call, a), p->x_zero = a.x_zero;
    g = window_geometry<QConvAttrs>(call);
    if (pointwise(g)) flatten(g.batch * g.out_pixels(), &g);
  }
  p->columns = g.out_channels / g.group;
  const bool lines = g.dilation[2] == 1 && g.group == 1;
  p->runs = {g.kernel[0] * g.kernel[1] * (lines ? 1 : g.kernel[2]),
             g.in_channels / g.group * (lines ? g.kernel[2] : 1)};
  if (call.out(0).size() == 0) return true;
  int64_t depth = 0, most_elements = 0;
  if (!checked_add<int64_t>(p->runs.length, kQPairDepth, &depth) ||
      !checked_mul(depth, p->runs.count, &depth) || !box_elements(*p, &most_elements))
    return false;
  return p->boxes.choose(g, g.in_channels, most_elements, kBoxPixels);
}

bool q_packed_bytes(const QPlan& p, int64_t* bytes) {
  int64_t depth = 0;
  return checked_add(p.runs.packed_depth(), number_bytes(p.runs.packed_depth(), p.bounded), &depth) &&
         checked_mul(p.wide(), depth, bytes);
}

QPacked q_packed_at(const QPlan& p, int64_t group, bool zeros, std::byte* memory) {
  int64_t bytes = 0;
  if (!q_packed_bytes(p, &bytes)) return {};
  auto* at = memory + group * bytes;
  QPacked packed;
  packed.runs = p.runs, packed.columns = p.columns, packed.panels = reinterpret_cast<int8_t*>(at);
  packed.set_numbers(at + p.wide() * p.runs.packed_depth(), p.wide(), zeros, p.bounded);
  return packed;
}

QWeights q_weights_of(const OpCall& call, const QPlan& p, int64_t group) {
  const bool zeros = call.has_input(4);
  const int64_t multiplier_step = call.in(3).size() == 1 ? 0 : 1,
                zero_step = zeros && call.in(4).size() > 1 ? 1 : 0;
  const int64_t c = group * p.columns;
  return {call.in(1).as<const int8_t>() + c * p.runs.depth(),
          p.runs.depth(),
          1,
          call.in(2).as<const int32_t>() + c,
          call.in(3).as<const float>() + c * multiplier_step,
          multiplier_step,
          zeros ? call.in(4).as<const int8_t>() + c * zero_step : nullptr,
          zero_step};
}

bool q_share(QPlan* p, int64_t threads) {
  constexpr int64_t kSeparateChannels = 128;  // of a pixel: two lines of the cache
  if (p->boxes.count(p->g) < threads && p->boxes.elements > kBoxElements &&
      !p->boxes.choose(p->g, p->g.in_channels, kBoxElements, kBoxPixels))
    return false;
  if (p->boxes.count(p->g) >= threads || p->columns / threads < kSeparateChannels)
    p->boxes.share(p->g, threads);
  return p->boxes.measure(p->g, p->g.in_channels) && QScratch::bytes(*p, &p->scratch);
}

}  // namespace sinter::simd
