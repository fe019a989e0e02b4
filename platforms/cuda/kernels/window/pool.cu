// MaxPool, AvgPool, QAvgPool: a thread has a window and a channel, or as many channels as 16 bytes hold. A
// team of a warp's threads shares a large window along one axis if there are few of them.
#include <limits>
#include <type_traits>

#include "platforms/cuda/grid/elements.h"
#include "platforms/cuda/kernels/elements/element_types.h"
#include "platforms/cuda/kernels/integer/requantize.h"
#include "platforms/cuda/kernels/reduce/team_folds.h"
#include "platforms/cuda/kernels/window/pool.h"

namespace sinter::cuda {
namespace {

template <class T, int V>
struct alignas(sizeof(T) * V) Pack {
  T at[V];
};
template <class T>
inline constexpr int kInPack = kPoolBytes / static_cast<int>(sizeof(T));

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
// The type in which elements are compared.
template <class T>
using Computed = std::conditional_t<kIsHalf<T>, float, T>;
template <class T>
SINTER_DEVICE Computed<T> computed(T v) {
  if constexpr (kIsHalf<T>)
    return widen(v);
  else
    return v;
}
template <class T>
SINTER_DEVICE T stored(Computed<T> v) {
  if constexpr (kIsHalf<T>) {
    T t;
    narrow(v, &t);
    return t;
  } else {
    return v;
  }
}

template <class T>
SINTER_DEVICE T lowest() {
  using Limits = std::numeric_limits<T>;
  return Limits::has_infinity ? -Limits::infinity() : Limits::min();
}

// A window: its beginning along each axis, and its taps within the input, first to last - 1.
struct Window {
  uint32_t image, item;  // among all windows
  int32_t at[3], start[3], first[3], last[3];

