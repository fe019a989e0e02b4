// The parts of the int8 kernels that do not depend on the instruction set.
#pragma once

#include <cmath>
#include <cstring>

#include "platforms/simd/reduce_plan.h"

namespace sinter::simd {

// The zero point and bounds of a result.
struct Int8Range {
  int32_t zero, min, max;
};
// A has y_zero, q_min and q_max.
template <class A>
Int8Range int8_range(const A& a) {
  return {static_cast<int32_t>(a.y_zero), static_cast<int32_t>(a.q_min), static_cast<int32_t>(a.q_max)};
}

// The result of an integer product: int8, int16 or float32.
struct ProductResult {
  DType type = DType::kInt8;
  int32_t zero = 0;
  float low = 0, high = 0;  // bounds less the zero point
  void* y = nullptr;
};
// A has y_zero, q_min and q_max.
template <class A>
ProductResult product_result(const OpCall& call, const A& a) {
  return {call.out(0).dtype, static_cast<int32_t>(a.y_zero), static_cast<float>(a.q_min - a.y_zero),
          static_cast<float>(a.q_max - a.y_zero), call.out(0).data};
}

// Return the bounds of int8 results.
inline int8_t lowest(const ProductResult& r) {
  return static_cast<int8_t>(static_cast<int32_t>(r.low) + r.zero);
}
inline int8_t highest(const ProductResult& r) {
  return static_cast<int8_t>(static_cast<int32_t>(r.high) + r.zero);
}

// Returns whether n multipliers are finite. Conversions of NaN to integers differ.
inline bool finite(const float* multipliers, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (!(multipliers[i] - multipliers[i] == 0)) return false;
  return true;
}

// Returns whether the sum of a bias and `depth` products of int8, scaled, is int16, whatever the numbers.
inline bool scaled_sum_fits(int32_t bias, float multiplier, int64_t depth) {
  const float most = std::fabs(static_cast<float>(bias)) + static_cast<float>(depth) * (128 * 128);
  return most * std::fabs(multiplier) < 32767 - 1.0f;
}
// Returns the same for eight columns, in a form that compilers turn into vectors.
inline bool scaled_sums_fit(const int32_t* bias, const float* multipliers, int64_t depth) {
  int32_t fit = 1;
  for (int i = 0; i < 8; ++i) fit &= static_cast<int32_t>(scaled_sum_fits(bias[i], multipliers[i], depth));
  return fit != 0;
}

// Stores up to seven bytes.
inline void store_columns(const int8_t* from, int64_t count, int8_t* to) {
  int64_t i = 0;
  if (count & 4) std::memcpy(to, from, 4), i = 4;
  if (count & 2) std::memcpy(to + i, from + i, 2), i += 2;
  if (count & 1) to[i] = from[i];
}

inline Status accept_dense(const OpCall& call) {
  for (const TensorView& t : call.inputs)
    SINTER_RETURN_UNLESS(!t.present() || t.dense(), unsupported("the simd kernel takes dense operands"));
  for (const TensorView& t : call.outputs)
    SINTER_RETURN_UNLESS(!t.present() || t.dense(), unsupported("the simd kernel takes dense operands"));
  return ok_status();
}

// Computes y[i] = table[x[i]], of 256 entries; y may be x. In lut.cc.
void look_up_bytes(const uint8_t* x, const uint8_t* table, uint8_t* y, size_t n);

// MaxPool and Reduce of dense int8 operands are in pool.cc.
Status run_int8_max_pool(const OpCall& call, RunContext& context);
Status run_int8_extreme(const OpCall& call, RunContext& context, const ReducePlan& plan, bool max);

}  // namespace sinter::simd
