// Common parts of the int8 kernels that do not depend on the instruction set.
#pragma once

#include "platforms/simd/reduce_plan.h"

namespace sinter::simd {

// The result's zero point and bounds.
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

inline Status accept_dense(const OpCall& call) {
  for (const TensorView& t : call.inputs)
    SINTER_RETURN_UNLESS(!t.present() || t.dense(), unsupported("the simd kernel takes dense operands"));
  for (const TensorView& t : call.outputs)
    SINTER_RETURN_UNLESS(!t.present() || t.dense(), unsupported("the simd kernel takes dense operands"));
  return ok_status();
}

// y[i] = table[x[i]], 256 entries; y may be x. In lut.cc.
void look_up_bytes(const uint8_t* x, const uint8_t* table, uint8_t* y, size_t n);

// Of dense int8 operands; in q_pool.cc.
Status run_int8_max_pool(const OpCall& call, RunContext& context);
Status run_int8_extreme(const OpCall& call, RunContext& context, const ReducePlan& plan, bool max);

}  // namespace sinter::simd
