#include "platforms/simd/float/conv_few_channels.h"

#include "platforms/simd/float/gemm.h"
#include "platforms/simd/variant.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/conv_few_channels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/math-inl.h"
#include "platforms/simd/pixel_lanes-inl.h"

#ifndef SINTER_SIMD_PIXEL_LANES_ONCE
#define SINTER_SIMD_PIXEL_LANES_ONCE
namespace sinter::simd {

struct NarrowConv {
  Geometry g;
  const float* x = nullptr;
  const float* bias = nullptr;  // may be null
  float min = 0, max = 0;
  float* y = nullptr;
  QBoxes boxes;
  int64_t scratch = 0;  // bytes of a thread
};

}  // namespace sinter::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

struct NarrowFloatSums {
  using Sum = V;
  const float* bias;  // may be null
  int64_t columns;    // of the result
  V low, high;

  HWY_INLINE V start(int64_t c) const { return set(bias != nullptr && c < columns ? bias[c] : 0.0f); }
  static HWY_INLINE V add(hn::Vec<Words> cells, hn::Vec<Words> word, V sum) {
    return hn::MulAdd(hn::BitCast(F(), cells), hn::BitCast(F(), word), sum);
  }
  HWY_INLINE V finish(int64_t, V sum) const { return clamp(sum, low, high); }
};

void pack_narrow_conv(const Geometry& g, const float* filters, float* packed) {
  const int64_t words = narrow_words(g, 1), depth = g.taps() * g.in_channels;
  for (int64_t i = 0; i < words; ++i) packed[i] = 0.0f;
  for (int64_t c = 0; c < g.out_channels; ++c) pack_narrow_words(g, filters + c * depth, 1, c, packed);
}

void run_narrow_conv_box(const NarrowConv& n, const float* packed, const QBox& at, std::byte* scratch) {
  const Geometry& g = n.g;
  const int64_t c = g.in_channels, from = at.begin[2] * g.stride[2] - g.pad[2];
  const int64_t left = std::clamp<int64_t>(-from, 0, at.line),
                right = std::clamp(g.in[2] - from, left, at.line);
  const auto load = [&](int64_t i0, int64_t i1, float* line) {
    const float* x = input_line(g, at, n.x, i0, i1);
    const int64_t begin = x != nullptr ? left : 0, end = x != nullptr ? right : 0;
    std::fill_n(line, begin * c, 0.0f);
    if (begin < end)
      std::memcpy(line + begin * c, x + (from + begin) * c,
                  static_cast<size_t>((end - begin) * c) * sizeof(float));
    std::fill_n(line + end * c, (at.line - end) * c, 0.0f);
  };
  const NarrowFloatSums sums{n.bias, g.out_channels, set(n.min), set(n.max)};
  run_narrow_box<NarrowFloatSums, float, float>(g, at, reinterpret_cast<const int32_t*>(packed), sums,
                                                scratch, n.y, load);
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(pack_narrow_conv);
HWY_EXPORT(run_narrow_conv_box);

bool narrow_conv_gains(const Geometry& g) {
  return g.out_channels <= kNarrowOnAll || panel_width() > 2 * kNarrowChannels;
}

namespace {

// Counts the bytes of packed filters; false on overflow.
bool packed_filter_bytes(const Geometry& g, int64_t* bytes) {
  return checked_mul(g.taps() * g.in_channels, kNarrowChannels * static_cast<int64_t>(sizeof(float)), bytes);
}

// Returns false if the memory overflows.
bool share_narrow_conv(NarrowConv* n, int64_t threads) {
  return choose_narrow_boxes(n->g, n->g.in_channels, threads, &n->boxes) &&
         narrow_scratch_bytes(n->g, n->boxes, 1, &n->scratch);
}

// Describes the call, without addresses.
NarrowConv narrow_conv(const OpCall& call) {
  const auto& attrs = call.attrs<ConvAttrs>();
  NarrowConv n;
  n.g = window_geometry<ConvAttrs>(call);
  n.min = static_cast<float>(attrs.act_min), n.max = static_cast<float>(attrs.act_max);
  return n;
}

Status run_narrow_plan(const OpCall& call, NarrowConv n, const std::byte* filters, std::byte* scratch,
                       ThreadPool* threads) {
  n.x = call.in(0).as<const float>(), n.y = call.out(0).as<float>();
  n.bias = call.has_input(2) ? call.in(2).as<const float>() : nullptr;
  const auto run = HWY_DYNAMIC_POINTER(run_narrow_conv_box);
  parallel_boxes(threads, n.g, n.boxes, [&](int64_t slot, const QBox& box) {
    run(n, reinterpret_cast<const float*>(filters), box, scratch + slot * n.scratch);
  });
  return ok_status();
}

Fit takes_few_channels(const OpCall& call, int threads, VariantNeeds* needs) {
  const Geometry g = window_geometry<ConvAttrs>(call);
  int64_t filters = 0, workspace = 0;
  if (call.in(1).dtype != DType::kFloat32 || !narrow_conv_takes(g) ||
      !scratch_of_threads(narrow_conv(call), threads, share_narrow_conv, &workspace) ||
      !packed_filter_bytes(g, &filters))
    return Fit::kNever;
  needs->workspace = static_cast<size_t>(workspace);
  needs->packing = form_of(
      filters, 0b10,
      {g.kernel[0] * g.kernel[1], g.kernel[2], g.stride[2] * g.in_channels, g.dilation[2], g.out_channels});
  return g.out_channels <= kNarrowOnAll ? Fit::kEverywhere
         : narrow_conv_gains(g)         ? Fit::kHere
                                        : Fit::kElsewhere;
}

void pack_few_channels(const OpCall& call, std::byte* packed, ThreadPool*) {
  HWY_DYNAMIC_DISPATCH(pack_narrow_conv)
  (window_geometry<ConvAttrs>(call), call.in(1).as<const float>(), reinterpret_cast<float*>(packed));
}

bool plan_few_channels(const OpCall& call, const Preparation& with, void* plan) {
  return share_narrow_conv(new (plan) NarrowConv(narrow_conv(call)), threads_of(with.threads));
}

Status run_few_channels(const VariantStep& step, const OpCall& call, RunContext& context) {
  if (call.out(0).size() == 0) return ok_status();
  return run_narrow_plan(call, step.plan<NarrowConv>(), step.packed, context.workspace.data(),
                         context.threads);
}

}  // namespace

bool narrow_conv_workspace(const OpCall& call, int threads, int64_t* bytes) {
  const NarrowConv n = narrow_conv(call);
  int64_t filters = 0;
  return scratch_of_threads(n, threads, share_narrow_conv, bytes) && packed_filter_bytes(n.g, &filters) &&
         checked_add(*bytes, filters, bytes);
}

Status run_narrow_conv(const OpCall& call, RunContext& context) {
  NarrowConv n = narrow_conv(call);
  int64_t filters = 0;
  if (!share_narrow_conv(&n, threads_of(context.threads)) || !packed_filter_bytes(n.g, &filters))
    return ok_status();
  std::byte* packed = context.workspace.data();
  pack_few_channels(call, packed, nullptr);
  return run_narrow_plan(call, n, packed, packed + filters, context.threads);
}

const Variant f32_conv_pixel_lanes = {.takes = takes_few_channels,
                                      .pack = pack_few_channels,
                                      .plan_bytes = sizeof(NarrowConv),
                                      .plan = plan_few_channels,
                                      .run = run_few_channels};

}  // namespace sinter::simd
#endif  // HWY_ONCE
