// GridSample: reads x [N, spatial..., C] at coordinates that a grid gives, -1 and 1 being the edges. A
// coordinate that is not a number (or, reflected, infinite) gives NaN. A border repeats the edge, also where
// a cubic kernel reads elements on both sides.
#include <cmath>

#include "runtime/core/op_enums.h"
#include "runtime/kernels/indices.h"
#include "runtime/kernels/reference.h"

namespace sinter {
namespace {

constexpr int kMaxSpatial = kMaxRank - 2;
constexpr int kMaxTaps = 4;
constexpr int64_t kSampledAtOnce = 64;
constexpr int64_t kGrain = 64;

Status infer_grid_sample(OpCall& call) {
  const auto& a = call.attrs<GridSampleAttrs>();
  const TensorView &x = call.in(0), &grid = call.in(1);
  SINTER_RETURN_IF_ERROR(check_dtype(call, 0, is_compute_float(x.dtype)));
  SINTER_RETURN_IF_ERROR(check_dtype(call, 1, is_compute_float(grid.dtype)));
  SINTER_RETURN_IF_ERROR(check_code(a.mode, 3));
  SINTER_RETURN_IF_ERROR(check_code(a.padding_mode, 3));
  SINTER_RETURN_IF_ERROR(check_code(a.align_corners, 2));
  SINTER_RETURN_UNLESS(x.rank >= 3 && grid.rank == x.rank,
                       invalid("the input has rank %a, the grid rank %b", x.rank, grid.rank));
  const int n = x.rank - 2;
  SINTER_RETURN_UNLESS(grid.dims[0] == x.dims[0],
                       invalid("%a grids do not match %b images", grid.dims[0], x.dims[0]));
  SINTER_RETURN_UNLESS(grid.dims[n + 1] == n,
                       invalid("the grid has %a coordinates for %b axes", grid.dims[n + 1], n));
  Dims dims(x.shape());
  bool empty = false;
  for (int i = 1; i <= n; ++i) {
    SINTER_RETURN_UNLESS(x.dims[i] < int64_t{1} << 40, unsupported("axis %a of %b elements", i, x.dims[i]));
    dims.d[i] = grid.dims[i];
    if (x.dims[i] == 0) empty = true;
  }
  SINTER_RETURN_UNLESS(!empty || a.padding_mode == static_cast<int64_t>(SamplePadding::kZeros),
                       invalid("an empty image has no border"));
  return give_output(call, 0, x.dtype, dims.span());
}

// The contribution of one axis to one output position: elements (-1: a zero beyond the edge) and weights.
struct Taps {
  int count = 1;
  int64_t index[kMaxTaps] = {};
  double weight[kMaxTaps] = {1};
  bool nan = false;
};

// Folds x back into [low, high].
template <class T>
T reflect(T x, T low, T high) {
  const T span = high - low;
  if (!(span > 0)) return low;
  const T beyond = std::fmod(x < low ? low - x : x - high, 2 * span);
  const bool from_low = x<low, away = beyond> span;
  const T inside = away ? 2 * span - beyond : beyond;  // the distance from the edge that was left
  return from_low ? low + inside : high - inside;
}

// Returns the element at position i of an axis of n.
int64_t element(int64_t i, int64_t n, SamplePadding padding, bool align_corners) {
  if (i >= 0 && i < n) return i;
  if (padding == SamplePadding::kZeros) return -1;
  if (padding == SamplePadding::kBorder || n == 1) return std::clamp<int64_t>(i, 0, n - 1);
  const int64_t period = align_corners ? 2 * (n - 1) : 2 * n;
  i %= period;
  if (i < 0) i += period;
  if (i < n) return i;
  return align_corners ? period - i : period - 1 - i;
}

void cubic_weights(double t, double* w) {
  constexpr double kA = -0.75;
  const auto near = [](double d) { return ((kA + 2) * d - (kA + 3)) * d * d + 1; };
  const auto far = [](double d) { return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA; };
  w[0] = far(t + 1), w[1] = near(t), w[2] = near(1 - t), w[3] = far(2 - t);
}

template <class T>
Taps axis_taps(const GridSampleAttrs& a, T at, int64_t n) {
  const auto mode = static_cast<SampleMode>(a.mode);
  const auto padding = static_cast<SamplePadding>(a.padding_mode);
  const bool align = a.align_corners != 0;
  const auto size = static_cast<T>(n);
  Taps taps;
  T x = align ? (at + 1) / 2 * (size - 1) : ((at + 1) * size - 1) / 2;
  if (mode == SampleMode::kNearest) x = std::nearbyint(x);
  const T low = align ? T(0) : T(-0.5), high = align ? size - 1 : size - T(0.5);
  if (padding == SamplePadding::kReflection && (x < low || x > high)) x = reflect(x, low, high);
  if (x != x) return taps.nan = true, taps;
  x = std::clamp<T>(x, -8, size + 8);  // as far outside as any farther position
  if (mode == SampleMode::kNearest) {
    // A reflected half-integer border maps integers to integers.
    taps.index[0] = element(static_cast<int64_t>(std::nearbyint(x)), n, padding, align);
    return taps;
  }
  const auto below = static_cast<int64_t>(std::floor(x));
  const double t = static_cast<double>(x) - static_cast<double>(below);
  int64_t first = below;
  if (mode == SampleMode::kLinear) {
    taps.count = 2;
    taps.weight[0] = 1 - t;
    taps.weight[1] = t;
  } else {
    taps.count = 4;
    first = below - 1;
    cubic_weights(t, taps.weight);
  }
  for (int k = 0; k < taps.count; ++k) taps.index[k] = element(first + k, n, padding, align);
  return taps;
}

// Calls f(offset, weight) for each element read; offset counts spatial positions.
template <class F>
void for_each_element_read(const Taps* taps, const int64_t* dims, int n, F&& f) {
  int tap[kMaxSpatial] = {};
  for (;;) {
    int64_t offset = 0;
    double weight = 1;
    bool inside = true;
    for (int i = 0; i < n; ++i) {
      const int64_t index = taps[i].index[tap[i]];
      inside = inside && index >= 0;
      offset = offset * dims[i] + index;
      weight *= taps[i].weight[tap[i]];
    }
    if (inside && weight != 0) f(offset, weight);
    int i = n - 1;
    for (; i >= 0; --i) {
      if (++tap[i] < taps[i].count) break;
      tap[i] = 0;
    }
    if (i < 0) return;
  }
}

template <class T, class G>
void sample(const GridSampleAttrs& a, const TensorView& x, const TensorView& grid, const TensorView& y,
            ThreadPool* threads) {
  const int n = x.rank - 2;
  const int64_t channels = x.dims[n + 1], positions = product(x, 1, n + 1), outputs = product(grid, 1, n + 1);
  parallel_for(threads, x.dims[0] * outputs, kGrain, [&](int64_t begin, int64_t end) {
    Taps taps[kMaxSpatial];
    double sum[kSampledAtOnce];
    for (int64_t o = begin; o < end; ++o) {
      const G* at = grid.as<G>() + o * n;
      bool nan = false;
      for (int i = 0; i < n; ++i) {
        taps[i] = axis_taps<G>(a, at[n - 1 - i], x.dims[i + 1]);
        nan = nan || taps[i].nan;
      }
      const T* image = x.as<T>() + o / outputs * positions * channels;
      T* to = y.as<T>() + o * channels;
      if (nan) {
        std::fill(to, to + channels, std::numeric_limits<T>::quiet_NaN());
        continue;
      }
      for (int64_t c0 = 0; c0 < channels; c0 += kSampledAtOnce) {
        const int64_t block = std::min(kSampledAtOnce, channels - c0);
        std::fill(sum, sum + block, 0.0);
        for_each_element_read(taps, x.dims + 1, n, [&](int64_t offset, double weight) {
          const T* p = image + offset * channels + c0;
          for (int64_t c = 0; c < block; ++c) sum[c] += weight * static_cast<double>(p[c]);
        });
        for (int64_t c = 0; c < block; ++c) to[c0 + c] = static_cast<T>(sum[c]);
      }
    }
  });
}

Status run_grid_sample(const OpCall& call, RunContext& context) {
  const auto& a = call.attrs<GridSampleAttrs>();
  const TensorView &x = call.in(0), &grid = call.in(1), &y = call.out(0);
  if (y.size() == 0) return ok_status();
  return for_float(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return for_float(grid.dtype, [&](auto grid_tag) {
      sample<T, typename decltype(grid_tag)::type>(a, x, grid, y, context.threads);
      return ok_status();
    });
  });
}

}  // namespace

const Kernel kGridSampleKernel =
    reference_kernel({Op::kGridSample, infer_grid_sample, nullptr, run_grid_sample});

}  // namespace sinter
