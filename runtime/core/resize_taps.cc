#include "runtime/core/resize_taps.h"

#include <algorithm>
#include <cmath>

namespace sinter {
namespace {

constexpr double kFar = 0x1p45;  // beyond any axis, and far from overflow

// Returns the number of taps on the left of the kernel's centre element, as a number <= 0, for a reach (in
// input elements of the unscaled kernel) stretched by antialiasing.
int64_t first_tap(double reach, double shrink) {
  return static_cast<int64_t>(std::floor(-reach / shrink)) + 1;
}

double shrink_of(const ResizeAttrs& a, double scale) { return a.antialias != 0 ? std::min(scale, 1.0) : 1.0; }

double cubic(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// Returns the input coordinate of output position y.
double coordinate(ResizeCoordinates how, const ResizeAxis& axis, double y) {
  const auto in = static_cast<double>(axis.in), out = static_cast<double>(axis.out), width = axis.scale * in;
  switch (how) {
    case ResizeCoordinates::kHalfPixel:
      return (y + 0.5) / axis.scale - 0.5;
    case ResizeCoordinates::kHalfPixelSymmetric:
      return in / 2 * (1 - out / width) + (y + 0.5) / axis.scale - 0.5;
    case ResizeCoordinates::kPytorchHalfPixel:
      return axis.out > 1 ? (y + 0.5) / axis.scale - 0.5 : 0;
    case ResizeCoordinates::kAlignCorners:
      return width == 1 ? 0 : y * (in - 1) / (width - 1);
    case ResizeCoordinates::kAsymmetric:
      return y / axis.scale;
    case ResizeCoordinates::kTfCropAndResize: {
      const double span = axis.roi_end - axis.roi_begin;
      const double x = axis.out > 1 ? y * span * (in - 1) / (out - 1) : span * (in - 1) / 2;
      return x + axis.roi_begin * (in - 1);
    }
    case ResizeCoordinates::kTfHalfPixelForNearest:
      return (y + 0.5) / axis.scale;
  }
  return 0;
}

// std::floor is a call for each element on processors before SSE4.1. |x| is at most about kFar.
int64_t floor_of(double x) {
  const auto i = static_cast<int64_t>(x);
  return i - (static_cast<double>(i) > x ? 1 : 0);
}

// Returns the element on the left of x; an integer counts as the right end of the interval before it.
int64_t left_of(double x) {
  const int64_t floor = floor_of(x);
  return floor - (x == static_cast<double>(floor) ? 1 : 0);
}

// Returns the distance of x to the right of that element, in (0, 1].
double ratio_of(double x) {
  const auto floor = static_cast<double>(floor_of(x));
  return x == floor ? 1 : x - floor;
}

// Returns whether the right one of the two elements around a coordinate is taken.
bool takes_right(NearestMode mode, double ratio) {
  switch (mode) {
    case NearestMode::kRoundPreferFloor:
      return ratio > 0.5;
    case NearestMode::kRoundPreferCeil:
      return ratio >= 0.5;
    case NearestMode::kFloor:
      return ratio == 1;
    case NearestMode::kCeil:
      return true;
  }
  return true;
}

}  // namespace

void resize_axes(const ResizeAttrs& a, const TensorView& x, ResizeAxis* axes) {
  const auto mode = static_cast<ResizeMode>(a.mode);
  const bool crop = a.coordinates == static_cast<int64_t>(ResizeCoordinates::kTfCropAndResize);
  for (int i = 0; i < x.rank; ++i) {
    ResizeAxis& axis = axes[i];
    axis = {};
    axis.in = x.dims[i];
    axis.out = a.sizes[i];
    axis.scale = a.scales[i];
    if (crop) axis.roi_begin = a.roi[i], axis.roi_end = a.roi[x.rank + i];
    axis.identity = axis.in == axis.out && std::fabs(axis.scale - 1) <= 1e-9 &&
                    std::fabs(axis.roi_begin) <= 1e-9 && std::fabs(axis.roi_end - 1) <= 1e-9;
    if (axis.identity || mode == ResizeMode::kNearest) continue;
    axis.taps = 2 - 2 * first_tap(mode == ResizeMode::kLinear ? 1 : 2, shrink_of(a, axis.scale));
  }
}

void take_resize_tables(BumpArena& arena, ResizeAxis* axis) {
  if (axis->identity) return;
  size_t n = 0;
  if (!checked_mul(static_cast<size_t>(axis->out), static_cast<size_t>(axis->taps), &n)) n = SIZE_MAX;
  axis->index = arena.allocate_array<int64_t>(n);
  axis->weight = arena.allocate_array<double>(n);
  axis->outside = arena.allocate_array<uint8_t>(static_cast<size_t>(axis->out));
}

void fill_resize_tables(const ResizeAttrs& a, ResizeAxis* axis) {
  if (axis->identity) return;
  const auto mode = static_cast<ResizeMode>(a.mode);
  const auto how = static_cast<ResizeCoordinates>(a.coordinates);
  const int64_t n = axis->taps;
  const double shrink = shrink_of(a, axis->scale);
  const int64_t first = 1 - n / 2;
  for (int64_t o = 0; o < axis->out; ++o) {
    double x = coordinate(how, *axis, static_cast<double>(o));
    axis->outside[o] =
        how == ResizeCoordinates::kTfCropAndResize && (x < 0 || x > static_cast<double>(axis->in - 1)) ? 1
                                                                                                       : 0;
    x = x != x ? 0 : std::clamp(x, -kFar, kFar);
    int64_t* index = axis->index + o * n;
    double* weight = axis->weight + o * n;
    const double ratio = ratio_of(x);
    if (mode == ResizeMode::kNearest) {
      // ONNX counts from an edge padded by one element; the rounding of that sum snaps coordinates that are
      // an integer but for their last bit.
      const int64_t left = left_of(x + 1) - 1;
      const int64_t at = left + (takes_right(static_cast<NearestMode>(a.nearest_mode), ratio) ? 1 : 0);
      *index = std::clamp<int64_t>(at, 0, axis->in - 1);
      *weight = 1;
      continue;
    }
    const int64_t start = left_of(x) + first;
    double sum = 0;
    for (int64_t t = 0; t < n; ++t) {
      const double distance = shrink * (static_cast<double>(first + t) - ratio);
      weight[t] = mode == ResizeMode::kLinear ? std::max(0.0, 1 - std::fabs(distance))
                                              : cubic(distance, a.cubic_coeff_a);
      sum += weight[t];
    }
    if (a.antialias != 0 && sum != 0)
      for (int64_t t = 0; t < n; ++t) weight[t] /= sum;
    if (a.exclude_outside != 0) {
      sum = 0;
      for (int64_t t = 0; t < n; ++t) {
        if (start + t < 0 || start + t >= axis->in) weight[t] = 0;
        sum += weight[t];
      }
      if (sum != 0)
        for (int64_t t = 0; t < n; ++t) weight[t] /= sum;
    }
    for (int64_t t = 0; t < n; ++t) index[t] = std::clamp<int64_t>(start + t, 0, axis->in - 1);
  }
}

bool fixed_resize_taps(const ResizeAxis& axis, int32_t* taps) {
  for (int64_t o = 0; o < axis.out; ++o, taps += 2) {
    if (axis.identity) {
      taps[0] = static_cast<int32_t>(o), taps[1] = 0;
      continue;
    }
    if (axis.outside[o] != 0) return false;
    const int64_t* index = axis.index + o * axis.taps;
    taps[0] = static_cast<int32_t>(index[0]);
    // Before the first element both taps are that one.
    taps[1] = index[0] == index[1]
                  ? 0
                  : static_cast<int32_t>(std::nearbyint(axis.weight[o * axis.taps + 1] * 2048));
  }
  return true;
}

}  // namespace sinter
