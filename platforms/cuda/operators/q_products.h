// The parts that the integer products have in common.
#pragma once

#include "platforms/cuda/operators.h"

namespace sinter::cuda {

// Describes the result of an operation whose attributes have y_zero, q_min and q_max.
template <class A>
IntegerResult integer_result(const A& a, DType type) {
  IntegerResult r;
  r.low = static_cast<float>(a.q_min - a.y_zero), r.high = static_cast<float>(a.q_max - a.y_zero);
  r.zero = static_cast<int32_t>(a.y_zero), r.width = static_cast<int32_t>(byte_width(type));
  return r;
}

// Returns the largest of 16, 4 and 1 that divides all numbers.
uint32_t unit_of(std::initializer_list<int64_t> numbers);

// Sets the multipliers and the weights' zero points of a convolution or layer: inputs 3 and 4.
void set_columns(Lowering& l, QProductArguments* a);

// Adds the launch of products whose arguments, except column_tiles, are set. `dense`: x is dense.
Status launch_products(Lowering& l, QProductArguments& a, DType x, DType w, bool dense);

}  // namespace sinter::cuda
