// DepthwiseConv in blocks: a vector of channels, for up to eight neighbouring columns. A column of the input
// is loaded once for each line of taps, and goes into all sums that have a tap there.
#include <type_traits>
#include <utility>

#include "platforms/simd/float/depthwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/depthwise_blocks.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/float/depthwise_3x3_neon-inl.h"
#include "platforms/simd/isa/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Hides the origin of a number. Otherwise compilers compute the offsets of all columns ahead, outside the
// loops; x86 has too few registers for them.
template <class T>
HWY_INLINE void hide_origin([[maybe_unused]] T& v) {
#if HWY_ARCH_X86
  asm("" : "+r"(v));
#endif
}
// Keeps a column in a register: compilers would load it again for each of its products.
template <class W>
HWY_INLINE void keep_in_register([[maybe_unused]] W& v) {
#if HWY_ARCH_X86
  asm("" : "+v"(v.raw));
#elif HWY_ARCH_ARM
  asm("" : "+w"(v.raw));
#endif
}

// Calls f for 0 .. kCount - 1, each as a constant.
template <int kCount, class Each>
HWY_INLINE void unroll_depthwise(Each f) {
  [&]<int... k>(std::integer_sequence<int, k...>) SINTER_SIMD_LAMBDA {
    (f(std::integral_constant<int, k>()), ...);
  }
  (std::make_integer_sequence<int, kCount>());
}

// The columns of a block: kCount of the result, kInput of the input, `pixel` floats apart. With kEdge, only
// columns whose bit of `inside` is set are inside the input.
template <int kCount, int kTaps, int kStride, bool kEdge>
struct DepthwiseColumns {
  static constexpr int kInput = (kCount - 1) * kStride + kTaps;

  int64_t pixel;
  uint32_t inside;

  // Adds the products of a line of taps.
  template <class W>
  HWY_INLINE void add(const float* x, const W (&taps)[kTaps], W (&sums)[kCount]) const {
    int64_t at = 0, step = pixel;
    hide_origin(at), hide_origin(step);
    unroll_depthwise<kInput>([&](auto column) SINTER_SIMD_LAMBDA {
      if (!kEdge || (inside >> column & 1) != 0) {
        W v = hn::LoadU(hn::DFromV<W>(), x + at);
        if constexpr (!kEdge) keep_in_register(v);
        unroll_depthwise<kTaps>([&](auto tap) SINTER_SIMD_LAMBDA {
          constexpr int kPlace = column - tap;
          if constexpr (kPlace >= 0 && kPlace % kStride == 0 && kPlace / kStride < kCount)
            sums[kPlace / kStride] = hn::MulAdd(v, taps[tap], sums[kPlace / kStride]);
        });
      }
      at += step;
    });
  }
};

// The taps first .. end - 1 along an axis whose first one is at `start` are inside.
struct DepthwiseTaps {
  int64_t first, end;
};
HWY_INLINE DepthwiseTaps taps_inside(const Geometry& g, int axis, int64_t start) {
  DepthwiseTaps r{0, g.kernel[axis]};
  while (r.first < r.end && start + r.first * g.dilation[axis] < 0) ++r.first;
  while (r.end > r.first && start + (r.end - 1) * g.dilation[axis] >= g.in[axis]) --r.end;
  return r;
}

template <class D, int kCount, int kTaps, int kStride, bool kEdge>
HWY_NOINLINE void depthwise_block(const Depthwise& d, const DepthwiseBlock& b) {
  using W = hn::Vec<D>;
  using C = DepthwiseColumns<kCount, kTaps, kStride, kEdge>;
  const D tag;
  const Geometry g = d.g;  // a copy: results could overwrite the original, as far as compilers can see
  const auto lanes = static_cast<int64_t>(hn::Lanes(tag));
  const int64_t pixel = g.in_pixel(), line = g.in[2] * pixel, plane = g.in[1] * line;
  const int64_t out_pixel = g.out_pixel(), channels = b.channels, tap = g.in_channels;
  const int64_t line_step = g.dilation[1] * line, plane_step = g.dilation[0] * plane;
  const int64_t filter_line = kTaps * tap, filter_plane = g.kernel[1] * filter_line;
  const int64_t start2 = b.column * kStride - g.pad[2];
  C columns{pixel, 0};
  for (int64_t i = 0; kEdge && i < C::kInput; ++i)
    if (start2 + i >= 0 && start2 + i < g.in[2]) columns.inside |= 1u << i;
  const int64_t start0 = b.plane % g.out[0] * g.stride[0] - g.pad[0];
  const DepthwiseTaps planes = taps_inside(g, 0, start0);
  const int64_t first_plane = b.plane / g.out[0] * g.in[0] + start0 + planes.first * g.dilation[0];
  const float* image = d.x + first_plane * plane + start2 * pixel + b.channel;
  const float* filter = d.filter + planes.first * filter_plane + b.channel;
  const float* bias = d.bias != nullptr ? d.bias + b.channel : nullptr;
  float* y = d.y + ((b.plane * g.out[1] + b.line) * g.out[2] + b.column) * out_pixel + b.channel;
  const W low = hn::Set(tag, d.min), high = hn::Set(tag, d.max);
  const auto finish = [&](W sum) SINTER_SIMD_LAMBDA { return clamp(sum, low, high); };
  for (int64_t o = b.line; o < b.line + b.lines; ++o, y += g.out[2] * out_pixel) {
    const int64_t start1 = o * g.stride[1] - g.pad[1];
    const DepthwiseTaps lines = taps_inside(g, 1, start1);
    const float* x = image + (start1 + lines.first * g.dilation[1]) * line;
    const float* f = filter + lines.first * filter_line;
    // The lines that the next line's windows add: every step of channels fetches a part of them, in order.
    constexpr int64_t kFetched = kCount * kStride;
    const int64_t next = start1 + (g.kernel[1] - 1) * g.dilation[1] + 1;
    const int64_t fetched = b.fetch && next >= 0 ? std::min(g.stride[1], g.in[1] - next) : 0;
    const float* ahead = image + next * line;
    for (int64_t c = 0; c < channels; c += lanes) {
      c = std::min(c, channels - lanes);  // the last vector may compute some channels again
      W sums[kCount];
      sums[0] = bias != nullptr ? hn::LoadU(tag, bias + c) : hn::Zero(tag);
      unroll_depthwise<kCount>([&](auto k) SINTER_SIMD_LAMBDA { sums[k] = sums[0]; });
      const float *x0 = x + c, *f0 = f + c;
      for (int64_t t0 = planes.first; t0 < planes.end; ++t0, x0 += plane_step, f0 += filter_plane) {
        const float *x1 = x0, *f1 = f0;
        for (int64_t t1 = lines.first; t1 < lines.end; ++t1, x1 += line_step, f1 += filter_line) {
          W taps[kTaps];
          unroll_depthwise<kTaps>([&](auto k) SINTER_SIMD_LAMBDA { taps[k] = hn::LoadU(tag, f1 + k * tap); });
          columns.add(x1, taps, sums);
        }
      }
      for (int64_t k = 0; k < fetched; ++k)
        for (int64_t i = 0; i < kFetched * lanes; i += 16) hwy::Prefetch(ahead + k * line + kFetched * c + i);
      float* to = y + c;
      unroll_depthwise<kCount>([&](auto k) SINTER_SIMD_LAMBDA {
        hn::StoreU(finish(sums[k]), tag, to);
        to += out_pixel;
      });
    }
  }
}

