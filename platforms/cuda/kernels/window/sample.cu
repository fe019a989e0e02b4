// GridSample, RoiAlign: elements between those of an image, at places that another operand gives.
#include <limits>

#include "platforms/cuda/grid/elements.h"
#include "platforms/cuda/grid/report_fault.h"
#include "platforms/cuda/kernels/window/sample.h"

namespace sinter::cuda {
namespace {

template <class T, int V>
struct alignas(sizeof(T) * V) Pack {
  T at[V];
};

// The contribution of one axis of a grid to one place: elements (-1: a zero beyond the edge) and weights.
constexpr int kMostTaps = 4;
template <class W>
struct Taps {
  int32_t count = 1;
  int32_t index[kMostTaps] = {};
  W weight[kMostTaps] = {1};
  bool nan = false;
};

// Returns all[k] without an array in memory.
template <class T>
SINTER_DEVICE T pick(const T (&all)[kMostTaps], int k) {
  T v = all[0];
  for (int i = 1; i < kMostTaps; ++i) v = i == k ? all[i] : v;
  return v;
}

// Folds x back into [low, high].
template <class T>
SINTER_DEVICE T reflect(T x, T low, T high) {
  const T span = high - low;
  if (!(span > 0)) return low;
  const T beyond = m_fmod(x < low ? low - x : x - high, 2 * span);
  const T inside = beyond > span ? 2 * span - beyond : beyond;  // the distance from the edge that was left
  return x < low ? low + inside : high - inside;
}

// Returns the element at position i of an axis of n.
SINTER_DEVICE int32_t element(int32_t i, int32_t n, GridPadding padding, bool align_corners) {
  if (i >= 0 && i < n) return i;
  if (padding == GridPadding::kZeros) return -1;
  if (padding == GridPadding::kBorder || n == 1) return i < 0 ? 0 : n - 1;
  const int32_t period = align_corners ? 2 * (n - 1) : 2 * n;
  i %= period;
  if (i < 0) i += period;
  if (i < n) return i;
  return align_corners ? period - i : period - 1 - i;
}

// Computes the weights of the cubic kernel of a = -0.75 at t, from 0 to 1, and at 1 + t: its polynomials are
// factored so that nothing cancels.
template <class W>
SINTER_DEVICE W near(W t) {
  return (1 - t) * (1 + t - W(1.25) * t * t);
}
template <class W>
SINTER_DEVICE W far(W t) {
  return W(-0.75) * t * (1 - t) * (1 - t);
}

template <class W, class T>
SINTER_DEVICE Taps<W> axis_taps(const GridSampleArguments& a, T at, int32_t n) {
  const bool align = a.align_corners != 0;
  const auto size = static_cast<T>(n);
  Taps<W> taps;
  T x = align ? (at + 1) / 2 * (size - 1) : ((at + 1) * size - 1) / 2;
  if (a.kind == GridSampleKind::kNearest) x = m_rint(x);
  const T low = align ? T(0) : T(-0.5), high = align ? size - 1 : size - T(0.5);
  if (a.padding == GridPadding::kReflection && (x < low || x > high)) x = reflect(x, low, high);
  taps.nan = x != x;
  if (taps.nan) return taps;
  x = x < -8 ? T(-8) : x > size + 8 ? size + 8 : x;  // as far outside as any farther position
  if (a.kind == GridSampleKind::kNearest) {
    taps.index[0] = element(static_cast<int32_t>(m_rint(x)), n, a.padding, align);
    return taps;
  }
  const auto below = static_cast<int32_t>(m_floor(x));
  const W t = static_cast<W>(x - static_cast<T>(below));
  int32_t first = below;
  if (a.kind == GridSampleKind::kLinear) {
    taps.count = 2;
    taps.weight[0] = 1 - t, taps.weight[1] = t;
  } else {
    taps.count = 4;
    first = below - 1;
    taps.weight[0] = far(t), taps.weight[1] = near(t), taps.weight[2] = near(1 - t),
    taps.weight[3] = far(1 - t);
  }
  for (int k = 0; k < kMostTaps; ++k)
    if (k < taps.count) taps.index[k] = element(first + k, n, a.padding, align);
  return taps;
}

template <class T, class G, int V>
SINTER_DEVICE void grid_sample(const GridSampleArguments& a) {
  const int64_t channels = int64_t{a.pieces.divisor} * V;
  const int64_t pixels = int64_t{a.in[0]} * a.in[1] * a.in[2];
  for (int64_t n = global_thread(); n < a.size; n += global_threads()) {
    uint32_t piece, position;
    const uint32_t pixel = a.pieces.divide(static_cast<uint32_t>(n), &piece);
    const int64_t image = a.positions.divide(pixel, &position);
    const G* at = reinterpret_cast<const G*>(a.grid) + int64_t{pixel} * a.axes;  // the last axis first
    const T* from = reinterpret_cast<const T*>(a.x) + image * pixels * channels + int64_t{piece} * V;
    const Taps<T> w = axis_taps<T>(a, at[0], a.in[2]);
    const Taps<T> v = a.axes > 1 ? axis_taps<T>(a, at[1], a.in[1]) : Taps<T>{};
    const Taps<T> u = a.axes > 2 ? axis_taps<T>(a, at[2], a.in[0]) : Taps<T>{};
    T sums[V] = {};
    for (int i = 0; i < u.count; ++i)
      for (int j = 0; j < v.count; ++j)
        for (int k = 0; k < w.count; ++k) {
          const int32_t plane = pick(u.index, i), row = pick(v.index, j), column = pick(w.index, k);
          const T weight = pick(u.weight, i) * pick(v.weight, j) * pick(w.weight, k);
          if ((plane | row | column) < 0 || weight == 0) continue;
          const auto values = load<Pack<T, V>>(reinterpret_cast<const std::byte*>(
              from + ((int64_t{plane} * a.in[1] + row) * a.in[2] + column) * channels));
          for (int c = 0; c < V; ++c) sums[c] += weight * values.at[c];
        }
    Pack<T, V> result;
    for (int c = 0; c < V; ++c)
      result.at[c] = u.nan || v.nan || w.nan ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(sums[c]);
    store(a.y + n * static_cast<int>(sizeof(T)) * V, result);
  }
}

// One axis of a region: the start and length of its bins, and the number of points in each.
template <class R>
struct Span {
  R start = 0, bin = 0;
  int32_t points = 0;
  bool valid = false;

