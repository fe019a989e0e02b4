// ReverseSequence, CacheUpdate: operations along a time axis, with a position for each batch row.
#include "platforms/cuda/grid/elements.h"
#include "platforms/cuda/grid/report_fault.h"
#include "platforms/cuda/kernels/index/sequence.h"

namespace sinter::cuda {
namespace {

template <class T>
SINTER_DEVICE void reverse_sequence(const ReverseSequenceArguments& a) {
  for (int64_t n = global_thread(); n < a.box.size; n += global_threads()) {
    int64_t offsets[4];
    offsets_of(a.box, a.steps, static_cast<uint32_t>(n), offsets);
    int64_t length = load_index(a.lengths + offsets[2], a.length_width);
    if (length < 0 || length > a.time) report_fault(a.fault, FaultCode::kLength, n), length = 0;
    const int64_t t = offsets[3];
    if (t < length) offsets[1] += (length - 1 - 2 * t) * a.from_time_step;
    store(a.to + offsets[0], load<T>(a.from + offsets[1]));
  }
}

// The begin of a row's update; kNowhere if it is out of range, which is reported for element `n`.
constexpr int64_t kNowhere = -1;
SINTER_DEVICE int64_t cache_start(const CacheUpdateArguments& a, uint32_t row, int64_t n) {
  const int64_t capacity = a.capacity.divisor;
  uint32_t in_batch;
  const uint32_t batch = a.rows.divide(row, &in_batch);
  int64_t start = 0;
  if (a.starts != nullptr) start = load_index(a.starts + int64_t{batch} * a.start_width, a.start_width);
  if (a.circular != 0) {
    if (start < 0 || start >= capacity) start %= capacity;
    return start < 0 ? start + capacity : start;
  }
  if (start >= 0 && start <= capacity - a.steps) return start;
  report_fault(a.fault, FaultCode::kIndex, n);
  return kNowhere;
}

// In the cache's own memory, the cost does not depend on its capacity, and a failed run changes nothing.
template <class T>
SINTER_DEVICE void update_in_place(const CacheUpdateArguments& a) {
  const int64_t block = a.block.divisor, capacity = a.capacity.divisor;
  const int64_t of_row = a.steps * block, size = a.size / (capacity * block) * of_row;
  for (int64_t n = global_thread(); n < size; n += global_threads()) {
    const auto row = static_cast<uint32_t>(n / of_row);
    const int64_t step = n % of_row / block, element = n % block;
    const int64_t start = cache_start(a, row, n);
    if (start == kNowhere) continue;
    int64_t at = start + step;
    if (at >= capacity) at -= capacity;
    store(a.to + ((row * capacity + at) * block + element) * static_cast<int>(sizeof(T)),
          load<T>(a.update + n * static_cast<int>(sizeof(T))));
  }
}

template <class T>
SINTER_DEVICE void cache_update(const CacheUpdateArguments& a) {
  if (a.to == a.past) return update_in_place<T>(a);
  const int64_t capacity = a.capacity.divisor;
  for (int64_t n = global_thread(); n < a.size; n += global_threads()) {
    uint32_t element, at;
    uint32_t row = a.block.divide(static_cast<uint32_t>(n), &element);
    row = a.capacity.divide(row, &at);
    int64_t start = cache_start(a, row, n);
    if (start == kNowhere) start = 0;
    int64_t step = int64_t{at} - start;
    if (step < 0 && a.circular != 0) step += capacity;
    const std::byte* from = a.past + n * static_cast<int>(sizeof(T));
    if (step >= 0 && step < a.steps)
      from = a.update +
             ((int64_t{row} * a.steps + step) * a.block.divisor + element) * static_cast<int>(sizeof(T));
    store(a.to + n * static_cast<int>(sizeof(T)), load<T>(from));
  }
}

}  // namespace

SINTER_KERNEL(reverse_sequence, ReverseSequenceArguments) {
  for_width(a.width, [&](auto type) { reverse_sequence<typename decltype(type)::type>(a); });
}

SINTER_KERNEL(cache_update, CacheUpdateArguments) {
  for_width(a.width, [&](auto type) { cache_update<typename decltype(type)::type>(a); });
}

SINTER_KERNEL(check_range, CheckRangeArguments) {
  for (int64_t n = global_thread(); n < a.count; n += global_threads()) {
    const int64_t v = load_index(a.numbers + n * a.step, a.width);
    if (v < 0 || v > a.most) report_fault(a.fault, a.code, n);
  }
}

}  // namespace sinter::cuda