  SINTER_DEVICE Window(const PoolArguments& a, uint32_t n) : item(n) {
    uint32_t o[3];
    n = a.out[2].divide(n, &o[2]);
    n = a.out[1].divide(n, &o[1]);
    image = a.out[0].divide(n, &o[0]);
    for (int i = 0; i < 3; ++i) {
      const auto in = static_cast<int32_t>(a.in[i].divisor), by = static_cast<int32_t>(a.dilation[i].divisor);
      const auto taps = [&](int32_t elements) {
        return static_cast<int32_t>(a.dilation[i].divide(static_cast<uint32_t>(elements + by - 1)));
      };
      at[i] = static_cast<int32_t>(o[i]);
      start[i] = at[i] * a.stride[i] - a.pad[i];
      first[i] = start[i] < 0 ? taps(-start[i]) : 0;
      last[i] = start[i] < in ? taps(in - start[i]) : 0;
      if (last[i] > a.kernel[i]) last[i] = a.kernel[i];
      if (last[i] < first[i]) last[i] = first[i];
    }
  }
  // Returns the number of taps that an average counts.
  SINTER_DEVICE int64_t count(const PoolArguments& a) const {
    int64_t all = 1;
    for (int i = 0; i < 3; ++i) {
      int32_t taps = last[i] - first[i];
      if (a.counts_padding != 0) {
        const auto in = static_cast<int32_t>(a.in[i].divisor),
                   by = static_cast<int32_t>(a.dilation[i].divisor);
        taps = static_cast<int32_t>(
            a.dilation[i].divide(static_cast<uint32_t>(in + a.end_pad[i] - start[i] + by - 1)));
        if (taps > a.kernel[i]) taps = a.kernel[i];
      }
      all *= taps;
    }
    return all;
  }
  SINTER_DEVICE int32_t taps() const {
    return (last[0] - first[0]) * (last[1] - first[1]) * (last[2] - first[2]);
  }
  // Calls f(pixel) for each tap, in order; pixels are those of the image.
  template <class F>
  SINTER_DEVICE void for_each_tap(const PoolArguments& a, F&& f) const {
    for (int32_t i = first[0]; i < last[0]; ++i) {
      const int32_t plane = (start[0] + i * static_cast<int32_t>(a.dilation[0].divisor)) *
                            static_cast<int32_t>(a.in[1].divisor);
      for (int32_t j = first[1]; j < last[1]; ++j) {
        const int32_t row = (plane + start[1] + j * static_cast<int32_t>(a.dilation[1].divisor)) *
                            static_cast<int32_t>(a.in[2].divisor);
        for (int32_t k = first[2]; k < last[2]; ++k)
          f(row + start[2] + k * static_cast<int32_t>(a.dilation[2].divisor));
      }
    }
  }
  SINTER_DEVICE int64_t first_pixel(const PoolArguments& a) const {
    return int64_t{image} * a.in[0].divisor * a.in[1].divisor * a.in[2].divisor;
  }
};

// Calls f(window, bytes from a pixel's first channel to this thread's) for each of this thread's items.
template <class F>
SINTER_DEVICE void for_each_item(const PoolArguments& a, const Divider& pieces, int piece_bytes, F&& f) {
  const int64_t items = int64_t{a.windows} * pieces.divisor;
  for (int64_t n = global_thread(); n < items; n += global_threads()) {
    uint32_t piece;
    const uint32_t window = pieces.divide(static_cast<uint32_t>(n), &piece);
    f(Window(a, window), int64_t{piece} * piece_bytes);
  }
}

template <class T>
SINTER_DEVICE bool in_packs(const PoolArguments& a) {
  return a.vectors > 0 && aligned(a.x, a.y, kPoolBytes);
}

// The numbers that a pool keeps of the elements before.
template <class T>
struct Largest {
  using Kept = std::conditional_t<(sizeof(Computed<T>) < 4), int32_t, Computed<T>>;
  SINTER_DEVICE static Kept none() { return lowest<Computed<T>>(); }
  SINTER_DEVICE static Kept element(T v) { return computed(v); }
  SINTER_DEVICE Kept operator()(Kept best, Kept v) const { return v > best || v != v ? v : best; }
};
template <class T>
struct FloatSum {
  using Kept = Computed<T>;
  SINTER_DEVICE static Kept none() { return 0; }
  SINTER_DEVICE static Kept element(T v) { return widen(v); }
  SINTER_DEVICE Kept operator()(Kept s, Kept t) const { return s + t; }
};
template <class T>
struct IntegerSum {
  using Kept = int32_t;
  SINTER_DEVICE static Kept none() { return 0; }
  SINTER_DEVICE static Kept element(T v) { return v; }
  SINTER_DEVICE Kept operator()(Kept s, Kept t) const { return s + t; }
};

// A team has an item: its threads take every size-th tap of the last axis, which is the only one.
template <class T, int V, class Fold, class Finish>
SINTER_DEVICE void pool_by_teams(const PoolArguments& a, const Divider& pieces, Finish&& finish) {
  constexpr int32_t kTogether = 4;  // taps that are on their way at a time
  const Teams& team = a.teams;
  const int64_t items = int64_t{a.windows} * pieces.divisor, teams = global_threads() / team.size;
  const int64_t own = global_thread() / team.size;
  for (int64_t first = 0; first < items; first += teams) {  // equally often for all threads
    const bool exists = first + own < items;
    uint32_t piece;
    const uint32_t window = pieces.divide(static_cast<uint32_t>(exists ? first + own : 0), &piece);
    const Window w(a, window);
    const int64_t offset = int64_t{piece} * static_cast<int>(sizeof(T)) * V;
    const std::byte* image = a.x + w.first_pixel(a) * a.x_pixel + offset;
    const auto step = static_cast<int32_t>(a.dilation[2].divisor);
    typename Fold::Kept kept[V];
    for (int c = 0; c < V; ++c) kept[c] = Fold::none();
    for (int32_t k = w.first[2] + place_of(team); exists && k < w.last[2]; k += kTogether * team.size) {
      Pack<T, V> v[kTogether];
      SINTER_UNROLL
      for (int32_t i = 0; i < kTogether; ++i)
        if (k + i * team.size < w.last[2])
          v[i] = load<Pack<T, V>>(image + (w.start[2] + (k + i * team.size) * step) * a.x_pixel);
      SINTER_UNROLL
      for (int32_t i = 0; i < kTogether; ++i)
        if (k + i * team.size < w.last[2])
          for (int c = 0; c < V; ++c) kept[c] = Fold()(kept[c], Fold::element(v[i].at[c]));
    }
    for (int c = 0; c < V; ++c) kept[c] = fold_team(kept[c], Shared<typename Fold::Kept>(), team, Fold());
    if (exists && place_of(team) == 0) finish(w, offset, kept);
  }
}

// Calls finish(window, bytes from a pixel's first channel to this thread's, the kept numbers) for each item.
template <class T, int V, class Fold, class Finish>
SINTER_DEVICE void pool(const PoolArguments& a, Finish&& finish) {
  const Divider& pieces = V == 1 ? a.channels : a.vector_divider;
  if (a.teams.size > 1) return pool_by_teams<T, V, Fold>(a, pieces, finish);
  for_each_item(a, pieces, static_cast<int>(sizeof(T)) * V, [&](const Window& w, int64_t offset) {
    const std::byte* image = a.x + w.first_pixel(a) * a.x_pixel + offset;
    typename Fold::Kept kept[V];
    for (int c = 0; c < V; ++c) kept[c] = Fold::none();
    w.for_each_tap(a, [&](int32_t pixel) {
      const auto v = load<Pack<T, V>>(image + pixel * a.x_pixel);
      for (int c = 0; c < V; ++c) kept[c] = Fold()(kept[c], Fold::element(v.at[c]));
    });
    finish(w, offset, kept);
  });
}

template <class T, int V>
SINTER_DEVICE void max_pool_of(const PoolArguments& a) {
  pool<T, V, Largest<T>>(a, [&](const Window& w, int64_t offset, const auto& best) {
    Pack<T, V> result;
    for (int c = 0; c < V; ++c) result.at[c] = stored<T>(static_cast<Computed<T>>(best[c]));
    store(a.y + w.item * a.y_pixel + offset, result);
  });
}
template <class T>
SINTER_DEVICE void max_pool(const PoolArguments& a) {
  if constexpr (sizeof(T) == 1 || kIsHalf<T> || std::is_same_v<T, float>)
    if (in_packs<T>(a)) return max_pool_of<T, kInPack<T>>(a);
  max_pool_of<T, 1>(a);
}

// Finds the first of the largest elements (NaN if there is one), and its place in [images, channels, in...].
template <class T>
SINTER_DEVICE void max_pool_indices(const PoolArguments& a) {
  for_each_item(a, a.channels, static_cast<int>(sizeof(T)), [&](const Window& w, int64_t offset) {
    const std::byte* image = a.x + w.first_pixel(a) * a.x_pixel + offset;
    Computed<T> best = {};
    int32_t at = -1;
    w.for_each_tap(a, [&](int32_t pixel) {
      const Computed<T> one = computed(load<T>(image + pixel * a.x_pixel));
      if (at < 0 || one > best || (one != one && best == best)) best = one, at = pixel;
    });
    if (a.y != nullptr) store(a.y + w.item * a.y_pixel + offset, stored<T>(best));
    const int64_t channel = offset / static_cast<int>(sizeof(T));
    if (a.column_major != 0) {
      uint32_t i[3];
      uint32_t rest = a.in[2].divide(static_cast<uint32_t>(at), &i[2]);
      i[0] = a.in[1].divide(rest, &i[1]);
      at = static_cast<int32_t>((i[2] * a.in[1].divisor + i[1]) * a.in[0].divisor + i[0]);
    }
    const int64_t pixels = int64_t{a.in[0].divisor} * a.in[1].divisor * a.in[2].divisor;
    a.indices[int64_t{w.item} * a.channels.divisor + channel] =
        (int64_t{w.image} * a.channels.divisor + channel) * pixels + at;
  });
}

template <class T, int V>
SINTER_DEVICE void avg_pool_of(const PoolArguments& a) {
  pool<T, V, FloatSum<T>>(a, [&](const Window& w, int64_t offset, const Computed<T>(&sum)[V]) {
    const auto count = static_cast<Computed<T>>(w.count(a));
    Pack<T, V> result;
    for (int c = 0; c < V; ++c) narrow(sum[c] / count, &result.at[c]);
    store(a.y + w.item * a.y_pixel + offset, result);
  });
}
template <class T>
SINTER_DEVICE void avg_pool(const PoolArguments& a) {
  if constexpr (sizeof(T) <= 4)
    if (in_packs<T>(a)) return avg_pool_of<T, kInPack<T>>(a);
  avg_pool_of<T, 1>(a);
}

template <class T, int V>
SINTER_DEVICE void q_avg_pool_of(const PoolArguments& a) {
  pool<T, V, IntegerSum<T>>(a, [&](const Window& w, int64_t offset, const int32_t(&sum)[V]) {
    const int32_t zeros = a.x_zero * w.taps();
    const int64_t count = w.count(a);
    const float multiplier = count == a.usual_count
                                 ? a.usual_multiplier
                                 : static_cast<float>(a.multiplier / static_cast<double>(count));
    Pack<T, V> result;
    for (int c = 0; c < V; ++c) {
      const float v = static_cast<float>(sum[c] - zeros) * multiplier;
      result.at[c] = static_cast<T>(round_clamped(v, a.low, a.high) + a.y_zero);
    }
    store(a.y + w.item * a.y_pixel + offset, result);
  });
}
template <class T>
SINTER_DEVICE void q_avg_pool(const PoolArguments& a) {
  if (in_packs<T>(a)) return q_avg_pool_of<T, kInPack<T>>(a);
  q_avg_pool_of<T, 1>(a);
}

template <class F>
SINTER_DEVICE void for_type(DType type, F&& f) {
  switch (type) {
    case DType::kFloat32:
      return f(TypeOf<float>{});
    case DType::kFloat64:
      return f(TypeOf<double>{});
    case DType::kFloat16:
      return f(TypeOf<Float16>{});
    case DType::kBFloat16:
      return f(TypeOf<BFloat16>{});
    default:
      return for_integer(type, f);
  }
}

}  // namespace

SINTER_KERNEL(max_pool, PoolArguments) {
  for_type(a.type, [&](auto type) { max_pool<typename decltype(type)::type>(a); });
}

SINTER_KERNEL(max_pool_indices, PoolArguments) {
  for_type(a.type, [&](auto type) { max_pool_indices<typename decltype(type)::type>(a); });
}

SINTER_KERNEL(avg_pool, PoolArguments) {
  switch (a.type) {
    case DType::kFloat32:
      return avg_pool<float>(a);
    case DType::kFloat16:
      return avg_pool<Float16>(a);
    case DType::kBFloat16:
      return avg_pool<BFloat16>(a);
    default:
      return avg_pool<double>(a);
  }
}

SINTER_KERNEL(q_avg_pool, PoolArguments) {
  if (a.type == DType::kInt8)
    q_avg_pool<int8_t>(a);
  else
    q_avg_pool<int16_t>(a);
}

}  // namespace sinter::cuda
