// Small outputs of Winograd's tiles: how they are found, and their direct sums.
#include <algorithm>
#include <bit>

#include "platforms/simd/float/winograd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "platforms/simd/float/winograd_windows.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
#include "platforms/simd/isa/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sinter::simd {
namespace HWY_NAMESPACE {

// Returns the magnitudes of a pixel, a vector at a time, as bits: in the order of numbers, with infinity
// above them and NaN above that.
template <class F_>
HWY_INLINE void each_magnitude(const float* x, int64_t channels, const F_& f) {
  const F d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto bits = [&](V v) SINTER_SIMD_LAMBDA { return hn::BitCast(I(), hn::Abs(v)); };
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) f(bits(hn::LoadU(d, x + c)));
  if (c < channels) f(bits(hn::LoadN(d, x + c, static_cast<size_t>(channels - c))));
}

uint64_t small_outputs(int64_t tile, const WinogradPixels& x, int64_t rows, int64_t columns) {
  const I d;
  const int64_t inputs = tile + 2;
  const uint64_t all = (uint64_t{1} << columns) - 1;  // those of a row
  VI most = hn::Zero(d);
  for (int64_t i = 0; i < inputs; ++i)
    for (int64_t j = 0; j < inputs; ++j)
      each_magnitude(x.x + i * x.row + j * x.pixel, x.channels,
                     [&](VI v) SINTER_SIMD_LAMBDA { most = hn::Max(most, v); });
  const int32_t largest = hn::ReduceMax(d, most);
  if (largest == 0) return 0;
  const bool extreme = largest >= (127 + kWinogradLargestBits) << 23;
  // The bits of the largest number divided by the spread; if that is not normal, any but 0 will do.
  const VI least = hn::Set(d, std::max(largest - (kWinogradSpreadBits << 23), 1));
  uint64_t large[8] = {}, small = 0;  // the pixels of each row that make windows large
  for (int64_t i = 0; i < inputs && !extreme; ++i)
    for (int64_t j = 0; j < inputs; ++j) {
      auto above = hn::MaskFalse(d);
      each_magnitude(x.x + i * x.row + j * x.pixel, x.channels,
                     [&](VI v) SINTER_SIMD_LAMBDA { above = hn::Or(above, hn::Ge(v, least)); });
      large[i] |= uint64_t{hn::AllFalse(d, above) ? 0u : 1u} << j;
    }
  for (int64_t i = 0; i < rows; ++i) {
    const uint64_t window = large[i] | large[i + 1] | large[i + 2];
    small |= (~(window | window >> 1 | window >> 2) & all) << i * tile;
  }
  return small;
}

}  // namespace HWY_NAMESPACE
}  // namespace sinter::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sinter::simd {

HWY_EXPORT(small_outputs);

uint64_t small_outputs(int64_t tile, const WinogradPixels& x, int64_t rows, int64_t columns) {
  return HWY_DYNAMIC_DISPATCH(small_outputs)(tile, x, rows, columns);
}

namespace {

// Copies the window whose first input is pixel (top, left), with zeros around the image. Returns whether it
// has a number other than 0.
bool copy_window(const Geometry& g, const float* image, int64_t top, int64_t left, float* to) {
  const int64_t channels = g.in_channels;
  for (int64_t tap = 0; tap < 9; ++tap, to += channels) {
    const int64_t i = top + tap / 3, j = left + tap % 3;
    if (i < 0 || i >= g.in[1] || j < 0 || j >= g.in[2])
      std::fill_n(to, channels, 0.0f);
    else
      std::copy_n(image + (i * g.in[2] + j) * g.in_pixel(), channels, to);
  }
  return std::any_of(to - 9 * channels, to, [](float v) { return v != 0; });
}

}  // namespace

void compute_small_outputs(const Geometry& g, uint64_t small, int64_t tile, const float* image, int64_t top,
                           int64_t left, const float* filters, int64_t channels, const WinogradStore& to,
                           float* window) {
  for (; small != 0; small &= small - 1) {
    const int64_t output = std::countr_zero(small), i = output / tile, j = output % tile;
    float* y = to.y + i * to.row + j * to.pixel;
    if (copy_window(g, image, top + i, left + j, window))
      gemv(filters, channels, 9 * g.in_channels, window, to.bias, to.min, to.max, y);
    else
      for (int64_t c = 0; c < channels; ++c)
        y[c] = std::min(std::max(to.bias != nullptr ? to.bias[c] : 0.0f, to.min), to.max);
  }
}

}  // namespace sinter::simd
#endif  // HWY_ONCE
