#include "platforms/simd/float/conv_few_channels.h"

#include "platforms/simd/float/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/conv_few_channels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/math-inl.h"
#include "platforms/simd/pixel_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

struct NarrowFloatSums {
  using Sum = V;
  const float* bias;  // may be null
  int64_t columns;    // that it has
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

bool choose_narrow_conv_boxes(NarrowConv* n, int64_t threads) {
  return choose_narrow_boxes(n->g, n->g.in_channels, threads, &n->boxes);
}

bool narrow_conv_packed(const Geometry& g, int64_t* floats) {
  return checked_mul(g.taps() * g.in_channels, kNarrowChannels, floats);
}

void pack_narrow_conv(const Geometry& g, const float* filters, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack_narrow_conv)(g, filters, packed);
}

void run_narrow_conv(const NarrowConv& n, const float* packed, std::byte* scratch, ThreadPool* threads) {
  int64_t each = 0;
  if (!narrow_scratch_bytes(n.g, n.boxes, 1, &each)) return;
  const auto run = HWY_DYNAMIC_POINTER(run_narrow_conv_box);
  parallel_boxes(threads, n.g, n.boxes,
                 [&](int64_t slot, const QBox& box) { run(n, packed, box, scratch + slot * each); });
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
