// The epilogue of kernels that accumulate: bias and bounds, in the type of the sum.
#pragma once

#include "platforms/cuda/grid/grid.h"
#include "platforms/cuda/kernels/product/product.h"

namespace sinter::cuda {

SINTER_DEVICE bool begins_sixteen(const void* at) { return (reinterpret_cast<uintptr_t>(at) & 15) == 0; }

// The elements that are read at a time.
template <class T>
struct alignas(16) Piece {
  static constexpr int kCount = 16 / sizeof(T);
  T v[kCount];
};

// NaN stays NaN. `a` has the bounds, as `low` and `high`; its bias is one element a column, or null.
template <class T, class A>
SINTER_DEVICE float finish_float(const A& a, float sum, int64_t column) {
  if (a.bias != nullptr) sum += widen(reinterpret_cast<const T*>(a.bias)[column]);
  const auto low = static_cast<float>(a.low), high = static_cast<float>(a.high);
  return sum < low ? low : sum > high ? high : sum;
}

// The types of sums for other types: double, and unsigned integers, which wrap.
template <class T>
struct SumOf {
  using Type = double;
};
template <>
struct SumOf<int32_t> {
  using Type = uint32_t;
};
template <>
struct SumOf<uint32_t> {
  using Type = uint32_t;
};
template <>
struct SumOf<int64_t> {
  using Type = uint64_t;
};
template <>
struct SumOf<uint64_t> {
  using Type = uint64_t;
};
SINTER_DEVICE double add_product(double a, double b, double sum) { return m_fma(a, b, sum); }
template <class U>
SINTER_DEVICE U add_product(U a, U b, U sum) {
  return sum + a * b;
}
template <class T, class A>
SINTER_DEVICE T finish_any(const A& a, typename SumOf<T>::Type sum, int64_t column) {
  using U = typename SumOf<T>::Type;
  if (a.bias != nullptr) sum += static_cast<U>(reinterpret_cast<const T*>(a.bias)[column]);
  const T v = static_cast<T>(sum);
  T low = static_cast<T>(a.low_int), high = static_cast<T>(a.high_int);
  if constexpr (sizeof(T) == 8 && static_cast<T>(0.5) != T(0)) low = a.low, high = a.high;
  return v < low ? low : v > high ? high : v;
}

}  // namespace sinter::cuda
