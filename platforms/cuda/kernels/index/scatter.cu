// ScatterElements, ScatterNd: lists of the updates of each location, then every element of the result by
// itself.
#include <type_traits>

#include "platforms/cuda/grid/elements.h"
#include "platforms/cuda/grid/report_fault.h"
#include "platforms/cuda/kernels/elements/element_types.h"
#include "platforms/cuda/kernels/index/scatter.h"

namespace sinter::cuda {
namespace {

// Brings the list that begins with `first` into ascending order; returns its first element. It is a merge
// sort, bottom-up, which needs no memory. Source: Knuth, The Art of Computer Programming 3, 5.2.4.
SINTER_DEVICE int32_t sorted_list(int32_t first, int32_t* next) {
  for (int64_t run = 1;; run *= 2) {
    int32_t left = first, last = -1;
    int merges = 0;
    while (left >= 0) {
      ++merges;
      int32_t right = left;
      int64_t left_count = 0, right_count = run;
      while (left_count < run && right >= 0) ++left_count, right = next[right];
      while (left_count > 0 || (right_count > 0 && right >= 0)) {
        const bool takes_left = left_count > 0 && (right_count == 0 || right < 0 || left < right);
        const int32_t taken = takes_left ? left : right;
        if (takes_left)
          --left_count, left = next[left];
        else
          --right_count, right = next[right];
        if (last >= 0)
          next[last] = taken;
        else
          first = taken;
        last = taken;
      }
      left = right;
    }
    next[last] = -1;
    if (merges <= 1) return first;
  }
}

// Combines like the reference kernel: NaN stays; equal numbers give the update; bools are "or" and "and".
template <class T>
SINTER_DEVICE T combine(ScatterReduction kind, T a, T b) {
  if (kind == ScatterReduction::kMax) return a != a || a > b ? a : b;
  if (kind == ScatterReduction::kMin) return a != a || a < b ? a : b;
  if constexpr (std::is_same_v<T, bool>) {
    return kind == ScatterReduction::kAdd ? a || b : a && b;
  } else if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(kind == ScatterReduction::kAdd ? x + y : x * y);
  } else {
    return kind == ScatterReduction::kAdd ? a + b : a * b;
  }
}

template <class T>
SINTER_DEVICE T load_value(const std::byte* at) {
  if constexpr (std::is_same_v<T, bool>)
    return load<uint8_t>(at) != 0;
  else
    return load<T>(at);
}

template <class T>
SINTER_DEVICE void combine_all(const ScatterApplyArguments& a) {
  for (int64_t n = global_thread(); n < a.box.size; n += global_threads()) {
    int64_t offsets[2];
    offsets_of(a.box, a.steps, static_cast<uint32_t>(n), offsets);
    uint32_t element;
    const uint32_t location = a.block.divide(static_cast<uint32_t>(n), &element);
    T v = load_value<T>(a.from + offsets[1]);
    for (int32_t u = a.lists.first[location]; u >= 0; u = a.lists.next[u]) {
      const int64_t at = offset_of(a.update_box, a.update_steps, static_cast<uint32_t>(u));
      v = combine(a.kind, v, load_value<T>(a.updates + at + int64_t{element} * static_cast<int>(sizeof(T))));
    }
    store<T>(a.to + offsets[0], v);
  }
}

template <class T>
SINTER_DEVICE void write_all(const ScatterApplyArguments& a) {
  for (int64_t n = global_thread(); n < a.box.size; n += global_threads()) {
    int64_t offsets[2];
    offsets_of(a.box, a.steps, static_cast<uint32_t>(n), offsets);
    uint32_t element;
    const uint32_t location = a.block.divide(static_cast<uint32_t>(n), &element);
    const int32_t u = a.lists.first[location];
    const std::byte* from = a.from + offsets[1];
    if (u >= 0)
      from = a.updates + offset_of(a.update_box, a.update_steps, static_cast<uint32_t>(u)) +
             int64_t{element} * static_cast<int>(sizeof(T));
    store(a.to + offsets[0], load<T>(from));
  }
}

}  // namespace

SINTER_KERNEL(scatter_link, ScatterLinkArguments) {
  for (int64_t n = global_thread(); n < a.box.size; n += global_threads()) {
    const auto update = static_cast<int32_t>(n);
    int64_t offsets[2];
    offsets_of(a.box, a.steps, static_cast<uint32_t>(n), offsets);
    bool inside = true;
    for (int k = 0; k < a.depth; ++k) {
      int64_t index;
      if (!read_index(a.indices + offsets[0] + k * a.index_width, a.index_width, a.dims[k], &index))
        inside = false, index = 0;
      offsets[1] += index * a.places[k];
    }
    if (!inside)
      report_fault(a.fault, FaultCode::kIndex, n);
    else if (a.lists.next == nullptr)
      atomic_max(a.lists.first + offsets[1], update);
    else
      a.lists.next[update] = atomic_exchange(a.lists.first + offsets[1], update);
  }
}

SINTER_KERNEL(scatter_order, ScatterOrderArguments) {
  for (int64_t n = global_thread(); n < a.locations; n += global_threads()) {
    const int32_t first = a.lists.first[n];
    if (first >= 0) a.lists.first[n] = sorted_list(first, a.lists.next);
  }
}

SINTER_KERNEL(scatter_write, ScatterApplyArguments) {
  for_width(a.width, [&](auto type) { write_all<typename decltype(type)::type>(a); });
}

SINTER_KERNEL(scatter_combine, ScatterApplyArguments) {
  switch (a.type) {
    case DType::kFloat32:
      return combine_all<float>(a);
    case DType::kFloat64:
      return combine_all<double>(a);
    case DType::kBool:
      return combine_all<bool>(a);
    default:
      return for_integer(a.type, [&](auto type) { combine_all<typename decltype(type)::type>(a); });
  }
}

}  // namespace sinter::cuda
