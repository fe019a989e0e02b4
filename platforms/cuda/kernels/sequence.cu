// ReverseSequence, CacheUpdate: operations along a time axis, with a position for each batch row.
#include "platforms/cuda/grid/elements.h"
#include "platforms/cuda/grid/report_fault.h"
#include "platforms/cuda/kernels/sequence.h"

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

template <class T>
SINTER_DEVICE void cache_update(const CacheUpdateArguments& a) {
  const int64_t capacity = a.capacity.divisor, last = capacity - a.steps;
  for (int64_t n = global_thread(); n < a.size; n += global_threads()) {
    uint32_t element, at, in_batch;
    uint32_t row = a.block.divide(static_cast<uint32_t>(n), &element);
    row = a.capacity.divide(row, &at);
    const uint32_t batch = a.rows.divide(row, &in_batch);
    int64_t start = 0;
    if (a.starts != nullptr) start = load_index(a.starts + int64_t{batch} * a.start_width, a.start_width);
    if (a.circular != 0) {
      if (start < 0 || start >= capacity) start %= capacity;
      if (start < 0) start += capacity;
    } else if (start < 0 || start > last) {
      report_fault(a.fault, FaultCode::kIndex, n);
      start = 0;
    }
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
    if (v < 0 || v > a.most) report_fault(a.fault, FaultCode::kLength, n);
  }
}

}  // namespace sinter::cuda
