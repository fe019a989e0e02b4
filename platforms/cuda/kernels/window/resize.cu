// Resize and QResize. Tables hold, for each axis that changes, the elements that are read and their weights;
// every element of the result is summed by itself.
#include <limits>
#include <type_traits>

#include "platforms/cuda/grid/elements.h"
#include "platforms/cuda/kernels/elements/element_types.h"
#include "platforms/cuda/kernels/integer/requantize.h"
#include "platforms/cuda/kernels/window/resize.h"

namespace sinter::cuda {
namespace {

template <class T, int V>
struct alignas(sizeof(T) * V) Pack {
  T at[V];
};

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
// Sums of integers are those of the reference kernel, whose results have the same bits.
template <class T>
using Sum = std::conditional_t<kIsHalf<T> || std::is_same_v<T, float>, float, double>;

template <class T>
SINTER_DEVICE Sum<T> summed(T v) {
  if constexpr (kIsHalf<T>)
    return widen(v);
  else
    return static_cast<Sum<T>>(v);
}

// Returns the nearest number of the type, half to even.
template <class T>
SINTER_DEVICE T rounded(Sum<T> v) {
  if constexpr (!std::is_integral_v<T>) {
    T t;
    narrow(v, &t);
    return t;
  } else {
    if (v != v) return 0;
    const double r = m_rint(v);
    if (r <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (r >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(r);
  }
}

template <class T, int V>
SINTER_DEVICE void resize_groups(const ResizeArguments& a) {
  using S = Sum<T>;
  const ResizeTables &p = a.tables[0], &q = a.tables[1], &r = a.tables[2];
  for (int64_t n = global_thread(); n < a.box.size; n += global_threads()) {
    int64_t from = 0;
    uint32_t place[kResizedAxes] = {};
    auto rest = static_cast<uint32_t>(n);
    bool outside = false;
    for (int i = a.box.rank - 1; i >= 0; --i) {
      uint32_t at = rest;
      if (i > 0) rest = a.box.dims[i].divide(rest, &at);
      const int axis = a.resized[i];
      if (axis < 0) {
        from += at * a.steps.of[i];
        continue;
      }
      for (int k = 0; k < kResizedAxes; ++k)
        if (k == axis) place[k] = at;
      outside = outside || a.tables[axis].outside[at] != 0;
    }
    S sums[V] = {};
    if (outside) {
      for (int c = 0; c < V; ++c) sums[c] = static_cast<S>(a.fill);
    } else {
      // The last axis is outermost, so that sums are those of whole rows, which the reference kernel combines
      // first.
      const auto index_of = [&](const ResizeTables& t, uint32_t at, int tap) {
        return t.index == nullptr ? 0 : t.index[int64_t{at} * t.taps + tap] * t.step;
      };
      const auto weight_of = [&](const ResizeTables& t, uint32_t at, int tap) {
        return t.index == nullptr ? S(1) : static_cast<const S*>(t.weight)[int64_t{at} * t.taps + tap];
      };
      const bool combines = p.taps > 1 || q.taps > 1;
      for (int k = 0; k < r.taps; ++k) {
        const S last_weight = weight_of(r, place[2], k);
        if (last_weight == 0) continue;
        const int64_t column = from + index_of(r, place[2], k);
        S row[V] = {};
        for (int i = 0; i < p.taps; ++i) {
          const S plane_weight = weight_of(p, place[0], i);
          const int64_t plane = column + index_of(p, place[0], i);
          for (int j = 0; j < q.taps; ++j) {
            const S weight = plane_weight * weight_of(q, place[1], j);
            if (weight == 0) continue;
            const int64_t at = plane + index_of(q, place[1], j);
            const auto v = load<Pack<T, V>>(a.from + at * static_cast<int>(sizeof(T)));
            for (int c = 0; c < V; ++c)
              row[c] = combines ? row[c] + weight * summed(v.at[c]) : summed(v.at[c]);
          }
        }
        for (int c = 0; c < V; ++c) sums[c] += last_weight * row[c];
      }
    }
    Pack<T, V> result;
    for (int c = 0; c < V; ++c) result.at[c] = rounded<T>(sums[c]);
    store(a.to + n * static_cast<int>(sizeof(T)) * V, result);
  }
}

template <class T>
SINTER_DEVICE void resize(const ResizeArguments& a) {
  if constexpr (sizeof(T) < 8)
    if (a.group == kResizeGroup) return resize_groups<T, kResizeGroup>(a);
  resize_groups<T, 1>(a);
}

// Two neighbours along an axis, and the weight of the second.
struct Neighbours {
  int32_t first, second, weight;

  SINTER_DEVICE Neighbours(const int32_t* table, uint32_t at, int32_t dim) {
    first = table[2 * at], weight = table[2 * at + 1];
    first = first < 0 ? 0 : first < dim ? first : dim - 1;
    weight = weight < 0 ? 0 : weight < 2048 ? weight : 2048;
    second = first + 1 < dim ? first + 1 : dim - 1;
  }
};

// Interpolates between columns that are 2^11 times too large, as in docs/numerics.md.
SINTER_DEVICE int8_t between(int32_t left, int32_t right, int32_t weight, int8_t) {
  constexpr int kShift = 22;
  const int32_t v = (2048 - weight) * left + weight * right;
  return static_cast<int8_t>(shift_right_rne(v, kShift));
}
SINTER_DEVICE int16_t between(int32_t left, int32_t right, int32_t weight, int16_t) {
  const float v = (static_cast<float>(left) * static_cast<float>(2048 - weight) +
                   static_cast<float>(right) * static_cast<float>(weight)) *
                  0x1p-22f;
  return static_cast<int16_t>(round_clamped(v, -32768, 32767));
}

template <class T, int V>
SINTER_DEVICE void q_resize_groups(const QResizeArguments& a) {
  for (int64_t n = global_thread(); n < a.size; n += global_threads()) {
    uint32_t piece, column, row;
    uint32_t pixel = a.pieces.divide(static_cast<uint32_t>(n), &piece);
    pixel = a.out_columns.divide(pixel, &column);
    const int64_t image = a.out_rows.divide(pixel, &row);
    const Neighbours v(a.rows, row, a.in_rows), u(a.columns, column, a.in_columns);
    const std::byte* from = a.from + (image * a.in_rows * a.in_columns * a.channels + int64_t{piece} * V) *
                                         static_cast<int>(sizeof(T));
    const auto read = [&](int32_t y, int32_t x) {
      const int64_t at = (int64_t{y} * a.in_columns + x) * a.channels;
      return load<Pack<T, V>>(from + at * static_cast<int>(sizeof(T)));
    };
    const Pack<T, V> top_left = read(v.first, u.first), bottom_left = read(v.second, u.first),
                     top_right = read(v.first, u.second), bottom_right = read(v.second, u.second);
    Pack<T, V> result;
    for (int c = 0; c < V; ++c) {
      const int32_t left = (2048 - v.weight) * top_left.at[c] + v.weight * bottom_left.at[c];
      const int32_t right = (2048 - v.weight) * top_right.at[c] + v.weight * bottom_right.at[c];
      result.at[c] = between(left, right, u.weight, T{});
    }
    store(a.to + n * static_cast<int>(sizeof(T)) * V, result);
  }
}

}  // namespace

SINTER_KERNEL(resize, ResizeArguments) {
  switch (a.type) {
    case DType::kFloat32:
      return resize<float>(a);
    case DType::kFloat16:
      return resize<Float16>(a);
    case DType::kBFloat16:
      return resize<BFloat16>(a);
    default:
      return;
  }
}

// Float64 and integers have sums in double.
SINTER_KERNEL(resize_in_double, ResizeArguments) {
  if (a.type == DType::kFloat64) return resize_groups<double, 1>(a);
  for_integer(a.type, [&](auto type) { resize_groups<typename decltype(type)::type, 1>(a); });
}

SINTER_KERNEL(resize_nearest, ResizeNearestArguments) {
  for_width(a.width, [&](auto type) {
    using T = typename decltype(type)::type;
    for (int64_t n = global_thread(); n < a.box.size; n += global_threads()) {
      int64_t from = 0;
      auto rest = static_cast<uint32_t>(n);
      bool outside = false;
      for (int i = a.box.rank - 1; i >= 0; --i) {
        uint32_t at = rest;
        if (i > 0) rest = a.box.dims[i].divide(rest, &at);
        from += (a.index[i] != nullptr ? a.index[i][at] : at) * a.steps.of[i];
        outside = outside || (a.outside[i] != nullptr && a.outside[i][at] != 0);
      }
      const std::byte* source = outside ? reinterpret_cast<const std::byte*>(a.fill) : a.from + from;
      store(a.to + n * static_cast<int>(sizeof(T)), load<T>(source));
    }
  });
}

SINTER_KERNEL(q_resize, QResizeArguments) {
  if (a.width == 1) {
    if (a.group == kResizeGroup)
      q_resize_groups<int8_t, kResizeGroup>(a);
    else
      q_resize_groups<int8_t, 1>(a);
  } else {
    if (a.group == kResizeGroup)
      q_resize_groups<int16_t, kResizeGroup>(a);
    else
      q_resize_groups<int16_t, 1>(a);
  }
}

}  // namespace sinter::cuda
