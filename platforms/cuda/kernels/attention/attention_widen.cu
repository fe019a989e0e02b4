// Writes keys or values as elements of the queries' type, for kernels that read no other type.
#include "platforms/cuda/grid/float8.h"
#include "platforms/cuda/kernels/attention/attention.h"
#include "runtime/core/attention_rows.h"

namespace sinter::cuda {
namespace {

// Two elements of 4 bits; the even one is in the low half of the byte.
struct Pair {
  uint8_t byte;
};
SINTER_DEVICE float number_at(const Pair* from, int64_t n) {
  const uint8_t byte = from[n / 2].byte;
  return static_cast<float>((n % 2 == 0 ? byte & 15 : byte >> 4) - kAttentionMiddle);
}
template <class S>
SINTER_DEVICE auto number_at(const S* from, int64_t n) {
  return widen(from[n]);
}

template <class T, class S>
SINTER_DEVICE void widen_rows(const AttentionWidenArguments& a) {
  const int64_t size = a.size.divisor, elements = int64_t{a.rows} * size;
  for (int64_t n = global_thread(); n < elements; n += global_threads()) {
    uint32_t element, key, group;
    const uint32_t row = a.size.divide(static_cast<uint32_t>(n), &element);
    const uint32_t batch = a.groups.divide(a.keys.divide(row, &key), &group);
    // The kernel that reads the rows reports a length that is out of range.
    if (a.lengths != nullptr && key >= a.lengths[batch]) continue;
    const auto v = number_at(reinterpret_cast<const S*>(a.from), n);
    if constexpr (sizeof(T) == 8)
      narrow(static_cast<double>(v) * (a.scales != nullptr ? static_cast<double>(a.scales[row]) : 1.0),
             reinterpret_cast<T*>(a.to) + n);
    else
      narrow(a.scales != nullptr ? v * a.scales[row] : v, reinterpret_cast<T*>(a.to) + n);
  }
}

template <class T>
SINTER_DEVICE void widen_stored(const AttentionWidenArguments& a) {
  switch (a.stored) {
    case DType::kFloat16:
      return widen_rows<T, Float16>(a);
    case DType::kBFloat16:
      return widen_rows<T, BFloat16>(a);
    case DType::kFloat8E4M3FN:
      return widen_rows<T, Float8E4M3FN>(a);
    case DType::kUint8:
      return widen_rows<T, Pair>(a);
    default:
      return widen_rows<T, int8_t>(a);
  }
}

}  // namespace

SINTER_KERNEL(attention_widen, AttentionWidenArguments) {
  switch (a.dtype) {
    case DType::kFloat64:
      return widen_stored<double>(a);
    case DType::kFloat16:
      return widen_stored<Float16>(a);
    case DType::kBFloat16:
      return widen_stored<BFloat16>(a);
    default:
      return widen_stored<float>(a);
  }
}

}  // namespace sinter::cuda
