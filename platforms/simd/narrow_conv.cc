#include "platforms/simd/narrow_conv.h"

#include "platforms/simd/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/narrow_conv.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// kPixels neighbouring output pixels whose windows have the same taps, kColumns output channels from `column`
// on. Every pixel has sums of its own, so that results do not depend on its neighbours. Every loop
// over sums is unrolled: one that is not keeps all of them in memory.
template <int kPixels, int kColumns>
HWY_INLINE void dots(const Geometry& g, const NarrowConv& conv, const Window& w, int64_t column, float* y) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  const int64_t depth = g.taps() * g.in_channels, line = g.in[2] * g.in_channels;
  const int64_t pixel = g.stride[2] * g.in_channels;
  const auto length = static_cast<size_t>((w.end[2] - w.first[2]) * g.in_channels);
  V sums[kPixels][kColumns];
  HWY_UNROLL(4)
  for (int p = 0; p < kPixels; ++p) {
    HWY_UNROLL(4)
    for (int c = 0; c < kColumns; ++c) sums[p][c] = hn::Zero(d);
  }
  const float* x0 = w.x;
  for (int64_t t0 = w.first[0]; t0 < w.end[0]; ++t0, x0 += g.dilation[0] * g.in[1] * line) {
    const float* x1 = x0;
    for (int64_t t1 = w.first[1]; t1 < w.end[1]; ++t1, x1 += g.dilation[1] * line) {
      const float* f = conv.filters + column * depth +
                       ((t0 * g.kernel[1] + t1) * g.kernel[2] + w.first[2]) * g.in_channels;
      size_t i = 0;
      for (; i + lanes <= length; i += lanes) {
        V taps[kColumns];
        HWY_UNROLL(4)
        for (int c = 0; c < kColumns; ++c) taps[c] = hn::LoadU(d, f + c * depth + i);
        HWY_UNROLL(4)
        for (int p = 0; p < kPixels; ++p) {
          const V x = hn::LoadU(d, x1 + p * pixel + i);
          HWY_UNROLL(4)
          for (int c = 0; c < kColumns; ++c) sums[p][c] = hn::MulAdd(x, taps[c], sums[p][c]);
        }
      }
      if (i == length) continue;
      HWY_UNROLL(4)
      for (int c = 0; c < kColumns; ++c) {
        const V tap = hn::LoadN(d, f + c * depth + i, length - i);
        HWY_UNROLL(4)
        for (int p = 0; p < kPixels; ++p)
          sums[p][c] = hn::MulAdd(hn::LoadN(d, x1 + p * pixel + i, length - i), tap, sums[p][c]);
      }
    }
  }
  HWY_UNROLL(4)
  for (int p = 0; p < kPixels; ++p) {
    HWY_UNROLL(4)
    for (int c = 0; c < kColumns; ++c) {
      float s = hn::ReduceSum(d, sums[p][c]);
      if (conv.bias != nullptr) s += conv.bias[column + c];
      if (s < conv.min) s = conv.min;
      if (s > conv.max) s = conv.max;
      y[p * g.out_pixel() + column + c] = s;
    }
  }
}

template <int kPixels>
HWY_INLINE void all_columns(const Geometry& g, const NarrowConv& conv, const Window& w, float* y) {
  int64_t c = 0;
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86  // 32 registers hold 16 sums
  for (; c + 4 <= g.out_channels; c += 4) dots<kPixels, 4>(g, conv, w, c, y);
  if (c + 3 == g.out_channels) dots<kPixels, 3>(g, conv, w, c, y), c += 3;
#endif
  for (; c + 2 <= g.out_channels; c += 2) dots<kPixels, 2>(g, conv, w, c, y);
  if (c < g.out_channels) dots<kPixels, 1>(g, conv, w, c, y);
}

// `pixels` neighbouring output pixels whose windows cover the same taps; w is the first one's.
void narrow_pixels(const Geometry& g, const NarrowConv& conv, Window w, int64_t pixels, float* y) {
  for (; pixels >= 4; pixels -= 4) {
    all_columns<4>(g, conv, w, y);
    w.x += 4 * g.stride[2] * g.in_channels, y += 4 * g.out_pixel();
  }
  for (; pixels > 0; --pixels) {
    all_columns<1>(g, conv, w, y);
    w.x += g.stride[2] * g.in_channels, y += g.out_pixel();
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

namespace {

HWY_EXPORT(narrow_pixels);

}  // namespace

void run_narrow_conv(const Geometry& g, const NarrowConv& conv, ThreadPool* threads) {
  const int64_t lines = g.batch * g.out[0] * g.out[1];
  const int64_t work = std::max<int64_t>(g.in_channels * g.taps() * g.out[2] * g.out_channels, 1);
  const InsideRange inside = inside_range(g);
  parallel_for(threads, lines, std::max<int64_t>(65536 / work, 1), [&](int64_t begin, int64_t end) {
    const auto run = HWY_DYNAMIC_POINTER(narrow_pixels);
    for (int64_t line = begin; line < end; ++line)
      for (int64_t p = 0; p < g.out[2];) {
        const int64_t count = p == inside.begin && inside.end > inside.begin ? inside.end - inside.begin : 1;
        const int64_t row = line * g.out[2] + p;
        run(g, conv, window_at(g, conv.x, row), count, conv.y + row * g.out_pixel());
        p += count;
      }
  });
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
