#include "platforms/simd/float/im2col.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/im2col.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// `rows` runs of n floats, each from_step and to_step after the one before.
struct Runs {
  const float* from;
  float* to;
  int64_t from_step, to_step, rows, n;
};

// Copies runs of (kVectors - 1) * lanes to kVectors * lanes floats by vectors, the last of which may overlap.
template <int kVectors, class D>
HWY_INLINE void copy_vectors(D d, Runs r) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t end = r.n - lanes;
  for (; r.rows > 0; --r.rows, r.from += r.from_step, r.to += r.to_step) {
    const auto first = hn::LoadU(d, r.from), last = hn::LoadU(d, r.from + end);
    hn::StoreU(first, d, r.to);
    if constexpr (kVectors > 2) hn::StoreU(hn::LoadU(d, r.from + lanes), d, r.to + lanes);
    if constexpr (kVectors > 3) hn::StoreU(hn::LoadU(d, r.from + 2 * lanes), d, r.to + 2 * lanes);
    hn::StoreU(last, d, r.to + end);
  }
}

// Runs are short: calls of memcpy would take longer than the copies.
HWY_INLINE void copy_runs(Runs r) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (r.n > 4 * lanes) {
    for (; r.rows > 0; --r.rows, r.from += r.from_step, r.to += r.to_step) {
      for (int64_t i = 0; i < r.n - lanes; i += lanes) hn::StoreU(hn::LoadU(d, r.from + i), d, r.to + i);
      hn::StoreU(hn::LoadU(d, r.from + r.n - lanes), d, r.to + r.n - lanes);
    }
  } else if (r.n > 3 * lanes) {
    copy_vectors<4>(d, r);
  } else if (r.n > 2 * lanes) {
    copy_vectors<3>(d, r);
  } else if (r.n >= lanes) {
    copy_vectors<2>(d, r);
  } else if (r.n >= 8) {
    copy_vectors<2>(hn::CappedTag<float, 8>(), r);
  } else if (r.n >= 4) {
    copy_vectors<2>(hn::FixedTag<float, 4>(), r);
  } else {
    for (; r.rows > 0; --r.rows, r.from += r.from_step, r.to += r.to_step)
      for (int64_t i = 0; i < r.n; ++i) r.to[i] = r.from[i];
  }
}

HWY_INLINE void zero_runs(Runs r) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (; r.rows > 0; --r.rows, r.to += r.to_step) {
    int64_t i = 0;
    for (; i + lanes <= r.n; i += lanes) hn::StoreU(hn::Zero(d), d, r.to + i);
    for (; i < r.n; ++i) r.to[i] = 0;
  }
}

// Gathers `pixels` neighbours of one output line whose windows cover the same taps of the last axis; at[] is
// the place of the first window.
HWY_NOINLINE void gather_pixels(const Geometry& g, const float* image, const int64_t* at, int64_t pixels,
                                float* to) {
  const int64_t channels = g.in_channels / g.group, step = g.in_pixel(), dilation = g.dilation[2];
  int64_t begin = 0, end = g.kernel[2];
  if (at[2] < 0) begin = std::min(divide_up(-at[2], dilation), end);
  if (at[2] + (end - 1) * dilation >= g.in[2])
    end = at[2] >= g.in[2] ? begin : std::max(divide_up(g.in[2] - at[2], dilation), begin);
  // Taps that are adjacent in memory are copied in one run.
  const bool adjacent = dilation * step == channels;
  const int64_t runs = adjacent ? 1 : end - begin, n = adjacent ? (end - begin) * channels : channels;
  Runs r = {nullptr, to, g.stride[2] * step, g.taps() * channels, pixels, 0};
  for (int64_t t0 = 0; t0 < g.kernel[0]; ++t0) {
    const int64_t i0 = at[0] + t0 * g.dilation[0];
    for (int64_t t1 = 0; t1 < g.kernel[1]; ++t1, to += g.kernel[2] * channels) {
      const int64_t i1 = at[1] + t1 * g.dilation[1];
      const bool within = i0 >= 0 && i0 < g.in[0] && i1 >= 0 && i1 < g.in[1] && begin < end;
      r.to = to, r.n = (within ? begin : g.kernel[2]) * channels;
      if (r.n > 0) zero_runs(r);
      if (!within) continue;
      r.to += r.n, r.n = n;
      r.from = image + ((i0 * g.in[1] + i1) * g.in[2] + at[2] + begin * dilation) * step;
      for (int64_t t = 0; t < runs; ++t, r.from += dilation * step, r.to += n) copy_runs(r);
      r.n = (g.kernel[2] - end) * channels;
      if (r.n > 0) zero_runs(r);
    }
  }
}

void gather(const Geometry& g, const float* x, int64_t group, int64_t first, int64_t count, float* to) {
  const int64_t depth = g.taps() * (g.in_channels / g.group);
  const InsideRange inside = inside_range(g);
  for (const int64_t last = first + count; first < last;) {
    const int64_t pixel = first % g.out_pixels(), p2 = pixel % g.out[2];
    const float* image =
        x + first / g.out_pixels() * g.in_pixels() * g.in_pixel() + group * (g.in_channels / g.group);
    const int64_t at[3] = {pixel / (g.out[1] * g.out[2]) * g.stride[0] - g.pad[0],
                           pixel / g.out[2] % g.out[1] * g.stride[1] - g.pad[1], p2 * g.stride[2] - g.pad[2]};
    const bool whole = p2 >= inside.begin && p2 < inside.end;
    const int64_t pixels = whole ? std::min(inside.end - p2, last - first) : 1;
    gather_pixels(g, image, at, pixels, to);
    first += pixels, to += pixels * depth;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(gather);

void gather_patches(const Geometry& g, const float* x, int64_t group, int64_t first, int64_t count,
                    float* to) {
  HWY_DYNAMIC_DISPATCH(gather)(g, x, group, first, count, to);
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