template <class D, int kTaps, int kStride>
void choose_columns(const Depthwise& d, const DepthwiseBlock& b) {
  const int64_t start = b.column * kStride - d.g.pad[2];
  if (start >= 0 && start + (b.columns - 1) * kStride + kTaps <= d.g.in[2]) {
    if (b.columns == 8) return depthwise_block<D, 8, kTaps, kStride, false>(d, b);
    if (b.columns == 7) return depthwise_block<D, 7, kTaps, kStride, false>(d, b);
    if (b.columns == 6) return depthwise_block<D, 6, kTaps, kStride, false>(d, b);
    if (b.columns == 5) return depthwise_block<D, 5, kTaps, kStride, false>(d, b);
  }
  if (b.columns == 8) return depthwise_block<D, 8, kTaps, kStride, true>(d, b);
  if (b.columns == 7) return depthwise_block<D, 7, kTaps, kStride, true>(d, b);
  if (b.columns == 6) return depthwise_block<D, 6, kTaps, kStride, true>(d, b);
  if (b.columns == 5) return depthwise_block<D, 5, kTaps, kStride, true>(d, b);
  depthwise_block<D, 4, kTaps, kStride, true>(d, b);
}

template <class D>
void choose_window(const Depthwise& d, const DepthwiseBlock& b) {
  const bool three = d.g.kernel[2] == 3, one = d.g.stride[2] == 1;
  if (three && one) return choose_columns<D, 3, 1>(d, b);
  if (three) return choose_columns<D, 3, 2>(d, b);
  if (one) return choose_columns<D, 5, 1>(d, b);
  choose_columns<D, 5, 2>(d, b);
}

int64_t depthwise_lanes() { return static_cast<int64_t>(hn::Lanes(F())); }

void depthwise(const Depthwise& d, const DepthwiseBlock& b) { choose_window<F>(d, b); }

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {
HWY_EXPORT(depthwise_lanes);
HWY_EXPORT(depthwise);
HWY_EXPORT(takes_depthwise_lines);
HWY_EXPORT(depthwise_lines);

// The longest vectors that few channels fill are AVX2's, whose kernel AVX-512 runs for them, too.
constexpr int64_t kShortLanes = 8;

}  // namespace

int64_t depthwise_channels() { return std::min(HWY_DYNAMIC_DISPATCH(depthwise_lanes)(), kShortLanes); }

bool has_depthwise_blocks(const Geometry& g) {
  return (g.kernel[2] == 3 || g.kernel[2] == 5) && g.stride[2] <= 2 && g.dilation[2] == 1 &&
         g.out[2] >= kMinDepthwiseColumns;
}

void compute_depthwise_block(const Depthwise& d, const DepthwiseBlock& b) {
#if HWY_TARGETS & HWY_AVX2
  if (b.channels < HWY_DYNAMIC_DISPATCH(depthwise_lanes)()) return N_AVX2::depthwise(d, b);
#endif
  HWY_DYNAMIC_DISPATCH(depthwise)(d, b);
}

bool has_depthwise_lines(const Geometry& g) { return HWY_DYNAMIC_DISPATCH(takes_depthwise_lines)(g); }

void compute_whole_depthwise_lines(const Depthwise& d, int64_t plane, int64_t first, int64_t end) {
  HWY_DYNAMIC_DISPATCH(depthwise_lines)(d, plane, first, end);
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
