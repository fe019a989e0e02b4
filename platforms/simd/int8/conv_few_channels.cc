// QConv of few output channels with pixels in the lanes (pixel_lanes.h). Sums wrap modulo 2^32, so that
// results have the bits of docs/numerics.md.
//
// The file is compiled for the instruction sets with dot products of bytes, too.
#define SINTER_SIMD_BYTE_TABLES
#define SINTER_SIMD_BYTE_DOTS
#include "platforms/simd/int8/conv_plan.h"
#include "platforms/simd/pixel_lanes.h"
#include "platforms/simd/variant.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/int8/conv_few_channels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/int8/multiply-inl.h"
#include "platforms/simd/pixel_lanes-inl.h"

#ifndef SINTER_SIMD_Q_PIXEL_LANES_ONCE
#define SINTER_SIMD_Q_PIXEL_LANES_ONCE
namespace sinter::simd {

struct QPixelLanes {
  Geometry g;
  int64_t x_zero = 0;
  const int8_t* x = nullptr;
  ProductResult result;
  QBoxes boxes;
  int64_t scratch = 0;  // bytes of a thread
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Returns whether lanes are fuller than in other kernels, whose vectors or, on ARM, panels of 8 need more
// channels.
bool q_pixel_lanes_gain(const Geometry& g) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D32()));
  return g.out_channels <= (HWY_TARGET_IS_NEON ? lanes : lanes / 2);
}

void pack_q_pixel_lanes(const Geometry& g, int64_t x_zero, const QWeights& from, std::byte* packed) {
  const int64_t columns = narrow_columns(g), words = narrow_words(g, kCell);
  auto* weights = reinterpret_cast<WeightElement*>(packed);
  auto* bias = reinterpret_cast<int32_t*>(packed) + words;
  auto* multipliers = reinterpret_cast<float*>(bias + columns);
  for (int64_t i = 0; i < words * kCell; ++i) weights[i] = 0;
  for (int64_t c = 0; c < columns; ++c) {
    bias[c] = 0, multipliers[c] = 0.0f;
    if (c >= g.out_channels) continue;
    const uint32_t sum =
        pack_narrow_words(g, from.weights + c * from.column_step, from.depth_step, c, weights);
    const uint32_t shift = kCentred ? 0 : sum * static_cast<uint32_t>(kShift + static_cast<int32_t>(x_zero));
    bias[c] = static_cast<int32_t>((from.bias != nullptr ? static_cast<uint32_t>(from.bias[c]) : 0) - shift);
    multipliers[c] = from.multipliers[c * from.multiplier_step];
  }
}

template <class T>
struct NarrowSums {
  using Sum = V32;
  const int32_t* bias;
  const float* multipliers;
  Finish<T> value;

  HWY_INLINE V32 start(int64_t c) const { return hn::Set(D32(), bias[c]); }
  static HWY_INLINE V32 add(V32 cells, V32 word, V32 sum) { return add_products(cells, word, sum); }
  HWY_INLINE auto finish(int64_t c, V32 sum) const {
    Finish<T> of_column = value;
    of_column.multiplier = hn::Set(DF(), multipliers[c]);
    return of_column(sum);
  }
};

template <class T>
HWY_INLINE void run_as(const QPixelLanes& n, const std::byte* packed, const QBox& at, std::byte* scratch) {
  const Geometry& g = n.g;
  const auto* words = reinterpret_cast<const int32_t*>(packed);
  const int32_t* bias = words + narrow_words(g, kCell);
  const NarrowSums<T> sums{bias, reinterpret_cast<const float*>(bias + narrow_columns(g)),
                           Finish<T>(n.result)};
  const auto load = [&](int64_t i0, int64_t i1, Element* line) {
    convert_line(g, input_line(g, at, n.x, i0, i1), at.begin[2] * g.stride[2] - g.pad[2], at.line,
                 static_cast<int32_t>(n.x_zero), line);
  };
  run_narrow_box<NarrowSums<T>, T, Element>(g, at, words, sums, scratch, static_cast<T*>(n.result.y), load);
}

