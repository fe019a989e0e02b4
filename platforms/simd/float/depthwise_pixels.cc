// DepthwiseConv with any window, pixel by pixel: channels side by side in a vector.
#include "platforms/simd/float/depthwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/depthwise_pixels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Computes a pixel with as many output as input channels: up to kVectors vectors of them, `count` from `c`
// on.
template <int kVectors>
HWY_INLINE void depthwise_strip(const Depthwise& p, const Window& w, int64_t c, size_t count, float* y) {
  const F d;
  const Geometry& g = p.g;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bool partial = kVectors == 1 && count < static_cast<size_t>(lanes);
  const auto load = [&](const float* from) SINTER_SIMD_LAMBDA {
    return partial ? hn::LoadN(d, from, count) : hn::LoadU(d, from);
  };
  const auto start = [&](int64_t at)
                         SINTER_SIMD_LAMBDA { return p.bias != nullptr ? load(p.bias + at) : hn::Zero(d); };
  V s0 = start(c), s1 = s0, s2 = s0, s3 = s0;
  if constexpr (kVectors == 4) s1 = start(c + lanes), s2 = start(c + 2 * lanes), s3 = start(c + 3 * lanes);
  const float* x0 = w.x + c;
  for (int64_t t0 = w.first[0]; t0 < w.end[0]; ++t0, x0 += g.dilation[0] * g.in[1] * g.in[2] * g.in_pixel()) {
    const float* x1 = x0;
    for (int64_t t1 = w.first[1]; t1 < w.end[1]; ++t1, x1 += g.dilation[1] * g.in[2] * g.in_pixel()) {
      const float* x2 = x1;
      const float* f = p.filter + ((t0 * g.kernel[1] + t1) * g.kernel[2] + w.first[2]) * g.in_channels + c;
      for (int64_t t2 = w.first[2]; t2 < w.end[2];
           ++t2, x2 += g.dilation[2] * g.in_pixel(), f += g.in_channels) {
        s0 = hn::MulAdd(load(x2), load(f), s0);
        if constexpr (kVectors == 4) {
          s1 = hn::MulAdd(load(x2 + lanes), load(f + lanes), s1);
          s2 = hn::MulAdd(load(x2 + 2 * lanes), load(f + 2 * lanes), s2);
          s3 = hn::MulAdd(load(x2 + 3 * lanes), load(f + 3 * lanes), s3);
        }
      }
    }
  }
  const V low = set(p.min), high = set(p.max);
  const auto finish = [&](V s, int64_t at) SINTER_SIMD_LAMBDA {
    s = clamp(s, low, high);
    if (partial)
      hn::StoreN(s, d, y + at, count);
    else
      hn::StoreU(s, d, y + at);
  };
  finish(s0, c);
  if constexpr (kVectors == 4) finish(s1, c + lanes), finish(s2, c + 2 * lanes), finish(s3, c + 3 * lanes);
}

// Computes four neighbouring pixels with the same taps, for one vector of channels.
HWY_INLINE void depthwise_four(const Depthwise& p, const Window& w, int64_t c, size_t count, float* y) {
  const F d;
  const Geometry& g = p.g;
  const bool partial = count < hn::Lanes(d);
  const auto load = [&](const float* from) SINTER_SIMD_LAMBDA {
    return partial ? hn::LoadN(d, from, count) : hn::LoadU(d, from);
  };
  const int64_t pixel = g.stride[2] * g.in_pixel();
  V s0 = p.bias != nullptr ? load(p.bias + c) : hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  const float* x0 = w.x + c;
  for (int64_t t0 = w.first[0]; t0 < w.end[0]; ++t0, x0 += g.dilation[0] * g.in[1] * g.in[2] * g.in_pixel()) {
    const float* x1 = x0;
    for (int64_t t1 = w.first[1]; t1 < w.end[1]; ++t1, x1 += g.dilation[1] * g.in[2] * g.in_pixel()) {
      const float* x2 = x1;
      const float* f = p.filter + ((t0 * g.kernel[1] + t1) * g.kernel[2] + w.first[2]) * g.in_channels + c;
      for (int64_t t2 = w.first[2]; t2 < w.end[2];
           ++t2, x2 += g.dilation[2] * g.in_pixel(), f += g.in_channels) {
        const V v = load(f);
        s0 = hn::MulAdd(load(x2), v, s0);
        s1 = hn::MulAdd(load(x2 + pixel), v, s1);
        s2 = hn::MulAdd(load(x2 + 2 * pixel), v, s2);
        s3 = hn::MulAdd(load(x2 + 3 * pixel), v, s3);
      }
    }
  }
  const V low = set(p.min), high = set(p.max);
  const auto finish = [&](V s, int64_t at) SINTER_SIMD_LAMBDA {
    s = clamp(s, low, high);
    if (partial)
      hn::StoreN(s, d, y + at, count);
    else
      hn::StoreU(s, d, y + at);
  };
  const int64_t next = g.out_pixel();
  finish(s0, c), finish(s1, c + next), finish(s2, c + 2 * next), finish(s3, c + 3 * next);
}

// Computes `pixels` neighbours on an output line whose windows cover the same taps; w is the first.
void depthwise_pixels(const Depthwise& d, Window w, int64_t pixels, float* y) {
  const Geometry& g = d.g;
  const auto lanes = static_cast<int64_t>(hn::Lanes(F()));
  for (; pixels >= 4; pixels -= 4) {
    for (int64_t c = 0; c < g.in_channels; c += lanes)
      depthwise_four(d, w, c, static_cast<size_t>(g.in_channels - c < lanes ? g.in_channels - c : lanes), y);
    w.x += 4 * g.stride[2] * g.in_pixel(), y += 4 * g.out_pixel();
  }
  for (; pixels > 0; --pixels) {
    int64_t c = 0;
    for (; c + 4 * lanes <= g.in_channels; c += 4 * lanes)
      depthwise_strip<4>(d, w, c, static_cast<size_t>(lanes), y);
    for (; c < g.in_channels; c += lanes)
      depthwise_strip<1>(d, w, c, static_cast<size_t>(g.in_channels - c < lanes ? g.in_channels - c : lanes),
                         y);
    w.x += g.stride[2] * g.in_pixel(), y += g.out_pixel();
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {
namespace {
HWY_EXPORT(depthwise_pixels);
}  // namespace

// The order is: pixels whose windows begin in the padding, those whose windows are inside, then the others.
void compute_depthwise_lines(const Depthwise& d, int64_t first, int64_t end) {
  const Geometry& g = d.g;
  const InsideRange inside = inside_range(g);
  const auto run = HWY_DYNAMIC_POINTER(depthwise_pixels);
  for (int64_t line = first; line < end; ++line) {
    for (int64_t p = 0; p < g.out[2];) {
      const int64_t count = p == inside.begin && inside.end > inside.begin ? inside.end - inside.begin : 1;
      const int64_t row = line * g.out[2] + p;
      run(d, window_at(g, d.x, row), count, d.y + row * g.out_pixel());
      p += count;
    }
  }
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