  SINTER_DEVICE Span(const RoiAlignArguments& a, R from, R to, uint32_t bins) {
    const auto scale = static_cast<R>(a.scale);
    const R offset = a.half_pixel != 0 ? R(0.5) : R(0);
    start = from * scale - offset;
    R length = to * scale - offset - start;
    if (a.half_pixel == 0) length = length < 1 ? R(1) : length;
    bin = length / static_cast<R>(bins);
    const R wanted = a.points > 0 ? static_cast<R>(a.points) : m_ceil(bin);
    valid = start - start == 0 && length - length == 0 && wanted <= R(kMostSamplePoints);  // finite
    points = valid && wanted > 0 ? static_cast<int32_t>(wanted) : 0;
  }
  // Finds the two elements around a point and its distance from the first. False if it is outside the map.
  SINTER_DEVICE bool locate(uint32_t place, int32_t point, int32_t n, int32_t* low, int32_t* high,
                            R* rest) const {
    R at =
        start + static_cast<R>(place) * bin + (static_cast<R>(point) + R(0.5)) * bin / static_cast<R>(points);
    *low = *high = 0, *rest = 0;
    if (!(at >= -1) || at > static_cast<R>(n)) return false;
    at = at < 0 ? R(0) : at;
    *low = static_cast<int32_t>(at);
    *high = *low + 1;
    if (*low >= n - 1) {
      *low = *high = n - 1;
      at = static_cast<R>(n - 1);
    }
    *rest = at - static_cast<R>(*low);
    return true;
  }
};

template <class W>
SINTER_DEVICE W larger(W a, W b) {
  return a < b ? b : a;
}

template <class T, class R, int V>
SINTER_DEVICE void roi_align(const RoiAlignArguments& a) {
  for (int64_t n = global_thread(); n < a.size; n += global_threads()) {
    uint32_t piece, bin_x, bin_y;
    uint32_t rest = a.pieces.divide(static_cast<uint32_t>(n), &piece);
    rest = a.bins_across.divide(rest, &bin_x);
    const int64_t region = a.bins_down.divide(rest, &bin_y);
    const R* roi = reinterpret_cast<const R*>(a.rois) + region * 4;
    const int64_t image = load_index(a.images + region * a.index_width, a.index_width);
    const Span<R> across(a, roi[0], roi[2], a.bins_across.divisor),
        down(a, roi[1], roi[3], a.bins_down.divisor);
    const bool inside_images = image >= 0 && image < a.image_count;
    if (!inside_images || !across.valid || !down.valid) {
      report_fault(a.fault, inside_images ? FaultCode::kLength : FaultCode::kIndex, region);
      continue;
    }
    const T* from =
        reinterpret_cast<const T*>(a.x) + image * a.height * a.width * a.channels + int64_t{piece} * V;
    const auto read = [&](int32_t y, int32_t x) {
      return load<Pack<T, V>>(
          reinterpret_cast<const std::byte*>(from + (int64_t{y} * a.width + x) * a.channels));
    };
    T sums[V] = {};
    bool first = true;
    for (int32_t i = 0; i < down.points; ++i) {
      int32_t y0, y1;
      R below;
      const bool inside_y = down.locate(bin_y, i, a.height, &y0, &y1, &below);
      if (!inside_y && a.average != 0) continue;
      for (int32_t j = 0; j < across.points; ++j) {
        int32_t x0, x1;
        R right;
        const bool inside = across.locate(bin_x, j, a.width, &x0, &x1, &right) && inside_y;
        if (!inside && a.average != 0) continue;
        const auto down_by = static_cast<T>(below), right_by = static_cast<T>(right);
        // A point outside counts as four zeros.
        const T w00 = inside ? (1 - down_by) * (1 - right_by) : 0,
                w01 = inside ? (1 - down_by) * right_by : 0, w10 = inside ? down_by * (1 - right_by) : 0,
                w11 = inside ? down_by * right_by : 0;
        const Pack<T, V> p00 = read(y0, x0), p01 = read(y0, x1), p10 = read(y1, x0), p11 = read(y1, x1);
        for (int c = 0; c < V; ++c) {
          const T v00 = w00 * p00.at[c], v01 = w01 * p01.at[c], v10 = w10 * p10.at[c], v11 = w11 * p11.at[c];
          if (a.average != 0) {
            sums[c] += v00 + v01 + v10 + v11;
          } else {
            const T most = larger(larger(v00, v01), larger(v10, v11));
            sums[c] = first ? most : larger(sums[c], most);
          }
        }
        first = false;
      }
    }
    const int32_t points = across.points * down.points;
    const auto count = static_cast<T>(points > 0 ? points : 1);
    Pack<T, V> result;
    for (int c = 0; c < V; ++c) result.at[c] = static_cast<T>(a.average != 0 ? sums[c] / count : sums[c]);
    store(a.y + n * static_cast<int>(sizeof(T)) * V, result);
  }
}

// Calls f(TypeOf<T> of the image, TypeOf<U> of the coordinates).
template <class F>
SINTER_DEVICE void for_types(int32_t image_double, int32_t places_double, F&& f) {
  if (image_double != 0) {
    if (places_double != 0) return f(TypeOf<double>{}, TypeOf<double>{});
    return f(TypeOf<double>{}, TypeOf<float>{});
  }
  if (places_double != 0) return f(TypeOf<float>{}, TypeOf<double>{});
  f(TypeOf<float>{}, TypeOf<float>{});
}

}  // namespace

SINTER_KERNEL(grid_sample, GridSampleArguments) {
  if (a.group == kSampleGroup) return grid_sample<float, float, kSampleGroup>(a);
  for_types(a.x_double, a.grid_double, [&](auto x, auto grid) {
    grid_sample<typename decltype(x)::type, typename decltype(grid)::type, 1>(a);
  });
}

SINTER_KERNEL(roi_align, RoiAlignArguments) {
  if (a.group == kSampleGroup) return roi_align<float, float, kSampleGroup>(a);
  for_types(a.x_double, a.rois_double, [&](auto x, auto rois) {
    roi_align<typename decltype(x)::type, typename decltype(rois)::type, 1>(a);
  });
}

}  // namespace sinter::cuda