void run_q_pixel_lanes(const QPixelLanes& n, const std::byte* packed, const QBox& at, std::byte* scratch) {
  if (n.result.type == DType::kInt8)
    run_as<int8_t>(n, packed, at, scratch);
  else if (n.result.type == DType::kFloat32)
    run_as<float>(n, packed, at, scratch);
  else
    run_as<int16_t>(n, packed, at, scratch);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(q_pixel_lanes_gain);
HWY_EXPORT(pack_q_pixel_lanes);
HWY_EXPORT(run_q_pixel_lanes);

namespace {

// The bytes of packed weights (words, then for each channel int32 bias and float multiplier), and of one
// thread's scratch, are bounds over all instruction sets. All functions return false if the memory overflows.
bool packed_q_pixel_lanes(const Geometry& g, int64_t* bytes) {
  int64_t taps = 0;
  return checked_mul(g.kernel[0], g.kernel[1], &taps) && checked_mul(taps, g.kernel[2], &taps) &&
         checked_mul(taps, divide_up(g.in_channels, 2) * 4 * kNarrowChannels, bytes) &&
         checked_add(*bytes, kNarrowChannels * 8, bytes);
}

bool share_q_pixel_lanes(QPixelLanes* n, int64_t threads) {
  int64_t pairs = 0, quads = 0;
  if (!choose_narrow_boxes(n->g, divide_up(n->g.in_channels, 2), threads, &n->boxes) ||
      !narrow_scratch_bytes(n->g, n->boxes, 2, &pairs) || !narrow_scratch_bytes(n->g, n->boxes, 4, &quads))
    return false;
  n->scratch = std::max(pairs, quads);
  return true;
}

QPixelLanes q_pixel_lanes(const QPlan& p) {
  QPixelLanes n;
  n.g = p.g, n.x_zero = p.x_zero, n.result = p.result;
  return n;
}

Fit takes_few_q_channels(const OpCall& call, int threads, VariantNeeds* needs) {
  QPlan p;
  if (call.in(0).dtype != DType::kInt8 || call.has_input(4) || !has_constant_rest(call) ||
      call.out(0).size() == 0 || !q_plan_of(call, &p) || !narrow_fits(p.g))
    return Fit::kNever;
  int64_t filters = 0, scratch = 0;
  if (!scratch_of_threads(q_pixel_lanes(p), threads, share_q_pixel_lanes, &scratch) ||
      !packed_q_pixel_lanes(p.g, &filters))
    return Fit::kNever;
  needs->workspace = static_cast<size_t>(scratch);
  needs->packing = form_of(filters, 0b1110u,
                           {p.g.kernel[0] * p.g.kernel[1], p.g.kernel[2], p.g.stride[2] * p.g.in_channels,
                            p.g.dilation[2], p.columns, p.x_zero, call.in(3).size()});
  return HWY_DYNAMIC_DISPATCH(q_pixel_lanes_gain)(p.g) ? Fit::kHere : Fit::kElsewhere;
}

void pack_few_q_channels(const OpCall& call, std::byte* packed, ThreadPool*) {
  QPlan p;
  if (q_plan_of(call, &p))
    HWY_DYNAMIC_DISPATCH(pack_q_pixel_lanes)(p.g, p.x_zero, q_weights_of(call, p, 0), packed);
}

bool plan_few_q_channels(const OpCall& call, const Preparation& with, void* memory) {
  QPlan p;
  return q_plan_of(call, &p) &&
         share_q_pixel_lanes(new (memory) QPixelLanes(q_pixel_lanes(p)), threads_of(with.threads));
}

Status run_few_q_channels(const VariantStep& step, const OpCall& call, RunContext& context) {
  auto n = step.plan<QPixelLanes>();
  n.x = call.in(0).as<const int8_t>(), n.result.y = call.out(0).data;
  const auto run_box = HWY_DYNAMIC_POINTER(run_q_pixel_lanes);
  parallel_boxes(context.threads, n.g, n.boxes, [&](int64_t slot, const QBox& box) {
    run_box(n, step.packed, box, context.workspace.data() + slot * n.scratch);
  });
  return ok_status();
}

}  // namespace

const Variant qs8_conv_pixel_lanes = {.takes = takes_few_q_channels,
                                      .pack = pack_few_q_channels,
                                      .plan_bytes = sizeof(QPixelLanes),
                                      .plan = plan_few_q_channels,
                                      .run = run_few_q_channels};

}  // namespace sinter::simd
#endif  // HWY_ONCE
